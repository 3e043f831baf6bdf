"""Import rows of any reader: checked, completed and with secrets masked.

Reads: tables with any of the columns of IMPORT_ROWS (at least `source_id` and `text`). Gives: `normalize`, the same
rows with every column, and a `SourceReport` of skipped and masked values.

Columns are converted to their declared types without loss, or with an error that names the row. Instants must have a time zone:
the meaning of a naive one would depend on the machine that reads it. Paths get the one form that rules about paths compare:
relative to the root of the source, `/` between parts, Unicode NFC, and no part that is empty, `.` or `..`. Case is kept. A
backslash is a separator, as on Windows; on POSIX it may be part of a file name, and is then stored as `/`.

Note: the defaults are one line per class of source (`_DEFAULTS`), the least privileged for trust. `verified` is about the
record, not its author; text by strangers is restricted by authority 0 and standing `untrusted`, and output of programs by
standing alone. Only some nulls are filled. `principals`, `branch`, `workspace_root`, `test_suite` and `valid_*` keep their nulls,
because null has a meaning there. A memory, session event or preference belongs to the importing principal unless it
names a user; an empty `owner_user` means the whole project.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...nodes.columns.digests import text_sha256
from ...nodes.columns.keys import truth
from ...nodes.errors import InputError
from ...nodes.schema import TIMESTAMP
from ...nodes.tables import EVIDENCE, IMPORT_ROWS
from ...nodes.vocabulary import (
    EVIDENCE_KINDS,
    LIFECYCLES,
    ORIGIN_CLASSES,
    SAFETIES,
    STANDINGS,
    VISIBILITIES,
    ZONES,
)
from ..corpus.incoming import PLACEMENT_LIST
from ..parsing.quoting import canonical, shown_keys
from ..parsing.values import TIME, YEARS, authority_rank, instant
from ..redaction.masking import mask_spans, redact_columns, without_keys_over_rows
from .file_kinds import file_kind
from .report import NAMED, PLACE, SourceReport

Where = Callable[[int], str]
"""Names a row by its position, for messages."""

_VOCABULARIES = {
    "origin_class": ORIGIN_CLASSES,
    "evidence_kind": EVIDENCE_KINDS,
    "zone": ZONES,
    "declared_visibility": VISIBILITIES,
    "declared_safety": SAFETIES,
    "declared_standing": STANDINGS,
}
_KEYS = ("entity", "parent_id", "superseded_by", "supersedes", "conflict_set")
"""Columns that link rows. Masks are equal, so masked keys would link unrelated rows, and without a key a row would lose
its parent's zone or outlive its replacement: a key with a secret is refused."""
_COMPARED = ("source_id", "owner_project", "owner_user", "namespace", "workspace_root", "branch", "session_id", "test_suite",
             "principals")  # fmt: skip
"""Names that bounds compare: masked ones would be equal to a bound, so a secret in one is refused as well."""
_MASKED = tuple(
    name
    for name, column in IMPORT_ROWS.columns.items()
    if column.type in (pa.string(), pa.large_string(), pa.list_(pa.string()))
    and name not in (*_KEYS, *_COMPARED, *_VOCABULARIES, "lifecycle")
)
"""Free text, in which secrets are masked."""
_REDACTIONS = EVIDENCE.schema.field("redactions")
_SCHEMA = pa.schema([*IMPORT_ROWS.schema, _REDACTIONS])
NO_ROWS = _SCHEMA.empty_table()
"""Rows as `normalize` returns them, none."""


def normalize(
    rows: pa.Table,
    *,
    project: str,
    principal: str,
    now: datetime,
    masked: bool = False,
) -> tuple[pa.Table, SourceReport]:
    """The rows as the corpus stores them: every column of IMPORT_ROWS, then `redactions`.

    A column `PLACEMENT_LIST` stays last. The chunks of `masked` rows are masked already: only other columns are
    searched for secrets. Messages name a row by the column `read_at`, else as `rows[3]`.

    Raises:
        InputError: a column is unknown or has the wrong type, a value is outside its list or a limit, an instant has no
            time zone, a key or compared name contains a secret.
    """
    if now.tzinfo is None:
        raise InputError.described("an instant with a time zone", "a naive one", "now")
    found = _Rows(rows)
    columns = found.columns
    found.check_limits()
    columns["owner_project"] = _without_blank(columns["owner_project"])
    found.fill("owner_project", project)
    found.read_lifecycle(principal)
    for name, vocabulary in _VOCABULARIES.items():
        columns[name] = found.mapped(name, pa.string(), partial(canonical, vocabulary))
    found.fill_trust()
    of_user = pc.is_in(columns["origin_class"], pa.array(sorted(_OWNED_BY_USER)))
    found.fill("owner_user", pc.if_else(of_user, pa.scalar(principal), pa.scalar(None, pa.string())))
    columns["owner_user"] = _without_blank(columns["owner_user"])
    found.fill_times(now)
    found.fill("generated", False)
    columns["redactions"] = found.redact(masked)
    columns["path"] = normalized(columns["path"], found.where)
    found.fill_version()
    columns["occurrence"] = _occurrences(columns)
    stored = pa.schema([*_SCHEMA, *(field for field in rows.schema if field.name == PLACEMENT_LIST)])
    return pa.Table.from_arrays([columns[name] for name in stored.names], schema=stored), found.report


MAX_TEXT = 4_000_000
"""Maximum characters in the text of one row."""
MAX_ENTRIES = 10_000
"""Maximum entries in one list of a row: symbols, links, tags and similar."""
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The first and last microsecond of `YEARS`, since 1970."""
_DOCUMENT = ("owner_project", "owner_user", "source_id", "path", "session_id")
"""Rows with equal values in these are lines of one document."""


class _Rows:
    """The columns of rows whose text is not blank: those of IMPORT_ROWS in their declared types, null if the table lacks them, and
    placements as they are.
    """

    def __init__(self, rows: pa.Table) -> None:
        self.report = SourceReport()
        if PLACE not in rows.column_names:
            rows = rows.append_column(PLACE, pa.nulls(rows.num_rows, pa.string()))
        self._at, self._row = rows[PLACE], np.arange(rows.num_rows)
        self.columns = self._typed(rows.drop_columns([PLACE]))
        if self.columns["source_id"].null_count:
            row = int(np.flatnonzero(self.columns["source_id"].is_null())[0])
            raise InputError.expected("a source id", None, f"{self.where(row)}.source_id")
        self.columns["source_id"] = self.mapped("source_id", pa.string(), _nfc)
        has_text = pc.fill_null(pc.not_equal(pc.utf8_trim_whitespace(self.columns["text"]), ""), False)
        self._row = np.flatnonzero(has_text.to_numpy(zero_copy_only=False))
        self.report.skip("empty text", len(has_text) - len(self._row))
        if len(self._row) < len(has_text):
            self.columns = {name: column.filter(has_text) for name, column in self.columns.items()}

    def where(self, row: int) -> str:
        """The place of a row, for messages: from its reader, else its number."""
        given = int(self._row[row])
        return self._at[given].as_py() or f"rows[{given}]"

    def mapped(self, name: str, type_: pa.DataType, value: Callable[[str, str], Any]) -> pa.Array:
        """`value(word, place)` of each distinct word of a column."""
        return _by_word(self.columns[name], type_, lambda word, row: value(word, f"{self.where(row)}.{name}"))

    def refuse(self, wrong: NDArray[np.bool_], expected: str, got: str, name: str, hint: str = "") -> None:
        """Refuse the first row that is wrong.

        Raises:
            InputError: there is one; names row and column.
        """
        if wrong.any():
            raise InputError.described(expected, got, f"{self.where(int(wrong.argmax()))}.{name}", hint=hint)

    def _typed(self, rows: pa.Table) -> dict[str, pa.Array]:
        known, at = {**IMPORT_ROWS.columns}, self.where(0) if rows.num_rows else "rows"
        if repeated := [name for name in known if rows.column_names.count(name) > 1]:
            raise InputError.described("every column once", f"{shown_keys(repeated)} again", at)
        if unknown := [name for name in rows.column_names if name not in (*known, PLACEMENT_LIST)]:
            hint = f"known columns: {', '.join(known)}"
            raise InputError.described("columns of import rows", shown_keys(unknown), at, hint=hint)
        if missing := [name for name in ("source_id", "text") if name not in rows.column_names]:
            raise InputError.described("columns source_id and text", f"no {' and no '.join(missing)}", at)
        columns = {name: pa.nulls(rows.num_rows, column.type) for name, column in known.items()}
        for name in rows.column_names:
            array = rows[name].combine_chunks()
            try:
                array.validate(full=True)
            except pa.ArrowInvalid:  # a file of columns may have other bytes, and numbers that are not finite
                raise InputError.described("text in UTF-8", "other bytes", f"{at}.{name}") from None
            if pa.types.is_floating(array.type):
                self.refuse(truth(pc.invert(pc.is_finite(array))), "a finite number", "another", name)
            if name == "authority" and not pa.types.is_nested(array.type):
                array = _by_word(
                    array, pa.int32(), lambda word, row: authority_rank(word, f"{self.where(row)}.authority")
                )
            elif name in known:
                array = _as_declared(array, known[name].type, name, self.where)
            columns[name] = array
        return columns

    def check_limits(self) -> None:
        """Refuse the first row that exceeds a limit.

        Raises:
            InputError: names the row, the column and the limit.
        """
        too_long = truth(pc.greater(pc.utf8_length(self.columns["text"]), MAX_TEXT))
        self.refuse(too_long, f"at most {MAX_TEXT:,} characters", "more", "text", "divide it into several rows")
        for name in IMPORT_ROWS.columns:
            column = self.columns[name]
            if pa.types.is_timestamp(column.type):
                instants = column.cast(pa.int64())
                outside = truth(pc.or_(pc.less(instants, _FIRST), pc.greater(instants, _LAST)))
                self.refuse(outside, YEARS, "another", name)
            elif pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
                many = truth(pc.greater(pc.list_value_length(column), MAX_ENTRIES))
                self.refuse(many, f"at most {MAX_ENTRIES:,} entries", "more", name)
        for unit, least in (("line", 1), ("byte", 0)):
            start, end = self.columns[f"{unit}_start"], self.columns[f"{unit}_end"]
            for name, column in ((f"{unit}_start", start), (f"{unit}_end", end)):
                self.refuse(truth(pc.less(column, least)), f"{least} or more", "less", name)
            self.refuse(truth(pc.less(end, start)), f"{unit}_start or more", "less", f"{unit}_end")

    def fill(self, name: str, values: Any) -> None:
        """Fill the nulls of a column with a value, or with that of the same row."""
        column = self.columns[name]
        if column.null_count:
            values = values if isinstance(values, pa.Array) else pa.scalar(values)
            self.columns[name] = pc.coalesce(column, values.cast(column.type))

    def note(self, rows: NDArray[np.bool_], text: str) -> None:
        """Note something about some rows."""
        for row in np.flatnonzero(rows)[:NAMED]:
            self.report.note(text, at=self.where(row))

    def read_lifecycle(self, principal: str) -> None:
        """Canonical states. `conflicted` and `private` are not states (C4, C5); an unknown one counts as candidate."""
        columns, given = self.columns, self.columns["lifecycle"]
        known = {state: state for state in LIFECYCLES.values} | {**LIFECYCLES.aliases}
        known |= {"conflicted": "verified", "private": "verified"}
        columns["lifecycle"] = _mapped(given, known.get)
        unknown = truth(pc.and_(given.is_valid(), columns["lifecycle"].is_null()))
        self.note(unknown, f"a state that is not one of {', '.join(LIFECYCLES.values)} counts as candidate")
        self.fill("lifecycle", pc.if_else(given.is_valid(), pa.scalar("candidate"), pa.scalar(None, pa.string())))
        private = pc.and_(pc.equal(given, "private"), pc.equal(pc.fill_null(columns["owner_user"], ""), ""))
        columns["owner_user"] = pc.if_else(truth(private), pa.scalar(principal), columns["owner_user"])
        alone = pc.and_(pc.equal(given, "conflicted"), pc.is_null(columns["conflict_set"]))
        of_entity = pc.binary_join_element_wise("conflict", pc.fill_null(columns["entity"], ""), ":")
        columns["conflict_set"] = pc.if_else(truth(alone), of_entity, columns["conflict_set"])

    def fill_trust(self) -> None:
        """Fill class and kind first, then the columns that depend on them."""
        columns = self.columns
        self.fill("origin_class", _mapped(columns["source_id"], _class_of_source))
        of_kind = _mapped(columns["evidence_kind"], lambda kind: _CLASS_OF_KIND.get(kind, "artifact"))
        self.fill("origin_class", of_kind)
        self.fill("origin_class", "project-doc")
        pairs = pc.binary_join_element_wise(columns["origin_class"], pc.fill_null(columns["path"], ""), "\0")
        self.fill("evidence_kind", _mapped(pairs, lambda pair: _kind_of(*pair.split("\0", 1))))
        origin = columns["origin_class"]
        self.fill("zone", "internal")
        self.fill("declared_visibility", "model-visible")
        self.fill("authority", _mapped(origin, lambda c: _DEFAULTS[c].authority, pa.int32()))
        self.fill("lifecycle", _mapped(origin, lambda c: _DEFAULTS[c].lifecycle))
        self.fill("declared_safety", _mapped(origin, lambda c: _DEFAULTS[c].declared_safety))
        promoted = truth(pc.equal(columns["declared_standing"], "instruction"))
        columns["declared_standing"] = pc.if_else(promoted, "evidence", columns["declared_standing"])
        self.note(promoted, "a row declared as instruction counts as evidence: content cannot instruct")
        of_memory = _mapped(columns["lifecycle"], lambda state: _STANDING_OF_MEMORY.get(state, "evidence"))
        of_class = _mapped(origin, lambda c: _DEFAULTS[c].declared_standing)
        standing = pc.if_else(pc.equal(origin, "memory"), of_memory, of_class)
        printed = pc.is_in(columns["evidence_kind"], pa.array(sorted(_UNTRUSTED_KINDS)))
        self.fill("declared_standing", pc.if_else(printed, "untrusted", standing))

    def fill_times(self, now: datetime) -> None:
        """`recorded_time` is the event time for classes with `own_time`, else now; never in the future."""
        happened, instant = self.columns["event_time"], pa.scalar(now.astimezone(UTC), TIMESTAMP)
        of_event = _mapped(self.columns["origin_class"], lambda c: _DEFAULTS[c].own_time, pa.bool_())
        own = truth(pc.and_kleene(of_event, pc.less_equal(happened, instant)))
        self.fill("recorded_time", pc.if_else(own, happened, instant))

    def fill_version(self) -> None:
        """A text without version and place gets its digest as version, so that a citation can be traced to it."""
        named = [self.columns[name].is_valid() for name in ("version", "line_start", "byte_start")]
        lost = pc.invert(pc.or_(pc.or_(named[0], named[1]), named[2]))
        if pc.any(lost).as_py():
            digest = pc.utf8_slice_codeunits(text_sha256(self.columns["text"]), 0, 16)
            versions = pc.if_else(
                lost, pc.binary_join_element_wise("sha256", digest, ":"), pa.scalar(None, pa.string())
            )
            self.fill("version", versions)

    def redact(self, masked: bool) -> pa.Array:
        """Mask secrets in place, and refuse them in keys; returns the byte ranges of the masks in `text`."""
        columns, before = self.columns, dict(self.columns)
        names = (*(("path",) if masked else _MASKED), *_KEYS, *_COMPARED)
        if not masked:
            columns["text"] = without_keys_over_rows(columns["text"], lambda: _codes(columns, _DOCUMENT))
        columns |= zip(names, redact_columns([columns[name] for name in names]), strict=True)
        for name in (*_KEYS, *_COMPARED):
            if not before[name].equals(columns[name]):
                pairs = zip(before[name].to_pylist(), columns[name].to_pylist(), strict=True)
                row = next(row for row, (given, masked) in enumerate(pairs) if given != masked)
                at, path, line = self.where(row), columns["path"][row].as_py(), columns["line_start"][row].as_py()
                place = f"{path}:{line}" if path and line and at.startswith("rows[") else at
                what = "an id" if name in _KEYS else "a name"
                hint = "it identifies the row, so it cannot be masked: use another value, or omit it"
                message = f"Expected {what} without a secret, got one with a secret - at {place}.{name}"
                raise InputError(message, hint=hint)
        spans = mask_spans(columns["text"])
        self.report.masked = pc.sum(pc.greater(pc.list_value_length(spans), 0)).as_py() or 0
        return spans.cast(_REDACTIONS.type)


def _nfc(source_id: str, at: str) -> str:
    if not unicodedata.is_normalized("NFC", source_id):
        hint = "two spellings would be two sources, and a denial would match only one; set the name with `--source`."
        raise InputError.described("a source id in Unicode NFC", "another form", at, hint=hint)
    return source_id


def _without_blank(column: pa.Array) -> pa.Array:
    return pc.if_else(pc.equal(column, ""), None, column)


def _codes(columns: dict[str, pa.Array], names: tuple[str, ...]) -> pa.Array:
    """A number per row, equal for rows with equal values in these columns."""
    rows = len(columns["text"])
    code = np.zeros(rows, dtype=np.int64)
    for name in names:
        values = columns[name].dictionary_encode().indices.cast(pa.int64()).fill_null(-1).to_numpy()
        _, code = np.unique(code * (rows + 2) + values, return_inverse=True)
    return pa.array(code)


def _occurrences(columns: dict[str, pa.Array]) -> pa.Array:
    """Fills nulls with the number of earlier rows with the same text at the same place in the same version."""
    given = columns["occurrence"]
    rows = len(given)
    if not given.null_count or not rows:
        return given
    code = _codes(
        columns, ("owner_project", "owner_user", "source_id", "path", "section", "version", "text")
    ).to_numpy()
    order = np.argsort(code, kind="stable")
    starts = np.flatnonzero(np.diff(code[order], prepend=-1))
    nth = np.empty(rows, dtype=np.int32)
    nth[order] = np.arange(rows) - np.repeat(starts, np.diff(np.append(starts, rows)))
    return pc.coalesce(given, pa.array(nth))


def _mapped(column: pa.Array, function: Callable[[str], Any], type_: pa.DataType | None = None) -> pa.Array:
    """`function` of every distinct value."""
    return _by_word(column, type_ or pa.string(), lambda word, _: function(word))


@dataclass(frozen=True, slots=True)
class _Defaults:
    """The defaults of one class of source. `own_time`: the event time is also the recorded time."""

    evidence_kind: str
    authority: int
    lifecycle: str
    declared_standing: str
    declared_safety: str = "safe"
    own_time: bool = True


_DEFAULTS = {
    "workspace": _Defaults("code", 1, "verified", "evidence", own_time=False),
    "project-doc": _Defaults("doc", 1, "verified", "evidence", own_time=False),
    "team-standard": _Defaults("rule", 1, "verified", "evidence", own_time=False),
    "user-preference": _Defaults("rule", 1, "verified", "hint"),
    "session-event": _Defaults("session-event", 1, "verified", "untrusted"),
    "artifact": _Defaults("tool-output", 1, "verified", "untrusted"),
    "memory": _Defaults("memory", 1, "candidate", "evidence"),
    "decision-record": _Defaults("decision-record", 1, "verified", "evidence"),
    "structured-sot": _Defaults("structured-fact", 1, "verified", "evidence", own_time=False),
    "external": _Defaults("doc", 0, "verified", "untrusted", "requires-review", own_time=False),
    "mcp-resource": _Defaults("tool-output", 0, "verified", "untrusted", "requires-review", own_time=False),
}
"""By `origin_class`. Zone (internal) and visibility (model-visible) are the same for all."""

_STANDING_OF_MEMORY = {"candidate": "hint", "deprecated": "history", "expired": "history", "revoked": "untrusted"}
"""The standing of a memory in states other than verified (S0.109, S0.110)."""

_UNTRUSTED_KINDS = frozenset({"test-log", "tool-output"})
"""Kinds that quote the output of a program, in any class of source."""

_OWNED_BY_USER = frozenset({"memory", "session-event", "user-preference"})
"""Classes whose rows belong to one user: the importing principal, unless the row names another."""

_CLASS_OF_KIND = {of.evidence_kind: name for name, of in reversed(_DEFAULTS.items())}
"""The class of a row that states neither a class nor a source of one: the first of its kind."""
_PREFIXES = {
    "standard": "team-standard",
    "preference": "user-preference",
    "log": "artifact",
    "sessions": "session-event",
}
"""Prefixes of sources beside the classes and their aliases. Without them logs would speak as evidence."""


def _class_of_source(source_id: str) -> str | None:
    """The class in the prefix `<kind>:` of a source id, if there is one."""
    prefix, colon, _ = source_id.partition(":")
    if not colon:
        return None
    prefix = _PREFIXES.get(prefix, ORIGIN_CLASSES.aliases.get(prefix, prefix))
    return prefix if prefix in ORIGIN_CLASSES else None


def _kind_of(origin_class: str, path: str | None) -> str:
    """The kind of a row that has none: by its path for files, else that of its class."""
    if path and origin_class in ("workspace", "project-doc", "artifact"):
        kind = file_kind(path).evidence_kind
        if origin_class != "artifact" or kind == "test-log":
            return kind
    return _DEFAULTS[origin_class].evidence_kind


def _as_declared(column: pa.Array, type_: pa.DataType, name: str, where: Where) -> pa.Array:
    """The column in its declared type, converted without loss from another type of the same kind. An instant is a text with a
    time zone, or a timestamp that has one. The type of a column without values does not matter.

    Raises:
        InputError: its type is of another kind, or a value does not convert; names the column, the types and the first such row.
    """
    given = column.type
    if given == type_:
        return column
    if pa.types.is_dictionary(given):
        return _as_declared(column.dictionary_decode(), type_, name, where)
    if column.null_count == len(column):
        return pa.nulls(len(column), type_)
    first, kind = pc.index(column.is_valid(), True).as_py(), _kind_of_type(given)
    if pa.types.is_timestamp(type_) and kind == "text":
        return _by_word(column, type_, lambda word, row: instant(word, f"{where(row)}.{name}"))
    if kind != _kind_of_type(type_):
        raise InputError.described(_type_name(type_), _type_name(given), f"{where(first)}.{name}")
    if pa.types.is_timestamp(given) and given.tz is None:
        hint = "store the column as a timestamp in UTC"
        raise InputError.described(TIME, "one without an offset", f"{where(first)}.{name}", hint=hint)
    finer = pa.types.is_timestamp(given) and given.unit == "ns"  # than the corpus stores

    def cast(rows: int) -> pa.Array | None:
        with suppress(pa.ArrowException):
            return column[:rows].cast(type_, safe=not finer)
        return None

    if (converted := cast(len(column))) is None:
        row = bisect_left(range(len(column)), True, key=lambda row: cast(row + 1) is None)
        expected = YEARS if kind == "time" else _type_name(type_)
        raise InputError.described(expected, f"{_type_name(given)} that does not fit", f"{where(row)}.{name}")
    return converted


def _kind_of_type(type_: pa.DataType) -> str:
    """What values of a type are; only those of one kind convert."""
    kinds = pa.types
    if kinds.is_string(type_) or kinds.is_large_string(type_) or kinds.is_string_view(type_):
        return "text"
    if kinds.is_list(type_) or kinds.is_large_list(type_):
        return "list"
    if kinds.is_timestamp(type_):
        return "time"
    return "number" if kinds.is_integer(type_) or kinds.is_floating(type_) else str(type_)


def _type_name(type_: pa.DataType) -> str:
    """A type without the names of its fields, which are untrusted like values."""
    if _kind_of_type(type_) == "list":
        return f"list of {_type_name(type_.value_type)}"
    return str(type_).partition("<")[0]


def _by_word(column: pa.Array, type_: pa.DataType, value: Callable[[str, int], Any]) -> pa.Array:
    """`value(word, row)` of each distinct word of a column, called once, with the first row that has it."""
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    codes, rows = np.unique(encoded.indices.fill_null(-1).to_numpy(), return_index=True)
    first = dict(zip(codes.tolist(), rows.tolist(), strict=True))
    words = encoded.dictionary.to_pylist()
    return pa.array([value(word, first[code]) for code, word in enumerate(words)], type_).take(encoded.indices)


def normalized_path(path: str) -> str | None:
    """One path in normal form; None if it leaves its root, is empty or contains NUL."""
    parts: list[str] = []
    for part in unicodedata.normalize("NFC", path).replace("\\", "/").split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts) if parts and "\0" not in path else None


def normalized(paths: pa.Array, where: Where) -> pa.Array:
    """The column `path` in normal form; an empty string becomes null.

    Args:
        paths: string[rows].
        where: names a row in messages.

    Raises:
        InputError: a path leaves the root of its source, is empty, or contains NUL.
    """

    def read(path: str, row: int) -> str | None:
        if (found := normalized_path(path)) is None and path:
            hint = "write it relative to the root of its source, such as src/app.py."
            expected, got = "a path inside its source", "one that leaves it or names nothing"
            raise InputError.described(expected, got, f"{where(row)}.path", hint=hint)
        return found

    return _by_word(paths, paths.type, read)
