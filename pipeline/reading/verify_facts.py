"""`verify_facts`: the values of an answer against the records that a snapshot admitted (S1.31).

Reads an answer and the tables of one retrieval. Gives findings, each with the canonical value that it proposes; the
answer itself is never rewritten (C27). A key that the snapshot's contract did not admit is reported like one that does
not exist: `unknown_key`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.errors import InputError
from ...nodes.facts.fact_matching import Subjects, findings
from ...nodes.facts.fact_values import NO_SHORT_MONTH
from ...nodes.tables import CONTRACTS, STRUCTURED_FACTS

__all__ = ["FactFinding", "verify_facts"]


@dataclass(frozen=True)
class FactFinding:
    """The finding for one value of an answer; `canonical`, `field` and `locator` are None if no record has a value for
    it.
    """

    value: str
    kind: str
    finding: str
    canonical: str | None
    field: str | None
    record_id: str | None
    locator: str | None


def verify_facts(answer: str, tables: Mapping[str, pa.Table], request_id: str | None = None) -> list[FactFinding]:
    """Findings of every date, id, amount and named number in an answer, by value.

    Args:
        answer: the text, of any length.
        tables: `contracts` and `structured_facts` with texts in place: `Retrieval.tables`, or those of a stored run.
        request_id: the request in the tables; optional if there is only one.

    Raises:
        InputError: the tables contain several requests and none is named, or not the named one.
    """
    known = tables[CONTRACTS.name]["request_id"].to_pylist()
    wanted = known[0] if request_id is None and len(known) == 1 else request_id
    if wanted not in known:
        raise InputError.one_of(known[:5] or ["a request"], wanted, "request_id")
    held = tables[STRUCTURED_FACTS.name]
    facts = held.filter(pc.equal(held["request_id"], wanted)).combine_chunks()
    nothing = pa.nulls(1, pa.string())
    # Each sentence is judged on its own, as a line of evidence is.
    sentences = re.sub(rf"(?<=[.!?]){NO_SHORT_MONTH} (?=\S)", "\n", answer)
    contract = tables[CONTRACTS.name].filter(pc.equal(tables[CONTRACTS.name]["request_id"], wanted))
    # A request that searches the folders of one engagement is about that engagement.
    about = pa.array(["/".join(contract["search_paths"][0].as_py() or ()) or None], pa.string())
    subject = Subjects(np.zeros(1, dtype=np.int64), pa.array([sentences], pa.large_string()), about, nothing)
    found = findings(subject, facts, np.zeros(facts.num_rows, dtype=np.int64), all_records=True)
    rows = facts.to_pylist()
    return [
        FactFinding(
            value=row["value"],
            kind=row["kind"],
            finding=row["finding"],
            canonical=rows[row["fact"]]["value"] if row["fact"] >= 0 else None,
            field=rows[row["fact"]]["field"] if row["fact"] >= 0 else None,
            record_id=rows[row["fact"]]["evidence_id"] if row["fact"] >= 0 else None,
            locator=rows[row["fact"]]["locator"] if row["fact"] >= 0 else None,
        )
        for row in found.to_pylist()
    ]
