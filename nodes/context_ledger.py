"""Context ledger: one row for every source of a turn, with the reason, and warnings about the turn.

Reads: a turn with its fitted sources. Gives `decided`, the same with the last decision on each, and its tables
`context_decisions` and `turn_warnings`. No model sees either.

Note: sources that were left out have a row as well as those that were shown, with the last decision about them. A
gate's reason stays until the budget overrides it, and a reference that replaced a text is marked as such.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .context_tables import CONTEXT_DECISIONS, TURN_WARNINGS, ContextDecisions, TurnWarnings
from .turns.fitting import BODY, FALLBACK, LONGER, NONE, input_limit
from .turns.reading import Row, TurnSources
from .turns.words import DECISION_TRUST, LOWEST, REASONS, TURN_CONDITIONS, UNSEEN, USER_WORDS

CROWDED = 0.8
"""Share of an input that logs and observations may take before a warning (S3.38)."""
STALE = ("stale_version", "superseded", "expired", "unverified_recently", "revoked")
_CLASSES = {
    "instruction": "rule",
    "evidence": "fact",
    "history": "fact",
    "hint": "guess",
    "untrusted": "untrusted_text",
}
"""The class of a text that the turn may see by its standing (S3.4)."""
_USER = ("user_goal", "active_constraint", "user_message")


def decided(fitted: TurnSources) -> TurnSources:
    """Of every source the columns of CONTEXT_DECISIONS."""
    return fitted.adding(map(_decision, fitted.sources))


def context_decisions(decided: TurnSources) -> ContextDecisions:
    """One row per source, in the order of the sources."""
    return CONTEXT_DECISIONS.from_rows(decided.sources)


def _decision(source: Row) -> dict[str, Any]:
    shown, mode = source["shown"], _mode(source)
    text = source["longer"] if shown == LONGER else source["short"]
    reason, unseen = _reason(source, mode), UNSEEN.get(source["of"].get("visibility") or "")
    return {
        "content_class": "stale" if reason in STALE else _CLASSES[source["standing"]] if unseen is None else unseen,
        "action": {"none": "exclude", "reference": "reference", "summary": "summarize"}.get(mode, "include"),
        "mode": mode, "trust_level": DECISION_TRUST[source["standing"]],
        "decided_by": source["decided_by"] or ("budget" if source["bound_by"] else None),
        "reason_code": reason, "reason": REASONS[reason], "level": LOWEST if mode == "reference" else source["level"],
        "tokens": source["tokens"] if shown != NONE else 0,
        "shown_characters": len(text or "") if mode not in ("none", "reference") else 0,
        "summary_id": source["summary_id"] if shown == BODY and not source["decided_by"] else None,
        "original_ref": None if mode in ("full", "none") else source["original_ref"] if shown == LONGER else source["reference"],
    }  # fmt: skip


def _mode(source: Row) -> str:
    if source["shown"] == FALLBACK:
        return "reference"
    if source["decided_by"] is not None or source["shown"] == NONE:
        return "none"
    return source["form"] if source["shown"] == BODY else "full" if source["whole"] else "excerpt"


def _reason(source: Row, mode: str) -> str:
    """The code of the last decision on a source."""
    if source["decided_by"]:
        return source["reason_code"]
    if source["bound_by"] == "over_budget":
        return "over_budget"
    cut = mode in ("reference", "excerpt") or source["bound_by"]
    if cut and source["source_kind"] in _USER and source["part"] == "user_goal":
        return "user_words_referenced"
    if source["shown"] == NONE and source["bound_by"]:
        return str(source["bound_by"])
    if source["shown"] == FALLBACK:
        return "reference_for_budget"
    if mode == "reference" and not source["referenced"]:
        return "section_referenced" if source["part"] == "rules" else "user_words_referenced"
    summarized = {"latest_observation": "latest_summarized", "recent_tail": "key_event_summarized"}
    if mode in ("excerpt", "summary") and source["source_kind"] in summarized:
        return summarized[source["source_kind"]]
    return source["reason_code"]


MESSAGES: Mapping[str, str] = {
    "over_budget": "nothing is shown, because rules, goal, state and the user's words alone do not fit",
    "no_user_goal": "the session log has no goal of the user",
    "empty_session": "the session log has no event before this turn",
    "user_words_referenced": "words of the user are shown as references: they are longer than `userWordsTokens`, or than two fifths of the target",
    "logs_crowd_out_rules": "more than four fifths of the input are logs and observations",
    "snapshot_missing": "a retrieval snapshot that the turn names was not found",
    "tool_schema_too_large": "a tool of this phase is not shown: its schema has no room",
    "conflicting_rules": "rules of different levels apply to the same topic or files: each is an active constraint under its level",
    "secrets_masked": "a source had secrets: they are masked in the input",
}


def turn_warnings(decided: TurnSources) -> TurnWarnings:
    """The warnings about the turn, by condition."""
    warned, input_id = dict(_warnings(decided)), decided.turn["input_id"]
    return TURN_WARNINGS.from_rows([
        {"input_id": input_id, "condition": name, "message": MESSAGES[name] + warned[name]}
        for name in TURN_CONDITIONS.values if name in warned
    ])  # fmt: skip


def _warnings(given: TurnSources) -> Iterator[tuple[str, str]]:
    """The conditions of one turn, each with what its message adds."""
    rows, tokens, limit = given.sources, given.tokens, input_limit(given.turn)
    if given.failed:
        yield "over_budget", f": {tokens} tokens, {tokens - limit} more than the limit of {limit}"
    if given.state["user_goal"] is None:
        yield "no_user_goal", ""
    if given.turn["as_of_seq"] == 0:
        yield "empty_session", ""
    observed = [row for row in rows if row["part"] in ("latest_observation", "recent_tail")]
    logs = sum(row["tokens"] for row in observed if row["standing"] != "history")
    if any(row["part"] == "rules" for row in rows) and logs > CROWDED * tokens:
        yield "logs_crowd_out_rules", ""
    for name, concerns in (
        ("user_words_referenced", lambda row: row["reason_code"] == "user_words_referenced" or _counts_words(row)),
        ("snapshot_missing", lambda row: row["reason_code"] == "snapshot_missing"),
        ("tool_schema_too_large", lambda row: row["part"] == "tools" and row["reason_code"] in ("budget_part", "budget_tokens")),
        ("conflicting_rules", lambda row: row["met"] and row["mode"] == "full"),
    ):  # fmt: skip
        if ids := [row["source_id"] for row in rows if concerns(row)]:
            yield name, _named(ids)
    if any(row["masked"] for row in rows if row["mode"] != "none"):
        yield "secrets_masked", ""


def _counts_words(row: Row) -> bool:
    """Whether a row counts words of the user that the turn may see."""
    if row["source_kind"] != "older_history" or row["decided_by"]:
        return False
    return row["of"]["kind"] in USER_WORDS and not row["source_id"].startswith("older:other ")


def _named(ids: list[str]) -> str:
    more = f" and {len(ids) - 6} more" if len(ids) > 6 else ""
    return f": {', '.join(ids[:6])}{more}"


assert set(MESSAGES) <= set(TURN_CONDITIONS.values)
