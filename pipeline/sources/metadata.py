"""The metadata header of documents of a portfolio (S1.1), as columns of their rows.

Gives: `metadata_of`. Only a Markdown document that states both `entity` and `level` has one: front matter of other tools
uses words such as `date` and `zone` for other things.

What one would otherwise get wrong: a zone that is none of the vocabulary counts as restricted, and the report says so; a
header cannot open a document by a misspelling. Nor can another field: where a header is malformed elsewhere, its zone
still closes the document.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...nodes.errors import InputError
from ...nodes.vocabulary import ZONES
from .file_kinds import FileKind
from .files import microseconds
from .headers import Header, read_header, record_number
from .report import SourceReport

__all__ = ["metadata_of"]

_CLOSED = ("private", "restricted")
"""Zones above the default."""


def metadata_of(path: str, kind: FileKind, title: str | None, data: bytes, report: SourceReport) -> Mapping[str, Any]:
    """Columns that the header of a document fills; none where there is no header."""
    if kind.splitter != "markdown" or b"level" not in data:
        return {}
    try:
        header = read_header(data.decode("utf-8"), path)
    except InputError:
        report.note("a header that could not be read was left alone", at=path)
        return {}
    try:
        entity, level = header.text("entity"), header.text("level")
        if not entity or not level:
            return {}
        dated = header.instant("date")
        found = {
            "document_type": entity,
            "entity": header.text("id") or record_number(title or ""),
            "level": level.lower(),
            "tags": header.strings("tags"),
            "zone": _zone(header, report),
            "event_time": dated and microseconds(dated, path),
        }
    except InputError:
        report.note("a header that could not be read was left alone", at=path)
        zone = _zone(header, report)
        return {"zone": zone} if zone in _CLOSED else {}
    if entity.lower() == "decision":
        found["evidence_kind"] = "decision-record"
    return {name: value for name, value in found.items() if value is not None}


def _zone(header: Header, report: SourceReport) -> str | None:
    try:
        return header.zone()
    except InputError:
        report.note(f"a zone that is none of {', '.join(ZONES.values)} counts as restricted", at=header.place("zone"))
        return "restricted"
