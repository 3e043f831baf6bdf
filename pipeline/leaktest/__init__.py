"""`leak-test`: probes a user's own corpus and grants for leaks to callers.

`tenants` lists the tenants and groups those that can be tested together, `cases` defines how each asks from one angle and
which rows that excludes, `canaries` makes such rows. `surfaces` collects everything that a caller gets back; `testing`
compares it with and without canaries, on a copy of the corpus.
"""

from __future__ import annotations

from ...nodes.walls.gate import ANGLES
from .testing import Leak, LeakReport, leak_test

__all__ = ["ANGLES", "Leak", "LeakReport", "leak_test"]
