"""Requests of one principal, without a corpus."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa
from scoped_retrieval.pipeline.config.grants import grant_all
from scoped_retrieval.pipeline.requests.resolve import RequestResolver


def resolve_requests(
    rows: Iterable[Any], *, principal: str, asked_at: datetime, defaults: Mapping[str, Any] | None = None, **fields: Any
) -> tuple[pa.Table, pa.Table]:
    """REQUESTS and FAILURES; `fields` are those of the resolver."""
    nothing: Any = None
    grants = grant_all(principal, "shop")
    return RequestResolver(principal, nothing, grants, **fields).resolve(rows, asked_at, lambda _: defaults or {})
