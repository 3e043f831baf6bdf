"""Files that the programs of a command line changed, with the folders in which they ran.

Gives: `changed_files`, which tells certain files from doubtful ones, and `may_change`.

Note: which files a program changes is decided in `program_changes`, and whether it ran in `program_results`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import PurePosixPath
from typing import NamedTuple

from .checks import place_of
from .line_folders import Folders, folders_of, within
from .program_changes import ANY_FILE, GIT_OPTIONS, changed_by, expands, files_among, is_log, may_keep, printed_into
from .program_results import ProgramResults
from .shell import LONGEST, behind_options, first_word, simple_commands, started

__all__ = ["Changes", "changed_files", "may_change"]

_PATCHED = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (?P<path>.+?)\s*$", re.MULTILINE)
_OWN_FORM = re.compile(r"\Aapply_patch\n\*\*\* ")
"""The form of a failed patch in imported logs: its files are not programs."""


class Changes(NamedTuple):
    """The files that a command changed."""

    sure: tuple[str, ...] = ()
    """Those that it names, and `ANY_FILE` if it may have changed others."""
    doubtful: tuple[str, ...] = ()
    """Those that it names but may have left unchanged."""


def may_change(command: str | None, folder: str = "") -> tuple[str, ...]:
    """The files that a command may have changed: those that it names, relative to where it ran, or `ANY_FILE`."""
    return tuple(dict.fromkeys(each for some in changed_files(command, folder) for each in some))


def changed_files(
    command: str | None,
    folder: str = "",
    root: str = "",
    *,
    failed: bool = False,
    broken_off: bool = False,
    output: str = "",
) -> Changes:
    """The files that a command changed, relative to `root`, the absolute folder to which the `folder` where it ran is
    relative. `failed`: its line failed; `broken_off`: something ended it early; `output`: what it printed.
    """
    found: dict[str, bool] = {}
    steps = simple_commands(command or "")[: 1 if _OWN_FORM.match(command or "") else None]
    by_patch = [each["path"] for each in _PATCHED.finditer(command or "")]
    changed = [[*changed_by(each)] for each in steps]
    if len(command or "") > LONGEST:
        found[ANY_FILE] = True  # its end was not read
    if not (by_patch or any(changed) or any(map(printed_into, steps))):
        return Changes(tuple(found))
    edits = [bool(each) and ANY_FILE not in each for each in changed]
    results = ProgramResults(steps, output, failed=failed, broken_off=broken_off, edits=edits)
    for number, folders in enumerate(folders_of(steps, folder, complained=results.moved_in_vain, began=results.began)):
        words, printed = started(steps[number].words), printed_into(steps[number])
        program = words[0] if words else ""
        named = (by_patch if program == "apply_patch" else []) or changed[number]
        if not (named or printed):
            continue
        done = results.succeeded(number)
        if done is False and _whole_or_nothing(words):
            named = []
        opened, by_program = results.began(number), done is True and not may_keep(words)
        files = files_among(named, program)
        of_git, exact = _folders_of_git(words, folders), steps[number].exact
        for path, known, in_folders in [
            *((path, by_program and path in files, of_git) for path in named),
            *((path, opened and not results.refuses(path), folders) for path in printed),
        ]:
            unknown = not exact and expands(path)
            places = _places(path, in_folders, unknown=unknown)
            for at in places:
                certain = known and places == [at] and None not in in_folders and not unknown
                at = at if at == ANY_FILE or not root else place_of("", root, at) or "."
                found[at] = found.get(at, False) or certain or at == ANY_FILE
    return Changes(tuple(at for at in found if found[at]), tuple(at for at in found if not found[at]))


def _folders_of_git(words: Sequence[str], folders: Folders) -> Folders:
    """The folders of `git -C FOLDER`."""
    if not words or PurePosixPath(words[0]).name != "git":
        return folders
    options = words[1 : len(words) - len(behind_options(list(words[1:]), GIT_OPTIONS))]
    for option, folder in pairwise(options):
        if option == "-C":
            folders = tuple(None if expands(folder) else within(each, folder) for each in folders)
    return folders


def _places(path: str, folders: Folders, *, unknown: bool) -> list[str]:
    """A path in each of the folders in which its program may run. In an unknown one, and if the path itself is unknown, a
    log is named as it is, and any other file may be `ANY_FILE`.
    """
    names = (ANY_FILE if path == ANY_FILE else None if unknown else within(folder, path) for folder in folders)
    return [*dict.fromkeys(name or (path if is_log(path) else ANY_FILE) for name in names)]


def _whole_or_nothing(words: Sequence[str]) -> bool:
    """Whether a program that failed changed nothing."""
    by_git = words[:1] == ("git",) and first_word(words[1:], GIT_OPTIONS) == "apply"
    return words[:1] == ("apply_patch",) or (by_git and not {"--reject", "--3way", "-3"} & set(words))
