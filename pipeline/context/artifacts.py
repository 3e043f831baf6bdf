"""The whole texts behind the references of a model input: `artifact:ID`, `event:ID` and `log:FIRST-LAST`.

Gives: `whole_text` of an event, `artifact`, the reference of a text, and `Artifacts`, which opens references.

Note: nothing is stored beside the events. A reference is derived from the masked text alone, so a long text is found by
reading the events again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from itertools import islice
from typing import Any

from ...nodes.errors import InputError
from ...nodes.turns.words import EVENT_KINDS
from ..redaction.masking import redact_text
from ..sources.jsonl import Record
from .flags import sight_of
from .masking import masked_values

EVENT_ID = ("id", "eventId", "event_id")
"""Names of the field with the id of an event."""
REFERENCES = "a reference of this session: artifact:ID, event:ID or log:FIRST-LAST"
_TEXTS = ("text", "message", "output", "diff")


def artifact(text: str) -> str:
    """The reference of a text, derived from the text alone."""
    return f"artifact:{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def payload_of(record: Record) -> Record:
    """The payload of an event; an event without one has its fields itself."""
    return record.mapping("payload") if record.value("payload") is not None else record


def kind_of_event(record: Record) -> str:
    """The canonical kind of an event.

    Raises:
        InputError: it has none, or one that is not in the vocabulary.
    """
    kind = record.word(EVENT_KINDS, "kind", "type")
    if kind is None:
        raise InputError.one_of(EVENT_KINDS.values, None, record.place("kind"))
    return kind


def whole_text(kind: str, payload: Record) -> str | None:
    """All that a masked event says: its text, else both streams; of a permission, the reason as well."""
    of_file = kind in ("file.read", "file.modified")  # there, `content` is the file
    text = payload.text(*_TEXTS) if of_file else payload.text(*_TEXTS, "content")
    parts = (text,) if text else (payload.text("stdout"), payload.text("stderr"))
    reason = payload.text("reason") if kind.startswith("permission.") else None
    given = [part for part in (*parts, reason) if part]
    return redact_text("\n".join(given)) if len(given) > 1 else next(iter(given), None)


def plain_json(value: Any) -> Any:
    """JSON of the values that it lacks and that callers put into events: instants and other mappings."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(type(value).__name__)


class Artifacts:
    """Opens the references of events, secrets masked. `events` returns them in their order, as they came."""

    def __init__(self, events: Callable[[], Iterable[Mapping[str, Any]]] = tuple) -> None:
        self._events = events

    def open(self, reference: str, at: str = "reference", zones: Collection[str] | None = None) -> str:
        """The text of a reference; `at` names its owner in messages. With `zones`, only of events that a turn with these
        zones may see.

        Raises:
            InputError: no event has it.
        """
        kind, _, name = reference.partition(":")
        first, _, last = name.partition("-")
        if kind == "log" and first.isdecimal() and last.isdecimal():
            found = self._masked(islice(self._events(), int(first), int(last) + 1), zones)
            if found:
                lines = (
                    json.dumps(event, ensure_ascii=False, separators=(",", ":"), sort_keys=True) for event in found
                )
                return "\n".join(lines)
        if kind == "event":
            for event in self._masked(self._events(), zones):
                if name in (str(event[each]) for each in EVENT_ID if event.get(each) is not None):
                    return json.dumps(event, ensure_ascii=False, indent=1, sort_keys=True)
        if kind == "artifact":
            for event in self._masked(self._events(), zones):
                record = Record("event", event)
                text = whole_text(kind_of_event(record), payload_of(record))
                if text is not None and artifact(text) == reference:
                    return text
        raise InputError.expected(REFERENCES, reference, at)

    def _masked(self, events: Iterable[Mapping[str, Any]], zones: Collection[str] | None) -> list[dict[str, Any]]:
        seen = (dict(event) for event in events if zones is None or _is_seen(event, zones))
        return masked_values(list(seen), "events[{}]".format)


def _is_seen(event: Mapping[str, Any], zones: Collection[str]) -> bool:
    record = Record("event", dict(event))
    sight = sight_of(record, payload_of(record))
    return sight.get("zone", "internal") in zones and sight.get("visibility", "model-visible") == "model-visible"
