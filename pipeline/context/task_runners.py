"""Programs that run tasks by name: whether a task reformats or fixes files.

Gives: whether a program `runs_formatter`, by the names of its tasks.

Note: what a task does is in a manifest that is not read; its name is all that a command line shows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise, takewhile

__all__ = ["runs_formatter"]

_ONE_TASK = frozenset((
    "npm", "pnpm", "yarn", "bun", "composer", "pdm", "ruff", "cargo", "biome", "dprint", "terraform", "deno", "go", "dart", "hatch", "dotnet",
    "php-cs-fixer",
))  # fmt: skip
"""Programs that run one task, or have verbs that reformat files."""
_MANY_TASKS = frozenset((
    "make", "just", "task", "poe", "gradle", "gradlew", "mvn", "mvnw", "rake", "invoke", "nx", "turbo", "mix",
))  # fmt: skip
"""Programs that run several tasks."""
_SCRIPT_RUNNERS = frozenset(("npm", "pnpm", "yarn", "bun", "composer", "pdm"))
_RUNS = ("run", "run-script")
"""Words before a script, at any place."""
_RUN_WORDS = frozenset((*_RUNS, "workspace", "exec", "task", "run-many", "affected", "xtask"))
"""Words before a task."""
_RUNNER_VALUED = frozenset((
    "--filter", "-F", "-C", "--cwd", "--dir", "--workspace", "--prefix", "--config", "--tests", "-f", "-p", "--project",
))  # fmt: skip
"""Options of these programs with a value in the next word; `-w` has one for `npm` alone."""
_IN_NAMES = re.compile(r"[:_-]|(?<=[a-z])(?=[A-Z])")
"""What separates the words in the name of a task: `lint:fix`, `spotlessApply`."""
_FORMAT_WORDS = frozenset(("format", "fmt", "prettier", "spotlessapply"))
_LOOKS = ("check", "verif", "diff", "dry")
"""Beginnings of words in names of tasks that only report."""


def runs_formatter(program: str, rest: Sequence[str]) -> bool:
    """Whether a program runs a task that reformats or fixes files. `rest`: its arguments."""
    return any(map(_reformats, _tasks_of(program, rest)))


def _reformats(task: str) -> bool:
    """Whether a task reformats or fixes files, by its name, and does not only check them (`format:check`)."""
    words = [word.lower() for word in _IN_NAMES.split(task)]
    if "fix" in words:
        return not any(word.startswith(_LOOKS) for word in words[words.index("fix") :])
    formats = not _FORMAT_WORDS.isdisjoint(words) or {"spotless", "apply"} <= {*words}
    return formats and words[0] != "test" and not any(word.startswith(_LOOKS) for word in words)


def _tasks_of(program: str, rest: Sequence[str]) -> list[str]:
    """The tasks that a program runs by their names: of a manifest, a build file, or its own."""
    own = rest[: rest.index("--")] if "--" in rest else rest
    if program in ("tox", "nox"):
        starts = [place + 1 for place, word in enumerate(own) if re.fullmatch(r"-[a-z]*[es]", word)]
        return [word for start in starts for word in takewhile(lambda each: each[:1] != "-", own[start:])]
    if program not in _ONE_TASK | _MANY_TASKS:
        return []
    valued = _RUNNER_VALUED | ({"-w"} if program == "npm" else set())
    words = [word for before, word in pairwise(["", *own]) if word[:1] not in ("-", "+") and before not in valued]
    if program in _SCRIPT_RUNNERS and (runs := [place for place, word in enumerate(words) if word in _RUNS]):
        words = words[runs[0] :]  # `yarn workspaces foreach run format`
    while words and words[0] in _RUN_WORDS:
        words = words[2:] if words[0] == "workspace" else words[1:]
    if program not in _MANY_TASKS:
        return words[:1]
    return [word for word in words if not re.search("=|::|^[^:]*/[^:]*$", word)]  # neither settings nor paths
