"""The folders in which the programs of a command line run.

Gives: `folders_of` each program, and the programs that `move` the shell.

Note: a subshell leaves the folder of its own shell as it was: after `(cd web && npm test)` the line is where it began.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from .shell import SimpleCommand, started

__all__ = ["MOVES", "Folders", "folders_of"]

MOVES = ("cd", "pushd", "popd")
Folders = tuple[PurePosixPath | None, ...]
"""The folders in which a program may run, the likeliest first; None for an unknown one."""
_IN_A_ROW = ("&&", "|", "|&")


def folders_of(steps: Sequence[SimpleCommand], folder: str, *, complained: bool) -> Iterator[Folders]:
    """The folders of each program of a line that began in `folder`. `complained`: one of its `cd` may have failed."""
    now: dict[tuple[int, ...], Folders] = {(): (PurePosixPath(folder),)}
    begun, missed, left = now[()], dict[tuple[int, ...], Folders](), dict[tuple[int, ...], list[Folders]]()
    group: tuple[int, ...] = ()
    for step in steps:
        for inner in [each for each in now if each and step.group[: len(each)] != each]:
            del now[inner]  # that subshell has ended
        group = step.group
        here = next(now[group[:size]] for size in range(len(group), -1, -1) if group[:size] in now)
        if step.behind == "&" and not group:
            here = begun  # a list in the background runs in a subshell
        if step.behind not in _IN_A_ROW:
            here = (*dict.fromkeys((*here, *missed.pop(group, ()))),)
            begun = begun if group else here
        now[group] = here
        yield here
        words = started(step.words)
        if words[:1] and words[0] in MOVES:
            substituted = step.ahead in ("$(", "`") and len(words) == 1
            there = (None,) if substituted else _behind(words, here, left.setdefault(group, []))
            if complained or step.redirects:  # its errors may be hidden
                missed[group] = (*missed.get(group, ()), *here)
            now[group] = there


def _behind(words: Sequence[str], here: Folders, left: list[Folders]) -> Folders:
    """The folders after a program that moves the shell, and in `left` those that it left, the last one last."""
    target = next((word for word in words[1:] if word == "-" or not word.startswith("-")), "")
    if words[0] == "popd" or target == "-":
        there = left.pop() if left else (None,)
        left += [here] if target == "-" else []
        return there
    left.append(here)
    if (words[0] == "pushd" and not target) or target[:1] == "+" or set(target) & set("$`*?"):
        return (None,)
    return tuple(
        None if each is None and not target.startswith(("/", "~")) else (each or PurePosixPath()) / (target or "~")
        for each in here
    )
