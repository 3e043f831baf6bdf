"""A server on this machine that answers like Ollama: vectors by words, a list of models, and what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from stand_in_encoder import WordsByTheirStart


class OllamaServer(ThreadingHTTPServer):
    """`broken` is sent in place of vectors; `asked` holds the texts; `pulled` is the digest after the next."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[str] = []
        self.broken: tuple[int, bytes] | None = None
        self.digest: str | None = "sha256:" + "ab" * 32
        self.pulled: str | None = None

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
        models = [{"name": "nomic-embed-text:latest", "digest": self.server.digest}]
        self._answer(200, json.dumps({"models": models}).encode())

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked += body["input"]
        vectors = WordsByTheirStart().encode(body["input"]) / 2**15
        made = json.dumps({"model": body["model"], "embeddings": vectors.tolist()}).encode()
        self.server.digest = self.server.pulled or self.server.digest
        self._answer(*(self.server.broken or (200, made)))

    def _answer(self, status: int, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass
