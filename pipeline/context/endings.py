"""What interrupted a command or a check, from its fields, its exit code and its output.

Gives: `ending`, `with_ending` of a summary, `truth` of a field, and the names of these fields.

Note: an exit code alone does not prove a timeout or a signal: it may be the command's own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

from ..sources.jsonl import Record
from .shell import SimpleCommand, outer_commands, simple_commands, started

__all__ = ["BROKEN_OFF", "CODES", "ENDING_FIELDS", "OF_SIGNALS", "RUNS_ON", "SAYING", "ending", "truth", "with_ending"]

SAYING = ("status", "state", "outcome", "result", "conclusion", "verdict")
"""Fields in which a harness reports an outcome as a word."""
CODES = ("exitCode", "exit_code", "exitStatus", "exit_status", "returnCode", "return_code", "returncode", "rc")
"""Fields with an exit code, if their value is a number."""
_OF_TIMEOUT = 124
"""The exit code of `timeout` when time ran out."""
OF_SIGNALS = (_OF_TIMEOUT, 130, 137, 143)
"""Exit codes of `timeout`, and of programs that SIGINT, SIGKILL or SIGTERM ended."""
_LATE = ("timedOut", "timed_out", "isTimeout")
_ENDINGS = {
    **dict.fromkeys(("signal", "exitSignal", "signalCode"), "ended by a signal"), **dict.fromkeys(("interrupted", "wasInterrupted"), "interrupted"),
    **dict.fromkeys(("cancelled", "canceled"), "cancelled"), **{name: name for name in ("aborted", "killed", "terminated", "stopped")},
}  # fmt: skip
"""Fields, and words of `status`, in which a harness reports what ended a command."""
ENDING_FIELDS = ("timeout", *_LATE, *_ENDINGS)
BROKEN_OFF = ("interrupted", "cancelled", "aborted")
"""Endings that show nothing about the check."""
_OUT_OF_TIME = re.compile(r"(?i)timed?[ _-]?out")
_TOO_LONG = r"\btimed[ _-]?out\b|\btime-?out (?:after|exceeded|expired|reached)\b"
_RAN_OUT = re.compile(rf"(?i){_TOO_LONG}")
_WAS_ENDED = r"(?:interrupted|aborted|cancell?ed|killed|terminated|stopped)"
_ENDED = re.compile(
    rf"(?im){_TOO_LONG}|\bKeyboardInterrupt\b|(?:^|: )[^\w\n:]*{_WAS_ENDED}(?:: \d+| and printed nothing)?[^\w\n]*$|\b{_WAS_ENDED} by\b|"
    rf"\b(?:command|process|job|task|run|script|execution|operation|request)(?: is| was| has been| got)? {_WAS_ENDED}\b"
)
"""Words of an output that report what ended the command, excluding other uses (`killed mutants: 3`)."""
_SIGNAL = re.compile(r"SIG[A-Z0-9]{2,10}|\d{1,2}")
_TIMEOUT = frozenset(("timeout", "gtimeout"))
_LIMITED = re.compile(r"\s*g?timeout (?!.*--preserve-status)[^;|&]+\Z")
_SEPARATE = (";", "\n", "&")
RUNS_ON = (
    ("running", "isRunning", "stillRunning"),
    ("backgroundTaskId",),
    ("background", "inBackground", "runInBackground", "run_in_background"),
)
"""Fields in which a harness reports that a command is still running."""
_TRUTH = {
    **dict.fromkeys(("true", "yes"), True),
    **dict.fromkeys(("false", "no", "", "none", "null"), False),
}


def truth(value: Any, *, unknown: bool | None = None) -> bool | None:
    """The truth of a field: a boolean, a word for one, a number or a list; `unknown` for other words."""
    if value is None:
        return None
    if not isinstance(value, str):
        return bool(value)
    word = value.strip().lower()
    return word.strip("0") != "" if word.isdecimal() else _TRUTH.get(word, unknown)


def ending(payload: Record, command: str | None, code: int | None) -> str | None:
    """What interrupted a command or a check; None if unknown."""
    values = [value for name in SAYING if isinstance(value := payload.value(name), str)]
    words = [each[:20].strip().lower() for each in values]
    late = payload.value("timeout") is True or any(map(_OUT_OF_TIME.fullmatch, words))  # a number is the time limit
    late |= any(truth(payload.value(name), unknown=True) for name in _LATE)
    if late or (code == _OF_TIMEOUT and _is_limited(command or "")):
        return "timed out"
    for name, how in _ENDINGS.items():
        if truth(value := payload.value(name), unknown=True):
            signal = _SIGNAL.fullmatch(str(value)) if how == "ended by a signal" else None
            return how.replace("a signal", f"signal {value}" if str(value).isdigit() else str(value)) if signal else how
    status = str(payload.value("status"))[:20].strip().lower()
    if status in _ENDINGS and status not in ("signal", "stopped"):
        return _ENDINGS[status]
    return next((_ENDINGS[word] for word in words if _ENDINGS.get(word) in BROKEN_OFF), None)


def with_ending(summary: str | None, how: str) -> str | None:
    """A summary that states what ended a command; None without a summary."""
    if not summary:
        return None
    named = (_RAN_OUT if how == "timed out" else _ENDED).search(summary)
    signal = how.startswith("ended by ") and re.search(rf"\b{re.escape(how.removeprefix('ended by '))}\b", summary)
    return summary if named or signal else f"{how}: {summary}"


def _is_limited(command: str) -> bool:
    """Whether a command runs under `timeout` and exits with its code."""
    return any(map(_ends_in_time, (outer_commands(command), simple_commands(command)))) or bool(_LIMITED.match(command))


def _ends_in_time(commands: Sequence[SimpleCommand]) -> bool:
    """Whether a program under `timeout` may have ended a line: one after the last `;` whose failure is not ignored."""
    if not commands:
        return False
    ends = (*(each.behind for each in commands[1:]), "&" if commands[-1].ahead == "&" else "")
    starts = [n for n, each in enumerate(commands) if each.behind in _SEPARATE and not each.nested]
    first = starts[-1] if starts else 0
    for simple, end in zip(commands[first:], ends[first:], strict=True):
        in_front = simple.words[: len(simple.words) - len(started(simple.words))]
        limited = _TIMEOUT.intersection(PurePosixPath(each).name for each in in_front)
        if limited and "--preserve-status" not in in_front and end in ("", "&&", "|", "|&"):
            return True
    return False
