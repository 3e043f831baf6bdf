"""Context ledger: one row for every source of every turn, with the reason, and warnings about the turn.

Reads: sources and the decisions of every other step. Gives `context_decisions` and `turn_warnings`. No model sees
either.

Note: sources that were left out have a row as well as those that were shown, with the last decision about them. A
gate's reason stays until the budget overrides it, and a reference that replaced a text is marked as such.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .columns.keys import (
    among,
    constants,
    flat,
    integers,
    objects,
    pair_positions,
    positions,
    rank_within,
    take_or,
    truth,
)
from .context_tables import (
    CONTEXT_DECISIONS,
    TURN_WARNINGS,
    Compressed,
    ContextDecisions,
    ContextSources,
    ContextTurns,
    Fitted,
    LogEvents,
    ModelInputs,
    Ordering,
    Selection,
    TurnStates,
    TurnWarnings,
)
from .turns.as_of import HORIZON, Sessions, before
from .turns.duties import TOPIC_WORDS
from .turns.found_lines import SHOWN_LINES
from .turns.joining import joined
from .turns.words import DECISION_TRUST, REASONS, TURN_CONDITIONS

Int = NDArray[np.int64]
Bool = NDArray[np.bool_]

MASK = "[REDACTED:"
"""Prefix of the masks of secrets."""
CROWDED = 0.8
"""Share of an input that logs and observations may take before a warning (S3.38)."""
CONSTRAINTS = 0.25
"""Share of an input's limit that constraints may take before a warning."""
STALE = ("stale_version", "superseded", "expired", "unverified_recently", "revoked")


def context_decisions(
    context_sources: ContextSources, selection: Selection, ordering: Ordering, compressed: Compressed, fitted: Fitted
) -> ContextDecisions:
    """One row per source, in the order of the sources."""
    key = (context_sources["input_id"], context_sources["source_id"])
    fit = pair_positions(key, (fitted["input_id"], fitted["source_id"]))
    form = objects(take_or(compressed["form"], fit, "none")).astype(str)
    shown = objects(take_or(fitted["shown"], fit, "none")).astype(str)
    bound = objects(take_or(fitted["bound_by"], fit, "")).astype(str)
    refused = np.asarray(flat(selection["decided_by"]).is_valid()).astype(bool)
    kind = flat(context_sources["source_kind"])
    beyond = refused & _quoted(context_sources, selection, form, shown)
    refused, shown = refused & ~beyond, np.where(beyond, "quoted", shown)
    carried = (shown == "quoted") | ((shown == "fallback") & (bound == ""))
    there = ~refused & (shown != "none")
    mode = np.where(there, np.where(np.isin(shown, ("fallback", "quoted")), "reference", form), "none")
    action = np.select(
        [mode == "none", mode == "reference", mode == "summary"], ["exclude", "reference", "summarize"], "include"
    )
    reason = _reasons(selection, kind, form, shown, bound, refused, carried)
    by_budget = constants(("budget", None)).take(pa.array(np.where((bound != "") & (fit >= 0), 0, 1)))
    decided = pc.coalesce(pc.if_else(pa.array(beyond), None, flat(selection["decided_by"])), by_budget)
    standing = flat(context_sources["standing"])
    stale = np.isin(reason, STALE)
    cut = pc.if_else(
        pa.array(mode == "reference"), flat(context_sources["reference"]), take_or(compressed["original_ref"], fit)
    )
    cut = pc.if_else(pa.array(carried), flat(selection["carrier"]), cut)
    return CONTEXT_DECISIONS.build(
        {
            **{name: context_sources[name] for name in ("input_id", "source_id", "position", "source_kind", "part", "standing", "path",
                                                        "evidence_id", "reference")},
            "content_class": pc.if_else(pa.array(stale), "stale", flat(context_sources["content_class"])),
            "action": pa.array(action, pa.string()),
            "mode": pa.array(mode, pa.string()),
            "trust_level": constants(tuple(DECISION_TRUST.values())).take(pc.index_in(standing, value_set=constants(tuple(DECISION_TRUST)))),
            "decided_by": decided,
            "reason_code": pa.array(reason, pa.string()),
            "reason": constants(tuple(REASONS.values())).take(pc.index_in(pa.array(reason, pa.string()), value_set=constants(tuple(REASONS)))),
            "level": np.where(mode == "reference", 9, integers(ordering["level"])).astype(np.int32),
            "place": np.where(np.isin(shown, ("body", "fallback")), integers(ordering["place"]), -1).astype(np.int32),
            "tokens": take_or(fitted["tokens"], fit, 0),
            "token_budget": take_or(fitted["part_limit"], fit, 0),
            "summary_id": pc.if_else(pa.array(there & (shown == "body")), take_or(compressed["summary_id"], fit), None),
            "original_ref": pc.if_else(pa.array(there), cut, None),
            "lost_sentences": take_or(compressed["lost_sentences"], fit, 0),
            "characters": context_sources["characters"],
            "shown_characters": np.where(there & (shown == "body") & (mode != "reference"), integers(pc.utf8_length(pc.fill_null(take_or(compressed["text"], fit), ""))), 0),
            "masked": _masked(context_sources),
        }
    )  # fmt: skip


def _quoted(sources: pa.Table, selection: pa.Table, form: NDArray[np.str_], shown: NDArray[np.str_]) -> Bool:
    """Matches over the cap on references whose line is shown in an event of the input: nothing is lost."""
    found = np.zeros(sources.num_rows, dtype=bool)
    some = np.flatnonzero(
        among(selection["reason_code"], ("retrieval_cap",)) & np.asarray(flat(selection["carrier"]).is_valid())
    )
    at = pa.array(some)
    asked = flat(sources["input_id"]).take(at), flat(selection["carrier"]).take(at)
    carrier = pair_positions(asked, (sources["input_id"], sources["source_id"]))
    found[some] = (shown[carrier] == "body") & np.isin(form[carrier], SHOWN_LINES)
    return found


def _reasons(
    selection: pa.Table,
    kind: pa.Array,
    form: NDArray[np.str_],
    shown: NDArray[np.str_],
    bound: NDArray[np.str_],
    refused: Bool,
    carried: Bool,
) -> NDArray[np.str_]:
    """The code of the last decision on each source."""
    reason = objects(selection["reason_code"]).astype(object)
    short = ~refused & (shown == "body") & np.isin(form, ("excerpt", "summary"))
    for name, code in (
        ("latest_observation", "latest_summarized"),
        ("recent_tail", "key_event_summarized"),
        ("file_content", "long_text_cut"),
    ):
        reason[short & (reason != "user_message") & among(kind, (name,))] = code
    reason[(short | (form == "reference")) & ~refused & (reason == "user_message")] = "message_shortened"
    reason[~refused & (form == "reference") & (reason == "rule_in_scope")] = "section_referenced"
    reason[~refused & (form == "reference") & among(kind, ("active_constraint",))] = "constraint_referenced"
    reason[~refused & (form == "excerpt") & among(kind, ("user_goal",))] = "goal_shortened"
    reason[~refused & (form == "excerpt") & (reason == "always_present")] = "constraint_cut"
    reason[carried] = "shown_in_tail"
    reason[~refused & (shown == "fallback") & ~carried] = "reference_for_budget"
    cut = ~refused & (shown == "none") & (bound != "")
    reason[cut] = bound[cut]
    return reason.astype(str)


def _masked(sources: pa.Table) -> NDArray[np.int32]:
    """The number of masked secrets in each source; each distinct text is searched once."""
    found = np.zeros(sources.num_rows, dtype=np.int64)
    for name in ("heading", "text"):
        encoded = flat(sources[name]).dictionary_encode()
        counts = pc.count_substring(encoded.dictionary, MASK)
        found += integers(pc.fill_null(counts.take(encoded.indices), 0))
    return found.astype(np.int32)


def turn_warnings(
    context_decisions: ContextDecisions,
    context_sources: ContextSources,
    model_inputs: ModelInputs,
    context_turns: ContextTurns,
    turn_states: TurnStates,
    log_events: LogEvents,
) -> TurnWarnings:
    """The warnings about each turn, by turn and condition."""
    turn = positions(context_decisions["input_id"], context_turns["input_id"])
    count = context_turns.num_rows

    def any_of(mask: Bool) -> Bool:
        found = np.zeros(count, dtype=bool)
        found[turn[mask]] = True
        return found

    part, tokens = flat(context_decisions["part"]), integers(context_decisions["tokens"])
    logged = among(part, ("latest_observation", "recent_tail")) & ~among(context_decisions["standing"], ("history",))
    logged &= ~among(context_decisions["source_kind"], ("history_summary",))
    logs = np.bincount(turn, weights=np.where(logged, tokens, 0), minlength=count)  # user messages are not logs
    whole = integers(model_inputs["tokens"])
    reason = flat(context_decisions["reason_code"])
    observed = np.flatnonzero(
        among(context_sources["source_kind"], ("latest_observation", "recent_tail", "file_content"))
    )
    row = integers(context_sources["row"])[observed]
    suspicious = np.zeros(len(turn), dtype=bool)
    suspicious[observed] = truth(log_events["suspicious"])[row]
    suspicious &= ~among(context_decisions["mode"], ("none",))
    too_large = among(part, ("tools",)) & among(reason, ("budget_part", "budget_tokens"))
    found = {
        "logs_crowd_out_rules": (logs > CROWDED * whole) & (whole > 0),
        "over_budget": among(model_inputs["status"], ("over_budget",)),
        "no_user_goal": np.asarray(flat(turn_states["user_goal"]).is_null()).astype(bool),
        "empty_session": integers(turn_states["events"]) == 0,
        "snapshot_missing": any_of(among(reason, ("snapshot_missing",))),
        "tool_schema_too_large": any_of(too_large),
        "conflicting_rules": _of_one_topic(context_decisions, context_sources, turn, count)
        | any_of(
            among(context_sources["source_kind"], ("rule_conflict",)) & ~among(context_decisions["mode"], ("none",))
        ),
        "instructions_in_output": any_of(suspicious),
        "secrets_masked": any_of(integers(context_decisions["masked"]) > 0),
        "constraints_crowd": any_of(among(reason, ("constraint_referenced",)))
        | (_bound(context_decisions, turn, count) > CONSTRAINTS * integers(model_inputs["input_limit"])),
        "constraint_cut": any_of(among(reason, ("constraint_cut",))),
        "disclosure_capped": any_of(among(reason, ("disclosure_cap",))),
        "clock_backwards": _clock_backwards(context_turns, log_events),
    }
    names = [name for name in TURN_CONDITIONS.values if name in found and found[name].any()]
    at = [np.flatnonzero(found[name]) for name in names]
    rows = np.concatenate(at) if at else np.empty(0, dtype=np.int64)
    which = np.repeat(np.arange(len(names)), [len(each) for each in at])
    about = flat(pc.replace_substring_regex(context_sources["source_id"], pattern=r"^(snapshot|tool):", replacement=""))
    named = pa.repeat("", len(rows))
    for name, mask in (
        ("snapshot_missing", among(reason, ("snapshot_missing",))),
        ("tool_schema_too_large", too_large),
    ):
        if name in names:
            details = joined(": ", _listed(turn[mask], about.filter(pa.array(mask)), count))
            named = pc.if_else(pa.array(which == names.index(name)), details.take(pa.array(rows)), named)
    table = TURN_WARNINGS.build(
        {
            "input_id": flat(context_turns["input_id"]).take(pa.array(rows)),
            "condition": pa.array(names, pa.string()).take(pa.array(which)),
            "message": joined(_messages(names, which, rows, model_inputs, context_turns), named),
        }
    )
    return table.take(pa.array(np.lexsort((which, rows)))).combine_chunks()


def _listed(turn: Int, name: pa.Array, count: int) -> pa.Array:
    """The first names of each turn in one text, and the number of the others."""
    order = np.argsort(turn, kind="stable")
    place = rank_within(turn[order])
    some = order[place < NAMED]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(turn[some], minlength=count))])
    text = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), name.take(pa.array(some))), ", ")
    more = np.maximum(np.bincount(turn, minlength=count) - NAMED, 0)
    rest = joined(" and ", pc.cast(pa.array(more), pa.string()), " more")
    return joined(text, pc.if_else(pa.array(more > 0), rest, ""))


def _messages(names: list[str], which: Int, rows: Int, inputs: pa.Table, turns: pa.Table) -> pa.Array:
    """The message of each condition; for a failed turn, with the size of its required parts and the excess."""
    messages = pa.array([MESSAGES[name] for name in names], pa.string()).take(pa.array(which))
    if "over_budget" not in names:
        return messages
    at = pa.array(rows)
    tokens, limit = integers(inputs["tokens"])[rows], integers(inputs["input_limit"])[rows]
    parts = flat(inputs["part_tokens"]).take(at)
    parts = pc.replace_substring(pc.binary_join(parts, ", "), pattern="=", replacement=" ")
    parts = pc.replace_substring_regex(parts, pattern=r"\b\w+ 0(?:, |$)", replacement="")
    window, answer = (flat(turns[name]).take(at) for name in ("max_tokens", "reserved_output_tokens"))
    numbers = (pa.array(tokens), pa.array(tokens - limit), pa.array(limit), window, answer)
    whole, lacks, most, window, answer = (pc.cast(each, pa.string()) for each in numbers)
    needed = joined(messages, ": ", whole, " tokens (", parts, "), ", lacks, " more than the limit of ", most)
    counted = joined(needed, " (a window of ", window, " less ", answer, " for the answer)")
    return pc.if_else(pa.array(which == names.index("over_budget")), counted, messages)


def _bound(decisions: pa.Table, turn: Int, count: int) -> Int:
    """The tokens of the instructing constraints of each turn."""
    held = among(decisions["source_kind"], ("active_constraint",)) & among(decisions["standing"], ("instruction",))
    return np.bincount(turn, weights=np.where(held, integers(decisions["tokens"]), 0), minlength=count).astype(np.int64)


NAMED = 3
"""Maximum number of snapshots or tools that a condition names."""
MESSAGES = {
    "logs_crowd_out_rules": "more than four fifths of the input are logs and observations",
    "over_budget": "nothing is shown, because rules, goal, state and constraints alone do not fit",
    "no_user_goal": "the session log has no goal of the user",
    "empty_session": "the session log has no event before this turn",
    "snapshot_missing": "a retrieval snapshot that the turn names was not found",
    "tool_schema_too_large": "a tool of this phase is not shown: its schema has no room",
    "conflicting_rules": "rules of different sources speak of the same thing: each is in the input under its source, and none replaces another",
    "instructions_in_output": "a tool's output or a file addresses the model with instructions; it is shown in its fence",
    "secrets_masked": "a source had secrets: they are masked in the input",
    "constraints_crowd": "constraints of the user take more than a quarter of the input: end those that no longer hold (`constraint.ended`)",
    "constraint_cut": "a message forbids or requires more than one constraint holds: some of it is left out; state it in several messages or as `user.constraint`",
    "disclosure_capped": "the session has disclosed as much of a part as it may",
    "clock_backwards": "an event has an earlier time than the one before it: the order of the log is kept",
}


def _clock_backwards(turns: pa.Table, events: pa.Table) -> Bool:
    """Turns whose last events contain a time earlier than that of the preceding event."""
    sessions = Sessions.of(turns)
    turn, row = before(sessions, sessions.codes(events["session_id"]), integers(events["seq"]), HORIZON)
    created = integers(flat(events["created_at"]).cast(pa.int64()))[row]
    back = (turn[1:] == turn[:-1]) & (created[1:] < created[:-1])
    found = np.zeros(turns.num_rows, dtype=bool)
    found[turn[1:][back]] = True
    return found


def _of_one_topic(decisions: pa.Table, sources: pa.Table, turn: Int, count: int) -> Bool:
    """Turns in which rules of two origins share a topic."""
    kinds = ("system_rules", "repository_instructions", "active_constraint")
    named = among(decisions["mode"], ("reference",)) & among(sources["source_kind"], kinds[:2])
    shown = ~among(decisions["mode"], ("none",)) & ~named
    rule = np.flatnonzero(among(sources["source_kind"], kinds) & shown)
    text = flat(sources["text"]).take(pa.array(rule)).dictionary_encode()
    texts = [each or "" for each in text.dictionary.to_pylist()]
    about = _about(texts)[np.asarray(text.indices).astype(np.int64)]
    kind = flat(sources["source_kind"]).take(pa.array(rule))
    origin = np.asarray(pc.index_in(kind, value_set=constants(kinds))).astype(np.int64)
    found = np.zeros((count, len(TOPIC_WORDS), len(kinds)), dtype=bool)
    for topic in range(len(TOPIC_WORDS)):
        mine = about[:, topic]
        found[turn[rule[mine]], topic, origin[mine]] = True
    return (found.sum(axis=2) > 1).any(axis=1)


def _about(texts: list[str]) -> Bool:
    """bool[texts, topics]: whether the text mentions the topic."""
    return np.array(
        [[words.search(each) is not None for words in TOPIC_WORDS.values()] for each in texts], dtype=bool
    ).reshape(-1, len(TOPIC_WORDS))
