"""Vectors that are too long for exact products, or no int16: the messages about them at an import, and for a question."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest
from scoped_retrieval.nodes.errors import ModelError
from scoped_retrieval.pipeline.encoders.unit_vectors import TOO_LONG, encoded
from scoped_retrieval.pipeline.runs import Runs
from small_corpus import Story, row
from stand_in_encoder import WordsByTheirStart

LONGEST = (-32768, 32767, 255, -22, 5)
"""Squares that add up to one less than is too long."""


class Given:
    """An encoder that gives one vector of every text."""

    profile = "given/1"

    def __init__(self, *vector: int, kind: Any = np.int16) -> None:
        self._vector = np.array([vector], dtype=kind)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        return np.repeat(self._vector, len(texts), axis=0)


class TooLong(WordsByTheirStart):
    """Gives a vector that is too long for a text with `word`."""

    def __init__(self, word: str) -> None:
        self.word = word

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        found = super().encode(texts)
        found[[self.word in text for text in texts], :2] = -(2**15)
        return found


def test_the_bound_is_the_square_of_the_longest_vector_that_is_let_through() -> None:
    assert sum(number**2 for number in LONGEST) == TOO_LONG - 1
    assert encoded(Given(*LONGEST), ["a"]).tolist() == [list(LONGEST)]
    said = (
        rf"^Expected a squared length below {TOO_LONG}, got {TOO_LONG} - at encoder given/1\n\nHint: divide a vector by"
    )
    with pytest.raises(ModelError, match=said):
        encoded(Given(-32768, -32768), ["a"])


def test_a_question_with_a_vector_that_is_too_long_costs_the_others_nothing(tmp_path: Path) -> None:
    story = Story(tmp_path, row("doc", "docs/roles.md", "the default role is guest\n"), encoder=WordsByTheirStart())
    requests = [
        {"request_id": f"r{n}", "project": "shop", "purpose": "answer-question", "question": f"a role for {n}"}
        for n in range(4)
    ]
    found = []
    for size in (1, 4):
        how: dict[str, Any] = {"lanes": ("lexical", "semantic"), "runs": tmp_path / "runs", "shard_requests": size}
        with story.open(encoder=TooLong("for 2"), **how) as retriever:
            run = Runs(tmp_path / "runs").open(retriever.run(requests).run_id)
        said = run.table("conditions", texts=True).filter(pc.field("subject") == "semantic")
        found.append(said.select(["request_id", "condition", "message"]).to_pylist())
    assert found[0] == found[1]
    (failed,) = found[0]
    assert (failed["request_id"], failed["condition"]) == ("r2", "lane_failed")
    assert failed["message"].startswith(f"Expected a squared length below {TOO_LONG}, got ")
    assert failed["message"].endswith(" - at encoder words-by-their-start/1 - in semantic_hits")
