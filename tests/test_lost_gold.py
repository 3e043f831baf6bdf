"""Of every judged document: the stage that lost it, what decided, and nothing that its reader may not know."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
import yaml
from golden_file import expect_golden
from judged_folders import documents_folder
from scoped_retrieval.nodes.errors import AccessError, InputError
from scoped_retrieval.pipeline.cli import main
from scoped_retrieval.pipeline.config.settings import load_settings
from scoped_retrieval.pipeline.contracts.why import why_not
from scoped_retrieval.pipeline.evaluation.collections import open_collection
from scoped_retrieval.pipeline.evaluation.evaluate import evaluate
from scoped_retrieval.pipeline.evaluation.lost_gold import lost_gold
from small_corpus import Story, row

GOLDEN = Path(__file__).parent / "golden" / "lost_gold.txt"
SAYS = "the default role of a cart session is guest"
LONG = " ".join(f"{SAYS} in step {n}." for n in range(60))


def doc(name: str, text: str, **columns) -> dict:
    return row("workspace", f"{name}.md", text, evidence_kind="doc", entity=name, **columns)


ROWS = (
    doc("shown", SAYS),
    doc("copy", SAYS, days=3),
    doc("weaker", "a session has a role, by default that of the last cart"),
    doc("long", LONG, days=300, authority=0),
    doc("secret", SAYS, zone="private"),
    doc("denied", SAYS, source_id="external:wiki", origin_class="external"),
    doc("apart", "nothing in common"),
    *(row("workspace", "parts.md", text, evidence_kind="doc", entity="parts", line_start=n, line_end=n)
      for n, text in ((40, "nothing in common, either"), (90, "the role of a session"))),
)  # fmt: skip
GOLD = ("shown", "copy", "weaker", "long", "secret", "denied", "apart", "parts", "absent", "foreign")
ASKED = {"question": SAYS, "project": "shop", "purpose": "explain-code", "denied_sources": ["external"]}
REQUESTS = (
    {"request_id": "wide", **ASKED, "detail": "full", "budget": {"max_items": 9, "max_tokens": 300}},
    {"request_id": "narrow", **ASKED, "budget": {"max_items": 2, "lane_k": 20, "pool_k": 3}},
    {"request_id": "shut", **ASKED, "allowed_sources": []},
)
PEOPLE = {
    "ana": {"projects": ["shop"], "audit": True},
    "bob": {"projects": ["shop"]},
    "eve": {"projects": ["shop"]},
    "pat": {"projects": ["pay"], "audit": True},
}


@pytest.fixture(name="world", scope="module")
def world_fixture(tmp_path_factory) -> SimpleNamespace:
    """A run of bob's; ana audits shop, eve asks there, too, and pat audits pay alone."""
    folder = tmp_path_factory.mktemp("gold")
    story = Story(folder, *ROWS)
    story.tell(doc("foreign", SAYS), project="pay")
    (folder / "grants.yaml").write_text(yaml.safe_dump({"principals": PEOPLE}))
    with story.open(principal="bob", runs=folder / "runs") as retriever:
        run_id = retriever.run(REQUESTS).run_id
    return SimpleNamespace(folder=folder, run_id=run_id)


def settings_of(folder: Path, principal: str):
    flags = {"corpus": folder / "corpus", "runs": folder / "runs", "grants": folder / "grants.yaml"}
    return load_settings(flags | {"principal": principal}, environ={}, user=folder / "none.toml")


def qrels(query: str, documents=GOLD) -> pd.DataFrame:
    return pd.DataFrame({"query_id": query, "doc_id": list(documents), "relevance": 1.0})


def fates(world, who: str, query: str = "wide", documents=GOLD) -> dict[str, tuple[str, str]]:
    found = lost_gold(settings_of(world.folder, who), world.run_id, qrels(query, documents)).gold
    assert len(found) == len(documents)
    return {row["doc_id"]: (row["stage"], row["reason"]) for row in found}


def test_an_auditor_learns_where_each_judged_document_was_lost(world):
    assert fates(world, "ana") == {
        "shown": ("shown", "shown"),
        "copy": ("pack", "duplicate"),
        "weaker": ("trim", "budget_tokens"),
        "long": ("shown", "shown"),
        "secret": ("gate", "denied_zone"),
        "denied": ("gate", "denied_source"),
        "apart": ("recall", "not_recalled"),
        "parts": ("trim", "budget_tokens"),  # the one of its rows that came furthest; no lane recalled the other
        "absent": ("corpus", "no row of it in the projects that you audit"),
        "foreign": ("corpus", "no row of it in the projects that you audit"),
    }  # fmt: skip


def test_a_document_is_named_by_entity_path_or_evidence_id(world):
    (first,) = lost_gold(settings_of(world.folder, "ana"), world.run_id, qrels("wide", ["shown"])).gold
    assert fates(world, "ana", documents=["shown.md", first["evidence_id"]]) == {
        "shown.md": ("shown", "shown"), first["evidence_id"]: ("shown", "shown"),
    }  # fmt: skip


def test_who_asked_learns_of_rows_that_passed_every_gate_and_of_all_others_one_answer(world):
    told = fates(world, "bob")
    audit = fates(world, "ana")
    seen = {name for name, (stage, _) in audit.items() if stage not in ("gate", "recall", "corpus")}
    assert {name: told[name] for name in seen} == {name: audit[name] for name in seen}
    assert {told[name] for name in set(GOLD) - seen} == {("unseen", "no row that you may ask about")}


def test_nobody_else_learns_that_there_is_such_a_run(world):
    absent = "run-01k87k6q1h0llat3cc"
    for who in ("eve", "pat"):
        with pytest.raises(AccessError) as refused:
            lost_gold(settings_of(world.folder, who), world.run_id, qrels("wide"))
        with pytest.raises(AccessError) as unknown:
            lost_gold(settings_of(world.folder, who), absent, qrels("wide"))
        assert str(refused.value).replace(world.run_id, "RUN") == str(unknown.value).replace(absent, "RUN")


def test_a_request_that_was_denied_lost_everything(world):
    for who in ("ana", "bob"):
        assert {stage for stage, _ in fates(world, who, "shut").values()} == {"request"}


def test_each_answer_is_that_of_why(world):
    settings = settings_of(world.folder, "ana")
    found = lost_gold(settings, world.run_id, qrels("wide")).gold
    from scoped_retrieval.pipeline.reading.access import open_run

    snapshots = open_run(settings, world.run_id).snapshots.to_pylist()
    (snapshot,) = (row["snapshot_id"] for row in snapshots if row["request_id"] == "wide")
    for row_ in found:
        if row_["evidence_id"]:
            (answer,) = why_not(settings, snapshot, row_["evidence_id"])
            assert (row_["stage"], row_["reason"]) == (
                ("shown", "shown") if answer["outcome"] == "selected" else (answer["stage"], answer["reason_code"])
            )
            assert row_["decided_by"] == answer["decided_by"] or row_["stage"] == "recall"  # `why` looks closer


def test_each_stage_says_how_many_it_lost(world):
    found = lost_gold(settings_of(world.folder, "ana"), world.run_id, qrels("wide")).stages()
    assert [(row["stage"], row["gold"]) for row in found] == [
        ("corpus", 2), ("gate", 1), ("gate", 1), ("recall", 1), ("pack", 1), ("trim", 2), ("shown", 2),
    ]  # fmt: skip


def test_a_run_of_eval_is_asked_by_its_short_queries_and_under_each_budget(tmp_path):
    folder = documents_folder(tmp_path)
    done = evaluate([open_collection(folder)], work=tmp_path / "w", semantic=False, blocks=[60])
    places = {"corpus": done.corpus, "runs": tmp_path / "w/runs", "grants": tmp_path / "w/grants.yaml"}
    settings = load_settings(places | {"principal": "evaluation"}, environ={}, user=tmp_path / "none.toml")
    judged = pd.DataFrame({"query_id": ["q1", "q2"], "doc_id": ["d2", "d1"], "relevance": 1.0})
    stages = {
        system: [row["stage"] for row in lost_gold(settings, done.run_id, judged, system=system).gold]
        for system in ("full", "block", "block@60")
    }
    assert stages == {"full": ["shown", "shown"], "block": ["shown", "shown"], "block@60": ["trim", "trim"]}
    with pytest.raises(AccessError, match="Expected a judged query among the requests that you may read, got none"):
        lost_gold(settings, done.run_id, judged.assign(query_id="q7"))
    with pytest.raises(InputError, match=r"Expected one of full, block.*, got 'lexical' - at --system"):
        lost_gold(settings, done.run_id, judged, system="lexical")


@pytest.mark.golden
def test_the_tables_of_why_gold_are_the_golden_ones(world, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "ana")
    file = tmp_path / "gold.qrels"
    file.write_text("".join(f"wide 0 {name} 1\n" for name in GOLD) + "wide 0 nobody 0\n")
    places = [f"--{name}={world.folder / file_}" for name, file_ in
              (("corpus", "corpus"), ("runs", "runs"), ("grants", "grants.yaml"))]  # fmt: skip
    assert main(["why", world.run_id, "--gold", str(file), *places]) == 0
    expect_golden(GOLDEN, capsys.readouterr().out)
    assert main(["why", world.run_id, "shown.md", "--gold", str(file), *places]) == 2
    assert main(["why", world.run_id, "--gold", str(file), *places, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["gold"]) == 10
