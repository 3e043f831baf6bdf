"""The second wall: every gate again, in plain comparisons of the words of a stored row and of its contract.

Reads the candidates' stored rows and their contracts. Gives per candidate the number of the first gate that removes it,
0 where none does. Deliberately independent of the first wall's predicates: it compares words, where the first wall
codes a segment's columns, and matches selectors and globs by its own rules. Each distinct pair of words and contract is
judged once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..columns.keys import distinct_numbers, first_of_runs, gathered_columns, rows_of_runs
from ..columns.ragged import expand_ranges
from ..frames import OPEN_END, OPEN_START, micros
from ..vocabulary import LIFECYCLES, ORIGIN_CLASSES, ZONES
from .gates import GATES, NUMBER

Mask = NDArray[np.bool_]
Ints = NDArray[np.int64]
Words = Mapping[str, Any]
"""Columns of a row, of a contract or of a bound, by name."""
Removed = Iterable[tuple[str, object]]
"""Gates, and a true value where one removes a row."""

_PASSED = len(GATES) + 1
_BOUNDED = ("owner_project", "owner_user", "namespace", "zone", "lifecycle", "source_id", "origin_class", "principals")
"""The columns of a row, besides its path, that a grant bounds."""
_OF_ROW = (*_BOUNDED, "workspace_root", "branch", "test_suite", "level", "declared_visibility", "declared_safety",
           "excluded_roles", "authority")  # fmt: skip
_LISTS = {"principals", "excluded_roles"}
_PATHS = ("allowed_paths", "search_paths", "denied_paths", "excluded_paths")
_RIGHTS = ("principal", "groups")
_ASKED = (*_RIGHTS, *_PATHS, "allowed_sources", "role_sources", "denied_sources", "forbidden_sources", "excluded_zones",
          "excluded_levels", "namespace", "workspace_root", "branch", "test_suite", "include_states", "role",
          "accepted_authority", "min_authority")  # fmt: skip
_RANKS = {zone: rank for rank, zone in enumerate(ZONES.values)}
_ACCEPTS = {
    "workspace": "current-workspace",
    "project-doc": "project-doc",
    "team-standard": "project-doc",
    "decision-record": "project-doc",
    "memory": "verified-memory",
    "session-event": "session-event",
    "artifact": "session-event",
}


class Scope(NamedTuple):
    """What decides about places: a contract, and the bounds through which it reaches."""

    contract: Words
    bounds: Sequence[Words]


def place_stops(stored: pa.Table, row: Ints, order: Ints, contracts: pa.Table, contract_bounds: pa.Table) -> Ints:
    """The first access or visibility gate that removes each candidate.

    Each candidate is compared with every bound of its contract; the bound under which it gets furthest applies.

    Args:
        stored: the distinct stored rows.
        row: the one of each candidate.
        order: position of each candidate's contract.
        contracts: CONTRACTS.
        contract_bounds: CONTRACT_BOUNDS.
    """
    scopes = _scopes(contracts.select(["request_id", *_ASKED]), contract_bounds)
    return _judged(_stop, stored, _OF_ROW, row, order, scopes)


def granted(stored: pa.Table, order: Ints, contracts: pa.Table, contract_bounds: pa.Table) -> Mask:
    """Which rows the grants behind their contract admit, whatever else the contract asks for."""
    scopes = _scopes(contracts.select(["request_id", *_RIGHTS]), contract_bounds)
    return _judged(_granted, stored, _BOUNDED, np.arange(stored.num_rows), order, scopes) > 0


def _judged(
    judge: Callable[[Words, Scope], int],
    stored: pa.Table,
    names: Sequence[str],
    row: Ints,
    order: Ints,
    of: tuple[list[Scope], Ints],
) -> Ints:
    """The judgment of each row under the scope of its contract; paths are compared only where a scope names some."""
    scopes, of_contract = of
    named = any(_names_paths(scope) for scope in scopes)
    words, which = _distinct(stored, (*names, "path") if named else names)
    pairs, pair = distinct_numbers(of_contract[order] * max(len(words), 1) + which[row])
    found = [judge(words[at % len(words)], scopes[at // len(words)]) for at in pairs.tolist()]
    return np.array(found, dtype=np.int64)[pair]


def _scopes(contracts: pa.Table, contract_bounds: pa.Table) -> tuple[list[Scope], Ints]:
    """The distinct scopes, and that of each contract."""
    bounds = rows_of_runs(contract_bounds.drop_columns(["rule_id"]), "request_id")
    known: dict[tuple[str, int], int] = {}
    scopes, number = list[Scope](), list[int]()
    for row in contracts.to_pylist():
        scope = Scope(row, bounds.get(row.pop("request_id"), ()))
        number.append(known.setdefault((repr(row), id(scope.bounds)), len(scopes)))
        if number[-1] == len(scopes):
            scopes.append(scope)
    return scopes, np.array(number, dtype=np.int64)


def _names_paths(scope: Scope) -> bool:
    allowed = [scope.contract.get(name) for name in _PATHS[:2]] + [bound["paths"] for bound in scope.bounds]
    denied = [scope.contract.get(name) for name in _PATHS[2:]] + [bound["denied_paths"] for bound in scope.bounds]
    return any(denied) or any(globs is not None for globs in allowed)


def _distinct(rows: pa.Table, names: Sequence[str]) -> tuple[list[Words], Ints]:
    """The distinct words of some columns as dictionaries, and the place of each row among them.

    A state or a zone that is null or of no list is the least privileged.
    """
    columns = {name: rows[name].to_pylist() for name in names}
    for name in _LISTS.intersection(names):
        columns[name] = [None if values is None else tuple(values) for values in columns[name]]
    columns["lifecycle"] = [word if word in LIFECYCLES.values else "candidate" for word in columns["lifecycle"]]
    columns["zone"] = [word if word in _RANKS else "restricted" for word in columns["zone"]]
    every = list(zip(*columns.values(), strict=True))
    known = {values: place for place, values in enumerate(dict.fromkeys(every))}
    which = np.array([known[values] for values in every], dtype=np.int64)
    return [dict(zip(names, values, strict=True)) for values in known], which


def _stop(row: Words, scope: Scope) -> int:
    """The gate that removes a row under a scope; 0 where none does."""
    by_contract = _first(_by_contract(row, scope.contract))
    stops = [min(by_contract, _first(_by_bound(row, bound))) for bound in scope.bounds]
    furthest = max(stops, default=NUMBER["project"])
    return 0 if furthest == _PASSED else furthest


def _granted(row: Words, scope: Scope) -> bool:
    entitled = row["principals"] is None or _entitled(row["principals"], scope.contract)
    return entitled and any(_first(_by_bound(row, bound)) == _PASSED for bound in scope.bounds)


def _first(removed: Removed) -> int:
    """The lowest number of the gates that remove a row; `_PASSED` where none does."""
    return min([NUMBER[gate] for gate, holds in removed if holds], default=_PASSED)


def _by_contract(row: Words, contract: Words) -> Removed:
    """Whether each gate removes a row, where the contract alone decides."""
    sources, of_role = contract["allowed_sources"], contract["role_sources"]
    paths, of_mode = contract["allowed_paths"], contract["search_paths"]
    denied, excluded = contract["denied_paths"], contract["excluded_paths"]
    accepted, level = contract["accepted_authority"], row["level"]
    return [
        ("principals", row["principals"] is not None and not _entitled(row["principals"], contract)),
        ("source_deny", contract["denied_sources"] and _picked(contract["denied_sources"], row)),
        ("source_allow", sources is not None and not _picked(sources, row)),
        ("source_allow", of_role is not None and not _picked(of_role, row)),
        ("path_allow", paths is not None and not _on_allowed_path(paths, row)),
        ("path_allow", of_mode is not None and not _on_allowed_path(of_mode, row)),
        ("path_deny", denied and _on_denied_path(denied, row)),
        ("path_deny", excluded and _on_denied_path(excluded, row)),
        ("zone", row["zone"] in contract["excluded_zones"]),
        ("namespace", contract["namespace"] is not None and row["namespace"] not in (None, contract["namespace"])),
        ("branch", contract["branch"] is not None and row["branch"] not in (None, contract["branch"])),
        ("test_suite", contract["test_suite"] is not None and row["test_suite"] not in (None, contract["test_suite"])),
        ("workspace", row["workspace_root"] not in (None, contract["workspace_root"])),
        ("level", level is not None and contract["excluded_levels"] and level.lower() in contract["excluded_levels"]),
        ("visibility", row["declared_visibility"] != "model-visible"),
        ("lifecycle", row["lifecycle"] not in contract["include_states"]),
        ("safety", row["declared_safety"] == "blocked"),
        ("role_source", contract["forbidden_sources"] and _picked(contract["forbidden_sources"], row)),
        ("role", contract["role"] in (row["excluded_roles"] or ())),
        ("accepted_authority", accepted is not None and not _accepted(accepted, row["origin_class"], row["lifecycle"])),
        ("min_authority", (row["authority"] or 0) < contract["min_authority"]),
    ]


def _by_bound(row: Words, bound: Words) -> Removed:
    """Whether each gate removes a row, where a grant decides."""
    user, name = row["owner_user"], row["namespace"]
    return [
        ("project", row["owner_project"] != bound["project"]),
        ("owner", user is not None and user not in bound["users"]),
        ("zone", bound["zone"] not in _RANKS or _RANKS[row["zone"]] > _RANKS[bound["zone"]]),
        ("source_allow", bound["sources"] is not None and not _picked(bound["sources"], row)),
        ("path_allow", bound["paths"] is not None and not _on_allowed_path(bound["paths"], row)),
        ("path_deny", bound["denied_paths"] and _on_denied_path(bound["denied_paths"], row)),
        ("namespace", name is not None and bound["namespaces"] is not None and name not in bound["namespaces"]),
        ("lifecycle", bound["states"] is not None and row["lifecycle"] not in bound["states"]),
    ]


def _entitled(readers: Sequence[str], contract: Words) -> bool:
    """Whether a list of readers names the principal or one of its groups."""
    return not {contract["principal"], *contract["groups"]}.isdisjoint(readers)


def _accepted(accepted: Sequence[str], origin: str, state: str) -> bool:
    """Whether a contract accepts a row's class of source; memories are accepted only while verified."""
    class_ = _ACCEPTS.get(origin)
    return class_ in accepted and (class_ != "verified-memory" or state == "verified")


AND = "\n"
_LETTER = re.compile(r"\[[*?\[]\]|(?s:.)")
_WILD = re.compile(r"[*?\[]")
_TOKEN = re.compile(r"\[[*?\[]\]|\*\*/|\*+|\?|[^*?]")


def _picked(selectors: Sequence[str], row: Words) -> bool:
    """Whether a selector picks the source of a row."""
    source = row["source_id"], row["origin_class"]
    return any(all(_selects(part, *source) for part in selector.split(AND)) for selector in selectors)


def _on_allowed_path(globs: Sequence[str], row: Words) -> bool:
    """Whether a list allows the path of a row; a row without a path needs the entry `(none)`."""
    if row["path"] is None:
        return any({*glob.split(AND)} == {"(none)"} for glob in globs)
    return _on_path(globs, row["path"])


def _on_denied_path(globs: Sequence[str], row: Words) -> bool:
    """Whether a list denies the path of a row; every glob but `path:GLOB` denies rows without a path, too."""
    if row["path"] is None:
        return any(not glob.startswith("path:") for glob in globs)
    return _on_path(globs, row["path"])


def _on_path(globs: Sequence[str], path: str) -> bool:
    return any(all(_leads(part, path) for part in glob.split(AND)) for glob in globs)


def _leads(glob: str, path: str) -> bool:
    """Whether a glob of a list matches a path. One without the text that every match contains is ruled out first."""
    glob, pathless = glob.removeprefix("path:"), glob == "(none)"
    return not pathless and all(word in path for word in _words_of(glob)) and leads_to(glob, path)


@lru_cache(maxsize=1 << 10)
def _selects(selector: str, source_id: str, origin_class: str) -> bool:
    """Whether a selector names this origin class, or its glob this source id as a whole."""
    if selector in ORIGIN_CLASSES.values or selector in ORIGIN_CLASSES.aliases:
        return ORIGIN_CLASSES.aliases.get(selector, selector) == origin_class
    return leads_to(selector, source_id, names=True)


def _is(token: str, character: str) -> bool:
    """Whether one glob token (a character or a bracketed one) matches this character."""
    return character == (token[1] if len(token) == 3 else token)


@lru_cache(maxsize=1 << 10)
def _words_of(glob: str) -> tuple[str, ...]:
    """Texts that every match of a glob contains."""
    return () if "[" in glob else tuple(filter(None, re.split(r"\*\*/|\*+|\?", glob)))


@lru_cache(maxsize=1 << 16)
def leads_to(glob: str, path: str, *, names: bool = False) -> bool:
    """Whether a glob matches a path as a whole: `?` and `*` stay inside one segment, `**` crosses segments.

    `[*]`, `[?]` and `[[]` are the characters in the brackets. A name that ends a glob may be that of a folder above the path.
    With `names`, the path is a source id, which has no segments.
    """
    glob = glob + "**" if glob.endswith("/") else glob
    reached, before = {0}, "/"
    for token in (_LETTER if names else _TOKEN).findall(glob):
        if token == "?":
            reached = {at + 1 for at in reached if at < len(path) and (names or path[at] != "/")}
        elif token == "*" and not names:
            reached = {end for at in reached for end in range(at, _segment_end(path, at) + 1)}
        elif token == "**/":
            ends = {end for at in reached for end in range(at + 1, len(path) + 1) if path[end - 1] == "/"}
            reached = ends | reached if before == "/" else ends
        elif token.startswith("*"):
            reached = set(range(min(reached), len(path) + 1)) if reached else reached
        else:
            reached = {at + 1 for at in reached if _is(token, path[at : at + 1])}
        before = token[-1]
    named = not names and not _WILD.search(glob.rpartition("/")[2])
    return len(path) in reached or (named and any(path[at : at + 1] == "/" for at in reached))


def _segment_end(path: str, at: int) -> int:
    end = path.find("/", at)
    return len(path) if end < 0 else end


_TIMES = {"recorded_time": OPEN_START, "superseded_at": OPEN_END, "deleted_at": OPEN_END}
_VALID = {"event_time": OPEN_START, "valid_from": OPEN_START, "valid_until": OPEN_END}
_CLOCK = {"as_of": OPEN_END, "window_start": OPEN_START, "window_end": OPEN_END}
"""The times of placements, of rows and of contracts that the time gates compare, and what null counts as."""


def time_stops(
    rows: Ints, row: Ints, stored: pa.Table, order: Ints, contracts: pa.Table, placements: pa.Table
) -> tuple[Ints, Mask]:
    """The first time gate that removes each candidate, and whether its best placement has ended.

    The best placement is one that passes every gate (preferably one that has not ended: an ended one passes only where
    the contract includes deleted text), then one alive at `as_of`, then one recorded by then; among equals the latest,
    but the first of those recorded only later.

    Args:
        rows: the frame rows of `stored`, the distinct stored rows, ascending.
        row: the one of each candidate.
        order: position of each candidate's contract in `contracts`.
        placements: PLACEMENTS.
    """
    held = placements["row"].to_numpy()
    first = held.searchsorted(rows)
    held_by = held.searchsorted(rows, side="right") - first
    placed = gathered_columns(placements, _TIMES, expand_ranges(first.astype(np.int64), held_by.astype(np.int64)))
    counts = held_by[row]
    candidate = np.arange(len(row)).repeat(counts)
    at = expand_ranges((held_by.cumsum() - held_by)[row], counts)
    recorded, superseded, deleted = (micros(placed[name], null)[at] for name, null in _TIMES.items())
    event, begins, ends = (micros(stored[name], null)[row[candidate]] for name, null in _VALID.items())
    as_of, start, end = (micros(contracts[name], null)[order[candidate]] for name, null in _CLOCK.items())
    current_only = ~np.asarray(contracts["include_deleted"])[order[candidate]]
    happened = np.where(event == OPEN_START, recorded, event)
    replaced, gone = superseded <= as_of, deleted <= as_of
    removed = (
        ("recorded", recorded > as_of),
        ("superseded", replaced & current_only),
        ("deleted", gone & current_only),
        ("valid_from", begins > as_of),
        ("valid_until", ends <= as_of),
        ("window_start", happened < start),
        ("window_end", happened >= end),
    )
    stop = np.full(len(candidate), _PASSED, dtype=np.int64)
    for gate, mask in reversed(removed):
        stop[mask] = NUMBER[gate]
    ended = replaced | gone
    grade = np.where(stop == _PASSED, np.where(ended, 3, 4), np.where(recorded > as_of, 0, np.where(ended, 1, 2)))
    best = np.lexsort((np.where(grade > 0, recorded, -recorded), grade, candidate))[::-1]
    first = best[first_of_runs(candidate[best])]
    result = np.full(len(row), NUMBER["recorded"], dtype=np.int64)
    result[candidate[first]] = np.where(stop[first] == _PASSED, 0, stop[first])
    over = np.zeros(len(row), dtype=bool)
    over[candidate[first]] = ended[first]
    return result, over
