"""The intersection of two lists of patterns: selectors of sources or globs on paths.

A list allows whatever one of its patterns matches. The intersection of two lists consists of all pairs of their
patterns, both of which must match; pairs implied by another pair are dropped. Lists of patterns are sums of products,
so the result does not depend on the order and grouping of the lists, and never allows more than either of them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

from ...nodes.scope.selectors import AND, PATH_ONLY

MAX_PATTERNS = 1_000
"""Most patterns or names in one list of a request or grant: each pattern is tried on every distinct path."""

GLOBS = (
    "globs begin at the root of a tree, without / or ./, and know ? * ** and a / at the end for all that is below; of "
    "alternatives each is a glob, and [[] is a bracket"
)
"""The hint of a message if `path_glob` returns None."""
_ESCAPED = re.compile(r"\[[*?\[]\]")
_FOREIGN = re.compile(r"^[/!~^\s]|\s$|//|(^|/)\.\.?(/|$)|[\[\\|]|\{[^}]*,")


def path_glob(glob: str) -> str | None:
    """A glob in the form of stored paths (NFC); None if it uses syntax of other tools that has no effect here.

    Stored paths have no `./`, `//`, `..`, leading `/` or backslash, so a denial that has one would deny nothing.
    """
    glob = unicodedata.normalize("NFC", glob)
    return None if _FOREIGN.search(_ESCAPED.sub("", glob.removeprefix(PATH_ONLY))) else glob


def common_patterns(one: Sequence[str] | None, other: Sequence[str] | None) -> list[str] | None:
    """The patterns that both lists allow, sorted; None is the list that allows everything."""
    if one is None or other is None:
        only = other if one is None else one
        return None if only is None else _simplified(frozenset(pattern.split(AND)) for pattern in only)
    return _simplified(frozenset((*a.split(AND), *b.split(AND))) for a in one for b in other)


def _simplified(products: Iterable[frozenset[str]]) -> list[str]:
    """The minimal products, as patterns."""
    distinct = set(products)
    least = [product for product in distinct if not any(other < product for other in distinct)]
    return sorted(AND.join(sorted(product)) for product in least)
