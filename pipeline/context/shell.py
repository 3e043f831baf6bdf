"""A command line as a shell would run it: the programs that it starts, in their order.

Gives: `segments_of` (each program with its arguments and the sign in front of it) and `started` (the program behind assignments,
wrappers and `uv run`).

Note: it is not split at spaces. Quotes, `bash -c '...'`, pipes and `&&` are read as a shell reads
them; a line that no shell takes is read up to the end of its first line.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath

__all__ = ["VALUED", "Segment", "behind_options", "first_word", "segments_of", "started"]

LONGEST = 20_000
"""Characters of a command that are read."""
_BETWEEN = frozenset(("&&", "||", ";", ";;", "|", "|&", "&", "\n", "(", ")"))
_WRAPPERS = frozenset((
    "env", "sudo", "time", "nice", "nohup", "command", "exec", "stdbuf", "xvfb-run", "npx", "bunx", "uvx", "pipx", "timeout", "gtimeout",
    "dotenv", "catchsegv", "ionice", "doas",
))  # fmt: skip
_RUNS = {
    "uv": ("run", "tool"), "poetry": ("run",), "pipenv": ("run",), "hatch": ("run",), "pdm": ("run",), "rye": ("run",), "bundle": ("exec",),
    "pnpm": ("exec", "dlx"), "yarn": ("exec", "dlx"), "npm": ("exec",), "pixi": ("run",), "conda": ("run",), "bun": ("x",),
}  # fmt: skip
"""Programs that start another one behind one of these words."""
_SHELLS = frozenset(("bash", "sh", "zsh", "dash"))
VALUED = frozenset((
    "-n", "--maxfail", "--tb", "-c", "--config", "--rootdir", "-o", "--cov", "-W", "--durations", "--reporter", "--color", "--timeout",
    "--junitxml", "--junit-xml", "--format", "--output-format", "--level", "--pythonpath", "--project", "--python", "--group",
    "--extra", "--with", "--max-warnings", "--dist", "--randomly-seed", "--count", "--retries", "--workers", "--loglevel",
))  # fmt: skip
"""Options whose value narrows nothing."""


@dataclass(frozen=True)
class Segment:
    words: tuple[str, ...]
    behind: str
    """What stands in front of it: `&&`, `|`, ..."""


@lru_cache(maxsize=256)
def segments_of(command: str) -> tuple[Segment, ...]:
    """The programs of a command line, each with the sign in front of it; those inside of `bash -c '...'` as well."""
    return tuple(_segments(command))


def _segments(command: str) -> Iterator[Segment]:
    sign, words = "", list[str]()
    for word in [*_words(command[:LONGEST]), ";"]:
        if word not in _BETWEEN:
            words.append(word)
            continue
        if words:
            yield from _inside(Segment(tuple(words), sign))
            sign, words = word, []
        elif word not in ("(", ")"):
            sign = word


def _inside(segment: Segment) -> Iterator[Segment]:
    words = started(segment.words)
    if words and PurePosixPath(words[0]).name in _SHELLS:
        place = next((n for n, word in enumerate(words) if re.fullmatch(r"-[a-z]*c", word)), None)
        if place is not None and place + 1 < len(words):
            inner = list(segments_of(words[place + 1]))
            yield from (
                Segment(each.words, each.behind if number else segment.behind) for number, each in enumerate(inner)
            )
            return
    yield segment


def _words(command: str) -> list[str]:
    """The words and signs of a command line. One that no shell reads (an open quotation mark) is read to the end of its first line."""
    for text in (command, command.split("\n", 1)[0], command.split("\n", 1)[0].replace("'", " ").replace('"', " ")):
        lexer = shlex.shlex(re.sub(r"\\\n", " ", text), posix=True, punctuation_chars="();<>|&\n")
        lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, "#"
        try:
            return [sign for word in lexer for sign in ([word] if word.strip("\n") else ["\n"])]
        except ValueError:
            continue
    return []


def started(words: Sequence[str]) -> tuple[str, ...]:
    """The program that a segment starts, with its arguments: behind assignments, wrappers and `uv run`."""
    rest = list(words)
    while rest:
        head = PurePosixPath(rest[0]).name
        if re.match(r"[A-Za-z_]\w*=", rest[0]) or rest[0] in ("!", "then", "do", "else", "if", "while", "{"):
            rest = rest[1:]
        elif head in _WRAPPERS:
            rest = behind_options(rest[1:], ("-u", "-k", "-s", "-n", "-p", "--package", "--from", "-c"))
            if head.endswith("timeout") and rest and re.fullmatch(r"[\d.]+[smhd]?", rest[0]):
                rest = rest[1:]
            if head == "pipx" and rest[:1] == ["run"]:
                rest = rest[1:]
        elif (
            head in _RUNS
            and (verb := first_word(rest[1:], tuple(VALUED | {"--filter", "-F", "-C", "--dir"}))) in _RUNS[head]
        ):
            rest = behind_options(
                rest[rest.index(str(verb), 1) + 1 :], tuple(VALUED | {"-p", "--package", "--from", "-m"})
            )
            if head == "uv" and verb == "tool" and rest[:1] == ["run"]:
                rest = rest[1:]
        elif head in _SHELLS and len(rest) > 1 and not rest[1].startswith("-"):
            rest = rest[1:]
        elif re.fullmatch(r"python[\d.]*|py|pypy3?|coverage", head):
            inner = _of_python(rest[1:])
            if inner is None:
                return tuple(rest)
            rest = inner
        else:
            return (*rest,)
    return ()


def _of_python(rest: list[str]) -> list[str] | None:
    """What `python -m module ...` and `python manage.py ...` start; None for code."""
    rest = rest[1:] if rest[:1] == ["run"] else rest
    while rest and rest[0].startswith("-"):
        if rest[0] == "-m" and len(rest) > 1:
            return rest[1:]
        if rest[0] in ("-c", "-"):
            return None
        rest = rest[2:] if rest[0] in ("-W", "-X") else rest[1:]
    return rest or None


def behind_options(rest: list[str], valued: tuple[str, ...]) -> list[str]:
    while rest and rest[0].startswith("-"):
        rest = rest[2:] if rest[0] in valued else rest[1:]
    return rest


def first_word(rest: Sequence[str], valued: tuple[str, ...] = ()) -> str | None:
    """The first argument that is no option."""
    left = behind_options(list(rest), valued)
    return left[0] if left else None
