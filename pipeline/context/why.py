"""Why: what became of a source of a model input, and the layer that lost it (S3.43, S3.44).

    why(seen, "src/serializer.ts", events=log)

Gives `why`. EXPECTED is the id of a source, a citation as it is printed, a path or its end, or literal text of an event.

Note: the eight layers are judged from recorded facts alone: the decision on the source, and what later events of the log
state. A source that a gate left out was lost at no layer; the answer is the gate's reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...nodes.errors import InputError
from ...nodes.turns.folding import counted_as
from ...nodes.turns.words import REASONS, USER_WORDS
from .event_rows import with_checks
from .events import LogRows
from .projection import Projection

Row = Mapping[str, Any]

_ON_TIME = ("tail_limit", "memory_cap")
"""Limits of a part: the source was ranked behind the others."""
_OMITTED_FOR = {"relevance": "low relevance", "currency": "staleness", "trust": "a doubtful source", "permission": "permission",
                "worth": "low relevance"}  # fmt: skip
_STATING = ("user_message", "user_goal", "active_constraint", "repository_instructions")
_ACTS = ("file.read", "file.modified", "command.finished", "tool.finished", "tool.intent", "search.result", "external.result", "work.changed")  # fmt: skip


def why(
    seen: Projection,
    expected: str,
    *,
    events: LogRows | None = None,
    snapshots: Mapping[str, Sequence[Row]] | None = None,
) -> dict[str, Any]:
    """The answer about a source: `layer` (null where none failed), `answer`, `omitted_for`, `source_id` and `sources`.

    Args:
        seen: the model input.
        expected: what was expected in it.
        events: the session log: text of events that are not in the record, and what happened later.
        snapshots: decisions of the retrieval snapshots of the input, by snapshot.

    Raises:
        InputError: `expected` is empty.
    """
    if not expected.strip():
        raise InputError.expected("a source, a path or words", expected, "EXPECTED")
    rows = [] if events is None else [with_checks(row, seen.turn["checks"]) for row in events.events]
    before = [row for row in rows if row["seq"] < seen.turn["as_of_seq"]]
    found, lost = _matching(seen, expected, before)
    if found and lost:
        said = f"only a reference to it is in the input: {REASONS['user_words_referenced']}"
        layer, answer, omitted = "summary_lost_constraint", f"{said}; open {found[0]['reference']}", None
    elif found:
        layer, answer, omitted = _layer(seen, found[0], rows)
    elif expected in seen.text():
        layer, answer, omitted = None, "it is in the input", None
    else:
        layer, answer, omitted = "retrieval_not_recalled", _not_recalled(expected, snapshots or {}), None
    return {
        "expected": expected, "layer": layer, "answer": answer, "omitted_for": omitted,
        "source_id": found[0]["source_id"] if found else None, "sources": [dict(row) for row in found],
    }  # fmt: skip


def _matching(seen: Projection, expected: str, events: Sequence[Row]) -> tuple[list[Row], bool]:
    """The ledger rows that are meant, those that show most first: by id, else by path, else by literal text, else the row
    that has or counts the event that is meant; and whether that is a message of the user that had no room among them.
    """
    rows = list(seen.decisions)
    path, _, line = expected.removeprefix("./").rpartition(":")
    wanted = path if line and line.replace("-", "").isdecimal() else expected.removeprefix("./")
    named = [event for event in events if expected.removeprefix("event:") == event["event_id"]]
    told = named or [event for event in events if _tells(event, expected, path, wanted)]
    meant = {_source_of(event): event for event in told}
    by_id = [
        row
        for row in rows
        if expected
        in (row["source_id"], row["source_id"].partition(":")[2], row["evidence_id"], f"[{row['reference']}]")
        or row["reference"] in (expected, f"event:{expected}")
    ]
    by_path = [row for row in rows if _ends(row["path"], wanted)]
    by_event = [row for row in rows if _event_of(row) in meant]
    holders = {_holder(event, seen.turn["zones"]): event["seq"] for event in meant.values()}
    words = next((row for row in rows if row["source_id"] == "words" and row["source_id"] in holders), None)
    left = (words and words["original_ref"]) or ""
    if words and not by_id and left.startswith("log:") and holders["words"] <= int(left.partition("-")[2]):
        return [words], True
    found = by_id or by_path or by_event or [row for row in rows if row["source_id"] in holders]
    return sorted(found, key=lambda row: (-row["shown_characters"], -row["characters"], row["position"])), False


def _tells(event: Row, expected: str, path: str, wanted: str) -> bool:
    """Whether an event has the text or the file that is expected."""
    texts = filter(None, (event["command"], event["text"], event["content"]))
    return expected in "\n".join(texts) or any(
        _ends(path, wanted) for path in (event["path"], *(event["changed_files"] or ()))
    )


def _holder(event: Row, zones: Sequence[str]) -> str:
    """The source that has an event which is none of its own: the user's words, or those that are only counted."""
    of_user = event["actor"] == "user" and event["kind"] in USER_WORDS and event["text"]
    seen = event["visibility"] == "model-visible" and event["zone"] in zones
    return "words" if of_user and seen else f"older:{counted_as(event)}"


def _source_of(event: Row) -> str:
    """The source that an event is: a recalled memory is one of its own."""
    return f"memory:{event['subject']}" if event["kind"] == "memory.recalled" else f"event:{event['event_id']}"


def _ends(path: str | None, wanted: str) -> bool:
    return path is not None and (path == wanted or path.endswith(f"/{wanted}"))


def _event_of(row: Row) -> str:
    """The event of a source, as a source id: goal, constraint and file have names of their own."""
    kind, _, name = row["source_id"].partition(":")
    if kind in ("goal", "history"):
        return f"event:{name}"
    return row["reference"] or "" if kind in ("constraint", "proposal", "file") else row["source_id"]


def _not_recalled(expected: str, snapshots: Mapping[str, Sequence[Row]]) -> str:
    """The answer about something that is no source of the input."""
    for snapshot, decided in snapshots.items():
        for row in decided:
            if expected in (row.get("evidence_id"), row.get("path")) and row.get("outcome") != "selected":
                return f"snapshot {snapshot} did not select it: {row.get('reason_text') or row.get('reason_code')}"
    return "no event, file, rule, memory or snapshot of this turn has it"


def _layer(seen: Projection, row: Row, events: Sequence[Row]) -> tuple[str | None, str, str | None]:
    """Layer, answer and kind of omission for a ledger row."""
    gate = row["decided_by"]
    if row["reason_code"] in _ON_TIME:
        return "ordering_not_ranked", f"{row['source_id']} was ranked behind the others: {row['reason']}", None
    if row["mode"] == "none" and gate != "budget":
        return None, f"the gate `{gate}` left it out: {row['reason']}", _OMITTED_FOR.get(gate or "")
    if row["mode"] in ("none", "reference"):
        said = "only a reference to it is in the input" if row["mode"] == "reference" else "it is not in the input"
        if row["mode"] == "reference" and row["source_kind"] in _STATING:
            return "summary_lost_constraint", f"{said}: {row['reason']}; open {row['reference']}", None
        return "budget_cut", f"{said}: {row['reason']} ({row['token_budget']} tokens for its part)", None
    if row["shown_characters"] < row["characters"] and row["mode"] in ("excerpt", "summary"):
        short = f"it is in the input as {row['mode']}: {row['shown_characters']} of {row['characters']} characters; open {row['reference']}"
    else:
        short = f"it is in the input, {row['mode']}"
    if row["source_kind"] == "repository_instructions" and row["path"] in seen.state["modifiedFiles"]:
        return "trust_isolation_missing", f"{short}, among the instructions, and the session wrote that file", None
    return _later(seen, row, events, short)


def _later(seen: Projection, row: Row, events: Sequence[Row], short: str) -> tuple[str | None, str, str | None]:
    """What later events state about a source that is in the input."""
    later = [event for event in events if event["seq"] >= seen.turn["as_of_seq"]]
    done = [event for event in later if event["kind"] in (*_ACTS, "model.message")]  # a request alone is no use
    if not done:
        return None, short, None
    if not row["path"]:
        return None, f"{short}; it names no file, so its later use is unknown", None
    acts = [event for event in done if event["kind"] in _ACTS and _names(event, row["path"])]
    if not acts:
        return "model_did_not_use", f"{short}; no later action names it", None
    if (last := acts[-1])["outcome"] in ("failed", "timed_out"):
        ended = last["outcome"].replace("_", " ")
        return "tool_execution_wrong", f"{short}; the last action on it, event {last['event_id']}, {ended}", None
    changed = [
        event["seq"]
        for event in later
        if row["path"] in (event["changed_files"] or ())
        or (event["kind"] == "file.modified" and event["path"] == row["path"])
    ]
    if changed and not any(event["checks"] and event["seq"] > changed[-1] for event in later):
        return "verification_missing", f"{short}; it was changed afterwards, and no declared check ran since", None
    return None, f"{short}; event {acts[0]['event_id']} acts on it", None


def _names(event: Row, path: str) -> bool:
    fields: Iterable[str] = filter(
        None, (event["path"], event["command"], event["arguments"], *(event["changed_files"] or ()))
    )
    whole = re.compile(rf"(?<![\w.-]){re.escape(path)}(?![\w-])")
    return any(whole.search(each) or path.endswith(f"/{each}") for each in fields)
