"""The x-ray of one snapshot as people read it: the answer, why each item is in it, and what removed rows.

Reads: the rows of one request in a run's tables. Gives: text, byte-identical for the same rows. It reads a snapshot and
never retrieves. A score is the sum of its parts; gates that let everything through are only counted.

Note: the view is for auditors unless `audit=False`. A caller's view lists only shown items and counts only rows that passed
every gate, because other counts and ids disclose rows that the caller may not know of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from ...nodes.score_terms import TERMS, terms_of_plugins
from ...nodes.tables import TABLES
from ...nodes.text.text_analysis import RUN, terms_in
from ...nodes.vocabulary import SCORE_TERMS, STAGES
from ..progress import counted

Row = Mapping[str, Any]
Rows = Mapping[str, Sequence[Row]]
"""Rows of one request by table name; `requests`, `contracts`, `snapshots` have one row each, a failed request has
`failures`.
"""

TABLES_READ = (
    "requests", "failures", "contracts", "snapshots", "blocks", "sub_queries", "filter_ladder", "candidates", "ranked",
    "trimmed", "trims", "citations", "decisions", "conditions",
    "hits", "item_details", "rerank_weights", "score_terms",
)  # fmt: skip
"""The tables that views of one snapshot read."""

_WITHHELD_SHOWN = 20
_ABOUT_QUESTION = {
    term.name for term in TERMS if term.group in ("lexical", "semantic") or term.family == "cross_encoder"
}
"""Terms whose value depends on the words of the question; the others are about the row."""


def rows_of(tables: Mapping[str, pa.Table]) -> dict[str, list[dict[str, Any]]]:
    """The rows of one request by table name, as the views read them, free text in place."""
    return {name: tables[name].to_pylist() for name in TABLES_READ}


@dataclass(frozen=True)
class Rung:
    """A step of the ladder: how many rows it considered and let through, and the others by reason code."""

    name: str
    considered: int
    admitted: int
    lost: Mapping[str, int]
    gate: bool = False

    @property
    def reasons(self) -> str:
        """The reason codes with their counts, in one line."""
        return ", ".join(f"{code} {count}" for code, count in sorted(self.lost.items()))


def ladder(rows: Rows, *, audit: bool = True) -> list[Rung]:
    """The gates, recall, and the stages after it: each row of the corpus is let through or counted under a reason.

    Counts of gates cover rows that a caller may not know of, so without `audit` the ladder begins after them.
    """
    gates = [
        Rung(
            gate["gate"],
            gate["considered"],
            gate["admitted"],
            {gate["reason_code"]: gate["considered"] - gate["admitted"]}
            if gate["admitted"] < gate["considered"]
            else {},
            gate=True,
        )
        for gate in rows.get("filter_ladder", ())
    ]
    lost_at: dict[str, Counter[str]] = {}
    for decision in rows.get("decisions", ()):
        if decision["outcome"] != "selected":
            lost_at.setdefault(decision["stage"], Counter())[decision["reason_code"]] += 1
    left = len(rows.get("decisions", ())) - lost_at.get("gate", Counter()).total()
    found = gates if audit else []
    if gates:
        admissible = max(gates[-1].admitted, left)
        found = [
            *found,
            Rung("recall", admissible, left, {"not_recalled": admissible - left} if admissible > left else {}),
        ]
    for stage in STAGES.values:
        if stage != "gate" and (lost := lost_at.get(stage)):
            found.append(Rung(stage, left, left - lost.total(), lost))
            left -= lost.total()
    return found


def masked_places(decisions: Sequence[Row], contracts: Sequence[Row]) -> list[dict[str, Any]]:
    """Rows of DECISIONS of one request, which has places as stored, with `source_id` and `path` masked as its contract
    requires: for output to callers.
    """
    from ...nodes.blocks.masking import class_lists, masked

    mask = next((contract["mask"] for contract in contracts), None)
    classes = class_lists(pa.array([mask] * len(decisions), pa.list_(pa.string())))
    places = {
        name: masked(pa.array([row[name] for row in decisions], pa.string()), classes).to_pylist()
        for name in ("source_id", "path")
    }
    return [{**row, **{name: values[at] for name, values in places.items()}} for at, row in enumerate(decisions)]


def caller_rows(rows: Rows) -> dict[str, list[dict[str, Any]]]:
    """The rows reduced to what their caller may see: declared caller columns, no access gates, no withheld rows."""
    shown: dict[str, list[dict[str, Any]]] = {}
    for name, table_rows in rows.items():
        columns = {k for k in (table_rows[0] if table_rows else ()) if TABLES[name].shows(k)}
        table_rows = [row for row in table_rows if row.get("audience") != "audit"]
        shown[name] = [{k: v for k, v in row.items() if k in columns} for row in table_rows if columns]
    shown["filter_ladder"] = [row for row in shown.get("filter_ladder", []) if row.get("gate_class") != "access"]
    shown["ranked"] = []
    return shown


def render_text(rows: Rows, *, audit: bool = True) -> str:
    """The x-ray as text, newline at the end.

    Args:
        rows: rows of one request by table name, those of `TABLES_READ`; a missing table reads as empty.
        audit: False reduces the rows with `caller_rows` first.
    """
    rungs = ladder(rows, audit=audit)
    rows = rows if audit else caller_rows(rows)
    sections = [
        [f"{name + ':':<10}{value}" for name, value in header_of(rows).items()],
        _results(rows),
        _removed(rungs) if audit or any(rung.lost for rung in rungs) else [],
        _not_shown(withheld_of(rows)),
        _conditions(rows),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def header_of(rows: Rows) -> dict[str, str]:
    """What was asked, by whom, and how it ended; without what is absent."""
    request, contract, snapshot, block = (one_of(rows, t) for t in ("requests", "contracts", "snapshots", "blocks"))
    failure = one_of(rows, "failures")  # a row refused on arrival has neither request nor contract
    request, contract = request or failure, contract or failure
    asked = {"principal": "as", "project": "in project", "branch": "on branch", "purpose": "for", "as_of": "as of"}
    scope = " ".join(f"{said} {text_of(contract[name])}" for name, said in asked.items() if contract.get(name))
    used = [
        f"{text_of(block.get(name))} of {text_of(contract.get(f'max_{name}'))} {unit}"
        for name, unit in (("tokens", "tokens"), ("chars", "characters"))
    ]
    lines = {
        "question": line_of(request.get("question")),
        "request": failure.get("request_id"),
        "asked": scope,
        "answer": f"{snapshot.get('status')}, {', '.join(used)}" if block else snapshot.get("status"),
        "snapshot": snapshot.get("snapshot_id"),
    }
    return {name: str(value) for name, value in lines.items() if value}


@dataclass(frozen=True)
class Item:
    """One item of the block: its citation, and its rows in other tables, each empty where there is none."""

    citation: Row
    shown: Row
    """Of TRIMMED."""
    ranked: Row
    terms: Row
    found: Row
    """Of CANDIDATES."""
    decision: Row
    detail: Row
    trim: Row
    places: Mapping[str, int]
    """Its best rank in each lane that found it, by the name of the lane."""
    question: str

    @property
    def words(self) -> list[str]:
        """The words of the question with a term that its text or its place has, as the question writes them."""
        terms = {*terms_in(f"{self.citation['locator'] or ''} {self.shown.get('visible_text') or ''}")}
        return [*dict.fromkeys(word for word in RUN.findall(self.question) if not terms.isdisjoint(terms_in(word)))]

    @property
    def lines(self) -> list[str]:
        """Why it is there, what it is, and what was cut from it, in words."""
        citation, item, found, decision, words = self.citation, self.shown, self.found, self.decision, self.words
        why = [
            self.ranked.get("selected_reason"),
            f"words: {', '.join(words)}" if words else None,
            f"found by {', '.join(f'{lane} ({rank})' for lane, rank in self.places.items())}" if self.places else None,
            f"by way of {found['via']}" if found.get("via") else None,
        ]
        about = [
            f"{citation['authority']} authority, {citation['standing']}, {citation['source_id']}",
            f"version {citation['version']}" if citation["version"] else None,
            None if citation["resolves"] else "the citation does not resolve",
            f"as {item['form']}" if item.get("form") not in (None, "full") else None,
            "history" if item.get("history") else None,
            "a competing claim may exist" if item.get("conflict_note") else None,
            "a span is masked" if decision.get("redacted") else None,
            f"would be rejected by {decision['would_reject_by']}" if decision.get("would_reject_by") else None,
        ]
        cut = []
        if bound_by := self.trim.get("bound_by"):
            shown = "bytes {kept_start} to {kept_end} of {size} are shown".format_map(self.trim)
            cut = [f"cut by {bound_by}: {shown if self.trim['kept_end'] else 'only its place is shown'}"]
        return [text for part in (why, about, cut) if (text := "; ".join(filter(None, part)))]


_OF_ITEM = {"ranked": "ranked", "terms": "score_terms", "found": "candidates", "decision": "decisions",
            "detail": "item_details", "trim": "trims"}  # fmt: skip
"""The tables by the field of an item that has its row in them."""


def items_of(rows: Rows) -> list[Item]:
    """The items in the order of the block."""
    by_id = {name: {row["evidence_id"]: row for row in rows.get(table, ())} for name, table in _OF_ITEM.items()}
    shown = {row["label"]: row for row in rows.get("trimmed", ())}
    places: dict[str, dict[str, int]] = {}
    for hit in sorted(rows.get("hits", ()), key=lambda hit: (hit["lane"], hit["rank"])):
        places.setdefault(hit["evidence_id"], {}).setdefault(hit["lane"], hit["rank"])
    question, found = one_of(rows, "requests").get("question") or "", []
    for citation in rows.get("citations", ()):
        id_, item = citation["evidence_id"], shown.get(citation["label"], {})
        own = {name: table.get(id_, {}) for name, table in by_id.items()}
        found.append(Item(citation, item, places=places.get(id_, {}), question=question, **own))
    return found


def _results(rows: Rows) -> list[str]:
    lines: list[str] = []
    for item in items_of(rows):
        lines += ["", f"[{item.citation['label']}] {text_of(item.citation['locator'])}", *_score(item.ranked)]
        lines += [f"    {text}" for text in item.lines]
    return lines[1:] or ["nothing is shown"]


def _score(ranked: Row) -> list[str]:
    """The score as a sum: what is about the question, and what is about the row alone."""
    if not ranked:
        return []
    known = (*SCORE_TERMS, *terms_of_plugins(ranked))
    parts = {term: ranked[term] for term in known if ranked.get(term)}
    groups = {
        "question": [t for t in parts if t in _ABOUT_QUESTION],
        "row": [t for t in parts if t not in _ABOUT_QUESTION],
    }
    sums = [
        f"{sum(parts[term] for term in terms):.4f} {name} ({', '.join(f'{term} {parts[term]:.4f}' for term in terms)})"
        for name, terms in groups.items()
        if terms
    ]
    return [f"    score {ranked['final']:.4f} = {' + '.join(sums)}" if sums else f"    score {ranked['final']:.4f}"]


def _removed(rungs: Sequence[Rung]) -> list[str]:
    """Gates and steps that removed rows, and how many gates let everything through."""
    lines = ["what removed rows:"]
    for rung in rungs:
        if rung.lost:
            count = rung.considered - rung.admitted
            lines.append(f"- {'gate ' * rung.gate}{rung.name}: {count} of {rung.considered} ({rung.reasons})")
    if quiet := sum(rung.gate and not rung.lost for rung in rungs):
        lines.append(f"- {counted(quiet, 'other gate')} let everything through")
    return lines if len(lines) > 1 else [*lines, "- none: the contract is denied or the request failed"]


def withheld_of(rows: Rows) -> list[Row]:
    """Decisions about candidates that were not shown: hidden ones first, then by rank."""
    lost = [d for d in rows.get("decisions", ()) if d["outcome"] != "selected"]
    return sorted(lost, key=lambda d: (d["outcome"], d["rank"] is None, d["rank"] or 0, d["evidence_id"]))


def _not_shown(lost: Sequence[Row]) -> list[str]:
    lines = [f"not shown ({len(lost)}):"] if lost else []
    for d in lost[:_WITHHELD_SHOWN]:
        where = line_of(d["path"] or d["source_id"])
        lines.append(f"- {d['outcome']} at {d['stage']}: {d['evidence_id']} {where} ({d['reason_code']})")
    if len(lost) > _WITHHELD_SHOWN:
        lines.append(f"- and {len(lost) - _WITHHELD_SHOWN} more in tables/decisions")
    return lines


def _conditions(rows: Rows) -> list[str]:
    lines = ["conditions:"]
    for c in rows.get("conditions", ()):
        subject = f" [{c['subject']}]" if c["subject"] else ""
        lines.append(f"- {c['condition']}{subject}: {c['action']}: {c['message']}")
    return lines if len(lines) > 1 else []


def one_of(rows: Rows, name: str) -> Row:
    """The only row of a table; an empty one if there is none."""
    found = rows.get(name, ())
    return found[0] if found else {}


def text_of(value: Any) -> str:
    """A value as text: `-` for an absent one, times as ISO 8601 in UTC."""
    if value is None or value == "":
        return "-"
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def line_of(value: Any) -> str:
    """Free text on one line, so that a label or a question cannot start a line of its own."""
    return " ".join(text_of(value).split()) or "-"
