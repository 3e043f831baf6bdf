"""Errors in the common form of all interfaces: `error`, `code`, `message`, and optionally a hint and a trace id.

Gives: `problem_of` an exception, with the status of HTTP that goes with it.

Note: an error on the side of the server, with a status from 500, may name its files and addresses: the log has it under the
trace id, and callers get its code alone. The message of an unexpected error may quote evidence; of it the log has the location.
"""

from __future__ import annotations

import logging
from typing import Any

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
    last_frame,
)
from ..views.printed import json_document
from .models import Problem

LOG = logging.getLogger("scoped_retrieval.serve")


class RefusedError(Exception):
    """The server itself refuses a request: its credential, size, time or method."""

    def __init__(self, status: int, error: str, code: str, message: str, hint: str | None = None) -> None:
        self.status = status
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


def problem_of(error: BaseException, trace_id: str) -> tuple[int, Problem]:
    """The status and the body of an error, which is logged if it is on the side of the server."""
    if isinstance(error, RefusedError):
        return error.status, error.problem.model_copy(update={"trace_id": trace_id})
    status, words, code = 500, "internal error", "internal_error"
    message, hint = f"Unexpected {type(error).__name__}", f"search the server log for the trace id {trace_id}"
    known, where = error if isinstance(error, ScopedRetrievalError) else None, dict[str, Any]()
    for found in _KINDS:
        if isinstance(known, found[0]):
            _, status, words, code = found
            message, hint = (
                (known.message, known.hint) if status < 500 else (f"Expected an answer, got none: {words}", hint)
            )
            where = {"at": known.at or None, "choices": [*known.choices] or None} if status < 500 else where
            break
    if status >= 500:
        LOG.error(
            "trace %s: %s at %s: %s", trace_id, type(error).__name__, last_frame(error), known.message if known else ""
        )
    return status, Problem(error=words, code=code, message=message, hint=hint or None, trace_id=trace_id, **where)


def body_of(problem: Problem) -> bytes:
    """A problem as the body of an answer: it may quote input, so it is sanitized like every other answer."""
    return json_document(problem.model_dump(exclude_none=True)).encode()
