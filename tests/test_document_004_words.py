"""Every word of document 004's closed lists is in some answer (S4.13): an unused word would be decoration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, get_args

import pytest
from role_world import NOW, asked, overlay
from scoped_retrieval.pipeline.asking.retrieval import Retrieval
from scoped_retrieval.pipeline.views import bundle as models
from scoped_retrieval.pipeline.views.bundle import TABLES_READ, bundle, packet_knowledge

Row = dict[str, Any]
TWO = [{"entity": e, "source_id": f"docs:{e}", "text": f"The queue is {e}."} for e in ("up", "down")]
RIVALS = [row | {"conflict_set": "q", "authority": 3} for row in TWO]


def rows(**columns: Iterable[Any]) -> list[Row]:
    """One row about the queue for each value of the columns."""
    names = list(columns)
    return [
        {"entity": str(n), "source_id": f"docs:{n}", "text": f"The queue, part {n}."} | dict(zip(names, values, strict=True))
        for n, values in enumerate(zip(*columns.values(), strict=True))
    ]  # fmt: skip


def audited(found: Retrieval) -> dict[str, Any]:
    return bundle({name: found.tables[name].to_pylist() for name in TABLES_READ}, audit=True)


def told(*overlays: Mapping[str, Any], **how: Any) -> dict[str, Any]:
    return audited(asked(*(overlays or [overlay()]), **how))


def words(name: str) -> set[str]:
    return set(get_args(getattr(models, name)))


REJECTED: dict[str, dict[str, Any]] = {
    "forbidden_source": {"changes": {"source_policy.forbidden_sources": ["docs:up"]}, "rows": TWO},
    "role_mismatch": {"rows": [TWO[0], TWO[1] | {"excluded_roles": ["reader"]}]},
    "duplicate": {"rows": [TWO[0], TWO[1] | {"text": TWO[0]["text"]}]},
    "conflict_downrank": {"rows": RIVALS, "budget": {"max_tokens": 100}},
    "budget_cut": {"rows": TWO, "max_items": 1},
    "stale": {"rows": [TWO[0], TWO[1] | {"valid_until": NOW - timedelta(days=1)}]},
    "low_score": {"rows": [TWO[0] | {"authority": 3}, TWO[1]], "min_authority": 2},
}


@pytest.mark.parametrize("reason", sorted(words("RejectionReason")))
def test_every_reason_of_a_rejection(reason: str):
    how = dict(REJECTED[reason])
    made = told(overlay(how.pop("changes", {})), **how)
    disputed = reason == "conflict_downrank"  # the rival that has no room is cut, and the other goes with it
    assert [one["reason"] for one in made["rejected"]] == [reason, *["budget_cut"] * disputed]
    assert len(made["selected"]) == (0 if disputed else 1)
    assert made["summary"]["total_candidates"] == len(made["selected"]) + len(made["rejected"])
    assert made["diagnostics"]["deduped_count"] == (reason == "duplicate")


DAY_AGO = NOW - timedelta(days=1)


@pytest.mark.parametrize(
    ("row", "detail", "reason"),
    [
        ({"lifecycle": "revoked"}, "lifecycle_excluded", "low_score"),
        ({"deleted_at": DAY_AGO}, "deleted", "low_score"),
        ({"superseded_at": DAY_AGO}, "superseded", "stale"),
        ({"valid_until": DAY_AGO}, "expired", "stale"),
    ],
)
def test_stale_is_what_is_out_of_date_and_no_other_exclusion(row: dict[str, Any], detail: str, reason: str):
    states = {"lifecycle": "verified"}
    made = told(overlay(), rows=[TWO[0] | states, TWO[1] | states | row])
    assert [(one["detail"], one["reason"]) for one in made["rejected"]] == [(detail, reason)]
    assert made["diagnostics"]["dropped_stale_count"] == (reason == "stale")


WARNED: dict[str, dict[str, Any]] = {
    "NO_HIGH_TRUST_MATCH": {"rows": TWO},
    "ONLY_SHARED_CORPUS": {"overlays": (), "role": "anybody"},
    "STALE_DOMINANT": {"changes": {"retrieval_policy.freshness_max_age_days": 1.0}, "rows": rows(days=(9, 9))},
    "FORBIDDEN_SOURCE_HIT": REJECTED["forbidden_source"],
    "LOW_DIVERSITY": {"rows": rows(days=(1, 1, 1))},
    "CONFLICTING_EVIDENCE": {"rows": RIVALS},
}


# A server that is down is covered in test_document_004.
@pytest.mark.parametrize("code", sorted(words("WarningCode") - {"SEMANTIC_UNAVAILABLE"}))
def test_every_code_of_a_warning(code: str):
    how = dict(WARNED[code])
    made = audited(asked(*how.pop("overlays", (overlay(how.pop("changes", {})),)), **how))
    assert code in {one["code"] for one in made["warnings"]}


KNOWN: dict[str, dict[str, Any]] = {
    "strong": {"rows": rows(authority=(3, 3)), "question": "queue part"},
    "weak": {"rows": TWO},
    "stale": {"changes": {"retrieval_policy.freshness_max_age_days": 1.0}, "rows": rows(days=(9, 9), authority=(3, 3))},
    "conflicted": {"rows": RIVALS},
    "none": {"rows": TWO, "question": "an unrelated matter"},
}


@pytest.mark.parametrize("status", sorted(words("KnowledgeStatus")))
def test_every_status_of_knowledge(status: str):
    how = dict(KNOWN[status])
    made = told(overlay(how.pop("changes", {})), vectors=status == "strong", **how)
    assert packet_knowledge(made)["status"] == status


ACTED: dict[str, dict[str, Any]] = {
    "continue": {"rows": rows(authority=(3,)), "question": "queue part", "vectors": True},
    "warn": {"rows": RIVALS},
    "degrade": {"rows": TWO, "max_tokens": 1},
    "block": {"rows": TWO, "allowed_sources": []},
}


@pytest.mark.parametrize("action", sorted(words("FallbackAction")))
def test_every_action(action: str):
    """Of an answer: the document's six states, taken alone, only continue or warn (S4.9)."""
    assert asked(overlay(), **ACTED[action]).action == action
