"""What an erasure removes from a run: the texts that show something of some rows of evidence, and those of requests.

    asked = RequestSelection(principal="ana", audited=frozenset({"shop"}), held=ids, user="bo")

One rule: the rows of tables that refer to an erased row of evidence lose their texts, and so do those that a request made
of it: its block, the notes on items that were checked against it, messages that quote values, and anchors and queries if it
was an event of the session. A selected request loses all of its texts. A text stays as long as another row has it.

Note: a refused request names no principal, so it counts as one of the user who started the run. A row that the corpus lost,
as when it was rebuilt, has no known owner: it goes from runs in which the principal asked or audits a request that cites it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.columns.digests import innermost
from ...nodes.columns.keys import flat, pair_positions
from ...nodes.tables import CANDIDATES, SESSION_EVENTS
from .parts import VIEWS

_WHOSE = {"request_id", "evidence_id", "record_id", "source_id", "principal", "asked_by", "project",
          "condition"}  # fmt: skip
"""Columns that say what a row refers to, or whose it is."""
READS: Mapping[str, list[str]] = {
    table.name: [name for name, column in table.columns.items() if column.free_text or name in _WHOSE]
    for table in VIEWS
    if table.names(free_text=True) or table in (CANDIDATES, SESSION_EVENTS)
} | {"texts": ["sha256"]}
"""What an erasure reads of a run, by table."""
Tables = Mapping[str, pa.Table]
"""These tables of a run, in stored form."""
_QUOTING = pa.array(["conflicting", "fact_mismatch"])
"""Conditions whose message quotes fields or values of rows, shown or not."""
_NONE = pa.array([], pa.string())


@dataclass(frozen=True)
class RequestSelection:
    """Requests of a user and a project (None = any), limited to those by `principal` and in `audited` projects, and rows
    that they cite: those of a source (None = any) and with one of these ids (none = any) that the corpus does not hold.
    """

    principal: str
    audited: frozenset[str]
    held: pa.Array
    """Ids of the rows in the corpus, which says who may erase them."""
    user: str | None = None
    project: str | None = None
    source: str | None = None
    evidence: tuple[str, ...] = ()
    questions: bool = True
    """Requests lose all their text; with a source or ids, those to which one of the erased rows was shown."""

    def among(self, requests: pa.Table, failures: pa.Table, starter: str | None) -> pa.Array:
        """The ids of the selected REQUESTS and FAILURES, whatever was shown to them."""
        chosen = self._of(*(flat(requests[name]) for name in ("principal", "asked_by", "project")))
        started = pa.repeat(pa.scalar(starter, pa.string()), failures.num_rows)
        refused = self._of(started, started, flat(failures["project"]))
        return pa.concat_arrays(
            [flat(requests["request_id"]).filter(chosen), flat(failures["request_id"]).filter(refused)]
        )

    def _of(self, principals: pa.Array, askers: pa.Array, projects: pa.Array) -> pa.Array:
        """Whether each request is selected, by its principal or the user who asked it, and by project; boolean[n]."""
        chosen = pc.or_(_either(principals, askers, self.principal), _among(projects, sorted(self.audited)))
        if self.user is not None:
            chosen = pc.and_(chosen, _either(principals, askers, self.user))
        if self.project is not None:
            chosen = pc.and_(chosen, pc.fill_null(pc.equal(projects, self.project), False))
        return chosen

    def lost_rows(self, cited: pa.Table, requests: pa.Array) -> pa.Array:
        """The ids of the rows that these requests cite and the corpus does not hold; none for a user, as nobody knows their
        owner.
        """
        if self.user is not None:
            return _NONE
        chosen = _among(cited["request_id"], requests)
        if self.source is not None:
            chosen = pc.and_(chosen, pc.equal(cited["source_id"], self.source))
        ids = pc.unique(flat(cited.filter(chosen)["evidence_id"]))
        if self.evidence:
            ids = ids.filter(_among(ids, self.evidence))
        return ids.filter(pc.invert(_among(ids, self.held)))


NOBODY = RequestSelection("", frozenset(), _NONE, questions=False)
"""Selects nothing."""


class Gone(NamedTuple):
    """What an erasure removes from a run: hashes of texts, the number of requests that lose theirs, the number of texts of
    these requests that remain because other requests have them, too, and the ids of rows that the corpus does not hold.
    """

    hashes: set[str]
    questions: int
    shared: int
    lost: frozenset[str]


def gone_from(tables: Tables, starter: str | None, ids: pa.Array, asked: RequestSelection) -> Gone:
    """What an erasure of these rows, and of requests, removes from a run that `starter` began."""
    selected = asked.among(tables["requests"], tables["failures"], starter)
    lost = asked.lost_rows(tables["citations"], selected)
    ids = pa.concat_arrays([ids, lost])
    refers = {
        name: _among(table["evidence_id"], ids) for name, table in tables.items() if "evidence_id" in table.column_names
    }
    items = tables["trimmed"].filter(refers["trimmed"])
    refers = {name: pc.or_(mask, _same_items(tables[name], items)) for name, mask in refers.items()}
    checks = tables["fact_checks"]
    checked = checks.filter(_among(checks["record_id"], ids))
    refers["fact_checks"] = pc.or_(refers["fact_checks"], _among(checks["record_id"], ids))
    of = {name: flat(tables[name].filter(mask)["request_id"]) for name, mask in refers.items()}
    shown = pa.concat_arrays([of["trimmed"], of["citations"]])
    made = {
        "blocks": pa.concat_arrays([shown, flat(checked["request_id"])]),
        "conditions": pa.concat_arrays([*of.values()]),
        "anchors": of["session_events"],
        "sub_queries": of["session_events"],
    }
    if not asked.questions:
        selected = _NONE
    elif asked.source is not None or asked.evidence:
        selected = selected.filter(_among(selected, shown))
    gone, stays, own = [_NONE], [_NONE], [_NONE]
    for declared in VIEWS:
        for column in declared.names(free_text=True):
            table = tables[declared.name]
            theirs = _among(table["request_id"], selected)
            lose = refers.get(declared.name, _among(table["request_id"], made.get(declared.name, _NONE)))
            if declared.name == "conditions":
                lose = pc.and_(lose, _among(table["condition"], _QUOTING))
            if column == "fact_note":
                lose = pc.or_(lose, _same_items(table, checked))
            lose = pc.or_(lose, theirs)
            for found, rows in ((gone, lose), (stays, pc.invert(lose)), (own, theirs)):
                found.append(innermost(flat(table.filter(rows)[column])).drop_null())
    stored = flat(tables["texts"]["sha256"])
    removed, left, of_requests = (pc.unique(pa.concat_arrays(each)) for each in (gone, stays, own))
    removed = removed.filter(pc.and_(_among(removed, stored), pc.invert(_among(removed, left))))
    questions = len(selected) if pc.any(_among(of_requests, removed)).as_py() else 0
    shared = of_requests.filter(pc.and_(_among(of_requests, stored), _among(of_requests, left)))
    return Gone(set(removed.to_pylist()), questions, len(shared), frozenset(lost.to_pylist()))


def _same_items(table: pa.Table, items: pa.Table) -> pa.Array:
    """Which rows belong to one of these items, by request and leading row."""
    return pa.array(pair_positions(*((t["request_id"], t["evidence_id"]) for t in (table, items))) >= 0)


def _among(values: pa.Array | pa.ChunkedArray, known: Iterable[str] | pa.Array) -> pa.Array:
    return pc.is_in(flat(values), value_set=known if isinstance(known, pa.Array) else pa.array([*known], pa.string()))


def _either(principals: pa.Array, askers: pa.Array, name: str) -> pa.Array:
    return pc.or_(*(pc.fill_null(pc.equal(column, name), False) for column in (principals, askers)))
