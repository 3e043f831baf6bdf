"""The generation that a run pinned when it began: where it stands, if it still does.

What one would otherwise get wrong: a generation that one corpus lacks may stand in another. So a plan names the corpus
beside the generation, and it is gone where neither that corpus has it nor the one at hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..nodes.errors import StoreError
from .corpus.manifest import manifest_of
from .durable import stands
from .places import Place, place_of

__all__ = ["pinned_at"]


def pinned_at(plan: Mapping[str, Any], corpus: Place) -> Place | None:
    """The corpus that has the generation of a run: the one at hand, or the one that it began over; None if it is gone.

    Raises:
        StoreError: nobody can say now, as the corpus that it began over is not there.
    """
    generation, began = plan["settings"]["generation"], plan.get("corpus")
    if stands(manifest_of(corpus, generation)):
        return corpus
    if began is None:
        return None
    if stands(manifest_of(elsewhere := place_of(began), generation)):
        return elsewhere
    if not stands(elsewhere / "CURRENT"):
        raise StoreError(
            f"Expected the corpus that the run began with, got none - at {elsewhere}",
            hint=f"bring it back; if it moved to {corpus}, which has lost that generation, start a new run",
        )
    return None
