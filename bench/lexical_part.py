"""Lexical recall in batches: the whole corpus, and 1 % of it in four shapes, against bm25s, tantivy and rank-bm25.

Over the whole corpus our rows and scores are compared with those of bm25s, and in every scope with those of a bm25s fitted on
the rows in scope alone: the peers' own filters leave the statistics of all rows in the scores, so they cannot agree.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from agreement import same_up_to_ties
from bench_records import Row
from bench_world import SCOPES, Scope, World, open_world
from lexical_peers import Bm25s, RankBm25, Tantivy
from options import Options
from ours import Scoped
from rounds import Contestant, against_peers, interleaved

K = 100
QUERIES = 1_000
"""Per round, for systems that are fast enough."""
LEAST = 200
"""Of ours: a batch of fewer would pay for the batch what belongs to many."""
CHECKED = 40
"""Queries whose results are compared."""
OURS = (
    "k1 1.2, b 0.75, statistics of the rows in scope; row numbers and scores, best first; "
    "gates and contracts once per scope, off the clock"
)


def lexical_rows(options: Options) -> Iterator[Row]:
    """One row of the table per scope."""
    world = open_world(options.work, options.chunks)
    queries = world.queries((options.rounds + 1) * options.batch(QUERIES))
    bm25s = Bm25s(world.tokens, K)
    tantivy = Tantivy(world, K, options.work / f"tantivy-{options.chunks}")
    rank_bm25 = RankBm25(world.tokens, K) if options.chunks <= 100_000 else None
    for scope in SCOPES.values():
        scoped = world.scoped(scope, options.batch(QUERIES), K)
        checked = check(scoped, scope, world, queries[:CHECKED], bm25s if scope.name == "whole" else None)
        contestants = [
            our_contestant(scoped, queries),
            bm25s.contestant(queries, scope, world),
            tantivy.contestant(queries, scope),
        ]
        if scope.name == "whole" and rank_bm25 is not None:
            contestants.append(rank_bm25.contestant(queries))
        timings = interleaved(
            contestants, queries=len(queries), rounds=options.rounds, seconds=options.seconds_per_round
        )
        factor, aim = (1.0, "faster than the fastest") if scope.name == "whole" else (5.0, "5x the fastest")
        yield against_peers(
            contestants, timings, factor, part="lexical", row=f"lexical/{scope.name}",
            what=f"lexical batch, {scope.what}", unit="queries/s", aim=aim, chunks=options.chunks,
            precompute_seconds=scoped.precompute_seconds, notes=f"{checked} answers compared with bm25s",
            extra={"k": K, "rows_in_scope": int(np.median(scoped.admissible))},
        )  # fmt: skip


def our_contestant(scoped: Scoped, queries: list[list[str]]) -> Contestant:
    """Our lexical lane over a scope."""
    return Contestant(
        "ours", lambda which: scoped.terms_batch([queries[at] for at in which]), scoped.lexical, OURS, least=LEAST
    )


def check(scoped: Scoped, scope: Scope, world: World, queries: list[list[str]], whole: Bm25s | None) -> int:
    """Hold our answers against bm25s over the same rows; how many were compared."""
    rows = np.flatnonzero(scope.rows(world.order))
    ours = scoped.ranked(scoped.lexical(scoped.terms_batch(queries)), len(queries), world.order)
    times = scope.times(len(queries))
    if scope.instants == 1:
        fitted = whole or Bm25s(world.tokens.of_rows(rows), K)
        return same_up_to_ties(ours, _among(rows, fitted, queries, whole is not None))
    few = range(0, len(queries), 10)
    for at in few:
        alive = rows[world.order.recorded[rows] <= int(times[at].timestamp() * 1_000_000)]
        fitted = Bm25s(world.tokens.of_rows(alive), K)
        same_up_to_ties([ours[at]], _among(alive, fitted, [queries[at]], False))
    return len(few)


def _among(
    rows: np.ndarray, fitted: Bm25s, queries: list[list[str]], whole: bool
) -> list[tuple[np.ndarray, np.ndarray]]:
    found = fitted.ranked(fitted.run(fitted.batch(queries)))
    return found if whole else [(rows[own], scores) for own, scores in found]
