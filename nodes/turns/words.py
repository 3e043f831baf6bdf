"""The closed lists of the context policy: kinds of events and sources, parts of a budget, phases, actions, reasons.

Every parser of such a value goes through `Vocabulary.canonical`. Each reason has its sentence, so every ledger row has
both a code and words.

Note: document 003 has two lists of trust levels. Both are readings of `standing`: see
`DECISION_TRUST` and `LEDGER_TRUST`.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..vocabulary import STANDINGS, Vocabulary

__all__ = [
    "ACTORS",
    "CAPABILITIES",
    "CONTENT_CLASSES",
    "DECISION_TRUST",
    "EVENT_ACTORS",
    "EVENT_KINDS",
    "FAILURE_LAYERS",
    "FORMS",
    "LEDGER_ACTIONS",
    "LEDGER_TRUST",
    "LEVELS",
    "LOWEST",
    "OBSERVATIONS",
    "OBSERVATION_CLASSES",
    "PARTS",
    "PHASES",
    "REASONS",
    "REQUIRED_PARTS",
    "RULES_NOT_READ",
    "SELECTION_GATES",
    "SOURCE_KINDS",
    "TRIM_ORDERS",
    "TURN_CONDITIONS",
]

EVENT_ACTORS: Mapping[str, str] = {
    "user.goal": "user",
    "user.message": "user",
    "user.constraint": "user",
    "user.confirmation": "user",
    "rules.system": "system",
    "rules.repository": "system",
    "file.read": "tool",
    "file.modified": "tool",
    "search.result": "tool",
    "command.finished": "tool",
    "tool.intent": "model",
    "tool.error": "tool",
    "permission.denied": "system",
    "permission.granted": "system",
    "plan.updated": "model",
    "history.summarized": "model",
    "memory.recalled": "memory",
    "memory.revoked": "memory",
    "external.result": "tool",
    "retrieval.snapshot.created": "system",
    "model.request": "system",
    "model.message": "model",
    "phase.changed": "system",
    "verification.finished": "tool",
    "constraint.ended": "user",
}
"""Kinds of events, with the speaker of each. The first fourteen kinds of information are those of S3.3."""

EVENT_KINDS = Vocabulary(
    "event_kind",
    tuple(EVENT_ACTORS),
    {
        "user_goal": "user.goal",
        "system_rules": "rules.system",
        "project_rules": "rules.repository",
        "read_file": "file.read",
        "read_files": "file.read",
        "search_results": "search.result",
        "search_result": "search.result",
        "test_logs": "command.finished",
        "test_log": "command.finished",
        "command_result": "command.finished",
        "tool.finished": "command.finished",
        "ToolFinished": "command.finished",
        "stdout": "command.finished",
        "stderr": "command.finished",
        "timeout": "command.finished",
        "file_diff": "file.modified",
        "tool_errors": "tool.error",
        "tool_error": "tool.error",
        "permission_denials": "permission.denied",
        "permission_denied": "permission.denied",
        "user_confirmations": "user.confirmation",
        "user_confirmation": "user.confirmation",
        "modified_files": "file.modified",
        "modified_file": "file.modified",
        "current_plan": "plan.updated",
        "compressed_history_summary": "history.summarized",
        "compaction": "history.summarized",
        "long_term_memory": "memory.recalled",
        "external_retrieval_results": "external.result",
        "model_request": "model.request",
        "tool_intent": "tool.intent",
        "assistant": "model.message",
        "verification": "verification.finished",
    },
)
OBSERVATIONS = ("file.read", "file.modified", "search.result", "command.finished", "tool.error", "permission.denied",
                "external.result", "verification.finished")  # fmt: skip
"""Kinds of events in which a tool call ends."""
ACTORS = Vocabulary("actor", ("user", "model", "tool", "system", "memory"))
OBSERVATION_CLASSES = Vocabulary(
    "observation_class",
    ("stdout", "stderr", "file_diff", "search_result", "permission_denied", "timeout", "file_content", "web_content"),
    {"test-log": "stdout", "diff": "file_diff"},
)
"""The six classes of S3.49, and text of files and of the web, which is isolated as well (S3.32)."""
CONTENT_CLASSES = Vocabulary(
    "content_class", ("fact", "guess", "stale", "ui_only", "audit_only", "rule", "untrusted_text")
)
"""The five classes of S3.4, and its two other kinds of text."""
SOURCE_KINDS = Vocabulary(
    "source_kind",
    (
        "system_rules",
        "repository_instructions",
        "user_goal",
        "active_constraint",
        "rule_conflict",
        "state_summary",
        "latest_observation",
        "recent_tail",
        "user_message",
        "pasted_text",
        "file_content",
        "search_match",
        "retrieval_result",
        "memory_candidate",
        "history_summary",
        "older_history",
        "tool_schema",
    ),
    {"memory_record": "memory_candidate", "constraint": "active_constraint", "snapshot": "retrieval_result"},
)
PARTS = Vocabulary(
    "part",
    ("rules", "user_goal", "state", "latest_observation", "recent_tail", "retrieval", "memory", "tools"),
    {"userGoal": "user_goal", "latestObservation": "latest_observation", "recentTail": "recent_tail"},
)
"""The eight parts of a budget (S3.34)."""
REQUIRED_PARTS = ("rules", "user_goal", "state")
"""Parts that every input has, or the turn fails with `over_budget`."""
DERIVED = "derived"
"""Origin of a phase that was not stated, but derived by an importer from what the session did."""
RUNNING = "running"
"""Subject of an event about a command that has not ended."""
PHASES = Vocabulary("phase", ("diagnosing", "planning", "editing", "verifying", "summarizing", "blocked"))
TRIM_ORDERS: Mapping[str, tuple[str, ...]] = {
    "default": ("references", "memory", "retrieval", "recent_tail", "latest_observation", "tools"),
    "s003": ("recent_tail", "retrieval", "memory", "references", "latest_observation", "tools"),
}
"""The order in which parts are cut when a budget binds: lowest priority first (C13), and the order of S3.37."""
CAPABILITIES = Vocabulary(
    "capability", ("read", "search", "run_read_only", "run", "write", "external", "external_read", "ask_user", "other")
)
"""What a tool can do; phases show tools by it (S3.57). `external` acts beyond the work tree, `other` is unknown."""
SELECTION_GATES = Vocabulary("gate", ("relevance", "currency", "trust", "permission", "worth"))
"""The five gates in the order in which they decide (S3.20)."""
LEDGER_ACTIONS = Vocabulary("action", ("include", "summarize", "reference", "exclude"))
FORMS = Vocabulary("mode", ("full", "excerpt", "summary", "reference", "none"))
LEVELS: Mapping[str, int] = {
    "system_rules": 1, "repository_instructions": 2, "user_goal": 3, "active_constraint": 3, "rule_conflict": 3, "state_summary": 4,
    "latest_observation": 5, "recent_tail": 6, "user_message": 6, "pasted_text": 7, "file_content": 7, "search_match": 7, "retrieval_result": 7,
    "memory_candidate": 8, "history_summary": 9, "older_history": 9, "tool_schema": 9,
}  # fmt: skip
"""The nine levels of S3.23 by kind of source; a reference to anything has level 9. Tool schemas are not part of the
messages.
"""
LOWEST = 9
"""Level of references, whatever they refer to."""
DECISION_TRUST: Mapping[str, str] = {
    "instruction": "instruction", "evidence": "fact", "history": "fact", "hint": "untrusted_text",
    "untrusted": "untrusted_text",
}  # fmt: skip
LEDGER_TRUST: Mapping[str, str] = {
    "instruction": "trusted", "evidence": "fact", "history": "fact", "hint": "untrusted", "untrusted": "untrusted",
}  # fmt: skip
assert set(DECISION_TRUST) == set(LEDGER_TRUST) == set(STANDINGS.values)

RULES_NOT_READ = (
    "rule_dependency", "rule_link", "rule_ignored", "rule_empty", "rule_conditional", "rule_of_tool", "rule_imported",
)  # fmt: skip
"""Reasons for not reading a rule file of the work tree."""
REASONS: Mapping[str, str] = {
    # shown
    "always_present": "present in every input of the session",
    "proposed": "a constraint or goal that another than the user proposes: a hint, not confirmed",
    "rule_in_scope": "rule that applies to the files and topics of the task",
    "rules_disagree": "two rules of different scopes may disagree: both are in the input, and neither replaces the other",
    "section_referenced": "rules are too long for their share: of this section, in which nothing reads as a duty, a reference",
    "section_on_demand": "rules for a topic that the task does not touch, with something that reads as a duty: a reference",
    "latest_result": "result of the last tool calls",
    "latest_summarized": "result of the last tool calls, summarized; the full text is an artifact",
    "key_event": "one of the last key events",
    "key_event_summarized": "one of the last key events, its output summarized",
    "user_message": "one of the last messages of the user",
    "constraint_referenced": "constraints are too long for their share: of this one, which is among the longest, a reference",
    "constraint_cut": "the message forbids or requires more than one constraint holds: the first and the last of it, and the whole by reference",
    "goal_shortened": "the goal would take more than half of the input: its beginning, what it forbids or requires, and the whole of it by reference",
    "pasted_with_goal": "pasted with the goal (code, a quotation, a log): it is shown as untrusted text, and instructs nothing",
    "message_shortened": "one of the last messages of the user, its first sections; the whole of it by reference",
    "long_text_cut": "longer than an event keeps: its beginning and end; the whole of it is an artifact",
    "current_content": "content of a file as it is now",
    "failing_stack": "file that the failure points to",
    "recently_modified": "file that was modified in this session",
    "beside_failing_case": "implementation beside the failing case",
    "public_api": "exported interface",
    "snapshot_item": "item of a retrieval snapshot",
    "verified_memory": "governed memory, verified and in scope; worded as a hint",
    "phase_tool": "tool of this phase",
    "history_kept": "summary of earlier rounds: tried, rejected, decided",
    # referenced
    "on_demand": "other match, to be opened on demand",
    "shown_in_tail": "its text is in an event of this input",
    "older_events": "earlier events, in the session log",
    "reference_for_budget": "no room for its text: reference kept",
    # left out
    "out_of_task_scope": "rule for files or topics that the task does not touch",
    "rule_left_out": "a rule that it names is not in this input",
    "outside_package": "outside the package of the task",
    "not_key_event": "no key event",
    "rules_of_log": "rules in a log are a record of what was said: only those that are given as rules instruct",
    "stale_version": "the file was modified after this was seen",
    "superseded": "a newer one of the same kind took its place",
    "expired": "expired",
    "may_have_changed": "the file may have changed since: by a later command or agent, or as later reads of other versions show",
    "unverified_recently": "not verified within the allowed age",
    "revoked": "revoked",
    "pasted_text": "pasted into a message of the user (code, a quotation, a log): it binds nothing, and the row of the message says what became of it",
    "ungoverned_memory": "no governed memory: scope, source, confidence, expiry or evidence is missing, or it is a candidate",
    "model_guess": "guess of the model that nothing confirmed",
    "wrong_scope": "memory of another scope",
    "low_confidence": "confidence below what the phase asks for",
    "ui_only": "for the user interface only",
    "audit_only": "for auditors only",
    "zone_denied": "zone that this turn may not see",
    "generated_file": "generated file, not to be edited by hand",
    "unnamed_instructions": "no instruction source of the contract: its text may not instruct",
    "rule_dependency": "rule file in a folder of dependencies: it is not read",
    "rule_link": "rule file that is a symbolic link, or behind one: it is not read",
    "rule_ignored": "rule file that Git ignores: it is not read",
    "rule_empty": "rule file without text",
    "rule_conditional": "rule file whose front matter says where it applies: it is not read; give its text in `rules` and its path in `instruction_sources`",
    "rule_of_tool": "rule file in the folder of one tool: it is not read; give its text in `rules` and its path in `instruction_sources`",
    "rule_imported": "file that a rule file imports: it is not read; give its text in `rules` and its path in `instruction_sources`",
    "phase_hidden_tool": "tool that this phase does not show",
    "unknown_capability": "tool of which nothing says what it can do: state its `capability` or its `phases`",
    "tail_limit": "beyond the number of events in the tail",
    "reasoning_cap": "beyond the limit on the share of the model's own words in the tail",
    "retrieval_cap": "beyond the number of retrieved items",
    "memory_cap": "beyond the number of memory hints",
    "duplicate": "another source has the same evidence or says the same, and its row says what became of it",
    "history_apart": "the newest summary of earlier rounds has a row of its own",
    "stands_above": "its text is shown under the goal or the constraints of this input",
    "proposed_apart": "a constraint or goal that another than the user proposes: what became of it says its row as a constraint",
    "proposal_cap": "beyond the number of proposals of others than the user",
    "snapshot_empty": "the retrieval snapshot selected nothing",
    "other_turn": "retrieved for another turn: its event lies before the horizon or behind this turn, or the turn names other snapshots",
    "before_horizon": "before the events that a turn looks at one by one: in the session log, and what it set holds through the state",
    "disclosure_cap": "beyond what the session may disclose of this part",
    "snapshot_missing": "the snapshot that the turn names was not found",
    "budget_part": "beyond the share of its part, and nothing else left room",
    "budget_tokens": "no room in the budget",
    "carrier_dropped": "the event that carries its text did not fit",
    "over_budget": "the turn failed: rules, goal, state and constraints alone are over the budget",
}
"""Every reason code of the ledger with its sentence."""

TURN_CONDITIONS = Vocabulary(
    "condition",
    ("logs_crowd_out_rules", "over_budget", "no_user_goal", "empty_session", "snapshot_missing", "tool_schema_too_large",
     "conflicting_rules", "instructions_in_output", "disclosure_capped", "secrets_masked", "constraints_crowd", "constraint_cut",
     "clock_backwards",
     "rules_not_found", "rules_left_out"),
)  # fmt: skip
FAILURE_LAYERS = Vocabulary(
    "failure_layer",
    ("retrieval_not_recalled", "ordering_not_ranked", "budget_cut", "summary_lost_constraint", "trust_isolation_missing",
     "model_did_not_use", "tool_execution_wrong", "verification_missing"),
)  # fmt: skip
"""The eight layers of S3.43, in the order in which they are checked."""
