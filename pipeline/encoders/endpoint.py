"""JSON over HTTP with a model server: the common part of all clients.

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

import numpy as np
from numpy.typing import NDArray

from ...nodes.errors import ModelError
from .choice import DEFAULT_TIMEOUT_SECONDS, is_loopback

__all__ = ["NOT_FINITE", "TOO_FEW", "TRIES", "WRONG_MODEL", "Endpoint", "numbers", "one_per_text"]

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
WRONG_MODEL = "compare URL and model with what the server says at /v1/models"
_HINTS = {
    400: "the server may take shorter texts only: encoder_max_chars cuts them",
    401: "{key}",
    403: "{key}",
    404: WRONG_MODEL,
    413: "the server takes shorter texts only: encoder_max_chars cuts them",
    422: "the server may take shorter texts only: encoder_max_chars cuts them",
    429: "the server asks for fewer requests: try again later",
}
_SLOW = "raise endpoint_timeout_seconds, or give the server a smaller model or more time"
_BROKEN = "see the server log for the cause"
_ANOTHER = "the URL is that of another service: compare it with what the server prints when it starts"
NOT_FINITE = "the model overflows: serve it in float32 or bfloat16 in place of float16"
"""Hint for NaN and infinity."""
TOO_FEW = "the server returned too few results: see its log for a limit on texts per request, or update it"
"""Hint for fewer answers than texts."""


@dataclass(frozen=True)
class Endpoint:
    """A server at a URL."""

    url: str
    expected: str
    """The expectation in errors: `vectors of MODEL`."""
    hint: str
    """Hint for an unexpected answer."""
    start: str = "start the server, or correct its URL"
    """Hint if there is no server."""
    key_variable: str | None = None
    key_setting: str = "encoder_key_variable"
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS

    def ask(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The JSON object that the server returns; a body is sent as JSON.

        Raises:
            ModelError: there is no answer in time, or it is not an object.
        """
        for left in reversed(range(TRIES)):
            found, pause = self._once(path, body, TRIES - left)
            if isinstance(found, dict):
                return found
            if pause is None or not left:
                raise found
            time.sleep(pause)
        raise AssertionError  # the last try returned or raised

    def error(self, got: str, hint: str | None = None) -> ModelError:
        """An error about this server."""
        return ModelError(
            f"Expected {self.expected}, got {got} - at {self.url}", hint=self.hint if hint is None else hint
        )

    def _once(
        self, path: str, body: Mapping[str, Any] | None, number: int
    ) -> tuple[dict[str, Any] | ModelError, float | None]:
        """The answer; or an error, and how long to wait before the next try, None if another one is useless."""
        from http.client import HTTPException  # here: without a server, the HTTP modules are not loaded
        from urllib.error import HTTPError, URLError
        from urllib.request import Request

        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Accept": "application/json", **self._key()}
        pause = PAUSE_SECONDS * 2 ** (number - 1)
        try:
            request = Request(self.url + path, data=data, headers=headers)
            deadline = time.monotonic() + self.timeout_seconds
            with self._open(request, timeout=self.timeout_seconds) as response:
                return self._parsed(_read(response, deadline)), None
        except HTTPError as error:
            with error:
                asked = error.headers.get("Retry-After", "") if error.headers else ""
            pause = min(float(asked), LONGEST_PAUSE_SECONDS) if asked.isdecimal() else pause
            return self._refused(error.code), pause if error.code in _BUSY else None
        except URLError as error:
            reason = error.reason
            return self._lost(reason if isinstance(reason, Exception) else error), None
        except (ConnectionError, HTTPException) as error:
            return self._lost(error), pause
        except (OSError, ValueError) as error:
            return self._lost(error), None

    def _parsed(self, data: bytes) -> dict[str, Any] | ModelError:
        try:
            found = json.loads(data)
        except (ValueError, RecursionError):
            return self.error("a response that is not JSON", _ANOTHER)
        return found if isinstance(found, dict) else self.error("JSON that is no object", _ANOTHER)

    def _refused(self, status: int) -> ModelError:
        key = (
            f"{self.key_setting} names an environment variable with the key of the server"
            if self.key_variable is None
            else f"the server does not take the key in {self.key_variable}"
        )
        hint = _HINTS.get(status)
        hint = hint or (_BROKEN if status >= 500 else None)
        return self.error(f"HTTP status {status}", hint.format(key=key) if hint else None)

    def _lost(self, error: Exception) -> ModelError:
        from socket import gaierror

        match error:
            case TimeoutError():
                return self.error(f"no answer within {self.timeout_seconds:g} s", _SLOW)
            case ConnectionRefusedError():
                return self.error("no server", self.start)
            case gaierror():
                return self.error("no address for the host", "correct the name of the host in the URL")
        return self.error(f"no answer ({type(error).__name__})", _BROKEN)

    def _key(self) -> dict[str, str]:
        """The header with the key, read when needed."""
        if self.key_variable is None:
            return {}
        key = os.environ.get(self.key_variable, "")
        if not key or not key.isascii() or not key.isprintable() or " " in key:
            got = "one with other characters than a header takes" if key else "none"
            raise ModelError(
                f"Expected a key, got {got} - at the environment variable {self.key_variable}",
                hint=f"export it, or unset {self.key_setting} where the server takes requests without one",
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
            raise ValueError("too long")
    if getattr(response, "length", None):
        raise ConnectionError  # cut off: fewer bytes than were announced
    return b"".join(parts)


def one_per_text(
    endpoint: Endpoint, found: object, count: int, what: str, hint: str, *, numbered: bool
) -> list[Mapping[str, Any]]:
    """The objects of a reply in the order of the `count` texts that were sent, by their `index`. Unless they have to be
    `numbered`, one without it is in its place.

    Raises:
        ModelError: it is not a list with one object for each text.
    """
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise endpoint.error(f"no list of {what}", hint)
    if len(found) != count:
        raise endpoint.error(f"{len(found)} of {count} {what}", TOO_FEW)
    order = [each.get("index", None if numbered else at) for at, each in enumerate(found)]
    if any(type(at) is not int for at in order) or sorted(order) != list(range(count)):
        raise endpoint.error(f"{what} of other texts than were sent")
    return [each for _, each in sorted(zip(order, found, strict=True), key=lambda pair: pair[0])]


def numbers(found: object) -> NDArray[np.float64] | None:
    """A list of finite numbers as float64; None if it is anything else."""
    if not isinstance(found, list) or not found or not all(type(x) in (int, float) for x in found):
        return None
    try:
        made = np.array(found, dtype=np.float64)
    except (OverflowError, ValueError):
        return None
    return made if np.isfinite(made).all() else None
