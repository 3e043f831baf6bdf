"""A server on this machine that answers like Ollama: vectors by words, a list of models, and what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from stand_in_encoder import WordsByTheirStart


class OllamaServer(ThreadingHTTPServer):
    """`broken` is sent in place of an answer; `asked` holds the texts."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[str] = []
        self.broken: tuple[int, bytes] | None = None
        self.digest = "sha256:" + "ab" * 32

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def ollama_server() -> Iterator[OllamaServer]:
    server = OllamaServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: OllamaServer

    def do_GET(self) -> None:
        self._answer({"models": [{"name": "nomic-embed-text:latest", "digest": self.server.digest}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked += body["input"]
        vectors = WordsByTheirStart().encode(body["input"]) / 2**15
        self._answer({"model": body["model"], "embeddings": vectors.tolist()})

    def _answer(self, value: object) -> None:
        status, data = self.server.broken or (200, json.dumps(value).encode())
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass
