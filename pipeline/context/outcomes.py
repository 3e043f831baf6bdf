"""How a check came out, and which failures it ends: by what ran, where, how it ended, and what it printed at its end.

Gives: `checked`, the columns of an event that say so, and `told_outcome` of a sentence.

Note: a pass needs two things: a command line that is understood, and an exit code of 0 that is the check's own or a summary of its own
in which tests passed. Whatever is not known to be a pass or a failure is unknown, and ends nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..sources.jsonl import Record
from .check_lines import Ran, checks_of
from .checks import EVERYTHING
from .observations import report_passed
from .summaries import summary_of

__all__ = ["checked", "told_outcome"]

HEAD = 400
_RUNNING = re.compile(
    r"(?i)\b(?:command (?:is )?(?:still )?running in (?:the )?background|process running with (?:session|process)|moved to (?:the )?background|"
    r"running in (?:the )?background with id)"
)
_SAYS_SO = re.compile(r"(?i)\b(?:pass(?:es|ed|ing)?|succe(?:eds?|eded|ss|ssful)|all green|ok)\b")
_SAYS_NOT = re.compile(r"(?i)\b(?:fail(?:s|ed|ing|ures?)?|broken|errors?|not (?:pass|ok)\w*)\b")
_NONE_OF = re.compile(r"(?i)\b(?:0|no|zero|without(?: any)?) (?:\w+ )?(?:fail(?:ed|ing|ures?)|errors?)\b")
_RUNS_ON = (("running",), ("background", "inBackground", "runInBackground", "run_in_background"))
"""Fields by which a harness says that a command still runs."""


def checked(
    kind: str,
    payload: Record,
    command: str | None,
    text: str | None,
    *,
    folder: str = "",
    root: str = "",
    code: int | None,
    timed_out: bool,
) -> dict[str, Any]:
    """The columns of an event about its checks: `check_scope`, `check_outcome`, and the names of the checks that passed
    (`check_clears`) or may have failed (`check_fails`); none where it checks nothing. `folder` is where the command ran.
    """
    verification = kind == "verification.finished"
    checks = checks_of(command, folder, root) if verification or kind == "command.finished" else []
    if not checks and not verification:
        return dict.fromkeys(("check_scope", "check_outcome", "check_clears", "check_fails"))
    words = text or payload.text("summary") or ""
    running = any(payload.value(*names) is True for names in _RUNS_ON) or bool(_RUNNING.search(words[:HEAD]))
    told = [_report(words) or summary_of(words, ran.check.program) for ran in checks]
    if verification:
        outcome = _verified(words, _flag(payload), code, timed_out=timed_out, running=running)
        known = all(ran.stands and ran.check.understood for ran in checks)
        outcome = "unknown" if outcome == "passed" and not known else outcome
    else:
        outcome = _outcome(checks, told, code=code, timed_out=timed_out, running=running)
    failing = [ran for ran, each in zip(checks, told, strict=True) if each == "failed"] or checks
    names = [ran.check.name for ran in checks] or [f"verification {command or ''}".strip()]
    return {
        "check_scope": " && ".join(names),
        "check_outcome": outcome,
        "check_clears": _passed(checks, names, command) if outcome == "passed" else None,
        "check_fails": _failed(failing, names) if outcome == "failed" else None,
    }


def _passed(checks: Sequence[Ran], names: list[str], command: str | None) -> list[str]:
    """The names of checks that have passed. What a harness verified without a command is all that there is."""
    if not checks:
        return names if command else [*names, EVERYTHING]
    return list(dict.fromkeys(name for ran in checks for name in ran.check.covers))


def _failed(checks: Sequence[Ran], names: list[str]) -> list[str]:
    """Of every check that may have failed its name, and the names of those that end its failure, a line each."""
    return list(dict.fromkeys("\n".join(ran.check.within) for ran in checks)) or [f"{names[0]}\n{EVERYTHING}"]


def _outcome(
    checks: Sequence[Ran], told: Sequence[str | None], *, code: int | None, timed_out: bool, running: bool
) -> str:
    """How the checks of a command came out together, with what the output says of each."""
    if "failed" in told or timed_out:
        return "failed"
    if running:
        return "unknown"
    said = list(zip(checks, told, strict=True))
    if code:
        return "failed" if any(ran.decides and (ran.alone or each != "passed") for ran, each in said) else "unknown"
    return "passed" if all(_has_passed(ran, each, code) for ran, each in said) else "unknown"


def _has_passed(ran: Ran, said: str | None, code: int | None) -> bool:
    """Whether a check is known to have passed, in a command that did not fail."""
    if not ran.stands or said == "nothing":
        return False
    if code is None or not ran.decides:
        return said == "passed" and ran.shown and ran.check.understood
    return said == "passed" or ran.check.understood or ran.check.family not in ("test", "all")


def _verified(words: str, flag: bool | None, code: int | None, *, timed_out: bool, running: bool) -> str:
    """What a verification says of itself: in its text, beside it, and by an exit code."""
    said = _report(words) or summary_of(words)
    if said == "failed" or timed_out:
        return "failed"
    if running:
        return "unknown"
    if code:
        return "failed"
    told = told_outcome(words) if flag is None else flag
    if told is None:
        return "unknown" if code is None else "passed"
    return "passed" if told else "failed"


def _report(text: str) -> str | None:
    """What a report in JUnit XML or TAP says."""
    passed = report_passed(text)
    return None if passed is None else "passed" if passed else "failed"


def _flag(payload: Record) -> bool | None:
    """What a verification says of itself beside its text."""
    for name, passed in (("failed", False), ("passed", True), ("success", True), ("ok", True)):
        if isinstance(value := payload.value(name), bool):
            return value is passed
    return None


def told_outcome(text: str) -> bool | None:
    """Whether a sentence, in which somebody tells how a check came out, says that it passed; None where it does not say."""
    found = summary_of(text)
    if found in ("passed", "failed"):
        return found == "passed"
    if _SAYS_NOT.search(_NONE_OF.sub(" ", text)):
        return False
    return True if _SAYS_SO.search(text) or _NONE_OF.search(text) else None
