"""Context ledger: one row for every source of every turn, with the reason, and warnings about the turn.

Reads: sources and the decisions of every other step. Gives `context_decisions`, beside the sources, and
`turn_warnings`. No model sees either.

Note: sources that were left out have a row as well as those that were shown, with the last decision about them. A
gate's reason stays until the budget overrides it, and a reference that replaced a text is marked as such.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .context_tables import (
    CONTEXT_DECISIONS,
    TURN_WARNINGS,
    Compressed,
    ContextDecisions,
    ContextSources,
    ContextTurns,
    Fitted,
    ModelInputs,
    Ordering,
    RuleTexts,
    Selection,
    TurnStates,
    TurnWarnings,
)
from .turns.fitting import BODY, FALLBACK, LONGER, NONE
from .turns.folding import of_label
from .turns.levels import meeting
from .turns.reading import beside, with_sources
from .turns.words import DECISION_TRUST, LOWEST, REASONS, TURN_CONDITIONS, USER_WORDS

Row = Mapping[str, Any]

CROWDED = 0.8
"""Share of an input that logs and observations may take before a warning (S3.38)."""
STALE = ("stale_version", "superseded", "expired", "unverified_recently", "revoked")
_USER = ("user_goal", "active_constraint", "user_message")
_TAKEN = ("source_kind", "part", "standing", "path", "evidence_id", "reference", "characters", "masked")
"""Columns of a decision that are those of its source."""
_MADE = tuple(name for name in CONTEXT_DECISIONS.columns if name not in (*_TAKEN, "input_id", "source_id", "position"))


def context_decisions(
    context_sources: ContextSources, selection: Selection, ordering: Ordering, compressed: Compressed, fitted: Fitted
) -> ContextDecisions:
    """One row per source, in the order of the sources."""
    tables = (context_sources, selection, ordering, compressed, fitted)
    rows = [_decision(*each) for each in zip(*(table.to_pylist() for table in tables), strict=True)]
    made = {name: [row[name] for row in rows] for name in _MADE}
    return beside(CONTEXT_DECISIONS, context_sources, **made, **{name: context_sources[name] for name in _TAKEN})


def _decision(source: Row, chosen: Row, order: Row, form: Row, fit: Row) -> dict[str, Any]:
    shown, refused = fit["shown"], chosen["decided_by"] is not None
    text = form["longer"] if shown == LONGER else form["text"]
    mode = (
        "reference"
        if shown == FALLBACK
        else "none"
        if refused or shown == NONE
        else form["form"]
        if shown == BODY
        else "full"
        if form["whole"]
        else "excerpt"
    )
    reason = _reason(source, chosen, form, fit, mode)
    return {
        "content_class": "stale" if reason in STALE else source["content_class"],
        "action": {"none": "exclude", "reference": "reference", "summary": "summarize"}.get(mode, "include"),
        "mode": mode, "trust_level": DECISION_TRUST[source["standing"]],
        "decided_by": chosen["decided_by"] or ("budget" if fit["bound_by"] else None),
        "reason_code": reason, "reason": REASONS[reason], "level": LOWEST if mode == "reference" else order["level"],
        "place": order["place"] if shown != NONE else -1, "tokens": fit["tokens"] if shown != NONE else 0, "token_budget": fit["part_limit"],
        "shown_characters": len(text or "") if mode not in ("none", "reference") else 0,
        "summary_id": form["summary_id"] if shown == BODY and not refused else None,
        "original_ref": None if mode in ("full", "none") else form["original_ref"] if shown == LONGER else source["reference"],
    }  # fmt: skip


def _reason(source: Row, chosen: Row, form: Row, fit: Row, mode: str) -> str:
    """The code of the last decision on a source."""
    if chosen["decided_by"]:
        return chosen["reason_code"]
    if fit["bound_by"] == "over_budget":
        return "over_budget"
    cut = mode in ("reference", "excerpt") or fit["bound_by"]
    if cut and source["source_kind"] in _USER and source["part"] == "user_goal":
        return "user_words_referenced"
    if fit["shown"] == NONE and fit["bound_by"]:
        return str(fit["bound_by"])
    if fit["shown"] == FALLBACK:
        return "reference_for_budget"
    if mode == "reference" and not chosen["referenced"]:
        return "section_referenced" if source["part"] == "rules" else "user_words_referenced"
    if mode in ("excerpt", "summary"):
        kind, reasons = (
            source["source_kind"],
            {"latest_observation": "latest_summarized", "recent_tail": "key_event_summarized"},
        )
        return reasons.get(kind) or chosen["reason_code"]
    return chosen["reason_code"]


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


def turn_warnings(
    context_decisions: ContextDecisions,
    context_sources: ContextSources,
    model_inputs: ModelInputs,
    context_turns: ContextTurns,
    turn_states: TurnStates,
    rule_texts: RuleTexts,
) -> TurnWarnings:
    """The warnings about each turn, by turn and condition."""
    decisions = context_decisions.to_pylist()
    sources = context_sources.select(["source_kind", "standing", "row", "detail"]).to_pylist()
    rules = rule_texts.to_pylist()
    found = []
    turns, states, inputs = (
        with_sources(context_turns, context_sources),
        turn_states.to_pylist(),
        model_inputs.to_pylist(),
    )
    for (turn, part), state, made in zip(turns, states, inputs, strict=True):
        warned = dict(_warnings(decisions[part], sources[part], made, state, rules))
        found += [
            {"input_id": turn["input_id"], "condition": name, "message": MESSAGES[name] + warned[name]}
            for name in TURN_CONDITIONS.values
            if name in warned
        ]
    return TURN_WARNINGS.from_rows(found)


def _warnings(
    decisions: list[Row], sources: list[Row], made: Row, state: Row, rules: list[Row]
) -> Iterator[tuple[str, str]]:
    """The conditions of one turn, each with what its message adds."""
    if made["status"] == "over_budget":
        yield (
            "over_budget",
            f": {made['tokens']} tokens, {made['tokens'] - made['input_limit']} more than the limit of {made['input_limit']}",
        )
    if state["user_goal"] is None:
        yield "no_user_goal", ""
    if state["events"] == 0:
        yield "empty_session", ""
    if lost := [
        row["source_id"]
        for row in decisions
        if row["reason_code"] == "user_words_referenced"
        or (row["source_kind"] == "older_history" and not row["decided_by"] and _of_words(row["source_id"]))
    ]:
        yield "user_words_referenced", _named(lost)
    logs = sum(
        row["tokens"]
        for row in decisions
        if row["part"] in ("latest_observation", "recent_tail") and row["standing"] != "history"
    )
    if any(row["part"] == "rules" for row in decisions) and logs > CROWDED * made["tokens"]:
        yield "logs_crowd_out_rules", ""
    for name, mask in (
        ("snapshot_missing", [row["source_id"] for row in decisions if row["reason_code"] == "snapshot_missing"]),
        ("tool_schema_too_large", [row["source_id"] for row in decisions if row["part"] == "tools" and row["reason_code"] in ("budget_part", "budget_tokens")]),
    ):  # fmt: skip
        if mask:
            yield name, _named(mask)
    shown = [n for n, row in enumerate(decisions) if row["mode"] == "full"]
    if met := meeting([sources[n] for n in shown], rules):
        yield "conflicting_rules", _named([decisions[shown[place]]["source_id"] for place in sorted(met)])
    if any(row["masked"] for row in decisions if row["mode"] != "none"):
        yield "secrets_masked", ""


def _of_words(counted: str) -> bool:
    """Whether a row counts words of the user."""
    label = counted.removeprefix("older:")
    return not label.startswith("other ") and of_label(label)[0] in USER_WORDS


def _named(ids: list[str]) -> str:
    more = f" and {len(ids) - 6} more" if len(ids) > 6 else ""
    return f": {', '.join(ids[:6])}{more}"


__all__ = ["context_decisions", "turn_warnings"]
assert set(MESSAGES) <= set(TURN_CONDITIONS.values)
