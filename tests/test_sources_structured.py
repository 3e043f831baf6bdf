"""Structured records by key, with schemas that are checked, and CSV logs by time."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from scoped_retrieval.nodes.errors import InputError, PolicyError
from scoped_retrieval.pipeline.sources.importing import normalize
from scoped_retrieval.pipeline.sources.report import SourceReport
from scoped_retrieval.pipeline.sources.structured import read_logs, read_sot

NOW = datetime(2025, 10, 25, tzinfo=UTC)
CSV = 'id,fee,deadline\nENG-1,"$52,500",2025-11-15\nENG-2,18000,2026-02-01\n'
SCHEMA = "key: id\ncolumns: {id: id, fee: money, deadline: date}\nrequired: [fee]\n"


def written(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text, encoding="utf-8")
    return folder


def sot(path: Path, **options) -> list[dict]:
    found = list(read_sot(path, project="p", now=NOW, report=SourceReport(), **options))
    return pa.concat_tables(found).to_pylist() if found else []


def test_each_record_is_a_row_by_its_key(tmp_path: Path) -> None:
    first, second = sot(written(tmp_path, sot__csv=CSV))
    assert (first["entity"], first["origin_class"], first["evidence_kind"]) == (
        "ENG-1",
        "structured-sot",
        "structured-fact",
    )
    assert first["text"] == "id: ENG-1\nfee: $52,500\ndeadline: 2025-11-15\n"
    assert (first["line_start"], second["line_start"], first["authority"]) == (2, 3, 3)


def test_a_record_was_recorded_when_it_says_so_else_when_its_file_was_modified(tmp_path: Path) -> None:
    written(tmp_path, a__csv="id,last_modified\nA,2025-08-01\n", b__csv="id,x\nB,1\n")
    os.utime(tmp_path / "b.csv", (1_750_000_000, 1_750_000_000))
    assert [row["recorded_time"] for row in sot(tmp_path)] == [
        datetime(2025, 8, 1, tzinfo=UTC),
        datetime.fromtimestamp(1_750_000_000, UTC),
    ]


def test_paths_are_those_of_the_tree_that_holds_the_file_else_of_the_folder_named(tmp_path: Path) -> None:
    (tmp_path / "tree" / "sot").mkdir(parents=True)
    written(tmp_path / "tree" / "sot", x__csv=CSV)
    assert sot(tmp_path / "tree" / "sot", roots=[tmp_path / "tree"])[0]["path"] == "sot/x.csv"
    assert sot(tmp_path / "tree" / "sot" / "x.csv")[0]["path"] == "sot/x.csv"


def test_the_key_and_zone_of_a_record_are_its_columns(tmp_path: Path) -> None:
    written(
        tmp_path, x__csv="code,zone\nX-1,restricted\n", x__schema__yaml="key: code\ncolumns: {code: id, zone: text}\n"
    )
    (row,) = sot(tmp_path)
    assert (row["entity"], row["zone"]) == ("X-1", "restricted")


@pytest.mark.parametrize(
    ("csv", "message"),
    [
        (
            CSV.replace("2025-11-15", "soon"),
            "Expected a date such as 2025-11-15, got other text - at {}:2.deadline",
        ),
        (CSV.replace("18000", "cheap"), "Expected an amount such as 52500, $52,500 or 52500 USD, got other text"),
        (CSV.replace("fee", "fees"), "Expected one of id, fee, deadline, got 'fees' - at {}:2"),
        ("id,id\n1,2\n", "Expected each column once, got 'id' twice"),
    ],
)
def test_a_record_that_does_not_fit_is_named_by_file_row_and_column(tmp_path: Path, csv: str, message: str) -> None:
    written(tmp_path, x__csv=csv, x__schema__yaml=SCHEMA)
    with pytest.raises(InputError) as raised:
        sot(tmp_path)
    assert str(raised.value).startswith(message.replace("{}", str(tmp_path / "x.csv")))


@pytest.mark.parametrize("change", [("key: id", "key: idd"), ("[fee]", "[feee]")], ids=["key", "required"])
def test_a_schema_that_names_no_column_is_itself_named_also_where_there_are_no_records(
    tmp_path: Path, change: tuple[str, str]
) -> None:
    written(tmp_path, x__csv="id,fee,deadline\n", x__schema__yaml=SCHEMA.replace(*change))
    with pytest.raises(
        PolicyError, match=r"Expected one of the columns id, fee, deadline, got (idd|feee) - at .*schema"
    ):
        sot(tmp_path)


def test_each_line_of_a_log_happened_at_its_time_and_belongs_to_its_principal_or_who_imports(tmp_path: Path) -> None:
    written(
        tmp_path,
        a__csv="timestamp,principal,question\n2025-10-01T09:00:00Z,ana,why\n",
        b__csv="date,task\n2025-09-30,x\n",
        c__csv="date,user,task\n2025-09-29,,x\n",
    )
    read = pa.concat_tables(read_logs(tmp_path, project="p", now=NOW, report=SourceReport()))
    found = normalize(read, project="p", principal="bo", now=NOW)[0].to_pylist()
    assert [(row["owner_user"], row["event_time"].isoformat()) for row in found] == [
        ("ana", "2025-10-01T09:00:00+00:00"),
        ("bo", "2025-09-30T00:00:00+00:00"),
        ("bo", "2025-09-29T00:00:00+00:00"),
    ]
