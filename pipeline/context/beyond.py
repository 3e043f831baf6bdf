"""Rows of the ledger for what a turn does not look at one by one: events before its horizon, what they recalled, and snapshots
that were retrieved for other turns.

Gives `Beyond`, which has the tables that a projection was made from, `Decisions`, the rows of a turn followed by those of older
events, and `early_rows`, which makes the rows of older events for a record whose log is available.

Note: the line makes no row per turn and old event, so that its cost does not grow with the session.
The rows are made here, when a reader gets that far; of a log folder, the lines before its checkpoint are read only then. A recorded
ledger has one row, `older`, for all of those events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.context_tables import CONTEXT_DECISIONS
from ...nodes.turns.session_sources import item_ids
from ...nodes.turns.words import DECISION_TRUST, REASONS
from .events import LogTables
from .masking import from_folder

__all__ = ["Beyond", "Decisions", "early_rows"]

Row = Mapping[str, Any]


class Decisions(Sequence[Row]):
    """The rows of a turn's ledger: those that were made with its input, then those that `far` makes when they are asked for."""

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
class Beyond:
    """The log and the items of snapshots that a projection was made from."""

    log: LogTables
    items: pa.Table

    @cached_property
    def whole(self) -> LogTables:
        """All events; those before the loaded ones are read now."""
        return self.log if self.log.before is None else self.log.before().then(self.log)

    @cached_property
    def _snapshots(self) -> list[tuple[str, str]]:
        """Per item: its snapshot, and its source."""
        return list(zip(self.items["snapshot_id"].to_pylist(), item_ids(self.items).to_pylist(), strict=True))

    def rows(self, turn: Row, near: Sequence[Row]) -> list[Row]:
        """The rows that the input of a turn has none for, in the order of events, then snapshots."""
        known = {row["source_id"] for row in near}
        shown = {snapshot for snapshot, source in self._snapshots if source in known}
        session, end = turn["session_id"], turn["as_of_seq"]
        events = self.whole.events.filter(self._of(self.whole.events, session, "seq", end))
        rows = events.select(["event_id", "actor", "path", "characters", "masked", "visibility"]).to_pylist()
        made = [_of_event(event) for event in rows if f"event:{event['event_id']}" not in known]
        memories = self.whole.memories.filter(self._of(self.whole.memories, session, "from_seq", end))
        for memory in memories.select(["memory_id", "text"]).to_pylist():
            id_ = f"memory:{memory['memory_id']}"
            if id_ not in known:
                known.add(id_)
                made.append(
                    {"source_id": id_, "source_kind": "memory_candidate", "part": "memory", "standing": "hint", "reference": id_, "content_class": "fact",
                     "reason_code": "before_horizon", "decided_by": "worth", "characters": len(memory["text"] or "")}
                )  # fmt: skip
        made += [
            {"source_id": f"snapshot:{name}", "source_kind": "retrieval_result", "part": "retrieval", "standing": "evidence", "reference": name,
             "content_class": "fact", "reason_code": "other_turn", "decided_by": "relevance"}
            for name in dict.fromkeys(snapshot for snapshot, _ in self._snapshots)
            if name not in shown
        ]  # fmt: skip
        return [_whole(row, turn["input_id"], len(near) + place) for place, row in enumerate(made)]

    @staticmethod
    def _of(table: pa.Table, session: str, column: str, end: int) -> pa.Array:
        return pc.fill_null(pc.and_(pc.equal(table["session_id"], session), pc.less(table[column], end)), False)


def early_rows(turn: Row, near: Sequence[Row], events: Sequence[Row]) -> list[Row]:
    """The rows of events (of LOG_EVENTS) that lie before a turn and that its ledger has no row for, as a record has none of those
    before the horizon.
    """
    known, root = {row["source_id"] for row in near}, turn["working_directory"]
    made = [
        _of_event(event) | {"path": from_folder(event["path"], root)}
        for event in events
        if event["seq"] < turn["as_of_seq"] and f"event:{event['event_id']}" not in known
    ]
    return [_whole(row, turn["input_id"], len(near) + place) for place, row in enumerate(made)]


def _of_event(event: Row) -> dict[str, Any]:
    """What the ledger says of an event before the horizon."""
    id_ = f"event:{event['event_id']}"
    standing = {"user": "history", "system": "history", "model": "hint"}.get(event["actor"], "untrusted")
    return {
        "source_id": id_, "source_kind": "recent_tail", "part": "recent_tail", "standing": standing, "path": event["path"], "reference": id_,
        "reason_code": "before_horizon", "decided_by": "worth", "characters": event["characters"], "masked": event["masked"],
        "content_class": {"user-only": "ui_only", "model-visible": "fact"}.get(event["visibility"], "audit_only"),
    }  # fmt: skip


def _whole(row: dict[str, Any], input_id: str, position: int) -> dict[str, Any]:
    """A row with all columns of the ledger."""
    given = {
        "input_id": input_id, "position": position, "action": "exclude", "mode": "none", "trust_level": DECISION_TRUST[row["standing"]],
        "reason": REASONS[row["reason_code"]], "level": 9, "place": -1, "tokens": 0, "token_budget": 0, "characters": 0, "shown_characters": 0,
        "masked": 0, "lost_sentences": 0,
    } | row  # fmt: skip
    return {name: given.get(name) for name in CONTEXT_DECISIONS.columns}
