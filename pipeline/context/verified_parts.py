"""The part of the project that a verification covers, by its fields and by its sentence.

Gives: `named`, the part that fields name, `narrowed`, checks narrowed to it, `statement`, the sentences of a text, and
`spoken_of`, the part that they name.

Note: a pass of a part does not end a failure of any other part. A field or a word that means everything (`tests`,
`full`, `the whole project`) does not narrow.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..sources.jsonl import Record
from .check_lines import Ran
from .checks import Check, path_from, place_of
from .masking import one_path

__all__ = ["LABELS", "PLACES", "VerifiedPart", "named", "narrowed", "spoken_of", "statement"]

LABELS = ("name", "check", "checkName", "check_name", "checks", "job")
"""Fields with the name of the check."""
PLACES = (
    "path", "paths", "file", "files", "filePath", "file_path", "folder", "directory", "package", "packages", "module", "modules", "scope", "target", "targets",
    "suite", "suites", "testSuite", "test_suite", "testFile", "test_file", "testFiles", "test_files", "tests", "testName", "test_name",
)  # fmt: skip
"""Fields with the object of the check."""
_OF_ONE = ("path", "file", "name", "id")
"""Fields that name an object in such a field."""
_LIKE_PATH = re.compile(r"[/\\]|::|\.\w+\Z")
_WHOLE = re.compile(
    r"(?i)\b\d+(?:\.\d+)?\s?(?:ms|s|secs?|seconds?|m|mins?|minutes?)\b|\b(?:all|the|tests?|suites?|total|whole|full|entire|every(?:thing)?|checks?|checked|verif\w+|now|again|is|are|was|were|has|have|been|and|with|of|out|no|none|zero|without|any|"
    r"in|on|for|here|local(?:ly)?|still|finally|after|my|this|fix|changes?|project|repo(?:sitory)?|workspace|codebase|"
    r"pass\w*|succe\w*|green|ok|done|finished|completed?|good|fine|well|looks?|fail\w*|errors?|re-?ran|re-?run|ran|run|results?|ci|i|we|it|works?|clean|skipped|xfailed|deselected|warnings?|took|see|files?)\b|全部|所有|测试|检查|都|均|已|通过|没有|失败|报错|错误|成功|完成|了|[\W_]+|\d+"
)
"""Words of a verification that do not narrow it."""
_SENTENCE, _LINES = 200, 8
"""Most characters of a line, and most lines, of a statement; a longer text is program output."""
_BREAK = re.compile(r"(?<=[.!?;\u3002])\s+|(?<=\u3002)")


@dataclass(frozen=True)
class VerifiedPart:
    """The names in the fields of a verification: of the check, and of the files, tests and the like that it covers."""

    labels: tuple[str, ...] = ()
    places: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join((*self.labels, *self.places))

    def beyond(self, line: str, *, labels: bool) -> tuple[str, ...]:
        """The names that a command line does not contain. A command may go by many names: `labels` decides whether
        every label narrows it, or only those that read as a path or a test.
        """
        kept = (each for each in self.labels if labels or _LIKE_PATH.search(each))
        return tuple(each for each in (*kept, *self.places) if f" {each.lower()} " not in f" {line.lower()} ")


def named(payload: Record, root: str) -> VerifiedPart:
    """The part that the fields of a verification name."""
    labels = [each.lower() for name in LABELS for each in _texts(payload.value(name))]
    places = [one_path(each) or "" for name in PLACES for each in _texts(payload.value(name))]
    return VerifiedPart(_narrow(labels), _narrow(each for each in places if place_of("", root, each)))


def _texts(value: Any) -> Iterator[str]:
    """The names in a field; numbers and booleans are not names."""
    if isinstance(value, str):
        yield " ".join(value.split())
    elif isinstance(value, Mapping):
        yield from (each for name in _OF_ONE for each in _texts(value.get(name)))
    elif isinstance(value, list):
        yield from (each for entry in value for each in _texts(entry))


def _narrow(names: Iterable[str]) -> tuple[str, ...]:
    """The distinct names that do not mean everything."""
    return tuple(dict.fromkeys(each for each in names if _LIKE_PATH.search(each) or _WHOLE.sub("", each)))


def narrowed(checks: Sequence[Ran], places: Sequence[str], root: str) -> list[Ran]:
    """Checks narrowed to these places, replacing the files that their line names."""
    return [replace(ran, check=_on(ran.check, places, root)) for ran in checks] if places else list(checks)


def _on(check: Check, places: Sequence[str], root: str) -> Check:
    options = [each for each in check.selection if each.startswith("-")]
    selection = (*options, *(path_from(check.place, root, each) for each in places))
    return replace(check, selection=selection, usual=False)


def statement(words: str) -> list[str]:
    """The sentences that state the result of a verification; none if the text is as long as program output."""
    lines = words.strip().splitlines()
    if len(lines) > _LINES or any(len(line) > _SENTENCE for line in lines):
        return []
    return [each for line in lines for each in _BREAK.split(line) if each.strip()]


def spoken_of(words: str) -> str:
    """The part that the sentences of a verification without a command name; none = everything."""
    return " ".join(_WHOLE.sub(" ", " ".join(statement(words))).lower().split())
