"""What `why --gold` prints: where judged rows were lost, what those that were outranked lack, and each of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .output import EXIT, emit, note, write_table

__all__ = ["gold_tables", "show_lost_gold"]

SHOWN = 20
"""Lost documents that the table lists; `--json` has all."""
TERMS_SHOWN = 2


def show_lost_gold(settings: Any, id_: str, gold: Path, *, system: str, picture: Path | None, as_json: bool) -> int:
    """Print what became of the judged documents of a run or snapshot; returns the exit code."""
    from ..evaluation.funnel import draw_funnel
    from ..evaluation.judgements import read_qrels
    from ..evaluation.lost_gold import lost_gold

    found = lost_gold(settings, id_, read_qrels(gold), system=system)
    if picture is not None:
        draw_funnel(found, picture)
        note(f"wrote {picture}")
    value = {
        "run_id": found.run_id,
        "system": system,
        "left": found.funnel(),
        "stages": found.stages().to_dict("records"),
        "behind": found.behind().to_dict("records"),
        "gold": found.records(),
    }
    emit(value, as_json=as_json, text=gold_tables(found))
    return EXIT["ok"]


def gold_tables(found: Any) -> str:
    """The funnel, the terms, and the first of what was lost."""
    stages = [
        (*(str(row[n]) for n in ("stage", "reason", "gold")), f"{row['share']:.1%}")
        for row in found.stages().to_dict("records")
    ]
    text = write_table(f"judged documents: {len(found.gold)}", ("lost at", "reason", "gold", "share"), stages)
    behind = [(row["term"], str(row["gold"]), f"{row['lacking']:.4f}") for row in found.behind().to_dict("records")]
    if behind:
        text += write_table("outranked most of all by", ("term", "gold", "lacking in the mean"), behind)
    lost = [row for row in found.records() if row["stage"] != "shown"]
    cells = [
        (
            row["query_id"],
            row["doc_id"],
            row["stage"],
            row["reason"],
            row["decided_by"],
            row["rank"],
            _behind(row["behind"]),
        )
        for row in lost[:SHOWN]
    ]
    if cells:
        columns = ("query", "document", "lost at", "reason", "decided by", "rank", "behind in")
        text += write_table(f"lost: {len(lost)}, the first {len(cells)}", columns, cells)
    return text


def _behind(terms: Any) -> str:
    return ", ".join(f"{term} {value:.3f}" for term, value in list(terms.items())[:TERMS_SHOWN])
