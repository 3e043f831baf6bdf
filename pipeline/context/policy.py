"""`ContextPolicy`: projects model inputs from a session log, rules, memories and budgets.

    policy = ContextPolicy(rules=["Only modify the current workspace."], tools=[...])
    seen = policy.project(events=events, budget={"maxTokens": 8000})
    seen.messages, seen.tool_schemas, seen.ledger()

Note: a policy is stateless between calls and reads no clock. An input is a function of its arguments: the log up to an
event, rules, memories, snapshots, tools, budget. `as_of` defaults to the time of the last event.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypedDict, Unpack

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.context_tables import CONTEXT_TURNS, STATE_FACTS
from ...nodes.errors import InputError
from ..line.tokenizers import load_counters
from ..sources.jsonl import Record
from .events import LogTables, read_events
from .inputs import (
    EPOCH,
    budget_fields,
    default_fields,
    distinguished,
    items_of_replay,
    items_table,
    read_memories,
    read_snapshots,
    read_tools,
    seed_facts,
    turn_row,
)
from .line import run_context
from .log import LogView
from .masking import expect_unicode, is_absolute, listed
from .phases import load_phases
from .projection import Projection, Projections
from .rules import read_rules

__all__ = ["ContextPolicy"]


class Given(TypedDict, total=False):
    """What the inputs of turns are made of."""

    events: Iterable[Any] | LogTables | LogView
    """Session events in their order (S3.58), or the view of a session log."""
    state: Mapping[str, Any] | None
    """An AgentState of the harness's own; events add to it."""
    budget: Mapping[str, Any] | None
    """`maxTokens`, `reservedOutputTokens`, `targetTokens`, `userWordsTokens`, `reserved` by part, `tokenizer`, `trimOrder`,
    `tailLimit`, `fences`."""
    visible_tools: Iterable[Any] | None
    """The tools of these turns, replacing those of the policy."""
    memories: Iterable[Any]
    """Governed memory records."""
    snapshots: Iterable[Any]
    """Retrieval snapshots: JSON objects, or replays of this project's own. Those that neither an event nor `snapshotIds`
    names belong to these turns."""
    session_id: str | None


class ContextPolicy:
    """The configuration of a harness: rules, tools, phases, instruction sources, and defaults for its turns.

    Args:
        rules: rules of the system (texts) and of repositories (objects with `path` and `text`), see `rules.read_rules`.
        tools: tool schemas, neutral or in a provider's shape.
        checks: prefixes of command lines that are checks, such as `pnpm test`.
        duty_words: words that protect a section of rules from becoming a reference, besides the bundled ones.
        phases: a YAML file of phases that replaces the bundled one.
        defaults: fields of every turn: project, working_directory, task_paths, package_root, zones, instruction_sources, run_id.

    Raises:
        InputError, PolicyError: an argument is invalid.
    """

    def __init__(
        self,
        *,
        rules: Iterable[Any] = (),
        tools: Iterable[Any] = (),
        checks: Iterable[str] = (),
        duty_words: Iterable[str] = (),
        phases: str | Path | None = None,
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        self.rules, self.tools = read_rules(rules, duty_words=duty_words), read_tools(tools)
        self.checks = tuple(listed(checks, "command prefixes", "checks"))
        self.phases = load_phases(phases)
        self.defaults = default_fields({} if defaults is None else defaults)

    def project(self, *, turn: Mapping[str, Any] | None = None, **given: Unpack[Given]) -> Projection:
        """The input of one turn, at the end of the events unless `turn` names an earlier one.

        Args:
            turn: `turnId`, `asOfSeq`, `phase`, `snapshotIds` and other fields of the turn. Without `inputId`, the input
                is named after its session and `turnId`, or else its place in the log.
            given: see `Given`.

        Raises:
            InputError: an argument is invalid.
        """
        return self.project_turns(turns=[{} if turn is None else turn], **given)[0]

    def project_turns(self, *, turns: Sequence[Mapping[str, Any]], **given: Unpack[Given]) -> Projections:
        """The inputs of many turns of a session, one row each."""
        log, inputs = self._inputs(turns, given)
        return Projections(inputs["context_turns"], run_context(inputs), log.artifacts)

    def _inputs(self, turns: Sequence[Mapping[str, Any]], given: Given) -> tuple[LogTables, dict[str, Any]]:
        """The log and the inputs of the line, checked."""
        if unknown := sorted(given.keys() - Given.__annotations__.keys()):
            raise TypeError(f"unexpected argument {unknown[0]!r}")
        named, earlier = set[str](), STATE_FACTS.empty()
        events, session_id, tools = given.get("events", ()), given.get("session_id"), given.get("visible_tools")
        if isinstance(events, LogView):
            named |= events.named
            events, earlier = events.tables, events.facts
        if isinstance(events, LogTables):
            log, own = events, events.events["session_id"].slice(0, 1).to_pylist()
            session_id = session_id or (own[0] if own else "session")
        else:
            session_id = "session" if session_id is None else session_id
            expect_unicode(session_id, "session_id")
            log = read_events(events, session_id, self.checks)
        table = self.turns_of(turns, log.events, session_id, given.get("budget"))
        named_from = partial(_from_folder, root=_root(table))
        log = replace(log, events=named_from(log.events))
        snapshots = listed(given.get("snapshots", ()), "snapshots", "snapshots")
        items: list[Mapping[str, Any]] = [*read_snapshots(each for each in snapshots if not _is_replay(each))]
        items = distinguished(
            [*items, *(row for each in snapshots if _is_replay(each) for row in items_of_replay(each))]
        )
        named |= {name for names in log.events["snapshot_ids"].to_pylist() for name in names or ()}
        return log, {
            "context_turns": table,
            "log_events": log.events,
            "state_facts": named_from(
                pa.concat_tables([seed_facts(given.get("state"), session_id), earlier]), column="fact"
            ),
            "rule_texts": self.rules,
            "memory_records": pa.concat_tables([read_memories(given.get("memories", ())), log.memories]),
            "retrieved_items": named_from(
                items_table({**item, "given": item["snapshot_id"] not in named} for item in items)
            ),
            "tool_schemas": self.tools if tools is None else read_tools(tools, "visible_tools"),
            "phase_policies": self.phases,
            "counters": load_counters(set(table["tokenizer"].to_pylist())),
        }

    def turns_of(
        self,
        turns: Sequence[Mapping[str, Any]],
        events: pa.Table,
        session_id: str | None,
        budget: Mapping[str, Any] | None = None,
    ) -> pa.Table:
        """CONTEXT_TURNS from the fields that a caller passes for each turn.

        Raises:
            InputError: a field is invalid, or two turns have the same id.
        """
        seqs = events["seq"].to_pylist()
        first, end = (seqs[0], seqs[-1] + 1) if seqs else (0, 0)
        rounds, times, names = (events[name] for name in ("turn", "created_at", "turn_id"))
        shared = budget_fields(budget)
        if not listed(turns, "turns", "turns"):
            raise InputError.described("at least one turn", "none", "turns")
        rows = []
        for number, value in enumerate(turns):
            at = f"turns[{number}]"
            record = Record.of(value, at)
            expect_unicode(value, at)
            given = record.whole("asOfSeq", least=first, most=end)
            seq = end if given is None else given
            last = seq - 1 - first
            defaults = {
                **self.defaults,
                "checks": list(self.checks),
                "session_id": session_id,
                "turn": rounds[last].as_py() + 1 if last >= 0 else 0,
                "turn_id": str(names[last].as_py() or rounds[last].as_py()) if last >= 0 else "0",
                "as_of": times[last].as_py() if last >= 0 else EPOCH,
                "as_of_seq": seq,
                **(shared if value.get("budget") is None else budget_fields(value["budget"], f"{at}.budget")),
            }
            row = turn_row(value, defaults, at)
            named = value.get("inputId", value.get("input_id"))
            spoken = row["turn_id"] if "turnId" in value or "turn_id" in value else seq
            row["input_id"] = str(named) if named else f"{session_id}/{spoken}"
            rows.append(row)
        table = CONTEXT_TURNS.from_rows(sorted(rows, key=lambda row: row["as_of_seq"]))
        if pc.count_distinct(table["input_id"]).as_py() < table.num_rows:
            raise InputError.described(
                "an id of its own for every turn", "two turns with one", "turns", hint="`inputId` names a turn."
            )
        return table


def _is_replay(snapshot: Any) -> bool:
    return hasattr(snapshot, "citations")


def _root(turns: pa.Table) -> str | None:
    """The absolute folder to which paths of these turns are relative, if they have one.

    Raises:
        InputError: they have several.
    """
    found = [each for each in pc.unique(turns["working_directory"]).to_pylist() if is_absolute(each)]
    if len(found) > 1:
        raise InputError.described("one absolute working directory for all turns", f"{len(found)}", "turns",
                                   hint="paths are named from it: project the turns of each on their own.")  # fmt: skip
    return found[0] if found else None


def _from_folder(table: pa.Table, root: str | None, column: str = "path") -> pa.Table:
    """A table whose paths (and locators) below an absolute working directory are relative to it."""
    if root is None:
        return table
    pattern = f"^{re.escape(root.rstrip('/'))}/"
    if "matches" in table.column_names:  # JSON, in which a path follows its name
        place, values = table.schema.get_field_index("matches"), table["matches"]
        named = f'"path": "{root.rstrip("/")}/'
        table = table.set_column(
            place, table.schema.field(place), pc.replace_substring(values, pattern=named, replacement='"path": "')
        )
    for name in {column, "locator", "changed_files"} & set(table.column_names):
        place, values = table.schema.get_field_index(name), table[name].combine_chunks()
        flat = values.values if pa.types.is_list(values.type) else values
        flat = pc.replace_substring_regex(flat, pattern=pattern, replacement="")
        if pa.types.is_list(values.type):
            flat = pa.ListArray.from_arrays(values.offsets, flat, mask=values.is_null())
        table = table.set_column(place, table.schema.field(place), flat)
    return table
