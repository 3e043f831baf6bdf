"""The files that one program of a command line may have changed: those that it names, or any file.

Gives: what is `changed_by` a program, the files that it is `printed_into`, both (`changes_of`), whether a file `is_log`, and
what of it is certain: `expands`, `files_among`, `may_keep`. `ANY_FILE` denotes files without a name.

Note: this is a list of programs that are known to write. A command line does not show the files that a script, a
generator or a program of the project writes.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import PurePosixPath

from ..sources.file_kinds import is_file_name, named_by_convention
from .checks import IN_HOME
from .shell import SimpleCommand, behind_options, first_word, simple_commands, started
from .task_runners import runs_formatter

__all__ = [
    "ANY_FILE", "GIT_OPTIONS", "changed_by", "changes_of", "expands", "files_among", "is_log", "may_keep", "printed_into",
]  # fmt: skip

ANY_FILE = "*"
"""Denotes files that a command may change without naming them."""
_GIT = frozenset(("checkout", "switch", "restore", "stash", "pull", "reset", "merge", "rebase", "revert", "cherry-pick", "apply", "am", "clean", "mv", "rm",
                  "bisect", "submodule"))  # fmt: skip
_PRODUCED = frozenset(("dist", "build", "target", "node_modules", ".venv", "venv", "coverage", "out", "tmp", "htmlcov", "__pycache__", ".cache",
                       ".pytest_cache", ".mypy_cache", ".ruff_cache", ".next", ".tox"))  # fmt: skip
"""Folders that tools create: their files are not sources."""
_FORMATTERS = frozenset(("swiftformat", "pint", "nixfmt", "black", "isort", "prettier", "gofmt", "rustfmt", "autopep8", "yapf", "clang-format", "shfmt", "autoflake", "pyupgrade",
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
_ALTERNATIVES = re.compile(r"\{(?=[^{},]*+,|[^{}]*?\.\.)[^{}]*+\}")
_LOG_NAMED = re.compile(r"\$\{?(?:\w*_)?(?i:log|tmp|temp)(?i:file|dir|s)?(?![A-Za-z])")
"""Variables that name logs."""
_SUBSTITUTED = re.compile(r"\$\((?P<command>[^()]+)\)")
_KEEPS = {
    **dict.fromkeys(("cp", "mv", "ln"), r"-[a-zA-Z]*[nui][a-zA-Z]*|--(?:no-clobber|update|interactive)(?:=.*)?"),
    "rsync": r"-[a-zA-Z]*[nu][a-zA-Z]*|--(?:dry-run|update|ignore-existing)", "wget": r"-[a-z]*(?:nc[a-z]*|N)|--(?:no-clobber|timestamping)",
}  # fmt: skip
"""Options with which each program keeps files that exist, asks, or only reports."""
_MANIFESTS = {
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), "package.json"), **dict.fromkeys(("uv", "poetry", "pdm"), "pyproject.toml"),
    "cargo": "Cargo.toml", "go": "go.mod", "composer": "composer.json", "bundle": "Gemfile",
}  # fmt: skip
"""The file in which each program notes what it installs."""
_NOTES = ("add", "install", "i", "remove", "rm", "uninstall", "update", "upgrade", "up", "require", "get")
"""Verbs of these programs that change it, with an argument."""
_STARTERS = frozenset(("xargs", "find", "parallel", "fd", "fdfind"))
"""Programs that start another one for each file."""
_EXEC = frozenset(("-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"))
_IN_PLACE = frozenset(("sed", "gsed", "perl", "ruby", "yq"))
"""Programs that change files with `-i`."""
_HOSTS = ("gh", "hub", "glab")
"""Clients of code hosts, which check out a proposed change."""
_COPY_SUFFIXES = (".example", ".sample", ".template", ".dist", ".default", ".bak", ".orig", ".old", ".in")
"""Suffixes of templates and backups, which are copied to the file without the suffix."""
_SHORT_FIXES = {
    "rubocop": frozenset(("-a", "-A")), "ktlint": frozenset(("-F",)), "codespell": frozenset(("-w",)), "jest": frozenset(("-u",)),
    "vitest": frozenset(("-u",)),
}  # fmt: skip
_RECURSIVE = re.compile(r"-[a-zA-Z]*[rR][a-zA-Z]*|--recursive")
_SPREAD = re.compile(r"-(?:[a-zA-Z]*[rRa][a-zA-Z]*|t)|--(?:recursive|archive|target-directory)")
"""Options by which a copy writes more files than its last argument."""
_SCRIPT = r"-(?!-)\w*[ef]|--expression|--file"
_VALUED = {**dict.fromkeys(("sed", "gsed", "perl", "ruby", "awk", "gawk"), _SCRIPT), "sd": "-[fn]", "truncate": "-[sr]|--size|--reference", "shred": "-[ns]"}  # fmt: skip
"""Options with a value in the next word: scripts, sizes."""
_LOOKS_ALONE = frozenset(
    ("--check", "--check-only", "--diff", "--dry-run", "-check", "--check-formatted", "--verify-no-changes")
)
"""Options with which a program only reports what it would change."""
GIT_OPTIONS = ("-C", "-c", "--git-dir", "--work-tree")
_FIXES = frozenset((
    "--fix", "--fix-only", "--write", "--autofix", "--apply-unsafe", "--unsafe-fixes", "--update-snapshot", "--apply", "--autocorrect", "--auto-correct",
))  # fmt: skip
"""Options with which a program fixes what it finds."""


def changed_by(simple: SimpleCommand) -> Iterator[str]:
    """The files that one program may have changed, but for those that it prints into."""
    yield from _changed_by(simple)
    yield from _changed_within(simple)


def expands(word: str) -> bool:
    """Whether a shell may replace a word by others: it holds a variable, a pattern or alternatives."""
    varies = bool(set(word) & set("*?[$`")) and not IN_HOME.fullmatch(word)
    return varies or _ALTERNATIVES.search(word) is not None


def files_among(named: Sequence[str], program: str) -> set[str]:
    """The arguments that are certainly local files: not the target of a copy that may be a folder."""
    if program == "rmdir":
        return set()
    paths = {path: PurePosixPath(path) for path in named}
    above, all_paths = {each.parent for each in paths.values()}, {*paths.values()}
    found = set[str]()
    for path, at in paths.items():
        folder = at in above or (at.parent in all_paths and not at.suffix)
        made = not at.suffix and bool(set(at.parts) & _PRODUCED)
        if not (folder or made or re.match(r"[\w.@-]{2,}:", path)):
            found.add(path)
    return found


def may_keep(words: Sequence[str]) -> bool:
    """Whether a program that succeeds may have left its files unchanged: by options (`cp -n`), or by what it found."""
    program = PurePosixPath(words[0]).name if words else ""
    keeps = _KEEPS.get(program)
    cautious = keeps is not None and any(re.fullmatch(keeps, word) for word in words)
    return cautious or program in _MANIFESTS


def _changed_within(simple: SimpleCommand) -> Iterator[str]:
    """`ANY_FILE` for a substitution within double quotes that changes files."""
    if simple.exact:
        return
    inner = (each["command"] for word in simple.words for each in _SUBSTITUTED.finditer(word))
    if any(changes_of(each) for command in inner for each in simple_commands(command)):
        yield ANY_FILE


def changes_of(simple: SimpleCommand) -> tuple[str, ...]:
    """The files that one program of a command may have changed, with paths as the command names them."""
    return (*changed_by(simple), *printed_into(simple))


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
    verb = first_word(rest, GIT_OPTIONS)
    yield from _outputs(program, rest, named)
    yield from _noted_in(program, rest) if program in _MANIFESTS else []
    if program == "git":
        yield from _changed_by_git(str(verb), rest, options)
    elif program in _IN_PLACE and any(re.match(r"-(?![-IM])[a-zA-Z0-9]*i|--in-?place", o) for o in options):
        named = named[1:] if program == "yq" and named[:1] in (["e"], ["eval"], ["ea"], ["eval-all"]) else named
        yield from _or_any(named[0 if scripts else 1 :], exact=exact)
    elif program in ("awk", "gawk") and "inplace" in rest:
        files = [word for word in named if word != "inplace"]
        yield from _or_any(files[0 if scripts else 1 :], exact=exact)
    elif program == "sd" and not options & {"-p", "--preview"}:
        files = [word for place, word in enumerate(rest) if word[:1] != "-" and place not in scripts][2:]
        if files or simple.ahead in ("$(", "`"):
            yield from _or_any(files, exact=exact)
    elif program in _HOSTS and rest[:2] in (["pr", "checkout"], ["mr", "checkout"]):
        yield ANY_FILE
    elif program == "dd":
        yield from (word.removeprefix("of=") for word in rest if word.startswith("of=") and not _stream(word[3:]))
    elif program in _ARGUMENTS or program in _COPIES:
        many = any(map((_RECURSIVE if program in _ARGUMENTS else _SPREAD).fullmatch, options))
        many |= program in ("mv", "ln") and not all(map(_ends_as_a_file, named[:-1] or named))  # it may be a folder
        unnamed = program in _ARGUMENTS or len(named) < 2
        whole = many and not all(set(PurePosixPath(word).parts) & _PRODUCED for word in named)
        valued = {place + 1 for place, word in enumerate(rest) if word in ("-m", "-o", "-g", "-e", "-P", "-i", "-S")}
        if whole or _named_by_shell(named, exact=exact) or (unnamed and simple.ahead in ("$(", "`")):
            yield ANY_FILE
        elif program in _COPIES and not many:
            words = [word for place, word in enumerate(rest) if word[:1] != "-" and place not in valued]
            yield from _copied(words, moved=program == "mv")
        else:
            yield from named
    elif _formats(program, rest, options) or _rewrites(program, rest, options):
        yield ANY_FILE


def _or_any(files: Sequence[str], *, exact: bool) -> Sequence[str]:
    """The files, or `ANY_FILE` if there are none or a pattern or variable names them."""
    return files if files and not _named_by_shell(files, exact=exact) else (ANY_FILE,)


def _named_by_shell(words: Sequence[str], *, exact: bool) -> bool:
    """Whether a shell replaces a word by others. `exact`: it passes them on as they are."""
    return not exact and any(map(expands, words))


def _copied(named: Sequence[str], *, moved: bool) -> Iterator[str]:
    """The files that a copy changes: its target, which may be a folder, and files that it moves away."""
    sources, target = named[:-1], PurePosixPath(*named[-1:])
    if moved:
        yield from sources
    if len(sources) < 2 and not (named and named[-1].endswith("/")):
        yield from named[-1:]
    if len(sources) > 1 or not any(_is_like(target, PurePosixPath(source)) for source in sources):
        yield from ((target / PurePosixPath(source).name).as_posix() for source in sources)


def _is_like(target: PurePosixPath, source: PurePosixPath) -> bool:
    """Whether the target of a copy is a file, by its name or as it is like its source: not a folder."""
    beside = target.name.startswith(f"{source.name}.") or (
        source.stem == target.name and source.suffix in _COPY_SUFFIXES
    )
    beside |= target.name[:1] == "." and source.name.startswith(f"{target.name}.")  # `.env.local` to `.env`
    return target.name not in ("", "..") and (beside or is_file_name(target.name))


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


def _formats(program: str, rest: Sequence[str], options: set[str]) -> bool:
    """Whether a program reformats files or fixes its findings."""
    if program in _FORMATTERS:
        lists = {"-d", "-c", "--list-different", *(() if program in _LENGTH else ("-l",))}
        return not options & (_LOOKS_ALONE | lists) or "-w" in options
    fixes = bool(options & (_FIXES | _SHORT_FIXES.get(program, frozenset()))) or program == "pre-commit"
    return not options & _LOOKS_ALONE and (fixes or runs_formatter(program, rest))


def _rewrites(program: str, rest: Sequence[str], options: set[str]) -> bool:
    """Whether a program writes files named only in its input."""
    if program == "tar":
        old = rest[0] if rest and not rest[0].startswith("-") else ""
        modes = old + "".join(found[0] for word in rest if (found := re.match(r"-[a-eg-zA-Z]*f?", word)))
        return "x" in modes or bool(options & {"--extract", "--get"})
    if program in ("unzip", "7z", "gunzip"):
        return not options & {"-t", "--list", "-l", "-p", "-c"}
    dry = program == "patch" and bool(options & {"--dry-run", "-C", "--check"})
    if program in _STARTERS:
        return "-delete" in rest or any(map(_started_changes, _started_by(program, rest)))
    return program in ("patch", "apply_patch") and not dry


def _started_by(program: str, rest: Sequence[str]) -> Iterator[Sequence[str]]:
    """The programs that `find`, `xargs` and the like start for each file, with their arguments."""
    if program in ("find", "fd", "fdfind"):
        starts = [place + 1 for place, word in enumerate(rest) if word in _EXEC]
        yield from (rest[start:after] for start, after in pairwise([*starts, len(rest)]))
    else:
        yield behind_options(
            list(rest),
            ("-I", "-n", "-P", "-L", "-d", "-s", "-a", "-E", "-j", "-J", "--max-procs", "--max-args", "--jobs"),
        )


def _started_changes(words: Sequence[str]) -> bool:
    """Whether such a program changes the file that it is given."""
    names = [PurePosixPath(word).name for word in started(words)]
    if names[:1] and names[0] in _STARTERS:  # what starts others once more is not parsed, which bounds the recursion
        writers = {"-delete", "sh", "bash"} | _ARGUMENTS | _COPIES | _FORMATTERS | _IN_PLACE | _FIXES
        return bool(writers & {*names})
    return any(any(changed_by(each)) for each in simple_commands(shlex.join([*words, "FILE.txt"])))


def _noted_in(program: str, rest: Sequence[str]) -> list[str]:
    """The manifest that a package manager changes."""
    words = [word for word in rest if not word.startswith("-")]
    changes = words[:1] and ((words[0] in _NOTES and words[1:]) or words[0] in ("version", "pkg", "mod"))
    return [_MANIFESTS[program]] if changes else []


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
    return named if all(_ends_as_a_file(word) and not expands(word) and ":" not in word for word in named) else []


def _ends_as_a_file(word: str) -> bool:
    path = PurePosixPath(word)
    return bool(path.suffix) or named_by_convention(path.name)


def _changed_by_git(verb: str, rest: Sequence[str], options: set[str]) -> Iterator[str]:
    """The files that `git` may have changed: commits, read-only commands and new branches change none."""
    behind = [*rest[rest.index("--") + 1 :]] if "--" in rest else None
    files = _files_of_git(verb, rest) if behind is None else _plain(behind)
    words = rest[rest.index(verb) :] if verb in rest else [verb]
    nothing = {
        "stash": bool({"list", "show", "drop", "clear"} & set(words[1:2])),
        "submodule": bool({"status", "summary"} & set(words[1:2])),
        "bisect": bool({"log", "view"} & set(words[1:2])),
        "checkout": bool(options & {"-b", "-B"}) and len(rest) <= 3,
        "switch": bool(options & {"-c", "-C", "--create"}) and len(rest) <= 3,
        "restore": bool(options & {"--staged", "-S"}) and not options & {"--worktree", "-W"},
        "reset": not options & {"--hard", "--merge", "--keep"},
        "apply": bool(options & {"--check", "--stat", "--numstat", "--summary"}) and "--apply" not in options,
        "clean": any(re.fullmatch(r"-[a-zA-Z]*n[a-zA-Z]*|--dry-run", word) for word in options),
        "rm": bool(options & {"--cached", "-n", "--dry-run"}),
        "mv": bool(options & {"-n", "--dry-run"}),
    }
    if verb in _GIT and not nothing.get(verb, False):
        yield from files or (ANY_FILE,)
