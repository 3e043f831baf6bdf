"""Grants, corpora and runs are on disk when whoever writes them is told so: the power goes right behind the last change.

The cuts before are those of `test_corpus_crashes` and `test_run_commits`; here the folders are new, with all above them.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from power_cut import each_cut, nothing
from role_corpus import evidence_rows
from scoped_retrieval.nodes.errors import ScopedRetrievalError
from scoped_retrieval.pipeline.config.grants import load_grants, write_starter_grants
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.runs import Runs, compact, verify
from scoped_retrieval.pipeline.sources.importing import normalize
from scoped_retrieval.pipeline.storage.durable import write_atomic
from written_runs import batch, live

NOON = datetime(2025, 6, 1, 12, tzinfo=UTC)

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="paths of handles come from /proc")

Check = Callable[[Callable[[Path], bool]], None]


@pytest.fixture(name="cut")
def cut_fixture(tmp_path: Path) -> Check:
    """Fails unless everything is there after the power went, where the syncs of some folders are left out."""

    def written(folder: Path) -> None:
        write_starter_grants(folder / "new/grants.yaml", "ana", "shop")
        rows, _ = normalize(evidence_rows("shop"), project="shop", principal="ana", now=NOON)
        Corpus.create(folder / "a/corpus").publish(rows, now=NOON)
        store = Runs(folder / "runs")
        batch(store)
        compact(store, live(store).run_id)

    def cut(forgetful: Callable[[Path], bool]) -> None:
        (tmp_path / "start").mkdir()
        how = {"at_most": 20_000, "every": 10_000, "forgetful": forgetful}
        for _, done, left in each_cut(tmp_path / "start", tmp_path, written, power=True, **how):
            if done:
                assert load_grants(left / "new/grants.yaml").projects("ana") == ["shop"]
                corpus, store = Corpus.open(left / "a/corpus"), Runs(left / "runs", create=False)
                assert (corpus.verify(), corpus.frame().evidence.num_rows > 0) == ([], True)
                assert [verify(store, run_id).status for run_id in store.run_ids()] == ["ok", "ok"]

    return cut


def test_what_was_acknowledged_is_on_disk_in_new_folders(cut: Check) -> None:
    cut(nothing)


@pytest.mark.parametrize("name", ["new", "corpus", "packs", "runs", "tables", "record", "run-"])
def test_leaving_out_the_sync_of_one_folder_would_be_found(cut: Check, name: str) -> None:
    with pytest.raises((AssertionError, ScopedRetrievalError, OSError)):
        cut(lambda path: path.is_dir() and path.name.startswith(name))


def test_a_file_keeps_what_it_was_where_the_write_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "file").write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space left on device"):
        write_atomic(tmp_path / "file", b"new")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"file": b"old"}


def test_a_private_file_keeps_the_mode_that_somebody_gave_it(tmp_path: Path):
    for mode in (None, 0o640):
        if mode is not None:
            (tmp_path / "file").chmod(mode)
        write_atomic(tmp_path / "file", b"new", private=True)
        assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == (mode or 0o600)
