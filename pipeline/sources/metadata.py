"""The metadata header of documents of a portfolio (S1.1), as columns of their rows.

Gives: `metadata_of`. Only a Markdown document that states both `entity` and `level` has one: front matter of other tools
uses words such as `date` and `zone` for other things; of that, `tags` are taken, and `title` by `chunking`.

Note: a header may be malformed, incomplete or misspelled, and still closes its document. A
zone of a header that is none of the vocabulary counts as restricted, and the report says so; one that says private or
restricted holds in any front matter and any spelling, readable or not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...nodes.errors import InputError
from ...nodes.vocabulary import ZONES
from .file_kinds import FileKind
from .files import microseconds
from .headers import Header, read_header, record_number
from .report import SourceReport

__all__ = ["metadata_of"]

_CLOSING = ("restricted", "private")
"""The zones that close a document, the closest first."""

_CLOSED = re.compile(
    rb"(?im)(?:^|[{,])[ \t]*[\"']?zone[\"']?[ \t]*:[ \t]*[\"']?(private|confidential|restricted)\b",
)
"""A field that closes a document, in front matter that cannot be read; a block or `{...}`."""
_FRONT_MATTER = re.compile(
    rb"\A(?:\xef\xbb\xbf)?---[ \t]*\r?\n(.*?)^(?:---|\.\.\.)[ \t]*\r?$", re.DOTALL | re.MULTILINE
)


def metadata_of(path: str, kind: FileKind, title: str | None, data: bytes, report: SourceReport) -> Mapping[str, Any]:
    """Columns that the header of a document fills; none where there is no header."""
    if kind.splitter != "markdown":
        return {}
    found = _FRONT_MATTER.match(data)
    matter = found[1] if found else b""
    if b"level" not in data.lower() and not any(word in matter.lower() for word in (b"zone", b"tags")):
        return {}
    header = None
    try:
        header = read_header(data.decode("utf-8"), path)
        entity, level = header.text("entity"), header.text("level")
        if not entity or not level:
            tags = header.strings("tags") if header.stands.get("tags", header.lines) < header.lines else None
            return {**_closed(header, matter), **({"tags": tags} if tags else {})}
        dated = header.instant("date")
        columns = {
            "document_type": entity,
            "entity": header.text("id") or record_number(title or ""),
            "level": level.lower(),
            "tags": header.strings("tags"),
            "zone": _zone(header, report),
            "event_time": dated and microseconds(dated, path),
        }
    except InputError:
        report.note("an unreadable header was ignored, except for a restrictive zone", at=path)
        zone = _zone(header, report) if header is not None else None
        return {"zone": zone} if zone in _CLOSING else _closed(header, matter)
    if entity.lower() == "decision":
        columns["evidence_kind"] = "decision-record"
    return {name: value for name, value in columns.items() if value is not None}


def _closed(header: Header | None, matter: bytes) -> Mapping[str, Any]:
    """The zone of a header that closes a document, whatever else it says; none where it closes nothing.

    Front matter that was read says so by its field, other front matter by its words. A line of the text counts beside
    `entity` or `level`.
    """
    fields = header.fields if header is not None else {}
    words: list[Any] = []
    if header is not None and "zone" in fields:
        counts = header.stands["zone"] <= header.lines or {"entity", "level"} & fields.keys()
        words = [fields["zone"]] if counts else []
    elif (header is None or not header.lines) and (found := _CLOSED.search(matter)):
        words = [found[1].decode()]
    words = words[0] if words and isinstance(words[0], list) else words
    zones = [ZONES.aliases.get(word, word) for word in (str(word).strip().lower() for word in words)]
    return next(({"zone": zone} for zone in _CLOSING if zone in zones), {})


def _zone(header: Header, report: SourceReport) -> str | None:
    try:
        return header.zone()
    except InputError:
        report.note(f"a zone that is none of {', '.join(ZONES.values)} counts as restricted", at=header.place("zone"))
        return "restricted"
