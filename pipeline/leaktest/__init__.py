"""`leak-test`: a user's own corpus and grants, probed for what a caller must not learn.

`tenants` says who asks and who can be tested together, `angles` how they ask and what that shuts out, `canaries` makes rows
that no request of a tenant may see, `probes` the requests, `surfaces` everything that a caller gets back, `through_servers` the same over HTTP and MCP, `batches` the
comparison of many tenants at once, `testing` puts them together and looks at a tenant's own rows and at a corpus that was set back, `report` tells. All of it happens on a copy of the corpus.
"""

from __future__ import annotations

from .angles import ANGLES
from .report import Leak, LeakReport
from .testing import leak_test

__all__ = ["ANGLES", "Leak", "LeakReport", "leak_test"]
