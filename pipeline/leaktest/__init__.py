"""`leak-test`: probes a user's own corpus and grants for leaks to callers.

`tenants` lists the tenants and groups those that can be tested together, `angles` defines how they ask and which rows
that excludes, `canaries` makes rows that no request of a tenant may see. `surfaces` collects
everything that a caller gets back, `batches` compares many tenants at once. `testing` combines them; `report` is the
result. The test runs on a copy of the corpus.
"""

from __future__ import annotations

from ...nodes.walls.gate import ANGLES
from .report import Leak, LeakReport
from .testing import leak_test

__all__ = ["ANGLES", "Leak", "LeakReport", "leak_test"]
