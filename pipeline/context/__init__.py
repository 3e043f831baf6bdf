"""The context policy: selects the model input of each round and records every decision in a ledger.

- `policy`: `ContextPolicy.project`, over the `line` (the second Hamilton graph); `projection`: its result
- `inputs`, `rules`, `phases`: rules, memories, tools, snapshots, budgets and phases, read strictly
- `events`: session events as tables, over `event_rows` (one event as rows); `masking`: masked secrets and normalized
  paths of all input; `artifacts`: long texts by reference; `flags`: generated files and public interfaces;
  `tool_names`: the capability of a tool by its name; `observations`: outputs of tools, normalized and summarized;
  `diffs`: summaries of diffs
- `checks` and `outcomes`: which commands are checks, over `check_lines`, `check_programs` and `runners`, and their
  outcomes, over `summaries`, `outcome_fields` (outcomes in fields), `printed_codes` (exit codes in outputs), `endings`
  (what stopped a command) and `verified_parts` (the scope of a verification);
  `changes` and `tool_changes`: files that commands and tools change, over `program_changes` (those of one program;
  `task_runners`: tasks by their names),
  `program_results` (whether it ran) and `line_folders` (where); `work_places`: the code on which a check ran, over
  `git_lines` (Git commands and their effect); `shell`: command lines as words
- `permissions`: the subject of a denial or a grant, and whether an event gives permission
- `before_horizon`: ledger rows of sources that a turn does not consider
- `shapes`: neutral, OpenAI and Anthropic messages; the ledger of document 003
- `sessions`: a recorded session, from a log or a file; `log`: session logs on disk, over their `log_lines`, `log_parts`
  and `checkpoints`; `log_files`: events as lines; `store`: recorded projections; `reasons`: why a source was lost, over
  `row_lookup` (the rows that a name matches), `layers` (layers of reasons), `sent_input` (the input as sent) and
  `later_use` (how the model used them); `input_diff`: the difference of two inputs; `projections`: projections for the
  command line
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
