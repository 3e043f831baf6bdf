"""Sources under judgment: the operations that all gates of `context_selection` share.

Gives `Judgment`: which gate refused each source and why, the facts that hold in its turn, the paths that its task
touches.
"""

from __future__ import annotations

import re
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.keys import among, constants, flat, integers, objects, positions, rank_within
from .as_of import FOREVER, Sessions, holding
from .joining import joined
from .scopes import ALWAYS, TOPICS, Paths, permitted, topics_in
from .words import SELECTION_GATES

Int = NDArray[np.int64]
Bool = NDArray[np.bool_]

SHOWN_FOR = {
    "system_rules": "always_present", "repository_instructions": "rule_in_scope", "user_goal": "always_present",
    "active_constraint": "always_present", "rule_conflict": "rules_disagree", "state_summary": "always_present", "latest_observation": "latest_result",
    "recent_tail": "key_event", "user_message": "user_message", "pasted_text": "pasted_with_goal", "file_content": "current_content", "search_match": "on_demand",
    "retrieval_result": "snapshot_item", "memory_candidate": "verified_memory", "history_summary": "history_kept",
    "older_history": "older_events", "tool_schema": "phase_tool",
}  # fmt: skip
"""The reason for showing each kind of source, unless a gate sets a more specific one."""


class Judgment:
    """The sources under judgment. `gate` is the index of the gate that refused, `len(SELECTION_GATES)` where none did."""

    def __init__(self, sources: pa.Table, turns: pa.Table, states: pa.Table, facts: pa.Table, phases: pa.Table) -> None:
        self.sources, self.turns, self.states, self.facts = sources, turns, states, facts
        rows = sources.num_rows
        self.turn = positions(sources["input_id"], turns["input_id"])
        self.row, self.seq = integers(sources["row"]), integers(sources["seq"])
        self.kind, self.path = flat(sources["source_kind"]), flat(sources["path"])
        self.policy = positions(states["phase"], phases["phase"])
        self.phases = phases
        self.gate = np.full(rows, len(SELECTION_GATES.values), dtype=np.int64)
        kinds = tuple(SHOWN_FOR)
        self.reason = objects(
            constants(tuple(SHOWN_FOR.values())).take(pc.index_in(self.kind, value_set=constants(kinds)))
        )
        self.referenced = self.of("older_history")
        self.hidden = np.zeros(rows, dtype=bool)
        """Sources that the permission gate refuses, even if another gate refused them first: not even their names may
        be disclosed.
        """
        self.tier = np.zeros(rows, dtype=np.int64)
        self.rank = np.zeros(rows, dtype=np.int64)
        self.carrier = pa.nulls(rows, pa.string())
        self.sessions = Sessions.of(turns)

    def of(self, *kinds: str) -> Bool:
        """Whether each source is of one of these kinds."""
        return among(self.kind, kinds)

    def allowed(self, name: str) -> Int:
        """The value of a numeric column in the phase of each source."""
        return self.phases[name].to_numpy()[self.policy[self.turn]]

    def refuse(self, gate: str, mask: Bool, reason: str) -> None:
        """Refuse sources that neither an earlier gate nor an earlier rule of this one refused."""
        place = SELECTION_GATES.values.index(gate)
        if gate == "permission":
            self.hidden |= mask
        mine = mask & (self.gate > place)
        self.gate[mine] = place
        self.reason[mine] = reason

    def held(self, slot: str) -> tuple[Int, pa.Array, Int]:
        """(turn, fact, event) of the facts that hold in a slot of the state."""
        turn, some = self._held_rows(slot)
        return turn, flat(some["fact"]), integers(some["from_seq"])

    def so_far(self, slot: str) -> tuple[Int, pa.Array]:
        """The values of a slot in zones that the turns may see, each with its turn."""
        turn, some = self._held_rows(slot)
        seen = permitted(turn, flat(some["zone"]), self.turns["zones"])
        return turn[seen], flat(some["value"]).filter(pa.array(seen))

    def _held_rows(self, slot: str) -> tuple[Int, pa.Table]:
        """The facts that hold in a slot of the state, each with its turn."""
        some = self.facts.filter(pc.equal(self.facts["slot"], slot))
        until = integers(pc.fill_null(some["until_seq"], FOREVER))
        fact, turn = holding(self.sessions, self.sessions.codes(some["session_id"]), integers(some["from_seq"]), until)
        return turn, some.select(["fact", "value", "zone", "from_seq"]).take(pa.array(fact))

    def refuse_some(self, gate: str, index: Int, mask: Bool, reason: str) -> None:
        whole = np.zeros(len(self.gate), dtype=bool)
        whole[index] = mask
        self.refuse(gate, whole, reason)

    def task_paths(self) -> Paths:
        """The paths of each task: the working directory, those of the caller, and the folders of files that the user
        names or the agent read or modified; none of tool output.
        """
        working = joined(flat(self.turns["working_directory"]), ".", between="/")
        there = np.asarray(working.is_valid()).astype(bool)
        given, seen = Paths.of(self.turns["task_paths"]), self._folders_so_far
        return Paths(
            np.concatenate([given.owner, np.flatnonzero(there), seen.owner]),
            pa.concat_arrays([given.path, working.filter(pa.array(there)).cast(pa.string()), seen.path]),
        )

    def task_topics(self) -> NDArray[np.bool_]:
        """The topics that each task touches: by its goal, the paths of the caller, and those of the session so far. A
        path that a tool prints can add a section of an applicable rule file, never another file.
        """
        about = topics_in(flat(self.states["user_goal"]))
        for paths in (Paths.of(self.turns["task_paths"]), self._folders_so_far):
            np.logical_or.at(about, paths.owner, topics_in(paths.path))
        owner, name = self.so_far("topic")
        about[owner, integers(pc.index_in(name, value_set=constants(tuple(TOPICS), name.type)))] = True
        about[:, ALWAYS] = True
        return about

    @cached_property
    def _folders_so_far(self) -> Paths:
        """The folders of the session as paths (`server/.`), relative to the absolute working directory, if there is one.

        Note: a state folded from a checkpoint has read paths as they were logged, one folded from the loaded events has
        them relative already.
        """
        owner, folder = self.so_far("folder")
        for root in pc.unique(self.turns["working_directory"]).drop_null().to_pylist():
            if re.match("/|[A-Za-z]:/", root):
                folder = pc.replace_substring_regex(folder, pattern=f"^{re.escape(root.rstrip('/'))}/", replacement="")
        return Paths(owner, joined(folder, ".", between="/").cast(pa.string()))

    def zone(self, index: Int, table: pa.Table) -> Bool:
        """Whether the turn may see the zone of each source."""
        return permitted(self.turn[index], flat(table["zone"]).take(pa.array(self.row[index])), self.turns["zones"])

    def judge_sight(self, index: Int, turn_sees: Bool, visibility: pa.Array) -> None:
        """Refuse sources that their zone or visibility withholds from the model; a null visibility does not."""
        self.refuse_some("permission", index, among(visibility, ("user-only",)), "ui_only")
        self.refuse_some("permission", index, among(visibility, ("runtime-only", "denied")), "audit_only")
        self.refuse_some("permission", index, ~turn_sees, "zone_denied")

    def judge_given(self, index: Int, table: pa.Table) -> None:
        """Refuse sources that a caller supplied with a zone or a visibility that withholds them from the turn."""
        at = pa.array(self.row[index])
        sees = self.zone(index, table) | ~known(flat(table["zone"]).take(at))
        self.judge_sight(index, sees, flat(table["visibility"]).take(at))

    def passed(self) -> Bool:
        return self.gate == len(SELECTION_GATES.values)

    def ranked(self, ordered: Int) -> None:
        """Set the ranks within each turn, sources that no gate refused first; `ordered` is sorted by turn and merit."""
        passed = self.passed()[ordered]
        order = np.lexsort((np.arange(len(ordered)), ~passed, self.turn[ordered]))
        self.rank[ordered[order]] = rank_within(self.turn[ordered[order]])


def known(values: pa.Array) -> Bool:
    return np.asarray(values.is_valid()).astype(bool)
