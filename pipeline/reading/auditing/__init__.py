"""Audits of stored runs that need more than reading: the line, or parts of it, is executed again.

- `rerun`: the line of a run, at the generation that it pinned
- `reproduce`: a run or snapshot executed again, and the first value that differs
- `what_if`: the requests of a run under other weights, budgets or roles
- `difference`: two snapshots or runs side by side
- `export`: a snapshot as one file, which is checked alone
- `sql`: a run's tables under DuckDB
"""
