"""Row lookup: the rows of a ledger that match a name as people write it: an id, a path, a citation, or words.

Gives `spellings` of a name, `meant` (the matching rows), `with_others` (plus the rows that cover their texts),
`with_lines` (those with a line), `with_hunks` (edits whose diff has line numbers), `is_named` (one row), `is_of_file`,
`has_name_alone`, `preference` (the order of rows of one file), `finding` (words in a text), and `EventLog`, the additions of
the log to the ledger of an input.

Note: a source has only its own text. For a message that is the message; its constraint has the binding part, and text
pasted into it is a source of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ...nodes.turns.user_sources import own_and_pasted
from ..sources.file_kinds import named_by_convention
from .artifacts import Artifacts
from .before_horizon import BeforeHorizon, texts_of_log
from .events import LogTables
from .layers import COVERED_BY
from .masking import from_folder, one_path
from .projection import Projection

__all__ = [
    "ACTION_ORDER",
    "EventLog",
    "Meant",
    "finding",
    "has_name_alone",
    "is_named",
    "is_of_file",
    "meant",
    "preference",
    "spellings",
    "with_hunks",
    "with_lines",
    "with_others",
]

Row = Mapping[str, Any]

_PATH = re.compile(r"\S*(?:/\S+|\.\w{1,5})")
_LINES = re.compile(r"(?::(?P<first>\d+)(?:-(?P<last>\d+))?(?:[-:]\d+)*|#L(?P<from>\d+)(?:-L?(?P<to>\d+))?)\Z")
"""Lines after a path, as in citations and errors, with an optional column."""
_FOUND = re.compile(r":\d+:\S")
"""Line number between the path and the text of a match."""
_HUNK = re.compile(
    r"(?m)^--- .*\n\+\+\+ (?:b/)?(?P<file>\S.*)|^@@ -\d+(?:,\d+)? \+(?P<first>\d+)(?:,(?P<count>\d+))? @@"
)
"""In a unified diff, the file of the next hunks, or the range of a hunk in the new file."""
ACTION_ORDER = ("include", "summarize", "reference", "exclude")
"""From the action that shows most of a source to the one that shows nothing."""
_DIFF = 'source="file_diff"'
"""The class in the fence of an edit."""

Span = tuple[int, int | None]
"""The first and the last line of a source in its file; no last one for a whole file."""


@dataclass(frozen=True)
class EventLog:
    """The additions of the log to the ledger of an input."""

    events: Sequence[Row]
    """The events; `found` are the files with matches of a search."""
    early: Sequence[Row]
    """Ledger rows that the input lacks, such as those before the horizon in a record."""
    texts: Mapping[str, str]
    """The texts of sources other than events."""
    artifacts: Artifacts = field(default_factory=Artifacts)
    """The whole texts of events that were cut."""
    places: Mapping[str, int] = field(default_factory=dict)
    """The line number of each match in its file, by source."""

    @classmethod
    def of(cls, seen: Projection, log: LogTables) -> EventLog:
        found, places = dict[int, list[str]](), dict[str, int]()
        ids = dict(zip(log.events["seq"].to_pylist(), log.events["event_id"].to_pylist(), strict=True))
        for match in log.matches.select(["seq", "place", "path", "line"]).to_pylist():
            found.setdefault(match["seq"], []).append(match["path"])
            if match["line"] is not None:
                places[f"match:{ids.get(match['seq'])}:{match['place']}"] = match["line"]
        events = [event | {"found": found.get(event["seq"], ())} for event in log.events.to_pylist()]
        turn = {**seen.turn, "session_id": events[0]["session_id"] if events else None}
        texts = {**texts_of_log(log.events, log.matches, log.memories), **seen.texts}
        return cls(events, BeforeHorizon(log).rows(turn, seen.decisions), texts, log.artifacts, places)

    @cached_property
    def all_texts(self) -> Mapping[str, str]:
        """The text of every source, as far as the log has it."""
        return {**{f"event:{event['event_id']}": event["text"] or "" for event in self.events}, **self.texts}

    @cached_property
    def by_source(self) -> Mapping[str, Row]:
        """The event of each source."""
        return {f"event:{event['event_id']}": event for event in self.events}

    def is_early_read(self, row: Row) -> bool:
        """Whether a row is a read of a file before the horizon: the log has its text."""
        event = self.by_source.get(row["source_id"])
        return row["reason_code"] == "before_horizon" and event is not None and event["kind"] == "file.read"

    def ended(self, row: Row, as_of: int) -> str | None:
        """The event before `as_of` by which the user ended a constraint or replaced it, if there is one."""
        own = self.by_source.get(row["source_id"])
        if own is None or not (own["kind"] == "user.constraint" or own["binding"]):
            return None
        name = (own["subject"] if own["kind"] == "user.constraint" else None) or own["event_id"]
        later = (each for each in self.events if own["seq"] < each["seq"] < as_of and each["actor"] == "user")
        ends = ("constraint.ended", "user.constraint")
        by = next((each for each in later if each["kind"] in ends and each["subject"] == name), None)
        return None if by is None else f"event:{by['event_id']}"

    def cut(self, as_of: int) -> list[str]:
        """The cut events before `as_of` whose whole text is not available."""
        held = set(self.artifacts.kept)
        cut = (event for event in self.events if event["cut"] and event["seq"] < as_of)
        return [f"event:{event['event_id']}" for event in cut if event["ref"] not in held]


@dataclass(frozen=True)
class Meant:
    """The rows that match a name."""

    rows: list[Row]
    worded: bool = False
    """Whether they were found by words."""
    path: str | None = None
    """The path by which they were found."""
    span: tuple[int, int] | None = None
    """The first and the last requested line of that path."""


def meant(seen: Projection, names: Sequence[str], log: EventLog) -> Meant:
    """The rows of the ledger that match a name, in its first spelling that matches any: by id, else by path, else by
    the end of a path in all files that end so, else by words in every source that contains them. The model's own calls
    only mention their paths. An exact match takes precedence over one that differs in case.
    """
    decisions = [*seen.decisions, *log.early]
    known = [row for row in decisions if row["standing"] != "hint"]
    written = [(same, same(name)) for same in (str, str.casefold) for name in names]
    for same, name in written:
        if own := [row for row in decisions if name == same(row["source_id"])]:
            return Meant(own)
        if own := [row for row in known if name in _names(row, same)]:
            return Meant(own)
        whole = [row for row in known if row["path"] and same(row["path"]) == name]
        if own := whole or [row for row in known if _has_path(row, name, same)]:
            return Meant(own, path=name, span=None if _LINES.search(name) else _span(names[0]))
    for same, name in written:
        containing = _saying(seen, name, log, same)
        if found := [row for row in decisions if row["source_id"] in containing or is_named(row, name, same)]:
            return Meant(found, worded=True)
        part = re.compile(rf"(?<![\w]){re.escape(name)}(?![\w])")
        if found := [row for row in decisions if len(name) > 1 and part.search(same(row["source_id"]))]:
            return Meant(found)
    return Meant([])


def _span(expected: str) -> tuple[int, int] | None:
    """The lines that a citation names."""
    if (found := _LINES.search(expected.removesuffix("]"))) is None:
        return None
    first, last = found["first"] or found["from"], found["last"] or found["to"]
    return int(first), int(last or first)


def with_lines(seen: Projection, rows: Sequence[Row], span: tuple[int, int], log: EventLog) -> list[Row]:
    """The rows of one file that have a line of a span; if none is known to, those with unknown lines. Files whose paths
    end alike have separate lines.
    """
    own = {row["source_id"]: _lines_of(seen, row, log.by_source.get(row["source_id"]), log) for row in rows}
    starts: dict[str, list[int]] = {}
    for row in rows:
        if row["source_kind"] == "repository_instructions":
            starts.setdefault(row["path"], []).extend(first for first, _ in own[row["source_id"]])
    having, unknown = [], []
    for row in rows:
        if not (lines := own[row["source_id"]]):
            unknown.append(row)
            continue
        if row["source_kind"] == "repository_instructions":  # a section ends where the next one begins
            lines = [
                (first, min((n - 1 for n in starts[row["path"]] if n > first), default=None)) for first, _ in lines
            ]
        if any(first <= span[1] and (last is None or last >= span[0]) for first, last in lines):
            having.append(row)
        elif _is_part_of_a_diff(seen, row, log.by_source.get(row["source_id"])):
            unknown.append(row)
    return having or unknown


def with_hunks(seen: Projection, rows: Iterable[Row], log: EventLog) -> list[Row]:
    """The rows of edits whose diff has line numbers of the file."""
    edits = {f"event:{event['event_id']}" for event in log.events if event["kind"] == "file.modified"}
    return [row for row in rows if _hunks(seen, row, log, row["source_id"] in edits)]


def _is_part_of_a_diff(seen: Projection, row: Row, event: Row | None) -> bool:
    """Whether only a part of the diff of an edit is available."""
    if event is None:
        return _DIFF in seen.lines.get(row["source_id"], "") and row["mode"] != "full"
    return event["kind"] == "file.modified" and bool(event["cut"])


def _hunks(seen: Projection, row: Row, log: EventLog, is_edit: bool) -> list[Span]:
    """The lines of the new version of a file in the diff of an edit."""
    shown = seen.lines.get(row["source_id"], "")
    if not is_edit and _DIFF not in shown:
        return []
    diff = log.all_texts.get(row["source_id"]) or re.sub(r"(?m)^\| ", "", shown)
    found, of_file = list[Span](), True
    for each in _HUNK.finditer(diff):
        if each["file"]:
            written = one_path(each["file"].partition("\t")[0].strip())
            of_file = _has_path(row, written or "", str) or f"/{written}".endswith(f"/{row['path']}")
        elif of_file and (count := int(each["count"] or 1)):
            found.append((int(each["first"]), int(each["first"]) + count - 1))
    return found


def _line_of_match(row: Row, log: EventLog) -> int | None:
    line = (row["reference"] or "").removeprefix(f"{row['path']}:")
    return log.places.get(row["source_id"], int(line) if line.isdigit() else None)


def has_name_alone(row: Row, log: EventLog) -> bool:
    """Whether a match is a file name without any of its lines, as Glob and `rg -l` list."""
    return row["source_kind"] == "search_match" and not row["characters"] and _line_of_match(row, log) is None


def preference(row: Row, log: EventLog, action: str) -> tuple[int, int]:
    """Sort key of a row among those of one file: first rows in the input, then rows with text of the file (before the
    horizon and in the tail newest first), then other events; matches of the name only come after rows with text.
    """
    out, in_tail = action == "exclude", row["source_kind"] == "recent_tail"
    id_ = row["source_id"]
    named = f"event:{id_.removeprefix('match:').rpartition(':')[0]}" if row["source_kind"] == "search_match" else id_
    event = log.by_source.get(named)
    newest = 0 if event is None else -event["seq"]
    if has_name_alone(row, log):
        return 5 if out else 3, newest
    if not out:
        return 0, ACTION_ORDER.index(action)
    if row["reason_code"] != "before_horizon" and not in_tail:
        return 1, 0
    has_text = not in_tail or (event is not None and event["kind"] in ("file.read", "file.modified"))
    return 2 if has_text else 4, newest


def _lines_of(seen: Projection, row: Row, event: Row | None, log: EventLog) -> list[Span]:
    """The lines of a source in its file; empty if unknown."""
    if row["source_kind"] == "search_match":
        line = _line_of_match(row, log)
        return [] if line is None else [(line, line)]
    if row["source_kind"] == "repository_instructions":  # its id names the line below its heading
        line = row["source_id"].rpartition(":")[2]
        return [(max(int(line) - 1, 1), None)] if line.isdigit() else []
    if hunks := _hunks(seen, row, log, event is not None and event["kind"] == "file.modified"):
        return hunks
    if event is not None and event["kind"] == "file.read":
        first, _, last = (event["subject"] or "").partition("-")
        return [(int(first), int(last))] if last else [(1, None)]
    head = (each for each in seen.lines.get(row["source_id"], "").splitlines() if each.startswith("- "))
    cited = re.compile(rf"{re.escape(row['path'] or '')}(?::(\d+)(?:-(\d+))?)?(?![\w:-])").search(next(head, ""))
    if cited is None or not row["path"] or (cited[1] is None and row["source_kind"] != "file_content"):
        return []
    return [(int(cited[1]), int(cited[2] or cited[1]))] if cited[1] else [(1, None)]


def with_others(seen: Projection, rows: Sequence[Row], log: EventLog) -> list[Row]:
    """Rows, plus the rows that cover the texts of some of them; duplicates are replaced by these."""
    found = {row["source_id"]: row for row in rows}
    texts = {} if all(row["reason_code"] not in COVERED_BY for row in rows) else _first_texts(seen, log)
    waiting = [row for row in rows if row["reason_code"] in COVERED_BY]
    while waiting:
        row = waiting.pop()
        others = [each for each in _others(seen, row, texts) if each["source_id"] not in found]
        found |= {each["source_id"]: each for each in others}
        waiting += [each for each in others if each["reason_code"] in COVERED_BY]
    kept = {id_: row for id_, row in found.items() if row["reason_code"] != "duplicate"}
    return [*(kept or found).values()]


def _others(seen: Projection, row: Row, texts: Mapping[str, str]) -> list[Row]:
    """The rows that cover the text of another row."""
    event = row["source_id"].partition(":")[2]
    ids = {f"{kind}:{event}" for kind in COVERED_BY[row["reason_code"]]} - {row["source_id"]}
    if own := [each for each in seen.decisions if each["source_id"] in ids]:
        return own
    text = texts.get(row["source_id"])
    kin = [
        each
        for each in seen.decisions
        if each["reason_code"] not in COVERED_BY and each["source_kind"] == row["source_kind"]
    ]
    if row["source_kind"] == "search_match":
        return [each for each in kin if each["reference"] == row["reference"]]
    if row["evidence_id"] is not None:
        return [each for each in kin if each["evidence_id"] == row["evidence_id"]]
    return [
        each for each in kin if text and each["standing"] == row["standing"] and texts.get(each["source_id"]) == text
    ]


def _first_texts(seen: Projection, log: EventLog) -> dict[str, str]:
    """The text of each source: of several forms, the original one."""
    found: dict[str, str] = {}
    for source, text in _texts(seen, log):
        if text:
            found.setdefault(source, text)
    return found


def finding(words: str, same: Callable[[str], str]) -> Callable[[str], bool]:
    """Finds words in texts normalized by `same`; three letters or fewer are only found as a whole word."""
    if len(words) > 3 or not words.isascii():
        return lambda text: words in same(text)
    word = re.compile(rf"(?:(?<!\w)|(?=\W)){re.escape(words)}(?:(?!\w)|(?<=\W))")
    return lambda text: word.search(same(text)) is not None


def _saying(seen: Projection, expected: str, log: EventLog, same: Callable[[str], str]) -> set[str]:
    """The ids of the sources that contain these words, normalized by `same`, and of the events that ran them or carry a
    row of that id.
    """
    has = finding(expected, same)
    containing = {source for source, text in _texts(seen, log) if text and has(text)}
    for event in log.events:
        id_ = f"event:{event['event_id']}"
        carried = () if event["kind"] == "model.request" else map(same, event["evidence_ids"] or ())
        whole = event["cut"] and id_ not in containing and log.artifacts.says(event["ref"], has)
        asked = event["kind"].startswith("permission.") and expected == same(event["subject"] or "")
        if whole or asked or has(event["command"] or "") or expected in carried:
            containing.add(id_)
    return containing


def _texts(seen: Projection, log: EventLog) -> Iterator[tuple[str, str | None]]:
    """The searchable texts of each source."""
    yield from log.all_texts.items()
    for row in seen.decisions:  # a match as searches print it
        if row["source_kind"] == "search_match" and (text := log.all_texts.get(row["source_id"])):
            yield row["source_id"], f"{row['reference']}:{text}"
    for event in log.events:
        whole = event["text"] if event["kind"] in ("user.constraint", "user.goal") else None
        yield f"constraint:{event['event_id']}", event["binding"] or whole
        if event["kind"] == "history.summarized":
            yield f"history:{event['event_id']}", event["text"]
    if goal := seen.state["user_goal"]:
        yield from zip(
            (f"{kind}:{seen.state['goal_event']}" for kind in ("goal", "pasted")), own_and_pasted(goal), strict=True
        )


def spellings(seen: Projection, expected: str) -> tuple[str, ...]:
    """The spellings of a name: as written; as a stored path relative to the working directory; and, for a printed
    citation (`[abc0:code#1]` or `src/e.ts:1-9`), its target.
    """
    bare = expected[1:-1] if expected.startswith("[") and expected.endswith("]") else expected
    file = _LINES.sub("", bare)
    written = (bare, file) if _PATH.fullmatch(file) or named_by_convention(file) else (bare,)
    stored = (from_folder(one_path(each), seen.turn["working_directory"]) or each for each in written)
    return tuple(dict.fromkeys((expected, *stored)))


def is_named(row: Row, expected: str, same: Callable[[str], str]) -> bool:
    """Whether a name is the id, label, rule or path of a row of evidence, or the end of its path."""
    return expected in _names(row, same) or _has_path(row, expected, same)


def _names(row: Row, same: Callable[[str], str]) -> set[str]:
    """The names of a row besides its id and path: its evidence id, label and rule."""
    label = row.get("reference") if row.get("source_kind") == "retrieval_result" else None
    rule = row["source_id"].removeprefix("rule:") if row.get("source_kind") == "repository_instructions" else None
    return {same(name) for name in (row.get("evidence_id"), label, rule) if name}


def _has_path(row: Row, expected: str, same: Callable[[str], str]) -> bool:
    return same(f"/{row.get('path') or ''}").endswith(f"/{expected}")


def is_of_file(names: Sequence[str], rows: Iterable[Row], snapshots: Mapping[str, Sequence[Row]]) -> bool:
    """Whether a name is a file: by form, by convention, or because the log or a snapshot has a file of that name."""
    known = [*rows, *(row for decisions in snapshots.values() for row in decisions)]
    named = any(_has_path(row, name.casefold(), str.casefold) for row in known for name in names)
    path = _PATH.fullmatch(names[-1]) and not _FOUND.search(names[-1])
    return named or bool(path) or named_by_convention(names[-1])
