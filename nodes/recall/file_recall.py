"""The file lane: files of code whose text as a whole matches, and their best chunks.

Reads the plan, the posting index and the weights of terms in rows. Gives `FileRecall`: the best chunks of the best
files, and how well each of the best files matches.

Note: a file is its admissible rows and nothing else; frequencies, lengths and the number of files are those of A(r), at
the request's clock. Tests, configuration, data and generated files count as files, or a word that occurs in all tests
would look rare; they are never best, since source code is what has to be read or changed. Rows that are not code belong
to no file and cost nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns.keys import gathered_columns, order_by, ordered_codes, rank_within
from ..columns.numbers import quantise, share_of
from ..columns.ragged import spread, starts_of
from ..frames import PostingIndex
from ..scope.source_files import FILE_COLUMNS, SOURCE_COLUMNS, is_source
from ..tables import LANE_HITS
from .bm25 import Bm25
from .group_scores import Groups, OfGroups, of_groups
from .lane_recall import entries_of
from .pair_scores import Pairs, lexical_scores
from .posting_recall import Asked, best_rows
from .recall_scope import Bool, Float, Int, RecallTables, ScopeGroup
from .recall_selection import Found, hit_table

BM25 = Bm25(k1=4.0, b=0.6)
"""A file repeats its terms far more often than a chunk does: they saturate later."""
CHUNKS = 3
"""The number of chunks of a file that the lane returns, and that count as its best passages."""
TELLING = 24
"""The number of terms of a text by which the chunks of a file are ranked."""


class FileRecall(NamedTuple):
    """The hits of the lane, as LANE_HITS; for each request's best files, one row each and their share of the maximum BM25."""

    hits: pa.Table
    request: Int
    """Contract row, ascending."""
    row: Int
    """A frame row that identifies the file; the row itself may be inadmissible."""
    share: Float


NO_FILES = FileRecall(LANE_HITS.empty(), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))


class ScopeFiles(NamedTuple):
    """The files of a scope: `groups` of its rows, `members` by group, and per group a row and its place by name."""

    groups: Groups
    members: Int
    """Positions in `scope.rows`, by group."""
    starts: Int
    """The start of each group's members, and the end of the last one's."""
    source: Bool
    """Which groups are source code; rows of one document that differ in this are two groups."""
    name: Int

    def first(self, group: Int) -> Int:
        """The position in `scope.rows` of one row of each group."""
        return self.members[self.starts[group]]


def recall_files(tables: RecallTables, postings: PostingIndex, weighed: Sequence[Asked]) -> FileRecall:
    """The best chunks of the best files per sub-query, and the `lane_k` best files of each request.

    Args:
        tables: the inputs every lane reads.
        postings: the frame's index.
        weighed: the weights of terms in the lexical lane, by which the chunks of a file are ranked.
    """
    weighed = [_strongest(asked) for asked in weighed]
    parts = []
    for scope in tables.scope_groups("file"):
        if (files := files_of(scope)) is None:
            continue
        entries = entries_of(scope, postings, ("text",))
        # A long question repeats its words; the root keeps one of them from dominating.
        rooted = replace(entries, weight=np.sqrt(entries.weight))
        parts += [_best(files, part, weighed) for part in of_groups(scope, files.groups, rooted, BM25)]
    if not parts:
        return NO_FILES
    found, *best = zip(*parts, strict=True)
    request, row, share = map(np.concatenate, best)
    order = request.argsort(kind="stable")
    return FileRecall(hit_table(tables, "file", Found.concat(found)), request[order], row[order], share[order])


def _strongest(asked: Asked) -> Asked:
    """The `TELLING` highest-weighted terms of each query text of the lane, so that long questions stay bounded."""
    tables, sub = asked.scope.tables, asked.scope.sub[asked.subs].tolist()
    texts, uses = [(int(tables.sub_request[one]), *tables.texts[one]) for one in sub], tables.uses("file")
    asking = {text for one, text in zip(sub, texts, strict=True) if uses[one]}
    kept, weight = np.zeros(len(asked.key), dtype=bool), (-quantise(asked.weight)).tolist()
    names = [asked.keys.names[key] for key in asked.key.tolist()]
    for number, text in enumerate(texts):
        if text in asking:
            own = range(len(names))[asked.own(number)]
            kept[sorted(own, key=lambda at: (weight[at], names[at]))[:TELLING]] = True
    return asked.only(kept)


def files_of(scope: ScopeGroup) -> ScopeFiles | None:
    """The files of a scope that hold code; None if there are none."""
    return scope.once("files", lambda: _files_of(scope))


def _files_of(scope: ScopeGroup) -> ScopeFiles | None:
    kind = scope.column("evidence_kind")
    code = np.asarray(pc.fill_null(pc.equal(kind, "code"), False))
    if not code.any():
        return None
    rows = {name: scope.column(name) for name in SOURCE_COLUMNS}
    code &= np.asarray(rows["path"].is_valid())
    source = is_source(rows)
    groups = Groups.numbered(scope.document * 2 + source, code)
    members = groups.of.argsort(kind="stable")[np.count_nonzero(~code) :]
    starts = starts_of(np.bincount(groups.of[members], minlength=groups.count))
    first = members[starts[:-1]]
    named = gathered_columns(scope.tables.evidence, FILE_COLUMNS, scope.rows[first])
    order = np.lexsort([source[first], *(ordered_codes(named[name]) for name in FILE_COLUMNS)])
    name = np.empty(groups.count, dtype=np.int64)
    name[order] = np.arange(groups.count)
    return ScopeFiles(groups, members, starts, source[first], name)


def _best(files: ScopeFiles, part: OfGroups, weighed: Sequence[Asked]) -> tuple[Found, Int, Int, Float]:
    """The best chunks of the first of the best source files of some sub-queries; and of all of these the request, a row and
    the share, as in `FileRecall`.
    """
    scope, asked = part.asked.scope, part.asked.subs
    lane_k = scope.tables.lane_k[scope.sub[asked]]
    gate = np.zeros(len(lane_k), dtype=np.int64)
    sub, file, score = best_rows(part.asked, files.source[None], gate, lane_k, files.name)
    share = share_of(score, part.reach[sub])
    kept = (share > 0).nonzero()[0]
    order = kept[order_by(sub[kept], -share[kept], files.name[file[kept]])]
    sub, file, share = sub[order], file[order], share[order]
    near = rank_within(sub) < -(-lane_k[sub] // CHUNKS)
    found = _chunks(files, part, asked[sub[near]], file[near], share[near], weighed)
    return found, scope.request[asked[sub]], scope.rows[files.first(file)], share


def _chunks(files: ScopeFiles, part: OfGroups, sub: Int, file: Int, score: Float, weighed: Sequence[Asked]) -> Found:
    """The `CHUNKS` best open rows of each pair of sub-query and file; a row has the score of its file."""
    if not len(sub):
        return Found.concat([])
    scope = part.asked.scope
    pair, at = spread(files.starts[file], np.diff(files.starts)[file])
    local = files.members[at]
    gates, gate = scope.gates(sub, part.open[None], np.zeros(len(sub), dtype=np.int64))
    kept = gates[gate[pair], local].nonzero()[0]
    pair, local = pair[kept], local[kept]
    request, rows = scope.request[sub[pair]], scope.rows[local]
    by_request = request.argsort(kind="stable")
    bm25_of = np.empty(len(rows))
    bm25_of[by_request] = lexical_scores(Pairs(request[by_request], rows[by_request]), weighed)
    order = order_by(pair, -bm25_of, scope.place[local])
    best = order[rank_within(pair[order]) < CHUNKS]
    return Found.of(scope.sub[sub[pair[best]]], rows[best], score[pair[best]])
