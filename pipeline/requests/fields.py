"""The fields of a request: every name of each, and the converter of its value to a column of REQUESTS.

Reads: a row as people write it, nested or dotted, snake_case or the documents' camelCase. Gives: REQUESTS columns.
Messages name the field as it was written.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import pyarrow as pa

from ...nodes import vocabulary as v
from ...nodes.errors import InputError
from ...nodes.tables import REQUESTS
from ...nodes.turns.words import PHASES
from ..parsing.values import authority_rank, flag, instant
from . import converters as c

KIND = "retrieval.request"

FIELDS: dict[str, c.Converter] = {
    "request_id": c.identifier,
    "intent_id": c.identifier,
    "intent_source": v.INTENT_SOURCES.canonical,
    "model_request_id": c.identifier,
    "trace_id": c.identifier,
    "question": c.text,
    "context_summary": c.text,
    "principal": c.name,
    "project": c.name,
    "namespace": c.name,
    "workspace_root": c.name,
    "branch": c.name,
    "test_suite": c.name,
    "session_id": c.identifier,
    "turn_id": c.identifier,
    "task_id": c.identifier,
    "purpose": v.PURPOSES.canonical,
    "mode": v.MODES.canonical,
    "role": c.name,
    "phase": PHASES.canonical,
    "recall_effort": v.RECALL_EFFORTS.canonical,
    "state": c.json_text,
    "variables": c.json_text,
    "failing_test": c.text,
    "error_text": c.text,
    "current_files": c.names,
    "anchor_symbols": c.names,
    "regexes": c.regexes,
    "stack_trace": c.text,
    "required_evidence": c.some_of(v.REQUIRED_EVIDENCE),
    "allowed_sources": c.selectors,
    "denied_sources": c.single(c.selectors),
    "allowed_paths": c.globs,
    "denied_paths": c.single(c.globs),
    "as_of": c.as_of,
    "include_after": instant,
    "exclude_after": instant,
    "window_days": c.days,
    "allow_stale_memory": flag,
    "require_citation": flag,
    "require_snapshot": flag,
    "accepted_authority": c.some_of(v.ACCEPTED_AUTHORITY),
    "min_authority": authority_rank,
    "max_unverified_items": c.whole(0),
    "lane_k": c.whole(1),
    "pool_k": c.whole(1),
    "max_items": c.whole(1),
    "max_items_per_source": c.whole(1),
    "max_tokens": c.whole(1),
    "max_chars": c.whole(1),
    "max_chunk_tokens": c.whole(1),
    "tokenizer": c.name,
    "merge_policy": v.MERGE_POLICIES.canonical,
    "output_shape": v.OUTPUT_SHAPES.canonical,
    "weights": c.weights,
}
"""Column of REQUESTS to its converter. `asked_at`, `asked_by` and `preset` are deliberately missing: they are set on
arrival.
"""

PATTERNS = frozenset(column for column, converter in FIELDS.items() if converter in (c.selectors, c.globs))
"""Columns of allowances, whose patterns may be products."""
BOUNDS = frozenset({*PATTERNS, "denied_sources", "denied_paths"})
"""Columns of patterns."""
_TYPES = {column: REQUESTS.columns[column].type for column in FIELDS}
LISTS = frozenset(column for column, type_ in _TYPES.items() if pa.types.is_list(type_))
TEXTS = tuple(column for column in _TYPES if REQUESTS.columns[column].free_text and column not in LISTS)
NUMBERS = frozenset(
    column
    for column, type_ in _TYPES.items()
    if (pa.types.is_boolean(type_) or pa.types.is_primitive(type_)) and not pa.types.is_temporal(type_)
)
"""Columns of numbers and flags."""

ALIASES = {
    "user_id": "principal",
    "project_id": "project",
    "query": "question",
    "k_in": "lane_k",
    "k_out": "max_items",
    "max_selected_chunks": "max_items",
}
"""Names of the documents, in snake_case, and the column each one means."""

GROUPS = frozenset(("scope", "anchors", "time", "time_boundary", "evidence_policy", "budget"))
"""Objects that may group fields; a field means the same in any of them and outside of them."""


@lru_cache(maxsize=4096)
def named(path: str) -> tuple[str, str] | None:
    """The REQUESTS column that a dotted path names and, below `weights`, the score term; None if it names none."""
    parts = path.split(".")
    while len(parts) > 1 and _snake(parts[0]) in GROUPS:
        parts = parts[1:]
    name, term = _snake(parts[0]), ".".join(parts[1:])
    column = ALIASES.get(name, name)
    return (column, term) if column in FIELDS and (not term or column == "weights") else None


def column_of(path: str) -> str | None:
    """The REQUESTS column that a dotted path names; None if it names none."""
    found = named(path)
    return found and found[0]


def columns_named(row: Mapping[str, Any]) -> dict[str, Any]:
    """The columns that a row names, in groups or not, with their values as they are given; names of none are left out."""
    found = dict[str, Any]()
    for name, value in row.items():
        if isinstance(value, Mapping) and is_group(name):
            found |= columns_named(value)
        elif column := column_of(name):
            found[column] = value
    return found


def is_group(path: str) -> bool:
    """Whether a dotted path names a group of fields."""
    return all(_snake(part) in GROUPS for part in path.split("."))


def _snake(word: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", word.strip()).lower()


def unknown_field(path: str, at: str) -> InputError:
    """The error for an unknown name, with the nearest known one."""
    leaf = _snake(path.rpartition(".")[2])
    if leaf == "asked_at":
        return InputError("Expected no asked_at: it is set on arrival", at=at)
    if leaf in ("permission_context", "permissions", "groups", "asked_by"):
        return InputError(f"Expected no {leaf}: rights come from the credential", at=at)
    near = difflib.get_close_matches(leaf, (*FIELDS, *ALIASES), n=1)
    return InputError.one_of(FIELDS, path, at, hint=f"did you mean {near[0]}?" if near else "")


SCHEMA_VERSION = 1
"""Schema version of requests; a row without one has this one. See `docs/reference/limits.md`."""
_VERSION_KEYS = ("schema_version", "schemaVersion")


@dataclass(frozen=True, slots=True)
class RowFields:
    """What a row sets: its columns, None where a value cannot be read; the place of each; and the first error."""

    columns: dict[str, Any] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    error: InputError | None = None


def fields_of(row: Mapping[str, Any], at: str) -> RowFields:
    """The fields of one row; values of None are left out."""
    found, places = dict[str, Any](), dict[str, str]()
    first: InputError | None = None
    for column, value, where in _columns(row, "", at, KIND if row.get("kind") == KIND else ""):
        try:
            if isinstance(column, InputError):
                raise column
            again = column in places
            places.setdefault(column, where)
            found.setdefault(column, None)
            read = FIELDS[column](value, where)
            if column == "weights":  # their terms may be given one by one
                again, read = not read.keys().isdisjoint(found[column] or ()), (found[column] or {}) | read
            if again:
                raise InputError(f"Expected {column} once, got it twice", at=where)
            found[column] = read
        except InputError as error:
            first = first or error
    return RowFields(found, places, first)


def columns_of(row: Mapping[str, Any], at: str) -> dict[str, Any]:
    """The columns that one row sets, converted.

    Raises:
        InputError: a name is unknown or given twice, or its value is invalid.
    """
    read = fields_of(row, at)
    if read.error:
        raise read.error
    return read.columns


def _columns(row: Mapping[str, Any], prefix: str, at: str, kind: str) -> Iterator[tuple[str | InputError, Any, str]]:
    """Column, value and place of each field of a row, including nested ones; the error instead of an unknown column."""
    for key, value in row.items():
        if value is None:
            continue
        if not isinstance(key, str):
            yield InputError.of_kind("field names as text", key, at), value, at
            continue
        path, where = f"{prefix}{key}", f"{at}.{prefix}{key}"
        if path in _VERSION_KEYS:
            if value not in (SCHEMA_VERSION, str(SCHEMA_VERSION)) or isinstance(value, bool):
                yield InputError.expected(f"schema version {SCHEMA_VERSION}", value, where), value, where
            continue
        if path == "kind":
            if value != KIND:
                yield InputError.expected(KIND, value, where), value, where
            continue
        column, term = ("intent_id" if kind else "request_id", "") if path == "id" else named(path) or ("", "")
        if term:
            yield column, {term: value}, where.removesuffix(f".{term}")
        elif column:
            yield column, value, where
        elif not is_group(path):
            yield unknown_field(path, where), value, where
        elif not isinstance(value, Mapping):
            yield InputError.of_kind("an object", value, where), value, where
        else:
            yield from _columns(value, f"{path}.", at, kind)
