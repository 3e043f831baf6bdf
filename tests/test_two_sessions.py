"""Sessions of one principal that start together lose no acknowledged snapshot; `support/two_sessions.py 200` is the long form."""

from __future__ import annotations

from pathlib import Path

from two_sessions import QUESTIONS, raced


def test_two_sessions_that_start_together_keep_every_acknowledged_snapshot(tmp_path: Path) -> None:
    acknowledged, lost = raced(tmp_path, 6)
    assert acknowledged == 6 * 2 * QUESTIONS
    assert lost == []
