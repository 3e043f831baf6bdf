"""Effective zones: a row is at least as sensitive as the rows that contain it.

Reads: the evidence of an import, and the stored rows it may name. Gives: the same evidence, each zone the highest of
the row's own and those of all its ancestors. A parent is named by evidence id or by entity.

Note: a parent is looked up only among rows of the same project that belong to the same user or are shared. An evidence id
is an unsalted digest of the text, so a lookup across owners would confirm a guess about another user's text. A shared row
takes no zone from a user's row: all users see it, and it must not change with the rows of one of them.

Zones are resolved at import. A parent that becomes more sensitive later raises its parts when they are imported again;
a lower zone is not inherited.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...nodes.columns.keys import flat, positions
from ...nodes.tables import EVIDENCE
from ...nodes.vocabulary import ZONES

__all__ = ["FAMILY", "with_effective_zones"]

FAMILY = ("evidence_id", "owner_project", "owner_user", "entity", "parent_id", "zone")
"""The columns of EVIDENCE that are read."""


def with_effective_zones(evidence: pa.Table, stored: pa.Table) -> pa.Table:
    """The evidence with effective zones.

    Args:
        evidence: EVIDENCE of an import, and possibly more columns.
        stored: `FAMILY` of the stored rows; those that the import contains again are ignored.
    """
    if evidence["parent_id"].null_count == evidence.num_rows:
        return evidence
    again = pc.is_in(stored["evidence_id"], value_set=flat(evidence["evidence_id"]))
    family = pa.concat_tables([evidence.select(FAMILY), stored.select(FAMILY).filter(pc.invert(again))])
    zone, parent = _ranks(family["zone"]), _parents(family)
    # Each round doubles the distance, so a cycle of parents is covered after as many rounds as its length has bits.
    for _ in range(family.num_rows.bit_length()):
        known = parent >= 0
        if not known.any():
            break
        zone[known] = np.maximum(zone[known], zone[parent[known]])
        parent[known] = parent[parent[known]]
    own = _ranks(evidence["zone"])
    raised = pa.array(zone[: len(own)] > own)
    words = pc.if_else(raised, pa.array(ZONES.values).take(pa.array(zone[: len(own)])), flat(evidence["zone"]))
    index = evidence.schema.get_field_index("zone")
    return evidence.set_column(index, EVIDENCE.schema.field("zone"), words)


def _ranks(zones: pa.ChunkedArray) -> NDArray[np.int64]:
    """Rank of each zone; null and unknown words rank highest."""
    found = pc.index_in(flat(zones), pa.array(ZONES.values)).fill_null(len(ZONES.values) - 1)
    return found.to_numpy().astype(np.int64)


def _parents(family: pa.Table) -> NDArray[np.int64]:
    """The row of each row's parent, -1 if it has none of its owner; a match by id wins over one by entity."""
    named = flat(family["parent_id"])
    parent = np.full(family.num_rows, -1, dtype=np.int64)
    for column in ("evidence_id", "entity"):
        standing = _keys(family, flat(family[column]))
        for shared in (False, True):
            wanted = _keys(family, named, shared=shared)
            found = np.where(np.asarray(wanted.is_valid()), positions(wanted, standing), -1)
            parent = np.where(parent >= 0, parent, found)
    return parent


def _keys(family: pa.Table, names: pa.Array, *, shared: bool = False) -> pa.Array:
    """Project, user and name of each row as one string, null if it has no name; `shared` treats rows as shared."""
    user = flat(family["owner_user"])
    owner = pc.if_else(pa.scalar(shared), "", pc.fill_null(pc.binary_join_element_wise("user", user, ":"), ""))
    return pc.binary_join_element_wise(flat(family["owner_project"]), owner, names, "\0")
