"""The conditions from fact verification: a shown value that a record contradicts, records that are too old.

Reads what was shown, `fact_checks` and `structured_facts`. Gives one flag and message per request for each; both
concern admissible rows only, so a caller may read them.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.keys import flat, objects, positions
from ..columns.list_columns import collected

FlagsAndMessages = tuple[NDArray[np.bool_], NDArray[np.object_]]
"""One flag per request, whether the condition holds, and the message of each."""


def nobody(ids: pa.Array) -> FlagsAndMessages:
    """The condition holds for no request."""
    return np.zeros(len(ids), bool), np.full(len(ids), "", dtype=object)


def mismatches(ids: pa.Array, fact_checks: pa.Table, trimmed: pa.Table) -> FlagsAndMessages:
    """Requests that show a value which a record contradicts; the message names the fields."""
    wrong = fact_checks.filter(pc.equal(fact_checks["finding"], "mismatch"))
    if not wrong.num_rows:
        return nobody(ids)
    wrong = wrong.filter(pc.is_in(wrong["place"], value_set=flat(trimmed["place"])))
    return _listed(ids, wrong["request_id"], wrong["field"], "shown values differ from the structured records in ")


def stale_records(ids: pa.Array, structured_facts: pa.Table) -> FlagsAndMessages:
    """Requests that looked up stale records; the message names their files."""
    stale = structured_facts.filter(structured_facts["stale"])
    if not stale.num_rows:
        return nobody(ids)
    files = pc.replace_substring_regex(flat(stale["locator"]), pattern=r"#.*$| \([^()]*\)$", replacement="")
    return _listed(ids, stale["request_id"], files, "structured records are more than 30 days old in ")


def _listed(ids: pa.Array, owner: pa.ChunkedArray, names: pa.ChunkedArray | pa.Array, words: str) -> FlagsAndMessages:
    at = positions(owner, ids)
    lists = collected(at, flat(names).cast(pa.string()), len(ids))
    message = pc.binary_join_element_wise(words, pc.binary_join(lists, ", "), "")
    return np.bincount(at, minlength=len(ids)) > 0, objects(message)
