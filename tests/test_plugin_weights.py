"""The weight of a plugin's score term: a request, a preset, a policy and `what-if` name it as any other."""

from __future__ import annotations

import sys
from importlib import resources
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plugin_package import ENTRIES, SOURCE, install, settings_of
from scoped_retrieval.nodes.errors import InputError, PolicyError
from scoped_retrieval.pipeline.config.grants import write_starter_grants
from scoped_retrieval.pipeline.config.policies.tables import load_policies
from scoped_retrieval.pipeline.plugins import installed
from scoped_retrieval.pipeline.reading.auditing.reproduce import reproduced
from scoped_retrieval.pipeline.reading.auditing.what_if import what_if
from small_corpus import Story, row

SENTENCE = "The retry limit of billing is three. "
ROWS = (
    row("doc", "short.md", SENTENCE),
    row("doc", "middle.md", SENTENCE + "It stands in the handbook of the team. " * 4),
    row("doc", "long.md", SENTENCE + "It stands in the handbook of the team, which is read. " * 12),
)
ASKED = {"project": "shop", "purpose": "answer-question", "question": "What is the retry limit of billing?"}
TERM_ALONE = "[scoped_retrieval.score_terms]\nacme.length = acme_rules:LENGTH\n"
COMPARED = ("ranked", "packs", "trimmed", "trims", "decisions")


def told(folder: Any, patch: pytest.MonkeyPatch, entries: str = TERM_ALONE, source: str = SOURCE) -> Story:
    """The rows above, ana who audits them, and the plugin `acme`, installed."""
    install(folder, patch, source, entries)
    story = Story(folder, *ROWS)
    (folder / "grants.yaml").unlink()
    write_starter_grants(folder / "grants.yaml", "ana", "shop", audit=True)
    return story


@pytest.fixture(name="story", scope="module")
def story_fixture(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        yield told(tmp_path_factory.mktemp("weights"), patch)


@pytest.fixture(name="recorded", scope="module")
def recorded_fixture(story):
    """A run of three requests, of which one weighs the term by itself; and the snapshot of a fourth."""
    with opened(story, runs=story.folder / "runs") as retriever:
        own = ({}, {"weights": {"acme.length": 2.0}}, {"weights": {"lexical": 0.9}})
        run = retriever.run([ASKED | more | {"request_id": f"r{n}"} for n, more in enumerate(own)]).run_id
        return run, retriever.retrieve(ASKED).snapshot_id


def remove(story: Story, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sys, "path", [place for place in sys.path if not place.endswith("/site")])
    patch.delitem(sys.modules, "acme_rules", raising=False)
    with pytest.raises(InputError, match="no acme"):
        installed(("acme",))


def opened(story: Story, **how: Any) -> Any:
    return story.open(**{"plugins": ("acme",)} | how)


def answered(story: Story, how: Any = None, **fields: Any) -> Any:
    with opened(story, **(how or {})) as retriever:
        return retriever.retrieve(ASKED | fields)


def weight_of(found: Any) -> float:
    return found.tables["rerank_weights"]["acme.length"][0].as_py()


def order(found: Any) -> list[str]:
    paths = {each["evidence_id"]: each["path"] for each in found.tables["decisions"].to_pylist()}
    return [paths[each["evidence_id"]] for each in found.tables["ranked"].to_pylist()]


# --- requests -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ({}, ["long.md", "short.md", "middle.md"]),  # the plugin's own, 0.3
        ({"acme.length": 0.0}, ["short.md", "middle.md", "long.md"]),
        ({"acme.length": 100.0}, ["long.md", "middle.md", "short.md"]),
    ],
    ids=str,
)
def test_a_request_weighs_the_term_of_a_plugin(story, weights, expected):
    only = dict.fromkeys(("semantic", "authority", "recency", "actionability", "diversity"), 0.0)
    found = answered(story, weights={**only, "lexical": 0.4, **weights})
    assert weight_of(found) == weights.get("acme.length", 0.3)
    assert order(found) == expected
    for each in found.tables["ranked"].to_pylist():
        value = next(
            one["acme.length"]
            for one in found.tables["score_terms"].to_pylist()
            if one["evidence_id"] == each["evidence_id"]
        )
        assert each["acme.length"] == round(weight_of(found) * value * 2**30) / 2**30


def test_a_policy_weighs_the_term_unless_the_request_does(story, tmp_path):
    bundled = resources.files("scoped_retrieval.data") / "policies/purposes/answer-question.yaml"
    policy = yaml.safe_load(bundled.read_text())
    policy["weights"]["acme.length"] = 0.6
    (tmp_path / "purposes").mkdir()
    (tmp_path / "purposes/answer-question.yaml").write_text(yaml.safe_dump(policy))
    policies = load_policies(tmp_path)
    assert weight_of(answered(story, {"policies": policies})) == 0.6
    assert (
        weight_of(answered(story, {"policies": policies}, purpose="fix-test")) == 0.3
    )  # says nothing: the plugin's own
    assert weight_of(answered(story, {"policies": policies}, weights={"acme.length": 0.1})) == 0.1
    with pytest.raises(PolicyError, match=r"Expected one of semantic, .*, got 'acme\.length' - at weights"):
        story.open(policies=policies)


# --- one answer everywhere ------------------------------------------------------------------------------------------


def test_a_run_with_weights_of_its_own_is_reproduced(story, recorded):
    found = reproduced(settings_of(story), recorded[0])
    assert (found.same, found.changed) == (True, {})


# --- what-if --------------------------------------------------------------------------------------------------------


def expect_fresh(story: Story, snapshot: str, weights: dict[str, float], fresh: Any) -> None:
    found = what_if(settings_of(story), snapshot, {"weights": weights})
    assert list(found.blocks.values()) == [fresh.block]
    for name in COMPARED:
        ours, theirs = (table.drop_columns(["request_id"]) for table in (found.tables[name], fresh.tables[name]))
        assert ours.to_pylist() == theirs.to_pylist(), name


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(own=st.floats(0, 100), lexical=st.none() | st.floats(0, 2))
def test_what_if_gives_what_a_fresh_run_gives(story, recorded, own, lexical):
    weights = {"acme.length": own} | ({} if lexical is None else {"lexical": lexical})
    expect_fresh(story, recorded[1], weights, answered(story, weights=weights))


def test_gates_of_a_plugin_judge_again_and_one_that_is_gone_is_not_passed_over(tmp_path, monkeypatch):
    """Without the gate a row under embargo would be shown."""
    story = told(tmp_path, monkeypatch, ENTRIES)
    story.tell(row("doc", "embargo.md", SENTENCE * 9, tags=["embargo"]))
    with opened(story, runs=tmp_path / "runs") as retriever:
        snapshot = retriever.retrieve(ASKED).snapshot_id
    weights = {"weights": {"acme.length": 9.0}}
    assert "embargo" not in next(iter(what_if(settings_of(story), snapshot, weights).blocks.values()))
    remove(story, monkeypatch)
    with pytest.raises(InputError, match="Expected plugins that are installed, got no acme"):
        what_if(settings_of(story), snapshot, weights)
