"""Tables of `scope_resolution`."""

from __future__ import annotations

from ..schema import boolean, caller, string, strings, table, timestamp
from .inputs import _COUNTS, PURPOSE_POLICIES, REQUESTS

SAME_AS_ASKED = ("principal", "asked_by", "project", "namespace", "workspace_root", "branch", "test_suite", "session_id",
                 "purpose", "as_of", "allow_stale_memory", "require_citation", "require_snapshot", "tokenizer", "recall_effort",
                 "weights")  # fmt: skip
"""The columns of CONTRACTS that are those of the request."""

CONTRACTS = table(
    "contracts",
    key=("request_id",),
    order=("request_id",),
    doc="The resolved retrieval contract of each request: what it may see, and how it chooses inside that.",
    request_id=caller(string("the request", digest=False)),
    contract_id=caller(string("first 16 hex digits of the contract digest: the scope id of S0.14")),
    denied=caller(boolean("nothing can be asked under this contract")),
    denied_reason=caller(string("why, from the contract alone", nullable=True)),
    groups=strings("groups of the principal at asked_at"),
    **REQUESTS.take(*SAME_AS_ASKED, of="requests"),
    mode=caller(string("the mode that chose inside the bounds", nullable=True)),
    search_paths=caller(strings("path globs the mode searches; null = every path", nullable=True)),
    excluded_paths=caller(strings("path globs the mode leaves out")),
    excluded_levels=caller(strings("levels the mode leaves out")),
    excluded_zones=caller(strings("zones the mode leaves out")),
    **REQUESTS.take("allowed_sources", "allowed_paths", "accepted_authority"),
    **REQUESTS.take("denied_sources", "denied_paths", "min_authority", *_COUNTS, nullable=False),
    asked_at=timestamp("rights are judged here; envelope", digest=False),
    window_start=caller(timestamp("start of the window", nullable=True)),
    window_end=caller(timestamp("end of the window, exclusive", nullable=True)),
    **PURPOSE_POLICIES.take("withheld_k", "graph_floor", "graph_iterations"),
    **PURPOSE_POLICIES.take(
        "include_states", "merge_policy", "output_shape", "instruction_sources", "mask", audience="caller"
    ),
    required_evidence=caller(strings("evidence the caller or the role requires")),
    mode_lanes=caller(strings("lanes that every sub-query uses in addition to its own")),
    path_window_start=caller(timestamp("rows of `window_paths` that happened earlier do not return", nullable=True)),
    window_paths=caller(strings("path globs that `path_window_start` holds for")),
    chunk_expansion=caller(boolean("neighbors, parents and children of hits return")),
    exact_lookups=caller(boolean("records that hits name return, and facts are checked against them")),
    citation_chaining=caller(boolean("documents that hits refer to return")),
    include_deleted=caller(boolean("superseded and deleted text is shown as history")),
    newest_first=caller(boolean("the block is in order of time, newest first")),
    role=caller(string("the role overlay that applies; null = none", nullable=True)),
    role_sources=caller(strings("source selectors the role allows; null = all", nullable=True)),
    forbidden_sources=caller(strings("source selectors the role forbids; any match is withheld")),
    source_diversity=caller(boolean("no source has a second item before every source has one")),
    citation_style=caller(string("inline, footnote or bundle_only")),
)

CONTRACT_BOUNDS = table(
    "contract_bounds",
    key=("request_id", "project", "rule_id"),
    order=("request_id", "project", "rule_id"),
    doc="The grants a contract reaches through; a row is reachable if one of them covers it whole.",
    request_id=string("the request", digest=False),
    project=string("a reachable project"),
    users=strings("users whose rows are readable: the principal and those granted"),
    sources=strings("source selectors granted; null = every source", nullable=True),
    paths=strings("anchored globs on path granted; null = every path", nullable=True),
    denied_paths=strings("anchored globs on path that a grant of this project denies"),
    zone=string("highest zone granted"),
    namespaces=strings("namespaces granted, besides rows without one; null = every one", nullable=True),
    states=strings("lifecycles granted; null = no narrowing", nullable=True),
    rule_id=string("the grant that opened it, by its place in the file; envelope", digest=False),
)

Contracts = CONTRACTS.annotation
ContractBounds = CONTRACT_BOUNDS.annotation
