"""Programs that are checks: test runners, linters, type checkers, builds, and scripts of the project with such names.

Gives: `check_of` a program of a command line, `INERT_VARIABLES`, and the programs `IDLE` and `FILE_TOOLS`.

Note: a word alone proves nothing. `ls tests` tests nothing, and `rm -rf build` builds nothing. `runners` lists the
words that are understood after a program; a check with any other word does not repeat another check.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, takewhile
from pathlib import PurePosixPath

from .checks import Check, path_from, place_of
from .runners import MODULES, SCRIPTS, Options, Read, options_of
from .shell import SimpleCommand, first_word, started

__all__ = ["FILE_TOOLS", "IDLE", "INERT_VARIABLES", "check_of"]

IDLE = frozenset((
    "true", ":", "echo", "printf", "sleep", "date", "pwd", "set", "export", "source", ".", "cd", "pushd",
))  # fmt: skip
"""Programs that change no file and print no summary of tests."""
FILE_TOOLS = frozenset(("mkdir", "rm", "cp", "mv", "touch", "ln", "chmod"))
"""Programs that print no summary of tests."""

_PROGRAMS = {
    **dict.fromkeys(("pytest", "jest", "vitest", "mocha", "ava", "ctest", "phpunit", "rspec", "tap", "nose2", "pest", "busted", "gotestsum",
                     "unittest", "doctest", "trial", "green", "nextest", "prove", "bats"), "test"),
    **dict.fromkeys(("flake8", "pylint", "eslint", "stylelint", "rubocop", "golangci-lint", "staticcheck", "shellcheck", "hadolint",
                     "oxlint", "markdownlint", "yamllint", "lint-imports", "bandit", "vulture", "ktlint", "swiftlint", "clippy-driver", "credo",
                     "standard", "xo", "ansible-lint", "codespell"), "lint"),
    **dict.fromkeys(("mypy", "pyright", "basedpyright", "tsc", "vue-tsc", "pyre", "pytype", "ty", "flow", "sorbet", "dmypy"), "types"),
    **dict.fromkeys(("tox", "nox", "pre-commit"), "all"),
    **dict.fromkeys(("ninja", "msbuild", "xcodebuild"), "build"),
}  # fmt: skip
"""Programs that check with any arguments."""
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
    "rails": {"test": "test"},
    "sbt": {"test": "test", "compile": "build"},
    "turbo": {"test": "test", "lint": "lint", "build": "build"},
    "playwright": {"test": "test"},
    "cypress": {"run": "test"},
    "karma": {"start": "test"},
    "stestr": {"run": "test"},
    "hatch": {"test": "test"},
}  # fmt: skip
"""Programs that check by their first word."""
_SAME = {
    "py.test": "pytest", "gmake": "make", "mvnw": "mvn", "gradlew": "gradle", "cargo t": "cargo test", "cargo c": "cargo check",
    "cargo b": "cargo build",
}  # fmt: skip
_TAKES_IN = {
    **dict.fromkeys(("cargo build", "cargo clippy", "cargo test --no-run"), ("cargo check",)),
    "cargo test": ("cargo check", "cargo test --no-run"), "cargo nextest": ("cargo check",),
}  # fmt: skip
"""Programs that first do everything that another one does."""
_KIND = {"--bin": "--bins", "--test": "--tests", "--example": "--examples", "--bench": "--benches"}
"""Options of Cargo that select one target, and those that select all of its kind."""
_ALL_TARGETS = "--all-targets"
_KINDS = frozenset(("--lib", "--doc", _ALL_TARGETS, *_KIND.values()))
_BUILDS = frozenset(("cargo check", "cargo build", "cargo clippy"))
_BUILT, _TESTED = frozenset(("--lib", "--bins")), frozenset(("--lib", "--bins", "--tests", "--doc"))
"""The kinds of targets that Cargo builds, and those that it tests, by default."""
_BUILT_AS_TESTED = frozenset(("--tests", "--benches"))
"""The kinds of targets that `cargo check` compiles as `cargo test` does; it compiles the others without `cfg(test)`."""
_FORMATTERS = frozenset(("black", "prettier", "isort", "gofmt", "rustfmt", "clang-format"))
_LOOKING = frozenset(("--check", "-c", "--list-different", "--check-only", "-l", "--dry-run"))
"""Options with which a formatter changes nothing."""
_GOALS = {
    **dict.fromkeys(("compile", "assemble", "classes"), "build"), "lint": "lint",
    **dict.fromkeys(("test", "check", "package", "integrationTest", "build", "integration-test", "verify", "install"), "test"),
}  # fmt: skip
_AFTER = {
    "mvn": ("test", "package", "integration-test", "verify", "install"),
    "gradle": ("test", "check", "build"),
}
"""Goals of builds that run tests; each includes the previous ones."""
_TESTS_ALONE = frozenset(("test", "integration-test", "integrationTest"))
"""Goals of builds that do nothing after the tests."""
_SKIPS = re.compile(r"-D(?:skipTests|maven\.test\.skip)(?:=(?!false).*)?\Z")
_PACKAGES = frozenset(("npm", "pnpm", "yarn", "bun"))
_TASKS = frozenset(("make", "just", "task", "mise", "invoke", "composer"))
"""Programs that run tasks named by the project."""
_SCRIPT = re.compile(
    r"(?P<name>test|tests|t|tst|spec|lint|check|verify|ci|typecheck|type-check|types|tsc|build|compile|all)(?:[:_.-].*)?\Z"
)
_SCRIPT_FAMILY = {
    **dict.fromkeys(("test", "tests", "t", "tst", "spec"), "test"), "lint": "lint", **dict.fromkeys(("build", "compile"), "build"),
    **dict.fromkeys(("typecheck", "type-check", "types", "tsc"), "types"),
}  # fmt: skip
_HATCH = re.compile(r"(?:\A|[ /])hatch(?: (?:-e|--env)[ =]\S+)? run\Z")
_OWN_SCRIPT = re.compile(r"(?:run[-_]?)?(?P<name>tests?|lint|check|verify|build|ci)(?:\.(?:sh|py|mjs|js|ts|rb|ps1))?\Z")
_TEST_FILE = re.compile(r"(?:test_.+|.+_test)\.py\Z")
_READ_ONLY = frozenset((
    "--collect-only", "--collectonly", "--co", "--version", "--help", "-h", "--fixtures", "--markers", "--dry-run", "--list", "--listtests", "--list-tests",
    "--init", "--showconfig", "--print-config", "--show-settings", "--show-files", "--setup-plan", "--just-print", "--clean",
    "--clearcache", "--clear-cache", "--cache-show", "--setup-only", "--fixtures-per-test", "--listenvs", "--listenvs-all", "--notest",
    "--show-only", "--install-only", "--print-labels", "--touch", "--question", "--list-sessions", "--recon",
))  # fmt: skip
"""Options with which a checker checks nothing."""
_CHECKS_NOTHING: dict[str, set[str]] = {
    "ctest": {"-N"}, "go test": {"-list", "-c", "-n"}, "go vet": {"-n"}, "nox": {"-l"}, "make": {"-n", "-q", "-t"}, "dotnet test": {"-t"},
    "tox": {"-l", "-a", "l", "list", "c", "config", "d", "devenv", "de", "depends", "e", "exec"}, "cargo nextest": {"list", "archive", "show-config", "--no-run"}, "deno test": {"--no-run"},
    "vitest": {"list", "init"}, "gradle": {"-m"}, "playwright test": {"--ui"}, "pre-commit": {"install", "autoupdate", "clean", "gc"},
    "bats": {"-c", "--count"}, "just": {"-n", "-l"}, "task": {"-n", "-l"},
}  # fmt: skip
"""The same for single programs, and words with which they do something else."""
INERT_VARIABLES = frozenset((
    "CI", "FORCE_COLOR", "NO_COLOR", "PY_COLORS", "CLICOLOR", "TERM", "COLUMNS", "LANG", "LC_ALL", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE",
    "RUST_BACKTRACE", "RUST_LOG", "CARGO_TERM_COLOR", "PYTHONIOENCODING", "PAGER", "GIT_PAGER", "PIP_DISABLE_PIP_VERSION_CHECK",
))  # fmt: skip
"""Environment variables that do not change the selection."""
_ENVIRONMENT = frozenset(
    ("PYTHONPATH", "DJANGO_SETTINGS_MODULE", "JAVA_HOME", "NODE_ENV", "NODE_OPTIONS", "RUSTFLAGS", "LD_LIBRARY_PATH")
)
"""Environment variables that change the environment, not the selection."""
_INERT_WRAPPERS = re.compile(
    r"(?:.*/)?(?:env|time|command|exec|nice|npx|bunx|uvx|uv|run|tool|poetry|pipenv|pdm|rye|hatch|bundle|pnpm|yarn|npm|bun|x|timeout|gtimeout|xvfb-run|stdbuf|"
    r"python[\d.]*|py|pypy3?|coverage|bash|sh)|-m|-u|-n|-oL|-a|--|-y|--yes|--no-install|--quiet|-q|--frozen|--locked|--no-sync|--offline|[\d.]+[smhd]?"
)
"""Words before a program that do not change it."""

_Found = tuple[Check, list[str], Options]
"""A check, the words after its program, and the options that they may be."""


def check_of(simple: SimpleCommand, folder: str = "", root: str = "") -> Check | None:
    """The check that this simple command of a command line runs, or None. `folder` is where the line runs, `root` the
    absolute folder to which places are relative.
    """
    words = started(simple.words)
    if not words or {word.lower().split("=")[0] for word in simple.words} & _READ_ONLY:
        return None
    prefix = simple.words[: len(simple.words) - len(words)]
    head, rest = _head(words[0]), list(words[1:])
    if head in ("pnpm", "yarn", "bun") and rest and (rest[0] in _PROGRAMS or rest[0] in ("playwright", "cypress")):
        head, rest = rest[0], rest[1:]  # they run programs of a package by name
    found = _recognized(head, words[0], rest) or _of_hatch(prefix, words)
    if found is None:
        return None
    check, arguments, options = found
    nothing = _CHECKS_NOTHING.get(check.program, _CHECKS_NOTHING.get(head, set()))
    if {word.split("=")[0] for word in arguments} & nothing:
        return None
    read = Read.of(arguments, options)
    place = place_of(folder, root, read.folder)
    other = sorted(each for each in read.other if " " not in each)
    other += [each for each in read.other if " " in each]  # the last of several values may win
    if head == "cargo":
        check, other = _on_targets(check, other)
    selection = {path_from(place, root, each) for each in (*check.selection, *read.selection)}
    environment, unknown = _in_front(prefix)
    strange = (*unknown, *_elsewhere(words[0], head, prefix), *read.strange, *(() if simple.exact else ("*",)))
    return replace(
        check,
        place=place,
        selection=tuple(sorted(selection)),
        other=(*check.other, *environment, *other, *strange),
        understood=not strange,
        wide=bool(other) and not (check.other or environment) and set(other) <= options.wide,
        usual=len(selection) == 1 and selection <= options.usual,
    )


def _elsewhere(written: str, head: str, prefix: Sequence[str]) -> list[str]:
    """A program of the project that has the name of a known one: `./pytest`, `python pytest`."""
    path = PurePosixPath(written)
    by_name = prefix and re.search(r"(?:python[\d.]*|py)\Z", prefix[-1])
    if head not in _PROGRAMS or ("/" not in written and not by_name) or path.parent.name in ("bin", ".bin", "Scripts"):
        return []
    return [written]


def _head(word: str) -> str:
    head = PurePosixPath(word).name.removesuffix(".exe").removesuffix(".cmd")
    return _SAME.get(head, head)


def _in_front(prefix: Sequence[str]) -> tuple[list[str], list[str]]:
    """Words before a program: those that set its environment, and those that are not understood."""
    relevant = [
        word for word in prefix if word.split("=")[0] not in INERT_VARIABLES and not _INERT_WRAPPERS.fullmatch(word)
    ]
    strange = [word for word in relevant if re.match(r"[A-Za-z_]\w*=", word) and word.split("=")[0] not in _ENVIRONMENT]
    return [word for word in relevant if word not in strange], strange


def _recognized(head: str, written: str, rest: list[str]) -> _Found | None:
    if head == "bun" and rest[:1] == ["test"]:
        return _plain("test", "bun test", rest[1:])
    if head in _TASKS:
        return _of_task(head, rest)
    if head in _PACKAGES:
        return _of_script(rest)
    if head in _AFTER:
        return _of_build(head, rest)
    if head in _PROGRAMS:
        return None if head == "pre-commit" and rest[:1] != ["run"] else _plain(_PROGRAMS[head], head, rest)
    if head in _FORMATTERS:
        return _plain("lint", head, rest) if _LOOKING & set(rest) else None
    if head == "node":
        return _plain("test", "node --test", [word for word in rest if word != "--test"]) if "--test" in rest else None
    if head == "cmake":
        return _plain("build", head, rest) if "--build" in rest else None
    if head in _VERBS:
        return _of_verb(head, rest)
    if _TEST_FILE.match(head):
        return Check("test", "python", selection=(written,)), rest, Options()
    own = _OWN_SCRIPT.match(head) if "/" in written or "." in head else None
    return _plain(_SCRIPT_FAMILY.get(own["name"], "all"), posixpath.normpath(written), rest) if own else None


def _plain(family: str, program: str, rest: list[str]) -> _Found:
    return Check(family, program, takes_in=_TAKES_IN.get(program, ())), rest, options_of(program, family)


def _of_verb(head: str, rest: list[str]) -> _Found | None:
    """The check of `cargo test` and the like."""
    toolchain = tuple(word for word in rest[:1] if head == "cargo" and word.startswith("+"))
    rest = rest[len(toolchain) :]
    verb = str(first_word(rest, ("--manifest-path", "-C", "--config")))
    family = _VERBS[head].get(verb)
    if verb in ("format", "fmt") and "--check" in rest:
        family = "lint"
    if family is None:
        return None
    program, place = f"{head} {verb}", rest.index(verb)
    program, rest = _SAME.get(program, program), rest[:place] + rest[place + 1 :]
    if program == "cargo test" and "--no-run" in rest:
        family, program = "build", "cargo test --no-run"
        rest.remove("--no-run")
    check, rest, options = _plain(family, program, rest)
    return replace(check, other=toolchain), rest, options


def _on_targets(check: Check, words: Sequence[str]) -> tuple[Check, list[str]]:
    """A check of Cargo with the targets that its options select, and the remaining options. It is included in the same program on all
    targets of these kinds, on all targets, and by default if the default includes these kinds.
    """
    kinds = {word: _KIND.get(word.split(" ")[0], word) for word in words}
    kinds = {word: kind for word, kind in kinds.items() if kind in _KINDS}
    whole, builds = {*kinds.values()}, check.program in _BUILDS
    whole = {_ALL_TARGETS} & whole or whole
    own = {kind if kind in kinds else word for word, kind in kinds.items() if kind in whole}
    wider = [whole] if own else []
    wider += [{_ALL_TARGETS}] if (own or builds) and "--doc" not in whole else []
    wider += [set[str]()] if whole <= (_BUILT if builds else _TESTED) else []
    same = [each for each in check.takes_in if builds or each not in _BUILDS or whole <= _BUILT_AS_TESTED]
    takes_in = [(each, *sorted(own)) for each in same]
    takes_in += [("cargo check", "--tests")] if ("cargo check",) in takes_in and not builds else []
    return replace(
        check,
        targets=tuple(sorted(own)),
        takes_in=tuple(" ".join(each) for each in takes_in),
        included_in=tuple(" ".join((check.program, *sorted(each))) for each in wider if each != own),
    ), [word for word in words if word not in kinds]


def _of_build(head: str, rest: list[str]) -> _Found | None:
    """A build, recognized by its goals: `mvn clean verify`, `./gradlew :app:test`."""
    excluded = {after for word, after in pairwise(rest) if word in ("-x", "--exclude-task")}
    goals = {word: word.rsplit(":", 1) for word in rest if not word.startswith("-") and word not in excluded}
    goals = {word: parts for word, parts in goals.items() if parts[-1] in _GOALS}
    if not goals:
        return None
    kinds = sorted({parts[-1] for parts in goals.values()})
    families = {_GOALS[kind] for kind in kinds}
    tests = "test" in families and not excluded and not any(map(_SKIPS.match, rest))
    order, modules = _AFTER[head], tuple(f"{parts[0]}:" for parts in goals.values() if len(parts) > 1)
    before = order[: order.index(kinds[0])] if len(kinds) == 1 and kinds[0] in order else ()
    check = Check(
        "test" if tests else "lint" if families == {"lint"} else "build",
        " ".join((head, *kinds)),
        selection=modules,
        takes_in=tuple(f"{head} {goal}" for goal in before),
        skips="test" in families and not tests and _TESTS_ALONE.issuperset(kinds),
    )
    return check, [word for word in rest if word not in goals], options_of(head, "test")


def _of_task(head: str, rest: list[str]) -> _Found | None:
    """The check of `make check` and the like, by the task names of the project."""
    options = options_of(head, "all")
    names = [word for word in Read.of(rest, options).selection if not word.startswith("-")]
    families = {_SCRIPT_FAMILY.get(found["name"], "all") for name in names if (found := _SCRIPT.match(name))}
    if not families and (names or head != "make"):
        return None
    family = "build" if not names else families.pop() if len(families) == 1 else "all"
    takes_in = tuple(f"{head} {name}" for name in names) if len(names) > 1 else ()
    return Check(family, " ".join((head, *names)), takes_in=takes_in), [w for w in rest if w not in names], options


def _of_hatch(prefix: Sequence[str], words: Sequence[str]) -> _Found | None:
    """The check of `hatch run test`, `hatch run dev:test` or `hatch run +py=3.12 test`, by its name in the project."""
    if not _HATCH.search(" ".join(prefix)):
        return None
    variables = tuple(takewhile(lambda word: word.startswith("+"), words))
    name, *rest = words[len(variables) :] or ("",)
    script = _SCRIPT.match(name) or _SCRIPT.match(name.rpartition(":")[2])
    if not script:
        return None
    family = _SCRIPT_FAMILY.get(script["name"], "all")
    return Check(family, f"hatch run {name}", other=variables), rest, SCRIPTS


def _of_script(rest: list[str]) -> _Found | None:
    """The check of `npm run test:unit` and the like, by its name in the package: it is the same with any runner."""
    arguments, other, run = list(rest), list[str](), False
    names = [word for word in Read.of(arguments, MODULES).selection if not word.startswith("-")]
    while names and names[0] in ("run", "run-script", "workspace", "workspaces", "recursive", "foreach"):
        taken = names[: 2 if names[0] == "workspace" else 1]
        starts = names[0] in ("run", "run-script")
        run, other, names = run or starts, other + taken * (not starts), names[len(taken) :]
        for word in taken:
            arguments.remove(word)
    found = _SCRIPT.match(names[0]) if names else None
    if not found or (names[0] == "ci" and not run):
        return None
    arguments.remove(names[0])
    name = "test" if names[0] in ("t", "tst") and not run else names[0]
    family = _SCRIPT_FAMILY.get(found["name"], "all")
    return Check(family, f"script {name}", other=tuple(other)), [word for word in arguments if word != "--"], SCRIPTS
