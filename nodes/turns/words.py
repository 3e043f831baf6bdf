"""The closed lists of the context policy: kinds of events and sources, parts of a budget, phases, actions, reasons.

Every parser of such a value goes through `Vocabulary.canonical`. Each reason has its sentence, so every ledger row has
both a code and words.

Note: document 003 has two lists of trust levels. Both are readings of `standing`: see
`DECISION_TRUST` and `LEDGER_TRUST`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..vocabulary import STANDINGS, Vocabulary

EVENT_ACTORS: Mapping[str, str] = {
    "user.goal": "user", "user.message": "user", "user.constraint": "user", "user.confirmation": "user", "constraint.ended": "user",
    "rules.system": "system", "rules.repository": "system", "phase.changed": "system",
    "permission.requested": "model", "permission.denied": "system", "permission.granted": "system",
    "file.read": "tool", "file.modified": "tool", "search.result": "tool", "command.finished": "tool", "external.result": "tool",
    "tool.error": "tool", "tool.finished": "tool", "verification.finished": "tool", "work.changed": "system",
    "tool.intent": "model", "plan.updated": "model", "model.message": "model", "history.summarized": "model",
    "memory.recalled": "memory", "memory.revoked": "memory", "retrieval.snapshot.created": "system", "model.request": "system",
    "harness.message": "system",
}  # fmt: skip
"""Kinds of events, with the speaker of each. The fourteen kinds of information of S3.3 are among them."""
EVENT_KINDS = Vocabulary(
    "event_kind",
    tuple(EVENT_ACTORS),
    {
        "user_goal": "user.goal", "system_rules": "rules.system", "project_rules": "rules.repository", "read_file": "file.read",
        "read_files": "file.read", "search_results": "search.result", "search_result": "search.result", "test_logs": "command.finished",
        "test_log": "command.finished", "command_result": "command.finished", "ToolFinished": "command.finished",
        "stdout": "command.finished", "stderr": "command.finished", "timeout": "command.finished", "file_diff": "file.modified",
        "tool_errors": "tool.error", "tool_error": "tool.error", "permission_denials": "permission.denied",
        "permission_denied": "permission.denied", "user_confirmations": "user.confirmation", "user_confirmation": "user.confirmation",
        "modified_files": "file.modified", "modified_file": "file.modified", "current_plan": "plan.updated",
        "compressed_history_summary": "history.summarized", "compaction": "history.summarized",
        "long_term_memory": "memory.recalled", "external_retrieval_results": "external.result", "model_request": "model.request",
        "tool_intent": "tool.intent", "assistant": "model.message", "verification": "verification.finished",
    },
)  # fmt: skip
"""The kinds, and the names that document 003 uses for them."""
OBSERVATIONS = ("file.read", "file.modified", "search.result", "command.finished", "tool.finished", "tool.error", "permission.denied",
                "external.result", "verification.finished")  # fmt: skip
"""Kinds of events in which a tool call ends."""
USER_WORDS = ("user.goal", "user.message", "user.constraint", "user.confirmation", "constraint.ended")
"""Kinds that carry the user's own words, if the user is their actor."""
SILENT = ("rules.system", "rules.repository", "memory.recalled", "memory.revoked", "retrieval.snapshot.created", "model.request",
          "phase.changed", "work.changed")  # fmt: skip
"""Kinds that set something and say nothing to the model by themselves."""
UNSEEN = {"user-only": "ui_only", "runtime-only": "audit_only"}
"""Visibilities that the model does not have: the class of such a text, and the reason to leave it out."""
ACTORS = Vocabulary(
    "actor",
    ("user", "model", "tool", "system", "repository", "memory"),
    {"global": "system", "assistant": "model", "harness": "system"},
)
OUTCOMES = Vocabulary("outcome", ("succeeded", "failed", "timed_out", "interrupted", "running"))
CHECK_STATUSES = Vocabulary("check_status", ("passed", "failed", "unknown"))
OBSERVATION_CLASSES = {
    "file.read": "file_content", "file.modified": "file_diff", "search.result": "search_result", "permission.denied": "permission_denied",
    "external.result": "web_content", "tool.error": "stderr", "command.finished": "stdout", "tool.finished": "stdout",
    "verification.finished": "stdout",
}  # fmt: skip
"""The class of an observation by the kind of its event (S3.49); `timeout`, `stderr` and `file_diff` also by its fields."""
PARTS = Vocabulary(
    "part",
    ("rules", "user_goal", "state", "latest_observation", "recent_tail", "retrieval", "memory", "tools"),
    {"userGoal": "user_goal", "latestObservation": "latest_observation", "recentTail": "recent_tail"},
)
"""The eight parts of a budget (S3.34)."""
REQUIRED_PARTS = ("rules", "user_goal", "state")
"""Parts that every input has, or the turn fails with `over_budget`."""
PHASES = Vocabulary("phase", ("diagnosing", "planning", "editing", "verifying", "summarizing", "blocked"))
TRIM_ORDERS: Mapping[str, tuple[str, ...]] = {
    "default": ("references", "memory", "retrieval", "recent_tail", "latest_observation", "tools"),
    "s003": ("recent_tail", "retrieval", "memory", "references", "latest_observation", "tools"),
}
"""The order in which parts are cut when a budget binds: lowest priority first (C13), and the order of S3.37."""
CAPABILITIES = Vocabulary(
    "capability", ("read", "search", "run_read_only", "run", "edit", "ask_user", "external_read", "external"), {"write": "edit"}
)  # fmt: skip
"""What a tool can do; phases show tools by it (S3.57). `external_read` brings knowledge from outside, `external` acts there."""
MAY_CHANGE = ("run", "edit", "external", None)
"""Capabilities of tools that may change files without saying so; None = not declared."""


class Phase(NamedTuple):
    """What a phase of a task gives (S3.36)."""

    rules: float
    """Share of the whole input above which sections of repository rules without a duty become references."""
    shares: Mapping[str, float]
    """Shares of parts in what rules, goal and state leave; what a part does not need goes to those that are cut last."""
    capabilities: tuple[str, ...]
    """The tools that it shows."""
    full_characters: int
    """Longest text that is shown whole at first."""
    memory_items: int
    memory_confidence: float


def _shares(*of: float) -> Mapping[str, float]:
    return dict(zip(("latest_observation", "recent_tail", "retrieval", "memory", "tools"), of, strict=True))


_ASK = ("read", "ask_user")
_LOOK = (*_ASK, "search")
_WORK = (*_LOOK, "run_read_only", "run", "edit")
PHASE_POLICIES: Mapping[str, Phase] = {
    # search and reads
    "diagnosing": Phase(0.25, _shares(0.30, 0.15, 0.35, 0.05, 0.15), (*_LOOK, "run_read_only"), 1200, 4, 0.6),
    # source and constraints
    "planning": Phase(0.35, _shares(0.15, 0.15, 0.40, 0.10, 0.20), _LOOK, 800, 6, 0.5),
    # the source that is changed, and what must hold
    "editing": Phase(0.35, _shares(0.20, 0.15, 0.40, 0.05, 0.20), _WORK, 1200, 3, 0.6),
    # test logs and diffs
    "verifying": Phase(0.25, _shares(0.45, 0.20, 0.15, 0.05, 0.15), _WORK, 2400, 2, 0.7),
    # results of checks, and what was changed
    "summarizing": Phase(0.25, _shares(0.30, 0.40, 0.15, 0.05, 0.10), _ASK, 1200, 2, 0.7),
    # what is in the way, and whom to ask
    "blocked": Phase(0.30, _shares(0.35, 0.30, 0.15, 0.10, 0.10), _LOOK, 1200, 4, 0.6),
}
MEMORY_DAYS = 90
"""For so many days a memory stays verified."""
SELECTION_GATES = Vocabulary("gate", ("relevance", "currency", "trust", "permission", "worth"))
"""The five gates in the order in which they decide (S3.20)."""


class SourceKind(NamedTuple):
    """A kind of source: its level of S3.23, the reason to show one that no gate refuses, and its group in the input."""

    level: int
    shown: str
    group: str


SOURCE_KINDS: Mapping[str, SourceKind] = {
    "system_rules": SourceKind(1, "always_present", "system_rules"),
    "repository_instructions": SourceKind(2, "rule_in_scope", "repository_rules"),
    "user_goal": SourceKind(3, "always_present", "user_goal"),
    "active_constraint": SourceKind(3, "declared_constraint", "constraints"),
    "user_message": SourceKind(3, "user_words", "latest_words"),
    "state_summary": SourceKind(4, "always_present", "state"),
    "latest_observation": SourceKind(5, "latest_result", "observation"),
    "recent_tail": SourceKind(6, "key_event", "tail"),
    "file_content": SourceKind(7, "current_content", "evidence"),
    "search_match": SourceKind(7, "on_demand", "evidence"),
    "retrieval_result": SourceKind(7, "snapshot_item", "evidence"),
    "memory_candidate": SourceKind(8, "verified_memory", "memory"),
    "history_summary": SourceKind(9, "history_kept", "earlier"),
    "older_history": SourceKind(9, "older_events", "references"),
    "tool_schema": SourceKind(9, "phase_tool", "tools"),
}
"""A reference to anything has level 9. Tool schemas are not part of the messages."""
LOWEST = 9
"""Level of references, whatever they refer to."""
DECISION_TRUST: Mapping[str, str] = {
    "instruction": "instruction", "evidence": "fact", "history": "fact", "hint": "untrusted_text",
    "untrusted": "untrusted_text",
}  # fmt: skip
LEDGER_TRUST: Mapping[str, str] = {"instruction": "trusted", "fact": "fact", "untrusted_text": "untrusted"}
"""The level of the ledger by that of the decision."""
assert set(DECISION_TRUST) == set(STANDINGS.values)

REASONS: Mapping[str, str] = {
    # shown
    "always_present": "present in every input of the session",
    "declared_constraint": "constraint that the user, the repository or the system declared and that has not ended",
    "proposed": "a constraint or goal that another than the user proposes: a hint, not confirmed",
    "rule_in_scope": "rule that applies to the files and topics of the task",
    "user_words": "the user's own words, verbatim",
    "latest_result": "result of the last tool call",
    "latest_summarized": "result of the last tool call, its key part; the full text is an artifact",
    "key_event": "one of the last events",
    "key_event_summarized": "one of the last events, its key part; the full text is an artifact",
    "current_content": "content of a file as it was last read or written",
    "failing_stack": "file that the failure points to",
    "recently_modified": "file that was modified in this session",
    "beside_failing_case": "implementation beside the failing case",
    "public_api": "exported interface",
    "snapshot_item": "item of a retrieval snapshot",
    "verified_memory": "governed memory, verified and in scope; worded as a hint",
    "phase_tool": "tool of this phase",
    "history_kept": "summary of earlier rounds: tried, rejected, decided",
    # referenced
    "section_referenced": "rules are too long for their share: of this section a reference",
    "user_words_referenced": "the user's words are longer than their room: of the rest a reference",
    "on_demand": "other match, to be opened on demand",
    "older_events": "earlier events, in the session log",
    "reference_for_budget": "no room for its text: reference kept",
    # left out
    "out_of_task_scope": "rule for files or topics that the task does not touch",
    "outside_package": "outside the package of the task",
    "answered": "a call of a tool: its result is a source of its own",
    "says_nothing": "events that set something and say nothing",
    "rules_of_log": "rules in a log are a record of what was said: only those that are given as rules instruct",
    "stale_version": "the file was modified after this was seen",
    "superseded": "a newer one of the same kind took its place",
    "expired": "expired",
    "unverified_recently": "not verified within the allowed age",
    "revoked": "revoked",
    "ungoverned_memory": "no governed memory: scope, source, confidence, expiry or evidence is missing, or it is a candidate",
    "model_guess": "guess of the model that nothing confirmed",
    "wrong_scope": "memory of another scope",
    "low_confidence": "confidence below what the phase asks for",
    "ui_only": "for the user interface only",
    "audit_only": "for auditors only",
    "zone_denied": "zone that this turn may not see",
    "generated_file": "generated file, not to be edited by hand",
    "unnamed_instructions": "no instruction source of the contract: its text may not instruct",
    "rule_link": "rule file that is a symbolic link, or behind one: it is not read",
    "rule_ignored": "rule file that Git ignores: it is not read",
    "rule_imported": "file that a rule file imports: it is not read; give its text in `rules` and its path in `instruction_sources`",
    "phase_hidden_tool": "tool that this phase does not show",
    "undeclared_capability": "tool that does not declare its `capability` or its `phases`: it counts as external",
    "no_external_knowledge": "tool for knowledge from outside, which this turn does not declare to need",
    "tail_limit": "beyond the number of events in the tail",
    "memory_cap": "beyond the number of memory hints",
    "duplicate": "another source has the same evidence or says the same, and its row says what became of it",
    "snapshot_empty": "the retrieval snapshot selected nothing",
    "snapshot_missing": "the snapshot that the turn names was not found",
    "budget_part": "beyond the share of its part, and nothing else left room",
    "budget_tokens": "no room in the budget",
    "over_budget": "the turn failed: rules, goal, state and the user's words alone are over the budget",
}
"""Every reason code of the ledger with its sentence."""
RULES_NOT_READ = ("rule_link", "rule_ignored", "rule_imported")
"""Reasons for not reading a rule file of the work tree."""

TURN_CONDITIONS = Vocabulary(
    "condition",
    ("over_budget", "no_user_goal", "empty_session", "user_words_referenced", "logs_crowd_out_rules", "snapshot_missing",
     "tool_schema_too_large", "conflicting_rules", "secrets_masked", "records_skipped",
     "rules_not_found", "rules_left_out"),
)  # fmt: skip
FAILURE_LAYERS = Vocabulary(
    "failure_layer",
    ("retrieval_not_recalled", "ordering_not_ranked", "budget_cut", "summary_lost_constraint", "trust_isolation_missing",
     "model_did_not_use", "tool_execution_wrong", "verification_missing"),
)  # fmt: skip
"""The eight layers of S3.43, in the order in which they are checked."""
