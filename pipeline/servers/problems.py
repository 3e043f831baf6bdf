"""Errors in the common form of all interfaces: `error`, `code`, `message`, and optionally a hint and a trace id.

Gives: `problem_of` an exception, with the status of HTTP that goes with it.

Note: the message of an unexpected error may quote evidence; it is neither shown nor logged, only its location.
"""

from __future__ import annotations

from pathlib import Path

from ...nodes.errors import (
    AccessError,
    BusyError,
    EngineError,
    InputError,
    ModelError,
    PolicyError,
    ScopedRetrievalError,
    StoreError,
    VerificationError,
)
from ..views.printed import json_document
from .models import Problem

__all__ = ["RefusedError", "body_of", "last_frame", "problem_of"]


class RefusedError(Exception):
    """The server itself refuses a request: its credential, rate, size, time or method."""

    def __init__(
        self,
        status: int,
        error: str,
        code: str,
        message: str,
        hint: str | None = None,
        *,
        retry_after: int | None = None,
    ) -> None:
        self.status = status
        self.retry_after = retry_after
        self.problem = Problem(error=error, code=code, message=message, hint=hint)
        super().__init__(message)


_KINDS: tuple[tuple[type[ScopedRetrievalError], int, str, str], ...] = (
    (PolicyError, 503, "policy unavailable", "policy_unavailable"),
    (InputError, 400, "invalid request", "invalid_request"),
    (AccessError, 404, "not found", "not_found"),
    (BusyError, 503, "busy", "busy"),
    (StoreError, 503, "store unavailable", "store_unavailable"),
    (ModelError, 503, "model unavailable", "model_unavailable"),
    (EngineError, 503, "engine unavailable", "engine_unavailable"),
    (VerificationError, 500, "verification failed", "verification_failed"),
)
"""The first match applies. Absent objects and those of others are both "not found"."""


def problem_of(error: BaseException, trace_id: str | None = None) -> tuple[int, Problem]:
    """The status and the body of an error."""
    if isinstance(error, RefusedError):
        return error.status, error.problem.model_copy(update={"trace_id": trace_id})
    if isinstance(error, ScopedRetrievalError):
        for kind, status, words, code in _KINDS:
            if isinstance(error, kind):
                return status, Problem(
                    error=words, code=code, message=error.message, hint=error.hint or None, trace_id=trace_id
                )
    message = f"Unexpected {type(error).__name__}"
    hint = "search the server log for the trace id"
    return 500, Problem(error="internal error", code="internal_error", message=message, hint=hint, trace_id=trace_id)


def body_of(problem: Problem) -> bytes:
    """A problem as the body of an answer: it may quote input, so it is sanitized like every other answer."""
    return json_document(problem.model_dump(exclude_none=True)).encode()


def last_frame(error: BaseException) -> str:
    """Module and line of the origin of an error."""
    frame = error.__traceback__
    while frame and frame.tb_next:
        frame = frame.tb_next
    return f"{Path(frame.tb_frame.f_code.co_filename).name}:{frame.tb_lineno}" if frame else "an unknown place"
