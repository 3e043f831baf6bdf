"""The line of a retriever: the lanes that can run over its corpus, and the provenance that its runs record.

Reads: an open corpus, policies, grants and models. Gives: `opened_line`, from `LineOptions`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from ...nodes.recall.bm25 import Bm25
from ..config.grants import GrantsFile
from ..config.policies.tables import Policies
from ..corpus import Corpus
from ..encoders.cross_encoder import PairReader, PairScores
from ..line.driver import Line, ordered_lanes
from ..line.lanes import lanes_off
from ..line.provenance import provenance
from ..line.query_vectors import QueryVectors
from ..plugins import NO_PLUGINS, Plugins

__all__ = ["LineOptions", "opened_line"]


@dataclass(frozen=True)
class LineOptions:
    """The parts of a line that depend on neither corpus nor principal: lanes, models, BM25 and plugins."""

    lanes: Collection[str]
    encoder: Any
    bm25: Bm25
    cross_encoder: PairReader | None = None
    plugins: Plugins = NO_PLUGINS


def opened_line(
    corpus: Corpus, policies: Policies, grants: GrantsFile, options: LineOptions
) -> tuple[Line, dict[str, str]]:
    """The line, and its settings as a manifest records them: lanes, BM25, and plugins if any.

    If a model does not answer, its lane is off and the provenance omits it.

    Raises:
        InputError: a lane is unknown.
        PolicyError: a weight names an unknown score term.
    """
    lanes, encoder, bm25, plugins = options.lanes, options.encoder, options.bm25, options.plugins
    policies.expect_weighted_terms(plugins.term_names)
    settings = {"lanes": ",".join(ordered_lanes(lanes)), "bm25": f"k1={bm25.k1} b={bm25.b}"}
    if plugins:
        settings["plugins"] = ",".join(plugins.names)
    off, cross_encoder = lanes_off(lanes, corpus.encoder_profile, encoder), options.cross_encoder
    line = Line(
        corpus=corpus,
        policies=policies.inputs(),
        grants=grants.table,
        provenance=provenance(
            generation=corpus.generation,
            policies=policies.digest,
            grants=grants.digest,
            encoder=corpus.encoder_profile if "semantic" in lanes and "semantic" not in off else None,
            settings=settings,
            cross_encoder=cross_encoder.profile if cross_encoder is not None else None,
            plugins=plugins.digest,
        ),
        lanes=ordered_lanes(lanes),
        bm25=bm25,
        vectors=QueryVectors(encoder),
        lanes_off=off,
        pairs=PairScores(cross_encoder),
        plugins=plugins,
    )
    return line, settings
