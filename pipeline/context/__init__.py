"""The context policy: selects the model input of each round and records every decision in a ledger.

- `policy`: `ContextPolicy.project`, over the `line` (the second Hamilton graph); `projection`: its result, in the shapes of
  providers and of document 003
- `inputs`, `rules`: rules, memories, tools, snapshots, budgets and turns, read strictly; `flags`: zones,
  generated files and public interfaces
- `events`: session events as tables, over `event_rows` (one event as a row), `masking` (masked secrets, normalized paths) and `artifacts` (long texts by reference)
- `log`: recorded sessions, from a log folder or a file
- `store`: recorded projections; `why`: what became of a source
- `projections`: projections for the command line
- `transcripts`: sessions of Claude Code and Codex CLI as session logs
"""
