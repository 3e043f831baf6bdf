"""What an erasure takes from a run: everything that says something of the erased rows, and nothing beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from scoped_retrieval.pipeline.runs.erased_texts import texts_showing
from scoped_retrieval.pipeline.runs.parts import READABLE, stored_tables, texts_of

Filled = Callable[[str, list[dict[str, Any]]], pa.Table]


def shows(filled: Filled, tables: dict[str, list[dict[str, Any]]], *evidence_ids: str) -> set[str]:
    """The texts of a run of these rows that go with some rows of evidence."""
    given = {name: filled(name, rows) for name, rows in tables.items()}
    stored = stored_tables(given, READABLE)
    texts = texts_of(given)
    gone = texts_showing(stored | {"texts": texts}, pa.array(evidence_ids, pa.string()))
    return set(
        texts["text"].filter(pc.is_in(texts["sha256"], value_set=pa.array(sorted(gone), pa.string()))).to_pylist()
    )


def item(request: str, evidence: str, **more: Any) -> dict[str, Any]:
    return {"request_id": request, "evidence_id": evidence, "merged_rows": [evidence]} | more


def test_the_citation_of_an_item_goes_with_any_of_its_merged_rows(filled: Filled):
    tables = {
        "trimmed": [
            item("r1", "e1", merged_rows=["e1", "e2"], visible_text="two rows"),
            item("r1", "e3", visible_text="another"),
        ],
        "citations": [
            {"request_id": "r1", "evidence_id": "e1", "section": "of the second row"},
            {"request_id": "r1", "evidence_id": "e3", "section": "of another"},
        ],
    }
    gone = shows(filled, tables, "e2")
    assert {"two rows", "of the second row"} <= gone
    assert not {"another", "of another"} & gone


def test_what_a_record_says_goes_from_notes_checks_messages_and_blocks(filled: Filled):
    def check(request: str, record: str) -> dict[str, Any]:
        said = {name: f"{name} of {record}" for name in ("field", "canonical", "locator")}
        return {"request_id": request, "evidence_id": "e1", "record_id": record, **said}

    def message(request: str, condition: str) -> dict[str, Any]:
        return {"request_id": request, "condition": condition, "message": f"{condition} in {request}"}

    tables = {
        "trimmed": [
            item("r1", "e1", visible_text="fee", fact_note="a note of fees"),
            item("r1", "e2", visible_text="dates", fact_note="a note of dates"),
            item("r2", "e1", visible_text="fee", fact_note="a note of others"),
        ],
        "fact_checks": [check("r1", "fees"), check("r2", "others")],
        "conditions": [
            message("r1", "fact_mismatch"), message("r1", "sot_stale"), message("r2", "fact_mismatch"),
        ],
        "blocks": [{"request_id": r, "block_ref": "b", "text": f"block of {r}"} for r in ("r1", "r2")],
    }  # fmt: skip
    assert shows(filled, tables, "fees") == {
        "field of fees", "canonical of fees", "locator of fees", "a note of fees", "fact_mismatch in r1", "block of r1",
    }  # fmt: skip


def test_a_refusal_shows_no_evidence_and_stays(filled: Filled):
    tables = {
        "trimmed": [item("r1", "e1", visible_text="shown")],
        "blocks": [{"request_id": "r1", "block_ref": None, "text": "nothing_granted: nothing is granted"}],
    }
    assert shows(filled, tables, "e1") == {"shown"}
