"""`diff`: the differences between two snapshots or two runs: which items entered, left or moved, and why.

Reads: tables of two sides, the pairs of requests to compare. Gives: `changes`, an entry per item that either side shows,
and `compared`, which reads two snapshots or runs for a user who may see both.

Note: a caller learns only of rows that passed every gate, as in `why`; any other row is reported as `not_recalled`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ....nodes.errors import InputError
from ....nodes.score_terms import terms_of_plugins
from ....nodes.vocabulary import SCORE_TERMS
from ...config.settings import Settings
from ...runs.ids import is_snapshot
from ..access import opened, readable_replay
from ..present_rights import JUDGED_BY, items_within_rights
from ..snapshots import Readable

if TYPE_CHECKING:
    import pandas as pd

COMPARED = ("snapshots", "requests", "trimmed", "citations", "decisions", "ranked")
"""The tables that are compared."""
_OF_REQUEST = {
    "request_id": "request_id",
    "snapshot_id": "snapshot_id",
    "status": "status",
    "estimated_tokens": "tokens",
}
_Row = dict[str, Any]
_Item = tuple[int, str]
"""A pair of requests by number, and the id of a row of evidence."""


@dataclass(frozen=True)
class Side:
    """The tables of one side, and the pair that each compared request belongs to; without `audit`, gate decisions are
    ignored.
    """

    tables: Mapping[str, pa.Table]
    pairs: Mapping[str, int]
    audit: bool = True

    def items(self, name: str, columns: Iterable[str], among: Iterable[_Item] | None = None) -> dict[_Item, _Row]:
        """The rows of a table by item, some columns of them."""
        table = self.tables[name]
        if among is not None:
            table = table.filter(pc.is_in(table["evidence_id"], pa.array({id_ for _, id_ in among}, pa.string())))
        rows = table.select(["request_id", "evidence_id", *columns]).to_pylist()
        return {
            (self.pairs[row["request_id"]], row["evidence_id"]): row for row in rows if row["request_id"] in self.pairs
        }


@dataclass(frozen=True)
class Changes:
    """What changed between two sides, as rows."""

    of_items: list[_Row] = field(repr=False)
    """Per item: pair, evidence_id, change, positions, locator, final scores, why; by pair and position."""
    of_requests: list[_Row] = field(repr=False)
    """Per compared request: pair, ids, status and tokens on both sides, and how many items entered, left, moved, stayed."""

    @property
    def items(self) -> pd.DataFrame:
        """`of_items` as a data frame."""
        import pandas as pd

        return pd.DataFrame(self.of_items)

    @property
    def requests(self) -> pd.DataFrame:
        """`of_requests` as a data frame."""
        import pandas as pd

        return pd.DataFrame(self.of_requests)


@dataclass(frozen=True)
class SnapshotsDiff(Changes):
    """The comparison of two snapshots or runs."""

    before: str
    after: str
    only_before: int = 0
    only_after: int = 0

    @property
    def same(self) -> bool:
        """Whether every compared request shows the same items in the same order."""
        return all(row["change"] == "same" for row in self.of_items) and not self.only_before and not self.only_after

    def as_dict(self) -> dict[str, Any]:
        """The plain values."""
        return {
            "before": self.before,
            "after": self.after,
            "same": self.same,
            "only_before": self.only_before,
            "only_after": self.only_after,
            "requests": self.of_requests,
            "items": self.of_items,
        }


def changes(before: Side, after: Side) -> Changes:
    """What changed between two sides. An item that left has the later decision as its reason, one that entered the earlier
    one, and one that moved its most changed term.
    """
    sides = (before, after)
    shown = [side.items("trimmed", ["position"]) for side in sides]
    places = {
        item: tuple(each[item]["position"] if item in each else None for each in shown) for item in shown[0] | shown[1]
    }
    other = [item for item, (was, now) in places.items() if was != now]
    decided = [side.items("decisions", ["stage", "reason_code"], other) for side in sides]
    cited = after.items("citations", ["locator"], places) | before.items("citations", ["locator"], places)
    names = [side.tables["ranked"].column_names for side in sides]
    terms = [term for term in (*SCORE_TERMS, *terms_of_plugins(names[0])) if all(term in each for each in names)]
    ranked = [side.items("ranked", ["final", *terms], places) for side in sides]
    orders = [_order(places, at) for at in (0, 1)]
    rows = list[_Row]()
    for item, (was, now) in places.items():
        change = "entered" if was is None else "left" if now is None else "moved" if was != now else "same"
        scores = [each.get(item, {}) for each in ranked]
        why = ""
        if change == "moved":
            turned = (
                "packed in another order" if orders[0][item] != orders[1][item] else "others entered or left before it"
            )
            why = _moved_most(scores, terms) or turned
        elif change != "same":
            side = sides[change == "left"]
            row = decided[change == "left"].get(item)
            told = row is not None and (side.audit or row["stage"] != "gate")
            why = f"{row['stage']}: {row['reason_code'] or ''}" if row and told else "not_recalled"
        rows.append({
            "pair": item[0], "evidence_id": item[1], "change": change, "position_before": was, "position_after": now,
            "locator": cited.get(item, {}).get("locator"), "final_before": scores[0].get("final"),
            "final_after": scores[1].get("final"), "why": why,
        })  # fmt: skip
    rows.sort(key=lambda row: (row["pair"], *(row[f"position_{side}"] or inf for side in ("after", "before")), row["evidence_id"]))  # fmt: skip
    return Changes(rows, _requests(rows, before, after))


def _order(places: Mapping[_Item, tuple[Any, ...]], at: int) -> dict[_Item, int]:
    """The order on one side of the items that both sides show."""
    both = [item for item, found in places.items() if None not in found]
    seen = Counter[int]()
    order = {}
    for item in sorted(both, key=lambda item: places[item][at]):
        order[item] = seen[item[0]]
        seen[item[0]] += 1
    return order


def _moved_most(scores: list[_Row], terms: list[str]) -> str:
    """The score term whose contribution changed most, with the change; empty if none did."""
    was, now = scores
    moved = {term: now[term] - was[term] for term in terms} if was and now else {}
    most = max(moved, key=lambda term: abs(moved[term]), default=None)
    return f"{most} {moved[most]:+.4f}" if most and moved[most] else ""


def _requests(items: list[_Row], before: Side, after: Side) -> list[_Row]:
    """Per pair: ids, statuses, tokens, and how many items entered, left, moved and stayed."""
    found = dict[int, _Row]()
    for side, name in ((before, "before"), (after, "after")):
        for row in side.tables["snapshots"].select([*_OF_REQUEST]).to_pylist():
            if (pair := side.pairs.get(row["request_id"])) is not None:
                named = {f"{new}_{name}": row[old] for old, new in _OF_REQUEST.items()}
                found[pair] = found.get(pair, {"pair": pair}) | named
    counted = Counter((row["pair"], row["change"]) for row in items)
    kinds = ("entered", "left", "moved", "same")
    return [found[pair] | {kind: counted[pair, kind] for kind in kinds} for pair in sorted(found)]


def compared(settings: Settings, before: str, after: str) -> SnapshotsDiff:
    """Compare two snapshots or two runs. Requests of runs are paired by their id, else by their fields.

    Raises:
        AccessError: the principal may not read one of them.
        InputError: one is a snapshot and the other a run.
        StoreError: a run is damaged.
    """
    of_snapshots = is_snapshot(before)
    if of_snapshots != is_snapshot(after):
        raise InputError(
            "Expected two snapshots or two runs, got one of each",
            at=f"{before}, {after}",
            hint="`log RUN` lists the snapshots of a run",
        )
    (first, audit_first), (second, audit_second) = (_read(settings, name) for name in (before, after))
    audit = audit_first and audit_second
    own, other, left, right = _paired(first, second, snapshots=of_snapshots)
    found = changes(Side(first, own, audit), Side(second, other, audit))
    return SnapshotsDiff(found.of_items, found.of_requests, before, after, left, right)


def _read(settings: Settings, name: str) -> tuple[Mapping[str, pa.Table], bool]:
    if not is_snapshot(name):
        seen = opened(settings, name)
        return compared_tables(seen), seen.audit
    seen, found = readable_replay(settings, name)
    return found.tables, seen.audit


def compared_tables(seen: Readable) -> dict[str, pa.Table]:
    """The compared tables of what a principal may read: audited, or without the rows that present grants do not admit."""
    judged = () if seen.audit else JUDGED_BY
    tables = {
        name: seen.run.table(name, texts=name in (*judged, "citations"), snapshot_id=seen.snapshot)
        for name in dict.fromkeys([*COMPARED, *judged])
    }
    mine = {name: rows.filter(pc.is_in(rows["request_id"], seen.request_ids)) for name, rows in tables.items()}
    return mine if seen.audit else items_within_rights(mine, seen.grants)


def _paired(
    before: Mapping[str, pa.Table], after: Mapping[str, pa.Table], *, snapshots: bool
) -> tuple[dict[str, int], dict[str, int], int, int]:
    """The pair number of each request of both sides, and how many requests of each have no partner."""
    ids = [tables["snapshots"]["request_id"].to_pylist() for tables in (before, after)]
    if snapshots:
        return {ids[0][0]: 0}, {ids[1][0]: 0}, 0, 0
    common = {id_: number for number, id_ in enumerate(sorted({*ids[0]} & {*ids[1]}))}
    return common, common, len(ids[0]) - len(common), len(ids[1]) - len(common)
