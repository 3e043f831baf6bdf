"""Delegation: a child contract for a sub-agent, whose rows are rows of its parent's.

The parent is written out whole: every cap that its purpose or the request set, and its places, `null` included. The
child's fields then narrow it. Before the preset leaves, both contracts are resolved against the corpus and every row of
the child is looked up among its parent's.
"""

from __future__ import annotations

from ...nodes.errors import VerificationError
from ..progress import counted
from ..requests.narrowing import Fields, narrowed
from .scope import ContractResolver, ContractScope, difference

__all__ = ["delegated", "written_out"]

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
"""Places where a child that adds one would see what its parent does not: none stays none."""
_BOUNDS = ("allowed_sources", "denied_sources", "allowed_paths", "denied_paths", "accepted_authority", "min_authority",
           "max_unverified_items", "lane_k", "pool_k", "max_items", "max_items_per_source", "max_tokens", "max_chars",
           "max_chunk_tokens", "allow_stale_memory", "require_citation", "require_snapshot", "recall_effort")  # fmt: skip
_ALLOWANCES = ("allowed_sources", "allowed_paths", "accepted_authority")
"""Lists that allow nothing where they are empty."""
_AS_GIVEN = ("as_of", "role", "include_after", "exclude_after", "window_days", "required_evidence")


def delegated(
    resolver: ContractResolver, parent: Fields, child: Fields, at: str = "child"
) -> tuple[Fields, ContractScope, ContractScope]:
    """The fields of the child, and what parent and child could see.

    Raises:
        InputError: the child is elsewhere than its parent.
        VerificationError: a row of the child is not its parent's.
    """
    above = resolver.scope(parent)
    fields = narrowed(written_out(above), child, at)
    below = resolver.scope(fields)
    if outside := difference(above, below)["rows"]["only_b"]:
        raise VerificationError(f"Expected rows of the parent alone, got {counted(outside, 'other row')} - at {at}")
    return fields, above, below


def written_out(scope: ContractScope) -> Fields:
    """The fields of a request with everything that binds it: asked again, they resolve to the same bounds."""
    contract = scope.contract
    given = {name: contract[name] for name in (*_PLACES, *_BOUNDS) if contract[name] is not None}
    variables = scope.tables["requests"]["variables"][0].as_py()
    given |= {"variables": variables} if variables else {}
    given |= {name: scope.fields.given[name] for name in _AS_GIVEN if name in scope.fields.given}
    given = {name: value for name, value in given.items() if value != [] or name in _ALLOWANCES}
    return Fields(given, scope.fields.without | {name for name in _SETTLED if name not in given})
