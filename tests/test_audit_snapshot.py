"""Audit snapshot: one decision per candidate, conditions that tell nothing of withheld rows, digests of it all."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from line_tables import filled, judged, line_tables
from scoped_retrieval.nodes import audit_snapshot
from scoped_retrieval.nodes.tables import TABLES
from selection_line import line

Tables = dict[str, pa.Table]


def set_where(tables: Tables, name: str, fragment: str, **values: object) -> None:
    """Change columns of the rows whose evidence id (or request id) contains a fragment."""
    table = tables[name]
    key = "evidence_id" if "evidence_id" in table.column_names else "request_id"
    rows = table.to_pylist()
    changed = [row | (values if fragment in row[key] else {}) for row in rows]
    tables[name] = TABLES[name].from_rows(changed)


def drop_where(tables: Tables, name: str, fragment: str) -> None:
    keep = pc.invert(pc.match_substring(tables[name]["evidence_id"], fragment))
    tables[name] = tables[name].filter(keep)


def decision(tables: Tables, fragment: str) -> dict[str, object]:
    (row,) = (row for row in tables["decisions"].to_pylist() if fragment in row["evidence_id"])
    return row


def fate(tables: Tables, fragment: str) -> tuple[object, ...]:
    row = decision(tables, fragment)
    return tuple(row[name] for name in ("outcome", "stage", "decided_by", "reason_code", "form"))


def conditions(tables: Tables) -> set[tuple[str, str]]:
    return {(row["condition"], row["subject"]) for row in tables["conditions"].to_pylist()}


def test_every_candidate_ends_in_one_row():
    tables = line_tables(2)
    assert fate(tables, "shown-r0001") == ("selected", "project", None, "selected", "full")
    assert fate(tables, "dropped-r0001") == ("rejected", "select", None, "low_score", "none")
    assert fate(tables, "hidden-r0001") == ("hidden", "gate", "visibility", "not_model_visible", "none")
    snapshot = tables["snapshots"].to_pylist()[0]
    assert (snapshot["recalled"], snapshot["selected_rows"], snapshot["hidden"], snapshot["rejected"]) == (3, 1, 1, 1)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda t: drop_where(t, "packs", "dropped"), ("rejected", "select", None, "low_score", "none")),
        (lambda t: drop_where(t, "ranked", "dropped"), ("rejected", "rank", None, "low_score", "none")),
        (lambda t: [drop_where(t, name, "dropped") for name in ("pool", "score_terms", "ranked", "packs")], ("rejected", "gate", "walls", "wall_disagreement", "none")),
        (lambda t: set_where(t, "packs", "dropped", reason_code="near_duplicate"), ("rejected", "pack", None, "near_duplicate", "none")),
        (lambda t: set_where(t, "packs", "dropped", reason_code="unverified_cap"), ("rejected", "select", "max_unverified_items", "unverified_cap", "none")),
        (lambda t: set_where(t, "packs", "dropped", position=1, reason_code=None), ("rejected", "trim", None, "budget_tokens", "none")),
        (lambda t: set_where(t, "verdicts", "dropped", admitted=False, decided_by="recorded", reason_code="after_as_of"), ("rejected", "gate", "recorded", "after_as_of", "none")),
        (lambda t: set_where(t, "verdicts", "dropped", admitted=False, decided_by="safety", reason_code="safety_blocked"), ("hidden", "gate", "safety", "safety_blocked", "none")),
    ],
)  # fmt: skip
def test_the_earliest_removal_decides(
    change: Callable[[Tables], None], expected: tuple[object, ...]
):  # fmt: skip
    tables = line_tables(1)
    change(tables)
    assert fate(judged(tables), "dropped") == expected


def packed_fates(rows: list[dict[str, object]], **contract: object) -> dict[object, tuple[object, ...]]:
    """What became of each row, by `path: text`, where packing itself dropped."""
    made = line(rows, requests={"r1": contract}, asks="alpha").run()
    inputs = {table: made[table] for table in audit_snapshot.decisions.__annotations__ if table != "return"}
    table = TABLES["decisions"].check(audit_snapshot.decisions(**inputs))
    name = {row["evidence_id"]: f"{row['path']}: {row['text'].strip()}" for row in made["evidence"].to_pylist()}
    return {
        name[row["evidence_id"]]: tuple(row[column] for column in ("outcome", "stage", "decided_by", "reason_code"))
        for row in table.to_pylist()
    }


@pytest.mark.parametrize(("second", "reason"), [("use UTC\n", "duplicate"), ("use  UTC\n", "near_duplicate")])
def test_a_duplicate_keeps_its_own_reason(second: str, reason: str):
    rows = [{"text": "use UTC\n", "path": "a.md", "semantic_raw": 0.9}, {"text": second, "path": "b.md"}]
    assert packed_fates(rows) == {
        "a.md: use UTC": ("selected", "project", None, "selected"),
        f"b.md: {second.strip()}": ("rejected", "pack", None, reason),
    }


@pytest.mark.parametrize(
    ("limit", "lifecycle", "expected"),
    [
        ("max_items_per_source", "verified", ("rejected", "pack", "max_items_per_source", "source_cap")),
        ("max_unverified_items", "candidate", ("rejected", "select", "max_unverified_items", "unverified_cap")),
    ],
)
def test_the_members_of_an_item_that_a_cap_dropped_share_its_reason(limit: str, lifecycle: str, expected: object):
    document = {"path": "a.md", "version": "v1", "lifecycle": lifecycle}
    rows = [
        {"text": "best\n", "line_start": 1, "byte_start": 0, "semantic_raw": 0.9} | document,
        {"text": "lead\n", "line_start": 50, "byte_start": 1000, "semantic_raw": 0.5} | document,
        {"text": "member\n", "line_start": 51, "byte_start": 1005, "semantic_raw": 0.1} | document,
    ]
    fates = packed_fates(rows, **{limit: 1})
    assert fates["a.md: best"][0] == "selected"
    assert fates["a.md: lead"] == fates["a.md: member"] == expected


def test_a_row_whose_citation_does_not_resolve_was_not_shown():
    nowhere = {"line_start": None, "byte_start": None, "version": None}
    rows = [{"text": "lost", "path": "a.md", **nowhere}, {"text": "found", "path": "b.md"}]
    fates = packed_fates(rows)
    assert fates["a.md: lost"] == ("rejected", "cite", "require_citation", "citation_unresolved")
    assert fates["b.md: found"][0] == packed_fates(rows, require_citation=False)["a.md: lost"][0] == "selected"


@pytest.mark.parametrize(
    ("change", "status", "condition", "action"),
    [
        (lambda t: None, "ok", "healthy", "continue"),
        (lambda t: set_where(t, "contracts", "r0001", denied=True, denied_reason="no"), "denied", "nothing_granted", "block"),
        (lambda t: set_where(t, "verdicts", "shown", wall_disagreement=True), "failed", "wall_disagreement", "block"),
        (lambda t: set_where(t, "blocks", "r0001", items=0), "empty", "over_budget", "degrade"),
        (lambda t: set_where(t, "blocks", "r0001", bound_by="max_tokens"), "ok", "over_budget", "continue"),
        (lambda t: set_where(t, "score_terms", "shown", anchor=0.0, semantic=0.0, lexical=0.0), "ok", "no_strong_match", "warn"),
        (lambda t: set_where(t, "score_terms", "shown", freshness="stale"), "ok", "stale_dominant", "warn"),
        (lambda t: set_where(t, "evidence", "shown", lifecycle="candidate"), "ok", "unverified_only", "degrade"),
        (lambda t: set_where(t, "trimmed", "shown", conflict_note=True), "ok", "conflicting", "warn"),
        (lambda t: (set_where(t, "requests", "r0001", role="security-reviewer"), set_where(t, "contracts", "r0001", role=None)),
         "ok", "no_overlay", "continue"),
    ],
)  # fmt: skip
def test_each_condition_has_its_cause(change, status: str, condition: str, action: str):
    tables = line_tables(1)
    set_where(tables, "requests", "r0001", role=None, mode=None)
    set_where(tables, "blocks", "r0001", items=1, bound_by=None)
    change(tables)
    tables = judged(tables)
    assert tables["snapshots"]["status"].to_pylist() == [status]
    assert condition in {name for name, _ in conditions(tables)}
    assert tables["snapshots"]["action"].to_pylist() == [action]


def test_required_evidence_that_is_not_shown_is_missing():
    tables = line_tables(1)
    set_where(tables, "contracts", "r0001", required_evidence=["current-code", "verified-memory"])
    set_where(tables, "evidence", "shown", evidence_kind="memory", lifecycle="verified")
    assert {c for c in conditions(judged(tables)) if c[0] == "missing_evidence"} == {
        ("missing_evidence", "current-code")
    }
    set_where(tables, "evidence", "shown", evidence_kind="memory", lifecycle="deprecated")
    assert ("missing_evidence", "verified-memory") in conditions(judged(tables))


def test_a_lane_that_failed_makes_the_answer_partial_and_one_that_is_off_does_not():
    tables = line_tables(1)
    tables["lane_states"] = filled(
        "lane_states", [{"request_id": "r0001", "lane": "semantic", "state": "off", "message": "install it"}]
    )
    assert judged(tables)["snapshots"]["status"].to_pylist() == ["ok"]
    assert ("lane_off", "semantic") in conditions(tables)
    tables["lane_states"] = filled(
        "lane_states", [{"request_id": "r0001", "lane": "symbol", "state": "failed", "message": "broke"}]
    )
    assert judged(tables)["snapshots"]["status"].to_pylist() == ["partial"]
    assert ("lane_failed", "symbol") in conditions(tables)


def test_a_request_that_is_denied_is_told_that_and_nothing_else():
    tables = line_tables(1)
    set_where(tables, "contracts", "r0001", denied=True, denied_reason="no")
    set_where(tables, "requests", "r0001", role=None, mode=None)
    set_where(tables, "score_terms", "shown", anchor=0.0, semantic=0.0, lexical=0.0)
    assert conditions(judged(tables)) == {("nothing_granted", "")}


@pytest.mark.parametrize(
    "name", ["requests", "contracts", "sub_queries", "hits", "ranked", "packs", "trimmed", "blocks"]
)
def test_the_digest_covers_every_table(name: str):
    tables = line_tables(1)
    before = tables["snapshots"]["snapshot_digest"][0].as_py()
    declared = TABLES[name]
    column = next(
        c for c, d in declared.columns.items() if d.digest and c != "evidence_id" and pa.types.is_string(d.type)
    )
    set_where(tables, name, "", **{column: "duplicate"})
    assert judged(tables)["snapshots"]["snapshot_digest"][0].as_py() != before
