"""The guard in front of every route: pages, credential, size and time of the body, trace id, uniform errors.

Reads: the ASGI scope, the current grants file. Gives: `Guard`, which sets `scope["state"]["principal"]`.

Whether the grants file has `tokens` is decided when the server starts. With tokens, every request needs one of them and
asks as its principal; where none is left, every request is refused. Without, only this machine is answered, as the principal of the
settings, under a loopback name; never a request with a token, which could not be checked. Tokens are compared by
SHA-256 in constant time, and are never written.

No request of another site's page is answered, on any route: browsers state the site that a request comes from. Of older
ones, which state nothing with a GET, the routes refuse it.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import time
import uuid
from collections.abc import Mapping
from urllib.parse import unquote_to_bytes, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...nodes.errors import InputError
from ..config.grants import load_grants
from ..config.settings import Settings
from ..encoders.choice import is_loopback
from .problems import RefusedError, body_of, problem_of

OPEN = frozenset({"/v1/health", "/openapi.json"})
"""Routes served without a credential: health and the interface description."""
HEADER = "x-scoped-retrieval"
"""A page of another site cannot send it without asking first, which no route allows."""
_HEADERS = {
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "same-origin",
    "content-security-policy": "frame-ancestors 'none'",
}
"""Of every response; what a page may load, it says itself."""
_PORTS = {"http": 80, "https": 443}


class Guard:
    """ASGI middleware around the application."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings
        self._tokenless = load_grants(settings.grants_path).tokens is None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":  # no route has one
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        trace_id = uuid.uuid4().hex
        state = scope.setdefault("state", {})
        state |= {"trace_id": trace_id, "tokenless": self._tokenless}

        async def traced(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["x-trace-id"] = trace_id
                headers.update(_HEADERS)
                headers.setdefault("cache-control", "no-store")
            await send(message)

        try:
            _expect_text(scope)
            _expect_no_page(scope, self._tokenless)
            if scope["path"] not in OPEN:
                state["principal"] = self._principal_of(scope)
            await self._app(scope, self._bounded(scope, receive), traced)
        except Exception as error:  # every error reaches the client in the common form with a trace id
            answered_with, problem = problem_of(error, trace_id)
            headers = {"www-authenticate": "Bearer"} if answered_with == 401 else {}
            response = Response(body_of(problem), answered_with, headers, "application/json")
            await response(scope, receive, traced)

    def _principal_of(self, scope: Scope) -> str:
        """The principal of a request.

        Raises:
            RefusedError: no credential, or an unknown one; or no token is granted and the client is another machine.
        """
        headers, tokens, client = (
            Headers(scope=scope),
            load_grants(self._settings.grants_path).tokens,
            scope.get("client"),
        )
        if not self._tokenless or "authorization" in headers:
            return _holder(headers.get("authorization"), tokens or {})
        if tokens is not None:
            message = "Expected a grants file without `tokens`, as at the start, got one with them"
            raise RefusedError(401, "unauthorized", "unauthorized", message, "restart the server to use the tokens")
        if client is not None and not is_loopback(client[0]):
            hint = "`tokens` in the grants file lets other machines ask; see docs/serve.md"
            message = "Expected a client on this machine, got another"
            raise RefusedError(401, "unauthorized", "unauthorized", message, hint)
        return self._settings.principal

    def _bounded(self, scope: Scope, receive: Receive) -> Receive:
        """The body, bounded in time and size."""
        most, seconds = self._settings["serve_max_bytes"], self._settings["serve_timeout_seconds"]
        length, read = Headers(scope=scope).get("content-length", ""), 0
        if length.isdecimal() and int(length) > most:
            raise _too_large(most)

        ends: float | None = time.monotonic() + seconds

        async def bounded() -> Message:
            nonlocal read, ends
            try:
                message = await asyncio.wait_for(receive(), ends and ends - time.monotonic())
            except TimeoutError as error:
                late = f"Expected the body within {seconds} seconds, got a part"
                raise RefusedError(408, "timeout", "body_timeout", late) from error
            if ends and message["type"] == "http.disconnect":
                raise RefusedError(400, "disconnected", "disconnected", "Expected the whole body, got a part")
            read += len(message.get("body", b""))
            ends = ends if message.get("more_body") else None
            if read > most:
                raise _too_large(most)
            return message

        return bounded


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


def _expect_no_page(scope: Scope, tokenless: bool) -> None:
    """Refuse a request that a page of another site may have sent.

    Raises:
        RefusedError: a page may have sent it, or the name of the host is not that of this machine.
    """
    headers = Headers(scope=scope)
    sites, own = headers.getlist("sec-fetch-site"), _origin(f"{scope['scheme']}://{headers.get('host', 'localhost')}")
    if tokenless and (own is None or not is_loopback(own[1])):
        message, hint = "Expected a request to a loopback name, got another name", "ask localhost or 127.0.0.1"
        raise RefusedError(403, "forbidden", "foreign_name", message, hint)
    foreign = tokenless and any(_origin(origin) != own for origin in headers.getlist("origin"))
    if foreign or any(site not in ("same-origin", "none") for site in sites):
        message = "Expected a request of this server's own pages or of a program, got one of another page"
        raise RefusedError(403, "forbidden", "foreign_page", message)


def _origin(url: str) -> tuple[str, str, int | None] | None:
    """Scheme, host and port of a URL; None if it has no host."""
    try:
        parts = urlsplit(url)
        return (parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)) if parts.hostname else None
    except ValueError:
        return None


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
        raise RefusedError(401, "unauthorized", "unauthorized", message)
    return found


def _too_large(most: int) -> RefusedError:
    hint = "`serve_max_bytes` sets the limit"
    return RefusedError(413, "too large", "too_large", f"Expected a body of at most {most:,} bytes, got more", hint)
