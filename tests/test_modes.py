"""Modes: their files say what document 001 says, what one chooses stays in bounds, and what each takes in and leaves out."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from portfolio import VARIABLES, asked, indexed
from scoped_retrieval.nodes.errors import InputError, PolicyError
from scoped_retrieval.nodes.scope import mode_choices
from scoped_retrieval.nodes.scope.mode_choices import filled
from scoped_retrieval.nodes.tables import MODE_POLICIES
from scoped_retrieval.nodes.walls.second_wall import leads_to
from scoped_retrieval.pipeline.config.policies.tables import load_policies

ADR_EXECUTION = """
mode: execution
search_paths:
  - /ventures/{venture}/engagements/{engagement}/  # Contract constraints
  - /sot/  # Structured canonical data (IDs, dates, schemas)

retrieval_params:
  k_in: 20  # Narrower scope
  k_out: 6  # High precision
  chunk_expansion: false  # Exact facts only
  exact_lookups: true  # Validate IDs/dates against CSV/YAML

strategies:
  - Exact match for IDs (ULIDs), dates, acceptance criteria
  - Keyword search for technical constraints
  - Schema validation against SoT YAML
"""
SMALL = {
    "mode": "review",
    "search_paths": ["/decisions/"],
    "retrieval_params": {"k_in": 3, "k_out": 2},
    "strategies": ["Temporal search"],
}


def modes(folder: Path | None = None) -> dict[str, dict]:
    table = MODE_POLICIES.check(load_policies(folder).mode_policies)
    return {row["mode"]: row for row in table.to_pylist()}


def written(folder: Path, text: str, mode: str = "review") -> Path:
    (folder / "modes").mkdir(exist_ok=True)
    (folder / "modes" / f"{mode}.yaml").write_text(text, encoding="utf-8")
    return folder


def test_the_bundled_modes_have_the_counts_and_switches_of_the_document() -> None:
    found = modes()
    assert {name: (row["lane_k"], row["max_items"]) for name, row in found.items()} == {
        "planning": (30, 8),
        "execution": (20, 6),
        "review": (30, 10),
    }
    assert [found[name]["chunk_expansion"] for name in ("planning", "execution")] == [True, False]
    assert [name for name, row in found.items() if row["exact_lookups"]] == ["execution"]
    assert [name for name, row in found.items() if row["include_deleted"]] == ["review"]
    assert (found["review"]["window_days"], found["review"]["window_paths"]) == (30.0, ["**/logs/"])


def test_the_yaml_of_the_document_reads_as_it_stands(tmp_path: Path) -> None:
    row = modes(written(tmp_path, ADR_EXECUTION, "execution"))["execution"]
    assert (row["lane_k"], row["max_items"], row["exact_lookups"], row["lanes"]) == (20, 6, True, ["exact", "lexical"])
    assert row["search_paths"] == ["/ventures/{venture}/engagements/{engagement}/", "/sot/"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"strategies": ["Guesswork"]}, "Expected a text that begins with one of semantic, bm25, keyword"),
        ({"search_paths": []}, "Expected at least one entry, got a list of 0"),
        ({"exclude": [{"what": "logs"}]}, "Expected paths, levels or zones to leave out"),
        ({"mode": "planning"}, "Expected review, got 'planning'"),
    ],
)
def test_a_malformed_mode_is_refused_by_file_and_key(tmp_path: Path, change, message) -> None:
    with pytest.raises(PolicyError) as raised:
        load_policies(written(tmp_path, yaml.safe_dump({**SMALL, **change})))
    assert str(raised.value).startswith(message)
    assert "review.yaml: " in str(raised.value)


def test_a_mode_changes_the_digest_of_the_policies(tmp_path: Path) -> None:
    assert load_policies(written(tmp_path, yaml.safe_dump(SMALL))).digest != load_policies().digest


POLICY = {
    "mode": "planning", "version": "v", "search_paths": ["/ventures/{venture}/", "/decisions/"],
    "include_paths": ["/drafts/"], "include_when": ["drafts"], "exclude_kinds": ["path", "level", "zone"],
    "exclude_values": ["**/logs/", "sprint", "restricted"], "exclude_unless": ["debugging", "", "restricted_context"],
    "lanes": ["recent"], "lane_k": 7, "max_items": 3, "window_days": 30.0, "window_paths": ["**/{venture}/"],
    "chunk_expansion": False, "exact_lookups": True, "citation_chaining": True, "include_deleted": True,
    "newest_first": True, "cross_encoder": False,
}  # fmt: skip


def chosen(mode: str | None = "planning", **variables: Any) -> dict[str, Any]:
    return mode_choices.chosen(mode, json.dumps(variables) if variables else None, {"planning": POLICY})


def test_variables_fill_the_paths_and_the_leading_slash_is_the_root() -> None:
    found = chosen(venture="acme")
    assert found["search_paths"] == ["decisions/", "ventures/acme/"]
    assert found["window_paths"] == ["**/acme/"]
    assert (found["lane_k"], found["pool_k"], found["max_items"]) == (7, 14, 3)


def test_a_variable_is_known_with_and_without_current() -> None:
    assert chosen(current_venture="acme")["search_paths"] == chosen(venture="acme")["search_paths"]


@pytest.mark.parametrize("value", ["a/b", "..", "a\n**", "a\u2028b"])
def test_a_value_that_is_no_folder_is_refused(value: object) -> None:
    with pytest.raises(
        InputError, match=r"Expected the name of one folder, without /, got .* at requests.variables.venture"
    ):
        chosen(venture=value)


def test_a_switch_lifts_an_exclusion_and_opens_an_inclusion() -> None:
    plain, lifted = chosen(venture="a"), chosen(venture="a", debugging=True, drafts="yes", restricted_context=True)
    assert (plain["excluded_paths"], plain["excluded_zones"]) == (["**/logs/"], ["restricted"])
    assert (lifted["excluded_paths"], lifted["excluded_zones"]) == ([], [])
    assert lifted["search_paths"] == ["decisions/", "drafts/", "ventures/a/"]
    assert lifted["excluded_levels"] == ["sprint"]


@pytest.mark.parametrize("off", [False, "no", 0])
def test_a_switch_that_is_off_opens_nothing(off: object) -> None:
    found = chosen(venture="a", debugging=off, drafts=off, restricted_context=off)
    assert found == chosen(venture="a")


@pytest.mark.parametrize("on", [True, "yes", 1])
def test_a_switch_is_on_in_every_common_spelling(on: object) -> None:
    found = chosen(venture="a", restricted_context=on)
    assert found["excluded_zones"] == []


names = st.text(st.sampled_from("ab*?[]."), min_size=1, max_size=4).filter(lambda name: name not in (".", ".."))


@settings(max_examples=150, deadline=None)
@given(names, names)
def test_a_value_stands_for_itself_whatever_it_holds(value: str, other: str) -> None:
    glob = filled("/ventures/{venture}/", {"venture": value}, "r")
    for name in (value, other):
        assert leads_to(glob, f"ventures/{name}/x.md") == (name == value)


paths = st.text(st.sampled_from("ab/*[."), min_size=1, max_size=8)


OWN = "ventures/acme/projects/proj-001"
QUESTION = "why did the export miss its deadline?"
FILES = {
    "context/playbooks/strategy.md": "portfolio",
    "decisions/adr-1.md": "policy",
    "sot/notes.md": "portfolio",
    "ventures/acme/context/positioning.md": "venture",
    "ventures/acme/decisions/adr-2.md": "project",
    "ventures/acme/offers/care/context/offer.md": "offer",
    "ventures/acme/engagements/eng-001/context/engagement.md": "engagement",
    "ventures/acme/engagements/eng-001/strategy.md": "venture",
    "ventures/acme/programs/prog-01/charter.md": "program",
    f"{OWN}/context/execution_brief_v01.md": "project",
    f"{OWN}/context/review_brief_v01.md": "project",
    f"{OWN}/context/attempts/first.md": "project",
    f"{OWN}/deliverables/del-1/spec.md": "deliverable",
    f"{OWN}/logs/status.md": "task",
    f"{OWN}/planning/next.md": "project",
    f"{OWN}/sprints/sprint-003/retro_notes.md": "sprint",
    "ventures/nova/context/positioning.md": "venture",
    "ventures/nova/offers/scan/context/offer.md": "offer",
    "ventures/nova/offers/secret/context/offer.md": "offer",
    "ventures/nova/engagements/eng-9/context/engagement.md": "engagement",
    "ventures/nova/projects/proj-9/context/brief.md": "project",
    "ventures/nova/projects/proj-9/sprints/sprint-1/retro_notes.md": "sprint",
}
TABLES = {
    "logs/context_actions.csv": "timestamp,principal,question\n2025-10-20T09:00:00Z,ana,export deadline\n",
    f"{OWN}/logs/tasks.csv": "date,task,note\n2025-10-20,export,deadline\n",
    "sot/deliverables.csv": "id,name\nDEL-1,export deadline\n",
    "SHO.json": '{"mode": "execution", "next": "export deadline"}\n',
}
BRIEFS = {f"{OWN}/context/{name}_brief_v01.md" for name in ("execution", "review")}
PLANNING = BRIEFS | {
    "context/playbooks/strategy.md", "decisions/adr-1.md", "ventures/acme/context/positioning.md",
    "ventures/acme/offers/care/context/offer.md", "ventures/acme/engagements/eng-001/context/engagement.md",
    f"{OWN}/context/attempts/first.md", "ventures/nova/offers/scan/context/offer.md",
    "ventures/nova/engagements/eng-9/context/engagement.md", "ventures/nova/projects/proj-9/context/brief.md",
}  # fmt: skip
EXECUTION = BRIEFS | {
    "SHO.json", "sot/deliverables.csv", "ventures/acme/engagements/eng-001/context/engagement.md",
    f"{OWN}/deliverables/del-1/spec.md",
}  # fmt: skip
REVIEW = BRIEFS | {
    "decisions/adr-1.md", "logs/context_actions.csv", "ventures/acme/decisions/adr-2.md", f"{OWN}/logs/tasks.csv",
    f"{OWN}/logs/status.md", f"{OWN}/context/attempts/first.md", f"{OWN}/deliverables/del-1/spec.md",
    f"{OWN}/sprints/sprint-003/retro_notes.md",
}  # fmt: skip
SWITCHED: list[tuple[str, dict[str, Any], set[str]]] = [
    ("planning", {"restricted_context": True}, {"ventures/nova/offers/secret/context/offer.md"}),
    ("execution", {"debugging": True}, {f"{OWN}/context/attempts/first.md"}),
    ("execution", {"program": "prog-01"}, {"ventures/acme/programs/prog-01/charter.md"}),
    ("review", {"comparables": True}, {"ventures/nova/projects/proj-9/sprints/sprint-1/retro_notes.md"}),
]


@pytest.fixture(scope="module")
def corpus() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        for name, level in FILES.items():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            zone = "restricted" if "secret" in name else "internal"
            head = f"- entity: note\n- level: {level}\n- zone: {zone}\n- date: 2025-10-20\n"
            (tree / name).write_text(f"# Export deadline {len(name)}\n\n{head}\nSee {name}.\n", encoding="utf-8")
        for name, text in TABLES.items():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_text(text, encoding="utf-8")
        indexed(Path(folder) / "corpus", tree)
        grants = {"principals": {"ana": {"projects": ["portfolio"], "zones": "restricted"}}}
        (Path(folder) / "grants.yaml").write_text(yaml.safe_dump(grants), encoding="utf-8")
        yield Path(folder) / "corpus"


def reached(corpus: Path, mode: str | None, **more: Any) -> set[str]:
    """The paths of everything that could have been shown."""
    fields = {"mode": mode, "variables": VARIABLES | more} if mode else {"lane_k": 200, "pool_k": 400}
    tables = asked(corpus, QUESTION, **fields).tables
    seen = {row["evidence_id"] for row in tables["candidates"].to_pylist() if not row["withheld"]}
    return {row["path"] for row in tables["decisions"].to_pylist() if row["evidence_id"] in seen}


@pytest.mark.parametrize(("mode", "paths"), [("planning", PLANNING), ("execution", EXECUTION), ("review", REVIEW)])
def test_a_mode_takes_in_what_the_document_lists_and_nothing_else(corpus: Path, mode: str, paths: set[str]) -> None:
    assert reached(corpus, mode) == paths


@pytest.mark.parametrize(("mode", "switch", "more"), SWITCHED)
def test_a_switch_of_the_request_opens_what_the_document_keeps_shut_unless_needed(
    corpus: Path, mode: str, switch: dict[str, Any], more: set[str]
) -> None:
    assert reached(corpus, mode, **switch) - reached(corpus, mode) == more


def test_the_whole_tree_answers_where_no_mode_narrows_it(corpus: Path) -> None:
    assert reached(corpus, None) == {*FILES, *TABLES}
