"""Everything that does input or output: corpus, sources, driver, runs, views, command line.

Subpackages import each other in one direction only, which the import rules enforce. From the user inwards:

- interfaces: `cli`; `servers` (HTTP and MCP); `adapters` for other frameworks; `compat` (interfaces of other documents)
- secondary: `leaktest`, imported only by the command line; `demo`, `evaluation`, `maintenance`, by these two
- `contracts`: explain, lint, diff, why; `context`: the model input of a session's current round
- `asking`: from a request to a snapshot; `indexing`: from sources to a generation; `reading`: stored snapshots and runs
- `engines`: where the shards of a run are executed; `requests`: rows become REQUESTS; `config`: settings, grants,
  policies; `plugins`, with `memory_terms`, score terms of this package
- `sources`: readers; `runs`: stored runs; `views`: their renderings
- `line`: the driver of the dataflow; `corpus`: generations of rows
- `encoders`: texts into vectors; `parsing`: files that people write; `redaction`; `storage`: folders, stores, locks;
  `progress`; `cores`
"""
