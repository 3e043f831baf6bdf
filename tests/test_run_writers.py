"""Two who write one run: compacting, resuming and erasing while its session or its batch goes on loses nothing."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from scoped_retrieval.nodes.errors import ErasedError, StoreError, VerificationError
from scoped_retrieval.pipeline.asking.retriever import Retriever
from scoped_retrieval.pipeline.asking.session import PendingRequest
from scoped_retrieval.pipeline.engines.shards import ShardJob, in_this_process
from scoped_retrieval.pipeline.runs import RunStore, compact, erase_evidence, erasing, live, replay, verify
from scoped_retrieval.pipeline.runs.files import locked
from scoped_retrieval.pipeline.runs.live_files import live_files
from scoped_retrieval.pipeline.runs.log import Log
from scoped_retrieval.pipeline.storage.locks import hold
from small_corpus import Story, row

QUESTION = "what is the default role of guests"
SAYS = "the default role of sessions is guest\n"
ROWS = [{"request_id": name, "question": QUESTION, "purpose": "answer-question"} for name in "abc"]


@pytest.fixture
def retriever(tmp_path: Path) -> Retriever:
    story = Story(tmp_path, row("doc", "docs/roles.md", SAYS))
    return story.open(runs=tmp_path / "runs", shard_requests=1)


@pytest.fixture
def store(tmp_path: Path, retriever: Retriever) -> RunStore:
    return RunStore(tmp_path / "runs")


def statuses(store: RunStore) -> dict[str, str]:
    return {run_id: verify(store, run_id).status for run_id in store.run_ids()}


def test_a_session_whose_run_was_compacted_goes_on_in_another(retriever: Retriever, store: RunStore):
    first = retriever.retrieve(QUESTION)
    compact(store, str(first.snapshot_id))
    found = [first, retriever.retrieve(QUESTION), retriever.retrieve(QUESTION)]
    assert [one.status for one in found] == ["ok"] * 3
    assert [one.block for one in found] == [first.block] * 3
    assert [replay(store, str(one.snapshot_id)).block for one in found] == [first.block] * 3
    assert list(statuses(store).values()) == ["ok", "ok"]
    assert store.uncompacted() == [store.open(str(found[1].snapshot_id)).run_id]
    assert store.open(str(found[2].snapshot_id)).snapshots.num_rows == 2


def test_requests_asked_together_go_on_together(retriever: Retriever, store: RunStore):
    first = retriever.retrieve(QUESTION)
    compact(store, str(first.snapshot_id))
    found = list(retriever._session.answers([PendingRequest({**one}, 0.0) for one in ROWS]))
    names = [one.snapshot_id for one in found]  # type: ignore[union-attr]  # no error among them
    assert [replay(store, str(name)).request["request_id"] for name in names] == ["a", "b", "c"]
    assert list(statuses(store).values()) == ["ok", "ok"]


def test_no_answer_names_a_snapshot_of_a_run_that_could_not_be_begun(
    retriever: Retriever, store: RunStore, monkeypatch: pytest.MonkeyPatch
):
    retriever.retrieve(QUESTION)
    looks = iter([None, StoreError("Expected to read, got Input/output error"), *[None] * 20])

    def look() -> None:
        if error := next(looks):
            raise error

    monkeypatch.setattr(retriever._session, "expect_unerased", look)
    asking = retriever._session.answers([PendingRequest({**one}, 0.0) for one in ROWS])
    compact(store, *store.run_ids())
    failed, *found = asking
    assert isinstance(failed, StoreError)
    names = [one.snapshot_id for one in found]  # type: ignore[union-attr]  # no error among them
    assert [replay(store, str(name)).request["request_id"] for name in names] == ["b", "c"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no process is forked here")
def test_a_forked_process_writes_a_run_of_its_own(retriever: Retriever, store: RunStore):
    found = [str(retriever.retrieve(QUESTION).snapshot_id)]
    told, tells = os.pipe()
    if not (child := os.fork()):
        with suppress(BaseException):
            os.write(tells, str(retriever.retrieve(QUESTION).snapshot_id).encode())
            retriever.close(compacted=False)
        os._exit(0)
    os.waitpid(child, 0)
    found += [os.read(told, 100).decode(), str(retriever.retrieve(QUESTION).snapshot_id)]
    assert len({*found}) == 3
    assert [replay(store, name).status for name in found] == ["ok"] * 3
    assert list(statuses(store).values()) == ["ok", "ok"]
    assert left_run(retriever, store) is None  # the child has not let go of what this process holds


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no process is forked here")
def test_a_forked_process_that_asks_nothing_lets_go_of_nothing(retriever: Retriever, store: RunStore):
    retriever.retrieve(QUESTION)
    if not (child := os.fork()):
        with suppress(BaseException):
            retriever.close(compacted=False)
        os._exit(0)
    os.waitpid(child, 0)
    assert left_run(retriever, store) is None


def left_run(retriever: Retriever, store: RunStore) -> str | None:
    """The run of a retriever, if another session may go on with it."""
    live = retriever._session.live
    assert live is not None
    held = hold(store.session_of(live.run_id))
    if held is not None:
        held.release()
    return live.run_id if held else None


def test_nobody_writes_a_snapshot_while_its_run_is_compacted(
    retriever: Retriever, store: RunStore, monkeypatch: pytest.MonkeyPatch
):
    first = retriever.retrieve(QUESTION)
    monkeypatch.setattr(live, "COMPACTED_WITHIN", 0.0)
    run = store.open(str(first.snapshot_id))
    with locked(store.lock_of(run.run_id), "a run"):
        found = retriever.retrieve(QUESTION)
    assert [one["condition"] for one in found.conditions if one["condition"] == "snapshot_missing"]
    assert "Expected to write a snapshot, got a lock that another process holds" in str(found.conditions)
    assert found.snapshot_id is None
    assert retriever.retrieve(QUESTION).snapshot_id is not None
    assert statuses(store) == {run.run_id: "ok"}


def test_a_snapshot_whose_name_may_not_be_on_disk_is_not_there(
    retriever: Retriever, store: RunStore, monkeypatch: pytest.MonkeyPatch
):
    first = retriever.retrieve(QUESTION)
    whole = live.write_live

    def synced_no_more(path: Path, *given: object) -> str:
        whole(path, *given)  # type: ignore[arg-type]  # whatever the caller gave
        raise StoreError("Input/output error: live")

    with monkeypatch.context() as patched:
        patched.setattr(live, "write_live", synced_no_more)
        assert retriever.retrieve(QUESTION).snapshot_id is None
    run = store.open(str(first.snapshot_id))
    assert [path.name for path in (run.folder / "live").iterdir()] == ["000001.arrow.lz4"]
    assert verify(store, run.run_id).status == "ok"


@pytest.mark.parametrize("where, name", [(live, "write_live"), (Log, "append")], ids=["file", "line"])
def test_a_first_snapshot_that_was_not_written_leaves_no_folder(
    retriever: Retriever, store: RunStore, monkeypatch: pytest.MonkeyPatch, where: Any, name: str
):
    def full(*_: object, **__: object) -> str:
        raise StoreError("No space left on device: live")

    with monkeypatch.context() as patched:
        patched.setattr(where, name, full)
        assert retriever.retrieve(QUESTION).snapshot_id is None
    assert store.folders() == []
    assert retriever.retrieve(QUESTION).snapshot_id is not None


def test_verify_of_a_run_that_its_session_writes_meanwhile_finds_nothing(
    retriever: Retriever, store: RunStore, monkeypatch: pytest.MonkeyPatch
):
    module = sys.modules["scoped_retrieval.pipeline.runs.verify"]
    first, listed = retriever.retrieve(QUESTION), live_files
    asked: list[str | None] = []

    def meanwhile(folder: Path) -> list[str]:
        if not asked:
            asked.append(retriever.retrieve(QUESTION).snapshot_id)
        return listed(folder)

    monkeypatch.setattr(module, "live_files", meanwhile)
    report = verify(store, str(first.snapshot_id))
    assert (report.problems, report.snapshots, len(asked)) == ((), 2, 1)


def test_verify_of_a_run_that_somebody_holds_tells_what_differs_at_both_looks(
    retriever: Retriever, store: RunStore, monkeypatch: pytest.MonkeyPatch
):
    module = sys.modules["scoped_retrieval.pipeline.runs.verify"]
    run = store.open(str(retriever.retrieve(QUESTION).snapshot_id))
    monkeypatch.setattr(module, "LOOKS_AGAIN_WITHIN", 0.1)
    (run.folder / "live" / "passing").write_text("")
    with locked(store.lock_of(run.run_id), "a run"):
        assert [one.part for one in verify(store, run.run_id).problems] == ["live/passing"]
        looks = iter([["live/passing", "lineage.json"], ["live/another", "lineage.json"]])
        monkeypatch.setattr(module, "files_below", lambda _: next(looks))
        assert verify(store, run.run_id).ok


def test_a_run_that_was_finished_meanwhile_is_not_resumed(retriever: Retriever, store: RunStore):
    staged = retriever._staged(ROWS)
    other = store.resume(staged.run_id)
    with staged.lock():
        for _ in in_this_process(ShardJob(staged, retriever._granted.line), staged.pending(), retriever._clock):
            pass
        run = staged.finish()
    with pytest.raises(
        StoreError, match=r"Expected an unfinished run, got one that another process has finished - at run-"
    ):
        other.lock().__enter__()
    assert verify(store, run.run_id).status == "ok"


def test_a_run_that_is_being_written_loses_nothing_to_an_erasure(retriever: Retriever, store: RunStore):
    ids = retriever.corpus.frame().evidence["evidence_id"].to_pylist()
    staged = retriever._staged(ROWS)
    with staged.lock():
        shards = in_this_process(ShardJob(staged, retriever._granted.line), staged.pending(), retriever._clock)
        next(shards)
        done = erase_evidence(store, ids, reason="asked by its owner")
        assert (done.being_written, done.dropped, done.texts) == ([staged.run_id], {}, 0)
        for _ in shards:
            pass
        staged.finish()
    again = erase_evidence(store, ids, reason="asked by its owner")
    assert (again.being_written, again.runs, again.texts > 0) == ([], [staged.run_id], True)
    assert verify(store, staged.run_id).status == "erased"
    texts = store.open(staged.run_id).texts["text"].to_pylist()
    assert not [text for text in texts if "guest\n" in text]


def test_an_erasure_finds_what_a_session_adds_before_its_run_is_compacted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    story = Story(
        tmp_path, row("doc", "docs/roles.md", SAYS), row("doc", "docs/fees.md", "visitors pay a fee of ten\n")
    )
    retriever, store = story.open(runs=tmp_path / "runs"), RunStore(tmp_path / "runs")
    first, whole = retriever.retrieve(QUESTION, budget={"max_items": 1}), erasing.compact

    def answered_first(given: RunStore, run_id: str) -> object:
        retriever.retrieve("which fee do visitors pay", budget={"max_items": 1})
        return whole(given, run_id)

    monkeypatch.setattr(erasing, "compact", answered_first)
    erase_evidence(store, retriever.corpus.frame().evidence["evidence_id"].to_pylist(), reason="asked by its owner")
    run = store.open(str(first.snapshot_id))
    assert run.snapshots.num_rows == 2
    assert not [text for text in run.texts["text"].to_pylist() if "a fee of ten" in text or "sessions is guest" in text]


def killed_as_its_file_stands(retriever: Retriever, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask, and be killed when the file of the snapshot is written."""
    written = live.write_live

    def killed(*given: Any) -> str:
        written(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, suppress(KeyboardInterrupt):
        patched.setattr(live, "write_live", killed)
        retriever.retrieve(QUESTION, budget={"max_items": 1})


def test_an_erasure_waits_for_who_writes_a_run_and_finds_what_it_left_when_it_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    fees, runs = row("doc", "docs/fees.md", "visitors pay a fee of ten\n"), tmp_path / "runs"
    retriever = Story(tmp_path, row("doc", "docs/roles.md", SAYS), fees).open(runs=runs)
    evidence = retriever.corpus.frame().evidence
    ids = evidence.filter(pc.equal(evidence["path"], "docs/roles.md"))["evidence_id"].to_pylist()
    retriever.retrieve("which fee do visitors pay", budget={"max_items": 1})
    waited: list[object] = []

    def killed_meanwhile(*given: Any, **how: Any) -> Any:
        if not waited:
            waited.append(given)
            killed_as_its_file_stands(retriever, monkeypatch)
        return locked(*given, **how)

    monkeypatch.setattr(erasing, "locked", killed_meanwhile)
    done = erase_evidence(RunStore(runs), ids, reason="asked by its owner")
    texts = [text for run in RunStore(runs).list() for text in run.texts["text"].to_pylist()]
    assert (len(done.runs), len(waited)) == (1, 1)
    assert not [text for text in texts if "sessions is guest" in text]


def test_a_first_snapshot_that_came_while_others_were_read_keeps_an_erasure_open(
    retriever: Retriever, store: RunStore, monkeypatch: pytest.MonkeyPatch
):
    ids = retriever.corpus.frame().evidence["evidence_id"].to_pylist()
    killed_as_its_file_stands(retriever, monkeypatch)
    (run_id,) = store.run_ids()
    with monkeypatch.context() as patched:
        patched.setattr(store, "run_ids", tuple)  # it existed without a file
        assert erase_evidence(store, ids, reason="asked by its owner").being_written == [run_id]
    assert erase_evidence(store, ids, reason="asked by its owner").runs == [run_id]
    assert verify(store, run_id).status == "erased"


def test_two_who_erase_the_same_at_once_are_both_told_that_it_is_done(
    retriever: Retriever, store: RunStore, monkeypatch: pytest.MonkeyPatch
):
    ids = retriever.corpus.frame().evidence["evidence_id"].to_pylist()
    run_id, whole = retriever.run(ROWS).run_id, erasing.erase_texts

    def after_another(*given: Any, **how: Any) -> int:
        whole(*given, **how)
        return whole(*given, **how)

    monkeypatch.setattr(erasing, "erase_texts", after_another)
    done = erase_evidence(store, ids, reason="asked by its owner")
    assert (done.runs, done.unreadable) == ([run_id], [])
    assert verify(store, run_id).status == "erased"


@pytest.mark.parametrize("some", [False, True], ids=["no file is left", "of some files nothing is to be erased"])
def test_an_erasure_reads_again_what_is_compacted_while_it_reads(
    retriever: Retriever, store: RunStore, monkeypatch: pytest.MonkeyPatch, some: bool
):
    ids = retriever.corpus.frame().evidence["evidence_id"].to_pylist()
    retriever.retrieve(QUESTION)
    whole = erasing.texts_showing

    def compacted_meanwhile(*given: Any) -> set[str]:
        monkeypatch.setattr(erasing, "texts_showing", whole)
        retriever.close()
        return set() if some else whole(*given)

    monkeypatch.setattr(erasing, "texts_showing", compacted_meanwhile)
    done = erase_evidence(store, ids, reason="asked by its owner")
    assert (done.runs, done.unreadable) == ([*store.run_ids()], [])
    assert {*statuses(store).values()} == {"erased"}


@pytest.mark.parametrize("first", [True, False])
def test_of_what_was_erased_no_word_is_written(
    retriever: Retriever, store: RunStore, monkeypatch: pytest.MonkeyPatch, first: bool
):
    if not first:
        retriever.retrieve(QUESTION)
    before, looks = statuses(store), iter([False, True])

    def look() -> None:
        if next(looks):
            raise ErasedError("Expected the corpus as it was opened, got one from which evidence was erased since")

    monkeypatch.setattr(retriever._session, "expect_unerased", look)
    monkeypatch.setattr(live, "write_live", lambda *_: pytest.fail("written"))
    with pytest.raises(ErasedError):
        retriever.retrieve(QUESTION)
    assert (statuses(store), len(store.folders())) == (before, 0 if first else 1)


@pytest.mark.parametrize("graph", [b"{", None])
def test_a_run_whose_graph_is_not_the_one_that_was_logged_is_not_compacted(
    retriever: Retriever, store: RunStore, graph: bytes | None
):
    folder = store.open(str(retriever.retrieve(QUESTION).snapshot_id)).folder
    (folder / "lineage.json").write_bytes(graph) if graph else (folder / "lineage.json").unlink()
    with pytest.raises(VerificationError, match=r"- at lineage\.json"):
        compact(store, folder.name)
    assert sorted(path.name for path in folder.iterdir()) == ["lineage.json", "live"][0 if graph else 1 :]
    assert verify(store, folder.name).status == "changed"


@pytest.mark.parametrize("stands", [True, False])
def test_an_interrupt_at_the_line_of_a_snapshot_leaves_one_of_each(
    retriever: Retriever, store: RunStore, monkeypatch: pytest.MonkeyPatch, stands: bool
):
    whole = Log.append

    def interrupted(self: Log, *given: Any, **body: Any) -> str:
        if stands:
            whole(self, *given, **body)
        raise KeyboardInterrupt

    retriever.retrieve(QUESTION)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Log, "append", interrupted)
        retriever.retrieve(QUESTION)
    found = retriever.retrieve(QUESTION)
    (run_id,) = store.run_ids()
    assert (str(found.snapshot_id)[-4:], verify(store, run_id).problems) == ("0003", ())
    retriever.close()
    assert (verify(store, run_id).problems, store.open(run_id).snapshots.num_rows) == ((), 3)
