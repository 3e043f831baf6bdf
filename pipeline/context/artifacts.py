"""The targets of references of a model input: long texts, by their digest, and loaded events."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...nodes.errors import InputError
from ..redaction.masking import redact_text
from .masking import masked_reference

__all__ = ["IDS", "REFERENCES", "Artifacts", "artifact"]

IDS = ("id", "eventId", "event_id")
"""Field names for the id of an event."""
REFERENCES = "a reference of these events: artifact:ID, event:ID or log:FIRST-LAST"


def artifact(text: str) -> str:
    """The reference of a text, derived from the text alone."""
    return f"artifact:{hashlib.sha256(text.encode()).hexdigest()[:32]}"


class Artifacts:
    """Opens references of the loaded events: `artifact:ID` for long texts, `event:ID` and `log:FIRST-LAST` for the
    events themselves. Secrets are masked when a text is opened.
    """

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self.events: Sequence[Mapping[str, Any]] = ()
        """The loaded events in order, unmodified."""

    def keep(self, text: str) -> str:
        """Store a text; returns its reference."""
        reference = artifact(text)
        self._texts[reference] = text
        return reference

    def says(self, reference: str | None, words: Callable[[str], object]) -> bool | None:
        """Whether a long text contains these words, also with its secrets masked; None if the text is not stored."""
        text = self._texts.get(reference or "")
        return None if text is None else bool(words(text) and words(redact_text(text)))

    @property
    def kept(self) -> list[str]:
        """The references of the long texts."""
        return list(self._texts)

    def open(self, reference: str, at: str = "reference") -> str:
        """The text of a reference; `at` names its owner in messages.

        Raises:
            InputError: no loaded event has it.
        """
        if reference in self._texts:
            return redact_text(self._texts[reference])
        if not (found := self._events(reference)):
            raise InputError.expected(REFERENCES, reference, at)
        indent, separators = (1, None) if reference.startswith("event:") else (None, (",", ":"))
        lines = [
            json.dumps(each, ensure_ascii=False, indent=indent, separators=separators, default=_plain) for each in found
        ]
        return masked_reference(reference, "\n".join(lines))

    def _events(self, reference: str) -> Sequence[Mapping[str, Any]]:
        """The events that a reference names."""
        kind, _, name = reference.partition(":")
        if kind == "event":
            return [
                each
                for each in self.events
                if str(next((each[id_] for id_ in IDS if each.get(id_) is not None), "")) == name
            ][:1]
        span = name.split("-")
        if kind == "log" and len(span) == 2 and all(part.isdecimal() for part in span):
            return self.events[int(span[0]) : int(span[1]) + 1]
        return ()


def _plain(value: Any) -> Any:
    """Text of values that JSON lacks: instants, and anything else a caller put into an event."""
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
