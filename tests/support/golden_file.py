"""Renderings held against files below tests/golden."""

from __future__ import annotations

import os
from pathlib import Path


def expect_golden(path: Path, text: str) -> None:
    """The text of a golden file, or what it becomes with UPDATE_GOLDEN=1, as `make golden` sets it."""
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8", newline="\n")
    assert path.read_text(encoding="utf-8") == text, (
        f"{path.name} differs: `make golden` writes it again; read the diff"
    )
