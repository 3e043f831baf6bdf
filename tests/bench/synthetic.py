"""Synthetic corpora and requests of any size, the same for the same seed.

Words follow a Zipf law over a fixed vocabulary, identifiers are compounds of them; every project has the same vocabulary,
so that a scope that leaks shows at once.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

BLOCK = 1 << 15
"""Texts drawn at once: the words of a million would take gigabytes."""
START = datetime(2026, 1, 1, tzinfo=UTC)
PURPOSES = ("fix-test", "explain-code", "review-risk", "answer-question")
KINDS = (
    ("workspace", "code"),
    ("project-doc", "doc"),
    ("artifact", "test-log"),
    ("decision-record", "decision-record"),
)


def vocabulary(size: int = 20_000) -> np.ndarray:
    """Pronounceable distinct words."""
    syllables = np.array([c + v for c in "bcdfghjklmnprstvz" for v in "aeiou"])
    rng = np.random.default_rng(7)
    words = {"".join(rng.choice(syllables, size=n)) for n in rng.integers(2, 5, size=size * 2)}
    return np.array(sorted(words)[:size])


def corpus_rows(chunks: int, projects: int, *, words: int = 80, seed: int = 1) -> pa.Table:
    """Import rows: `chunks` rows spread evenly over `projects`, recorded over the first 300 days."""
    rng = np.random.default_rng(seed)
    vocab = vocabulary()
    texts = pa.concat_arrays([_texts(rng, vocab, min(BLOCK, chunks - at), words) for at in range(0, chunks, BLOCK)])
    names = rng.integers(0, len(vocab), size=(chunks, 2))
    symbols = np.char.add(np.char.add(vocab[names[:, 0]], "_"), vocab[names[:, 1]]).tolist()
    kind = rng.integers(0, len(KINDS), size=chunks)
    project = np.arange(chunks) % projects
    minutes = rng.integers(0, 300 * 24 * 60, size=chunks)
    recorded = pa.array(
        np.datetime64(START.replace(tzinfo=None), "us") + minutes.astype("timedelta64[m]").astype("timedelta64[us]")
    ).cast(pa.timestamp("us", tz="UTC"))
    is_code = kind == 0
    return pa.table(
        {
            "source_id": pa.array([f"workspace:p{p:03d}" for p in project]),
            "owner_project": pa.array([f"p{p:03d}" for p in project]),
            "origin_class": pa.array([KINDS[k][0] for k in kind]),
            "evidence_kind": pa.array([KINDS[k][1] for k in kind]),
            "path": pa.array([f"src/{symbols[i].split('_')[0]}/{symbols[i]}_{i // 8}.py" for i in range(chunks)]),
            "section": pa.array(symbols),
            "text": pc.binary_join_element_wise(
                pa.array([f"def {s}(value):\n    " if c else "" for s, c in zip(symbols, is_code, strict=True)]).cast(
                    pa.large_string()
                ),
                texts,
                pa.scalar("", pa.large_string()),
            ),
            "symbols": pa.array([[s] if c else [] for s, c in zip(symbols, is_code, strict=True)]),
            "line_start": pa.array((np.arange(chunks) % 8 * 10 + 1).astype(np.int32)),
            "line_end": pa.array((np.arange(chunks) % 8 * 10 + 9).astype(np.int32)),
            "version": pa.array(["v1"] * chunks),
            "recorded_time": recorded,
            "event_time": recorded,
            "lifecycle": pa.array(["verified"] * chunks),
        }
    )


def _texts(rng: np.random.Generator, vocab: np.ndarray, chunks: int, words: int) -> pa.LargeStringArray:
    """The texts of a block: the draws of neighbouring blocks are those of one."""
    ranks = np.minimum(rng.zipf(1.25, size=(chunks, words)) - 1, len(vocab) - 1)
    return pa.array([" ".join(row) + "\n" for row in vocab[ranks]], pa.large_string())


def requests(rows: pa.Table, count: int, *, instants: int = 1_000, seed: int = 2) -> list[dict[str, object]]:
    """Distinct requests over all projects and purposes, at `instants` different points in time."""
    rng = np.random.default_rng(seed)
    vocab = vocabulary()
    projects = sorted(set(rows["owner_project"].to_pylist()))
    symbols = rows["section"].to_pylist()
    times = [START + timedelta(days=100) + timedelta(minutes=int(m)) for m in np.linspace(0, 260 * 24 * 60, instants)]
    picks = np.minimum(rng.zipf(1.25, size=(count, 6)) + 20, len(vocab) - 1)
    return [
        {
            "request_id": f"r{i:06d}",
            "question": f"why does {symbols[int(rng.integers(len(symbols)))]} fail with {' '.join(vocab[picks[i]])}",
            "project": projects[i % len(projects)],
            "purpose": PURPOSES[(i // len(projects)) % len(PURPOSES)],
            "as_of": times[int(rng.integers(instants))].isoformat(),
        }
        for i in range(count)
    ]
