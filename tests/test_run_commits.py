"""A line of LOG is the commit: whatever a process or a machine that ends leaves, what was acknowledged is there, nothing is
half there, and nothing looks like tampering. Every change of the folder is tried under TEST_PROFILE=full, else a fraction.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from line_tables import line_tables
from power_cut import each_cut
from scoped_retrieval.nodes.errors import ErasedError, ScopedRetrievalError
from scoped_retrieval.pipeline.runs import (
    LiveRun,
    Run,
    Runs,
    RunTakenError,
    compact,
    erase_evidence,
    packed,
    replay,
    verify,
)
from scoped_retrieval.pipeline.runs.files import files_below
from scoped_retrieval.pipeline.storage.durable import entries
from scoped_retrieval.pipeline.storage.places import Place, place_of
from written_runs import batch, file_of, finished, live, session_of, staged

FULL = os.environ.get("TEST_PROFILE") == "full"
EVIDENCE = {*line_tables(3)["trimmed"]["evidence_id"].to_pylist()}
Action = Callable[[Runs], Iterator[str]]
"""Does something to a folder of runs, and yields the id of each snapshot once it is acknowledged."""


def ask(store: Runs) -> Iterator[str]:
    session = session_of(store)
    for numbers in ((1,), (2, 3)):
        names = session.take(len(numbers))
        session.write(packed(line_tables(len(numbers), run_id=session.run_id, first=numbers[0])))
        yield from names


def run(store: Runs) -> Iterator[str]:
    begun = store.unfinished()
    yield from finished(store.resume(begun[0]) if begun else staged(store)).snapshots["snapshot_id"].to_pylist()


def uncompacted(store: Runs) -> list[str]:
    return [run.run_id for run in store.list() if run.files]


def compacted(store: Runs) -> Iterator[str]:
    for run_id in uncompacted(store):
        yield from compact(store, run_id).snapshots["snapshot_id"].to_pylist()


def erased(store: Runs) -> Iterator[str]:
    erase_evidence(store, EVIDENCE, reason="asked by its owner")
    yield from ()


def files_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("power", [False, True], ids=["killed", "power cut"])
@pytest.mark.parametrize(("action", "every"), [(ask, 9), (run, 41), (compacted, 43), (erased, 41)])
def test_what_was_acknowledged_stands_and_the_rest_is_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: Action, every: int, power: bool
) -> None:
    start = tmp_path / "start"
    numbers = count(1)
    for module in ("live", "store"):
        name = f"scoped_retrieval.pipeline.runs.{module}.new_run_id"
        monkeypatch.setattr(
            name, lambda _: f"run-{next(numbers):018d}"
        )  # the same at each cut: their tables are made once
    store = Runs(start)
    before = [*live(store).kept, *batch(store).snapshots["snapshot_id"].to_pylist()]
    acknowledged: list[str] = []

    def act(folder: Path) -> None:
        nonlocal numbers
        acknowledged.clear()
        numbers = count(100)
        acknowledged.extend(action(Runs(folder)))  # one by one, so that an end keeps those before it

    every = 1 if FULL else every
    for step, done, left in each_cut(start, tmp_path, act, power=power, at_most=1000, every=every):
        store = Runs(left)
        if action is erased and not done:
            assert {verify(store, one).status for one in store.run_ids()} <= {"ok", "erased", "changed"}
            problems = [problem.detail for one in store.run_ids() for problem in verify(store, one).problems]
            assert all("run the erasure again" in detail for detail in problems), step
        else:
            assert {verify(store, one).status for one in store.run_ids()} <= {"ok", "erased"}, step
        for name in (*before, *acknowledged):
            assert replay(store, name).status in (("ok", "erased") if action is erased else ("ok",)), step
        again = [*action(store)]
        assert not store.unfinished() and not (action is compacted and uncompacted(store))
        names = [name for one in store.list() for name in one.snapshots["snapshot_id"].to_pylist()]
        assert {*before, *acknowledged, *again} <= {*names} and len(names) == len({*names})
        assert {verify(store, one).status for one in store.run_ids()} == {"erased" if action is erased else "ok"}, step


def test_an_erasure_sweeps_what_no_line_names_with_what_it_contains(tmp_path: Path) -> None:
    store = Runs(tmp_path)
    run_id = live(store).run_id
    crashed = file_of(store.open(run_id), 1).with_name(f"{'0' * 64}.arrow.lz4")
    crashed.write_bytes(b"what a crash left")
    (tmp_path / "live/.tmp-1").write_bytes(b"what a crash left")
    assert verify(store, run_id).ok and len(store.open(run_id).kept) == 2
    erase_evidence(store, ["ev-none"], reason="none")
    assert b"what a crash left" not in files_of(tmp_path)
    assert verify(store, run_id).ok


@pytest.fixture(params=["folder", "object store"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return tmp_path / "runs" if request.param == "folder" else place_of(f"memory://{uuid.uuid4().hex}")


def between(store: Runs, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object], of: str = "live") -> None:
    """Let something happen after a writer has put its files, and before its line."""
    commit, done = store.log.commit, list[bool]()

    def paused(kind: str, *args: object, **how: object) -> object:
        if kind == of and not done:
            done.append(True)
            act()
        return commit(kind, *args, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(store.log, "commit", paused)


def one_more(session: LiveRun, number: int, **how: Callable[[], None]) -> None:
    session.take(1)
    session.write(packed(line_tables(1, run_id=session.run_id, first=number)), **how)


def test_a_session_that_is_paused_before_its_line_loses_nothing_to_a_compaction(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Runs(place)
    session = session_of(store)
    one_more(session, 1)
    between(store, monkeypatch, lambda: compact(Runs(place), session.run_id))
    one_more(session, 2)
    (run_id,) = store.run_ids()
    assert store.open(run_id).snapshots.num_rows == 2
    assert verify(store, run_id).ok


def test_no_erased_text_gets_a_line_after_its_erasure(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    store, gone = Runs(place), list[bool]()
    session = session_of(store)

    def confirmed() -> None:
        if gone:
            raise ErasedError("Expected evidence that is not erased, got an erasure")

    def erasure() -> None:
        gone.append(True)  # the corpus is erased first
        erase_evidence(Runs(place), EVIDENCE, reason="asked by its owner")

    between(store, monkeypatch, erasure)
    with pytest.raises(RunTakenError):
        one_more(session, 1, confirmed=confirmed)
    with pytest.raises(ErasedError):
        one_more(session_of(store), 1, confirmed=confirmed)
    assert store.run_ids() == () and not entries(store.path / "live")


def test_a_session_whose_file_is_swept_before_its_line_is_told_so(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Runs(place)
    session = session_of(store)
    one_more(session, 1)
    between(store, monkeypatch, Runs(place).sweep)
    with pytest.raises(RunTakenError):
        one_more(session, 2)
    one_more(session, 3)
    assert [name[-4:] for name in store.open(session.run_id).kept] == ["0001", "0003"]
    assert verify(store, session.run_id).ok


def test_two_who_finish_a_run_write_one_line(place: Place) -> None:
    store = Runs(place)
    one = staged(store)
    other = Runs(place).resume(one.run_id)
    ended = list[Run]()
    for each in (one, other):  # the second one writes after the first one has finished
        each.write(0, line_tables(2, run_id=one.run_id))
        ended.append(each.finish())
    assert ended[0].lines == ended[1].lines
    assert [line.body["kind"] for line in store.log.lines()] == ["begin", "shard", "run"]
    assert verify(store, one.run_id).ok


@pytest.mark.parametrize(
    ("act", "of"),
    [(Runs.sweep, "begin"), (Runs.sweep, "shard"), (lambda store: store.discard(store.unfinished()[0]), "shard")],
    ids=["staged and swept", "swept", "discarded"],
)
def test_what_is_swept_before_its_line_is_written_again_unless_its_run_was_discarded(
    place: Place, monkeypatch: pytest.MonkeyPatch, act: Callable[[Runs], None], of: str
) -> None:
    store = Runs(place)
    between(store, monkeypatch, lambda: act(Runs(place)), of)
    begun = staged(store)
    if act is Runs.sweep:
        assert verify(store, finished(begun).run_id).ok
    else:
        with pytest.raises(ErasedError):
            begun.write(0, line_tables(2, run_id=begun.run_id))
        assert store.unfinished() == [] and not [*files_below(begun.folder)]


def test_graphs_and_tables_of_sessions_are_stored_once(tmp_path: Path) -> None:
    store = Runs(tmp_path)
    for _ in range(3):
        live(store, 1)
    assert len([*(tmp_path / "shared").iterdir()]) == 2
    assert len([*(tmp_path / "live").iterdir()]) == 3


def test_no_flipped_bit_of_a_session_is_answered(tmp_path: Path) -> None:
    store = Runs(tmp_path)
    run_id = live(store, 1).run_id
    (name,) = store.open(run_id).kept
    right = replay(store, name)
    paths = [path for path in tmp_path.rglob("*") if path.is_file() and not path.name.startswith(".")]
    for number in range(120):
        path = paths[number % len(paths)]
        data = bytearray(path.read_bytes())
        at = (number * 7919) % (len(data) * 8)
        data[at // 8] ^= 1 << at % 8
        whole = path.read_bytes()
        path.write_bytes(data)
        try:
            found = replay(Runs(tmp_path), name)
        except (ScopedRetrievalError, OSError, ValueError):
            found = None
        assert found is None or (found.block, found.status) == (right.block, right.status), (path.name, at)
        path.write_bytes(whole)


@pytest.mark.parametrize("hit", [b'"live"', b'"run_id":"'], ids=["whose run is told", "whose run is not told"])
def test_a_changed_line_keeps_no_other_run_from_an_erasure(tmp_path: Path, hit: bytes):
    store = Runs(tmp_path)
    changed, other = live(store, 1), live(store, 1)
    log = tmp_path / "LOG"
    log.write_bytes(log.read_bytes().replace(hit, b"X" * len(hit), 1))
    done = erase_evidence(store, EVIDENCE, reason="test")
    assert (done.runs, done.unreadable) == ([other.run_id], [changed.run_id if hit == b'"live"' else "LOG"])
    (name,) = other.kept
    assert replay(store, name).status == "erased"
    assert file_of(changed, 1).exists(), "what a changed line names is unknown"
