"""The line without a score term, from the tables of a run alone."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from golden_file import expect_golden
from judged_folders import documents_folder
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.nodes.vocabulary import SCORE_TERMS, WEIGHED_TERMS
from scoped_retrieval.pipeline.cli import main
from scoped_retrieval.pipeline.evaluation.frozen_terms import ranked_under
from scoped_retrieval.pipeline.evaluation.rankings import EACH, terms_named
from scoped_retrieval.pipeline.runs import Runs
from small_corpus import Story, row

GOLDEN = Path(__file__).parent / "golden" / "eval.txt"
ROWS = (
    row("workspace", "a.md", "the limit of a retry is three", evidence_kind="doc", authority=1),
    row("workspace", "b.md", "retry retry retry limit", evidence_kind="doc", days=400),
    row("workspace", "c.py", "limit = 3  # of a retry", evidence_kind="code", authority=3, days=30),
)


def test_the_order_without_a_term_is_that_of_a_request_that_weighs_it_nothing(tmp_path):
    asked = {"question": "what is the retry limit?", "project": "shop", "purpose": "answer-question"}
    less = [{**asked, "request_id": term, "weights": {term: 0.0}} for term in WEIGHED_TERMS]
    with Story(tmp_path, *ROWS).open(runs=tmp_path / "runs") as retriever:
        run = Runs(tmp_path / "runs").open(retriever.run([{**asked, "request_id": "all"}, *less]).run_id)

    def of(request: str, table: pa.Table) -> pa.Table:
        return table.filter(pc.equal(table["request_id"], request)).drop_columns(["request_id", "place"])

    for term in WEIGHED_TERMS:
        without = of("all", ranked_under(run.table("score_terms"), run.table("rerank_weights"), {term: 0.0}))
        assert without.num_rows == 3
        assert without.equals(of(term, run.table("ranked"))), term


def test_each_is_every_term_that_weighs_something_and_any_other_word_is_refused():
    weights = pa.table({term: [0.5 if term in ("semantic", "scope") else 0.0] for term in SCORE_TERMS})
    assert terms_named([EACH], weights) == ("semantic", "scope")
    assert terms_named(["scope", "recency"], weights) == ("recency", "scope")
    with pytest.raises(InputError, match=r"Expected one of semantic, lexical, .*, got 'bm25' - at --without"):
        terms_named(["bm25"], weights)


@pytest.mark.golden
def test_the_tables_of_eval_are_the_golden_ones(tmp_path: Path, capsys):
    folder = str(documents_folder(tmp_path))
    args = ["--work", str(tmp_path / "w"), "--no-semantic", "--metric", "nDCG@10", "--metric", "R@1", "--block", "60"]
    assert main(["eval", folder, *args, "--without", "lexical"]) == 0
    expect_golden(GOLDEN, capsys.readouterr().out)
    assert main(["eval", folder, *args, "--against", "bm25"]) == 2
    assert "Expected one of block, " in capsys.readouterr().err
