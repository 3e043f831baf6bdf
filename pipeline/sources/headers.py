"""The metadata header of a Markdown document (S1.1): YAML front matter, or lines `key: value` at its top, as in a list.

Gives: `read_header(text, at)`, the known fields as a record; `metadata_of`, the columns that it fills. A section
`## Status` counts as `status`. Other fields are ignored: a list item with a colon is more often prose than metadata.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ...nodes.errors import InputError
from ...nodes.vocabulary import ZONES
from ..parsing.yaml_files import parse
from .jsonl import Record
from .report import SourceReport

_KEYS = frozenset(
    ["entity", "id", "level", "zone", "version", "tags", "source_path", "date", "status", "superseded_by", "domain",
     "document_type", "type", "title", "valid_from", "valid_until", "branch", "namespace"]
)  # fmt: skip
_FIELD = re.compile(
    r"^\s{0,3}(?:[-*+]\s+)?(?:\*\*|__)?(?P<key>[A-Za-z][A-Za-z _-]{1,24}?)(?:\*\*|__)?\s*:(?:\*\*|__)?\s+(?P<value>\S.*)$"
)
_STATUS = re.compile(r"^#{2,3}\s+status\s*\n+\s*(?P<value>\S[^\n]*)$", re.IGNORECASE | re.MULTILINE)
_NUMBER = re.compile(r"\b(?P<prefix>ADR|RFC|DEC|DR)[-_ ]?(?P<number>\d{1,5})\b", re.IGNORECASE)
_MATTER = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^(?:---|\.\.\.)[ \t]*\r?$", re.DOTALL | re.MULTILINE)
_HEADER_LINES = 40
_CLOSING = ("restricted", "private")
"""The zones that restrict a document."""


@dataclass
class Header(Record):
    """The fields of a header, all of them text or lists of text; `at` names the file."""

    dates: bool = True
    above: int = 0
    """Lines of front matter and of blank lines after it, at the top of the document."""
    matter: frozenset[str] = frozenset()
    """The fields of the front matter."""


def read_header(text: str, at: str) -> Header:
    """The header of a document.

    Raises:
        InputError: the front matter is not a YAML mapping; names file and line.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    header, body = Header(at, {}), text
    if found := _MATTER.match(text):
        header.fields = {key: value for key, value in _front_matter(found[1], at).items() if key in _KEYS}
        header.matter = frozenset(header.fields)
        body = text[found.end() :]
        header.above = text.count("\n") - body.lstrip().count("\n")
    for line in body.split("\n")[:_HEADER_LINES]:
        if line.startswith("## "):
            break
        if (match := _FIELD.match(line)) and (key := _key(match["key"])) in _KEYS:
            header.fields.setdefault(key, match["value"].strip("*` "))
    if "status" not in header.fields and (status := _STATUS.search(body)):
        header.fields["status"] = status["value"].strip("*_` ")
    if isinstance(tags := header.fields.get("tags"), str):
        header.fields["tags"] = [tag for each in tags.strip("[] ").split(",") if (tag := each.strip("`'\" "))]
    if isinstance(zone := header.fields.get("zone"), str):
        header.fields["zone"] = zone.strip().lower()
    return header


def front_matter(text: str) -> tuple[int, dict[str, Any]]:
    """The number of lines and the fields of YAML between two fences at the top; none if no text follows, or it is prose
    between two rules.
    """
    found = _MATTER.match(text)
    if found and text[found.end() :].strip():
        with suppress(InputError):
            if fields := _front_matter(found[1], ""):
                return text.count("\n", 0, found.end()) + 1, fields
    return 0, {}


def record_number(words: str) -> str | None:
    """The number of a decision in a title or file name: `ADR-011`."""
    found = _NUMBER.search(words)
    return f"{found['prefix'].upper()}-{found['number']}" if found else None


def _front_matter(matter: str, at: str) -> dict[str, Any]:
    value = parse(b"\n" + matter.encode("utf-8", "surrogatepass"), at)  # below the fence: lines are those of the file
    if not isinstance(value, dict | None):
        raise InputError.of_kind("front matter with fields", value, f"{at}:2")
    return {_key(name): _plain(one) for name, one in (value or {}).items()}


def _plain(value: Any) -> Any:
    """A value as text, a list as texts."""
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value if value is None or isinstance(value, dict) else str(value)


def _key(word: str) -> str:
    word = re.sub(r"[\s-]+", "_", word.strip())
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", word).lower()


def metadata_of(path: str, title: str | None, text: str, report: SourceReport) -> dict[str, Any]:
    """Columns from the header of a Markdown document; none if there is no header.

    Only a document that states both `entity` and `level` has one (S1.1): front matter of other tools uses words such as
    `date` and `zone` for other things; of that, only `tags` are used, and `title` by `chunking`. A malformed, incomplete
    or misspelled header still restricts its document: a zone outside the vocabulary counts as restricted, with a note in
    the report; private or restricted applies in any front matter, and front matter that cannot be read restricts the
    document if it mentions a zone.
    """
    found = _MATTER.match(text)
    matter = found[1].lower() if found else ""
    if "level" not in text.lower() and "zone" not in matter and "tags" not in matter:
        return {}
    closed: dict[str, Any] = {"zone": "restricted"} if re.search(r"\bzone\b", matter) else {}
    try:
        header = read_header(text, path)
        named = {"entity", "level"} & header.fields.keys()
        zone = header.value("zone")
        if not named and "zone" not in header.matter:
            zone = None
        zone = ZONES.aliases.get(str(zone), zone)
        closed = {"zone": zone} if zone in _CLOSING else {}
        entity, level = header.text("entity"), header.text("level")
        if not entity or not level:
            tags = header.strings("tags") if "tags" in header.matter else None
            return closed | ({"tags": tags} if tags else {})
        if zone is not None and zone not in ZONES:
            report.note(
                f"a zone that is none of {', '.join(ZONES.values)} counts as restricted", at=header.place("zone")
            )
            zone, closed = "restricted", {"zone": "restricted"}
        columns = {
            "document_type": entity,
            "entity": header.text("id") or record_number(title or ""),
            "level": level.lower(),
            "tags": header.strings("tags"),
            "zone": zone,
            "event_time": header.instant("date"),
            "evidence_kind": "decision-record" if entity.lower() == "decision" else None,
        }
    except InputError:
        report.note(f"an unreadable header was ignored{'; the document is restricted' if closed else ''}", at=path)
        return closed
    return {name: value for name, value in columns.items() if value is not None}
