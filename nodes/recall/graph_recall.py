"""The graph lane: rows reached in a few steps from the best hits, over links, imports and calls.

Reads the visible hits of the other lanes. Gives `Walked`: rows by personalized PageRank that restarts at the hits (Page
et al. 1999; Haveliwala 2002), walked for the `graph_iterations` of the contract, each with the best edge that reached it.

Note: the walk sees only A(r). An edge ends at a row that passes every gate at the request's clock, including
intermediate rows, and every count behind an edge's confidence is of such rows; links of a withheld or foreign row add
nothing. An edge whose confidence is below the `graph_floor` of the contract is not walked (S2.26).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.keys import (
    constants,
    distinct_rows,
    first_of_runs,
    gathered,
    gathered_columns,
    integers,
    order_by,
    rank_within,
)
from ..columns.numbers import quantise
from ..frames import PostingIndex, posting_keys
from ..text.anchor_patterns import find_all
from ..text.index_keys import definition_keys
from ..text.references import References, cited_documents
from .recall_scope import VIA, Float, Int, RecallTables, ScopeGroup
from .recall_selection import Found, best_found

SEEDS = 10
"""Hits per request from which the walk starts."""
WALK_ON = 0.85
"""Share of a row's mass that is passed on (damping factor)."""
FRONTIER = 64
"""Rows per request from which each step continues, those with the most mass."""
EDGES = ("citation", "import", "call")
"""Kinds of edges: a link or reference to a document, an import of a file, a call of a definition."""
CONFIDENCE = {"citation": 0.9, "import": 0.8, "call": 0.8}
"""For a single target; a call's is shared by the definitions of the name."""
_CONFIDENCES = np.array([CONFIDENCE[name] for name in EDGES])
_KINDS = np.array([EDGES.index(name) if name in EDGES else -1 for name in VIA])
"""The place in EDGES of each link."""
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
        placements: the frame's placements, for lines.
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
    reached: list[_Reached] = []
    steps = integers(tables.contracts["graph_iterations"])
    for step in range(int(steps[request].max())):
        on = steps[tables.sub_request[sub]] > step
        sub, local, mass = sub[on], local[on], mass[on]
        source, target, kind, confidence = _edges(scope, sub, local, postings, placements)
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
    scope: ScopeGroup, sub: Int, local: Int, postings: PostingIndex, placements: pa.Table
) -> tuple[Int, Int, Int, Float]:
    """The edges of a frontier inside A(r): entry, target, kind and confidence, each pair once, none below the floor."""
    index, none = scope.tables.row_index, np.empty(0, dtype=np.int64)
    request = scope.tables.sub_request[sub]
    floor = scope.tables.contracts["graph_floor"].to_numpy()[request]
    found = scope.referred(postings, **_named(scope, scope.rows[local]))
    entry, target, via, key = map(np.concatenate, zip((none,) * 4, *found, strict=True))
    passes, placement = scope.admitted(request[entry], target)
    kept = np.flatnonzero(passes & (target != local[entry]))
    kept = kept[scope.in_window(sub[entry[kept]], target[kept])]
    entry, target, kind, key, placement = (column[kept] for column in (entry, target, _KINDS[via], key, placement))
    # A document that is cited or imported is represented by its first row.
    line = integers(gathered(placements["line_start"], placement).fill_null(0))
    called = kind == EDGES.index("call")
    page, key = np.where(called, len(scope.rows) + target, scope.document[target]), np.where(called, key, -1)
    order = np.lexsort((index.id_rank[scope.rows[target]], line, page, key, kind, entry))
    order = order[first_of_runs(page[order], key[order], kind[order], entry[order])]
    entry, target, kind, key = (column[order] for column in (entry, target, kind, key))
    of_name = distinct_rows(entry, key)[1]
    confidence = _CONFIDENCES[kind] / np.where(key >= 0, np.bincount(of_name)[of_name], 1)
    kept = np.flatnonzero(confidence >= floor[entry])
    kept = kept[np.lexsort((kind[kept], -confidence[kept], target[kept], entry[kept]))]
    kept = kept[first_of_runs(target[kept], entry[kept])]
    return entry[kept], target[kept], kind[kept], quantise(confidence[kept])


def _named(scope: ScopeGroup, rows: Int) -> dict[str, References]:
    """What rows cite, import and call, by edge."""
    stored = gathered_columns(scope.tables.evidence, ("links", "text", "calls"), rows)
    called = ((row, name) for row, names in enumerate(stored["calls"].to_pylist()) for name in names or ())
    return {
        "citation": cited_documents(stored["links"], stored["text"]),
        "import": _imports(stored["text"]),
        "call": [(row, key) for row, name in called for key in posting_keys("definition", definition_keys(name)[:2])],
    }


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
