"""Requests on arrival: rows become REQUESTS, both clocks stamped, or FAILURES with a reason.

Reads: rows as people, models and runtimes write them, the credential's principal, and the time of asking.
Gives: REQUESTS and FAILURES; a bad row does not affect the others.

The caller comes from the credential. A row may name another principal whose rights to use: the contract decides whether
the credential may. `asked_at` judges rights and is never taken from a row; `as_of` judges facts and defaults to it.
Secrets in free text, including that of a work tree's `SHO.json`, are masked here, before anything else reads it; in
ids, names and patterns, which bounds compare, they are refused.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...nodes.errors import InputError, ScopedRetrievalError
from ...nodes.tables import FAILURES, REQUESTS
from ..parsing.values import instant
from ..redaction.masking import redact_text
from .allowed_names import AllowedNames
from .converters import MAX_NAME
from .fields import (
    BOUNDS,
    FIELDS,
    TEXTS,
    columns_of,
    identifier,
    name,
    names,
    place_of,
    readable_columns,
)
from .files import FileRow, Row, Unreadable, read_requests
from .handoff import handoff
from .presets import Preset

__all__ = ["TOKENIZER", "read_requests", "resolve_requests"]

UNREAD = "[not read: no grant permits this request]"
"""Replaces a long text of a request that no grant permits."""
TOKENIZER = "approx-bpe/1"
"""The bundled counter, used unless the request names another."""

DEFAULTS: dict[str, Any] = {
    "intent_source": "runtime",
    "question": "",
    "recall_effort": "full",
    "allow_stale_memory": False,
    "require_citation": True,
    "require_snapshot": True,
    "tokenizer": TOKENIZER,
}
"""Defaults of the fields of a row."""

_ANCHORS = ("failing_test", "error_text", "current_files", "anchor_symbols", "stack_trace", "state")
_NOT_ASKED = ("request_id", "intent_id", "model_request_id", "trace_id")
"""Envelope columns, which are in no request digest."""
_REDACTED_LISTS = ("current_files", "anchor_symbols")
_COMPARED = tuple(
    column
    for column, converter in FIELDS.items()
    if (column in BOUNDS or converter in (name, identifier, names))
    and column not in (*TEXTS, *_REDACTED_LISTS, "principal")
)
"""Ids, names and patterns: equal masks would make different ones compare as equal."""
_MASKED = frozenset({*TEXTS, *_REDACTED_LISTS, *_COMPARED, "principal"})
"""Columns with texts whose secrets are masked or refused."""
ANY = AllowedNames()
"""Allows any mode and role, and no tokenizer file."""
_DEPTH = 8
"""Nesting levels of a row that a message can name: groups in groups, lists of names."""


def resolve_requests(  # noqa: PLR0913 - options by keyword
    rows: Iterable[Row],
    *,
    principal: str,
    asked_at: datetime,
    corpus: object | None = None,
    defaults: Mapping[str, Any] | None = None,
    preset: Preset | None = None,
    known: AllowedNames = ANY,
    work_trees: Collection[Path] = (),
    permitted: Callable[[Mapping[str, Any]], bool] = lambda _: True,
) -> tuple[pa.Table, pa.Table]:
    """The rows as REQUESTS and, if invalid, as FAILURES; both sorted by request_id.

    A row without an id gets the digest of its fields; repeated digests get `-2`, `-3` in the order of the rows. A
    duplicate explicit id fails the second row.

    `corpus` resolves `as_of: commit:SHA` if it has a `commit_time`. `defaults` are fields for rows that omit them
    (project, purpose, ...), and `preset` bounds every row. `known` lists the modes, roles, tokenizer files and terms of
    plugins that a request may name. A request with a work tree and no mode takes the mode from the `SHO.json` there, if
    the tree is one of `work_trees` (resolved folders) and unless the preset fixes the mode as none. Of a row that is not
    `permitted`, by its columns, long texts are not read: the contract denies it, and masking them would be wasted.

    Raises:
        InputError: there is no principal, `asked_at` is naive, or a default is invalid.
    """
    if not principal:
        raise InputError.described("a principal", "none", "credential", hint="a principal name is required")
    asked_at = instant(asked_at, "asked_at")
    common = DEFAULTS | columns_of(defaults or {}, "defaults")
    parsed = [_parse(row, index) for index, row in enumerate(rows)]
    parsed = [row if permitted(row.given) else _unread(row) for row in parsed]
    masked = _masked(parsed)

    def resolve(given: dict[str, Any], texts: Mapping[str, str], row: _Parsed) -> tuple[dict[str, Any], bool]:
        at = row.at
        given = preset.bound(given, at) if preset else given
        merged = common | given
        if merged.get("workspace_root") and not merged.get("mode") and not (preset and "mode" in preset.fields.without):
            left = handoff(merged["workspace_root"], work_trees)
            masked.update(_masks({left[name] for name in TEXTS if left.get(name)} - masked.keys()))
            given = {name: masked.get(value, value) for name, value in left.items()} | given
        request, named = _resolve(given, common, principal, asked_at, corpus, texts, row)
        return known.expect(request, row.place_of, at), named

    written = {row.given["request_id"]: None for row in parsed if row.given.get("request_id")}
    repeats: Counter[str] = Counter()
    resolved: dict[str, dict[str, Any]] = {}
    failed: dict[str, _Failed] = {}
    nameless: list[_Failed] = []
    for row in parsed:
        try:
            if row.error:
                raise row.error
            _refuse_secrets(row, masked)
            request, named = resolve(row.given, masked, row)
            if not named:
                digest = request["request_id"]
                repeats[digest] += 1
                request["request_id"] = _free_id(digest, resolved, failed, written, first=repeats[digest])
            elif request["request_id"] in resolved or request["request_id"] in failed:
                raise InputError("Expected a unique request_id, got a duplicate", at=f"{row.at}.request_id")
            resolved[request["request_id"]] = request
        except ScopedRetrievalError as error:
            own = row.given.get("request_id")
            if own and masked[own] == own and own not in resolved and own not in failed:
                failed[own] = _Failed(row, error)
            else:
                nameless.append(_Failed(row, error))
    for failure in nameless:
        failed[_free_id(failure.row.place, resolved, failed)] = failure
    # Columns of plugins do not depend on the other rows: a request is stored the same alone and in a batch.
    plugins = dict.fromkeys(f"weight_{term}" for term in known.score_terms)
    requests = REQUESTS.from_rows([plugins | resolved[key] for key in sorted(resolved)])
    return requests, _failures(failed, common, masked, resolve) if failed else FAILURES.empty()


@dataclass(frozen=True, slots=True)
class _Parsed:
    """One row with its place and columns, or an error; then `given` has the readable columns."""

    raw: Row
    at: str
    place: str
    given: dict[str, Any]
    error: ScopedRetrievalError | None = None

    def place_of(self, column: str) -> str:
        """The place of a column in the row."""
        return place_of(self.raw, column, self.at)


@dataclass(frozen=True, slots=True)
class _Failed:
    row: _Parsed
    error: ScopedRetrievalError


def _parse(row: Row, index: int) -> _Parsed:
    place = f"{getattr(row, 'unit', 'row')}-{getattr(row, 'number', index + 1)}"
    at = row.at if isinstance(row, FileRow) else f"requests[{index}]"
    if isinstance(row, Unreadable):
        return _Parsed(row, at, place, {}, InputError(row.reason))
    if not isinstance(row, Mapping):
        return _Parsed(row, at, place, {}, InputError.of_kind("an object", row, at))
    try:
        return _Parsed(row, at, place, columns_of(row, at))
    except ScopedRetrievalError as error:
        return _Parsed(row, at, place, readable_columns(row), error)
    except RecursionError:
        return _Parsed(row, at, place, {}, InputError("Expected a request, got too deep nesting", at=at))


def _unread(row: _Parsed) -> _Parsed:
    """The row with a note in place of each text that is longer than a name."""
    long = {text: UNREAD for text in (*_texts(row.raw), *_texts(row.given)) if len(text) > MAX_NAME}
    return replace(row, raw=_replaced(row.raw, long), given=_replaced(row.given, long))


def _failures(
    failed: Mapping[str, _Failed],
    common: Mapping[str, Any],
    masked: Mapping[str, str],
    resolve: Callable[[dict[str, Any], Mapping[str, str], _Parsed], object],
) -> pa.Table:
    """FAILURES: the readable columns of each row, and its message.

    A message quotes the start of a value, and a detector does not recognize the start of a secret. So each message
    comes from resolving the row again with all of its texts masked.
    """
    mask = _masks({text for failure in failed.values() for text in _texts(failure.row.raw)})
    messages = []
    for row, error in ((failure.row, failure.error) for failure in failed.values()):
        try:
            if isinstance(row.raw, Mapping):
                resolve(columns_of(_replaced(row.raw, mask), row.at), mask, row)
        except RecursionError:
            _refuse_secrets(row, masked)
        except ScopedRetrievalError as again:
            error = again
        messages.append(str(error))
    texts = _masks(set(messages))
    rows = []
    for (request_id, failure), message in zip(failed.items(), messages, strict=True):
        known = {**common, **failure.row.given}
        question = known.get("question") or None
        rows.append(
            {
                "request_id": request_id,
                "error": texts[message],
                "project": masked.get(known.get("project") or "", known.get("project")),
                "purpose": known.get("purpose"),
                "question": masked.get(question, question) if question else None,
            }
        )
    return FAILURES.from_rows(sorted(rows, key=lambda row: row["request_id"]))


def _texts(value: Any, depth: int = 0) -> Iterator[str]:
    """Every text in a value down to `_DEPTH`, including field names."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (Mapping, list, tuple)) and depth < _DEPTH:
        for item in [*value, *value.values()] if isinstance(value, Mapping) else value:
            yield from _texts(item, depth + 1)


def _replaced(value: Any, mask: Mapping[str, str], depth: int = 0) -> Any:
    """The value with every text masked, cut off at `_DEPTH`."""
    if isinstance(value, str):
        return mask.get(value, value)
    if not isinstance(value, (Mapping, list, tuple)):
        return value
    if depth >= _DEPTH:
        return type(value)()
    if isinstance(value, Mapping):
        return {mask.get(key, key): _replaced(item, mask, depth + 1) for key, item in value.items()}
    return [_replaced(item, mask, depth + 1) for item in value]


def _masks(texts: set[str]) -> dict[str, str]:
    """Each text mapped to its masked form; texts that are not valid Unicode are omitted."""
    return {text: redact_text(text) for text in sorted(texts) if text.isascii() or _encodes(text)}


def _encodes(text: str) -> bool:
    try:
        return bool(text.encode())
    except UnicodeEncodeError:
        return False


def _masked(parsed: Iterable[_Parsed]) -> dict[str, str]:
    """Each distinct free text of the rows, mapped to its masked form."""
    found = {text for row in parsed for column in row.given.keys() & _MASKED for text in _given_texts(row, column)}
    return _masks(found)


def _given_texts(row: _Parsed, column: str) -> list[str]:
    """The texts of a column of a row, one or a list."""
    value = row.given.get(column)
    return [value] if isinstance(value, str) else value or []


def _refuse_secrets(row: _Parsed, masked: Mapping[str, str]) -> None:
    for column in _COMPARED:
        if column in row.given and any(masked.get(text, text) != text for text in _given_texts(row, column)):
            raise InputError(
                f"Expected a {column} without a secret, got one with a secret",
                at=row.place_of(column),
                hint="it is compared with bounds, so it cannot be masked: use another value, or omit it",
            )


def _resolve(
    given: dict[str, Any],
    common: Mapping[str, Any],
    principal: str,
    asked_at: datetime,
    corpus: object | None,
    masked: Mapping[str, str],
    row: _Parsed,
) -> tuple[dict[str, Any], bool]:
    """The request, and whether its row has an id; one without gets the digest of its fields."""
    request = {**common, "principal": principal, **given}
    if request["principal"] != principal:
        if masked.get(request["principal"], request["principal"]) != request["principal"]:
            raise InputError("Expected the name of a principal, got a secret", at=row.place_of("principal"))
        request["asked_by"] = principal
    for required in ("project", "purpose"):
        if not request.get(required):
            hint = "name one in the request or by `--project`; `status` lists yours" if required == "project" else ""
            raise InputError.described(f"a {required}", "none", row.place_of(required), hint=hint)
    for column in TEXTS:
        if request.get(column):
            request[column] = masked.get(request[column], request[column])
    for column in _REDACTED_LISTS:
        if request.get(column):
            request[column] = [masked.get(item, item) for item in request[column]]
    if not request["question"].strip() and not any(request.get(anchor) for anchor in _ANCHORS):
        raise InputError.described("a question or an anchor", "neither", row.place_of("question"))
    named = "request_id" in request
    request.setdefault("request_id", _digest(request))
    request["asked_at"] = asked_at
    request["as_of"] = _as_of(request.get("as_of", asked_at), request, corpus, row.place_of("as_of"))
    start, end = request.get("include_after"), request.get("exclude_after")
    if start and end and start >= end:
        raise InputError.described("a window that ends after it starts", "an empty one", row.place_of("exclude_after"))
    return request, named


def _as_of(value: datetime | str, request: Mapping[str, Any], corpus: object | None, at: str) -> datetime:
    if isinstance(value, datetime):
        return value
    commit_time = getattr(corpus, "commit_time", None)
    found = commit_time(value.removeprefix("commit:"), request) if commit_time else None
    if found is None:
        raise InputError.expected("a commit that this project's corpus knows", value, at, hint="name a time instead")
    return instant(found, at)


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
