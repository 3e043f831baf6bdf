"""The HTTP transport of the MCP server: one JSON-RPC message per POST, and nothing else.

Reads: the ASGI scope and the whole body, which the guard has read. Gives: `OneMessage`, ASGI middleware in front of the
SDK. Each request is independent, so there is no stream to open with GET and no session to end with DELETE.
"""

from __future__ import annotations

from typing import Any

from mcp_types import INVALID_REQUEST, PARSE_ERROR, jsonrpc_message_adapter
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ...nodes.errors import kind_of
from ..parsing.strict_json import strict_json
from ..views.printed import json_document
from .http_guard import replayed

__all__ = ["PATH", "OneMessage"]

PATH = "/mcp"


class OneMessage:
    """Refuses unsupported methods and bodies with JSON-RPC errors in the package's form."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != PATH:
            await self._app(scope, receive, send)
            return
        if scope["method"] != "POST":
            message = f"Expected POST, got {scope['method']}: each request is independent, and no stream is opened - at {PATH}"
            await _refused(405, INVALID_REQUEST, message, {"allow": "POST"})(scope, receive, send)
            return
        body = await Request(scope, receive).body()
        if (error := _wrong(body)) is not None:
            await _refused(400, *error, {})(scope, receive, send)
            return
        await self._app(scope, replayed(body, receive), send)


def _wrong(body: bytes) -> tuple[int, str] | None:
    """Code and message if the body is not a single message."""
    try:
        value: Any = strict_json(body.decode("utf-8"))
    except ValueError:
        return PARSE_ERROR, "Expected JSON in UTF-8 without duplicate keys, got other bytes - at body"
    try:
        jsonrpc_message_adapter.validate_python(value)
    except ValidationError:
        got = "another object" if isinstance(value, dict) else kind_of(value)
        expected = "one JSON-RPC 2.0 message, an object with jsonrpc, id, method and params"
        return INVALID_REQUEST, f"Expected {expected}, got {got} - at body"
    return None


def _refused(status: int, code: int, message: str, headers: dict[str, str]) -> Response:
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}
    return Response(json_document(error), status, headers, "application/json")
