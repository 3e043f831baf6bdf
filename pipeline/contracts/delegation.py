"""Delegation: a child contract for a sub-agent, limited to the rows of its parent.

The parent is written out in full: every cap set by its purpose or the request, and its places, including `null`. The
child's fields then narrow it. Before the preset is returned, both contracts are resolved against the corpus, and every
row of the child must be a row of its parent.
"""

from __future__ import annotations

from ...nodes.errors import VerificationError
from ..progress import counted
from ..requests.narrowing import Fields, narrowed
from .scope import ContractResolver, ContractScope, difference

_PLACES = (
    "principal",
    "project",
    "purpose",
    "mode",
    "tokenizer",
    "namespace",
    "branch",
    "test_suite",
    "workspace_root",
)
_SETTLED = ("workspace_root", "mode", "variables")
"""Places that a child must not add if its parent has none: it would see rows that its parent does not."""
_BOUNDS = ("allowed_sources", "denied_sources", "allowed_paths", "denied_paths", "accepted_authority", "min_authority",
           "max_unverified_items", "lane_k", "pool_k", "max_items", "max_items_per_source", "max_tokens", "max_chars",
           "max_chunk_tokens", "allow_stale_memory", "require_citation", "require_snapshot", "recall_effort")  # fmt: skip
_ALLOWANCES = ("allowed_sources", "allowed_paths", "accepted_authority")
"""Lists that allow nothing if they are empty."""
_AS_GIVEN = ("as_of", "role", "include_after", "exclude_after", "window_days", "required_evidence")


def delegated(
    resolver: ContractResolver, parent: Fields, child: Fields, at: str = "child"
) -> tuple[Fields, ContractScope, ContractScope]:
    """The fields of the child, and the scopes of parent and child.

    Raises:
        InputError: the child changes a place of its parent.
        VerificationError: the child sees a row that its parent does not.
    """
    above = resolver.scope(parent)
    fields = narrowed(written_out(above), child, at)
    below = resolver.scope(fields)
    if outside := difference(above, below)["rows"]["only_b"]:
        raise VerificationError(f"Expected rows of the parent alone, got {counted(outside, 'other row')} - at {at}")
    return fields, above, below


def written_out(scope: ContractScope) -> Fields:
    """The fields of a request with all of its bounds; a request with these fields resolves to the same bounds."""
    contract = scope.contract
    given = {name: contract[name] for name in (*_PLACES, *_BOUNDS) if contract[name] is not None}
    variables = scope.tables["requests"]["variables"][0].as_py()
    given |= {"variables": variables} if variables else {}
    given |= {name: scope.fields.given[name] for name in _AS_GIVEN if name in scope.fields.given}
    given = {name: value for name, value in given.items() if value != [] or name in _ALLOWANCES}
    return Fields(given, scope.fields.without | {name for name in _SETTLED if name not in given})
