"""The door: rows of requests become REQUESTS, both clocks stamped, or FAILURES with a reason.

Reads: rows as people, models and runtimes write them, the credential's principal, and the time of asking.
Gives: REQUESTS and FAILURES; one bad row fails alone and the others go on.

The principal comes from the credential: a row may repeat it, never change it. `asked_at` judges rights and is never
taken from a row; `as_of` judges facts and defaults to it. Secrets in free text are masked here, before anything else
reads it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

import pyarrow as pa

from ..nodes.errors import InputError, ScopedRetrievalError
from ..nodes.tables import FAILURES, REQUESTS
from .redaction import redact_column
from .request_fields import TEXTS, columns_of, instant, name
from .request_files import Row, Unreadable, read_requests
from .tokenizers import load_counter

__all__ = ["TOKENIZER", "read_requests", "resolve_requests"]

TOKENIZER = "approx-bpe/1"
"""The bundled counter, used unless the request names another."""

DEFAULTS: dict[str, Any] = {
    "intent_source": "runtime",
    "question": "",
    "recall_effort": "full",
    "allow_stale_memory": False,
    "require_citation": True,
    "require_snapshot": False,
    "tokenizer": TOKENIZER,
}
"""What a row that says nothing means."""

_ANCHORS = ("failing_test", "error_text", "current_files", "anchor_symbols", "stack_trace", "state")
_NOT_ASKED = ("request_id", "intent_id", "model_request_id", "trace_id")
"""Envelope: in no request digest."""
_REDACTED_LISTS = ("current_files", "anchor_symbols")


def resolve_requests(
    rows: Iterable[Row],
    *,
    principal: str,
    asked_at: datetime,
    corpus: object | None = None,
    defaults: Mapping[str, Any] | None = None,
    redact: Callable[[str], str] | None = None,
) -> tuple[pa.Table, pa.Table]:
    """The rows as REQUESTS and, where a row is not what was expected, as FAILURES; both sorted by request_id.

    `corpus` resolves `as_of: commit:SHA` if it has a `commit_time`. `defaults` are fields for rows that leave them out
    (project, purpose, ...). `redact` masks secrets in free text; None takes the detector that imports use.

    Raises:
        InputError: there is no principal, `asked_at` is naive, or a default is not what was expected.
    """
    if not principal:
        raise InputError.expected("a principal", "none", "credential", hint="nobody may ask without a name")
    asked_at = instant(asked_at, "asked_at")
    common = DEFAULTS | columns_of(defaults or {}, "defaults")
    parsed = [_parse(row, f"requests[{index}]") for index, row in enumerate(rows)]
    masked = _masked(parsed, redact)
    resolved: dict[str, dict[str, Any]] = {}
    failed: dict[str, str] = {}
    broken: list[tuple[int, str]] = []
    for index, row in enumerate(parsed):
        try:
            if row.error:
                raise row.error
            request = _resolve(row.given, common, principal, asked_at, corpus, masked, row.at)
            if request["request_id"] in resolved or request["request_id"] in failed:
                raise InputError(
                    f"Expected a request_id of its own, got one that stands before - at {row.at}.request_id"
                )
            resolved[request["request_id"]] = request
        except ScopedRetrievalError as error:
            own = row.given.get("request_id")
            if own and own not in resolved and own not in failed:
                failed[own] = str(error)
            else:
                broken.append((index, str(error)))
    for index, message in broken:
        failed[_free_id(f"row-{index}", resolved, failed)] = message
    ordered = [resolved[key] for key in sorted(resolved)]
    requests = REQUESTS.build(
        {name: [request.get(name) for request in ordered] for name in REQUESTS.columns}, rows=len(ordered)
    )
    failures = FAILURES.build({"request_id": sorted(failed), "error": [failed[key] for key in sorted(failed)]})
    return requests, failures


@dataclass(frozen=True, slots=True)
class _Parsed:
    """One row: its columns, or why it has none (then `given` holds at most its id)."""

    at: str
    given: dict[str, Any]
    error: ScopedRetrievalError | None = None


def _parse(row: Row, at: str) -> _Parsed:
    if isinstance(row, Unreadable):
        return _Parsed(at, {}, InputError(row.reason))
    if not isinstance(row, Mapping):
        return _Parsed(at, {}, InputError.expected("an object", type(row).__name__, at))
    try:
        return _Parsed(at, columns_of(row, at))
    except ScopedRetrievalError as error:
        own = row.get("request_id") or row.get("requestId")
        try:
            return _Parsed(at, {"request_id": name(own, at)}, error)
        except InputError:
            return _Parsed(at, {}, error)


def _masked(parsed: Iterable[_Parsed], redact: Callable[[str], str] | None) -> dict[str, str]:
    """Every distinct free text of the rows, and the same text with its secrets masked."""
    found = {row.given[column] for row in parsed for column in TEXTS if row.given.get(column)}
    found |= {item for row in parsed for column in _REDACTED_LISTS for item in row.given.get(column) or ()}
    texts = sorted(found)
    if redact is not None:
        return {text: redact(text) for text in texts}
    column, _ = redact_column(pa.array(texts, pa.large_string()))
    return dict(zip(texts, column.to_pylist(), strict=True))


def _resolve(
    given: dict[str, Any],
    common: Mapping[str, Any],
    principal: str,
    asked_at: datetime,
    corpus: object | None,
    masked: Mapping[str, str],
    at: str,
) -> dict[str, Any]:
    if given.get("principal", principal) != principal:
        raise InputError.expected(
            f"the credential's principal {principal!r}", given["principal"], f"{at}.principal",
            hint="asking for somebody else needs an act_as grant, which is not granted",
        )  # fmt: skip
    request = {**common, **given, "principal": principal}
    for required in ("project", "purpose"):
        if not request.get(required):
            raise InputError.expected(f"a {required}", "none", f"{at}.{required}")
    for column in TEXTS:
        if request.get(column):
            request[column] = masked.get(request[column], request[column])
    for column in _REDACTED_LISTS:
        if request.get(column):
            request[column] = [masked.get(item, item) for item in request[column]]
    if not request["question"].strip() and not any(request.get(anchor) for anchor in _ANCHORS):
        raise InputError.expected("a question or an anchor", "neither", f"{at}.question")
    request.setdefault("request_id", _digest(request))
    request["asked_at"] = asked_at
    request["as_of"] = _as_of(request.get("as_of", asked_at), request["project"], corpus, f"{at}.as_of")
    _check_tokenizer(request["tokenizer"])
    start, end = request.get("include_after"), request.get("exclude_after")
    if start and end and start >= end:
        raise InputError.expected("a window that ends after it starts", "an empty one", f"{at}.exclude_after")
    return request


@lru_cache(maxsize=64)
def _check_tokenizer(tokenizer: str) -> None:
    """Raises ModelError unless the counter can be loaded here; a failure is not remembered."""
    load_counter(tokenizer)


def _as_of(value: datetime | str, project: str, corpus: object | None, at: str) -> datetime:
    if isinstance(value, datetime):
        return value
    commit_time = getattr(corpus, "commit_time", None)
    found = commit_time(value.removeprefix("commit:"), project) if commit_time else None
    if found is None:
        raise InputError.expected("a commit that this project's corpus knows", value, at, hint="name a time instead")
    return instant(found, at)


def _digest(request: Mapping[str, Any]) -> str:
    """The first 16 hex digits of SHA-256 over what is asked; not the clocks, unless `as_of` was given."""
    asked = {k: v for k, v in sorted(request.items()) if k not in _NOT_ASKED and v is not None}
    return hashlib.sha256(json.dumps(asked, default=_plain, ensure_ascii=False).encode()).hexdigest()[:16]


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _free_id(wanted: str, *taken: Mapping[str, object]) -> str:
    number, request_id = 1, wanted
    while any(request_id in ids for ids in taken):
        number, request_id = number + 1, f"{wanted}-{number + 1}"
    return request_id
