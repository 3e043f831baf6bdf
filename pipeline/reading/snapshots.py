"""Which snapshots of a run a principal may read, and how much of each.

Reads: settings, an open run. Gives: `Readable`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...nodes.columns.keys import codes_of, distinct_rows, flat
from ...nodes.tables import SNAPSHOTS
from ..config.settings import Settings
from .grants import Viewer, grants_or_none

if TYPE_CHECKING:
    from ..runs import Run

_AUDIT_ONLY = frozenset(SNAPSHOTS.names(audience="audit"))


@dataclass(frozen=True)
class Readable:
    """The snapshots of a run that a principal may read: `rows` of `listing.whose`, and which of them it audits."""

    run: Run
    rows: pa.Table
    audited: NDArray[np.bool_]
    whole: bool
    """Whether it audits every snapshot that was looked at: of the run, whose whole tables and counts may then be shown."""
    grants: pa.Table
    """The grants that decided: the present ones; without a grants file those stored with the run."""
    snapshot: str | None = None
    """The snapshot, if one alone was looked at."""

    @classmethod
    def of(cls, settings: Settings, run: Run, grants: pa.Table | None, snapshot: str | None = None) -> Readable:
        """Those of a run, or one of them, under these grants, None without a grants file.

        Raises:
            StoreError: the run is damaged.
        """
        from ..runs.listing import whose

        held = run.stored("grants") if grants is None else grants
        viewer, rows = Viewer(settings.principal, held), whose(run, None if snapshot is None else [snapshot])
        names = [rows[name] for name in ("project", "principal", "asked_by")]
        first, alike = distinct_rows(codes_of([*names, pc.binary_join(flat(rows["reached"]), "\n")]))
        audiences = [viewer.audience(one, one["reached"]) for one in rows.take(pa.array(first)).to_pylist()]
        read, audited = (
            np.array([test(audience) for audience in audiences], dtype=bool)[alike]
            for test in (lambda audience: audience is not None, lambda audience: audience == "audit")
        )
        rows = rows.append_column("asker", pc.coalesce(rows["asked_by"], rows["principal"]))
        return cls(run, rows.filter(pa.array(read)), audited[read], bool(audited.all()), held, snapshot)

    @property
    def request_ids(self) -> pa.Array:
        """The requests of these snapshots."""
        return flat(self.rows["request_id"])

    @property
    def audit(self) -> bool:
        """Whether the principal audits each of them."""
        return bool(self.audited.all())

    def where(self, wanted: Mapping[str, str | None], last: int | None = None) -> Readable:
        """Those with these values by column, None for any; `asker` is the user who asked. At most the `last` ones."""
        mask = np.ones(len(self.audited), dtype=bool)
        for column, value in wanted.items():
            if value is not None:
                mask &= np.asarray(pc.fill_null(pc.equal(self.rows[column], value), False))
        kept = mask.nonzero()[0]
        kept = kept if last is None else kept[max(0, len(kept) - last) :]
        return replace(self, rows=self.rows.take(pa.array(kept)), audited=self.audited[kept])

    def listed(self) -> list[dict[str, Any]]:
        """Their rows, with question, project, purpose and `as_of` of their requests; for a row refused on arrival, the
        fields that could be read.

        Raises:
            StoreError: the run is damaged.
        """
        from ..runs.listing import listed

        rows = listed(self.run, self.rows["snapshot_id"].to_pylist())
        found = rows.drop_columns(["principal", "asked_by", "reached"]).to_pylist()
        return [
            row if audited else {name: value for name, value in row.items() if name not in _AUDIT_ONLY}
            for row, audited in zip(found, self.audited.tolist(), strict=True)
        ]


def readable(settings: Settings, run: Run) -> Readable:
    """The snapshots of a run that the principal may read under the current grants.

    Raises:
        StoreError: the run is damaged.
    """
    return Readable.of(settings, run, grants_or_none(settings))
