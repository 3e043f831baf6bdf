"""Replay: reads one snapshot again, without the corpus, and checks every hash it depends on.

Replay never retrieves. It returns the block byte for byte, its citations, the decisions and the conditions; an erased
text is null, and then the status is `erased`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.audit.records import RECORD
from ...nodes.errors import VerificationError
from ...nodes.tables import TABLES
from ..views import harness_forms
from .parts import STORED, VIEWS, home_of, problems_in, references, viewed, with_texts
from .run import Run
from .store import Runs

_LISTED = ("citations", "conditions")
_SHOWN = frozenset({"requests", "failures", "contracts", "trimmed", "trims", "item_details", "blocks", "snapshots",
                     *_LISTED})  # fmt: skip
"""Tables whose rows reach a caller; all others count or name withheld rows."""


@dataclass(frozen=True)
class Replay:
    """The content of one snapshot. `tables` contains its rows of every table, with texts."""

    snapshot_id: str
    run_id: str
    status: str
    block: str | None
    block_ref: str | None
    tables: dict[str, pa.Table]
    provenance: dict[str, str]
    erased: tuple[str, ...]

    @property
    def request(self) -> dict[str, Any]:
        """The resolved request; empty for one that was refused on arrival."""
        return _first(self.tables["requests"])

    @property
    def snapshot(self) -> dict[str, Any]:
        """The row of SNAPSHOTS."""
        return _first(self.tables["snapshots"])

    @property
    def event(self) -> dict[str, Any]:
        """The event of S0.83, as the retrieval returned it."""
        blocks = self.tables["blocks"]["items"]
        items = blocks[0].as_py() if len(blocks) else 0
        return harness_forms.event(self.snapshot, items, self.request.get("intent_id"))

    @property
    def observation(self) -> dict[str, Any]:
        """The observation of S0.84, as the retrieval returned it; the block is null if its text was erased."""
        return harness_forms.observation(self.snapshot, self.block, self.citations.to_pylist())

    @property
    def context_block(self) -> dict[str, Any]:
        """The block of S0.69 as values."""
        return harness_forms.context_block(self.snapshot, self.tables["trimmed"], self.citations.to_pylist())

    def _repr_html_(self) -> str:
        from ..views.notebook import answer_html

        listed = (self.citations.to_pylist(), self.conditions.to_pylist())
        return answer_html(self.snapshot_id, self.status, self.block or "", *listed)

    def for_caller(self) -> Replay:
        """The part the caller may see: declared caller columns of rows that reached them, as `retrieve` returned it."""
        shown = {}
        for name, table in self.tables.items():
            seen = TABLES[name].for_callers(table)
            seen = seen.drop_columns(["request_id"]) if name in _LISTED else seen
            shown[name] = seen if name in _SHOWN else seen.slice(0, 0)
        return replace(self, tables=shown, provenance={})

    @property
    def citations(self) -> pa.Table:
        return self.tables["citations"]

    @property
    def decisions(self) -> pa.Table:
        return self.tables["decisions"]

    @property
    def conditions(self) -> pa.Table:
        return self.tables["conditions"]


def replay(runs: Runs | Run, snapshot_id: str) -> Replay:
    """The snapshot as it was written, from a folder of runs or from an open run.

    Raises:
        InputError: it is not a snapshot id.
        StoreError: no run of this folder contains it.
        VerificationError: stored content does not match its hash.
    """
    run = runs if isinstance(runs, Run) else runs.open(snapshot_id)
    stored = {name: run.table(name, snapshot_id=snapshot_id).combine_chunks() for name in STORED}
    texts, wanted = run.beside(snapshot_id)["texts"], references(stored[RECORD])
    texts = texts.filter(pc.is_in(texts["sha256"], value_set=wanted))
    erased = tuple(sorted({*wanted.to_pylist()} - {*texts["sha256"].to_pylist()}))
    for problem in problems_in(stored, texts, run.provenance, erased):
        raise VerificationError(problem.detail, at=f"{snapshot_id}/{problem.part}")
    tables = {t.name: with_texts(viewed(stored[home_of(t.name)], t.name), t, texts) for t in VIEWS}
    snapshot = _first(tables["snapshots"])
    return Replay(
        snapshot_id=snapshot_id,
        run_id=run.run_id,
        status="erased" if erased else snapshot["status"],
        block=_first(tables["blocks"]).get("text", ""),
        block_ref=snapshot["block_ref"],
        tables=tables,
        provenance=dict(zip(run.provenance["part"].to_pylist(), run.provenance["value"].to_pylist(), strict=True)),
        erased=erased,
    )


def _first(table: pa.Table) -> dict[str, Any]:
    return table.slice(0, 1).to_pylist()[0] if table.num_rows else {}
