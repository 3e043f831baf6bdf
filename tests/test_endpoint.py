"""What every client of a server with a model shares: deadlines, a counted number of tries, and a key that is never shown."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest
from model_server import ModelServer, model_server
from scoped_retrieval.nodes.errors import ModelError
from scoped_retrieval.pipeline.encoders import openai_encoder
from scoped_retrieval.pipeline.encoders.openai_encoder import TRIES, Endpoint

BODY = {"model": "tiny", "input": ["a secret text"]}
KEY = "sk-a1b2c3d4e5f6"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_encoder, "PAUSE_SECONDS", 0.0)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running


def asked(server: ModelServer, **how: object) -> dict[str, object]:
    return Endpoint(server.url, "vectors of tiny", **how).ask(BODY)  # type: ignore[arg-type]  # options by name


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_busy_server_is_asked_again_so_many_times(server: ModelServer, status: int) -> None:
    server.headers = {"Retry-After": "0"}
    server.answers = [(status, b"{}")] * (TRIES - 1)
    assert "data" in asked(server)
    server.broken = (status, b"{}")
    server.sizes.clear()
    with pytest.raises(ModelError, match=f"got HTTP status {status} - at {server.url}"):
        asked(server)
    assert len(server.sizes) == TRIES


def test_a_server_that_does_not_answer_in_time_is_asked_once(server: ModelServer) -> None:
    server.slow.clear()
    with pytest.raises(ModelError, match=r"got no answer within 0\.05 s - at"):
        asked(server, timeout_seconds=0.05)
    assert len(server.sizes) == 1


def raw(answer: bytes, times: int, then: threading.Event | None = None) -> tuple[str, threading.Thread]:
    """A server that sends these bytes and hangs up, so many times; or keeps the connection until `then`."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with listening:
            for _ in range(times):
                connection, _ = listening.accept()
                with connection:
                    connection.recv(1 << 16)
                    connection.sendall(answer)
                    if then is not None:
                        then.wait(30)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    return f"http://127.0.0.1:{listening.getsockname()[1]}", thread


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{}"])
def test_a_connection_that_breaks_is_tried_again_so_many_times(answer: bytes) -> None:
    url, thread = raw(answer, TRIES)
    with pytest.raises(ModelError, match=r"got no answer \(\w+\) - at"):
        Endpoint(url, "vectors of tiny").ask(BODY)
    thread.join()


def test_a_body_that_stops_half_way_ends_at_the_deadline() -> None:
    done = threading.Event()
    url, thread = raw(b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{", 1, done)
    with pytest.raises(ModelError, match=r"got no answer within 0\.05 s"):
        Endpoint(url, "vectors of tiny", timeout_seconds=0.05).ask(BODY)
    done.set()
    thread.join()


def test_a_redirect_takes_the_key_nowhere(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TINY_KEY", KEY)
    with model_server() as other:
        server.headers, server.broken = {"Location": other.url}, (302, b"")
        with pytest.raises(ModelError, match="got HTTP status 302"):
            asked(server, key_variable="TINY_KEY")
        assert other.paths == []


@pytest.mark.parametrize(
    ("key", "got"), [("", "none"), ("sk a", "other characters"), ("sk\na", "other"), ("sk-é", "other")]
)
def test_a_key_that_is_none_is_named_by_its_variable(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch, key: str, got: str
) -> None:
    monkeypatch.setenv("TINY_KEY", key)
    with pytest.raises(
        ModelError, match=rf"^Expected a key, got .*{got}.* - at the environment variable TINY_KEY"
    ) as caught:
        asked(server, key_variable="TINY_KEY")
    assert not key or key not in str(caught.value)
    assert server.paths == []
