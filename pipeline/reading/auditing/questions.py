"""The audits of this package as methods of a `Retriever`, for notebooks and scripts.

Reads: the folders of a retriever, and its principal. Gives: `Questions`: `what_if`, `reranked`, `diff`, `reproduce`, `sql`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ....nodes.errors import InputError

if TYPE_CHECKING:
    from ...config.settings import Settings
    from ...storage.places import Place
    from .difference import SnapshotsDiff
    from .ranking import Reranking
    from .reproduce import Reproduction
    from .what_if import WhatIf

__all__ = ["Questions"]


class Questions:
    """Audits of a retriever's runs."""

    runs: Any
    corpus: Any
    principal: str
    _grants_path: Place | None
    _tokenizers: Collection[str]

    def what_if(self, name: str, changes: Mapping[str, Any] | None = None, **fields: Any) -> WhatIf:
        """The result of a snapshot, or of every request of a run, under other weights, budgets, merge policy or role.

        Nothing is written. Frozen tables are used unless the change affects recall; `WhatIf.recalled` gives the
        reasons. See `auditing.what_if`.

        Raises:
            AccessError: the principal may not read it.
            InputError: there is no folder of runs, or a column cannot be changed.
            StoreError: the generation that the run pinned is gone.
        """
        from .what_if import what_if

        return what_if(self._places(), name, {**(changes or {}), **fields})

    def reranked(
        self, name: str, changes: Mapping[str, Any] | None = None, *, top: int = 10, **fields: Any
    ) -> Reranking:
        """The order of candidates under other weights, for every request of a run in seconds; see `auditing.ranking`.

        Raises:
            AccessError: the principal does not audit all of it.
            InputError: a change is not a weight.
        """
        from .ranking import reranked

        return reranked(self._places(), name, {**(changes or {}), **fields}, top)

    def diff(self, before: str, after: str) -> SnapshotsDiff:
        """The differences between two snapshots or two runs; see `auditing.difference`.

        Raises:
            AccessError: the principal may not read one of them.
        """
        from .difference import compared

        return compared(self._places(), before, after)

    def reproduce(self, name: str) -> Reproduction:
        """A run, or one snapshot, executed again: the first value that differs, and why; see `auditing.reproduce`.

        Raises:
            AccessError: the principal does not audit it.
            StoreError: the generation that the run pinned is gone.
        """
        from .reproduce import reproduced

        return reproduced(self._places(), name)

    def sql(self, query: str, runs: Sequence[str] = ()) -> pa.Table:
        """The result of a query over the tables of runs and the ready views, for auditors; see `auditing.sql`.

        Raises:
            AccessError: the principal does not audit every snapshot of a run.
            InputError: DuckDB refuses the query.
            ModelError: the extra `sql` is not installed.
        """
        from .sql import queried

        return queried(self._places(), query, runs)

    def _places(self) -> Settings:
        from ...config.settings import load_settings

        places = {
            "runs": self.runs and self.runs.path,
            "corpus": self.corpus.path,
            "grants": self._grants_path,
        }
        for kind, place in places.items():
            if place is None:
                raise InputError.described(f"a {kind} folder or file", "none", kind)
        return load_settings({**places, "principal": self.principal, "tokenizers": sorted(self._tokenizers)})
