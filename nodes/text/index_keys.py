"""The keys under which names, paths and ids are indexed and looked up, shared by index and query.

Keys come without the prefix of their field; `frames.posting_keys` adds it. Index every key of a stored value. To look
up a value, try its keys, most specific first: the first key with a match is the best match. `anchor_keys` gives the keys
that an anchor looks up, and the share of its weight for each: a stored name has every key from the qualified to the bare
one, so the shares of all keys that a row matches add up, and the closest match ranks first although no key is left out.
"""

from __future__ import annotations

import re

_QUALIFIER = re.compile(r"(?:::|[.#/$])")


def definition_keys(name: str) -> list[str]:
    """Keys of an identifier: as written, its last part, and that in lower case.

    `Session.resolveUrl` gives `Session.resolveUrl`, `resolveUrl`, `resolveurl`. Used for definitions and references. A
    title of several words is one key: `calls auth.login` does not name `login`.
    """
    name = name.strip().removesuffix("()")
    if len(name.split()) > 1:
        return [name]
    bare = next((part for part in reversed(_QUALIFIER.split(name)) if part), "")
    return _distinct(name, bare, bare.lower())


DEPTH = 64
"""Maximum number of path parts whose suffixes are keys; no path written by people is that deep."""


def path_keys(path: str) -> list[str]:
    """Keys of a path: itself and its suffixes at a `/`, longest first, and the file name without ending; lower case.

    `src/App/url.test.ts` gives `src/app/url.test.ts`, `app/url.test.ts`, `url.test.ts`, `url.test`. An absolute path of
    another machine thus finds the stored path that it ends with. Longer paths have only the suffixes of their last
    `DEPTH` parts: a question may contain a hundred kilobytes of slashes.
    """
    parts = [part for part in path.strip().lower().replace("\\", "/").split("/") if part not in ("", ".")]
    if not parts:
        return []
    stem = parts[-1].rpartition(".")[0]
    suffixes = ("/".join(parts[i:]) for i in range(max(0, len(parts) - DEPTH), len(parts)))
    return _distinct("/".join(parts), *suffixes, stem)


def id_keys(value: str) -> list[str]:
    """Key of an evidence id, an entity or a URI: itself in lower case."""
    return _distinct(value.strip().lower())


def conflict_keys(value: str) -> list[str]:
    """Key of a conflict set: itself, exactly."""
    return _distinct(value)


def _distinct(*keys: str) -> list[str]:
    return [key for key in dict.fromkeys(keys) if key]


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
