"""The metadata header of a Markdown document (S1.1): YAML front matter, `- key: value`, `**key:** value`, or a table.

Gives: `read_header(text, at)`, the known fields as strings or lists; `metadata_of`, the columns that it fills. A `## Status` section counts as `status`.
Unknown fields are ignored: a list item with a colon is more often prose than metadata.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

import yaml

from ...nodes.errors import InputError
from ...nodes.vocabulary import ZONES
from ..parsing.values import instant
from ..parsing.yaml_files import SURROGATE
from .report import SourceReport

__all__ = ["Header", "front_title", "has_fields", "metadata_of", "read_header", "record_number"]

_KEYS = frozenset(
    ["entity", "id", "level", "zone", "version", "tags", "source_path", "date", "status", "superseded_by", "domain", "owner",
     "document_type", "type", "title", "valid_from", "valid_until", "branch", "namespace", "confidence"]
)  # fmt: skip
_FIELD = re.compile(
    r"^\s{0,3}(?:[-*+]\s+)?(?:\*\*|__)?(?P<key>[A-Za-z][A-Za-z _-]{1,24}?)(?:\*\*|__)?\s*:(?:\*\*|__)?\s+(?P<value>\S.*)$"
)
_ROW = re.compile(
    r"^\s{0,3}\|\s*(?:\*\*)?(?P<key>[A-Za-z][A-Za-z _-]{1,24}?)(?:\*\*)?\s*\|\s*(?P<value>[^|]*\S)\s*\|\s*$"
)
_STATUS = re.compile(r"^#{2,3}\s+status\s*\n+\s*(?P<value>\S[^\n]*)$", re.IGNORECASE | re.MULTILINE)
_NUMBER = re.compile(r"\b(?P<prefix>ADR|RFC|DEC|DR)[-_ ]?(?P<number>\d{1,5})\b", re.IGNORECASE)
_HEADER_LINES = 40
_ALIAS = "an alias of YAML"


@dataclass(frozen=True)
class Header:
    """The fields of a header; `at` names the file, `lines` counts front matter and blank lines at its top."""

    at: str
    fields: dict[str, Any]
    lines: int = 0
    line_numbers: dict[str, int] = field(default_factory=dict)
    """The line of each field, from 1."""

    def place(self, key: str) -> str:
        """The location of a field for messages: file, line and field."""
        return f"{self.at}:{self.line_numbers[key]}.{key}" if key in self.line_numbers else f"{self.at}.{key}"

    def text(self, *keys: str) -> str | None:
        """The first of the fields that is present, as text."""
        key = next((key for key in keys if self.fields.get(key) not in (None, "")), keys[0])
        value = self.fields.get(key)
        if isinstance(value, list | dict):
            raise InputError.of_kind("one value", value, self.place(key))
        if value == "":
            return None
        return None if value is None else str(value)

    def strings(self, key: str) -> list[str] | None:
        """A list: `[a, b]`, a YAML list, or `a, b`."""
        value = self.fields.get(key)
        if value is None:
            return None
        if not isinstance(value, list):
            value = [part.strip().strip("`'\"") for part in str(value).strip("[] ").split(",")]
        return [str(part) for part in value if str(part)]

    def instant(self, key: str) -> datetime | None:
        """A date (midnight UTC) or an instant with a zone."""
        value = self.fields.get(key)
        if value is None:
            return None
        if isinstance(value, date) and not isinstance(value, datetime):
            return datetime(value.year, value.month, value.day, tzinfo=UTC)
        return instant(value, self.place(key), dates=True, milliseconds=True)

    def zone(self) -> str | None:
        """The zone in its canonical form."""
        value = self.text("zone")
        return None if value is None else ZONES.canonical(value.lower(), self.place("zone"))


def read_header(text: str, at: str) -> Header:
    """The header of a document.

    Raises:
        InputError: the front matter is not a YAML mapping; names file and line.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    fields: dict[str, Any] = {}
    body = text
    lines = above = 0
    line_numbers: dict[str, int] = {}
    if start := re.match(r"---[ \t]*\n", text):
        matter = text[start.end() :]
        end = re.search(r"^(?:---|\.\.\.)[ \t]*$", matter, re.MULTILINE)
        if end:
            fields, line_numbers = _front_matter(matter[: end.start()], at)
            body = matter[end.end() :]
            above = text.count("\n") - body.count("\n")
            lines = text.count("\n") - body.lstrip().count("\n")
    for number, line in enumerate(body.split("\n")[:_HEADER_LINES], start=above + 1):
        if line.startswith("## "):
            break
        match = _FIELD.match(line) or _ROW.match(line)
        if match and (key := _key(match["key"])) in _KEYS and key not in fields:
            fields[key], line_numbers[key] = match["value"].strip().strip("*`").strip(), number
    if "status" not in fields and (status := _STATUS.search(body)):
        fields["status"] = status["value"].strip().strip("*_`").strip()
        line_numbers["status"] = above + 1 + body.count("\n", 0, status.start("value"))
    return Header(at, fields, lines, line_numbers)


def has_fields(matter: str) -> bool:
    """Whether text between two fences is front matter: YAML with fields, not prose between two rules."""
    return bool(_fields(matter))


def front_title(matter: str) -> str | None:
    """The title in front matter."""
    title = _fields(matter).get("title")
    return title.strip() or None if isinstance(title, str) else None


def _fields(matter: str) -> dict[str, Any]:
    try:
        return _front_matter(matter, "")[0]
    except InputError:
        return {}


def record_number(words: str) -> str | None:
    """The number of a decision in a title or file name: `ADR-011`."""
    found = _NUMBER.search(words)
    return f"{found['prefix'].upper()}-{found['number']}" if found else None


class _Loader(yaml.SafeLoader):
    """Safe YAML without aliases: a few lines of aliases can expand to gigabytes."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.composer.ComposerError(problem=_ALIAS, problem_mark=self.peek_event().start_mark)
        return super().compose_node(parent, index)


def _timestamp(loader: _Loader, node: yaml.ScalarNode) -> Any:
    """A date, or the text of an invalid one, which is refused with the name of its field."""
    try:
        return loader.construct_yaml_timestamp(node)
    except (ValueError, OverflowError):
        return node.value


_Loader.add_constructor("tag:yaml.org,2002:timestamp", _timestamp)


def _front_matter(text: str, at: str) -> tuple[dict[str, Any], dict[str, int]]:
    """The fields, and the line of each."""
    if SURROGATE.search(text):
        raise InputError.described("Unicode text", "a lone surrogate", f"{at}:2")
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        value = None if node is None else loader.construct_document(node)
    except RecursionError as error:
        raise InputError.described("YAML front matter", "too deep nesting", f"{at}:2") from error
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, KeyError, OverflowError) as error:
        # PyYAML's constructors raise various errors if a tag and its text do not match.
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 2 if mark else 1
        alias = getattr(error, "problem", None) == _ALIAS
        got = _ALIAS if alias else "text that does not parse"
        raise InputError.described("YAML front matter", got, f"{at}:{line}") from error
    if not isinstance(value, dict | None):
        raise InputError.of_kind("front matter with fields", value, f"{at}:2")
    line_numbers = {_key(str(key.value)): key.start_mark.line + 2 for key, _ in node.value} if node and value else {}
    return {_key(str(key)): entry for key, entry in (value or {}).items()}, line_numbers


def _key(word: str) -> str:
    word = re.sub(r"[\s-]+", "_", word.strip())
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", word).lower()


_CLOSING = ("restricted", "private")
"""The zones that restrict a document, the most restrictive first."""

_MATTER = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^(?:---|\.\.\.)[ \t]*\r?$", re.DOTALL | re.MULTILINE)


def metadata_of(path: str, title: str | None, text: str, report: SourceReport) -> Mapping[str, Any]:
    """Columns from the header of a Markdown document; none if there is no header.

    Only a document that states both `entity` and `level` has one (S1.1): front matter of other tools uses words such as
    `date` and `zone` for other things; of that, only `tags` are used, and `title` by `chunking`. A malformed, incomplete
    or misspelled header still restricts its document: a zone outside the vocabulary counts as restricted, with a note in
    the report; private or restricted applies in any front matter and any spelling, readable or not.
    """
    found = _MATTER.match(text)
    matter = found[1] if found else ""
    if "level" not in text.lower() and not any(word in matter.lower() for word in ("zone", "tags")):
        return {}
    header = None
    try:
        header = read_header(text, path)
        entity, level = header.text("entity"), header.text("level")
        if not entity or not level:
            tags = header.strings("tags") if header.line_numbers.get("tags", header.lines) < header.lines else None
            return {**_closed(header, matter), **({"tags": tags} if tags else {})}
        columns = {
            "document_type": entity,
            "entity": header.text("id") or record_number(title or ""),
            "level": level.lower(),
            "tags": header.strings("tags"),
            "zone": _zone(header, report),
            "event_time": header.instant("date"),
        }
    except InputError:
        zone = _zone(header, report) if header is not None else None
        closed = {"zone": zone} if zone in _CLOSING else _closed(header, matter)
        report.note(f"an unreadable header was ignored{'; the document is restricted' if closed else ''}", at=path)
        return closed
    if entity.lower() == "decision":
        columns["evidence_kind"] = "decision-record"
    return {name: value for name, value in columns.items() if value is not None}


def _closed(header: Header | None, matter: str) -> Mapping[str, Any]:
    """The zone of a header that restricts a document, whatever its other fields; none if it is unrestricted.

    Front matter that cannot be parsed restricts the document if it mentions a zone. A line of the text counts only with
    `entity` or `level`.
    """
    fields = header.fields if header is not None else {}
    words: list[Any] = []
    if header is not None and "zone" in fields:
        counts = header.line_numbers["zone"] <= header.lines or {"entity", "level"} & fields.keys()
        words = [fields["zone"]] if counts else []
    elif (header is None or not header.lines) and re.search(r"(?i)\bzone\b", matter):
        words = ["restricted"]
    words = words[0] if words and isinstance(words[0], list) else words
    zones = [ZONES.aliases.get(word, word) for word in (str(word).strip().lower() for word in words)]
    return next(({"zone": zone} for zone in _CLOSING if zone in zones), {})


def _zone(header: Header, report: SourceReport) -> str | None:
    try:
        return header.zone()
    except InputError:
        report.note(f"a zone that is none of {', '.join(ZONES.values)} counts as restricted", at=header.place("zone"))
        return "restricted"
