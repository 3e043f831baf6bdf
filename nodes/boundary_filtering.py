"""Boundary filtering, the second wall: judges every candidate again from its contract and stored row alone.

Reads candidates, contracts with bounds, EVIDENCE and PLACEMENTS. Gives `verdicts`, and `pool`: the candidates that passed,
with the stored columns that later steps read.

Note: nothing here calls the first wall's predicates, and nothing should. The two walls share only the list of gates and
the closed vocabularies; where they disagree about a candidate, its request keeps no candidates. Only the first wall
checks shadowing by a work tree, because that needs other rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .columns.keys import (
    Column,
    constants,
    gathered,
    gathered_columns,
    integers,
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
from .walls.second_wall import Ints, Mask

_VISIBILITY = NUMBER["visibility"]
_OF_HISTORY = np.zeros(len(GATES) + 1, dtype=bool)
_OF_HISTORY[[NUMBER["superseded"], NUMBER["deleted"], NUMBER["valid_until"]]] = True
"""Indexed by gate number: whether a text stopped by this gate counts as history."""

_RECALLED = (
    "request_id", "evidence_id", "pool_rank", "row", "placement", "lanes", "bm25_raw", "semantic_raw",
)  # fmt: skip
"""The columns of candidates that later steps read."""
_HISTORICAL = ("deprecated", "expired")
_UNTRUSTED_KINDS = ("test-log", "tool-output")
_UNTRUSTED_ORIGINS = ("external", "mcp-resource")
_RULE_ORIGINS = ("workspace", "project-doc", "team-standard")
_SPEAKING_BY = ("lifecycle", "evidence_kind", "origin_class", "declared_standing", "declared_safety")
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
    gates, rows = plugins.order, integers(candidates["row"])
    stored, row, place, moment, ended = gates.judged(evidence, placements, rows, order, contracts, contract_bounds)
    removed_by = np.where(place > 0, place, moment)
    admitted, readable = removed_by == 0, gates.passes_access(place)
    spoken = [*zip(*(stored[name].to_pylist() for name in _SPEAKING_BY), strict=True)]
    places = {one: place for place, one in enumerate(dict.fromkeys(spoken))}
    words, of_words = [*places], np.array([places[one] for one in spoken], dtype=np.int64)[row]
    over = _OF_HISTORY[moment] | ended | present(candidates["replaced_by"])
    return VERDICTS.build(
        {
            "request_id": candidates["request_id"],
            "evidence_id": candidates["evidence_id"],
            "pool_rank": candidates["pool_rank"],
            "admitted": admitted,
            "source_access": readable,
            "model_visibility": _model_visibility(stored["declared_visibility"], row, place, readable),
            "decided_by": _by_gate(gates.names, removed_by),
            "reason_code": _by_gate(gates.reasons, removed_by),
            "would_reject_by": _would_reject_by(words, of_words, admitted),
            "standing": _standings(words, of_words, over, _may_instruct(stored, row, order, contracts)),
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
        replaced &= ~truth(contracts["include_deleted"])[contract]
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


def _model_visibility(declared: Column, row: Ints, place: Ints, readable: Mask) -> pa.Array:
    """The declared visibility if the system may read the row; runtime-only where a later visibility gate stops it."""
    runtime_only, denied = _VISIBLE.index("runtime-only"), _VISIBLE.index("denied")
    word = positions(declared, constants(_VISIBLE))[row]
    word = np.where(place > _VISIBILITY, runtime_only, np.where(word < 0, denied, word))
    return constants(_VISIBLE).take(pa.array(np.where(readable, word, denied)))


def _would_reject_by(words: Sequence[tuple[Any, ...]], of_words: Ints, admitted: Mask) -> pa.Array:
    """For admitted rows, the first gate a stricter contract would close: `lifecycle` if unverified, else `safety`."""
    soft = [0 if state != "verified" else 1 if safety != "safe" else 2 for state, *_, safety in words]
    place = np.where(admitted, np.array(soft, dtype=np.int64)[of_words], 2)
    return constants(("lifecycle", "safety", None)).take(pa.array(place))


def _standings(words: Sequence[tuple[Any, ...]], of_words: Ints, over: Mask, own: Mask) -> pa.Array:
    """How each text may speak; equal words speak alike."""
    speaks = [
        _standing(*one[:4], own=own, over=over) for one in words for own in (False, True) for over in (False, True)
    ]
    return pa.array(speaks, pa.string()).take(pa.array(of_words * 4 + own * 2 + over))


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


def _may_instruct(stored: pa.Table, row: Ints, order: Ints, contracts: pa.Table) -> Mask:
    """Whether each candidate is of its contract's project, and its path matches a glob that may instruct there."""
    asked = zip(contracts["project"].to_pylist(), map(tuple, contracts["instruction_sources"].to_pylist()), strict=True)
    known: dict[tuple[str, tuple[str, ...]], int] = {}
    of_contract = np.array([known.setdefault(one, len(known)) for one in asked], dtype=np.int64)
    found = [
        np.asarray(pc.equal(stored["owner_project"], project)) & glob_mask(stored["path"], globs)
        for project, globs in known
    ]
    return np.array(found, dtype=bool).reshape(len(known), stored.num_rows)[of_contract[order], row]
