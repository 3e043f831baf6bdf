"""Boundary filtering, the second wall: judges every candidate again from its contract and stored row alone.

Reads candidates, contracts with bounds, EVIDENCE and PLACEMENTS. Gives `verdicts`, and `pool`: the candidates that passed,
with the stored columns that later steps read.

Note: nothing here calls the first wall's predicates, and nothing should. The two walls share only the list of gates and
the closed vocabularies; where they disagree about a candidate, its request keeps no candidates. Only the first wall
checks shadowing by a work tree, because that needs other rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .columns.keys import (
    Column,
    constants,
    flags_at,
    flat,
    gathered,
    gathered_columns,
    positions,
    present,
    truth,
)
from .plugins import NO_PLUGINS, Plugins
from .scope.selectors import glob_mask
from .tables import (
    PLACED,
    POOL,
    STORED,
    VERDICTS,
    Candidates,
    ContractBounds,
    Contracts,
    Evidence,
    Placements,
    Pool,
    Verdicts,
)
from .walls.gates import GATES, NUMBER
from .walls.second_wall import Mask, place_stops, time_stops

_GATED = (column for gate in GATES for column in gate.columns)
_JUDGED = tuple(
    dict.fromkeys((*_GATED, "evidence_kind", "event_time", "valid_from", "valid_until", "declared_standing"))
)
_VISIBILITY = NUMBER["visibility"]
_OF_HISTORY = np.zeros(len(GATES) + 1, dtype=bool)
_OF_HISTORY[[NUMBER["superseded"], NUMBER["deleted"], NUMBER["valid_until"]]] = True
"""Indexed by gate number: whether a text stopped by this gate counts as history."""

_RECALLED = (
    "request_id", "evidence_id", "pool_rank", "row", "placement", "lanes", "bm25_raw", "semantic_raw",
)  # fmt: skip
"""The columns of candidates that later steps read."""
_HISTORICAL = ("deprecated", "expired")
_ASKED = ["project", "as_of", "window_start", "window_end", "include_deleted", "instruction_sources"]
"""The contract columns read for each candidate, apart from those that `place_stops` reads."""
_UNTRUSTED_KINDS = ("test-log", "tool-output")
_UNTRUSTED_ORIGINS = ("external", "mcp-resource")
_RULE_ORIGINS = ("workspace", "project-doc", "team-standard")
_SPEAKING_BY = ["lifecycle", "evidence_kind", "origin_class", "declared_standing"]
_SPEAKING = ("evidence", "history", "hint", "untrusted")
_VISIBLE = ("model-visible", "user-only", "runtime-only", "denied")


def verdicts(
    candidates: Candidates,
    contracts: Contracts,
    contract_bounds: ContractBounds,
    evidence: Evidence,
    placements: Placements,
    plugins: Plugins = NO_PLUGINS,
) -> Verdicts:
    """The second wall's judgment of every candidate, in recall order, with the first gate that removed it.

    The walls disagree about a candidate that passes here but was recalled as withheld, or that fails here but was not.
    """
    order = positions(candidates["request_id"], contracts["request_id"])
    rows = pa.table(gathered_columns(evidence, _JUDGED, candidates["row"]))
    asked = pa.table(gathered_columns(contracts, _ASKED, order))
    gates = plugins.order
    place = place_stops(rows, order, contracts, contract_bounds)
    place = gates.removed(place, evidence, candidates["row"], contracts, order)
    moment, ended = time_stops(candidates["row"].to_numpy(), rows, asked, placements)
    removed_by = np.where(place > 0, place, moment)
    admitted, readable = removed_by == 0, gates.passes_access(place)
    return VERDICTS.build(
        {
            "request_id": candidates["request_id"],
            "evidence_id": candidates["evidence_id"],
            "pool_rank": candidates["pool_rank"],
            "admitted": admitted,
            "source_access": readable,
            "model_visibility": _model_visibility(rows["declared_visibility"], place, readable),
            "admitted_by": constants(gates.passed).take(pa.array(removed_by)),
            "decided_by": _by_gate(gates.names, removed_by),
            "reason_code": _by_gate(gates.reasons, removed_by),
            "would_reject_by": _would_reject_by(rows, admitted),
            "standing": _standings(rows, asked, _OF_HISTORY[moment] | ended | present(candidates["replaced_by"])),
            "wall_disagreement": np.asarray(candidates["withheld"]) == admitted,
        }
    )


def pool(
    candidates: Candidates, verdicts: Verdicts, contracts: Contracts, evidence: Evidence, placements: Placements
) -> Pool:
    """The candidates both walls let through, in recall order; none for a request on which the walls disagree.

    A replaced row stays only where the contract includes history.
    """
    contract = positions(candidates["request_id"], contracts["request_id"])
    disputed = np.zeros(contracts.num_rows, dtype=bool)
    disputed[contract[truth(verdicts["wall_disagreement"])]] = True
    replaced = present(candidates["replaced_by"])
    if replaced.any():
        replaced &= ~flags_at(contracts["include_deleted"], contract)
    at = (truth(verdicts["admitted"]) & ~replaced & ~disputed[contract]).nonzero()[0]
    kept = gathered_columns(candidates, _RECALLED, at)
    return POOL.build(
        {
            **kept,
            "candidate": at,
            "contract": contract[at],
            "standing": gathered(verdicts["standing"], at),
            **gathered_columns(evidence, STORED, kept["row"]),
            **gathered_columns(placements, PLACED, kept["placement"]),
        }
    )


def _by_gate(words: tuple[str, ...], removed_by: NDArray[np.int64]) -> pa.Array:
    return constants((None, *words)).take(pa.array(removed_by))


def _model_visibility(declared: Column, place: NDArray[np.int64], readable: Mask) -> list[str]:
    """The declared visibility if the system may read the row; runtime-only where a later visibility gate stops it."""
    words = zip(declared.to_pylist(), (place > _VISIBILITY).tolist(), readable.tolist(), strict=True)
    return [
        "denied" if not read else "runtime-only" if later else word if word in _VISIBLE else "denied"
        for word, later, read in words
    ]


def _would_reject_by(rows: pa.Table, admitted: Mask) -> list[str | None]:
    """For admitted rows, the first gate a stricter contract would close: `lifecycle` if unverified, else `safety`."""
    words = zip(*(rows[name].to_pylist() for name in ("lifecycle", "declared_safety")), admitted.tolist(), strict=True)
    return [
        None if not shown else "lifecycle" if state != "verified" else "safety" if safety != "safe" else None
        for state, safety, shown in words
    ]


def _standings(rows: pa.Table, asked: pa.Table, over: Mask) -> list[str]:
    """How each text may speak; equal words speak alike."""
    own = np.asarray(pc.equal(rows["owner_project"], asked["project"]))
    own &= _may_instruct(rows, asked["instruction_sources"])
    words = zip(*(rows[name].to_pylist() for name in _SPEAKING_BY), own.tolist(), over.tolist(), strict=True)
    known: dict[tuple[Any, ...], str] = {}
    return [known[one] if one in known else known.setdefault(one, _standing(*one)) for one in words]


def _standing(
    lifecycle: str | None, evidence_kind: str, origin_class: str, declared_standing: str | None, own: bool, over: bool
) -> str:
    """How a text may speak: no text promotes itself, and the less trusted standing wins.

    A path that the contract names is not enough for `instruction`: the row must also be a verified rule from the
    requested project's own files, declared at least evidence.
    """
    if over or lifecycle in _HISTORICAL:
        return "history"
    if lifecycle not in ("verified", "revoked"):
        return "hint"
    if evidence_kind in _UNTRUSTED_KINDS or origin_class in _UNTRUSTED_ORIGINS:
        return "untrusted"
    if own and declared_standing in ("evidence", "instruction") and origin_class in _RULE_ORIGINS:
        return "instruction"
    declared = "evidence" if declared_standing == "instruction" else declared_standing
    return declared if declared in _SPEAKING else "untrusted"


def _may_instruct(rows: pa.Table, globs: pa.ChunkedArray) -> Mask:
    """Whether each path matches a glob of its contract; evaluated once per distinct list of globs."""
    lists = pc.binary_join(flat(globs), "\0").dictionary_encode()
    which = lists.indices.to_numpy()
    matched = np.zeros(len(which), dtype=bool)
    for number, wanted in enumerate(lists.dictionary.to_pylist()):
        mine = which == number
        matched[mine] = glob_mask(rows["path"].filter(pa.array(mine)), wanted.split("\0"))
    return matched
