"""How a table is declared: name, key, order, and for every column its type, doc and audience, once.

Node annotations, run-time checks, Parquet metadata, the data dictionary and JSON schemas are all read from the
declaration; `nodes/tables/` holds the declarations themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Annotated, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from .errors import SchemaError

Audience = Literal["caller", "audit"]

TIMESTAMP = pa.timestamp("us", tz="UTC")
SPAN = pa.struct([pa.field("start", pa.int64(), False), pa.field("end", pa.int64(), False)])
"""A half-open byte range of a text: [start, end)."""


@dataclass(frozen=True, slots=True)
class Column:
    """One declared column.

    `free_text` marks what people or files wrote: a run stores it by SHA-256 in `texts/`, never in a table.
    `digest=False` marks envelope columns (ids of the capture, wall times) that no digest covers. `stored=False` marks those
    that mean nothing after the run, which no record has. `of` names the table that states the value, `table.column` where
    its column has another name, `table.*` where it follows from several: a record has it there alone, and views take it from
    there.
    """

    type: pa.DataType
    doc: str
    nullable: bool = False
    audience: Audience = "audit"
    free_text: bool = False
    digest: bool = True
    stored: bool = True
    of: str = ""


@dataclass(frozen=True, eq=False)
class Table:
    """One declared table, compared by identity; `annotation` is the type in a node's signature."""

    name: str
    doc: str
    key: tuple[str, ...]
    order: tuple[str, ...]
    columns: Mapping[str, Column]
    extra: Column | None = None
    """For tables that plugins extend: the declaration of every added column, whose name contains a dot."""

    @cached_property
    def schema(self) -> pa.Schema:
        """The Arrow schema, columns in declared order."""
        return pa.schema([pa.field(name, c.type, c.nullable) for name, c in self.columns.items()])

    @cached_property
    def stored_schema(self) -> pa.Schema:
        """The schema of the table in a run: free text as string hashes."""
        return pa.schema([pa.field(name, _stored_type(c), c.nullable) for name, c in self.columns.items()])

    @property
    def annotation(self) -> Any:
        """`Annotated[pa.Table, self]`, for signatures."""
        return Annotated[pa.Table, self]

    def names(self, *, audience: Audience | None = None, free_text: bool | None = None) -> list[str]:
        """Column names, optionally only those of one audience or (not) free text."""
        return [
            name
            for name, c in self.columns.items()
            if (audience is None or c.audience == audience) and (free_text is None or c.free_text == free_text)
        ]

    def take(self, *names: str, **changes: Any) -> dict[str, Column]:
        """Some of its columns, for another table that has them too; `changes` apply to each of them."""
        return {name: replace(self.columns[name], **changes) for name in names}

    def for_callers(self, table: pa.Table) -> pa.Table:
        """The part a caller may see: columns and rows whose audience is the caller."""
        if "audience" in self.columns:
            table = table.filter(pc.equal(table["audience"], "caller"))
        further = [name for name in table.column_names if name not in self.columns and self.shows(name)]
        return table.select([*self.names(audience="caller"), *further])

    def column(self, name: str) -> Column | None:
        """A column, declared or added by a plugin; None if it has no such column."""
        return self.columns.get(name) or (self.extra if "." in name else None)

    def shows(self, name: str) -> bool:
        """Whether a caller may see a column, declared or added by a plugin."""
        column = self.column(name)
        return column is not None and column.audience == "caller"

    def empty(self) -> pa.Table:
        """A table without rows."""
        return self._empty

    @cached_property
    def _empty(self) -> pa.Table:
        return self.schema.empty_table()

    def build(self, columns: Mapping[str, Any], rows: int | None = None) -> pa.Table:
        """A table from arrays or sequences by column name; a nullable column that is missing becomes null.

        Raises:
            SchemaError: a required column is missing, a name is unknown, or a value has the wrong type.
        """
        schema = self.schema
        if columns.keys() != self.columns.keys():
            schema, columns = self._completed(columns, rows)
        try:
            return pa.Table.from_pydict(columns, schema=schema)
        except _NOT_CONVERTED:
            self._expect_convert(columns, schema)
            raise

    def _completed(self, columns: Mapping[str, Any], rows: int | None) -> tuple[pa.Schema, dict[str, Any]]:
        """The schema with the columns of plugins, and every column of it: nulls for those that are not given."""
        schema = self.widened(self.schema, columns)
        if unknown := sorted(columns.keys() - {*schema.names}):
            raise SchemaError(
                f"Expected the columns of {self.name}, got unknown columns {', '.join(unknown)} - at {self.name}"
            )
        for field in schema:
            if field.name not in columns and not field.nullable:
                raise SchemaError(f"Expected column {field.name}, got none - at {self.name}")
        if rows is None:
            rows = len(next(iter(columns.values()))) if columns else 0
        return schema, {f.name: columns[f.name] if f.name in columns else pa.nulls(rows, f.type) for f in schema}

    def from_rows(self, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
        """A table from dictionaries: for few rows, small policies and literal examples; a missing value is null.

        Columns of plugins go by name.
        """
        schema = self.widened(self.schema, sorted({*chain.from_iterable(rows)})) if self.extra else self.schema
        try:
            return pa.Table.from_arrays(pa.array(rows, pa.struct(list(schema))).flatten(), schema=schema)
        except _NOT_CONVERTED:
            self._expect_convert({name: [row.get(name) for row in rows] for name in schema.names}, schema)
            raise

    def _expect_convert(self, columns: Mapping[str, Any], schema: pa.Schema) -> None:
        for field in schema:
            try:
                pa.Table.from_pydict({field.name: columns[field.name]}, schema=pa.schema([field]))
            except _NOT_CONVERTED as error:
                raise SchemaError(
                    f"Expected {field.type}, got values that do not convert - at {self.name}.{field.name}"
                ) from error

    def check(self, table: pa.Table) -> pa.Table:
        """Returns the table if its columns and types are the declared ones and no required value is null."""
        if not isinstance(table, pa.Table):
            raise SchemaError(f"Expected a pyarrow Table, got {type(table).__name__} - at {self.name}")
        expected, got = self.schema, table.schema
        if not got.equals(expected):
            expected = self.widened(expected, got.names)
            if expected.names != got.names:
                raise SchemaError(
                    f"Expected columns {', '.join(expected.names)}, got {', '.join(got.names)} - at {self.name}"
                )
            for field, given in zip(expected, got, strict=True):
                if given.type != field.type:
                    raise SchemaError(f"Expected {field.type}, got {given.type} - at {self.name}.{field.name}")
        further = range(len(self.columns), len(expected)) if self.extra is not None and not self.extra.nullable else ()
        columns = table.columns
        for place in (*self._required, *further):
            if columns[place].null_count:
                raise SchemaError(f"Expected a value in every row, got nulls - at {self.name}.{expected.names[place]}")
        return table

    def widened(self, schema: pa.Schema, names: Iterable[str]) -> pa.Schema:
        """The schema plus those of the names that are columns plugins may add."""
        for name in names:
            if name not in self.columns and (column := self.column(name)):
                schema = schema.append(pa.field(name, column.type, column.nullable))
        return schema

    @cached_property
    def _required(self) -> tuple[int, ...]:
        """Positions of the columns that must not be null."""
        return tuple(place for place, column in enumerate(self.columns.values()) if not column.nullable)


def table(
    name: str,
    *,
    key: Sequence[str],
    order: Sequence[str],
    doc: str,
    extra: Column | None = None,
    **columns: Column,
) -> Table:
    """Declare a table: `key` identifies a row, `order` is how rows are sorted.

    `extra` declares the columns that plugins add, for tables that plugins extend.
    """
    return Table(name, doc, tuple(key), tuple(order), dict(columns), extra)


def string(doc: str, **kind: Any) -> Column:
    """Unicode text of bounded length: an id, a name, a value of a closed list."""
    return Column(pa.string(), doc, **kind)


def text(doc: str, **kind: Any) -> Column:
    """Free text that people or files wrote; a run stores it separately, by SHA-256."""
    return Column(pa.large_string(), doc, free_text=True, **kind)


def strings(doc: str, **kind: Any) -> Column:
    """A list of strings."""
    return Column(pa.list_(pa.string()), doc, **kind)


def texts(doc: str, **kind: Any) -> Column:
    """A list of free texts; a run stores each separately, by SHA-256."""
    return Column(pa.list_(pa.large_string()), doc, free_text=True, **kind)


def int32(doc: str, **kind: Any) -> Column:
    return Column(pa.int32(), doc, **kind)


def int64(doc: str, **kind: Any) -> Column:
    return Column(pa.int64(), doc, **kind)


def int8s(doc: str, **kind: Any) -> Column:
    return Column(pa.large_list(pa.int8()), doc, **kind)


def int64s(doc: str, **kind: Any) -> Column:
    """A list of int64."""
    return Column(pa.list_(pa.int64()), doc, **kind)


def place(doc: str) -> Column:
    """The number of a row of another table of the shard."""
    return int64(doc, digest=False, stored=False)


def float64(doc: str, **kind: Any) -> Column:
    return Column(pa.float64(), doc, **kind)


def boolean(doc: str, **kind: Any) -> Column:
    return Column(pa.bool_(), doc, **kind)


def timestamp(doc: str, **kind: Any) -> Column:
    """An instant in UTC, microseconds."""
    return Column(TIMESTAMP, doc, **kind)


def spans(doc: str, **kind: Any) -> Column:
    """A list of half-open byte ranges."""
    return Column(pa.list_(SPAN), doc, **kind)


def caller(column: Column) -> Column:
    """The same column with audience `caller`."""
    return replace(column, audience="caller")


def _stored_type(column: Column) -> pa.DataType:
    return _hashes(column.type) if column.free_text else column.type


def _hashes(texts: pa.DataType) -> pa.DataType:
    """The type of the hashes of texts, or of lists of them."""
    return pa.list_(_hashes(texts.value_type)) if pa.types.is_list(texts) else pa.string()


_NOT_CONVERTED = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError, OverflowError)
