"""The context policy: what the model sees this round, with a ledger for every decision.

- `policy`: `ContextPolicy.project`, over the `line` (the second Hamilton graph); `projection`: what comes back
- `inputs`, `rules`, `phases`: rules, memories, tools, snapshots, budgets and phases, read strictly
- `events`: session events as tables, over `event_rows` (one event as rows); `masking`: masks and spellings of what comes in; `artifacts`: long texts by reference; `flags`: whether a file is made by a tool, or an interface; `tool_names`: what a tool does, by its name; `observations`: outputs
  of tools, normalized and summarized; `diffs`: changed lines in short
- `checks` and `outcomes`: which commands check, over `check_lines`, `check_programs` and `runners`, and how that came out, over `summaries`, `outcome_fields` (what fields say) and `verified_parts` (what part a verification speaks of); `changes`: files that a command may change; `work_places`: on which code a check ran, over `git_lines` (what Git was to do, and did); `shell`: command lines as words
- `permissions`: what a denial or a grant is about, and whether an event says yes
- `before_horizon`: rows of the ledger for what a turn does not look at
- `shapes`: neutral, OpenAI and Anthropic messages; the ledger of document 003
- `sessions`: a recorded session, from a log or a file; `log`: session logs on disk, over their `log_lines`, `log_parts` and `checkpoints`; `log_files`: events as lines; `store`: recorded projections; `reasons`: why, over `row_lookup` (the rows that a name means), `layers` (what their reasons say), `sent_input` (what was sent) and `later_use` (what the model did with them); `input_diff`: what differs between two inputs; `projections`: what commands ask
- `transcripts`: sessions of Claude Code and Codex CLI as session logs; `transcript_kinds`: whose transcript a file is

`ContextPolicy` is imported from here; it is loaded when it is first used.
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
