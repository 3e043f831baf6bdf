"""Canaries: rows outside a tenant's scope that would rank first inside it, in every role that a row can have.

Reads a row that the tenant was shown, and the angle it is asked from. Gives hooks, rows inside the scope that point to
rows outside it, and canaries, each excluded for exactly one reason and otherwise a copy of that row. Hooks are present
in every state of the test: a canary could change only the answers about them.

Note: a row's identity consists of owner, source, path, section and text. A canary that shares all of these with a row
inside the scope *is* that row.
"""

from __future__ import annotations

import hashlib
import itertools
import posixpath
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from ...nodes.tables import EVIDENCE, IMPORT_ROWS
from ...nodes.walls.gates import LEAK_TEST, LEFT_OUT
from ..corpus.incoming import incoming
from .angles import Angle, Probe
from .tenants import Tenant

Row = dict[str, Any]

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

_TIMES = ("event_time", "valid_from", "valid_until", "superseded_at", "deleted_at")
_HOOK = "leak-test-hook"
_BEHIND = "leak-test/behind.md"
"""Below the folder of a case, the row inside the scope that linked canaries link to."""
_TALK = "leak-test-talk"
"""The session of the turns among hooks and canaries."""


@dataclass(frozen=True)
class TenantCase:
    """One tenant and angle: the row that canaries copy, their words, the probes, and the choice of canaries."""

    name: str
    """The seed of the canaries' words, so that the same test plants the same rows."""
    seen: Row
    words: str
    angle: Angle
    tenant: Tenant
    probes: Sequence[Probe]
    elsewhere: str
    """A project out of the tenant's reach."""
    chosen: tuple[int, int | None] = (0, None)
    """The pairs of role and reason that are planted, as the first and the one after the last."""

    def thinned(self, number: int, wanted: int | None) -> TenantCase:
        """A case with at most `wanted` canaries; successive `number`s get different ones, so together they cover all."""
        if wanted is None:
            return self
        first = number * wanted % (-(-len(self.pairs()) // wanted) * wanted)
        return replace(self, chosen=(first, first + wanted))

    def pairs(self) -> list[tuple[str, str]]:
        """The pairs of role and reason that are planted."""
        roles = [role for role in ROLES if role != ROOTED or self.angle.root]
        if "accepted_authority" in self.angle.asked:
            roles = [role for role in roles if role not in RECORDS]
        reasons = [*self.angle.shut][::-1]  # those of this angle alone first: no other angle tests their gates
        turns = range(len(roles))  # so that a few pairs have as many reasons and roles as they can
        every = [(roles[(at + turn) % len(roles)], reason) for turn in turns for at, reason in enumerate(reasons)]
        pairs = [(role, reason) for role, reason in every if _exists(role, reason)]
        return pairs[slice(*self.chosen)]


def _exists(role: str, reason: str) -> bool:
    """Whether a canary of this role can be excluded for this reason."""
    return (role, reason) != RAISED and (role != CONTAINER or reason in OTHER_OWNERS)


@dataclass(frozen=True)
class Planting:
    """The rows to publish in each state, and the strings forbidden on every surface, with case, role and reason."""

    hooks: pa.Table
    canaries: pa.Table
    forbidden: dict[str, tuple[str, str]]
    tokens: dict[str, list[str]]
    """Words, symbols and path names of the canaries of a case."""
    ids: dict[str, list[str]]
    hook_ids: dict[str, str]
    """Every hook, and its case."""


@dataclass(frozen=True)
class _Canary:
    """One canary: a row, with the identity that the corpus gives it."""

    case: TenantCase
    role: str
    reason: str
    token: str
    row: Row
    evidence_id: str
    text_sha256: str


def planting(cases: Sequence[TenantCase], as_of: datetime) -> Planting:
    """Hooks and canaries of some cases; all are recorded before `as_of`."""
    named, rows = [], []
    for case in cases:
        base = base_of(case, as_of)
        for role, reason in case.pairs():
            token = "zq" + hashlib.sha256(f"{case.name}/{role}/{reason}".encode()).hexdigest()[:14]
            rows.append(base | _common(token, case) | ROLES[role].canary(token, case) | _shut(case, reason, token))
            named.append((case, role, reason, token))
    canaries = [
        _Canary(case, role, reason, token, row, evidence_id, digest)
        for (case, role, reason, token), row, (evidence_id, digest) in zip(named, rows, _ids(rows, as_of), strict=True)
    ]
    found = Planting(pa.table({}), pa.table({}), {}, {}, {}, {})
    hooks: list[tuple[str, Row]] = []
    parts: list[Row] = []
    for name, group in itertools.groupby(canaries, key=lambda canary: canary.case.name):
        own = list(group)
        base = base_of(own[0].case, as_of)
        contained = list(_parts(base, own))
        pointing = [*_hooks(base, own[0].case, own), *contained]
        parts += contained
        hooks += [(name, row) for row in pointing]
        found.tokens[name] = [canary.token for canary in own]
        found.ids[name] = [canary.evidence_id for canary in own]
    for one in canaries:
        # A twin has the text of a row inside the scope, so its digest is not a secret.
        strings = [one.token, one.evidence_id, *([one.text_sha256] if one.role != "twin" else [])]
        found.forbidden.update(dict.fromkeys(strings, (one.case.name, f"{one.role}, shut by {one.reason}")))
    hook_ids = _ids([row for _, row in hooks], as_of)
    found.hook_ids.update((id_, name) for (id_, _), (name, _) in zip(hook_ids, hooks, strict=True))
    # Parts are published before their parents, and again with them.
    return replace(found, hooks=_table([row for _, row in hooks]), canaries=_table([*rows, *parts]))


def folder_of(seen: Row) -> str:
    """The folder of hooks and canaries: that of the row, so that path grants for the row also cover hooks."""
    return posixpath.join(posixpath.dirname(seen["path"] or ""), "")


def _table(rows: Sequence[Row]) -> pa.Table:
    table = IMPORT_ROWS.from_rows(rows)
    return table.append_column("redactions", pa.nulls(len(rows), EVIDENCE.columns["redactions"].type))


def base_of(case: TenantCase, as_of: datetime) -> Row:
    """The shown row, without values that would exclude it from some request or relate it to another row."""
    return case.seen | dict.fromkeys(_TIMES) | {
        "recorded_time": min(case.seen["recorded_time"], as_of - timedelta(days=2)), "branch": None,
        "workspace_root": None, "namespace": None, "test_suite": None, "principals": None, "conflict_set": None,
        "superseded_by": None, "parent_id": None, "occurrence": 0, "line_start": 1, "line_end": 1, "byte_start": None,
        "byte_end": None, "links": [], "authority": 3, "lifecycle": "verified", "applicable_roles": None,
        "excluded_roles": None, "level": None, "session_id": None,
        "zone": "internal" if case.seen["zone"] == "public" and LEFT_OUT in case.angle.shut else case.seen["zone"],
    }  # fmt: skip


def _shut(case: TenantCase, reason: str, token: str) -> Row:
    """The columns that exclude a row."""
    fields = case.angle.shut[reason]
    return {**fields, "path": fields["path"].format(token=token)} if fields.get("path") else {**fields}


def _commit(case: TenantCase) -> str:
    """The commit of the first hook and of linked canaries."""
    return hashlib.sha256(f"{case.name}/commit".encode()).hexdigest()[:40]


def _record(token: str) -> str:
    """The id of a structured record, in a form that is recognized in texts."""
    return f"ZQ-{int(token[2:], 16) % 10**9}"


def _common(token: str, case: TenantCase) -> Row:
    """The columns of every canary, all with its token."""
    return {
        "text": f"{case.words} {token}", "path": f"{folder_of(case.seen)}{token}.md", "section": token, "title": token,
        "tags": [token], "symbols": [token], "calls": [], "entity": token,
    }  # fmt: skip


def _as_record(token: str, case: TenantCase) -> Row:
    text = f"id: {_record(token)}\nlimit: 5{int(token[2:6], 16)}\nnote: {token}\n{case.words}"
    return {**_STRUCTURED, "entity": _record(token), "text": text}


_STRUCTURED = {"origin_class": "structured-sot", "evidence_kind": "structured-fact"}
_TURN = {"evidence_kind": "session-event"}


@dataclass(frozen=True)
class Role:
    """What a row outside the scope is to a row inside it, the hook of the role.

    `canary` gives the columns of the row outside; `hook` those of the row inside that points to it, where the hooks
    common to all roles do not.
    """

    canary: Callable[[str, TenantCase], Row]
    hook: Callable[[_Canary], Row] | None = None


ROLES: dict[str, Role] = {
    "candidate": Role(lambda token, case: {}),
    "twin": Role(lambda token, case: {"text": f"{case.words} hook twin"}),
    "parent": Role(lambda token, case: {}, lambda of: {"parent_id": of.evidence_id}),
    "child": Role(lambda token, case: {"parent_id": _HOOK}),
    "neighbor": Role(
        lambda token, case: {"path": f"{folder_of(case.seen)}leak-test/hook.md", "line_start": 2, "line_end": 2}
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
            "symbols": [token, "leakTestLinked"], "links": [f"{folder_of(case.seen)}{_BEHIND}"], "version": _commit(case),
        },
        lambda of: {
            "links": [of.row["path"]] if of.row["path"] else [], "calls": ["leakTestLinked", of.row["symbols"][0]],
        },
    ),
    "session event": Role(lambda token, case: {**_TURN, "session_id": case.angle.asked["session_id"]}),
    "turn": Role(lambda token, case: {**_TURN, "session_id": _TALK, "text": f"{case.words} {token}?"}),
    ROOTED: Role(
        lambda token, case: {
            "path": f"{folder_of(case.seen)}leak-test/shadowed.md", "workspace_root": case.angle.root,
        }
    ),
    CONTAINER: Role(lambda token, case: {"zone": "restricted"}),
}  # fmt: skip
"""The relations that a row outside the scope can have to a row inside it."""


def _pointing(of: _Canary) -> str:
    """The text of a row that points to a canary."""
    return f"leak-test: hook\nlimit: 5\n{of.case.words} {of.role} {of.role}, shut by {of.reason}"


def _hooks(base: Row, case: TenantCase, canaries: Sequence[_Canary]) -> Iterator[Row]:
    """Rows inside the scope that point to canaries; the first is also their neighbor."""
    words, folder = case.words, folder_of(case.seen)
    base = base | _PLAIN
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
    if case.angle.root:
        yield base | {"text": f"{words} hook shadowed", "path": f"{folder}leak-test/shadowed.md"}
    for canary in canaries:
        if (hook := ROLES[canary.role].hook) is not None:
            path = f"{folder}leak-test/{canary.role}-{canary.reason}.md".replace(" ", "-")
            yield base | {"path": path, "text": _pointing(canary)} | hook(canary)


_PLAIN = {
    "tags": [], "symbols": ["leakTestHook"], "calls": [], "links": [], "entity": None, "section": "hook", "title": "hook",
}  # fmt: skip


def _parts(base: Row, canaries: Sequence[_Canary]) -> Iterator[Row]:
    """Rows inside the scope that name a restricted row of another owner as their parent, by id and by entity."""
    for canary in canaries:
        if canary.role == CONTAINER:
            for named, parent in (("id", canary.evidence_id), ("entity", canary.token)):
                path = f"{folder_of(canary.case.seen)}leak-test/part-{canary.reason}-{named}.md"
                text = f"leak-test: hook\n{canary.case.words} part of {canary.reason} by {named}"
                yield base | _PLAIN | {"path": path, "text": text, "parent_id": parent}


def _ids(rows: Sequence[Row], now: datetime) -> list[tuple[str, str]]:
    """Evidence id and text digest of each row, no two of which share place and text."""
    names = ("owner_project", "owner_user", "path", "text")
    stored = incoming(_table(rows), now).evidence.select([*names, "evidence_id", "text_sha256"]).to_pylist()
    known = {tuple(row[name] for name in names): (row["evidence_id"], row["text_sha256"]) for row in stored}
    return [known[tuple(row[name] for name in names)] for row in rows]
