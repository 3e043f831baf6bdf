"""Asking: from a request to an answer and its snapshot.

- `opening`: a retriever under the settings, for every interface; `retriever`: an open corpus for one principal, `opened_line` what it answers with, `granted_line` that under the grants in force
- `grouping`: coalesces concurrent requests; `session`: interactive snapshots; `resuming`: resumes a batch
- `retrieval`: what comes back; `telemetry` and `run_events`: spans and events of retrievals and runs
"""
