"""Files of requests: a row that cannot be read fails alone, and every format gives the same values."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from scoped_retrieval.pipeline.request_files import Unreadable, read_requests
from scoped_retrieval.pipeline.requests import resolve_requests

ROW: dict[str, Any] = {"project": "shop", "purpose": "fix-test", "question": "why does it fail?"}


def resolved(*rows: Any) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The requests, and the message of each row that failed."""
    requests, failures = resolve_requests(rows, principal="ana", asked_at=datetime(2025, 6, 1, 12, tzinfo=UTC))
    return requests.to_pylist(), {row["request_id"]: row["error"] for row in failures.to_pylist()}


def test_a_line_in_another_encoding_fails_alone(tmp_path: Path):
    good, bad = b'{"project": "shop", "purpose": "fix-test", "question": "x"}\n', b'{"question": "\xff"}\n'
    (tmp_path / "r.jsonl").write_bytes(bad + good + bad)
    (tmp_path / "r.csv").write_bytes(b"question,project,purpose\n\xff,shop,fix-test\nx,shop,fix-test\n\xe4,,\n")
    for name, lines in (("r.jsonl", (1, 3)), ("r.csv", (2, 4))):
        requests, failures = resolved(*read_requests(tmp_path / name))
        assert [request["question"] for request in requests] == ["x"]
        said = "Expected UTF-8 text, got another encoding - at"
        assert failures == {f"line-{n}": f"{said} {name}:{n}" for n in lines}


def test_a_cell_of_parquet_that_has_no_value_fails_alone(tmp_path: Path):
    pq.write_table(
        pa.table(
            {"project": ["shop"] * 2, "purpose": ["fix-test"] * 2, "question": pa.array([b"x", b"\xff"]).view("string")}
        ),
        tmp_path / "r.parquet",
    )
    requests, failures = resolved(*read_requests(tmp_path / "r.parquet"))
    assert [request["question"] for request in requests] == ["x"]
    assert failures["row-2"].endswith("got a value that is neither - at r.parquet:row 2")


def test_a_row_of_csv_that_does_not_parse_fails_alone(tmp_path: Path):
    (tmp_path / "r.csv").write_text(
        'project,purpose,question\nshop,fix-test,one\nshop,fix-test,"two\nshop,fix-test,"three\nand four"\n'
        'shop,fix-test,"five" or so\nshop,fix-test,six\nshop,fix-test,"seven'
    )
    requests, failures = resolved(*read_requests(tmp_path / "r.csv"))
    assert {request["question"] for request in requests} == {"one", "three\nand four", "six"}
    reason = "Expected CSV, got text that is not"
    assert {name: error.partition(" (")[0] for name, error in failures.items()} == dict.fromkeys(
        ("line-3", "line-6", "line-8"), reason
    )
    assert failures["line-8"] == f"{reason} (unexpected end of data) - at r.csv:8"


def test_every_bad_row_of_a_long_csv_is_named_and_the_others_are_read(tmp_path: Path):
    (tmp_path / "r.csv").write_text("project,purpose,question\n" + 'shop,fix-test,"x"y\nshop,fix-test,z\n' * 3000)
    rows = read_requests(tmp_path / "r.csv")
    assert [row.number for row in rows] == list(range(2, 6002))
    assert [isinstance(row, Unreadable) for row in rows] == [True, False] * 3000


def test_an_id_that_is_a_whole_number_is_its_text_in_every_format(tmp_path: Path):
    row = ROW | {"request_id": 7, "session_id": -1, "trace_id": 2**60}
    (tmp_path / "r.jsonl").write_text(json.dumps(row))
    (tmp_path / "r.csv").write_text("\n".join(",".join(map(str, cells)) for cells in (row.keys(), row.values())))
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "r.parquet")
    for name in ("r.jsonl", "r.csv", "r.parquet"):
        (request,), failures = resolved(*read_requests(tmp_path / name))
        assert not failures
        assert [request[n] for n in ("request_id", "session_id", "trace_id")] == ["7", "-1", str(2**60)]
    for wrong in (True, 1.5, [1]):
        assert next(iter(resolved(ROW | {"request_id": wrong})[1].values())).startswith("Expected text, got ")
