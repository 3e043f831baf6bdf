"""Requested lanes that cannot run: the message of each in the record, with its remedy.

Gives: `lanes_off` and `lane_states`, messages that are in conditions and therefore in digests, so they do not depend on what is
installed here; the message of a model's fault has the result and a hint, without the folder or address, which a caller need
not know. `advice` goes to standard error, never into a snapshot.

Note: whether a request has rows with vectors follows from its contract and A(r) alone. Why no query is encoded
(`NO_ENCODER`, `SILENT_ENCODER`, `OTHER_ENCODER`) depends on this machine and its servers when the retriever was opened;
the provenance then names no encoder, so digests of two such machines differ only by recorded values.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...nodes.columns.keys import integers
from ...nodes.errors import DECLARE, ModelError
from ...nodes.frames import RowIndex, segments_of
from ...nodes.tables import LANE_STATES
from ...nodes.walls.first_wall import rows_of_groups
from ...nodes.walls.time_gates import distinct_clocks
from ..corpus import CorpusFrame
from ..encoders.cross_encoder import CROSS_ENCODER

Flags = NDArray[np.bool_]

NO_VECTORS = (
    "the rows that this contract reaches were indexed without vectors; `index` makes them with the extra `semantic`"
)
SOME_VECTORS = f"some of {NO_VECTORS}"
NO_ENCODER = (
    "no encoder was opened for the vectors of the corpus; set `encoder` to that in `status`, or install `semantic`"
)
SILENT_ENCODER = "the encoder of the corpus gives no vectors"
OTHER_ENCODER = (
    "the encoder is not the one that the corpus was indexed with; set `encoder` to that in `status`, or index again"
)
NO_CROSS_ENCODER = "the mode asks for a cross-encoder, and none is set; `cross_encoder` names the folder of one"
MODEL_FAULTS = (NO_ENCODER, SILENT_ENCODER, OTHER_ENCODER)
"""The first words of messages about models that failed when a retriever was opened."""


def lanes_off(lanes: Collection[str], profile: str | None, encoder: Any) -> dict[str, str]:
    """Lanes among these that cannot run, with the reason; `profile` is the encoder of the corpus, if it has vectors.

    Whether the rows of a request have vectors at all is judged per request, see `vector_states`.
    """
    off = {}
    if "semantic" in lanes and profile is not None:
        if encoder is None:
            off["semantic"] = NO_ENCODER
        elif (own := _profile_or_error(encoder)) != profile:
            off["semantic"] = _fault(SILENT_ENCODER, own) if isinstance(own, ModelError) else OTHER_ENCODER
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


def vector_states(
    contracts: pa.Table,
    row_groups: pa.Table,
    reachable: pa.Table,
    admissible: pa.Table,
    segments: pa.Table,
    row_index: RowIndex,
    encoded: Flags,
) -> tuple[Flags, Flags]:
    """Whether A(r) has rows with vectors, and rows without, per contract and in its order.

    Only admissible rows count: a request must not learn whether a row that it may not see has a vector. They are judged
    again only where a frame has segments of both sorts, `encoded` and not.
    """
    some = np.asarray(admissible["rows"]) > 0
    if encoded.all() or not encoded.any():
        nothing = np.zeros(len(some), dtype=bool)
        return (some, nothing) if encoded.any() else (nothing, some)
    starts, reached = integers(segments["row_start"]), rows_of_groups(reachable)
    clock, of_request = distinct_clocks(contracts)
    found: dict[tuple[int, int], tuple[bool, bool]] = {}
    asked = [*zip(row_groups["scope_group"].to_pylist(), of_request.tolist(), strict=True)]
    for group, at in dict.fromkeys(asked):
        rows, withheld = reached[group] if group >= 0 else (starts[:0], encoded[:0])
        passes = rows[~withheld]
        passes = passes[clock.grid(row_index, np.array([at]), passes)[0]]
        has = encoded[segments_of(passes, starts)]
        found[group, at] = bool(has.any()), not has.all()
    with_vector, without = zip(*(found[one] for one in asked), strict=True)
    return np.array(with_vector), np.array(without)


def semantic_reason(some: bool, lacking: bool, off: str | None) -> str | None:
    """The message about the semantic lane for a request that has `some` rows with vectors, or is `lacking` those of others.

    `off` is why no query is encoded, if none is; reported only if there are vectors to compare with.
    """
    if some and off is not None:
        return off
    return (SOME_VECTORS if some else NO_VECTORS) if lacking else None


@dataclass(frozen=True)
class Silent:
    """An encoder that returns no vectors: the requests that need one, and its error."""

    asked: Collection[str]
    message: str


def answerable_and_lost(asked: pa.Table, known: Collection[str]) -> tuple[pa.Table, Collection[str]]:
    """For an encoder that returns no vectors: the sub-queries of requests whose texts all have one already, and the ids
    of the other requests. So a request loses the same in a batch as alone.
    """
    ids = asked["request_id"].to_pylist()
    lost = {id_ for id_, text in zip(ids, asked["query_text"].to_pylist(), strict=True) if text not in known}
    return asked.filter(pa.array([id_ not in lost for id_ in ids], pa.bool_())), lost


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
    contracts = planned["contracts"].select(["request_id", "mode"]).to_pylist()
    ids = [contract["request_id"] for contract in contracts]
    found = [(id_, lane, "failed", message) for lane, message in broken.items() for id_ in ids]
    off_for_all = {lane: why for lane, why in off.items() if lane not in {*broken, "semantic"}}
    found += [(id_, lane, "off", why) for lane, why in off_for_all.items() for id_ in ids]
    if naming is not None and CROSS_ENCODER not in off:
        modes = {*naming["mode"].filter(naming["cross_encoder"]).to_pylist()}
        without = (contract["request_id"] for contract in contracts if contract["mode"] in modes)
        found += [(id_, CROSS_ENCODER, "off", NO_CROSS_ENCODER) for id_ in without]
    if "semantic" in lanes and "semantic" not in broken:
        vectors = frame.vectors.parts if frame.vectors is not None else (None,) * frame.segments.num_rows
        encoded = np.array([part is not None for part in vectors], dtype=bool)
        wall = {name: planned[name] for name in ("contracts", "row_groups", "reachable", "admissible")}
        states = vector_states(**wall, segments=frame.segments, row_index=frame.row_index, encoded=encoded)
        for id_, some, lacking in zip(ids, *(state.tolist() for state in states), strict=True):
            if silent is not None and some and id_ in silent.asked:  # irrelevant without rows that have vectors
                found.append((id_, "semantic", "failed", silent.message))
            elif why := semantic_reason(some, lacking, off.get("semantic")):
                found.append((id_, "semantic", "off", why))
    return LANE_STATES.from_rows([dict(zip(LANE_STATES.columns, one, strict=True)) for one in sorted(found)])


_UNFORESEEN = "Expected no error, got "
"""The first words of the record of an error from outside this package: damage, or a defect."""


def advice(message: str) -> str | None:
    """The remedy for a lane or a request that failed for this reason; None if there is none."""
    if message.startswith((f"{_UNFORESEEN}KeyError - at ", "Expected a plugin that runs, got KeyError")):
        return DECLARE
    if message.startswith(_UNFORESEEN):
        return "`verify corpus` names files that are damaged; if it finds none, this is a defect: PYTHONDEVMODE=1 shows where"
    return "`doctor` asks it again, and says where" if message.startswith(SILENT_ENCODER) else None
