"""Searches: the matches that the output of a search names, read in the form that the search prints.

Gives `Search` (what the output of a search holds, from its command or its call) and `matches_in`.

Note: with context lines (`-C 2`), only `path:line:text` is a match. With counts (`-c`), `path:40` is a file with 40 matches. Of one file
`rg -n` prints the lines alone: the file is then the one that was searched.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from ..shell import segments_of
from .writing import Transcript

__all__ = ["Search", "matches_in"]

MOST_MATCHES = 200
_MATCH = re.compile(r"^(?P<path>[^\s:][^:\n]*\.\w+):(?P<line>\d{1,9})[:-](?P<text>.*)$")
_BESIDE = re.compile(r"^[^\s:][^:\n]*?\.\w+-\d+-")
"""A line of context, which may go on as a match does."""
_COUNT = re.compile(r"^(?:(?P<path>[^\s:](?:[^:\n]*[^\s:])?):)?(?P<count>\d+)$")
_LINE = re.compile(r"^(?P<line>\d{1,9}):(?P<text>.*)$")
_PATH = re.compile(r"^(?:[A-Za-z]:)?[^\s:]*/[^\s:]*$")
_PROGRAMS = frozenset(("rg", "grep", "egrep", "fgrep"))
_KEEP_LINES = frozenset(("head", "tail", "sort"))
_VALUED = {"rg": "ABCEefgjMmrtTd", "grep": "ABCefmdD"}
"""Letters of options that take a value."""
_VALUED_WORDS = re.compile(
    r"--(?:after-context|before-context|context|regexp|file|glob|iglob|type|type-not|max-count|max-depth|include|exclude|exclude-dir|"
    r"sort|sortr|color|colors|encoding|replace|threads|max-columns)"
)


class Search(NamedTuple):
    """How a search prints what it finds."""

    counts: bool = False
    """The matches of each file."""
    context: bool = False
    """Lines around the matches as well."""
    file: str | None = None
    """The file of lines that name none, where it may be the only one that was searched."""

    @classmethod
    def of_call(cls, given: Mapping[str, Any]) -> Search:
        """Of a call of Claude Code's `Grep`."""
        counts = given.get("output_mode") == "count"
        around = any(given.get(name) not in (None, 0, False) for name in ("-A", "-B", "-C", "context"))
        path = given.get("path")
        numbered = counts or (given.get("output_mode") == "content" and given.get("-n") is True)
        return cls(counts, around, path if numbered and isinstance(path, str) and path else None)

    @classmethod
    def of_command(cls, command: str) -> Search:
        """Of a command line: options of all searches in it; a file only of one that nothing but `head`, `tail` and `sort` reads."""
        first, *others = segments_of(command) or (None,)
        found = [each for segment in (first, *others) if segment and (each := _options(segment.words))]
        alone = all(each.behind == "|" and each.words[:1] and each.words[0] in _KEEP_LINES for each in others)
        file = found[0].file if len(found) == 1 and alone else None
        return cls(any(each.counts for each in found), any(each.context for each in found), file)


def _options(words: Sequence[str]) -> Search | None:
    """The search that a program runs, None for one that runs none."""
    place = next((n for n, word in enumerate(words) if PurePosixPath(word).name in _PROGRAMS), None)
    if place is None:
        return None
    valued = _VALUED["rg" if PurePosixPath(words[place]).name == "rg" else "grep"]
    named, letters, rest = list[str](), set[str](), iter(words[place + 1 :])
    for word in rest:
        if word == "--":
            named += rest
        elif word.startswith("--"):
            name, valueless, _ = word.partition("=")
            letters.add(name)
            if not valueless and _VALUED_WORDS.fullmatch(name):
                next(rest, None)
        elif word.startswith("-") and len(word) > 1:
            if word[1:].isdigit():
                letters.add("-C")
            for at, letter in enumerate(word[1:], start=2):
                letters.add(f"-{letter}")
                if letter in valued:
                    if at == len(word):
                        next(rest, None)
                    break
        else:
            named.append(word)
    patterned = bool(letters & {"-e", "-f", "--regexp", "--file", "--files"})
    files = named if patterned else named[1:]
    counts = bool(letters & {"-c", "--count", "--count-matches"})
    context = bool(letters & {"-A", "-B", "-C", "--after-context", "--before-context", "--context"})
    numbered = counts or bool(letters & {"-n", "--line-number"})
    return Search(counts, context, files[0] if numbered and len(files) == 1 else None)


def matches_in(text: str, made: Transcript, search: Search, folder: str = "") -> list[dict[str, Any]]:
    """The matches that the output of a search in a folder names: `path:line:text`, or a path per line."""
    found: list[dict[str, Any]] = []
    for line in text.splitlines():
        path, match = None, None
        if search.context and _BESIDE.match(line):
            continue
        if match := _MATCH.match(line):
            path = match["path"]
        elif search.counts:
            if (count := _COUNT.match(line)) and int(count["count"]):
                path = count["path"] or search.file
        elif search.file and (match := _LINE.match(line)):
            path = search.file
        elif not search.context and _PATH.match(line.strip()) and "://" not in line:
            path = line.strip()
        if path is not None:
            told = {"line": int(match["line"]), "text": match["text"].strip() or None} if match else {}
            found.append({"path": made.path(str(PurePosixPath(folder) / path)), **told})
        if len(found) == MOST_MATCHES:
            break
    return found
