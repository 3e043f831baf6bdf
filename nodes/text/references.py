"""The references of a text: the documents it cites and the records it names, as index keys.

Reads stored columns of some rows. Gives `References`. Recall looks the keys up inside A(r), so
a reference to a row that a request may not see finds nothing.
"""

from __future__ import annotations

import re
from functools import lru_cache

import pyarrow as pa

from ..frames import posting_keys
from .anchor_patterns import LOWER_CASE_ID, anchors_in, find_all
from .index_keys import id_keys, path_keys

_PLACE = re.compile(r"[#?].*$")
_UPWARD = re.compile(r"^(?:\.{1,2}/|/)+")


References = list[tuple[int, str]]
"""Pairs of a row and a key: the row refers to the rows under the key."""


def cited_documents(links: pa.Array, texts: pa.Array) -> References:
    """The paths and ids in links and texts (`ADR-011`, `decisions/pricing.md`)."""
    named = [(row, link) for row, own in enumerate(links.to_pylist()) for link in own or ()]
    return [(row, key) for row, link in (*named, *_in_texts(texts, ("id", "path"))) for key in _keys(link)]


def named_records(paths: pa.Array, texts: pa.Array) -> References:
    """The ids in texts, and the folders of paths: `ventures/acme/projects/proj-001/x.md` names `proj-001`."""
    named = [(row, name) for row, path in enumerate(paths.to_pylist()) for name in (path or "").split("/")[:-1]]
    rows, lower = find_all(texts.cast(pa.large_string()), LOWER_CASE_ID)
    named += zip(rows.tolist(), lower.to_pylist(), strict=True)
    pairs = [(row, key) for row, name in named for key in _ids(name)]
    return pairs + [(row, key) for row, name in _in_texts(texts, ("id",)) for key in _keys(name)]


def _in_texts(texts: pa.Array, kinds: tuple[str, ...]) -> list[tuple[int, str]]:
    return [(found.text, found.value) for found in anchors_in(texts, kinds)]


@lru_cache(maxsize=4096)
def _keys(link: str) -> list[str]:
    """The keys of a link as written: its id, and its path without leading dots and slashes, query and fragment."""
    path = path_keys(_UPWARD.sub("", _PLACE.sub("", link)))
    return [*_ids(link), *posting_keys("path", path[:1])]


def _ids(name: str) -> list[str]:
    return posting_keys("id", id_keys(name))
