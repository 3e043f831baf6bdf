"""Refusals in transcripts of Claude Code: whether a call was denied, and the user's comment on it.

Note: the harness reports both as the error of the call. A program can print the same words as its own error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

__all__ = ["feedback", "is_denied"]

Record = Mapping[str, Any]

_DENIED = re.compile(
    r"(?i)\A\s*(?:<tool_use_error>)?(?:error: )?(?:the user (?:doesn't|does not|didn't) want to (?:proceed with this tool use|take this action)\b|"
    r"permission (?:to use \S|for this (?:action|tool use))[^\n]*\bdenied\b|claude requested permissions? to \S|this command requires approval\b|"
    r"this \w+ command contains [^\n]* requires? approval\b|the agent proposed a plan that was rejected by the user\b)"
)
"""Messages of the harness for a refusal by the user or a rule. A file that cannot be opened is an error of the tool."""
_FEEDBACK = re.compile(
    r"(?:the user said:\n|the user provided the following reason for the rejection:\s+)(?P<text>(?!The user wants to clarify).+?)(?:\n\nNote: The user's next message may|\Z)",
    re.DOTALL | re.IGNORECASE,
)
"""The user's comment on a refusal, as the harness words it."""
_OTHER_PROGRAMS = ("Bash", "PowerShell", "Task", "Agent", "WebFetch", "Skill", "mcp__")
"""Tools whose errors may be words of other programs: a user's comment in them is a proposal, unless a field of the
record attributes it to the user.
"""


def feedback(record: Record, tool: str, text: str) -> tuple[str, str]:
    """The user's comment on a refusal: from a field of the record, else from the error if only the harness can have
    written it. Second, such a comment if another program can have written it.
    """
    given, reason = record.get("userFeedback"), _FEEDBACK.search(text)
    by_user = (
        str(record.get("toolDenialKind")).startswith("user") or record.get("toolUseResult") == "User rejected tool use"
    )
    if isinstance(given, str) and given.strip():
        return given, ""
    words = reason["text"] if reason else ""
    return (words, "") if by_user or not tool.startswith(_OTHER_PROGRAMS) else ("", words)


def is_denied(record: Record, tool: str, text: str, *, failed: bool) -> bool:
    """Whether the user or a rule of the harness refused a call: by a field of the record, else by the message of the
    harness. Errors of an MCP server are its own words.
    """
    kind = record.get("toolDenialKind")
    if isinstance(kind, str):
        return kind not in ("interrupted", "cancelled")
    if record.get("toolUseResult") == "User rejected tool use":
        return True
    return failed and not tool.startswith("mcp__") and bool(_DENIED.match(text))
