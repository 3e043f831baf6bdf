"""Finds the generation that a run pinned when it began, if it still exists.

Note: a generation missing from one corpus may be in another, and the original folder may now contain another corpus or
a restored older copy. So a plan records the id, place and line of the corpus: only that corpus, at a later
number, can have lost the generation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...nodes.errors import StoreError
from ..storage.places import Place, place_of
from .manifest import UNSIGNED, Manifest, Trust, generations, has_corpus

__all__ = ["pinned_at"]


def pinned_at(plan: Mapping[str, Any], corpus: Place, trust: Trust = UNSIGNED) -> Place | None:
    """The corpus that has the generation of a run: the given one, or the one the run began with; None if it is gone.

    Raises:
        StoreError: it cannot be determined, as the corpus that the run began with is missing.
    """
    generation, pin = plan["settings"]["generation"], plan["pin"]
    if generation in generations(corpus, trust.chain(corpus)):
        return corpus
    if pin is None:
        return None
    if generation in generations(began := place_of(pin["path"]), UNSIGNED.chain(began)):
        return began
    if _lost_by(corpus, pin, trust) or _lost_by(began, pin, UNSIGNED):
        return None
    raise StoreError(
        f"Expected the corpus that the run began with, got {'another' if has_corpus(began) else 'none'} - at {began}",
        hint="restore the corpus, or start a new run",
    )


def _lost_by(corpus: Place, pin: Mapping[str, Any], trust: Trust) -> bool:
    """Whether the corpus that a run began with is here, at a later line.

    At the same number, it is a diverged copy.
    """
    if not has_corpus(corpus, trust):
        return False
    manifest = Manifest.read(corpus, trust.chain(corpus))
    return manifest.corpus_id == pin["corpus_id"] and manifest.number > pin["sequence"]
