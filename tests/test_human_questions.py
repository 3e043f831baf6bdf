"""Questions as people ask them: what the list holds, and, where the evaluation data is, that blocks answer them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).with_name("human")))
import measure


def test_there_are_twenty_questions_for_each_of_three_repositories() -> None:
    repositories = measure.repositories()
    assert [len(each["questions"]) for each in repositories] == [20, 20, 20]
    asked = [question for each in repositories for question in each["questions"]]
    assert len({question["id"] for question in asked}) == len({question["question"] for question in asked}) == 60
    assert all(question["gold"] and question["question"].endswith("?") for question in asked)
    assert all(len(each["commit"]) == 40 for each in repositories)


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory) -> pd.Series:
    root = os.environ.get("SCOPED_RETRIEVAL_EVAL_DATA")
    if not root or not all((Path(root) / each["collection"]).is_dir() for each in measure.repositories()):
        pytest.skip("SCOPED_RETRIEVAL_EVAL_DATA names no folder with the three repositories")
    pytest.importorskip("bm25s", reason="needs the extra eval")
    return measure.table(measure.answered(Path(root), tmp_path_factory.mktemp("human")))["all"]


def test_blocks_of_2000_tokens_hold_a_file_that_answers(share: pd.Series) -> None:
    assert share["explain-code@2000"] >= 0.85


def test_blocks_of_the_default_purpose_hold_a_file_that_answers(share: pd.Series) -> None:
    assert share["answer-question (default)"] >= 0.75
