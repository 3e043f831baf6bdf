"""`serve`: a server for other programs, over HTTP or MCP."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from .options import PresetFlag, given, settings_of
from .output import EXIT, emit

__all__ = ["register"]

PORT = 8765


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(serve)


def serve(
    mcp: Annotated[
        bool, typer.Option("--mcp", help="Serve MCP instead, statelessly at /mcp, for one project.")
    ] = False,
    stdio: Annotated[bool, typer.Option("--stdio", help="Serve MCP on standard input and output.")] = False,
    host: Annotated[str, typer.Option(help="Address to listen on; remote clients need tokens.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 = any free port.")] = PORT,
    openapi: Annotated[bool, typer.Option("--openapi", help="Print the OpenAPI document and exit.")] = False,
    preset: PresetFlag = None,
) -> int:
    """Serve retrieval over HTTP or MCP. Bearer tokens in the grants file map to principals; --json shows the address or scope without serving (extra `serve`)."""
    _expect_extra("fastapi", "uvicorn", *(["mcp"] * (mcp or stdio)))
    settings = settings_of("corpus", "runs")
    if mcp or stdio:
        from ..servers import mcp_server

        if given("json"):
            emit({"transport": "stdio" if stdio else "http", **mcp_server.scope_of(settings)})
        elif stdio:
            mcp_server.serve_stdio(settings, preset=preset)
        else:
            mcp_server.serve_http(settings, host, port, preset=preset)
        return EXIT["ok"]
    from ..servers import http_app

    if openapi:
        emit(http_app.application(settings, preset=preset).openapi())
    elif given("json"):
        emit({"host": host, "port": port})
    else:
        http_app.serve(settings, host, port, preset=preset)
    return EXIT["ok"]


def _expect_extra(*modules: str) -> None:
    """Refuse to start a server whose packages are not installed.

    Raises:
        EngineError: a module of the extra is missing.
    """
    from importlib.util import find_spec

    from ...nodes.errors import EngineError

    missing: list[Any] = [module for module in modules if find_spec(module) is None]
    if missing:
        hint = "pip install 'scoped-retrieval[serve]'"
        raise EngineError(f"Expected {missing[0]}, got no such package - at the extra serve", hint=hint)
