"""Under which keys names, paths and ids are indexed, and hence looked up: the one place that index and query share.

Keys come without the prefix of their field; `frames.posting_keys` adds it. Index every key of a stored value. To look
something up, ask for the keys of what was asked, most specific first: the first key that finds anything is the best match.
"""

from __future__ import annotations

import re

__all__ = ["conflict_keys", "definition_keys", "id_keys", "path_keys"]

_QUALIFIER = re.compile(r"(?:::|[.#/$])")


def definition_keys(name: str) -> list[str]:
    """Of an identifier: as written, its last part, and that in lower case.

    `Session.resolveUrl` gives `Session.resolveUrl`, `resolveUrl`, `resolveurl`. Used for definitions and references.
    A title of several words is known as a whole only: `calls auth.login` names no `login`.
    """
    name = name.strip().removesuffix("()")
    if len(name.split()) > 1:
        return [name]
    bare = next((part for part in reversed(_QUALIFIER.split(name)) if part), "")
    return _distinct(name, bare, bare.lower())


DEPTH = 64
"""Parts of a path whose suffixes are keys; no stored path that people wrote is as deep."""


def path_keys(path: str) -> list[str]:
    """Of a path: itself and its suffixes at a `/`, longest first, then the file name without its ending; lower case.

    `src/App/url.test.ts` gives `src/app/url.test.ts`, `app/url.test.ts`, `url.test.ts`, `url.test`. An absolute path of
    another machine thus finds the stored path that it ends with. Of one with more than `DEPTH` parts, suffixes of the last
    `DEPTH` alone: a question may hold a hundred kilobytes of slashes.
    """
    parts = [part for part in path.strip().lower().replace("\\", "/").split("/") if part not in ("", ".")]
    if not parts:
        return []
    stem = parts[-1].rpartition(".")[0]
    suffixes = ("/".join(parts[i:]) for i in range(max(0, len(parts) - DEPTH), len(parts)))
    return _distinct("/".join(parts), *suffixes, stem)


def id_keys(value: str) -> list[str]:
    """Of an evidence id, an entity or a URI: itself in lower case."""
    return _distinct(value.strip().lower())


def conflict_keys(value: str) -> list[str]:
    """Of a conflict set: itself, exactly."""
    return _distinct(value)


def _distinct(*keys: str) -> list[str]:
    return [key for key in dict.fromkeys(keys) if key]
