"""Long texts as artifacts: their references, and the texts behind them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from ...nodes.errors import InputError
from ..redaction.masking import redact_text

__all__ = ["Artifacts", "artifact"]


def artifact(text: str) -> str:
    """The reference of a text: it follows from the text alone."""
    return f"artifact:{hashlib.sha256(text.encode()).hexdigest()[:32]}"


class Artifacts(Mapping[str, str]):
    """The long texts of events at hand, by reference; secrets are masked when a text is opened."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def keep(self, text: str) -> str:
        """Hold a text; returns its reference."""
        reference = artifact(text)
        self._texts[reference] = text
        return reference

    def __getitem__(self, reference: str) -> str:
        """The text behind a reference.

        Raises:
            InputError: no event at hand has it.
        """
        if reference not in self._texts:
            raise InputError.expected("the reference of an artifact of these events", reference, "reference")
        return redact_text(self._texts[reference])

    def __contains__(self, reference: object) -> bool:
        return reference in self._texts  # that of Mapping expects KeyError

    def __iter__(self):
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)
