"""A command line as a shell would run it: the programs that it starts, in order.

Gives: `simple_commands` (each program with its arguments, redirections and the operators around it), `outer_commands`
(the same, with `bash -c '...'` as one program) and `started` (the program after assignments, wrappers and `uv run`).

Note: lines are not split at spaces. Quotes, `bash -c '...'`, here documents, pipes and `&&` are parsed as in a shell; a
line with a syntax error is read up to the end of its first line. A simple command reports its uncertainty in `exact`
and `nested`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import PurePosixPath
from typing import NamedTuple

__all__ = [
    "LONGEST",
    "MOVES",
    "STRICT",
    "VALUED",
    "SimpleCommand",
    "behind_options",
    "first_word",
    "outer_commands",
    "simple_commands",
    "started",
]

_GO_ON = ("&&", "||", "|", "|&")
"""Operators after which a line goes on in the next one."""
LONGEST = 20_000
"""Most characters of a command that are read."""
MOVES = ("cd", "pushd", "popd")
"""Programs that change the folder of their shell."""
DEEPEST = 64
"""Most groups within each other that are distinguished."""
_TOKEN = re.compile(
    r"(?P<blank>(?:[ \t\r]|\\\n)+)|(?P<redirect>&>>?|(?<![^\s;|&()])\d+(?=[<>])|<<<|<<-?|>>|>\||[<>]&|<>|[<>])|"
    r"(?P<sign>&&|\|\||;;|\|&|[;|&()\n])|(?P<single>'[^']*')|(?P<double>\"(?>\$\(cat <<-?[ \t]*+(?P<quote>['\"]?)(?P<mark>\w+)(?P=quote)\n(?:(?![ \t]*(?P=mark)[ \t]*(?:\n|\)))[^\n]*+\n)*+[ \t]*+(?P=mark)\s*+\)|\$\((?:[^()\"'\\]|'[^']*'|\"(?:[^\"\\]|\\.)*+\"|\\.|\([^()\"']*\))*+\)|[^\"\\]|\\.)*+\")|(?P<escaped>\\.)|"
    r"(?P<substituted>\$\(|`)|(?P<comment>(?<![^\s;|&()])#[^\n]*)|(?P<plain>[^\s;|&()<>'\"\\`$*?\[{~]+)|(?P<expanded>[$*?\[{~])",
    re.DOTALL,
)
_SHELL_WORDS = frozenset((
    "!", "then", "do", "else", "elif", "if", "while", "until", "for", "case", "function", "{", "}", "fi", "done", "esac", "[[", "select",
))  # fmt: skip
_WRAPPERS = frozenset((
    "env", "sudo", "builtin", "time", "nice", "nohup", "command", "exec", "stdbuf", "xvfb-run", "npx", "bunx", "uvx", "pipx", "timeout", "gtimeout",
    "dotenv", "catchsegv", "ionice", "doas",
))  # fmt: skip
_RUNS = {
    "uv": ("run", "tool"), "poetry": ("run",), "pipenv": ("run",), "hatch": ("run",), "pdm": ("run",), "rye": ("run",), "bundle": ("exec",),
    "pnpm": ("exec", "dlx"), "yarn": ("exec", "dlx"), "npm": ("exec",), "pixi": ("run",), "conda": ("run",), "bun": ("x",),
}  # fmt: skip
"""Programs that start another one after one of these words."""
_SHELLS = frozenset(("bash", "sh", "zsh", "dash"))
STRICT = re.compile(r"-[a-zA-Z]*e|errexit\Z")
"""Options with which a shell ends once a program fails."""
VALUED = frozenset((
    "-n", "--maxfail", "--tb", "-c", "--config", "--rootdir", "-o", "--cov", "-W", "--durations", "--reporter", "--color", "--timeout",
    "--junitxml", "--junit-xml", "--format", "--output-format", "--level", "--pythonpath", "--project", "--python", "--group",
    "--extra", "--with", "--max-warnings", "--dist", "--randomly-seed", "--count", "--retries", "--workers", "--loglevel",
))  # fmt: skip
"""Options whose value is not a program."""


class _Token(NamedTuple):
    text: str
    kind: str
    """word, redirect or sign"""
    exact: bool = True


@dataclass(frozen=True)
class SimpleCommand:
    words: tuple[str, ...]
    behind: str
    """The operator before it: `&&`, `|`, ..."""
    ahead: str = ""
    """The operator after it, none at the end."""
    redirects: tuple[tuple[str, str], ...] = ()
    """Its redirections, each with its target."""
    exact: bool = True
    """Whether the program gets these very words: they contain no variable, pattern or substitution."""
    nested: bool = False
    """Whether it is in a group, a substitution or after a keyword, which decide whether it runs."""
    group: tuple[int, ...] = ()
    """The subshells that it runs in, outermost first, each by a number of its own in the line."""


@lru_cache(maxsize=256)
def simple_commands(command: str) -> tuple[SimpleCommand, ...]:
    """The programs of a command line, each with the operator before it, also those inside `bash -c '...'`."""
    found = outer_commands(command)
    return tuple(inner for n, each in enumerate(found) for inner in _inside(each, -n - 1, alone=len(found) == 1))


@lru_cache(maxsize=256)
def outer_commands(command: str) -> tuple[SimpleCommand, ...]:
    """The same, with `bash -c '...'` as one program."""
    tokens, whole = _tokens(command[:LONGEST])
    if [each.text for each in (*tokens[:1], *tokens[-1:])] == ["(", ")"] and _has_one_group(tokens):
        tokens = tokens[1:-1]  # the line is one group
    whole &= len(command) <= LONGEST
    return tuple(each if whole else replace(each, nested=True) for each in _simple_commands(tokens))


def _has_one_group(tokens: Sequence[_Token]) -> bool:
    signs = [each.text for each in tokens if each.kind == "sign"]
    return signs.count("(") == signs.count(")") == 1


def _simple_commands(tokens: list[_Token]) -> Iterator[SimpleCommand]:
    sign, exact = "", True
    words, redirects = list[str](), list[tuple[str, str]]()
    awaited = ""
    group, groups, ticked = (), 0, list[bool]()
    for token in [*tokens, _Token("", "sign")]:
        if token.kind == "redirect":
            awaited = token.text
        elif token.kind == "word":
            exact &= token.exact
            if awaited:
                redirects.append((awaited, token.text))
                awaited = ""
            else:
                words.append(token.text)
        else:
            closed = token.text == ")" or (token.text == "`" and ticked[-1:] == [True])
            opened = token.text in ("(", "$(", "`") and not closed
            if not words and any(">" in each and not to.isdigit() for each, to in redirects):
                words = [":"]  # `> file`, or behind a group or a substitution
            if words:
                nested = bool(group) or opened or words[0] in _SHELL_WORDS
                yield SimpleCommand(tuple(words), sign, token.text, tuple(redirects), exact, nested, group)
                sign = token.text
            elif token.text not in ("(", ")", "$(", "`") and not (token.text == "\n" and sign in _GO_ON):
                sign = token.text
            if opened:
                groups += 1
                ticked.append(token.text == "`")
                group = (*group, groups) if len(ticked) <= DEEPEST else group
            elif closed and ticked:
                ticked.pop()
                group = group[: len(ticked)]
            words, redirects, exact, awaited = [], [], True, ""


def _inside(simple: SimpleCommand, shell: int, *, alone: bool) -> Iterator[SimpleCommand]:
    """The programs of `bash -c '...'` in the subshell `shell`, or the one that this is."""
    words = started(simple.words)
    if words and PurePosixPath(words[0]).name in _SHELLS:
        place = next((n for n, word in enumerate(words) if re.fullmatch(r"-[a-z]*c", word)), None)
        if place is not None and place + 1 < len(words):
            hidden = not alone or not simple.exact or bool(simple.redirects) or words != simple.words
            strict = any(map(STRICT.match, words[1 : place + 1]))
            inner = simple_commands(f"set -e; {words[place + 1]}" if strict else words[place + 1])
            for number, each in enumerate(inner):
                behind = each.behind if number else simple.behind
                ahead = each.ahead if number + 1 < len(inner) or each.ahead else simple.ahead
                group = (*simple.group, shell, *each.group)
                yield replace(each, behind=behind, ahead=ahead, nested=each.nested or hidden, group=group)
            return
    yield simple


def _tokens(command: str) -> tuple[list[_Token], bool]:
    """The words and operators of a command line, and whether it was read to its end: one with an open quotation mark is
    read to the end of its first line.
    """
    first = command.split("\n", 1)[0]
    for text in (command, first, first.translate(dict.fromkeys(map(ord, "'\"\\"), " "))):
        try:
            return list(_lexed(text)), text is command
        except ValueError:
            continue
    return [], False


def _lexed(command: str) -> Iterator[_Token]:
    """The tokens of a command line.

    Raises:
        ValueError: a quotation mark is open.
    """
    at, word, exact = 0, None, True
    awaited, documents = "", list[str]()
    while at < len(command):
        found = _TOKEN.match(command, at)
        if found is None:
            raise ValueError(f"no token at {at}")
        at, kind, text = found.end(), str(found.lastgroup), found[0]
        if kind in _PARTS:
            word = (word or "") + _PARTS[kind](text)
            exact &= kind != "expanded" and not (kind == "double" and re.search(r"(?<!\\)[$`]", text))
            continue
        if word is not None:
            if awaited in ("<<", "<<-"):
                documents.append(word)
            yield _Token(word, "word", exact)
            word, exact, awaited = None, True, ""
        if kind == "redirect" and not text.isdigit():
            awaited = text
            yield _Token(text, "redirect")
        elif kind in ("sign", "substituted"):
            yield _Token(text, "sign")
            if text == "\n" and documents:
                at = _behind(command, at, documents)
                documents = []
    if word is not None:
        yield _Token(word, "word", exact)


_PARTS = {
    "plain": str,
    "expanded": str,
    "single": lambda text: text[1:-1],
    "double": lambda text: re.sub(r'\\([\\"$`\n])', lambda found: found[1].strip("\n"), text[1:-1]),
    "escaped": lambda text: text[1:],
}
"""Parts of a word, with their expansion by a shell."""


def _behind(command: str, at: int, documents: Sequence[str]) -> int:
    """The position after the here documents that begin at `at`."""
    for mark in documents:
        end = re.compile(rf"^\t*{re.escape(mark)}[ \t]*$\n?", re.MULTILINE).search(command, at)
        at = end.end() if end else len(command)
    return at


def started(words: Sequence[str]) -> tuple[str, ...]:
    """The program that a simple command starts, with its arguments, without assignments, wrappers and `uv run`."""
    rest = list(words)
    while rest:
        head = PurePosixPath(rest[0]).name
        if re.match(r"[A-Za-z_]\w*=", rest[0]) or rest[0] in ("!", "then", "do", "else", "if", "while", "{"):
            rest = rest[1:]
        elif head == "command" and rest[1:2] and rest[1] in ("-v", "-V"):
            return ()  # it prints the path of a program
        elif head in _WRAPPERS:
            rest = behind_options(rest[1:], ("-u", "-k", "-s", "-n", "-p", "--package", "--from", "-c"))
            if head.endswith("timeout") and rest and re.fullmatch(r"[\d.]+[smhd]?", rest[0]):
                rest = rest[1:]
            if head == "pipx" and rest[:1] == ["run"]:
                rest = rest[1:]
        elif (
            head in _RUNS
            and (verb := first_word(rest[1:], tuple(VALUED | {"--filter", "-F", "-C", "--dir", "-e", "--env"})))
            in _RUNS[head]
        ):
            rest = behind_options(rest[rest.index(str(verb), 1) + 1 :], tuple(VALUED | {"-p", "--package", "--from"}))
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
    """The program that `python -m module ...` or `python manage.py ...` starts; None for code."""
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
    """The first argument that is not an option."""
    left = behind_options(list(rest), valued)
    return left[0] if left else None
