"""The guard in front of every route: credential, rate, size and time of the body, trace id, uniform errors, counters.

Reads: the ASGI scope, the current grants file. Gives: `Guard`, which sets `scope["state"]["principal"]`.

If the grants file has tokens, every request needs one of them and asks as its principal. Without tokens, only this
machine is answered, as the principal of the settings; never a request with a token, which could not be checked, and
only under a loopback name: a web page that resolves its own name to the loopback address must not read its visitor's
data. Tokens are compared by SHA-256 in constant time, and are never written.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import logging
import math
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote_to_bytes

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...nodes.errors import InputError
from ..config.grants import WatchedGrants
from ..config.settings import Settings
from .metrics import Metrics
from .problems import RefusedError, body_of, last_frame, problem_of

__all__ = ["Guard", "Rate", "is_loopback", "principal_of", "replayed"]

LOG = logging.getLogger("scoped_retrieval.serve")
OPEN = frozenset({"/v1/health", "/openapi.json"})
"""Routes served without a credential: health and the interface description."""


class Guard:
    """ASGI middleware around the application."""

    def __init__(self, app: ASGIApp, settings: Settings, grants: WatchedGrants, metrics: Metrics) -> None:
        self._app = app
        self._settings = settings
        self._grants = grants
        self._metrics = metrics
        self._rate = Rate(settings["serve_requests_per_minute"])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        trace_id, started, status = uuid.uuid4().hex, time.perf_counter(), 500
        state = scope.setdefault("state", {})
        state["trace_id"] = trace_id
        open_to_all = scope["path"] in OPEN

        async def traced(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["x-trace-id"] = trace_id
                headers["x-content-type-options"] = "nosniff"
                headers.setdefault("cache-control", "no-store")
            await send(message)

        self._metrics.in_work.inc()
        try:
            _expect_text(scope)
            if not open_to_all:
                state["principal"] = self._admitted(scope)
            await self._app(scope, await self._read(scope, receive), traced)
        except Exception as error:  # every error reaches the client in the common form with a trace id
            answered_with, problem = problem_of(error, trace_id)
            if answered_with >= 500:
                LOG.error("trace %s: %s at %s", trace_id, type(error).__name__, last_frame(error))
                if "principal" not in state:  # file paths are not disclosed without a principal
                    message = "Expected a corpus that can be read, got none" if open_to_all else (
                        "Expected a readable grants file, got another"
                    )  # fmt: skip
                    problem = problem.model_copy(update={"message": message})
            headers = {"www-authenticate": "Bearer"} if answered_with == 401 else {}
            if isinstance(error, RefusedError) and error.retry_after is not None:
                headers["retry-after"] = str(error.retry_after)
            response = Response(body_of(problem), answered_with, headers, "application/json")
            await response(scope, receive, traced)
        finally:
            self._metrics.in_work.dec()
            path = getattr(scope.get("route"), "path", "other")
            self._metrics.requests.labels(path, str(status)).inc()
            self._metrics.seconds.labels(path).observe(time.perf_counter() - started)

    def _admitted(self, scope: Scope) -> str:
        """The principal of a request within its rate limit.

        Raises:
            RefusedError: the principal is not authorized, or over the rate limit.
        """
        refused, principal = None, None
        try:
            principal = principal_of(scope, self._grants.now().tokens, self._settings)
        except RefusedError as error:
            refused = error
        if seconds := self._rate.seconds_to_wait(principal):
            most = self._settings["serve_requests_per_minute"]
            message, hint = (
                f"Expected at most {most} requests a minute, got more",
                "`serve_requests_per_minute` sets the limit",
            )
            raise RefusedError(
                429, "too many requests", "rate_limited", message, hint, retry_after=seconds
            ) from refused
        if refused is not None:
            raise refused
        return str(principal)

    async def _read(self, scope: Scope, receive: Receive) -> Receive:
        """The whole body, bounded in time and size, as one message."""
        most, seconds = self._settings["serve_max_bytes"], self._settings["serve_timeout_seconds"]
        length = Headers(scope=scope).get("content-length", "")
        if length.isdecimal() and int(length) > most:
            raise _too_large(most)
        body = bytearray()
        try:
            async with asyncio.timeout(seconds):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise RefusedError(400, "disconnected", "disconnected", "Expected the whole body, got a part")
                    body += message.get("body", b"")
                    more = message.get("more_body", False)
                    if len(body) > most:
                        raise _too_large(most)
        except TimeoutError as error:
            message = f"Expected the body within {seconds} seconds, got a part"
            raise RefusedError(408, "timeout", "body_timeout", message) from error
        return replayed(bytes(body), receive)


def replayed(body: bytes, receive: Receive) -> Receive:
    """Replays an already read body as one ASGI message, then receives from the client."""
    replayed_once = False

    async def again() -> Message:
        nonlocal replayed_once
        if replayed_once:
            return await receive()
        replayed_once = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _expect_text(scope: Scope) -> None:
    """Refuse a path or query that is not UTF-8: decoding would change it.

    Raises:
        InputError: it is not.
    """
    for part, data in (("path", scope.get("raw_path") or b""), ("query string", scope.get("query_string") or b"")):
        try:
            unquote_to_bytes(data).decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(f"Expected UTF-8 in percent escapes, got other bytes - at the {part}") from error


def principal_of(scope: Scope, tokens: Mapping[str, str], settings: Settings) -> str:
    """The principal of a request.

    Raises:
        RefusedError: no credential, or an unknown one; or no token is granted and the client is another machine.
    """
    headers = Headers(scope=scope)
    if tokens or "authorization" in headers:
        return _holder(headers.get("authorization"), tokens)
    client: Any = scope.get("client")
    if client is not None and not is_loopback(client[0]):
        hint = "`tokens` in the grants file lets other machines ask; see docs/serve.md"
        raise RefusedError(401, "unauthorized", "unauthorized", "Expected a client on this machine, got another", hint)
    named = headers.get("host", "localhost")
    origin = headers.get("origin")
    if not is_loopback(_name(named)) or (origin is not None and not is_loopback(_name(origin.partition("://")[2]))):
        message = "Expected a request to a loopback name, got another name"
        raise RefusedError(403, "forbidden", "foreign_name", message, "ask localhost or 127.0.0.1")
    return settings.principal


def _holder(header: str | None, tokens: Mapping[str, str]) -> str:
    scheme, _, token = (header or "").partition(" ")
    presented = hashlib.sha256(token.strip().encode()).hexdigest()
    found = None
    for known, principal in tokens.items():  # compare all of them, for constant time
        if hmac.compare_digest(known, presented):
            found = principal
    if found is None or scheme.lower() != "bearer":
        message = "Expected a bearer token that the grants file knows, got another" if header else (
            "Expected a bearer token, got none"
        )  # fmt: skip
        hint = None if tokens else "the grants file has no `tokens`: send no token, or grant it; see docs/serve.md"
        raise RefusedError(401, "unauthorized", "unauthorized", message, hint)
    return found


def is_loopback(host: str) -> bool:
    """Whether a host is a loopback address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _name(host: str) -> str:
    """A host without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _too_large(most: int) -> RefusedError:
    hint = "`serve_max_bytes` sets the limit"
    return RefusedError(413, "too large", "too_large", f"Expected a body of at most {most:,} bytes, got more", hint)


class Rate:
    """A token bucket per principal: bursts of `per_minute` requests, and as many per minute on average. For one event loop.

    Requests with an unknown credential share one bucket, so guessing tokens does not slow down other callers.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = per_minute
        self._clock = clock
        self._left: dict[str | None, tuple[float, float]] = {}

    def seconds_to_wait(self, principal: str | None) -> int:
        """Counts an allowed request and returns 0; otherwise returns the seconds until the next is allowed."""
        now = self._clock()
        left, at = self._left.get(principal, (float(self._most), now))
        left = min(self._most, left + (now - at) * self._most / 60)
        if left >= 1:
            self._left[principal] = left - 1, now
            return 0
        self._left[principal] = left, now
        return math.ceil((1 - left) * 60 / self._most)
