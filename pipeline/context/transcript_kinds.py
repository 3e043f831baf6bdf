"""Detects the agent that wrote a transcript, for the importers and for the hint if one is passed as a log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["kind_of"]


def kind_of(records: Sequence[dict[str, Any]]) -> str | None:
    """The agent that wrote these records; None for other records."""
    for record in records[:50]:
        if "sessionId" in record or "parentUuid" in record:
            return "claude-code"
        if record.get("type") in ("session_meta", "response_item", "event_msg", "turn_context"):
            return "codex"
        if record.get("type") in ("function_call", "local_shell_call", "reasoning") and "message" not in record:
            return "codex"
        if record.get("type") == "message" and isinstance(record.get("content"), list):
            return "codex"
    return None
