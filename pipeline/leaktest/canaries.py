"""Canaries: rows outside a tenant's scope that would rank first inside it, in every role that a row can have.

Reads a case. Gives hooks, rows inside the scope that point to rows outside it, and canaries, each excluded for exactly one
reason and otherwise a copy of a row that the tenant was shown. Hooks are present in every state of the test: a canary could
change only the answers about them.

Note: a row's identity consists of owner, source, path, section and text. A canary that shares all of these with a row
inside the scope *is* that row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow as pa

from ...nodes.tables import EVIDENCE, IMPORT_ROWS
from ...nodes.walls.gates import LEAK_TEST, LEFT_OUT
from ..corpus.incoming import incoming
from .cases import Case, Row

ROOTED = "work-tree version"
"""The role that needs a request with a work tree."""
LINKED = "linked document"
"""The role of a row reached by a graph walk: by a link, a call, or the commit of a row inside the scope."""
CONTAINER = "restricted parent"
"""The role that only a row of another owner can have: a parent of the same owner may raise the zone of its parts."""
OTHER_OWNERS = ("project", "owner")
"""The reasons that give a canary to another owner."""
RECORDS = ("structured record", "rival record")
"""The roles excluded from requests that list accepted classes of source: records are in none of them."""
RAISED = ("child", LEFT_OUT)
"""An impossible pair: the zone of a part is at least that of its parent."""

_HOOK = "leak-test-hook"
_BEHIND = "leak-test/behind.md"
"""Below the folder of a case, the row inside the scope that linked canaries link to."""
_TALK = "leak-test-talk"
"""The session of the turns among hooks and canaries."""
_STRUCTURED = {"origin_class": "structured-sot", "evidence_kind": "structured-fact"}
_TURN = {"evidence_kind": "session-event"}


@dataclass(frozen=True)
class Canary:
    """A row outside the scope, with the identity that the corpus gives it."""

    case: Case
    role: str
    reason: str
    token: str
    """The word of the canary."""
    row: Row
    evidence_id: str
    text_sha256: str

    @property
    def what(self) -> str:
        """Its role and reason, by which a leak is reported."""
        return f"{self.role}, shut by {self.reason}"

    @property
    def strings(self) -> list[str]:
        """What may be on no surface. A twin has the text of a row inside the scope, so its digest is not a secret."""
        return [self.token, self.evidence_id, *([self.text_sha256] if self.role != "twin" else [])]


@dataclass(frozen=True)
class Planting:
    """The canaries of a case, the rows to publish in each state, and the ids of the hooks."""

    case: Case
    canaries: list[Canary]
    before: pa.Table
    """Hooks."""
    after: pa.Table
    """Canaries, and again the hooks that are parts of them: a row may be published before and with its parent."""
    hook_ids: frozenset[str]


def planting(case: Case, pairs: Sequence[tuple[str, str]]) -> Planting:
    """Hooks and canaries of a case for these pairs of role and reason; all are recorded before its requests."""
    base, named = _base(case), []
    for role, reason in pairs:
        token = "zq" + hashlib.sha256(f"{case.name}/{role}/{reason}".encode()).hexdigest()[:14]
        shut = dict(case.shut[reason][1])
        if shut.get("path"):
            shut["path"] = shut["path"].format(token=token)
        row = base | _common(token, case) | ROLES[role].canary(token, case) | shut
        named.append((role, reason, token, row))
    rows = [row for *_, row in named]
    canaries = [
        Canary(case, role, reason, token, row, evidence_id, digest)
        for (role, reason, token, row), (evidence_id, digest) in zip(named, _ids(rows, case.ground.as_of), strict=True)
    ]
    base = base | {
        "tags": [], "symbols": ["leakTestHook"], "calls": [], "entity": None, "section": "hook", "title": "hook",
    }  # fmt: skip
    parts = list(_parts(base, case, canaries))
    hooks = [*_hooks(base, case, canaries), *parts]
    hook_ids = frozenset(id_ for id_, _ in _ids(hooks, case.ground.as_of))
    return Planting(case, canaries, _table(hooks), _table([*rows, *parts]), hook_ids)


def pairs_of(case: Case) -> list[tuple[str, str]]:
    """The pairs of role and reason that a case can have, so that a few have as many reasons and roles as they can."""
    roles = [role for role in ROLES if role != ROOTED or case.root]
    if "accepted_authority" in case.asked:
        roles = [role for role in roles if role not in RECORDS]
    every = [
        (roles[(at + turn) % len(roles)], reason) for turn in range(len(roles)) for at, reason in enumerate(case.shut)
    ]
    return [
        (role, reason)
        for role, reason in every
        if (role, reason) != RAISED and (role != CONTAINER or reason in OTHER_OWNERS)
    ]


def _table(rows: Sequence[Row]) -> pa.Table:
    table = IMPORT_ROWS.from_rows(rows)
    return table.append_column("redactions", pa.nulls(len(rows), EVIDENCE.columns["redactions"].type))


def _ids(rows: Sequence[Row], now: datetime) -> list[tuple[str, str]]:
    """Evidence id and text digest of each row, no two of which share place and text."""
    names = ("owner_project", "owner_user", "path", "text")
    stored = incoming(_table(rows), now).evidence.select([*names, "evidence_id", "text_sha256"]).to_pylist()
    known = {tuple(row[name] for name in names): (row["evidence_id"], row["text_sha256"]) for row in stored}
    return [known[tuple(row[name] for name in names)] for row in rows]


def _base(case: Case) -> Row:
    """The shown row, without values that would exclude it from some request or relate it to another row."""
    seen, times = case.ground.seen, ("event_time", "valid_from", "valid_until", "superseded_at", "deleted_at")
    return {
        **seen, **dict.fromkeys(times),
        "recorded_time": min(seen["recorded_time"], case.ground.as_of - timedelta(days=2)), "branch": None,
        "workspace_root": None, "namespace": None, "test_suite": None, "principals": None, "conflict_set": None,
        "superseded_by": None, "parent_id": None, "occurrence": 0, "line_start": 1, "line_end": 1, "byte_start": None,
        "byte_end": None, "links": [], "authority": 3, "lifecycle": "verified", "applicable_roles": None,
        "excluded_roles": None, "level": None, "session_id": None,
        "zone": "internal" if seen["zone"] == "public" and LEFT_OUT in case.shut else seen["zone"],
    }  # fmt: skip


def _common(token: str, case: Case) -> Row:
    """The columns of every canary, all with its token."""
    return {
        "text": f"{case.words} {token}", "path": f"{case.ground.folder}{token}.md", "section": token, "title": token,
        "tags": [token], "symbols": [token], "calls": [], "entity": token,
    }  # fmt: skip


def _commit(case: Case) -> str:
    """The commit of the first hook and of linked canaries."""
    return hashlib.sha256(f"{case.name}/commit".encode()).hexdigest()[:40]


def _record(token: str) -> str:
    """The id of a structured record, in a form that is recognized in texts."""
    return f"ZQ-{int(token[2:], 16) % 10**9}"


def _as_record(token: str, case: Case) -> Row:
    text = f"id: {_record(token)}\nlimit: 5{int(token[2:6], 16)}\nnote: {token}\n{case.words}"
    return {**_STRUCTURED, "entity": _record(token), "text": text}


def _pointing(of: Canary) -> str:
    """The text of a row that points to a canary."""
    return f"leak-test: hook\nlimit: 5\n{of.case.words} {of.role} {of.what}"


@dataclass(frozen=True)
class Role:
    """What a row outside the scope is to a row inside it, the hook of the role.

    `canary` gives the columns of the row outside; `hook` those of the row inside that points to it, where the hooks
    common to all roles do not.
    """

    canary: Callable[[str, Case], Row] = lambda token, case: {}
    hook: Callable[[Canary], Row] | None = None


ROLES: dict[str, Role] = {
    "candidate": Role(),
    "twin": Role(lambda token, case: {"text": f"{case.words} hook twin"}),
    "parent": Role(hook=lambda of: {"parent_id": of.evidence_id}),
    "child": Role(lambda token, case: {"parent_id": _HOOK}),
    "neighbor": Role(
        lambda token, case: {"path": f"{case.ground.folder}leak-test/hook.md", "line_start": 2, "line_end": 2}
    ),
    "conflict partner": Role(
        lambda token, case: {"conflict_set": LEAK_TEST}, lambda of: {"conflict_set": LEAK_TEST}
    ),
    "superseding version": Role(lambda token, case: {"supersedes": [_HOOK]}, lambda of: {"superseded_by": of.evidence_id}),
    "structured record": Role(
        _as_record, lambda of: {"text": f"{_pointing(of)}\nThe limit of {_record(of.token)} is 5."}
    ),
    "rival record": Role(
        _as_record,
        lambda of: {
            **_STRUCTURED, "entity": _record(of.token), "text": f"id: {_record(of.token)}\nlimit: 5\n{of.case.words}",
        },
    ),
    LINKED: Role(
        lambda token, case: {
            "symbols": [token, "leakTestLinked"], "links": [f"{case.ground.folder}{_BEHIND}"], "version": _commit(case),
        },
        lambda of: {
            "links": [of.row["path"]] if of.row["path"] else [], "calls": ["leakTestLinked", of.row["symbols"][0]],
        },
    ),
    "session event": Role(lambda token, case: {**_TURN, "session_id": case.asked["session_id"]}),
    "turn": Role(lambda token, case: {**_TURN, "session_id": _TALK, "text": f"{case.words} {token}?"}),
    ROOTED: Role(
        lambda token, case: {"path": f"{case.ground.folder}leak-test/shadowed.md", "workspace_root": case.root}
    ),
    CONTAINER: Role(lambda token, case: {"zone": "restricted"}),
}  # fmt: skip
"""The relations that a row outside the scope can have to a row inside it."""


def _hooks(base: Row, case: Case, canaries: Sequence[Canary]) -> Iterator[Row]:
    """Rows inside the scope that point to canaries; the first is also their neighbor."""
    words, folder = case.words, case.ground.folder
    first = {"text": f"{words} hook", "path": f"{folder}leak-test/hook.md", "version": _commit(case)}
    linked = [canary.row["path"] for canary in canaries if canary.role == LINKED and canary.row["path"]]
    yield base | first | {"entity": _HOOK, "links": linked}
    # Without words of a question: a walk reaches the first by the hook's commit, the second only through a canary.
    yield base | {"text": "leak-test together", "path": f"{folder}leak-test/together.md", "version": _commit(case)}
    yield base | {"text": "leak-test behind", "path": f"{folder}{_BEHIND}"}
    yield base | {"text": f"{words} hook twin", "path": f"{folder}leak-test/twin.md"}
    for session in (_TALK, f"{_TALK}-2"):  # two, so that sessions compete
        talk = {**_TURN, "session_id": session, "path": f"{folder}leak-test/{session}.md"}
        yield base | talk | {"text": f"leak-test: hook\n{words} in {session}", "line_start": 2, "line_end": 3}
    if case.root:
        yield base | {"text": f"{words} hook shadowed", "path": f"{folder}leak-test/shadowed.md"}
    for canary in canaries:
        if (hook := ROLES[canary.role].hook) is not None:
            path = f"{folder}leak-test/{canary.role}-{canary.reason}.md".replace(" ", "-")
            yield base | {"path": path, "text": _pointing(canary)} | hook(canary)


def _parts(base: Row, case: Case, canaries: Sequence[Canary]) -> Iterator[Row]:
    """Rows inside the scope that name a restricted row of another owner as their parent, by id and by entity."""
    for canary in (one for one in canaries if one.role == CONTAINER):
        for named, parent in (("id", canary.evidence_id), ("entity", canary.token)):
            path = f"{case.ground.folder}leak-test/part-{canary.reason}-{named}.md"
            text = f"leak-test: hook\n{case.words} part of {canary.reason} by {named}"
            yield base | {"path": path, "text": text, "parent_id": parent}
