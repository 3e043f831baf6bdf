"""Inputs of a projection besides the session log, read strictly: memories, tools, snapshots, budget, turns, state.

Gives: `read_memories` (with `memory_row`), `read_tools`, `read_snapshots`, `items_of_replay`,
`budget_fields`, `default_fields`, `turn_row` and `seed_facts`.

Note: nothing is derived from a name. A tool that states no capability counts as `external`, whatever it is called.
"""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from pydantic.alias_generators import to_snake

from ...nodes.blocks.token_counting import BASE
from ...nodes.errors import InputError
from ...nodes.turns.folding import Fact
from ...nodes.turns.frame import STYLES
from ...nodes.turns.reading import escaped_id
from ...nodes.turns.words import ACTORS, CAPABILITIES, OUTCOMES, PARTS, PHASES, TRIM_ORDERS
from ...nodes.vocabulary import LIFECYCLES, STANDINGS, ZONES
from ..line.tokenizers import known_name
from ..parsing.quoting import canonical
from ..parsing.strict_json import json_text
from ..sources.jsonl import Record
from .flags import flags_of, sight_of
from .masking import expect_unicode, from_folder, listed, masked_values, one_path
from .rules import INSTRUCTION_FILES

Row = dict[str, Any]
EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
MOST_MEMORIES = 256
DEFAULT_WINDOW, DEFAULT_RESERVED, DEFAULT_USER_WORDS = 16_000, 1_024, 20_000


def read_memories(values: Iterable[Any], at: str = "memories") -> list[Row]:
    """The memories that a caller supplies for every session.

    Raises:
        InputError: a record is invalid, or there are more than a projection reads.
    """
    given = masked_values(listed(values, "memories", at), lambda n: f"{at}[{n}]")
    rows = [memory_row(Record.of(value, f"{at}[{number}]")) for number, value in enumerate(given)]
    if len(rows) > MOST_MEMORIES:
        raise InputError.described(f"at most {MOST_MEMORIES} memories", str(len(rows)), at,
                                   hint="a context policy does not search: retrieve the memories for the task first, and pass only these.")  # fmt: skip
    _expect_once("memory", [row["memory_id"] for row in rows], at)
    return rows


def memory_row(record: Record) -> dict[str, Any]:
    """A memory from its fields (S3.52), for every session. `verify`: what to verify before it is relied on."""
    return {
        "memory_id": memory_id(record),
        "from_seq": -1,
        "text": record.required("text", "content"),
        "scope": record.text("scope"),
        "source": record.text("source"),
        "confidence": record.number("confidence", least=0, most=1),
        "last_verified_at": record.instant("lastVerifiedAt"),
        "expires_at": record.instant("expiresAt"),
        "lifecycle": record.word(LIFECYCLES, "lifecycle", "status") or "candidate",
        "source_refs": record.strings("sourceRefs", "evidence") or [],
        "verify": record.text("verify"),
        "zone": record.word(ZONES, "zone", "sensitivity") or "internal",
    }


def memory_id(record: Record) -> str:
    """The id of a memory, which every record about one has."""
    found = record.identifier("memoryId", "id")
    if found is None:
        raise InputError.expected("the id of a memory", None, record.place("memoryId", "id"))
    return found


def _expect_once(what: str, names: list[str], at: str) -> None:
    """Reject a duplicate name: the last one would silently win."""
    if again := [name for name, count in Counter(names).items() if count > 1]:
        raise InputError.described(f"every {what} once", f"{again[0]!r} again", at)


def read_tools(values: Iterable[Any], at: str = "tools") -> list[Row]:
    """The tools of a harness from tools in the neutral, the OpenAI or the Anthropic shape, with `capability` and `phases` as stated."""
    rows = []
    for number, value in enumerate(masked_values(listed(values, "tools", at), lambda n: f"{at}[{n}]")):
        record = Record.of({"name": value} if isinstance(value, str) else value, f"{at}[{number}]")
        inner = record.mapping("function") if isinstance(record.fields.get("function"), dict) else record
        capability, phases = record.word(CAPABILITIES, "capability"), record.strings("phases")
        name = inner.required("name")
        parameters = inner.value("parameters", "inputSchema") or {"type": "object", "properties": {}}
        schema = {"name": name, "description": inner.text("description") or "", "parameters": parameters}
        rows.append({
            "tool": name, "capability": capability or "external", "declared": capability is not None,
            "phases": phases and [canonical(PHASES, each, record.place("phases")) for each in phases],
            "schema": json_text(schema, record.at, sort_keys=True),
        })  # fmt: skip
    _expect_once("tool", [row["tool"] for row in rows], at)
    return rows


_RECORDED = "name recorded snapshots as `turn: {snapshotIds: [ID]}`; `snapshots` are objects with `snapshot_id` and `items`."  # fmt: skip


def read_snapshots(values: Iterable[Any], at: str = "snapshots") -> list[dict[str, Any]]:
    """The items of JSON snapshots: `snapshot_id`, `block_ref`, `items` with label, path, text, reason etc. A snapshot without
    items has one row without a label.
    """
    rows: list[dict[str, Any]] = []
    names: list[str] = []
    for number, value in enumerate(masked_values(listed(values, "snapshots", at), lambda n: f"{at}[{n}]")):
        if isinstance(value, str):
            raise InputError.of_kind("an object", value, f"{at}[{number}]", hint=_RECORDED)
        record = Record.of(value, f"{at}[{number}]")
        name = record.required("snapshotId", "id")
        named, as_of = record.text("blockRef") or name, record.instant("asOf", "createdAt")
        snapshot = {"snapshot_id": name, "as_of": as_of, "block_ref": named}
        items = record.objects("items", "citations")
        labels = [each.required("label") for each in items]
        _expect_once("item of a snapshot", labels, record.place("items", "citations"))
        nothing = dict.fromkeys(("label", "evidence_id", "path", "locator", "reason", "text"))
        rows += [snapshot | _item(item, name, record) for item in items] or [
            {**snapshot, **nothing, "standing": "evidence", **sight_of(record)}
        ]
        names.append(name)
    _expect_once("snapshot", names, at)
    return rows


def _item(item: Record, snapshot_id: str, snapshot: Record) -> dict[str, Any]:
    """An item; one without an evidence id gets `SNAPSHOT:LABEL` as one, `%` and `:` in `SNAPSHOT` escaped."""
    path, section = one_path(item.text("path")), item.text("section")
    line = item.whole("line", "lineStart", least=1)
    end = item.whole("lineEnd", least=1)
    span = "" if line is None else f":{line}" + (f"-{end}" if end is not None and end != line else "")
    return {
        "label": item.required("label"),
        "evidence_id": item.text("evidenceId", "id") or f"{escaped_id(snapshot_id)}:{item.required('label')}",
        "path": path,
        "locator": item.text("locator") or (path or "") + (span or (f"#{section}" if section else "")),
        "standing": item.word(STANDINGS, "standing", "trust", "trustLevel") or "evidence",
        "reason": item.text("reason", "retrievalReason", "selected_reason"),
        **flags_of(path, item),
        "text": item.text("text", "content", "excerpt"),
        **{"zone": "internal", **sight_of(snapshot, item)},
    }


def items_of_replay(replay: Any) -> list[dict[str, Any]]:
    """The items of a snapshot of this project, as `runs.replay` reads it; items whose citations do not
    resolve, and places without text, are left out. Their reasons are those of the ranking, which a replay has for auditors.
    """
    visible = {row["label"]: row["visible_text"] for row in replay.tables["trimmed"].to_pylist()}
    reasons = {row["evidence_id"]: row.get("selected_reason") for row in replay.tables["ranked"].to_pylist()}
    cited = sorted(replay.citations.to_pylist(), key=lambda row: row.get("position", 0))
    shown = [row for row in cited if row["resolves"] and visible.get(row["label"])]
    return [
        {
            **{name: row[name] for name in ("label", "evidence_id", "path", "locator", "standing")},
            "snapshot_id": replay.snapshot_id,
            "as_of": replay.request.get("as_of"),
            "block_ref": replay.block_ref,
            "reason": reasons.get(row["evidence_id"]),
            **flags_of(row["path"]),
            "text": visible[row["label"]],
        }
        for row in shown
    ]


def budget_fields(value: Any, at: str = "budget") -> dict[str, Any]:
    """The columns of CONTEXT_TURNS that a budget sets (S3.34)."""
    record = Record.of({} if value is None else value, at)
    window = _count(record, DEFAULT_WINDOW, "maxTokens")
    reserved = _count(record, DEFAULT_RESERVED, "reservedOutputTokens")
    limit = max(window - reserved, 0)
    fields = {
        "max_tokens": window,
        "reserved_output_tokens": reserved,
        "target_tokens": min(_count(record, limit, "targetTokens"), limit),
        "user_words_tokens": _count(record, DEFAULT_USER_WORDS, "userWordsTokens"),
        "tokenizer": known_name(record.text("tokenizer") or BASE, record.place("tokenizer")),
        "limits": _numbers(record, "reserved", "parts"),
        "trim_order": _one_of(TRIM_ORDERS, record, "trimOrder"),
        "tail_limit": record.whole("tailLimit"),
        "fences": _one_of(STYLES, record, "fences"),
    }
    _expect_all_read(record)
    return fields


def _expect_all_read(record: Record) -> None:
    """Refuse fields that no reader used.

    Raises:
        InputError: there is one; lists the known fields in the spelling of document 003.
    """
    if unknown := sorted(record.unread()):
        raise InputError.one_of(sorted(name for name in record.used if "_" not in name), unknown[0], record.at)


def _count(record: Record, default: int, *names: str) -> int:
    value = record.whole(*names)
    return default if value is None else value


def _numbers(record: Record, *names: str) -> list[str]:
    value = record.value(*names)
    if value is None:
        return []
    parts = Record.of(value, record.place(*names))
    return sorted(f"{canonical(PARTS, name, parts.at)}={_count(parts, 0, name)}" for name in parts.fields)


def _one_of(known: Iterable[str], record: Record, name: str) -> str:
    """A word of a field; the first one that is known if it has none."""
    names = list(known)
    word = record.text(name) or names[0]
    if word not in names:
        raise InputError.one_of(names, word, record.place(name))
    return word


def seed_facts(state: Any, root: str | None = None, at: str = "state") -> list[tuple[str, Fact]]:
    """Facts by slot of an AgentState kept by the harness (S3.58): what held before the first event. Paths below `root` are
    relative to it.

    Raises:
        InputError: a field is unknown or invalid.
    """
    record = Record.of(masked_values([{} if state is None else state], lambda _: at)[0], at)
    turns = record.whole("turnCount")
    facts = [
        *_one("goal", record.text("userGoal"), origin="user"),
        *_one("phase", record.word(PHASES, "phase"), origin="system"),
        *_constraints(record),
        *_one("plan", record.text("plan", "currentPlan"), origin="model"),
        *_observed(record),
        *_one("turns", None if turns is None else str(turns), origin="system"),
    ]
    for slot, *names in (("modified", "modifiedFiles"), ("read", "readFiles"), ("artifact", "artifactRefs")):
        for name in dict.fromkeys(record.strings(*names) or []):
            path = name if slot == "artifact" else from_folder(one_path(name), root) or name
            facts += _one(slot, path, fact=path, origin="tool")
    _expect_all_read(record)
    return facts


def _one(slot: str, value: Any, **fields: Any) -> list[tuple[str, Fact]]:
    """The fact of a slot that has one; none without a value."""
    return [] if value is None else [(slot, Fact(value=value, **fields))]


def _constraints(record: Record) -> list[tuple[str, Fact]]:
    """Texts, which are the user's, or objects: `text`, `id`, `topic`, `origin`."""
    given, at = record.value("activeConstraints"), record.place("activeConstraints")
    made = []
    for number, value in enumerate([] if given is None else listed(given, "constraints", at)):
        each = Record.of({"text": value} if isinstance(value, str) else value, f"{at}[{number}]")
        fact = each.identifier("id", "constraintId") or f"state:{number}"
        origin = each.word(ACTORS, "origin", "actor") or "user"
        stated = origin in ("user", "repository", "system")  # what another proposes is a hint
        fact = fact if stated else f"{origin}:{fact}"
        slot = "constraint" if stated else "proposal"
        made += _one(slot, each.required("text"), fact=fact, status=each.text("topic"), origin=origin)
    return made


_PRINTED = {"exit_code": "exitCode", "trust_level": "trustLevel", "visible_excerpt": "visibleExcerpt"}
"""Fields of an observation in the spelling of document 003."""


def _observed(record: Record) -> list[tuple[str, Fact]]:
    """The last observation (S3.50) as it was given, and its command."""
    seen = record.value("latestObservation")
    observation = Record.of({} if seen is None else seen, record.place("latestObservation"))
    command, code = observation.text("command"), observation.whole("exitCode", least=-(2**31))
    for name in ("summary", "visibleExcerpt"):
        observation.text(name)
    observation.strings("artifacts")
    ended = observation.word(OUTCOMES, "status") or (None if code is None else "failed" if code else "succeeded")
    made = _one("command", command, detail=ended, origin="tool")
    if seen is not None:
        printed = {_PRINTED.get(name, name): each for name, each in observation.fields.items()}
        made += _one("observation", json.loads(json_text(printed, observation.at)), origin="tool")
    return made


TASK: Row = {
    "project": None, "working_directory": None, "package_root": None, "task_paths": [], "topics": None, "zones": ["public", "internal"],
    "instruction_sources": INSTRUCTION_FILES, "external_knowledge": False, "snapshot_ids": None,
}  # fmt: skip
"""The fields about the task, where neither a turn nor its policy states them."""


def _task(record: Record) -> dict[str, Any]:
    """The fields about the task that a record states; an empty list counts."""
    zones = record.strings("zones")
    found = {
        **{name: record.text(name) for name in ("project", "workingDirectory", "packageRoot")},
        **{name: record.strings(name) for name in ("taskPaths", "topics", "instructionSources")},
        "zones": zones and [canonical(ZONES, zone, record.place("zones")) for zone in zones],
        "externalKnowledge": record.flag("externalKnowledge"),
        "snapshotIds": record.strings("retrievalSnapshotIds", "snapshotIds"),
    }
    return {to_snake(name): value for name, value in found.items() if value is not None}


def default_fields(given: Any, at: str = "defaults") -> dict[str, Any]:
    """The fields of every turn that a policy sets, where it states none the usual ones.

    Raises:
        InputError: a field is unknown or invalid.
    """
    record = Record.of(given, at)
    found = {"run_id": record.text("runId") or "run", **TASK, **_task(record)}
    _expect_all_read(record)
    return found


def turn_row(value: Any, defaults: Row, events: Sequence[Row] = (), at: str = "turn") -> Row:
    """A row of CONTEXT_TURNS from the fields that a caller passes for a turn of these events; the others are those of
    `defaults`.

    Raises:
        InputError: a field is unknown or invalid.
    """
    record = Record.of(value, at)
    expect_unicode(value, at)
    seq, budget = record.whole("asOfSeq", least=0, most=len(events)), record.value("budget")
    seq = len(events) if seq is None else seq
    last = events[seq - 1] if seq else {"turn_id": None, "turn": 0, "created_at": EPOCH}
    stated, named = record.identifier("turnId"), record.identifier("inputId")
    row = {
        **defaults, **_task(record), **({} if budget is None else budget_fields(budget, f"{at}.budget")),
        "turn_id": str(last["turn_id"] or last["turn"]) if stated is None else stated, "as_of_seq": seq,
        "as_of": record.instant("asOf") or last["created_at"], "phase": record.word(PHASES, "phase"),
    }  # fmt: skip
    _expect_all_read(record)
    row["input_id"] = named or f"{row['session_id']}/{seq if stated is None else stated}"
    row["working_directory"] = root = one_path(row["working_directory"])
    row["task_paths"] = [from_folder(one_path(each), root) for each in row["task_paths"]]
    package = one_path(row["package_root"])
    row["package_root"] = (from_folder(f"{package}/", root) or "").rstrip("/") or None if package else None
    sources = row["instruction_sources"]
    row["instruction_sources"] = [unicodedata.normalize("NFC", each).removeprefix("./") for each in sources]
    return row
