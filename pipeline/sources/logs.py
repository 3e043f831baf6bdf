"""Cuts logs by failure: output of pytest, jest, vitest, Go and cargo, and stack traces of Python, JS, Java, Go, Rust.

Gives: `outline_log`, `Lines -> Outline`: one chunk per failure, `section` is the failing test or the exception's
name; function names in frames and names of failing tests are `calls`, files in frames are `links`; lines between
failures are chunks without a section.

Note: a chained Python traceback is one failure, and so are a Java exception and its
causes. `FAIL` and a file name is a heading in Jest, over one or more failures; in Vitest it is a failure if a test or
`[ file ]` follows.

A CSV log is cut like any other text; `structured.read_logs` (`index --add logs=FILE`) reads it by its lines and their times.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .lines import LINE_CHARACTERS, Chunk, Lines, Outline

__all__ = ["outline_log"]

_SECTION_CHARACTERS = 200
_PYTEST_TEST = re.compile(r"_{3,} (?P<name>\S.*?) _{3,}$")
_PYTEST_RULE = re.compile(r"=+ (?P<name>.+?) =+$|={10,}$")
_PYTEST_REGION = re.compile(r"=+ (?:FAILURES|ERRORS) =+$")
_PYTEST_SUMMARY = re.compile(r"=+ short test summary info =+$")
_JEST = re.compile(r"\s*● (?P<name>\S.*)$")
_JEST_FILE = re.compile(r"\s*FAIL +(?:\S+ )?\S+\.[cm]?[jt]sx?(?: \([\d.]+ m?s\))?$")
_JEST_END = re.compile(r"\s*(?:Test Suites: |Tests: |Summary of all|PASS |FAIL )")
_VITEST = re.compile(
    r"\s*(?:FAIL|\u00d7) +(?P<name>\S+\.(?:test|spec)\.[cm]?[jt]sx?(?: \[.*?\])?(?: > .+)|\S+ \[ \S+ \])$"
)
_VITEST_RULE = re.compile(r"\s*⎯{5,}")
_TRACEBACK = re.compile(r"(?P<indent>.*?)Traceback \(most recent call last\):\s*$")
_CHAIN = re.compile(r"\s*(?:During handling of the above|The above exception was the direct)")
_ERROR_HEAD = re.compile(
    r"(?:.*?\b)?(?P<name>(?:[\w$]+[.:]{1,2})*[A-Z][\w$]*(?:Error|Exception|Throwable|Warning|Failure))\b(?!\()"
)
_AT_FRAME = re.compile(r"\s+at \S|\s+\.\.\. \d+ (?:more|common)")
_CAUSE = re.compile(r"\s*(?:Caused by|Suppressed): ")
_GO_PANIC = re.compile(r"(?:panic|fatal error): (?P<name>.+)$")
_GO_TEST = re.compile(r"(?P<indent>\s*)--- FAIL: (?P<name>\S+)")
_GOROUTINE = re.compile(r"goroutine \d+ \[|\[signal |\tpanic: |exit status|created by ")
_RUST_PANIC = re.compile(r"thread '(?P<name>[^']*)' (?:\(\d+\) )?panicked at")
_RUST_TEST = re.compile(r"---- (?P<name>\S+) (?:stdout|stderr) ----$")
_RUST_END = re.compile("failures:")
_BLANK = re.compile(r"\s*$")
_FRAME = re.compile(
    r'File "(?P<py>[^"]+)", line \d+(?:, in (?P<pyf>\S+))?'
    r"|^(?P<pt>[\w./\\+-]+\.\w{1,4}):\d+:"
    r"|\bat (?:async )?(?:(?P<jsf>[\w$.<>]+) (?:\[as \S+\] )?)?\(?(?P<js>(?:file://)?[\w@./\\+-]+\.\w{1,4}):\d+"
    r"|\bat (?P<jvf>[\w$.<>/]+)\((?P<jv>\w+\.\w+):\d+\)"
    r"|^\s+(?P<go>[\w@./\\+-]+\.go):\d+"
)
_TEST_ID = re.compile(r"(?:FAILED|ERROR) (?P<path>[\w./\\+-]+\.py)(?:::(?P<names>[\w:]+))?")


def outline_log(lines: Lines) -> Outline:
    """The failures of a log in order, with the names and files in their frames."""
    source = [line[:LINE_CHARACTERS] for line in lines.strings]
    chunks: list[Chunk] = []
    start = at = 0
    region = False
    while at < lines.count:
        if source[at].startswith("="):
            region = bool(_PYTEST_REGION.match(source[at])) or (region and not _PYTEST_RULE.match(source[at]))
        found = _failure(source, at, region)
        if found is None:
            at += 1
            continue
        end, head, name = found
        head = max(head, start)
        if head > start:
            chunks.append(Chunk(start, head))
        chunks.append(Chunk(head, end, name[:_SECTION_CHARACTERS].strip() or None))
        start = at = end
    if start < lines.count:
        chunks.append(Chunk(start, lines.count))
    outline = Outline(chunks)
    for chunk in chunks:
        if chunk.section:
            outline.calls.append((chunk.start, chunk.section))
    _frames(source, outline)
    return outline


def _failure(source: Sequence[str], at: int, region: bool) -> tuple[int, int, str] | None:
    """End, start and name of the failure at line `at`, or None."""
    line = source[at]
    if not line or line.isspace():
        return None
    if region and (match := _PYTEST_TEST.match(line)):
        return _until(source, at, _PYTEST_TEST, _PYTEST_RULE), at, match["name"]
    if _PYTEST_SUMMARY.match(line):
        return min(_until(source, at, _PYTEST_RULE) + 1, len(source)), at, "short test summary info"
    if match := _VITEST.match(line):
        end = _until(source, at, _VITEST_RULE, _VITEST)
        return end + bool(end < len(source) and _VITEST_RULE.match(source[end])), at, match["name"]
    if match := _JEST.match(line):
        return _until(source, at, _JEST, _JEST_END), _jest_head(source, at), match["name"]
    if match := _TRACEBACK.match(line):
        return _traceback(source, at, len(line) - len(line.lstrip()))
    if match := _RUST_TEST.match(line):
        return _until(source, at, _RUST_TEST, _RUST_END), at, match["name"]
    if match := _RUST_PANIC.match(line):
        return _until(source, at, _BLANK, _RUST_PANIC), at, match["name"]
    if match := _GO_TEST.match(line):
        no_deeper = re.compile(rf"\s{{0,{len(match['indent'])}}}(?!\s)")
        return _until(source, at, no_deeper), at, match["name"]
    if match := _GO_PANIC.match(line):
        return _goroutines(source, at), at, match["name"]
    return _at_frames(source, at) if _AT_FRAME.match(line) else None


def _jest_head(source: Sequence[str], at: int) -> int:
    """The first line of a Jest failure; for the first one of a file, the line that names the file."""
    above = next((back for back in range(at - 1, -1, -1) if source[back].strip()), at)
    return above if _JEST_FILE.match(source[above]) else at


def _until(source: Sequence[str], at: int, *stops: re.Pattern[str]) -> int:
    """The first line below `at` that one of the patterns matches."""
    return next((n for n in range(at + 1, len(source)) if any(stop.match(source[n]) for stop in stops)), len(source))


def _traceback(source: Sequence[str], at: int, indent: int) -> tuple[int, int, str]:
    end, name = at + 1, "Traceback"
    while end < len(source):
        line = source[end]
        if line.strip() and len(line) - len(line.lstrip()) > indent:
            end += 1
            continue
        if line.strip():  # the exception itself
            name = line.strip().split(":", 1)[0]
            end += 1
        ahead = end
        while ahead < len(source) and ahead < end + 5 and (not source[ahead].strip() or _CHAIN.match(source[ahead])):
            ahead += 1
        if ahead > end and ahead < len(source) and _TRACEBACK.match(source[ahead]):
            end = ahead + 1
            continue
        break
    return end, at, name


def _goroutines(source: Sequence[str], at: int) -> int:
    ends = (n for n in range(at + 1, len(source)) if _BLANK.match(source[n]))
    return next((n for n in ends if n + 1 == len(source) or not _GOROUTINE.match(source[n + 1])), len(source))


def _at_frames(source: Sequence[str], at: int) -> tuple[int, int, str]:
    """A run of `at` frames with the error line above it, possibly separated by a few lines of message."""
    head, name = at, "stack trace"
    for back in range(at - 1, max(-1, at - 10), -1):
        if not source[back].strip():
            break
        if match := _ERROR_HEAD.match(source[back]):
            head, name = back, match["name"]
            break
    end = next(
        (n for n in range(at, len(source)) if not (_AT_FRAME.match(source[n]) or _CAUSE.match(source[n]))), len(source)
    )
    return end, head, name


def _frames(source: Sequence[str], outline: Outline) -> None:
    for number, line in enumerate(source):
        if "." not in line:
            continue
        for match in _FRAME.finditer(line):
            path = match["py"] or match["pt"] or match["js"] or match["jv"] or match["go"]
            name = match["pyf"] or match["jsf"] or match["jvf"]
            outline.links.append((number, path))
            if name and name[0] != "<":
                outline.calls.append((number, name))
        if match := _TEST_ID.search(line):
            outline.links.append((number, match["path"]))
            if match["names"]:
                outline.calls.extend((number, name) for name in match["names"].split("::") if name)
