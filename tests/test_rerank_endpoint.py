"""Scores of a server with `/v1/rerank`: a term like that of a folder's model, or none, and an answer either way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from model_server import ModelServer, model_server
from scoped_retrieval.nodes.errors import ModelError
from scoped_retrieval.pipeline.encoders import endpoint, rerank_endpoint
from scoped_retrieval.pipeline.encoders.cross_encoder import load_cross_encoder
from scoped_retrieval.pipeline.line.lanes import SILENT_CROSS_ENCODER
from small_corpus import Story, places, row

QUESTION = "what is the default role"
PAIRS = [(QUESTION, "the default role is guest"), (QUESTION, "nothing"), ("role", "a role"), (QUESTION, "nothing")]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "PAUSE_SECONDS", 0.0)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running


def test_scores_are_those_of_the_server_by_their_index(server: ModelServer) -> None:
    model = load_cross_encoder(server.reranker)
    assert model.scores(PAIRS) == pytest.approx([0.8, 0.0, 1.0, 0.0], abs=2**-10)
    assert (model.scores(PAIRS) * 2**30 % 1 == 0).all()
    assert model.profile.startswith(f"{server.reranker}+together+shares+")
    assert set(server.paths) == {"/v1/rerank"}
    assert len(model.scores([])) == 0


def test_where_neighbors_count_each_text_is_sent_alone(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rerank_endpoint, "BATCH", 2)
    for looks_around, sizes in ((False, {1, 2}), (True, {1})):
        server.looks_around = looks_around
        model = load_cross_encoder(server.reranker)
        assert ("+alone+" in model.profile) is looks_around
        server.sizes.clear()
        together = model.scores(PAIRS)
        assert set(server.sizes) == sizes
        assert [float(model.scores([pair])[0]) for pair in PAIRS] == together.tolist()


def results(*scores: Any) -> tuple[int, bytes]:
    rows = [{"index": at, "relevance_score": score} for at, score in enumerate(scores)]
    return 200, json.dumps({"results": rows}).encode()


@pytest.mark.parametrize(
    ("bad", "got"),
    [
        ((500, b"{}"), "HTTP status 500"),
        ((200, b"{}"), "no list of scores"),
        (results(float("nan")), "a score that is no number"),
        ((200, b'{"results": [{"relevance_score": 0.5}]}'), "scores of other texts"),
    ],
)
def test_an_answer_that_is_no_score_is_refused(server: ModelServer, bad: tuple[int, bytes], got: str) -> None:
    model = load_cross_encoder(server.reranker)
    assert model.profile
    server.broken = bad
    with pytest.raises(ModelError, match=rf"^Expected scores of tiny, got .*{got}.* - at {server.url}") as caught:
        model.scores(PAIRS[:1])
    assert QUESTION not in str(caught.value)


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(
        tmp_path,
        row("doc", "docs/a.md", "A role, a default, a default role of roles; a default role by default."),
        row("doc", "docs/b.md", "what is the default role"),
        row("doc", "docs/hidden.md", "the default role of runtimes", declared_visibility="runtime-only"),
    )


def ask(story: Story, model: Any) -> Any:
    with story.open(cross_encoder=model) as retriever:
        return retriever.retrieve({"project": "shop", "question": QUESTION})


def test_it_is_a_term_of_reranking_and_is_sent_what_passed_both_walls(story: Story, server: ModelServer) -> None:
    found = ask(story, server.reranker)
    assert found.status == "ok"
    assert places(found)[0] == "docs/b.md"
    assert any(found.tables["ranked"]["cross_encoder"].to_pylist())
    assert not any("runtimes" in text for text in server.asked)


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ((500, b"{}"), "got HTTP status 500; see the server log for the cause"),
        ((200, b"no"), "got a response that is not JSON; the URL is that of another service"),
        ((200, b'{"results": []}'), "got 0 of 1 scores; the server returned too few results"),
        (
            (200, b'{"results": [{"index": 0, "relevance_score": NaN}]}'),
            "got a score that is no number; the model overflows",
        ),
        ((401, b"{}"), "got HTTP status 401; cross_encoder_key_variable names an environment variable"),
    ],
)
def test_a_server_that_gives_no_scores_is_off_and_the_answer_goes_on(
    story: Story, server: ModelServer, broken: tuple[int, bytes], said: str
) -> None:
    before = ask(story, None)
    server.broken = broken
    found = ask(story, server.reranker)
    told = [each for each in found.conditions if each["subject"] == "cross_encoder"]
    assert [each["condition"] for each in told] == ["lane_off"]
    assert told[0]["message"].startswith(f"{SILENT_CROSS_ENCODER}: Expected scores of tiny, {said}")
    assert places(found) == places(before)
    assert set(found.tables["ranked"]["cross_encoder"].to_pylist()) == {0.0}


def test_a_server_that_dies_later_fails_its_term_alone(story: Story, server: ModelServer) -> None:
    with story.open(cross_encoder=server.reranker) as retriever:
        server.broken = (500, b"{}")
        found = retriever.retrieve({"project": "shop", "question": QUESTION})
    (failed,) = [each for each in found.conditions if each["subject"] == "cross_encoder"]
    assert failed["condition"] == "lane_failed"
    assert found.status == "partial"
