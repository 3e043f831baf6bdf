"""An encoder that fails on questions: what it costs, and whom."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest
from scoped_retrieval.nodes.errors import ModelError
from scoped_retrieval.nodes.lanes import NO_VECTORS
from scoped_retrieval.pipeline.encoders.unit_vectors import TOO_LONG
from scoped_retrieval.pipeline.runs import Runs
from small_corpus import Story, row
from stand_in_encoder import WordsByTheirStart

VECTORS, PLAIN = "why does the default role fail?", "why is the queue slow?"


class Failing(WordsByTheirStart):
    """Gives no vector of a text with `word`; with "", of none."""

    def __init__(self, word: str = "") -> None:
        self.word = word
        self.calls = 0

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        self.calls += 1
        if any(self.word in text for text in texts):
            raise ModelError("Expected vectors, got none - at server")
        return super().encode(texts)


@pytest.fixture
def story(tmp_path: Path) -> Story:
    """`shop` was indexed with vectors, `pay` without."""
    story = Story(tmp_path, row("doc", "docs/roles.md", "the default role is guest\n"), encoder=WordsByTheirStart())
    story.encoder = None
    story.tell(row("doc", "docs/queue.md", "the queue is slow at noon\n"), project="pay")
    story.grant("ana", "pay")
    return story


def said(story: Story, encoder: Failing, *requests: dict[str, Any], **how: Any) -> dict[str, list[tuple[str, str]]]:
    """Condition and message of the semantic lane, by request."""
    with story.open(encoder=encoder, lanes=("lexical", "semantic"), runs=story.folder / "runs", **how) as retriever:
        summary = retriever.run(requests)
    table = Runs(story.folder / "runs").open(summary.run_id).table("conditions", texts=True)
    rows = table.filter(pc.equal(table["subject"], "semantic")).to_pylist()
    found: dict[str, list[tuple[str, str]]] = {request["request_id"]: [] for request in requests}
    for each in rows:
        found[each["request_id"]].append((each["condition"], each["message"]))
    return found


def asked(number: int, project: str = "shop", question: str = VECTORS) -> dict[str, Any]:
    purpose = "answer-question"
    return {"request_id": f"r{number:02d}", "project": project, "purpose": purpose, "question": f"{question} {number}"}


def test_an_encoder_that_is_gone_fails_only_those_that_have_vectors_to_compare_with(story: Story):
    requests = [asked(1), asked(2, "pay", PLAIN), asked(3)]
    together = said(story, Failing(), *requests)
    assert together["r02"] == [("lane_off", NO_VECTORS)]
    for request in requests:
        assert said(story, Failing(), request) == {request["request_id"]: together[request["request_id"]]}


def test_a_text_that_has_no_vector_costs_the_others_nothing(story: Story):
    found = said(story, Failing("r 5"), *(asked(n, question="a role for") for n in range(8)))
    assert [request for request, rows in found.items() if rows] == ["r05"]
    assert found["r05"][0][0] == "lane_failed"


class Dying(WordsByTheirStart):
    """Gives vectors until it is `gone`; then it says how many texts it was asked for."""

    gone = False

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        if self.gone:
            raise ModelError(f"Expected {len(texts)} vectors, got none - at server {hash(tuple(texts))}")
        return super().encode(texts)


@pytest.mark.parametrize("size", [1, 2])
def test_an_encoder_that_dies_costs_those_whose_questions_it_never_saw(story: Story, size: int):
    encoder, runs = Dying(), story.folder / "runs"
    first, second = asked(1), asked(2)
    how: dict[str, Any] = {"lanes": ("lexical", "semantic"), "runs": runs, "shard_requests": size}
    with story.open(encoder=encoder, **how) as retriever:
        before = Runs(runs).open(retriever.run([first]).run_id)
        encoder.gone = True
        after = Runs(runs).open(retriever.run([first, second]).run_id)
    failed = after.table("conditions", texts=True).filter(pc.field("subject") == "semantic")
    assert failed["request_id"].to_pylist() == ["r02"]
    hits = [run.table("hits") for run in (before, after)]
    taken = [h.filter((pc.field("lane") == "semantic") & (pc.field("request_id") == "r01")) for h in hits]
    assert taken[0].num_rows and taken[0].equals(taken[1])


def test_what_an_encoder_says_of_a_batch_stands_in_no_condition(story: Story):
    requests = [asked(1), asked(2)]
    messages = []
    for size in (1, 2):
        encoder = Dying()
        encoder.gone = True
        messages.append(said(story, encoder, *requests, shard_requests=size))
    assert messages[0] == messages[1]


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
