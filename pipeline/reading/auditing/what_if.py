"""`what-if`: a snapshot, or every request of a run, under other weights, budgets, merge policy or role.

Reads: the requests of a run, the generation that it pinned, and the changes. Gives: `what_if`, a `WhatIf`: the new blocks
next to the stored ones, item by item. Nothing is written.

Note: the line runs again over the pinned generation, at the recorded times, so nothing differs but for the changes. A wider
scope is not a what-if but a new request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from ....nodes.errors import InputError, ModelError
from ....nodes.tables import GRANTS
from ...config.settings import Settings
from ...engines.shards import with_counters
from ...line.driver import together
from ...line.tokenizers import registered
from ...requests.allowed_names import AllowedNames
from ...requests.fields import column_of, columns_of, fields_of
from ...runs.parts import VIEWS
from ..access import opened
from ..grants import grants_or_none
from .difference import COMPARED, Changes, Side, compared_tables
from .difference import changes as compare
from .reproduce import changed_since
from .rerun import Recorded, line_of

CHANGEABLE = ("lane_k", "max_chars", "max_chunk_tokens", "max_items", "max_items_per_source", "max_tokens",
              "merge_policy", "output_shape", "pool_k", "role", "tokenizer", "weights")  # fmt: skip
"""Columns of a request that may be changed: none of them opens a row that the request could not see."""


@dataclass(frozen=True)
class WhatIf(Changes):
    """The result under the changes."""

    name: str
    changes: Mapping[str, Any]
    tables: Mapping[str, pa.Table] = field(repr=False)
    """The tables that a run of these requests would store, texts in place."""

    @property
    def blocks(self) -> dict[str, str]:
        """The new block of each request."""
        blocks = self.tables["blocks"]
        return dict(zip(blocks["request_id"].to_pylist(), blocks["text"].to_pylist(), strict=True))

    def as_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "name": self.name,
            "changes": dict(self.changes),
            "requests": self.of_requests,
            "items": self.of_items,
        }


def changed_columns(given: Mapping[str, Any], at: str) -> dict[str, Any]:
    """Columns of a request to their new values.

    Raises:
        InputError: a name cannot be changed, or its value is invalid.
    """
    for name in given:
        if column_of(name) not in CHANGEABLE:
            hint = "principal, purpose, project and time are fixed; make a new request for another scope"
            raise InputError.one_of(CHANGEABLE, name, at, hint=hint)
    found = columns_of(given, at)
    if not found:
        raise InputError.described("at least one change", "none", at)
    return found


def what_if(settings: Settings, name: str, changes: Mapping[str, Any], at: str = "changes") -> WhatIf:
    """Evaluate a snapshot, or the requests of a run that the principal may read, under other values.

    Auditors see it under the original rights, others under their current rights, because more may be shown than before:
    without a grants file, nothing new is.

    Raises:
        AccessError: the principal may not read it.
        ErasedError: texts of the requests were erased.
        InputError: a column cannot be changed (`CHANGEABLE`), a request may not have its value (`at` names the change), or
            no request was answered.
        ModelError: a model or tokenizer of the run cannot be loaded.
        StoreError: the corpus, or the generation that the run pinned, is gone.
    """
    places, changes = fields_of(changes, at).places, changed_columns(changes, at)
    seen = opened(settings, name)
    run, audit = seen.run, seen.audit
    roles, tokenizers = run.stored("role_policies")["role"].to_pylist(), registered(settings["tokenizers"])
    known = AllowedNames({}, roles, tokenizers, run.plugin_terms)
    changes = known.expect(changes, lambda column: places.get(column, f"{at}.{column}"), at)
    recorded = Recorded.of(seen)
    if not recorded.requests.num_rows:
        raise InputError(
            "Expected a request that was answered, got one that was refused when it was asked",
            at=name,
            hint="`show --as xray` has the reason; ask it again as it should be",
        )
    now = grants_or_none(settings)
    grants = None if audit else GRANTS.empty() if now is None else now
    given = changes if audit else {**changes, "asked_at": datetime.now(UTC)}
    asked = recorded.changed(given)
    line = with_counters(line_of(settings, run, grants=grants), asked.requests)
    if "encoder" in changed_since(run, line):
        raise ModelError(
            "Expected the encoder of the run, got none", at=name, hint="`doctor` says why it is not available"
        )
    parts = list(asked.executed(line))
    tables = {table.name: together([part[table.name] for part in parts]) for table in VIEWS}
    pairs = {request: number for number, request in enumerate(asked.requests["request_id"].to_pylist())}
    before = Side(compared_tables(seen), pairs, audit)
    found = compare(before, Side({table: tables[table] for table in COMPARED}, pairs, audit))
    return WhatIf(found.of_items, found.of_requests, name, changes, tables)
