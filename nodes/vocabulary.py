"""The closed lists of values, each declared once: canonical values in order, and the aliases used in documents.

Every parser of such a value uses `canonical`, so an error lists both values and aliases (the nearest, if there are
many). Arrow is not loaded here: every command reads settings, some of which have these values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from .errors import InputError
from .lanes import LANE_NAMES
from .score_terms import TERMS, named

LISTED = 12
"""Up to this number of aliases, the error for an unknown word lists them all."""


@dataclass(frozen=True)
class Vocabulary:
    """A closed list of values; `aliases` maps the words of other documents to them."""

    name: str
    values: tuple[str, ...]
    aliases: Mapping[str, str] = field(default_factory=dict)

    def canonical(self, value: object, at: str) -> str:
        """The canonical word for `value`.

        Raises:
            InputError: `value` is neither a value nor an alias of this list.
        """
        if isinstance(value, str):
            if value in self.values:
                return value
            if value in self.aliases:
                return self.aliases[value]
        raise InputError.one_of(self.values, value, at, hint=self._hint(value))

    def _hint(self, value: object) -> str:
        """The aliases; if there are more than `LISTED`, the values and aliases nearest to the value, nearest first."""
        aliases = {alias: f"{alias} = {word}" for alias, word in self.aliases.items()}
        if len(aliases) <= LISTED:
            return f"aliases: {', '.join(aliases.values())}" if aliases else ""
        named = {**{word: word for word in self.values}, **aliases}
        like = get_close_matches(value, named, cutoff=0.5) if isinstance(value, str) else []
        return f"nearest: {', '.join(named[each] for each in like)}" if like else ""

    def __contains__(self, value: object) -> bool:
        return value in self.values


ORIGIN_CLASSES = Vocabulary(
    "origin_class",
    (
        "workspace",
        "project-doc",
        "team-standard",
        "user-preference",
        "session-event",
        "artifact",
        "memory",
        "decision-record",
        "structured-sot",
        "external",
        "mcp-resource",
    ),
    {
        "current-workspace": "workspace",
        "verified-memory": "memory",
        "session": "session-event",
        "decision": "decision-record",
        "sot": "structured-sot",
        "mcp": "mcp-resource",
    },
)
EVIDENCE_KINDS = Vocabulary(
    "evidence_kind",
    (
        "doc",
        "code",
        "test-log",
        "memory",
        "session-event",
        "decision-record",
        "rule",
        "structured-fact",
        "tool-output",
    ),
    {"decision": "decision-record", "log": "test-log", "project-rule": "rule", "current-code": "code"},
)
PURPOSES = Vocabulary("purpose", ("fix-test", "explain-code", "review-risk", "answer-question"))
MODES = Vocabulary("mode", ("planning", "execution", "review"), {"debug": "review"})
LEVELS = Vocabulary(
    "level",
    ("portfolio", "venture", "offer", "engagement", "program", "project", "sprint", "task", "deliverable"),
)
"""From the widest to the narrowest (S1.3): offer, engagement and program are side by side below a venture, sprint,
task and deliverable below a project."""
INTENTS = Vocabulary("intent", ("find-error", "find-code", "find-rule", "find-memory", "find-decision"))
MERGE_POLICIES = Vocabulary("merge_policy", ("interleave-by-relevance", "authority-first", "evidence-balanced"))
OUTPUT_SHAPES = Vocabulary("output_shape", ("context-block", "citation-pack", "model-brief"))
REQUIRED_EVIDENCE = Vocabulary(
    "required_evidence",
    ("current-code", "test-log", "project-rule", "verified-memory", "decision-record"),
    {"code": "current-code", "rule": "project-rule", "memory": "verified-memory", "decision": "decision-record"},
)
EVIDENCE_NEEDS: dict[str, tuple[str, str | None]] = {
    "current-code": ("code", None),
    "test-log": ("test-log", None),
    "project-rule": ("rule", None),
    "verified-memory": ("memory", "verified"),
    "decision-record": ("decision-record", None),
}
"""Required evidence: the kind that satisfies it, and the lifecycle it must have."""
ACCEPTED_AUTHORITY = Vocabulary(
    "accepted_authority",
    ("current-workspace", "project-doc", "verified-memory", "session-event"),
    {"workspace": "current-workspace"},
)
LIFECYCLES = Vocabulary(
    "lifecycle",
    ("candidate", "verified", "deprecated", "expired", "revoked"),
    {
        "pending": "candidate",
        "active": "verified",
        "approved": "verified",
        "superseded": "deprecated",
        "stale": "deprecated",
        "rejected": "revoked",
        "forgotten": "revoked",
        "blocked": "revoked",
    },
)
"""Memory states. `conflicted` and `private` are not states: see `conflict_set` and `owner_user` (C4, C5)."""
ZONES = Vocabulary("zone", ("public", "internal", "private", "restricted"), {"confidential": "private"})
VISIBILITIES = Vocabulary("visibility", ("model-visible", "user-only", "runtime-only", "denied"))
MASKS = Vocabulary("mask", ("email", "absolute-path"))
"""Classes of text that a purpose may mask at projection."""
SAFETIES = Vocabulary("safety", ("safe", "requires-review", "blocked"))
STANDINGS = Vocabulary(
    "standing",
    ("instruction", "evidence", "history", "hint", "untrusted"),
    {
        "trusted": "instruction",
        "fact": "evidence",
        "untrusted_text": "untrusted",
        "untrusted-observation": "untrusted",
        "weak-signal": "hint",
    },
)
AUTHORITY = Vocabulary("authority", ("untrusted", "general", "preferred", "authoritative"), {
    "0": "untrusted", "1": "general", "2": "preferred", "3": "authoritative",
    "low": "untrusted", "medium": "general", "high": "preferred",
})  # fmt: skip
"""Rank is the position: untrusted 0, general 1, preferred 2, authoritative 3. `high` is read as 2, the minimum (C3)."""
INTENT_SOURCES = Vocabulary("intent_source", ("model", "policy", "runtime"))
RECALL_EFFORTS = Vocabulary("recall_effort", ("none", "minimal", "full", "graph"))
LANES = Vocabulary("lane", LANE_NAMES)
OUTCOMES = Vocabulary("outcome", ("selected", "hidden", "rejected"))
FORMS = Vocabulary(
    "form",
    ("full", "excerpt", "summary", "fact", "reference", "conflict-note", "hint", "none"),
    {"original-excerpt": "excerpt", "structured-fact": "fact", "citation-list": "reference",
     "conflict-warning": "conflict-note", "weak-signal": "hint", "runtime-only": "none"},
)  # fmt: skip
STATUSES = Vocabulary("status", ("ok", "empty", "denied", "partial", "failed", "erased"))
CONDITIONS = Vocabulary(
    "condition",
    (
        "healthy",
        "no_overlay",
        "no_strong_match",
        "stale_dominant",
        "forbidden_hit",
        "conflicting",
        "low_diversity",
        "lane_failed",
        "lane_off",
        "sot_stale",
        "fact_mismatch",
        "over_budget",
        "budget_unused",
        "unverified_only",
        "missing_evidence",
        "wall_disagreement",
        "request_failed",
        "snapshot_missing",
        "nothing_granted",
        "source_unmatched",
        "rights_withdrawn",
    ),
)
ACTIONS = Vocabulary("action", ("continue", "warn", "degrade", "block"))
"""In order: the worst action of a set is the last of these that occurs."""
STAGES = Vocabulary(
    "stage",
    ("resolve", "plan", "recall", "gate", "merge", "rank", "select", "pack", "trim", "cite", "snapshot", "project"),
)
CITATION_STYLES = Vocabulary("citation_style", ("inline", "footnote", "bundle_only"))
FRESHNESS = Vocabulary("freshness", ("fresh", "aging", "stale", "undated"))
AUDIT_CONDITIONS = frozenset({"forbidden_hit"})
"""Conditions about withheld rows: callers never see them."""
ROLE_TERMS = named("role")
"""The score terms of a role; without a role their weight is 0."""
TURN_TERMS = named("turn")
"""The score terms of turns of a conversation; 0 for any other row."""
FILE_TERMS = named("file")
"""The score terms of a file of source code: the same for each of its rows, 0 for any other row."""
FEEDBACK_TERMS = named("feedback")
"""The score terms of relevance feedback: similarity to a request's best rows."""
SCORE_TERMS = (*named("plain", "turn", "role", "cross_encoder", "file"), *FEEDBACK_TERMS)
"""The score terms of S0.94, then those of turns, roles, the cross-encoder, files and feedback, as they are added."""
PURPOSE_TERMS = tuple(term.name for term in TERMS if term.under_roles and not term.share)
"""Score terms that only a purpose weighs, even under a role."""
WEIGHED_TERMS = tuple(name for name in SCORE_TERMS if name not in ROLE_TERMS)
"""Score terms weighed by purposes and requests; the others are weighed only by roles."""
