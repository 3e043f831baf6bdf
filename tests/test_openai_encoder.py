"""Vectors of a server with `/v1/embeddings`: known again by what it answers, and refused when it answers badly."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from model_server import ModelServer, model_server
from scoped_retrieval.nodes.errors import ModelError
from scoped_retrieval.pipeline.encoders.choice import EncoderChoice
from scoped_retrieval.pipeline.encoders.encoder import encoder_of
from scoped_retrieval.pipeline.encoders.openai_encoder import PROBE, OpenAIEncoder

TEXTS = ["payment queue", "login", "payment queue", "the default role"]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running


def encoder_at(server: ModelServer, known: str | None = None, **how: Any) -> OpenAIEncoder:
    return OpenAIEncoder(EncoderChoice(server.encoder, **how), known)


def test_vectors_are_unit_and_equal_texts_are_sent_once(server: ModelServer):
    encoder = encoder_at(server)
    found = encoder.encode(TEXTS)
    assert found.dtype == np.int16
    assert np.linalg.norm(found / 2**15, axis=1) == pytest.approx(1, abs=1e-3)
    assert (found[0] == found[2]).all()
    assert server.asked[-4:] == ["payment queue", "login", "the default role", PROBE]
    assert encoder.encode([]).shape == (0, 512)
    assert set(server.paths) == {"/v1/embeddings"}


def test_great_numbers_have_the_profile_of_the_same_direction(server: ModelServer):
    server.answers = [answer([1e308, 1e308, -1e308])]
    great = encoder_at(server).profile
    server.answers = [answer([1.0, 1.0, -1.0])]
    assert encoder_at(server).profile == great


def test_a_vector_does_not_depend_on_the_texts_that_are_encoded_with_it(server: ModelServer):
    server.looks_around = True
    encoder = encoder_at(server)
    together = encoder.encode(TEXTS)
    assert [encoder.encode([text])[0].tolist() for text in TEXTS] == together.tolist()


def test_a_model_that_is_replaced_while_it_encodes_gives_no_vector(server: ModelServer):
    encoder = encoder_at(server)
    assert encoder.profile
    server.seed = 1
    with pytest.raises(ModelError, match="Expected vectors of tiny, got another model than before - at http://127"):
        encoder.encode(["login"])


def answer(*rows: Any, status: int = 200) -> tuple[int, bytes]:
    data = [{"index": at, "embedding": row} for at, row in enumerate(rows)]
    return status, json.dumps({"data": data}).encode()


BAD: list[tuple[tuple[int, bytes], str]] = [
    ((500, b"{}"), "HTTP status 500"),
    ((200, b"[" * 100_000), "a response that is not JSON"),
    ((200, b'{"data": ["x"]}'), "no list of vectors"),
    (answer([float("nan")] * 512), "a value that is not a number"),
    (answer([True] * 512), "a value that is not a number"),
    (answer([1.0] * 512, [1.0] * 512), "2 vectors for one text"),
]


@pytest.mark.parametrize(("bad", "got"), BAD)
def test_an_answer_that_is_no_vector_is_refused(server: ModelServer, bad: tuple[int, bytes], got: str):
    encoder = encoder_at(server)
    assert encoder.profile
    server.broken = bad
    with pytest.raises(ModelError, match=rf"^Expected vectors of tiny, got .*{got}.* - at {server.url}") as caught:
        encoder.encode(["a secret question"])
    assert "secret" not in str(caught.value)
    assert caught.value.hint


def test_the_corpus_does_not_say_who_is_asked(server: ModelServer):
    """Its profile names a server; only the one that is chosen is sent a question."""
    profile = encoder_at(server).profile
    server.asked.clear()
    assert encoder_of(profile) is None
    assert encoder_of(profile, EncoderChoice(f"openai:{server.url}#other")) is None
    assert server.asked == []
    own = encoder_of(profile, EncoderChoice(f"openai:{server.url}/#tiny"))
    assert own is not None
    assert own.profile == profile
