"""Requested lanes that cannot run: the message of each in the record, and a remedy for the user.

Gives: `lanes_off` and `lane_states`, messages that are in conditions and therefore in digests; the message of a model's
fault has the result and a hint, without the folder or address, which a caller need not know. `advice` depends on what
is installed here and goes to standard error, never into a snapshot.

Note: whether a request has rows with vectors follows from its contract and A(r) alone. Why no query is encoded
(`NO_ENCODER`, `SILENT_ENCODER`, `OTHER_ENCODER`) depends on this machine and its servers when the retriever was opened;
the provenance then names no encoder, so digests of two such machines differ only by recorded values.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...nodes.columns.keys import flat, integers, positions, take_or
from ...nodes.errors import DECLARE, ModelError
from ...nodes.frames import RowIndex
from ...nodes.tables import LANE_STATES
from ...nodes.walls.clocks import distinct_clocks
from ..corpus import CorpusFrame
from ..encoders.cross_encoder import CROSS_ENCODER
from ..encoders.encoder import encoder_available

NO_VECTORS = "the rows that this contract reaches were indexed without vectors"
SOME_VECTORS = "some of the rows that this contract reaches were indexed without vectors"
NO_ENCODER = "no encoder was opened for the vectors of the corpus"
SILENT_ENCODER = "the encoder of the corpus gives no vectors"
OTHER_ENCODER = "the encoder is not the one that the corpus was indexed with"
NO_CROSS_ENCODER = "the mode asks for a cross-encoder, and none is set"
MODEL_FAULTS = (NO_ENCODER, SILENT_ENCODER, OTHER_ENCODER)
"""The first words of messages about models that failed when a retriever was opened."""

_DIGEST = 16
"""The number of hex digits of a digest in a profile: a dimension has fewer."""
_INDEX = "`index` makes vectors"
_SET = "set `encoder` to the one that the corpus was indexed with; `status` has its profile"
SEMANTIC_HINT = 'pip install "scoped-retrieval[semantic]"'


def lanes_off(lanes: Collection[str], profile: str | None, encoder: Any) -> dict[str, str]:
    """Lanes among these that cannot run, with the reason; `profile` is the encoder of the corpus, if it has vectors.

    Whether the rows of a request have vectors at all is judged per request, see `vector_states`.
    """
    off = {}
    if "semantic" in lanes and profile is not None:
        if encoder is None:
            off["semantic"] = NO_ENCODER
        elif (own := _profile_or_error(encoder)) != profile:
            off["semantic"] = (
                _fault(SILENT_ENCODER, own)
                if isinstance(own, ModelError)
                else f"{OTHER_ENCODER}: {_unlike(own, profile)}"
            )
    return off


def _profile_or_error(encoder: Any) -> str | ModelError:
    """The profile of a model, or the error: the server does not answer or no longer has it, or it does not load."""
    try:
        return encoder.profile
    except ModelError as error:
        return error


def _fault(lane: str, error: ModelError) -> str:
    """The recorded part of a fault: expectation, result and hint, without the folder or address."""
    return f"{lane}: {error.what}" + (f"; {error.hint}" if error.hint else "")


def _unlike(own: str, known: str) -> str:
    """The first part in which the profile of an encoder differs from the one of the corpus, in words."""
    for mine, others in zip_longest(own.split("+"), known.split("+")):
        if mine == others:
            continue
        if mine and others and mine.isdecimal() and others.isdecimal() and len(mine) < _DIGEST:
            return f"vectors of {mine} numbers in place of {others}"
        if "prompts-" in (mine or "") or "prompts-" in (others or ""):
            return "other prompts"
        break
    return "another model, or other weights or settings of it"


def vector_states(
    contracts: pa.Table,
    row_groups: pa.Table,
    reachable: pa.Table,
    admissible: pa.Table,
    segments: pa.Table,
    row_index: RowIndex,
    encoded: NDArray[np.bool_],
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether A(r) has rows with vectors, and rows without, per contract and in its order.

    Only admissible rows count: a request must not learn whether a row that it may not see has a vector. A clock is
    evaluated only where a row group has rows of both sorts, and only for the fewer of them.

    Args:
        contracts: CONTRACTS, with the clocks of the requests.
        row_groups: SCOPE_GROUPS of the first wall.
        reachable: REACHABLE of the row groups.
        admissible: ADMISSIBLE, for the size of each A(r).
        segments: SEGMENTS of the frame, `encoded` whether each has vectors.
        row_index: the frame's views.
    """
    rows = integers(take_or(admissible["rows"], positions(contracts["request_id"], admissible["request_id"]), 0))
    if encoded.all() or not encoded.any():
        nothing = np.zeros(len(rows), dtype=bool)
        return (rows > 0, nothing) if encoded.any() else (nothing, rows > 0)
    shown = np.flatnonzero(integers(reachable["withheld_by"]) == 0)
    row, owner = integers(reachable["row"])[shown], integers(reachable["scope_group"])[shown]
    has = encoded[np.searchsorted(integers(segments["row_start"]), row, side="right") - 1]
    group = integers(
        take_or(row_groups["scope_group"], positions(contracts["request_id"], row_groups["request_id"]), -1)
    )
    clock, of_request = distinct_clocks(contracts)
    with_vector = np.zeros(len(rows), dtype=np.int64)
    for number in np.unique(group[group >= 0]).tolist():
        own = slice(*np.searchsorted(owner, (number, number + 1)))
        asked = np.flatnonzero(group == number)
        rarer = bool(2 * np.count_nonzero(has[own]) <= own.stop - own.start)
        few = row[own][has[own] == rarer]
        clocks, at = np.unique(of_request[asked], return_inverse=True)
        count = clock.passing(row_index, clocks, few)[at.reshape(-1)]
        with_vector[asked] = count if rarer else rows[asked] - count
    return with_vector > 0, with_vector < rows


def semantic_reasons(
    some: NDArray[np.bool_], lacking: NDArray[np.bool_], off: str | None
) -> tuple[NDArray[np.int64], pa.Array]:
    """The requests for which the semantic lane has a message, and the message.

    Args:
        some: whether rows of the request have vectors, see `vector_states`.
        lacking: whether rows of the request have none.
        off: why no query is encoded, if none is; reported only if there are vectors to compare with.
    """
    reason = np.select([~some & lacking, some & (off is not None), lacking], [0, 1, 2], -1)
    at = np.flatnonzero(reason >= 0)
    return at, pa.array([NO_VECTORS, off, SOME_VECTORS], pa.string()).take(pa.array(reason[at]))


@dataclass(frozen=True)
class Silent:
    """An encoder that returns no vectors: the requests that need one, and its error."""

    asked: pa.Array
    message: str


def answerable_and_lost(asked: pa.Table, known: Collection[str]) -> tuple[pa.Table, pa.Array]:
    """For an encoder that returns no vectors: the sub-queries of requests whose texts all have one already, and the ids
    of the other requests. So a request loses the same in a batch as alone.
    """
    texts = flat(asked["query_text"]).dictionary_encode()
    without = pa.array([text not in known for text in texts.dictionary.to_pylist()], pa.bool_()).take(texts.indices)
    lost = pc.unique(flat(asked["request_id"]).filter(without))
    return asked.filter(pc.invert(pc.is_in(flat(asked["request_id"]), value_set=lost))), lost


def lane_states(
    planned: Mapping[str, pa.Table],
    frame: CorpusFrame,
    lanes: Collection[str],
    off: Mapping[str, str],
    broken: Mapping[str, str],
    silent: Silent | None,
    naming: pa.Table | None = None,
) -> pa.Table:
    """LANE_STATES: one row per request and lane that did not run, or did not reach every row.

    Args:
        planned: tables of the line, including the first wall's.
        frame: the rows that the shard opened.
        lanes: the requested lanes.
        off: the result of `lanes_off`.
        broken: lanes that failed, with their errors, for every request of the shard.
        silent: the encoder's error, if it returned no vector of any query.
        naming: MODE_POLICIES, if no cross-encoder is set: modes that name one are reported.
    """
    ids = flat(planned["contracts"]["request_id"])
    parts = [_one_state(ids, lane, "failed", message) for lane, message in broken.items()]
    parts += [_one_state(ids, lane, "off", why) for lane, why in off.items() if lane not in {*broken, "semantic"}]
    if naming is not None and CROSS_ENCODER not in off:
        modes = flat(naming["mode"].filter(naming["cross_encoder"]))
        without = ids.filter(pc.is_in(flat(planned["contracts"]["mode"]), value_set=modes))
        parts.append(_one_state(without, CROSS_ENCODER, "off", NO_CROSS_ENCODER))
    if "semantic" in lanes and "semantic" not in broken:
        vectors = frame.vectors.parts if frame.vectors is not None else (None,) * frame.segments.num_rows
        encoded = np.array([part is not None for part in vectors], dtype=bool)
        wall = {name: planned[name] for name in ("contracts", "row_groups", "reachable", "admissible")}
        some, lacking = vector_states(**wall, segments=frame.segments, row_index=frame.row_index, encoded=encoded)
        at, why = semantic_reasons(some, lacking, off.get("semantic"))
        if silent is not None:  # irrelevant to a request without rows that have vectors
            failed = some & np.asarray(pc.is_in(ids, value_set=silent.asked))
            parts.append(_one_state(ids.filter(pa.array(failed)), "semantic", "failed", silent.message))
            why, at = why.filter(pa.array(~failed[at])), at[~failed[at]]
        parts.append(_one_state(ids.take(pa.array(at)), "semantic", "off", why))
    states = pa.concat_tables([LANE_STATES.empty(), *parts])
    return states.sort_by([(name, "ascending") for name in LANE_STATES.order]).combine_chunks()


def _one_state(ids: pa.Array, lane: str, state: str, message: str | pa.Array) -> pa.Table:
    """LANE_STATES of one lane for some requests."""
    words = pa.repeat(message, len(ids)) if isinstance(message, str) else message
    return LANE_STATES.build(
        {"request_id": ids, "lane": pa.repeat(lane, len(ids)), "state": pa.repeat(state, len(ids)), "message": words}
    )


_UNFORESEEN = "Expected no error, got "
"""The first words of the record of an error from outside this package: damage, or a defect."""


def advice(message: str) -> str | None:
    """The remedy on this machine for a lane that is off, or a request that failed, for this reason; None if none."""
    if message.startswith(f"{_UNFORESEEN}KeyError - at "):  # in a gate of this package
        return DECLARE
    if message.startswith(_UNFORESEEN):
        return "`verify corpus` names files that are damaged; if it finds none, this is a defect: PYTHONDEVMODE=1 shows where"
    if message.startswith("Expected a plugin that runs, got KeyError"):
        return DECLARE
    if message.startswith(SILENT_ENCODER):
        return "`doctor` asks it again, and says where"
    if message.startswith(OTHER_ENCODER):
        return "set `encoder` to the one of the corpus, or index again; `status` has its profile"
    installed, _ = encoder_available()
    return {
        NO_VECTORS: _INDEX if installed else f"{SEMANTIC_HINT} and index again",
        SOME_VECTORS: _INDEX if installed else f"{SEMANTIC_HINT} and index again",
        NO_ENCODER: f"{'' if installed else f'{SEMANTIC_HINT}; or '}{_SET}",
        NO_CROSS_ENCODER: "set `cross_encoder` to the folder of a model",
    }.get(message)
