"""Cuts logs by failure: output of pytest, jest, vitest, Go and cargo, and stack traces of Python, JS, Java, Go, Rust.

Gives: `outline_log`, `Lines -> Outline`: one chunk per failure, `section` is the failing test or the exception's
name; function names in frames and names of failing tests are `calls`, files in frames are `links`; lines between
failures are chunks without a section. To add a program, add a line to `_BEGINS`.

Note: a chained Python traceback is one failure, and so are a Java exception and its causes.

A CSV log is cut like any other text; `structured.read_logs` (`index --add logs=FILE`) reads it by its lines and their times.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .lines import LINE_CHARACTERS, Chunk, Lines, Outline

_SECTION_CHARACTERS = 200
_BEGINS = re.compile(
    r"_{3,} (\S.*?) _{3,}$|=+ (short test summary info) =+$"  # pytest
    r"|\s*(?:FAIL|\u00d7) +(\S+\.(?:test|spec)\.[cm]?[jt]sx?(?: \[.*?\])? > .+|\S+ \[ \S+ \])$"  # vitest
    r"|\s*● (\S.*)$"  # jest
    r"|---- (\S+) (?:stdout|stderr) ----$|thread '([^']*)' (?:\(\d+\) )?panicked at"  # cargo
    r"|--- FAIL: (\S+)|(?:panic|fatal error): (.+)$"  # go
)
"""The first line of a failure in the output of a program, with its name."""
_ENDS = re.compile(
    r"=+ .+ =+$|={10,}$|=== RUN|--- PASS|\s*⎯{5,}|\s*(?:Test Suites: |Tests: |Summary of all|PASS |FAIL\b|failures:|exit status)"
)
"""The last line of a failure, unless another one begins before."""
_PANIC, _STACK = re.compile(r"thread '|panic: |fatal error: "), re.compile(r"goroutine |runtime stack:")
_PANIC_ENDS = re.compile(rf"\s*$|{_ENDS.pattern}")
"""A panic of cargo or go also ends at a blank line, unless a stack follows it."""
_TRACEBACK = re.compile(r".*?Traceback \(most recent call last\):\s*$")
_CHAIN = re.compile(r"\s*(?:During handling of the above|The above exception was the direct)")
_ERROR_HEAD = re.compile(
    r"(?:.*?\b)?(?P<name>(?:[\w$]+[.:]{1,2})*[A-Z][\w$]*(?:Error|Exception|Throwable|Warning|Failure))\b(?!\()"
)
_AT_FRAME = re.compile(r"\s+at \S|\s+\.\.\. \d+ (?:more|common)")
_CAUSE = re.compile(r"\s*(?:Caused by|Suppressed): ")
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
    outline = Outline([])
    start = at = 0
    while at < lines.count:
        found = _failure(source, at)
        if found is None:
            at += 1
            continue
        end, head, name = found
        head, name = max(head, start), name[:_SECTION_CHARACTERS].strip()
        if head > start:
            outline.chunks.append(Chunk(start, head))
        outline.chunks.append(Chunk(head, end, name or None))
        if name:
            outline.calls.append((head, name))
        start = at = end
    if start < lines.count:
        outline.chunks.append(Chunk(start, lines.count))
    _frames(source, outline)
    return outline


def _failure(source: Sequence[str], at: int) -> tuple[int, int, str] | None:
    """End, start and name of the failure at line `at`, or None."""
    line = source[at]
    if not line or line.isspace():
        return None
    if begun := _BEGINS.match(line):
        ends = _PANIC_ENDS if _PANIC.match(line) else _ENDS
        after = (n for n in range(at + 1, len(source)) if _BEGINS.match(source[n]) or ends.match(source[n]))
        end = next(
            (n for n in after if source[n].strip() or not _STACK.match("".join(source[n + 1 : n + 2]))), len(source)
        )
        also = end < len(source) and bool(source[end].strip()) and not _BEGINS.match(source[end])
        return end + also, at, begun[begun.lastindex or 0]
    if _TRACEBACK.match(line):
        return _traceback(source, at)
    return _at_frames(source, at) if _AT_FRAME.match(line) else None


def _traceback(source: Sequence[str], at: int) -> tuple[int, int, str]:
    """A traceback, those chained to it, and the exception that each of them ends with."""
    name, last, end = "Traceback", at, at
    while end < len(source) and _TRACEBACK.match(source[end]):
        indent = _indent(source[end])
        end = next(
            (n for n in range(end + 1, len(source)) if source[n].strip() and _indent(source[n]) <= indent), len(source)
        )
        if end < len(source):
            name = source[end].strip().split(":", 1)[0]
        last = end = min(end + 1, len(source))
        while end < min(last + 5, len(source)) and (not source[end].strip() or _CHAIN.match(source[end])):
            end += 1
    return last, at, name


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


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
