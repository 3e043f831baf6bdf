"""Dense recall in batches over given vectors: the whole corpus and 1 % of it, against faiss and LanceDB.

All systems are exact, so all must return the same rows; that is checked before anything is timed.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import synthetic
from agreement import same_up_to_ties
from bench_records import Row
from bench_world import SCOPES, Scope, World, open_world
from dense_peers import Faiss, LanceVectors, where_of
from options import Options
from ours import Scoped
from rounds import Contestant, against_peers, interleaved

K = 100
QUERIES = 1_000
LEAST = 1_000
"""Of ours and of faiss: a batch of fewer would pay for the batch what belongs to many; faiss takes ten times as long per
query in batches of 100."""
CHECKED = 20
OURS = "int16 vectors, exact; row numbers and scores, best first; gates and contracts once per scope, off the clock"


def dense_rows(options: Options) -> Iterator[Row]:
    """One row of the table per scope."""
    world = open_world(options.work, options.chunks, vectors=True)
    assert world.encoder is not None
    queries = world.encoder.encode(synthetic.questions((options.rounds + 1) * options.batch(QUERIES)))
    faiss = Faiss(world, K)
    lance = LanceVectors(world, K, options.work / f"lance-{options.chunks}")
    for name in ("whole", "one-owner", "scattered"):
        scope = SCOPES[name]
        scoped = world.scoped(scope, options.batch(QUERIES), K)
        check(scoped, scope, world, queries[:CHECKED], faiss, lance)
        contestants = contestants_of(scoped, scope, world, queries, faiss, lance)
        timings = interleaved(
            contestants, queries=len(queries), rounds=options.rounds, seconds=options.seconds_per_round
        )
        yield against_peers(
            contestants, timings, 1.0, part="dense", row=f"dense/{name}",
            what=f"dense batch, vectors given, {scope.what}", unit="queries/s", aim="faster than each, same results",
            chunks=options.chunks, precompute_seconds=scoped.precompute_seconds,
            notes=f"{CHECKED} answers equal those of both peers", extra={"k": K, "dimensions": queries.shape[1]},
        )  # fmt: skip


def contestants_of(
    scoped: Scoped, scope: Scope, world: World, queries: np.ndarray, faiss: Faiss, lance: LanceVectors
) -> list[Contestant]:
    """All systems over one scope."""
    floats = queries.astype(np.float32) / 2**15
    selected, where = faiss.selector(scope, world), where_of(scope)
    return [
        Contestant("ours", lambda which: scoped.vectors_batch(queries[which.start : which.stop]), scoped.semantic, OURS, least=LEAST),
        Contestant(
            faiss.name,
            lambda which: floats[which.start : which.stop],
            lambda batch: faiss.run(batch, selected),
            faiss.settings,
            least=LEAST,
        ),
        Contestant(
            lance.name, lambda which: floats[which.start : which.stop], lambda batch: lance.run(batch, where),
            lance.settings, most=100,
        ),
    ]  # fmt: skip


def check(scoped: Scoped, scope: Scope, world: World, queries: np.ndarray, faiss: Faiss, lance: LanceVectors) -> None:
    """Our rows are those of faiss and of LanceDB, as far as the cosine is positive: a row below it is no hit of ours."""
    floats = queries.astype(np.float32) / 2**15
    ours = scoped.ranked(scoped.semantic(scoped.vectors_batch(queries)), len(queries), world.order)
    peers = [faiss.ranked(faiss.run(floats, faiss.selector(scope, world)))]
    peers.append(lance.ranked(lance.run(floats, where_of(scope)), len(queries)))
    for found in peers:
        same_up_to_ties(ours, [(rows[scores > 0], scores[scores > 0]) for rows, scores in found])
