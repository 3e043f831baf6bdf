"""The three terms of a file, on rows whose numbers can be added up by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scoped_retrieval.nodes.columns.keys import flat
from scoped_retrieval.nodes.reranking.file_terms import file_terms
from scoped_retrieval.nodes.tables import EVIDENCE
from selection_line import ROW, line


def evidence(*rows: dict[str, Any]) -> Any:
    full = [
        ROW | {"text": "x", "evidence_id": str(n), "text_sha256": "", "path": "a.py"} | row
        for n, row in enumerate(rows)
    ]
    return EVIDENCE.from_rows(full)


def terms(
    rows: list[dict[str, Any]],
    lexical: list[float],
    best: list[tuple[int, int, float]],
    owner: list[int] | None = None,
    semantic: list[float] | None = None,
) -> Any:
    asked, example, score = (np.array(part) for part in zip(*best, strict=True)) if best else (np.empty(0, int),) * 3
    given = np.zeros(len(rows), int) if owner is None else np.array(owner)
    near = np.zeros(len(rows)) if semantic is None else np.array(semantic)
    stored = evidence(*rows)
    return file_terms(given, columns_of(stored), np.array(lexical), near, (asked, example, score), stored)


def columns_of(stored: pa.Table) -> dict[str, pa.Array]:
    return {name: flat(column) for name, column in zip(stored.column_names, stored.columns, strict=True)}


@pytest.mark.parametrize(
    "columns", [{"document_type": "test"}, {"generated": True}, {"evidence_kind": "doc"}, {"path": None}, {"source_id": "git:other"}, {"owner_user": "bo"}]
)  # fmt: skip
def test_a_row_that_is_no_source_or_of_another_file_has_none(columns: dict[str, Any]) -> None:
    found = terms([{}, columns], [0.5, 0.5], [(0, 0, 0.5)], semantic=[0.5, 0.25])
    assert (found.file[1], found.passages[1]) == (0.0, 0.0)
    assert found.passages[0] == pytest.approx(1 / 6, abs=2**-30)
    assert found.outlines[0] == 0.5


def test_the_terms_of_a_file_are_weighed_like_others() -> None:
    weights = {"file": 1.0, "passages": 3.0, "outlines": 2.0}
    # Its BM25 is a half of what the terms could give.
    asked = line([{"text": "x", "bm25_raw": 1.0, "semantic_raw": 0.125}], weights=weights, files=[(0, 0, 0.5)])
    (best,) = asked.run()["ranked"].to_pylist()
    assert (best["file"], best["passages"], best["outlines"]) == pytest.approx((0.5, 0.5, 0.25), abs=2**-28)
    assert (best["final"], best["selected_reason"]) == (pytest.approx(1.25, abs=2**-28), "matched the words")


def test_a_file_of_near_outlines_is_close_in_meaning() -> None:
    asked = line([{"text": "x", "semantic_raw": 0.5}], weights={"outlines": 2.0})
    (best,) = asked.run()["ranked"].to_pylist()
    assert best["selected_reason"] == "close in meaning"


def test_a_row_of_source_is_no_farther_than_its_file() -> None:
    rows = [
        {"text": "defines nothing", "path": "a.py"},
        {"text": "defines what is near", "path": "a.py", "semantic_raw": 0.75},
        {"text": "a document", "evidence_kind": "doc", "semantic_raw": 0.25},
    ]
    ranked = line(rows, weights={"semantic": 2.0}).run("ranked")["ranked"].to_pylist()
    assert [row["semantic"] for row in ranked] == [1.5, 1.5, 0.5]
