"""The gates in order: each is one object, with its columns, predicate, explanation, remedy and canaries.

Both walls, the ladder, `contract`, `why` and the leak test read `GATES`. To add a gate, write its object in a
file here and add it to the list; `second_wall` judges it again, by hand.

- `gate`: the definition of a gate
- `ownership`, `zones`, `sources`, `paths` (with `allowances`), `names`: access gates, which leave no trace but a count for auditors
- `trust`: visibility gates, and `times`: time gates, which record what they withhold

A row is admissible, a member of A(r), if it passes them all.
"""

from __future__ import annotations

from dataclasses import replace

from . import names, ownership, paths, sources, times, trust, zones
from .gate import Gate, GateClass

__all__ = ["GATES", "HIDING", "NUMBER", "Gate", "GateClass"]

_IN_ORDER = (
    ownership.PROJECT,
    ownership.OWNER,
    ownership.PRINCIPALS,
    zones.ZONE,
    sources.SOURCE_ALLOW,
    sources.SOURCE_DENY,
    paths.PATH_ALLOW,
    paths.PATH_DENY,
    names.NAMESPACE,
    names.BRANCH,
    names.WORKSPACE,
    names.TEST_SUITE,
    zones.LEVEL,
    trust.VISIBILITY,
    trust.LIFECYCLE,
    trust.SAFETY,
    sources.ROLE_SOURCE,
    trust.ROLE,
    trust.ACCEPTED_AUTHORITY,
    trust.MIN_AUTHORITY,
    *times.IN_ORDER,
)

GATES = tuple(replace(gate, number=number) for number, gate in enumerate(_IN_ORDER, start=1))
"""Every gate, in the order the ladder shows them: access, then visibility, then time."""

NUMBER = {gate.name: gate.number for gate in GATES}

HIDING = frozenset(gate.name for gate in GATES if gate.hides)
"""Gates whose rows end as `hidden` rather than `rejected`."""
