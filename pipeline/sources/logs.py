"""Cuts logs by failure: output of pytest, jest, vitest, Go and cargo, and stack traces of Python, JS, Java, Go, Rust.

Gives: `outline_log`, `Lines -> Outline`: one chunk per failure, `section` is the failing test or the exception's
name; function names in frames and names of failing tests are `calls`, files in frames are `links`; lines between
failures are chunks without a section. To add a program, add a line to `_REPORTS`.

Note: a chained Python traceback is one failure, and so are a Java exception and its causes.

A CSV log is cut like any other text; `structured.read_logs` (`index --add logs=FILE`) reads it by its lines and their times.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .lines import LINE_CHARACTERS, Chunk, Lines, Outline

__all__ = ["outline_log"]

_SECTION_CHARACTERS = 200
_REPORTS = tuple(
    (re.compile(start), re.compile(end), bool(last))
    for start, end, last in (
        (r"_{3,} (?P<name>\S.*?) _{3,}$", r"=+ .+ =+$|={10,}$", 0),  # pytest
        (r"=+ (?P<name>short test summary info) =+$", r"=+ .+ =+$|={10,}$", 1),
        (r"\s*(?:FAIL|\u00d7) +(?P<name>\S+\.(?:test|spec)\.[cm]?[jt]sx?(?: \[.*?\])? > .+|\S+ \[ \S+ \])$", r"\s*⎯{5,}", 1),  # vitest
        (r"\s*● (?P<name>\S.*)$", r"\s*(?:Test Suites: |Tests: |Summary of all|PASS |FAIL )", 0),  # jest
        (r"---- (?P<name>\S+) (?:stdout|stderr) ----$", r"failures:", 0),  # cargo
        (r"thread '(?P<name>[^']*)' (?:\(\d+\) )?panicked at", r"\s*$", 0),
        (r"--- FAIL: (?P<name>\S+)", r"\S", 0),  # go
        (r"(?:panic|fatal error): (?P<name>.+)$", r"exit status", 1),
    )
)  # fmt: skip
"""How a failure begins in the output of a program and where it ends: at the line that matches, at another failure of this form,
or at the end of the log; 1 where that line belongs to it.
"""
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
    for begins, ends, last in _REPORTS:
        if match := begins.match(line):
            end = at + 1
            while end < len(source) and not (begins.match(source[end]) or ends.match(source[end])):
                end += 1
            also = last and end < len(source) and not begins.match(source[end])
            return end + also, at, match["name"]
    if _TRACEBACK.match(line):
        return _traceback(source, at, len(line) - len(line.lstrip()))
    return _at_frames(source, at) if _AT_FRAME.match(line) else None


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
