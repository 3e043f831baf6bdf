"""The index keys that an anchor looks up, and the share of its weight for each.

Reads anchor values. Gives the keys of `nodes/text/index_keys.py` for each value and their shares.

Note: a stored name has every key from the qualified to the bare one, so the shares of all keys that a row matches add
up, and the closest match ranks first although no key is left out.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.ragged import Ragged
from .anchor_patterns import LOWER_CASE_ID, find_all
from .index_keys import definition_keys, id_keys, path_keys

SUFFIXES = 4
"""Number of path suffixes used: an absolute path of another machine starts with folders that are in no stored path."""

Keys = tuple[Ragged, NDArray[np.float64]]


def definition_terms(values: pa.Array) -> Keys:
    """Keys of identifiers and test names. The share is 1 as written, then 1/2, and 1/4 in lower case.

    A pytest node id is looked up by its function, without parameters; a test title is text and has no key.
    """
    bare = pc.replace_substring_regex(values, pattern=r"\[[^\]]*\]$", replacement="")
    bare = pc.replace_substring_regex(bare, pattern=r"^\S*\.py::", replacement="")
    named = np.asarray(pc.match_substring_regex(bare, pattern=r"^[^\s/]+$"))
    keys = Ragged.of(pc.if_else(pa.array(named), bare, pa.scalar(None, bare.type))).expand(definition_keys)
    return keys, np.ldexp(1.0, -_inside(keys))


def path_terms(values: pa.Array) -> Keys:
    """Keys of paths: the last `SUFFIXES` suffixes with share 1/2 each, the file name without its ending with 1/4."""
    keys = Ragged.of(values).expand(lambda path: path_keys(path)[-(SUFFIXES + 1) :])
    last = keys.starts[1:][np.diff(keys.starts) > 1] - 1
    shares = np.full(len(keys.codes), 0.5)
    shares[last] = 0.25
    return keys, shares


def id_terms(values: pa.Array) -> Keys:
    """Key of an id: the id itself."""
    keys = Ragged.of(values).expand(id_keys)
    return keys, np.ones(len(keys.codes))


def literal_terms(values: pa.Array) -> Keys:
    """Key of a literal: itself."""
    keys = Ragged.of(values)
    return keys, np.ones(len(keys.codes))


def small_ids(texts: pa.Array) -> tuple[NDArray[np.int64], pa.Array]:
    """Lower-case ids (S1.20), each with the number of its text: look-up keys, not anchors.

    As an anchor, `utf-8` would score every text that contains it; as a key, it finds a record of that name or nothing.
    """
    return find_all(texts.cast(pa.large_string()), LOWER_CASE_ID)


def _inside(keys: Ragged) -> NDArray[np.int64]:
    return np.arange(len(keys.codes)) - keys.starts[:-1].repeat(np.diff(keys.starts))
