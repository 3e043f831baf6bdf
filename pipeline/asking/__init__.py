"""Asking: from a request to an answer and its snapshot.

- `opening`: a retriever under the settings, for every interface; `retriever`: an open corpus for one principal;
  `opened_line`: its line, under the current grants
- `grouping`: coalesces concurrent requests; `session`: interactive snapshots
- `retrieval`: the answer; `telemetry`: spans of retrievals and runs
"""
