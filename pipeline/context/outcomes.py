"""The outcome of a check, and the failures that it ends: by its command, place, ending and the end of its output.

Gives: `checked`, the columns of an event that say so, `stated_outcome` of a sentence, and `failure_of`, the summary of a
failed command.

Note: a pass needs two things: a command line that is understood, and an exit code of 0 or a summary with passed tests,
either of them the check's own. An outcome that is neither certainly a pass nor a failure is unknown, and ends nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from ..sources.jsonl import Record
from .check_lines import Ran, checks_of
from .checks import EVERYTHING
from .endings import BROKEN_OFF, RUNS_ON, ending, truth
from .observations import report_passed
from .outcome_fields import Listed, code_of, says
from .printed_codes import printed_codes
from .summaries import summary_of
from .verified_parts import VerifiedPart, named, narrowed, spoken_of, statement

__all__ = ["NOTHING", "NO_OUTPUT", "checked", "failure_of", "stated_outcome"]

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
_COUNT = r"(\d{1,9})(?: (?:out )?of |/)(\d{1,9})\b"
_PART_OF = re.compile(rf"(?i)\b{_COUNT}")
_PASSED_OF = re.compile(rf"(?i)\b(?:pass\w*|succeeded|green|ok)\W{{1,3}}{_COUNT}")
_PASSED = re.compile(r"(?i)\b(?:pass|succe|green|ok\b)")
"""Counts of a part and of all, before or after a word that reports a pass."""
_NOT_YET = re.compile(
    r"(?i)\A\W*(?:is|are|do|does|did|has|have|can|was|were)\b|\b(?:cannot|unable|stopped|refus\w+|used to|false|nothing|would|should|could|might|may|will|must|if|once|until|unless|expect(?:s|ed)?|need(?:s|ed)? to|have to|"
    r"think|believe|probably|likely|seems?|hope(?:fully)?|before|earlier|previously|all but|most|some|only|almost|nearly|half|few)\b|\b\d\d?(?:\.\d+)?%|[?\uff1f]"
)
"""Words for hopes, questions, past states, or parts."""
_FAILS_ALONE = re.compile(
    r"(?i)\W*(?:(?!(?:what|that|which|fix\w*|repair\w*|resolv\w*|none|no|nothing|including|previous\w*|earlier|old|last)\b)[^\s,;]+\s+){1,3}(?:failed|fails|failing|failures?)\W*|\W*\d+ ?[个项]?失败\W*"
)
"""A clause that reports that a part, or a number, failed."""
_UNNAMED = "verification"
_SHORT = {"ruff": "ruff check", "biome": "biome check"}
"""Programs that people name by less than the command that checks."""
_ONLY = re.compile(
    r"(?i)[(\uff08][^\n]*(?:\b(?:only|just|but|except|without|excluding|not|parts?|partly|some|most)\b|[\u4ec5\u53ea\u9664])"
)
_ONE = re.compile(r"(?i)[(\uff08](?:[\w-]*[/.][\w./-]*|the\s+[\w-]+\s+(?:tests?|ones|suite|checks?))\.?[)\uff09]\.?")
"""Remarks that narrow the previous sentence: with such a word, or by the name of a part."""
NO_OUTPUT = "(no output)"
NOTHING = ("", NO_OUTPUT)
"""Texts of an empty output."""
_NAMED = 200
"""Most characters of a command before what became of it."""
_OF_A_HARNESS = re.compile(r"(?i)\W*command timed out\b.*")
"""A line in which a harness reports that it ended a command."""
_BLANK = 3
"""Most blank lines around an output that a harness may have removed."""
_NOT_RUN = re.compile(r"(?i)\b(?:skipped|(?:not|never|nothing) (?:run|ran|executed|started)|no tests?)\b")


def checked(
    kind: str,
    payload: Record,
    command: str | None,
    text: str | None,
    *,
    folder: str = "",
    root: str = "",
    code: int | None,
    ended: str | None,
) -> dict[str, Any]:
    """The columns of an event about its checks: `check_scope`, `check_outcome`, and the names of the checks that passed
    (`check_clears`) or may have failed (`check_fails`); all None if it checks nothing. `folder` is where the command
    ran, `ended` the result of `ending`.
    """
    if kind != "verification.finished":
        return _checked(kind, payload, command, text, folder, root, code, ended=ended)
    whole, *parts = Listed.of(payload)
    result = _checked(kind, whole.payload, command, text, folder, root, code, ended=ended)
    words = text or payload.text("summary") or ""
    if parts:
        found = [_of_part(each.payload, command, folder, root) for each in parts]
        silent = says(whole.payload) is None and code is None and not words and ended is None
        return _joined(result, found, [each.lists for each in parts], silent=silent)
    sentences = [] if command or named(payload, root) != VerifiedPart() or summary_of(words) else statement(words)
    telling = _telling(sentences)
    if len(sentences) < 2 or not telling:
        return result
    fields = payload if says(payload) == "passed" else Record(payload.at, {})
    found = [_checked(kind, fields, None, each, folder, root, None, ended=None) for each in telling]
    return _joined(result, found, [False] * len(found), silent=False)


def _telling(sentences: Sequence[str]) -> list[str]:
    """The sentences that report an outcome; one that names no part refers to the part named before it ("Ran the parser
    tests. All passed."), and includes a remark in parentheses that narrows it ("Passed. (parser only)").
    """
    found, subject = list[str](), ""
    for each in sentences:
        if found and (_ONLY.match(each) or (_ONE.fullmatch(each) and spoken_of(each))):
            found[-1] = f"{found[-1]} {each}"
        elif stated_outcome(each) is None:
            subject = f"{subject} {each}" if spoken_of(each) else subject
        else:
            found.append(each if spoken_of(each) else f"{subject} {each}".strip())
    return found


def _of_part(part: Record, command: str | None, folder: str, root: str) -> dict[str, Any]:
    """The same for a part that a verification lists: by its own command, its name if that is one, or the common one."""
    own = part.text("command", "tool", "toolName")
    line = own or (None if checks_of(" ".join(named(part, root).labels)) else command)
    text, code = part.text("text", "message", "output"), code_of(part)
    ended = ending(part, line, code)
    return _checked("verification.finished", part, line, text, folder, root, code, ended=ended)


def _joined(
    whole: Mapping[str, Any], parts: Sequence[Mapping[str, Any]], lists: Sequence[bool], *, silent: bool
) -> dict[str, Any]:
    """The combined columns of a verification and its parts: a pass ends the failures of what passed, and failed parts
    stay failed. `lists`: which parts have parts themselves; `silent`: the verification itself reports nothing.
    """
    outcomes = {each["check_outcome"] for each in parts}
    outcome = "passed" if outcomes == {"passed"} and (silent or whole["check_outcome"] == "passed") else "unknown"
    outcome = "failed" if "failed" in (whole["check_outcome"], *outcomes) else outcome
    failing = [name for each in parts for name in each["check_fails"] or ()]
    denied = whole["check_outcome"] == "failed" and not failing  # it is unknown which of them is wrong
    failing = failing or whole["check_fails"] or []
    kept = {name for each in failing for name in each.split("\n")} | ({EVERYTHING} if outcome != "passed" else set())
    passing = [
        each["check_clears"] or () for each, more in zip(parts, lists, strict=True) if not more or outcome == "passed"
    ]
    unnamed = (EVERYTHING, _UNNAMED)
    own = [each for each in whole["check_clears"] or () if each not in unnamed] if outcome == "passed" else []
    clears = [name for name in dict.fromkeys((*own, *chain.from_iterable(passing))) if name not in kept and not denied]
    scopes = dict.fromkeys(each["check_scope"] for each in (whole, *parts) if each["check_scope"] != _UNNAMED)
    return {
        "check_scope": " && ".join(scopes) or _UNNAMED,
        "check_outcome": outcome,
        "check_clears": clears or None,
        "check_fails": list(dict.fromkeys(failing)) or None,
    }


def _checked(
    kind: str,
    payload: Record,
    command: str | None,
    text: str | None,
    folder: str,
    root: str,
    code: int | None,
    *,
    ended: str | None,
) -> dict[str, Any]:
    """The same for one that lists no parts."""
    verification = kind == "verification.finished"
    part = named(payload, root) if verification else VerifiedPart()
    labels = " ".join(part.labels)
    line = command or _SHORT.get(labels, labels)
    checks = checks_of(line, folder, root) if verification or kind == "command.finished" else []
    checks = narrowed(checks, part.beyond(line, labels=payload.text("command") is None), root)
    if not checks and not verification:
        return dict.fromkeys(("check_scope", "check_outcome", "check_clears", "check_fails"))
    words = text or payload.text("summary") or ""
    reported = says(payload)
    running = reported == "running" or bool(_RUNNING.search(words[:HEAD]))
    running |= any(truth(payload.value(*names), unknown=True) for names in RUNS_ON)
    report = _report(words)
    results = [report or _summed_up(ran, words, checks) for ran in checks]
    broken_off = ended in BROKEN_OFF  # it would have continued: its output so far is all that is known
    late = ended is not None and not broken_off
    if verification:
        beside, running = payload.text("summary") or "", running or broken_off
        outcome = _verified(words, beside, reported, code, report=report, timed_out=late, running=running)
        known = all(ran.conclusive and ran.check.understood for ran in checks)
        outcome = "unknown" if outcome == "passed" and not known else outcome
    elif broken_off:
        outcome = _outcome(checks, results, code=None, failed=False, running=True)
    else:
        outcome = _outcome(checks, results, code=code, failed=late or reported == "failed", running=running)
        outcome = "unknown" if outcome == "passed" and reported == "short" else outcome
    if checks and outcome != "failed" and not (running or broken_off):
        outcome = _with_codes(outcome, printed_codes(command or "", words), checks, code)
    with_results = list(zip(checks, results, strict=True))
    failing = [ran for ran, each in with_results if each == "failed"]
    failing = failing or [ran for ran, each in with_results if each != "passed"] or checks
    of = "" if checks else " ".join(filter(None, (command, str(part)))) or spoken_of(words)
    names = [ran.check.name for ran in checks] or [f"{_UNNAMED} {of}".strip()]
    return {
        "check_scope": " && ".join(names),
        "check_outcome": outcome,
        "check_clears": _passed(checks, names, of) if outcome == "passed" else None,
        "check_fails": _failed(failing, names) if outcome == "failed" else None,
    }


def _passed(checks: Sequence[Ran], names: list[str], part: str) -> list[str]:
    """The names of checks that passed. A verification without a command covers everything, unless it names a part."""
    if not checks:
        return names if part else [*names, EVERYTHING]
    return list(dict.fromkeys(name for ran in checks for name in ran.check.covers))


def _failed(checks: Sequence[Ran], names: list[str]) -> list[str]:
    """The name of every check that may have failed, followed by the names that end its failure, a line each."""
    return list(dict.fromkeys("\n".join(ran.check.within) for ran in checks)) or [f"{names[0]}\n{EVERYTHING}"]


def _outcome(
    checks: Sequence[Ran], results: Sequence[str | None], *, code: int | None, failed: bool, running: bool
) -> str:
    """The joint outcome of the checks of a command, given the outcome of each in the output."""
    if failed or "failed" in results:
        return "failed"
    if running:
        return "unknown"
    with_results = list(zip(checks, results, strict=True))
    if code:
        return (
            "failed"
            if any(ran.decides and (ran.alone or each != "passed") for ran, each in with_results)
            else "unknown"
        )
    return "passed" if all(_has_passed(ran, each, code) for ran, each in with_results) else "unknown"


def _with_codes(outcome: str, shown: str | None, checks: Sequence[Ran], code: int | None) -> str:
    """An outcome, given what `printed_codes` shows."""
    if shown == "failed" and all(ran.alone for ran in checks):
        return "failed"
    proven = code == 0 and all(ran.decides for ran in checks)
    return outcome if shown is None or proven else "unknown"


def _has_passed(ran: Ran, result: str | None, code: int | None) -> bool:
    """Whether a check is known to have passed, in a command that did not fail."""
    if not ran.conclusive or result == "nothing" or ("--if-present" in ran.check.other and result != "passed"):
        return False
    if code is None or not ran.decides:
        return result == "passed" and (ran.shown or (ran.quiet and code == 0)) and ran.check.understood
    return result == "passed" or ran.check.understood or ran.check.family not in ("test", "all")


def _verified(
    words: str, beside: str, says: str | None, code: int | None, *, report: str | None, timed_out: bool, running: bool
) -> str:
    """The outcome that a verification reports: in its text, a summary `beside` it, fields, and an exit code."""
    summary, both = report or summary_of(words), (words, beside)
    denied = "failed" in (summary, says, summary_of(beside)) or (
        says == "passed" and any(map(_tells_of_a_failure, both))
    )
    if denied or timed_out:
        return "failed"
    if running or says == "short":
        return "unknown"
    if code:
        return "failed"
    if says == "passed":
        return "unknown" if any(_counts_fewer("\n".join(statement(each))) for each in both) else "passed"
    passed = stated_outcome(words)
    if passed is None:
        return "unknown" if code is None or summary == "nothing" or _NOT_RUN.search(words) else "passed"
    return "passed" if passed else "failed"


def _tells_of_a_failure(words: str) -> bool:
    """Whether a clause of a statement explicitly reports a failure."""
    clauses = (
        clause
        for each in statement(words)
        for clause in re.split(r"[,;\uff0c]|\b(?:and|but)\b", _NONE_OF.sub(" ", each))
    )
    return any(_FAILS_ALONE.fullmatch(each) and not _NOT_YET.search(each) for each in clauses)


def _counts_fewer(words: str) -> bool:
    """Whether the words count fewer passes than there are tests."""
    counts = [*_PASSED_OF.finditer(words)]
    for clause in re.split(r"[.\n]", words):
        last = max((each.start() for each in _PASSED.finditer(clause)), default=0)
        counts += _PART_OF.finditer(clause, 0, last)
    return any(int(each[1]) < int(each[2]) for each in counts)


def _summed_up(ran: Ran, words: str, checks: Sequence[Ran]) -> str | None:
    """The outcome of a check in an output. If only the last lines are shown, a summary of a part proves no pass."""
    if ran.quiet and len(checks) == 1 and words.strip() in NOTHING:
        return "passed"
    several = sum(each.check.program == ran.check.program for each in checks) > 1
    cut = ran.last is not None and len(words.splitlines()) >= ran.last - _BLANK
    summary = summary_of(words, ran.check.program, cut=cut, several=several)
    of_packages = ran.check.program.startswith("script ") and bool(ran.check.other)
    return None if summary == "passed" and cut and of_packages else summary


def _report(text: str) -> str | None:
    """The outcome in a report in JUnit XML or TAP."""
    passed = report_passed(text)
    return None if passed is None else "passed" if passed else "failed"


def failure_of(command: str | None, text: str | None, how: str | None, summary: str | None) -> str:
    """The summary of a failed command: a line of its output, if one tells of the failure, else its name and `how` it
    ended.
    """
    name, output = command or "a command", (text or "").strip()
    name = name if len(name) <= _NAMED else f"{name[:_NAMED]}..."
    if output in NOTHING:
        return f"{name}: {how or 'failed'} and printed nothing"
    if not summary:
        return f"{name}: {how or 'failed'}"
    return f"{name}: {summary}" if _OF_A_HARNESS.fullmatch(output) else summary


def stated_outcome(text: str) -> bool | None:
    """Whether a sentence about a check reports a pass; None if it reports no outcome."""
    found = summary_of(text)
    if found is not None:
        return {"passed": True, "failed": False}.get(found)
    if _counts_fewer(text) or _SAYS_NOT.search(_NONE_OF.sub(" ", text)):
        return False
    if _NOT_YET.search(text):
        return None
    return True if _SAYS_SO.search(text) or _NONE_OF.search(text) else None
