"""Locks: one writer at a time, in a folder and on an object store, and one that was stopped for too long publishes nothing."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path

import pytest
from failing_store import FailingStore
from scoped_retrieval.nodes.errors import BusyError, StoreError
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.storage import locks
from scoped_retrieval.pipeline.storage.locks import Lease, confirm, held
from scoped_retrieval.pipeline.storage.places import ObjectPlace, Place

pytest.importorskip("fsspec", reason="needs the extra remote")


@pytest.fixture
def prefix(tmp_path: Path) -> ObjectPlace:
    return FailingStore().at(f"locks/{tmp_path.name}")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(params=["folder", "store"])
def place(request: pytest.FixtureRequest, tmp_path: Path, prefix: ObjectPlace) -> Place:
    return (tmp_path if request.param == "folder" else prefix) / "LOCK"


def test_a_second_writer_is_told_and_comes_in_afterwards(place: Place):
    with held(place, 0, "busy"):
        confirm(place)
        with pytest.raises(BusyError, match="busy"), held(place, 0, "busy"):
            pass
        confirm(place)
    with held(place, 0, "busy"):
        confirm(place)


@pytest.mark.parametrize("hint", ["", "wait for the other writer to finish."])
def test_who_meets_a_lease_is_told_when_one_of_a_dead_writer_ends(tmp_path: Path, prefix: ObjectPlace, hint: str):
    lease = "its writer may have crashed: its lease then expires within 60 seconds; retry after that"
    for place, said in (
        (tmp_path / "LOCK", hint),
        (prefix / "LOCK", f"{hint.rstrip('.')}; {lease}" if hint else lease),
    ):
        with held(place, 0, "busy"), pytest.raises(BusyError) as raised, held(place, 0, "busy", hint):
            pass
        assert raised.value.hint == said


def test_a_lock_is_given_up_where_the_writer_fails(place: Place):
    with pytest.raises(ZeroDivisionError), held(place, 0, "busy"):
        raise ZeroDivisionError
    with held(place, 0, "busy"):
        pass


def test_a_lease_of_a_writer_that_died_expires_and_a_live_one_does_not(prefix: ObjectPlace):
    clock = Clock()
    first, second = Lease(prefix, clock), Lease(prefix, clock)
    assert first.acquire()
    clock.now += first.ttl - 1
    first.renew()
    clock.now += first.ttl - 1
    assert not second.acquire() and first.confirmed()
    clock.now += 2
    assert second.acquire() and second.confirmed()
    assert not first.confirmed()


def test_a_number_whose_creation_was_answered_as_a_failure_is_held_all_the_same(tmp_path: Path):
    """A client asks again when it got no answer, and learns that its own object exists."""
    store = FailingStore(error=FileExistsError())
    place = store.at(f"locks/{tmp_path.name}")
    locks.expect_create(place)
    store.puts, store.takes = 0, True
    assert Lease(place).acquire()


def test_numbers_that_were_given_up_do_not_pile_up(prefix: ObjectPlace):
    for number in (1, 2, 3):
        with held(prefix / "LOCK", 0, "busy"):
            pass
        assert [entry.name for entry in (prefix / "LOCK.lease").iterdir()] == [f"{number:06d}"]


def test_a_lease_is_renewed_for_as_long_as_it_is_held(prefix: ObjectPlace, monkeypatch: pytest.MonkeyPatch):
    renewed = threading.Event()
    monkeypatch.setattr(locks, "RENEWED", 0.001)
    monkeypatch.setattr(Lease, "renew", lambda lease: renewed.set())
    with held(prefix / "LOCK", 0, "busy"):
        assert renewed.wait(60)
    assert "lease" not in {thread.name for thread in threading.enumerate()}


def test_a_lock_that_the_store_did_not_give_up_is_not_confirmed_afterwards(
    prefix: ObjectPlace, monkeypatch: pytest.MonkeyPatch
):
    def gone(_: Lease) -> None:
        raise OSError

    monkeypatch.setattr(Lease, "release", gone)
    with held(prefix / "LOCK", 0, "busy"):
        pass
    with pytest.raises(BusyError, match="Lost the lock"):
        confirm(prefix / "LOCK")


def test_a_renewal_that_the_store_did_not_take_holds_nothing(tmp_path: Path):
    store, clock = FailingStore(), Clock()
    first, second = (Lease(store.at(f"locks/{tmp_path.name}"), clock) for _ in range(2))
    assert first.acquire()
    clock.now += first.ttl / 2
    store.puts = 0
    with pytest.raises(StoreError):
        first.renew()
    assert first.confirmed()
    clock.now += first.ttl / 2
    assert not first.confirmed()
    store.puts = None
    assert second.acquire()


def test_a_holder_that_was_overtaken_neither_renews_nor_releases_the_other_one(prefix: ObjectPlace):
    clock = Clock()
    first, second, third = (Lease(prefix, clock) for _ in range(3))
    assert first.acquire()
    clock.now += first.ttl
    assert second.acquire()
    first.renew()
    first.release()
    assert second.confirmed() and not third.acquire()
    second.release()
    assert third.acquire() and third.number == 3


def test_a_holder_whose_clock_is_slow_is_not_confirmed_once_another_one_holds(prefix: ObjectPlace):
    slow, fast = Clock(), Clock()
    first, second = Lease(prefix, slow), Lease(prefix, fast)
    assert first.acquire()
    fast.now += first.ttl
    assert second.acquire()
    assert not first.confirmed() and second.confirmed()


def test_a_number_made_again_after_older_ones_were_removed_holds_nothing(prefix: ObjectPlace):
    clock = Clock()
    late, holder = Lease(prefix, clock), Lease(prefix, clock)
    for _ in range(2):
        assert holder.acquire()
        holder.release()
    assert holder.acquire() and holder.number == 3
    looked = iter([1])  # it saw the first number before the others were there
    seen = late._newest
    late._newest = lambda: next(looked, None) or seen()  # type: ignore[method-assign]
    assert not late.acquire()
    assert holder.confirmed()


def test_a_lost_lease_lets_nothing_be_published(prefix: ObjectPlace):
    place = prefix / "LOCK"
    with held(place, 0, "busy"):
        locks._held.get()[str(place)].expires = 0.0
        with pytest.raises(BusyError, match="Lost the lock"):
            confirm(place)


def test_a_thread_whose_lease_another_one_of_its_process_took_publishes_nothing(prefix: ObjectPlace):
    place, told = prefix / "LOCK", []

    def other() -> None:
        with held(place, 0, "busy"):
            confirm(place)
            with pytest.raises(BusyError, match="Lost the lock"):
                held_here.run(confirm, place)
            told.append("held")

    with held(place, 0, "busy"):
        held_here = copy_context()
        next((prefix / "LOCK.lease").iterdir()).write_bytes(b"{}")  # it expired while this thread was stopped
        with ThreadPoolExecutor(1) as pool:
            pool.submit(other).result()
        with pytest.raises(BusyError, match="Lost the lock"):
            confirm(place)
    assert told == ["held"]


def test_a_place_that_nobody_locked_lets_nothing_be_published(prefix: ObjectPlace):
    with pytest.raises(BusyError, match="Lost the lock"):
        confirm(prefix / "LOCK")


def test_a_store_that_overwrites_what_it_should_create_takes_no_lock(prefix: ObjectPlace):
    class Overwriting(FailingStore):
        def pipe_file(self, path: str, data: bytes, mode: str = "overwrite") -> None:
            self._store.pipe_file(path, data)

    place = Overwriting().at(f"locks/{prefix.name}/LOCK")
    with pytest.raises(StoreError, match="Expected a store that creates an object once"), held(place, 0, "busy"):
        pass
    with pytest.raises(StoreError, match="Expected a store that creates an object once"):
        Corpus.create(place.parent)
    assert place.parent.files() == []
