"""Sources: readers of everything that becomes evidence, and the import of their rows into the corpus.

- `importing`, and the limits of rows; `row_defaults`: their defaults; `row_paths`: paths in one form;
  `report`: what a reader did
- work trees and documents: `work_tree`, `documents`, `files` (bytes into documents), `file_kinds` (what a path names)
- histories: `git_history`, and what is not committed; `git_commands`; `path_history`, `history_states`, `history_check`
- cut into chunks: `chunking`, by `markdown`, `code` (with `grammars`), `logs` and `lines`; `headers` above them
- `source_reader`: what a reader is
- records: `records` (all of them), `mcp_resources`, `sessions`, `memory`, `artifacts`, `structured` (with `record_schema`), `evidence_file`;
  `record_rows`, `jsonl` and `column_types` are what they share
- reading again: `incremental_source`, `incremental_import`, `same_source`, `reader_digest`
"""
