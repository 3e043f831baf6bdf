"""Requested lanes that cannot run: the message of each in the record, with its remedy.

Gives: `lanes_off`, messages that are in conditions and therefore in digests, so they do not depend on what is
installed here; the message of a model's fault has the result and a hint, without the folder or address, which a caller need
not know. `advice` goes to standard error, never into a snapshot.

Note: whether a request has rows with vectors follows from its contract and A(r) alone. Why no query is encoded
(`NO_ENCODER`, `SILENT_ENCODER`, `OTHER_ENCODER`) depends on this machine and its servers when the retriever was opened;
the provenance then names no encoder, so digests of two such machines differ only by recorded values.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ...nodes.errors import DECLARE, ModelError

NO_ENCODER = (
    "no encoder was opened for the vectors of the corpus; set `encoder` to that in `status`, or install `semantic`"
)
SILENT_ENCODER = "the encoder of the corpus gives no vectors"
OTHER_ENCODER = (
    "the encoder is not the one that the corpus was indexed with; set `encoder` to that in `status`, or index again"
)
MODEL_FAULTS = (NO_ENCODER, SILENT_ENCODER, OTHER_ENCODER)
"""The first words of messages about models that failed when a retriever was opened."""


def lanes_off(lanes: Collection[str], profile: str | None, encoder: Any) -> dict[str, str]:
    """Lanes among these that cannot run, with the reason; `profile` is the encoder of the corpus, if it has vectors.

    Whether the rows of a request have vectors at all is judged per request, see the node `lane_states`.
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


_UNFORESEEN = "Expected no error, got "
"""The first words of the record of an error from outside this package: damage, or a defect."""


def advised(message: str) -> str:
    """Why a lane or a request failed, and the remedy if there is one."""
    if message.startswith((f"{_UNFORESEEN}KeyError - at ", "Expected a plugin that runs, got KeyError")):
        return f"{message}; {DECLARE}"
    if message.startswith(_UNFORESEEN):
        return f"{message}; `verify corpus` names files that are damaged; if it finds none, this is a defect: PYTHONDEVMODE=1 shows where"
    return f"{message}; `doctor` asks it again, and says where" if message.startswith(SILENT_ENCODER) else message
