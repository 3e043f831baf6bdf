"""Where rows judged relevant were lost: one result per judged document and query of a run.

Reads a run, judgements, and the generation that the run was made from. Gives `LostGold`: for every judged document the
stage at which the last of its rows was lost, the deciding rule, and for outranked ones the terms in which they fell
behind.

Access is as for `why`: for requests that the principal audits, everything; for their own requests, the decisions about
rows that passed every gate, and for every other row, including absent ones, the same answer. All other requests do not
exist for them.

Note: a document has several rows, and the one that got furthest determines where it was lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.errors import AccessError, InputError
from ...nodes.vocabulary import SCORE_TERMS
from ..config.settings import Settings
from ..plugins import plugins_of
from ..reading.access import open_run, pinned_corpus, unknown
from ..reading.snapshots import audiences, audited_projects
from ..views.refusal import refused_pairs
from .rankings import FULL

STAGES = ("request", "corpus", "unseen", "gate", "recall", "merge", "select", "pack", "trim", "cite", "shown")
"""How far a document got: lost with its request, not in the corpus, not to be disclosed, stopped by a gate, recalled by
no lane, cut when lanes were merged, outranked, dropped while packing, trimmed, without a citation; or shown."""
_PLACE = {stage: place for place, stage in enumerate(STAGES)}
_STAGE_OF = {"gate": "gate", "rank": "select", "select": "select", "pack": "pack", "trim": "trim", "cite": "cite"}
OUTRANKED = ("select", "trim")
NAMES = ("entity", "path", "evidence_id")
"""Columns of a row that may identify a judged document."""
_COLUMNS = ["query_id", "doc_id", "relevance", "stage", "reason", "decided_by", "evidence_id", "rank", "behind"]


@dataclass(frozen=True)
class LostGold:
    """The outcome of every judged document."""

    run_id: str
    gold: pd.DataFrame
    """query_id, doc_id, relevance, stage, reason, decided_by, evidence_id, rank, behind: term -> the row's deficit to
    the weakest row that was shown, largest first."""

    def stages(self) -> pd.DataFrame:
        """One row per stage and reason of a loss, and one for the documents shown: stage, reason, gold, share."""
        counted = self.gold.groupby(["stage", "reason"], dropna=False).size().rename("gold").reset_index()
        counted = counted.assign(share=counted["gold"] / max(len(self.gold), 1))
        place = counted["stage"].map(_PLACE)
        return counted.assign(place=place).sort_values(["place", "gold"], ascending=[True, False]).drop(columns="place")

    def funnel(self) -> dict[str, int]:
        """The number of judged documents left after each stage, from all of them to those shown."""
        place = self.gold["stage"].map(_PLACE)
        lost = set(self.gold["stage"]) - {"shown"}
        left = {stage: int((place > _PLACE[stage]).sum()) for stage in STAGES if stage in lost}
        return {"judged": len(self.gold), **left}

    def behind(self) -> pd.DataFrame:
        """For outranked documents, per term: how many have their largest deficit in it, and their mean deficit."""
        lacking = [(term, value) for behind in self.gold["behind"] for term, value in list(behind.items())[:1]]
        frame = pd.DataFrame(lacking, columns=pd.Index(["term", "lacking"]))
        table = frame.groupby("term")["lacking"].agg(["size", "mean"]).reset_index()
        return table.set_axis(["term", "gold", "lacking"], axis=1).sort_values("gold", ascending=False)

    def records(self) -> list[dict[str, Any]]:
        """The judged documents as plain values."""
        plain = self.gold.astype(object).where(self.gold.notna(), None)
        return [{str(name): value for name, value in row.items()} for row in plain.to_dict("records")]


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
    seen = audiences(settings, run).to_pandas()
    seen = seen[seen["audience"].notna()]
    if id_ != run.run_id:
        seen = seen[seen["snapshot_id"] == id_]
    if not len(seen):
        raise unknown(id_)
    asked = _requests_of(seen, qrels, system)
    if not len(asked):
        raise AccessError(
            f"Expected a judged query among the requests that you may read, got none - at {id_}",
            hint="a query of the judgements is a request id, or the part after its last `/`",
        )
    case = _Case(settings, run, asked)
    gold = case.rows.drop(columns="audience")
    return LostGold(run.run_id, gold[_COLUMNS].sort_values(["query_id", "doc_id"], ignore_index=True))


def _requests_of(seen: pd.DataFrame, qrels: pd.DataFrame, system: str) -> pd.DataFrame:
    """The judgements with request_id and audience: those whose query is a request id or its last part."""
    suffix = "" if system == FULL else f"@{system}"
    requests = seen[seen["request_id"].str.endswith(suffix)]
    if not len(requests):
        known = seen["request_id"].str.extract(r"@(block(?:@\d+)?)$")[0].dropna().unique()
        raise InputError.one_of([FULL, *sorted(known)], system, "--system")
    whole = requests["request_id"].str.removesuffix(suffix)
    short = whole.str.rpartition("/")[2]
    known = set(whole)
    parts = []
    for names, judged in (
        (whole, qrels[qrels["query_id"].isin(known)]),
        (short[~short.duplicated(keep=False)], qrels[~qrels["query_id"].isin(known)]),
    ):
        named = requests.loc[names.index, ["request_id", "audience"]].assign(query_id=names)
        parts.append(judged.merge(named, on="query_id"))
    return pd.concat(parts, ignore_index=True)


class _Case:
    """The judged documents of one run, with the data of its tables."""

    def __init__(self, settings: Settings, run: Any, asked: pd.DataFrame) -> None:
        self.run = run
        requests = pa.array(asked["request_id"].unique(), pa.string())
        self.contracts, self.bounds, self.decisions, self.hits, self.ranked = (
            _of(run.table(name), requests) for name in ("contracts", "contract_bounds", "decisions", "hits", "ranked")
        )
        self.plugins = plugins_of(run)
        corpus = pinned_corpus(settings, run)
        reached = set(pc.unique(self.bounds["project"]).to_pylist()) | set(audited_projects(settings, run))
        self.frame = corpus.frame(sorted(reached & set(corpus.projects())))
        self.audited = np.isin(
            self.frame.evidence["owner_project"].to_numpy(zero_copy_only=False), list(audited_projects(settings, run))
        )
        self.rows = self._judged(asked)

    def _judged(self, asked: pd.DataFrame) -> pd.DataFrame:
        asked = asked.assign(gold=np.arange(len(asked)))
        lost = self._lost_requests()
        pairs = self._with_fates(self._pairs(asked[~asked["request_id"].isin(lost)]))
        best = pairs.sort_values(["place", "rank"], ascending=[False, True], kind="stable").drop_duplicates("gold")
        traced = asked.merge(best.drop(columns=["request_id", "audience"]), on="gold", how="left")
        audit = traced["audience"] == "audit"
        none = traced["stage"].isna()
        traced["stage"] = traced["stage"].where(~none, np.where(audit, "corpus", "unseen"))
        words = np.where(audit, "no row of it in the projects that you audit", "no row that you may ask about")
        traced["reason"] = traced["reason"].where(~none, words)
        gone = traced["request_id"].isin(lost)
        traced["stage"] = traced["stage"].mask(gone, "request")
        traced["reason"] = traced["reason"].mask(gone, traced["request_id"].map(lost))
        traced["rank"] = traced["rank"].astype("Int64")
        return traced.assign(behind=pd.Series(self._behind(traced), index=traced.index, dtype=object))

    def _pairs(self, asked: pd.DataFrame) -> pd.DataFrame:
        """The rows of every judged document: gold, request_id, audience, row, evidence_id."""
        evidence, documents = self.frame.evidence, asked["doc_id"].unique()
        parts = []
        for name in NAMES:
            named = evidence[name]
            rows = np.flatnonzero(pc.is_in(named, value_set=pa.array(documents, named.type), skip_nulls=True))
            parts.append(pd.DataFrame({"doc_id": named.take(pa.array(rows)).to_pylist(), "row": rows}))
        rows = pd.concat(parts, ignore_index=True).astype({"doc_id": asked["doc_id"].dtype})
        pairs = asked[["gold", "request_id", "audience", "doc_id"]].merge(rows, on="doc_id")
        pairs = pairs.drop_duplicates(["gold", "row"]).drop(columns="doc_id").reset_index(drop=True)
        ids = evidence["evidence_id"].take(pa.array(pairs["row"].to_numpy(np.int64)))
        return pairs.assign(evidence_id=ids.to_pandas())

    def _with_fates(self, pairs: pd.DataFrame) -> pd.DataFrame:
        """Stage, place, reason, decided_by and rank of every row, except rows that the principal may not see."""
        columns = ["request_id", "evidence_id", "outcome", "stage", "reason_code", "decided_by", "rank"]
        decided = self.decisions.select(columns).to_pandas()
        pairs = pairs.merge(decided, on=["request_id", "evidence_id"], how="left")
        own = pairs["stage"].notna() & (pairs["stage"] != "gate")
        pairs = pairs[own | ((pairs["audience"] == "audit") & self.audited[pairs["row"].to_numpy()])]
        shown = pairs["outcome"] == "selected"
        stage = pairs["stage"].map(_STAGE_OF).mask(shown, "shown")
        reason = pairs["reason_code"].mask(shown, "shown")
        left = pairs["stage"].isna()
        if left.any():
            undecided = pairs.loc[left, ["request_id", "row", "evidence_id"]]
            asked, row = undecided["request_id"].tolist(), undecided["row"].to_numpy()
            verdicts = refused_pairs(self.contracts, self.bounds, self.frame, asked, row, self.plugins)
            hit = self.hits.select(["request_id", "evidence_id"]).to_pandas().drop_duplicates().assign(hit=True)
            found = undecided.merge(hit, on=["request_id", "evidence_id"], how="left")["hit"].notna().to_numpy()
            admitted = np.asarray(verdicts["admitted"], dtype=bool)
            stage[left] = np.where(admitted, np.where(found, "merge", "recall"), "gate")
            reason[left] = np.where(admitted, "not_recalled", verdicts["reason_code"].to_numpy())
            gates = verdicts["decided_by"].to_numpy()
            pairs.loc[left, "decided_by"] = np.where(admitted & found, "pool_k", gates)
        return pairs.drop(columns=["outcome", "stage", "reason_code"]).assign(
            stage=stage, reason=reason, place=stage.map(_PLACE)
        )

    def _lost_requests(self) -> dict[str, str]:
        """Requests that were denied or failed, with the reason."""
        denied = self.contracts.filter(self.contracts["denied"]).select(["request_id", "denied_reason"]).to_pylist()
        failed = self.run.table("failures")["request_id"].to_pylist()
        return {row["request_id"]: row["denied_reason"] for row in denied} | dict.fromkeys(failed, "request_failed")

    def _behind(self, traced: pd.DataFrame) -> list[Mapping[str, float]]:
        """For each outranked row, the terms with its largest deficits to the weakest row that its request showed."""
        outranked = traced["stage"].isin(OUTRANKED).to_numpy()
        if not outranked.any():
            return [{}] * len(traced)
        ranked = self.ranked.select(["request_id", "evidence_id", "rank", *SCORE_TERMS]).to_pandas()
        shown = self.decisions.filter(pc.equal(self.decisions["outcome"], "selected")).select(
            ["request_id", "evidence_id"]
        )
        weakest = ranked.merge(shown.to_pandas(), on=["request_id", "evidence_id"]).sort_values("rank", kind="stable")
        weakest = weakest.drop_duplicates("request_id", keep="last").set_index("request_id")
        own = traced[["request_id", "evidence_id"]].merge(ranked, on=["request_id", "evidence_id"], how="left")
        lacking = weakest.reindex(own["request_id"])[list(SCORE_TERMS)].to_numpy() - own[list(SCORE_TERMS)].to_numpy()
        return [_most(row) if was else {} for row, was in zip(lacking, outranked, strict=True)]


def _most(lacking: np.ndarray) -> dict[str, float]:
    order = np.argsort(-lacking, kind="stable")
    return {SCORE_TERMS[n]: round(float(lacking[n]), 4) for n in order if lacking[n] > 0}


def _of(table: pa.Table, requests: pa.Array) -> pa.Table:
    return table.filter(pc.is_in(table["request_id"], requests))
