"""`ContextPolicy`: projects model inputs from a session log, rules, memories and budgets.

    policy = ContextPolicy(rules=["Only modify the current workspace."], tools=[...])
    seen = policy.project(events=events, budget={"maxTokens": 8000})
    seen.messages, seen.tool_schemas, seen.ledger()

Note: a policy is stateless between calls and reads no clock. An input is a function of its arguments: the log up to an
event, rules, memories, snapshots, tools, budget. `as_of` defaults to the time of the last event.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict, Unpack

from ...nodes.context_tables import CONTEXT_TURNS
from ...nodes.errors import InputError
from ...nodes.turns.folding import Fact
from ..line.tokenizers import load_counters
from .event_rows import with_checks
from .events import LogRows, read_events
from .inputs import (
    budget_fields,
    default_fields,
    items_of_replay,
    read_memories,
    read_snapshots,
    read_tools,
    seed_facts,
    turn_row,
)
from .line import run_context
from .masking import expect_unicode, from_folder, is_absolute, listed
from .projection import Projection, Projections
from .rules import read_rules


class Given(TypedDict, total=False):
    """What the inputs of turns are made of."""

    events: Iterable[Any] | LogRows
    """Session events in their order (S3.58), or the rows of a session log."""
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
    """The configuration of a harness: rules, tools, instruction sources, and defaults for its turns.

    Args:
        rules: rules of the system (texts) and of repositories (objects with `path` and `text`), see `rules.read_rules`.
        tools: tool schemas, neutral or in a provider's shape.
        checks: prefixes of command lines that are checks, such as `pnpm test`.
        duty_words: words that protect a section of rules from becoming a reference, besides the bundled ones.
        defaults: fields of every turn: project, working_directory, task_paths, package_root, zones, instruction_sources, run_id.

    Raises:
        InputError: an argument is invalid.
    """

    def __init__(
        self,
        *,
        rules: Iterable[Any] = (),
        tools: Iterable[Any] = (),
        checks: Iterable[str] = (),
        duty_words: Iterable[str] = (),
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        self.rules, self.tools = read_rules(rules, duty_words=duty_words), read_tools(tools)
        self.checks = tuple(listed(checks, "command prefixes", "checks"))
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
        log, rows, inputs, before = self._inputs(turns, given)
        return Projections(
            {"context_turns": CONTEXT_TURNS.from_rows(rows), **run_context(rows, inputs, before)}, log.artifacts
        )

    def _inputs(
        self, turns: Sequence[Mapping[str, Any]], given: Given
    ) -> tuple[LogRows, list[dict[str, Any]], dict[str, Any], list[tuple[str, Fact]]]:
        """The log, the turns, the inputs of the line and the facts from before the log, checked."""
        if unknown := sorted(given.keys() - Given.__annotations__.keys()):
            raise TypeError(f"unexpected argument {unknown[0]!r}")
        events, session_id, tools = given.get("events", ()), given.get("session_id"), given.get("visible_tools")
        if isinstance(events, LogRows):
            log = events
        else:
            session_id = "session" if session_id is None else session_id
            expect_unicode(session_id, "session_id")
            log = read_events(events, session_id)
        shared = {
            **self.defaults, "checks": list(self.checks), "session_id": session_id or log.session_id, **budget_fields(given.get("budget"))
        }  # fmt: skip
        if not listed(turns, "turns", "turns"):
            raise InputError.described("at least one turn", "none", "turns")
        rows = [turn_row(value, shared, log.events, f"turns[{number}]") for number, value in enumerate(turns)]
        if len({row["input_id"] for row in rows}) < len(rows):
            hint = "`inputId` names a turn."
            raise InputError.described("an id of its own for every turn", "two turns with one", "turns", hint=hint)
        rows.sort(key=lambda row: row["as_of_seq"])
        root = _root(rows)
        read = [with_checks(_from_folder(row, root), self.checks) for row in log.events]
        snapshots = listed(given.get("snapshots", ()), "snapshots", "snapshots")
        named = set[str]().union(*(row["snapshot_ids"] or () for row in read))
        items: dict[str, list[dict[str, Any]]] = {}
        for row in (
            *read_snapshots(each for each in snapshots if not _is_replay(each)),
            *(row for each in snapshots if _is_replay(each) for row in items_of_replay(each)),
        ):
            name = row["snapshot_id"]
            items.setdefault(name, []).append(_from_folder({**row, "given": name not in named}, root))
        inputs = {
            "log_events": read,
            "rule_texts": self.rules,
            "memory_records": [*read_memories(given.get("memories", ())), *log.memories],
            "retrieved_items": items,
            "tool_schemas": self.tools if tools is None else read_tools(tools, "visible_tools"),
            "counters": load_counters({row["tokenizer"] for row in rows}),
        }
        return log, rows, inputs, seed_facts(given.get("state"), root)


def _is_replay(snapshot: Any) -> bool:
    return hasattr(snapshot, "citations")


def _root(turns: Sequence[Mapping[str, Any]]) -> str | None:
    """The absolute folder to which paths of these turns are relative, if they have one.

    Raises:
        InputError: they have several.
    """
    found = [*{row["working_directory"] for row in turns if is_absolute(row["working_directory"])}]
    if len(found) > 1:
        raise InputError.described("one absolute working directory for all turns", f"{len(found)}", "turns",
                                   hint="paths are named from it: project the turns of each on their own.")  # fmt: skip
    return found[0] if found else None


def _from_folder(row: dict[str, Any], root: str | None) -> dict[str, Any]:
    """An event or an item whose paths below an absolute working directory are relative to it."""
    if root is None:
        return row
    more: dict[str, Any] = {name: from_folder(row[name], root) for name in ("path", "locator") if row.get(name)}
    if row.get("changed_files"):
        more["changed_files"] = [from_folder(path, root) for path in row["changed_files"]]
    if row.get("matches"):
        more["matches"] = [{**match, "path": from_folder(match["path"], root)} for match in row["matches"]]
    return {**row, **more}
