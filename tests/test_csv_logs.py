"""CSV logs in a work tree are evidence of their own days, and large logs are read."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from scoped_retrieval.pipeline.sources.chunking import read_document
from scoped_retrieval.pipeline.sources.file_kinds import file_kind
from scoped_retrieval.pipeline.sources.report import SourceReport
from scoped_retrieval.pipeline.sources.work_tree import read_work_tree

NOW = datetime(2026, 6, 1, tzinfo=UTC)
LOG = """timestamp,action,note
2026-01-01T10:00:00Z,begun,
2026-01-01T23:30:00-02:00,"two
lines",
,no time of its own,
2026-01-03,a date,
2026-01-04 10:00:00,no zone,
then,unreadable,
1767700800000,milliseconds,
"""


def days(text: str, path: str = "logs/actions.csv") -> list[tuple[str | None, int, int, str | None]]:
    chunks = read_document(path, text).chunks
    return [(c.section, c.line_start, c.line_end, c.happened and c.happened.isoformat()) for c in chunks]


def test_a_log_is_cut_by_days_that_its_rows_name() -> None:
    assert days(LOG) == [
        ("2026-01-01", 1, 2, "2026-01-01T10:00:00+00:00"),
        ("2026-01-02", 3, 5, "2026-01-02T01:30:00+00:00"),
        ("2026-01-03", 6, 6, "2026-01-03T00:00:00+00:00"),
        ("2026-01-04", 7, 8, "2026-01-04T10:00:00+00:00"),
        ("2026-01-06", 9, 9, "2026-01-06T12:00:00+00:00"),
    ]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("logs/actions.csv", "test-log"),  ("build-log.csv", "test-log"),  ("logs/readme.md", "doc"),
    ],
)  # fmt: skip
def test_which_files_are_logs(path: str, kind: str) -> None:
    assert file_kind(path).evidence_kind == kind


def rows_of(root: Path) -> list[dict]:
    tables = read_work_tree(root, project="shop", now=NOW, report=SourceReport())
    return [row for table in tables for row in table.to_pylist()]


def test_rows_of_a_log_happened_when_they_say_and_never_after_the_file_was_read(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/actions.csv").write_text(LOG + "2099-01-01,of the future,\n")
    happened = [row["event_time"].date().isoformat() for row in rows_of(tmp_path)]
    assert happened[:5] == ["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04", "2026-01-06"]
    assert happened[5] <= "2026-06-01"


def test_a_large_log_is_read_and_another_large_file_is_left_out(tmp_path: Path) -> None:
    line = "2026-01-01T10:00:00Z step done without an error\n"
    (tmp_path / "run.log").write_text(line * 12_000)
    (tmp_path / "big.md").write_text(line * 12_000)
    rows = rows_of(tmp_path)
    assert {row["path"] for row in rows} == {"run.log"}
    assert sum(row["text"].count("step done") for row in rows) == 12_000
    assert max(len(row["text"]) for row in rows) <= 4_000
