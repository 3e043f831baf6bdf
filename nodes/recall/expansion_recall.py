"""The expansion lane: rows related to the best hits, found through the rows' own links.

Reads the visible hits of the other lanes. Gives neighbors in the same document or conversation, parents and children,
partners in a conflict set, superseding records, and, if the contract allows, cited documents and named structured
records; each is judged by the same gates as any other row before it becomes a hit.

Note: it starts from admissible hits only. Links of a withheld row are not followed, as its neighbors would disclose
that it exists. Sub-query filters do not apply: a rule's partner counts whatever its kind. The window of a mode does
apply (S1.23): a link cannot bypass it. Most links are followed from the first `SEEDS` hits; conflict sets and what
replaces a row from every hit, since any of them may be selected (S0.111), at any recall effort: `minimal` follows
nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.keys import first_of_runs, gathered_columns, places_of
from ..columns.numbers import quantise
from ..frames import PostingIndex, posting_keys
from ..text.index_keys import conflict_keys, id_keys
from ..text.references import References, cited_documents, named_records
from .recall_scope import PAIRS, Int, RecallTables, ScopeGroup
from .recall_selection import VIA, Found, best_found
from .turns import beside, sessions
from .versions import replacing

SEEDS = 10
"""Hits per request, over all lanes, whose links are followed; rivals are followed from every hit."""
TURNS = 1
"""Turns of a conversation on each side of a hit that are returned with it."""
WEIGHTS = {"conflict": 1.0, "superseding": 1.0, "record": 1.0, "parent": 0.5, "child": 0.5, "neighbour": 0.5,
           "citation": 0.5}  # fmt: skip
"""Share of the seed's fusion score: all of it for a competing, newer or canonical claim, half for a surrounding or
cited one."""
SWITCHES = {"neighbour": "chunk_expansion", "parent": "chunk_expansion", "child": "chunk_expansion",
            "citation": "citation_chaining", "record": "exact_lookups"}  # fmt: skip
"""The contract's column that enables a link; other links are always followed."""

_SHARES = np.array([WEIGHTS.get(name, 0.0) for name in VIA])

Reached = tuple[Int, Int, Int]
"""Seed number, position in `scope.rows`, and position in VIA of the link that leads there."""
Follow = Callable[[ScopeGroup, Found, Int, PostingIndex, pa.Table], Iterator[Reached]]


def recall_expansion(
    tables: RecallTables, seeds: Found, seed_rank: Int, known: Found, postings: PostingIndex, placements: pa.Table
) -> Found:
    """Rows reached from the seeds, best first; the score is the seed's fusion score times the link's weight.

    Args:
        tables: the inputs every lane reads.
        seeds: the best visible hits per request; `score` is their fusion score.
        seed_rank: rank of each seed inside its request, from 0; of seeds beyond `SEEDS` only rivals are followed.
        known: every hit of the other lanes; their rows are not returned again.
        postings: the frame's index.
        placements: the frame's placements, for document order.
    """
    few = np.array([effort == "minimal" for effort in tables.contracts["recall_effort"].to_pylist()], dtype=bool)
    near = (seed_rank < SEEDS) & ~few[tables.sub_request[seeds.sub]]
    followed = Found.of(seeds.sub[near], seeds.row[near], seeds.score[near])
    found = [_followed(tables, followed, known, _links, postings, placements)]
    # Any hit may be selected, including neighbors of a seed: the rivals of all of them are added, and theirs.
    last = Found.concat([seeds, *found])
    while len(last.sub):
        last = _followed(tables, last, Found.concat([known, *found]), _rivals, postings, placements)
        found.append(last)
    return _once(tables, Found.concat(found))


def _rivals(
    scope: ScopeGroup, own: Found, local: Int, postings: PostingIndex, placements: pa.Table
) -> Iterator[Reached]:
    """The rows that compete with the seeds or replace them."""
    stored = gathered_columns(scope.tables.evidence, ("conflict_set", "superseded_by"), own.row)
    conflict = _keys(stored["conflict_set"], "conflict", conflict_keys)
    superseding = _keys(stored["superseded_by"], "id", id_keys)
    yield from (one[:3] for one in scope.referred(postings, conflict=conflict, superseding=superseding))
    of, by = replacing(scope, scope.tables.sub_request[own.sub], own.row, postings)
    yield of, by, np.full(len(of), VIA.index("superseding"))


def _links(
    scope: ScopeGroup, own: Found, local: Int, postings: PostingIndex, placements: pa.Table
) -> Iterator[Reached]:
    """All rows that the seeds link to, except their rivals; those of a link are read where a contract enables it."""
    enabled = {name for name in SWITCHES.values() if np.asarray(scope.tables.contracts[name])[scope.request].any()}
    stored = gathered_columns(scope.tables.evidence, ("parent_id", "links", "path", "text"), own.row)
    named = {"parent": _keys(stored["parent_id"], "id", id_keys)}
    if "citation_chaining" in enabled:
        named["citation"] = cited_documents(stored["links"], stored["text"])
    if "exact_lookups" in enabled:
        named["record"] = named_records(stored["path"], stored["text"])
    records = scope.once("records", lambda: np.asarray(pc.equal(scope.column("origin_class"), "structured-sot")))
    for seed, row, via, _ in scope.referred(postings, **named):
        kept = (via != VIA.index("record")) | records[row]
        yield seed[kept], row[kept], via[kept]
    if "chunk_expansion" in enabled:
        yield from _beside(scope, own, local, placements)


def _keys(names: pa.Array, field: str, keys_of: Callable[[str], list[str]]) -> References:
    """The keys of the seeds' values in a column."""
    if names.null_count == len(names):
        return []
    named = enumerate(names.to_pylist())
    return [(row, key) for row, name in named if name for key in posting_keys(field, keys_of(name))]


def _followed(
    tables: RecallTables, seeds: Found, known: Found, follow: Follow, postings: PostingIndex, placements: pa.Table
) -> Found:
    """The rows that the links of the seeds reach, each once per request: admissible, not withheld and not `known`; the
    `lane_k` best.
    """
    request, follows = tables.sub_request, _follows(tables.contracts)
    width = len(tables.row_index.id_rank) + 1
    taken = np.sort(request[known.sub] * width + known.row)
    parts: list[Found] = []
    for scope in tables.scope_groups("expansion"):
        member = np.zeros(len(request), dtype=bool)
        member[scope.sub] = True
        at = member[seeds.sub].nonzero()[0]
        if not len(at):
            continue
        own = Found.of(seeds.sub[at], seeds.row[at], seeds.score[at])
        local = scope.local(own.row)
        for seed, row, via in _gathered(follow(scope, own, local, postings, placements)):
            sub = own.sub[seed]
            passes = scope.admitted(request[sub], row)[0] & (row != local[seed]) & follows[request[sub], via]
            passes &= places_of(request[sub] * width + scope.rows[row], taken) < 0
            kept = passes.nonzero()[0]
            kept = kept[scope.in_window(sub[kept], row[kept])]
            score = quantise(own.score[seed[kept]] * _SHARES[via[kept]])
            parts.append(_once(tables, Found.of(sub[kept], scope.rows[row[kept]], score, via=via[kept])))
    return best_found(tables, _once(tables, Found.concat(parts)) if len(parts) > 1 else Found.concat(parts))


def _gathered(reached: Iterable[Reached]) -> Iterator[tuple[Int, Int, Int]]:
    """Seeds, rows and links of the rows reached, about `PAIRS` at once."""
    parts: list[Reached] = []
    for part in reached:
        if parts and sum(len(seed) for seed, _, _ in parts) + len(part[0]) > PAIRS:
            yield _joined(parts)
            parts = []
        parts.append(part)
    if parts:
        yield _joined(parts)


def _joined(parts: Sequence[Reached]) -> Reached:
    seed, row, via = map(np.concatenate, zip(*parts, strict=True))
    return seed, row, via


def _follows(contracts: pa.Table) -> NDArray[np.bool_]:
    """Which links each contract follows, bool[contracts, VIA]."""
    follows = np.ones((contracts.num_rows, len(VIA)), dtype=bool)
    for via, column in SWITCHES.items():
        follows[:, VIA.index(via)] = np.asarray(contracts[column])
    return follows


def _beside(scope: ScopeGroup, own: Found, local: Int, placements: pa.Table) -> Iterator[Reached]:
    """Rows of the same document or conversation, and children."""
    request, groups, every = scope.tables.sub_request[own.sub], sessions(scope), np.arange(len(local))
    pages = [(every, scope.document, 1, False)]
    if groups is not None:
        pages.append(((groups.of[local] >= 0).nonzero()[0], groups.of, TURNS, True))
    for seeds, page, reach, timed in pages:
        for line in beside(scope, placements, request[seeds], local[seeds], page, reach, timed=timed):
            there = line >= 0
            yield seeds[there], line[there], np.full(int(there.sum()), VIA.index("neighbour"))
    yield from _children(scope, own.row)


def _children(scope: ScopeGroup, rows: Int) -> Iterator[Reached]:
    """The rows whose parent is a seed, by its evidence id or the id of its record."""
    by_parent = scope.once("children", lambda: _by_parent(scope.column("parent_id")))
    if not by_parent:
        return
    names = gathered_columns(scope.tables.evidence, ("evidence_id", "entity"), rows)
    for column in names.values():
        for seed, name in enumerate(column.to_pylist()):
            children = by_parent.get(name.lower()) if name else None
            if children is not None:
                yield np.full(len(children), seed), children, np.full(len(children), VIA.index("child"))


def _by_parent(parents: pa.Array) -> dict[str, Int]:
    """The positions of the rows that name each parent, which is in lower case."""
    rows = np.asarray(parents.is_valid()).nonzero()[0]
    found: dict[str, list[int]] = {}
    for row, name in zip(rows.tolist(), parents.drop_null().to_pylist(), strict=True):
        found.setdefault(name.lower(), []).append(row)
    return {name: np.array(own) for name, own in found.items()}


def _once(tables: RecallTables, found: Found) -> Found:
    """Each row once per request, by its best link and seed."""
    request = tables.sub_request[found.sub]
    order = np.lexsort((found.sub, found.via, -found.score, found.row, request))
    order = order[first_of_runs(found.row[order], request[order])]
    return Found.of(found.sub[order], found.row[order], found.score[order], via=found.via[order])
