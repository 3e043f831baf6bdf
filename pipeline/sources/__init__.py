"""Sources: readers of everything that becomes evidence, and the import of their rows into the corpus.

- `importing`: types, limits and default values of rows; `report`: the report of a reader
- files: `selection` (which), `file_kinds` (by path), `files` (bytes to text); `work_tree`
- histories: `git_history`, with uncommitted files; `git_commands`
- chunks: `chunking`, by `markdown`, `code` (with `grammars`) and `lines`; `parts` of notebooks, pages and web pages;
  `headers`
- `document_reader`: what was cut before, and the rest, in worker processes if it is much
- records: `readers` (lists them), `records`, `structured` (with schemas), which share `record_rows` and `jsonl`; `mcp_resources`
"""
