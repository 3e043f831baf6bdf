"""Files of requests: a row that cannot be read fails alone, and every format gives the same values."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from resolving import resolve_requests
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.nodes.tables import REQUESTS
from scoped_retrieval.pipeline.requests.fields import NUMBERS
from scoped_retrieval.pipeline.requests.files import read_requests

ROW: dict[str, Any] = {"project": "shop", "purpose": "fix-test", "question": "why does it fail?"}


def resolved(*rows: Any) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The requests, and the message of each row that failed."""
    requests, failures = resolve_requests(rows, principal="ana", asked_at=datetime(2025, 6, 1, 12, tzinfo=UTC))
    return requests.to_pylist(), {row["request_id"]: row["error"] for row in failures.to_pylist()}


def test_a_file_in_another_encoding_is_not_read_in_part(tmp_path: Path):
    good, bad = b'{"project": "shop", "purpose": "fix-test", "question": "x"}\n', b'{"question": "\xff"}\n'
    (tmp_path / "r.jsonl").write_bytes(good + bad)
    (tmp_path / "r.csv").write_bytes(b"question,project,purpose\n\xff,shop,fix-test\n")
    for name in ("r.jsonl", "r.csv"):
        with pytest.raises(InputError, match=f"Expected UTF-8 text, got another encoding - at .*{name}:2"):
            read_requests(tmp_path / name)


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


def test_every_format_gives_the_same_requests(tmp_path: Path):
    lines = '{"request_id": "a", "project": "shop", "purpose": "fix-test", "question": "why, oh why?", "anchors": {"current_files": ["a.py", "b.py"]}, "time": {"as_of": "2025-01-01T00:00:00Z"}, "budget": {"max_tokens": 1200}}\n'
    (tmp_path / "r.jsonl").write_text("\n" + lines)
    (tmp_path / "r.csv").write_text(
        "request_id,project,purpose,question,anchors.current_files,time.as_of,budget.max_tokens,budget.max_chars\n"
        'a,shop,fix-test,"why, oh why?",a.py; b.py,2025-01-01T00:00:00Z,1200,\n'
    )
    pq.write_table(pa.Table.from_pylist(read_requests(tmp_path / "r.jsonl")), tmp_path / "r.parquet")
    tables = [resolved(*read_requests(tmp_path / name))[0] for name in ("r.jsonl", "r.csv", "r.parquet")]
    assert len(tables[0]) == 1
    assert all(table == tables[0] for table in tables)


def test_a_line_that_is_no_json_fails_alone(tmp_path: Path):
    (tmp_path / "r.jsonl").write_text(
        '{"project": "p", "purpose": "fix-test", "question": "x"}\n{oops\n[1]\n{"a": 1, "a": 2}\n'
    )
    requests, failures = resolved(*read_requests(tmp_path / "r.jsonl"))
    assert len(requests) == 1
    assert failures == {
        "line-2": "Expected JSON, got invalid JSON (Expecting property name enclosed in double quotes at column 2) - at r.jsonl:2",
        "line-3": "Expected a JSON object, got a list - at r.jsonl:3",
        "line-4": "Expected every field once, got 'a' again - at r.jsonl:4",
    }


def test_a_secret_that_stands_as_a_field_is_not_told(tmp_path: Path):
    (tmp_path / "r.jsonl").write_text('{"pwd=Sommer2024A": 1, "pwd=Sommer2024A": 2}')
    message = read_requests(tmp_path / "r.jsonl")[0].reason
    assert "got '<key of 15 characters>' again" in message and "Sommer" not in message


def test_a_row_of_a_file_is_named_by_its_line_or_row(tmp_path: Path):
    row = '{"project": "shop", "purpose": "?", "question": "x"}'
    (tmp_path / "r.jsonl").write_text(f"\n{row}\n")
    (tmp_path / "r.csv").write_text('project,purpose,question\nshop,fix-test,"two\nlines"\nshop,?,x\n')
    pq.write_table(
        pa.table({"project": ["shop"] * 2, "purpose": ["fix-test", "?"], "question": ["x"] * 2}), tmp_path / "r.parquet"
    )
    places = {
        "r.jsonl": ("line-2", "2"),
        "r.csv": ("line-4", "4"),
        "r.parquet": ("row-2", "row 2"),
    }
    for name, (wanted, place) in places.items():
        _, failures = resolved(*read_requests(tmp_path / name))
        ((request_id, error),) = failures.items()
        assert request_id == wanted
        assert error.endswith(f" - at {name}:{place}.purpose")


def test_a_cell_of_csv_is_typed_like_its_column(tmp_path: Path):
    from scoped_retrieval.pipeline.requests.fields import FIELDS

    given = {
        "time.window_days": 1.5, "min_authority": 2, "evidence_policy.max_unverified_items": 0,
        "time.allow_stale_memory": True, "budget.max_chars": 900, "budget.lane_k": 7,
    }  # fmt: skip
    (tmp_path / "r.csv").write_text(
        ",".join(["project", "purpose", "question", *given])
        + "\n"
        + ",".join(["shop", "fix-test", "x", *(str(value).lower() for value in given.values())])
    )
    (row,) = read_requests(tmp_path / "r.csv")
    assert {name: row[name] for name in given} == given
    (request,), _ = resolved(row)
    assert request["window_days"] == 1.5
    types = {name: column.type for name, column in REQUESTS.columns.items() if name in FIELDS}
    numbers = {name for name, type_ in types.items() if not pa.types.is_string(type_) and pa.types.is_primitive(type_)}
    assert {"window_days", "min_authority", "pool_k"} < numbers
    assert numbers - {"as_of", "include_after", "exclude_after"} == NUMBERS
