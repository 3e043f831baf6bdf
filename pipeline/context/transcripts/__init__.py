"""Transcripts of agents as session logs.

Gives `import_transcript`, and `read_transcript`, which gives the events alone.

- `claude_code`: sessions of Claude Code (`~/.claude/projects/*/*.jsonl`)
- `codex`: rollouts of OpenAI Codex CLI (`~/.codex/sessions/**/rollout-*.jsonl`), of today and before records had a payload
- `writing`: what both share: ids, rounds, relative paths, versions of files by their content

What one would otherwise get wrong: neither format is documented by whoever writes it, and both change. What is not known is
counted and left out, and never an error; a line that is no JSON is one.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from ....nodes.errors import InputError
from ...sources.jsonl import read_lines
from ..log import SessionLog
from . import claude_code, codex

__all__ = ["KINDS", "import_transcript", "read_transcript"]

KINDS = {"claude-code": claude_code.events_of, "codex": codex.events_of}


def read_transcript(path: str | Path, kind: str | None = None) -> tuple[str, list[dict[str, Any]], Counter[str]]:
    """The id of the session, its events, and what was left out, counted.

    Raises:
        InputError: the file cannot be read, a line is no JSON object, or nobody knows what kind of transcript it is.
    """
    file = Path(path)
    records = [record.fields for record in read_lines(file)]
    if kind is not None and kind not in KINDS:
        raise InputError.one_of(KINDS, kind, "--kind")
    kind = kind or _kind(records)
    if kind is None:
        hint = "`--kind` says which it is; other logs are read as they are: one event per line, see docs/context.md"
        raise InputError.described("a transcript of Claude Code or Codex CLI", "neither", str(file), hint=hint)
    found = KINDS[kind](records, file.stem)
    return found.session_id, found.events, found.left_out


def import_transcript(path: str | Path, out: str | Path, kind: str | None = None) -> dict[str, Any]:
    """Write a transcript into the folder of a session log; what it has already is left out.

    Raises:
        InputError: as `read_transcript`, or the folder is the log of another session.
    """
    session_id, events, left_out = read_transcript(path, kind)
    log = SessionLog.open(out, session_id=session_id)
    new = log.append(events)
    return {"session_id": session_id, "events": len(events), "new": new, "left_out": dict(sorted(left_out.items()))}


def _kind(records: list[dict[str, Any]]) -> str | None:
    for record in records[:50]:
        if "sessionId" in record or "parentUuid" in record:
            return "claude-code"
        if record.get("type") in ("session_meta", "response_item", "event_msg", "turn_context"):
            return "codex"
        if (
            record.get("type") in ("message", "function_call", "local_shell_call", "reasoning")
            and "message" not in record
        ):
            return "codex"
    return None
