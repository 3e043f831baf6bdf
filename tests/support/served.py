"""A server as a process of its own, and calls of it."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

SERVE = ("serve",)
MCP = ("serve", "--mcp")


@contextmanager
def server(*command: str, **environment: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A server in the working folder, and its port."""
    arguments = [*command, "--port", "0", "-c", "lanes=lexical"]
    process = subprocess.Popen(
        [sys.executable, "-m", "scoped_retrieval.pipeline.cli", *arguments],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    try:
        assert process.stderr is not None
        said: list[str] = []
        for line in process.stderr:
            said.append(line)
            if started := re.search(r"running on http://127\.0\.0\.1:(\d+)", line):
                yield process, int(started[1])
                break
        else:
            pytest.fail("".join(said))
    finally:
        process.kill()
        process.communicate()


def called(port: int, method: str, path: str, body: str | None = None) -> dict[str, str]:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request(method, path, body)
        answer = connection.getresponse()
        assert answer.status == 200, answer.status
        return json.loads(answer.read())
