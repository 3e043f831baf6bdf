"""What commands print cannot act on a terminal, whatever evidence, sources and questions say."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest
from command_line import run
from hostile import ACTING, HOSTILE, hostile_rows
from hypothesis import given
from hypothesis import strategies as st
from scoped_retrieval.pipeline.views.printed import visible, visible_json


@given(st.text())
def test_visible_text_holds_no_character_that_acts_and_changes_no_other(text: str):
    shown = visible(text)
    assert not ACTING.search(shown)
    if not any(unicodedata.category(c) in ("Cc", "Cf", "Cn", "Zl", "Zp") for c in text):
        assert shown == text


@given(
    st.recursive(
        st.text() | st.none() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_visible_json_is_the_same_value(value: object):
    document = visible_json(json.dumps(value, ensure_ascii=False, indent=2))
    assert json.loads(document) == value
    assert not ACTING.search(document)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile_rows(tmp_path_factory.mktemp("hostile")).parent


COMMANDS = [
    ("show", "{snapshot}", "--as", "xray"),
    ("show", "{snapshot}", "--as", "markdown"),
    ("show", "{snapshot}", "--as", "xray", "--json"),
    ("log",),
    ("log", "--json"),
    ("log", "--of", "runs"),
    ("log", "--as", "csv"),
    ("show", "{snapshot}", "--as", "bundle"),
    ("contract", "{question}", "--project", "shop"),
    ("contract", "{question}", "--project", "shop"),
    ("status"),
    ("ask", "{question}", "--project", "{hostile}"),
    ("show", "{hostile}"),
]


def test_no_command_prints_a_character_that_acts(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(folder)
    question = f"retry limit {HOSTILE}"
    assert run("index", "--add", "evidence=rows.jsonl", "--project", "shop", "--no-semantic", capsys=capsys)[0] == 0
    code, out, _ = run("ask", question, "--project", "shop", "--json", capsys=capsys)
    assert code == 0
    snapshot = json.loads(out)["snapshot_id"]
    said = {"snapshot": snapshot, "question": question, "hostile": HOSTILE}
    for command in COMMANDS:
        _, out, error = run(*(part.format(**said) for part in command), capsys=capsys)
        assert not ACTING.search(out), command
        assert not ACTING.search(error), command
