"""Transcripts of agents as session logs.

Gives `events_of_transcript` and `kind_of`, the product that wrote some records.

- `claude_code`: sessions of Claude Code (`~/.claude/projects/*/*.jsonl`)
- `codex`: rollouts of OpenAI Codex CLI (`~/.codex/sessions/**/rollout-*.jsonl`)
- `transcript`: what both share

Note: an event has what a field of a record states, and nothing else: no shell line, output or prose is interpreted.
Neither format is documented by its vendor, and both change. Records of unknown kinds are counted and left out, and so are
lines that cannot be read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ....nodes.errors import InputError
from ..events import read_event_file
from . import claude_code, codex
from .transcript import Record

KINDS = {"claude-code": claude_code.events_of, "codex": codex.events_of}


def kind_of(records: Sequence[Record]) -> str | None:
    """The product that wrote these records; None for other records."""
    for record in records:
        if "sessionId" in record or "parentUuid" in record:
            return "claude-code"
        if record.get("type") in ("session_meta", "response_item", "event_msg", "turn_context"):
            return "codex"
    return None


def events_of_transcript(path: str | Path) -> tuple[str, list[dict[str, Any]], Counter[str]]:
    """The id of the session, its events, and counts of what was left out.

    Raises:
        InputError: the file cannot be read, the kind of transcript is unknown, or it has no messages and no tools.
    """
    file = Path(path)
    read = read_event_file(file)
    left_out = Counter({"lines that cannot be read": read.skipped} if read.skipped else {})
    kind = kind_of(read.values)
    if kind is None:
        hint = "transcripts lie in ~/.claude/projects and ~/.codex/sessions; other logs are read as one event per line, see docs/context.md"  # fmt: skip
        raise InputError.described("a transcript of Claude Code or Codex CLI", "neither", str(file), hint=hint)
    records = list(zip(read.lines, read.values, strict=True))
    made = KINDS[kind](records, file.name.removesuffix(".zst").removesuffix(".jsonl"))
    left_out.update(made.left_out)
    if all(event["kind"] == "model.request" for event in made.events):
        listed = ", ".join(f"{count} {what}" for what, count in sorted(left_out.items())) or "no record"
        hint = "it may be the log of another agent"
        raise InputError.described(f"messages or tools of {kind}", listed, str(file), hint=hint)
    return made.session_id, made.events, left_out
