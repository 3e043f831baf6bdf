"""An answer held against the snapshot it was given: `verify_answer`, from a run alone, without the corpus.

report = verify_answer(store, "retr-snap-…-0001", answer)
report.ok, report.findings
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ..nodes.answer_checks import Shown, answer_findings
from ..nodes.rendering import shows_text
from .runs import Replay, RunStore, replay
from .verify_facts import verify_facts

__all__ = ["AnswerReport", "verify_answer", "visible_items"]

_WORDS = {
    "unknown_citation": "cites what is not there",
    "changed_quote": "quotes what no visible text says",
    "misattributed_quote": "quotes another item than it cites",
    "unsupported_value": "gives a value that no visible text has",
    "contradicted_fact": "contradicts a record",
    "unfounded_action": "acts on what no cited item names",
    "unused_evidence": "leaves evidence unused",
}


@dataclass(frozen=True)
class AnswerReport:
    """ANSWER_FINDINGS of one answer, and the status of the snapshot: `erased` where its texts are gone."""

    snapshot_id: str
    status: str
    findings: pa.Table

    @property
    def ok(self) -> bool:
        """Nothing is wrong; evidence may be unused."""
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
        }

    def text(self) -> str:
        """One line per finding, those that are wrong first, and a last line that sums up."""
        rows = sorted(self.findings.to_pylist(), key=lambda row: not row["wrong"])
        lines = [_line(row) for row in rows]
        wrong = sum(row["wrong"] for row in rows)
        if self.status == "erased":
            return "\n".join([*lines, "cannot tell: texts of this snapshot were erased"]) + "\n"
        return "\n".join([*lines, f"{wrong} wrong, {len(rows) - wrong} noted"]) + "\n"


def verify_answer(store: RunStore, snapshot_id: str, answer: str) -> AnswerReport:
    """Check an answer against the visible bytes of a snapshot.

    Raises:
        InputError: it is no snapshot id.
        StoreError: no run of this folder holds it.
        VerificationError: what is stored does not match its hashes.
    """
    found = replay(store, snapshot_id)
    items, frame = visible_items(found)
    facts = [] if found.status == "erased" else verify_facts(answer, found.tables)
    mismatches = [(fact.value, fact.canonical) for fact in facts if fact.finding == "mismatch" and fact.canonical]
    return AnswerReport(snapshot_id, found.status, answer_findings(items, answer, frame, mismatches))


def visible_items(found: Replay) -> tuple[list[Shown], str]:
    """The items of a block as its reader saw them, and the lines of its frame."""
    texts = dict(zip(*(found.tables["trimmed"][c].to_pylist() for c in ("label", "visible_text")), strict=True))
    shapes = found.tables["blocks"]["shape"].to_pylist()
    shown = bool(shapes) and shows_text(shapes[0])
    items = [
        Shown(c["label"], c["locator"] or "", (texts.get(c["label"]) or "") if shown else "", c["evidence_kind"])
        for c in found.citations.to_pylist()
    ]
    lines = (found.block or "").splitlines()[1:]
    return items, "\n".join(line for line in lines if not line.startswith("| "))


def _line(row: dict[str, Any]) -> str:
    where = f"line {row['line']}: " if row["line"] else ""
    cited = f" [{row['label']}]" if row["label"] and row["label"] != row["subject"] else ""
    expected = f"; evidence: {_short(row['expected'])}" if row["expected"] else ""
    return f"{where}{_WORDS[row['finding']]}: {_short(row['subject'])}{cited}{expected}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 100 else f"{line[:97]}..."
