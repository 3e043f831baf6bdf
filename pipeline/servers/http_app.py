"""The HTTP application: the routes behind the `guard`, over one retriever pool.

Gives: `application`, `serve`, which runs it with uvicorn until it is stopped, and `run_app`, which does so with any
application. A route has parameters in, one call of the retriever pool, its result as JSON: the bytes that the command line
prints. Threads of the pool do the work, those of one principal apart from those of others. A call that exceeds its time is
answered with 504, and ends before its next step.

Note: on shutdown, no new requests are accepted, those in progress are finished, and the pool is closed. Every snapshot
is stored before its answer leaves, so a killed server loses no answered request.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from ...nodes.errors import AccessError, InputError, StoreError
from ..config.grants import load_grants
from ..config.opening import head_of
from ..config.settings import Settings
from ..parsing.documents import checked
from ..parsing.strict_json import strict_json
from ..views.printed import json_document
from ..views.recall_xray import envelope
from .http_guard import HEADER, OPEN, Guard, is_loopback
from .models import (
    Answer,
    Answers,
    Appended,
    Appending,
    Envelope,
    Health,
    Problem,
    RetrievalRequest,
    Snapshots,
    Why,
    schema_of,
)
from .problems import RefusedError, body_of, problem_of
from .renderings import FORMATS, XRAY, Rendering, rendered
from .retriever_pool import MOST_LISTED, PrincipalSession, RetrieverPool

T = TypeVar("T")


async def _expect_parameters(request: Request) -> None:
    """Refuse unknown query parameters: a misspelled one would be ignored silently."""
    known = [parameter.alias for parameter in request.scope["route"].dependant.query_params]
    for name in request.query_params:
        if name not in known:
            raise InputError.one_of(known or ["no parameter"], name, "the query string")
    repeated = [name for name in known if len(request.query_params.getlist(name)) > 1]
    if repeated:
        raise InputError.described("each parameter once", "it twice", repeated[0])


async def _expect_no_browser(request: Request) -> None:
    """Refuse a GET without a token that a page of another site may have sent: older browsers state nothing with it.

    Raises:
        RefusedError: nothing shows that a program or a page of this server sent it.
    """
    shown = any(name in request.headers for name in ("sec-fetch-site", HEADER, "authorization"))
    if request.state.tokenless and request.method == "GET" and not shown and request.url.path not in OPEN:
        message = f"Expected the header {HEADER} in a GET without a token, got none"
        raise RefusedError(403, "forbidden", "no_header", message, f"send `{HEADER}: 1`; see docs/serve.md")


async def _asker(request: Request) -> PrincipalSession:
    return request.app.state.retrievers.session_of(request.state.principal)


Asker = Annotated[PrincipalSession, Depends(_asker)]
ROUTER = APIRouter(
    dependencies=[Depends(_expect_no_browser), Depends(_expect_parameters)],
    responses={
        "4XX": {
            "model": Problem,
            "description": "The request, its credential, or what it names is not what was expected.",
        },
        "5XX": {"model": Problem, "description": "The server could not answer."},
    },
)


def _body_schema(schema: Any) -> dict[str, Any]:
    """What the interface says of a body; routes parse it themselves, so that no key may be given twice."""
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


_ASKED = schema_of(RetrievalRequest)


def _formats(**model: Any) -> dict[int | str, dict[str, Any]]:
    """What the interface says of an answer that is JSON or text."""
    texts = {f"text/{kind}": {"schema": {"type": "string"}} for kind in ("plain", "markdown", "html")}
    content = texts | {"application/json": {}}
    return {200: {"description": "The snapshot in this format.", "content": content, **model}}


@ROUTER.post(
    "/v1/retrieve",
    responses={200: {"model": Answer | Answers}},
    openapi_extra=_body_schema({"oneOf": [_ASKED, {"type": "array", "items": _ASKED}]}),
)
async def retrieve(request: Request, asker: Asker) -> Response:
    """Answer one request, or a list of them."""
    asked = strict_json(await request.body(), "body")
    if not isinstance(asked, dict | list):
        raise InputError.of_kind("a request or a list of requests", asked, "body")
    if isinstance(asked, dict):
        return _json(await _done(request, lambda: asker.retrieve(asked)))
    most = request.app.state.settings["serve_max_requests"]
    if not asked or len(asked) > most:
        raise InputError.described(f"1 to {most} requests", str(len(asked)), "requests")

    async def one(place: int, row: Any) -> dict[str, Any]:
        try:
            if not isinstance(row, dict):
                raise InputError.of_kind("an object", row, f"requests[{place}]")
            return await _done(request, lambda: asker.retrieve(row))
        except Exception as error:  # a row that fails in a known way does not affect the others
            status, problem = problem_of(error, request.state.trace_id)
            if status >= 500 and problem.code == "internal_error":
                raise
            message = problem.message.replace(" - at request", f" - at requests[{place}]")
            return problem.model_copy(update={"message": message}).model_dump(exclude_none=True)

    return _json({"results": await asyncio.gather(*(one(*numbered) for numbered in enumerate(asked)))})


@ROUTER.get("/v1/recall/xray", responses={200: {"model": Envelope}}, operation_id="recall_xray")
@ROUTER.get("/engram/v1/recall/xray", responses={200: {"model": Envelope}}, operation_id="engram_recall_xray")
async def recall_xray(
    request: Request,
    asker: Asker,
    q: Annotated[str, Query(description="the question")],
    session: Annotated[str | None, Query(description="the session of the request")] = None,
    namespace: Annotated[str | None, Query(description="narrows to one namespace")] = None,
    budget: Annotated[int | None, Query(ge=1, description="characters of the block")] = None,
) -> Response:
    """Ask, and show why each item surfaced: the x-ray of document 002."""
    found, _ = await _done(request, lambda: asker.recall_xray(q, session, namespace, budget))
    answer = _json(found)
    answer.headers.update({"cache-control": "private, max-age=60", "vary": "authorization"})
    return answer


@ROUTER.get("/v1/recall/explain", responses=_formats(model=Envelope), operation_id="recall_explain")
@ROUTER.get("/engram/v1/recall/explain", responses=_formats(model=Envelope), operation_id="engram_recall_explain")
async def recall_explain(
    request: Request,
    asker: Asker,
    session: Annotated[
        str | None, Query(description="session whose last recall to show; default: your last one")
    ] = None,
    format: Annotated[str, Query(json_schema_extra={"enum": list(XRAY.values)})] = "json",  # noqa: A002 - the name of the query parameter
) -> Response:
    """The last recall, of a session or of your own, as its x-ray; nothing is retrieved again."""
    if format not in XRAY.values:
        raise InputError.one_of(XRAY.values, format, "format")

    def last() -> Rendering:
        try:
            return rendered(asker.settings, "@" if session is None else f"@session:{session}", format)
        except AccessError:
            nothing = envelope(None) if format == "json" else "no snapshot of this session that you may read\n"
            return Rendering.of("", format, nothing)

    return await _rendered(request, last)


@ROUTER.post("/v1/evidence", responses={200: {"model": Appended}}, openapi_extra=_body_schema(schema_of(Appending)))
async def append(request: Request, asker: Asker) -> Response:
    """Add rows of your own, where a grant lets you append."""
    made, errors = checked(Appending, strict_json(await request.body(), "body"), "body")
    if made is None:
        raise InputError("\n".join(errors))
    asked = made.model_dump(exclude_unset=True)
    return _json(await _done(request, lambda: asker.append(**asked)))


@ROUTER.get("/v1/snapshots", responses={200: {"model": Snapshots}})
async def snapshots(
    request: Request,
    asker: Asker,
    run: Annotated[str | None, Query(description="of this run")] = None,
    status: Annotated[str | None, Query(description="of this status")] = None,
    last: Annotated[
        int, Query(ge=1, le=MOST_LISTED, description="maximum number of snapshots; the latest are listed")
    ] = 100,
) -> Response:
    """List the snapshots that you may read, oldest first."""
    return _json(await _done(request, lambda: asker.snapshots(run, status, last)))


@ROUTER.get("/v1/snapshots/{snapshot_id}", responses=_formats())
async def snapshot(
    request: Request,
    asker: Asker,
    snapshot_id: str,
    format: Annotated[str, Query(json_schema_extra={"enum": list(FORMATS.values)})] = "json",  # noqa: A002 - the name of the query parameter
) -> Response:
    """A stored snapshot; by default the x-ray of document 002."""
    return await _rendered(request, lambda: rendered(asker.settings, snapshot_id, format))


@ROUTER.get("/v1/snapshots/{snapshot_id}/why", responses={200: {"model": Why}})
async def why(
    request: Request,
    asker: Asker,
    snapshot_id: str,
    evidence: Annotated[
        str, Query(description="a label of its block such as doc#1, an evidence id, a path, or path#line")
    ],
) -> Response:
    """Where a row was lost, which rule decided, and what would admit it."""
    return _json(await _done(request, lambda: asker.why(snapshot_id, evidence)))


@ROUTER.get("/v1/health", responses={200: {"model": Health}})
async def health(request: Request) -> Response:
    """Whether the server answers and finds its corpus."""
    if await _done(request, lambda: head_of(request.app.state.settings)) is None:
        raise StoreError("Expected a corpus, got none that can be opened - at corpus")
    return _json({"status": "ok", "version": version("scoped-retrieval")})


async def _done(request: Request, work: Callable[[], T]) -> T:
    """The result of the work, done by a thread of the principal, if the route has one."""
    return await request.app.state.retrievers.done(getattr(request.state, "principal", None), work)


async def _rendered(request: Request, work: Callable[[], Rendering]) -> Response:
    """A stored snapshot in a format, rendered by a thread."""
    found = await _done(request, work)
    withheld = {"x-withheld": "; ".join(found.withheld)} if found.withheld else None
    return Response(found.text.encode(), media_type=found.media_type, headers=withheld)


def _json(value: Any) -> Response:
    return Response(json_document(value).encode(), media_type="application/json")


_LONGEST = 200
"""Maximum length of a path that an error quotes."""


def application(settings: Settings, *, preset: Path | None = None) -> FastAPI:
    """The application; its resources are opened at startup and closed at shutdown."""
    pool = RetrieverPool(settings, preset=preset)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        pool.ready()
        try:
            yield
        finally:
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
    """Run an application until SIGINT or SIGTERM; requests in progress are finished.

    Raises:
        InputError: the address is unknown, or its port is in use.
    """
    import uvicorn

    async def free() -> None:
        (await asyncio.get_running_loop().create_server(asyncio.Protocol, host, port)).close()

    try:
        asyncio.run(free())
    except OSError as error:
        at, hint = f"--host {host} --port {port}", "`--port 0` takes any free port."
        raise InputError.described("a free address", error.strerror or str(error), at, hint=hint) from error

    seconds = settings["serve_timeout_seconds"]
    for sent in (signal.SIGINT, signal.SIGTERM):  # sent again after shutdown: the requested end
        signal.signal(sent, lambda *_: None)
    uvicorn.run(
        app, host=host, port=port, log_config=None, log_level="info", access_log=False, server_header=False,
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
