"""Ledger rows for sources that a turn does not consider one by one: events before its horizon, their matches and
memories, and snapshots that were retrieved for other turns.

Gives `BeforeHorizon`, the tables from which a projection was made, `Decisions`, the rows of a turn followed by those of
older events, and `texts_of_log`.

Note: the line makes no row per turn and old event, so its cost does not grow with the session. The rows are made here,
on demand; only then are the lines before the checkpoint of a log folder read. A recorded ledger has one row, `older`,
for all of these events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any, overload
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.context_tables import CONTEXT_DECISIONS, RETRIEVED_ITEMS
from ...nodes.turns.as_of import HORIZON
from ...nodes.turns.words import DECISION_TRUST, REASONS
from .events import LogTables
from .masking import from_folder

__all__ = ["BeforeHorizon", "Decisions", "texts_of_log"]

Row = Mapping[str, Any]

_OF_EVENTS = (
    "event_id",
    "seq",
    "kind",
    "actor",
    "path",
    "characters",
    "masked",
    "visibility",
    "pasted",
    "snapshot_ids",
)


class Decisions(Sequence[Row]):
    """The rows of a turn's ledger: those made with its input, then those of `far`, made on demand."""

    def __init__(self, near: Sequence[Row], far: Callable[[Sequence[Row]], list[Row]]) -> None:
        self.near, self._make = near, far

    @cached_property
    def far(self) -> list[Row]:
        return self._make(self.near)

    def __iter__(self) -> Iterator[Row]:
        yield from self.near
        yield from self.far

    def __len__(self) -> int:
        return len(self.near) + len(self.far)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        return [*self.near, *self.far][index]


@dataclass
class BeforeHorizon:
    """The log and the snapshot items of a projection; of a recorded one, the log that is available later."""

    log: LogTables
    items: pa.Table = field(default_factory=RETRIEVED_ITEMS.empty)

    @cached_property
    def whole(self) -> LogTables:
        """All events; those before the loaded ones are read now."""
        return self.log if self.log.before is None else self.log.before().then(self.log)

    def rows(self, turn: Row, near: Sequence[Row]) -> list[Row]:
        """The rows that were not made with the input of a turn: of events and their contents, and of snapshots."""
        session, end, root = turn["session_id"], turn["as_of_seq"], turn["working_directory"]
        events = _before(self.whole.events, "seq", session, end, _OF_EVENTS)
        early = {event["seq"]: event for event in events if event["seq"] < end - HORIZON}
        matches = _before(self.whole.matches, "seq", session, end - HORIZON, ("seq", "place", "path", "text"))
        memories = _before(self.whole.memories, "from_seq", session, end - HORIZON, ("memory_id", "from_seq", "text"))
        made = [*map(_of_event, early.values()), *_brought(early, matches, memories), *self._of_snapshots(events, near)]
        known = {row["source_id"] for row in near}
        fresh = {row["source_id"]: row for row in made if row["source_id"] not in known}
        return [
            _whole(row | {"path": from_folder(row.get("path"), root)}, turn["input_id"], len(near) + place)
            for place, row in enumerate(fresh.values())
        ]

    def _of_snapshots(self, events: Sequence[Row], near: Sequence[Row]) -> list[dict[str, Any]]:
        """Rows of the snapshots, supplied or created by events, of which the turn has no item."""
        shown = {unquote(row["source_id"].split(":")[1]) for row in near if row["source_id"].startswith("item:")}
        created = (event["snapshot_ids"] or () for event in events if event["kind"] == "retrieval.snapshot.created")
        names = dict.fromkeys([*self.items["snapshot_id"].to_pylist(), *chain.from_iterable(created)])
        return [
            {"source_id": f"snapshot:{name}", "source_kind": "retrieval_result", "part": "retrieval", "standing": "evidence", "reference": name,
             "content_class": "fact", "reason_code": "other_turn", "decided_by": "relevance"}
            for name in names
            if name not in shown
        ]  # fmt: skip


def texts_of_log(events: pa.Table, matches: pa.Table, memories: pa.Table) -> dict[str, str]:
    """Texts of memories, matches and pasted parts, by source."""
    names = dict(zip(events["seq"].to_pylist(), events["event_id"].to_pylist(), strict=True))
    found = {f"pasted:{id_}": text for id_, text in zip(names.values(), events["pasted"].to_pylist(), strict=True)}
    found |= {f"memory:{row['memory_id']}": row["text"] for row in memories.select(["memory_id", "text"]).to_pylist()}
    for row in matches.select(["seq", "place", "text"]).to_pylist():
        found[f"match:{names.get(row['seq'])}:{row['place']}"] = row["text"]
    return {source: text for source, text in found.items() if text}


def _before(table: pa.Table, place: str, session: str, end: int, columns: Sequence[str]) -> list[Row]:
    """The rows of a session before an event."""
    mine = pc.and_(pc.equal(table["session_id"], session), pc.less(table[place], end))
    return table.filter(pc.fill_null(mine, False)).select(list(columns)).to_pylist()


def _of_event(event: Row) -> dict[str, Any]:
    """The ledger row of an event before the horizon."""
    standing = {"user": "history", "system": "history", "model": "hint"}.get(event["actor"], "untrusted")
    content = {"user-only": "ui_only", "model-visible": "fact"}.get(event["visibility"], "audit_only")
    return _early(event, f"event:{event['event_id']}", "recent_tail", "recent_tail", standing, content) | {
        "path": event["path"], "characters": event["characters"], "masked": event["masked"],
    }  # fmt: skip


def _brought(events: Mapping[int, Row], matches: Sequence[Row], memories: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """The ledger rows of texts pasted into these events, of their matches, and of the memories they recalled."""
    for event in events.values():
        if text := event["pasted"]:
            id_ = f"pasted:{event['event_id']}"
            yield _early(event, id_, "pasted_text", "recent_tail", "untrusted", "untrusted_text", text)
    for each in matches:
        id_ = f"match:{events[each['seq']]['event_id']}:{each['place']}"
        kinds = ("search_match", "retrieval", "untrusted", "untrusted_text")
        yield _early(events[each["seq"]], id_, *kinds, each["text"]) | {"path": each["path"]}
    for each in memories:
        id_ = f"memory:{each['memory_id']}"
        yield _early(events[each["from_seq"]], id_, "memory_candidate", "memory", "hint", "fact", each["text"])


def _early(
    event: Row, id_: str, kind: str, part: str, standing: str, content: str, text: str | None = None
) -> dict[str, Any]:
    """A row of a source before the horizon; its reference opens the event."""
    return {
        "source_id": id_, "source_kind": kind, "part": part, "standing": standing, "reference": f"event:{event['event_id']}", "content_class": content,
        "reason_code": "before_horizon", "decided_by": "worth", "characters": len(text or ""),
    }  # fmt: skip


def _whole(row: dict[str, Any], input_id: str, position: int) -> dict[str, Any]:
    """A row with all columns of the ledger."""
    given = {
        "input_id": input_id, "position": position, "action": "exclude", "mode": "none", "trust_level": DECISION_TRUST[row["standing"]],
        "reason": REASONS[row["reason_code"]], "level": 9, "place": -1, "tokens": 0, "token_budget": 0, "characters": 0, "shown_characters": 0,
        "masked": 0, "lost_sentences": 0,
    } | row  # fmt: skip
    return {name: given.get(name) for name in CONTEXT_DECISIONS.columns}
