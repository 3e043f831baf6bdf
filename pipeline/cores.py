"""The number of cores that this process may use."""

from __future__ import annotations

import os


def cores() -> int:
    """The cores that it is bound to, where the system reports them; otherwise all of the machine."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
