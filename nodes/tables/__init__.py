"""Every table of the line and the corpus, declared once.

Reads: nothing. Gives: one `Table` per node (`HITS`, ...) and its annotation (`Hits`, ...). Every table of the line
leads with `request_id`. Times are UTC microseconds; intervals are half-open; ranks start at 1; scores are float64
multiples of 2**-30. A column marked `caller(...)` may be shown to the caller; all others are for auditors.

- `corpus`: the corpus: evidence, placements, segments
- `inputs`: inputs of the line: requests, grants, policies, and records about a run
- `scope`: tables of `scope_resolution`
- `planning`: tables of `session_trail` and `query_planning`
- `gates`: tables of `boundary_gates`, the first wall
- `recall`: tables of `candidate_recall`
- `filtering`: tables of `boundary_filtering`, the second wall
- `ranking`: tables of `task_aware_reranking`
- `packing`: tables of `evidence_packing`, `fact_verification` and `budget_trimming`
- `blocks`: tables of `citation_binding` and `context_projection`
- `snapshot`: tables of `audit_snapshot`, and rows withheld from a request
- `answers`: tables of `answers`: an answer compared with the items it was given
"""

from __future__ import annotations

# ruff: noqa: F403 - every table and annotation is offered here, whichever module declares it
from ..schema import Table
from .answers import *
from .blocks import *
from .corpus import *
from .filtering import *
from .gates import *
from .inputs import *
from .packing import *
from .planning import *
from .ranking import *
from .recall import *
from .scope import *
from .snapshot import *

TABLES = {one.name: one for one in list(globals().values()) if isinstance(one, Table)}
"""Every declared table by name."""
