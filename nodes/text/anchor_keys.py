"""The index keys that an anchor looks up, and the share of its weight for each.

Reads anchor values. Gives the keys of `nodes/text/index_keys.py` for each value and their shares.

Note: a stored name has every key from the qualified to the bare one, so the shares of all keys that a row matches add
up, and the closest match ranks first although no key is left out.
"""

from __future__ import annotations

import re

from .index_keys import definition_keys, id_keys, path_keys

SUFFIXES = 4
"""Number of path suffixes used: an absolute path of another machine starts with folders that are in no stored path."""
_PARAMETERS, _FILE, _NAME = (
    re.compile(r"\[[^\]]*\]\Z"),
    re.compile(r"\A\S*\.py::", re.ASCII),
    re.compile(r"[^\s/]+", re.ASCII),
)


def anchor_keys(kind: str, value: str) -> list[tuple[str, float]]:
    """The keys of an anchor, each with its share of the anchor's weight.

    An identifier or test counts as written, then 1/2, and 1/4 in lower case; a pytest node id is looked up by its
    function, without parameters; a test title is text and has no key. Of a path, the last `SUFFIXES` suffixes count 1/2
    each, the file name without its ending 1/4. An id or a literal is its own key.
    """
    if kind in ("identifier", "test"):
        bare = _FILE.sub("", _PARAMETERS.sub("", value))
        keys = definition_keys(bare) if _NAME.fullmatch(bare) else ()
        return [(key, 2.0**-place) for place, key in enumerate(keys)]
    if kind == "path":
        keys = path_keys(value)[-(SUFFIXES + 1) :]
        return [(key, 0.25 if 0 < place == len(keys) - 1 else 0.5) for place, key in enumerate(keys)]
    return [(key, 1.0) for key in (id_keys(value) if kind == "id" else [value])]
