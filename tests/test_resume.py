"""Resuming a run: single requests are collected in one run, if they have the same basis."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from retrieving import NOON, batch, digests, opened
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.pipeline.asking import retriever
from scoped_retrieval.pipeline.config.grants import write_starter_grants
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.runs import RunStore, compact, compacting, log, replay, resume, verify
from scoped_retrieval.pipeline.sources.importing import normalize


def ask(corpus: Corpus, runs: Path, *rows: Any, **how: Any) -> list[Any]:
    """Ask in a session of its own, as a command does: its snapshots stay as they were written."""
    session = opened(corpus, runs=runs, **how)
    try:
        return [session.retrieve(row) for row in rows]
    finally:
        session.close(compacted=False)


def runs_of(found: list[Any]) -> list[str]:
    """The run of each answer, as letters in the order of their first answer."""
    tokens = [one.snapshot_id.split("-")[2] for one in found]
    return ["abcdef"[list(dict.fromkeys(tokens)).index(token)] for token in tokens]


def test_sessions_one_after_another_write_one_run(corpus: Corpus, tmp_path: Path):
    rows = batch(4)
    found = [one for row in rows for one in ask(corpus, tmp_path / "runs", row)]
    assert [one.snapshot_id[-4:] for one in found] == ["0001", "0002", "0003", "0004"]
    assert runs_of(found) == ["a"] * 4
    store = RunStore(tmp_path / "runs")
    (run_id,) = store.folders()
    assert verify(store, run_id).ok
    apart = RunStore(tmp_path / "apart")
    with opened(corpus, runs=apart) as session:
        alone = [session.retrieve(row) for row in rows]
    assert digests(store, run_id) == digests(apart, apart.folders()[0])
    assert [one.block for one in found] == [one.block for one in alone]


def test_a_run_of_many_sessions_is_compacted_as_one(corpus: Corpus, tmp_path: Path):
    found = [one for row in batch(3) for one in ask(corpus, tmp_path / "runs", row)]
    store = RunStore(tmp_path / "runs")
    (run_id,) = store.folders()
    before = digests(store, run_id)
    run = compact(store, run_id)
    assert not run.live and digests(store, run_id) == before
    assert [replay(store, one.snapshot_id).block for one in found] == [one.block for one in found]
    assert verify(store, run_id).ok
    after = ask(corpus, tmp_path / "runs", *batch(3))
    assert runs_of([*found, *after]) == ["a"] * 3 + ["b"] * 3


def test_a_run_has_one_session_at_a_time(corpus: Corpus, tmp_path: Path):
    rows = batch(4)
    first, second = (opened(corpus, runs=tmp_path / "runs") for _ in range(2))
    found = [first.retrieve(rows[0]), second.retrieve(rows[1]), first.retrieve(rows[2])]
    assert runs_of(found) == ["a", "b", "a"]
    kept = first._session.live  # what is released is not left to who collects garbage
    first.close(compacted=False)
    found += ask(corpus, tmp_path / "runs", rows[3])
    assert kept is not None
    assert runs_of(found) == ["a", "b", "a", "a"]
    found.append(second.retrieve(rows[3]))
    second.close(compacted=False)
    assert runs_of(found) == ["a", "b", "a", "a", "b"]
    store = RunStore(tmp_path / "runs")
    assert all(verify(store, run_id).ok for run_id in store.folders())


def test_asking_again_is_a_snapshot_under_an_id_of_its_own(corpus: Corpus, tmp_path: Path):
    question = {"question": "what does role_3 return?", "project": "shop", "purpose": "explain-code"}
    found = [ask(corpus, tmp_path / "runs", question)[0] for _ in range(3)]
    first, *again = [one.request_id for one in found]
    assert again == [f"{first}-2", f"{first}-3"]
    assert runs_of(found) == ["a", "a", "a"]
    assert len({one.tables["snapshots"]["snapshot_digest"][0].as_py() for one in found}) == 1


def test_an_id_that_the_run_has_is_asked_in_another(corpus: Corpus, tmp_path: Path):
    rows = batch(3)
    found = ask(corpus, tmp_path / "runs", rows[0])
    found += ask(corpus, tmp_path / "runs", rows[0])
    assert runs_of(found) == ["a", "b"]
    with opened(corpus, runs=tmp_path / "runs") as session:
        later = [session.retrieve(row) for row in (rows[1], rows[0], rows[2])]
        with pytest.raises(InputError, match="asked before - at r000"):
            session.retrieve(rows[0])
    assert runs_of([*found, *later]) == ["a", "b", "b", "c", "c"]
    assert [one.request_id for one in later] == ["r001", "r000", "r002"]


@pytest.mark.parametrize(
    "how, value, name", [("request_id", 7, "7"), ("id", "mine", "mine"), ("requestId", "it", "it")]
)
def test_an_id_is_one_however_a_row_says_it(corpus: Corpus, tmp_path: Path, how: str, value: object, name: str):
    row = {how: value, "question": "what does role_3 return?", "project": "shop", "purpose": "explain-code"}
    found = ask(corpus, tmp_path / "runs", row)
    with opened(corpus, runs=tmp_path / "runs") as session:
        found.append(session.retrieve(row))
        with pytest.raises(
            InputError, match=f"^Expected a request_id of its own, got one that was asked before - at {name}"
        ):
            session.retrieve(row)
    assert [one.request_id for one in found] == [name, name]
    assert runs_of(found) == ["a", "b"]


def test_another_generation_is_another_run(corpus: Corpus, tmp_path: Path, evidence_rows: Callable[..., pa.Table]):
    rows = batch(2)
    found = ask(corpus, tmp_path / "runs", rows[0])
    changed = evidence_rows("shop").set_column(3, "text", pa.array(["something else"] * 12))
    normal, _ = normalize(changed, project="shop", principal="ana", now=NOON)
    corpus.publish(normal, complete_sources=["workspace:shop"], now=NOON)
    found += ask(corpus, tmp_path / "runs", rows[1])
    assert runs_of(found) == ["a", "b"]


def test_other_grants_are_another_run(corpus: Corpus, tmp_path: Path):
    rows = batch(2)
    found = ask(corpus, tmp_path / "runs", rows[0])
    write_starter_grants(tmp_path / "corpus" / "grants.yaml", "ana", "elsewhere")
    found += ask(corpus, tmp_path / "runs", rows[1])
    assert runs_of(found) == ["a", "b"]


def test_packages_of_other_versions_are_another_run(corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    rows = batch(2)
    found = ask(corpus, tmp_path / "runs", rows[0])
    monkeypatch.setattr(retriever, "package_versions", lambda: {"pyarrow": "1.0"})
    found += ask(corpus, tmp_path / "runs", rows[1])
    assert runs_of(found) == ["a", "b"]


@pytest.mark.parametrize("how", [{"lanes": ["lexical"]}, {"principal": "bob"}])
def test_other_settings_or_people_are_another_run(corpus: Corpus, tmp_path: Path, how: dict[str, Any]):
    rows = batch(2)
    found = ask(corpus, tmp_path / "runs", rows[0]) + ask(corpus, tmp_path / "runs", rows[1], **how)
    assert runs_of(found) == ["a", "b"]


def test_a_run_takes_so_many_snapshots_and_no_more(corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(resume, "GATHERED", 2)
    found = [one for row in batch(5) for one in ask(corpus, tmp_path / "runs", row)]
    assert runs_of(found) == ["a", "a", "b", "b", "c"]


def test_only_so_many_runs_are_read_to_find_one(corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    found = []
    for number, row in enumerate(batch(5)):
        monkeypatch.setattr(retriever, "package_versions", lambda n=number: {"pyarrow": str(n)})
        found += ask(corpus, tmp_path / "runs", row)
    read, same = [], resume._same
    monkeypatch.setattr(resume, "_same", lambda *given: read.append(given[1]) or same(*given))
    monkeypatch.setattr(resume, "LOOKED_INTO", 2)
    found += ask(corpus, tmp_path / "runs", batch(6)[5])
    assert runs_of(found) == ["a", "b", "c", "d", "e", "e"]
    monkeypatch.setattr(retriever, "package_versions", lambda: {"pyarrow": "1"})
    read.clear()
    found += ask(corpus, tmp_path / "runs", batch(7)[6])
    assert (runs_of(found)[-1], len(read)) == ("f", 2)


def lose_a_line(runs: Path, run_id: str) -> None:
    lines = (runs / "LOG").read_bytes().splitlines(keepends=True)
    (runs / "LOG").write_bytes(b"".join(lines[:-1]))


def lose_a_file(runs: Path, run_id: str) -> None:
    (runs / run_id / "live" / "000002.arrow.lz4").unlink()


def change_a_line(runs: Path, run_id: str) -> None:
    log = (runs / "LOG").read_bytes()
    (runs / "LOG").write_bytes(log.replace(b'"ana"', b'"bob"', 1))


def change_the_first_file(runs: Path, run_id: str) -> None:
    (runs / run_id / "live" / "000001.arrow.lz4").write_bytes(b"not a frame")


def change_the_second_file(runs: Path, run_id: str) -> None:
    file = runs / run_id / "live" / "000002.arrow.lz4"
    file.write_bytes(file.read_bytes()[:-1] + b"x")


def lose_the_graph(runs: Path, run_id: str) -> None:
    (runs / run_id / "lineage.json").unlink()


def change_the_graph(runs: Path, run_id: str) -> None:
    (runs / run_id / "lineage.json").write_text("{}")


@pytest.mark.parametrize(
    "damage",
    [
        lose_a_line,
        lose_a_file,
        change_a_line,
        change_the_first_file,
        change_the_second_file,
        lose_the_graph,
        change_the_graph,
    ],
)
def test_a_run_that_is_not_as_the_log_has_it_is_left_alone(
    corpus: Corpus, tmp_path: Path, damage: Callable[[Path, str], None]
):
    rows = batch(3)
    found = ask(corpus, tmp_path / "runs", *rows[:2])
    (run_id,) = RunStore(tmp_path / "runs").folders()
    damage(tmp_path / "runs", run_id)
    found += ask(corpus, tmp_path / "runs", rows[2])
    assert runs_of(found) == ["a", "a", "b"]


def test_of_a_log_longer_than_its_end_no_run_is_gone_on_with_whose_beginning_is_out_of_sight(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    rows = batch(4)
    found = ask(corpus, tmp_path / "runs", *rows[:3])
    lines = (tmp_path / "runs" / "LOG").read_bytes().splitlines(keepends=True)
    monkeypatch.setattr(log, "WINDOW", len(lines[-1]) + len(lines[-2]) + 1)
    found += ask(corpus, tmp_path / "runs", rows[3])
    assert runs_of(found) == ["a", "a", "a", "b"]


def test_of_a_log_longer_than_its_end_a_run_is_gone_on_with_that_is_told_of_in_sight(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    rows = batch(3)
    found = ask(corpus, tmp_path / "runs", rows[0])
    monkeypatch.setattr(resume, "GATHERED", 1)
    found += ask(corpus, tmp_path / "runs", rows[1])
    monkeypatch.setattr(resume, "GATHERED", 2)
    *_, last = (tmp_path / "runs" / "LOG").read_bytes().splitlines(keepends=True)
    monkeypatch.setattr(log, "WINDOW", len(last) + 10)  # the line before is cut
    found += ask(corpus, tmp_path / "runs", rows[2])
    assert runs_of(found) == ["a", "b", "b"]


def test_a_run_that_was_looked_into_in_vain_is_let_go(corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    rows = batch(2)
    ask(corpus, tmp_path / "runs", rows[0])
    held, hold = [], resume.hold
    monkeypatch.setattr(resume, "hold", lambda place: held.append(hold(place)) or held[-1])
    monkeypatch.setattr(retriever, "package_versions", lambda: {"pyarrow": "1.0"})
    with opened(corpus, runs=tmp_path / "runs") as session:
        session.retrieve(rows[1])
        assert [one.is_locked for one in held] == [False]


def test_a_run_that_is_compacted_while_its_session_goes_on_is_left(corpus: Corpus, tmp_path: Path):
    rows = batch(3)
    found = ask(corpus, tmp_path / "runs", rows[0])
    session = opened(corpus, runs=tmp_path / "runs")
    found.append(session.retrieve(rows[1]))
    store = RunStore(tmp_path / "runs")
    compact(store, store.folders()[0])
    found.append(session.retrieve(rows[2]))
    session.close(compacted=False)
    assert runs_of(found) == ["a", "a", "b"]
    assert [verify(store, run_id).status for run_id in store.folders()] == ["ok", "ok"]


def test_a_run_that_its_session_leaves_is_let_go(corpus: Corpus, tmp_path: Path):
    rows = batch(2)
    with opened(corpus, runs=tmp_path / "runs") as session:
        found = [session.retrieve(rows[0])]
        kept = session._session.live  # what is released is not left to who collects garbage
        session._session._leave()
        found += ask(corpus, tmp_path / "runs", rows[1])
    assert (runs_of(found), kept is None) == (["a", "a"], False)


def test_a_run_whose_compaction_broke_off_before_its_files_went_is_left_alone(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    rows = batch(2)
    found = ask(corpus, tmp_path / "runs", rows[0])
    store = RunStore(tmp_path / "runs")
    (run_id,) = store.folders()
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(compacting, "_remove", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
        compact(store, run_id)
    assert resume.live_files(store.folder(run_id))
    found += ask(corpus, tmp_path / "runs", rows[1])
    assert runs_of(found) == ["a", "b"]
    compact(store, run_id)
    assert [verify(store, one).status for one in store.folders()] == ["ok", "ok"]


def test_a_long_session_is_compacted_in_shards(corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    found = ask(corpus, tmp_path / "runs", *batch(5))
    store = RunStore(tmp_path / "runs")
    (run_id,) = store.folders()
    before = digests(store, run_id)
    monkeypatch.setattr(compacting, "SNAPSHOTS_EACH", 2)
    run = compact(store, run_id)
    assert [part["rows"] for part in run.manifest["tables"]["snapshots"]["parts"]] == [2, 2, 1]
    assert digests(store, run_id) == before
    assert [replay(store, one.snapshot_id).block for one in found] == [one.block for one in found]
    assert verify(store, run_id).ok
