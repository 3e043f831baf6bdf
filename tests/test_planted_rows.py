"""Each gate alone keeps out a row that would rank first without it: fifty questions per gate, one planted row each."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from asking import answers, line_of
from scoped_retrieval.nodes.tables import IMPORT_ROWS
from scoped_retrieval.nodes.walls.gates import GATES
from scoped_retrieval.nodes.walls.gates.gate import Ground
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.sources.importing import normalize
from worlds import NOW, Row, World

QUESTIONS = 50
RECORDED = {gate.name for gate in GATES if gate.gate_class != "access"}
"""Gates that record what they withhold; an access gate leaves no trace in the decisions."""
DAY = timedelta(days=1)


@dataclass(frozen=True)
class Case:
    """The one column that shuts the planted row out, its value that would not, and what the request and its grant say."""

    shut: Row
    open: Row = field(default_factory=dict)
    request: Row = field(default_factory=dict)
    grant: Row = field(default_factory=dict)


OF_GATES = {gate.name: gate for gate in GATES}
CASES: dict[str, Case] = {
    "project": Case({"owner_project": "pay"}),
    "owner": Case({"owner_user": "bo"}, {"owner_user": "ana"}),
    "principals": Case({"principals": ["bo"]}, {"principals": ["bo", "ana"]}),
    "zone": Case({"zone": "restricted"}, {"zone": "private"}, grant={"zones": "private"}),
    "source_allow": Case({"source_id": "rules:other"}, request={"allowed_sources": ["rules:ours", "notes:*"]}),
    "source_deny": Case({"source_id": "rules:other"}, request={"denied_sources": ["rules:other"]}),
    "path_allow": Case({"path": "drafts/a.md"}, request={"allowed_paths": ["docs/"]}),
    "path_deny": Case({"path": "docs/keys/a.md"}, request={"denied_paths": ["**/keys/"]}),
    "namespace": Case({"namespace": "ui"}, {"namespace": "core"}, {"namespace": "core"}),
    "branch": Case({"branch": "dev"}, {"branch": "main"}, {"branch": "main"}),
    "workspace": Case({"workspace_root": "/w/bo"}, {"workspace_root": "/w/ana"}, {"workspace_root": "/w/ana"}),
    "test_suite": Case({"test_suite": "e2e"}, {"test_suite": "unit"}, {"test_suite": "unit"}),
    "level": Case({"level": "sprint"}, {"level": "project"}, {"mode": "planning"}),
    "role_source": Case({"origin_class": "external"}, request={"role": "release-manager"}),
    "role": Case({"excluded_roles": ["architect"]}, {"excluded_roles": ["critic-reviewer"]}, {"role": "architect"}),
    "accepted_authority": Case(
        {"origin_class": "external"}, {"origin_class": "project-doc"}, {"accepted_authority": ["project-doc"]}
    ),
    "min_authority": Case({"authority": 1}, {"authority": 3}, {"min_authority": 2}),
    "recorded": Case({"recorded_time": NOW + DAY}),
    "superseded": Case({"superseded_at": NOW - DAY}),
    "deleted": Case({"deleted_at": NOW - DAY}),
    "valid_from": Case({"valid_from": NOW + DAY}, {"valid_from": NOW - DAY}),
    "valid_until": Case({"valid_until": NOW - DAY}, {"valid_until": NOW + DAY}),
    "window_start": Case(
        {"event_time": NOW - 40 * DAY}, {"event_time": NOW - 20 * DAY}, {"include_after": (NOW - 30 * DAY).isoformat()}
    ),
    "window_end": Case(
        {"event_time": NOW - DAY}, {"event_time": NOW - 20 * DAY}, {"exclude_after": (NOW - 2 * DAY).isoformat()}
    ),
}
"""Cases of the gates whose first canary alone does not say them."""


def _case(gate: str) -> Case:
    """The case of a gate: the one written here, else its first canary."""
    if gate in CASES:
        return CASES[gate]
    assert OF_GATES[gate].canaries, f"give the gate {gate} a canary, or a case in CASES"
    ground = Ground(_row(0, ""), "", "ana", "shop", "internal", "bo", "pay", ["rules:ours"], NOW)
    planted = OF_GATES[gate].planted(OF_GATES[gate].canaries[0], ground)
    assert planted, f"the first canary of {gate} has no row here: write a case in CASES"
    return Case(planted[0], request=dict(planted[1]))


def _row(number: int, text: str, **columns: Any) -> Row:
    return {
        "source_id": "rules:ours", "origin_class": "project-doc", "evidence_kind": "rule", "owner_project": "shop",
        "path": "docs/a.md", "text": text, "authority": 2, "lifecycle": "verified", "zone": "internal",
        "recorded_time": NOW - 60 * DAY, "event_time": NOW - 10 * DAY, "declared_visibility": "model-visible",
        "line_start": number, "line_end": number, "version": "v1", "section": f"s{number}",
    } | columns  # fmt: skip


def _ordinary() -> list[Row]:
    texts = ("subject{0} is mentioned here among many other words", "a note that also speaks of subject{0} and more")
    return [_row(1 + 2 * n + k, text.format(n)) for n in range(QUESTIONS) for k, text in enumerate(texts)]


def _planted(columns: Row) -> list[Row]:
    """One row per question that says the question itself and is as authoritative as can be."""
    return [_row(1000 + n, _question(n), authority=3) | columns for n in range(QUESTIONS)]


def _question(number: int) -> str:
    return f"how does subject{number} behave under load{number}"


def _asked(folder: Path, rows: list[Row], case: Case) -> dict[str, pa.Table]:
    corpus = Corpus.create(folder)
    names = dict.fromkeys(name for row in rows for name in row)
    schema = pa.schema([IMPORT_ROWS.schema.field(name) for name in names])
    normal, _ = normalize(pa.Table.from_pylist(rows, schema=schema), project="shop", principal="ana", now=NOW)
    corpus.publish(normal, now=NOW)
    grants = {"principals": {"ana": {"projects": ["shop"], **case.grant}, "bo": {"projects": ["pay"]}}}
    (folder / "grants.yaml").write_text(yaml.safe_dump(grants), encoding="utf-8")
    world = World(rows=(), requests=(), encoder=False)
    base = {"project": "shop", "purpose": "answer-question", "time": {"as_of": NOW.isoformat()}}
    requests = [{"request_id": f"r{n:02d}", "question": _question(n), **base, **case.request} for n in range(QUESTIONS)]
    return answers(line_of(folder, world), requests)


def _numbers(folder: Path) -> dict[str, int]:
    """The question that each planted row was made for, by evidence id."""
    evidence = Corpus.open(folder).frame().evidence.select(["evidence_id", "section"]).to_pylist()
    return {row["evidence_id"]: int(row["section"][1:]) - 1000 for row in evidence if int(row["section"][1:]) >= 1000}


@pytest.mark.parametrize("gate", [gate.name for gate in GATES])
def test_a_row_that_would_rank_first_is_kept_out_by_each_gate(gate: str, tmp_path: Path) -> None:
    case = _case(gate)
    opened = _asked(tmp_path / "open", _ordinary() + _planted(case.shut | _harmless(case)), case)
    made_for = _numbers(tmp_path / "open")
    first = [row for row in opened["ranked"].to_pylist() if row["rank"] == 1]
    told = {row["request_id"]: made_for.get(row["evidence_id"]) for row in first}
    assert told == {f"r{n:02d}": n for n in range(QUESTIONS)}, "where the gate passes it, it ranks first"

    without = _asked(tmp_path / "without", _ordinary(), case)
    shut = _asked(tmp_path / "shut", _ordinary() + _planted(case.shut), case)
    assert shut["blocks"].to_pylist() == without["blocks"].to_pylist()
    assert shut["ranked"].to_pylist() == without["ranked"].to_pylist()
    planted = _numbers(tmp_path / "shut")
    assert len(planted) == QUESTIONS
    stopped = [row for row in shut["decisions"].to_pylist() if row["evidence_id"] in planted]
    assert {row["decided_by"] for row in stopped} == ({gate} if gate in RECORDED else set())
    told = {row["request_id"] for row in stopped if row["request_id"] == f"r{planted[row['evidence_id']]:02d}"}
    assert len(told) == (QUESTIONS if gate in RECORDED else 0), "each question records its own row, or none does"


def _harmless(case: Case) -> Row:
    """What the shut column says in a row that passes: the case's own value, or that of any other row."""
    ordinary = _row(0, "")
    return {name: case.open.get(name, ordinary.get(name)) for name in case.shut}
