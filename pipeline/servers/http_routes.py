"""The HTTP routes: parameters in, one call of the retriever pool, its result as JSON.

Threads do the work, those of one principal apart from those of others. A call that exceeds its time is answered with 504,
and ends before its next step. Every answer has the same bytes that the command line prints.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib.metadata import version
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BeforeValidator

from ...nodes.errors import InputError
from ..deadline import within
from ..parsing.documents import checked
from ..parsing.strict_json import strict_json
from ..views.printed import json_document
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
from .problems import RefusedError, problem_of
from .renderings import FORMATS, XRAY, Rendering
from .retriever_pool import MOST_LISTED, PrincipalSession, expect_healthy

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


async def _asker(request: Request) -> PrincipalSession:
    return request.app.state.retrievers.session_of(request.state.principal)


Asker = Annotated[PrincipalSession, Depends(_asker)]
ROUTER = APIRouter(
    dependencies=[Depends(_expect_parameters)],
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
_FORMATS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The snapshot in this format.",
        "content": {
            "application/json": {},
            "text/plain": {"schema": {"type": "string"}},
            "text/markdown": {"schema": {"type": "string"}},
            "text/html": {"schema": {"type": "string"}},
        },
    }
}


def _digits(value: Any) -> Any:
    """Accepts decimal digits only: not `+5`, ` 5`, `1_0` or `5.0`."""
    if isinstance(value, str) and not (value.isascii() and value.isdigit()):
        raise ValueError("digits alone")
    return value


DIGITS = BeforeValidator(_digits)
_EXPLAINED: dict[int | str, dict[str, Any]] = {
    200: {
        "model": Envelope,
        "content": {"text/plain": {"schema": {"type": "string"}}, "text/markdown": {"schema": {"type": "string"}}},
    }
}


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
            message = problem.message.replace(" - at requests[0]", f" - at requests[{place}]")
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
    budget: Annotated[int | None, DIGITS, Query(ge=1, description="characters of the block")] = None,
) -> Response:
    """Ask, and show why each item surfaced: the x-ray of document 002."""
    found, _ = await _done(request, lambda: asker.recall_xray(q, session, namespace, budget))
    answer = _json(found)
    answer.headers.update({"cache-control": "private, max-age=60", "vary": "authorization"})
    return answer


@ROUTER.get("/v1/recall/explain", responses=_EXPLAINED, operation_id="recall_explain")
@ROUTER.get("/engram/v1/recall/explain", responses=_EXPLAINED, operation_id="engram_recall_explain")
async def recall_explain(
    request: Request,
    asker: Asker,
    session: Annotated[str | None, Query(description="session whose last recall to show; default: any session")] = None,
    format: Annotated[str, Query(json_schema_extra={"enum": list(XRAY.values)})] = "json",  # noqa: A002 - the name of the query parameter
) -> Response:
    """The last recall, of a session or of all, as its x-ray; nothing is retrieved again."""
    if format not in XRAY.values:
        raise InputError.one_of(XRAY.values, format, "format")
    return await _rendered(request, lambda: asker.explained(session, format))


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
        int, DIGITS, Query(ge=1, le=MOST_LISTED, description="maximum number of snapshots; the latest are listed")
    ] = 100,
) -> Response:
    """List the snapshots that you may read, oldest first."""
    return _json(await _done(request, lambda: asker.snapshots(run, status, last)))


@ROUTER.get("/v1/snapshots/{snapshot_id}", responses=_FORMATS)
async def snapshot(
    request: Request,
    asker: Asker,
    snapshot_id: str,
    format: Annotated[str, Query(json_schema_extra={"enum": list(FORMATS.values)})] = "json",  # noqa: A002 - the name of the query parameter
) -> Response:
    """A stored snapshot; by default the x-ray of document 002."""
    return await _rendered(request, lambda: asker.rendering(snapshot_id, format))


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
    await _done(request, lambda: expect_healthy(request.app.state.settings))
    return _json({"status": "ok", "version": version("scoped-retrieval")})


async def _done(request: Request, work: Callable[[], T]) -> T:
    """The result of the work, done by a thread of the principal within the time limit."""
    seconds = request.app.state.settings["serve_timeout_seconds"]
    threads = request.app.state.threads[getattr(request.state, "principal", None)]
    running = asyncio.get_running_loop().run_in_executor(threads, within(seconds, work))
    try:
        return await asyncio.wait_for(running, seconds)
    except TimeoutError as error:
        raise RefusedError(
            504, "timeout", "timeout", f"Expected an answer within {seconds} seconds, got none"
        ) from error


async def _rendered(request: Request, work: Callable[[], Rendering]) -> Response:
    """A stored snapshot in a format, rendered by a thread."""
    found = await _done(request, work)
    return Response(found.text.encode(), media_type=found.media_type)


def _json(value: Any) -> Response:
    return Response(json_document(value).encode(), media_type="application/json")
