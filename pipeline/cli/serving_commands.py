"""`serve` and `mcp`: servers for other programs."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from .options import (
    LanesFlag,
    PresetFlag,
    WeightsFlag,
    given,
    settings_of,
)
from .output import EXIT, emit

__all__ = ["register"]

PORT = 8765
TRANSPORTS = ("stdio", "http")


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(serve)
    app.command()(mcp)


def serve(
    host: Annotated[str, typer.Option(help="Address to listen on; remote clients need tokens.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 = any free port.")] = PORT,
    openapi: Annotated[bool, typer.Option("--openapi", help="Print the OpenAPI document and exit.")] = False,
    lanes: LanesFlag = None,
    weights: WeightsFlag = None,
    preset: PresetFlag = None,
) -> int:
    """Serve retrieval over HTTP. Bearer tokens in the grants file map to principals (extra `serve`)."""
    _expect_extra("fastapi", "uvicorn", "prometheus_client")
    from ..servers.http_app import application
    from ..servers.http_app import serve as answer

    settings = settings_of("corpus", "runs", lanes=lanes, weights=weights)
    if openapi:
        emit(application(settings, preset=preset).openapi())
        return EXIT["ok"]
    if given("json"):  # the address, without serving
        emit({"host": host, "port": port})
        return EXIT["ok"]
    answer(settings, host, port, preset=preset)
    return EXIT["ok"]


def mcp(
    transport: Annotated[str, typer.Option(help="stdio, or http (stateless, at /mcp).")] = "stdio",
    host: Annotated[
        str, typer.Option(help="With http, address to listen on; remote clients need tokens.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="With http, port to listen on; 0 = any free port.")
    ] = PORT,
    lanes: LanesFlag = None,
    weights: WeightsFlag = None,
    preset: PresetFlag = None,
) -> int:
    """Run an MCP server for one project. Its tools are retrieval, x-ray, replay and why (extra `serve`)."""
    from ...nodes.errors import InputError

    if transport not in TRANSPORTS:
        raise InputError.one_of(TRANSPORTS, transport, "--transport")
    _expect_extra("mcp", "fastapi", "uvicorn", "prometheus_client")
    settings = settings_of("corpus", "runs", lanes=lanes, weights=weights)
    from ..servers.mcp_server import scope_of, serve_http, serve_stdio

    if given("json"):  # the project and tools, without serving
        emit({"transport": transport, **scope_of(settings)})
        return EXIT["ok"]
    if transport == "http":
        serve_http(settings, host, port, preset=preset)
    else:
        serve_stdio(settings, preset=preset)
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
