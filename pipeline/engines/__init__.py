"""Engines: how a run is cut into shards, and who runs them: this process, several of this machine, or a cluster.

- `shards`: what a shard is and what running one means
- `process_engine`, `ray_engine`: who runs them; `remote_job`: a job as it is sent to another process
"""
