"""The context policy: selects the model input of each round and records every decision in a ledger.

- `policy`: `ContextPolicy.project`, over the `line` (the second Hamilton graph); `projection`: its result
- `inputs`, `rules`, `phases`: rules, memories, tools, snapshots, budgets and phases, read strictly; `flags`: zones,
  generated files and public interfaces
- `events`: session events as tables, over `event_rows` (one event as a row), `observations` (summaries of outputs), `masking` (masked secrets, normalized paths) and `artifacts` (long texts by reference)
- `shapes`: neutral, OpenAI and Anthropic messages, and the ledger of document 003
- `log`: recorded sessions, from a log folder or a file
- `store`: recorded projections; `why`: what became of a source; `input_diff`: the difference of two inputs
- `projections`: projections for the command line
- `transcripts`: sessions of Claude Code and Codex CLI as session logs

`ContextPolicy` is imported from here and loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .policy import ContextPolicy
    from .projection import Projection

__all__ = ["ContextPolicy", "Projection"]

_HOMES = {"ContextPolicy": "policy", "Projection": "projection"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
