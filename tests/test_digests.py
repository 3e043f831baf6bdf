"""Digests cover what a table says, not how it is laid out."""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from scoped_retrieval.nodes.columns.digests import digests, forms, named_digest, stored_form, table_digest
from scoped_retrieval.nodes.schema import Column, float64, int32, spans, string, strings, table, text

TABLE = table(
    "things",
    key=("request_id",),
    order=("request_id",),
    doc="For these tests.",
    request_id=string("whose", digest=False),
    label=string("a name", nullable=True),
    rank=int32("a number", nullable=True),
    score=float64("another"),
    tags=strings("words", nullable=True),
    cuts=spans("ranges", nullable=True),
    words=text("free text", nullable=True),
    row=int32("envelope", digest=False),
)

LONG = 64
"""Longer than most values."""

LISTS = table(
    "lists",
    key=("request_id",),
    order=("request_id",),
    doc="Columns that are read together where they have few rows.",
    request_id=string("whose"),
    first=strings("words", nullable=True),
    second=strings("words"),
    nested=Column(pa.list_(pa.list_(pa.string())), "words of words"),
    path=string("short or long"),
    reason=string("short or long", nullable=True),
)

LISTED = [
    {"request_id": "a", "first": ["p", "q"], "second": [], "nested": [["r"], [], ["s" * 2 * LONG]], "path": "x" * 3 * LONG, "reason": None},
    {"request_id": "a", "first": None, "second": ["p"], "nested": [], "path": "short", "reason": "y" * LONG},
    {"request_id": "b", "first": [], "second": ["q", "q"], "nested": [[], ["t", "u"]], "path": "x" * 3 * LONG, "reason": "y" * (LONG + 1)},
    {"request_id": "c", "first": ["q"], "second": ["z" * 2 * LONG, "w"], "nested": [["r"]], "path": "", "reason": "y"},
]  # fmt: skip

ROWS = [
    {"request_id": "a", "label": "x", "rank": 1, "score": 0.5, "tags": ["p", ""], "cuts": [{"start": 0, "end": 3}], "words": "hey", "row": 7},
    {"request_id": "a", "label": None, "rank": None, "score": -0.0, "tags": None, "cuts": None, "words": None, "row": 8},
    {"request_id": "b", "label": "", "rank": 0, "score": 0.0, "tags": [], "cuts": [], "words": "", "row": 9},
]  # fmt: skip


ENVELOPE = frozenset({"request_id", "row", "cuts.start"})


def of_rows(table: pa.Table, bounds: list[int] | None = None, without: frozenset[str] = frozenset()) -> list[str]:
    """The digest of each range of rows, by default of each row."""
    columns = {name: table[name].combine_chunks() for name in table.column_names}
    return [one.hex() for one in digests(columns, np.array(bounds or range(len(table) + 1)), without=without)]


def rows_table() -> pa.Table:
    return TABLE.from_rows(ROWS)


def test_the_form_of_version_6_keeps_its_golden_values():
    assert table_digest(rows_table()) == GOLDEN_TABLE
    assert of_rows(rows_table(), [0, 2, 3]) == GOLDEN_RANGES
    assert named_digest({"b": "2", "a": "1"}) == GOLDEN_NAMED


def test_the_envelope_does_not_count():
    moved = TABLE.from_rows(
        [
            row | {"row": 0, "request_id": "z"} | ({"cuts": [{"start": 1, "end": 3}]} if row["cuts"] else {})
            for row in ROWS
        ]
    )
    assert of_rows(moved, without=ENVELOPE) == of_rows(rows_table(), without=ENVELOPE)
    assert of_rows(moved) != of_rows(rows_table())


def test_erased_text_leaves_the_digest_checkable():
    stored = stored_form(rows_table(), TABLE)
    assert stored["words"].to_pylist() == [hashlib.sha256(b"hey").hexdigest(), None, hashlib.sha256(b"").hexdigest()]
    assert stored.schema.equals(TABLE.stored_schema)


def test_the_digest_of_some_rows_is_the_same_alone_and_beside_others():
    for rows in (rows_table(), LISTS.from_rows(LISTED)):
        both = of_rows(rows, [0, 2, rows.num_rows])
        assert both == [*of_rows(rows.slice(0, 2), [0, 2]), *of_rows(rows.slice(2), [0, rows.num_rows - 2])]
        assert len({*of_rows(rows, [0, 1, 1, rows.num_rows])}) == 3


def test_a_digest_covers_names_types_and_its_prefix():
    table = rows_table()
    renamed = table.rename_columns(["x" if name == "label" else name for name in table.column_names])
    cast = table.set_column(2, "rank", table["rank"].cast(pa.int64()))
    columns = {name: table[name].combine_chunks() for name in table.column_names}
    prefixed = digests(columns, np.array([0, 3]), "p")[0].hex()
    assert len({table_digest(table), table_digest(renamed), table_digest(cast), prefixed}) == 4


cells = st.fixed_dictionaries(
    {
        "request_id": st.sampled_from("abc"),
        "label": st.none() | st.text(max_size=4),
        "rank": st.none() | st.integers(-5, 5),
        "score": st.floats(allow_nan=True, width=32),
        "tags": st.none() | st.lists(st.none() | st.text(max_size=2), max_size=3),
        "cuts": st.none()
        | st.lists(st.fixed_dictionaries({"start": st.integers(0, 9), "end": st.integers(0, 9)}), max_size=2),
        "words": st.none() | st.text(max_size=4),
        "row": st.integers(0, 9),
    }
)


@given(rows=st.lists(cells, max_size=8), cut=st.integers(0, 8), pad=st.integers(0, 3))
def test_layout_never_counts(rows: list[dict[str, object]], cut: int, pad: int):
    plain = TABLE.from_rows(rows)
    chunked = pa.concat_tables([plain.slice(0, cut), plain.slice(cut)])
    padded = TABLE.from_rows([ROWS[0]] * pad + rows + [ROWS[1]]).slice(pad, len(rows))
    for other in (chunked, padded):
        assert table_digest(other) == table_digest(plain)
        assert of_rows(other) == of_rows(plain)


@given(left=st.lists(cells, max_size=4), right=st.lists(cells, max_size=4))
def test_equal_digests_mean_equal_rows(left: list[dict[str, object]], right: list[dict[str, object]]):
    def said(rows: list[dict[str, object]]) -> str:
        return repr([dict(sorted((row | {"score": np.float64(row["score"]).tobytes()}).items())) for row in rows])

    one, other = TABLE.from_rows(left), TABLE.from_rows(right)
    assert (table_digest(one) == table_digest(other)) == (said(left) == said(right))
    columns, others = ([column.combine_chunks() for column in table.columns] for table in (one, other))
    ends = ([0, len(left)], [0, len(right)])
    assert (forms(columns, np.array(ends[0])) == forms(others, np.array(ends[1]))) == (said(left) == said(right))


GOLDEN_TABLE = "d8cee938c404daf7fc5363f8ad1422961d660695f80aec82a672bc1a6f139c09"
GOLDEN_RANGES = [
    "141bda71bc3bb2dc386396fdb331bfdaa097f80aad485e257fe3953053f11859",
    "a955f180757971930cfeeee032d75ad1a7f6721419011b6c4627d47a98c06677",
]
GOLDEN_NAMED = "fb154ce7e9b14bb75c542688de1a336aaa445be4171cd4b9bd4b5d2d556fb41b"
