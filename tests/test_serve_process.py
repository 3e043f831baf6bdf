"""The server as a process: what a stop, a kill, a silent client and a request whose time is up leave of the others."""

from __future__ import annotations

import hashlib
import http.client
import importlib
import json
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import plugin_package
import pytest
import yaml
from command_line import run
from scoped_retrieval.pipeline.config.settings import Settings, load_settings
from scoped_retrieval.pipeline.runs import Runs
from served import SERVE, called, server

pytest.importorskip("fastapi", reason="needs the extra serve")
from scoped_retrieval.pipeline.servers.http_app import application
from starlette.testclient import TestClient

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


THREADS = 2
SLOW = {"question": "slow default role"}
SOURCE = """
import threading
import numpy as np
from scoped_retrieval.pipeline.plugins import Lane, Scored, ScoreTerm

began, released, scored = threading.Semaphore(0), threading.Event(), []


def recall(scope):
    if any("slow" in text for text in scope.queries["query_text"].to_pylist()):
        began.release()
        released.wait(60)
    return Scored((), (), ())


def value(rows, asked):
    scored.append(len(rows))
    return np.zeros(len(rows))


WAITS = Lane("acme.waits", "waits", columns=("text",), recall=recall)
COUNTS = ScoreTerm("acme.counts", "counts its calls", weight=0.1, columns=("text",), value=value)
"""
ENTRIES = """
[scoped_retrieval.lanes]
acme.waits = acme_rules:WAITS
[scoped_retrieval.score_terms]
acme.counts = acme_rules:COUNTS
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A lane that waits for a word of the question until it is released, and a later term that counts its calls."""
    plugin_package.install(tmp_path, monkeypatch, SOURCE, ENTRIES)
    found = importlib.import_module("acme_rules")
    yield found
    found.released.set()


@pytest.fixture
def settings(shop: Path, plugin: Any) -> Settings:
    flags = {
        "principal": "ana", "project": "shop", "lanes": "lexical", "plugins": "acme", "serve_threads": THREADS,
        "serve_timeout_seconds": 1,
    }  # fmt: skip
    values = load_settings(flags, cwd=shop, environ={}, user=shop / "none.toml")
    grants = yaml.safe_load(values.grants_path.read_text())
    grants["principals"]["bob"] = {"projects": ["shop"]}
    grants["tokens"] = {hashlib.sha256(who.encode()).hexdigest(): who for who in ("ana", "bob")}
    values.grants_path.write_text(yaml.safe_dump(grants))
    return values


def client(app: Any, who: str) -> TestClient:
    return TestClient(app, headers={"authorization": f"Bearer {who}"})


def test_no_node_begins_and_nothing_is_stored_after_the_deadline(settings: Settings, plugin: Any):
    app = application(settings)
    with TestClient(app):
        answer = client(app, "ana").post("/v1/retrieve", json=SLOW)
        assert (answer.status_code, answer.json()["code"]) == (504, "timeout")
        plugin.released.set()
    assert plugin.scored == []
    assert sum(run.snapshots.num_rows for run in Runs(settings["runs"]).list()) == 0


def test_a_principal_that_keeps_its_threads_does_not_stop_another(settings: Settings, plugin: Any):
    app = application(settings)
    with TestClient(app):
        asked = [{"question": f"slow {n}", "project": "shop"} for n in range(THREADS + 1)]
        slow = threading.Thread(target=client(app, "ana").post, args=("/v1/retrieve",), kwargs={"json": asked})
        slow.start()
        assert plugin.began.acquire(timeout=60)
        answer = client(app, "bob").post("/v1/retrieve", json={"question": "default role"})
        assert answer.json()["status"] == "ok" and not plugin.released.is_set()
        slow.join(60)
        assert client(app, "bob").get("/v1/health").status_code == 200
        plugin.released.set()
