"""Inputs of a projection besides the session log, read strictly: rules, memories, tools, snapshots, budget, turns.

Gives: `read_rules`, `rule_files`, `read_memories`, `read_tools`, `read_snapshots`, `items_of_replay`, `distinguished`, `seed_facts`. Names
of document 003 and snake_case are both read.

Note: a rule file is a source of instructions because the contract names its path, and its sections are separate rules,
so a task gets only those that it touches.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.blocks.token_counting import BASE
from ...nodes.context_tables import MEMORY_RECORDS, RETRIEVED_ITEMS, STATE_FACTS, TOOL_SCHEMAS
from ...nodes.errors import InputError
from ...nodes.turns.asserting import ABOUT
from ...nodes.turns.duties import binding
from ...nodes.turns.frame import STYLES
from ...nodes.turns.scopes import TOPICS, folders_of, last_segments, paths_named, topics_in
from ...nodes.turns.session_sources import item_names
from ...nodes.turns.words import CAPABILITIES, PARTS, PHASES, TRIM_ORDERS
from ...nodes.vocabulary import STANDINGS, ZONES
from ..line.tokenizers import known_name
from ..parsing.quoting import canonical
from ..parsing.strict_json import json_text
from ..sources.jsonl import Record
from .checks import EVERYTHING
from .event_rows import given_memory, sight_of
from .flags import flags_of
from .masking import from_folder, is_absolute, listed, masked_values, one_path
from .rules import INSTRUCTION_FILES, read_rules, rule_files
from .tool_names import capability_of, narrowed

__all__ = [
    "INSTRUCTION_FILES",
    "budget_fields",
    "default_fields",
    "distinguished",
    "items_of_replay",
    "read_memories",
    "read_rules",
    "read_snapshots",
    "read_tools",
    "rule_files",
    "seed_facts",
]

MOST_MEMORIES = 256
DEFAULT_WINDOW, DEFAULT_RESERVED, DEFAULT_TAIL = 16_000, 1_024, 8
LEAST_TAIL, MOST_TAIL = 6, 10
"""Number of key events in the tail (S3.51)."""


def read_memories(values: Iterable[Any], at: str = "memories") -> pa.Table:
    """MEMORY_RECORDS that a caller supplies for every session.

    Raises:
        InputError: a record is invalid, or there are more than a projection reads.
    """
    rows = [
        given_memory(Record.of(value, f"{at}[{number}]"))
        for number, value in enumerate(masked_values(listed(values, "memories", at), lambda n: f"{at}[{n}]"))
    ]
    if len(rows) > MOST_MEMORIES:
        raise InputError.described(f"at most {MOST_MEMORIES} memories", str(len(rows)), at,
                                   hint="a context policy does not search: retrieve the memories for the task first, and pass only these.")  # fmt: skip
    _expect_once("memory", [row["memory_id"] for row in rows], at)
    return MEMORY_RECORDS.from_rows(rows)


def _expect_once(what: str, names: list[str], at: str) -> None:
    """Reject a duplicate name: the last one would silently win."""
    if len(set(names)) != len(names):
        raise InputError.described(f"every {what} once", f"{next(n for n in names if names.count(n) > 1)!r} again", at)


def read_tools(values: Iterable[Any], at: str = "tools") -> pa.Table:
    """TOOL_SCHEMAS from tools in the neutral, the OpenAI or the Anthropic shape; `capability` is guessed from the name
    if it is missing.
    """
    rows = []
    for number, value in enumerate(masked_values(listed(values, "tools", at), lambda n: f"{at}[{n}]")):
        record = Record.of({"name": value} if isinstance(value, str) else value, f"{at}[{number}]")
        inner = record.mapping("function") if isinstance(record.fields.get("function"), dict) else record
        name = inner.required("name")
        given = record.value("capability")
        named = None if given is None else canonical(CAPABILITIES, given, record.place("capability"))
        capability = named or narrowed(capability_of(name), inner)
        parameters = inner.value("parameters", "input_schema", "inputSchema") or {"type": "object", "properties": {}}
        schema = {"name": name, "description": inner.text("description") or "", "parameters": parameters}
        text = json_text(schema, record.at, sort_keys=True)
        phases = record.strings("phases")
        phases = None if phases is None else [canonical(PHASES, each, record.place("phases")) for each in phases]
        rows.append({"tool": name, "place": number, "capability": capability, "phases": phases, "schema": text})
    _expect_once("tool", [row["tool"] for row in rows], at)
    return TOOL_SCHEMAS.from_rows(rows)


_RECORDED = (
    "name recorded snapshots as `turn: {snapshotIds: [ID]}`; `snapshots` are objects with `snapshot_id` and `items`."
)


def read_snapshots(values: Iterable[Any], at: str = "snapshots") -> list[dict[str, Any]]:
    """Rows of RETRIEVED_ITEMS from JSON snapshots: `snapshot_id`, `block_ref`, `items` with label, path, text etc."""
    rows: list[dict[str, Any]] = []
    names: list[str] = []
    for number, value in enumerate(masked_values(listed(values, "snapshots", at), lambda n: f"{at}[{n}]")):
        if isinstance(value, str):
            raise InputError.of_kind("an object", value, f"{at}[{number}]", hint=_RECORDED)
        record = Record.of(value, f"{at}[{number}]")
        first = len(rows)
        name, ref = record.required("snapshot_id", "snapshotId", "id"), record.text("block_ref", "blockRef")
        as_of = record.instant("asOf", "as_of", "createdAt", "created_at")
        given = record.value("items", "citations")
        given = [] if given is None else listed(given, "items", record.place("items", "citations"))
        if not given:
            rows.append(
                {
                    "snapshot_id": name,
                    "as_of": as_of,
                    "block_ref": ref or name,
                    "place": 0,
                    "standing": "evidence",
                    **flags_of(None),
                    **sight_of(record),
                }
            )
        for place, each in enumerate(given):
            item = Record.of(each, f"{record.at}.items[{place}]")
            path, line, section = (
                one_path(item.text("path")),
                item.whole("line", "line_start", "lineStart", least=1, what="a line number"),
                item.text("section"),
            )
            end = item.whole("line_end", "lineEnd", least=1, what="a line number")
            span = "" if line is None else f":{line}" + (f"-{end}" if end is not None and end != line else "")
            locator = item.text("locator") or (path or "") + (span or (f"#{section}" if section else ""))
            rows.append(
                {
                    "snapshot_id": name, "as_of": as_of, "block_ref": ref or name, "label": item.required("label"), "place": place + 1,
                    "evidence_id": item.text("evidence_id", "evidenceId", "id"),
                    "evidence_kind": item.text("evidence_kind", "kind") or "doc", "path": path, "locator": locator,
                    "standing": item.word(STANDINGS, "standing", "trust", "trustLevel") or "evidence",
                    **flags_of(path, item),
                    "text": item.text("text", "content", "excerpt"), **{"zone": "internal", **sight_of(record, item)},
                }
            )  # fmt: skip
        names.append(name)
        _expect_once(
            "item of a snapshot", [row["label"] for row in rows[first:] if "label" in row], f"{record.at}.items"
        )
    _expect_once("snapshot", names, at)
    return rows


def distinguished(items: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Items of all snapshots of a projection, supplied and replayed, each with an unambiguous block ref: an ambiguous
    one is replaced by the id of its snapshot.
    """
    shared = _ambiguous(items)
    return [{**row, "block_ref": row["snapshot_id"]} if row["block_ref"] in shared else row for row in items]


def _ambiguous(items: Iterable[Mapping[str, Any]]) -> set[str]:
    """The refs that are ambiguous: one label under them names several rows of evidence."""
    meant = {(row["block_ref"], row.get("label"), row.get("evidence_id") or row["snapshot_id"]) for row in items}
    times = Counter((ref, label) for ref, label, _ in meant)
    return {ref for (ref, label), count in times.items() if count > 1 and label is not None}


def items_of_replay(replay: Any) -> list[dict[str, Any]]:
    """Rows of RETRIEVED_ITEMS from a snapshot of this project, as `runs.replay` reads it; items whose citations do not
    resolve are left out.
    """
    shown = {row["label"]: row for row in replay.tables["trimmed"].to_pylist()}
    rows = []
    for citation in sorted(replay.citations.to_pylist(), key=lambda row: row.get("position", 0)):
        item = shown.get(citation["label"])
        if item is None or item["visible_text"] is None or not citation["resolves"]:
            continue
        path = citation["path"]
        rows.append(
            {
                "snapshot_id": replay.snapshot_id, "as_of": replay.request.get("as_of"), "block_ref": replay.block_ref, "label": citation["label"], "place": len(rows) + 1,
                "evidence_id": citation["evidence_id"], "evidence_kind": citation["evidence_kind"], "path": path,
                "locator": citation["locator"], "standing": citation["standing"],
                **flags_of(path),
                "text": item["visible_text"],
            }
        )  # fmt: skip
    return rows


def items_table(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """RETRIEVED_ITEMS from rows; an item without an evidence id gets its own name as one."""
    table = RETRIEVED_ITEMS.from_rows(list(rows))
    place = table.schema.get_field_index("evidence_id")
    return table.set_column(place, table.schema.field(place), pc.coalesce(table["evidence_id"], item_names(table)))


def budget_fields(value: Any, at: str = "budget") -> dict[str, Any]:
    """The columns of CONTEXT_TURNS that a budget sets (S3.34)."""
    record = Record.of({} if value is None else value, at)
    known = {"maxTokens", "max_tokens", "reserved", "parts", "reservedOutputTokens", "reserved_output_tokens", "tokenizer", "trimOrder", "trim_order",
             "tailLimit", "tail_limit", "disclosure", "fences"}  # fmt: skip
    record.expect_no_others(sorted(known))
    order = record.value("trimOrder", "trim_order")
    style = record.text("fences") or STYLES[0]
    if style not in STYLES:
        raise InputError.one_of(STYLES, style, record.place("fences"))
    tail = record.whole("tailLimit", "tail_limit", least=LEAST_TAIL, most=MOST_TAIL, what="a number of events")
    return {
        "max_tokens": _count(record, DEFAULT_WINDOW, "maxTokens", "max_tokens"),
        "reserved_output_tokens": _count(record, DEFAULT_RESERVED, "reservedOutputTokens", "reserved_output_tokens"),
        "tokenizer": known_name(record.text("tokenizer") or BASE, record.place("tokenizer")),
        "limits": _numbers(record, "reserved", "parts"),
        "trim_order": _trim_order(order, record.place("trimOrder", "trim_order")),
        "tail_limit": DEFAULT_TAIL if tail is None else tail,
        "disclosure": _numbers(record, "disclosure"),
        "fences": style,
    }


def _count(record: Record, default: int, *names: str) -> int:
    value = record.whole(*names)
    return default if value is None else value


def _numbers(record: Record, *names: str) -> list[str]:
    value = record.value(*names)
    if value is None:
        return []
    parts = Record.of(value, record.place(*names))
    return sorted(f"{canonical(PARTS, name, parts.at)}={_count(parts, 0, name)}" for name in parts.fields)


def _trim_order(value: Any, at: str) -> list[str]:
    if value is None:
        return list(TRIM_ORDERS["default"])
    if isinstance(value, str):
        if value not in TRIM_ORDERS:
            raise InputError.one_of(TRIM_ORDERS, value, at)
        return list(TRIM_ORDERS[value])
    known = TRIM_ORDERS["default"]
    if not isinstance(value, list):
        raise InputError.of_kind("a list of parts, or the name of an order", value, at)
    for name in value:
        if name not in known:
            raise InputError.one_of(known, name, at)
    if again := next((name for place, name in enumerate(value) if name in value[:place]), None):
        raise InputError.described("every part once", f"{again!r} again", at)
    if missing := [name for name in known if name not in value]:
        raise InputError.described(f"every part once: {', '.join(known)}", f"a list without {', '.join(missing)}", at)
    return value


def seed_facts(state: Any, session_id: str, at: str = "state") -> pa.Table:
    """STATE_FACTS of an AgentState kept by the harness (S3.58): the facts that held before the first loaded event."""
    record = Record.of(masked_values([{} if state is None else state], lambda _: at)[0], at)
    facts: list[tuple[str, str, str, str]] = []
    if goal := record.text("userGoal", "user_goal"):
        facts.append(("goal", "", goal, "user"))
        if bound := binding(goal):
            facts.append(("constraint", "state-goal", bound, "user.goal"))
    if phase := record.word(PHASES, "phase"):
        facts.append(("phase", "", phase, "system"))
    for number, text in enumerate(record.strings("activeConstraints", "active_constraints") or []):
        facts.append(("constraint", f"state:{number}", text, "user"))
    for slot, names in (
        ("modified", ("modifiedFiles", "modified_files")),
        ("artifact", ("artifactRefs", "artifact_refs")),
    ):
        facts += [
            (slot, path, path, "tool") if slot == "artifact" else (slot, one_path(path) or path, "state", "tool")
            for path in record.strings(*names) or []
        ]
    if failure := record.text("latestFailure", "latest_failure"):
        facts.append(("failure", f"state\n{EVERYTHING}", failure, "tool"))
    facts += _touched([fact for slot, fact, *_ in facts if slot == "modified"], failure)
    if command := record.text("latestCommand", "latest_command"):
        facts.append(("command", "", command, "tool"))
    record.value("latestObservation", "latest_observation", "turnCount", "turn_count")  # events provide them
    if unknown := sorted(record.unread()):
        raise InputError.one_of(sorted(name for name in record.used if "_" not in name), unknown[0], at)
    rows = [
        {"session_id": session_id, "slot": slot, "fact": fact, "value": value, "origin": origin, "zone": "internal", "event_id": fact if fact == "state-goal" else "state-failure" if slot == "failure" else f"state-{slot}{'-' + fact if fact else ''}",
         "from_seq": -1}
        for slot, fact, value, origin in facts
    ]  # fmt: skip
    return STATE_FACTS.from_rows(rows)


def _touched(modified: list[str], failure: str | None) -> Iterator[tuple[str, str, str, str]]:
    """Folders and topics of files that were modified, and topics of files that fail, as the fold of events names
    them.
    """
    paths, failing = pa.array(modified, pa.string()), paths_named(pa.array([failure], pa.string())).flatten()
    about = topics_in(pa.concat_arrays([last_segments(paths, 1), failing])).any(axis=0)
    topics = [list(TOPICS)[place] for place in np.flatnonzero(about)]
    for slot, names in (("folder", {*folders_of(paths).to_pylist()} - {""}), ("topic", topics)):
        yield from ((slot, f"internal{ABOUT}{name}", name, "tool") for name in sorted(names))


def turn_row(value: Mapping[str, Any], defaults: Mapping[str, Any], at: str) -> dict[str, Any]:
    """A row of CONTEXT_TURNS from the fields that a caller passes for a turn."""
    record = Record.of(value, at)
    phase = record.word(PHASES, "phase")
    zones = record.strings("zones")
    for zone in zones or []:
        canonical(ZONES, zone, record.place("zones"))
    now = record.instant("asOf", "as_of")
    named = record.strings("retrievalSnapshotIds", "snapshot_ids", "snapshotIds")
    root = one_path(record.text("workingDirectory", "working_directory") or defaults.get("working_directory"))
    package = one_path(record.text("packageRoot", "package_root") or defaults.get("package_root"))
    return {
        **defaults,
        "turn_id": record.identifier("turnId", "turn_id") or defaults["turn_id"],
        "as_of": now or defaults["as_of"],
        "phase": phase,
        "project": record.text("project") or defaults.get("project"),
        "working_directory": root,
        "task_paths": [
            from_folder(one_path(each), root)
            for each in _first_given(record.strings("taskPaths", "task_paths"), defaults.get("task_paths"), [])
        ],
        "package_root": None if is_absolute(root) and package == root else from_folder(package, root),
        "zones": _first_given(zones, defaults.get("zones"), ["public", "internal"]),
        "instruction_sources": [
            unicodedata.normalize("NFC", each).removeprefix("./")
            for each in _first_given(
                record.strings("instructionSources", "instruction_sources"),
                defaults.get("instruction_sources"),
                INSTRUCTION_FILES,
            )
        ],
        "snapshot_ids": named if named is not None else defaults.get("snapshot_ids"),
    }


def default_fields(given: Any, at: str = "defaults") -> dict[str, Any]:
    """The fields of every turn that a policy sets.

    Raises:
        InputError: a field is unknown or invalid.
    """
    record = Record.of(given, at)
    lists = ("task_paths", "zones", "instruction_sources", "snapshot_ids")
    found: dict[str, Any] = {
        name: record.strings(name) if name in lists else record.text(name)
        for name in ("run_id", "project", "working_directory", "task_paths", "package_root", *lists[1:])
    }
    record.expect_no_others(found)
    for zone in found["zones"] or []:
        canonical(ZONES, zone, record.place("zones"))
    return {"run_id": "run", **{name: value for name, value in found.items() if value is not None}}


def _first_given(*lists: Sequence[str] | None) -> Sequence[str]:
    """The first list that is not None; an empty list counts."""
    return next((each for each in lists if each is not None), [])


EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
