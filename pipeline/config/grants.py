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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import yaml
from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from ...nodes.errors import PolicyError, StoreError
from ...nodes.tables import GRANTS
from ...nodes.vocabulary import LIFECYCLES, ZONES
from ..parsing.documents import ABSENT, Document, FirstVersion, Instant, Text, document, expected, selector, word, words
from ..parsing.patterns import GLOBS, MAX_PATTERNS, common_patterns, path_glob
from ..parsing.quoting import shown, shown_key
from ..parsing.yaml_files import parse
from ..progress import counted
from ..storage.durable import exists, make_folders, read_whole, write_atomic
from ..storage.file_access import held
from ..storage.places import Place, place_of

DEFAULT_ZONE = "internal"

HEADER = """\
# Who may read what. Nothing granted means nothing seen.
# `index --project P` adds P for the local user if no principal has it, and rewrites this file: entries are kept, comments are not.
"""

_FORM = (
    "a grants file with an error is not applied at all; it has the keys principals, grants and tokens, "
    "and `index PATH --project P --grants NEWFILE` writes one to start from"
)
_TOKEN = re.compile(r"[0-9a-f]{64}")
_NO_TOKEN = hashlib.sha256(b"").hexdigest()


def _glob(value: str) -> str:
    """A glob on paths. Syntax of other tools that has no effect here is refused: such a denial would deny nothing."""
    if (glob := path_glob(value)) is None:
        raise expected("a glob such as src/keys/ or **/*.pem", f"{shown(value)} ({GLOBS})")
    return glob


def _entry(name: str) -> BeforeValidator:
    """A text in place of an object that has only this key."""
    return BeforeValidator(lambda value: {name: value} if isinstance(value, str) else value)


def _tokens(value: Any) -> Any:
    """Tokens as their SHA-256; nothing of another key is quoted, as it may be a token."""
    for token in value if isinstance(value, dict) else ():
        if not _TOKEN.fullmatch(token):
            raise expected("a SHA-256 as 64 hex digits", counted(len(token), "character"))
        if token == _NO_TOKEN:
            raise expected("the SHA-256 of a token", "that of an empty text")
    return {} if value is None else value


Texts = tuple[Text, ...]
Zone = Annotated[str, word(ZONES)]
States = Annotated[tuple[str, ...], words(LIFECYCLES, except_=("revoked",))]
Globs = Annotated[tuple[Annotated[Text, AfterValidator(_glob)], ...], Field(max_length=MAX_PATTERNS)]
Selectors = Annotated[tuple[Annotated[Text, AfterValidator(selector)], ...], Field(max_length=MAX_PATTERNS)]


class _Limits(Document):
    """What a grant, and a principal for all of its grants, may narrow."""

    zones: Zone = ABSENT
    users: Texts = ()
    namespaces: Texts = ABSENT
    states: States = ABSENT
    paths: Globs = ABSENT
    denied_paths: Globs = ()


class _Until(Document):
    reason: Text = ABSENT
    expires: Instant = ABSENT


class _Project(_Limits, _Until):
    project: Text
    sources: Selectors = ABSENT


class _ActAs(_Until):
    principal: Text
    project: Text = ABSENT


class _Append(_Until):
    project: Text


class _Principal(_Limits):
    projects: tuple[Annotated[_Project, _entry("project")], ...] = ()
    groups: Texts = ABSENT
    act_as: tuple[Annotated[_ActAs, _entry("principal")], ...] = ()
    append: tuple[Annotated[_Append, _entry("project")], ...] = ()
    audit: bool = False


class _CrossProject(_Project):
    principal: Text
    for_projects: Texts = ABSENT


class _File(Document):
    schema_version: FirstVersion = 1
    principals: dict[str, _Principal] = Field(default_factory=dict)
    grants: tuple[_CrossProject, ...] = ()
    tokens: Annotated[dict[str, str], BeforeValidator(_tokens)] = ABSENT

    @model_validator(mode="after")
    def _consistent(self) -> _File:
        for number, grant in enumerate(self.grants):
            if missing := [name for name in ("zones", "reason", "expires") if getattr(grant, name) is None]:
                raise expected(f"{missing[0]} of a grant of another project", f"nothing in grants[{number}]")
        named = [*(self.tokens or {}).values(), *(grant.principal for grant in self.grants)]
        if unknown := [name for name in named if name not in self.principals]:
            known = ", ".join(sorted(self.principals)) or "(there are none)"
            raise expected(f"one of the principals {known}", repr(shown_key(unknown[0])))
        for name, person in self.principals.items():
            if len({own.project for own in person.projects}) < len(person.projects):
                raise expected(f"every project of {shown_key(name)} once", "one twice")
        return self


@dataclass(frozen=True)
class GrantsFile:
    """A grants file as read: the GRANTS table, principals by the SHA-256 of their tokens, the file's own SHA-256."""

    table: pa.Table
    tokens: Mapping[str, str] | None
    """None without the key `tokens`; a key without entries lets no user in."""
    principals: tuple[str, ...]
    digest: str
    path: Place
    append: Mapping[str, Sequence[_Append]] = field(default_factory=dict)
    """Rights to add rows of one's own, by principal; the line does not use them."""

    def appendable(self, principal: str, at: datetime) -> list[str]:
        """The projects that a principal may add rows to at an instant."""
        mine = self.append.get(principal, ())
        return sorted({grant.project for grant in mine if grant.expires is None or at < grant.expires})

    def projects(self, principal: str) -> list[str]:
        """The projects that a principal may ask in, expired grants included."""
        return sorted(project for who, project in self._own if who == principal and project)

    def holders(self, project: str) -> list[str]:
        """The principals that may ask in a project by their own grants, expired ones included."""
        return sorted(who for who, own in self._own if own == project)

    @cached_property
    def _own(self) -> set[tuple[str, str | None]]:
        """The principals and projects of grants on own projects."""
        rows = self.table.filter(self.table["own_project"])
        return set(zip(rows["principal"].to_pylist(), rows["project"].to_pylist(), strict=True))


def load_grants(source: GrantsFile | str | Place) -> GrantsFile:
    """The current grants of a file, or these grants. A file is read on every call, and parsed again only if its bytes are
    others.

    Raises:
        PolicyError: the file is missing or invalid.
    """
    if isinstance(source, GrantsFile):
        return source
    path = place_of(source)
    try:
        data = path.read_bytes()
    except StoreError:
        raise
    except OSError as error:
        absent = isinstance(error, FileNotFoundError)
        hint = "`scoped-retrieval index PATH --project P` writes one that grants P to you" if absent else ""
        raise PolicyError(f"{error.strerror}: grants file {path}", hint=hint) from error
    return _read(data, path)


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
    with held(path.with_name(f".{path.name}.lock")):
        data = read_whole(path) if exists(path) else b""
        standing = _read(data, path) if data else None
        content = parse(data, str(path)) or {}
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
        raise PolicyError(error.what, at=error.at, hint=hint, choices=error.choices) from error


def _understood(data: bytes, path: Place) -> GrantsFile:
    content = parse(data, str(path))
    file = document(_File, {} if content is None else content, str(path))
    rows = [row for name, person in file.principals.items() for row in _rows_of(name, person)]
    for number, grant in enumerate(file.grants):
        row = {"rule_id": f"grants[{number}]", "principal": grant.principal, "own_project": False}
        rows.append(row | _grant(grant, file.principals[grant.principal]) | {"for_projects": grant.for_projects})
    table = GRANTS.from_rows(rows).sort_by("rule_id")
    append = {name: person.append for name, person in file.principals.items()}
    people = tuple(sorted(file.principals))
    return GrantsFile(table, file.tokens, people, hashlib.sha256(data).hexdigest(), path, append)


def _rows_of(principal: str, person: _Principal) -> Iterator[dict[str, Any]]:
    """One row per project of a principal, and per principal that it may act as, in every project or in one."""
    at = f"principals.{principal}"
    for number, own in enumerate(person.projects):
        row = {"rule_id": f"{at}.projects[{number}]", "principal": principal, "own_project": True}
        yield row | _grant(own, person)
    for number, other in enumerate(person.act_as):
        yield {
            "rule_id": f"{at}.act_as[{number}]", "principal": principal, "project": other.project, "own_project": False,
            "zone": ZONES.values[0], "act_as": [other.principal], "audit": False, "expires": other.expires,
            "reason": other.reason,
        }  # fmt: skip


def _grant(grant: _Project, person: _Principal) -> dict[str, Any]:
    """The columns of one grant, capped by what its principal declares."""
    zones = (grant.zones or person.zones or DEFAULT_ZONE, person.zones or ZONES.values[-1])
    return {
        "project": grant.project,
        "sources": None if grant.sources is None else sorted(set(grant.sources)),
        "paths": common_patterns(person.paths, grant.paths),
        "denied_paths": sorted({*person.denied_paths, *grant.denied_paths}) or None,
        "zone": min(zones, key=ZONES.values.index),
        "users": sorted({*person.users, *grant.users}) or None,
        "namespaces": _both(person.namespaces, grant.namespaces),
        "states": _both(person.states, grant.states),
        "groups": person.groups,
        "audit": person.audit,
        "expires": grant.expires,
        "reason": grant.reason,
    }


def _both(*lists: Sequence[str] | None) -> list[str] | None:
    """The names that every list has; None allows every one."""
    given = [names for names in lists if names is not None]
    return [name for name in given[0] if all(name in names for names in given)] if given else None
