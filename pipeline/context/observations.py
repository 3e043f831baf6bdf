"""Observations: tool output, normalized, classified, summarized and marked before it enters the session log.

Reads the outputs of a command or a tool. Gives an `Observation`: its class, a one-line summary, an excerpt of the
relevant lines, and whether its text addresses the model. JUnit XML and TAP are read by maintained parsers, pytest by
its own summary lines, diffs by their changed lines; of any other log, the blocks around lines that read as failures.

Note: nothing here decides what a model sees. The full text stays an artifact; a projection chooses among these forms.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .diffs import in_short
from .summaries import ESCAPES, summary_of

__all__ = ["Observation", "addresses_the_model", "observed", "report_passed"]

SUMMARY_CHARACTERS = 300
EXCERPT_LINES = 24
EXCERPT = 1_000
"""Most characters in the excerpt of a long tool output without lines that read as failures."""
AROUND = 3
"""Number of lines shown around a line that reads as a failure."""
LARGEST = 4_000_000
"""Largest output that is parsed, in characters."""
_FAILURE = re.compile(
    r"(?i)(?:\b(?:fail(?:ed|ure|ures|ing)?|error|errors|exception|traceback|panic(?:ked)?|assert(?:ion)?(?:error)?|fatal|"
    r"expected|received|not ok|cannot find|undefined|denied|timed? ?out)\b|^E\s+|✗|✖|\u00d7|●)"
)
_PASSED = re.compile(r"(?i)^\s*passed\b")
_NONE_FAILED = re.compile(
    r"(?i)(?<![:.\d])\b0 (?:fail(?:ed|ures?|ing|s)?|errors?|cancelled)\b|"
    r"^\s*no (?:fail(?:ed|ing|ures)|errors)\b|\bno (?:failures?|errors?)\b(?=\s*(?:(?:was |were )?(?:found|detected|reported)|in \d|[.;!)]|$))|"
    r"\b(?:fail(?:ed|ures?|ing|s)?|errors?|cancelled)[:=]? {0,20}0\b(?!\.\d| ?(?:ms|s|sec)\b| files\b)"
)
"""Counts of failures that are 0."""
_PYTEST = re.compile(r"^(?:FAILED|ERROR) (?P<test>\S+?)(?: - (?P<why>.*))?$", re.MULTILINE)
_PYTEST_ENDS = re.compile(r"^=+ .*\b(?:failed|passed|error|errors|skipped)\b.* in [\d.]+s.*=+$", re.MULTILINE)
_PLACE = re.compile(r"(?<![\w@+~./-])[\w@+~./-]+\.[A-Za-z]\w{0,4}:\d+")
_ADDRESSED = re.compile(
    r"(?i)(?:\b(?:ignore|disregard|forget|override|bypass)\b.{0,40}\b(?:previous|prior|above|earlier|preceding|all|your|system|safety)\b|"
    r"\b(?:system|developer) (?:prompt|message)\b|\byou (?:are|must|should|will) now\b|\bnew instructions?\b|"
    r"\b(?:as an?|dear) (?:ai|assistant|language model|llm)\b|<\/?(?:system|instructions?|trusted_instructions|assistant|user)\b|"
    r"\bdo not (?:tell|inform|mention)\b.{0,30}\buser\b|\b(?:run|execute) (?:this|the following) command\b)"
)
_VERSION = re.compile(r"\A\s*TAP version \d+[^\n]*\n")
_FRAME = re.compile(r'\s*File "(?P<file>[^"]+)", line (?P<line>\d+)')
_GO_FAILED = re.compile(r"\s*--- FAIL: (?P<test>\S+)")
_GO_MESSAGE = re.compile(r"\s+\S+\.go:\d+: ")
_PANIC = re.compile(
    r"\s*thread '(?P<test>[^']+)'(?: \(\d+\))? panicked at (?:'(?P<why>.*)', )?(?P<place>\S+:\d+:\d+):?\s*\Z"
)
"""The thread number differs between runs."""
_REPORTS_FAILURE = re.compile(r"\d+ of \d+ tests failed:")


@dataclass(frozen=True)
class Observation:
    """The class, summary and excerpt of an output."""

    kind: str
    summary: str | None
    excerpt: str | None
    suspicious: bool
    shape: str
    """`small`, `large`, `noisy` or `dangerous` (S3.48)."""


def observed(
    text: str,
    *,
    command: str | None = None,
    failed: bool = False,
    passed: bool = False,
    stream: str = "stdout",
    timed_out: bool = False,
    diff: bool = False,
) -> Observation:
    """An output as an observation. `passed`: it is from a check that passed, so no word in it indicates a failure.
    `diff`: it is a diff, even if no line of it names a file.
    """
    plain = ESCAPES.sub("", text).replace("\r\n", "\n")
    suspicious = addresses_the_model(plain)
    found = _parsed(plain, command)
    if found is None and not failed:
        found = in_short(plain, summary=SUMMARY_CHARACTERS, excerpt=EXCERPT, marked=not diff)
    lines = plain.splitlines()
    places = [] if passed else [n for n, line in enumerate(lines) if _reads_as_failure(line)]
    if found is None and (failed or places) and places:
        found = _traceback(lines) or _go_test(lines) or _panic(lines)
        found = found or (_key_line([lines[n].strip() for n in places]), _around(lines, places))
    reporting = (line for line in lines if line.strip() and not (failed and _denies_failure(line)))
    summary, excerpt = found or (_first_line(next(([each] for each in reporting), [] if failed else lines)), None)
    shape = "dangerous" if suspicious else "small" if len(plain) <= 400 else "large" if places else "noisy"
    kind = "timeout" if timed_out else stream
    return Observation(kind, _cut(summary), excerpt, suspicious, shape)


def _reads_as_failure(line: str) -> bool:
    if not _FAILURE.search(line) or _PASSED.match(line):
        return False
    left = _NONE_FAILED.sub("", line)
    return left == line or _FAILURE.search(left) is not None


def _denies_failure(line: str) -> bool:
    """Whether a line reports a pass, or a count of failures that is 0."""
    return summary_of(line) == "passed" or (_FAILURE.search(line) is not None and not _reads_as_failure(line))


def addresses_the_model(text: str) -> bool:
    """Whether a text reads as instructions to a model. It only causes a warning: all output is untrusted."""
    return bool(_ADDRESSED.search(text))


def report_passed(text: str) -> bool | None:
    """Whether the tests of a report in JUnit XML or TAP passed; None for other outputs."""
    plain = ESCAPES.sub("", text)
    read = _report(plain)
    found = read(plain) if read else None
    return None if found is None else not _REPORTS_FAILURE.match(found[0])


def _report(text: str) -> Callable[[str], tuple[str, str | None] | None] | None:
    """The parser for a report; None if the text is not a report."""
    head = text.lstrip()[:400]
    if len(text) > LARGEST:
        return None
    if head.startswith(("<?xml", "<testsuite")) and "<testsuite" in text[:4000]:
        return _junit
    return _tap if re.match(r"(?:TAP version \d+|1\.\.\d+|(?:not )?ok \d+)", head) else None


def _parsed(text: str, command: str | None) -> tuple[str, str | None] | None:
    """Summary and excerpt of an output in a known format."""
    if len(text) > LARGEST:
        return None
    if (report := _report(text)) is not None:
        return report(text)
    if _PYTEST.search(text) or _PYTEST_ENDS.search(text):
        return _pytest(text)
    return None


def _junit(text: str) -> tuple[str, str | None] | None:
    """Parses with junitparser. A document type is refused, to prevent entity expansion."""
    if "<!DOCTYPE" in text[:4000] or "<!ENTITY" in text:
        return None
    from junitparser import JUnitXml, JUnitXmlError

    try:
        read: Any = JUnitXml.fromstring(text.encode())
    except (SyntaxError, JUnitXmlError):  # not XML, or another document: an ordinary log
        return None
    suites = [read] if type(read).__name__ == "TestSuite" else list(read)
    bad = [
        (case, each)
        for suite in suites
        for case in suite
        for each in case.result
        if type(each).__name__ in ("Failure", "Error")
    ]
    total = sum(1 for suite in suites for _ in suite)
    if not bad:
        return f"{total} tests passed", None
    case, first = bad[0]
    why = (first.message or "").strip() or ((first.text or "").strip().splitlines() or [""])[0]
    excerpt = "\n".join((first.text or first.message or "").splitlines()[:EXCERPT_LINES])
    named = ".".join(filter(None, (case.classname, case.name)))
    return f"{len(bad)} of {total} tests failed: {_with_place(named, first.text)} {why}", excerpt or None


def _tap(text: str) -> tuple[str, str | None] | None:
    """Parses with tap.py, without the version line, for which it would print a warning."""
    from tap.parser import Parser

    try:
        lines = list(Parser().parse_text(_VERSION.sub("", text, count=1)))
    except ValueError:  # an invalid number: an ordinary log
        return None
    tests: list[Any] = [line for line in lines if line.category == "test"]
    bad = [line for line in tests if not line.ok and not line.todo]
    if not tests:
        return None
    if not bad:
        return f"{len(tests)} tests passed", None
    number = next((n for n, line in enumerate(text.splitlines()) if line.startswith("not ok")), 0)
    excerpt = "\n".join(text.splitlines()[number : number + EXCERPT_LINES])
    return f"{len(bad)} of {len(tests)} tests failed: {bad[0].description.lstrip('- ')}", excerpt


def _pytest(text: str) -> tuple[str, str | None]:
    """Parses the lines of pytest's short summary and of its assertions."""
    failed = list(_PYTEST.finditer(text))
    end = _PYTEST_ENDS.search(text)
    if not failed:
        return (end[0].strip("= ") if end else "pytest"), None
    lines = text.splitlines()
    errors = [n for n, line in enumerate(lines) if line.startswith("E  ")]
    first = failed[0]
    why = first["why"] or (lines[errors[0]].lstrip("E ").strip() if errors else "")
    where = next(
        (place[0] for line in lines if line.startswith(first["test"].split("::")[0]) and (place := _PLACE.match(line))),
        "",
    )
    summary = f"{len(failed)} failed: {first['test']}" + (f" at {where}" if where else "") + (f" {why}" if why else "")
    return summary, _around(
        lines, errors or [n for n, line in enumerate(lines) if line.startswith(("FAILED", "ERROR"))]
    )


def _traceback(lines: list[str]) -> tuple[str, str] | None:
    """The exception of the last Python traceback, and where it was raised."""
    start = max(
        (n for n, line in enumerate(lines) if line.strip() == "Traceback (most recent call last):"), default=None
    )
    if start is None:
        return None
    deep = len(lines[start]) - len(lines[start].lstrip())
    frames = [n for n in range(start + 1, len(lines)) if _FRAME.match(lines[n])]
    end = next(
        (n for n in range(start + 1, len(lines)) if lines[n].strip() and not lines[n][deep:].startswith(" ")), None
    )
    if end is None:
        return None
    last = next((found for n in reversed(frames) if n < end and (found := _FRAME.match(lines[n]))), None)
    where = f" at {last['file']}:{last['line']}" if last else ""
    return f"{lines[end].strip()}{where}", "\n".join(lines[max(start, end + 1 - EXCERPT_LINES) : end + 1])


def _go_test(lines: list[str]) -> tuple[str, str] | None:
    """The first failing test of `go test`, with its message."""
    failed = [n for n, line in enumerate(lines) if _GO_FAILED.match(line)]
    messages = [n for n, line in enumerate(lines) if _GO_MESSAGE.match(line)]
    if not failed or not messages:
        return None
    message = next((n for n in messages if n > failed[0]), messages[-1])  # with -v the message comes before the test
    test = max((n for n in failed if n < message), default=failed[0])
    name = _GO_FAILED.match(lines[test])
    return f"{name['test'] if name else ''} at {lines[message].strip()}", _around(lines, [test, message])


def _panic(lines: list[str]) -> tuple[str, str] | None:
    """The test, place and message of the first Rust panic."""
    number, found = next(((n, found) for n, line in enumerate(lines) if (found := _PANIC.match(line))), (0, None))
    if found is None:
        return None
    end = next(
        (n for n in range(number + 1, len(lines)) if not lines[n].strip() or lines[n].startswith("note: ")), len(lines)
    )
    why = [found["why"] or "", *map(str.strip, lines[number + 1 : end])]
    return " ".join(filter(None, (f"{found['test']} at {found['place']}", *why))), _around(lines, [number])


def _key_line(lines: list[str]) -> str:
    """The first line of a failure with a place, followed by the line with the expected value if that is another."""
    placed = next((line for line in lines if _PLACE.search(line)), lines[0])
    expected = next((line for line in lines if re.search(r"(?i)\bexpected\b", line)), "")
    return placed if not expected or expected in placed else f"{placed} {expected}"


def _around(lines: list[str], places: list[int]) -> str:
    """The first blocks of lines around these places, with `...` between blocks."""
    kept = sorted({n for place in places for n in range(max(0, place - AROUND), min(len(lines), place + AROUND + 1))})[
        :EXCERPT_LINES
    ]
    shown: list[str] = []
    for before, number in zip([None, *kept], kept, strict=False):
        if before is not None and number != before + 1:
            shown.append("...")
        shown.append(lines[number])
    return "\n".join(shown)


def _with_place(name: str, text: str | None) -> str:
    place = _PLACE.search(text or "")
    return f"{name} at {place[0]}" if place else name


def _first_line(lines: list[str]) -> str | None:
    return next((line.strip() for line in lines if line.strip()), None)


def _cut(text: str | None) -> str | None:
    if text is None:
        return None
    one = " ".join(text.split())
    return one if len(one) <= SUMMARY_CHARACTERS else f"{one[: SUMMARY_CHARACTERS - 3]}..."
