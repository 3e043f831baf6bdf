"""Fact verification: dates, ids, numbers and money in items checked against structured records (S1.20, S1.29).

Reads packs, bounded candidates and stored rows. Gives `structured_facts`, the fields of the recalled records, and
`fact_checks`, the comparison of the items with them; only for contracts with exact look-ups.

Note: a record counts only if it was a hit and passed every gate. A key that the contract does not admit is reported
like one that does not exist: `unknown_key`. A record that agrees but is stale proves nothing; one that differs is a
mismatch however old it is.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .blocks.item_texts import item_texts
from .blocks.masking import class_lists, masked
from .columns.keys import flat, gathered, positions, take_or
from .facts.fact_matching import Subjects, findings
from .facts.fact_values import STATED
from .frames import MICROS_PER_DAY, OPEN_START, micros
from .rendering import locator
from .tables import (
    FACT_CHECKS,
    STRUCTURED_FACTS,
    Candidates,
    Contracts,
    Evidence,
    FactChecks,
    Packs,
    Placements,
    StructuredFacts,
)

STALE_DAYS = 30
"""Age from which a record counts as stale (S1.33)."""


def structured_facts(
    bounded_candidates: Candidates, contracts: Contracts, evidence: Evidence, placements: Placements
) -> StructuredFacts:
    """Every field of every record among the candidates, by request, record and field; none without exact look-ups.

    The contract's masks are applied here, because values are shown to the model and to the caller.
    """
    chosen = _of_exact_lookups(bounded_candidates, contracts)
    chosen = chosen.filter(pc.equal(gathered(evidence["origin_class"], chosen["row"]), "structured-sot"))
    if not chosen.num_rows:
        return STRUCTURED_FACTS.empty()
    owner = positions(chosen["request_id"], contracts["request_id"])
    row, placement = chosen["row"].to_numpy(), chosen["placement"].to_numpy()
    stored = {name: gathered(evidence[name], row) for name in ("entity", "path", "title", "source_id", "section")}
    mask = class_lists(contracts["mask"]).take(pa.array(owner))
    lines = pc.split_pattern(masked(gathered(evidence["text"], row), mask), "\n")
    found = pc.extract_regex(lines.flatten(), pattern=STATED)
    kept = np.flatnonzero(np.asarray(found.is_valid()))
    of = np.asarray(pc.list_parent_indices(lines)).astype(np.int64)[kept]
    at, fields = pa.array(of), found.take(pa.array(kept))
    line = gathered(placements["line_start"], placement)
    named = (stored["path"], stored["title"], stored["source_id"], line, stored["section"])
    places = [locator(*values) for values in zip(*(column.to_pylist() for column in named), strict=True)]
    recorded = micros(gathered(placements["recorded_time"], placement), OPEN_START)
    stale = micros(contracts["as_of"], 0)[owner] - recorded > STALE_DAYS * MICROS_PER_DAY
    table = STRUCTURED_FACTS.build(
        {
            "request_id": chosen["request_id"].take(at),
            "evidence_id": chosen["evidence_id"].take(at),
            "entity": masked(pc.fill_null(stored["entity"], ""), mask).cast(pa.large_string()).take(at),
            "field": fields.field("field").cast(pa.large_string()),
            "value": fields.field("value").cast(pa.large_string()),
            "locator": masked(pa.array(places, pa.large_string()), mask).take(at),
            "stale": stale[of],
        }
    )
    return table.sort_by([(name, "ascending") for name in STRUCTURED_FACTS.order])


def fact_checks(
    packs: Packs, structured_facts: StructuredFacts, contracts: Contracts, evidence: Evidence, placements: Placements
) -> FactChecks:
    """Each value of each item compared with the admitted records, by request, item and value; records are not checked.

    A value inside a masked range does not count.
    """
    items = _of_exact_lookups(packs, contracts)
    origin = gathered(evidence["origin_class"], items["row"])
    items = items.filter(pc.and_(items["kept"], pc.not_equal(origin, "structured-sot")))
    if not items.num_rows:
        return FACT_CHECKS.empty()
    owner = positions(items["request_id"], contracts["request_id"])
    mask = class_lists(contracts["mask"]).take(pa.array(owner))
    subjects = Subjects(
        owner=owner,
        text=masked(item_texts(items, packs, evidence, placements).text, mask),
        path=gathered(evidence["path"], items["row"]),
        section=gathered(evidence["section"], items["row"]),
    )
    owner = positions(structured_facts["request_id"], contracts["request_id"])
    found = findings(subjects, structured_facts, owner)
    item, fact = pa.array(found["text"].to_numpy()), found["fact"].to_numpy()
    table = FACT_CHECKS.build(
        {
            "request_id": items["request_id"].take(item),
            "evidence_id": items["evidence_id"].take(item),
            "value": found["value"],
            "kind": found["kind"],
            "finding": found["finding"],
            "field": take_or(structured_facts["field"], fact),
            "canonical": take_or(structured_facts["value"], fact),
            "record_id": take_or(structured_facts["evidence_id"], fact),
            "locator": take_or(structured_facts["locator"], fact),
        }
    )
    return table.sort_by([(name, "ascending") for name in FACT_CHECKS.order])


def _of_exact_lookups(rows: pa.Table, contracts: pa.Table) -> pa.Table:
    """The rows of requests whose contract looks records up exactly."""
    asking = flat(contracts["request_id"].filter(contracts["exact_lookups"]))
    return rows.filter(pc.is_in(rows["request_id"], value_set=asking)) if len(asking) else rows.slice(0, 0)
