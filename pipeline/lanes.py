"""Lanes that were asked for and cannot run: what the record says of each, and what the user can do about it.

Gives: `lanes_off`, messages that stand in conditions and therefore in digests: functions of contract and corpus alone;
`advice`, which depends on what is installed here and goes to standard error, never into a snapshot.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..nodes.errors import ModelError
from ..nodes.keys import flat, positions
from .encoder import encoder_available

NO_VECTORS = "the rows that this contract reaches were indexed without vectors"
SOME_VECTORS = "some of the rows that this contract reaches were indexed without vectors"
NO_ENCODER = "no encoder was opened for the vectors of the corpus"
SILENT_ENCODER = "the encoder of the corpus gives no vectors"
OTHER_ENCODER = "the encoder is not the one that the corpus was indexed with"
NO_GRAPH = "this version has no graph lane"

_INDEX = "index again without --no-semantic"
SEMANTIC_HINT = 'pip install "scoped-retrieval[semantic]"'


def lanes_off(lanes: Collection[str], profile: str | None, encoder: Any) -> dict[str, str]:
    """Lanes among these that cannot run, each with why; `profile` is the encoder of the corpus, if it has vectors.

    Whether the rows of a request have vectors at all is judged per request, see `vector_states`.
    """
    off = {}
    if "semantic" in lanes and profile is not None:
        if encoder is None:
            off["semantic"] = NO_ENCODER
        elif (own := _profile_of(encoder)) != profile:
            off["semantic"] = SILENT_ENCODER if own is None else OTHER_ENCODER
    if "graph" in lanes:
        off["graph"] = NO_GRAPH
    return off


def _profile_of(encoder: Any) -> str | None:
    """The profile of an encoder; None where the server that has it does not answer, or no longer has it."""
    try:
        return encoder.profile
    except ModelError:
        return None


def vector_states(ids: pa.Array, bounds: pa.Table, segments: pa.Table, encoded: np.ndarray) -> list[str | None]:
    """Per request why the semantic lane finds nothing, or not everything, among the rows it reaches; None if it does.

    Args:
        ids: the requests.
        bounds: CONTRACT_BOUNDS; a request without any reaches nothing, and nothing is said of it.
        segments: SEGMENTS of the frame, `encoded` whether each has vectors.
    """
    owners = _owner(segments["owner_project"], pc.fill_null(flat(segments["owner_user"]), ""))
    users = bounds["users"].combine_chunks() if bounds.num_rows else pa.array([], pa.list_(pa.string()))
    at = np.concatenate([np.asarray(pc.list_parent_indices(users)), np.arange(bounds.num_rows)]).astype(np.int64)
    user = pa.concat_arrays([pc.list_flatten(users), pa.array([""] * bounds.num_rows, pa.string())])
    reached = _owner(bounds["project"].take(pa.array(at)), user)
    request = positions(bounds["request_id"], ids)[at]
    found = []
    for state in (True, False):
        of_state = owners.filter(pa.array(encoded == state))
        hit = np.asarray(pc.is_in(reached, value_set=of_state))
        found.append(np.bincount(request[hit], minlength=len(ids)) > 0)
    some, none = found
    return [NO_VECTORS if n and not s else SOME_VECTORS if n else None for s, n in zip(some, none, strict=True)]


def _owner(project: pa.ChunkedArray, user: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(flat(project), flat(user), "\n")


def advice(message: str) -> str | None:
    """How to turn on a lane that is off for this reason, on this machine; None if there is no way."""
    installed, _ = encoder_available()
    return {
        NO_VECTORS: _INDEX if installed else f"{SEMANTIC_HINT} and index again",
        SOME_VECTORS: _INDEX if installed else f"{SEMANTIC_HINT} and index again",
        NO_ENCODER: "open the retriever with an encoder" if installed else SEMANTIC_HINT,
        SILENT_ENCODER: "start its server, `ollama serve`, and fetch its model, `ollama pull MODEL`",
        OTHER_ENCODER: "index again",
    }.get(message)
