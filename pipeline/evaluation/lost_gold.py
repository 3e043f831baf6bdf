"""Where rows judged relevant were lost: one result per judged document and query of a run.

Reads a run, judgements, and the generation that the run was made from. Gives `LostGold`: for every judged document the
stage at which the last of its rows was lost, and the deciding rule.

Access is as for `why`: for requests that the principal audits, everything; for their own requests, the decisions about
rows that passed every gate, and for every other row, including absent ones, the same answer. All other requests do not
exist for them.

Note: a document has several rows, and the one that got furthest determines where it was lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.errors import AccessError, InputError
from ..config.settings import Settings
from ..plugins import plugins_of
from ..reading.access import open_run, pinned_corpus, unknown
from ..reading.snapshots import audiences, audited_projects
from ..views.refusal import refused_pairs
from .rankings import FULL

STAGES = ("request", "corpus", "unseen", "gate", "recall", "merge", "rank", "select", "pack", "trim", "cite", "shown")
"""How far a document got: lost with its request, not in the corpus, not to be disclosed, stopped by a gate, recalled by
no lane, cut when lanes were merged, outranked (twice), dropped while packing, trimmed, without a citation; or shown."""
NAMES = ("entity", "path", "evidence_id")
"""Columns of a row that may identify a judged document."""


class Fate(NamedTuple):
    """What became of a row, or of a judged document: the fate of its row that got furthest."""

    stage: str
    reason: str | None
    decided_by: str | None = None
    evidence_id: str | None = None
    rank: int | None = None

    @property
    def furthest(self) -> tuple[int, int]:
        """A key that is larger the further the row got."""
        return STAGES.index(self.stage), -(self.rank or 0)


NOWHERE = {
    "audit": Fate("corpus", "no row of it in the projects that you audit"),
    "caller": Fate("unseen", "no row that you may ask about"),
}
"""The fate of a document without a row that the reader may ask about, by audience."""


@dataclass(frozen=True)
class LostGold:
    """The outcome of every judged document, by query and document."""

    run_id: str
    gold: list[dict[str, Any]]
    """query_id, doc_id, relevance, and the fields of `Fate`."""

    def stages(self) -> list[dict[str, Any]]:
        """One row per stage and reason, and one for the documents shown: stage, reason, gold, share."""
        counts = Counter((row["stage"], row["reason"]) for row in self.gold)
        ordered = sorted(counts.items(), key=lambda pair: (STAGES.index(pair[0][0]), -pair[1], str(pair[0][1])))
        return [
            {"stage": stage, "reason": reason, "gold": count, "share": count / len(self.gold)}
            for (stage, reason), count in ordered
        ]


def lost_gold(settings: Settings, id_: str, qrels: pd.DataFrame, *, system: str = FULL) -> LostGold:
    """The outcome of the judged documents of a run, or of one snapshot.

    Args:
        id_: a run or a snapshot.
        qrels: query_id, doc_id, relevance; a query is a request id, or the part after its last `/`. A document is a
            row's entity, path or evidence id.
        system: for a run of `eval`, the budget: `full`, `block` or `block@2000`.

    Raises:
        AccessError: there is no such run, or no judged request in it that the principal may read.
        InputError: the run has no such budget.
        StoreError: the corpus, or the generation that the run was made from, is missing.
    """
    run = open_run(settings, id_)
    seen = [row for row in audiences(settings, run).to_pylist() if row["audience"] is not None]
    if id_ != run.run_id:
        seen = [row for row in seen if row["snapshot_id"] == id_]
    if not seen:
        raise unknown(id_)
    case = _Case(settings, run, _requests_of(seen, system))
    rows: list[Any] = qrels[["query_id", "doc_id", "relevance"]].to_dict("records")
    judged = [row for row in rows if case.asked(row)]
    if not judged:
        raise AccessError(
            f"Expected a judged query among the requests that you may read, got none - at {id_}",
            hint="a query of the judgements is a request id, or the part after its last `/`",
        )
    fates = case.fates_of(judged)
    gold = [row | fate._asdict() for row, fate in zip(judged, fates, strict=True)]
    return LostGold(run.run_id, sorted(gold, key=lambda row: (row["query_id"], row["doc_id"])))


def _requests_of(seen: Sequence[dict[str, Any]], system: str) -> dict[str, dict[str, Any]]:
    """The requests under a budget by their id without it, and by the last part of it where that is the id of one only."""
    suffix = "" if system == FULL else f"@{system}"
    whole = {row["request_id"].removesuffix(suffix): row for row in seen if row["request_id"].endswith(suffix)}
    if not whole:
        known = {row["request_id"].partition("@")[2] for row in seen} - {""}
        raise InputError.one_of([FULL, *sorted(known)], system, "--system")
    last = Counter(name.rpartition("/")[2] for name in whole)
    return {short: row for name, row in whole.items() if last[short := name.rpartition("/")[2]] == 1} | whole


class _Case:
    """Some requests of one run, with the decisions about their rows."""

    def __init__(self, settings: Settings, run: Any, requests: dict[str, dict[str, Any]]) -> None:
        self._requests = requests
        ids = pa.array({row["request_id"] for row in requests.values()}, pa.string())
        self._contracts, self._bounds, decisions, hits = (
            (table := run.table(name)).filter(pc.is_in(table["request_id"], ids))
            for name in ("contracts", "contract_bounds", "decisions", "hits")
        )
        columns = ["request_id", "evidence_id", "outcome", "stage", "reason_code", "decided_by", "rank"]
        self._decided = {(d["request_id"], d["evidence_id"]): d for d in decisions.select(columns).to_pylist()}
        self._hits = set(zip(hits["request_id"].to_pylist(), hits["evidence_id"].to_pylist(), strict=True))
        denied = self._contracts.filter(self._contracts["denied"]).select(["request_id", "denied_reason"]).to_pylist()
        self._lost = dict.fromkeys(run.table("failures")["request_id"].to_pylist(), "request_failed")
        self._lost |= {row["request_id"]: row["denied_reason"] for row in denied}
        self._plugins = plugins_of(run)
        corpus, self._audited = pinned_corpus(settings, run), audited_projects(settings, run)
        reached = {*self._bounds["project"].to_pylist(), *self._audited}
        self._frame = corpus.frame(sorted(reached & set(corpus.projects())))

    def asked(self, judged: dict[str, Any]) -> bool:
        """Whether the query of a judgement is one of the requests."""
        return judged["query_id"] in self._requests

    def fates_of(self, judged: Sequence[dict[str, Any]]) -> Iterator[Fate]:
        """The fate of each judged document."""
        rows = self._rows({one["doc_id"] for one in judged})
        asked = [(self._requests[one["query_id"]], one["doc_id"]) for one in judged]
        known = self._known(
            {(request["request_id"], row): request for request, name in asked for row in rows.get(name, ())}
        )
        for request, name in asked:
            id_ = request["request_id"]
            if reason := self._lost.get(id_):
                yield Fate("request", reason)
            else:
                found = [known[id_, row] for row in rows.get(name, ()) if (id_, row) in known]
                yield max(found or [NOWHERE[request["audience"]]], key=lambda fate: fate.furthest)

    def _rows(self, documents: set[str]) -> dict[str, list[int]]:
        """The frame rows of each document."""
        found: dict[str, dict[int, None]] = {}
        for name in NAMES:
            named = self._frame.evidence[name]
            at = np.flatnonzero(pc.is_in(named, value_set=pa.array(documents, named.type), skip_nulls=True))
            for document, row in zip(named.take(pa.array(at)).to_pylist(), at.tolist(), strict=True):
                found.setdefault(document, {})[row] = None
        return {document: list(rows) for document, rows in found.items()}

    def _known(self, pairs: dict[tuple[str, int], dict[str, Any]]) -> dict[tuple[str, int], Fate]:
        """The fate of rows, each in the request of its key, except of rows that the reader may not ask about."""
        known, undecided = {}, []
        ids, owners = (self._frame.evidence[name] for name in ("evidence_id", "owner_project"))
        for (request, row), asked in pairs.items():
            decided = self._decided.get((request, ids[row].as_py()))
            audited = asked["audience"] == "audit" and owners[row].as_py() in self._audited
            if decided and (decided["stage"] != "gate" or audited):
                shown = decided["outcome"] == "selected"
                stage, reason = ("shown", "shown") if shown else (decided["stage"], decided["reason_code"])
                known[request, row] = Fate(
                    stage, reason, decided["decided_by"], decided["evidence_id"], decided["rank"]
                )
            elif audited and request not in self._lost:
                undecided.append((request, row))
        if undecided:
            requests, rows = zip(*undecided, strict=True)
            verdicts = refused_pairs(
                self._contracts, self._bounds, self._frame, requests, np.array(rows), self._plugins
            )
            for pair, verdict in zip(undecided, verdicts.to_pylist(), strict=True):
                id_ = verdict["evidence_id"]
                if not verdict["admitted"]:
                    known[pair] = Fate("gate", verdict["reason_code"], verdict["decided_by"], id_)
                elif (pair[0], id_) in self._hits:
                    known[pair] = Fate("merge", "not_recalled", "pool_k", id_)
                else:
                    known[pair] = Fate("recall", "not_recalled", None, id_)
        return known
