"""Requests on arrival: rows become REQUESTS, both clocks stamped, or FAILURES with a reason.

Reads: rows as people, models and runtimes write them, the credential's principal, and the time of asking.
Gives: `RequestResolver`, whose results are REQUESTS and FAILURES; a bad row does not affect the others.

The caller comes from the credential. A row may name another principal whose rights to use: the contract decides whether
the credential may. `asked_at` judges rights and is never taken from a row; `as_of` judges facts and defaults to it.
Secrets in a row are masked before anything else reads it, as are those of a work tree's `SHO.json`; in ids, names and
patterns, which bounds compare, they are refused.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.blocks.token_counting import BASE
from ...nodes.errors import AccessError, InputError, ScopedRetrievalError
from ...nodes.scope.active_grants import active_grants_of
from ...nodes.scope.selectors import selected
from ...nodes.tables import FAILURES, REQUESTS
from ..config.grants import GrantsFile
from ..corpus import Corpus
from ..parsing.values import instant
from ..redaction.masking import redact_text
from ..sources.file_kinds import CLASSES
from .allowed_names import AllowedNames
from .converters import identifier, json_text, name, names
from .fields import BOUNDS, FIELDS, columns_of, fields_of
from .files import FileRow, Row
from .handoff import handoff
from .presets import Preset

DEFAULTS: dict[str, Any] = {
    "intent_source": "runtime",
    "question": "",
    "recall_effort": "full",
    "allow_stale_memory": False,
    "require_citation": True,
    "require_snapshot": True,
    "tokenizer": BASE,
}
"""Defaults of the fields of a row."""

Defaults = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""The fields that a row has unless it names them, by the columns that it has."""


def no_defaults(_: Mapping[str, Any]) -> dict[str, Any]:
    """None, whatever a row has."""
    return {}


_ANCHORS = ("failing_test", "error_text", "current_files", "anchor_symbols", "regexes", "stack_trace", "state")
_NOT_ASKED = ("request_id", "intent_id", "model_request_id", "trace_id")
"""Envelope columns, which are in no request digest."""
_COMPARED = tuple(
    column
    for column, converter in FIELDS.items()
    if (column in BOUNDS or converter in (name, identifier, names))
    and column not in ("current_files", "anchor_symbols")
)
"""Ids, names and patterns: equal masks would make different ones compare as equal."""
_MASK = "[REDACTED:"


@dataclass(frozen=True)
class RequestResolver:
    """Resolves the requests of one principal over one corpus under the current grants."""

    principal: str
    corpus: Corpus
    grants: GrantsFile
    """With the corpus they resolve `as_of: commit:SHA`."""
    preset: Preset | None = None
    """Bounds every row."""
    known: AllowedNames = field(default_factory=AllowedNames)
    """The modes, roles, tokenizer files and terms of plugins that a request may name; by default any mode and role."""
    work_trees: Collection[Path] = ()
    """Resolved folders: a request that names one of them and no mode takes the mode from the `SHO.json` there, unless the
    preset fixes the mode as none."""

    @cached_property
    def project(self) -> dict[str, Any]:
        """The default project of requests: the principal's only one; empty if there are several."""
        projects = self.grants.projects(self.principal)
        return {"project": projects[0]} if len(projects) == 1 else {}

    def common(self, defaults: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The columns of rows that omit them: `DEFAULTS` and some `defaults` by field.

        Raises:
            InputError: a default is invalid.
        """
        return DEFAULTS | columns_of(defaults or {}, "defaults")

    def one(self, row: Row, common: Mapping[str, Any], asked_at: datetime) -> tuple[dict[str, Any], bool]:
        """A row as columns of REQUESTS, and whether it names its id; else that is the digest of its fields.

        Raises:
            InputError: the row is no valid request.
        """
        return self._one(_parse(row, 0, "request", {}), common, instant(asked_at, "asked_at"))

    def table(self, requests: Iterable[dict[str, Any]]) -> pa.Table:
        """REQUESTS by request_id."""
        rows = [one | {"weights": json.dumps(one["weights"]) if one.get("weights") else None} for one in requests]
        return REQUESTS.from_rows(sorted(rows, key=lambda one: one["request_id"]))

    def resolve(
        self, rows: Iterable[Row], asked_at: datetime, defaults: Defaults = no_defaults
    ) -> tuple[pa.Table, pa.Table]:
        """The rows as REQUESTS and, if invalid, as FAILURES; both sorted by request_id.

        A row without an id gets the digest of its fields; repeated digests get `-2`, `-3` in the order of the rows. A
        duplicate explicit id fails the second row. `defaults` gives the fields that a row omits.

        Raises:
            InputError: `asked_at` is naive, or a default is invalid.
        """
        asked_at = instant(asked_at, "asked_at")
        masks: dict[str, str] = {}
        parsed = [_parse(row, index, f"requests[{index}]", masks) for index, row in enumerate(rows)]
        repeats: Counter[str] = Counter()
        resolved: dict[str, dict[str, Any]] = {}
        failed: dict[str, _Failed] = {}
        nameless: list[tuple[str, _Failed]] = []
        for row in sorted(parsed, key=lambda row: not row.given.get("request_id")):  # no digest takes a written id
            common = self.common(defaults(row.given))
            try:
                request, named = self._one(row, common, asked_at)
                if not named:
                    digest = request["request_id"]
                    repeats[digest] += 1
                    request["request_id"] = _free_id(digest, resolved, failed, first=repeats[digest])
                elif request["request_id"] in resolved or request["request_id"] in failed:
                    raise InputError("Expected a unique request_id, got a duplicate", at=f"{row.at}.request_id")
                resolved[request["request_id"]] = request
            except ScopedRetrievalError as error:
                own, failure = row.given.get("request_id"), ({**common, **row.given}, error)
                if own and not (row.changed and _MASK in own) and own not in resolved and own not in failed:
                    failed[own] = failure
                else:
                    nameless.append((row.place, failure))
        for place, failure in nameless:
            failed[_free_id(place, resolved, failed)] = failure
        return self.table(resolved.values()), _failures(failed)

    def _one(self, row: _Parsed, common: Mapping[str, Any], asked_at: datetime) -> tuple[dict[str, Any], bool]:
        """The request, and whether its row has an id. A message may quote the start of a secret: it is masked, too."""
        try:
            return self._checked(row, common, asked_at)
        except ScopedRetrievalError as error:
            what, at, hint = (redact_text(text) for text in (error.what, error.at, error.hint))
            raise type(error)(what, at=at, hint=hint, choices=error.choices) from None

    def _checked(self, row: _Parsed, common: Mapping[str, Any], asked_at: datetime) -> tuple[dict[str, Any], bool]:
        if row.error:
            raise row.error
        _refuse_secrets(row)
        given = self.preset.bound(row.given, row.at) if self.preset else row.given
        tree, mode = (common.get(name) if name not in given else given[name] for name in ("workspace_root", "mode"))
        if tree and not mode and not (self.preset and "mode" in self.preset.fields.without):
            given = _without_secrets(handoff(tree, self.work_trees)) | given
        request = {**common, "principal": self.principal, **given}
        if request["principal"] != self.principal:
            request["asked_by"] = self.principal
        if not request.get("project") and not self.grants.projects(self.principal):
            hint = "a grants file gives access, `grants show` lists yours"
            raise AccessError(f"Expected a project that is granted to {self.principal}, got none", at=row.at, hint=hint)
        for required in ("project", "purpose"):
            if not request.get(required):
                yours = self.grants.projects(self.principal) if required == "project" else ()
                one = f"a {required}" + (f", one of {', '.join(yours)}" if yours else "")
                raise InputError.described(one, "none", row.place_of(required))
        if not request["question"].strip() and not any(request.get(anchor) for anchor in _ANCHORS):
            raise InputError.described("a question or an anchor", "neither", row.place_of("question"))
        named = "request_id" in request
        request.setdefault("request_id", _digest(request))
        request["asked_at"] = asked_at
        request["as_of"] = self._as_of(request.get("as_of", asked_at), request, row.place_of("as_of"))
        start, end = request.get("include_after"), request.get("exclude_after")
        if start and end and start >= end:
            raise InputError.described(
                "a window that ends after it starts", "an empty one", row.place_of("exclude_after")
            )
        return self.known.expect(request, row.place_of, row.at), named

    def _as_of(self, value: datetime | str, request: Mapping[str, Any], at: str) -> datetime:
        if isinstance(value, datetime):
            return value
        found = self._commit_time(value.removeprefix("commit:"), request)
        if found is None:
            hint = "`index --history` keeps the commits of the branch and its merges, not those that a merge brought; or name a time"
            raise InputError.expected("a commit that this project's corpus knows", value, at, hint=hint)
        return instant(found, at)

    def _commit_time(self, sha: str, request: Mapping[str, Any]) -> datetime | None:
        """When the commit was recorded, by a commit table that `index --history` keeps; `sha` may be its first digits.

        A principal may know a commit if a grant of the project, at the time of asking, opens its history for any class
        of files, regardless of the filters of the request and of rows of evidence. A commit that is unknown, ambiguous,
        of another project or of a history that no grant opens gives the same answer: None.
        """
        (reach,) = active_grants_of([{"asked_by": None, **request}], self.grants.table)
        commits = self.corpus.commits(request["project"])
        classes, opened = pa.array(CLASSES), list[str]()
        for source in pc.unique(commits["source_id"]).to_pylist():
            of_source = pa.array([source] * len(classes))
            if any(selected(grant["sources"], classes, of_source).any() for grant in reach.own):
                opened.append(source)
        commits = commits.filter(pc.is_in(commits["source_id"], value_set=pa.array(opened, pa.string())))
        found = commits.filter(pc.starts_with(commits["version"], sha.lower()))
        return pc.min(found["recorded_time"]).as_py() if len(pc.unique(found["version"])) == 1 else None


@dataclass(frozen=True, slots=True)
class _Parsed:
    """One row with its place and columns, or an error; then `given` has the readable columns."""

    at: str
    place: str
    given: dict[str, Any]
    error: ScopedRetrievalError | None = None
    changed: bool = False
    """Whether it had a secret."""
    places: Mapping[str, str] = field(default_factory=dict)

    def place_of(self, column: str) -> str:
        """The place of a column in the row, by the name used there."""
        return self.places.get(column, f"{self.at}.{column}")


def _parse(row: Row, index: int, at: str, masks: dict[str, str]) -> _Parsed:
    """A row, its secrets masked; `masks` collects the masked form of each text, and `at` is where it is given, unless a file
    says it.
    """
    at, place = (row.at, row.name) if isinstance(row, FileRow) else (at, f"row-{index + 1}")
    if isinstance(row, FileRow) and row.reason:
        return _Parsed(at, place, {}, InputError(row.reason))
    if not isinstance(row, Mapping):
        return _Parsed(at, place, {}, InputError.of_kind("an object", row, at))
    try:
        masked = _masked(row, masks)
        read = fields_of(masked, at)
        return _Parsed(at, place, _without_secrets(read.columns), read.error, masked != row, read.places)
    except RecursionError:
        return _Parsed(at, place, {}, InputError("Expected a request, got too deep nesting", at=at))


def _masked(value: Any, masks: dict[str, str]) -> Any:
    """The value with the secrets of every text in it masked, those of field names included: a message may quote any, and
    the start of a secret is not recognized as one.
    """
    if isinstance(value, str):
        if value not in masks:
            masks[value] = redact_text(value)
        return masks[value]
    if isinstance(value, Mapping):
        return {_masked(key, masks): _masked(item, masks) for key, item in value.items()}
    return [_masked(item, masks) for item in value] if isinstance(value, (list, tuple)) else value


def _without_secrets(columns: dict[str, Any]) -> dict[str, Any]:
    """The columns with the JSON of objects masked: there, a name beside a value tells a secret."""
    objects = {name for name in columns if FIELDS.get(name) is json_text and columns[name]}
    return columns | {name: redact_text(columns[name]) for name in objects}


def _refuse_secrets(row: _Parsed) -> None:
    for column in [column for column in row.given if column in _COMPARED and row.changed]:
        value = row.given[column] or ()
        if any(_MASK in text for text in ([value] if isinstance(value, str) else value)):
            raise InputError(
                f"Expected a {column} without a secret, got one with a secret",
                at=row.place_of(column),
                hint="it is compared with bounds, so it cannot be masked: use another value, or omit it",
            )


_Failed = tuple[Mapping[str, Any], ScopedRetrievalError]
"""The readable columns of a row, and what is wrong with it."""


def _failures(failed: Mapping[str, _Failed]) -> pa.Table:
    """FAILURES: the readable columns of each row, and its message."""
    rows = []
    for request_id, (known, error) in failed.items():
        kept = {name: known.get(name) or None for name in ("project", "purpose", "question")}
        message = str(error).encode(errors="replace").decode()
        rows.append({"request_id": request_id, "error": message, **kept})
    return FAILURES.from_rows(sorted(rows, key=lambda row: row["request_id"]))


def _digest(request: Mapping[str, Any]) -> str:
    """The first 16 hex digits of SHA-256 over the fields of a request; without the clocks, unless `as_of` was given."""
    asked = {k: v for k, v in sorted(request.items()) if k not in _NOT_ASKED and v is not None}
    return hashlib.sha256(json.dumps(asked, default=_plain, ensure_ascii=False).encode()).hexdigest()[:16]


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _free_id(wanted: str, *taken: Mapping[str, object], first: int = 1) -> str:
    """The name, if taken with the first free number from 2 (or from `first`)."""
    names = (wanted if number == 1 else f"{wanted}-{number}" for number in itertools.count(first))
    return next(name for name in names if not any(name in ids for ids in taken))
