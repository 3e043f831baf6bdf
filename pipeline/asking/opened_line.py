"""The line of a retriever: the lanes that can run over its corpus, what its runs record, and the current grants.

Reads: an open corpus, policies, grants and models. Gives: `opened_line`, and `GrantedLine`, the line under the grants.

Note: grants are reloaded when their file changes. The line and the request resolver change with them; nothing else
changes while a retriever is open.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from ...nodes.recall.bm25 import Bm25
from ..config.grants import GrantsFile, load_grants
from ..config.policies.tables import Policies
from ..corpus import Corpus
from ..encoders.cross_encoder import PairReader, PairScores
from ..line.driver import Line, ordered_lanes
from ..line.lanes import lanes_off
from ..line.provenance import provenance, with_part
from ..line.query_vectors import QueryVectors
from ..plugins import Plugins
from ..requests.resolver import RequestResolver
from ..storage.places import Place

__all__ = ["GrantedLine", "opened_line"]


def opened_line(
    corpus: Corpus,
    policies: Policies,
    grants: GrantsFile,
    *,
    lanes: Collection[str],
    encoder: Any,
    bm25: Bm25,
    cross_encoder: PairReader | None,
    plugins: Plugins,
) -> tuple[Line, dict[str, str]]:
    """The line, and its settings as a manifest records them: lanes, BM25, and plugins if any.

    If a model does not answer, its lane is off and the provenance omits it.

    Raises:
        InputError: a lane is unknown.
        PolicyError: a weight names an unknown score term.
    """
    policies.expect_weighted_terms(plugins.term_names)
    settings = {"lanes": ",".join(ordered_lanes(lanes)), "bm25": f"k1={bm25.k1} b={bm25.b}"}
    if plugins:
        settings["plugins"] = ",".join(plugins.names)
    off = lanes_off(lanes, corpus.encoder_profile, encoder)
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


@dataclass
class GrantedLine:
    """A line and the resolver of its requests, both under the same grants."""

    source: GrantsFile | Place
    """The grants, or the file that they are read from."""
    line: Line
    resolver: RequestResolver

    def renewed(self) -> bool:
        """Reload the grants if their file changed; returns whether the line and the resolver were replaced.

        Raises:
            PolicyError: the grants file is missing or invalid.
        """
        if (grants := load_grants(self.source)).digest == self.resolver.grants.digest:
            return False
        self.resolver = replace(self.resolver, grants=grants)
        provenance = with_part(self.line.provenance, "grants", grants.digest)
        self.line = replace(self.line, grants=grants.table, provenance=provenance)
        return True
