"""What two lists of patterns have in common: selectors of sources, globs on paths.

A list allows what one of its patterns matches. The common part of two lists is every pair of their patterns that must
both match; pairs that another pair makes superfluous are left out. Lists of patterns are sums of products, so the result
is the same in any order and grouping of the lists, and neither list alone allows less.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

from ...nodes.scope.selectors import AND, PATH_ONLY

__all__ = ["GLOBS", "MAX_PATTERNS", "common_patterns", "path_glob", "pattern_parts"]

MAX_PATTERNS = 1_000
"""Most patterns or names in one list of a request or grant: each pattern is tried on every distinct path."""

GLOBS = (
    "globs begin at the root of a tree, without / or ./, and know ? * ** and a / at the end for all that is below; of "
    "alternatives each is a glob, and [[] is a bracket"
)
"""What a message says where `path_glob` gives none."""
_ESCAPED = re.compile(r"\[[*?\[]\]")
_FOREIGN = re.compile(r"^[/!~^\s]|\s$|//|(^|/)\.\.?(/|$)|[\[\\|]|\{[^}]*,")


def path_glob(glob: str) -> str | None:
    """A glob in the form of stored paths (NFC); None where it means something in other tools and nothing here.

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


def pattern_parts(pattern: str) -> list[str]:
    """The patterns that must all match; a single one is a list of itself."""
    return pattern.split(AND)


def _simplified(products: Iterable[frozenset[str]]) -> list[str]:
    """The products that no other one of them contains, as patterns."""
    distinct = set(products)
    least = [product for product in distinct if not any(other < product for other in distinct)]
    return sorted(AND.join(sorted(product)) for product in least)
