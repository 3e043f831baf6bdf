"""Places: an object store answers as a folder would, and says what to do where it cannot."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import pytest
from failing_store import FailingStore
from scoped_retrieval.nodes.errors import InputError, StoreError
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.storage.durable import make_folders
from scoped_retrieval.pipeline.storage.places import ObjectPlace, place_of

pytest.importorskip("fsspec", reason="needs the extra remote")


@pytest.fixture(params=["memory", "s3"])
def prefix(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectPlace:
    base = "memory://places" if request.param == "memory" else request.getfixturevalue("s3")
    place = place_of(f"{base}/{tmp_path.name}")
    assert isinstance(place, ObjectPlace)
    return place


def test_what_was_put_is_read_listed_and_removed_as_in_a_folder(prefix: ObjectPlace, tmp_path: Path):
    for folder in (tmp_path / "folder", prefix):
        for name in ("a.json", "b/c.json", "b/d/e.json"):
            make_folders((folder / name).parent)
            (folder / name).write_bytes(name.encode())
        assert sorted(entry.name for entry in folder.iterdir()) == ["a.json", "b"]
        assert [(entry.is_dir(), entry.is_file()) for entry in sorted(folder.iterdir())] == [
            (False, True),
            (True, False),
        ]
        assert (folder / "b").is_dir() and not (folder / "b").is_file() and not (folder / "none").exists()
        assert (folder / "b/c.json").read_bytes() == b"b/c.json" and (folder / "b/c.json").stat().st_size == 8
        (folder / "a.json").unlink()
        (folder / "a.json").unlink(missing_ok=True)
        assert not (folder / "a.json").exists()
        with pytest.raises(FileNotFoundError):
            (folder / "a.json").read_bytes()


def test_everything_below_a_prefix_goes_and_nothing_beside_it(prefix: ObjectPlace):
    for name in ("run/a", "run/b/c", "running"):
        (prefix / name).write_bytes(name.encode())
    assert (prefix / "run").files() == ["a", "b/c"]
    assert prefix.read_all(["run/b/c", "run/a"]) == [b"run/b/c", b"run/a"]
    (prefix / "run").remove_below()
    assert prefix.files() == ["running"]


def test_an_object_is_created_once(prefix: ObjectPlace):
    (prefix / "one").create(b"first")
    with pytest.raises(FileExistsError):
        (prefix / "one").create(b"second")
    assert (prefix / "one").read_bytes() == b"first"


def test_a_place_travels_by_its_url(prefix: ObjectPlace):
    assert pickle.loads(pickle.dumps(prefix / "x")) == prefix / "x"
    assert place_of(str(prefix)) == prefix == (prefix / "x").parent


def test_a_package_that_is_missing_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, "s3", raising=False)
    with pytest.raises(InputError, match="Expected a package for s3, got none") as caught:
        place_of("s3://bucket/corpus")
    assert caught.value.hint == "install scoped-retrieval[remote]"


def test_a_bucket_that_is_not_there_is_named(s3: str):
    place = place_of("s3://nothing/corpus")
    for call in (lambda: (place / "CURRENT").read_bytes(), lambda: (place / "x").write_bytes(b"1"), place.is_dir):
        with pytest.raises(StoreError, match="Expected a bucket, got none - at s3://nothing"):
            call()


def test_a_store_that_overwrites_what_it_should_create_takes_no_corpus(tmp_path: Path):
    class Overwriting(FailingStore):
        def pipe_file(self, path: str, data: bytes, mode: str = "overwrite") -> None:
            self._store.pipe_file(path, data)

    place = Overwriting().at(f"locks/{tmp_path.name}")
    with pytest.raises(StoreError, match="Expected a store that creates an object once"):
        Corpus.create(place)
    assert place.files() == []
