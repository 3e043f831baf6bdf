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

ROOTS = ("/w/ana", "/w/bo")
"""Work trees; `ana` asks from the first."""
NAMESPACES = ("core", "ui")
ENTITIES = tuple(f"e{n}" for n in range(6))
FOREIGN_ENTITIES = tuple(f"x{n}" for n in range(6))
OTHER_OWNERS_ENTITIES = ("y0", "y1")
"""Rows name them as parents; only rows of another project or another user have them."""
OF_ANOTHER_OWNER = ("project", "owner")
"""The reasons of `SHUT` that give a row to another owner."""

TWINS = (["admin", "role", "default"], ["session", "token"], ["login", "retry", "cache", "role"])
"""Texts that many rows share, so that equal scores are common."""

RECORDS = ("ENG-001", "ENG-002")
"""Keys of structured records, and what other rows say of them."""

ROLES = ("architect", "critic-reviewer", "release-manager", "security-reviewer", "test-engineer")

REQUESTS = 25
"""Requests per world: each is a case of its own, and they share the cost of building the corpus."""

COUNTER = "growing/1"
"""A counter whose tokens do not add up over lines, beside the one that comes with the line."""

ENCODED = ((True,), (False,), (True, False), (False, True), (True, False), (False, True), (True, False, False))
"""Publications with an encoder and without: of half of the rows, about, the semantic lane has a vector."""

WINDOWS: tuple[dict[str, str], ...] = (
    {}, {}, {}, {}, {}, {}, {"window_days": "30d"},
    {"include_after": (NOW - timedelta(days=40)).isoformat()},
    {"exclude_after": (NOW - timedelta(days=10)).isoformat()},
    {"include_after": (NOW - timedelta(days=70)).isoformat(), "exclude_after": (NOW - timedelta(days=5)).isoformat()},
)  # fmt: skip

Row = dict[str, Any]


@dataclass(frozen=True)
class World:
    """Rows to index in turn by some publications, each with an encoder or without, and the requests to ask."""

    rows: tuple[Row, ...]
    requests: tuple[Row, ...]
    encoded: tuple[bool, ...] = (True, False)
    """Which publications have an encoder: row `i` belongs to publication `i` modulo their number."""
    encoder: bool = True
    """Whether the line that asks has one."""

    def asked_outside(self, planted: Sequence[Row]) -> World:
        """The world with requests that no planted row reaches: they name what some rows are shut out by."""
        requests = list(self.requests)
        for reason, (fields, bounds) in BOUND.items():
            if any(fields.items() <= row.items() for row in planted):
                requests = [_bound(request, reason, bounds) for request in requests]
        return replace(self, requests=tuple(requests))

    def foreign(self, planted: Sequence[Row], joins: str) -> list[Row]:
        """The planted rows that join there, as import rows, each another row of evidence than any other.

        Some say what a row of the world says, and some are a work tree's text in its place, which would shadow it.
        """
        found = []
        for number, row in enumerate(planted):
            if row["joins"] != joins:
                continue
            made = {name: value for name, value in row.items() if name not in ("echo", "joins")}
            echoed = self.rows[row["echo"] % len(self.rows)]
            if row["workspace_root"] == ROOTS[0] and row["owner_project"] == "shop" and row["path"] in PATHS:
                made |= {name: echoed[name] for name in ("source_id", "path", "origin_class", "evidence_kind")}
                made["text"] += f" mark{number}"
            else:
                made |= {name: echoed[name] for name in ("text", "section") if row["echo"] % 2}
                made["source_id"] += str(number)
            found.append(made)
        return found


def _bound(request: Row, reason: str, bounds: Row) -> Row:
    if reason == "window":
        return {**request, "time": {**bounds, **request["time"]}}
    return {**bounds, **request}


GRANTS = {
    "principals": {
        "ana": {
            "projects": [{"project": "shop", "denied_paths": ["path:vault/"]}],
            "zones": "internal",
            "groups": ["core"],
        },
        "bo": {"projects": ["billing"], "zones": "private"},
    },
    "grants": [
        {
            "principal": "ana",
            "project": "shared",
            "sources": ["team-standard"],
            "zones": "internal",
            "reason": "standards",
            "expires": "2099-01-01T00:00:00Z",
        }
    ],
}


COMMIT = "c0" * 20
"""A version that rows may share as those of one commit do."""


def _days(low: int, high: int) -> st.SearchStrategy[datetime]:
    return st.integers(low, high).map(lambda d: NOW + timedelta(days=d))


ROW: dict[str, st.SearchStrategy[Any]] = {
    "kind": st.sampled_from(KINDS),
    "words": st.one_of(st.sampled_from(TWINS), st.lists(st.sampled_from(WORDS), min_size=2, max_size=10)),
    "source": st.sampled_from(["one", "two"]),
    "owner_project": st.sampled_from(["shop"] * 5 + list(PROJECTS)),
    "path": st.sampled_from([*PATHS, *PATHS, None]),
    "section": st.sampled_from([None, "Roles", "createUser"]),
    "level": st.sampled_from([None] * 4 + ["task", "project"]),
    "links": st.sampled_from([[], [], ["docs/roles.md"], ["src/cache.py"]]),
    "excluded_roles": st.sampled_from([None] * 4 + [["architect"]]),
    "symbols": st.sampled_from([[], ["createUser"], ["session"]]),
    "calls": st.sampled_from([[], ["createUser"], ["retry"]]),
    "zone": st.sampled_from(["public"] + ["internal"] * 6 + ["private", "restricted"]),
    "declared_visibility": st.sampled_from(["model-visible"] * 8 + ["runtime-only", "user-only"]),
    "lifecycle": st.sampled_from(["verified"] * 8 + ["candidate", "deprecated", "revoked"]),
    "authority": st.integers(0, 3),
    "principals": st.sampled_from([None] * 8 + [[], ["ana"], ["core"], ["bo"]]),
    "branch": st.sampled_from([None] * 5 + ["main", "dev"]),
    "namespace": st.sampled_from([None] * 10 + list(NAMESPACES)),
    "workspace_root": st.sampled_from([None] * 12 + [ROOTS[0], *ROOTS]),
    "test_suite": st.sampled_from([None] * 6 + ["unit", "e2e"]),
    "superseded_by": st.sampled_from([None] * 12 + [*ENTITIES[:2], *FOREIGN_ENTITIES[:2]]),
    "supersedes": st.sampled_from([None] * 12 + [[name] for name in (*ENTITIES[:3], FOREIGN_ENTITIES[0])]),
    "parent_id": st.sampled_from([None] * 6 + list(ENTITIES[:3]) + list(OTHER_OWNERS_ENTITIES)),
    "conflict_set": st.sampled_from([None, None, None, "c1"]),
    "recorded_time": _days(-80, 3),
    "superseded_at": st.one_of(*[st.none()] * 4, _days(6, 8), _days(-3, -1)),
    "valid_until": st.one_of(*[st.none()] * 4, _days(-5, 5)),
    "deleted_at": st.one_of(*[st.none()] * 6, _days(-12, 8)),
    "valid_from": st.one_of(*[st.none()] * 4, _days(-60, 3)),
    "version": st.sampled_from(["v1", COMMIT]),
}
"""What is drawn for every row, whatever it is; most fields at their harmless value, any of them able to shut a gate.
Made once: Hypothesis checks each new strategy, which takes longer than a draw."""
_RECORD = st.sampled_from(RECORDS)
_RECORD_OR_NONE = st.sampled_from([None, None, *RECORDS])
_SESSION = st.sampled_from([None, "s-1", "s-1", "s-2"])
_OWNER = st.sampled_from(USERS)


@st.composite
def rows(draw: st.DrawFn) -> Row:
    """One row."""
    row = {name: draw(field) for name, field in ROW.items()}
    (origin, kind), words, source = (row.pop(name) for name in ("kind", "words", "source"))
    record = draw(_RECORD if origin == "structured-sot" else _RECORD_OR_NONE)
    session = draw(_SESSION) if kind in ("memory", "session-event") else None
    asks = ["?"] if session is not None and draw(st.booleans()) else []
    said = "" if record is None else f"id: {record}\nfee: ${draw(st.integers(1, 3))}\n"
    return row | {
        "entity": record if origin == "structured-sot" else None,
        "source_id": f"{origin}:{source}",
        "origin_class": origin,
        "evidence_kind": kind,
        "owner_user": draw(_OWNER) if origin == "memory" else None,
        "session_id": session,
        "event_time": None if session is None else NOW - timedelta(days=30, minutes=draw(st.integers(0, 9)) * 45),
        "text": said + " ".join([*words, *(["`createUser`"] if kind == "session-event" else []), *asks]),
        "line_start": 1,
        "line_end": 1,
    }


_ASKED_WORDS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4)
_PURPOSE = st.sampled_from(["fix-test", "explain-code", "review-risk", "answer-question"])
_AS_OF = _days(-20, 0)
_WINDOW = st.sampled_from(WINDOWS)
_COUNTER = st.sampled_from([None, COUNTER])
_BRANCH = st.sampled_from(["main", "dev"])
_ROLE = st.sampled_from(ROLES)
_NAMESPACE = st.sampled_from(NAMESPACES)
_SUITE = st.sampled_from(["unit", "e2e"])
_ALLOWED = st.sampled_from([["src/", "docs/"], ["**/*.ts"], ["**/*.ts", "logs/"], ["(none)", "src/"], []])
_DENIED = st.sampled_from(["path:logs/", "src/auth/*.ts", "path:**/*.md"])
_DENIED_SOURCE = st.sampled_from(["memory", "artifact", "project-doc:one"])


@st.composite
def requests(draw: st.DrawFn, number: int, modes: Sequence[str]) -> Row:
    words = draw(_ASKED_WORDS)
    request: Row = {
        "request_id": f"r{number:03d}",
        "question": " ".join(words),
        "project": "shop",
        "purpose": draw(_PURPOSE),
        "time": {"as_of": draw(_AS_OF).isoformat(), **draw(_WINDOW)},
        "counter": draw(_COUNTER),
    }
    if draw(st.booleans()):
        request["recall_effort"] = "graph"
    if draw(st.booleans()):
        request["branch"] = draw(_BRANCH)
    if draw(st.booleans()):
        request["session_id"] = "s-1"
    if draw(st.booleans()):
        request["mode"] = draw(st.sampled_from(modes))
    if draw(st.booleans()):
        request["role"] = draw(_ROLE)
    if draw(st.booleans()):
        request["workspace_root"] = ROOTS[0]
    if draw(st.integers(0, 3)) == 0:
        request["namespace"] = draw(_NAMESPACE)
    if draw(st.integers(0, 3)) == 0:
        request["test_suite"] = draw(_SUITE)
    if draw(st.integers(0, 4)) == 0:
        request["allowed_paths"] = draw(_ALLOWED)
    if draw(st.integers(0, 5)) == 0:
        request["denied_paths"] = [draw(_DENIED)]
    if draw(st.booleans()):
        request["denied_sources"] = [draw(_DENIED_SOURCE)]
    if draw(st.booleans()):
        request |= {"failing_test": "tests/auth/session.test.ts", "anchor_symbols": ["createUser"]}
    if draw(st.integers(0, 3)) == 0:
        request["regexes"] = [draw(st.sampled_from(["role|admin", "(?s)session.*role", "^ *export"]))]
    if draw(st.booleans()):
        request["budget"] = {
            "max_tokens": draw(st.integers(1, 400)),
            "max_items": draw(st.integers(1, 6)),
            "lane_k": draw(st.integers(1, 6)),
        }
    return request


@st.composite
def worlds(
    draw: st.DrawFn,
    *,
    max_rows: int = 40,
    asked: int = REQUESTS,
    modes: Sequence[str] = ("planning", "execution"),
    encoded: Sequence[tuple[bool, ...]] = ENCODED,
) -> World:
    """A corpus and `asked` requests of principal `ana` in project `shop`, half of them in one of some modes."""
    many = draw(st.lists(rows(), min_size=14, max_size=max_rows))
    twin = draw(st.sampled_from(many))
    many += [{**twin, "source_id": f"{twin['origin_class']}:copy{n}"} for n in range(draw(st.integers(0, 8)))]
    for ordinal, row in enumerate(many):
        row["entity"] = row["entity"] or f"e{ordinal}"
        row["line_start"] = row["line_end"] = ordinal + 1
    many += [draw(placed_again(row)) for row in draw(st.lists(st.sampled_from(many), max_size=8))]
    return World(
        tuple(many),
        tuple(draw(requests(n, modes)) for n in range(asked)),
        encoded=draw(st.sampled_from(encoded)),
        encoder=draw(st.sampled_from([True] * 5 + [False])),
    )


_LATER_VERSION = st.sampled_from(["v2", "v3", COMMIT])
_MAYBE_SUPERSEDED = st.one_of(st.none(), _days(-30, 8))


@st.composite
def placed_again(draw: st.DrawFn, row: Row) -> Row:
    """The same text in another version of its document: another placement of the row, that may have ended."""
    return row | {
        "version": draw(_LATER_VERSION),
        "line_start": row["line_start"] + 50,
        "line_end": row["line_end"] + 50,
        "recorded_time": draw(ROW["recorded_time"]),
        "superseded_at": draw(_MAYBE_SUPERSEDED),
        "deleted_at": None,
    }


JOINS = ("the world", "before, encoded", "before, plain", "after, encoded", "after, plain")
"""With what a foreign row is published: with rows of the world, or in a publication of its own kind."""
_JOIN = st.sampled_from(JOINS)
_ROOT_OR_NONE = st.sampled_from([None, ROOTS[0]])
_FOREIGN_ENTITY = st.sampled_from(FOREIGN_ENTITIES)
_OTHER_OWNERS_ENTITY = st.sampled_from(OTHER_OWNERS_ENTITIES)


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
        "namespace": None,
        "workspace_root": draw(_ROOT_OR_NONE),
        "test_suite": None,
        "declared_visibility": "model-visible",
        "lifecycle": "verified",
        "text": (f"id: {row['entity']}\nfee: $9\n" if row["entity"] else "") + " ".join((*WORDS, "`retry`")),
        "level": None,
        "excluded_roles": None,
        "recorded_time": NOW - timedelta(days=30),
        "superseded_at": None,
        "deleted_at": None,
        "valid_from": None,
        "valid_until": None,
        "authority": 3,
        "entity": row["entity"] if row["evidence_kind"] == "structured-fact" else draw(_FOREIGN_ENTITY),
        "supersedes": [f"e{ordinal}" for ordinal in range(40)],
        "line_start": 1000,
        "line_end": 1000,
        "echo": draw(st.integers(0, 60)),
        "joins": draw(_JOIN),
    }
    row["source_id"] = f"{row['origin_class']}:foreign"
    row["session_id"] = row["session_id"] and draw(st.sampled_from([row["session_id"]] * 3 + ["s-foreign"]))
    reason = draw(st.sampled_from(sorted(set(SHUT) - set(but))))
    if reason in OF_ANOTHER_OWNER and row["evidence_kind"] != "structured-fact" and draw(st.booleans()):
        row |= {"entity": draw(_OTHER_OWNERS_ENTITY), "zone": "restricted"}
    return row | SHUT[reason]


BOUND: dict[str, tuple[Row, Row]] = {
    "branch": ({"branch": "side"}, {"branch": "main"}),
    "namespace": ({"namespace": "elsewhere"}, {"namespace": "core"}),
    "test suite": ({"test_suite": "nightly"}, {"test_suite": "unit"}),
    "window": (
        {"recorded_time": NOW - timedelta(days=400), "event_time": None},
        {"include_after": (NOW - timedelta(days=100)).isoformat()},
    ),
}
"""What shuts a row out of requests that name the field, and what those name that leave it out."""

SHUT: dict[str, Row] = {
    **{reason: fields for reason, (fields, _) in BOUND.items()},
    "project": {"owner_project": "billing"},
    "workspace": {"workspace_root": "/w/nobody"},
    "owner": {"owner_user": "bo"},
    "principals": {"principals": ["bo"]},
    "nobody": {"principals": []},
    "path": {"path": "vault/roles.md"},
    "zone": {"zone": "restricted"},
    "grant source": {"owner_project": "shared", "origin_class": "memory", "source_id": "memory:foreign"},
    "visibility": {"declared_visibility": "runtime-only"},
    "lifecycle": {"lifecycle": "revoked"},
    "future": {"recorded_time": NOW + timedelta(days=1)},
    "superseded": {"superseded_at": NOW - timedelta(days=25)},
    "deleted": {"deleted_at": NOW - timedelta(days=25)},
    "expired": {"valid_until": NOW - timedelta(days=25)},
    "not yet valid": {"valid_from": NOW + timedelta(days=2)},
}
"""What shuts a row out of every generated request, by reason."""
