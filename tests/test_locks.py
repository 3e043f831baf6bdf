"""Locks: one writer at a time in a folder; a store that does not create an object once is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from failing_store import FailingStore
from scoped_retrieval.nodes.errors import BusyError, StoreError
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.storage.file_access import held


def test_a_second_writer_is_told_and_comes_in_afterwards(tmp_path: Path):
    place = tmp_path / "LOCK"
    with held(place, 0, "busy"), pytest.raises(BusyError, match="busy"), held(place, 0, "busy"):
        pass
    with held(place, 0, "busy"):
        pass


def test_a_lock_is_given_up_where_the_writer_fails(tmp_path: Path):
    place = tmp_path / "LOCK"
    with pytest.raises(ZeroDivisionError), held(place, 0, "busy"):
        raise ZeroDivisionError
    with held(place, 0, "busy"):
        pass


def test_a_store_that_overwrites_what_it_should_create_takes_no_corpus(tmp_path: Path):
    pytest.importorskip("fsspec", reason="needs the extra remote")

    class Overwriting(FailingStore):
        def pipe_file(self, path: str, data: bytes, mode: str = "overwrite") -> None:
            self._store.pipe_file(path, data)

    place = Overwriting().at(f"locks/{tmp_path.name}")
    with pytest.raises(StoreError, match="Expected a store that creates an object once"):
        Corpus.create(place)
    assert place.files() == []
