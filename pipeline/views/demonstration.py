"""The summary that `demo` shows at the end, as text and as plain values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..progress import counted
from ..storage.places import Place
from .text_table import text_table
from .xray import Rows

__all__ = ["Demonstration"]


@dataclass(frozen=True)
class Demonstration:
    """The run of the demo, with one snapshot in detail. `rows` has the tables of every snapshot by request."""

    folder: Path
    run_id: str
    run_folder: Place
    requests: Sequence[Mapping[str, Any]]
    rows: Mapping[str, Rows]
    opened: str
    asked: str
    report: Path
    block: str
    xray: str
    replayed: bool
    question: Rows
    denied: Rows
    twin: Sequence[Mapping[str, Any]]
    twin_block: str
    indexed: Sequence[Mapping[str, Any]]
    pictures: Sequence[Path]
    seconds: float
    command: str = "scoped-retrieval"

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "folder": str(self.folder),
            "run_id": self.run_id,
            "run_folder": str(self.run_folder),
            "results": [dict(zip(_COLUMNS, row, strict=True)) for row in self.results()],
            "opened": self.opened,
            "asked": self.asked,
            "report": str(self.report),
            "block": self.block,
            "xray": self.xray,
            "replayed": self.replayed,
            "twin": list(self.twin),
            "indexed": list(self.indexed),
            "pictures": [str(p) for p in self.pictures],
            "seconds": round(self.seconds, 2),
        }

    def results(self) -> list[tuple[Any, ...]]:
        """One row per request of the run."""
        return [_result(request, rows) for request, rows in self.rows.items()]

    def screen(self) -> str:
        """One screen: a question, its block, its refused twin, where to look next and the report."""
        question = self.question["requests"][0]["question"]
        refused = [f"{c['condition']}: {c['message']}" for c in self.denied["conditions"] if c["audience"] == "caller"]
        same = next((t for t in self.twin if t["path"].endswith("default-role.md")), self.twin[0])
        looks = (
            (f"show {self.opened} --as xray", "why each item is there"),
            (f"what-if {self.asked} --set max_tokens=600", "with a larger budget"),
            (f"show {self.run_id} --as html -o run.html", "the whole run"),
            ("demo --folder . --long", "all requests, an x-ray, history"),
        )
        return "\n".join(
            (
                f'In project shop, ana asks: "{question}"',
                "",
                *self.question["blocks"][0]["text"].splitlines(),
                "",
                "In project billing, which holds the same words, ana asks the same:",
                f"  {self.denied['snapshots'][0]['status']}, {'; '.join(refused)}",
                "An auditor reads why one of its documents was out of reach:",
                f"  {same['path']}: gate {same['decided_by']}, {same['reason_code']}",
                "",
                f"Look next: cd {self.folder}",
                f"           {self.command} ...",
                *(f"  {command:<64} {what}" for command, what in looks),
                "",
                f"{counted(len(self.rows), 'request')} answered, {self.seconds:.0f} s in all. The failing test of the sample as a report:",
                f"{self.report}",
                "",
            )
        )

    def text(self) -> str:
        """Everything, in reading order."""
        return "\n".join(
            (
                *self._tables(),
                _titled(f"The block of 1-fix-test, as a model reads it ({self.opened})", self.block),
                _titled("Its x-ray, as an auditor reads it", self.xray),
                _titled("Its replay, from the run alone", self._replay()),
                _titled("The twin that was refused", self._twin()),
                _titled("Where it is", self._places()),
            )
        )

    def _tables(self) -> list[str]:
        """The requests and their outcomes, as two tables that fit a narrow terminal."""
        rows = self.results()
        wanted = {
            "Requests": _COLUMNS[:5],
            "Results (shown and cut count rows)": (_COLUMNS[0], *_COLUMNS[5:]),
        }
        return [
            text_table(
                title,
                [column.removeprefix("rows ") for column in columns],
                [[row[_COLUMNS.index(column)] for column in columns] for row in rows],
                width=TERMINAL,
            )
            for title, columns in wanted.items()
        ]

    def _replay(self) -> str:
        return "The same block, byte for byte." if self.replayed else "The replay DIFFERS from the block."

    def _twin(self) -> str:
        snapshot = self.denied["snapshots"][0]
        conditions = [f"{c['condition']}: {c['message']}" for c in self.denied["conditions"]]
        lines = [
            "Project billing holds rows with the same words. Asked there, ana (who may ask in shop) learns only this:",
            f"  {snapshot['snapshot_id']}: {snapshot['status']}; {'; '.join(conditions)}",
            "An auditor who checks billing's rows against the contract of 1-fix-test reads:",
            *(
                f"  {t['evidence_id']} {t['path']}: refused by {t['decided_by']} ({t['reason_code']})"
                for t in self.twin
            ),
            "bo, who may ask in billing, gets:",
            *(f"  | {line}" for line in self.twin_block.splitlines()),
        ]
        return "\n".join(lines)

    def _places(self) -> str:
        lines = [
            f"Parquet tables: {self.run_folder / 'tables'}",
            f"lineage:        {', '.join(map(str, self.pictures))}",
            f"report:         {self.report}",
            f"corpus:         {self.folder / 'corpus'}",
            f"Go on:          cd {self.folder}",
            f"                {self.command} ask 'What is the default role of a session?'",
            f"                {self.command} show {self.opened} --as xray",
            f"                {self.command} log   (or: verify, doctor, status)",
            f"Done in {self.seconds:.1f} s.",
        ]
        return "\n".join(lines)


_COLUMNS = (
    "request",
    "project",
    "purpose",
    "as of",
    "asked at",
    "status",
    "items",
    "rows shown",
    "rows cut",
    "tokens",
    "first item",
)
"""An item of the block may contain several rows: neighbors within a file are merged."""
TERMINAL = 80
"""Width of the narrowest terminal that the tables fit."""


def _result(request_id: str, rows: Rows) -> tuple[Any, ...]:
    snapshot = rows["snapshots"][0]
    contract = rows["contracts"][0] if rows["contracts"] else {}
    request = rows["requests"][0] if rows["requests"] else {}
    outcomes = Counter(d["outcome"] for d in rows["decisions"])
    first = rows["citations"][0] if rows["citations"] else {}
    return (
        request_id, contract.get("project"), contract.get("purpose"), _day(contract.get("as_of")),
        _day(request.get("asked_at")), snapshot["status"], len(rows["citations"]), outcomes["selected"], outcomes["hidden"] + outcomes["rejected"],
        f"{snapshot['estimated_tokens']}/{snapshot['max_tokens']}", first.get("label"),
    )  # fmt: skip


def _day(instant: datetime | None) -> str | None:
    return f"{instant.astimezone(UTC):%Y-%m-%d}" if instant else None


def _titled(title: str, text: str) -> str:
    return f"{title}\n{'=' * len(title)}\n{text.rstrip()}\n"
