"""Checks in a command line: which of its programs test, lint, check types or build, and what each covers.

Gives: `checks_of`, `Check` and `FAMILIES`.

Note: a word says nothing. `ls tests` tests nothing, and `rm -rf build` builds nothing: a check is a
program that is a test runner, a linter or a build. And a shell reports the end of its last program: of `pytest | tail` that is the
end of `tail`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from .shell import VALUED, first_word, segments_of, started

__all__ = ["FAMILIES", "Check", "checks_of"]

FAMILIES = ("test", "lint", "types", "build", "all")
"""What a check looks at. One that looks at everything passes for each of them."""
_PROGRAMS = {
    **dict.fromkeys(("pytest", "py.test", "jest", "vitest", "mocha", "ava", "ctest", "phpunit", "rspec", "tap", "nose2", "karma", "cypress",
                     "playwright", "pest", "busted", "gotestsum", "unittest", "doctest", "trial", "green", "stestr", "nextest"), "test"),
    **dict.fromkeys(("flake8", "pylint", "eslint", "stylelint", "rubocop", "golangci-lint", "staticcheck", "shellcheck", "hadolint",
                     "oxlint", "markdownlint", "yamllint", "lint-imports", "bandit", "vulture", "ktlint", "swiftlint", "clippy-driver", "credo",
                     "standard", "xo", "ansible-lint", "codespell"), "lint"),
    **dict.fromkeys(("mypy", "pyright", "basedpyright", "tsc", "vue-tsc", "pyre", "pytype", "ty", "flow", "sorbet", "dmypy"), "types"),
    **dict.fromkeys(("tox", "nox", "pre-commit"), "all"),
    **dict.fromkeys(("ninja", "msbuild", "xcodebuild"), "build"),
}  # fmt: skip
"""Programs that check whatever their arguments are."""
_VERBS: dict[str, dict[str, str]] = {
    "cargo": {"test": "test", "t": "test", "nextest": "test", "check": "types", "c": "types", "clippy": "lint", "build": "build", "b": "build"},
    "go": {"test": "test", "vet": "lint", "build": "build"},
    "deno": {"test": "test", "lint": "lint", "check": "types"},
    "dotnet": {"test": "test", "build": "build"},
    "swift": {"test": "test", "build": "build"},
    "zig": {"test": "test", "build": "build"},
    "flutter": {"test": "test", "analyze": "lint", "build": "build"},
    "dart": {"test": "test", "analyze": "lint"},
    "mix": {"test": "test", "compile": "build", "credo": "lint"},
    "bazel": {"test": "test", "build": "build"},
    "ruff": {"check": "lint"},
    "biome": {"check": "lint", "lint": "lint", "ci": "lint"},
    "meson": {"test": "test", "compile": "build"},
    "terraform": {"validate": "lint"},
    "manage.py": {"test": "test", "check": "lint"},
    "setup.py": {"test": "test", "build": "build"},
    "rake": {"test": "test", "spec": "test"},
    "sbt": {"test": "test", "compile": "build"},
    "turbo": {"test": "test", "lint": "lint", "build": "build"},
}  # fmt: skip
"""Programs that check by their first word."""
_BUILDS = {"mvn": "build", "mvnw": "build", "gradle": "build", "gradlew": "build", "cmake": "build"}
_GOALS = {"test": "test", "verify": "test", "check": "test", "integration-test": "test", "install": "test", "build": "test", "compile": "build",
          "package": "test", "assemble": "build", "lint": "lint"}  # fmt: skip
_MANAGERS = frozenset(("npm", "pnpm", "yarn", "bun", "make", "gmake", "just", "task", "mise", "invoke", "composer"))
"""Programs that run what the project calls by a name."""
_SCRIPT = re.compile(
    r"(?P<name>test|tests|t|spec|lint|check|verify|ci|typecheck|type-check|types|tsc|build|compile|all)(?:[:_.-].*)?\Z"
)
_SCRIPT_FAMILY = {"test": "test", "tests": "test", "t": "test", "spec": "test", "lint": "lint", "typecheck": "types", "type-check": "types",
                  "types": "types", "tsc": "types", "build": "build", "compile": "build"}  # fmt: skip
_OWN_SCRIPT = re.compile(r"(?:run[-_]?)?(?P<name>tests?|lint|check|verify|build|ci)(?:\.(?:sh|py|mjs|js|ts|rb|ps1))?\Z")
_TEST_FILE = re.compile(r"(?:test_.+|.+_test)\.py\Z")
_READ_ONLY = frozenset((
    "--collect-only", "--co", "--version", "--help", "-h", "--fixtures", "--markers", "--dry-run", "--list", "--listtests", "--list-tests",
    "--init", "--showconfig", "--print-config", "--show-settings", "--show-files", "--setup-plan", "--just-print", "--no-run", "--clean",
))  # fmt: skip
"""Options with which a checker checks nothing."""
_NARROWING = frozenset((
    "-k", "-m", "-t", "--filter", "-F", "--testnamepattern", "--test", "--tests", "--package", "-run", "--run", "--lf", "--last-failed",
    "--deselect", "--ignore", "--exclude", "--workspace", "-w", "--prefix", "-C", "--dir", "--cwd", "--lib", "--bin", "--bins", "--grep", "-g",
    "--spec", "--changed", "--onlychanged", "--related", "--sw", "--stepwise", "--pl", "-pl", "--affected", "--since",
))  # fmt: skip
_SWITCHES = frozenset((
    "--lf", "--last-failed", "--lib", "--bins", "--changed", "--onlychanged", "--sw", "--stepwise", "--affected",
))  # fmt: skip
"""Narrowing options without a value."""
_WHOLE = frozenset((".", "./", "./...", "test", "tests", "tests/", "test/", "./tests", "./tests/"))
"""Arguments that name all that there is."""


@dataclass(frozen=True)
class Check:
    """A segment of a command that checks."""

    family: str
    selection: tuple[str, ...]
    """What it is narrowed to, in the order of words; none = all that there is."""
    passes: bool
    """An exit code of 0 of the whole command says that it passed."""
    fails: bool
    """Another exit code of the whole command says that it may have failed: no later program's hides it."""

    @property
    def scope(self) -> str:
        """Its name: a later check of the same name repeats it."""
        return f"{self.family}:{' '.join(self.selection)}"

    @property
    def clears(self) -> tuple[str, ...]:
        """The families whose failures end when it passes, however narrow these were."""
        if self.selection:
            return ()
        return FAMILIES if self.family == "all" else (self.family,)


def checks_of(command: str | None) -> list[Check]:
    """The checks of a command in their order."""
    segments = list(segments_of(command or ""))
    found: list[Check] = []
    folder: tuple[str, ...] = ()
    strict = any(segment.words[0] == "set" and "pipefail" in segment.words for segment in segments if segment.words)
    for place, segment in enumerate(segments):
        words = started(segment.words)
        if words[:1] == ("cd",) and len(words) > 1:
            folder = (f"cd {words[1]}",) if words[1] not in (".", "-") and not words[1].startswith("/") else ()
        family = _family(words)
        if family is None:
            continue
        later = [each.behind for each in segments[place + 1 :] if each.behind]
        piped = {"|", "|&"} if not strict else set()
        decides = not any(sign in piped or sign in ("||", ";", "&", "\n") for sign in later)
        ends = not any(sign in piped or sign in ("||", ";", "\n", "&") for sign in later)
        found.append(Check(family, folder + _selection(words), decides and segment.behind != "||", ends))
    return found


def _family(words: Sequence[str]) -> str | None:
    """What a program checks, None for one that checks nothing."""
    if not words:
        return None
    head, rest = PurePosixPath(words[0]).name.removesuffix(".exe").removesuffix(".cmd"), list(words[1:])
    if {word.lower().split("=")[0] for word in rest} & _READ_ONLY:
        return None
    if head in _PROGRAMS:
        return None if head == "pre-commit" and rest[:1] != ["run"] else _PROGRAMS[head]
    if head in ("black", "prettier", "isort", "gofmt", "rustfmt", "clang-format"):
        return "lint" if {"--check", "-c", "--list-different", "--check-only", "-l", "--dry-run"} & set(rest) else None
    if head in _VERBS:
        verb = first_word(rest, ("--manifest-path", "-C", "--config"))
        if verb in ("format", "fmt"):
            return "lint" if "--check" in rest else None
        return _VERBS[head].get(str(verb))
    if head == "node":
        return "test" if "--test" in rest else None
    if head in _BUILDS:
        goals = [_GOALS[word.rsplit(":", 1)[-1]] for word in rest if word.rsplit(":", 1)[-1] in _GOALS]
        if head == "cmake":
            return "build" if "--build" in rest else None
        return "test" if "test" in goals else goals[0] if goals else None
    if head in _MANAGERS:
        return _of_script(head, rest)
    own = _OWN_SCRIPT.match(head) if "/" in words[0] or words[0] != head or "." in head else None
    if own:
        return _SCRIPT_FAMILY.get(own["name"], "all")
    return "test" if _TEST_FILE.match(head) else None


def _of_script(head: str, rest: list[str]) -> str | None:
    """What `npm run test:unit`, `make check` and their like check, by the name that the project gives it."""
    if head in ("make", "gmake") and "-n" in rest:
        return None
    names = [word for word in _named(rest) if not re.match(r"\w+=", word)]
    while names and names[0] in ("run", "run-script", "workspace", "workspaces", "recursive", "--"):
        names = names[2:] if names[0] == "workspace" else names[1:]
    if not names:
        return "build" if head in ("make", "gmake") else None
    if names[0] in ("ci", "create", "x") and head in ("npm", "pnpm", "yarn", "bun"):
        return None
    families = [_SCRIPT_FAMILY.get(found["name"], "all") for name in names if (found := _SCRIPT.match(name))]
    first = _SCRIPT.match(names[0])
    if head in ("make", "gmake", "just", "task", "invoke"):
        return "all" if len(set(families)) > 1 else families[0] if families else None
    return families[0] if first else None


def _named(rest: Sequence[str]) -> list[str]:
    """The arguments that are neither options nor their values."""
    found, skip = [], False
    for word in rest:
        if skip:
            skip = False
        elif word.startswith("-") and word != "--":
            skip = (
                "=" not in word
                and (word in VALUED or (word.lower() in _NARROWING or word in _NARROWING))
                and word.lower() not in _SWITCHES
            )
        elif not word.isdigit():
            found.append(word)
    return found


def _selection(words: Sequence[str]) -> tuple[str, ...]:
    """What a check is narrowed to: files, names, packages."""
    head, rest = PurePosixPath(words[0]).name, list(words[1:])
    plain = head in _PROGRAMS or head in ("black", "prettier", "isort")
    found: list[str] = []
    take: str | None = None
    skip, verbs = False, 0 if plain else 1
    for word in rest:
        name = word.split("=", 1)[0]
        if word in (">", ">>", "2>", "<", "&>", ">&", "2"):
            skip = word != "2"
        elif skip:
            skip = False
        elif take is not None:
            found.append(f"{take} {word}")
            take = None
        elif word == "--" or word.isdigit() or (plain and word == "run"):
            continue
        elif word.startswith("-"):
            if name in _NARROWING or name.lower() in _NARROWING:
                if "=" in word or name.lower() in _SWITCHES:
                    found.append(word)
                else:
                    take = name
            else:
                skip = word in VALUED
        elif verbs and (head not in _MANAGERS or word not in ("run", "run-script")):
            verbs -= 1
            if (
                head in _MANAGERS
                and (name := _SCRIPT.match(word))
                and name["name"] != word
                and word not in ("type-check",)
            ):
                found.append(word)
        elif verbs or word in _WHOLE:
            continue
        else:
            found.append(word)
    if _TEST_FILE.match(head):
        found.append(words[0])
    return tuple(sorted(found))
