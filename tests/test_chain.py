"""A chain of lines: what was acknowledged stays, what was not is nothing, and what was changed is refused."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from failing_store import FailingStore, PausedStore
from hypothesis import given
from hypothesis import strategies as st
from power_cut import each_cut
from scoped_retrieval.nodes.errors import MovedOnError, ScopedRetrievalError, StoreError, VerificationError
from scoped_retrieval.pipeline.storage.chain import START, Chain, LineInDoubtError
from scoped_retrieval.pipeline.storage.places import ObjectPlace, Place, place_of
from scoped_retrieval.pipeline.storage.signing import Signer


def add(chain: Chain, body: Any) -> None:
    """Append a line after whatever line is last."""
    while True:
        with suppress(MovedOnError), chain.writing():
            chain.append(chain.last(), body)
            return


def chain_of(place: Place, *bodies: object, signer: Signer | None = None) -> Chain:
    chain = Chain(place, *([signer] if signer else []))
    for body in bodies:
        add(chain, {"it": body})
    return chain


def bodies(chain: Chain) -> list[Any]:
    return [line.body["it"] for line in chain.lines()]


@pytest.fixture(params=["file", "object store"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return tmp_path / "LOG" if request.param == "file" else place_of(f"memory://{tmp_path.name}/LOG")


def test_lines_are_numbered_and_each_has_the_hash_of_the_line_before(place: Place) -> None:
    lines = chain_of(place, "one", {"two": [1, "ü\n"]}, 3).lines()
    assert [line.number for line in lines] == [1, 2, 3]
    assert [line.previous for line in lines] == [START, lines[0].hash, lines[1].hash]
    chain = Chain(place)
    assert chain.lines() == lines
    assert chain.last() == lines[-1]
    assert list(chain.lines_with('"two"')) == lines[1:2]


def test_a_chain_without_lines_is_empty(place: Place) -> None:
    chain = Chain(place)
    assert (chain.last(), chain.lines()) == (None, [])


def test_of_two_writers_after_the_same_line_the_second_is_told_that_the_chain_moved_on(place: Place) -> None:
    chain_of(place, "one")
    mine, other = Chain(place), Chain(place)
    known = mine.last()
    theirs = other.append(other.last(), {"it": "theirs"})
    with pytest.raises(MovedOnError):
        mine.append(known, {"it": "mine"})
    with pytest.raises(MovedOnError):
        mine.append(None, {"it": "mine"})
    assert mine.append(theirs, {"it": "again"}).number == 3
    assert bodies(Chain(place)) == ["one", "theirs", "again"]


def test_a_writer_that_was_open_when_an_older_copy_was_restored_leaves_no_gap(place: Place) -> None:
    chain = chain_of(place, "one", "two")
    last = chain.last()
    if isinstance(place, ObjectPlace):
        (place / "000000002").unlink()
    else:
        place.write_bytes(place.read_bytes().splitlines(keepends=True)[0])
    with pytest.raises(MovedOnError):
        chain.append(last, {"it": "three"})
    add(chain, {"it": "three"})
    assert bodies(Chain(place)) == ["one", "three"]


def test_writers_at_the_same_time_lose_no_line(place: Place) -> None:
    def write(name: int, chain: Chain) -> None:
        for number in range(10):
            add(chain, {"it": [name, number]})

    shared = Chain(place)
    threads = [threading.Thread(target=write, args=(n, shared if n % 2 else Chain(place))) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = bodies(Chain(place))
    assert sorted(found) == [[name, number] for name in range(4) for number in range(10)]
    assert all([each for each in found if each[0] == name] == [[name, n] for n in range(10)] for name in range(4))


@pytest.mark.parametrize("power", [False, True], ids=["killed", "power cut"])
@pytest.mark.parametrize("before", [0, 1, 3])
def test_a_line_is_acknowledged_or_nothing(tmp_path: Path, before: int, power: bool) -> None:
    (start := tmp_path / "start").mkdir()
    known = [str(number) for number in range(before)]
    chain_of(start / "LOG", *known)
    acknowledged: list[str] = []

    def act(folder: Path) -> None:
        acknowledged.clear()
        for name in ("new", "newer"):
            chain_of(folder / "LOG", name)
            acknowledged.append(name)

    for step, _, left in each_cut(start, tmp_path, act, power=power):
        found = bodies(Chain(left / "LOG"))
        assert found[: before + len(acknowledged)] == [*known, *acknowledged], step
        assert found == [*known, "new", "newer"][: len(found)]
        assert bodies(chain_of(left / "LOG", "after")) == [*found, "after"]


@given(length=st.integers(0, 200), garbage=st.sampled_from([b"", b"\0", b"\0" * 30, b"\0\0}"]))
def test_the_end_of_a_line_that_a_crash_cut_off_is_nothing_and_is_written_again(
    tmp_path_factory: pytest.TempPathFactory, length: int, garbage: bytes
) -> None:
    place = tmp_path_factory.mktemp("chain") / "LOG"
    chain_of(place, "one")
    whole = place.read_bytes()
    chain_of(place, "two")
    place.write_bytes(place.read_bytes()[: len(whole) - 1 + length].rstrip(b"\n") + garbage)
    found = bodies(Chain(place))
    assert found in (["one"], ["one", "two"])
    assert bodies(chain_of(place, "three")) == [*found, "three"]


def test_no_flipped_bit_goes_unnoticed_or_takes_a_line_away(tmp_path: Path) -> None:
    place = tmp_path / "LOG"
    chain_of(place, "one", "two")
    data = place.read_bytes()
    for at in range(len(data)):
        for bit in (0, 3, 7):
            place.write_bytes(data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :])
            try:
                found = bodies(Chain(place)), Chain(place).last().body["it"]  # type: ignore[union-attr]
            except VerificationError:
                continue
            assert found == (["one", "two"], "two"), (at, bit)
            assert bodies(chain_of(place, "three")) == ["one", "two", "three"]


def test_a_missing_or_exchanged_line_is_noticed(place: Place) -> None:
    chain_of(place, "one", "two", "three")
    if isinstance(place, ObjectPlace):
        (place / "000000002").write_bytes((place / "000000001").read_bytes())
    else:
        one, _, three = place.read_bytes().splitlines(keepends=True)
        place.write_bytes(one + three)
    with pytest.raises(VerificationError):
        Chain(place).lines()


def test_a_disk_that_takes_no_more_leaves_the_chain_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    chain = chain_of(tmp_path / "LOG", "one")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(StoreError):
        patch.setattr(os, "fsync", full)
        add(chain, {"it": "two"})
    assert bodies(chain) == ["one"]
    assert bodies(chain_of(tmp_path / "LOG", "two")) == ["one", "two"]


@pytest.mark.parametrize(
    ("takes", "silent", "told"),
    [(True, False, None), (False, False, StoreError), (True, True, LineInDoubtError)],
    ids=["taken", "refused", "silent"],
)
def test_a_store_whose_response_is_lost(tmp_path: Path, takes: bool, silent: bool, told: type | None) -> None:
    store = FailingStore()
    place = store.at(f"{tmp_path.name}/LOG")
    chain = chain_of(place, "one")
    store.puts, store.takes, store.silent = 0, takes, silent
    got = None
    try:
        chain.append(chain.last(), {"it": "two"})
    except ScopedRetrievalError as error:
        got = type(error)
    store.puts, store.silent = None, False
    assert got is told
    assert bodies(Chain(place)) == (["one", "two"] if takes else ["one"])


def test_a_writer_paused_before_any_call_of_the_store_wins_or_is_told(tmp_path: Path) -> None:
    for at in range(20):
        name = f"{tmp_path.name}-{at}/LOG"
        chain_of(place_of(f"memory://{name}"), "one")
        store = PausedStore(lambda name=name: chain_of(place_of(f"memory://{name}"), "theirs"), at)
        mine = Chain(store.at(name))
        try:
            line = mine.append(mine.last(), {"it": "mine"})
        except MovedOnError:
            assert bodies(Chain(place_of(f"memory://{name}"))) == ["one", "theirs"]
        else:
            assert bodies(Chain(place_of(f"memory://{name}")))[line.number - 1] == "mine"
        if store.calls >= 0:  # there are no more calls
            return
    pytest.fail("an append takes a few calls")


@pytest.fixture
def signer(tmp_path: Path) -> Signer:
    pytest.importorskip("cryptography", reason="needs the extra sign")
    from signing_keys import keys

    (tmp_path / "keys").mkdir()
    private, public = keys(tmp_path / "keys")
    return Signer(private, public)


def test_a_line_that_the_key_did_not_sign_is_refused(place: Place, signer: Signer) -> None:
    chain_of(place, "one", signer=signer)
    chain_of(place, "two")
    for chain in (Chain(place, signer), Chain(place, Signer(trusted_key=signer.trusted_key))):
        with pytest.raises(VerificationError):
            chain.last()
    with pytest.raises(VerificationError):
        chain_of(place, "three", signer=signer)
    with pytest.raises(ScopedRetrievalError):
        chain_of(place, "three", signer=Signer(trusted_key=signer.trusted_key))
    assert bodies(Chain(place)) == ["one", "two"]


def test_a_signature_is_of_one_line_of_one_chain(place: Place, signer: Signer) -> None:
    chain_of(place, "one", signer=signer)
    other = place.with_name("HEADS")
    if isinstance(place, ObjectPlace):
        (other / "000000001").write_bytes((place / "000000001").read_bytes())  # type: ignore[operator]
    else:
        other.write_bytes(place.read_bytes())  # type: ignore[union-attr]
    assert bodies(Chain(other)) == ["one"]
    with pytest.raises(VerificationError):
        Chain(other, signer).last()


def test_an_unsigned_chain_is_signed_by_a_line_written_without_the_trusted_key(place: Place, signer: Signer) -> None:
    chain_of(place, "one")
    with pytest.raises(VerificationError):
        Chain(place, signer).last()
    chain_of(place, "two", signer=Signer(signing_key=signer.signing_key))
    assert bodies(chain_of(place, "three", signer=signer)) == ["one", "two", "three"]
