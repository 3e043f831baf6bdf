"""Named sets of weights, which a request or the setting `weights` may name in place of numbers."""

from __future__ import annotations

from collections.abc import Mapping

from ...nodes.score_terms import TERMS

__all__ = ["WEIGHT_SETS"]

WEIGHT_SETS: Mapping[str, Mapping[str, float]] = {
    "document-000": {term.name: 0.0 for term in TERMS if term.family != "role"}
    | {
        "semantic": 0.20, "lexical": 0.10, "anchor": 0.10, "authority": 0.20, "recency": 0.15, "actionability": 0.15,
        "diversity": 0.10,
    },
}  # fmt: skip
"""Name -> score term -> weight; every term that is weighted by anything but a role. `document-000` is the formula of
S0.95, whose lexical match with anchors is two terms.
"""
