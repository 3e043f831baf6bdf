"""Layers: the layer at which a source was lost (S3.43) and the cause of its omission, by the reason in the ledger.

Gives `LAYER_OF`, `OMITTED_FOR`, `COVERED_BY` and `SAYS`.

Note: the eight layers do not cover all reasons. A source that a gate refuses was recalled, and neither its rank nor the
budget decided: it has no layer, and its reason explains it. A source whose text another row shows was not lost.
"""

from __future__ import annotations

from collections.abc import Mapping

from .later_use import SAYS as BEHIND

__all__ = ["COVERED_BY", "LAYER_OF", "OMITTED_FOR", "SAYS"]

SAYS: Mapping[str, str] = {
    "retrieval_not_recalled": "nothing that was gathered for this turn has it: neither a snapshot, nor the log, nor the rules",
    "ordering_not_ranked": "it was there, and others came first",
    "budget_cut": "it was chosen, and the budget had no room for it",
    "summary_lost_constraint": "the input has a shorter form of it that lacks sentences of the original",
    "trust_isolation_missing": "the input that was sent has its text outside of its fence",
    **BEHIND,
}
_LAYERS = {
    "retrieval_not_recalled": ("snapshot_empty",),
    "ordering_not_ranked": ("on_demand", "tail_limit", "reasoning_cap", "retrieval_cap", "memory_cap", "proposal_cap"),
    "budget_cut": ("budget_part", "budget_tokens", "over_budget", "reference_for_budget", "carrier_dropped", "section_referenced",
                   "message_shortened", "constraint_referenced", "constraint_cut", "goal_shortened"),
}  # fmt: skip
_OMITTED = {
    "budget": _LAYERS["budget_cut"],
    "permission": ("ui_only", "audit_only", "zone_denied", "unnamed_instructions", "rules_of_log", "disclosure_cap"),
    "staleness": ("stale_version", "superseded", "expired", "unverified_recently", "revoked"),
    "low relevance": (*_LAYERS["ordering_not_ranked"], "out_of_task_scope", "section_on_demand", "rule_left_out", "outside_package", "not_key_event", "generated_file",
                      "wrong_scope", "phase_hidden_tool", "unknown_capability", "before_horizon", "other_turn"),
    "doubtful source": ("pasted_text", "ungoverned_memory", "model_guess", "low_confidence"),
}  # fmt: skip
LAYER_OF: Mapping[str, str] = {reason: layer for layer, reasons in _LAYERS.items() for reason in reasons}
"""The layer of a reason. Reasons without one show a source, or belong to a gate."""
OMITTED_FOR: Mapping[str, str] = {reason: word for word, reasons in _OMITTED.items() for reason in reasons}
"""The cause of an omission by its reason."""
COVERED_BY: Mapping[str, tuple[str, ...]] = {
    "duplicate": (),
    "stands_above": ("goal", "constraint"),
    "proposed_apart": ("goal", "constraint"),
    "history_apart": ("history",),
    "pasted_text": ("event",),
}
"""Reasons of sources whose texts another row covers: one of the same evidence, of the same words, or of one of these
kinds and the same event.
"""
