"""What would admit a row: the gates that stop it opened one by one, each judged again by the second wall.

Reads: a contract, its bounds and one stored row. Gives: per gate the deciding rule and what would have to be otherwise,
until the row passes or only the row itself could change. For auditors: it speaks of rows that a caller may not know of.

Any matching denial holds; of several the most specific is the rule that is named.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from ...nodes.scope.selectors import denies_pathless, glob_mask, selected
from ...nodes.tables import CONTRACT_BOUNDS, CONTRACTS
from ...nodes.vocabulary import ORIGIN_CLASSES, ZONES
from ...nodes.walls.gates import GATES
from ..views.refusal import refusals
from .explain import in_words

__all__ = ["Remedy", "remedies"]


@dataclass(frozen=True)
class Remedy:
    """One gate that stops the row: the rule that decides there, and what would open it."""

    gate: str
    rule: str
    needed: str
    possible: bool = True
    """Whether a contract can open it; otherwise only the row itself could change."""


@dataclass
class _Case:
    """The contract as changed so far, and the stored row."""

    contract: dict[str, Any]
    bounds: list[dict[str, Any]]
    row: dict[str, Any]
    placements: list[dict[str, Any]]

    def here(self) -> list[dict[str, Any]]:
        """The bounds of the row's project."""
        return [bound for bound in self.bounds if bound["project"] == self.row["owner_project"]]


def remedies(contract: dict[str, Any], bounds: list[dict[str, Any]], frame: Any, position: int) -> list[Remedy]:
    """The gates that stop a frame row, in the order they are met; empty for a row that passes them all."""
    row = frame.evidence.slice(position, 1).to_pylist()[0]
    starts = frame.row_index.placement_starts
    placed = frame.placements.slice(starts[position], starts[position + 1] - starts[position]).to_pylist()
    case = _Case(copy.deepcopy(contract) | {"denied": False}, copy.deepcopy(bounds), row, placed)
    found: list[Remedy] = []
    for _ in GATES:
        gate = _stopped_by(case, frame, position)
        if gate is None or (found and gate == found[-1].gate):
            break
        remedy = _OPEN[gate](case)
        found.append(Remedy(gate, *remedy))
        if not found[-1].possible:
            break
    return found


def _stopped_by(case: _Case, frame: Any, position: int) -> str | None:
    contracts, bounds = CONTRACTS.from_rows([case.contract]), CONTRACT_BOUNDS.from_rows(case.bounds)
    return refusals(contracts, bounds, frame, [position])[0]["decided_by"]


def _project(case: _Case) -> tuple[Any, ...]:
    who, project = case.contract["principal"], case.row["owner_project"]
    case.bounds.append(
        dict.fromkeys(CONTRACT_BOUNDS.columns)
        | {"request_id": case.contract["request_id"], "project": project, "users": [who], "denied_paths": [],
           "zone": ZONES.values[1], "rule_id": "new"}
    )  # fmt: skip
    return "no grant that holds", f"a grant of project {project} to {who}, usable from {case.contract['project']}"


def _owner(case: _Case) -> tuple[Any, ...]:
    user = case.row["owner_user"]
    for bound in case.here():
        bound["users"] = [*bound["users"], user]
    return _rules(case), f"a grant with users: [{user}]"


def _principals(case: _Case) -> tuple[Any, ...]:
    readers = case.row["principals"]
    case.contract["groups"] = [*case.contract["groups"], *readers]
    needed = f"that {case.contract['principal']} or one of their groups is among {', '.join(readers) or 'nobody'}"
    return "the row's list of readers", needed, bool(readers)


def _zone(case: _Case) -> tuple[Any, ...]:
    zone = case.row["zone"] if case.row["zone"] in ZONES else ZONES.values[-1]
    granted = sorted({bound["zone"] for bound in case.here()}, key=ZONES.values.index)
    rules, needed = [], []
    if zone in case.contract["excluded_zones"]:
        rules.append(_mode(case, zone))
        needed.append(f"a mode that leaves zone {zone} in")
    if ZONES.values.index(granted[-1]) < ZONES.values.index(zone):
        rules.append(_rules(case))
        needed.append(f"a grant up to zone {zone}, in place of {', '.join(granted)}")
    case.contract["excluded_zones"] = []
    for bound in case.here():
        bound["zone"] = zone
    return ", ".join(rules), " and ".join(needed)


def _level(case: _Case) -> tuple[Any, ...]:
    level = case.row["level"].lower()
    case.contract["excluded_levels"] = []
    return _mode(case, level), f"a mode that leaves level {level} in"


def _allowance(column: str, field: str, of_row: str) -> Callable[[_Case], tuple[Any, ...]]:
    def opened(case: _Case) -> tuple[Any, ...]:
        value = case.row[of_row]
        asked = case.contract[field]
        limits = [(bound["rule_id"], bound[column]) for bound in case.here() if bound[column] is not None]
        if asked is not None:
            limits.append((f"request.{field}", asked))
        layer, chosen = ("mode", "search_paths") if column == "paths" else ("role", "role_sources")
        if case.contract[chosen] is not None:
            limits.append((f"{layer} {case.contract[layer]}", case.contract[chosen]))
            case.contract[chosen] = None
        rules = ", ".join(f"{rule}: only {in_words(patterns)}" for rule, patterns in limits)
        case.contract[field] = None
        for bound in case.here():
            bound[column] = None
        return rules, f"allowances that match {value}" if value else "no allowances: the row has none to match"

    return opened


def _source_deny(case: _Case) -> tuple[Any, ...]:
    matching = [s for s in case.contract["denied_sources"] if _picks(s, case.row)]
    case.contract["denied_sources"] = []
    return f"request.denied_sources: {_most_specific(matching)}", f"no denial of {', '.join(sorted(matching))}"


def _path_deny(case: _Case) -> tuple[Any, ...]:
    path = pa.array([case.row["path"]])
    asked = [("request.denied_paths", glob) for glob in case.contract["denied_paths"]]
    asked += [(f"mode {case.contract['mode']}", glob) for glob in case.contract["excluded_paths"]]
    said = [*asked, *((bound["rule_id"], glob) for bound in case.here() for glob in bound["denied_paths"])]
    matching = {glob: rule for rule, glob in said if glob_mask(path, [glob], pathless=denies_pathless([glob]))[0]}
    case.contract |= {"denied_paths": [], "excluded_paths": []}
    for bound in case.here():
        bound["denied_paths"] = []
    first = _most_specific(matching)
    return f"{matching[first]}: {first}", f"no denial of {', '.join(sorted(matching))}"


def _named(field: str) -> Callable[[_Case], tuple[Any, ...]]:
    def opened(case: _Case) -> tuple[Any, ...]:
        asked, case.contract[field] = case.contract[field], case.row[field]
        return f"request.{field}: {asked or 'none'}", f"{field} {case.row[field]}"

    return opened


def _declared(column: str, wanted: str) -> Callable[[_Case], tuple[Any, ...]]:
    """No contract opens these: the row is what it was declared to be."""
    return lambda case: ("the row", f"a row that is declared {wanted}, not {case.row[column]}", False)


def _lifecycle(case: _Case) -> tuple[Any, ...]:
    state = case.row["lifecycle"] or "candidate"
    if state == "revoked":
        return "the row", "a row that was not revoked; no contract shows this one", False
    case.contract["include_states"] = [*case.contract["include_states"], state]
    for bound in case.here():
        bound["states"] = None
    by_request = {"candidate": "max_unverified_items above 0", "verified": "a purpose that shows verified rows"}
    return _rules(case), f"{by_request.get(state, 'allow_stale_memory')}, and grants whose states have {state}"


def _role_source(case: _Case) -> tuple[Any, ...]:
    matching = [s for s in case.contract["forbidden_sources"] if _picks(s, case.row)]
    case.contract["forbidden_sources"] = []
    return f"role {case.contract['role']}: {_most_specific(matching)}", "a role that does not forbid its source"


def _role(case: _Case) -> tuple[Any, ...]:
    excluded, case.contract["role"] = case.contract["role"], None
    return f"role {excluded}", f"a role that is none of {', '.join(case.row['excluded_roles'])}"


def _accepted(case: _Case) -> tuple[Any, ...]:
    accepted, case.contract["accepted_authority"] = case.contract["accepted_authority"], None
    return f"request.accepted_authority: {', '.join(accepted)}", f"acceptance of {case.row['origin_class']} evidence"


def _least(case: _Case) -> tuple[Any, ...]:
    least, case.contract["min_authority"] = case.contract["min_authority"], case.row["authority"] or 0
    return f"request.min_authority: {least}", f"min_authority {case.contract['min_authority']} or less"


def _as_of(case: _Case) -> tuple[Any, ...]:
    row, asked = case.row, case.contract["as_of"]
    spans = []
    for placed in case.placements:
        start = max(filter(None, (placed["recorded_time"], row["valid_from"])))
        ends = [end for end in (placed["superseded_at"], placed["deleted_at"], row["valid_until"]) if end]
        if not ends or start < min(ends):
            spans.append((start, min(ends) if ends else None))
    if not spans:
        return f"as_of {_instant(asked)}", "another row: this one was never valid while it stood", False
    case.contract["as_of"] = spans[-1][0]
    said = [f"from {_instant(start)}" + (f" until {_instant(end)}" if end else " on") for start, end in spans]
    return f"as_of {_instant(asked)}", f"an as_of {' or '.join(said)}"


def _window(case: _Case) -> tuple[Any, ...]:
    start, end = case.contract["window_start"], case.contract["window_end"]
    case.contract |= {"window_start": None, "window_end": None}
    happened = case.row["event_time"] or case.placements[-1]["recorded_time"]
    rule = f"request.time: from {_instant(start)} to {_instant(end)}"
    return rule, f"a window that has {_instant(happened)} in it"


def _mode(case: _Case, chosen: str) -> str:
    return f"mode {case.contract['mode']}: not {chosen}"


def _rules(case: _Case) -> str:
    return ", ".join(bound["rule_id"] for bound in case.here())


def _picks(selector: str, row: dict[str, Any]) -> bool:
    return bool(selected([selector], pa.array([row["origin_class"]]), pa.array([row["source_id"]]))[0])


def _most_specific(patterns: Iterable[str]) -> str:
    """The pattern with the most characters that stand for themselves; an origin class is the least specific."""
    return max(sorted(patterns), key=lambda pattern: (pattern not in ORIGIN_CLASSES, len(pattern.replace("*", ""))))


def _instant(value: datetime | None) -> str:
    return "open" if value is None else value.isoformat().replace("+00:00", "Z")


_OPEN: dict[str, Callable[[_Case], tuple[Any, ...]]] = {
    "project": _project,
    "owner": _owner,
    "principals": _principals,
    "zone": _zone,
    "source_allow": _allowance("sources", "allowed_sources", "source_id"),
    "source_deny": _source_deny,
    "path_allow": _allowance("paths", "allowed_paths", "path"),
    "path_deny": _path_deny,
    **{name: _named(name) for name in ("namespace", "branch", "test_suite")},
    "workspace": _named("workspace_root"),
    "level": _level,
    "visibility": _declared("declared_visibility", "model-visible"),
    "lifecycle": _lifecycle,
    "safety": _declared("declared_safety", "safe"),
    "role_source": _role_source,
    "role": _role,
    "accepted_authority": _accepted,
    "min_authority": _least,
    **dict.fromkeys(("recorded", "superseded", "deleted", "valid_from", "valid_until"), _as_of),
    **dict.fromkeys(("window_start", "window_end"), _window),
}
