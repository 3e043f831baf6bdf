"""`diff`: the differences between two snapshots or two runs: which items entered, left or moved, and why.

Reads: tables of two sides in stored form, the pairs of requests to compare. Gives: `item_changes`, one row per
item that either side shows, and `compared`, which reads two snapshots or runs for a user who may see both.

Note: a caller learns only of rows that passed every gate, as in `why`; any other row is reported as `not_recalled`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ....nodes.errors import InputError
from ....nodes.score_terms import terms_of_plugins
from ....nodes.vocabulary import SCORE_TERMS
from ...config.settings import Settings
from ...runs.ids import is_snapshot
from ..access import expect_reader, open_run, readable_replay
from ..grants import grants_for, grants_or_none
from ..present_rights import JUDGED_BY, items_within_rights
from ..snapshots import readable

__all__ = [
    "CHANGES",
    "COMPARED",
    "Side",
    "SnapshotsDiff",
    "compared",
    "compared_tables",
    "item_changes",
    "records",
    "summarized",
]

CHANGES = ("entered", "left", "moved", "same")
COMPARED = ("snapshots", "requests", "trimmed", "citations", "decisions", "ranked")
"""The tables that are compared."""
_ASKED = ("question", "project", "principal", "purpose", "as_of", "mode", "role")
"""The columns by which requests with different ids are matched."""
_PAIR = "pair"
_TEXTS = {pa.string(): pd.StringDtype("python")}


def _frame_of(table: pa.Table) -> pd.DataFrame:
    """A table as a data frame with pandas strings: Arrow columns cannot be merged if both are empty."""
    return table.to_pandas(types_mapper=_TEXTS.get)


@dataclass(frozen=True)
class Side:
    """The tables of one side, in stored form, each with a column `pair`, the comparison that a row belongs to."""

    tables: Mapping[str, pd.DataFrame]

    @classmethod
    def of(cls, tables: Mapping[str, pa.Table], pairs: Mapping[str, int], *, audit: bool = True) -> Side:
        """The rows of the requests in `pairs`; without `audit`, no gate decisions."""
        frames = {}
        for name in COMPARED:
            columns = [field.name for field in tables[name].schema if not pa.types.is_nested(field.type)]
            frame = _frame_of(tables[name].select(columns))
            frame[_PAIR] = frame["request_id"].map(pairs)
            frames[name] = frame[frame[_PAIR].notna()].astype({_PAIR: int})
        if not audit:
            frames["decisions"] = frames["decisions"][frames["decisions"]["stage"] != "gate"]
        return cls(frames)


@dataclass(frozen=True)
class SnapshotsDiff:
    """The comparison of two snapshots or runs."""

    before: str
    after: str
    pairs: pd.DataFrame
    """Per compared request: ids, status, tokens and number of items on both sides, and how many entered, left, moved."""
    items: pd.DataFrame
    """Per item: pair, evidence_id, change, positions, locator, final scores, why."""
    only_before: int = 0
    only_after: int = 0

    @property
    def same(self) -> bool:
        """Whether every compared request shows the same items in the same order."""
        return bool((self.items["change"] == "same").all()) and not self.only_before and not self.only_after

    def as_dict(self) -> dict[str, Any]:
        """The plain values."""
        return {
            "before": self.before,
            "after": self.after,
            "same": self.same,
            "only_before": self.only_before,
            "only_after": self.only_after,
            "requests": records(self.pairs),
            "items": records(self.items),
        }


def item_changes(before: Side, after: Side) -> pd.DataFrame:
    """One row per pair and item that either side shows: change, positions, scores, and why, by pair and position."""
    sides = []
    for side, name in ((before, "before"), (after, "after")):
        shown = side.tables["trimmed"][[_PAIR, "evidence_id", "position"]]
        sides.append(shown.rename(columns={"position": f"position_{name}"}))
    items = sides[0].merge(sides[1], on=[_PAIR, "evidence_id"], how="outer")
    was, now = items["position_before"], items["position_after"]
    change = np.select([was.isna(), now.isna(), was != now], CHANGES[:3], CHANGES[3])
    items.insert(2, "change", change)
    cited = pd.concat([side.tables["citations"] for side in (before, after)])[[_PAIR, "evidence_id", "locator"]]
    items = items.merge(cited.drop_duplicates([_PAIR, "evidence_id"]), on=[_PAIR, "evidence_id"], how="left")
    for side, name in ((before, "before"), (after, "after")):
        ranked = side.tables["ranked"][[_PAIR, "evidence_id", "final"]]
        items = items.merge(ranked.rename(columns={"final": f"final_{name}"}), on=[_PAIR, "evidence_id"], how="left")
    items["why"] = _reasons(items, before, after)
    order = items["position_after"].fillna(np.inf), items["position_before"]
    items = items.assign(_first=order[0], _second=order[1]).sort_values([_PAIR, "_first", "_second", "evidence_id"])
    return items.drop(columns=["_first", "_second"]).reset_index(drop=True)


def _reasons(items: pd.DataFrame, before: Side, after: Side) -> pd.Series:
    """The reason: for items that left, the later decision; that entered, the earlier one; that moved, the most changed
    term.
    """
    keys = [_PAIR, "evidence_id"]
    outcomes = {}
    for side, name in ((before, "before"), (after, "after")):
        decided = side.tables["decisions"][[*keys, "stage", "reason_code"]]
        found = items[keys].merge(decided, on=keys, how="left")
        reasons = found["stage"] + ": " + found["reason_code"].fillna("")
        outcomes[name] = reasons.fillna("not_recalled").to_numpy()
    terms = _moved_most(items[keys], before, after)
    moved = np.where(terms == "", _order_of(items), terms)
    change = items["change"].to_numpy()
    chosen = np.select([change == "entered", change == "left", change == "moved"],
                       [outcomes["before"], outcomes["after"], moved], "")  # fmt: skip
    return pd.Series(chosen, index=items.index)


def _order_of(items: pd.DataFrame) -> np.ndarray:
    """For an item with unchanged score terms: whether it moved among those that both sides show."""
    kept = items.dropna(subset=["position_before", "position_after"])
    was, now = (kept.groupby(_PAIR)[f"position_{side}"].rank() for side in ("before", "after"))
    moved = items.index.isin(kept.index[(was != now).to_numpy()])
    return np.where(moved, "packed in another order", "others entered or left before it")


def _moved_most(keys: pd.DataFrame, before: Side, after: Side) -> np.ndarray:
    """The score term whose contribution changed most, with the change; empty if none did."""
    known = [side.tables["ranked"] for side in (before, after)]
    terms = [
        term for term in (*SCORE_TERMS, *terms_of_plugins(map(str, known[0]))) if all(term in one for one in known)
    ]
    if not len(keys) or not terms:
        return np.full(len(keys), "", dtype=object)
    on = list(keys.columns)
    was, now = (keys.merge(one[[*on, *terms]], on=on, how="left")[terms].to_numpy(dtype=np.float64) for one in known)
    delta = np.nan_to_num(now - was)
    most = np.abs(delta).argmax(axis=1)
    largest = delta[np.arange(len(delta)), most]
    terms_moved = np.array(
        [f"{terms[term]} {value:+.4f}" for term, value in zip(most.tolist(), largest.tolist(), strict=True)]
    )
    return np.where(largest == 0, "", terms_moved).astype(object)


def summarized(items: pd.DataFrame, before: Side, after: Side) -> pd.DataFrame:
    """Per pair: ids, statuses, tokens, and how many items entered, left, moved and stayed."""
    columns = {
        "request_id": "request_id",
        "snapshot_id": "snapshot_id",
        "status": "status",
        "estimated_tokens": "tokens",
    }
    sides = [
        side.tables["snapshots"][[_PAIR, *columns]].rename(
            columns={old: f"{new}_{name}" for old, new in columns.items()}
        )
        for side, name in ((before, "before"), (after, "after"))
    ]
    pairs = sides[0].merge(sides[1], on=_PAIR, how="inner").sort_values(_PAIR)
    counts = items.groupby([_PAIR, "change"]).size().unstack(fill_value=0) if len(items) else pd.DataFrame()
    counts = counts.reindex(index=pairs[_PAIR], columns=list(CHANGES), fill_value=0)
    return pairs.merge(counts.rename_axis(_PAIR).reset_index(), on=_PAIR, how="left").reset_index(drop=True)


def compared(settings: Settings, before: str, after: str) -> SnapshotsDiff:
    """Compare two snapshots or two runs. Requests of runs are paired by their id, else by their fields.

    Raises:
        AccessError: the principal may not read one of them.
        InputError: one is a snapshot and the other a run.
        StoreError: a run is damaged.
    """
    kinds = {is_snapshot(name) for name in (before, after)}
    if len(kinds) > 1:
        raise InputError(
            "Expected two snapshots or two runs, got one of each",
            at=f"{before}, {after}",
            hint="`log RUN` lists the snapshots of a run",
        )
    of_snapshots = kinds.pop()
    read = _read_snapshot if of_snapshots else _read_run
    (first, audit_first), (second, audit_second) = (read(settings, name) for name in (before, after))
    audit = audit_first and audit_second
    own, other, left, right = _paired(first, second, snapshots=of_snapshots)
    sides = Side.of(first, own, audit=audit), Side.of(second, other, audit=audit)
    items = item_changes(*sides)
    return SnapshotsDiff(before, after, summarized(items, *sides), items, left, right)


def _read_snapshot(settings: Settings, name: str) -> tuple[dict[str, pa.Table], bool]:
    _, found, audience = readable_replay(settings, name)
    return {table: found.tables[table] for table in COMPARED}, audience == "audit"


def _read_run(settings: Settings, name: str) -> tuple[dict[str, pa.Table], bool]:
    run = open_run(settings, name)
    expect_reader(settings, run)
    mine = readable(settings, run)
    tables = compared_tables(run, None if mine.audit else grants_for(run, grants_or_none(settings)))
    asked = mine.request_ids
    return {table: rows.filter(pc.is_in(rows["request_id"], asked)) for table, rows in tables.items()}, mine.audit


def compared_tables(run: Any, grants: pa.Table | None, snapshot_id: str | None = None) -> dict[str, pa.Table]:
    """The compared tables of a run or snapshot; under `grants`, without the items that these do not admit now."""
    tables = {table: run.table(table, texts=table == "citations", snapshot_id=snapshot_id) for table in COMPARED}
    if grants is None:
        return tables
    judged = {table: run.table(table, texts=True, snapshot_id=snapshot_id) for table in JUDGED_BY}
    left = items_within_rights(tables | judged, grants)
    return {table: rows if table in JUDGED_BY else left[table] for table, rows in tables.items()}


def _paired(
    before: Mapping[str, pa.Table], after: Mapping[str, pa.Table], *, snapshots: bool
) -> tuple[dict[str, int], dict[str, int], int, int]:
    """The pair number of each request of both sides, and how many requests of each have no partner."""
    ids = [tables["snapshots"]["request_id"].to_pylist() for tables in (before, after)]
    if snapshots:
        return {ids[0][0]: 0}, {ids[1][0]: 0}, 0, 0
    common = sorted(set(ids[0]) & set(ids[1]))
    if common:
        pairs = {request: number for number, request in enumerate(common)}
        return pairs, pairs, len(ids[0]) - len(common), len(ids[1]) - len(common)
    first, second = (_spelled(tables["requests"]) for tables in (before, after))
    joined = first.merge(second, on=["asked", "turn"], suffixes=("_before", "_after"))
    own = {request: number for number, request in enumerate(joined["request_id_before"])}
    other = {request: number for number, request in enumerate(joined["request_id_after"])}
    return own, other, len(ids[0]) - len(own), len(ids[1]) - len(other)


def _spelled(requests: pa.Table) -> pd.DataFrame:
    """The fields of each request as one text, and its number among equal ones."""
    frame = _frame_of(requests.select(["request_id", *_ASKED])).sort_values("request_id")
    rows = frame[list(_ASKED)].itertuples(index=False)
    asked = pd.Series(["\x1f".join(map(str, row)) for row in rows], index=frame.index, dtype=object)
    return pd.DataFrame({"request_id": frame["request_id"], "asked": asked, "turn": asked.groupby(asked).cumcount()})


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as plain values, absent ones None, whole positions as integers."""
    whole = {name: "Int64" for name in frame.columns if name.startswith("position")}
    plain = frame.astype(whole).astype(object)
    names, rows = list(plain.columns), plain.where(plain.notna(), None).itertuples(index=False)
    return [dict(zip(names, row, strict=True)) for row in rows]
