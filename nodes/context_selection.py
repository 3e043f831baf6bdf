"""Context selection: five gates in order decide whether a source may enter the input.

Reads: a turn with its sources. Gives `selection`, the same: of each source the first gate that refused it, with the reason,
or the reason it may be shown.

Note: relevance never admits by itself (S3.21). A relevant log may be stale, a relevant file denied, a relevant memory a
guess. No model has a say here: nothing a model or a tool wrote changes a gate's decision (S3.19).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from functools import lru_cache
from posixpath import dirname
from typing import Any

import pyarrow as pa

from .scope.selectors import matching_paths
from .turns.reading import Row, Rows, TurnSources
from .turns.words import MEMORY_DAYS, SELECTION_GATES, SILENT, SOURCE_KINDS, UNSEEN

TIERS = 5
NOTICED = ("generated_file", "outside_package", "stale_version")
"""Reasons that the input states, since the model may look for the file (S3.55), if the turn may see it."""
_TIER_REASONS = ("", "failing_stack", "recently_modified", "beside_failing_case", "public_api", "on_demand")


def selection(context_sources: TurnSources) -> TurnSources:
    """The gates' decision on every source: `decided_by` (None: no gate refused it), `reason_code`, `referenced` (its text is not
    wanted, a reference is), `tier` (see `_Turn.tier`), and `rank` within its part, 0 first.
    """
    return context_sources.adding(_Turn(context_sources).judged())


class _Turn:
    """The gates of one turn. Each gate is a method that returns the reason to refuse a source, or None; `of` is the record
    that the source comes from.
    """

    def __init__(self, given: TurnSources) -> None:
        self.turn, self.state, self.phase, self.sources = given.turn, given.state, given.phase, given.sources
        turn, state = self.turn, self.state
        self.failures = {
            f"event:{each['event_id']}" for each in json.loads(state["checks"]) if each["status"] == "failed"
        }
        self.failing, self.modified = _Files(state["failure_paths"]), _Files(state["modified_files"])
        cases = [*state["failure_paths"], *turn["task_paths"]] if state["failure_paths"] else []
        self.beside = {dirname(path) for path in cases if "/" in path}
        self.worked_on = [*turn["task_paths"], *state["modified_files"], *state["read_files"]]
        self.places = [*self.worked_on, f"{turn['working_directory'] or '.'}/"]
        self.own_files = _Files([*turn["task_paths"], *state["modified_files"]])

    def judged(self) -> Rows:
        """The decision on every source of the turn, and its rank within its part."""
        gates = tuple(zip(SELECTION_GATES.values, (self.relevance, self.currency, self.trust, self.permission, self.worth), strict=True))  # fmt: skip
        found: Rows = []
        for source in self.sources:
            kind, of = source["source_kind"], source["of"]
            decided, reason = next(((name, why) for name, gate in gates if (why := gate(source, of))), (None, None))
            tier, shown = self.tier(source, of), SOURCE_KINDS[kind].shown
            if kind in ("file_content", "search_match", "retrieval_result") and tier < TIERS:
                shown = _TIER_REASONS[tier]
            if kind == "active_constraint" and source["standing"] == "hint":
                shown = "proposed"
            referenced = decided is None and shown in ("on_demand", "older_events")
            referenced |= reason in NOTICED and self.permission(source, of) is None
            found.append(
                {"decided_by": decided, "reason_code": reason or shown, "referenced": referenced, "tier": tier}
            )
        self._capped(found)
        return found

    # --- the gates, in their order ------------------------------------------------------------------------------------

    def relevance(self, source: Row, of: Row) -> str | None:
        """Rules for other files or topics, generated files, code outside of the package."""
        kind, path, root = source["source_kind"], source["path"], self.turn["package_root"]
        if kind == "repository_instructions":
            return of["left_out"] or (None if self._applies(of) else "out_of_task_scope")
        if kind not in ("retrieval_result", "search_match", "file_content") or not path:
            return None
        if of.get("generated") and not self.own_files.have(path):
            return "generated_file"
        elsewhere = root and kind != "file_content" and not _below(path, root) and _is_code(path)
        return "outside_package" if elsewhere and self.tier(source, of) == TIERS else None

    def currency(self, source: Row, of: Row) -> str | None:
        """Old contents of changed files; expired, revoked or unverified memories."""
        if _changed_since(source, of):
            return "stale_version"
        if source["source_kind"] == "file_content":
            return source["refused"]
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
        if sight := UNSEEN.get(of.get("visibility") or ""):
            return sight
        zone = of.get("zone")
        return None if zone is None or zone in self.turn["zones"] else "zone_denied"

    def worth(self, source: Row, of: Row) -> str | None:
        """Events that say nothing or that another says, empty snapshots, tools that the phase does not show."""
        kind = source["source_kind"]
        if kind == "recent_tail" and source["refused"]:
            return source["refused"]
        if kind == "older_history" and of["kind"] in SILENT:
            return "says_nothing"
        if kind == "retrieval_result" and of["label"] is None:
            return "snapshot_empty"
        return self._hidden(of) if kind == "tool_schema" else None

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
        return 4 if of.get("public_api") else TIERS

    def _outdated(self, memory: Row) -> str | None:
        if memory["memory_id"] in self.state["revoked"] or memory["lifecycle"] in ("revoked", "deprecated"):
            return "revoked"
        if memory["lifecycle"] == "expired" or (memory["expires_at"] and memory["expires_at"] <= self.turn["as_of"]):
            return "expired"
        since = self.turn["as_of"] - timedelta(days=MEMORY_DAYS)
        return "unverified_recently" if memory["last_verified_at"] and memory["last_verified_at"] < since else None

    def _ungoverned(self, memory: Row) -> str | None:
        needed = ("scope", "source", "confidence", "last_verified_at", "expires_at")
        verified, scope = memory["lifecycle"] == "verified", memory["scope"]
        if not verified or any(memory[name] is None for name in needed) or not memory["source_refs"]:
            return "model_guess" if memory["source"] == "model" and not verified else "ungoverned_memory"
        if scope != self.turn["project"] and not any(_below(path, scope) for path in self.places):
            return "wrong_scope"
        return "low_confidence" if memory["confidence"] < self.phase.memory_confidence else None

    def _hidden(self, tool: Row) -> str | None:
        if tool["phases"] is not None:
            return None if self.state["phase"] in tool["phases"] else "phase_hidden_tool"
        if not tool["declared"]:
            return "undeclared_capability"
        if tool["capability"] == "external_read":
            return None if self.turn["external_knowledge"] else "no_external_knowledge"
        return None if tool["capability"] in self.phase.capabilities else "phase_hidden_tool"

    # --- ranks and caps -----------------------------------------------------------------------------------------------

    def _capped(self, found: Rows) -> None:
        """Ranks sources within their part, and refuses duplicates and what is beyond a cap."""
        order = sorted(range(len(found)), key=lambda n: self._rank(self.sources[n], found[n]))
        most = {"recent_tail": (self.turn["tail_limit"], "tail_limit"), "memory_candidate": (self.phase.memory_items, "memory_cap")}  # fmt: skip
        counts, evidence = Counter[str](), set[str]()
        for place, n in enumerate(order):
            source, row = self.sources[n], found[n]
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
        certain = -(source["of"]["confidence"] or 0.0) if kind == "memory_candidate" else 0.0
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
