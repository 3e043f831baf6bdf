"""Questions about what was written that need more than reading: the line is run again, or parts of it.

- `rerun`: the line of a run, at the generation that it pinned
- `reproduce`: a run or snapshot executed again, and the first value that differs
- `what_if`: frozen candidates under other weights, budgets or roles; `frozen_plugins`: the terms of plugins there, installed or not
- `ranking`: the order alone under other weights, for whole runs in seconds
- `difference`: two snapshots or runs side by side
- `export`: a snapshot as one file; `exported_file`: such a file checked alone, within the memory that its tables take
- `sql`: a run's tables under DuckDB
- `questions`: all of these as methods of a `Retriever`
"""
