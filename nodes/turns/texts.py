"""Both messages of an input from the form in which it shows each source; `context_budget` counts them,
`context_messages` keeps them, and a replay makes them again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .fitting import FALLBACK, NONE
from .frame import PLACE, assemble

__all__ = ["shown_texts"]


def shown_texts(
    shown: Sequence[str], isolated: Sequence[Mapping[str, Any]], ordering: Sequence[Mapping[str, Any]], style: str
) -> tuple[str, str]:
    """Both messages, with a NUL in place of the nonce."""
    bodies = [
        (PLACE["references"] if form == FALLBACK else lines["section"], order["place"], lines[form])
        for form, lines, order in zip(shown, isolated, ordering, strict=True)
        if form != NONE
    ]
    return assemble(((section, body) for section, _, body in sorted(bodies, key=lambda each: each[:2])), style)
