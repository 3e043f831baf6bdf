"""Vectors of a local server: the same as any encoder's, refused when they are not what was expected."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from ollama_server import OllamaServer, ollama_server
from scoped_retrieval.nodes.errors import InputError, ModelError
from scoped_retrieval.pipeline.cli import main
from scoped_retrieval.pipeline.encoders.choice import EncoderChoice, is_loopback
from scoped_retrieval.pipeline.encoders.encoder import load_encoder
from scoped_retrieval.pipeline.encoders.ollama import OllamaEncoder


@pytest.fixture
def server() -> Iterator[OllamaServer]:
    with ollama_server() as running:
        yield running


def test_vectors_are_unit_and_do_not_depend_on_their_neighbors(server: OllamaServer):
    encoder = OllamaEncoder(url=server.url)
    together, alone = encoder.encode(["payment queue", "login", "payment queue"]), encoder.encode(["login"])
    assert together.dtype == np.int16
    assert (together[0] == together[2]).all()
    assert (together[1] == alone[0]).all()
    assert np.linalg.norm(together / 2**15, axis=1) == pytest.approx(1, abs=1e-3)
    assert server.asked == ["payment queue", "login", "login"]
    assert encoder.encode([]).shape[0] == 0


def test_the_profile_holds_the_digest_of_the_model(server: OllamaServer):
    assert OllamaEncoder(url=server.url).profile == f"ollama:nomic-embed-text+{'ab' * 8}"
    with pytest.raises(ModelError, match="Expected vectors of other, got no such model"):
        _ = OllamaEncoder("other", server.url).profile


@pytest.mark.parametrize("digest", [None, "", "sha256:"])
def test_a_model_without_a_digest_has_no_profile(server: OllamaServer, digest: str | None):
    server.digest = digest
    with pytest.raises(ModelError, match="got a model without a digest"):
        _ = OllamaEncoder(url=server.url).profile


def test_a_model_that_was_pulled_again_gives_no_vector_under_the_profile_before(server: OllamaServer):
    encoder = OllamaEncoder(url=server.url)
    before = encoder.profile
    encoder.encode(["login"])
    server.digest = "sha256:" + "cd" * 32
    with pytest.raises(ModelError, match="got another version of the model than before"):
        encoder.encode(["payment queue"])
    assert encoder.profile == before
    assert OllamaEncoder(url=server.url).profile == f"ollama:nomic-embed-text+{'cd' * 8}"


def test_a_model_that_is_pulled_while_it_encodes_gives_no_vector(server: OllamaServer):
    server.pulled = "sha256:" + "cd" * 32
    with pytest.raises(ModelError, match="got another version"):
        OllamaEncoder(url=server.url).encode(["login", "payment queue"])


@pytest.mark.parametrize(
    ("answer", "got", "remedy"),
    [
        ((500, b"{}"), "HTTP status 500", "see the server log"),
        ((200, b"not json"), "not JSON", "another service"),
        ((200, b"[]"), "JSON that is no object", "another service"),
        ((200, b'{"embeddings": []}'), "no vector", "ollama pull"),
        ((200, b'{"embeddings": [["x"]]}'), "a value that is not a number", "float32"),
        ((200, b'{"embeddings": [[NaN]]}'), "a value that is not a number", "float32"),
    ],
)
def test_an_answer_that_is_no_vector_is_refused(server: OllamaServer, answer: tuple[int, bytes], got: str, remedy: str):
    server.broken = answer
    with pytest.raises(ModelError, match=got) as caught:
        OllamaEncoder(url=server.url).encode(["a secret question"])
    assert "secret" not in str(caught.value)
    assert remedy in caught.value.hint


def test_the_server_is_the_local_one_unless_another_is_named():
    assert OllamaEncoder().url == "http://localhost:11434"
    assert [is_loopback(host) for host in ("localhost", "127.0.0.9", "::1", "10.0.0.1", "example.org")] == [
        True, True, True, False, False,
    ]  # fmt: skip
    with pytest.raises(InputError, match="Expected an http or https address"):
        OllamaEncoder(url="file:///etc/passwd")


def test_an_encoder_is_loaded_by_name():
    encoder = load_encoder(EncoderChoice("ollama:nomic-embed-text", "http://127.0.0.1:9"))
    assert isinstance(encoder, OllamaEncoder)
    with pytest.raises(InputError, match="ollama:MODEL"):
        load_encoder("ollama:")


def test_a_corpus_is_indexed_and_asked_through_the_server(server: OllamaServer, tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCOPED_RETRIEVAL_ENCODER", "ollama:nomic-embed-text")
    monkeypatch.setenv("SCOPED_RETRIEVAL_OLLAMA_URL", server.url)
    (tmp_path / "doc.md").write_text("# Queues\n\nPayments are retried through a queue.\n")
    assert main(["index", "doc.md", "--project", "shop"]) == 0
    assert main(["ask", "retrying of payment", "--project", "shop", "--lanes", "semantic"]) == 0
    assert "Payments are retried" in capsys.readouterr().out
    server.digest = "sha256:" + "cd" * 32
    assert main(["ask", "retrying of payment", "--project", "shop", "--lanes", "semantic"]) == 0
    assert "index again" in capsys.readouterr().err
