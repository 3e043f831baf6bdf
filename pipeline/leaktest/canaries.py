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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from ...nodes.tables import EVIDENCE, IMPORT_ROWS
from ..corpus.incoming import incoming
from .angles import LEAK_TEST, LEFT_OUT, Angle

__all__ = ["NOBODY", "ROLES", "CanaryCase", "Planting", "folder_of", "import_table", "planting"]

Row = dict[str, Any]

NOBODY = "leak-test-nobody"
"""The owner and project of canaries if there is no other principal to own them."""

ROLES = (
    "candidate", "twin", "parent", "child", "neighbor", "conflict partner", "superseding version", "structured record",
    "rival record", "linked document", "session event", "turn", "work-tree version", "restricted parent",
)  # fmt: skip
"""The relations that a row outside the scope can have to a row inside it."""

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
_AT_ONCE = 5_000
"""Canaries whose ids are computed together."""
_NAMED_BY = ("path", "entity")


@dataclass(frozen=True)
class CanaryCase:
    """One tenant and angle: the row that canaries copy, their words, and the choice of canaries."""

    name: str
    """The seed of the canaries' words, so that the same test plants the same rows."""
    seen: Row
    words: str
    angle: Angle
    chosen: tuple[int, int | None] = (0, None)
    """The pairs of role and reason that are planted, as the first and the one after the last."""

    def thinned(self, number: int, wanted: int | None) -> CanaryCase:
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
        of_reason = {
            reason: [
                role for role in itertools.islice(itertools.cycle(roles), at, at + len(roles)) if _exists(role, reason)
            ]
            for at, reason in enumerate(reasons)
        }
        # In turn, so that a few pairs have as many reasons and roles as they can.
        turns = itertools.zip_longest(*of_reason.values())
        pairs = [
            (role, reason) for turn in turns for role, reason in zip(turn, reasons, strict=True) if role is not None
        ]
        return pairs[slice(*self.chosen)]


def _exists(role: str, reason: str) -> bool:
    """Whether a canary of this role can be excluded for this reason."""
    return (role, reason) != RAISED and (role != CONTAINER or reason in OTHER_OWNERS)


@dataclass
class Planting:
    """The rows to publish in each state, and the strings forbidden on every surface, with case, role and reason."""

    hooks: list[pa.Table] = field(default_factory=list)
    planted: list[pa.Table] = field(default_factory=list)
    changed: list[pa.Table] = field(default_factory=list)
    removed: list[pa.Table] = field(default_factory=list)
    forbidden: dict[str, tuple[str, str]] = field(default_factory=dict)
    tokens: dict[str, list[str]] = field(default_factory=dict)
    """Words, symbols and path names of the canaries of a case."""
    ids: dict[str, list[str]] = field(default_factory=dict)
    names: dict[str, list[str]] = field(default_factory=dict)
    """Names of the canaries of a case in judgements: their ids, and paths and entities that no hook has."""
    hook_ids: dict[str, str] = field(default_factory=dict)
    """Every hook, and its case."""

    def table(self, state: str) -> pa.Table:
        """The rows of one state as an import table."""
        return pa.concat_tables(getattr(self, state)).combine_chunks()


def planting(cases: Sequence[CanaryCase], as_of: datetime) -> Planting:
    """Hooks and canaries of some cases; canaries are recorded, changed and removed before `as_of`."""
    found, together, size = Planting(), [], 0
    for case in cases:
        together.append(case)
        size += len(case.pairs())
        if size >= _AT_ONCE:
            _add(found, together, as_of)
            together, size = [], 0
    if together:
        _add(found, together, as_of)
    return found


def folder_of(seen: Row) -> str:
    """The folder of hooks and canaries: that of the row, so that path grants for the row also cover hooks."""
    return posixpath.join(posixpath.dirname(seen["path"] or ""), "")


def import_table(rows: Sequence[Row]) -> pa.Table:
    """Rows as an import table."""
    table = IMPORT_ROWS.from_rows(rows)
    return table.append_column("redactions", pa.nulls(len(rows), EVIDENCE.columns["redactions"].type))


def _add(found: Planting, cases: Sequence[CanaryCase], as_of: datetime) -> None:
    """Plant some cases; the identities of all their rows are computed together."""
    planted: list[Row] = []
    changed: list[Row] = []
    origin: list[tuple[CanaryCase, str, str, str]] = []
    for case in cases:
        base = base_of(case, as_of)
        for role, reason in case.pairs():
            token = "zq" + hashlib.sha256(f"{case.name}/{role}/{reason}".encode()).hexdigest()[:14]
            row = base | _as(role, token, case) | _shut(case.angle.shut[reason], token)
            planted.append(row)
            changed.append(row | {"text": f"{row['text']} {token}b"})
            origin.append((case, role, reason, token))
    ids = [_ids(rows, as_of) for rows in (planted, changed)]
    hooks: list[Row] = []
    of_hook: list[str] = []
    parts: list[Row] = []
    for name, group in itertools.groupby(range(len(planted)), key=lambda number: origin[number][0].name):
        numbers = list(group)
        case = origin[numbers[0]][0]
        known = [(*origin[number][1:], planted[number], ids[0][0][number]) for number in numbers]
        parts += (contained := list(_parts(base_of(case, as_of), case, known)))
        own = [*_hooks(base_of(case, as_of), case, known), *contained]
        hooks += own
        of_hook += [name] * len(own)
        found.tokens[name] = [origin[number][3] for number in numbers]
        found.ids[name] = [ids[0][0][number] for number in numbers]
        shared = {row.get(column) for row in (*own, case.seen) for column in _NAMED_BY}
        called = {planted[number].get(column) for number in numbers for column in _NAMED_BY} - shared - {None}
        found.names[name] = [*found.ids[name], *sorted(map(str, called))]
    for number, (case, role, reason, token) in enumerate(origin):
        own_text = role != "twin"  # a twin has the text of a row inside the scope, so its digest is not a secret
        digests = [ids[0][1][number]] if own_text else []
        strings = [token, ids[0][0][number], ids[1][0][number], ids[1][1][number], *digests]
        found.forbidden |= dict.fromkeys(strings, (case.name, f"{role}, shut by {reason}"))
    found.hook_ids |= dict(zip(_ids(hooks, as_of)[0], of_hook, strict=True))
    ended = {"superseded_at": as_of - timedelta(minutes=30)}
    gone = {"deleted_at": as_of - timedelta(minutes=20)}
    found.hooks.append(import_table(hooks))
    found.planted.append(import_table([*planted, *parts]))  # parts before and again with their parents
    found.changed.append(import_table([*(row | ended for row in planted), *changed]))
    found.removed.append(import_table([row | gone for row in changed]))


def base_of(case: CanaryCase, as_of: datetime) -> Row:
    """The shown row, without values that would exclude it from some request or relate it to another row."""
    return case.seen | dict.fromkeys(_TIMES) | {
        "recorded_time": min(case.seen["recorded_time"], as_of - timedelta(days=2)), "branch": None,
        "workspace_root": None, "namespace": None, "test_suite": None, "principals": None, "conflict_set": None,
        "superseded_by": None, "parent_id": None, "occurrence": 0, "line_start": 1, "line_end": 1, "byte_start": None,
        "byte_end": None, "links": [], "authority": 3, "lifecycle": "verified", "applicable_roles": None,
        "excluded_roles": None, "level": None, "session_id": None,
        "zone": "internal" if case.seen["zone"] == "public" and LEFT_OUT in case.angle.shut else case.seen["zone"],
    }  # fmt: skip


def _shut(fields: Mapping[str, Any], token: str) -> Row:
    """The columns that exclude a row."""
    return {**fields, "path": fields["path"].format(token=token)} if fields.get("path") else {**fields}


def _commit(case: CanaryCase) -> str:
    """The commit of the first hook and of linked canaries."""
    return hashlib.sha256(f"{case.name}/commit".encode()).hexdigest()[:40]


def _record(token: str) -> str:
    """The id of a structured record, in a form that is recognized in texts."""
    return f"ZQ-{int(token[2:], 16) % 10**9}"


def _as(role: str, token: str, case: CanaryCase) -> Row:
    """The columns that give a row its role towards a hook; all but a twin contain their token wherever possible."""
    words, folder = case.words, folder_of(case.seen)
    own: Row = {
        "text": f"{words} {token}", "path": f"{folder}{token}.md", "section": token, "title": token, "tags": [token],
        "symbols": [token], "calls": [], "entity": token,
    }  # fmt: skip
    record = {"origin_class": "structured-sot", "evidence_kind": "structured-fact", "entity": _record(token)}
    match role:
        case "twin":
            return own | {"text": f"{words} hook twin"}
        case "child":
            return own | {"parent_id": _HOOK}
        case "neighbor":
            return own | {"path": f"{folder}leak-test/hook.md", "line_start": 2, "line_end": 2}
        case "conflict partner":
            return own | {"conflict_set": LEAK_TEST}
        case "structured record" | "rival record":
            return (
                own | record | {"text": f"id: {_record(token)}\nlimit: 5{int(token[2:6], 16)}\nnote: {token}\n{words}"}
            )
        case "linked document":
            links = [f"{folder}{_BEHIND}"]
            return own | {"symbols": [token, "leakTestLinked"], "links": links, "version": _commit(case)}
        case "restricted parent":
            return own | {"zone": "restricted"}
        case "session event":
            return own | {"session_id": case.angle.asked["session_id"], "evidence_kind": "session-event"}
        case "turn":
            return own | {"session_id": _TALK, "evidence_kind": "session-event", "text": f"{words} {token}?"}
        case "work-tree version":
            return own | {"path": f"{folder}leak-test/shadowed.md", "workspace_root": case.angle.root}
    return own


def _hooks(base: Row, case: CanaryCase, known: Sequence[tuple[str, str, str, Row, str]]) -> Iterator[Row]:
    """Rows inside the scope that point to canaries (role, reason, token, row, id); the first is also their neighbor."""
    words, folder = case.words, folder_of(case.seen)
    plain = {"tags": [], "symbols": ["leakTestHook"], "calls": [], "links": [], "entity": None}
    plain |= {"section": "hook", "title": "hook"}
    first = {"text": f"{words} hook", "path": f"{folder}leak-test/hook.md", "version": _commit(case)}
    linked = [row["path"] for role, _, _, row, _ in known if role == LINKED and row["path"]]
    yield base | plain | first | {"entity": _HOOK, "links": linked}
    # Without words of a question: a walk reaches the first by the hook's commit, the second only through a canary.
    yield (
        base
        | plain
        | {"text": "leak-test together", "path": f"{folder}leak-test/together.md", "version": _commit(case)}
    )
    yield base | plain | {"text": "leak-test behind", "path": f"{folder}{_BEHIND}"}
    yield base | plain | {"text": f"{words} hook twin", "path": f"{folder}leak-test/twin.md"}
    for session in (_TALK, f"{_TALK}-2"):  # two, so that sessions compete
        talk = {"session_id": session, "evidence_kind": "session-event", "path": f"{folder}leak-test/{session}.md"}
        yield base | plain | talk | {"text": f"leak-test: hook\n{words} in {session}", "line_start": 2, "line_end": 3}
    if case.angle.root:
        yield base | plain | {"text": f"{words} hook shadowed", "path": f"{folder}leak-test/shadowed.md"}
    for role, reason, token, row, evidence_id in known:
        name = f"{role}, shut by {reason}"
        where = {"path": f"{folder}leak-test/{role}-{reason}.md".replace(" ", "-")}
        text = f"leak-test: hook\nlimit: 5\n{words} {role} {name}"
        points: Row | None = {
            "parent": {"parent_id": evidence_id},
            "conflict partner": {"conflict_set": LEAK_TEST},
            "superseding version": {"superseded_by": evidence_id},
            "structured record": {"text": f"{text}\nThe limit of {_record(token)} is 5."},
            "rival record": {
                "origin_class": "structured-sot", "evidence_kind": "structured-fact", "entity": _record(token),
                "text": f"id: {_record(token)}\nlimit: 5\n{words}",
            },
            "linked document": {"links": [row["path"]] if row["path"] else [], "calls": ["leakTestLinked", row["symbols"][0]]},
        }.get(role)  # fmt: skip
        if points is not None:
            yield base | plain | where | {"text": text} | points


def _parts(base: Row, case: CanaryCase, known: Sequence[tuple[str, str, str, Row, str]]) -> Iterator[Row]:
    """Rows inside the scope that name a restricted row of another owner as their parent, by id and by entity."""
    for role, reason, token, _, evidence_id in known:
        if role == CONTAINER:
            for named, parent in (("id", evidence_id), ("entity", token)):
                path = f"{folder_of(case.seen)}leak-test/part-{reason}-{named}.md"
                text = f"leak-test: hook\n{case.words} part of {reason} by {named}"
                plain = {"tags": [], "symbols": ["leakTestHook"], "calls": [], "links": [], "entity": None}
                yield (
                    base | plain | {"section": "hook", "title": "hook", "path": path, "text": text, "parent_id": parent}
                )


def _ids(rows: Sequence[Row], now: datetime) -> tuple[list[str], list[str]]:
    """Evidence ids and text digests in the order of the rows, no two of which share place and text."""
    names = ("owner_project", "owner_user", "path", "text")
    stored = incoming(import_table(rows), now).evidence.select([*names, "evidence_id", "text_sha256"]).to_pylist()
    known = {tuple(row[name] for name in names): row for row in stored}
    found = [known[tuple(row[name] for name in names)] for row in rows]
    return [row["evidence_id"] for row in found], [row["text_sha256"] for row in found]
