"""How a check came out: by what it printed first, then by its exit code; where neither says, nobody knows.

Gives: `checked`, the columns of an event that say so, and what it is made of: `outcome_of`, `printed_outcome`, `told_outcome`.

Note: no exit code is no success, and an exit code of 0 is none either where a pipe or a later
command ends the line. A check that still runs, or was sent to the background, has not come out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..sources.jsonl import Record
from .checks import FAMILIES, Check, checks_of
from .observations import report_passed

__all__ = ["checked", "outcome_of", "printed_outcome", "told_outcome"]

TAIL = 8_000
"""Characters at the end of an output in which a runner sums up."""
HEAD = 400
_RUNNING = re.compile(
    r"(?i)\b(?:command (?:is )?(?:still )?running in (?:the )?background|process running with (?:session|process)|moved to (?:the )?background|"
    r"running in (?:the )?background with id)"
)
_FAILED = re.compile(
    r"(?m)(?:(?<![\w.-])[1-9]\d* (?:tests? |specs? |examples?, )?(?:failed|failures?|failing|errors?)\b(?! (?:ignored|fixed))|"
    r"^[ \t]*test result: FAILED|^FAILED(?: \(|[ \t]+\S+(?:::|\.py))|^--- FAIL:|^FAIL(?:\s|$)|^not ok \d|^[ \t]*BUILD FAIL(?:ED|URE)\b|\bBUILD FAILURE\b|"
    r"^make(?:\[\d+\])?: \*\*\* |^npm (?:ERR!|error)|\berror TS\d+:|^error(?:\[E\d+\])?: |\b(?:Tests|Test Suites|Test Files)[ \t]{0,20}:?[ \t]{1,20}[1-9]\d* failed\b|"
    r"[✖✗] [1-9]\d* (?:problems?|failed)|\bFailed!\s+-\s+Failed:\s+[1-9])"
)
_PASSED = re.compile(
    r"(?m)(?:(?<![\w.-])[1-9]\d* (?:tests? |specs? )?(?:passed|passing|ok)\b|^[ \t]*test result: ok\b|^OK\b(?: \(|[ \t]*$)|^ok[ \t]+\S|"
    r"\bAll checks passed\b|\bno issues found\b|\b0 (?:tests )?(?:errors|failures|failed|failing|problems)\b|\bBUILD SUCCESS(?:FUL)?\b|\bPassed!\s+-\s+Failed:\s+0)"
)
_SAYS_SO = re.compile(r"(?i)\b(?:pass(?:es|ed|ing)?|succe(?:eds?|eded|ss|ssful)|all green|ok)\b")
_SAYS_NOT = re.compile(r"(?i)\b(?:fail(?:s|ed|ing|ures?)?|broken|errors?|not (?:pass|ok)\w*)\b")


def checked(
    kind: str, payload: Record, command: str | None, text: str | None, *, code: int | None, timed_out: bool
) -> dict[str, Any]:
    """`check_scope`, `check_outcome` and `check_clears` of an event; none where it checks nothing."""
    checks = checks_of(command) if kind in ("command.finished", "verification.finished") else []
    verification = kind == "verification.finished"
    if not checks and not verification:
        return {"check_scope": None, "check_outcome": None, "check_clears": None}
    words = text or payload.text("summary") or ""
    running = any(payload.value(*names) is True for names in _RUNS_ON)
    parsed = report_passed(words)
    if verification and parsed is None:
        parsed = told_outcome(words)
        if (said := _flag(payload)) is not None:
            parsed = False if parsed is False and _FAILED.search(words[-TAIL:]) else said
    outcome = outcome_of(checks, words, code=code, timed_out=timed_out, running=running, parsed=parsed)
    if verification and not checks and outcome == "unknown" and code is not None:
        outcome = "failed" if code else "passed"
    first = next((check for check in checks if check.family == "test"), checks[-1] if checks else None)
    clears = dict.fromkeys(family for check in checks for family in check.clears) if checks else FAMILIES
    return {
        "check_scope": first.scope if first else "test:",
        "check_outcome": outcome,
        "check_clears": list(clears) if outcome == "passed" and clears else None,
    }


_RUNS_ON = (("running",), ("background", "inBackground", "runInBackground", "run_in_background"))
"""Fields by which a harness says that a command still runs."""


def _flag(payload: Record) -> bool | None:
    """What a verification says of itself beside its text."""
    for name, passed in (("failed", False), ("passed", True), ("success", True), ("ok", True)):
        if isinstance(value := payload.value(name), bool):
            return value is passed
    return None


def outcome_of(
    checks: Sequence[Check],
    text: str,
    *,
    code: int | None = None,
    timed_out: bool = False,
    running: bool = False,
    parsed: bool | None = None,
) -> str:
    """How the checks of a command came out together. `parsed` is what a parser of reports says of the output."""
    said = printed_outcome(text) if parsed is None else parsed
    if said is False or timed_out:
        return "failed"
    if running or _RUNNING.search(text[:HEAD]):
        return "unknown"
    if code and any(check.fails for check in checks):
        return "failed"
    if said or (code == 0 and checks and all(check.passes for check in checks)):
        return "passed"
    return "unknown"


def printed_outcome(text: str) -> bool | None:
    """Whether an output says that its checks passed; None where it does not say."""
    end = text[-TAIL:]
    return False if _FAILED.search(end) else True if _PASSED.search(end) else None


def told_outcome(text: str) -> bool | None:
    """The same of a sentence in which somebody tells how a check came out."""
    found = printed_outcome(text)
    if found is not None:
        return found
    return False if _SAYS_NOT.search(text) else True if _SAYS_SO.search(text) else None
