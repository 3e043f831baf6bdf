"""A server on this machine with `/v1/embeddings`: vectors by words, and every way to answer badly."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
from stand_in_encoder import WordsByTheirStart


class ModelServer(ThreadingHTTPServer):
    """`answers` are sent in place of the next ones, `broken` in place of all; `asked` holds texts, `keys` what came as key."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[str] = []
        self.sizes: list[int] = []
        self.keys: list[str | None] = []
        self.paths: list[str] = []
        self.answers: list[tuple[int, bytes]] = []
        self.broken: tuple[int, bytes] | None = None
        self.headers: dict[str, str] = {}
        self.last: int | None = None
        """Texts after so many are answered by status 500."""
        self.seed = 0
        """Another seed is another model."""
        self.dimensions = 512
        self.looks_around = False
        """Vectors move with the number of texts beside them."""
        self.noise = 0.0
        self.order = 1
        self.slow = threading.Event()
        self.slow.set()
        """Cleared, every answer waits until it is set again."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def encoder(self) -> str:
        return f"openai:{self.url}#tiny"

    def vectors(self, texts: list[str]) -> np.ndarray:
        found = WordsByTheirStart().encode(texts).astype(np.float64)[:, : self.dimensions] + 1
        found[:, 0] += 1000
        found *= np.random.default_rng(self.seed).choice([-1, 1], found.shape[1])
        found += self.noise * np.random.default_rng(len(self.sizes)).normal(size=found.shape)
        return found * (1 + 0.01 * len(texts) * np.arange(found.shape[1])) if self.looks_around else found


@contextmanager
def model_server() -> Iterator[ModelServer]:
    server = ModelServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.slow.set()
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: ModelServer

    def do_GET(self) -> None:
        self.server.paths.append(f"GET {self.path}")
        self._answer(404, b"{}")

    def do_POST(self) -> None:
        server, body = self.server, json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        texts = body["input"]
        server.asked += texts
        server.sizes.append(len(texts))
        server.keys.append(self.headers["Authorization"])
        server.paths.append(self.path)
        server.slow.wait(30)
        if server.last is not None and len(server.asked) > server.last:
            return self._answer(500, b"{}")
        if server.answers or server.broken:
            return self._answer(*(server.answers.pop(0) if server.answers else server.broken))
        return self._answer(200, json.dumps(self._made(body, texts)).encode())

    def _made(self, body: dict[str, Any], texts: list[str]) -> dict[str, Any]:
        vectors = self.server.vectors(texts).tolist()
        data = [{"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(vectors)]
        return {"object": "list", "data": data[:: self.server.order], "model": body["model"]}

    def _answer(self, status: int, data: bytes) -> None:
        try:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(data)), **self.server.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)
        except OSError:
            pass  # the client is gone

    def log_message(self, *_: object) -> None:
        pass
