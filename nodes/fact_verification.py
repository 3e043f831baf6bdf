"""Fact verification: dates, ids, numbers and money in items checked against structured records (S1.20, S1.29).

Reads packs, the pool and stored rows. Gives `structured_facts`, the fields of the recalled records, and
`fact_checks`, the comparison of the items with them; only for contracts with exact look-ups.

Note: a record counts only if it was a hit and passed every gate. A key that the contract does not admit is reported
like one that does not exist: `unknown_key`. A record that agrees but is stale proves nothing; one that differs is a
mismatch however old it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .blocks.item_texts import item_texts
from .blocks.masking import class_lists, masked
from .blocks.rendering import locator
from .columns.keys import among, flat, gathered, gathered_columns, integers, truth
from .facts.fact_matching import facts_by_request, findings
from .facts.fact_values import STATED
from .frames import MICROS_PER_DAY, OPEN_START, micros
from .tables import (
    FACT_CHECKS,
    STRUCTURED_FACTS,
    Contracts,
    Evidence,
    FactChecks,
    Packs,
    Pool,
    StructuredFacts,
)

STALE_DAYS = 30
"""Age from which a record counts as stale (S1.33)."""


def structured_facts(pool: Pool, contracts: Contracts, evidence: Evidence) -> StructuredFacts:
    """Every field of every record in the pool, by request, record and field; none without exact look-ups.

    The contract's masks are applied here, because values are shown to the model and to the caller.
    """
    asking = truth(contracts["exact_lookups"])[integers(pool["contract"])]
    chosen = pool.filter(pa.array(asking & among(pool["origin_class"], ("structured-sot",))))
    if not chosen.num_rows:
        return STRUCTURED_FACTS.empty()
    owner, row = integers(chosen["contract"]), integers(chosen["row"])
    stored = {name: flat(chosen[name]) for name in ("entity", "path", "source_id", "line_start", "recorded_time")}
    stored |= gathered_columns(evidence, ("title", "section"), row)
    mask = class_lists(contracts["mask"]).take(pa.array(owner))
    lines = pc.split_pattern(masked(gathered(evidence["text"], row), mask), "\n")
    found = pc.extract_regex(lines.flatten(), pattern=STATED)
    kept = np.flatnonzero(np.asarray(found.is_valid()))
    of = np.asarray(pc.list_parent_indices(lines)).astype(np.int64)[kept]
    at, fields = pa.array(of), found.take(pa.array(kept))
    named = (stored[name].to_pylist() for name in ("path", "title", "source_id", "line_start", "section"))
    places = [locator(*values) for values in zip(*named, strict=True)]
    recorded = micros(stored["recorded_time"], OPEN_START)
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
    packs: Packs, structured_facts: StructuredFacts, pool: Pool, contracts: Contracts, evidence: Evidence
) -> FactChecks:
    """Each value of each item compared with the admitted records, by request, item and value; records are not checked.

    A value inside a masked range does not count.
    """
    asking = truth(contracts["exact_lookups"])[integers(pool["contract"])]
    able = asking & ~among(pool["origin_class"], ("structured-sot",))
    items = packs.filter(pa.array((integers(packs["position"]) > 0) & able[integers(packs["place"])]))
    if not items.num_rows:
        return FACT_CHECKS.empty()
    place = integers(items["place"])
    row = integers(pool["row"])[place]
    paths, sections = gathered(pool["path"], place).to_pylist(), gathered(evidence["section"], row).to_pylist()
    facts, rows = facts_by_request(structured_facts), list[dict[str, Any]]()
    keys = items.select(["request_id", "evidence_id", "place"]).to_pylist()
    texts = item_texts(items, pool, evidence, contracts)
    for key, text, path, section in zip(keys, texts, paths, sections, strict=True):
        for one in findings(text.text, path, section, facts[key["request_id"]]):
            row = {**key, "value": one.value, "kind": one.kind, "finding": one.finding}
            if (fact := one.fact) is not None:
                row |= {"field": fact.field, "canonical": fact.value, "record_id": fact.record, "locator": fact.locator}
            rows.append(row)
    return FACT_CHECKS.from_rows(rows).sort_by([(name, "ascending") for name in FACT_CHECKS.order])
