"""Verification of an answer against the snapshot it is based on, from a run alone, without the corpus.

    report, entry, fault = answer_report(settings, "retr-snap-…-0001", answer)
    report.ok, report.findings, report.facts

Note: `facts` compares every value, right or wrong, with the records if the contract looked records up; `findings` lists
only what an answer must not say. Nothing is corrected: the record's value is reported next to it (S1.31, C27). A key that
the snapshot's contract did not admit is reported like one that does not exist: `unknown_key`.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import Any

import pyarrow as pa

from ...nodes.answers.answer_checks import Shown, answer_findings
from ...nodes.blocks.rendering import MARGIN
from ...nodes.errors import StoreError
from ...nodes.facts.fact_matching import facts_by_request, findings
from ...nodes.facts.fact_values import NO_SHORT_MONTH
from ...nodes.tables import CONTRACTS, STRUCTURED_FACTS
from ..config.opening import runs_of
from ..config.settings import Settings
from ..runs import Replay, Runs
from .access import opened_snapshot, readable_replay
from .across_runs import read_each
from .snapshots import readable

_WORDS = {
    "unknown_citation": "cites what is not there",
    "changed_quote": "quotes text that is not in the visible text",
    "misattributed_quote": "quotes another item than it cites",
    "unsupported_value": "gives a value that is not in the visible text",
    "contradicted_fact": "contradicts a record",
    "partly_shown": "names lines that are shown in part",
    "unfounded_action": "acts on what no cited item names",
    "unused_evidence": "leaves evidence unused",
}
_ON_RECORD = {
    "mismatch": "the record has another value",
    "stale_sot": "the record agrees and is stale",
    "unknown_key": "no record that may be read has it",
    "unread": "a date with more than one reading",
    "match": "as on record",
}
"""Texts for findings of facts, worst first."""


@dataclass(frozen=True)
class FactFinding:
    """The finding for one value of an answer; `canonical`, `field` and `locator` are None if no record has a value for
    it.
    """

    value: str
    kind: str
    finding: str
    canonical: str | None
    field: str | None
    record_id: str | None
    locator: str | None
    start: int
    """Its first place in the answer, in characters."""


def verify_facts(answer: str, tables: Mapping[str, pa.Table]) -> list[FactFinding]:
    """Findings of every date, id, amount and named number in an answer, by value.

    `tables` are those of one request, `contracts` and `structured_facts` with texts in place: `Retrieval.tables`, or those
    of a stored snapshot.
    """
    contracts, facts = tables[CONTRACTS.name], facts_by_request(tables[STRUCTURED_FACTS.name])
    # Each sentence is judged on its own, as a line of evidence is.
    sentences = re.sub(rf"(?<=[.!?]){NO_SHORT_MONTH} (?=\S)", "\n", answer)
    # A request that searches the folders of one engagement is about that engagement.
    about = "/".join(contracts["search_paths"][0].as_py() or ()) or None
    return [
        FactFinding(
            one.value,
            one.kind,
            one.finding,
            *((fact.value, fact.field, fact.record, fact.locator) if (fact := one.fact) else (None,) * 4),
            start=one.start,
        )
        for one in findings(sentences, about, None, [*chain(*facts.values())], all_records=True)
    ]


@dataclass(frozen=True)
class AnswerReport:
    """ANSWER_FINDINGS of one answer, and the status of the snapshot: `erased` if its texts are gone.

    `facts` has every date, id, amount and named number of the answer with the value in the snapshot's records; empty if
    the contract looked no records up.
    """

    snapshot_id: str
    status: str
    findings: pa.Table
    facts: tuple[FactFinding, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong; evidence may be unused."""
        return not any(self.findings["wrong"].to_pylist())

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        rows = self.findings.to_pylist()
        return {
            "snapshot_id": self.snapshot_id,
            "status": self.status,
            "ok": self.ok,
            "wrong": sum(row["wrong"] for row in rows),
            "findings": rows,
            "facts": [asdict(fact) for fact in self.facts],
        }

    def text(self) -> str:
        """One line per finding, errors first, and a summary line."""
        rows = sorted(self.findings.to_pylist(), key=lambda row: not row["wrong"])
        lines = [_line(row) for row in rows]
        lines += [_fact_line(fact) for fact in sorted(self.facts, key=lambda f: [*_ON_RECORD].index(f.finding))]
        wrong = sum(row["wrong"] for row in rows)
        by_finding = Counter(fact.finding for fact in self.facts)
        records = "".join(f", {by_finding[name]} {name}" for name in _ON_RECORD if by_finding[name])
        if self.status == "erased":
            return "\n".join([*lines, "cannot tell: texts of this snapshot were erased"]) + "\n"
        return "\n".join([*lines, f"{wrong} wrong, {len(rows) - wrong} noted{records}"]) + "\n"


def answer_report(settings: Settings, snapshot_id: str, answer: str) -> tuple[AnswerReport, str | None, str | None]:
    """Verify an answer against a snapshot that the principal may read; returns the report and the hash of its line in LOG
    (S1.29, step 4).

    If it could not be logged, the hash is None and the third value is the reason.

    Raises:
        AccessError: the snapshot belongs to another principal.
    """
    seen, found = readable_replay(settings, snapshot_id)
    items, frame = visible_items(found)
    looked_up = any(found.tables["contracts"]["exact_lookups"].to_pylist())
    facts = verify_facts(answer, found.tables) if looked_up and found.status != "erased" else []
    wrong = [fact for fact in facts if fact.finding == "mismatch"]
    mismatches = [(fact.start, fact.value, fact.canonical) for fact in wrong if fact.canonical]
    findings = answer_findings(items, answer, frame, mismatches)
    report = AnswerReport(found.snapshot_id, found.status, findings, tuple(facts))
    entry = {"run_id": seen.run.run_id, "principal": settings.principal, "verified_at": datetime.now(UTC).isoformat()}
    try:
        line = runs_of(settings).log.commit("answer", entry | _logged(report, answer))
    except StoreError as error:
        return report, None, error.message
    except OSError as error:
        reason = error.strerror or type(error).__name__
        return report, None, f"Expected to write the log of answers, got {reason} - at runs"
    assert line is not None
    return report, line.hash, None


def _logged(report: AnswerReport, answer: str) -> dict[str, Any]:
    """What LOG keeps of a report: no text, as that would stay when it is erased, and no hash of a value, as dates and amounts
    can be guessed. A value is identified by its position in the answer and its record.
    """
    return {
        "version": 3,
        "snapshot_id": report.snapshot_id,
        "answer_sha256": hashlib.sha256(answer.encode()).hexdigest(),
        "status": report.status,
        "ok": report.ok,
        "findings": [
            {name: row[name] for name in ("finding", "wrong", "line", "byte_start", "byte_end")}
            for row in report.findings.to_pylist()
        ],
        "facts": [
            {
                "kind": fact.kind,
                "finding": fact.finding,
                "byte_start": len(answer[: fact.start].encode()),
                "record_id": fact.record_id,
            }
            for fact in report.facts
        ],
    }


def answers_of(settings: Settings, snapshot_id: str | None = None) -> tuple[list[dict[str, Any]], int]:
    """The log of verified answers, of one snapshot or of all that the principal may read, oldest first.

    Also the number of damaged runs that were omitted: damage to another user's run does not hide the principal's own.

    Raises:
        AccessError: the snapshot belongs to another principal.
        VerificationError: an entry is missing or was changed.
    """
    store, damaged = Runs(settings["runs"], create=False), dict[str, str]()
    if snapshot_id is not None:
        opened_snapshot(settings, snapshot_id)
        wanted = {snapshot_id}
    else:
        mine = read_each(settings, store, lambda run: readable(settings, run).rows["snapshot_id"].to_pylist(), damaged)
        wanted = {id_ for _, ids in mine for id_ in ids}
    entries = [line.body for line in store.log.lines_with('"kind":"answer"') if line.body["snapshot_id"] in wanted]
    return [{name: value for name, value in entry.items() if name != "kind"} for entry in entries], len(damaged)


def visible_items(found: Replay) -> tuple[list[Shown], str]:
    """The items of a block as shown to its reader, and the lines of its frame."""
    texts = dict(zip(*(found.tables["trimmed"][c].to_pylist() for c in ("label", "visible_text")), strict=True))
    items = [
        Shown(
            c["label"],
            c["locator"] or "",
            texts.get(c["label"]) or "",
            (c["line_start"], c["line_end"]) if texts.get(c["label"]) and c["line_start"] and c["line_end"] else None,
        )
        for c in found.citations.to_pylist()
    ]
    lines = (found.block or "").splitlines()[1:]
    return items, "\n".join(line for line in lines if not line.startswith(MARGIN))


def _line(row: dict[str, Any]) -> str:
    where = f"line {row['line']}: " if row["line"] else ""
    cited = f" [{row['label']}]" if row["label"] and row["label"] != row["subject"] else ""
    expected = f"; evidence: {_short(row['expected'])}" if row["expected"] else ""
    return f"{where}{_WORDS[row['finding']]}: {_short(row['subject'])}{cited}{expected}"


def _fact_line(fact: FactFinding) -> str:
    beside = f": {fact.field} is {_short(fact.canonical)} in {fact.locator}" if fact.canonical else ""
    return f"{fact.kind} {_short(fact.value)}: {_ON_RECORD[fact.finding]}{beside}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 100 else f"{line[:97]}..."
