"""Selects the texts of requests in a run, which are erased with the questions of a user or project.

    asked = RequestSelection(principal="ana", audited=frozenset({"shop"}), user="bo")

Reads: the stored tables of a run. Gives: hashes of texts. Note: a run stores each text once, so a
text that a request of another user or a row of evidence also has stays; a refused request names no principal, so it
counts as one of the user who started the run.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.columns.keys import flat
from .erasing_texts import StoredTables, requests_showing
from .parts import PERSISTED, values_of

__all__ = ["RequestSelection", "Unheld", "chosen_among", "requests_of", "words_of"]

_WORDS = ("requests", "failures", "anchors", "sub_queries", "conditions", "snapshots")
"""Tables whose free text comes from a request: questions, anchors, planned queries, messages."""


@dataclass(frozen=True)
class RequestSelection:
    """Requests of a user and a project (None = any), limited to those by `principal` and in `audited` projects."""

    principal: str
    audited: frozenset[str]
    user: str | None = None
    project: str | None = None
    shown: bool = False
    """Only requests to which one of the erased rows was shown."""

    def of(self, principals: pa.Array, askers: pa.Array, projects: pa.Array) -> pa.Array:
        """Whether each request is selected, by its principal or the user who asked it, and by project; boolean[n]."""
        own = _either(principals, askers, self.principal)
        chosen = pc.or_(own, pc.is_in(projects, value_set=pa.array(sorted(self.audited), pa.string())))
        if self.user is not None:
            chosen = pc.and_(chosen, _either(principals, askers, self.user))
        if self.project is not None:
            chosen = pc.and_(chosen, pc.fill_null(pc.equal(projects, self.project), False))
        return chosen


@dataclass(frozen=True)
class Unheld:
    """Rows that were shown to requests of `asked` and are not in the corpus, for example after it was rebuilt.

    Their owner is no longer recorded: they are erased with the requests of a project, by source or by id.
    """

    asked: RequestSelection
    held: pa.Array
    """Ids of the rows in the corpus, which determines who may erase them."""
    source: str | None = None
    evidence: tuple[str, ...] = ()

    def of(self, run: StoredTables, starter: str | None) -> pa.Array:
        """The ids of such rows in a run."""
        requests = chosen_among(self.asked, run.stored("requests"), run.stored("failures"), starter)
        cited = run.stored("citations")
        if self.source is not None:
            cited = cited.filter(pc.equal(cited["source_id"], self.source))
        tables = [cited] if self.source is not None else [cited, run.stored("trimmed")]
        ids = [flat(table.filter(pc.is_in(table["request_id"], value_set=requests))["evidence_id"]) for table in tables]
        shown = pc.unique(pa.concat_arrays(ids))
        if self.evidence:
            shown = shown.filter(pc.is_in(shown, value_set=pa.array(self.evidence, pa.string())))
        return shown.filter(pc.invert(pc.is_in(shown, value_set=self.held)))


def requests_of(run: StoredTables, asked: RequestSelection, starter: str | None, evidence_ids: pa.Array) -> pa.Array:
    """The ids of the selected requests of a run, refused ones included."""
    ids = chosen_among(asked, run.stored("requests"), run.stored("failures"), starter)
    return ids.filter(pc.is_in(ids, value_set=requests_showing(run, evidence_ids))) if asked.shown else ids


def chosen_among(asked: RequestSelection, requests: pa.Table, failures: pa.Table, starter: str | None) -> pa.Array:
    """The ids of the selected REQUESTS and FAILURES, whatever was shown to them."""
    chosen = asked.of(*(flat(requests[name]) for name in ("principal", "asked_by", "project")))
    started = pa.repeat(pa.scalar(starter, pa.string()), failures.num_rows)
    refused = asked.of(started, started, flat(failures["project"]))
    return pa.concat_arrays([flat(requests["request_id"]).filter(chosen), flat(failures["request_id"]).filter(refused)])


def words_of(run: StoredTables, requests: pa.Array) -> tuple[set[str], int]:
    """Hashes of texts that only these requests use, and the number of their texts shared with others."""
    own, others = [pa.array([], pa.string())], [pa.array([], pa.string())]
    for declared in PERSISTED:
        free = declared.names(free_text=True)
        if not free:
            continue
        table = run.stored(declared.name)
        if declared.name in _WORDS:
            mine = pc.is_in(flat(table["request_id"]), value_set=requests)
            own += [values_of(table.filter(mine)[name]) for name in free]
            table = table.filter(pc.invert(mine))
        others += [values_of(table[name]) for name in free]
    wanted = pc.unique(pa.concat_arrays(own).drop_null())
    wanted = wanted.filter(pc.is_in(wanted, value_set=flat(run.texts["sha256"])))
    shared = pc.is_in(wanted, value_set=pa.concat_arrays(others))
    return set(wanted.filter(pc.invert(shared)).to_pylist()), pc.sum(shared).as_py() or 0


def _either(principals: pa.Array, askers: pa.Array, name: str) -> pa.Array:
    return pc.or_(*(pc.fill_null(pc.equal(column, name), False) for column in (principals, askers)))
