"""Why: what a model input says about an expected source, and at which layer it was lost; and what changed
between two inputs.

Reads a projection, and if available the session log behind it, its retrieval snapshots, and the input as it was sent.
Gives `why` (S3.11, S3.43, S3.44) and `difference`.

Note: the layers are looked at in the order in which a source passes them. The last three are those of `afterwards`.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from ...nodes.errors import InputError
from ...nodes.turns.words import LEVELS
from .afterwards import SAYS as BEHIND
from .afterwards import Traces, afterwards, names_of, names_of_file
from .events import LogTables
from .projection import Projection
from .sought import Log, are_of_path, finding, is_named, is_of_file, meant, spellings

__all__ = ["difference", "why"]

Row = Mapping[str, Any]

_OMITTED = {
    "budget": ("budget_part", "budget_tokens", "over_budget", "reference_for_budget", "carrier_dropped", "disclosure_cap", "section_referenced",
               "message_shortened", "constraint_referenced", "goal_shortened"),
    "permission": ("ui_only", "audit_only", "zone_denied", "unnamed_instructions", "rules_of_log"),
    "staleness": ("stale_version", "superseded", "expired", "unverified_recently", "revoked"),
    "low relevance": ("out_of_task_scope", "outside_package", "not_key_event", "generated_file", "wrong_scope", "phase_hidden_tool", "on_demand",
                      "unknown_capability", "tail_limit", "reasoning_cap", "retrieval_cap", "memory_cap", "low_confidence", "duplicate", "history_apart", "before_horizon",
                      "other_turn"),
    "doubtful source": ("pasted_text", "ungoverned_memory", "model_guess", "snapshot_missing", "snapshot_empty"),
}  # fmt: skip
_RANKED_OUT = ("on_demand", "tail_limit", "reasoning_cap", "retrieval_cap", "memory_cap", "low_confidence")
_NAME = re.compile(r"\S*(?:[/:]\S+|\.\w{1,5})")
"""Paths and ids: the ledger has them, whatever became of their texts."""
_BEHIND = re.compile(r" Prefer verifying it first\.\Z| \((?:its beginning; )?full text: [^)]*\)\Z")
"""What the lines of a hint or of an event say behind its words."""
_CONTENT = 'source="file_content"'
"""How the fence of a file that was read names its class."""
_WORDED = (
    "system_rules",
    "repository_instructions",
    "memory_candidate",
    "retrieval_result",
    "search_match",
    "pasted_text",
)
_BINDING = ("system_rules", "repository_instructions", "active_constraint", "rule_conflict")
"""Kinds that say what to do: the model follows them, and seldom says so."""
_EVENTS = ("recent_tail", "latest_observation", "user_message", "file_content", "older_history")
_SNAPSHOT_LAYER = {
    "rank": "ordering_not_ranked",
    "select": "ordering_not_ranked",
    "pack": "ordering_not_ranked",
    "trim": "budget_cut",
}
SAYS = {
    "retrieval_not_recalled": "nothing that was gathered for this turn has it: neither a snapshot, nor the log, nor the rules",
    "ordering_not_ranked": "it was there, and others came first",
    "budget_cut": "it was chosen, and the budget had no room for it",
    "summary_lost_constraint": "the input has a shorter form of it that lacks sentences of the original",
    "trust_isolation_missing": "the input that was sent has its text outside of its fence",
    **BEHIND,
}


def why(
    seen: Projection,
    expected: str,
    *,
    events: LogTables | None = None,
    snapshots: Mapping[str, Sequence[Row]] | None = None,
    sent: str | None = None,
) -> dict[str, Any]:
    """What became of a source in an input.

    Args:
        seen: the projection.
        expected: a path or the end of one, an id of a source or of evidence, or words that it says or runs.
        events: the session log, to find what lies before the horizon, words, and what the model did afterwards.
        snapshots: decisions of the turn's retrieval snapshots, by snapshot id.
        sent: the input as it was sent, as text, JSON or lines of JSON, where another program made it.

    Raises:
        InputError: nothing is asked for.
    """
    if not expected.strip():
        raise InputError.expected("a path, an id, or words", None, "EXPECTED")
    log = Log.of(seen, events or LogTables.empty())
    names = spellings(seen, expected)
    rows, worded = meant(seen, names, log)
    rows = _with_same(seen, rows)
    if worded:
        rows = _with_showing(seen, rows, expected)
    mentions = worded and is_of_file(names, rows, snapshots or {})
    answer: dict[str, Any] = {"input_id": seen.input_id, "expected": expected, "layer": None, "omitted_for": None, "answer": "", "sources": [],
                              "kept_instead": []}  # fmt: skip
    answer["sources"] = [
        {
            name: row[name]
            for name in (
                "source_id",
                "source_kind",
                "path",
                "action",
                "mode",
                "decided_by",
                "reason_code",
                "reason",
                "tokens",
                "original_ref",
            )
        }
        for row in rows
    ]
    if sent is not None and (found := _unfenced(seen, rows, log, sent)):
        return _at(answer, "trust_isolation_missing", found)
    if not rows:
        if finding(expected.casefold(), str.casefold)(seen.text()):
            return answer | {"answer": "its words are in the input"}
        found = _in_snapshots(answer, names, snapshots or {})
        if found["answer"] != SAYS["retrieval_not_recalled"]:
            return found
        if (span := _unlisted(seen)) and not log.events:
            said = f"no row of this record is it, and events {span} share one row, `older`: ask with their log (`--log LOG`)"
            return answer | {"answer": said}
        if unread := _unread(seen, expected, log):
            said = f"no available text has it, and the texts of {unread} sources are not available: ask by path or id, or with the log"
            return answer | {"answer": said}
        return found
    if not mentions:
        notes = [] if worded or not are_of_path(names, rows) else _notes(seen, rows)
        content = [row for row in rows if row not in notes]
        if not content or any(row["action"] != "exclude" for row in content):
            return _of_rows(answer, seen, rows, log, words=expected if worded else None)
        told = [row["source_id"] for row in notes if row["action"] != "exclude"]
        found = _of_rows(answer, seen, content, log)
        more = f"; {', '.join(told)} in the input is about the file, without its content" if told else ""
        return found | {"answer": f"{found['answer']}{more}"}
    found = _in_snapshots(answer, names, snapshots or {})
    if found["answer"] != SAYS["retrieval_not_recalled"]:
        return found | {"sources": []}
    found = _of_rows(answer, seen, rows, log, file=names[-1])
    span = None if log.events else _unlisted(seen)
    more = f"; events {span} share one row, `older`: ask with their log (`--log LOG`)" if span else ""
    return found | {"answer": f"no source is this file, and others mention it: {found['answer']}{more}"}


def _of_rows(
    answer: dict[str, Any],
    seen: Projection,
    rows: Sequence[Row],
    log: Log,
    *,
    words: str | None = None,
    file: str | None = None,
) -> dict[str, Any]:
    """What became of the best shown of some rows, which say `words` if those were asked for; `file` is the one that was asked for, if
    they merely mention it.
    """
    shown = {each["source_id"] for each in rows if words is None or _shows(seen, each, words)}
    row = min(
        rows,
        key=lambda each: (
            each["source_id"] not in shown,
            ("include", "summarize", "reference", "exclude").index(each["action"]),
            LEVELS[each["source_kind"]],
        ),
    )
    answer["omitted_for"] = next((word for word, codes in _OMITTED.items() if row["reason_code"] in codes), None)
    if row["lost_sentences"] and row["mode"] != "none":
        return _at(
            answer,
            "summary_lost_constraint",
            f"{SAYS['summary_lost_constraint']} ({row['lost_sentences']}); the original: {row['original_ref']}",
        )
    if row["reason_code"] in _OMITTED["budget"]:
        others = [
            each
            for each in seen.decisions
            if each["part"] == row["part"] and each["mode"] in ("full", "excerpt", "summary")
        ]
        answer["kept_instead"] = sorted({each["path"] or each["source_id"] for each in others})
        kept = ", ".join(answer["kept_instead"]) or "nothing else of its part"
        return _at(answer, "budget_cut", f"{SAYS['budget_cut']}: it kept {kept}")
    if row["reason_code"] in _RANKED_OUT:
        return _at(answer, "ordering_not_ranked", f"{SAYS['ordering_not_ranked']}: {row['reason']}")
    if row["action"] == "exclude":
        answer["answer"] = f"left out: {row['reason']}"
        if row["reason_code"] == "before_horizon":
            answer["answer"] += f": open {row['reference']}"
            answer["answer"] += f" (the record has one row for events {_unlisted(seen)}, `older`)" * (row in log.early)
        elif row["source_kind"] == "search_match" and f"\n| {row['reference']}:" in seen.text():
            answer["answer"] += "; its line is in the observation that found it"
        return answer
    answer["answer"] = f"it is in the input ({row['mode']}): {row['reason']}"
    if row["reason_code"] == "shown_in_tail":
        answer["answer"] += f", {row['original_ref']}"
    if row["source_id"] not in shown:
        answer["answer"] += f"; these words are not in what is shown of it: open {row['reference']}"
    of_row = Traces(names_of(row), row["path"], _told(seen, row["source_id"], log))
    traces = of_row if file is None else Traces(names_of_file(file), file)
    lost = afterwards(seen.turn["as_of_seq"], log.events, traces)
    # Who obeys a rule about a file may never name it.
    obeyed = (
        lost is not None and lost[0] == "model_did_not_use" and any(each["source_kind"] in _BINDING for each in rows)
    )
    return answer if lost is None or obeyed else _at(answer, *lost)


def _with_same(seen: Projection, rows: list[Row]) -> list[Row]:
    """Rows with those of the items that have the same evidence in place of their duplicates: theirs say what became of it."""
    copied = {row["evidence_id"] for row in rows if row["reason_code"] == "duplicate"}
    kept = [row for row in rows if row["reason_code"] != "duplicate"]
    ids = {row["source_id"] for row in kept}
    others = (row for row in seen.decisions if row["evidence_id"] in copied and row["reason_code"] != "duplicate")
    return [*kept, *(row for row in others if row["source_id"] not in ids)]


def _with_showing(seen: Projection, rows: list[Row], words: str) -> list[Row]:
    """Rows that say some words; if the input shows them of none, also those of other kinds of which it does, as the state."""
    if any(_shows(seen, row, words) for row in rows):
        return rows
    has = finding(_plain(words), str)
    ids, textual = {row["source_id"] for row in rows}, ("full", "excerpt", "summary")
    others = (row for row in seen.decisions if row["mode"] in textual and row["source_id"] not in ids)
    return [*rows, *(row for row in others if has(_plain(seen.lines.get(row["source_id"], ""))))]


def _notes(seen: Projection, rows: Iterable[Row]) -> list[Row]:
    """The rows of events that are about a file and do not have its content: edits, calls, failures."""
    return [
        row
        for row in rows
        if row["source_kind"] == "recent_tail"
        or (row["source_kind"] == "latest_observation" and _CONTENT not in seen.lines.get(row["source_id"], _CONTENT))
    ]


def _shows(seen: Projection, row: Row, words: str) -> bool:
    """Whether what an input shows of a source has some words; a full one has those that it says."""
    has = finding(_plain(words), str)
    if row["mode"] == "full" or row["action"] == "exclude":
        return row["mode"] == "full"
    return all(has(_plain(each)) for each in (seen.lines.get(row["source_id"], ""), seen.text()))


def _plain(text: str) -> str:
    """A text without margins, however its lines are broken, and in any case."""
    return " ".join(re.sub(r"(?m)^[|-] ", "", text).split()).casefold()


def _at(answer: dict[str, Any], layer: str, words: str) -> dict[str, Any]:
    return answer | {"layer": layer, "answer": words}


def _unlisted(seen: Projection) -> str | None:
    """Which events have one row together: those before the horizon, in a record."""
    row = next((row for row in seen.decisions if row["source_kind"] == "older_history"), None)
    listed = row is None or any(row["reason_code"] == "before_horizon" for row in seen.decisions)
    return None if row is None or listed else (row["reference"] or "").removeprefix("log:").replace("-", " to ")


def _unread(seen: Projection, expected: str, log: Log) -> int:
    """How many omitted sources may have the words although no available text does: a record does not keep their texts, and those
    of events are in the log, the middle of a long one where it is held.
    """
    if _NAME.fullmatch(expected) and not (expected.startswith("event:") and not log.events):
        return 0
    kinds = _WORDED if log.events else (*_WORDED, *_EVENTS)
    unknown = sum(row["source_id"] not in log.texts and row["source_kind"] in kinds for row in seen.decisions)
    return unknown + log.cut(seen.turn["as_of_seq"])


def _in_snapshots(
    answer: dict[str, Any], names: Iterable[str], snapshots: Mapping[str, Sequence[Row]]
) -> dict[str, Any]:
    """Whether a snapshot of the turn decided on it before it came here."""
    for name, decisions in snapshots.items():
        for row in decisions:
            named = any(is_named(row, each.casefold(), str.casefold) for each in names)
            if row.get("outcome") == "selected" or not named:
                continue
            layer = _SNAPSHOT_LAYER.get(row.get("stage", ""), "retrieval_not_recalled")
            return _at(
                answer,
                layer,
                f"snapshot {name} recalled it and did not select it: {row.get('reason_text')} (stage {row.get('stage')})",
            )
    return _at(answer, "retrieval_not_recalled", SAYS["retrieval_not_recalled"])


def _unfenced(seen: Projection, rows: Iterable[Row], log: Log, sent: str) -> str | None:
    """Whether the input that was sent has lines without a margin of a source that may not instruct: of an untrusted one or a hint,
    and of what was retrieved whatever its standing. Lines that the recorded input has too are its own.
    """
    lines = {line.rstrip() for text in _strings(sent) for line in text.splitlines()} - set(seen.text().splitlines())
    for row in rows:
        if row["standing"] not in ("untrusted", "hint") and row["source_kind"] != "retrieval_result":
            continue
        id_ = row["source_id"]
        if any(len(line.strip()) > 8 and line.rstrip() in lines for line in _told(seen, id_, log)):
            return f"{SAYS['trust_isolation_missing']}: {id_}"
    return None


def _strings(sent: str) -> Iterator[str]:
    """The texts of an input as it was sent: itself, and those of the JSON or the lines of JSON that any of them is."""
    waiting: list[Any] = [sent]
    while waiting:
        value = waiting.pop()
        if isinstance(value, (dict, list)):
            waiting += value.values() if isinstance(value, dict) else value
        elif isinstance(value, str):
            yield value
            waiting += _held(value)


def _held(text: str) -> list[Any]:
    """The value that a text is as JSON, or those that its lines are."""
    for parts in ([text], text.splitlines()):
        found = []
        for part in parts:
            if part.lstrip()[:1] in ("{", "[", '"'):
                with suppress(ValueError, RecursionError):
                    found.append(json.loads(part))
        if found:
            return found
    return []


def _told(seen: Projection, id_: str, log: Log) -> list[str]:
    """The lines that a source says, in an input and in the log."""
    return [*_words(seen.lines.get(id_, "")), *log.said.get(id_, "").splitlines()]


def _words(lines: str) -> list[str]:
    """The words of a source from its lines in an input: what it quotes, else each line with and without its heading."""
    if quoted := [line[2:] for line in lines.splitlines() if line.startswith("| ")]:
        return quoted
    bare = [_BEHIND.sub("", line[2:]) for line in lines.splitlines()] if lines.startswith("- ") else []
    return [*bare, *(line.partition(": ")[2] for line in bare)]


def difference(first: Projection, second: Projection) -> dict[str, Any]:
    """What differs between two inputs: sources, tokens, and lines."""
    rows = [{row["source_id"]: row for row in each.decisions} for each in (first, second)]
    shown = [{id_: row for id_, row in each.items() if row["mode"] != "none"} for each in rows]
    changed = [
        {"source_id": id_, **{name: [rows[0][id_][name], rows[1][id_][name]] for name in ("action", "mode", "reason_code") if rows[0][id_][name] != rows[1][id_][name]}}
        for id_ in rows[0].keys() & rows[1].keys()
        if any(rows[0][id_][name] != rows[1][id_][name] for name in ("action", "mode", "reason_code"))
    ]  # fmt: skip
    lines = difflib.unified_diff(_lines(first), _lines(second), first.input_id, second.input_id, lineterm="", n=1)
    return {
        "inputs": [first.input_id, second.input_id],
        "same_input": first.input_sha256 == second.input_sha256,
        "same_prefix": first.model_input["prefix_sha256"] == second.model_input["prefix_sha256"],
        "phase": [first.state["phase"], second.state["phase"]],
        "tokens": [first.estimated_tokens, second.estimated_tokens],
        "part_tokens": {
            name: [count, second.part_tokens[name]]
            for name, count in first.part_tokens.items()
            if count != second.part_tokens[name]
        },
        "only_in_first": sorted(shown[0].keys() - shown[1].keys()),
        "only_in_second": sorted(shown[1].keys() - shown[0].keys()),
        "changed": sorted(changed, key=lambda each: each["source_id"]),
        "warnings": [sorted(first.conditions), sorted(second.conditions)],
        "diff": list(lines),
    }


def _lines(seen: Projection) -> list[str]:
    """The lines of an input, without its nonces, which differ wherever anything does."""
    return re.sub(
        r"(?m)^(</?[a-z_]+|==== (?:begin|end) [a-z ]+?) [a-z]{7}(?= source=|>| ====)", r"\1", seen.text()
    ).splitlines()
