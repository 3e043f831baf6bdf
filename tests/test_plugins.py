"""Plugins: a package from outside adds a gate, a lane, a score term and readers, and can only narrow what is shown."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plugin_package import SOURCE, install, settings_of
from scoped_retrieval.nodes.audit.records import RECORD, VIEWED, view
from scoped_retrieval.nodes.columns.digests import stored_form
from scoped_retrieval.nodes.errors import InputError, PolicyError
from scoped_retrieval.nodes.score_terms import TERMS, terms_of_plugins
from scoped_retrieval.nodes.tables import EVIDENCE
from scoped_retrieval.nodes.walls.first_wall import CONTRACT_COLUMNS
from scoped_retrieval.nodes.walls.gate_order import GateOrder
from scoped_retrieval.nodes.walls.gates import GATES
from scoped_retrieval.pipeline.config.grants import write_starter_grants
from scoped_retrieval.pipeline.config.policies.tables import load_policies
from scoped_retrieval.pipeline.config.policies.weight_files import weight_file_text
from scoped_retrieval.pipeline.contracts.why import why_not
from scoped_retrieval.pipeline.engines.process_engine import ProcessEngine
from scoped_retrieval.pipeline.engines.shards import in_this_process
from scoped_retrieval.pipeline.indexing.following import IndexRequest
from scoped_retrieval.pipeline.indexing.importing import index_into
from scoped_retrieval.pipeline.line.lanes import advised
from scoped_retrieval.pipeline.plugins import (
    PLUGIN_REASON,
    Gate,
    Installed,
    Plugins,
    ScoreTerm,
    installed,
)
from scoped_retrieval.pipeline.reading.auditing.reproduce import reproduced
from small_corpus import NOON, Story, places, row

ROWS = (
    row("doc", "open.md", "The retry limit of billing is three."),
    row("doc", "embargo.md", "The retry limit of billing will be nine.", tags=["embargo"]),
    row("doc", "sealed.md", "The retry limit of billing was seven.", tags=["sealed"]),
    row("doc", "tagged.md", "Payments go on after a pause.", tags=["retry"]),
    row(
        "doc",
        "long.md",
        "The retry limit of billing is three. " + "It is written down in the handbook of the team. " * 12,
    ),
)
QUESTION = "What is the retry limit of billing?"


@pytest.fixture(name="story")
def story_fixture(tmp_path, monkeypatch):
    install(tmp_path, monkeypatch)
    return Story(tmp_path, *ROWS)


def answered(story: Story, *, plugins: Any = ("acme",), **fields: Any) -> Any:
    with story.open(plugins=plugins) as retriever:
        return retriever.retrieve({"project": "shop", "question": QUESTION, **fields})


def without(installed_: Installed, **left: Any) -> Plugins:
    return replace(installed_.line, **{"gates": (), "lanes": (), "score_terms": (), "digest": "", **left})


def test_nothing_that_is_installed_counts_until_it_is_named(story):
    assert set(places(answered(story, plugins=()))) >= {"embargo.md", "sealed.md"}
    assert installed(()) == Installed()


def test_a_plugin_that_is_not_installed_is_named(story):
    with pytest.raises(InputError, match="Expected plugins that are installed, got no other"):
        installed(("acme", "other"))


# --- gates ----------------------------------------------------------------------------------------------------------


def test_a_gate_keeps_rows_back_and_says_so_to_auditors(story):
    found = answered(story)
    assert not {"embargo.md", "sealed.md"} & set(places(found))
    decisions = {d["path"]: d for d in found.tables["decisions"].to_pylist()}
    assert "sealed.md" not in decisions
    said = decisions["embargo.md"]
    assert (said["outcome"], said["decided_by"], said["reason_code"]) == (
        "rejected",
        "acme.embargo",
        "stopped_by_plugin",
    )
    ladder = {line["gate"]: line for line in found.tables["filter_ladder"].to_pylist()}
    assert [gate for gate in ladder if gate.startswith("acme.")] == ["acme.sealed", "acme.embargo"]
    for gate in ("acme.sealed", "acme.embargo"):
        assert ladder[gate]["considered"] - ladder[gate]["admitted"] == 1
    assert list(ladder)[-1] == "window_end"


def test_rows_that_a_gate_stops_change_nothing_of_the_answer(tmp_path, monkeypatch):
    """A(r) is what passes every gate: statistics, scores and bytes are those of a corpus without the other rows."""
    install(tmp_path, monkeypatch)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    whole = answered(Story(tmp_path / "a", *ROWS))
    least = answered(Story(tmp_path / "b", *(r for r in ROWS if r["path"] not in ("embargo.md", "sealed.md"))))
    assert whole.block == least.block and whole.block
    ranked = [found.tables["ranked"].drop_columns(["request_id"]).to_pylist() for found in (whole, least)]
    assert ranked[0] == ranked[1]


@pytest.mark.parametrize("wall", ["stops", "removes"])
def test_walls_that_disagree_show_nothing(story, wall):
    """A gate whose two judgments differ fails closed."""
    line = installed(("acme",)).line
    gates = tuple(
        replace(gate, **{wall: (lambda rows, _: np.zeros(getattr(rows, "num_rows", None) or rows.rows, dtype=bool))})
        for gate in line.gates
        if gate.name == "acme.embargo"
    )
    found = answered(story, plugins=without(installed(("acme",)), gates=gates))
    assert found.status == "failed" and not found.citations


@given(st.lists(st.tuples(st.integers(0, len(GATES)), st.booleans(), st.booleans()), min_size=1, max_size=30))
def test_a_gate_of_a_plugin_takes_no_row_further(cases):
    def judging(name: str, gate_class: Any, mask: Any) -> Gate:
        return Gate(
            name, gate_class, PLUGIN_REASON, "", columns=("tags",), stops=lambda *_: mask, removes=lambda *_: mask
        )

    codes, *masks = (np.array(column) for column in zip(*cases, strict=True))
    order = GateOrder((judging("a.b", "visibility", masks[0]), judging("a.c", "access", masks[1])))
    evidence = pa.table({"tags": pa.nulls(len(codes), EVIDENCE.schema.field("tags").type)})
    contract = dict.fromkeys(CONTRACT_COLUMNS)
    after = order.stopped(codes.astype(np.int8), evidence, 0, contract)
    far = order.most + 1
    before_place, after_place = (np.where(each == 0, far, order.place[each]) for each in (codes, after))
    own = (order.place[len(GATES) + 1], order.place[len(GATES) + 2])
    wanted = np.minimum.reduce([before_place, *(np.where(m, p, far) for m, p in zip(masks, own, strict=True))])
    assert (after_place == wanted).all()
    assert (order.passes_access(after) <= order.passes_access(codes)).all()


def audited(story: Story) -> None:
    (story.folder / "grants.yaml").unlink()
    write_starter_grants(story.folder / "grants.yaml", "ana", "shop", audit=True)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("embargo.md", ("acme.embargo", "required: it is not under embargo", ["only a row without the tag embargo"])),
        (
            "sealed.md",
            ("acme.sealed", "required: it is not sealed", ["only a row of which this holds: it is not sealed"]),
        ),
    ],
)
def test_an_auditor_learns_why_a_row_was_stopped_by_a_plugin(story, path, said):
    audited(story)
    with story.open(plugins=("acme",), runs=story.folder / "runs") as retriever:
        snapshot = retriever.retrieve({"project": "shop", "question": QUESTION}).snapshot_id
    (answer,) = why_not(settings_of(story), snapshot, path)
    assert (answer["decided_by"], answer["reason_text"], answer["would_admit"]) == said


# --- score terms ----------------------------------------------------------------------------------------------------


def test_contributions_of_a_plugin_add_up_to_the_final_score(story):
    ranked = answered(story).tables["ranked"].to_pylist()
    terms = (*(term.name for term in TERMS), *terms_of_plugins(ranked[0]))
    assert terms[-1] == "acme.length"
    for each in ranked:
        assert sum(each[term] for term in terms) == each["final"] == sum(each[term] for term in reversed(terms))
        assert (each["acme.length"] * 2**30).is_integer()
    assert any(each["acme.length"] > 0 for each in ranked)
    values = answered(story).tables["score_terms"]["acme.length"].to_pylist()
    assert all((value * 2**30).is_integer() and 0 <= value <= 1 for value in values)


def test_the_record_of_an_answer_gives_every_table_as_the_line_did(story):
    tables = answered(story).tables
    for name, declared in VIEWED.items():
        whole = stored_form(tables[name], declared)
        stored = [column for column in whole.column_names if declared.column(column).stored]
        assert view(tables[RECORD], name).to_pylist() == whole.select(stored).to_pylist(), name


@pytest.mark.parametrize(("reason", "said"), [("it is long", "it is long"), ("", "strong in acme.length")])
def test_a_term_of_a_plugin_is_why_a_row_was_selected(story, reason, said):
    (term,) = installed(("acme",)).line.score_terms
    strong = Plugins(score_terms=(replace(term, weight=50.0, reason=reason),), digest="x")
    reasons = {each["selected_reason"] for each in answered(story, plugins=strong).tables["ranked"].to_pylist()}
    assert reasons == {said}


def weighed(folder: Any, **weights: float) -> Any:
    file = folder / "weights.yaml"
    file.write_text(weight_file_text({"answer-question": weights}, {}))
    return load_policies(weights=file)


def test_a_weight_file_weighs_the_term_of_a_plugin_and_the_run_is_reproduced(story):
    audited(story)
    policies = weighed(story.folder, **{"acme.length": 0.5, "lexical": 0.25})
    asked = [
        {"project": "shop", "purpose": purpose, "question": QUESTION} for purpose in ("answer-question", "fix-test")
    ]
    with story.open(plugins=("acme",), runs=story.folder / "runs", policies=policies) as retriever:
        run = retriever.runs.open(retriever.run(asked).run_id)
    weights = run.table("rerank_weights").to_pandas()["acme.length"]
    assert sorted(weights) == [0.3, 0.5]  # the plugin's own where the file says nothing
    assert reproduced(settings_of(story, weights=story.folder / "weights.yaml"), run.run_id).same
    with pytest.raises(PolicyError, match=r"Expected one of semantic, .*, got 'acme\.length' - at weights"):
        story.open(policies=policies)


def test_a_term_that_looks_at_other_rows_fails_the_request(story):
    term = ScoreTerm(
        "acme.share", "its part of all text", weight=1.0, columns=("text",),
        value=lambda rows, asked: np.arange(rows.num_rows) / max(1, rows.num_rows),
    )  # fmt: skip
    found = answered(story, plugins=Plugins(score_terms=(term,), digest="x"))
    assert found.status == "failed"


def test_a_term_sees_the_question_and_its_words(story):
    def value(rows, asked):
        texts, words, said = (each.to_pylist() for each in (rows["text"], asked["terms"], asked["question"]))
        assert {*said} == {"Limits?"} and all(own == ["limit"] for own in words)
        return [any(word in text for word in own) for text, own in zip(texts, words, strict=True)]

    term = ScoreTerm("acme.said", "says a word of the question", weight=1.0, columns=("text",), value=value)
    found = answered(story, plugins=Plugins(score_terms=(term,), digest="x"), question="Limits?")
    assert found.status == "ok" and any(found.tables["score_terms"]["acme.said"].to_pylist())


# --- lanes ----------------------------------------------------------------------------------------------------------


def test_a_lane_finds_what_no_other_does_and_its_rows_pass_every_gate(story):
    found = answered(story)
    hits = [hit for hit in found.tables["hits"].to_pylist() if hit["lane"] == "acme.tags"]
    assert hits and not any(hit["withheld"] for hit in hits)
    lanes = {each["evidence_id"]: each["lanes"] for each in found.tables["candidates"].to_pylist()}
    assert all("acme.tags" in lanes[hit["evidence_id"]] for hit in hits)
    alone = without(installed(("acme",)), lanes=installed(("acme",)).line.lanes)
    tagged = answered(story, plugins=alone, question="embargo sealed retry").tables["hits"].to_pylist()
    assert len({hit["evidence_id"] for hit in tagged if hit["lane"] == "acme.tags"}) == 3
    with_gates = answered(story, question="embargo sealed retry").tables["hits"].to_pylist()
    assert len({hit["evidence_id"] for hit in with_gates if hit["lane"] == "acme.tags"}) == 1


# --- digests, runs, processes ---------------------------------------------------------------------------------------


def test_every_file_of_a_plugin_s_distribution_is_part_of_the_code_of_a_run(tmp_path, monkeypatch):
    site = tmp_path / "site"
    files = {
        "acme_rules.py": SOURCE,
        "acme_help.py": "",
        "acme_data/words.txt": "a",
        "acme_help.pyc": "",
        "acme.pth": "",
    }

    def code(**changed: str) -> str:
        install(tmp_path, monkeypatch)
        (site / "acme_data").mkdir(exist_ok=True)
        for name, text in files.items():
            (site / name).write_text(changed.get(name.split(".")[0].replace("/", "_"), text) if changed else text)
        (site / "acme_rules-1.0.dist-info" / "RECORD").write_text("".join(f"{name},,\n" for name in files))
        return installed(("acme",)).line.digest

    assert len({code(), code(acme_help="a = 1"), code(acme_data_words="b")}) == 3
    assert code() == code(acme="import os")


def test_worker_processes_load_the_plugins_of_a_run(story, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(story.folder / "site"))
    asked = [
        {"request_id": f"r{n}", "project": "shop", "purpose": "answer-question", "question": question}
        for n, question in enumerate((QUESTION, "retry", "handbook of the team"))
    ]
    with story.open(plugins=("acme",), runs=story.folder / "runs", shard_requests=1) as retriever:
        done = [retriever.run(asked, engine=engine).run_id for engine in (in_this_process, ProcessEngine(2))]
        here, there = (retriever.runs.open(run).table("snapshots")["snapshot_digest"].to_pylist() for run in done)
    assert sorted(here) == sorted(there)


def _undeclared(rows: pa.Table, *_: Any) -> Any:
    return rows["uri"]


@pytest.mark.parametrize("broken", ["stops", "removes", "recall", "value"])
def test_a_function_that_raises_is_named_with_its_line_and_what_it_said_is_not_quoted(story, broken):
    own = installed(("acme",)).line
    plugins = {
        "stops": {"gates": (replace(own.gates[0], stops=lambda segment, _: segment.column("uri")),)},
        "removes": {"gates": (replace(own.gates[0], removes=_undeclared),)},
        "recall": {"lanes": (replace(own.lanes[0], recall=lambda scope: _undeclared(scope.rows)),)},
        "value": {"score_terms": (replace(own.score_terms[0], value=_undeclared),)},
    }[broken]
    found = answered(story, plugins=Plugins(**plugins, digest="x"))
    (name,) = (one.name for (one,) in plugins.values())
    said = rf"Expected a plugin that runs, got KeyError - at {name}\.{broken} \(test_plugins\.py, line \d+\) - in \w+"
    (message,) = (one["message"] for one in found.conditions if re.fullmatch(said, one["message"]))
    assert "in `columns`" in advised(message)


def test_a_reader_of_records_reads_through_the_door_of_the_corpus(tmp_path, monkeypatch):
    install(tmp_path, monkeypatch)
    story = Story(tmp_path)
    (tmp_path / "tickets.txt").write_text("T-1: billing fails at noon\nT-2: token ghp_" + "a1B2" * 9 + "\n")
    request = IndexRequest(read=(("acme.tickets", tmp_path / "tickets.txt"),), semantic=False)
    report = index_into(settings_of(story, plugins="acme"), request, now=NOON)
    assert (report.rows["acme.tickets"], report.sources.masked) == (2, 1)
    with story.open(plugins=("acme",)) as retriever:
        rows = retriever.corpus.frame(["shop"], None).evidence.to_pylist()
    assert [one["entity"] for one in rows] == ["T-1", "T-2"] and all(one["zone"] == "internal" for one in rows)
    assert "ghp_" not in rows[1]["text"]
    with pytest.raises(InputError, match=r"got 'acme\.tickets' - at --add"):
        index_into(settings_of(story), request, now=NOON)
