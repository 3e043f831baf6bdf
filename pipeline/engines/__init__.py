"""Engines: how a run is cut into shards, and who runs them: this process, several of this machine, or a cluster."""
