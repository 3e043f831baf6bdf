"""What an erasure removes from a run: the texts that show something of some rows of evidence, and those of requests.

    asked = RequestSelection(principal="ana", audited=frozenset({"shop"}), held=ids, user="bo")

Note: a block contains the text of every item, so the block of a request is erased with any of its items; the citation
of an item may name the section of any of its merged rows; the value of a record may be noted on an item that is not a
record; session events are in anchors and queries of requests that do not show them; and a path stays as long as another
row has it. A request goes with everything that it showed. A run stores each text once, so a text that a request of another
user also has stays; a refused request names no principal, so it counts as one of the user who started the run. A row that the
corpus lost, as when it was rebuilt, has no known owner: it goes from runs in which the principal asked or audits a request
that cites it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.columns.keys import flat, pair_positions, positions
from ...nodes.columns.list_columns import flattened, holds
from ...nodes.facts.fact_conflicts import DISAGREE
from ...nodes.tables import CANDIDATES, CONTRACTS, PLAN_RULES, SESSION_EVENTS
from .parts import VIEWS, values_of

__all__ = ["READS", "Gone", "RequestSelection", "chosen_among", "gone_from", "texts_showing"]

_SHOWN = ("trimmed", "citations")
"""Tables whose rows record that something of a row of evidence reached a block."""
_PATH = "path"
_WHOSE = {"request_id", "evidence_id", "merged_rows", "record_id", "source_id", "block_ref", "principal", "asked_by",
          "project", "purpose", "intent", "origin", "condition", "parts"}  # fmt: skip
"""Columns that say what a row shows, or whose it is."""
READS: Mapping[str, list[str]] = {
    table.name: [name for name, column in table.columns.items() if column.free_text or name in _WHOSE]
    for table in (*VIEWS, PLAN_RULES)
    if table.names(free_text=True) or table in (CANDIDATES, CONTRACTS, SESSION_EVENTS, PLAN_RULES)
} | {"texts": ["sha256", "text"]}
"""What an erasure reads of a run, by table."""
Tables = Mapping[str, pa.Table]
"""These tables of a run, in stored form."""


def texts_showing(tables: Tables, evidence_ids: pa.Array) -> set[str]:
    """The hashes of the stored texts of a run that show something of these rows, blocks included."""
    found: list[pa.Array] = []
    requests: list[pa.Array] = []
    paths = [[pa.array([], pa.string())] for _ in range(2)]
    trimmed = tables["trimmed"]
    shown = trimmed.filter(_hit(trimmed, evidence_ids))
    for declared in VIEWS:
        free = declared.names(free_text=True)
        if "evidence_id" not in declared.columns or not (free or declared.name in _SHOWN):
            continue
        stored = tables[declared.name]
        hit = _hit(stored, evidence_ids)
        if declared.name == "citations":
            hit = pc.or_(hit, _same_items(stored, shown))
        rows = stored.filter(hit)
        found += [values_of(rows[name]) for name in free if name != _PATH]
        if _PATH in free:
            paths[0].append(flat(rows[_PATH]))
            paths[1].append(flat(stored.filter(pc.invert(hit))[_PATH]))
        if declared.name in _SHOWN:
            requests.append(flat(rows["request_id"]))
    checks = tables["fact_checks"]
    against = checks.filter(pc.is_in(checks["record_id"], value_set=evidence_ids))
    noted = trimmed.filter(pc.and_(_same_items(trimmed, against), trimmed["fact_note"].is_valid()))
    found += [flat(against[name]) for name in ("field", "canonical", "locator")] + [flat(noted["fact_note"])]
    requests.append(flat(noted["request_id"]))
    found += _observed(tables, evidence_ids)
    gone, stay = (pa.concat_arrays(each) for each in paths)
    found.append(gone.filter(pc.invert(pc.is_in(gone, value_set=stay))))
    conditions = tables["conditions"]
    mismatches = pc.and_(
        pc.equal(conditions["condition"], "fact_mismatch"), pc.is_in(conditions["request_id"], value_set=requests[-1])
    )
    found.append(flat(conditions["message"].filter(mismatches)))
    found.append(_naming_fields(tables, conditions, evidence_ids))
    blocks = tables["blocks"]
    asked = pc.is_in(blocks["request_id"], value_set=pa.concat_arrays(requests))
    found.append(flat(blocks["text"].filter(pc.and_(asked, blocks["block_ref"].is_valid()))))
    wanted = pc.unique(pa.concat_arrays(found).drop_null())
    return set(wanted.filter(pc.is_in(wanted, value_set=flat(tables["texts"]["sha256"]))).to_pylist())


def requests_showing(tables: Tables, evidence_ids: pa.Array) -> pa.Array:
    """The ids of the requests whose block showed something of these rows."""
    shown = [table.filter(_hit(table, evidence_ids))["request_id"] for table in (tables[name] for name in _SHOWN)]
    return pc.unique(pa.concat_arrays([flat(ids) for ids in shown]))


def _naming_fields(tables: Tables, conditions: pa.Table, evidence_ids: pa.Array) -> pa.Array:
    """Messages with field names of conflicting rows, for requests with these rows as candidates, shown or not."""
    candidates = tables["candidates"]
    asked = candidates["request_id"].filter(pc.is_in(candidates["evidence_id"], value_set=evidence_ids))
    named = pc.and_(
        pc.equal(conditions["condition"], "conflicting"), pc.is_in(conditions["request_id"], value_set=flat(asked))
    )
    naming = tables["texts"]["sha256"].filter(pc.starts_with(tables["texts"]["text"], DISAGREE))
    messages = flat(conditions["message"].filter(named))
    return messages.filter(pc.is_in(messages, value_set=flat(naming)))


def _observed(tables: Tables, evidence_ids: pa.Array) -> list[pa.Array]:
    """Hashes of texts that requests took from these rows as events of their session: anchors, and queries with them.

    Which of a request's events named an anchor is not recorded, so erasing any of them removes all.
    """
    events, anchors, asked = (tables[name] for name in ("session_events", "anchors", "sub_queries"))
    read = pc.unique(flat(events["request_id"]).filter(_hit(events, evidence_ids)))
    named = anchors.filter(
        pc.and_(pc.equal(anchors["origin"], "session_events"), pc.is_in(anchors["request_id"], value_set=read))
    )
    rules, contracts = tables["plan_rules"], tables["contracts"]
    rules = rules.filter(pa.array(holds(rules["parts"], "session")))
    asked = asked.filter(pc.is_in(asked["request_id"], value_set=pc.unique(flat(named["request_id"]))))
    purpose = contracts["purpose"].take(pa.array(positions(asked["request_id"], contracts["request_id"])))
    observed = asked.filter(
        pa.array(pair_positions((purpose, asked["intent"]), (rules["purpose"], rules["intent"])) >= 0)
    )
    return [flat(named["value"]), flat(observed["query_text"])]


def _hit(table: pa.Table, evidence_ids: pa.Array) -> pa.Array:
    """Which rows refer to one of these rows of evidence, alone or merged with others."""
    hit = flat(pc.is_in(table["evidence_id"], value_set=evidence_ids))
    if "merged_rows" not in table.column_names:
        return hit
    item, member = flattened(table["merged_rows"])
    rows = pc.unique(pa.array(item).filter(pc.is_in(member, value_set=evidence_ids)))
    return pc.or_(hit, pc.is_in(pa.array(range(table.num_rows), pa.int64()), value_set=rows.cast(pa.int64())))


def _same_items(table: pa.Table, items: pa.Table) -> pa.Array:
    """Which rows belong to one of these items, by request and leading row."""
    return pa.array(pair_positions(*((t["request_id"], t["evidence_id"]) for t in (table, items))) >= 0)


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

    def of(self, principals: pa.Array, askers: pa.Array, projects: pa.Array) -> pa.Array:
        """Whether each request is selected, by its principal or the user who asked it, and by project; boolean[n]."""
        own = _either(principals, askers, self.principal)
        chosen = pc.or_(own, pc.is_in(projects, value_set=pa.array(sorted(self.audited), pa.string())))
        if self.user is not None:
            chosen = pc.and_(chosen, _either(principals, askers, self.user))
        if self.project is not None:
            chosen = pc.and_(chosen, pc.fill_null(pc.equal(projects, self.project), False))
        return chosen


def lost_rows(tables: Tables, asked: RequestSelection, starter: str | None) -> pa.Array:
    """The ids of the selected rows that the corpus does not hold; none for a user, as nobody knows their owner."""
    if asked.user is not None:
        return pa.array([], pa.string())
    cited = tables["citations"]
    requests = chosen_among(asked, tables["requests"], tables["failures"], starter)
    chosen = pc.is_in(cited["request_id"], value_set=requests)
    if asked.source is not None:
        chosen = pc.and_(chosen, pc.equal(cited["source_id"], asked.source))
    ids = pc.unique(flat(cited.filter(chosen)["evidence_id"]))
    if asked.evidence:
        ids = ids.filter(pc.is_in(ids, value_set=pa.array(asked.evidence, pa.string())))
    return ids.filter(pc.invert(pc.is_in(ids, value_set=asked.held)))


def requests_of(tables: Tables, asked: RequestSelection, starter: str | None, evidence_ids: pa.Array) -> pa.Array:
    """The ids of the selected requests of a run, refused ones included."""
    ids = chosen_among(asked, tables["requests"], tables["failures"], starter)
    if asked.source is None and not asked.evidence:
        return ids
    return ids.filter(pc.is_in(ids, value_set=requests_showing(tables, evidence_ids)))


def chosen_among(asked: RequestSelection, requests: pa.Table, failures: pa.Table, starter: str | None) -> pa.Array:
    """The ids of the selected REQUESTS and FAILURES, whatever was shown to them."""
    chosen = asked.of(*(flat(requests[name]) for name in ("principal", "asked_by", "project")))
    started = pa.repeat(pa.scalar(starter, pa.string()), failures.num_rows)
    refused = asked.of(started, started, flat(failures["project"]))
    return pa.concat_arrays([flat(requests["request_id"]).filter(chosen), flat(failures["request_id"]).filter(refused)])


def texts_of_requests(tables: Tables, requests: pa.Array) -> tuple[set[str], int]:
    """Hashes of the texts that only these requests have, and the number of their texts shared with others."""
    own, others = [pa.array([], pa.string())], [pa.array([], pa.string())]
    for declared in VIEWS:
        if free := declared.names(free_text=True):
            table = tables[declared.name]
            mine = pc.is_in(flat(table["request_id"]), value_set=requests)
            own += [values_of(table.filter(mine)[name]) for name in free]
            others += [values_of(table.filter(pc.invert(mine))[name]) for name in free]
    wanted = pc.unique(pa.concat_arrays(own).drop_null())
    wanted = wanted.filter(pc.is_in(wanted, value_set=flat(tables["texts"]["sha256"])))
    shared = pc.is_in(wanted, value_set=pa.concat_arrays(others))
    return set(wanted.filter(pc.invert(shared)).to_pylist()), pc.sum(shared).as_py() or 0


def _either(principals: pa.Array, askers: pa.Array, name: str) -> pa.Array:
    return pc.or_(*(pc.fill_null(pc.equal(column, name), False) for column in (principals, askers)))


class Gone(NamedTuple):
    """What an erasure removes from a run: hashes of texts, the number of requests that lose theirs, the number of texts of
    these requests that remain because other requests have them, too, and the ids of rows that the corpus does not hold.
    """

    hashes: set[str]
    questions: int = 0
    shared: int = 0
    lost: frozenset[str] = frozenset()


def gone_from(tables: Tables, starter: str | None, ids: pa.Array, asked: RequestSelection | None) -> Gone:
    """What an erasure of these rows, and of requests, removes from a run that `starter` began."""
    if asked is None:
        return Gone(texts_showing(tables, ids))
    found = lost_rows(tables, asked, starter)
    ids, lost = pa.concat_arrays([ids, found]), frozenset(found.to_pylist())
    showing = texts_showing(tables, ids)
    if not asked.questions:
        return Gone(showing, lost=lost)
    requests = requests_of(tables, asked, starter, ids)
    own, shared = texts_of_requests(tables, requests)
    return Gone(showing | own, len(requests) if own else 0, shared, lost)
