"""Grants: who may read which rows, from one hand-edited file.

    principals:
      ana:
        projects: [shop, {project: pay, zones: private, expires: 2026-12-31T00:00:00Z}]
        groups: [dev]
        zones: internal          # the highest zone; internal by default
        users: [bob]             # whose own rows ana may also read
        states: [verified]       # lifecycles ana may be shown; all of the purpose's by default
        paths: [src/, docs/]     # globs: the only paths that ana may read; all by default
        denied_paths: [src/keys/]
        act_as: [bob, {principal: cyd, project: shop, expires: 2026-12-31T00:00:00Z}]
        append: [shop, {project: pay, expires: 2026-12-31T00:00:00Z}]  # where ana may add rows of her own over HTTP and MCP
        audit: false
    grants:                      # other projects that requests of ana's projects may read from
      - {principal: ana, project: platform, sources: [project-doc], for_projects: [shop], zones: internal,
         reason: shared rules, expires: 2026-12-31T00:00:00Z}     # zones, reason and expiry are required
    tokens:                      # without this key, a server answers this machine alone; empty, it refuses all requests
      <SHA-256 of a bearer token, 64 hex digits>: ana

Access is denied by default: anything not in the file is refused, an empty list of sources or paths grants nothing, and a
key without a value is an error.
Grants add up; zones, states and paths that a principal declares cap each of them, and a path denied by one grant in a
project is denied there by all. A principal that acts as another has the other's rights instead of its own. A malformed
file is an error, and nothing of it is applied.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from ...nodes.errors import PolicyError, StoreError
from ...nodes.tables import GRANTS
from ...nodes.vocabulary import LIFECYCLES, ORIGIN_CLASSES, ZONES
from ..parsing.patterns import GLOBS, MAX_PATTERNS, common_patterns, path_glob
from ..parsing.yaml_files import YamlItem, parse
from ..progress import counted
from ..storage.durable import exists, make_folders, read_whole, write_atomic
from ..storage.locks import held
from ..storage.places import Place, fixed_place, place_of

__all__ = [
    "AppendGrant",
    "GrantsFile",
    "WatchedGrants",
    "grant_all",
    "load_grants",
    "write_starter_grants",
    "write_token",
]

DEFAULT_ZONE = "internal"

HEADER = """\
# Who may read what. Nothing granted means nothing seen.
# `index --project P` adds P for the local user if no principal has it, and rewrites this file: entries are kept, comments are not.
"""

_FORM = (
    "a grants file with an error is not applied at all; it has the keys principals, grants and tokens, "
    "and `index PATH --project P --grants NEWFILE` writes one to start from"
)
SCHEMA_VERSION = 1
"""Schema version of grants files; see `docs/reference/limits.md`."""
_TOP = ("principals", "grants", "tokens")
_PRINCIPAL = ("projects", "groups", "zones", "users", "states", "paths", "denied_paths", "act_as", "append", "audit")
_PROJECT = ("project", "sources", "paths", "denied_paths", "zones", "users", "states", "reason", "expires")
_ACT_AS = ("principal", "project", "reason", "expires")
_APPEND = ("project", "reason", "expires")
_GRANT = ("principal", *_PROJECT, "for_projects")
_TOKEN = re.compile(r"[0-9a-f]{64}")
_NO_TOKEN = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True)
class AppendGrant:
    """The right of a principal to add rows of its own to a project, before `expires`."""

    principal: str
    project: str
    expires: datetime | None


@dataclass(frozen=True)
class GrantsFile:
    """A grants file as read: the GRANTS table, principals by the SHA-256 of their tokens, the file's own SHA-256."""

    table: pa.Table
    tokens: Mapping[str, str] | None
    """None without the key `tokens`; a key without entries lets no user in."""
    principals: tuple[str, ...]
    digest: str
    path: Place
    append: tuple[AppendGrant, ...] = ()
    """Rights to write, which the line does not use."""

    def appendable(self, principal: str, at: datetime) -> list[str]:
        """The projects that a principal may add rows to at an instant."""
        mine = [grant for grant in self.append if grant.principal == principal]
        return sorted({grant.project for grant in mine if grant.expires is None or at < grant.expires})

    def projects(self, principal: str) -> list[str]:
        """The projects that a principal may ask in, expired grants included."""
        return sorted(project for who, project in self._own if who == principal and project)

    def may_ask(self, credential: str, principal: str, project: str | None) -> bool:
        """Whether a credential has any grant, expired or not, to ask as a principal in a project."""
        return (principal, project) in self._own and (
            principal == credential or (credential, principal) in self._acting
        )

    def holders(self, project: str) -> list[str]:
        """The principals that may ask in a project by their own grants, expired ones included."""
        return sorted(who for who, own in self._own if own == project)

    @cached_property
    def _acting(self) -> set[tuple[str, str]]:
        """The principals, each with one that it may act as."""
        pairs = zip(self.table["principal"].to_pylist(), self.table["act_as"].to_pylist(), strict=True)
        return {(who, other) for who, others in pairs for other in others or ()}

    @cached_property
    def _own(self) -> set[tuple[str, str | None]]:
        """The principals and projects of grants on own projects."""
        rows = self.table.filter(self.table["own_project"])
        return set(zip(rows["principal"].to_pylist(), rows["project"].to_pylist(), strict=True))


def load_grants(path: str | Place) -> GrantsFile:
    """The grants of a file. It is read on every call, and parsed again only if its bytes are others.

    Raises:
        PolicyError: the file is missing or invalid.
    """
    path = place_of(path)
    try:
        data = path.read_bytes()
    except StoreError:
        raise
    except OSError as error:
        absent = isinstance(error, FileNotFoundError)
        hint = "`scoped-retrieval index PATH --project P` writes one that grants P to you" if absent else ""
        raise PolicyError(f"{error.strerror}: grants file {path}", hint=hint) from error
    return _read(data, path)


class WatchedGrants:
    """The current grants of a file; a `GrantsFile` that was passed in never changes.

    Raises:
        PolicyError: the file is missing or invalid.
    """

    def __init__(self, grants: GrantsFile | str | Place) -> None:
        self._source = grants if isinstance(grants, GrantsFile) else fixed_place(grants)
        self.now()

    @property
    def path(self) -> Place | None:
        """Where the file is; None for grants that were not read from a file."""
        return None if isinstance(self._source, GrantsFile) else self._source

    def now(self) -> GrantsFile:
        """The current grants.

        Raises:
            PolicyError: the file is missing or invalid.
        """
        return self._source if isinstance(self._source, GrantsFile) else load_grants(self._source)


def grant_all(principal: str, project: str) -> GrantsFile:
    """A grant of one project to one principal, for corpora that have no grants file."""
    row = {
        "rule_id": f"principals.{principal}.projects[0]", "principal": principal, "project": project,
        "own_project": True, "zone": DEFAULT_ZONE, "audit": False,
    }  # fmt: skip
    digest = hashlib.sha256(repr(sorted(row.items())).encode()).hexdigest()
    return GrantsFile(GRANTS.from_rows([row]), None, (principal,), digest, Path("grants.yaml"))


def write_starter_grants(
    path: str | Place, principal: str, project: str, *, audit: bool = False, first: bool = False
) -> bool:
    """Let a principal ask in a project, in a new file or in the existing one; True if the file was written.

    `audit` counts in a new file only: the user who starts a corpus may audit it, and no user is granted that right
    later. With `first`, nothing changes if the project already has grants for another user.

    If the project is already granted, the file is unchanged, byte for byte. Otherwise it is replaced atomically,
    keeping every entry and its mode but not its comments; a new file is readable by its owner only. Writers wait for
    each other; on an object store, the last of two at the same time wins, and the other entry is missing until the next
    `index`.

    Raises:
        PolicyError: the existing file is invalid; it is left unchanged.
        StoreError: it cannot be determined whether a file exists, or it cannot be read.
    """

    def granted(content: dict[str, Any], standing: GrantsFile | None) -> bool:
        if standing and (project in standing.projects(principal) or (first and standing.holders(project))):
            return False
        mine = content.setdefault("principals", {}).setdefault(principal, {})
        mine["projects"] = [*mine.get("projects", []), project]
        if audit and standing is None:
            mine["audit"] = True
        return True

    return _rewritten(path, granted)


def write_token(path: str | Place, principal: str) -> str:
    """A new bearer token of a principal. The file gets its SHA-256 alone, so it can be shown once.

    Raises:
        PolicyError: the file is missing or invalid, or has no such principal.
    """
    token = secrets.token_urlsafe(32)
    load_grants(path)

    def added(content: dict[str, Any], _: GrantsFile | None) -> bool:
        tokens = content["tokens"] = content.get("tokens") or {}
        tokens[hashlib.sha256(token.encode()).hexdigest()] = principal
        return True

    _rewritten(path, added)
    return token


def _rewritten(path: str | Place, change: Callable[[dict[str, Any], GrantsFile | None], bool]) -> bool:
    """Change the entries of a grants file, or of a new one; True if `change` says that it did. Nothing is written that is
    not a valid file.
    """
    path = place_of(path).resolve()
    make_folders(path.parent)
    with held(path.with_name(f".{path.name}.lock"), -1, f"Expected no other writer, got a held lock - at {path}"):
        data = read_whole(path) if exists(path) else b""
        standing = _read(data, path) if data else None
        content = parse(data, str(path)).value or {}
        if not change(content, standing):
            return False
        text = HEADER + yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=120)
        _read(text.encode(), path)
        write_atomic(path, text.encode(), private=True)
    return True


@lru_cache(maxsize=8)
def _read(data: bytes, path: Place) -> GrantsFile:
    """The grants of these bytes: the only cache of grants, as a file's status does not show every change."""
    try:
        return _understood(data, path)
    except PolicyError as error:
        hint = f"{error.hint}; {_FORM}" if error.hint else _FORM
        raise PolicyError(error.message, hint=hint) from error


def _understood(data: bytes, path: Place) -> GrantsFile:
    content = parse(data, str(path)).of_version(SCHEMA_VERSION)
    if content.value is None:
        content = YamlItem({}, content.file, content.key)
    top = content.fields(_TOP)
    people = {name: item.fields(_PRINCIPAL) for name, item in top["principals"].entries()}
    rows = [row for name, fields in people.items() for row in _own_projects(name, fields)]
    rows += [row for name, fields in people.items() for row in _act_as(name, fields)]
    rows += [_cross_project(item, people) for item in top["grants"].items()]
    tokens = {}
    for token, item in top["tokens"].entries() if top["tokens"].value is not None else ():  # present but empty: no user
        if not _TOKEN.fullmatch(token):
            raise PolicyError(
                f"Expected a SHA-256 as 64 hex digits, got {counted(len(token), 'character')} - at {top['tokens'].at}"
            )
        if token == _NO_TOKEN:
            raise PolicyError.described("the SHA-256 of a token", "that of an empty text", top["tokens"].at)
        tokens[token] = _declared_principal(item, people)
    table = GRANTS.from_rows(rows).sort_by("rule_id")
    append = tuple(grant for name, fields in people.items() for grant in _append(name, fields))
    tokens = tokens if "tokens" in content.value else None
    return GrantsFile(table, tokens, tuple(sorted(people)), hashlib.sha256(data).hexdigest(), path, append)


def _own_projects(principal: str, person: Mapping[str, YamlItem]) -> list[dict[str, Any]]:
    common = _person(person)
    rows, seen = [], set()
    for item in person["projects"].items():
        entry = item if isinstance(item.value, dict) else YamlItem({"project": item.text()}, item.file, item.key)
        fields = entry.fields(_PROJECT, required=("project",))
        row = {"rule_id": item.key, "principal": principal, "own_project": True} | _grant(fields, common)
        if row["project"] in seen:
            raise fields["project"].wrong("every project once")
        seen.add(row["project"])
        rows.append(row)
    return rows


def _act_as(principal: str, person: Mapping[str, YamlItem]) -> list[dict[str, Any]]:
    """One row per principal that this one may act as, in every project or in one."""
    rows = []
    for item in person["act_as"].items():
        entry = item if isinstance(item.value, dict) else YamlItem({"principal": item.text()}, item.file, item.key)
        fields = entry.fields(_ACT_AS, required=("principal",))
        rows.append(
            {
                "rule_id": item.key,
                "principal": principal,
                "project": fields["project"].optional(YamlItem.text),
                "own_project": False,
                "zone": ZONES.values[0],
                "act_as": [fields["principal"].text()],
                "audit": False,
                "expires": fields["expires"].optional(YamlItem.instant),
                "reason": fields["reason"].optional(YamlItem.text),
            }
        )
    return rows


def _append(principal: str, person: Mapping[str, YamlItem]) -> list[AppendGrant]:
    grants = []
    for item in person["append"].items():
        entry = item if isinstance(item.value, dict) else YamlItem({"project": item.text()}, item.file, item.key)
        fields = entry.fields(_APPEND, required=("project",))
        fields["reason"].optional(YamlItem.text)
        grants.append(AppendGrant(principal, fields["project"].text(), fields["expires"].optional(YamlItem.instant)))
    return grants


def _cross_project(item: YamlItem, people: Mapping[str, Mapping[str, YamlItem]]) -> dict[str, Any]:
    fields = item.fields(_GRANT, required=("principal", "project", "zones", "reason", "expires"))
    principal = _declared_principal(fields["principal"], people)
    return (
        {"rule_id": item.key, "principal": principal, "own_project": False}
        | _grant(fields, _person(people[principal]))
        | {"for_projects": fields["for_projects"].optional(YamlItem.texts)}
    )


def _grant(fields: Mapping[str, YamlItem], common: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of one grant, capped by what its principal declares."""
    zone = fields["zones"].optional(_zone)
    states = fields["states"].optional(lambda item: item.words(LIFECYCLES, except_=("revoked",)))
    cap = common["states"]
    return {
        "project": fields["project"].text(),
        "sources": fields["sources"].optional(_selectors),
        "paths": common_patterns(common["paths"], fields["paths"].optional(_globs)),
        "denied_paths": sorted({*(common["denied_paths"] or []), *_globs(fields["denied_paths"])}) or None,
        "zone": _lower(zone or common["zone"] or DEFAULT_ZONE, common["zone"]),
        "users": sorted({*(common["users"] or []), *fields["users"].texts()}) or None,
        "states": cap if states is None else [state for state in states if cap is None or state in cap],
        "groups": common["groups"],
        "audit": common["audit"],
        "expires": fields["expires"].optional(YamlItem.instant),
        "reason": fields["reason"].optional(YamlItem.text),
    }


def _person(person: Mapping[str, YamlItem]) -> dict[str, Any]:
    return {
        "zone": person["zones"].optional(_zone),
        "states": person["states"].optional(lambda item: item.words(LIFECYCLES, except_=("revoked",))),
        "users": person["users"].optional(YamlItem.texts),
        "groups": person["groups"].optional(YamlItem.texts),
        "paths": person["paths"].optional(_globs),
        "denied_paths": person["denied_paths"].optional(_globs),
        "audit": bool(person["audit"].optional(YamlItem.flag)),
    }


def _zone(item: YamlItem) -> str:
    """The highest zone: one word, or the list of all zones up to it."""
    if not isinstance(item.value, list):
        return item.word(ZONES)
    zones = item.words(ZONES)
    if not zones or tuple(zones) != ZONES.values[: len(zones)]:
        raise item.wrong(f"a zone, or all zones up to one: {' < '.join(ZONES.values)}")
    return zones[-1]


def _lower(zone: str, cap: str | None) -> str:
    return zone if cap is None else min(zone, cap, key=ZONES.values.index)


def _selectors(item: YamlItem) -> list[str]:
    """Source selectors, aliases of origin classes resolved."""
    _expect_few(item)
    texts = (unicodedata.normalize("NFC", text) for text in item.texts())
    return sorted({ORIGIN_CLASSES.aliases.get(text, text) for text in texts})


def _expect_few(item: YamlItem) -> None:
    if len(item.items()) > MAX_PATTERNS:
        raise item.wrong(f"at most {MAX_PATTERNS:,} entries")


def _globs(item: YamlItem) -> list[str]:
    """Globs on paths. Syntax of other tools that has no effect here is refused: such a denial would deny nothing."""
    _expect_few(item)
    globs = []
    for each in item.items():
        if (glob := path_glob(each.text())) is None:
            raise each.wrong("a glob such as src/keys/ or **/*.pem", hint=GLOBS)
        globs.append(glob)
    return globs


def _declared_principal(item: YamlItem, people: Mapping[str, object]) -> str:
    if (name := item.text()) not in people:
        raise item.wrong(f"one of the principals {', '.join(sorted(people)) or '(there are none)'}")
    return name
