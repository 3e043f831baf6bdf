"""Engines: split a run into shards, and run them in this process, in several of this machine, or on a cluster.

- `shards`: the definition of a shard, and how to run one
- `process_engine`, `ray_engine`: engines with workers; `remote_job`: the form of a job that is sent to another process
"""
