"""The two terms of names: the file that a question names, and the symbol that it asks for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scoped_retrieval.nodes.columns.keys import flat
from scoped_retrieval.nodes.reranking.name_terms import name_terms
from scoped_retrieval.nodes.tables import EVIDENCE
from selection_line import ROW


def terms(rows: list[dict[str, Any]], *questions: str, owner: list[int] | None = None) -> Any:
    full = [
        ROW | {"text": "x", "evidence_id": str(n), "text_sha256": "", "path": "a.py"} | row
        for n, row in enumerate(rows)
    ]
    of = np.zeros(len(rows), int) if owner is None else np.array(owner)
    stored = EVIDENCE.from_rows(full)
    columns = {name: flat(stored[name]) for name in stored.column_names}
    return name_terms(of, np.arange(len(rows)), columns, pa.array(questions, pa.large_string()), stored)


@pytest.mark.parametrize(
    ("path", "question", "value"),
    [
        ("core/Contravariant.scala", "how does the contravariant functor reverse?", 2 / 4),
        ("src/http_client.rs", "HttpClient", 1.0),
        ("src/http_client.rs", "where are clients of HTTP closed", 4 / 5),
        ("src/http_client.rs", "client timeout", 2 / 4),
        ("router/mod.rs", "router", 1 / 2),
        ("src/other.py", "how is it parsed?", 0.0),
        ("src/other.py", "", 0.0),
    ],
)
def test_question_and_name_of_a_file_cover_each_other(path: str, question: str, value: float):
    assert terms([{"path": path}], question).title.tolist() == pytest.approx([value], abs=2**-29)


def test_a_section_of_a_document_is_named_by_its_heading_and_its_file():
    rows = [
        {"evidence_kind": "doc", "path": "docs/proxies.md", "section": section}
        for section in ("Advanced Usage > Proxies", "Proxies > Timeouts", None)
    ]
    assert terms(rows, "how do I set a proxy?").title.tolist() == pytest.approx([1 / 3, 1 / 6, 1 / 3], abs=2**-29)


@pytest.mark.parametrize(
    ("question", "symbols", "value"),
    [
        ("Depends", ["Depends"], 1.0),
        ("`Router.add()`", ["Router", "add"], 1.0),
        ("Sinatra::Base", ["Base"], 1.0),
        ("how is a Router built?", ["Router"], 0.5),
        ("what does parse_args return?", ["parse_args"], 0.5),
        ("Router tables: how are they built?", ["Router"], 1 / 3),
        ("how is a request parsed?", ["request"], 0.5),
        ("how is a request parsed?", ["Request", "is"], 0.0),
        ("depends", ["Depends"], 0.0),
    ],
)
def test_a_definition_counts_as_clearly_as_the_question_names_it(question: str, symbols: list[str], value: float):
    rows = [{"symbols": symbols, "path": "x/other.py"}, {"symbols": ["unrelated"]}, {"symbols": None}]
    assert terms(rows, question).definition.tolist() == pytest.approx([value / 1.5, 0.0, 0.0], abs=2**-29)


def test_the_file_named_after_a_symbol_comes_before_its_namesakes():
    rows = [
        {"path": f"src/{name}", "symbols": ["SqlMapper"]}
        for name in ("SqlMapper.cs", "sql_mapper.h", "SqlMapper.Settings.cs", "Settings.cs")
    ]
    assert terms(rows, "SqlMapper").definition.tolist() == pytest.approx([1.0, 1.0, 2 / 3, 2 / 3], abs=2**-29)
