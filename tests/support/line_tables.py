"""The tables that the line gives, made of nothing but their declarations: for tests of what is recorded and stored."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from typing import Any

import pyarrow as pa
from scoped_retrieval.nodes import audit_snapshot
from scoped_retrieval.nodes.score_terms import TERMS
from scoped_retrieval.nodes.tables import TABLES

NOON = datetime(2025, 6, 1, 12, tzinfo=UTC)


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _value(type_: pa.DataType, number: int) -> Any:
    if pa.types.is_boolean(type_):
        return True
    if pa.types.is_integer(type_):
        return number
    if pa.types.is_floating(type_):
        return number / 4
    if pa.types.is_timestamp(type_):
        return NOON
    if pa.types.is_list(type_):
        return [] if pa.types.is_struct(type_.value_type) else [_value(type_.value_type, number)]
    return f"v{number}"


def filled(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    """A declared table with the given values; every other required column gets some value."""
    declared = TABLES[name]
    full = []
    for number, row in enumerate(rows, start=1):
        defaults = {n: _value(c.type, number) for n, c in declared.columns.items() if not c.nullable}
        full.append(defaults | row)
    return declared.from_rows(full)


def line_tables(requests: int = 3, *, run_id: str = "run-000000000000000000", first: int = 1) -> dict[str, pa.Table]:
    """What the line gives for a few requests: each has one item shown, one dropped by rank, one hidden by a gate."""
    return dict(_made(requests, run_id, first))


@cache
def _made(requests: int, run_id: str, first: int) -> dict[str, pa.Table]:
    ids = [f"r{n:04d}" for n in range(first, first + requests)]
    fates = ("shown", "dropped", "hidden")
    pairs = [(r, f"{fate}-{r}") for r in ids for fate in fates]
    rows = {pair: index for index, pair in enumerate(pairs)}
    evidence = filled(
        "evidence",
        [{"evidence_id": e, "text": f"text of {e}", "redactions": None, "lifecycle": "verified"} for _, e in pairs],
    )
    placements = filled("placements", [{"row": i, "evidence_id": e} for i, (_, e) in enumerate(pairs)])
    shown = [(r, e) for r, e in pairs if e.startswith("shown")]
    bounded = [(r, e) for r, e in pairs if not e.startswith("hidden")]
    block = {r: f"block of {r}" for r in ids}

    def per_pair(name: str, some: list[tuple[str, str]], **columns: Callable[[str, str], Any]) -> pa.Table:
        if "pool_rank" in TABLES[name].columns:
            columns |= {"pool_rank": lambda r, e: fates.index(e.removesuffix(f"-{r}")) + 1}
        return filled(
            name, [{"request_id": r, "evidence_id": e} | {c: f(r, e) for c, f in columns.items()} for r, e in some]
        )

    def per_request(name: str, **columns: Callable[[str], Any]) -> pa.Table:
        return filled(name, [{"request_id": r} | {c: f(r) for c, f in columns.items()} for r in ids])

    def place(request: str, evidence_id: str) -> int:
        return bounded.index((request, evidence_id))

    candidates = per_pair(
        "candidates",
        pairs,
        row=lambda r, e: rows[r, e],
        placement=lambda r, e: rows[r, e],
        withheld=lambda _, e: "hid" in e,
    )
    inputs: dict[str, pa.Table] = {
        "requests": per_request("requests", question=lambda r: f"question of {r}"),
        "failures": TABLES["failures"].empty(),
        "lane_states": TABLES["lane_states"].empty(),
        "captures": filled(
            "captures",
            [
                {"request_id": r, "snapshot_id": f"retr-snap-{run_id[4:]}-{first + i:04d}", "created_at": NOON}
                for i, r in enumerate(ids)
            ],
        ),
        "provenance": filled("provenance", [{"part": "code", "value": "c0de"}, {"part": "generation", "value": "g1"}]),
        "contracts": per_request("contracts", denied=lambda _: False, required_evidence=lambda _: []),
        "sub_queries": per_request("sub_queries", query_text=lambda r: f"query of {r}"),
        "hits": per_pair("hits", pairs),
        "candidates": candidates,
        "verdicts": per_pair(
            "verdicts",
            pairs,
            admitted=lambda _, e: "hidden" not in e,
            wall_disagreement=lambda *_: False,
            decided_by=lambda _, e: "visibility" if "hidden" in e else None,
            reason_code=lambda _, e: "not_model_visible" if "hidden" in e else None,
        ),
        "pool": per_pair(
            "pool",
            bounded,
            candidate=lambda r, e: rows[r, e],
            contract=lambda r, _: ids.index(r),
            row=lambda r, e: rows[r, e],
            placement=lambda r, e: rows[r, e],
        ),
        "score_terms": per_pair("score_terms", bounded),
        "rerank_weights": per_request("rerank_weights", **{term.name: lambda _: 1.0 for term in TERMS}),
        "ranked": per_pair(
            "ranked",
            bounded,
            place=place,
            final=lambda r, e: len(TERMS) * (place(r, e) + 1) / 4,
            selected_reason=lambda *_: "current workspace file",
        ),
        "packs": per_pair(
            "packs",
            bounded,
            place=place,
            position=lambda _, e: int("shown" in e),
            standing=lambda *_: "evidence",
            reason_code=lambda _, e: None if "shown" in e else "low_score",
        ),
        "trims": per_pair("trims", shown, place=place),
        "trimmed": per_pair(
            "trimmed",
            shown,
            place=place,
            standing=lambda *_: "evidence",
            visible_text=lambda _, e: f"text of {e}",
            visible_sha256=lambda _, e: sha(f"text of {e}"),
            form=lambda *_: "full",
            conflict_note=lambda *_: False,
        ),
        "citations": per_pair("citations", shown, place=place, resolves=lambda *_: True),
        "item_details": per_pair("item_details", shown, place=place),
        "blocks": per_request(
            "blocks",
            text=lambda r: block[r],
            text_sha256=lambda r: sha(block[r]),
            block_ref=lambda r: sha(block[r])[:16],
        ),
        "evidence": evidence,
        "placements": placements,
    }
    for name in (
        "contract_bounds",
        "session_events",
        "anchors",
        "filter_ladder",
    ):
        inputs[name] = per_request(name)
    inputs["admissible"] = per_request("admissible", unmatched_sources=lambda *_: [])
    for name in (
        "structured_facts",
        "fact_checks",
        "grants",
        "purpose_policies",
        "kind_policies",
        "plan_rules",
        "mode_policies",
        "role_policies",
        "role_rules",
    ):
        inputs[name] = TABLES[name].empty()
    return judged(inputs)


def judged(inputs: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """The inputs with what the audit step says about them."""
    steps = audit_snapshot
    for node in (steps.decisions, steps.conditions, steps.record, steps.snapshots):
        names = [name for name in node.__annotations__ if name != "return"]
        inputs[node.__name__] = node(**{name: inputs[name] for name in names})
    record = inputs.pop("record")
    return inputs | {"record": record.rows, "texts": record.texts}
