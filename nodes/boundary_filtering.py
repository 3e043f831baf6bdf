"""Boundary filtering, the second wall: judges every candidate again from its contract and stored row alone.

Reads candidates, contracts with bounds, EVIDENCE and PLACEMENTS. Gives `verdicts`, and `pool`: the candidates that passed,
with the stored columns that later steps read.

Note: nothing here calls the first wall's predicates, and nothing should. The two walls share only the list of gates and
the closed vocabularies; where they disagree about a candidate, its request keeps no candidates. Only the first wall
checks shadowing by a work tree, because that needs other rows.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .columns.keys import (
    among,
    constants,
    expect_same_rows,
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
    order = pc.index_in(flat(candidates["request_id"]), flat(contracts["request_id"])).to_numpy()
    rows = pa.table(gathered_columns(evidence, _JUDGED, candidates["row"]))
    asked = pa.table(gathered_columns(contracts, _ASKED, order))
    gates = plugins.order
    place = place_stops(rows, order, contracts, contract_bounds)
    place = gates.removed(place, evidence, candidates["row"], contracts, order)
    moment, ended = time_stops(candidates["row"].to_numpy(), rows, asked, placements)
    removed_by = np.where(place > 0, place, moment)
    admitted = removed_by == 0
    return VERDICTS.build(
        {
            "request_id": candidates["request_id"],
            "evidence_id": candidates["evidence_id"],
            "pool_rank": candidates["pool_rank"],
            "admitted": admitted,
            "source_access": gates.passes_access(place),
            "model_visibility": _model_visibility(rows, place, gates.passes_access(place)),
            "admitted_by": constants(gates.passed).take(pa.array(removed_by)),
            "decided_by": _by_gate(gates.names, removed_by),
            "reason_code": _by_gate(gates.reasons, removed_by),
            "would_reject_by": _would_reject_by(rows, admitted),
            "standing": _standing(rows, asked, _OF_HISTORY[moment] | ended | present(candidates["replaced_by"])),
            "validity": _validity(rows, asked),
            "wall_disagreement": np.asarray(candidates["withheld"]) == admitted,
        }
    )


def pool(
    candidates: Candidates, verdicts: Verdicts, contracts: Contracts, evidence: Evidence, placements: Placements
) -> Pool:
    """The candidates both walls let through, in recall order; none for a request on which the walls disagree.

    A replaced row stays only where the contract includes history.

    Raises:
        SchemaError: the verdicts do not belong to these candidates.
    """
    expect_same_rows(candidates, verdicts)
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


def _model_visibility(rows: pa.Table, place: NDArray[np.int64], readable: Mask) -> pa.Array:
    """The declared visibility if the system may read the row; runtime-only where a later visibility gate stops it."""
    declared = pc.if_else(
        pc.is_in(rows["declared_visibility"], constants(_VISIBLE)), rows["declared_visibility"], "denied"
    )
    later = pc.if_else(pa.array(place > _VISIBILITY), "runtime-only", flat(declared))
    return pc.if_else(pa.array(readable), later, "denied")


def _would_reject_by(rows: pa.Table, admitted: Mask) -> pa.Array:
    """For admitted rows, the first gate a stricter contract would close: `lifecycle` if unverified, else `safety`."""
    unverified = ~among(rows["lifecycle"], ("verified",))
    unreviewed = ~among(rows["declared_safety"], ("safe",))
    none = pa.scalar(None, pa.string())
    soft = pc.if_else(pa.array(unverified), "lifecycle", pc.if_else(pa.array(unreviewed), "safety", none))
    return pc.if_else(pa.array(admitted), soft, none)


def _standing(rows: pa.Table, asked: pa.Table, over: Mask) -> pa.Array:
    """How the text may speak: no text promotes itself, and the less trusted standing wins.

    A path that the contract names is not enough for `instruction`: the row must also be a verified rule from the
    requested project's own files, declared at least evidence.
    """
    declared = rows["declared_standing"]
    historical = among(rows["lifecycle"], _HISTORICAL) | over
    unverified = ~among(rows["lifecycle"], ("verified", "revoked", *_HISTORICAL))
    untrusted = among(rows["evidence_kind"], _UNTRUSTED_KINDS) | among(rows["origin_class"], _UNTRUSTED_ORIGINS)
    instructing = (
        among(declared, ("evidence", "instruction"))
        & among(rows["origin_class"], _RULE_ORIGINS)
        & np.asarray(pc.equal(rows["owner_project"], asked["project"]))
    )
    if instructing.any():
        instructing &= _in_instruction_sources(rows["path"], asked["instruction_sources"])
    speaking = pc.if_else(pc.equal(declared, "instruction").fill_null(False), "evidence", declared)
    speaking = pc.if_else(pc.is_in(speaking, constants(_SPEAKING)), speaking, "untrusted")
    words = constants(("history", "hint", "untrusted", "instruction")).take(
        pa.array(np.argmax(np.stack([historical, unverified, untrusted, instructing]), axis=0))
    )
    return pc.if_else(pa.array(historical | unverified | untrusted | instructing), words, flat(speaking))


def _in_instruction_sources(paths: pa.ChunkedArray, globs: pa.ChunkedArray) -> Mask:
    """Whether each path matches a glob of its contract; evaluated once per distinct list of globs."""
    lists = pc.binary_join(flat(globs), "\0").dictionary_encode()
    which = lists.indices.to_numpy()
    matched = np.zeros(len(which), dtype=bool)
    for number, wanted in enumerate(lists.dictionary.to_pylist()):
        mine = which == number
        matched[mine] = glob_mask(paths.filter(pa.array(mine)), wanted.split("\0"))
    return matched


def _validity(rows: pa.Table, asked: pa.Table) -> pa.Array:
    begun = pc.less_equal(rows["valid_from"], asked["as_of"]).fill_null(True)
    over = pc.less_equal(rows["valid_until"], asked["as_of"]).fill_null(False)
    return pc.if_else(flat(begun), pc.if_else(flat(over), "expired", "valid"), "not_yet")
