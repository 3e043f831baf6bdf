"""A cross-encoder is a term of reranking: it reads what passed both walls, and a score is a function of its pair alone."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from scoped_retrieval.nodes.candidate_recall import NO_CROSS_ENCODER
from scoped_retrieval.nodes.errors import ModelError, StoreError
from scoped_retrieval.pipeline.config.policies.tables import load_policies
from scoped_retrieval.pipeline.encoders.cross_encoder import CrossEncoder
from scoped_retrieval.pipeline.runs import Runs, verify
from small_corpus import Story, days_ago, places, row
from tiny_cross_encoder import WORDS, model_at

pytest.importorskip("transformers", reason="needs the extra semantic")

QUESTION = "what is the default role"
PAIRS = [
    (QUESTION, "the default role is guest"),
    (QUESTION, ""),
    ("", "token of the session"),
    (QUESTION, "the cache of the login " * 40),
    ("what of the retry " * 40, "the retry of the login " * 40),
    (QUESTION, "the admin role is the default of the session"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return model_at(tmp_path_factory.mktemp("models") / "tiny")


class Reader:
    """A stand-in that records its input, and prefers texts with a given word."""

    def __init__(self, word: str = "guest", name: str = "reader/1") -> None:
        self.word, self.profile = word, name
        self.given: list[tuple[str, str]] = []

    def scores(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        self.given += pairs
        return np.array([0.875 if self.word in text else 0.125 for _, text in pairs])


def story_of(folder: Path) -> Story:
    return Story(
        folder,
        row("doc", "docs/a.md", "The default role is admin, and the default role of admin is admin."),
        row("doc", "docs/b.md", "A default role: guest."),
        row("doc", "docs/c.md", "The role of a session has a token."),
        row("doc", "docs/hidden.md", "The default role is guest, says a runtime.", declared_visibility="runtime-only"),
        row("doc", "docs/late.md", "The default role is guest from tomorrow.", recorded_time=days_ago(-1)),
        row("doc", "docs/zone.md", "The default role is guest, restricted.", zone="restricted"),
    )


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return story_of(tmp_path)


def ask(story: Story, model: Any = None, **how: Any) -> Any:
    fields = {name: how.pop(name) for name in ("mode", "variables", "role", "budget", "weights") if name in how}
    with story.open(cross_encoder=model, **how) as retriever:
        return retriever.retrieve({"project": "shop", "question": QUESTION, **fields})


def policies_with(folder: Path, *, purpose: Callable[[dict[str, Any]], None], **mode: Any) -> Any:
    """The bundled policies with answer-question changed, and a planning mode that reads every document."""
    bundled = Path(__file__).parents[1] / "data" / "policies"
    for kind, name in (("purposes", "answer-question"), ("modes", "planning")):
        content = yaml.safe_load((bundled / kind / f"{name}.yaml").read_text())
        if kind == "modes":
            content |= {"search_paths": ["/docs/"], "include": [], "exclude": []} | mode
        else:
            purpose(content)
        (folder / kind).mkdir(parents=True)
        (folder / kind / f"{name}.yaml").write_text(yaml.safe_dump(content))
    return load_policies(folder)


def unchanged(_: dict[str, Any]) -> None:
    """Leave a policy as it is."""


def test_the_order_changes_when_only_the_cross_encoder_is_switched_on(story: Story) -> None:
    before, after = ask(story), ask(story, Reader())
    assert places(before)[0] == "docs/a.md"
    assert places(after)[0] == "docs/b.md"
    assert sorted(places(before)) == sorted(places(after))


def test_a_weight_of_zero_leaves_every_score_as_it_was(story: Story, tmp_path: Path) -> None:
    weightless = policies_with(tmp_path / "own", purpose=lambda content: content["weights"].update(cross_encoder=0))
    off, on = (ask(story, model, policies=weightless).tables["ranked"] for model in (None, Reader()))
    assert on.equals(off)


def test_no_row_that_a_wall_stops_reaches_the_model(story: Story) -> None:
    reader = Reader()
    found = ask(story, reader)
    decided = {each["path"]: each["outcome"] for each in found.tables["decisions"].to_pylist()}
    assert decided["docs/hidden.md"] == "hidden"  # it was recalled, for the record
    given = {text for _, text in reader.given}
    assert len(given) == 3
    assert not any(word in text for text in given for word in ("runtime", "tomorrow", "restricted"))


def test_what_a_wall_stops_moves_no_score(tmp_path: Path, folder: Path) -> None:
    shown = [row("doc", f"docs/{n}.md", text) for n, (_, text) in enumerate(PAIRS) if text]
    stopped = [row("doc", f"secret/{n}.md", f"the default role {n}", zone="restricted") for n in range(9)]
    found = []
    for name, rows in (("without", shown), ("with", shown + stopped)):
        (tmp_path / name).mkdir()
        found.append(ask(Story(tmp_path / name, *rows), folder).tables["ranked"])
    assert found[0].equals(found[1])


@pytest.mark.parametrize(("fields", "read"), [({"budget": {"max_items": 2}}, 6), ({"mode": "planning"}, 4)])
def test_the_best_by_the_other_terms_are_read(tmp_path: Path, fields: dict[str, Any], read: int) -> None:
    """Three times `max_items`, or the mode's `k_in`; in the order that the line without it gives."""
    rows = [row("doc", f"docs/{n}.md", "default role " * (n + 1) + f"word{n}", days=9 * n) for n in range(12)]
    story, reader = Story(tmp_path, *rows), Reader()
    policies = policies_with(tmp_path / "own", purpose=unchanged, retrieval_params={"k_in": 4, "k_out": 2})
    before = ask(story, policies=policies, **fields).tables
    ask(story, reader, policies=policies, **fields)
    text = dict(zip(*(before["decisions"][name].to_pylist() for name in ("evidence_id", "path")), strict=True))
    best = [text[id_] for id_ in before["ranked"]["evidence_id"].to_pylist()[:read]]
    assert len(reader.given) == min(read, before["ranked"].num_rows)
    assert {text.split("word")[1] for _, text in reader.given} == {path[5:-3] for path in best}


def test_a_score_is_a_function_of_its_pair_alone(folder: Path) -> None:
    import torch

    model = CrossEncoder(folder)
    together = model.scores(PAIRS)
    assert together.min() >= 0.0
    assert together.max() <= 1.0
    assert len(set(together.tolist())) == len(PAIRS)
    assert [float(model.scores([pair])[0]) for pair in PAIRS] == together.tolist()
    assert model.scores(PAIRS[::-1]).tolist() == together.tolist()[::-1]
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2 if threads == 1 else 1)
        assert model.scores(PAIRS).tolist() == together.tolist()
    finally:
        torch.set_num_threads(threads)


def test_a_score_is_the_sigmoid_of_the_models_logit(folder: Path) -> None:
    """Against the model called as its library shows: one pair, no padding."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    plain: Any = AutoModelForSequenceClassification.from_pretrained(folder)
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    for pair in (PAIRS[0], PAIRS[-1]):
        with torch.inference_mode():
            expected = torch.sigmoid(plain.eval()(**tokenizer(*pair, return_tensors="pt")).logits[0, 0])
        assert CrossEncoder(folder).scores([pair])[0] == pytest.approx(float(expected), abs=1e-3)


def digests(story: Story, where: str, size: int, model: Any) -> tuple[dict[str, Any], str]:
    with story.open(cross_encoder=model, runs=story.folder / where, shard_requests=size) as retriever:
        asked = [
            {"project": "shop", "purpose": "answer-question", "question": f"{QUESTION} {word}"} for word in WORDS[:5]
        ]
        done = retriever.run(asked)
    run = Runs(story.folder / where).open(done.run_id)
    assert not verify(Runs(story.folder / where), done.run_id).problems
    return {each["request_id"]: each["snapshot_digest"] for each in run.table("snapshots").to_pylist()}, done.run_id


def test_digests_do_not_depend_on_the_size_of_shards_and_name_the_model(
    story: Story, folder: Path, tmp_path: Path
) -> None:
    whole, _ = digests(story, "whole", 5, folder)
    assert digests(story, "single", 1, folder)[0] == whole
    other, _ = digests(story, "other", 5, model_at(tmp_path / "model", seed=1))
    assert not set(other.values()) & set(whole.values())


def test_a_run_is_not_resumed_with_another_model(story: Story) -> None:
    asked = [{"project": "shop", "purpose": "answer-question", "question": f"{QUESTION} {word}"} for word in WORDS[:2]]
    runs = Runs(story.folder / "runs")
    with story.open(cross_encoder=Reader(), runs=runs, shard_requests=1) as retriever:
        run_id = retriever._staged(asked).run_id
    for other in (Reader(name="reader/2"), None):
        expected = pytest.raises(StoreError, match=rf"Expected the cross_encoder .*, got another - at {run_id}")
        with story.open(cross_encoder=other, runs=runs, shard_requests=1) as retriever, expected:
            retriever.run(resume=run_id)
    with story.open(cross_encoder=Reader(), runs=runs, shard_requests=1) as retriever:
        assert retriever.run(resume=run_id).statuses == {"ok": 2}


def test_a_loaded_model_travels_by_its_folder(folder: Path, tmp_path: Path) -> None:
    model = CrossEncoder(model_at(tmp_path / "moving"))
    sent = pickle.dumps(model)
    assert len(sent) < 1_000
    assert pickle.loads(sent).scores(PAIRS[:2]).tolist() == model.scores(PAIRS[:2]).tolist()
    weights = tmp_path / "moving" / "model.safetensors"
    (model_at(tmp_path / "second", seed=3) / "model.safetensors").replace(weights)
    with pytest.raises(ModelError, match=r"Expected the model \w+.*, got \w+.*"):
        pickle.loads(sent)


class Broken(Reader):
    def scores(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        raise RuntimeError("no scores today")


def test_a_model_that_fails_leaves_the_answer_without_its_term(story: Story) -> None:
    found, off = ask(story, Broken()), ask(story)
    assert found.status == "partial"
    assert places(found) == places(off)
    (failed,) = [each for each in found.conditions if each["condition"] == "lane_failed"]
    assert (failed["subject"], failed["action"]) == ("cross_encoder", "degrade")
    assert failed["message"] == "Expected no error, got RuntimeError - in cross_encoder"


def test_a_mode_that_names_a_cross_encoder_uses_one_or_says_that_none_is_set(story: Story, tmp_path: Path) -> None:
    policies = policies_with(tmp_path / "own", purpose=unchanged)
    off, on = (ask(story, model, mode="planning", policies=policies) for model in (None, Reader()))
    told = [each for each in off.conditions if each["subject"] == "cross_encoder"]
    assert [(each["condition"], each["message"]) for each in told] == [("lane_off", NO_CROSS_ENCODER)]
    assert not [each for each in on.conditions if each["subject"] == "cross_encoder"]
    assert places(off)[0] == "docs/a.md"
    assert places(on)[0] == "docs/b.md"
