"""The references of a text: the documents it cites and the records it names, as index keys.

Reads stored columns of some rows. Gives `References`: (row number, key) pairs. Recall looks the keys up inside A(r), so
a reference to a row that a request may not see finds nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..columns.ragged import Ragged
from ..frames import posting_keys
from .anchor_patterns import LOWER_CASE_ID, anchors_in, find_all
from .index_keys import id_keys, path_keys

__all__ = ["References", "cited_documents", "named_records"]

_PLACE = re.compile(r"[#?].*$")
_UPWARD = re.compile(r"^(?:\.{1,2}/|/)+")


@dataclass(frozen=True)
class References:
    """Row `row[i]` refers to the rows under the key `key[i]`."""

    row: NDArray[np.int64]
    key: pa.Array


def cited_documents(links: pa.Array, texts: pa.Array) -> References:
    """The paths and ids in links and texts (`ADR-011`, `decisions/pricing.md`)."""
    linked = Ragged.of(links).expand(_document_keys)
    return _joined([(linked.rows, linked.vocabulary.take(pa.array(linked.codes))), *_in_texts(texts, ("id", "path"))])


def named_records(paths: pa.Array, texts: pa.Array) -> References:
    """The ids in texts, and the folders of paths: `ventures/acme/projects/proj-001/x.md` names `proj-001`."""
    folders = Ragged.of(paths).expand(lambda path: [key for name in path.split("/")[:-1] for key in _ids(name)])
    row, name = find_all(texts.cast(pa.large_string()), LOWER_CASE_ID)
    lower = Ragged.of(name).expand(_ids)
    return _joined(
        [
            (folders.rows, folders.vocabulary.take(pa.array(folders.codes))),
            *_in_texts(texts, ("id",)),
            (row[lower.rows], lower.vocabulary.take(pa.array(lower.codes))),
        ]
    )


def _in_texts(texts: pa.Array, kinds: tuple[str, ...]) -> list[tuple[NDArray[np.int64], pa.Array]]:
    found = anchors_in(texts, kinds)
    keys = Ragged.of(found.value).expand(_document_keys)
    return [(found.text[keys.rows], keys.vocabulary.take(pa.array(keys.codes)))]


def _document_keys(link: str) -> list[str]:
    """The keys of a link as written: its id, and its path without leading dots and slashes, query and fragment."""
    path = path_keys(_UPWARD.sub("", _PLACE.sub("", link)))
    return [*_ids(link), *posting_keys("path", path[:1])]


def _ids(name: str) -> list[str]:
    return posting_keys("id", id_keys(name))


def _joined(parts: list[tuple[NDArray[np.int64], pa.Array]]) -> References:
    return References(
        np.concatenate([row for row, _ in parts]), pa.concat_arrays([key.cast(pa.large_string()) for _, key in parts])
    )
