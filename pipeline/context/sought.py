"""Sought: the rows of a ledger that a name means, as people write it: an id, a path, a citation, or words.

Gives `spellings` of what is asked for, `meant` (the rows), `is_named` (one row), `is_of_file`, `finding` (words in a text), and `Log`,
what the log of an input adds to its ledger.

Note: a source says what its own text says. Of a message that is the message; its constraint says the part that binds, what is pasted
into it is a source of its own.
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
from .beyond import Beyond, texts_of_log
from .events import LogTables
from .masking import from_folder, one_path
from .projection import Projection

__all__ = ["Log", "are_of_path", "finding", "is_named", "is_of_file", "meant", "spellings"]

Row = Mapping[str, Any]

_PATH = re.compile(r"\S*(?:/\S+|\.\w{1,5})")
_LINES = re.compile(r"(?::\d+(?:[-:]\d+)*|#L\d+(?:-L?\d+)?)\Z")
"""Lines behind a path, as citations and errors name them."""
_FOUND = re.compile(r":\d+:\S")
"""Between a path and the text of a line that a search found."""


@dataclass(frozen=True)
class Log:
    """What the log of an input adds to its ledger."""

    events: Sequence[Row]
    """The events; `found` are the files that a search found."""
    early: Sequence[Row]
    """Rows of the ledger that the input has none for, as a record has none of what lies before the horizon."""
    texts: Mapping[str, str]
    """What sources say that are no events."""
    artifacts: Artifacts = field(default_factory=Artifacts)
    """The whole texts of events that have the beginning and the end."""

    @classmethod
    def of(cls, seen: Projection, log: LogTables) -> Log:
        found: dict[int, list[str]] = {}
        for match in log.matches.select(["seq", "path"]).to_pylist():
            found.setdefault(match["seq"], []).append(match["path"])
        events = [event | {"found": found.get(event["seq"], ())} for event in log.events.to_pylist()]
        turn = {**seen.turn, "session_id": events[0]["session_id"] if events else None}
        texts = {**texts_of_log(log.events, log.matches, log.memories), **seen.texts}
        return cls(events, Beyond(log).rows(turn, seen.decisions), texts, log.artifacts)

    @cached_property
    def said(self) -> Mapping[str, str]:
        """What every source says, as far as the log has it."""
        return {**{f"event:{event['event_id']}": event["text"] or "" for event in self.events}, **self.texts}

    def cut(self, as_of: int) -> int:
        """How many events before one have the beginning and the end of a text that is not available."""
        held = set(self.artifacts.kept)
        return sum(event["cut"] and event["seq"] < as_of and event["ref"] not in held for event in self.events)


def meant(seen: Projection, names: Sequence[str], log: Log) -> tuple[list[Row], bool]:
    """The rows of the ledger that a name means, in the first of its spellings that finds any: of an id its own, else of a path or the
    end of one those of that file, else of words every source that says them; and whether they were found by words. The model's own
    calls mention their paths. What is written exactly so goes before what differs in case.
    """
    decisions = [*seen.decisions, *log.early]
    written = [(same, same(name)) for same in (str, str.casefold) for name in names]
    for same, name in written:
        if own := [row for row in decisions if name == same(row["source_id"])]:
            return own, False
        if own := [row for row in decisions if row["standing"] != "hint" and is_named(row, name, same)]:
            return own, False
    for same, name in written:
        said = _saying(seen, name, log, same)
        if found := [row for row in decisions if row["source_id"] in said or is_named(row, name, same)]:
            return found, True
        part = re.compile(rf"(?<![\w]){re.escape(name)}(?![\w])")
        if found := [row for row in decisions if len(name) > 1 and part.search(same(row["source_id"]))]:
            return found, False
    return [], False


def finding(words: str, same: Callable[[str], str]) -> Callable[[str], bool]:
    """Finds words in texts as `same` gives them; of three letters or less they are found as a word, not within one."""
    if len(words) > 3 or not words.isascii():
        return lambda text: words in same(text)
    word = re.compile(rf"(?:(?<!\w)|(?=\W)){re.escape(words)}(?:(?!\w)|(?<=\W))")
    return lambda text: word.search(same(text)) is not None


def _saying(seen: Projection, expected: str, log: Log, same: Callable[[str], str]) -> set[str]:
    """The ids of the sources that say some words, as `same` gives both, and of the events that ran them or carry a row of that id."""
    has = finding(expected, same)
    said = {source for source, text in _texts(seen, log) if text and has(text)}
    for event in log.events:
        id_ = f"event:{event['event_id']}"
        carried = () if event["kind"] == "model.request" else map(same, event["evidence_ids"] or ())
        whole = event["cut"] and id_ not in said and log.artifacts.says(event["ref"], has)
        if whole or has(event["command"] or "") or expected in carried:
            said.add(id_)
    return said


def _texts(seen: Projection, log: Log) -> Iterator[tuple[str, str | None]]:
    """What each source says that may be asked for by its words."""
    yield from log.said.items()
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
    """What is asked for as it is written; as a stored path is spelled, from the working directory; and of a citation as it is printed,
    `[abc0:code#1]` or `src/e.ts:1-9`, what it names.
    """
    bare = expected[1:-1] if expected.startswith("[") and expected.endswith("]") else expected
    file = _LINES.sub("", bare)
    written = (bare, file) if _PATH.fullmatch(file) or named_by_convention(file) else (bare,)
    stored = (from_folder(one_path(each), seen.turn["working_directory"]) or each for each in written)
    return tuple(dict.fromkeys((expected, *stored)))


def is_named(row: Row, expected: str, same: Callable[[str], str]) -> bool:
    """Whether a name is that of a row of evidence, its label, its rule, its path or the end of one."""
    label = row.get("reference") if row.get("source_kind") == "retrieval_result" else None
    rule = row["source_id"].removeprefix("rule:") if row.get("source_kind") == "repository_instructions" else None
    names = (same(name) for name in (row.get("evidence_id"), label, rule) if name)
    return expected in names or _has_path(row, expected, same)


def _has_path(row: Row, expected: str, same: Callable[[str], str]) -> bool:
    return same(f"/{row.get('path') or ''}").endswith(f"/{expected}")


def are_of_path(names: Sequence[str], rows: Iterable[Row]) -> bool:
    """Whether rows were found by a path, and not by an id of their own."""
    said = [name.casefold() for name in names]
    return all(
        row["source_id"].casefold() not in said and any(_has_path(row, name, str.casefold) for name in said)
        for row in rows
    )


def is_of_file(names: Sequence[str], rows: Iterable[Row], snapshots: Mapping[str, Sequence[Row]]) -> bool:
    """Whether a name is that of a file: by its form, by convention, or because the log or a snapshot knows a file of that name."""
    known = [*rows, *(row for decisions in snapshots.values() for row in decisions)]
    told = any(_has_path(row, name.casefold(), str.casefold) for row in known for name in names)
    path = _PATH.fullmatch(names[-1]) and not _FOUND.search(names[-1])
    return told or bool(path) or named_by_convention(names[-1])
