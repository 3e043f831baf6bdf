"""Lines of JSON, read strictly: what a line is, what a field may hold, and what is left out of a folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.pipeline.sources.jsonl import read_lines
from scoped_retrieval.pipeline.sources.record_rows import files_of
from scoped_retrieval.pipeline.sources.report import SourceReport


def only(folder: Path, text: str | bytes):
    """The record of a file of one line."""
    file = folder / "file.jsonl"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    (record,) = read_lines(file)
    return record


def test_a_truth_value_is_neither_a_number_nor_an_id(tmp_path: Path) -> None:
    record = only(tmp_path, '{"n": 3, "yes": true}')
    assert (record.number("n"), record.identifier("n"), record.number("none"), record.identifier("none")) == (
        3, "3", None, None
    )  # fmt: skip
    with pytest.raises(InputError, match=r"^Expected a number, got true - at .*file\.jsonl:1\.yes$"):
        record.number("yes")
    with pytest.raises(InputError, match=r"^Expected text, got true or false - at .*file\.jsonl:1\.yes$"):
        record.identifier("yes")


def test_the_first_field_that_is_there_gives_value_and_place(tmp_path: Path) -> None:
    record = only(tmp_path, '{"turnId": null, "turn_id": 7}')
    assert record.value("turnId", "turn_id") == 7
    assert record.place("turnId", "turn_id").endswith(":1.turn_id")
    assert record.place("event", "eventId").endswith(":1.event")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"id": "\\ud800"}', "Expected Unicode text, got a lone surrogate - at "),
        (b'{"id": "caf\xe9"}', "Expected UTF-8 text, got byte 0xe9 at position 12 - at "),
        (b"[1]", "Expected a JSON object, got a list - at "),
    ],
)
def test_a_line_that_is_no_object_of_text_is_named(tmp_path: Path, line: bytes, message: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(message)}.*file\\.jsonl:1$"):
        only(tmp_path, line)


def test_a_folder_gives_its_files_of_a_kind_and_counts_the_others_but_hidden_ones(tmp_path: Path) -> None:
    for name in ("b.jsonl", "sub/A.JSONL", "notes.txt", ".hidden.txt", ".git/config"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "b.jsonl")
    report = SourceReport()
    found = files_of(tmp_path, [".jsonl"], report)
    assert found == [(tmp_path / place, place) for place in ("b.jsonl", "sub/A.JSONL")]
    assert report.skipped_at == {"of another kind than .jsonl": ["notes.txt"], "symbolic link": ["link.jsonl"]}
