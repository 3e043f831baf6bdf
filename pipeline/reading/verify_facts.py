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


def verify_facts(answer: str, tables: Mapping[str, pa.Table]) -> list[FactFinding]:
    """Findings of every date, id, amount and named number in an answer, by value.

    `tables` are those of one request, `contracts` and `structured_facts` with texts in place: `Retrieval.tables`, or those
    of a stored snapshot.
    """
    contracts, facts = tables[CONTRACTS.name], tables[STRUCTURED_FACTS.name].combine_chunks()
    nothing = pa.nulls(1, pa.string())
    # Each sentence is judged on its own, as a line of evidence is.
    sentences = re.sub(rf"(?<=[.!?]){NO_SHORT_MONTH} (?=\S)", "\n", answer)
    # A request that searches the folders of one engagement is about that engagement.
    about = pa.array(["/".join(contracts["search_paths"][0].as_py() or ()) or None], pa.string())
    subject = Subjects(np.zeros(1, dtype=np.int64), pa.array([sentences], pa.large_string()), about, nothing)
    found = findings(subject, facts, np.zeros(facts.num_rows, dtype=np.int64), all_records=True)
    rows = [*facts.to_pylist(), dict.fromkeys(STRUCTURED_FACTS.columns)]  # the last one is that of no fact
    return [
        FactFinding(
            one.value,
            one.kind,
            one.finding,
            *(rows[one.fact][name] for name in ("value", "field", "evidence_id", "locator")),
        )
        for one in found
    ]
