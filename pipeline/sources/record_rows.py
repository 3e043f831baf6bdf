"""What readers of records share: the files at a path, the fields that every record may have, chunks of long texts, tables.

Gives: `reads_files`, which makes a reader of a function of one file, and for such functions `rows_of_lines`, `common_fields`,
`rows_of_text` and `file_rows`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import wraps
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic.alias_generators import to_camel

from ...nodes.errors import InputError
from ...nodes.schema import TIMESTAMP
from ...nodes.tables import IMPORT_ROWS
from ..parsing.data_files import bytes_of
from ..parsing.values import authority_rank, whole
from ..redaction.masking import masked_digest
from .chunking import read_document
from .file_kinds import file_kind
from .files import readable, table_of
from .headers import Header, read_header
from .jsonl import Record, read_lines
from .parts import FORMATS
from .report import PLACE, SourceReport
from .selection import file_at, walk

ROW_CHARACTERS = 4_000
"""A record's text up to this length is one row; a longer text is chunked like a file."""
_LINES = ("line_start", "line_end", "byte_start", "byte_end")
_SCHEMA = IMPORT_ROWS.schema.append(pa.field(PLACE, pa.string()))

Row = dict[str, Any]
Names = tuple[str, ...]


def reads_files(
    origin_class: str,
    suffixes: Sequence[str],
    *,
    append_only: bool = False,
    finish: Callable[[list[Row], SourceReport], None] = lambda rows, report: None,
) -> Callable[[Callable[..., Iterable[Row]]], Callable[..., Iterator[pa.Table]]]:
    """Makes a reader of `of_file(file, place, base, *, path, report, now, ...)`, which gives the rows of one file, at `place`
    below the path; `base` are the columns that all rows have. `finish` may change the rows of all files, and leave some out.

    The reader gives one table of the rows of a file, or of the files of a folder, counted: no key whose lines are rows ends
    with a table. `source_id` is the class and a `name`, by default that of the folder or file. The source is added to
    `report.complete_sources`, unless it is `append_only`. It raises InputError naming file, line and field.
    """

    def reader(of_file: Callable[..., Iterable[Row]]) -> Callable[..., Iterator[pa.Table]]:
        @wraps(of_file)
        def read(
            path: str | PathLike[str],
            *,
            project: str,
            now: datetime,
            report: SourceReport,
            name: str | None = None,
            **given: Any,
        ) -> Iterator[pa.Table]:
            root, rows = Path(path).resolve(), list[Row]()
            source = f"{origin_class}:{name or (root.stem if root.is_file() else root.name) or 'root'}"
            for file, place in files_of(path, suffixes, report):
                base = {"source_id": source, "origin_class": origin_class, "owner_project": project}
                rows += of_file(file, place, base, path=Path(path), report=report, now=now, **given)
            finish(rows, report)
            report.read += len(rows)
            if rows:
                yield record_table(rows)
            if not append_only:
                report.complete_sources.add(source)

        return read

    return reader


def files_of(path: str | PathLike[str], suffixes: Sequence[str], report: SourceReport) -> list[tuple[Path, str]]:
    """The file itself, or the files of a folder with one of the suffixes (none: all), sorted, each with its path in the
    folder. Symbolic links and hidden files are left out; other files are counted in the report.

    Raises:
        InputError: there is nothing at `path`, or a file with another suffix.
    """
    root = Path(path)
    if root.is_file():
        if suffixes and root.suffix.lower() not in suffixes:
            raise InputError.expected(f"a folder or a file ending in {', '.join(suffixes)}", root.name, str(root))
        return [(root, root.name)]
    if not root.is_dir():
        raise InputError.expected("a file or a folder", None, str(root))
    found = list[tuple[Path, str]]()
    for raw in sorted(walk(root, lambda name: Path(name).name.startswith("."), SourceReport())):
        if (file := file_at(root, raw, report)) is None:
            continue
        place = file[0]
        if suffixes and Path(place).suffix.lower() not in suffixes:
            report.skip(f"of another kind than {', '.join(suffixes)}", at=place)
        else:
            found.append((root / place, place))
    return found


def rows_of_lines(file: Path, of_record: Callable[[Record], Iterable[Row]], report: SourceReport) -> list[Row]:
    """The rows of each record of JSON lines; fields that no reader used are noted, with the number of records."""
    records = read_lines(file)
    rows = [row for record in records for row in of_record(record)]
    unread = Counter(name for record in records for name in record.unread())
    if unread:
        listed = ", ".join(f"{name} ({count})" for name, count in sorted(unread.items()))
        report.note(f"{file.name}: fields not read: {listed}")
    return rows


_OTHER_NAMES = {
    "uri": ("url", "source_path"), "test_suite": ("suite",), "owner_user": ("user", "userId"), "zone": ("sensitivity",),
    "declared_visibility": ("visibility",), "declared_safety": ("safety",), "source_refs": ("sourceRef",),
    "recorded_time": ("recordedAt",), "conflict_set": ("conflictSetId",), "authority": ("trustTier",),
}  # fmt: skip
_OF_ANY_RECORD = {
    name: (to_camel(name), *_OTHER_NAMES.get(name, ()))
    for name in (*_OTHER_NAMES, "title", "domain", "level", "namespace", "branch", "workspace_root", "session_id", "principals",
                 "applicable_roles", "excluded_roles", "tags", "valid_from", "valid_until", "superseded_by", "superseded_at",
                 "supersedes", "language", "version")
}  # fmt: skip
"""The columns that a record of any kind may state, with their names there."""


def common_fields(record: Record, ids: Names = (), kinds: Names = (), times: Names = ()) -> Row:
    """The fields that any record may have, and its id, kind and time under the names of its reader: the first name that it
    has is used.
    """
    row: Row = {PLACE: record.at, "entity": record.identifier(*ids), "document_type": record.text(*kinds)}
    return row | {
        "event_time": record.instant(*times),
        **{column: of_column(record, column, *names) for column, names in _OF_ANY_RECORD.items()},
    }


def of_column(record: Record, column: str, *names: str) -> Any:
    """The value of a column of IMPORT_ROWS in a record, by the type of the column."""
    type_ = IMPORT_ROWS.columns[column].type
    if column == "authority":
        return record.read(names, authority_rank)
    if pa.types.is_large_list(type_):
        return record.read(names, _bytes)
    if pa.types.is_integer(type_):
        return record.whole(*names, most=2 ** (type_.bit_width - 1) - 1)
    of_type = {
        TIMESTAMP: record.instant,
        pa.list_(pa.string()): record.strings,
        pa.bool_(): record.flag,
        pa.float64(): record.number,
    }
    return of_type.get(type_, record.identifier)(*names)


def _bytes(value: Any, at: str) -> list[int]:
    if not isinstance(value, list):
        raise InputError.of_kind("a list", value, at)
    return [whole(one, at, -128, 127) for one in value]


def rows_of_text(text: str, name: str, row: Mapping[str, Any], *, own_lines: bool = True) -> Iterator[Row]:
    """One row, or one per chunk of a long text. `name` determines the kind of file the text is chunked as.

    Rows without a version get `masked_digest` of the text. With `own_lines` the text counts as a document, with lines and
    bytes of its own; else those in `row` are kept.
    """
    row = {**row, "version": row.get("version") or masked_digest(text)}
    if len(text) <= ROW_CHARACTERS and file_kind(name).splitter not in FORMATS:
        lines = (1, text.rstrip("\n").count("\n") + 1, 0, len(text.encode()))
        yield {**row, **(dict(zip(_LINES, lines, strict=True)) if own_lines else {}), "text": text}
        return
    for position, chunk in enumerate(read_document(name, text).chunks, start=1):
        section = " > ".join(part for part in (row.get("section"), chunk.section or f"part {position}") if part)
        kept = {} if own_lines else {name: row.get(name) for name in _LINES}
        yield {**row, **chunk.columns(), **kept, "section": section}


def file_rows(
    file: Path,
    place: str,
    base: Mapping[str, Any],
    report: SourceReport,
    of_header: Callable[[Header, str | None], Mapping[str, Any] | None] = lambda header, title: {},
) -> list[Row]:
    """The chunks of one document, with the fields of its header below those of `base`; none, with the reason counted, if it is
    skipped. `of_header(header, title)` gives columns that precede both, or None to leave the document out.
    """
    kind = file_kind(place)
    text, reason = readable(kind, bytes_of(file))
    if text is None:
        report.skip(reason, at=place)
        return []
    header, document = read_header(text, str(file)), read_document(place, text)
    stated = common_fields(header, ("id",), ("document_type", "type", "entity"), ("date",))
    title = stated["title"] or document.title
    own = of_header(header, title)
    if own is None:
        return []
    common = {
        **stated,
        "recorded_time": stated["event_time"],
        "language": kind.language,
        "generated": False,
        **base,
        "title": title,
        "path": place,
        "version": stated["version"] or document.version,
        **own,
    }
    return [{**common, **chunk.columns()} for chunk in document.chunks if chunk.line_end > header.above]


def record_table(rows: Sequence[Row]) -> pa.Table:
    """The rows as one table with the columns that any of them has, in declared order and type, and their places."""
    present = {name for row in rows for name, value in row.items() if value is not None} | {"source_id", "text"}
    return table_of(rows, pa.schema([field for field in _SCHEMA if field.name in present]))
