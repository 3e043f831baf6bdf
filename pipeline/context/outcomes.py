"""How a check came out, and which failures it ends: by what ran, where, how it ended, and what it printed at its end.

Gives: `checked`, the columns of an event that say so, `stopped`, and `told_outcome` of a sentence.

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
from .verified_parts import Part, named, narrowed, spoken_of

__all__ = ["checked", "stopped", "told_outcome"]

HEAD = 400
_RUNNING = re.compile(
    r"(?i)\b(?:command (?:is )?(?:still )?running in (?:the )?background|process running with (?:session|process)|moved to (?:the )?background|(?:manually )?backgrounded by|"
    r"running in (?:the )?background with id)"
)
_SAYS_SO = re.compile(r"(?i)\b(?:pass(?:es|ed|ing)?|succe(?:eds?|eded|ss|ssful)|all green|ok)\b")
_SAYS_NOT = re.compile(
    r"(?i)\b(?:fail(?:s|ed|ing|ures?)?|broken|red|crash\w*|errors?|unsuccessful(?:ly)?|(?:not|never)(?: yet)? (?:pass|ok|succe)\w*|"
    r"(?:nothing|none|no \w+) (?:pass|succe)\w*)\b|n['\u2019]t (?:pass|succe)|失败|报错|错误|[未没不](?:有|能)?通过"
)
_NONE_OF = re.compile(
    r"(?i)\b(?:0|no|zero|without(?: any)?) (?:\w+ )?(?:fail(?:ed|ing|ures?)|errors?)\b|(?:没有|无|\b0 ?[个项]?)(?:失败|报错|错误)"
)
_PART_OF = re.compile(r"(?i)\b(?P<some>\d+)(?: (?:out )?of |/)(?P<all>\d+)\b(?=[^.\n]*\bpass)")
_NOT_YET = re.compile(
    r"(?i)\A\W*(?:is|are|do|does|did|has|have|can|was|were)\b|\b(?:cannot|unable|stopped|refus\w+|used to|false|nothing|would|should|could|might|may|will|must|if|once|until|unless|expect(?:s|ed)?|need(?:s|ed)? to|have to|"
    r"think|believe|probably|likely|seems?|hope(?:fully)?|before|earlier|previously|all but|most|some|only|almost|nearly|half|few)\b|\b\d\d?(?:\.\d+)?%|[?\uff1f]"
)
"""Words of what is hoped, asked, past, or true of a part."""
_BLANK = 3
"""Lines without words, around an output, that a harness may have left out."""
_NOT_RUN = re.compile(r"(?i)\b(?:skipped|(?:not|never|nothing) (?:run|ran|executed|started)|no tests?)\b")
_TOLD = {"failed": False, "isError": False, "is_error": False, "passed": True, "success": True, "ok": True}
"""Fields by which a harness says how a command or a verification came out, and what it says where they are true."""
_STATES = {
    **dict.fromkeys(("passed", "pass", "success", "succeeded", "ok"), "passed"),
    **dict.fromkeys(("failed", "fail", "failure", "error", "errored"), "failed"),
    **dict.fromkeys(("timeout", "timed_out", "interrupted", "cancelled", "canceled", "aborted", "killed"), "failed"),
    **dict.fromkeys(("running", "pending", "queued", "started", "in_progress"), "running"),
}
"""What `status` and `outcome` say; other words of theirs say nothing of a check."""
_SAYING = ("status", "state", "outcome", "result", "conclusion", "verdict")
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False, "": False}
_STOPPED = (
    "timedOut", "timed_out", "isTimeout", "interrupted", "wasInterrupted", "cancelled", "canceled", "aborted", "killed", "terminated", "stopped",
    "signal", "exitSignal", "signalCode",
)  # fmt: skip
_RUNS_ON = (
    ("running", "isRunning", "stillRunning"),
    ("backgroundTaskId",),
    ("background", "inBackground", "runInBackground", "run_in_background"),
)
"""Fields by which a harness says that a command still runs."""


def stopped(payload: Record) -> bool:
    """Whether a harness says that a command did not come to its end: it was interrupted, killed, or took too long."""
    said = [_truth(payload.value(name), unknown=True) for name in _STOPPED]
    return any(said) or payload.value("timeout") is True  # a number there is how long it may take


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
    part = named(payload, root) if verification else Part()
    line = command or " ".join(part.labels)
    checks = checks_of(line, folder, root) if verification or kind == "command.finished" else []
    checks = narrowed(checks, part.beyond(line, labels=payload.text("command") is None), root)
    if not checks and not verification:
        return dict.fromkeys(("check_scope", "check_outcome", "check_clears", "check_fails"))
    words = text or payload.text("summary") or ""
    says = _says(payload)
    running = says == "running" or bool(_RUNNING.search(words[:HEAD]))
    running |= any(payload.value(*names) not in (None, False) for names in _RUNS_ON)
    told = [_report(words) or _summed_up(ran, words, checks) for ran in checks]
    if verification:
        outcome = _verified(words, says, code, timed_out=timed_out, running=running)
        known = all(ran.stands and ran.check.understood for ran in checks)
        outcome = "unknown" if outcome == "passed" and not known else outcome
    else:
        outcome = _outcome(checks, told, code=code, failed=timed_out or says == "failed", running=running)
    failing = [ran for ran, each in zip(checks, told, strict=True) if each == "failed"] or checks
    of = "" if checks else " ".join(filter(None, (command, str(part)))) or spoken_of(words)
    names = [ran.check.name for ran in checks] or [f"verification {of}".strip()]
    return {
        "check_scope": " && ".join(names),
        "check_outcome": outcome,
        "check_clears": _passed(checks, names, of) if outcome == "passed" else None,
        "check_fails": _failed(failing, names) if outcome == "failed" else None,
    }


def _passed(checks: Sequence[Ran], names: list[str], part: str) -> list[str]:
    """The names of checks that have passed. What a harness verified without a command is all that there is, unless it names a part."""
    if not checks:
        return names if part else [*names, EVERYTHING]
    return list(dict.fromkeys(name for ran in checks for name in ran.check.covers))


def _failed(checks: Sequence[Ran], names: list[str]) -> list[str]:
    """Of every check that may have failed its name, and the names of those that end its failure, a line each."""
    return list(dict.fromkeys("\n".join(ran.check.within) for ran in checks)) or [f"{names[0]}\n{EVERYTHING}"]


def _outcome(
    checks: Sequence[Ran], told: Sequence[str | None], *, code: int | None, failed: bool, running: bool
) -> str:
    """How the checks of a command came out together, with what the output says of each."""
    if failed or "failed" in told:
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


def _verified(words: str, says: str | None, code: int | None, *, timed_out: bool, running: bool) -> str:
    """What a verification says of itself: in its text, beside it, and by an exit code."""
    said = _report(words) or summary_of(words)
    if "failed" in (said, says) or timed_out:
        return "failed"
    if running:
        return "unknown"
    if code:
        return "failed"
    told = told_outcome(words) if says is None else says == "passed"
    if told is None:
        return "unknown" if code is None or said == "nothing" or _NOT_RUN.search(words) else "passed"
    return "passed" if told else "failed"


def _summed_up(ran: Ran, words: str, checks: Sequence[Ran]) -> str | None:
    """What an output says of a check. Where the line shows no more than the last lines, a summary of a part passes nothing."""
    several = sum(each.check.program == ran.check.program for each in checks) > 1
    cut = ran.last is not None and len(words.splitlines()) >= ran.last - _BLANK
    told = summary_of(words, ran.check.program, cut=cut, several=several)
    of_packages = ran.check.program.startswith("script ") and bool(ran.check.other)
    return None if told == "passed" and cut and of_packages else told


def _report(text: str) -> str | None:
    """What a report in JUnit XML or TAP says."""
    passed = report_passed(text)
    return None if passed is None else "passed" if passed else "failed"


def _says(payload: Record) -> str | None:
    """What a harness says beside the text: `failed` where any of its fields does, `running`, `passed`, or nothing."""
    said: set[str | None] = set()
    for name, passed in _TOLD.items():
        truth = _truth(payload.value(name))
        said |= {None if truth is None else "passed" if truth is passed else "failed"}
    said |= {"failed" for name in ("failures", "errors") if _truth(payload.value(name))}
    said |= {"failed"} if _truth(payload.value("error"), unknown=True) else set()
    for name in _SAYING:
        said |= {_STATES.get(str(payload.value(name))[:20].strip().lower().replace("-", "_"))}
    return next((each for each in ("failed", "running", "passed") if each in said), None)


def _truth(value: Any, *, unknown: bool | None = None) -> bool | None:
    """Whether a field says yes: a truth value, a word for one, a number or a list of what there is; `unknown` for other words."""
    if value is None:
        return None
    return _TRUTH.get(value.strip().lower(), unknown) if isinstance(value, str) else bool(value)


def told_outcome(text: str) -> bool | None:
    """Whether a sentence about the result of a check says that it passed; None if it does not say."""
    found = summary_of(text)
    if found is not None:
        return None if found == "nothing" else found == "passed"
    some = [each for each in _PART_OF.finditer(text) if int(each["some"]) < int(each["all"])]
    if some or _SAYS_NOT.search(_NONE_OF.sub(" ", text)):
        return False
    if _NOT_YET.search(text):
        return None
    return True if _SAYS_SO.search(text) or _NONE_OF.search(text) else None
