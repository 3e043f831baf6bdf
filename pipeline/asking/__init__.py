"""Asking: from a request to an answer and its snapshot.

- `opening`: a retriever under the settings, for every interface; `retriever`: an open corpus for one principal
- `grouping`: coalesces concurrent requests; `session`: their line under the current grants, and interactive snapshots
- `retrieval`: the answer; `telemetry`: spans of retrievals and runs
"""
