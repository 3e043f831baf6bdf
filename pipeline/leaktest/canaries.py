"""Canaries: rows outside a tenant's scope that would rank first inside it, in every role that a row can play.

Reads a row that the tenant was shown. Gives hooks, rows inside the scope that point to rows outside it, and canaries,
each shut out for exactly one reason and otherwise a copy of that row. Hooks stand in every state of the test: what a
canary could change is the answer about them.

What one would otherwise get wrong: identity holds owner, source, path, section and text. A canary with all of these from
a row inside the scope *is* that row, described anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from ...nodes.tables import EVIDENCE, IMPORT_ROWS
from ..corpus.incoming import incoming

__all__ = ["NOBODY", "ROLES", "Canaries", "canaries", "import_table", "reasons"]

Row = dict[str, Any]

NOBODY = "leak-test-nobody"
"""Owner of what belongs to somebody else, and the project of what belongs elsewhere, where the corpus has no other."""

ROLES = ("candidate", "twin", "parent", "neighbor", "conflict partner", "superseding version", "structured record", "linked document")  # fmt: skip
"""What a row outside the scope could be to a row inside it."""

_TIMES = ("event_time", "valid_from", "valid_until", "superseded_at", "deleted_at")


@dataclass(frozen=True)
class Canaries:
    """The rows to publish in each state, and what may stand on no surface: string to role and reason."""

    hooks: pa.Table
    planted: pa.Table
    changed: pa.Table
    removed: pa.Table
    forbidden: Mapping[str, str]
    tokens: Sequence[str]
    hook_ids: frozenset[str]
    count: int


def reasons(project: str, elsewhere: str, zone: str, as_of: datetime) -> dict[str, Row]:
    """What shuts a row out of every request of a tenant, by reason."""
    day = timedelta(days=1)
    shut: dict[str, Row] = {
        "project": {"owner_project": elsewhere},
        "owner": {"owner_project": project, "owner_user": NOBODY},
        "principals": {"principals": [NOBODY]},
        "nobody": {"principals": []},
        "zone": {"zone": "restricted"},
        "visibility": {"declared_visibility": "runtime-only"},
        "lifecycle": {"lifecycle": "revoked"},
        "safety": {"declared_safety": "blocked"},
        "recorded": {"recorded_time": as_of + day},
        "superseded": {"superseded_at": as_of - day},
        "deleted": {"deleted_at": as_of - day},
        "valid_from": {"valid_from": as_of + day},
        "valid_until": {"valid_until": as_of - day},
    }
    return {name: row for name, row in shut.items() if name != "zone" or zone != "restricted"}


def canaries(seen: Row, shut: Mapping[str, Row], words: str, as_of: datetime, seed: str) -> Canaries:
    """Hooks and canaries around a row that the tenant was shown.

    Args:
        seen: the row with its placement, IMPORT_ROWS by name.
        shut: `reasons` of the tenant.
        words: what the probes ask for; every hook and canary has them.
        as_of: the instant of the probes; canaries are recorded, changed and removed before it.
        seed: makes the tokens, so that the same test plants the same rows.
    """
    recorded = min(seen["recorded_time"], as_of - timedelta(days=2))
    base = seen | dict.fromkeys(_TIMES) | {
        "recorded_time": recorded, "branch": None, "workspace_root": None, "namespace": None, "test_suite": None,
        "principals": None, "conflict_set": None, "superseded_by": None, "parent_id": None, "occurrence": 0,
        "line_start": 1, "line_end": 1, "byte_start": None, "byte_end": None, "links": [], "authority": 3,
        "lifecycle": "verified", "applicable_roles": None, "excluded_roles": None,
    }  # fmt: skip
    planted: list[Row] = []
    changed: list[Row] = []
    origin: list[str] = []
    for reason, fields in shut.items():
        for role in ROLES:
            token = "zq" + hashlib.sha256(f"{seed}/{role}/{reason}".encode()).hexdigest()[:14]
            row = base | _as(role, token, words) | fields
            planted.append(row)
            changed.append(row | {"text": f"{row['text']} {token}b"})
            origin.append(f"{role}, shut by {reason}")
    ids = [_ids(rows, as_of) for rows in (planted, changed)]
    hooks = list(_hooks(base, words, dict(zip(origin, zip(planted, ids[0][0], strict=True), strict=True))))
    forbidden = {}
    for number, name in enumerate(origin):
        strings = [planted[number]["entity"], *(part[number] for of_state in ids for part in of_state)]
        forbidden |= {string: name for string in strings if role_has_own_text(name) or string != ids[0][1][number]}
    ended = {"superseded_at": as_of - timedelta(minutes=30)}
    gone = {"deleted_at": as_of - timedelta(minutes=20)}
    return Canaries(
        hooks=import_table(hooks),
        planted=import_table(planted),
        changed=import_table([*(row | ended for row in planted), *changed]),
        removed=import_table([row | gone for row in changed]),
        forbidden=forbidden,
        tokens=[row["entity"] for row in planted],
        hook_ids=frozenset(_ids(hooks, as_of)[0]),
        count=len(planted),
    )


def role_has_own_text(name: str) -> bool:
    """A twin has the text of a row inside the scope, whose digest is no secret."""
    return not name.startswith("twin,")


def import_table(rows: Sequence[Row]) -> pa.Table:
    """Rows as a publication takes them."""
    table = IMPORT_ROWS.from_rows(rows)
    return table.append_column("redactions", pa.nulls(len(rows), EVIDENCE.columns["redactions"].type))


def _as(role: str, token: str, words: str) -> Row:
    """The columns that make a row what it is to a hook; all but a twin say their token wherever they can."""
    own: Row = {
        "text": f"{words} {token}", "path": f"{token}.md", "section": token, "title": token, "tags": [token],
        "symbols": [token], "calls": [], "entity": token,
    }  # fmt: skip
    match role:
        case "twin":
            return own | {"text": f"{words} hook twin"}
        case "neighbor":
            return own | {"path": "leak-test/hook.md", "line_start": 2, "line_end": 2}
        case "conflict partner":
            return own | {"conflict_set": "leak-test"}
        case "structured record":
            return own | {"evidence_kind": "structured-fact", "text": f"leak-test: hook\nlimit: {token}\n{words}"}
        case "linked document":
            return own | {"symbols": [token, "leakTestLinked"]}
    return own


def _hooks(base: Row, words: str, known: Mapping[str, tuple[Row, str]]) -> Iterator[Row]:
    """Rows inside the scope that point to canaries; the first also stands beside them."""
    yield base | {"text": f"{words} hook", "path": "leak-test/hook.md", "section": "hook", "title": "hook"} | _plain()
    yield (
        base
        | {"text": f"{words} hook twin", "path": "leak-test/twin.md", "section": "hook", "title": "hook"}
        | _plain()
    )
    for name, (row, evidence_id) in known.items():
        role = name.split(",")[0]
        points: Row | None = {
            "parent": {"parent_id": evidence_id},
            "conflict partner": {"conflict_set": "leak-test"},
            "superseding version": {"superseded_by": evidence_id},
            "structured record": {"evidence_kind": "structured-fact"},
            "linked document": {"links": [row["path"]], "calls": ["leakTestLinked", row["symbols"][0]]},
        }.get(role)
        if points is not None:
            where = {"path": f"leak-test/{role} {name}.md".replace(" ", "-"), "section": "hook", "title": "hook"}
            text = {"text": f"leak-test: hook\nlimit: 5\n{words} {role} {name}"}
            yield base | where | text | _plain() | points


def _plain() -> Row:
    return {"tags": [], "symbols": ["leakTestHook"], "calls": [], "links": [], "entity": None}


def _ids(rows: Sequence[Row], now: datetime) -> tuple[list[str], list[str]]:
    """Evidence ids and text digests, in order of the rows, which no two share place and text."""
    names = ("owner_project", "owner_user", "path", "text")
    stored = incoming(import_table(rows), now).evidence.select([*names, "evidence_id", "text_sha256"]).to_pylist()
    known = {tuple(row[name] for name in names): row for row in stored}
    found = [known[tuple(row[name] for name in names)] for row in rows]
    return [row["evidence_id"] for row in found], [row["text_sha256"] for row in found]
