"""Rules from system texts and from rule files of repositories, whose sections become rules of their own.

Gives: `read_rules`, `rule_files`, `not_given` (left-out files that were not passed as rules), `unread_files` (the same
as values for `read_rules`), `about_rules` (the condition that reports them), `INSTRUCTION_FILES`.

Note: a heading is part of the meaning of its section. Under `Never`, `force push` is a prohibition; alone it is a
request. So the text of a section begins with the headings above it.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, MutableMapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa

from ...nodes.context_tables import RULE_TEXTS
from ...nodes.errors import InputError
from ...nodes.scope.selectors import matching_paths
from ...nodes.turns.duties import is_duty
from ...nodes.turns.scopes import TOPICS, topics_in
from ...nodes.turns.words import RULES_NOT_READ
from ..sources.jsonl import Record
from ..sources.report import SourceReport
from ..sources.work_tree import list_files, through_link
from .event_rows import sight_of
from .masking import listed, masked_values, one_path

__all__ = ["INSTRUCTION_FILES", "about_rules", "not_given", "read_rules", "rule_files", "unread_files"]

INSTRUCTION_FILES = (
    "AGENTS.md", "**/AGENTS.md", "CLAUDE.md", "**/CLAUDE.md", "CLAUDE.local.md", "GEMINI.md", "**/GEMINI.md", ".github/copilot-instructions.md",
    ".cursorrules", ".windsurfrules", "CONVENTIONS.md", "**/CONVENTIONS.md",
)  # fmt: skip
"""Paths whose text may instruct, unless the caller names others."""
CONDITIONAL_FILES = (
    ".claude/rules/**", ".cursor/rules/**", ".windsurf/rules/**", ".clinerules/**", ".github/instructions/**",
)  # fmt: skip
"""Rules of single tools, whose front matter may state where they apply. They are not read, and a condition names
them.
"""
_FRONT_MATTER = re.compile(r"(?sm)\A---[ \t]*\n(?P<fields>.*?)^---[ \t]*$")
_SCOPED = re.compile(r"(?m)^(?:paths|globs|applyTo|alwaysApply|trigger|description)[ \t]*:")
"""A front matter field that states where a file applies, in any of these formats."""
_LEFT_OUT = {
    "rule_dependency": "is in a folder of dependencies", "rule_link": "is a symbolic link, or behind one", "rule_ignored": "is ignored by Git",
    "rule_empty": "is empty", "rule_conditional": "applies by its front matter", "rule_of_tool": "is in the folder of one tool",
    "rule_imported": "is imported by ",
}  # fmt: skip
"""Text of the condition for files that are not read, by reason; the last one is followed by the importing file."""
MOST_DEPENDENCIES = 100
"""Most rule files of dependencies that get a row in the ledger."""
_GENERAL = frozenset(("README.md", *(PurePosixPath(glob).name for glob in INSTRUCTION_FILES)))
"""File names that do not indicate the topics of their rules."""
VENDORED = frozenset((
    "node_modules", "bower_components", "vendor", "vendored", "third_party", "third-party", "site-packages", ".venv", "venv",
))  # fmt: skip
"""Folders of third-party code in the work tree, whose rules are not the project's own."""
MOST_REPORTED = 5
"""Most left-out files that a message names; the ledger has a row for each."""
_IMPORTED = re.compile(r"(?m)(?<![\w`@./-])@(?P<path>(?:\.{1,2}/)*[\w-][\w./-]*\.\w+)")
"""A file that a CLAUDE.md imports for its tool."""
_HEADING = re.compile(r"(?P<marks>#{1,6})\s+(?P<title>\S.*)")


def read_rules(values: Iterable[Any], at: str = "rules") -> pa.Table:
    """RULE_TEXTS. A rule is a text (a rule of the system) or an object: `text`, and `path` (sections become rules),
    `origin`, `topics`, `folder`, `zone`, `visibility`. An object with `path` and `leftOut` (a reason) is a file that
    was not read.
    """
    rows: list[dict[str, Any]] = []
    for number, value in enumerate(masked_values(listed(values, "rules", at), lambda n: f"{at}[{n}]")):
        place = f"{at}[{number}]"
        if isinstance(value, str):
            rows.append({"rule_id": f"system:{number}", "origin": "system", "folder": "", "topics": [], "text": value})
            continue
        record = Record.of(value, place)
        path = _in_tree(record.text("path"))
        if path is not None and (why := record.text("leftOut", "left_out")):
            if why not in RULES_NOT_READ:
                raise InputError.one_of(RULES_NOT_READ, why, record.place("leftOut", "left_out"))
            if record.text("text", "content") is not None:
                hint = "remove `leftOut` if the text is a rule"
                raise InputError.described(
                    "no text beside `leftOut`", "text", record.place("text", "content"), hint=hint
                )
            rows.append({"rule_id": path, "origin": "repository", "path": path, "folder": "", "topics": [], "left_out": why, "text": ""})  # fmt: skip
            continue
        text = record.required("text", "content")
        origin = record.text("origin", "kind") or ("repository" if path else "system")
        origin = {"system_rules": "system", "repository_instructions": "repository"}.get(origin, origin)
        if origin not in ("system", "global", "repository"):
            raise InputError.one_of(("system", "global", "repository"), origin, record.place("origin"))
        named, sight = record.strings("topics"), sight_of(record)
        if unknown := set(named or ()) - set(TOPICS):
            raise InputError.one_of(TOPICS, sorted(unknown)[0], record.place("topics"))
        if path is None:
            rows.append(
                {
                    "rule_id": record.identifier("id") or f"{origin}:{number}",
                    "origin": origin,
                    "folder": "",
                    "topics": named or [],
                    "text": text,
                    **sight,
                }
            )
            continue
        folder = record.value("folder")
        if not isinstance(folder, str | None):
            raise InputError.of_kind("text", folder, record.place("folder"))
        sections = _sections(path, text, origin, _folder(path) if folder is None else _in_tree(folder) or "", named)
        rows += [section | sight for section in sections]
    for place_, row in enumerate(rows):
        row["place"] = place_
    ids = [row["rule_id"] for row in rows]
    if len(set(ids)) != len(ids):
        again = next(id_ for id_, count in Counter(ids).items() if count > 1)
        raise InputError.described("every rule once", f"{again!r} again", at)
    return RULE_TEXTS.from_rows(rows)


def rule_files(
    root: str | Path, globs: Sequence[str] = INSTRUCTION_FILES, left_out: MutableMapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """The rule files of a work tree, as values for `read_rules`, from the top folder down.

    Only the project's own files are read: none that Git ignores, and none in a submodule, in a folder of dependencies
    (`VENDORED`), behind a symbolic link or outside `root`. `left_out` receives the others, each with its reason: those
    that Git lists, that are at the top of the tree or that a rule file imports.

    Raises:
        InputError: there is no such folder, or a file is not UTF-8.
    """
    top = Path(root)
    if not top.is_dir():
        got, hint = "nothing", ""
        if top.exists():
            got, hint = "a file", f"name the folder that it applies to: `--rules {top.parent}`"
        raise InputError.described("a folder", got, str(root), hint=hint)
    listed = [os.fsdecode(raw) for raw in list_files(top, SourceReport())]
    named = matching_paths(pa.array(listed, pa.string()), globs) if listed else []
    found = {path: top / path for path, rule in zip(listed, named, strict=True) if rule}
    inside, values, others = top.resolve(), list[dict[str, Any]](), dict[str, str]()
    for name in sorted(found, key=lambda each: (each.count("/"), each)):
        if VENDORED & set(PurePosixPath(name).parts[:-1]):
            others[name] = _LEFT_OUT["rule_dependency"]
            continue
        if through_link(top, name):
            others[name] = _LEFT_OUT["rule_link"]
            continue
        if not found[name].is_file() or not found[name].resolve().is_relative_to(inside):
            continue
        try:
            text = found[name].read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(
                f"Expected a readable UTF-8 file, got {type(error).__name__} - at {found[name]}"
            ) from error
        if text.strip():
            values.append({"path": name, "text": text})
        else:
            others[name] = _LEFT_OUT["rule_empty"]
    if left_out is not None:
        others |= {name: _unlisted(top, name) for name in globs if name not in found and (top / name).is_file()}
        others |= _of_tools(top, listed) | _imported(top, values)
        left_out.update(others)
    return values


def not_given(left_out: Mapping[str, str], rules: Iterable[Any]) -> dict[str, str]:
    """The left-out rule files whose text was not passed as a rule."""
    given = {_in_tree(str(each["path"])) for each in rules if isinstance(each, Mapping) and each.get("path")}
    return {name: why for name, why in left_out.items() if name not in given}


def unread_files(left_out: Mapping[str, str]) -> list[dict[str, Any]]:
    """The left-out rule files as values for `read_rules`; of dependencies only the first ones."""
    codes = {words: code for code, words in _LEFT_OUT.items()}
    found = [{"path": name, "leftOut": codes.get(why, "rule_imported")} for name, why in left_out.items()]
    dependencies = [each["path"] for each in found if each["leftOut"] == "rule_dependency"]
    beyond = set(dependencies[MOST_DEPENDENCIES:])
    return [each for each in found if each["path"] not in beyond]


def _of_tools(top: Path, listed: list[str]) -> dict[str, str]:
    """Rule files of kinds that are not read."""
    if not listed:
        return {}
    named = matching_paths(pa.array(listed, pa.string()), CONDITIONAL_FILES)
    return {path: _LEFT_OUT[_kind_of(top, path)] for path, rule in zip(listed, named, strict=True) if rule}


def _kind_of(top: Path, name: str) -> str:
    """Why a rule file of one tool is not read: its front matter states where it applies, or only its folder does."""
    if through_link(top, name):
        return "rule_link"
    try:
        text = (top / name).read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return "rule_of_tool"
    front = _FRONT_MATTER.match(text)
    return "rule_conditional" if front and _SCOPED.search(front["fields"]) else "rule_of_tool"


def _imported(top: Path, values: list[dict[str, Any]]) -> dict[str, str]:
    """Files that rule files import with `@path` and that are not read as rule files themselves."""
    read, found = {value["path"] for value in values}, dict[str, str]()
    for value in values:
        if not PurePosixPath(value["path"]).name.startswith("CLAUDE."):
            continue
        folder = PurePosixPath(value["path"]).parent
        for match in _IMPORTED.finditer(value["text"]):
            path = os.path.normpath(folder / match["path"])
            if path not in read and not path.startswith("..") and (top / path).is_file():
                found[path] = f"{_LEFT_OUT['rule_imported']}{value['path']}"
    return found


def _unlisted(top: Path, name: str) -> str:
    """Why an existing file is not among the files of its work tree."""
    return _LEFT_OUT["rule_link" if through_link(top, name) else "rule_ignored"]


def about_rules(root: Path, found: Collection[Any], left_out: Mapping[str, str]) -> tuple[str, str] | None:
    """The condition, with its message, of inputs that lack rule files: none was found, or some were left out; None if
    nothing is missing. Rules of dependencies count as missing only if there are no others.
    """
    missed = {name: why for name, why in left_out.items() if not found or why != _LEFT_OUT["rule_dependency"]}
    reported = [f"{name} {why}" for name, why in missed.items()][:MOST_REPORTED]
    if more := len(missed) - len(reported):
        named = len(unread_files(missed)) - len(reported)
        which = "which the ledger names" if named == more else f"of which the ledger names {named}"
        reported.append(f"and {more} more, {which}")
    listed = "; ".join(reported)
    if found:
        return ("rules_left_out", f"rule files that are not read: {listed}") if reported else None
    names = ", ".join(dict.fromkeys(each.removeprefix("**/") for each in INSTRUCTION_FILES))
    return "rules_not_found", f"no rule file was found in {root}, looked for {names}" + (
        f"; {listed}" if reported else ""
    )


def _in_tree(path: str | None) -> str | None:
    """The path of a rule file relative to the root of the repository."""
    found = one_path(path)
    return found and found.removeprefix("/")


def _folder(path: str) -> str:
    parent = PurePosixPath(path).parent.as_posix()
    return "" if parent in (".", ".github") or parent.startswith(".github/") else parent


def _sections(path: str, text: str, origin: str, folder: str, topics: list[str] | None) -> list[dict[str, Any]]:
    """The sections of a rule file, each with the headings above it, and the topics of its heading and the file name.
    The title of a general rule file, its first heading and the only one of the first level, names a project, no topic.
    """
    parts: list[tuple[int, list[str], list[str]]] = [(1, [], [])]
    above: list[tuple[int, str]] = []
    titled: list[int] = []
    fence = ""
    for number, line in enumerate(text.splitlines(), start=1):
        mark = line.lstrip()
        if fence:
            fence = "" if mark.startswith(fence) else fence
        elif mark.startswith(("```", "~~~")):
            fence = mark[:3]
        if not fence and (heading := _HEADING.match(line)):
            depth = len(heading["marks"])
            above = [*(each for each in above if each[0] < depth), (depth, _title(heading["title"]))]
            titled.append(depth)
            parts.append((number + 1, _titles(above), []))
        else:
            parts[-1][2].append(line)
    kept = [(line, titles, "\n".join(lines).strip("\n").rstrip()) for line, titles, lines in parts]
    kept = [part for part in kept if part[2].strip()]
    stem = PurePosixPath(path).name
    title = parts[1][0] if titled[:1] == [1] and titled.count(1) == 1 else None
    names = np.array(list(TOPICS))
    spoken = [
        ("" if line == title else _last(titles))
        if stem in _GENERAL
        else f"{_last(titles)} {re.sub(r'[._-]', ' ', stem.removesuffix('.md'))}"
        for line, titles, _ in kept
    ]
    about = topics_in(pa.array(spoken, pa.string())) if kept else np.zeros((0, len(names)), dtype=bool)
    return [
        {
            "rule_id": f"{path}:{line}", "origin": origin, "path": path, "line": line, "folder": folder,
            "topics": topics if topics is not None else names[mask].tolist(), "text": _headed(titles, body),
        }
        for (line, titles, body), mask in zip(kept, about, strict=True)
    ]  # fmt: skip


def _title(written: str) -> str:
    """A heading without the marks that may close it."""
    title = written.rstrip()
    bare = title.rstrip("#")
    return bare.rstrip() if bare[-1:].isspace() else title


def _titles(above: list[tuple[int, str]]) -> list[str]:
    """The headings above a section; the title of the file only if it is the only one or reads as a duty."""
    return [title for depth, title in above if depth > 1 or len(above) == 1 or is_duty(title)]


def _headed(titles: list[str], body: str) -> str:
    """A section, preceded by the headings above it."""
    named = " > ".join(titles)
    if not named:
        return body
    return f"{named}:\n{body}" if "\n" in body else f"{named}: {body.strip()}"


def _last(titles: list[str]) -> str:
    return titles[-1] if titles else ""
