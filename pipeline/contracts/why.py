"""Why: where an expected row was lost, which rule decided, and what would admit it.

Reads: a snapshot and, for anything not in its tables, the generation it was made from. Gives: one answer per matching
row. An auditor may ask about any row of a project that they audit. Any other caller learns of rows that passed every gate
of their own snapshot and that the present grants admit, too: what it decided, or that no lane recalled one. For all other
rows, including absent ones, the answer is the same.

To find what would admit a row, the gates that stop it are opened one by one, each step judged again by the second wall,
until the row passes or only the row itself could change. For a row that passes every gate, the reason follows from the
plan, from what the row shares with it, and from where it was cut. No text is quoted.

`audit_trail` follows an `auditEntryId` of an x-ray to the decision that it names, its line in the log, and the stored
row (S2.40).
"""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.errors import AccessError, InputError, StoreError
from ...nodes.plugins import NO_PLUGINS, Plugins
from ...nodes.scope.selectors import glob_mask, selected
from ...nodes.scope_resolution import REFUSALS
from ...nodes.tables import CONTRACT_BOUNDS, CONTRACTS
from ...nodes.vocabulary import STAGES
from ...nodes.walls.gate import Case, Gate, Opening
from ...nodes.walls.second_wall import granted
from ..config.settings import Settings
from ..plugins import plugins_of
from ..progress import counted
from ..reading.access import opened, opened_snapshot, pinned_corpus
from ..reading.auditing.export import own_line
from ..reading.grants import audited
from ..reading.present_rights import contracts_now, within_rights
from ..runs import Replay, replay
from ..runs.ids import is_snapshot
from ..views.xray import masked_places

_LINE = re.compile(r"(?P<path>.+)[:#]L?(?P<line>\d+)(?:-L?\d+)?(?: .*)?")
ROWS_EXPLAINED = 20
"""The most rows of a path for which it is looked for what would open the gates that stop them."""
_ADVICE = {
    "low_score": "a higher max_items or other weights: it ranked below what was chosen",
    "unverified_cap": "a higher max_unverified_items, or its verification",
    "source_cap": "a higher max_items_per_source",
    "budget_items": "a higher max_items",
    "conflict_downrank": "a higher max_tokens or max_chars: its conflict set is shown whole or not at all",
    "budget_tokens": "a higher max_tokens or max_chars",
    "budget_part": "a higher max_chunk_tokens",
    "citation_unresolved": "lines, bytes or a version to cite, or require_citation: false",
    "duplicate": "nothing: the same text is shown by another item",
    "near_duplicate": "nothing: another item shows a text that differs only in spacing",
    "replaced": "a mode that includes history: a newer version of it is current",
    "wall_disagreement": "no contract can admit it: the two walls disagree, so the request failed",
}
"""What would show a row that passed every gate, by its reason code."""


def why_not(settings: Settings, snapshot_id: str, evidence: str) -> list[dict[str, Any]]:
    """`decided_rows`, updated for selected rows from the last recorded model input that was offered the snapshot's
    items: what the model really saw.

    Raises:
        AccessError, StoreError, VerificationError: as `decided_rows`.
    """
    from ..context.store import ContextStore

    answers = decided_rows(settings, snapshot_id, evidence)
    if not any(answer["outcome"] == "selected" for answer in answers):
        return answers
    children = ContextStore.of(settings).children_of(snapshot_id)
    return [_as_projected(answer, children) for answer in answers]


def _as_projected(answer: dict[str, Any], children: Sequence[Any]) -> dict[str, Any]:
    """An answer updated from the last input with the row, if the snapshot selected it."""
    for child in children if answer["outcome"] == "selected" else ():
        for row in child.projection.decisions:
            if row["evidence_id"] == answer["evidence_id"]:
                stop = {"stage": "project", "decided_by": row["decided_by"] or "context policy", "reason_code": row["reason_code"],
                        "reason_text": f"{row['reason']} (model input {child.projection.input_id})"}  # fmt: skip
                left_out = {
                    "outcome": "rejected",
                    "would_admit": ["`why` shows what the input contains instead"],
                }
                return answer | stop | (left_out if row["action"] == "exclude" else {})
    return answer


def decided_rows(settings: Settings, snapshot_id: str, evidence: str) -> list[dict[str, Any]]:
    """The answers about the rows that `evidence` names: a label of the block, an evidence id, or `path` or `path:line`.

    Raises:
        AccessError: the principal may not read the snapshot, or `evidence` matches no row that they may ask about.
        StoreError: the corpus, or the generation that the snapshot pinned, is gone.
        VerificationError: the stored snapshot does not match its hashes.
    """
    mine = opened_snapshot(settings, snapshot_id)
    run, audits, now = mine.run, mine.audit, mine.grants
    seen = replay(run, snapshot_id)
    recorded = seen if audits else within_rights(seen, now)
    labels = zip(*(recorded.citations[name].to_pylist() for name in ("label", "evidence_id")), strict=True)
    evidence = dict(labels).get(evidence.removeprefix("[").removesuffix("]"), evidence)
    scores = _scores(seen.tables["ranked"].to_pylist(), recorded.decisions.to_pylist())
    contracts, bounds = seen.tables["contracts"], seen.tables["contract_bounds"]

    def own_of(found: Replay) -> list[dict[str, Any]]:  # of A(r): of others a caller learns nothing
        return [row for row in found.decisions.to_pylist() if audits or row["stage"] != "gate"]

    def told(answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return answers if audits else masked_places(answers, contracts.to_pylist())

    try:
        corpus = pinned_corpus(settings, run)
    except StoreError:  # erased or removed since: use the record of the run
        own = own_of(recorded)
        named = _at(pa.array([row["path"] for row in own], pa.string()), evidence)
        if not (kept := [row for row, at in zip(own, named, strict=True) if at or row["evidence_id"] == evidence]):
            raise
        return told([_decided(row, scores) for row in kept])
    known = {row["evidence_id"]: row for row in own_of(seen)}
    projects = audited(settings, now) if audits else set(bounds["project"].to_pylist())
    frame = corpus.frame(sorted(set(corpus.projects()) & projects))
    meant, line = _rows_meant(frame, evidence)
    ids = dict(zip(meant, frame.evidence["evidence_id"].take(pa.array(meant, pa.int64())).to_pylist(), strict=True))
    case = _Case(run, seen.tables, frame, known, scores)
    if not audits:
        meant = case.granted(meant, *contracts_now(seen.tables, now)) if contracts.num_rows else []
    verdicts = case.verdicts([row for row in meant if ids[row] not in known])
    rows = [row for row in meant if audits or ids[row] in known or verdicts[row]["admitted"]]
    stopped = [row for row, verdict in verdicts.items() if not verdict["admitted"]]
    listed = {row: verdicts[row] for row in stopped[ROWS_EXPLAINED:]}
    if not rows:
        raise _nothing(evidence)
    visible = {item["evidence_id"]: item for item in seen.tables["trimmed"].to_pylist()}
    answers = []
    for row in rows:
        lines = _lines(frame, row, seen.request["as_of"])
        answer = case.answer(row, listed.get(row)) | ({"lines": "{}-{}".format(*lines)} if lines else {})
        if line is not None and lines and answer["outcome"] == "selected" and ids[row] in visible:
            text = frame.evidence["text"][row].as_py().splitlines()[line - lines[0] : line - lines[0] + 1]
            answer |= _cut(visible[ids[row]], "".join(text).strip(), line)
        answers.append(answer)
    return told(answers)


def _cut(item: dict[str, Any], text: str, line: int) -> dict[str, Any]:
    """What is other in the answer about a line that its item does not show."""
    if item["masked"] or text in map(str.strip, item["visible_text"].splitlines()):
        return {}
    part = f"lines {item['line_start']}-{item['line_end']} of it are" if item["visible_text"] else "only its place is"
    said = f"{part} shown, and line {line} is not"
    found = {"outcome": "rejected", "stage": "trim", "reason_code": "budget_part", "reason_text": said}
    return found | {"would_admit": ["a higher max_tokens, max_chars or max_chunk_tokens"]}


def _lines(frame: Any, row: int, as_of: datetime) -> tuple[int, int] | None:
    """The lines of a frame row in its file as of an instant, if it has any."""
    first, end = frame.row_index.placement_starts[row : row + 2].tolist()
    placed = frame.placements.slice(first, end - first)
    placed = placed.filter(pc.less_equal(placed["recorded_time"], as_of)).select(["line_start", "line_end"]).to_pylist()
    return tuple(placed[-1].values()) if placed and placed[-1]["line_start"] else None


def _scores(ranked: Sequence[dict[str, Any]], decisions: Sequence[dict[str, Any]]) -> dict[str, str]:
    """How close each ranked row that is not shown came, in words: its score beside the lowest one of a row that is."""
    shown = {row["evidence_id"] for row in decisions if row["outcome"] == "selected"}
    last = min((row for row in ranked if row["evidence_id"] in shown), key=lambda row: row["final"], default=None)
    than = f"; the lowest score of a row shown is number {last['rank']}, {last['final']:.4f}" if last else ""
    besides = ": further rows of a file count for less, and each kind has a place"
    return {
        row["evidence_id"]: f"of all scores its own is number {row['rank']}, {row['final']:.4f}{than}"
        + (besides if last and row["final"] > last["final"] else "")
        for row in ranked
        if row["evidence_id"] not in shown
    }


@dataclass(frozen=True)
class _Case:
    """One snapshot, as its reader may see it."""

    run: Any
    tables: Mapping[str, pa.Table]
    frame: Any
    decided: dict[str, Any]
    scores: Mapping[str, str]

    @cached_property
    def plugins(self) -> Plugins:
        return plugins_of(self.run)

    def granted(self, rows: list[int], contracts: pa.Table, bounds: pa.Table) -> list[int]:
        """Of these rows those that the grants behind another contract and its bounds admit."""
        stored = self.frame.evidence.take(pa.array(rows, pa.int64()))
        held = granted(stored, np.zeros(len(rows), int), contracts, bounds)
        return [row for row, admitted in zip(rows, held.tolist(), strict=True) if admitted]

    def verdicts(self, rows: list[int]) -> dict[int, dict[str, Any]]:
        """What the gates say of these rows; of a request without a contract, that none is admitted."""
        contracts = self.tables["contracts"]
        if not rows or not contracts.num_rows:
            return {row: {"admitted": False} for row in rows}
        found = refusals(contracts, self.tables["contract_bounds"], self.frame, rows, self.plugins)
        return dict(zip(rows, found, strict=True))

    def answer(self, row: int, stopped: dict[str, Any] | None = None) -> dict[str, Any]:
        """Where one frame row was lost; of one that is `stopped`, the gate alone and nothing that would open it."""
        stored = self.frame.evidence.select(["evidence_id", "source_id", "path"]).slice(row, 1).to_pylist()[0]
        decision = self.decided.get(stored["evidence_id"])
        if decision and decision["stage"] != "gate":
            return _decided(decision, self.scores)
        if not self.tables["contracts"].num_rows:
            return _answer(stored, "resolve", "request_failed", "the request failed before a row was looked at")
        contract = self.tables["contracts"].to_pylist()[0]
        if contract["denied"]:
            reason = contract["denied_reason"]
            return _answer(stored, "resolve", reason, REFUSALS[reason], "contract")
        if stopped:
            name, code = stopped["decided_by"], stopped["reason_code"]
            gate = next(gate for gate in self.plugins.order.gates if gate.name == name)
            return _answer(stored, "gate", code, f"required: {gate.doc}", name)
        found = remedies(contract, self.tables["contract_bounds"].to_pylist(), self.frame, row, self.plugins)
        if not found:
            return not_recalled(self.tables, self.frame, row)
        gate = found[0][0]
        return _answer(
            stored, "gate", gate.reason_code, f"required: {gate.doc}", gate.name,
            outcome=decision["outcome"] if decision else "rejected",
            rules=[f"{gate.name}: {opening.rule}" for gate, opening in found if opening.rule],
            would_admit=[opening.needed if opening.possible else f"only {opening.needed}" for _, opening in found],
        )  # fmt: skip


def _rows_meant(frame: Any, evidence: str) -> tuple[list[int], int | None]:
    """Frame rows with this evidence id, at this path or one that ends with it, or with a placement that covers this line
    of it; ascending. And the line, if it is one that names them.
    """
    paths = frame.evidence["path"]
    rows = np.flatnonzero(np.asarray(pc.equal(frame.evidence["evidence_id"], evidence)) | _at(paths, evidence))
    if len(rows) or not (place := _LINE.fullmatch(evidence)):
        return rows.tolist(), None
    line = int(place["line"])
    covers = pc.and_(
        pc.less_equal(frame.placements["line_start"], line), pc.greater_equal(frame.placements["line_end"], line)
    )
    covered = frame.placements["row"].filter(pc.fill_null(covers, False)).to_numpy()
    return np.intersect1d(covered, np.flatnonzero(_at(paths, place["path"]))).tolist(), line


def _at(paths: Any, name: str) -> Any:
    """Whether each path is this one, or ends with it, as it is called from a folder below."""
    below_root = pc.binary_join_element_wise("", paths, "/")
    return np.asarray(pc.ends_with(below_root, f"/{name}").fill_null(False))


def _decided(decision: dict[str, Any], scores: Mapping[str, str]) -> dict[str, Any]:
    """The answer in a decision row, with how close it came."""
    code, stage, text = decision["reason_code"], decision["stage"], decision["reason_text"]
    advice = [] if decision["outcome"] == "selected" else [_ADVICE.get(code, f"another outcome of stage {stage}")]
    if decision["form"] == "reference":
        text, advice = f"{text}; only its place is shown: the budget has no room for its text", ["a larger budget"]
    more = {"outcome": decision["outcome"], "rank": decision["rank"], "would_admit": advice}
    closeness = scores.get(decision["evidence_id"])
    return _answer(decision, stage, code, text, decision["decided_by"], closeness=closeness, **more)


def _answer(
    row: Mapping[str, Any], stage: str, code: str, text: str, decided_by: str | None = None, **more: Any
) -> dict[str, Any]:
    found = {name: row[name] for name in ("evidence_id", "source_id", "path")}
    found |= {"outcome": "rejected", "stage": stage, "decided_by": decided_by, "reason_code": code, "reason_text": text}
    return found | {"lines": None, "rank": None, "closeness": None, "rules": [], "would_admit": []} | more


def _nothing(evidence: str) -> AccessError:
    return AccessError(
        f"Expected a row that you may ask about, got none - at {evidence}",
        hint="a label of the block, an evidence id, or path or path:line as the block prints it; auditors may name any row of "
        "their projects",
    )


def remedies(
    contract: dict[str, Any],
    bounds: list[dict[str, Any]],
    frame: Any,
    position: int,
    plugins: Plugins = NO_PLUGINS,
) -> list[tuple[Gate, Opening]]:
    """The gates that stop a frame row, in gate order, each with its deciding rule and what would open it; empty for a row
    that passes all of them.

    Raises:
        SchemaError: the `remedy` of a plugin's gate failed.
    """
    row = frame.evidence.slice(position, 1).to_pylist()[0]
    starts = frame.row_index.placement_starts
    placed = frame.placements.slice(starts[position], starts[position + 1] - starts[position]).to_pylist()
    case = Case(copy.deepcopy(contract) | {"denied": False}, copy.deepcopy(bounds), row, placed)
    gates = {gate.name: gate for gate in plugins.order.gates}
    found: list[tuple[Gate, Opening]] = []
    while (name := _stopped_by(case, frame, position, plugins)) and gates[name] not in [gate for gate, _ in found]:
        found.append((gates[name], gates[name].opening(case)))
        if not found[-1][1].possible:
            break
    return found


def _stopped_by(case: Case, frame: Any, position: int, plugins: Plugins = NO_PLUGINS) -> str | None:
    contracts, bounds = CONTRACTS.from_rows([case.contract]), CONTRACT_BOUNDS.from_rows(case.bounds)
    return refusals(contracts, bounds, frame, [position], plugins)[0]["decided_by"]


def not_recalled(tables: Mapping[str, pa.Table], frame: Any, row: int) -> dict[str, Any]:
    """The answer about an admissible row without a decision, from the tables of its snapshot."""

    def lost(stage: str, decided_by: str | None, text: str, *advice: str) -> dict[str, Any]:
        return _answer(stored, stage, "not_recalled", text, decided_by, would_admit=list(advice))

    plan, hits = tables["sub_queries"], tables["hits"]
    stored = frame.evidence.slice(row, 1).to_pylist()[0]
    if (own := hits.filter(pc.equal(hits["evidence_id"], stored["evidence_id"]))).num_rows:
        best = own.sort_by("rank").to_pylist()[0]
        text = f"lane {best['lane']} found it at rank {best['rank']} of {best['sub_query_id']}, and merging cut it"
        return lost("merge", "pool_k", text, f"a pool_k above {tables['contracts']['pool_k'][0].as_py()}")
    if not plan.num_rows:
        text = "the plan has no sub-queries: no rule of the purpose applied"
        return lost("plan", None, text, "a question, an anchor, or a recall_effort above none")
    asking = plan.filter(pa.array([_returns(sub, stored) for sub in plan.to_pylist()]))
    if not asking.num_rows:
        kind, authority = stored["evidence_kind"], stored["authority"] or 0
        text = f"no sub-query returns {kind} of this source, age and authority {authority}"
        return lost("plan", "plan", text, f"a purpose whose plan looks for {kind}, or required_evidence of its kind")
    more = f"a lane_k above {pc.max(asking['lane_k']).as_py()}"
    if _shares_a_key({"sub_queries": asking, "anchors": tables["anchors"]}, frame, row):
        return lost("recall", "lane_k", "other rows answer the same words better", more)
    text = "it shares no term, symbol, path or id with any sub-query, and no lane recalled it"
    return lost("recall", None, text, "a question or an anchor that names what it says", more)


def _returns(sub_query: dict[str, Any], row: dict[str, Any]) -> bool:
    """Whether the filter of a sub-query admits a row; of time limits, only those on the event time are applied."""
    if sub_query["kinds"] and row["evidence_kind"] not in sub_query["kinds"]:
        return False
    pair = pa.array([row["origin_class"]]), pa.array([row["source_id"]])
    if sub_query["sources"] and not selected(sub_query["sources"], *pair)[0]:
        return False
    limits = [sub_query["oldest"]]
    if sub_query["window_start"] and glob_mask(pa.array([row["path"]], pa.string()), sub_query["window_paths"])[0]:
        limits.append(sub_query["window_start"])
    if row["event_time"] and any(limit and row["event_time"] < limit for limit in limits):
        return False
    return (row["authority"] or 0) >= sub_query["min_authority"]


def _shares_a_key(given: Mapping[str, pa.Table], frame: Any, row: int) -> bool:
    """Whether the index contains the row under a key that one of the given sub-queries looks up."""
    from ..line.driver import build_driver

    terms = build_driver().execute(["query_terms"], overrides=dict(given))["query_terms"]
    segment = int(np.searchsorted(frame.segments["row_start"].to_numpy(), row, side="right")) - 1
    keys = pc.unique(terms["term"]).to_pylist()
    return bool(np.any(frame.postings.lookup(keys, np.array([segment])).rows == row))


def is_audit_entry(name: str) -> bool:
    """Whether a name has the form of an audit entry, `SNAPSHOT/EVIDENCE`."""
    return is_snapshot(name) and "/" in name


def audit_trail(settings: Settings, entry: str) -> dict[str, Any]:
    """The `decision` of an audit entry, and for auditors `log` and `stored`, its citation with the generation of
    the corpus.

    A caller who does not audit the snapshot gets only the decision: log positions disclose how many requests others made.

    Raises:
        AccessError: the principal may not read the snapshot or ask about the row.
        InputError: it is not an audit entry.
    """
    if not is_audit_entry(entry):
        raise InputError.expected("an audit entry, SNAPSHOT/EVIDENCE", entry, "AUDIT_ENTRY")
    snapshot_id, _, evidence = entry.partition("/")
    decision, *others = why_not(settings, snapshot_id, evidence)
    if others:
        hint = f"`why {snapshot_id} {evidence}` tells of each"
        raise InputError.described("one row", f"{1 + len(others)} rows", "AUDIT_ENTRY", hint=hint)
    found: dict[str, Any] = {"audit_entry": entry, "decision": decision}
    seen = opened(settings, snapshot_id)
    if not seen.audit:
        return found
    run, kept = seen.run, replay(seen.run, snapshot_id)
    line = own_line(run, snapshot_id)
    log = {"sequence": line.number, "kind": line.body["kind"], "hash": line.hash} if line else None
    cited = next((row for row in kept.citations.to_pylist() if row["evidence_id"] == evidence), None)
    stored = cited and cited | {"generation": run.settings.get("generation")}
    return found | {"log": log, "stored": stored}


def refusals(
    contracts: pa.Table,
    bounds: pa.Table,
    frame: Any,
    rows: Sequence[int] | None = None,
    plugins: Plugins = NO_PLUGINS,
) -> list[dict[str, Any]]:
    """The verdict of one contract on rows of a frame, by default on every one, in frame order.

    Args:
        contracts: one row of CONTRACTS.
        bounds: its rows of CONTRACT_BOUNDS.
        frame: a `CorpusFrame`, of any projects.
        rows: frame rows, ascending.
        plugins: those of the run, whose gates also judge.

    Returns:
        Per row: evidence_id, source_id, path, admitted, decided_by, reason_code.
    """
    at = np.arange(frame.evidence.num_rows) if rows is None else np.array(rows, dtype=np.int64)
    stored = frame.evidence.select(["evidence_id", "source_id", "path"]).take(pa.array(at)).to_pylist()
    under, names, reasons = np.zeros(len(at), np.int64), (None, *plugins.order.names), (None, *plugins.order.reasons)
    _, _, place, moment, _ = plugins.order.judged(frame.evidence, frame.placements, at, under, contracts, bounds)
    removed = np.where(place > 0, place, moment).tolist()
    return [
        row | {"admitted": not by, "decided_by": names[by], "reason_code": reasons[by]}
        for row, by in zip(stored, removed, strict=True)
    ]


PAST = ("superseded", "deleted")
"""The gates of rows that were no longer in their file."""


def explained(rows: list[dict[str, Any]]) -> str:
    """The answers of `why` in lines, rows with the same answer together; those that came furthest are first, and several
    that were no longer in their file are one sentence.
    """

    def furthest(row: dict[str, Any]) -> tuple[bool, int, float]:
        return row["outcome"] != "selected", -STAGES.values.index(row["stage"]), row["rank"] or math.inf

    past = [row for row in rows if row["decided_by"] in PAST]
    told = (
        f"{counted(len(past), 'older row')}: an answer with an earlier as_of may have them; as JSON, they are listed\n"
    )
    found: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in sorted(rows if len(past) < 2 else (row for row in rows if row not in past), key=furthest):
        found.setdefault((f"{row['path'] or row['source_id']}", *_explanation(row)), []).append(row)
    return "\n".join(
        "\n".join((f"{place}: {_named(same)}", *lines, *_advised(same[0]), ""))
        for (place, *lines), same in found.items()
    ) + (f"\n{told}" if len(past) > 1 else "")


def _named(rows: list[dict[str, Any]]) -> str:
    """The lines of the rows, those that are without any by their ids."""
    return f"{counted(len(rows), 'row')}, {', '.join(row['lines'] or row['evidence_id'] for row in rows)}"


def _explanation(row: dict[str, Any]) -> list[str]:
    """Why a row has its outcome, in lines."""
    decided = f", decided by {row['decided_by']}" if row["decided_by"] else ""
    return [
        f"  outcome: {row['outcome']} (stage: {row['stage']}, reason: {row['reason_code']}{decided})",
        f"  {row['reason_text']}",
        *(f"  rule: {rule}" for rule in row["rules"]),
        *(f"  to admit it: {remedy}" for remedy in row["would_admit"]),
    ]


def _advised(row: dict[str, Any]) -> list[str]:
    """How close the best of some rows came."""
    return [f"  how close: {row['closeness']}"] if row["closeness"] else []
