"""`leak-test`: a user's own corpus and grants, probed for what a caller must not learn.

`canaries` makes rows that no request of a tenant may see, `probes` the requests, `surfaces` everything that a caller gets
back, `testing` the comparison. All of it happens on a copy of the corpus.
"""

from __future__ import annotations

from .testing import Leak, LeakReport, leak_test

__all__ = ["Leak", "LeakReport", "leak_test"]
