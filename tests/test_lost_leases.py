"""A writer that was stopped until its lease ran out publishes nothing and removes nothing: it looks again right before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from corpus_rows import day, import_rows
from scoped_retrieval.nodes.errors import BusyError
from scoped_retrieval.nodes.tables import TABLES
from scoped_retrieval.pipeline.corpus import Corpus, Selection, erasing, manifest
from scoped_retrieval.pipeline.runs import LiveRun, RunStore, compact, erasing_unfinished, verify
from scoped_retrieval.pipeline.runs import live as live_runs
from scoped_retrieval.pipeline.runs import store as run_store
from scoped_retrieval.pipeline.runs.live import RunTakenError
from scoped_retrieval.pipeline.runs.parts import PER_RUN
from written_runs import LINEAGE, NOON, Maker

ROWS = ({"text": "first", "source_id": "doc:first"}, {"text": "second"})


def lost(monkeypatch: pytest.MonkeyPatch, module: ModuleType) -> None:
    """The lease is another's by the time that this module looks at it."""

    def confirm(_: Any) -> None:
        raise BusyError("Lost the lock - at LOCK")

    monkeypatch.setattr(module, "confirm", confirm)


def files(folder: Path) -> dict[str, bytes]:
    """Every file below a folder but locks, with its bytes."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file() and "LOCK" not in path.name)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found if ".locks" not in path.parts}


@pytest.mark.parametrize(
    ("module", "action"),
    [
        (manifest, lambda corpus: corpus.publish(import_rows({"text": "third"}), now=day(3))),
        (erasing, lambda corpus: corpus.gc(1)),
        (erasing, lambda corpus: corpus.erase(Selection("ana", frozenset({"shop"}), source="doc:first"), now=day(3))),
    ],
    ids=["publish", "gc", "erase"],
)
def test_a_corpus_stays_as_it_was_for_whoever_opens_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: ModuleType, action: Callable[[Corpus], object]
) -> None:
    corpus = Corpus.create(tmp_path)
    for number, row in enumerate(ROWS, start=1):
        corpus.publish(import_rows(row), now=day(number))
    stood = {name: data for name, data in files(tmp_path).items() if name.startswith(("packs", "generations"))}
    lost(monkeypatch, module)
    with pytest.raises(BusyError, match="Lost the lock"):
        action(corpus)
    assert stood.items() <= files(tmp_path).items()
    if module is manifest:
        assert Corpus.open(tmp_path).frame().evidence.num_rows == 2


def test_a_run_gets_no_manifest_and_loses_no_shard(
    tmp_path: Path, line_tables: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, tables = RunStore(tmp_path), line_tables(2)
    staged = store.stage(
        tables["requests"], TABLES["failures"].empty(), pa.array([0, 0]), now=NOON,
        inputs={name: tables[name] for name in PER_RUN}, settings={}, lineage=LINEAGE,
    )  # fmt: skip
    staged.write(0, line_tables(2, run_id=staged.run_id))
    before = files(tmp_path)
    for module in (run_store, erasing_unfinished):
        lost(monkeypatch, module)
    with pytest.raises(BusyError):
        staged.finish()
    with pytest.raises(BusyError):
        erasing_unfinished.drop_shards(store, staged.run_id, pa.array(["shown-r0001"]), dry_run=False)
    assert files(tmp_path) == before


def test_a_session_leaves_its_run_to_who_took_it(
    tmp_path: Path, line_tables: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = RunStore(tmp_path)
    session = LiveRun(store, now=NOON, inputs={n: line_tables(1)[n] for n in PER_RUN}, lineage=LINEAGE)
    session.write(line_tables(1, run_id=session.run_id))
    with monkeypatch.context() as patched:
        lost(patched, live_runs)
        with pytest.raises(BusyError):
            session.write(line_tables(1, run_id=session.run_id, first=2))
    with pytest.raises(RunTakenError):
        session.write(line_tables(1, run_id=session.run_id, first=3))
    assert [line.body["file"] for line in store.log.lines()] == ["000001.arrow.lz4"]
    assert compact(store, session.run_id).snapshots["request_id"].to_pylist() == ["r0001", "r0002"]
    assert verify(store, session.run_id).ok
