"""One session event as a row: what its fields state, and nothing that its text, command or tool's name suggests.

Gives: `event_row`, and `with_checks` for the checks of a policy. The fields are documented in the reference of events.

Note: the speaker is the one that the event names and its kind implies; if these disagree, one that is not the user.
Text of the user is never cut; of any other long text the row has both ends, and the whole is an artifact. No word decides
whether something failed: that is a fact of the event.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from ...nodes.context_state import PLACE
from ...nodes.errors import InputError
from ...nodes.turns.words import ACTORS, CAPABILITIES, CHECK_STATUSES, EVENT_ACTORS, OBSERVATIONS, OUTCOMES, PHASES
from ...nodes.vocabulary import Vocabulary
from ..sources.jsonl import Record
from .artifacts import artifact, kind_of_event, payload_of, whole_text
from .flags import flags_of, sight_of
from .inputs import memory_id, memory_row
from .masking import one_path

LONG = 6_000
"""Longest text of a tool or the model that a row has whole."""
_MASK = "[REDACTED:"
_SIGN = 2**31
_STATUSES = Vocabulary("status", (*OUTCOMES.values, *(word for word in CHECK_STATUSES.values if word not in OUTCOMES)))
_STATUS_OF = {"succeeded": "passed", "failed": "failed", "timed_out": "failed"}
"""The status of a check by how its command ended; any other end leaves it unknown."""
_GOES_ON = re.compile(r"[|;\n]|(?<!>)&(?!>)")
"""A command line goes on after the check (`| tail`, `&& git push`), and ends as its last program does; of a line that holds
a check elsewhere (`cd x && pnpm test`) the status is as unknown."""
_GOVERNED = ("memory", "system", "user")
"""Who may state a verified memory."""


def event_row(record: Record, event_id: str) -> dict[str, Any]:
    """What an event states, without its place in its log; null where it states nothing. `text` is what it says, with both ends of
    a long one: then it is `cut`, and the last of `refs` has the rest; `characters` are those of all of it. `content` is the file,
    or the lines of it, after the event; `subject` the id of the constraint, memory, permission request or call of a tool, or the
    phase. `checks` are those that it names, each with its status, see `with_checks`. A recalled memory is in the further key `memory`.

    Raises:
        InputError: a field of the event is invalid.
    """
    kind, payload = kind_of_event(record), payload_of(record)
    actor, text = _speaker(kind, record, payload), whole_text(kind, payload)
    arguments, content = payload.value("arguments", "input"), _content(kind, payload)
    command, path = payload.text("command", "query", "url", "action"), one_path(payload.text("path"))
    code, outcome = _ending(kind, record, payload)
    found = {" ".join(name.split()): status for name, status in _checks(kind, payload, outcome)}
    refs = [each for name in _REFS for each in payload.strings(name) or ()]
    summary = payload.text("summary", "keyExcerpt")
    excerpt = payload.text("visibleExcerpt")
    characters = len(text if text is not None else content or "")
    is_diff = payload.value("diff") is not None
    is_cut = text is not None and len(text) > LONG and actor != "user"
    if text is not None and actor != "user":
        failed = outcome in ("failed", "timed_out") or "failed" in found.values()
        own_summary, own_excerpt = summary_and_excerpt(text, failed=failed)
        if kind == "file.modified" or is_diff:
            own_summary = _diff_summary(text, path) or own_summary
        summary, excerpt = summary or own_summary, excerpt or own_excerpt
        refs += [artifact(text)] if is_cut else []
    row = {
        "kind": kind,
        "actor": actor,
        **{"visibility": "model-visible", "zone": "internal", **sight_of(record, payload)},
        "text": cut(text, LONG) if text is not None and is_cut else text,
        "characters": characters,
        "cut": is_cut,
        "diff": is_diff,
        "summary": summary,
        "excerpt": excerpt,
        "refs": list(dict.fromkeys(refs)),
        "tool": payload.text("tool", "toolName", *(() if kind == "verification.finished" else ("name",))),
        "capability": payload.word(CAPABILITIES, "capability"),
        "arguments": arguments if isinstance(arguments, str | None) else _json(arguments),
        "command": command,
        "exit_code": code,
        "outcome": outcome,
        "checks": found,
        "changed_files": _changed(kind, payload, path),
        "path": path,
        "line_start": payload.whole("lineStart", least=1),
        "line_end": payload.whole("lineEnd", least=1),
        "version": payload.identifier("version", "sha256", "hash"),
        "content": content,
        "matches": _matches(payload),
        "subject": _subject(kind, payload, event_id),
        "topic": payload.text("topic"),
        "snapshot_ids": payload.strings("snapshotIds", "retrievalSnapshotIds", "snapshotId"),
    }  # fmt: skip
    row["masked"] = sum(str(value).count(_MASK) for value in (text, command, row["arguments"], content, row["matches"]))
    if kind in ("user.goal", "user.constraint") and text is None:
        raise InputError.expected("text", None, payload.place("text"))
    if kind == "retrieval.snapshot.created" and not row["snapshot_ids"]:
        raise InputError.expected("the id of the snapshot", None, payload.place("snapshotId"))
    if kind == "memory.recalled":
        row["memory"] = _memory(payload, actor, row["zone"])
    return row


_REFS = ("stdoutRef", "stderrRef", "ref", "artifact", "artifacts")


def _speaker(kind: str, record: Record, payload: Record) -> str:
    """The actor of an event: the first one that is not the user of event, payload and kind."""
    named = [each.word(ACTORS, "actor", "origin") for each in (record, payload)]
    return next((actor for actor in (*named, EVENT_ACTORS[kind]) if actor and actor != "user"), "user")


def _content(kind: str, payload: Record) -> str | None:
    """The file that was read or written, which may be empty."""
    content = payload.value("content") if kind in ("file.read", "file.modified") else None
    if not isinstance(content, str | None):
        raise InputError.of_kind("text", content, payload.place("content"))
    return content


def _ending(kind: str, record: Record, payload: Record) -> tuple[int | None, str | None]:
    """The exit code, and how the event ended: an end that shows nothing about the work precedes failure and success."""
    code = payload.whole("exitCode", least=-_SIGN, most=2 * _SIGN - 1)
    code = code - 2 * _SIGN if code is not None and code >= _SIGN else code  # Windows codes are unsigned
    error = payload.flag("isError", "failed")
    stated = payload.word(_STATUSES, "status") if kind in OBSERVATIONS else None
    ends = {
        "running": payload.flag("running"),
        "timed_out": payload.flag("timedOut") or record.value("kind", "type") == "timeout",
        "interrupted": payload.flag("interrupted"),
        "failed": error or bool(code) or kind == "tool.error",
        "succeeded": error is False or code == 0,
    }
    return code, next((word for word in ends if ends[word] or stated == word), None)


def _checks(kind: str, payload: Record, outcome: str | None) -> Iterator[tuple[str, str]]:
    """The checks that an event names, each with its status."""
    given = payload.value("checks", "check")
    for number, one in enumerate(given if isinstance(given, list) else [given] if given is not None else ()):
        if isinstance(one, str) and one.strip():
            yield one, _check_status(payload, outcome)
        else:
            check = Record.of(one, f"{payload.place('checks', 'check')}[{number}]")
            yield check.required("name"), check.word(CHECK_STATUSES, "status") or _check_status(payload, outcome)
    if given is None and kind == "verification.finished" and (name := payload.text("name")):
        yield name, _check_status(payload, outcome)


def with_checks(row: dict[str, Any], declared: Sequence[str]) -> dict[str, Any]:
    """The row of an event with the declared checks whose command it ran, unless it names others. `declared` are commands,
    or beginnings of them, that count as checks.
    """
    command = row["command"]
    if row["checks"] or row["kind"] != "command.finished" or not command:
        return row
    held = [each for each in declared if re.search(rf"(?<![^\s;&|('\"]){re.escape(each)}(?![^\s;&|)'\"])", command)]
    found = dict[str, str]()
    for check in held:
        if not any(other != check and other.startswith(check) for other in held):
            alone = command.startswith(check) and not _GOES_ON.search(command.removeprefix(check))
            found[check] = _STATUS_OF.get(row["outcome"] or "", "unknown") if alone else "unknown"
    return {**row, "checks": found}


def _check_status(payload: Record, outcome: str | None) -> str:
    stated = payload.word(_STATUSES, "status")
    return stated if stated is not None and stated in CHECK_STATUSES else _STATUS_OF.get(outcome or "", "unknown")


def _changed(kind: str, payload: Record, path: str | None) -> list[str | None] | None:
    """The files that an event states to have changed; null if it states nothing."""
    stated = payload.strings("changedFiles")
    if stated is None:
        return [path] if kind == "file.modified" and path else None
    return list(dict.fromkeys(map(one_path, stated)))


def _matches(payload: Record) -> list[dict[str, Any]] | None:
    """The matches of a search; None if the event states none."""
    if payload.value("matches") is None:
        return None
    rows = ((one_path(match.required("path")), match) for match in payload.objects("matches"))
    return [{"path": path, "line": match.whole("line"), "text": match.text("text"), **flags_of(path, match)} for path, match in rows]  # fmt: skip


def _subject(kind: str, payload: Record, event_id: str) -> str | None:
    """What an event is about: a phase, or the id of a constraint, memory, permission request or call of a tool.

    Raises:
        InputError: the event changes or ends something that it does not name.
    """
    if kind == "phase.changed":
        phase = payload.word(PHASES, "phase")
        if phase is None:
            raise InputError.one_of(PHASES.values, None, payload.place("phase"))
        return phase
    if kind.startswith("memory."):
        return memory_id(payload)
    if kind.startswith("permission.") or kind in ("tool.intent", *OBSERVATIONS):
        return payload.identifier("requestId")
    constraint = payload.identifier("constraintId", "subject")
    if kind == "constraint.ended" and constraint is None:
        which = "the constraint that ends, by its constraintId or the id of its event"
        raise InputError.expected(which, None, payload.place("constraintId"))
    return constraint or (event_id if kind == "user.constraint" else None)


def _memory(payload: Record, actor: str, zone: str) -> dict[str, Any]:
    """A memory (S3.52). Of a tool or the model it was not governed, so it is a candidate."""
    row = memory_row(payload) | {"zone": zone}
    return row if actor in _GOVERNED else row | {"lifecycle": "candidate"}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


# --- what a tool printed, for inputs that cannot show all of it (S3.50) ------------------------------------------------

SUMMARY = 300
"""Most characters of a summary."""
EXCERPT = 1_000
"""A text of more characters has an excerpt."""
_HEADER = re.compile(r"^--- \S.*\n\+\+\+ .*$", re.MULTILINE)
"""Two lines that name a file: neither is a changed line."""
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
"""Colors and movements of a terminal."""


def summary_and_excerpt(text: str, *, failed: bool) -> tuple[str | None, str | None]:
    """One line of a text, and both ends of a long text.

    Of a failed output it is the first line that names a place, after the line before it, which often says what is wrong
    there; without a place it is the last line. Of another text it is the first line.
    """
    plain = _ESCAPE.sub("", text)
    lines = [line for line in plain.splitlines() if any(map(str.isalnum, line))]
    telling = lines[:1]
    if failed:
        first = next((number for number, line in enumerate(lines) if PLACE.search(line)), None)
        telling = lines[-1:] if first is None else lines[max(first - 1, 0) : first + 1]
    summary = " ".join(" ".join(telling).split())
    summary = summary if len(summary) <= SUMMARY else f"{summary[: SUMMARY - 3]}..."
    return summary or None, cut(plain, EXCERPT) if len(text) > EXCERPT else None


def cut(text: str, most: int) -> str:
    """The beginning and the end of a long text, and the number of characters between."""
    half = most // 2
    head, tail = text[:half].rsplit("\n", 1)[0], text[-half:].split("\n", 1)[-1]
    return f"{head}\n[... {len(text) - len(head) - len(tail)} characters ...]\n{tail}"


def _diff_summary(text: str, path: str | None) -> str | None:
    """`+3 -1 lines in src/a.ts`; None if no line is added or removed."""
    lines = _HEADER.sub("", text.replace("\r\n", "\n")).splitlines()
    added, removed = (sum(line.startswith(sign) for line in lines) for sign in "+-")
    where = f" in {path}" if path else ""
    return f"+{added} -{removed} lines{where}" if added + removed else None
