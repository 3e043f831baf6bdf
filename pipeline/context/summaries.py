"""The summary lines that common runners, linters and builds print at the end.

Gives: `summary_of`, and `ESCAPES`, which are removed before an output is read.

Note: a line is a summary as a whole or not at all. A test named "retries 2 failing requests", a warning, and a log line
are not summaries. If nothing ran, nothing has passed; if a run was broken off, its summary is of a part.
"""

from __future__ import annotations

import re
from functools import cache

__all__ = ["ESCAPES", "LINE", "TAIL", "summary_of"]

TAIL = 8_000
"""Number of characters at the end of an output that may contain a summary."""
LINE = 240
"""Longest summary line, in characters."""
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\(B")
"""Escape sequences of a terminal: colors, titles, links, the character set."""
_COUNTS = r"(?:\d+|no) [a-z]+(?: [a-z]+)?(?:(?:,| \||;) (?:\d+|no) [a-z]+(?: [a-z]+)?)*"
_PAIRS = r"[A-Z][a-z]+(?: run)?:\s{1,20}\d+(?:, [A-Z][a-z]+(?: run)?:\s{1,20}\d+)+"
_TIME = r"(?: \([\d.:]+ ?\w{1,3}\))?"
_SUMMARIES: dict[str, str] = {
    "pytest": rf"(?:=+ )?(?:{_COUNTS}|no tests ran) in [\d.]+s(?: \([\d:]+\))?(?: =+)?|(?:\d+ (?:failed|skipped), )*\d+ (?:passed|failed)(?:, \d+ [a-z]+)*|(?:FAILED|ERROR) \S+\.py(?:::\S.*| - .*)?",
    "unittest": r"OK(?: \([a-z]+(?: [a-z]+)?=\d+(?:, [a-z]+(?: [a-z]+)?=\d+)*\))?|FAILED \(.+\)|NO TESTS RAN.*|Ran \d+ tests? in .+",
    "jest": rf"(?:Tests|Test Suites):\s+{_COUNTS}",
    "vitest": rf"(?:Tests|Test Files)\s+(?:{_COUNTS}|no tests)(?: \(\d+\))?|(?:Type )?Errors\s+\d+ errors?",
    "mocha": rf"\d+ (?:passing|failing|pending){_TIME}",
    "playwright": rf"\d+ (?:passed|failed|flaky|skipped|did not run){_TIME}",
    "ava": r"\d+ tests? (?:passed|failed)",
    "node": r"(?:#|\u2139) (?:tests|pass|fail|cancelled) \d+",
    "bun": r"\d+ (?:pass|fail)",
    "cypress": r"✔ +All specs passed!.*|✖ +\d+ of \d+ failed.*",
    "karma": r"(?:.*: )?Executed \d+ of \d+ .*(?:SUCCESS|FAILED).*|TOTAL: \d+ (?:SUCCESS|FAILED).*",
    "cargo": r"test result: (?:ok|FAILED)\. .*|error: (?:test failed|could not compile|\d+ targets? failed|aborting due to).*|error\[E\d+\]: .*",
    "nextest": r"Summary \[.*\] .*\d+ tests? run: .*",
    "go": r"ok\s+\S+\s+(?:\(cached\)|[\d.]+s)(?:\s+coverage: .*)?|FAIL(?:\s.*)?|--- FAIL: .*|DONE \d+ tests.*",
    "maven": rf"(?:\[\w+\] )?{_PAIRS}|(?:\[\w+\] )?BUILD (?:SUCCESS|FAILURE)",
    "gradle": r"BUILD (?:SUCCESSFUL|FAILED) in .*|BUILD FAILED|\d+ tests? completed, \d+ failed.*",
    "ctest": r"\d+% tests passed, \d+ tests failed out of \d+",
    "rspec": r"\d+ (?:examples?|runs|tests?|doctests?|properties|scenarios)(?:, \d+ [a-z]+)*, \d+ failures?(?:, \d+ [a-z]+)*",
    "phpunit": rf"OK \(\d+ tests?, \d+ assertions?\)|OK, but .*|(?:FAILURES|ERRORS)!|{_PAIRS}\.?",
    "dotnet": rf"(?:Passed!|Failed!)\s+-\s+{_PAIRS}.*|Test summary: total: \d+, failed: \d+, succeeded: \d+.*|Test Run (?:Successful|Failed)\.",
    "deno": r"(?:ok|FAILED) \| \d+ passed.*",
    "tox": r"congratulations :\).*|evaluation failed :\(.*",
    "nox": r"nox > (?:Session .* (?:was successful|failed)\b.*|\* .*: (?:success|failed|skipped).*)",
    "swift": r"Executed \d+ tests?, with .*|. ?Test run with \d+ tests? (?:in .* )?(?:passed|failed) after .*",
    "zig": r"All \d+ tests passed\.",
    "dart": r"[\d:]+ [+\-~ \d]+: (?:All tests passed!|Some tests failed\.)",
    "bazel": r"Executed \d+ out of \d+ tests?: .*",
    "meson": r"(?:Ok|Fail|Timeout):\s+\d+",
    "sbt": r"\[(?:info|error)\] (?:Passed|Failed): Total \d+, .*|\[info\] All tests passed\.",
    "prove": r"Result: (?:PASS|FAIL|NOTESTS)|All tests successful\.",
    "tap": r"not ok \d+(?!.*# ?(?i:todo|skip)).*",
    "ruff": r"All checks passed!|Found \d+ errors?(?: \(\d+ fixed, \d+ remaining\))?\.?|\d+ files? would be reformatted.*|\d+ files? (?:already formatted|left unchanged)",
    "mypy": r"Success: no issues found.*|Found \d+ errors? in \d+ files?.*",
    "pyright": r"\d+ errors?, \d+ warnings?(?:, \d+ \w+)?",
    "eslint": r"[✖✗] \d+ problems? \(\d+ errors?, \d+ warnings?\)|[✖✗] \d+ problems?",
    "tsc": r".*\berror TS\d+: .*|Found \d+ errors?(?: in .*)?\.?",
    "rubocop": r"\d+ files? inspected, (?:no|\d+) offenses? detected.*",
    "golangci": r"\d+ issues[.:]?",
    "prettier": r"All matched files use Prettier code style!|\[\w+\] Code style issues found.*",
    "make": r"g?make(?:\[\d+\])?: (?:\*\*\* (?!.*\(ignored\))|Target .* not remade because of errors).*",
    "pre-commit": r".{1,80}\.{3,}(?:\(.*\))?(?:Passed|Failed|Skipped)",
    "coverage": r"FAIL Required test coverage of .* not reached.*|Coverage failure: total of \S+ is less than fail-under=.*|"
    r"Jest: .*coverage threshold .*not met.*|ERROR: Coverage for .* does not meet .*threshold.*",
    "scripts": r"npm (?:ERR!|error) (?:code|Test failed|Lifecycle script).*|error Command failed with exit code \d+\.?|.*\bELIFECYCLE\b.*",
}  # fmt: skip
"""Summary lines of programs, by style."""
_STYLES = {
    "pytest": ("pytest",), "unittest": ("unittest",), "manage.py test": ("unittest",), "green": ("unittest",), "trial": ("unittest",), "nose2": ("unittest",),
    "jest": ("jest",), "vitest": ("vitest",), "mocha": ("mocha",), "ava": ("ava",), "node --test": ("node", "tap"), "bun test": ("bun",), "playwright test": ("playwright",),
    "cypress run": ("cypress",), "karma start": ("karma",), "cargo test": ("cargo",), "cargo nextest": ("nextest", "cargo"), "go test": ("go",), "gotestsum": ("go",),
    "ctest": ("ctest",), "rspec": ("rspec",), "prove": ("prove",), "bats": ("tap", "rspec"), "mix test": ("rspec",), "rails test": ("rspec",), "phpunit": ("phpunit",), "pest": ("phpunit", "jest"),
    "dotnet test": ("dotnet",), "deno test": ("deno",), "nox": ("nox", "pytest"), "swift test": ("swift",), "zig test": ("zig",),
    "dart test": ("dart",), "flutter test": ("dart",), "bazel test": ("bazel",), "meson test": ("meson",), "sbt test": ("sbt",),
    "ruff check": ("ruff",), "ruff format": ("ruff",), "black": ("ruff",), "mypy": ("mypy",), "dmypy": ("mypy",), "pyright": ("pyright",), "basedpyright": ("pyright",),
    "eslint": ("eslint",), "tsc": ("tsc",), "vue-tsc": ("tsc",), "rubocop": ("rubocop",), "golangci-lint": ("golangci",), "prettier": ("prettier",),
    "cargo check": ("cargo",), "cargo clippy": ("cargo",), "cargo build": ("cargo",), "cargo test --no-run": ("cargo",),
}  # fmt: skip
"""The styles of a program. Any other program may start any of them."""
_OF_A_PART = {"jest": "Tests", "vitest": "Tests", "playwright": "", "dotnet": "", "nox": "", "pre-commit": ""}
"""Beginnings of lines that report a pass of a part: another part may have failed before."""
_COUNTED = re.compile(r"\b(?P<count>\d+|no) (?P<word>[a-z]+(?: (?:fixed|remaining|passed|failed|run|detected))?)")
_PAIRED = re.compile(r"\b(?P<word>[A-Za-z]+(?: run)?)[:=]? {0,20}(?P<count>\d+)")
_IN_PAIRS = frozenset(("maven", "phpunit", "dotnet", "node", "meson", "sbt", "unittest"))
"""Styles with the name before the count: `Failures: 1`."""
_BAD = frozenset((
    "failed", "fail", "fails", "failures", "failure", "failing", "errors", "error", "flaky", "cancelled", "timeout", "tests failed", "test failed", "problems", "problem",
    "offenses", "offense", "offenses detected", "offense detected", "issues", "unexpected", "timed", "targets", "target",
))  # fmt: skip
_GOOD = frozenset((
    "passed", "pass", "passing", "succeeded", "success", "ok", "tests passed", "test passed", "examples", "example", "runs", "run", "tests run", "test run", "tests",
    "test", "doctests", "doctest", "ran", "total", "scenarios",
))  # fmt: skip
_FAILS = re.compile(
    r"FAILED\b|FAIL\b|Result: FAIL|ERROR \S+\.py|(?:Coverage failure|Jest|ERROR): |.*\.\.\..*Failed\Z|(?:.*: )?Executed .*\bFAILED|TOTAL: .*\bFAILED|--- FAIL:|FAILURES!|ERRORS!|Failed!|not ok\b|BUILD FAIL|make\b|gmake\b|npm\b|error\b|evaluation failed|Test Run Failed|nox > .*\bfailed\b|"
    r"\[error\]|.*\bSome tests failed|.*\berror TS\d|.*ELIFECYCLE|.*would be reformatted|.*Code style issues|.*Test run with .* failed"
)
_PASSES = re.compile(
    r".*\.\.\..*Passed\Z|100% tests passed|ok\b|OK\b|congratulations|BUILD SUCCESS|All \d* ?(?:checks|specs|matched|tests)\b|Result: PASS|✔ +All|Test Run Successful|nox > .*\bsuccess|Success:|.*All tests passed|Passed!|"
    r"\d+ files? (?:already|left)|.*Test run with .* passed|Executed .*: .*\bpass"
)
_NOTHING = re.compile(
    r"(?i)\bno tests? (?:files? )?(?:ran|found|were found|to run|executed|is available|matches|files)\b|\[no test files\]|\bcollected 0 items|\bRan 0 tests|\brunning 0 tests|"
    r"(?<![\w.])0 (?:tests? )?(?:passed|passing|pass|examples|tests|runs)\b|\bTests run: 0\b|^1\.\.0\b|\bNothing to be done for\b|^g?make(?:\[\d+\])?: .* is up to date|\bExecuted 0\b|"
    r"\b(?:tests|pass) 0$|\bTest run with 0 tests|\bNO-SOURCE\b|^Tests +no tests|^Result: NOTESTS"
)
_TEST_TASK = re.compile(r"(?:> Task )?(?::[^\s:]+)*:(?:test|\w+Test)(?: (?P<how>[A-Z-]+))?")
"""The line of a test task of Gradle."""
_BROKEN_OFF = re.compile(
    r"!+ .* !+|error: (?:Recipe|script) .*|task: Failed .*|INTERNALERROR>.*|Fatal Python error: .*|KeyboardInterrupt|.*\(signal: \d+.*|Command (?:exited with non-zero status|terminated by signal) \d+|"
    r"(?:.*(?:: |\d ))?(?i:killed|terminated|aborted|segmentation fault|bus error|illegal instruction|floating point exception|trace/breakpoint trap)(?:: \d+)?(?: \(core dumped\))?(?:\s{2,}.*)?|"
    r"Vitest caught \d+ unhandled errors? .*|\W+ Unhandled (?:Errors|Rejection) \W+|\d+ (?:interrupted|did not run)|Timed out waiting .* for the .*test run.*"
)
"""Lines that report that a run was broken off, or that errors outside its tests are not in its counts."""


def summary_of(text: str, program: str = "", *, cut: bool = False, several: bool = False) -> str | None:
    """The outcome that an output reports: `passed`, `failed`, `nothing` if none ran, `broken off` if it reports passed
    tests but ended early, None if it reports none.

    For a known `program` only its own summaries are read, for any other those of all. `cut`: the beginning of the
    output may be missing; `several`: the program ran more than once, and each run printed a summary.
    """
    styles = (*_STYLES[program], "coverage") if program in _STYLES else tuple(_SUMMARIES)
    lines = [ESCAPES.sub("", line).strip() for line in text[-TAIL:].splitlines()]
    summaries = [
        (style, summary)
        for line in lines
        if line and len(line) <= LINE and _any_of(styles).fullmatch(line)
        for style in styles
        if _pattern(style).fullmatch(line)
        and (summary := _summary_in(style, line)) is not None
        and not (cut and summary == "passed" and line.startswith(_OF_A_PART.get(style, "\n")))
    ]
    if not several:  # the last summary of pytest covers all
        last = next((n for n in range(len(summaries) - 1, -1, -1) if summaries[n][0] == "pytest"), 0)
        summaries = [each for n, each in enumerate(summaries) if each[0] != "pytest" or n == last]
    outcomes = {summary for _, summary in summaries}
    if "failed" in outcomes:
        return "failed"
    if "passed" in outcomes and not _skipped(lines, program):
        ends_early = any(len(line) <= LINE and _BROKEN_OFF.fullmatch(line) for line in lines)
        return "broken off" if ends_early else "passed"
    return "nothing" if outcomes or any(_NOTHING.search(line[:LINE]) for line in lines) else None


@cache
def _any_of(styles: tuple[str, ...]) -> re.Pattern[str]:
    """One pattern for all of these styles: few lines are a summary of any."""
    return re.compile("|".join(f"(?:{_SUMMARIES[style]})" for style in styles))


@cache
def _pattern(style: str) -> re.Pattern[str]:
    return re.compile(_SUMMARIES[style])


def _summary_in(style: str, line: str) -> str | None:
    """The outcome in a summary line."""
    if style == "unittest" and line.startswith("Ran "):
        return "nothing" if line.startswith("Ran 0 ") else None
    paired = style in _IN_PAIRS and not line.startswith("OK (")
    counts = [(found["word"].lower(), found["count"]) for found in (_PAIRED if paired else _COUNTED).finditer(line)]
    many = {word for word, count in counts if count not in ("0", "no")}
    named = {word for word, _ in counts}
    if "remaining" in named or "fixed" in named:
        return "failed" if "remaining" in many else "passed"
    if style == "eslint" and "errors" in named | many | {"error"} & named:
        return "failed" if {"errors", "error"} & many else None
    if _FAILS.match(line) and not (style == "nox" and "success" in line):
        return "failed"
    if many & _BAD:
        return "failed"
    if style in ("ruff", "mypy", "pyright", "tsc", "rubocop", "golangci"):
        return "passed"
    if many & _GOOD:
        return "passed"
    if named & _GOOD or (style == "pytest" and counts) or (style == "pre-commit" and line.endswith("Skipped")):
        return "nothing"
    return "passed" if _PASSES.match(line) else None


def _skipped(lines: list[str], program: str) -> bool:
    """Whether a summary of unittest reports that it skipped all of its tests, or no test task of Gradle has any."""
    tasks = [found["how"] for line in lines if (found := _TEST_TASK.fullmatch(line))]
    if tasks and set(tasks) == {"NO-SOURCE"} and "build" not in program:
        return True
    ran = next((found for line in reversed(lines) if (found := re.match(r"Ran (\d+) tests? in", line))), None)
    skipped = next((found for line in reversed(lines) if (found := re.match(r"OK \(skipped=(\d+)\)", line))), None)
    return bool(ran) and (ran[1] == "0" or (skipped is not None and skipped[1] == ran[1]))
