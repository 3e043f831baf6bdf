"""JSON over HTTP with a model server.

Gives: `Endpoint`. Answers have a deadline and a maximum size, retries are limited, redirects are not followed, and an
error says what was expected, what came and where: never a text that was sent, the body of an answer, or a key.

Note: urllib sends the headers of a request, including the key, wherever a redirect points; and its timeout applies to
each read, so a server that sends a byte now and then could stall the client forever.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from ...nodes.errors import ModelError
from .choice import is_loopback

TIMEOUT_SECONDS = 60.0
"""The time that a server has for one answer."""
TRIES = 3
"""The maximum number of tries if the server is busy or the connection breaks."""
PAUSE_SECONDS = 0.5
"""The pause before the second try; twice as long before the third. Servers may request up to
`LONGEST_PAUSE_SECONDS`."""
LONGEST_PAUSE_SECONDS = 10.0
MOST_BYTES = 1 << 28
"""The maximum size of an answer."""
_PIECE = 1 << 16
_BUSY = (429, 502, 503, 504)
_HINT = (
    "see the log of the server, and compare URL and model with what it lists at /v1/models; encoder_key_variable names the "
    "variable with its key"
)


@dataclass(frozen=True)
class Endpoint:
    """A server at a URL."""

    url: str
    expected: str
    """The expectation in errors: `vectors of MODEL`."""
    key_variable: str | None = None
    timeout_seconds: float = TIMEOUT_SECONDS

    def ask(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The JSON object that the server returns; a body is sent as JSON.

        Raises:
            ModelError: there is no answer in time, or it is not an object.
        """
        from http.client import HTTPException  # here: without a server, the HTTP modules are not loaded
        from urllib.error import HTTPError, URLError
        from urllib.request import Request

        headers = {"Content-Type": "application/json", "Accept": "application/json", **self._key()}
        request = Request(self.url + path, data=json.dumps(body).encode(), headers=headers)
        for number in range(TRIES):
            pause, again = PAUSE_SECONDS * 2**number, False
            try:
                with self._open(request, timeout=self.timeout_seconds) as response:
                    data = _read(response, time.monotonic() + self.timeout_seconds)
            except HTTPError as error:
                with error:
                    asked = error.headers.get("Retry-After", "") if error.headers else ""
                pause = min(float(asked), LONGEST_PAUSE_SECONDS) if asked.isdecimal() else pause
                got, again = f"HTTP status {error.code}", error.code in _BUSY
            except URLError as error:
                got = self._lost(error.reason if isinstance(error.reason, Exception) else error)
            except (OSError, HTTPException, ValueError) as error:
                got, again = self._lost(error), isinstance(error, (ConnectionError, HTTPException))
            else:
                return self._parsed(data)
            if not again or number + 1 == TRIES:
                raise self.error(got)
            time.sleep(pause)
        raise AssertionError  # the last try returned or raised

    def error(self, got: str, hint: str = _HINT) -> ModelError:
        """An error about this server."""
        return ModelError(f"Expected {self.expected}, got {got}", at=self.url, hint=hint)

    def _parsed(self, data: bytes) -> dict[str, Any]:
        try:
            found = json.loads(data)
        except (ValueError, RecursionError):
            raise self.error("a response that is not JSON") from None
        if not isinstance(found, dict):
            raise self.error("JSON that is no object")
        return found

    def _lost(self, error: Exception) -> str:
        if isinstance(error, TimeoutError):
            return f"no answer within {self.timeout_seconds:g} s"
        return "no server" if isinstance(error, ConnectionRefusedError) else f"no answer ({type(error).__name__})"

    def _key(self) -> dict[str, str]:
        """The header with the key, read when needed."""
        if self.key_variable is None:
            return {}
        key = os.environ.get(self.key_variable, "")
        if not key or not key.isascii() or not key.isprintable() or " " in key:
            got = "one with other characters than a header takes" if key else "none"
            raise ModelError(
                f"Expected a key, got {got}",
                at=f"the environment variable {self.key_variable}",
                hint="export it, or unset encoder_key_variable where the server takes requests without one",
            )
        return {"Authorization": f"Bearer {key}"}

    @cached_property
    def _open(self) -> Callable[..., Any]:
        """Opens requests; those to this machine bypass any proxy."""
        from urllib.request import HTTPRedirectHandler, ProxyHandler, build_opener

        class Stay(HTTPRedirectHandler):
            def redirect_request(self, *_: Any, **__: Any) -> None:
                """Not followed: the status is the answer."""

        near = is_loopback(urlsplit(self.url).hostname or "")
        return build_opener(Stay, *([ProxyHandler({})] if near else [])).open


def _read(response: Any, deadline: float) -> bytes:
    """The whole body, before the deadline."""
    parts, size = [], 0
    while part := response.read1(_PIECE):
        parts.append(part)
        size += len(part)
        if time.monotonic() > deadline:
            raise TimeoutError
        if size > MOST_BYTES:
            raise OSError("too long")
    if getattr(response, "length", None):
        raise ConnectionError  # cut off: fewer bytes than were announced
    return b"".join(parts)
