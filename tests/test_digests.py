"""Digests cover what a table says, not how it is laid out."""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from scoped_retrieval.nodes.columns.digests import (
    digests_by_request,
    named_digest,
    stored_form,
    table_digest,
)
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


def by_request(table: pa.Table, ids: pa.Array) -> list[bytes]:
    return digests_by_request([(table, TABLE)], ids)


def rows_table() -> pa.Table:
    return TABLE.from_rows(ROWS)


def test_the_form_of_version_5_keeps_its_golden_values():
    assert table_digest(rows_table(), TABLE) == GOLDEN_TABLE
    assert [d.hex() for d in by_request(rows_table(), pa.array(["a", "b"]))] == GOLDEN_REQUESTS
    assert named_digest({"b": "2", "a": "1"}) == GOLDEN_NAMED


def test_the_envelope_does_not_count():
    moved = TABLE.from_rows([row | {"row": 0, "request_id": "z"} for row in ROWS])
    assert table_digest(moved, TABLE) == table_digest(rows_table(), TABLE)


def test_erased_text_leaves_the_digest_checkable():
    stored = stored_form(rows_table(), TABLE)
    assert stored["words"].to_pylist() == [hashlib.sha256(b"hey").hexdigest(), None, hashlib.sha256(b"").hexdigest()]
    assert table_digest(stored, TABLE) == table_digest(rows_table(), TABLE)
    assert stored_form(stored, TABLE).equals(stored)


def test_the_digest_over_several_tables_binds_the_rows_of_each():
    ids, rows = pa.array(["a", "b"]), rows_table()
    other = LISTS.from_rows(LISTED)
    both = digests_by_request([(rows, TABLE), (other, LISTS)], ids)
    alone = digests_by_request([(rows.slice(0, 2), TABLE), (other.slice(0, 2), LISTS)], ids)
    assert both[0] == alone[0] and both[1] != alone[1]
    moved = [(rows.slice(2), TABLE), (pa.concat_tables([rows.slice(0, 2)]), TABLE)]
    assert digests_by_request(moved, ids) != digests_by_request(moved[::-1], ids)
    assert digests_by_request(moved, ids, "p") != digests_by_request(moved, ids)


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
    ids = pa.array(["a", "b", "c"])
    for other in (chunked, padded):
        assert table_digest(other, TABLE) == table_digest(plain, TABLE)
        assert by_request(other, ids) == by_request(plain, ids)


@given(left=st.lists(cells, max_size=4), right=st.lists(cells, max_size=4))
def test_equal_digests_mean_equal_rows(left: list[dict[str, object]], right: list[dict[str, object]]):
    def said(rows: list[dict[str, object]]) -> str:
        kept = [{k: v for k, v in sorted(row.items()) if TABLE.columns[k].digest} for row in rows]
        return repr([row | {"score": np.float64(row["score"]).tobytes()} for row in kept])

    same = table_digest(TABLE.from_rows(left), TABLE) == table_digest(TABLE.from_rows(right), TABLE)
    assert same == (said(left) == said(right))


GOLDEN_TABLE = "47fdfa971d057c12561d6b210e0636aee3f4d164fd4bd8404375d87371f937e9"
GOLDEN_REQUESTS = [
    "75655a3c8c090a722d7478285090045f4d53384124532d4187c0674c3c645a23",
    "5ddbfaf2381bd7bdeb0df7234415124b35857488d6d9b10f243838e69f4919ce",
]
GOLDEN_NAMED = "1b7caae2e79ba1dbedfa1a75985f9c735aae2728289f2713229c8afebafb2862"
