"""Vectors that are too long for exact products, or no int16: the messages about them at an import, and for a question."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
from scoped_retrieval.pipeline.encoders.unit_vectors import TOO_LONG
from scoped_retrieval.pipeline.runs import Runs
from small_corpus import Story, row
from stand_in_encoder import WordsByTheirStart


class TooLong(WordsByTheirStart):
    """Gives a vector that is too long for a text with `word`."""

    def __init__(self, word: str) -> None:
        self.word = word

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        found = super().encode(texts)
        found[[self.word in text for text in texts], :2] = -(2**15)
        return found


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
    assert failed["message"].endswith(" - at encoder words-by-their-start/1")
