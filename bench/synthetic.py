"""Synthetic corpora and requests of any size, the same for the same seed.

Words follow a Zipf law over a fixed vocabulary, identifiers are compounds of them; every project has the same vocabulary,
so that a scope that leaks shows at once.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

START = datetime(2026, 1, 1, tzinfo=UTC)
PURPOSES = ("fix-test", "explain-code", "review-risk", "answer-question")
KINDS = (
    ("workspace", "code"),
    ("project-doc", "doc"),
    ("artifact", "test-log"),
    ("decision-record", "decision-record"),
)

ROWS_AT_ONCE = 10_000
"""Rows whose words are looked up at once: a million of them would be gigabytes of fixed-width strings."""


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
    texts = pa.concat_arrays(
        [_texts(rng, vocab, min(ROWS_AT_ONCE, chunks - at), words) for at in range(0, chunks, ROWS_AT_ONCE)]
    )
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


def owned_rows(chunks: int, *, seed: int = 1) -> pa.Table:
    """Import rows under 109 owners, 99 of 1 % of the rows each and ten of 0.1 %, and 100 sources that cross all owners.

    So 1 % of the rows is one owner (`p042`), the ten small ones together (`s00` to `s09`), or one source (`slice:042`).
    """
    rows = corpus_rows(chunks, 100, seed=seed)
    place = np.arange(chunks) % 1_000
    owner = [f"p{p // 10:03d}" if p < 990 else f"s{p - 990:02d}" for p in range(1_000)]
    slice_ = (np.arange(chunks) + np.arange(chunks) // 1_000) % 100
    columns = {
        "owner_project": pa.array(owner).take(pa.array(place)),
        "source_id": pa.array([f"slice:{s:03d}" for s in range(100)]).take(pa.array(slice_)),
    }
    for name, values in columns.items():
        rows = rows.set_column(rows.schema.get_field_index(name), name, values)
    return rows


def questions(count: int, *, words: int = 6, seed: int = 3) -> list[str]:
    """Questions of different words, log-uniform in rank from the 20th on: frequent and rare ones, no stopwords."""
    rng = np.random.default_rng(seed)
    vocab = vocabulary()
    picks = (20 * (len(vocab) / 20) ** rng.random((count, 4 * words))).astype(np.int64)
    return [" ".join(list(dict.fromkeys(row))[:words]) for row in vocab[picks].tolist()]


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
