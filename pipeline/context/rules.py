"""Rules: texts of the system, and the sections of the rule files of a repository.

Gives: `read_rules`, `rule_files` (the rule files of a work tree as values for `read_rules`), `about_rules` (the
condition that reports files that were not read), `bundled_duty_words`, `INSTRUCTION_FILES`.

Note: a heading is part of the meaning of its section. Under `Never`, `force push` is a prohibition; alone it is a
request. So the text of a section begins with the headings above it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa

from ...nodes.errors import InputError
from ...nodes.scope.selectors import matching_paths
from ...nodes.turns.words import RULES_NOT_READ
from ..sources.file_kinds import made_elsewhere
from ..sources.jsonl import Record
from ..sources.report import SourceReport
from ..sources.selection import Selection, through_link
from .flags import sight_of
from .masking import listed, masked_values, one_path

INSTRUCTION_FILES = (
    "AGENTS.md", "**/AGENTS.md", "CLAUDE.md", "**/CLAUDE.md", "CLAUDE.local.md", "GEMINI.md", "**/GEMINI.md", "CONVENTIONS.md",
    "**/CONVENTIONS.md", ".github/copilot-instructions.md", ".cursorrules", ".windsurfrules", "**/.github/instructions/**/*.md",
    "**/.claude/rules/**/*.md", "**/.cursor/rules/**/*.mdc", "**/.windsurf/rules/**/*.md", "**/.clinerules/**/*.md",
)  # fmt: skip
"""Paths whose text may instruct, unless the caller names others."""
ORIGINS = ("system", "global", "repository")
MOST_REPORTED = 5
"""Most left-out files that a message names; the ledger has a row for each."""
_FIELD = re.compile(r"(?m)^(?P<name>\w+)[ \t]*:(?P<value>.*(?:\n[ \t]*-[ \t].*)*)")
_ITEM = re.compile(r"(?:\{[^{}\n]*\}|[^,\n])+")
_IMPORTED = re.compile(r"(?m)(?<![\w`@./-])@(?P<path>(?:\.{1,2}/)*[\w-][\w./-]*\.\w+)")
"""A file that a rule file imports for its tool."""
_HEADING = re.compile(r"(?P<marks>#{1,6})\s+(?P<title>\S.*?)(?:\s+#*)?\s*$")


def read_rules(values: Iterable[Any], at: str = "rules", *, duty_words: Iterable[str] = ()) -> list[dict[str, Any]]:
    """Rules and sections of rules. A rule is a text (a rule of the system) or an object: `text`, and `path` (its sections become rules),
    `origin`, `topics`, `folder`, `zone`, `visibility`. An object with `path` and `leftOut` (a reason) is a file that
    was not read; it counts only if no other value gives its text. `duty_words`: those of the project.

    Raises:
        InputError: a value is invalid, or two rules have one id.
    """
    rows: list[dict[str, Any]] = []
    for number, value in enumerate(masked_values(listed(values, "rules", at), lambda n: f"{at}[{n}]")):
        rows += _rule({"text": value} if isinstance(value, str) else value, number, f"{at}[{number}]")
    given = {row["path"] for row in rows if row["path"] and not row["left_out"]}
    rows = [row for row in rows if not (row["left_out"] and row["path"] in given)]
    seen = set[str]()
    own = listed(duty_words, "words", "duty_words")
    if wrong := [number for number, word in enumerate(own) if not isinstance(word, str) or not word.strip()]:
        raise InputError.of_kind("text", own[wrong[0]] or None, f"duty_words[{wrong[0]}]")
    duty = _duty_pattern((*bundled_duty_words(), *own))
    for row in rows:
        if row["rule_id"] in seen:
            raise InputError.described("every rule once", f"{row['rule_id']!r} again", at)
        seen.add(row["rule_id"])
        row["duty"] = bool(duty.search(row["text"].replace("’", "'")))  # noqa: RUF001 - both apostrophes are written
    return rows


def _rule(value: Any, number: int, at: str) -> list[dict[str, Any]]:
    """The rows of one value: its sections if it is a file."""
    record = Record.of(value, at)
    path, why = _in_tree(record.text("path")), record.text("leftOut")
    origin = record.text("origin", "kind") or ("repository" if path else "system")
    origin = {"system_rules": "system", "repository_instructions": "repository"}.get(origin, origin)
    if origin not in ORIGINS:
        raise InputError.one_of(ORIGINS, origin, record.place("origin", "kind"))
    row = {
        "origin": origin, "path": path, "line": None, "folder": "", "globs": None, "topics": record.strings("topics") or None,
        "left_out": None, **sight_of(record),
    }  # fmt: skip
    if path is not None and why:
        if why not in RULES_NOT_READ:
            raise InputError.one_of(RULES_NOT_READ, why, record.place("leftOut"))
        if record.text("text", "content") is not None:
            hint = "remove `leftOut` if the text is a rule"
            raise InputError.described("no text beside `leftOut`", "text", record.place("text", "content"), hint=hint)
        return [{**row, "rule_id": path, "left_out": why, "text": ""}]
    text = record.required("text", "content")
    if path is None:
        return [{**row, "rule_id": record.identifier("id") or f"{origin}:{number}", "text": text}]
    folder = record.value("folder")
    if not isinstance(folder, str | None):
        raise InputError.of_kind("text", folder, record.place("folder"))
    row["folder"] = folder = _folder(path) if folder is None else _in_tree(folder) or ""
    lines = text.splitlines()
    fields, first = _front_matter(lines)
    row["topics"] = row["topics"] or fields.get("topics")
    globs = [glob for name in ("globs", "paths", "applyTo") for glob in fields.get(name, ())]
    row["globs"] = None if fields.get("alwaysApply") == ["true"] else _globs(globs, folder)
    return [{**row, "rule_id": f"{path}:{line}", "line": line, "text": body} for line, body in _sections(lines, first)]


def rule_files(root: str | Path, globs: Sequence[str] = INSTRUCTION_FILES) -> list[dict[str, Any]]:
    """The rule files of a work tree as values for `read_rules`, from the top folder down: those that are read, then the
    others, each with its reason: links, those at the top of the tree that Git ignores, and those that a rule file imports.

    Only the project's own files are read: none that Git ignores, and none in a submodule, behind a symbolic link or
    outside `root`; files of third-party or built code are no rules.

    Raises:
        InputError: there is no such folder, or a file is not UTF-8.
    """
    top = Path(root)
    if not top.is_dir():
        hint = f"name the folder that it applies to: `--rules {top.parent}`" if top.exists() else ""
        raise InputError.described("a folder", "a file" if top.exists() else "nothing", str(root), hint=hint)
    names = [os.fsdecode(raw) for raw in Selection().files(top, SourceReport())]
    mask = matching_paths(pa.array(names, pa.string()), globs) if names else []
    found = [name for name, rule in zip(names, mask, strict=True) if rule and not made_elsewhere(name)]
    read, left_out = dict[str, str](), dict[str, str]()
    for name in sorted(found, key=lambda each: (each.count("/"), each)):
        if through_link(top, name):
            left_out[name] = "rule_link"
        elif (top / name).is_file():
            try:
                text = (top / name).read_text(encoding="utf-8-sig")
            except (OSError, UnicodeDecodeError) as error:
                got = type(error).__name__
                raise InputError(f"Expected a readable UTF-8 file, got {got} - at {top / name}") from error
            if text.strip():
                read[name] = text
    for name in sorted(set(globs) - set(found)):
        if (top / name).is_file():
            left_out[name] = "rule_link" if through_link(top, name) else "rule_ignored"
    for name, text in read.items():
        left_out |= dict.fromkeys(_imports(top, name, text), "rule_imported")  # `read_rules` drops those that are read
    return [
        *({"path": name, "text": text} for name, text in read.items()),
        *({"path": name, "leftOut": why} for name, why in left_out.items()),
    ]


def about_rules(root: Path, rules: Iterable[Mapping[str, Any]]) -> tuple[str, str] | None:
    """The condition, with its message, of inputs that lack rule files of a work tree: none was found, or some were left
    out; None if nothing is missing.
    """
    rows = [row for row in rules if row["path"]]
    found = any(row["left_out"] is None for row in rows)
    missed = [row for row in rows if row["left_out"]]
    named = "; ".join(f"{row['path']} ({row['left_out']})" for row in missed[:MOST_REPORTED])
    named += f"; and {len(missed) - MOST_REPORTED} more, see the ledger" if len(missed) > MOST_REPORTED else ""
    if found:
        return ("rules_left_out", f"rule files that are not read: {named}") if missed else None
    looked = ", ".join(dict.fromkeys(each.removeprefix("**/") for each in INSTRUCTION_FILES))
    return "rules_not_found", f"no rule file was found in {root}, looked for {looked}" + (f"; {named}" if named else "")


@lru_cache(maxsize=1)
def bundled_duty_words() -> tuple[str, ...]:
    """The words that mark a duty, from `data/context/duty-words.txt`."""
    file = resources.files(f"{__name__.rsplit('.', 3)[0]}.data") / "context" / "duty-words.txt"
    lines = file.read_text(encoding="utf-8").splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))


@lru_cache(maxsize=16)
def _duty_pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    """Any of the words, not inside of a longer Latin word."""
    return re.compile(rf"(?i)(?<![a-z])(?:{'|'.join(map(re.escape, words))})(?![a-z])")


def _imports(top: Path, name: str, text: str) -> Iterator[str]:
    """Files of the work tree that a rule file imports with `@path`."""
    for match in _IMPORTED.finditer(text):
        path = os.path.normpath(PurePosixPath(name).parent / match["path"])
        if not path.startswith("..") and (top / path).is_file():
            yield path


def _in_tree(path: str | None) -> str | None:
    """The path of a rule file relative to the root of the repository."""
    found = one_path(path)
    return found and found.removeprefix("/")


def _folder(path: str) -> str:
    """The folder whose files a rule file is for: its own, or the one that contains the hidden folder of a tool."""
    parts = PurePosixPath(path).parts[:-1]
    hidden = next((place for place, part in enumerate(parts) if part.startswith(".")), len(parts))
    return "/".join(parts[:hidden])


def _front_matter(lines: list[str]) -> tuple[Mapping[str, list[str]], int]:
    """The fields of the front matter with their values, and the number of lines that it takes. It is not read as YAML:
    tools write `globs: *.ts`, which YAML refuses.
    """
    if not lines or lines[0].rstrip() != "---":
        return {}, 0
    end = next((number for number, line in enumerate(lines[1:], start=1) if line.rstrip() == "---"), 0)
    fields = {
        match["name"]: [each for item in _ITEM.findall(match["value"]) if (each := item.strip(" \t-[]'\""))]
        for match in _FIELD.finditer("\n".join(lines[1:end]))
    }
    return fields, end + 1 if end else 0


def _globs(declared: list[str], folder: str) -> list[str] | None:
    """The globs of a file in every reading that tools have of them, so that no rule is hidden: from the root of the
    repository and from its folder, one without a folder at any depth, alternatives in braces as any text.
    """
    plain = [re.sub(r"\{[^{}]*\}", "**", glob if "/" in glob else f"**/{glob}") for glob in declared]
    return sorted({*plain, *(f"{folder}/{glob}" for glob in plain if folder)}) or None


def _sections(lines: list[str], first: int) -> Iterator[tuple[int, str]]:
    """The sections of a rule file from line `first` on: the number of their first line, and their text below the
    headings above it. A section without text is none.
    """
    above: list[tuple[int, str]] = []
    start, body, fence = first + 1, list[str](), ""
    for number, line in enumerate([*lines[first:], None], start=first + 1):
        mark = (line or "").lstrip()
        if fence:
            fence = "" if mark.startswith(fence) else fence
        elif mark.startswith(("```", "~~~")):
            fence = mark[:3]
        heading = None if fence or line is None else _HEADING.match(line)
        if line is not None and heading is None:
            body.append(line)
            continue
        text, titles = "\n".join(body).strip("\n").rstrip(), " > ".join(title for _, title in above)
        if text.strip():
            yield (
                start,
                f"{titles}:\n{text}" if titles and "\n" in text else f"{titles}: {text.strip()}" if titles else text,
            )
        if heading is not None:
            depth = len(heading["marks"])
            above = [*(each for each in above if each[0] < depth), (depth, heading["title"])]
            start, body = number + 1, []
