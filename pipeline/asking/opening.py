"""Opens a retriever under the settings, with shared models and the engine of its runs.

Reads: settings. Gives: `open_retriever`, `load_models`, `engine_of`. Every interface opens its retrievers here, so
equal requests get byte-identical answers everywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..config.opening import runs_of
from ..config.settings import Settings

if TYPE_CHECKING:  # loaded by the commands that need them
    from ..corpus import Corpus
    from ..encoders.cross_encoder import PairReader
    from ..encoders.encoder import AnyEncoder
    from .retriever import Retriever


@dataclass(frozen=True)
class Models:
    """Shared by the retrievers of several principals: an open corpus and the models for its questions."""

    corpus: Corpus
    encoder: AnyEncoder | None
    cross_encoder: PairReader | None


def load_models(settings: Settings) -> Models:
    """The corpus at its current generation, and its models.

    Raises:
        StoreError: there is no corpus.
        ModelError: a model does not load.
    """
    from ..config.opening import corpus_of
    from ..encoders.encoder import encoder_of

    corpus = corpus_of(settings)
    profile = corpus.encoder_profile if "semantic" in settings["lanes"] else None
    return Models(corpus, encoder_of(profile, settings.encoder_choice), settings.loaded_cross_encoder())


@contextmanager
def open_retriever(
    settings: Settings,
    *,
    preset: Path | None = None,
    work_trees: Collection[Path] = (),
    models: Models | None = None,
) -> Iterator[Retriever]:
    """A retriever under the settings, closed on exit; its snapshots are not compacted.

    `preset` bounds every request. `work_trees`,
    whose `SHO.json` may set the mode of a request, are passed only by an interface whose user works in them. `models`
    shared by several retrievers are not loaded again.

    Raises:
        StoreError: there is no corpus, or one of another schema version.
    """
    from ...nodes.recall.bm25 import Bm25
    from ..config.policies.tables import load_policies
    from .retriever import Retriever
    from .telemetry import Telemetry

    models = models or load_models(settings)
    telemetry = settings["telemetry"]
    retriever = Retriever.open(
        models.corpus,
        principal=settings.principal,
        runs=runs_of(settings, create=True) if settings["record"] else None,
        grants=settings.grants_path,
        policies=load_policies(settings["policies"], settings["weights"]),
        lanes=settings["lanes"],
        encoder=models.encoder,
        bm25=Bm25(k1=settings["bm25_k1"], b=settings["bm25_b"]),
        shard_requests=settings["shard_requests"],
        preset=preset,
        work_trees=work_trees,
        tokenizers=settings["tokenizers"],
        cross_encoder=models.cross_encoder,
        telemetry=None if telemetry == "off" else Telemetry.of(content=telemetry == "content"),
        plugins=settings["plugins"],
    )
    try:
        yield retriever
    finally:
        retriever.close(compacted=False)


@contextmanager
def engine_of(settings: Settings) -> Iterator[Any]:
    """The engine that the settings name, for `Retriever.run`, ready before a run begins.

    Raises:
        EngineError: the engine is Ray, which is not installed or does not answer.
    """
    if settings["engine"] == "ray":
        from ..engines.ray_engine import RayEngine

        with RayEngine(settings["ray_address"]).ready() as engine:
            yield engine
    else:
        from ..engines.process_engine import local_engine

        yield local_engine(settings["workers"])
