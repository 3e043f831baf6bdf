"""The boost of confirmed memories, and the importance that a record states (document 002, S2.27): score terms that count
where `plugins` names them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from scoped_retrieval.pipeline.config.settings import load_settings
from scoped_retrieval.pipeline.views.recall_xray import recall_xray, render_xray
from scoped_retrieval.pipeline.views.xray import rows_of
from small_corpus import Story, row

TEXT = "The retry limit of billing is three."
COUNTS = {"often.md": 9, "once.md": 1, "never.md": 0, "unknown.md": None}


@pytest.fixture(name="story", scope="module")
def story_fixture(tmp_path_factory):
    folder = tmp_path_factory.mktemp("memory-terms")
    return Story(
        folder, *(row("doc", path, f"{TEXT} {path}", reinforcement_count=count) for path, count in COUNTS.items())
    )


def answered(story: Story, *plugins: str, question: str = "What is the retry limit of billing?", **opened: Any) -> Any:
    with story.open(plugins=plugins, **opened) as retriever:
        return retriever.retrieve({"project": "shop", "question": question})


def snapshot(found: Any) -> dict[str, Any]:
    return recall_xray(rows_of(found.tables))


def test_each_confirmation_counts_less_than_the_one_before(story):
    found = answered(story, "reinforcement")
    path = {item["evidence_id"]: item["path"] for item in found.tables["decisions"].to_pylist()}
    boosts = {path[row["evidence_id"]]: row["reinforcement.boost"] for row in found.tables["score_terms"].to_pylist()}
    assert {name: round(boost, 6) for name, boost in boosts.items()} == {
        "often.md": 0.75, "once.md": 0.25, "never.md": 0.0, "unknown.md": 0.0,
    }  # fmt: skip


def test_the_xray_names_the_boost_of_what_was_confirmed_and_of_nothing_else(story):
    found = answered(story, "reinforcement")
    path = {item["evidence_id"]: item["path"] for item in found.tables["decisions"].to_pylist()}
    seen = snapshot(found)
    boosts = {path[each["memoryId"]]: each["scoreDecomposition"].get("reinforcementBoost") for each in seen["results"]}
    assert round(boosts["often.md"], 6) == 0.0375
    assert boosts.get("never.md") is None and boosts.get("unknown.md") is None
    assert "reinforcement_boost=0.0375" in render_xray(seen)


def test_without_the_setting_nothing_counts_confirmations(story):
    found = answered(story)
    assert "reinforcement.boost" not in found.tables["score_terms"].column_names
    assert "reinforcementBoost" not in json.dumps(snapshot(found))


def test_document_002_s_name_for_the_setting_enables_the_boost(tmp_path):
    variable = {"SCOPED_RETRIEVAL_REINFORCEMENTRECALLBOOSTENABLED": "true"}
    for given in ({"chosen": {"reinforcementRecallBoostEnabled": "true"}}, {"environ": variable}):
        settings = load_settings({}, cwd=tmp_path, user=tmp_path / "none.toml", **{"environ": {}} | given)
        assert settings["plugins"] == ("reinforcement",)
    off = load_settings({}, cwd=tmp_path, user=tmp_path / "none.toml", environ={"SCOPED_RETRIEVAL_PLUGINS": "acme"})
    assert off["plugins"] == ("acme",)


def test_the_importance_that_a_record_states_is_shown_and_counts_where_it_is_asked_for(tmp_path):
    levels = {"high.md": 0.9, "low.md": 0.1, "unknown.md": None}
    story = Story(tmp_path, *(row("doc", path, TEXT, importance=level) for path, level in levels.items()))
    found = answered(story, "importance")
    path = {item["evidence_id"]: item["path"] for item in found.tables["decisions"].to_pylist()}
    terms = {
        path[each["evidence_id"]]: round(each["importance.stated"], 6)
        for each in found.tables["score_terms"].to_pylist()
    }
    assert terms == {"high.md": 0.9, "low.md": 0.1, "unknown.md": 0.0}
    assert "importance.stated" not in answered(story).tables["score_terms"].column_names
    (high,) = (id_ for id_, name in path.items() if name == "high.md")
    (result,) = snapshot(answered(story, question=f"What says {high}?", lanes=["exact"]))["results"]
    assert result["scoreDecomposition"]["importance"] == 0.9


def test_a_memory_is_named_by_the_id_of_its_record_and_another_row_by_its_own(tmp_path):
    story = Story(
        tmp_path,
        row("memory", "notes", TEXT, entity="m9"),
        row("doc", "limits.md", f"{TEXT} Again.", entity="decision"),
    )
    seen = snapshot(answered(story))
    names = {each["path"].partition("#")[0]: each["memoryId"] for each in seen["results"]}
    assert names["notes"] == "m9"
    assert {each["auditEntryId"].partition("/")[2] for each in seen["results"]} >= {names["limits.md"]}
    assert "] m9 — served-by=" in render_xray(seen)
