"""The line of a retriever under the current grants: `GrantedLine`.

Note: grants are reloaded when their file changes. The line and the request resolver change with them; nothing else
changes while a retriever is open.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..config.grants import GrantsFile, load_grants
from ..line.driver import Line
from ..line.provenance import with_part
from ..requests.resolver import RequestResolver
from ..storage.places import Place

__all__ = ["GrantedLine"]


@dataclass
class GrantedLine:
    """A line and the resolver of its requests, both under the same grants."""

    source: GrantsFile | Place
    """The grants, or the file that they are read from."""
    line: Line
    resolver: RequestResolver

    def renewed(self) -> bool:
        """Reload the grants if their file changed; returns whether the line and the resolver were replaced.

        Raises:
            PolicyError: the grants file is missing or invalid.
        """
        if (grants := load_grants(self.source)).digest == self.resolver.grants.digest:
            return False
        self.resolver = replace(self.resolver, grants=grants)
        provenance = with_part(self.line.provenance, "grants", grants.digest)
        self.line = replace(self.line, grants=grants.table, provenance=provenance)
        return True
