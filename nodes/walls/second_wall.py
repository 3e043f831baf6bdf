"""The gates of the second wall, as comparisons of (candidate, bound) and (candidate, placement) pairs.

Reads the candidates' stored rows and their contracts. Gives per candidate the number of the first gate that removes it,
0 where none does. Deliberately independent of the first wall's predicates: it compares columns of two tables pair by
pair where the first wall codes a segment's columns, and `second_wall_patterns` matches globs by its own rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.keys import constants, flat, gathered_columns, last_of_runs, present, truth
from ..columns.list_columns import flattened
from ..columns.ragged import expand_ranges
from ..vocabulary import LIFECYCLES, ZONES
from .gates import GATES, NUMBER
from .second_wall_patterns import Column, Ints, Mask, on_allowed_path, on_denied_path, picked

_PASSED = len(GATES) + 1
_PLACED = ("recorded_time", "superseded_at", "deleted_at")
_STORED = ("event_time", "valid_from", "valid_until")
_CLOCK = ("as_of", "window_start", "window_end", "include_deleted")
"""The columns that the time gates compare: of placements, of rows and of contracts."""
_NAMED = {"namespace": "namespace", "branch": "branch", "test_suite": "test_suite"}
_ASKED = (*_NAMED, "workspace_root", "min_authority")
_ALLOWED_PATHS = ("allowed_paths", "search_paths")
_BOUNDED = ["owner_project", "owner_user", "namespace", "zone", "lifecycle", "source_id", "origin_class", "path"]
"""The columns of a row that a grant bounds."""
_ACCEPTS = (
    ("workspace", "current-workspace"),
    ("project-doc", "project-doc"),
    ("team-standard", "project-doc"),
    ("decision-record", "project-doc"),
    ("memory", "verified-memory"),
    ("session-event", "session-event"),
    ("artifact", "session-event"),
)


def place_stops(rows: pa.Table, order: Ints, contracts: pa.Table, contract_bounds: pa.Table) -> Ints:
    """The first access or visibility gate that removes each candidate.

    Each candidate is compared with every bound of its contract; the bound under which it gets furthest applies.

    Args:
        rows: the stored row of each candidate.
        order: position of each candidate's contract.
        contracts: CONTRACTS.
        contract_bounds: CONTRACT_BOUNDS.
    """
    candidate, bound = _pairs(order, contracts, contract_bounds)
    by_contract = _first(_by_contract(rows, order, contracts), len(order))
    alone = np.array_equal(candidate, np.arange(len(order)))
    bounded = rows if alone else rows.select(_BOUNDED).take(pa.array(candidate))
    stop = np.minimum(by_contract[candidate], _first(_by_bound(bounded, bound, contract_bounds), len(candidate)))
    furthest = np.full(len(order), NUMBER["project"], dtype=np.int64)
    np.maximum.at(furthest, candidate, stop)
    return np.where(furthest == _PASSED, 0, furthest)


def granted(rows: pa.Table, order: Ints, contracts: pa.Table, contract_bounds: pa.Table) -> Mask:
    """Which rows the grants behind their contract admit, whatever else the contract asks for."""
    candidate, bound = _pairs(order, contracts, contract_bounds)
    refused = _by_bound(rows.select(_BOUNDED).take(pa.array(candidate)), bound, contract_bounds)
    admitted = np.zeros(len(order), dtype=bool)
    admitted[candidate[_first(refused, len(candidate)) == _PASSED]] = True
    return admitted & ~(present(rows["principals"]) & ~_entitled(rows, order, contracts))


def _pairs(order: Ints, contracts: pa.Table, contract_bounds: pa.Table) -> tuple[Ints, Ints]:
    """Every (candidate, bound of its contract)."""
    owner = pc.index_in(flat(contract_bounds["request_id"]), flat(contracts["request_id"])).to_numpy()
    starts = owner.searchsorted(np.arange(contracts.num_rows + 1))
    counts = (starts[1:] - starts[:-1])[order]
    candidate = np.arange(len(order)).repeat(counts)
    return candidate, expand_ranges(starts[:-1][order].astype(np.int64), counts.astype(np.int64))


def time_stops(row: Ints, rows: pa.Table, asked: pa.Table, placements: pa.Table) -> tuple[Ints, Mask]:
    """The first time gate that removes each candidate, and whether its best placement has ended.

    The best placement is one that passes every gate (preferably one that has not ended: an ended one passes only where
    the contract includes deleted text), then one alive at `as_of`, then one recorded by then; among equals the latest,
    but the first of those recorded only later.
    """
    held = placements["row"].to_numpy()
    starts = held.searchsorted(row)
    counts = held.searchsorted(row, side="right") - starts
    candidate = np.arange(len(row)).repeat(counts)
    placed = gathered_columns(placements, _PLACED, expand_ranges(starts.astype(np.int64), counts.astype(np.int64)))
    stored, clock = (gathered_columns(table, names, candidate) for table, names in ((rows, _STORED), (asked, _CLOCK)))
    as_of, recorded = clock["as_of"], placed["recorded_time"]
    happened = pc.coalesce(stored["event_time"], recorded)
    unrecorded = _holds(pc.greater, recorded, as_of)
    replaced = _holds(pc.less_equal, placed["superseded_at"], as_of)
    gone = _holds(pc.less_equal, placed["deleted_at"], as_of)
    current_only = ~truth(clock["include_deleted"])
    removed = [
        ("recorded", unrecorded),
        ("superseded", replaced & current_only),
        ("deleted", gone & current_only),
        ("valid_from", _holds(pc.greater, stored["valid_from"], as_of)),
        ("valid_until", _holds(pc.less_equal, stored["valid_until"], as_of)),
        ("window_start", _holds(pc.less, happened, clock["window_start"])),
        ("window_end", _holds(pc.greater_equal, happened, clock["window_end"])),
    ]
    stop = _first(removed, len(candidate))
    ended = replaced | gone
    grade = np.where(stop == _PASSED, np.where(ended, 3, 4), np.where(unrecorded, 0, np.where(ended, 1, 2)))
    when = recorded.cast(pa.int64()).to_numpy()
    best = np.lexsort((np.where(grade > 0, when, -when), grade, candidate))
    last = best[last_of_runs(candidate[best])]
    result = np.full(len(row), NUMBER["recorded"], dtype=np.int64)
    result[candidate[last]] = np.where(stop[last] == _PASSED, 0, stop[last])
    over = np.zeros(len(row), dtype=bool)
    over[candidate[last]] = ended[last]
    return result, over


def _first(removed: Iterable[tuple[str, Mask]], count: int) -> Ints:
    """The lowest number of the gates that remove each pair; `_PASSED` where none does."""
    lowest = np.full(count, _PASSED, dtype=np.int64)
    for gate, mask in removed:
        lowest[mask] = np.minimum(lowest[mask], NUMBER[gate])
    return lowest


def _by_contract(rows: pa.Table, order: Ints, contracts: pa.Table) -> list[tuple[str, Mask]]:
    """Which candidates each gate removes, where the contract alone decides."""
    asked = gathered_columns(contracts, _ASKED, order)
    state = _word(rows["lifecycle"], LIFECYCLES.values, "candidate")
    zone = _word(rows["zone"], ZONES.values, "restricted")
    named = [(gate, _both(rows[name], asked[name]) & ~_equal(rows[name], asked[name])) for gate, name in _NAMED.items()]
    elsewhere = present(rows["workspace_root"]) & ~_equal(rows["workspace_root"], asked["workspace_root"])
    allowed = [("source_allow", contracts[name], picked) for name in ("allowed_sources", "role_sources")]
    allowed += [("path_allow", contracts[name], on_allowed_path) for name in _ALLOWED_PATHS]
    return [
        ("principals", present(rows["principals"]) & ~_entitled(rows, order, contracts)),
        ("source_deny", picked(rows, order, contracts["denied_sources"])),
        *((gate, _outside(rows, order, lists, reached)) for gate, lists, reached in allowed),
        *(("path_deny", on_denied_path(rows, order, contracts[name])) for name in ("denied_paths", "excluded_paths")),
        ("zone", _belongs(order, zone, *flattened(contracts["excluded_zones"]))),
        *named,
        ("workspace", elsewhere),
        ("level", _belongs(order, pc.utf8_lower(rows["level"]), *flattened(contracts["excluded_levels"]))),
        ("visibility", ~_equal(rows["declared_visibility"], "model-visible")),
        ("lifecycle", ~_belongs(order, state, *flattened(contracts["include_states"]))),
        ("safety", _equal(rows["declared_safety"], "blocked")),
        ("role_source", picked(rows, order, contracts["forbidden_sources"])),
        ("role", _for_others(rows, order, contracts)),
        ("accepted_authority", _unaccepted(rows, state, order, contracts["accepted_authority"])),
        ("min_authority", truth(pc.less(rows["authority"].fill_null(0), asked["min_authority"]))),
    ]


def _entitled(rows: pa.Table, order: Ints, contracts: pa.Table) -> Mask:
    """Which candidates name the principal of their contract, or one of its groups."""
    entitled = np.zeros(len(order), dtype=bool)
    listing, reader = flattened(rows["principals"])
    if len(listing):
        group_of, groups = flattened(contracts["groups"])
        who = pa.concat_arrays([flat(groups), flat(contracts["principal"])])
        members = np.concatenate([group_of, np.arange(contracts.num_rows)])
        entitled[listing[_belongs(order[listing], reader, members, who)]] = True
    return entitled


def _for_others(rows: pa.Table, order: Ints, contracts: pa.Table) -> Mask:
    """Which candidates exclude the role of their contract."""
    unwanted = np.zeros(len(order), dtype=bool)
    excluding, excluded = flattened(rows["excluded_roles"])
    if len(excluding):
        unwanted[excluding[_equal(excluded, flat(contracts["role"]).take(pa.array(order[excluding])))]] = True
    return unwanted


def _outside(rows: pa.Table, order: Ints, lists: Column, reached: Callable[[pa.Table, Ints, Column], Mask]) -> Mask:
    """Which rows are outside list `order[i]`; none where the list is null."""
    if lists.null_count == len(lists):
        return np.zeros(len(order), dtype=bool)
    return present(lists)[order] & ~reached(rows, order, lists)


def _by_bound(row: pa.Table, bound: Ints, bounds: pa.Table) -> list[tuple[str, Mask]]:
    """Which (candidate, bound) pairs each gate removes, where a grant decides; `bound[i]` is the bound of row `i`."""
    zones = constants(ZONES.values)
    zone = pc.index_in(_word(row["zone"], ZONES.values, "restricted"), zones)
    highest = pc.index_in(flat(bounds["zone"]), zones).fill_null(-1).take(pa.array(bound))
    state = _word(row["lifecycle"], LIFECYCLES.values, "candidate")
    namespaces = flattened(bounds["namespaces"])
    return [
        ("project", ~_equal(row["owner_project"], flat(bounds["project"]).take(pa.array(bound)))),
        ("owner", present(row["owner_user"]) & ~_belongs(bound, row["owner_user"], *flattened(bounds["users"]))),
        ("zone", truth(pc.greater(zone, highest))),
        ("source_allow", _outside(row, bound, bounds["sources"], picked)),
        ("path_allow", _outside(row, bound, bounds["paths"], on_allowed_path)),
        ("path_deny", on_denied_path(row, bound, bounds["denied_paths"])),
        (
            "namespace",
            present(row["namespace"])
            & _outside(
                row, bound, bounds["namespaces"], lambda row, at, _: _belongs(at, row["namespace"], *namespaces)
            ),
        ),
        (
            "lifecycle",
            _outside(row, bound, bounds["states"], lambda _, at, lists: _belongs(at, state, *flattened(lists))),
        ),
    ]


def _unaccepted(rows: pa.Table, state: pa.Array, order: Ints, accepted: Column) -> Mask:
    """Whether the contract refuses the row's class of source; memories are accepted only while verified."""
    if accepted.null_count == len(accepted):
        return np.zeros(len(order), dtype=bool)
    origin, name = (pa.array(words) for words in zip(*_ACCEPTS, strict=True))
    class_of = name.take(pc.index_in(flat(rows["origin_class"]), origin))
    unverified = _equal(class_of, "verified-memory") & ~_equal(state, "verified")
    return present(accepted)[order] & ~(_belongs(order, class_of, *flattened(accepted)) & ~unverified)


def _belongs(group: Ints, values: Column, set_group: Ints, set_values: Column) -> Mask:
    """Whether value `i` is in the set numbered `group[i]`; sets are pairs of number and value. Null is in no set."""
    if not len(set_values):
        return np.zeros(len(group), dtype=bool)
    words = pa.concat_arrays([flat(values), flat(set_values)]).dictionary_encode()
    code = words.indices.fill_null(-1).to_numpy().astype(np.int64)
    width = len(words.dictionary) + 1
    asked, known = code[: len(group)], code[len(group) :]
    sets = np.sort(set_group * width + known)
    wanted = group * width + asked
    return (asked >= 0) & (sets[np.minimum(sets.searchsorted(wanted), len(sets) - 1)] == wanted)


def _word(column: Column, words: tuple[str, ...], null: str) -> pa.Array:
    """The column with `null` in place of nulls and of words that are not in the list."""
    array = flat(column)
    return pc.if_else(pc.is_in(array, constants(words)), array, null)


def _equal(one: Column, other: Column | str) -> Mask:
    return _holds(pc.equal, one, other)


def _holds(compare: Callable[[Any, Any], Column], one: Column, other: Column | str) -> Mask:
    """Where a comparison is true; it is false where one side is null."""
    if one.null_count == len(one) or (type(other) is not str and other.null_count == len(other)):
        return np.zeros(len(one), dtype=bool)
    return truth(compare(one, other))


def _both(one: Column, other: Column) -> Mask:
    """Where neither value is null."""
    return present(one) & present(other)
