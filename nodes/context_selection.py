"""Context selection: five gates in order decide whether a source may enter the input.

Reads: sources with the tables that they come from, turns, states, phases. Gives `selection`, beside the sources: the
first gate that refused each, with the reason, or the reason it may be shown.

Note: relevance never admits by itself (S3.21). A relevant log may be stale, a relevant file denied, a relevant memory a
guess. No model has a say here: nothing a model or a tool wrote changes a gate's decision (S3.19).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from posixpath import dirname
from typing import Any

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
    StateFacts,
    ToolSchemas,
    TurnStates,
)
from .scope.selectors import matching_paths
from .turns.folding import Folded
from .turns.reading import as_of_turns, by_turn
from .turns.words import SELECTION_GATES, SILENT

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
    state_facts: StateFacts,
    rule_texts: RuleTexts,
    memory_records: MemoryRecords,
    retrieved_items: RetrievedItems,
    tool_schemas: ToolSchemas,
    phase_policies: PhasePolicies,
) -> Selection:
    """The gates' decision on every source, in the order of the sources."""
    sources = context_sources.to_pylist()
    phases = {phase["phase"]: phase for phase in phase_policies.to_pylist()}
    tables = [each.to_pylist() for each in (rule_texts, memory_records, retrieved_items, tool_schemas)]
    evidence: dict[str, set[str]] = {}
    for item in tables[2]:
        evidence.setdefault(item["snapshot_id"], set()).update(filter(None, [item["evidence_id"]]))
    made: list[dict[str, Any]] = []
    turns = as_of_turns(context_turns, log_events, state_facts)
    rows = {sources[part.start]["input_id"]: sources[part] for part in by_turn(context_sources["input_id"])}
    for (turn, folded, events, end), state in zip(turns, turn_states.to_pylist(), strict=True):
        of_turn = _Turn(turn, state, folded, events, end, phases[state["phase"]], evidence, *tables)
        made += of_turn.judged(rows.get(turn["input_id"], []))
    return SELECTION.from_rows(made)


class _Turn:
    """The gates of one turn. Each gate is a method that returns the reason to refuse a source, or None."""

    def __init__(
        self, turn: Row, state: Row, folded: Folded, events: Sequence[Row], end: int, phase: Row, evidence: Mapping[str, set[str]], rules: list[Row], memories: list[Row], items: list[Row], tools: list[Row],
    ) -> None:  # fmt: skip
        self.turn, self.state, self.folded, self.events, self.phase = turn, state, folded, events, phase
        self.rules, self.memories, self.items, self.tools = rules, memories, items, tools
        self.failures = {
            f"event:{each['event_id']}" for each in json.loads(state["checks"]) if each["status"] == "failed"
        }
        self.failing, self.modified = _Files(state["failure_paths"]), _Files(state["modified_files"])
        cases = [*state["failure_paths"], *turn["task_paths"]] if state["failure_paths"] else []
        self.beside = {dirname(path) for path in cases if "/" in path}
        self.worked_on = [*turn["task_paths"], *state["modified_files"], *state["read_files"]]
        self.own_files = _Files([*turn["task_paths"], *state["modified_files"]])
        self.contents: dict[str, list[int]] = {}
        """Of each file the events that have content of it."""
        for place, event in enumerate(events[:end]):
            if event["content"] is not None:
                self.contents.setdefault(event["path"], []).append(place)
        self.revoked = {fact.fact for fact in folded.facts("revoked")}
        told = {fact.fact for fact in folded.facts("disclosed")}
        self.disclosed = {name for name in told if not name.startswith("snapshot:")}
        """Rows of evidence and memories that earlier requests state to have shown."""
        unstated = {name.removeprefix("snapshot:") for name in told - self.disclosed}
        self.perhaps = {each for name in unstated for each in evidence.get(name, [name])}
        """Items of snapshots that requests name without stating what they showed; a snapshot that is not there counts as one."""
        self.limits = dict(_pair(each) for each in turn["disclosure"])

    def judged(self, sources: list[Row]) -> list[dict[str, Any]]:
        """The decision on every source of the turn, and its rank within its part."""
        gates: tuple[Callable[[Row], str | None], ...] = (
            self.relevance,
            self.currency,
            self.trust,
            self.permission,
            self.worth,
        )
        found = []
        for source in sources:
            decided, reason = None, None
            for name, gate in zip(SELECTION_GATES.values, gates, strict=True):
                if reason := gate(source):
                    decided = name
                    break
            tier = self.tier(source)
            shown = _SHOWN[source["source_kind"]]
            if source["source_kind"] in ("file_content", "search_match", "retrieval_result") and tier < TIERS:
                shown = _TIER_REASONS[tier]
            if source["standing"] == "hint" and source["source_kind"] == "active_constraint":
                shown = "proposed"
            referenced = decided is None and shown in ("on_demand", "older_events")
            referenced |= reason in NOTICED and self.permission(source) is None
            found.append({
                "input_id": source["input_id"], "source_id": source["source_id"], "position": source["position"],
                "decided_by": decided, "reason_code": reason or shown, "referenced": referenced, "tier": tier, "rank": 0,
            })  # fmt: skip
        self._capped(sources, found)
        return found

    # --- the gates, in their order ------------------------------------------------------------------------------------

    def relevance(self, source: Row) -> str | None:
        """Rules for other files or topics, generated files, code outside of the package."""
        kind, row = source["source_kind"], source["row"]
        if kind == "repository_instructions":
            rule = self.rules[row]
            return rule["left_out"] or (None if self._applies(rule) else "out_of_task_scope")
        if kind in ("retrieval_result", "search_match", "file_content") and source["path"]:
            if self._flag(source, "generated") and not self.own_files.have(source["path"]):
                return "generated_file"
            root = self.turn["package_root"]
            if (
                root
                and kind != "file_content"
                and self.tier(source) == TIERS
                and not _below(source["path"], root)
                and _is_code(source["path"])
            ):
                return "outside_package"
        return None

    def currency(self, source: Row) -> str | None:
        """Old contents of changed files; expired, revoked or unverified memories."""
        kind, row = source["source_kind"], source["row"]
        if self._changed_since(source):
            return "stale_version"
        if kind == "file_content":
            return self._superseded(source)
        if kind == "memory_candidate":
            return self._outdated(self.memories[row])
        return None

    def trust(self, source: Row) -> str | None:
        """Rules that no contract names, ungoverned memories, guesses of the model, snapshots that are not there."""
        kind, row = source["source_kind"], source["row"]
        if kind == "repository_instructions" and source["path"]:
            return None if self._named(source["path"]) else "unnamed_instructions"
        if kind == "retrieval_result" and row < 0:
            return "snapshot_missing"
        if kind == "memory_candidate":
            return self._ungoverned(self.memories[row])
        if kind == "recent_tail" and row >= 0 and self.events[row]["kind"].startswith("rules."):
            return "rules_of_log"
        return None

    def permission(self, source: Row) -> str | None:
        """Texts for the user interface or for auditors, and of zones that the turn may not see."""
        kind, row = source["source_kind"], source["row"]
        of: Row = {}
        if kind in ("latest_observation", "recent_tail", "search_match", "file_content") and row >= 0:
            of = self.events[row]
        elif kind in ("system_rules", "repository_instructions", "memory_candidate", "retrieval_result") and row >= 0:
            of = {
                "system_rules": self.rules,
                "repository_instructions": self.rules,
                "memory_candidate": self.memories,
                "retrieval_result": self.items,
            }[kind][row]
        elif kind == "user_message":
            of = json.loads(source["detail"])
        if sight := {"user-only": "ui_only", "runtime-only": "audit_only"}.get(of.get("visibility") or ""):
            return sight
        return None if of.get("zone") is None or of["zone"] in self.turn["zones"] else "zone_denied"

    def worth(self, source: Row) -> str | None:
        """Events that say nothing, empty snapshots, tools that the phase does not show."""
        kind, row = source["source_kind"], source["row"]
        if kind == "recent_tail" and row >= 0 and self.events[row]["kind"] in SILENT:
            return "says_nothing"
        if kind == "retrieval_result" and row >= 0 and self.items[row]["label"] is None:
            return "snapshot_empty"
        return self._hidden(self.tools[row]) if kind == "tool_schema" else None

    # --- what the gates ask -------------------------------------------------------------------------------------------

    def _applies(self, rule: Row) -> bool:
        """Whether a rule's folder, globs and declared topics are those of the task."""
        folder, topics = rule["folder"] or "", self.turn["topics"]
        paths = [*self.worked_on, f"{self.turn['working_directory'] or '.'}/"]
        inside = not folder or any(_below(path.removeprefix("./"), folder) for path in paths)
        on_topic = topics is None or rule["topics"] is None or bool(set(topics) & set(rule["topics"]))
        matched = rule["globs"] is None or any(_matches(path, tuple(rule["globs"])) for path in self.worked_on)
        return inside and on_topic and matched

    def _named(self, path: str) -> bool:
        return _matches(path, tuple(self.turn["instruction_sources"]))

    def _flag(self, source: Row, name: str) -> bool:
        if source["source_kind"] == "retrieval_result":
            return source["row"] >= 0 and bool(self.items[source["row"]][name])
        return bool(source["source_kind"] == "search_match" and json.loads(source["detail"]).get(name))

    def tier(self, source: Row) -> int:
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
        return 4 if self._flag(source, "public_api") else TIERS

    def _changed_since(self, source: Row) -> bool:
        """Whether the file of a text changed after the text's event, or after the date of its snapshot."""
        change = self.folded.last_change.get(source["path"] or "")
        kind, row = source["source_kind"], source["row"]
        read = kind == "latest_observation" and row >= 0 and self.events[row]["kind"] == "file.read"
        if change is None or not (read or kind in ("file_content", "search_match", "retrieval_result")):
            return False
        item = self.items[source["row"]] if source["source_kind"] == "retrieval_result" and source["row"] >= 0 else {}
        dated = item.get("as_of")
        later = dated is not None and change.detail is not None and datetime.fromisoformat(change.detail) > dated
        return later or change.seq > source["seq"]

    def _superseded(self, source: Row) -> str | None:
        """A partial read is replaced by a later read in another version, or of at least the same lines."""
        own = self.events[source["row"]]
        for place in reversed(self.contents.get(own["path"], ())):
            if place <= source["row"]:
                break
            later = self.events[place]
            if own["version"] and later["version"] and own["version"] != later["version"]:
                return "stale_version"
            if (later["line_start"] or 1) <= (own["line_start"] or 1) and (later["line_end"] or 2**31) >= (
                own["line_end"] or 2**31
            ):
                return "superseded"
        return None

    def _outdated(self, memory: Row) -> str | None:
        if memory["memory_id"] in self.revoked or memory["lifecycle"] in ("revoked", "deprecated"):
            return "revoked"
        if memory["lifecycle"] == "expired" or (memory["expires_at"] and memory["expires_at"] <= self.turn["as_of"]):
            return "expired"
        if memory["last_verified_at"] and memory["last_verified_at"] < self.turn["as_of"] - timedelta(
            days=self.phase["memory_days"]
        ):
            return "unverified_recently"
        return None

    def _ungoverned(self, memory: Row) -> str | None:
        needed = ("scope", "source", "confidence", "last_verified_at", "expires_at")
        if (
            memory["lifecycle"] != "verified"
            or any(memory[name] is None for name in needed)
            or not memory["source_refs"]
        ):
            return (
                "model_guess"
                if memory["source"] == "model" and memory["lifecycle"] != "verified"
                else "ungoverned_memory"
            )
        paths = [*self.worked_on, f"{self.turn['working_directory'] or '.'}/"]
        if memory["scope"] != self.turn["project"] and not any(_below(path, memory["scope"]) for path in paths):
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

    def _capped(self, sources: list[Row], found: list[dict[str, Any]]) -> None:
        """Ranks sources within their part, and refuses what is beyond the caps of the phase and the budget."""
        order = sorted(range(len(sources)), key=lambda n: self._rank(sources[n], found[n]))
        counts: dict[str, int] = {}
        evidence: set[str] = set()
        memories = {name for name in self.disclosed if name.startswith("memory:")}
        counted = {"retrieval": (self.disclosed - memories) | self.perhaps, "memory": memories}
        for place, n in enumerate(order):
            source, row = sources[n], found[n]
            row["rank"] = place
            if row["decided_by"] or row["referenced"]:
                continue
            kind, part = source["source_kind"], source["part"]
            name = source["evidence_id"]
            if name and kind == "retrieval_result" and (name in evidence or evidence.add(name)):
                row["decided_by"], row["reason_code"] = "worth", "duplicate"
                continue
            group = {"retrieval": "retrieval_items", "memory": "memory_items"}.get(part)
            if kind == "active_constraint" or (
                group is None and not (kind == "recent_tail" and self.turn["tail_limit"])
            ):
                continue
            most = self.turn["tail_limit"] if group is None else self.phase[group]
            counts[part] = counts.get(part, 0) + 1
            if counts[part] > most:
                reason = {"recent_tail": "tail_limit", "retrieval": "retrieval_cap", "memory": "memory_cap"}[part]
                if kind == "search_match":
                    row["referenced"], row["reason_code"] = True, "on_demand"
                else:
                    row["decided_by"], row["reason_code"] = "worth", reason
                continue
            if part in self.limits and name and name not in self.disclosed:
                if len(counted[part] | {name}) > self.limits[part]:
                    row["decided_by"], row["reason_code"] = "permission", "disclosure_cap"
                else:
                    counted[part].add(name)

    def _rank(self, source: Row, row: Row) -> tuple[Any, ...]:
        """Within a part: near the failure first; of the tail what the user and the harness say, then tools, then the
        model; newest first."""
        kind = source["source_kind"]
        speaker = (
            {"history": 0, "untrusted": 1, "evidence": 1, "hint": 2}.get(source["standing"], 0)
            if kind == "recent_tail"
            else 0
        )
        certain = -(self.memories[source["row"]]["confidence"] or 0.0) if kind == "memory_candidate" else 0.0
        return (
            row["tier"],
            {"retrieval_result": 0, "file_content": 0, "search_match": 1}.get(kind, 0),
            speaker,
            certain,
            -source["seq"],
            source["position"],
        )


def _pair(text: str) -> tuple[str, int]:
    name, _, count = text.partition("=")
    return name, int(count)


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


def _below(path: str, folder: str) -> bool:
    return path.startswith(f"{folder.rstrip('/')}/") or path == folder


def _is_code(path: str) -> bool:
    return not path.endswith((".md", ".rst", ".txt", ".json", ".yaml", ".yml", ".toml"))


@lru_cache(maxsize=4096)
def _matches(path: str, globs: tuple[str, ...]) -> bool:
    return bool(matching_paths(pa.array([path]), globs)[0])
