from __future__ import annotations

import base64
import hashlib
import random
from typing import Any

import pyarrow as pa
import pytest
from corpus_rows import day, import_rows
from scoped_retrieval.nodes.tables import EVIDENCE
from scoped_retrieval.pipeline.corpus.identity import DESCRIBING_COLUMNS, ID_COLUMNS, MultisetHash, evidence_ids
from scoped_retrieval.pipeline.corpus.incoming import incoming


def ids(*rows: dict[str, Any]) -> list[str]:
    """The id of each row."""
    return [incoming(import_rows(dict(row)), day(1)).evidence["evidence_id"][0].as_py() for row in rows]


def test_an_id_is_130_bits_of_sha256_in_base32hex() -> None:
    [found] = ids({"text": "one"})
    assert len(found) == 26
    assert set(found) <= set("0123456789abcdefghijklmnopqrstuv")
    assert base64.b32hexdecode(found.upper() + "0" * 6)


def test_an_id_has_not_changed_since_it_was_first_given() -> None:
    assert ids({"text": "one"}) == ["o1rbnu1a42gbf176o7ve6mi6p3"]


@pytest.mark.parametrize(
    "change",
    [
        {"owner_project": "bank"}, {"owner_user": "ana"}, {"source_id": "workspace:other"}, {"path": "b.md"},
        {"path": None}, {"path": ""}, {"section": "S"}, {"section": ""}, {"text": "two"}, {"occurrence": 1},
        {"branch": "dev"}, {"workspace_root": "/w"},
    ],
)  # fmt: skip
def test_everything_an_id_is_made_of_changes_it(change: dict[str, Any]) -> None:
    one, other = ids({"text": "one"}, {"text": "one"} | change)
    assert one != other


def test_fields_of_an_id_never_run_into_each_other() -> None:
    one, other = ids({"text": "t", "path": "ab", "section": "c"}, {"text": "t", "path": "a", "section": "bc"})
    assert one != other


@pytest.mark.parametrize(
    "change", [{"version": "c2"}, {"line_start": 9}, {"recorded_time": day(3)}, {"zone": "public"}, {"title": "T"}]
)
def test_times_places_and_descriptions_are_no_part_of_an_id(change: dict[str, Any]) -> None:
    one, other = ids({"text": "one"}, {"text": "one"} | change)
    assert one == other


def digest(row: dict[str, Any], now: int = 1) -> bytes:
    """The digest of what describes a row."""
    return incoming(import_rows(row), day(now)).evidence["row_digest"][0].as_py()


@pytest.mark.parametrize(
    "change",
    [
        {"zone": "public"}, {"zone": ""}, {"authority": 0}, {"confidence": 0.5}, {"principals": []}, {"title": "T"},
        {"principals": ["ana"]}, {"valid_from": day(1)}, {"generated": True}, {"redactions": [{"start": 0, "end": 1}]},
    ],
)  # fmt: skip
def test_a_row_digest_covers_what_describes_a_row(change: dict[str, Any]) -> None:
    assert digest({"text": "one"} | change) != digest({"text": "one"})


def test_a_row_digest_covers_every_column_but_the_envelope() -> None:
    covered = {*DESCRIBING_COLUMNS, *ID_COLUMNS} - {"occurrence"}
    assert set(EVIDENCE.names()) - covered == {"evidence_id", "captured_time", "length", "text"}
    assert digest({"text": "one"}, now=1) == digest({"text": "one", "version": "c2", "line_start": 7}, now=2)


def test_a_multiset_hash_ignores_order_and_takes_back_what_it_added() -> None:
    elements = [b"a", b"b", b"b", b"c"]
    shuffled = random.Random(1).sample(elements, len(elements))
    whole = MultisetHash.of(elements)
    assert MultisetHash.of(shuffled) == whole == MultisetHash.of(elements[:1]) + MultisetHash.of(elements[1:])
    assert MultisetHash.of([b"a", b"b", b"c"]) != whole
    assert whole - MultisetHash.of([b"b", b"c"]) == MultisetHash.of([b"a", b"b"])
    assert MultisetHash.from_hex(whole.hex()) == whole
    assert MultisetHash.of([b"ab"]) != MultisetHash.of([b"a", b"b"])


def test_one_element_adds_the_lanes_of_its_shake_digest() -> None:
    assert MultisetHash.of([b"abc"]).hex() == hashlib.shake_128(b"abc").hexdigest(2048)


def test_ids_come_in_the_order_of_rows() -> None:
    rows = pa.concat_tables([import_rows({"text": text}) for text in ("one", "two")])
    table = pa.table({name: rows[name] for name in ID_COLUMNS if name != "text_sha256"})
    table = table.append_column(
        "text_sha256", pa.array([hashlib.sha256(t.encode()).hexdigest() for t in ("one", "two")])
    )
    occurrence = table.schema.get_field_index("occurrence")
    table = table.set_column(occurrence, "occurrence", pa.array([0, 0], pa.int32()))
    assert evidence_ids(table).to_pylist() == ids({"text": "one"}, {"text": "two"})
