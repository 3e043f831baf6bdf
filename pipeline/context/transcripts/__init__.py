"""Transcripts of agents as session logs.

Gives `events_of_transcript` and `kind_of`, the product that wrote some records.

- `claude_code`: sessions of Claude Code (`~/.claude/projects/*/*.jsonl`); `branches`: conversations that were rewound
- `codex`: rollouts of OpenAI Codex CLI (`~/.codex/sessions/**/rollout-*.jsonl`), also before records had a payload
- `transcript`: what both share

Note: an event has what a field of a record states, and nothing else: no shell line, output or prose is interpreted.
Neither format is documented by its vendor, and both change. Records of unknown kinds are counted and left out, and so
are lines that cannot be read: one that is being written, one that is not a JSON object, one with a lone surrogate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from io import BufferedReader
from pathlib import Path
from typing import Any, cast

from ....nodes.errors import InputError
from ...sources.jsonl import parse_json
from . import claude_code, codex
from .transcript import Record

__all__ = ["KINDS", "events_of_transcript", "kind_of"]

KINDS = {"claude-code": claude_code.events_of, "codex": codex.events_of}
_ZSTD = b"\x28\xb5\x2f\xfd"
_LONGEST = 2**26
"""Bytes of a line; longer ones are skipped in pieces."""
_MOST = 2**29
"""Bytes of a transcript, unpacked."""
_STREAMED = ("thread.started", "turn.started", "item.completed")


def kind_of(records: Sequence[Record]) -> str | None:
    """The product that wrote these records; None for other records."""
    for record in records[:50]:
        if "sessionId" in record or "parentUuid" in record:
            return "claude-code"
        if record.get("type") in ("session_meta", "response_item", "event_msg", "turn_context"):
            return "codex"
        if record.get("type") in ("function_call", "local_shell_call", "reasoning") and "message" not in record:
            return "codex"
        if record.get("type") == "message" and isinstance(record.get("content"), list):
            return "codex"
    return None


def events_of_transcript(path: str | Path, kind: str | None = None) -> tuple[str, list[dict[str, Any]], Counter[str]]:
    """The id of the session, its events, and counts of what was left out.

    Raises:
        InputError: the file cannot be read or is too large, the kind of transcript is unknown, or it has no messages
            and no tools.
    """
    file = Path(path)
    if kind is not None and kind not in KINDS:
        raise InputError.one_of(KINDS, kind, "--kind")
    left_out = Counter[str]()
    records = list(_records(file, left_out))
    kind = kind or kind_of([record for _, record in records])
    if kind is None:
        hint = "set `--kind`; other logs are read as one event per line, see docs/context.md"
        if any(each.get("type") in _STREAMED or "session_id" in each for _, each in records[:5]):
            hint = "this is what an agent prints with `--json` or `--output-format stream-json`; transcripts lie in ~/.claude/projects and ~/.codex/sessions"
        raise InputError.described("a transcript of Claude Code or Codex CLI", "neither", str(file), hint=hint)
    made = KINDS[kind](records, file.name.removesuffix(".zst").removesuffix(".jsonl"))
    left_out.update(made.left_out)
    if all(event["kind"] == "model.request" for event in made.events):
        listed = ", ".join(f"{count} {what}" for what, count in sorted(left_out.items())) or "no record"
        hint = "it may be the log of another agent"
        raise InputError.described(f"messages or tools of {kind}", listed, str(file), hint=hint)
    return made.session_id, made.events, left_out


def _records(file: Path, left_out: Counter[str]) -> Iterator[tuple[int, Record]]:
    """The records of a file with the numbers of their lines; lines that cannot be read are counted."""
    import pyarrow as pa

    try:
        with file.open("rb") as opened:
            packed = opened.read(len(_ZSTD)) == _ZSTD
        with pa.input_stream(str(file), compression="zstd" if packed else None) as stream:
            for number, line in enumerate(_lines(BufferedReader(cast(Any, stream)), file), start=1):
                try:
                    if line.strip():
                        yield number, parse_json(line.removeprefix(b"\xef\xbb\xbf").strip(), f"{file}:{number}")
                except InputError:
                    left_out["lines that cannot be read"] += 1
    except OSError as error:
        raise InputError(f"{error.strerror or error}: {file}") from error


def _lines(stream: BufferedReader, file: Path) -> Iterator[bytes]:
    """The lines of a stream; of one that is too long, its end.

    Raises:
        InputError: there are too many.
    """
    size = 0
    while line := stream.readline(_LONGEST):
        size += len(line)
        while len(line) == _LONGEST and not line.endswith(b"\n") and size <= _MOST:
            line = b"\0" + stream.readline(_LONGEST - 1)
            size += len(line)
        if size > _MOST:
            raise InputError.described(
                f"at most {_MOST >> 20} MiB", "more", str(file), hint="split the file by session"
            )
        yield line
