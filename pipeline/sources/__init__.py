"""Sources: readers of everything that becomes evidence, and the import of their rows into the corpus.

- `importing`: checks, limits and default values of rows; `column_types`: types and forms of columns; `report`: the report
  of a reader
- work trees and documents: `work_tree`, `documents`, `files` (bytes to documents), `file_kinds` (by path)
- histories: `git_history`, with uncommitted files; `git_commands`; `path_history`
- chunks: `chunking`, by `markdown`, `code` (with `grammars`), `logs` and `lines`; `headers` and `metadata`
- what was cut before: `chunk_cache`; `document_reader` cuts the rest, in worker processes if it is much
- records: `readers` (lists them), `mcp_resources`, `sessions`, `memory`, `artifacts`, `structured` (with
  schemas), `evidence_file`; `record_rows` and `jsonl` are shared by them
"""
