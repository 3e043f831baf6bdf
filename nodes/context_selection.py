"""Context selection: five gates in order decide whether a source may enter the input.

Reads: sources with the tables that they come from, turns, states, phases. Gives `selection`, beside the sources: the
first gate that refused each, with the reason, or the reason it may be shown.

Note: relevance never admits by itself (S3.21). A relevant log may be stale, a relevant file denied, a relevant memory a
guess. No model has a say here: nothing a model or a tool wrote changes a gate's decision (S3.19).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from posixpath import dirname
from typing import Any

import numpy as np
import pyarrow as pa

from .context_tables import (
    SELECTION,
    ContextSources,
    ContextTurns,
    LogEvents,
    MemoryRecords,
    PhasePolicies,
    RetrievedItems,
    RuleTexts,
    Selection,
    ToolSchemas,
    TurnStates,
)
from .scope.selectors import matching_paths
from .turns.folding import of_label
from .turns.reading import beside, rows_of, with_sources
from .turns.words import OBSERVATIONS, SELECTION_GATES, SILENT, UNSEEN

Row = Mapping[str, Any]

TIERS = 5
NOTICED = ("generated_file", "outside_package", "stale_version")
"""Reasons that the input states, since the model may look for the file (S3.55), if the turn may see it."""
_TIER_REASONS = ("", "failing_stack", "recently_modified", "beside_failing_case", "public_api", "on_demand")
_SHOWN = {
    "system_rules": "always_present", "repository_instructions": "rule_in_scope", "user_goal": "always_present",
    "active_constraint": "declared_constraint", "user_message": "user_words", "state_summary": "always_present",
    "latest_observation": "latest_result", "recent_tail": "key_event", "file_content": "current_content", "search_match": "on_demand",
    "retrieval_result": "snapshot_item", "memory_candidate": "verified_memory", "history_summary": "history_kept",
    "older_history": "older_events", "tool_schema": "phase_tool",
}  # fmt: skip
"""The reason to show a source that no gate refuses, by its kind."""


def selection(
    context_sources: ContextSources,
    context_turns: ContextTurns,
    turn_states: TurnStates,
    log_events: LogEvents,
    rule_texts: RuleTexts,
    memory_records: MemoryRecords,
    retrieved_items: RetrievedItems,
    tool_schemas: ToolSchemas,
    phase_policies: PhasePolicies,
) -> Selection:
    """The gates' decision on every source, in the order of the sources."""
    sources = rows_of(context_sources.drop_columns(["text", "summary", "excerpt", "heading", "content_class"]))
    names = ["seq", "subject", "kind", "visibility", "zone", "path", "version", "line_start", "line_end"]
    events, contents = log_events.select(names).to_pylist(), dict[str, list[int]]()
    for place in np.flatnonzero(log_events["content"].is_valid()).tolist():
        contents.setdefault(events[place]["path"], []).append(place)
    tables = _Tables(events, contents, *map(rows_of, (rule_texts, memory_records, retrieved_items, tool_schemas)))
    phases = {phase["phase"]: phase for phase in phase_policies.to_pylist()}
    made: list[dict[str, Any]] = []
    for (turn, part), state in zip(with_sources(context_turns, context_sources), turn_states.to_pylist(), strict=True):
        made += _Turn(turn, state, phases[state["phase"]], tables).judged(sources[part])
    columns = ("decided_by", "reason_code", "referenced", "tier", "rank")
    return beside(SELECTION, context_sources, **{name: [row[name] for row in made] for name in columns})


@dataclass(frozen=True)
class _Tables:
    """The rows that sources come from; `contents`: of each file the places of the events that have content of it."""

    events: Sequence[Row]
    contents: Mapping[str, list[int]]
    rules: Sequence[Row]
    memories: Sequence[Row]
    items: Sequence[Row]
    tools: Sequence[Row]

    def of(self, source: Row) -> Row:
        """The row that a source comes from; empty if it comes from the state."""
        kind, row = source["source_kind"], source["row"]
        of_kind = {"system_rules": self.rules, "repository_instructions": self.rules, "memory_candidate": self.memories,
                   "retrieval_result": self.items, "tool_schema": self.tools}  # fmt: skip
        return of_kind.get(kind, self.events)[row] if row >= 0 else {}


class _Turn:
    """The gates of one turn. Each gate is a method that returns the reason to refuse a source, or None; `of` is the row
    that the source comes from.
    """

    def __init__(self, turn: Row, state: Row, phase: Row, tables: _Tables) -> None:
        self.turn, self.state, self.phase, self.tables = turn, state, phase, tables
        self.failures = {
            f"event:{each['event_id']}" for each in json.loads(state["checks"]) if each["status"] == "failed"
        }
        self.failing, self.modified = _Files(state["failure_paths"]), _Files(state["modified_files"])
        cases = [*state["failure_paths"], *turn["task_paths"]] if state["failure_paths"] else []
        self.beside = {dirname(path) for path in cases if "/" in path}
        self.worked_on = [*turn["task_paths"], *state["modified_files"], *state["read_files"]]
        self.places = [*self.worked_on, f"{turn['working_directory'] or '.'}/"]
        self.own_files = _Files([*turn["task_paths"], *state["modified_files"]])
        ended = (each for each in tables.events if each["kind"] in OBSERVATIONS and each["seq"] < turn["as_of_seq"])
        self.answered = {each["subject"] for each in ended if self._visible(each)} - {None}
        """Calls of tools whose result the turn may see."""

    def judged(self, sources: Sequence[Row]) -> list[dict[str, Any]]:
        """The decision on every source of the turn, and its rank within its part."""
        gates = tuple(zip(SELECTION_GATES.values, (self.relevance, self.currency, self.trust, self.permission, self.worth), strict=True))  # fmt: skip
        found = []
        for source in sources:
            kind, of = source["source_kind"], self.tables.of(source)
            decided, reason = next(((name, why) for name, gate in gates if (why := gate(source, of))), (None, None))
            tier, shown = self.tier(source, of), _SHOWN[kind]
            if kind in ("file_content", "search_match", "retrieval_result") and tier < TIERS:
                shown = _TIER_REASONS[tier]
            if kind == "active_constraint" and source["standing"] == "hint":
                shown = "proposed"
            referenced = decided is None and shown in ("on_demand", "older_events")
            referenced |= reason in NOTICED and self.permission(source, of) is None
            found.append({"decided_by": decided, "reason_code": reason or shown, "referenced": referenced, "tier": tier, "rank": 0})  # fmt: skip
        self._capped(sources, found)
        return found

    # --- the gates, in their order ------------------------------------------------------------------------------------

    def relevance(self, source: Row, of: Row) -> str | None:
        """Rules for other files or topics, generated files, code outside of the package."""
        kind, path, root = source["source_kind"], source["path"], self.turn["package_root"]
        if kind == "repository_instructions":
            return of["left_out"] or (None if self._applies(of) else "out_of_task_scope")
        if kind not in ("retrieval_result", "search_match", "file_content") or not path:
            return None
        if _flag(source, of, "generated") and not self.own_files.have(path):
            return "generated_file"
        elsewhere = root and kind != "file_content" and not _below(path, root) and _is_code(path)
        return "outside_package" if elsewhere and self.tier(source, of) == TIERS else None

    def currency(self, source: Row, of: Row) -> str | None:
        """Old contents of changed files; expired, revoked or unverified memories."""
        if _changed_since(source, of):
            return "stale_version"
        if source["source_kind"] == "file_content":
            return self._superseded(source, of)
        return self._outdated(of) if source["source_kind"] == "memory_candidate" else None

    def trust(self, source: Row, of: Row) -> str | None:
        """Rules that no contract names, ungoverned memories, guesses of the model, snapshots that are not there."""
        kind = source["source_kind"]
        if kind == "repository_instructions" and source["path"]:
            return None if _matches(source["path"], tuple(self.turn["instruction_sources"])) else "unnamed_instructions"
        if kind == "retrieval_result" and not of:
            return "snapshot_missing"
        if kind == "memory_candidate":
            return self._ungoverned(of)
        return "rules_of_log" if source["source_id"].startswith("older:rules.") else None

    def permission(self, source: Row, of: Row) -> str | None:
        """Texts for the user interface or for auditors, and of zones that the turn may not see."""
        counted = source["source_kind"] == "older_history"
        zone = source["detail"] if counted else of.get("zone")
        if sight := UNSEEN.get((zone if counted else of.get("visibility")) or ""):
            return sight
        return None if zone is None or zone in self.turn["zones"] else "zone_denied"

    def worth(self, source: Row, of: Row) -> str | None:
        """Events that say nothing or that another says, empty snapshots, tools that the phase does not show."""
        kind = source["source_kind"]
        if of.get("kind") == "tool.intent" and of["subject"] in self.answered:
            return "answered"
        if kind == "older_history" and of_label(source["source_id"].removeprefix("older:"))[0] in SILENT:
            return "says_nothing"
        if kind == "retrieval_result" and of["label"] is None:
            return "snapshot_empty"
        return self._hidden(of) if kind == "tool_schema" else None

    def _visible(self, event: Row) -> bool:
        return event["visibility"] == "model-visible" and event["zone"] in self.turn["zones"]

    # --- what the gates ask -------------------------------------------------------------------------------------------

    def _applies(self, rule: Row) -> bool:
        """Whether a rule's folder, globs and declared topics are those of the task."""
        folder, topics = rule["folder"] or "", self.turn["topics"]
        inside = not folder or any(_below(path.removeprefix("./"), folder) for path in self.places)
        on_topic = topics is None or rule["topics"] is None or bool(set(topics) & set(rule["topics"]))
        matched = rule["globs"] is None or any(_matches(path, tuple(rule["globs"])) for path in self.worked_on)
        return inside and on_topic and matched

    def tier(self, source: Row, of: Row) -> int:
        """Distance of a file from the failure (S3.22), 1 to 5; the last run of a failing check is the failure."""
        path = source["path"]
        if source["source_id"] in self.failures:
            return 1
        if not path:
            return TIERS
        if self.failing.have(path):
            return 1
        if self.modified.have(path):
            return 2
        if dirname(path) in self.beside:
            return 3
        return 4 if _flag(source, of, "public_api") else TIERS

    def _superseded(self, source: Row, own: Row) -> str | None:
        """A partial read is replaced by a later read in another version, or of at least the same lines."""
        for place in reversed(self.tables.contents[own["path"]]):
            later = self.tables.events[place]
            if place <= source["row"]:
                break
            if later["seq"] >= self.turn["as_of_seq"] or not self._visible(later):
                continue
            if own["version"] and later["version"] and own["version"] != later["version"]:
                return "stale_version"
            if (later["line_start"] or 1) <= (own["line_start"] or 1) and (own["line_end"] or 2**31) <= (later["line_end"] or 2**31):  # fmt: skip
                return "superseded"
        return None

    def _outdated(self, memory: Row) -> str | None:
        if memory["memory_id"] in self.state["revoked"] or memory["lifecycle"] in ("revoked", "deprecated"):
            return "revoked"
        if memory["lifecycle"] == "expired" or (memory["expires_at"] and memory["expires_at"] <= self.turn["as_of"]):
            return "expired"
        since = self.turn["as_of"] - timedelta(days=self.phase["memory_days"])
        return "unverified_recently" if memory["last_verified_at"] and memory["last_verified_at"] < since else None

    def _ungoverned(self, memory: Row) -> str | None:
        needed = ("scope", "source", "confidence", "last_verified_at", "expires_at")
        verified, scope = memory["lifecycle"] == "verified", memory["scope"]
        if not verified or any(memory[name] is None for name in needed) or not memory["source_refs"]:
            return "model_guess" if memory["source"] == "model" and not verified else "ungoverned_memory"
        if scope != self.turn["project"] and not any(_below(path, scope) for path in self.places):
            return "wrong_scope"
        return "low_confidence" if memory["confidence"] < self.phase["memory_confidence"] else None

    def _hidden(self, tool: Row) -> str | None:
        if tool["phases"] is not None:
            return None if self.phase["phase"] in tool["phases"] else "phase_hidden_tool"
        if not tool["declared"]:
            return "undeclared_capability"
        if tool["capability"] == "external_read":
            return None if self.turn["external_knowledge"] else "no_external_knowledge"
        return None if tool["capability"] in self.phase["capabilities"] else "phase_hidden_tool"

    # --- ranks and caps -----------------------------------------------------------------------------------------------

    def _capped(self, sources: Sequence[Row], found: list[dict[str, Any]]) -> None:
        """Ranks sources within their part, and refuses duplicates and what is beyond a cap."""
        order = sorted(range(len(sources)), key=lambda n: self._rank(sources[n], found[n]))
        most = {"recent_tail": (self.turn["tail_limit"], "tail_limit"), "memory_candidate": (self.phase["memory_items"], "memory_cap")}  # fmt: skip
        counts, evidence = Counter[str](), set[str]()
        for place, n in enumerate(order):
            source, row = sources[n], found[n]
            row["rank"] = place
            if row["decided_by"] or row["referenced"]:
                continue
            kind, name = source["source_kind"], source["evidence_id"]
            counts[kind] += 1
            limit, reason = most.get(kind, (None, ""))
            if limit is not None and counts[kind] > limit:
                row["decided_by"], row["reason_code"] = "worth", reason
            elif name and kind == "retrieval_result" and name in evidence:
                row["decided_by"], row["reason_code"] = "worth", "duplicate"
            evidence.add(name or "")

    def _rank(self, source: Row, row: Row) -> tuple[Any, ...]:
        """Within a part: near the failure first; of the tail what the user and the harness say, then tools, then the
        model; newest first."""
        kind = source["source_kind"]
        speaker = ("history", "untrusted", "evidence", "hint").index(source["standing"]) if kind == "recent_tail" else 0
        certain = -(self.tables.of(source)["confidence"] or 0.0) if kind == "memory_candidate" else 0.0
        return row["tier"], kind == "search_match", speaker, certain, -source["seq"], source["position"]


class _Files:
    """Files by their ends: tools print paths from different folders, so `src/a.py` and `a.py` may be one file."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.paths = set(paths)
        self.ends = {end for path in self.paths for end in _ends(path)}

    def have(self, path: str) -> bool:
        return path in self.ends or any(end in self.paths for end in _ends(path))


def _ends(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[start:]) for start in range(len(parts))]


def _flag(source: Row, of: Row, name: str) -> bool:
    """A flag of an item of retrieval, or of a match of a search."""
    if source["source_kind"] == "search_match":
        return bool(json.loads(source["detail"]).get(name))
    return source["source_kind"] == "retrieval_result" and bool(of.get(name))


def _changed_since(source: Row, of: Row) -> bool:
    """Whether the file of a text changed after the text's event, or after the date of its snapshot."""
    kind, dated = source["source_kind"], of.get("as_of")
    read = kind == "latest_observation" and of.get("kind") == "file.read"
    if not (read or kind in ("file_content", "search_match", "retrieval_result")):
        return False
    later = dated is not None and source["changed_at"] is not None and source["changed_at"] > dated
    return later or source["changed_seq"] > source["seq"]


def _below(path: str, folder: str) -> bool:
    return path.startswith(f"{folder.rstrip('/')}/") or path == folder


def _is_code(path: str) -> bool:
    return not path.endswith((".md", ".rst", ".txt", ".json", ".yaml", ".yml", ".toml"))


@lru_cache(maxsize=4096)
def _matches(path: str, globs: tuple[str, ...]) -> bool:
    return bool(matching_paths(pa.array([path]), globs)[0])
