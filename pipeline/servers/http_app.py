"""The HTTP application: `routes` behind the `guard`, over one retriever pool.

Gives: `application`, `serve`, which runs it with uvicorn until it is stopped, and `run_app`, which does so with any
application.

Note: on shutdown, no new requests are accepted, those in progress are finished, and the pool is closed. Every snapshot
is stored before its answer leaves, so a killed server loses no answered request.
"""

from __future__ import annotations

import logging
import signal
import sys
from collections import defaultdict
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from ...nodes.errors import InputError
from ..config.grants import load_grants
from ..config.settings import Settings
from .http_guard import Guard, is_loopback
from .http_routes import ROUTER
from .problems import RefusedError, body_of, problem_of
from .retriever_pool import RetrieverPool

_LONGEST = 200
"""Maximum length of a path that an error quotes."""


def application(settings: Settings, *, preset: Path | None = None) -> FastAPI:
    """The application; its resources are opened at startup and closed at shutdown."""
    pool = RetrieverPool(settings, preset=preset)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        pool.ready()
        app.state.threads = defaultdict(lambda: ThreadPoolExecutor(settings["serve_threads"], "serve"))
        try:
            yield
        finally:
            for threads in app.state.threads.values():
                threads.shutdown(wait=True)
            pool.close()

    app = FastAPI(
        title="scoped-retrieval",
        version=version("scoped-retrieval"),
        description="Scoped retrieval with a snapshot of every decision. Bearer tokens map to principals.",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
    )
    app.state.retrievers, app.state.settings = pool, settings
    app.include_router(ROUTER)
    app.add_middleware(Guard, settings=settings)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _refused)
    return app


def serve(settings: Settings, host: str, port: int, *, preset: Path | None = None) -> None:
    """Answer until SIGINT or SIGTERM.

    Raises:
        InputError: other machines could reach the address, and no token is granted.
        StoreError: there is no corpus.
    """
    expect_reachable(settings, host)
    app = application(settings, preset=preset)
    app.state.retrievers.ready()  # fail before the port is opened
    run_app(app, settings, host, port)


def expect_reachable(settings: Settings, host: str) -> None:
    """Refuse a server that other machines could reach without a token.

    Raises:
        InputError: the address is not a loopback address, and no token is granted.
    """
    if not is_loopback(host) and not load_grants(settings.grants_path).tokens:
        hint = "`tokens` in the grants file lets other machines ask; see docs/serve.md"
        raise InputError.described("a loopback address where no token is granted", host, "--host", hint=hint)


def run_app(app: Any, settings: Settings, host: str, port: int) -> None:
    """Run an application until SIGINT or SIGTERM; requests in progress are finished."""
    import uvicorn

    seconds = settings["serve_timeout_seconds"]
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s", force=True
    )
    for sent in (signal.SIGINT, signal.SIGTERM):  # sent again after shutdown: the requested end
        signal.signal(sent, lambda *_: None)
    uvicorn.run(
        app, host=host, port=port, log_config=None, access_log=False, server_header=False,
        limit_concurrency=settings["serve_max_connections"], timeout_graceful_shutdown=seconds,
    )  # fmt: skip


def _answer(request: Request, error: Exception) -> Response:
    status, problem = problem_of(error, request.state.trace_id)
    return Response(body_of(problem), status, media_type="application/json")


async def _invalid(request: Request, error: Exception) -> Response:
    """The answer to a missing or invalid parameter, in the package's form."""
    assert isinstance(error, RequestValidationError)
    first: dict[str, Any] = dict(error.errors()[0])
    name = str(first["loc"][-1])
    if first["type"] == "missing":
        return _answer(request, InputError.described("a value", "none", name))
    expected = f"{str(first['msg']).lower().removeprefix('input should be ').removeprefix('value error, ')}"
    return _answer(request, InputError.expected(expected, first.get("input"), name))


async def _refused(request: Request, error: Exception) -> Response:
    """The answer to an unknown route or method."""
    assert isinstance(error, HTTPException)
    words, code = {404: ("not found", "no_such_route"), 405: ("method not allowed", "method_not_allowed")}.get(
        error.status_code, ("invalid request", "invalid_request")
    )
    message = f"Expected a route and one of its methods, got {request.method} - at {request.url.path[:_LONGEST]}"
    refused = RefusedError(error.status_code, words, code, message, "/openapi.json lists every route")
    response = _answer(request, refused)
    response.headers.update(error.headers or {})
    return response
