"""Why: what happened to an expected source in a model input, and at which layer it was lost.

Reads a projection, and if available the session log behind it, its retrieval snapshots, and the input as it was sent.
Gives `why` (S3.11, S3.43, S3.44).

Note: the layers are checked in the order in which a source passes them. The last three are those of `later_use`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...nodes.errors import InputError
from ...nodes.turns.words import LEVELS
from .events import LogTables
from .later_use import Traces, later_use, names_of, names_of_file
from .layers import COVERED_BY, LAYER_OF, OMITTED_FOR, SAYS
from .projection import Projection
from .row_lookup import (
    ACTION_ORDER,
    EventLog,
    Meant,
    finding,
    has_name_alone,
    is_named,
    is_of_file,
    meant,
    preference,
    spellings,
    with_hunks,
    with_lines,
    with_others,
)
from .sent_input import lines_of, unfenced

__all__ = ["why"]

Row = Mapping[str, Any]
_Snapshots = Mapping[str, Sequence[Row]]

_NAME = re.compile(r"\S*(?:[/:]\S+|\.\w{1,5})")
"""Paths and ids: the ledger has them even if their texts are not available."""
_COLOR = re.compile(r"(?:\\x1b|\x1b)\[[\d;]*[mK]")
"""Terminal colors, raw and as an input quotes them."""
_CONTENT = 'source="file_content"'
"""The class in the fence of a file that was read."""
_WORDED = (
    "system_rules",
    "repository_instructions",
    "memory_candidate",
    "retrieval_result",
    "search_match",
    "pasted_text",
)
_SOURCE_COLUMNS = ("source_id", "source_kind", "path", "action", "mode", "decided_by", "reason_code", "reason", "tokens", "original_ref")  # fmt: skip
"""Columns that an answer reports for each source."""
_TEXTUAL = ("full", "excerpt", "summary")
_BINDING = ("system_rules", "repository_instructions", "active_constraint", "rule_conflict")
"""Kinds that instruct: the model follows them and seldom mentions them."""
_EVENTS = ("recent_tail", "latest_observation", "user_message", "file_content", "older_history")
_SNAPSHOT_LAYER = {
    "rank": "ordering_not_ranked",
    "select": "ordering_not_ranked",
    "pack": "ordering_not_ranked",
    "trim": "budget_cut",
}


def why(
    seen: Projection,
    expected: str,
    *,
    events: LogTables | None = None,
    snapshots: _Snapshots | None = None,
    sent: str | None = None,
) -> dict[str, Any]:
    """What happened to a source in an input.

    Args:
        seen: the projection.
        expected: a path or the end of one, an id of a source or of evidence, or words of its text or command.
        events: the session log, to find older events, words, and later acts of the model.
        snapshots: decisions of the turn's retrieval snapshots, by snapshot id.
        sent: the input as it was sent, as text, JSON or lines of JSON, if another program made it.

    Raises:
        InputError: `expected` is blank.
    """
    if not expected.strip():
        raise InputError.expected("a path, an id, or words", None, "EXPECTED")
    log = EventLog.of(seen, events or LogTables.empty())
    names = spellings(seen, expected)
    found = meant(seen, names, log)
    rows = with_others(seen, found.rows, log)
    if found.worded:
        rows = _with_showing(seen, rows, expected)
    mentions = found.worded and is_of_file(names, rows, snapshots or {})
    answer: dict[str, Any] = {"input_id": seen.input_id, "expected": expected, "layer": None, "omitted_for": None, "answer": "",
                              "source_id": None, "sources": [{name: row[name] for name in _SOURCE_COLUMNS} for row in rows], "kept_instead": []}  # fmt: skip
    if sent is not None and (id_ := unfenced(seen, rows, log, sent)):
        return _at(answer, "trust_isolation_missing", f"{SAYS['trust_isolation_missing']}: {id_}")
    if not rows:
        return _of_none(answer, seen, names, log, snapshots or {})
    if not mentions:
        return _of_own(answer, seen, found, rows, log, snapshots or {})
    lost = _in_snapshots(answer, names, snapshots or {})
    if lost["answer"] != SAYS["retrieval_not_recalled"]:
        return lost | {"sources": []}
    made = _of_rows(answer, seen, rows, log, file=names[-1])
    span = None if log.events else _unlisted(seen)
    more = f"; events {span} share one row, `older`: ask with their log (`--log LOG`)" if span else ""
    return made | {"answer": f"no source is this file, and others mention it: {made['answer']}{more}"}


def _of_none(
    answer: dict[str, Any], seen: Projection, names: Sequence[str], log: EventLog, snapshots: _Snapshots
) -> dict[str, Any]:
    """The answer of an input, its snapshots and its log for a source without a row in the ledger."""
    expected = answer["expected"]
    if finding(expected.casefold(), str.casefold)(seen.text()):
        return answer | {"answer": "its words are in the input"}
    found = _in_snapshots(answer, names, snapshots)
    if found["answer"] != SAYS["retrieval_not_recalled"]:
        return found
    if (span := _unlisted(seen)) and not log.events:
        hint = "ask with their log (`--log LOG`)"
        return answer | {"answer": f"no row of this record is it, and events {span} share one row, `older`: {hint}"}
    if unread := _unread(seen, expected, log):
        texts = "the text of 1 source is" if len(unread) == 1 else f"the texts of {len(unread)} sources are"
        some = ", ".join([*unread[:3], *["…"][: len(unread) > 3]])
        more = "" if log.events else ", or with the log"
        return answer | {
            "answer": f"no available text has it, and {texts} not available ({some}): ask by path or id{more}"
        }
    missing = [row["reference"] for row in seen.decisions if row["reason_code"] == "snapshot_missing"]
    if missing:
        text = f"nothing else that was gathered for this turn has it, and what {', '.join(missing)} recalled is not known: not found"
        return answer | {"answer": text}
    return found


def _of_own(
    answer: dict[str, Any],
    seen: Projection,
    found: Meant,
    rows: Sequence[Row],
    log: EventLog,
    snapshots: _Snapshots,
) -> dict[str, Any]:
    """What happened to sources that are what was asked for and do not merely mention it. For a path, sources with its
    content count, not notes about it; for a line, those that have the line, including edits whose diff has it.
    """
    if found.worded or not found.path:
        return _of_rows(answer, seen, rows, log, words=answer["expected"] if found.worded else None)
    notes = _notes(seen, rows, log)
    content = [row for row in rows if row not in notes]
    known = [*content, *with_hunks(seen, notes, log)]
    listed = all(has_name_alone(row, log) for row in rows)
    if found.span and (known or listed) and not (content := with_lines(seen, known, found.span, log)):
        lost = _in_snapshots(answer, [found.path], snapshots)
        if lost["answer"] != SAYS["retrieval_not_recalled"]:
            return lost
        others = f"; other lines of it: {_ids(known)}" if known else ""
        text = f"nothing that was gathered for this turn has this line of it{others}"
        return lost | {"answer": f"{text}{_aside(notes, known)}"}
    if not content or any(row["action"] != "exclude" for row in content):
        made = _of_rows(answer, seen, content or rows, log)
        row = next(row for row in content or rows if row["source_id"] == made["source_id"])
        if not content and row["action"] == "exclude":
            made |= {"answer": f"{made['answer']}{_aside(notes, [row])}"}
        elif not content:
            made |= {"answer": f"{made['answer']}; that is about the file, without its content"}
        elif found.span and made["layer"] is None and row["mode"] in ("excerpt", "summary"):
            made |= {
                "answer": f"{made['answer']}; this shorter form may lack the line: open {row['original_ref'] or row['reference']}"
            }
    else:
        left = [] if found.span else [row for row in notes if row["action"] == "exclude"]
        made = _of_rows(answer, seen, [*content, *left], log)
        made |= {"answer": f"{made['answer']}{_aside(notes, content)}"}
    files = sorted({row["path"] for row in rows if row["path"]})
    if len(files) < 2:
        return made
    chosen = next(row["path"] for row in rows if row["source_id"] == made["source_id"])
    return made | {
        "answer": f"{made['answer']}; this is {chosen}, one of {len(files)} files that end so: {', '.join(files)}"
    }


def _aside(notes: Iterable[Row], answered: Sequence[Row]) -> str:
    """The notes about a file in the input, besides the rows of an answer."""
    about = [row for row in notes if row["action"] != "exclude" and row not in answered]
    return f"; {_ids(about)} in the input is about the file, without its content" if about else ""


def _ids(rows: Iterable[Row]) -> str:
    return ", ".join(row["source_id"] for row in rows)


def _of_rows(
    answer: dict[str, Any],
    seen: Projection,
    rows: Sequence[Row],
    log: EventLog,
    *,
    words: str | None = None,
    file: str | None = None,
) -> dict[str, Any]:
    """What happened to the best-shown of these rows, which contain `words` if those were asked for; `file` is the
    requested file if they merely mention it.
    """
    shown = {each["source_id"] for each in rows if words is None or _shows(seen, each, words)}
    quoted = {each["source_id"]: event for each in rows if (event := _quoted_in(seen, each, log))}

    def action(each: Row) -> str:
        return "summarize" if each["source_id"] in quoted else each["action"]

    row = min(
        rows,
        key=lambda each: (
            each["source_id"] not in shown,
            each["reason_code"] in COVERED_BY,
            (ACTION_ORDER.index(action(each)), 0) if words or file else preference(each, log, action(each)),
            LEVELS[each["source_kind"]],
        ),
    )
    id_, code, mode = row["source_id"], row["reason_code"], row["mode"]
    first = [each for each in answer["sources"] if each["source_id"] == id_]
    answer |= {
        "source_id": id_,
        "sources": [*first, *(each for each in answer["sources"] if each["source_id"] != id_)],
    }
    if row["action"] == "exclude" and (by := log.ended(row, seen.turn["as_of_seq"])):
        return answer | {"answer": f"left out: no longer in force since {by}", "omitted_for": "staleness"}
    there = id_ in quoted and code != "shown_in_tail" and row["decided_by"] in (None, "budget", "worth")
    hidden = id_ not in shown and id_ not in quoted
    # Otherwise the requested words are there, even if parts of their source are lost.
    if not there and (hidden or words is None):
        answer["omitted_for"] = OMITTED_FOR.get(code)
        if lost := _lost(answer, seen, row, hidden=hidden and mode in ("excerpt", "summary")):
            return lost
    if there:
        answer["answer"] = f"it is in the input: {quoted[id_]} shows its line"
    elif row["action"] == "exclude":
        answer["answer"] = f"left out: {row['reason']}"
        if code == "before_horizon":
            answer["answer"] += f": open {row['reference']}"
            answer["answer"] += f" (the record has one row for events {_unlisted(seen)}, `older`)" * (row in log.early)
        if id_ in quoted:
            answer["answer"] += "; its line is in the observation that found it"
        return answer
    else:
        answer["answer"] = f"it is in the input ({mode}): {row['reason']}"
    if code == "shown_in_tail":
        answer["answer"] += f", {row['original_ref']}"
    if hidden:
        return answer | {
            "answer": f"{answer['answer']}; these words are not in what is shown of it: open {row['reference']}"
        }
    of_row = Traces(names_of(row), row["path"], lines_of(seen, id_, log))
    traces = of_row if file is None else Traces(names_of_file(file), file)
    lost = later_use(seen.turn["as_of_seq"], log.events, traces)
    # A model that obeys a rule about a file may never name the file.
    obeyed = (
        lost is not None and lost[0] == "model_did_not_use" and any(each["source_kind"] in _BINDING for each in rows)
    )
    return answer if lost is None or obeyed else _at(answer, *lost)


def _lost(answer: dict[str, Any], seen: Projection, row: Row, *, hidden: bool) -> dict[str, Any] | None:
    """The layer of the ledger at which a source was lost, if any; `hidden`: its shorter form lacks the words."""
    layer, brief = LAYER_OF.get(row["reason_code"]), row["mode"] in ("excerpt", "summary")
    if row["lost_sentences"] and row["mode"] != "none":
        text = f"{SAYS['summary_lost_constraint']} ({row['lost_sentences']}); the original: {row['original_ref']}"
        return _at(answer, "summary_lost_constraint", text)
    if hidden or (brief and layer == "budget_cut"):
        text = f"it was chosen, and what had room is a shorter form of it ({row['mode']})"
        more = f", which lacks these words: open {row['original_ref'] or row['reference']}" if hidden else ""
        return _at(answer | {"omitted_for": "budget"}, "budget_cut", f"{text}{more}")
    if layer == "budget_cut":
        kept = (each for each in seen.decisions if each["part"] == row["part"] and each["mode"] in _TEXTUAL)
        name = "source_id" if row["part"] == "rules" else "path"  # several rules have one path
        answer["kept_instead"] = sorted({each[name] or each["source_id"] for each in kept})
        names = ", ".join(answer["kept_instead"]) or "nothing else of its part"
        return _at(answer, layer, f"{SAYS[layer]}: it kept {names}")
    if layer == "ordering_not_ranked":
        return _at(answer, layer, f"{SAYS[layer]}: {row['reason']}")
    return None if layer is None else _at(answer, layer, f"left out: {row['reason']}")


def _quoted_in(seen: Projection, row: Row, log: EventLog) -> str | None:
    """The event of a search whose shown text has the line of a match, in any printed form: `path:line:text`,
    `path:text`, or `line:text` below the path.
    """
    if row["source_kind"] != "search_match" or row["mode"] in _TEXTUAL or not row["path"]:
        return None
    event = f"event:{row['source_id'].split(':')[1]}"
    if not any(each["source_id"] == event and each["mode"] in _TEXTUAL for each in seen.decisions):
        return None
    path, text = re.escape(row["path"]), log.all_texts.get(row["source_id"])
    number = (row["reference"] or "").removeprefix(f"{row['path']}:")
    line = rf"{number}(?:[:-]\d+)?[:-]" if number.isdigit() else "(?!)"
    line_end = "" if text is None else rf"\s*{re.escape(_plain(text))}$"
    own = re.compile(rf"(?i)^(?:\S*/)?{path}(?:[:-]{line}|{'[:-]' if line_end else '(?!)'}){line_end}")
    below = re.compile(rf"(?i)^{line}{line_end}")
    above = re.compile(rf"(?i)^(?:\S*/)?{path}$")
    under = False
    for each in _quotations(seen.lines.get(event, "")):
        if own.search(each) or (under and below.search(each)):
            return event
        under = bool(above.search(each)) or (under and each[:1].isdigit())
    return None


def _quotations(lines: str) -> Iterator[str]:
    """The quoted lines of a source, without colors, with `/` in Windows paths."""
    for line in lines.splitlines():
        if line.startswith("| "):
            yield _plain(_COLOR.sub("", line)).replace("\\", "/")


def _with_showing(seen: Projection, rows: list[Row], words: str) -> list[Row]:
    """Rows that contain these words; if the input shows none of those, also other rows that show the words."""
    if any(_shows(seen, row, words) for row in rows):
        return rows
    has = finding(_plain(words), str)
    ids = {row["source_id"] for row in rows}
    others = (row for row in seen.decisions if row["mode"] in _TEXTUAL and row["source_id"] not in ids)
    return [*rows, *(row for row in others if has(_plain(seen.lines.get(row["source_id"], ""))))]


def _notes(seen: Projection, rows: Iterable[Row], log: EventLog) -> list[Row]:
    """The rows that are about a file without its content: edits, calls, failures, matches of its name only."""
    return [
        row
        for row in rows
        if (row["source_kind"] == "recent_tail" and not log.is_early_read(row))
        or has_name_alone(row, log)
        or (row["source_kind"] == "latest_observation" and _CONTENT not in seen.lines.get(row["source_id"], _CONTENT))
    ]


def _shows(seen: Projection, row: Row, words: str) -> bool:
    """Whether the shown form of a source contains these words; a full one always does."""
    has = finding(_plain(words), str)
    if row["mode"] == "full" or row["action"] == "exclude":
        return row["mode"] == "full"
    if row["mode"] == "reference":
        return False
    return all(has(_plain(each)) for each in (seen.lines.get(row["source_id"], ""), seen.text()))


def _plain(text: str) -> str:
    """A text without margins, with normalized whitespace and case."""
    return " ".join(re.sub(r"(?m)^[|-] ", "", text).split()).casefold()


def _at(answer: dict[str, Any], layer: str, words: str) -> dict[str, Any]:
    return answer | {"layer": layer, "answer": words}


def _unlisted(seen: Projection) -> str | None:
    """The range of events that share one row: in a record, those before the horizon."""
    row = next((row for row in seen.decisions if row["source_kind"] == "older_history"), None)
    listed = row is None or any(row["reason_code"] == "before_horizon" for row in seen.decisions)
    return None if row is None or listed else (row["reference"] or "").removeprefix("log:").replace("-", " to ")


def _unread(seen: Projection, expected: str, log: EventLog) -> list[str]:
    """The omitted sources that may have the words although no available text does: a record does not store their texts,
    and those of events are in the log, or, for the middle of a long one, in its artifact.
    """
    if _NAME.fullmatch(expected) and not (expected.startswith("event:") and not log.events):
        return []
    kinds = _WORDED if log.events else (*_WORDED, *_EVENTS)
    unknown = (row for row in seen.decisions if row["characters"] and row["source_kind"] in kinds)
    ids = (row["source_id"] for row in unknown if row["source_id"] not in log.texts)
    return [*ids, *log.cut(seen.turn["as_of_seq"])]


def _in_snapshots(answer: dict[str, Any], names: Iterable[str], snapshots: _Snapshots) -> dict[str, Any]:
    """The answer for a source on which a snapshot of the turn decided before this input."""
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
