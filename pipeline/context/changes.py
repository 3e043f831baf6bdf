"""Files that a command may have changed: those that it names, or any.

Gives: `may_change`, `changes_of` one program of a command, the files that it is `printed_into`, whether one `is_log`, and `ANY_FILE`.

Note: this is a list of programs that are known to write. What a script, a generator or a program of the
project's own writes, no command line says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import PurePosixPath

from ..sources.file_kinds import named_by_convention
from .shell import SimpleCommand, first_word, simple_commands, started

__all__ = ["ANY_FILE", "changes_of", "is_log", "may_change", "printed_into"]

ANY_FILE = "*"
"""A command that may change files that it does not name."""
_GIT = frozenset(("checkout", "switch", "restore", "stash", "pull", "reset", "merge", "rebase", "revert", "cherry-pick", "apply", "am", "clean", "mv", "rm",
                  "bisect", "submodule"))  # fmt: skip
_PRODUCED = frozenset(("dist", "build", "target", "node_modules", ".venv", "venv", "coverage", "out", "tmp", "htmlcov", "__pycache__", ".cache",
                       ".pytest_cache", ".mypy_cache", ".ruff_cache", ".next", ".tox"))  # fmt: skip
"""Folders that tools write: their files are not sources."""
_FORMATTERS = frozenset(("black", "isort", "prettier", "gofmt", "rustfmt", "autopep8", "yapf", "clang-format", "shfmt", "autoflake", "pyupgrade",
                         "dos2unix", "goimports", "2to3", "codemod"))  # fmt: skip
_LOGS = ("", ".log", ".txt", ".out", ".xml", ".json")
"""Endings of files of logs and reports."""
_WRITES = frozenset((">", ">>", ">|", "&>", "&>>", ">&", "<>"))
_ARGUMENTS = frozenset(("rm", "tee", "truncate", "unlink", "rmdir", "shred", "sponge", "ed", "ex"))
"""Programs that change the files that they name."""
_COPIES = frozenset(("mv", "cp", "ln", "install", "rsync", "scp"))
"""Programs that write what they name last."""
_DOWNLOADS = {"curl": "o", "wget": "O"}
_OUTPUTS = {**_DOWNLOADS, **dict.fromkeys(("sort", "pandoc", "gcc", "g++", "cc", "clang", "rustc", "iconv"), "o")}
"""Programs with the letter of the option that names the file that they write."""
_OUTPUT = frozenset((
    "--output", "--output-document", "--output-file", "--outfile", "--out-file", "--outFile", "--target-directory",
))  # fmt: skip
"""Options that name a file that is written, whatever the program."""
_PATCHED = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (?P<path>.+?)\s*$", re.MULTILINE)


def may_change(command: str | None, folder: str = "") -> tuple[str, ...]:
    """The files that a command may have changed: those that it names, from where it ran, or `ANY_FILE`."""
    found: dict[str, None] = {}
    place = PurePosixPath(folder)
    for simple in simple_commands(command or ""):
        words = started(simple.words)
        if words[:1] in (("cd",), ("pushd",)):
            place /= words[1] if len(words) > 1 else "~"
        by_patch = [each["path"] for each in _PATCHED.finditer(command or "")] if words[:1] == ("apply_patch",) else []
        for path in by_patch or changes_of(simple):
            found[path if path == ANY_FILE else (place / path).as_posix()] = None
    return (ANY_FILE,) if ANY_FILE in found else tuple(found)


def changes_of(simple: SimpleCommand) -> tuple[str, ...]:
    """The same of one program of a command, with paths as the command names them."""
    return (*_changed_by(started(simple.words)), *printed_into(simple))


def printed_into(simple: SimpleCommand) -> list[str]:
    """The files into which a program prints."""
    return [path for sign, path in simple.redirects if sign in _WRITES and not _stream(path)]


def is_log(path: str) -> bool:
    """Whether what is printed into a file is kept as a log, by its name."""
    return path.startswith(("/dev/", "/tmp/", "-")) or PurePosixPath(path).suffix in _LOGS


def _stream(word: str) -> bool:
    """Whether output goes to a stream, which is no file."""
    return word.startswith(("/dev/", "&")) or word.isdigit() or word == "-"


def _changed_by(words: Sequence[str]) -> Iterator[str]:
    """The files that one program may have changed."""
    if not words:
        return
    program, rest = PurePosixPath(words[0]).name, list(words[1:])
    scripts = {place + 1 for place, word in enumerate(rest) if word in ("-e", "-f", "--expression")}
    named = [word for place, word in enumerate(rest) if not word.startswith("-") and place not in scripts]
    options = {word.split("=")[0] for word in rest if word.startswith("-")}
    verb = first_word(rest, ("-C", "-c", "--git-dir", "--work-tree"))
    yield from _outputs(program, rest, named)
    if program == "git":
        yield from _changed_by_git(str(verb), rest, options)
    elif program in ("sed", "gsed", "perl", "ruby") and any(
        re.match(r"-(?!-)[a-zA-Z]*i|--in-place", o) for o in options
    ):
        yield from named[0 if scripts or any(o[1:2] != "-" and o.endswith("e") for o in options) else 1 :] or (
            ANY_FILE,
        )
    elif program in ("awk", "gawk") and "inplace" in rest:
        files = [word for word in named if word != "inplace"]
        yield from files[0 if scripts else 1 :] or (ANY_FILE,)
    elif program == "dd":
        yield from (word.removeprefix("of=") for word in rest if word.startswith("of=") and not _stream(word[3:]))
    elif program in _ARGUMENTS or program in _COPIES:
        many = options & (_SPREAD if program in _COPIES else _RECURSIVE - {"-a"})
        whole = bool(many) and not all(set(PurePosixPath(word).parts) & _PRODUCED for word in named)
        valued = {place + 1 for place, word in enumerate(rest) if word in ("-m", "-o", "-g", "-e", "-P", "-i", "-S")}
        if whole or any(set(word) & set("*?[$") for word in named):
            yield ANY_FILE
        elif program in _COPIES and not many:
            words = [word for place, word in enumerate(rest) if word[:1] != "-" and place not in valued]
            yield from _copied(words, moved=program == "mv")
        else:
            yield from named
    elif _formats(program, verb, options) or _rewrites(program, rest, options):
        yield ANY_FILE


def _copied(named: Sequence[str], *, moved: bool) -> Iterator[str]:
    """The files that a copy changes: its target, which may be a folder, and those that it moves away."""
    sources, target = named[:-1], PurePosixPath(*named[-1:])
    if moved:
        yield from sources
    if len(sources) < 2 and not (named and named[-1].endswith("/")):
        yield from named[-1:]
    if len(sources) > 1 or not target.suffix:
        yield from ((target / PurePosixPath(source).name).as_posix() for source in sources)


def _outputs(program: str, rest: Sequence[str], named: Sequence[str]) -> Iterator[str]:
    """The files that options name for what a program writes; of a download without one, the file that its address names."""
    letter = _OUTPUTS.get(program)
    found = [
        after
        for word, after in pairwise([*rest, ""])
        if word in _OUTPUT or (letter and re.fullmatch(f"-[a-zA-Z]*{letter}", word))
    ]
    found += [word.split("=", 1)[1] for word in rest if word.split("=", 1)[0] in _OUTPUT and "=" in word]
    attached = re.compile(rf"-[a-zA-Z]*?{letter}(?P<file>[^a-zA-Z].*|\w*[./].*)") if letter else None
    found += [each["file"] for word in rest if attached and (each := attached.fullmatch(word))]
    kept = program == "wget" or any(re.fullmatch("-[a-zA-Z]*O[a-zA-Z]*|--remote-name", word) for word in rest)
    if program in _DOWNLOADS and kept and not found:
        found = [PurePosixPath(word.split("?")[0]).name for word in named if "/" in word]
    yield from (path for path in found if path and not _stream(path))


def _formats(program: str, verb: str | None, options: set[str]) -> bool:
    """Whether a program writes files in another form, or mends what it finds."""
    if program in _FORMATTERS:
        return not options & {"--check", "--diff", "-d", "-l", "--list-different", "-c"}
    return bool(options & _FIXES) or (
        program in _FORMATTING and verb in _FORMAT_VERBS and not options & {"--check", "--diff"}
    )


def _rewrites(program: str, rest: Sequence[str], options: set[str]) -> bool:
    """Whether a program writes files that only its input names."""
    if program in ("tar", "unzip", "7z", "gunzip"):
        return not options & {"-t", "-tf", "-tzf", "--list", "-l"}
    return program in ("patch", "apply_patch") or (program in ("xargs", "find") and bool(_WRITERS & set(rest)))


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
"""Options by which a copy writes more files than it names last."""
_FIXES = frozenset(("--fix", "--write", "--autofix", "--apply", "--autocorrect", "--auto-correct"))


def _files_of_git(verb: str, rest: Sequence[str]) -> list[str]:
    """The files that a verb names whose arguments are files; none where one may be a folder or a pattern."""
    if verb not in ("rm", "mv", "restore"):
        return []
    words = rest[rest.index(verb) + 1 :]
    valued = {place + 1 for place, word in enumerate(words) if word in ("-s", "--source")}
    named = [word for place, word in enumerate(words) if not word.startswith("-") and place not in valued]
    plain = all(_ends_as_a_file(word) and not set(word) & set("*?[$:") for word in named)
    return named if plain else []


def _ends_as_a_file(word: str) -> bool:
    path = PurePosixPath(word)
    return bool(path.suffix) or named_by_convention(path.name)


def _changed_by_git(verb: str, rest: Sequence[str], options: set[str]) -> Iterator[str]:
    """The files that `git` may have changed: commits, looks and branches as such change none."""
    files = rest[rest.index("--") + 1 :] if "--" in rest else _files_of_git(verb, rest)
    nothing = {
        "stash": bool({"list", "show", "drop"} & set(rest)),
        "checkout": bool(options & {"-b", "-B"}) and len(rest) <= 3,
        "switch": bool(options & {"-c", "-C", "--create"}) and len(rest) <= 3,
        "restore": bool(options & {"--staged", "-S"}) and not options & {"--worktree", "-W"},
        "reset": not options & {"--hard", "--merge", "--keep"},
        "apply": bool(options & {"--check", "--stat"}),
        "clean": bool(options & {"-n", "--dry-run"}),
        "rm": "--cached" in options,
    }
    if verb in _GIT and not nothing.get(verb, False):
        yield from files or (ANY_FILE,)
