"""Small generated worlds: rows of evidence that share words across every boundary, and requests that ask for them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

NOW = datetime(2026, 6, 1, tzinfo=UTC)
WORDS = ("admin", "role", "default", "session", "undefined", "token", "cache", "retry", "fixture", "login")
PATHS = ("src/auth/session.ts", "tests/auth/session.test.ts", "docs/roles.md", "logs/run.log", "src/cache.py")
PROJECTS = ("shop", "billing", "shared")
USERS = (None, "ana", "bo")
KINDS = (
    ("workspace", "code"), ("project-doc", "doc"), ("artifact", "test-log"), ("memory", "memory"),
    ("decision-record", "decision-record"), ("team-standard", "rule"), ("session-event", "session-event"),
    ("structured-sot", "structured-fact"),
)  # fmt: skip

TWINS = (["admin", "role", "default"], ["session", "token"], ["login", "retry", "cache", "role"])
"""Texts that many rows share, so that equal scores are common."""

RECORDS = ("ENG-001", "ENG-002")
"""Keys of structured records, and what other rows say of them."""

ROLES = ("architect", "critic-reviewer", "release-manager", "security-reviewer", "test-engineer")

REQUESTS = 25
"""Requests per world: each is a case of its own, and they share the cost of building the corpus."""

Row = dict[str, Any]


@dataclass(frozen=True)
class World:
    """Rows to index, the grants file's content and the requests to ask."""

    rows: tuple[Row, ...]
    requests: tuple[Row, ...]

    def with_rows(self, rows: list[Row]) -> World:
        return replace(self, rows=tuple(rows))


GRANTS = {
    "principals": {
        "ana": {"projects": [{"project": "shop", "denied_paths": ["vault/"]}], "zones": "internal", "groups": ["core"]},
        "bo": {"projects": ["billing"], "zones": "private"},
    },
    "grants": [
        {
            "principal": "ana",
            "project": "shared",
            "sources": ["team-standard"],
            "zones": "internal",
            "reason": "standards",
        }
    ],
}


def _days(low: int, high: int) -> st.SearchStrategy[datetime]:
    return st.integers(low, high).map(lambda d: NOW + timedelta(days=d))


@st.composite
def rows(draw: st.DrawFn) -> Row:
    """One row; most fields at their harmless value, any of them able to shut a gate."""
    origin, kind = draw(st.sampled_from(KINDS))
    words = draw(st.one_of(st.sampled_from(TWINS), st.lists(st.sampled_from(WORDS), min_size=2, max_size=10)))
    project = draw(st.sampled_from(["shop"] * 5 + list(PROJECTS)))
    record = (
        draw(st.sampled_from([None, None, *RECORDS])) if origin != "structured-sot" else draw(st.sampled_from(RECORDS))
    )
    said = "" if record is None else f"id: {record}\nfee: ${draw(st.integers(1, 3))}\n"
    return {
        "entity": record if origin == "structured-sot" else None,
        "source_id": f"{origin}:{draw(st.sampled_from(['one', 'two']))}",
        "origin_class": origin,
        "evidence_kind": kind,
        "owner_project": project,
        "owner_user": draw(st.sampled_from(USERS)) if origin == "memory" else None,
        "path": draw(st.sampled_from(PATHS)),
        "section": draw(st.sampled_from([None, "Roles", "createUser"])),
        "session_id": draw(st.sampled_from([None, "s-1"])) if kind == "session-event" else None,
        "text": said + " ".join([*words, *(["`createUser`"] if kind == "session-event" else [])]),
        "level": draw(st.sampled_from([None] * 4 + ["task", "project"])),
        "parent_id": draw(st.sampled_from([None] * 4 + ["e0", "e1"])),
        "links": draw(st.sampled_from([[], [], ["docs/roles.md"], ["src/cache.py"]])),
        "excluded_roles": draw(st.sampled_from([None] * 4 + [["architect"]])),
        "symbols": draw(st.sampled_from([[], ["createUser"], ["session"]])),
        "calls": draw(st.sampled_from([[], ["createUser"], ["retry"]])),
        "zone": draw(st.sampled_from(["public"] + ["internal"] * 6 + ["private", "restricted"])),
        "declared_visibility": draw(st.sampled_from(["model-visible"] * 8 + ["runtime-only", "user-only"])),
        "lifecycle": draw(st.sampled_from(["verified"] * 8 + ["candidate", "deprecated", "revoked"])),
        "authority": draw(st.integers(0, 3)),
        "principals": draw(st.sampled_from([None] * 8 + [[], ["ana"], ["core"], ["bo"]])),
        "branch": draw(st.sampled_from([None] * 5 + ["main", "dev"])),
        "test_suite": draw(st.sampled_from([None] * 6 + ["unit", "e2e"])),
        "conflict_set": draw(st.sampled_from([None, None, None, "c1"])),
        "recorded_time": draw(_days(-80, 3)),
        "superseded_at": draw(st.one_of(st.none(), st.none(), _days(6, 8), _days(-3, -1))),
        "valid_until": draw(st.one_of(st.none(), st.none(), _days(-5, 5))),
        "deleted_at": None,
        "valid_from": draw(st.one_of(st.none(), st.none(), _days(-60, 3))),
        "line_start": 1,
        "line_end": 1,
        "version": "v1",
    }


@st.composite
def requests(draw: st.DrawFn, number: int, modes: Sequence[str]) -> Row:
    words = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4))
    request: Row = {
        "request_id": f"r{number:03d}",
        "question": " ".join(words),
        "project": "shop",
        "purpose": draw(st.sampled_from(["fix-test", "explain-code", "review-risk", "answer-question"])),
        "time": {"as_of": draw(_days(-20, 0)).isoformat()},
    }
    if draw(st.booleans()):
        request["branch"] = draw(st.sampled_from(["main", "dev"]))
    if draw(st.booleans()):
        request["session_id"] = "s-1"
    if draw(st.booleans()):
        request["mode"] = draw(st.sampled_from(modes))
    if draw(st.booleans()):
        request["role"] = draw(st.sampled_from(ROLES))
    if draw(st.booleans()):
        request["denied_sources"] = [draw(st.sampled_from(["memory", "artifact", "project-doc:one"]))]
    if draw(st.booleans()):
        request["anchors"] = {"failing_test": "tests/auth/session.test.ts", "symbols": ["createUser"]}
    if draw(st.booleans()):
        request["budget"] = {
            "max_tokens": draw(st.integers(1, 400)),
            "max_items": draw(st.integers(1, 6)),
            "lane_k": draw(st.integers(1, 6)),
        }
    return request


@st.composite
def worlds(
    draw: st.DrawFn, *, max_rows: int = 40, asked: int = REQUESTS, modes: Sequence[str] = ("planning", "execution")
) -> World:
    """A corpus and `asked` requests of principal `ana` in project `shop`, half of them in one of some modes."""
    many = draw(st.lists(rows(), min_size=10, max_size=max_rows))
    twin = draw(st.sampled_from(many))
    many += [{**twin, "source_id": f"{twin['origin_class']}:copy{n}"} for n in range(draw(st.integers(0, 8)))]
    for ordinal, row in enumerate(many):
        row["entity"] = row["entity"] or f"e{ordinal}"
        row["line_start"] = row["line_end"] = ordinal + 1
    return World(tuple(many), tuple(draw(requests(n, modes)) for n in range(asked)))


@st.composite
def foreign_rows(draw: st.DrawFn, *, but: Collection[str] = ()) -> Row:
    """A row that no request of `ana` in `shop` may see, for one reason; otherwise made to rank first.

    `but` are reasons that shut out nothing in the modes that are asked in.
    """
    row = draw(rows())
    row |= {
        "owner_project": "shop",
        "owner_user": None,
        "zone": "internal",
        "principals": None,
        "branch": None,
        "test_suite": None,
        "declared_visibility": "model-visible",
        "lifecycle": "verified",
        "text": (f"id: {row['entity']}\nfee: $9\n" if row["entity"] else "") + " ".join((*WORDS, "`retry`")),
        "level": None,
        "excluded_roles": None,
        "recorded_time": NOW - timedelta(days=30),
        "superseded_at": None,
        "valid_from": None,
        "valid_until": None,
        "authority": 3,
        "entity": row["entity"] or f"x{draw(st.integers(0, 10**6))}",
        "line_start": 1000,
        "line_end": 1000,
    }
    reason = draw(st.sampled_from(sorted(set(SHUT) - set(but))))
    return row | SHUT[reason]


SHUT: dict[str, Row] = {
    "project": {"owner_project": "billing"},
    "owner": {"owner_user": "bo"},
    "principals": {"principals": ["bo"]},
    "nobody": {"principals": []},
    "path": {"path": "vault/roles.md"},
    "zone": {"zone": "restricted"},
    "grant source": {"owner_project": "shared", "origin_class": "memory", "source_id": "memory:one"},
    "visibility": {"declared_visibility": "runtime-only"},
    "lifecycle": {"lifecycle": "revoked"},
    "future": {"recorded_time": NOW + timedelta(days=1)},
    "superseded": {"superseded_at": NOW - timedelta(days=25)},
    "deleted": {"deleted_at": NOW - timedelta(days=25)},
    "expired": {"valid_until": NOW - timedelta(days=25)},
    "not yet valid": {"valid_from": NOW + timedelta(days=2)},
}
"""What shuts a row out of every generated request, by reason."""
