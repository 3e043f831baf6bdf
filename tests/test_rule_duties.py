"""Prohibitions, approvals and checks survive every compaction of rules (S3.30)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from context_session import instructing, projected
from hypothesis import given
from hypothesis import strategies as st
from scoped_retrieval.nodes.turns.duties import duties_only, is_duty, lost, sentences

PROHIBITED = (
    "Never push to main.", "Do not edit files below src/generated.", "Don't rename exported functions.", "No network calls in unit tests.",
    "You must not log credentials.", "Avoid wildcard imports.", "Migrations are append-only; existing ones cannot be changed.",
    "Refrain from reformatting untouched files.", "Leave the lock file alone.", "Only touch the package that fails.", "Secrets are off-limits.",
    "Use vitest instead of jest.", "Prefer a fixture rather than a mock.", "The vendor folder is read-only.", "Nobody commits without a ticket.",
    "It is forbidden to skip hooks.", "Stop before the release branch is touched.", "Comments stay as they are unless they are wrong.",
    "不要修改生成的文件。", "🚫 force pushes",
)  # fmt: skip
APPROVED = (
    "Ask before adding a dependency.", "A maintainer approves every schema change.", "Get permission from the owner of the module.",
    "Confirm destructive commands with the user.", "Deployments need sign-off.", "Changes to billing go through review.", "Consult the security team first.",
    "Wait for a human before merging.", "Escalate failing releases to the owner.", "Tell the user which files you delete.", "发布前必须得到批准。",
)  # fmt: skip
CHECKED = (
    "Run pnpm test after each change.", "All tests must pass.", "Lint before you commit.", "Verify the fix with the failing test.", "Make sure the build is green.",
    "Type checks are required.", "Every bug fix needs to have a regression test.", "Check the changelog before a release.", "Coverage should stay above 90 %.",
    "Validate the schema with the script.", "Update the docs when an API changes.", "Always format with ruff.", "Remember to rebuild the fixtures.",
    "提交前请运行测试。",
)  # fmt: skip
PLAIN = (
    "The parser lives in this folder.",
    "Commit c0ffee introduced it.",
    "We love small modules.",
    "Ben wrote the first version in 2019.",
    "The weather is fine.",
)
DUTIES = (*PROHIBITED, *APPROVED, *CHECKED)


@pytest.mark.parametrize("sentence", DUTIES)
def test_a_duty_is_known(sentence: str):
    assert is_duty(sentence)


@pytest.mark.parametrize("sentence", PLAIN)
def test_a_sentence_without_duty_may_go(sentence: str):
    assert not is_duty(sentence)


SEPARATORS = st.sampled_from([" ", "\n", "\n\n", "\n- ", "\n1. ", "\n\n## Rules\n\n"])


@given(st.lists(st.tuples(st.sampled_from([*DUTIES, *PLAIN]), SEPARATORS), min_size=1, max_size=30))
def test_every_duty_survives_the_compaction_of_any_text(parts: list[tuple[str, str]]):
    text = "".join(sentence + separator for sentence, separator in parts)
    kept = " ".join(duties_only(text).split())
    for sentence, _ in parts:
        if sentence in DUTIES:
            assert " ".join(sentence.split()) in kept, text
    import pyarrow as pa

    assert lost(pa.array([text]), pa.array([duties_only(text)])).tolist() == [0]


def test_a_sentence_that_was_broken_into_lines_is_kept_whole():
    text = "The parser is old.\nAny change that touches the user interface must include\na snapshot that somebody\nlooked at.\nIt rains."
    assert (
        duties_only(text)
        == "Any change that touches the user interface must include a snapshot that somebody looked at."
    )


def test_what_a_duty_announces_stays_with_it():
    text = "Background.\n\nRun all tests:\n\n```sh\ncargo nextest run\n```\n\nHistory.\n\nNever touch:\n\n- dist\n- vendor\n\nThe end is near."
    assert duties_only(text).splitlines() == [
        "Run all tests:",
        "```sh",
        "cargo nextest run",
        "```",
        "Never touch:",
        "- dist",
        "- vendor",
    ]
    assert sentences(text)[2] == "```sh\ncargo nextest run\n```"


def real_sentences() -> list[tuple[str, str]]:
    """(P, A or V, sentence) of rule files that nobody here wrote, one per line."""
    file = os.environ.get("TEST_RULE_SENTENCES")
    if not file:
        pytest.skip("TEST_RULE_SENTENCES names no file of labelled sentences")
    lines = Path(file).read_text(encoding="utf-8").splitlines()
    return [(line[0], line[2:]) for line in lines if line.strip()]


def test_labelled_sentences_of_real_rule_files_survive_every_compaction():
    rows = real_sentences()
    assert len(rows) >= 100 and {label for label, _ in rows} == {"P", "A", "V"}
    text = "\n\n".join(f"The folder holds a part of it.\n{sentence}" for _, sentence in rows)
    told = instructing(
        projected(rules=[{"path": "AGENTS.md", "text": text}], budget={"maxTokens": 60_000, "reserved": {"rules": 1}})
    )
    said = " ".join(line.removeprefix("- ") for line in told.splitlines())
    gone = [sentence for _, sentence in rows if not all(part in said for part in sentences(sentence))]
    assert "holds a part" not in told and gone == []
