"""The graph lane: rows reached in a few steps from the best hits, over links, imports, calls and common changes.

Reads the visible hits of the other lanes. Gives `Walked`: rows by personalized PageRank that restarts at the hits (Page
et al. 1999; Haveliwala 2002), walked for the `graph_iterations` of the contract, each with the best edge that reached it.

Note: the walk sees only A(r). An edge ends at a row that passes every gate at the request's clock, including
intermediate rows, and every count behind an edge's confidence is of such rows; links and common changes of a withheld
or foreign row add nothing. An edge whose confidence is below the `graph_floor` of the contract is not walked (S2.26).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.keys import constants, distinct_rows, first_of_runs, flat, gathered, integers, order_by, rank_within
from ..columns.numbers import quantise
from ..columns.ragged import slabs, spread
from ..frames import PostingIndex, posting_keys
from ..text.anchor_patterns import find_all
from ..text.index_keys import definition_keys
from ..text.references import References, cited_documents
from .recall_scope import PAIRS, Float, Int, RecallTables, ScopeGroup
from .recall_selection import Found, best_found

SEEDS = 10
"""Hits per request from which the walk starts."""
WALK_ON = 0.85
"""Share of a row's mass that is passed on (damping factor)."""
FRONTIER = 64
"""Rows per request from which each step continues, those with the most mass."""
EDGES = ("citation", "import", "call", "cochange")
"""Kinds of edges: a link or reference to a document, an import of a file, a call of a definition, a change in one commit."""
CONFIDENCE = {"citation": 0.9, "import": 0.8, "call": 0.8, "cochange": 0.9}
"""For a single target. A call's is shared by the definitions of the name, a change's by the other rows of its
commit."""
_COMMIT = "^[0-9a-f]{40,64}$"
_IMPORTS = r"(?m)^\s*(?:from\s+|import\s+)([.\w]+)(?:\s+import\b|\s*$|\s*,|\s+as\b)"
_MODULES = r"""(?:from|import|require\()\s*["']([./][^"'\n]+)["']"""
_ENDINGS = {False: (".py", "/__init__.py"), True: ("", ".ts", ".tsx", ".js", ".jsx", "/index.ts", "/index.js")}


_Reached = tuple[Int, Int, Float, Int, Float, Int]
"""Sub-query, row, score, kind of edge, its confidence, and the row that it starts from."""


@dataclass(frozen=True)
class Walked:
    """The rows reached, best first, each with its edge: kind, confidence, and the evidence row it starts from."""

    found: Found
    edge: Int
    confidence: Float
    source: Int

    def labels(self, evidence: pa.Table) -> pa.Array:
        """The edges as they appear in HITS: `citation 0.90 <evidence id>`."""
        parts = (
            constants(EDGES).take(pa.array(self.edge)),
            pa.array(np.char.mod("%.2f", self.confidence).tolist(), pa.string()),
        )
        ids = gathered(evidence["evidence_id"], self.source).cast(pa.string())
        return pc.binary_join_element_wise(parts[0].cast(pa.string()), parts[1], ids, " ")


@dataclass(frozen=True)
class _Edges:
    """Edges from entries of a frontier: entry, local row, kind, and the group that shares the confidence (-1: none)."""

    entry: Int
    local: Int
    kind: Int
    group: Int


def recall_graph(
    tables: RecallTables, seeds: Found, seed_rank: Int, known: Found, postings: PostingIndex, placements: pa.Table
) -> Walked:
    """Rows that the walk reaches and no other lane found, the `lane_k` best per sub-query.

    Args:
        tables: the inputs every lane reads.
        seeds: the best visible hits per request; `score` is their fusion score.
        seed_rank: rank of each seed inside its request, from 0.
        known: every hit of the other lanes; their rows are not returned again.
        postings: the frame's index.
        placements: the frame's placements, for commits and lines.
    """
    parts = []
    near = seed_rank < SEEDS
    for scope in tables.scope_groups("graph"):
        at = np.flatnonzero(np.isin(seeds.sub, scope.sub) & near)
        if len(at):
            parts.append(_walked(scope, Found.of(seeds.sub[at], seeds.row[at], seeds.score[at]), postings, placements))
    sub, row, score, edge, confidence, source = _joined(parts)
    request, width = tables.sub_request, len(tables.row_index.id_rank) + 1
    taken = np.unique(request[np.r_[known.sub, seeds.sub]] * width + np.r_[known.row, seeds.row])
    kept = np.flatnonzero(~np.isin(request[sub] * width + row, taken))
    best = best_found(tables, Found.of(sub[kept], row[kept], score[kept], via=kept))
    found = Found.of(best.sub, best.row, best.score)
    return Walked(found, edge[best.via], confidence[best.via], source[best.via])


def _walked(scope: ScopeGroup, seeds: Found, postings: PostingIndex, placements: pa.Table) -> _Reached:
    """Sub-query, frame row, score and best first edge of every row that the walk from the seeds of a scope reaches."""
    tables, width = scope.tables, len(scope.rows) + 1
    request = tables.sub_request[seeds.sub]
    total = np.zeros(tables.contracts.num_rows)
    np.add.at(total, request, seeds.score)
    sub, local, mass = seeds.sub, scope.local(seeds.row), quantise(seeds.score / total[request])
    commits = _Commits.of(scope, placements)
    reached: list[_Reached] = []
    steps = tables.contract_numbers("graph_iterations")
    for step in range(int(steps[request].max())):
        on = steps[tables.sub_request[sub]] > step
        sub, local, mass = sub[on], local[on], mass[on]
        source, target, kind, confidence = _edges(scope, sub, local, postings, placements, commits)
        if not len(source):
            break
        out = np.zeros(len(sub))
        np.add.at(out, source, confidence)
        given = quantise(WALK_ON * mass[source] * confidence / out[source])
        key = tables.sub_request[sub[source]] * width + target
        order = np.lexsort((kind, tables.row_index.id_rank[scope.rows[local[source]]], -given, key))
        first = first_of_runs(key[order])
        summed, best = np.add.reduceat(given[order], first), order[first]
        sub, at, mass = sub[source[best]], target[best], summed
        reached.append((sub, at, mass, kind[best], confidence[best], local[source[best]]))
        by = order_by(tables.sub_request[sub], -mass, tables.row_index.id_rank[scope.rows[at]])
        by = by[rank_within(tables.sub_request[sub][by]) < FRONTIER]
        sub, local, mass = sub[by], at[by], mass[by]
    return _once(scope, reached, width)


def _joined(parts: list[_Reached]) -> _Reached:
    place, score = np.empty(0, dtype=np.int64), np.empty(0)
    nothing = (place, place, score, place, score, place)
    sub, row, score, edge, confidence, source = (np.concatenate(each) for each in zip(nothing, *parts, strict=True))
    return sub, row, score, edge, confidence, source


def _once(scope: ScopeGroup, reached: list[_Reached], width: int) -> _Reached:
    """Each row of a request once: the mass of all steps, and the edge of the first step that reached it."""
    sub, local, mass, kind, confidence, source = _joined(reached)
    key = scope.tables.sub_request[sub] * width + local
    order = np.argsort(key, kind="stable")
    first = first_of_runs(key[order])
    best = order[first]
    score = np.add.reduceat(mass[order], first) if len(first) else mass
    return sub[best], scope.rows[local[best]], score, kind[best], confidence[best], scope.rows[source[best]]


def _edges(
    scope: ScopeGroup, sub: Int, local: Int, postings: PostingIndex, placements: pa.Table, commits: _Commits
) -> tuple[Int, Int, Int, Float]:
    """The edges of a frontier inside A(r): entry, target, kind and confidence, each pair once, none below the floor."""
    tables = scope.tables
    request = tables.sub_request[sub]
    floor = tables.contracts["graph_floor"].to_numpy()[request]
    found = [*_named(scope, scope.rows[local], postings), _changed_together(scope, request, local, commits, floor)]
    entry, target, kind, group = (
        np.concatenate([getattr(one, name) for one in found]) for name in ("entry", "local", "kind", "group")
    )
    passes, placement = scope.admitted(request[entry], target)
    kept = np.flatnonzero(passes & (target != local[entry]))
    kept = kept[scope.in_window(sub[entry[kept]], target[kept])]
    entry, target, kind, group, placement = (column[kept] for column in (entry, target, kind, group, placement))
    if not len(entry):
        return entry, target, kind, np.empty(0)
    # A document that is cited or imported is represented by its first row.
    line = integers(gathered(placements["line_start"], placement).fill_null(0))
    named = kind <= EDGES.index("import")
    page = np.where(named, scope.document[target], len(scope.rows) + target)
    order = np.lexsort((tables.row_index.id_rank[scope.rows[target]], line, page, group, kind, entry))
    order = order[first_of_runs(page[order], group[order], kind[order], entry[order])]
    entry, target, kind, group = (column[order] for column in (entry, target, kind, group))
    share = np.unique(np.stack([entry, kind, group]), axis=1, return_inverse=True, return_counts=True)
    confidence = np.array([CONFIDENCE[name] for name in EDGES])[kind]
    confidence = np.where(group >= 0, confidence / share[2][share[1].reshape(-1)], confidence)
    kept = np.flatnonzero(confidence >= floor[entry])
    kept = kept[np.lexsort((kind[kept], -confidence[kept], target[kept], entry[kept]))]
    kept = kept[first_of_runs(target[kept], entry[kept])]
    return entry[kept], target[kept], kind[kept], quantise(confidence[kept])


def _named(scope: ScopeGroup, rows: Int, postings: PostingIndex) -> Iterator[_Edges]:
    """The citations, imports and calls of rows; calls of one name share their confidence."""
    stored = {name: gathered(scope.tables.evidence[name], rows) for name in ("links", "text", "calls")}
    called = ((row, name) for row, names in enumerate(stored["calls"].to_pylist()) for name in names or ())
    named = {
        "citation": cited_documents(stored["links"], stored["text"]),
        "import": _imports(stored["text"]),
        "call": [(row, key) for row, name in called for key in posting_keys("definition", definition_keys(name)[:2])],
    }
    for kind, references in named.items():
        for entry, local, key in scope.referred(postings, references):
            group = key if kind == "call" else np.full(len(key), -1)
            yield _Edges(entry, local, np.full(len(key), EDGES.index(kind)), group)


def _imports(texts: pa.Array) -> References:
    """The files that texts import: dotted modules of Python, paths of JavaScript, by the keys of paths."""
    large, found = texts.cast(pa.large_string()), list[tuple[int, str]]()
    for pattern, quoted in ((_IMPORTS, False), (_MODULES, True)):
        rows, names = find_all(large, pattern)
        modules = zip(rows.tolist(), names.to_pylist(), strict=True)
        found += [(row, key) for row, module in modules for key in _files(module, quoted)]
    return found


def _files(module: str, quoted: bool) -> list[str]:
    parts = [part for part in (module.split("/") if quoted else module.split(".")) if part not in ("", ".", "..")]
    if not parts:
        return []
    path = "/".join(parts).lower()
    return posting_keys("path", [path + ending for ending in _ENDINGS[quoted]])


@dataclass(frozen=True)
class _Commits:
    """The commits of the rows of a scope, one number for all rows of a source that came with the same commit."""

    first: Int
    """Where the placements of each local row start in `of_placement`."""
    of_placement: Int
    """The commit of every placement of the scope, row by row; -1 for none."""
    commit: Int
    """The commits of (commit, row) pairs, ascending, each pair once; without rows withheld by a visibility gate."""
    row: Int
    """The local rows of these pairs."""

    @classmethod
    def of(cls, scope: ScopeGroup, placements: pa.Table) -> _Commits:
        index = scope.tables.row_index
        start = index.placement_starts[scope.rows]
        counts = index.placement_starts[scope.rows + 1] - start
        row, placement = spread(start, counts)
        version = flat(gathered(placements["version"], placement)).dictionary_encode()
        named = np.r_[np.asarray(pc.match_substring_regex(version.dictionary, _COMMIT), dtype=bool), False]
        code = integers(version.indices.fill_null(-1))
        source = integers(scope.column("source_id").dictionary_encode().indices)
        number = np.where(named[code], code * (int(source.max(initial=0)) + 1) + source[row], -1)
        shown = np.flatnonzero((number >= 0) & ~scope.withheld[row])
        by = shown[np.lexsort((row[shown], number[shown]))]
        by = by[first_of_runs(row[by], number[by])]
        return cls(counts.cumsum() - counts, number, number[by], row[by])

    def at(self, scope: ScopeGroup, local: Int, placement: Int) -> Int:
        """The commit of each local row, from one of its placements."""
        start = scope.tables.row_index.placement_starts[scope.rows[local]]
        known = placement >= 0
        place = np.where(known, self.first[local] + placement - start, -1)
        return np.where(known, np.r_[self.of_placement, -1][place], -1)


def _changed_together(scope: ScopeGroup, request: Int, local: Int, commits: _Commits, floor: Float) -> _Edges:
    """Rows of other documents of the same source that came with the same commit as an entry's, as of the request's clock;
    none of a commit of so many rows that their edges are below the floor.
    """
    clock, of_request = scope.tables.clock
    index, instant = scope.tables.row_index, of_request[request]
    commit = commits.at(scope, local, clock.judge(index, instant, scope.rows[local])[1])
    own = np.flatnonzero(commit >= 0)
    most = (CONFIDENCE["cochange"] / floor).astype(np.int64) + 1
    asked, of = distinct_rows(instant[own], commit[own], most[own])
    asked = own[asked]
    low = np.searchsorted(commits.commit, commit[asked])
    counts = np.searchsorted(commits.commit, commit[asked], side="right") - low
    numbers, targets = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for begin, end in slabs(counts, PAIRS):
        number, at = spread(low[begin:end], counts[begin:end])
        number, row = number + begin, commits.row[at]
        passes, placement = clock.judge(index, instant[asked[number]], scope.rows[row])
        passes &= commits.at(scope, row, placement) == commit[asked[number]]
        few = np.bincount(number[passes], minlength=len(asked)) <= most[asked]
        passes &= few[number]
        numbers.append(number[passes])
        targets.append(row[passes])
    number, row = np.concatenate(numbers), np.concatenate(targets)
    low = np.searchsorted(number, of)
    entry, at = spread(low, np.searchsorted(number, of, side="right") - low)
    entry, target = own[entry], row[at]
    elsewhere = np.flatnonzero(scope.document[target] != scope.document[local[entry]])
    entry, target = entry[elsewhere], target[elsewhere]
    return _Edges(entry, target, np.full(len(entry), EDGES.index("cochange")), np.zeros(len(entry), dtype=np.int64))
