"""Files that a command may have changed: those that it names, or any file.

Gives: `changed_files`, `may_change`, `changes_of` one program of a command, the files that it is `printed_into`, whether one `is_log`, and `ANY_FILE`.

Note: this is a list of programs that are known to write. A command line does not show the files that a script, a
generator or a program of the project writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import PurePosixPath
from typing import NamedTuple

from ..sources.file_kinds import named_by_convention
from .checks import IN_HOME
from .line_folders import MOVES, Folders, folders_of, within
from .program_results import ProgramResults
from .shell import SimpleCommand, behind_options, first_word, simple_commands, started

__all__ = ["ANY_FILE", "Changes", "changed_files", "changes_of", "is_log", "may_change", "printed_into"]

ANY_FILE = "*"
"""Denotes files that a command may change without naming them."""
_GIT = frozenset(("checkout", "switch", "restore", "stash", "pull", "reset", "merge", "rebase", "revert", "cherry-pick", "apply", "am", "clean", "mv", "rm",
                  "bisect", "submodule"))  # fmt: skip
_PRODUCED = frozenset(("dist", "build", "target", "node_modules", ".venv", "venv", "coverage", "out", "tmp", "htmlcov", "__pycache__", ".cache",
                       ".pytest_cache", ".mypy_cache", ".ruff_cache", ".next", ".tox"))  # fmt: skip
"""Folders that tools create: their files are not sources."""
_FORMATTERS = frozenset(("black", "isort", "prettier", "gofmt", "rustfmt", "autopep8", "yapf", "clang-format", "shfmt", "autoflake", "pyupgrade",
                         "dos2unix", "goimports", "2to3", "codemod"))  # fmt: skip
_LENGTH = ("black", "isort")
"""Formatters whose `-l` is the length of a line; other ones list files."""
_LOGS = ("", ".log", ".txt", ".out", ".xml", ".json")
"""Suffixes of logs and reports."""
_WRITES = frozenset((">", ">>", ">|", "&>", "&>>", ">&", "<>"))
_ARGUMENTS = frozenset(("rm", "tee", "truncate", "unlink", "rmdir", "shred", "sponge", "ed", "ex"))
"""Programs that change the files in their arguments."""
_COPIES = frozenset(("mv", "cp", "ln", "install", "rsync", "scp"))
"""Programs that write to their last argument."""
_DOWNLOADS = {"curl": "o", "wget": "O"}
_OUTPUTS = {**_DOWNLOADS, **dict.fromkeys(("sort", "pandoc", "gcc", "g++", "cc", "clang", "rustc", "iconv"), "o")}
"""The letter of the option that names the output file of each program."""
_OUTPUT = frozenset((
    "--output", "--output-document", "--output-file", "--outfile", "--out-file", "--outFile", "--target-directory",
))  # fmt: skip
"""Options that name the output file of any program."""
_PATCHED = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (?P<path>.+?)\s*$", re.MULTILINE)
_ALTERNATIVES = re.compile(r"\{(?=[^{},]*+,|[^{}]*?\.\.)[^{}]*+\}")
_LOG_NAMED = re.compile(r"\$\{?(?:\w*_)?(?i:log|tmp|temp)(?i:file|dir|s)?(?![A-Za-z])")
"""Variables that name logs."""
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
    command: str | None, folder: str = "", *, failed: bool = False, broken_off: bool = False, said: str = ""
) -> Changes:
    """The files that a command changed, relative to where it ran. `failed`: its line failed; `broken_off`: something
    ended it early; `said`: its output.
    """
    found: dict[str, bool] = {}
    steps = simple_commands(command or "")[: 1 if _OWN_FORM.match(command or "") else None]
    by_patch = [each["path"] for each in _PATCHED.finditer(command or "")]
    changed = [[*_changed_by(each)] for each in steps]
    if not (by_patch or any(changed) or any(map(printed_into, steps))):
        return Changes()
    edits = [bool(each) and ANY_FILE not in each for each in changed]
    results = ProgramResults(steps, said, failed=failed, broken_off=broken_off, edits=edits)
    moves = {words[0] for each in steps if (words := started(each.words)) and words[0] in MOVES}
    complained = any(map(results.complains, moves))
    for number, folders in enumerate(folders_of(steps, folder, complained=complained, began=results.began)):
        words, printed = started(steps[number].words), printed_into(steps[number])
        program = words[0] if words else ""
        named = (by_patch if program == "apply_patch" else []) or changed[number]
        if not (named or printed):
            continue
        done = results.succeeded(number)
        if done is False and _whole_or_nothing(words):
            named = []
        opened = results.began(number)
        sure = {path: done is True and _is_a_file(path, named, program) for path in named}
        of_git, exact = _folders_of_git(words, folders), steps[number].exact
        for path, known, in_folders in [
            *((path, sure[path], of_git) for path in named),
            *((path, opened and not results.refuses(path), folders) for path in printed),
        ]:
            unknown = not exact and _expands(path)
            places = _places(path, in_folders, unknown=unknown)
            for at in places:
                certain = known and places == [at] and None not in in_folders and not unknown
                found[at] = found.get(at, False) or certain or at == ANY_FILE
    return Changes(tuple(at for at in found if found[at]), tuple(at for at in found if not found[at]))


def _folders_of_git(words: Sequence[str], folders: Folders) -> Folders:
    """The folders of `git -C FOLDER`."""
    if not words or PurePosixPath(words[0]).name != "git":
        return folders
    options = words[1 : len(words) - len(behind_options(list(words[1:]), _GIT_OPTIONS))]
    for option, folder in pairwise(options):
        if option == "-C":
            folders = tuple(None if _expands(folder) else within(each, folder) for each in folders)
    return folders


def _places(path: str, folders: Folders, *, unknown: bool) -> list[str]:
    """A path in each of the folders in which its program may run. In an unknown one, and if the path itself is unknown, a
    log is named as it is, and any other file may be `ANY_FILE`.
    """
    names = (ANY_FILE if path == ANY_FILE else None if unknown else within(folder, path) for folder in folders)
    return [*dict.fromkeys(name or (path if is_log(path) else ANY_FILE) for name in names)]


def _expands(word: str) -> bool:
    """Whether a shell may replace a word by others: it holds a variable, a pattern or alternatives."""
    varies = bool(set(word) & set("*?[$`")) and not IN_HOME.fullmatch(word)
    return varies or _ALTERNATIVES.search(word) is not None


def _whole_or_nothing(words: Sequence[str]) -> bool:
    """Whether a program that failed changed nothing."""
    by_git = words[:1] == ("git",) and first_word(words[1:], _GIT_OPTIONS) == "apply"
    return words[:1] == ("apply_patch",) or (by_git and not {"--reject", "--3way", "-3"} & set(words))


def _is_a_file(path: str, named: Sequence[str], program: str) -> bool:
    """Whether an argument is certainly a local file: not the target of a copy that may be a folder."""
    at, others = PurePosixPath(path), [*map(PurePosixPath, named)]
    folder = any(each.parent == at for each in others) or (at.parent in others and not at.suffix)
    made = not at.suffix and bool(set(at.parts) & _PRODUCED)
    return not (folder or made or program == "rmdir" or re.match(r"[\w.@-]{2,}:", path))


def changes_of(simple: SimpleCommand) -> tuple[str, ...]:
    """The files that one program of a command may have changed, with paths as the command names them."""
    return (*_changed_by(simple), *printed_into(simple))


def printed_into(simple: SimpleCommand) -> list[str]:
    """The files into which a program prints."""
    return [path for sign, path in simple.redirects if sign in _WRITES and not _stream(path)]


def is_log(path: str) -> bool:
    """Whether a file with printed output is a log, by its name."""
    name = PurePosixPath(path)
    by_suffix = name.suffix in ((".log", ".out") if "$" in name.name else _LOGS)
    return by_suffix or path.startswith(("/dev/", "/tmp/", "-")) or _LOG_NAMED.search(path) is not None


def _stream(word: str) -> bool:
    """Whether output goes to a stream, not to a file."""
    return word.startswith(("/dev/", "&")) or word.isdigit() or word == "-"


def _changed_by(simple: SimpleCommand) -> Iterator[str]:
    """The files that one program may have changed."""
    words, exact = started(simple.words), simple.exact
    if not words:
        return
    program, rest = PurePosixPath(words[0]).name, list(words[1:])
    valued = _VALUED.get(program)
    scripts = {place + 1 for place, word in enumerate(rest) if valued and re.fullmatch(valued, word)}
    named = [word for place, word in enumerate(rest) if word and not word.startswith("-") and place not in scripts]
    options = {word.split("=")[0] for word in rest if word.startswith("-")}
    verb = first_word(rest, _GIT_OPTIONS)
    yield from _outputs(program, rest, named)
    if program == "git":
        yield from _changed_by_git(str(verb), rest, options)
    elif program in ("sed", "gsed", "perl", "ruby") and any(
        re.match(r"-(?![-IM])[a-zA-Z0-9]*i|--in-place", o) for o in options
    ):
        yield from _or_any(named[0 if scripts else 1 :], exact=exact)
    elif program in ("awk", "gawk") and "inplace" in rest:
        files = [word for word in named if word != "inplace"]
        yield from _or_any(files[0 if scripts else 1 :], exact=exact)
    elif program == "dd":
        yield from (word.removeprefix("of=") for word in rest if word.startswith("of=") and not _stream(word[3:]))
    elif program in _ARGUMENTS or program in _COPIES:
        many = options & (_SPREAD if program in _COPIES else _RECURSIVE - {"-a"})
        unnamed = program in _ARGUMENTS or len(named) < 2
        whole = bool(many) and not all(set(PurePosixPath(word).parts) & _PRODUCED for word in named)
        valued = {place + 1 for place, word in enumerate(rest) if word in ("-m", "-o", "-g", "-e", "-P", "-i", "-S")}
        if whole or _named_by_shell(named, exact=exact) or (unnamed and simple.ahead in ("$(", "`")):
            yield ANY_FILE
        elif program in _COPIES and not many:
            words = [word for place, word in enumerate(rest) if word[:1] != "-" and place not in valued]
            yield from _copied(words, moved=program == "mv")
        else:
            yield from named
    elif _formats(program, verb, options) or _rewrites(program, rest, options):
        yield ANY_FILE


def _or_any(files: Sequence[str], *, exact: bool) -> Sequence[str]:
    """The files, or `ANY_FILE` if there are none or a pattern or variable names them."""
    return files if files and not _named_by_shell(files, exact=exact) else (ANY_FILE,)


def _named_by_shell(words: Sequence[str], *, exact: bool) -> bool:
    """Whether a shell replaces a word by others. `exact`: it passes them on as they are."""
    return not exact and any(map(_expands, words))


def _copied(named: Sequence[str], *, moved: bool) -> Iterator[str]:
    """The files that a copy changes: its target, which may be a folder, and files that it moves away."""
    sources, target = named[:-1], PurePosixPath(*named[-1:])
    if moved:
        yield from sources
    if len(sources) < 2 and not (named and named[-1].endswith("/")):
        yield from named[-1:]
    if len(sources) > 1 or not (target.suffix or target.name.startswith(".")):
        yield from ((target / PurePosixPath(source).name).as_posix() for source in sources)


def _outputs(program: str, rest: Sequence[str], named: Sequence[str]) -> Iterator[str]:
    """The output files named by options; for a download without one, the file named by its address."""
    letter = _OUTPUTS.get(program)
    given = [*pairwise([*rest, ""]), *(word.split("=", 1) for word in rest if re.match(r"--[\w-]+=", word))]
    found = [
        after
        for word, after in given
        if (letter and re.fullmatch(f"-[a-zA-Z]*{letter}", word))
        or (word in _OUTPUT and (letter or word != "--output" or _looks_like_a_file(after)))
    ]
    attached = re.compile(rf"-[a-zA-Z]*?{letter}(?P<file>[^a-zA-Z].*|\w*[./].*)") if letter else None
    found += [each["file"] for word in rest if attached and (each := attached.fullmatch(word))]
    kept = program == "wget" or any(re.fullmatch("-[a-zA-Z]*O[a-zA-Z]*|--remote-name", word) for word in rest)
    if program in _DOWNLOADS and kept and not found:
        found = [PurePosixPath(word.split("?")[0]).name for word in named if "/" in word]
    yield from (path for path in found if path and not _stream(path))


def _looks_like_a_file(word: str) -> bool:
    """Whether a value of `--output` names a file, not a format: `table`, `jsonpath={.items}`."""
    return bool(set(word) & set("./")) and not set(word) & set("={}") and word not in (".", "..")


def _formats(program: str, verb: str | None, options: set[str]) -> bool:
    """Whether a program reformats files or fixes its findings."""
    if program in _FORMATTERS:
        lists = {"-d", "-c", "--list-different", *(() if program in _LENGTH else ("-l",))}
        return not options & (_LOOKS_ALONE | lists) or "-w" in options
    return not options & _LOOKS_ALONE and (bool(options & _FIXES) or (program in _FORMATTING and verb in _FORMAT_VERBS))


def _rewrites(program: str, rest: Sequence[str], options: set[str]) -> bool:
    """Whether a program writes files named only in its input."""
    if program in ("tar", "unzip", "7z", "gunzip"):
        return not options & {"-t", "-tf", "-tzf", "--list", "-l"}
    dry = program == "patch" and bool(options & {"--dry-run", "-C", "--check"})
    return (program in ("patch", "apply_patch") and not dry) or (
        program in ("xargs", "find") and bool(_WRITERS & set(rest))
    )


_WRITERS = frozenset(("sed", "rm", "mv", "perl", "-delete", "-exec"))
_FORMATTING = frozenset(
    (
        "ruff",
        "cargo",
        "biome",
        "dprint",
        "terraform",
        "mix",
        "deno",
        "go",
        "dart",
        "npm",
        "pnpm",
        "yarn",
        "bun",
        "make",
        "just",
    )
)
_FORMAT_VERBS = ("format", "fmt", "fix")
_RECURSIVE = frozenset(("-r", "-R", "-rf", "-fr", "-Rf", "-a", "-av", "--recursive"))
_SPREAD = _RECURSIVE | {"-t", "--target-directory"}
"""Options by which a copy writes more files than its last argument."""
_SCRIPT = r"-(?!-)\w*[ef]|--expression|--file"
_VALUED = {**dict.fromkeys(("sed", "gsed", "perl", "ruby", "awk", "gawk"), _SCRIPT), "truncate": "-[sr]", "shred": "-[ns]"}  # fmt: skip
"""Options with a value in the next word: scripts, sizes."""
_LOOKS_ALONE = frozenset(("--check", "--check-only", "--diff", "--dry-run"))
"""Options with which a program only reports what it would change."""
_GIT_OPTIONS = ("-C", "-c", "--git-dir", "--work-tree")
_FIXES = frozenset(("--fix", "--write", "--autofix", "--apply", "--autocorrect", "--auto-correct"))


def _files_of_git(verb: str, rest: Sequence[str]) -> list[str]:
    """The files named by a verb whose arguments are files; none if one may be a folder or a pattern."""
    if verb not in ("rm", "mv", "restore"):
        return []
    words = rest[rest.index(verb) + 1 :]
    valued = {place + 1 for place, word in enumerate(words) if word in ("-s", "--source")}
    named = [word for place, word in enumerate(words) if not word.startswith("-") and place not in valued]
    return _plain(named)


def _plain(named: list[str]) -> list[str]:
    """The words if all of them name files; none if one may be a folder or a pattern, which Git expands itself."""
    return named if all(_ends_as_a_file(word) and not _expands(word) and ":" not in word for word in named) else []


def _ends_as_a_file(word: str) -> bool:
    path = PurePosixPath(word)
    return bool(path.suffix) or named_by_convention(path.name)


def _changed_by_git(verb: str, rest: Sequence[str], options: set[str]) -> Iterator[str]:
    """The files that `git` may have changed: commits, read-only commands and new branches change none."""
    behind = [*rest[rest.index("--") + 1 :]] if "--" in rest else None
    files = _files_of_git(verb, rest) if behind is None else _plain(behind)
    nothing = {
        "stash": bool({"list", "show", "drop"} & set(rest)),
        "checkout": bool(options & {"-b", "-B"}) and len(rest) <= 3,
        "switch": bool(options & {"-c", "-C", "--create"}) and len(rest) <= 3,
        "restore": bool(options & {"--staged", "-S"}) and not options & {"--worktree", "-W"},
        "reset": not options & {"--hard", "--merge", "--keep"},
        "apply": bool(options & {"--check", "--stat", "--numstat", "--summary"}) and "--apply" not in options,
        "clean": bool(options & {"-n", "--dry-run"}),
        "rm": "--cached" in options,
    }
    if verb in _GIT and not nothing.get(verb, False):
        yield from files or (ANY_FILE,)
