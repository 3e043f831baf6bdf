"""What-if gives what a fresh run gives at the pinned generation, and no user sees more than their current rights allow."""

from __future__ import annotations

from typing import Any

import pytest
from audited_runs import ASKED, audited, settings_of
from scoped_retrieval.nodes.errors import AccessError, ErasedError, InputError, ModelError, StoreError
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.reading.auditing import rerun
from scoped_retrieval.pipeline.reading.auditing.what_if import what_if
from scoped_retrieval.pipeline.runs import Runs
from stand_in_encoder import WordsByTheirStart

CHANGES = [
    {"weights": {"lexical": 0.9}},
    {"weights": {"semantic": 0.0, "recency": 0.8, "actionability": 0.0}},
    {"weights": "document-000"},
    {"max_items": 2},
    {"max_tokens": 300},
    {"max_chars": 700, "max_chunk_tokens": 20},
    {"max_items_per_source": 1},
    {"merge_policy": "authority-first"},
    {"output_shape": "citation-pack"},
    {"max_tokens": 400},
    {"pool_k": 3},
    {"lane_k": 1},
    {"role": "architect"},
]


@pytest.mark.parametrize("changes", CHANGES, ids=str)
def test_it_gives_what_a_fresh_run_gives(world, changes: dict[str, Any]):
    found = what_if(settings_of(world.folder), world.ana, changes)
    with world.story.open() as retriever:
        fresh = retriever.retrieve(ASKED | changes)
    assert list(found.blocks.values()) == [fresh.block]
    for name in ("ranked", "packs", "trimmed", "trims", "decisions"):
        ours, theirs = (table.drop_columns(["request_id"]) for table in (found.tables[name], fresh.tables[name]))
        assert ours.to_pylist() == theirs.to_pylist(), name


def test_the_encoder_of_the_run_has_to_answer(tmp_path, monkeypatch):
    encoder = WordsByTheirStart()
    world = audited(tmp_path, encoder=encoder)
    monkeypatch.setattr(rerun, "encoder_of", lambda *_: None)
    with pytest.raises(ModelError, match="Expected the encoder of the run"):
        what_if(settings_of(tmp_path), world.ana, {"weights": {"semantic": 5.0}})
    monkeypatch.setattr(rerun, "encoder_of", lambda *_: encoder)
    found = what_if(settings_of(tmp_path), world.ana, {"weights": {"semantic": 5.0}})
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
