"""The server as a process: a stop while clients ask, a client that sends nothing, and a kill."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import threading
from pathlib import Path

import pytest
from command_line import indexed_fixture, run, shop_fixture  # noqa: F401 - fixtures
from served import SERVE, called, server

pytest.importorskip("fastapi", reason="needs the extra serve")

ASKED = json.dumps({"question": "default role"})


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGKILL])
def test_no_snapshot_of_an_answered_request_is_lost_when_the_server_ends(shop: Path, sent: signal.Signals, capsys):
    answered: list[str] = []
    enough = threading.Event()

    def asks(port: int) -> None:
        try:
            while True:
                answered.append(called(port, "POST", "/v1/retrieve", ASKED)["snapshot_id"])
                if len(answered) >= 12:
                    enough.set()
        except (OSError, http.client.HTTPException, ValueError):
            enough.set()  # it has ended

    with server(*SERVE) as (process, port):
        clients = [threading.Thread(target=asks, args=(port,)) for _ in range(4)]
        for client in clients:
            client.start()
        assert enough.wait(60)
        process.send_signal(sent)
        assert process.wait(60) == (0 if sent == signal.SIGTERM else -sent)
        for client in clients:
            client.join(60)
    code, out, _ = run("log", "-n", "0", "--json", capsys=capsys)
    assert code == 0
    assert len(answered) >= 12
    assert set(answered) <= {row["snapshot_id"] for row in json.loads(out)}
    assert run("verify", capsys=capsys)[0] == 0


def test_a_port_in_use_is_an_error_like_others(shop: Path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code, _, err = run("serve", "--port", port, "-c", "lanes=lexical", capsys=capsys)
    assert (code, err.startswith("error: "), f"--port {port}" in err) == (2, True, True)


def test_a_client_that_sends_half_a_body_is_told_so_and_others_are_answered(shop: Path):
    limit = {"SCOPED_RETRIEVAL_SERVE_TIMEOUT_SECONDS": "1"}
    with server(*SERVE, **limit) as (_, port), socket.create_connection(("127.0.0.1", port), timeout=60) as slow:
        slow.sendall(b"POST /v1/retrieve HTTP/1.1\r\nhost: localhost\r\ncontent-length: 90\r\n\r\n{")
        assert called(port, "GET", "/v1/health")["status"] == "ok"
        assert slow.recv(1_000).startswith(b"HTTP/1.1 408")
