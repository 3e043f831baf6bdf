"""Do two systems return the same rows? Up to ties: rows with the same score as the last one may replace each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Ranked = Sequence[tuple[np.ndarray, np.ndarray]]
"""Rows and scores per query, best first."""


def same_up_to_ties(ours: Ranked, peers: Ranked, *, tolerance: float = 1e-4) -> int:
    """How many queries were compared; every one of them has the same rows, those within `tolerance` of the last apart.

    Raises:
        AssertionError: two answers differ; the message names the query and counts rows.
    """
    assert len(ours) == len(peers), f"Expected {len(peers)} answers, got {len(ours)}"
    for number, ((own, own_score), (other, other_score)) in enumerate(zip(ours, peers, strict=True)):
        assert len(own) == len(other), f"Expected {len(other)} rows, got {len(own)} - at query {number}"
        if not len(own):
            continue
        assert (np.diff(own_score) <= 0).all(), f"Expected the best first - at query {number}"
        clear_own = own[own_score > own_score[-1] + tolerance]
        clear_other = other[other_score > other_score[-1] + tolerance]
        missing = [*np.setdiff1d(clear_other, own), *np.setdiff1d(clear_own, other)]
        assert not missing, f"Expected the same rows, got {len(missing)} others - at query {number}"
        assert np.allclose(own_score, other_score, atol=tolerance), f"Expected equal scores - at query {number}"
    return len(ours)
