"""What-if: frozen tables give what a fresh run gives, no lane runs, and no user sees more than their current rights allow."""

from __future__ import annotations

from typing import Any

import pytest
from audited_runs import ASKED, audited, settings_of
from scoped_retrieval.nodes import candidate_recall
from scoped_retrieval.nodes.errors import AccessError, ErasedError, InputError, StoreError
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.line import driver
from scoped_retrieval.pipeline.reading.auditing.what_if import what_if
from scoped_retrieval.pipeline.runs import Runs
from stand_in_encoder import WordsByTheirStart


@pytest.fixture(name="world", scope="module")
def world_fixture(tmp_path_factory):
    return audited(tmp_path_factory.mktemp("what-if"))


FROZEN = [
    {"weights": {"lexical": 0.9}},
    {"weights": {"semantic": 0.0, "recency": 0.8, "actionability": 0.0}},
    {"weights": "document-000"},
    {"max_items": 2},
    {"max_tokens": 300},
    {"max_chars": 700, "max_chunk_tokens": 20},
    {"max_items_per_source": 1},
    {"merge_policy": "authority-first"},
    {"output_shape": "citation-pack"},
    {"detail": "outline"},
    {"detail": "full", "max_tokens": 400},
]


@pytest.mark.parametrize("changes", FROZEN, ids=str)
def test_frozen_tables_give_what_a_fresh_run_gives(world, changes: dict[str, Any]):
    found = what_if(settings_of(world.folder), world.ana, changes)
    assert found.frozen, found.recalled
    with world.story.open() as retriever:
        fresh = retriever.retrieve(ASKED | changes)
    assert list(found.blocks.values()) == [fresh.block]
    for name in ("ranked", "packs", "trimmed", "trims", "decisions"):
        ours, theirs = (table.drop_columns(["request_id"]) for table in (found.tables[name], fresh.tables[name]))
        assert ours.to_pylist() == theirs.to_pylist(), name


def test_no_lane_runs_where_the_tables_are_frozen(world, monkeypatch):
    monkeypatch.setattr(driver, "_query_vectors", lambda *_: pytest.fail("a text was encoded"))
    for recall in ("recall_symbols", "recall_newest", "recall_vectors", "recall_expansion"):
        monkeypatch.setattr(
            f"scoped_retrieval.nodes.candidate_recall.{recall}", lambda *_, **__: pytest.fail("a lane ran")
        )
    terms, looked_up = candidate_recall.recall_terms, list[str]()

    def recall_terms(*inputs: Any) -> Any:
        looked_up.append(inputs[2])
        return terms(*inputs)

    monkeypatch.setattr(candidate_recall, "recall_terms", recall_terms)
    found = what_if(settings_of(world.folder), world.run, {"weights": {"lexical": 0.9}, "max_items": 2})
    assert found.frozen
    assert len(found.blocks) == 3
    assert looked_up == [
        "lexical"
    ]  # the words of the question and their weights, for terms of rows; no hit comes of it
    stored = Runs(world.folder / "runs").open(world.run)
    for name in ("hits", "candidates"):
        ours, theirs = (t.select(["request_id", "evidence_id"]) for t in (found.tables[name], stored.table(name)))
        assert ours.to_pylist() == theirs.to_pylist()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"pool_k": 3}, "another pool: terms of feedback come from its rows"),
        ({"lane_k": 1}, "sub_queries.lane_k differs"),
        ({"role": "architect"}, "a role has words of its own to search with"),
    ],
)
def test_what_reaches_recall_runs_the_lanes_and_says_so(world, changes, reason):
    found = what_if(settings_of(world.folder), world.ana, changes)
    assert found.recalled == (reason,)
    with world.story.open() as retriever:
        assert list(found.blocks.values()) == [retriever.retrieve(ASKED | changes).block]


def test_the_semantic_term_is_frozen_too(tmp_path):
    world = audited(tmp_path, encoder=WordsByTheirStart())
    found = what_if(settings_of(tmp_path), world.ana, {"weights": {"semantic": 5.0}})
    assert found.frozen
    with world.story.open() as retriever:
        assert list(found.blocks.values()) == [retriever.retrieve(ASKED | {"weights": {"semantic": 5.0}}).block]


def test_the_record_stays_as_it_was(world):
    def files():
        kept = (path for path in (world.folder / "runs").rglob("*") if ".index" not in path.parts)  # a list's cache
        return {path: path.read_bytes() for path in kept if path.is_file()}

    before = files()
    what_if(settings_of(world.folder), world.run, {"max_items": 1})
    assert files() == before


def test_who_may_not_read_a_snapshot_asks_nothing_of_it(world):
    for who, name in (("bob", world.ana), ("eve", world.bob), ("bob", world.run)):
        with pytest.raises(AccessError, match="that you may read"):
            what_if(settings_of(world.folder, who), name, {"max_items": 1})


def test_a_retriever_asks_in_python(world):
    with world.story.open(runs=world.folder / "runs") as retriever:
        found = retriever.what_if(world.ana, max_items=2, weights={"lexical": 0.9})
    assert found.requests["left"].sum() > 0
    with world.story.open() as without, pytest.raises(InputError, match="Expected a runs folder or file, got none"):
        without.what_if(world.ana, max_items=2)


def test_a_generation_that_is_gone_is_named(tmp_path):
    world = audited(tmp_path)
    world.story.tell({**{"source_id": "workspace:story", "text": "later"}})
    Corpus.open(tmp_path / "corpus").gc(keep=1)
    with pytest.raises(StoreError, match="Expected generation"):
        what_if(settings_of(tmp_path), world.ana, {"max_items": 1})


def test_a_request_whose_question_was_erased_cannot_be_asked_again(tmp_path, monkeypatch):
    world = audited(tmp_path)
    run = Runs(tmp_path / "runs").open(world.run)
    texts = run.texts.slice(0, 0)
    monkeypatch.setattr("scoped_retrieval.pipeline.runs.Run.texts", property(lambda _: texts))
    with pytest.raises(ErasedError, match="Expected the texts of the request, got erased ones"):
        what_if(settings_of(tmp_path), world.run, {"max_items": 1})
