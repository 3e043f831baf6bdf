"""Transcripts of agents as session logs.

Gives `import_transcript`, and `read_transcript`, which returns only the events.

- `claude_code`: sessions of Claude Code (`~/.claude/projects/*/*.jsonl`)
- `codex`: rollouts of OpenAI Codex CLI (`~/.codex/sessions/**/rollout-*.jsonl`), current and before records had a
  payload
- `background`: commands of Claude Code that run in the background
- `branches`: conversations that were rewound, in transcripts of Claude Code
- `typed`: slash commands of Claude Code; `refusals`: denied calls of Claude Code, and the user's comments on them
- `agents`: files that subagents, tools of servers and others changed
- `effects`: reads and changes by tools of Claude Code, from its records; `shell_results`: endings of its commands
- `speaking`: who speaks in messages of the role `user`
- `searching`, `search_output`: output forms of searches, and the matches in their output
- `phases`: the phases of a session, derived from its events
- `writing`: shared parts of both: ids, rounds, relative paths, versions of files by their content

Note: neither format is documented by its vendor, and both change. Unknown records are counted and left out, and are
never an error, and so are lines of JSON that are not objects; a line that is not JSON is an error, except a last line that is being written. A file without any known
record is not a transcript.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ....nodes.errors import InputError
from ...progress import counted
from ...sources.jsonl import records_of
from ..events import identity_of
from ..log import SessionLog
from ..log_files import is_json
from ..transcript_kinds import kind_of
from . import claude_code, codex
from .phases import with_phases

__all__ = ["KINDS", "MOST_UNPACKED", "import_transcript", "read_transcript"]

_ZSTD = b"\x28\xb5\x2f\xfd"
_PIECE = 1 << 20
MOST_UNPACKED = 1 << 29
"""The most bytes of a transcript that is compressed."""
_STREAMED = ("thread.started", "turn.started", "item.completed")
KINDS = {"claude-code": claude_code.events_of, "codex": codex.events_of}


def read_transcript(path: str | Path, kind: str | None = None) -> tuple[str, list[dict[str, Any]], Counter[str]]:
    """The id of the session, its events, and counts of what was left out.

    Raises:
        InputError: the file cannot be read, a line is not JSON, no line is an object, or the kind of transcript is unknown.
    """
    file = Path(path)
    records, left_out = _records(file)
    if kind is not None and kind not in KINDS:
        raise InputError.one_of(KINDS, kind, "--kind")
    kind = kind or kind_of(records)
    if kind is None:
        hint = "set `--kind`; other logs are read as one event per line, see docs/context.md"
        streamed = next((each for each in records[:5] if each.get("type") in _STREAMED or "session_id" in each), None)
        if streamed is not None:
            hint = "this is what an agent prints with `--json` or `--output-format stream-json`; transcripts lie in ~/.claude/projects and ~/.codex/sessions"
        raise InputError.described("a transcript of Claude Code or Codex CLI", "neither", str(file), hint=hint)
    found = KINDS[kind](records, file.name.removesuffix(".zst").removesuffix(".jsonl"))
    found.left_out.update(left_out)
    if all(event["kind"] == "model.request" for event in found.events):
        listed = ", ".join(f"{count} {what}" for what, count in sorted(found.left_out.items())) or "no record"
        raise InputError.described(
            f"messages or tools of {kind}", listed, str(file), hint="it may be the log of another agent"
        )
    return found.session_id, with_phases(found.events), found.left_out


def import_transcript(path: str | Path, out: str | Path, kind: str | None = None) -> dict[str, Any]:
    """Write a transcript into a session log; events that it already has are skipped, even if an earlier version of the
    importer wrote them differently.

    Raises:
        InputError: as `read_transcript`, or the folder is the log of another session.
    """
    session_id, events, left_out = read_transcript(path, kind)
    log = SessionLog.open(out, session_id=session_id)
    held = log.ids()
    kept, later = _behind(events, held)
    new = log.append(later)
    if kept:
        log.notes.append(
            f"{counted(kept, 'event')} of the transcript {'was' if kept == 1 else 'were'} imported by a version that read {'it' if kept == 1 else 'them'} "
            "otherwise, and the log keeps what it has; import into another folder to have the whole transcript as this version reads it"
        )
    if others := log.count() - new - sum(event["id"] in held for event in events):
        log.notes.append(
            f"{counted(others, 'event')} of the log {'is' if others == 1 else 'are'} not in the transcript: appended here, or of a "
            "branch that was rewound since; import into another folder to leave them out"
        )
    return {
        "session_id": session_id,
        "events": len(events),
        "new": new,
        "left_out": dict(sorted(left_out.items())),
        "notes": log.notes,
    }


def _behind(events: list[dict[str, Any]], held: Mapping[str, str]) -> tuple[int, list[dict[str, Any]]]:
    """How many events up to the last one in the log it lacks or has with different content, and the events left to
    append: all, or those after that one if an earlier version of the importer wrote it.
    """
    same = [held.get(event["id"]) == identity_of(event)[1] for event in events]
    if all(each or event["id"] not in held for each, event in zip(same, events, strict=True)):
        return 0, events
    last = max(place for place, event in enumerate(events) if event["id"] in held)
    return same[: last + 1].count(False), events[last + 1 :]


def _records(file: Path) -> tuple[list[dict[str, Any]], Counter[str]]:
    """The records of a file, and counts of the lines that were left out: those that are no objects, and an unfinished
    last one, which the agent may be writing.
    """
    try:
        with file.open("rb") as opened:
            packed = opened.read(4) == _ZSTD
        data = _unpacked(file) if packed else file.read_bytes()
    except OSError as error:
        raise InputError(f"{error.strerror or error}: {file}") from error
    last = data.rfind(b"\n") + 1
    unfinished = 0 < last < len(data) and not is_json(data[last:])
    lines = (data[:last] if unfinished else data).split(b"\n")
    others = [number for number, line in enumerate(lines) if _is_other_value(line)]
    if len(others) < sum(map(bool, map(bytes.strip, lines))):
        for number in others:  # blank lines, so that errors name the right lines
            lines[number] = b""
    counts = {"unfinished last lines": int(unfinished), "lines that are not objects": len(others)}
    return [record.fields for record in records_of(b"\n".join(lines), file)], +Counter(counts)


def _is_other_value(line: bytes) -> bool:
    """Whether a line is valid JSON, but not an object."""
    text = line.removeprefix(b"\xef\xbb\xbf").strip()
    return bool(text) and not text.startswith(b"{") and is_json(text)


def _unpacked(file: Path) -> bytes:
    """The bytes of a compressed rollout; they are counted in pieces before they are kept."""
    import pyarrow as pa

    size = 0
    with pa.input_stream(str(file), compression="zstd") as stream:
        while piece := stream.read(_PIECE):
            size += len(piece)
            if size > MOST_UNPACKED:
                raise InputError.described(f"at most {MOST_UNPACKED:,} unpacked bytes", "more", str(file))
    with pa.input_stream(str(file), compression="zstd") as stream:
        return stream.read()
