"""Text that acts on a terminal or hides the text beside it, and rows of evidence that are full of it."""

from __future__ import annotations

import json
import re
from pathlib import Path

ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp.exe\u2066\u200b\x08\r"
"""An OSC title, a cleared screen, a C1 sequence, bidirectional controls, a zero-width space, a backspace, a return."""


def hostile_rows(folder: Path) -> Path:
    """A file of one row for `index --add evidence=FILE`, hostile wherever a row has text."""
    row = {"source_id": f"notes:{HOSTILE}", "title": f"title {HOSTILE}", "text": f"retry limit {HOSTILE} is five",
           "path": f"notes/{HOSTILE.replace(chr(13), '')}.md", "section": HOSTILE, "line_start": 1, "line_end": 1}  # fmt: skip
    (folder / "rows.jsonl").write_text(json.dumps(row) + "\n")
    return folder / "rows.jsonl"
