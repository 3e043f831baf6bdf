"""Our BM25 against other people's, refitted on the rows a request may see: equal up to rounding and ties."""

from __future__ import annotations

import numpy as np
import pytest
from recall_world import day, frame, line
from scoped_retrieval.nodes.recall.bm25 import Bm25

WORDS = [f"w{chr(97 + n // 26)}{chr(97 + n % 26)}x" for n in range(60)]
"""Words that no stemmer changes."""


def _world(seed: int) -> tuple[dict, list[str], list[int]]:
    """60 rows of three projects, some not yet recorded; a question; the admissible rows of project shop on day 20."""
    random = np.random.default_rng(seed)
    rows = []
    for number in range(60):
        words = random.choice(WORDS[: 30 + number % 3 * 15], size=random.integers(3, 25))
        rows.append(
            {
                "name": str(number),
                "text": " ".join(words),
                "project": ("shop", "billing", "shop")[number % 3],
                "recorded_time": day(1 + number % 27),
            }
        )
    question = [*random.choice(WORDS, size=6), WORDS[0], WORDS[0]]
    world = frame(rows)
    own = [at for at, row in enumerate(world["rows"]) if row["project"] == "shop" and row["recorded_time"] <= day(20)]
    return world, question, own


def _ours(world: dict, question: list[str], bm25: Bm25) -> dict[int, float]:
    request = {"question": " ".join(question), "as_of": day(20), "lane_k": 1000}
    hits = line(world, [request], "hits", bm25=bm25)["hits"].to_pylist()
    return {hit["row"]: hit["score"] for hit in hits if not hit["withheld"]}


@pytest.mark.parametrize("seed", range(5))
def test_lucene_equals_bm25s_on_the_admissible_rows(seed: int) -> None:
    bm25s = pytest.importorskip("bm25s", reason="needs the extra eval")
    world, question, own = _world(seed)
    documents = [world["rows"][at]["text"].split() for at in own]
    model = bm25s.BM25(method="lucene", k1=1.2, b=0.75, dtype="float64")
    model.index(documents, show_progress=False)
    known = [word for word in question if any(word in words for words in documents)]
    expected = model.get_scores(known)
    ours = _ours(world, question, Bm25())
    for at, score in zip(own, expected, strict=True):
        assert ours.get(at, 0.0) == pytest.approx(score, abs=1e-7)
