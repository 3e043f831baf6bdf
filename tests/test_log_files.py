"""CSV logs of a work tree are logs, and large logs are read."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from scoped_retrieval.pipeline.sources.file_kinds import file_kind
from scoped_retrieval.pipeline.sources.report import SourceReport
from scoped_retrieval.pipeline.sources.work_tree import read_work_tree

NOW = datetime(2026, 6, 1, tzinfo=UTC)


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


def test_a_large_log_is_read_and_another_large_file_is_left_out(tmp_path: Path) -> None:
    line = "2026-01-01T10:00:00Z step done without an error\n"
    (tmp_path / "run.log").write_text(line * 12_000)
    (tmp_path / "big.md").write_text(line * 12_000)
    rows = rows_of(tmp_path)
    assert {row["path"] for row in rows} == {"run.log"}
    assert sum(row["text"].count("step done") for row in rows) == 12_000
    assert max(len(row["text"]) for row in rows) <= 4_000
