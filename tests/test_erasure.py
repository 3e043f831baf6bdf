"""Erasure: no byte of corpus or runs holds the text any more, a receipt says so, and it does not come back."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import filelock
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from failing_reads import FailingReads, unseen
from scoped_retrieval.nodes.errors import AccessError, ErasedError, InputError, StoreError
from scoped_retrieval.pipeline import erasure as corpus_erasure
from scoped_retrieval.pipeline import session
from scoped_retrieval.pipeline.corpus import Corpus, erasing, manifest, packs, tombstones, writing
from scoped_retrieval.pipeline.corpus import store as corpus_store
from scoped_retrieval.pipeline.erasure import Erasure, erase
from scoped_retrieval.pipeline.retriever import Retriever
from scoped_retrieval.pipeline.runs import RunStore, compact, compacting, live, live_files, log, replay, verify
from scoped_retrieval.pipeline.runs import erasure as runs_erasure
from scoped_retrieval.pipeline.runs import store as runs_store
from scoped_retrieval.pipeline.runs import writing as runs_writing
from scoped_retrieval.pipeline.runs.live_files import read_live
from scoped_retrieval.pipeline.settings import Settings, load_settings
from scoped_retrieval.pipeline.shards import ShardJob, in_this_process
from scoped_retrieval.pipeline.sources.importing import normalise
from small_corpus import NOON, Story, row
from stand_in_encoder import WordsByTheirStart

CANARY = "zebrafink quartermaster"
GONE = f"The login token of the {CANARY} is kept in a drawer."
MORE = f"The {CANARY} resets the login on Mondays."
KEPT = "The login token expires after ten minutes."
SEEN = "zebrafink_login"
QUESTION = {"question": "who keeps the login token?", "project": "shop", "purpose": "answer-question"}
LOOKING = {"session_id": "s-1", "purpose": "explain-code", "max_items": 1}
GRANTS = {"principals": {"ana": {"projects": ["shop"], "audit": True}, "bo": {"projects": ["shop"]}}}


def told(folder: Path, **how: Any) -> Story:
    """Three publications of three sources in `shop`, one of them bo's own."""
    story = Story(
        folder, row("doc", "docs/old.md", GONE), row("doc", "docs/keep.md", KEPT, source_id="doc:other"), **how
    )
    story.tell(row("doc", "docs/new.md", MORE))
    story.tell(
        row("memory", "m/1", f"bo recalls the {CANARY}", source_id="memory:bo", owner_user="bo", lifecycle="verified")
    )
    (folder / "grants.yaml").write_text(yaml.safe_dump(GRANTS), encoding="utf-8")
    return story


def settings(folder: Path, principal: str = "ana") -> Settings:
    flags = {
        "corpus": folder / "corpus",
        "runs": folder / "runs",
        "grants": folder / "grants.yaml",
        "principal": principal,
    }
    return load_settings(flags, cwd=folder, environ={}, user=folder / "none.toml")


def asked(story: Story, *, batch: bool, **fields: Any) -> str:
    """The id of a snapshot that shows the rows of every source."""
    question = QUESTION | fields
    with story.open(runs=story.folder / "runs") as retriever:
        if not batch:
            found = retriever.retrieve(question)
            assert (fields or CANARY in found.block) and KEPT in found.block
            retriever.close(compacted=False)
            return found.snapshot_id or ""
        summary = retriever.run([question])
    return RunStore(story.folder / "runs").open(summary.run_id).snapshots["snapshot_id"][0].as_py()


def observed(folder: Path) -> Story:
    """A document, and an event of the session `s-1` that names something."""
    event = row(
        "session-event", "s-1.jsonl", f"It broke in `{SEEN}` at src/{SEEN}.py", session_id="s-1", owner_user="ana"
    )
    story = Story(folder, row("doc", "docs/keep.md", KEPT, source_id="doc:other"), event)
    (folder / "grants.yaml").write_text(yaml.safe_dump(GRANTS), encoding="utf-8")
    return story


def holding(folder: Path, text: str = CANARY) -> list[str]:
    """Files below a folder with these bytes, in any encoding that a file here is written in."""
    return [
        str(path.relative_to(folder)) for path in sorted(folder.rglob("*")) if path.is_file() and text in readable(path)
    ]


def readable(path: Path) -> str:
    """The bytes of a file, those of compressed columns unpacked."""
    data = path.read_bytes().decode("utf-8", "replace")
    if path.suffix == ".parquet":
        return data + str(pq.read_table(path).to_pylist())
    if path.parent.name == "live":
        return data + "".join(str(table.to_pylist()) for table in read_live(path).values())
    return data


@pytest.mark.parametrize("batch", [True, False], ids=["compacted", "interactive"])
@pytest.mark.parametrize("encoder", [None, WordsByTheirStart()], ids=["lexical", "vectors"])
def test_no_byte_holds_an_erased_source(tmp_path: Path, batch: bool, encoder: Any) -> None:
    story = told(tmp_path, encoder=encoder)
    snapshot = asked(story, batch=batch)
    assert {Path(name).parts[0] for name in holding(tmp_path)} == {"corpus", "runs"}
    done = erase(settings(tmp_path), source="doc:story", reason="asked by its owner")
    done = erase(settings(tmp_path), source="memory:bo")
    assert holding(tmp_path) == []
    assert (done.runs.dropped, done.runs.unreadable) == ({}, [])
    store = RunStore(tmp_path / "runs")
    report = verify(store, snapshot)
    assert (report.status, report.problems) == ("erased", ())
    assert (replay(store, snapshot).status, replay(store, snapshot).block) == ("erased", None)
    corpus = Corpus.open(tmp_path / "corpus")
    assert corpus.verify() == []
    assert corpus.frame().evidence["text"].to_pylist() == [KEPT]
    assert story.ask("who keeps the login token?").citations[0]["path"] == "docs/keep.md"


@pytest.mark.parametrize("kept", [True, False], ids=["with runs", "without runs"])
def test_who_read_an_erased_source_before_answers_nothing_more(tmp_path: Path, kept: bool) -> None:
    story = told(tmp_path)
    with story.open(runs=tmp_path / "runs" if kept else None) as retriever:
        assert CANARY in retriever.retrieve(QUESTION).block
        erase(settings(tmp_path), source="doc:story")
        erase(settings(tmp_path), source="memory:bo")
        for _ in range(2):
            with pytest.raises(ErasedError, match="Expected the corpus as it was opened, got one from which evidence"):
                retriever.retrieve(QUESTION)
        if kept:
            with pytest.raises(ErasedError, match=r"Hint: open it again"):
                retriever.run([QUESTION])
    assert holding(tmp_path) == []
    assert CANARY not in story.ask("who keeps the login token?").block


@pytest.mark.parametrize("first", [True, False], ids=["first", "later"])
@pytest.mark.parametrize("kept", [True, False], ids=["with runs", "without runs"])
def test_an_erasure_while_an_answer_is_worked_out_leaves_nothing_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: bool, kept: bool
) -> None:
    story = told(tmp_path)
    line = session.run_line

    def erased_meanwhile(*given: Any) -> Any:
        tables = line(*given)
        erase(settings(tmp_path), source="doc:story")
        erase(settings(tmp_path), source="memory:bo")
        return tables

    with story.open(runs=tmp_path / "runs" if kept else None) as retriever:
        if not first:
            assert CANARY in retriever.retrieve(QUESTION).block
        monkeypatch.setattr(session, "run_line", erased_meanwhile)
        with pytest.raises(ErasedError):
            retriever.retrieve(QUESTION)
        monkeypatch.undo()
    assert holding(tmp_path) == []
    assert not kept or all(verify(RunStore(tmp_path / "runs"), run).ok for run in RunStore(tmp_path / "runs").folders())


def test_an_erasure_that_a_full_disk_follows_leaves_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    story = told(tmp_path)

    def full(*_: Any) -> str:
        erase(settings(tmp_path), source="doc:story")
        raise StoreError("Expected to write a file, got No space left on device - at live")

    with story.open(runs=tmp_path / "runs") as retriever:
        monkeypatch.setattr(live, "write_live", full)
        with pytest.raises(ErasedError):
            retriever.retrieve(QUESTION)


def test_a_run_that_goes_on_beside_an_erasure_stores_nothing_more(tmp_path: Path) -> None:
    story = told(tmp_path)
    store = RunStore(tmp_path / "runs")

    def erased_meanwhile(job: ShardJob, shards: Sequence[int], clock: Callable[[], datetime]) -> Iterator[int]:
        for shard in in_this_process(job, shards, clock):
            yield shard
            for source in ("doc:story", "memory:bo"):
                erase(settings(tmp_path), source=source)

    with story.open(runs=store, shard_requests=1) as retriever:
        with pytest.raises(ErasedError) as raised:
            retriever.run([QUESTION, QUESTION | {"request_id": "z"}], engine=erased_meanwhile)
        with pytest.raises(ErasedError, match=r"Hint: open it again$"):
            retriever.run([QUESTION])
    (run_id,) = store.unfinished()
    ends = f"`run --resume {run_id}` ends it with what was answered: its generation is gone"
    assert raised.value.hint == f"open it again; {ends}"
    for source in ("doc:story", "memory:bo"):
        erase(settings(tmp_path), source=source)
    assert (holding(tmp_path), store.unfinished()) == ([], [run_id])


def test_a_run_that_is_finished_while_others_are_read_is_told_or_erased(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = told(tmp_path)
    asked(story, batch=True)
    store, showing = RunStore(tmp_path / "runs"), runs_erasure.texts_showing
    with story.open(runs=store) as retriever:
        staged = retriever._staged([QUESTION])
        for _ in in_this_process(ShardJob(staged, retriever._line), staged.pending(), retriever._clock):
            pass

        def finished_meanwhile(*given: Any) -> Any:
            if staged.run_id in store.unfinished():
                staged.finish()
            return showing(*given)

        monkeypatch.setattr(runs_erasure, "texts_showing", finished_meanwhile)
        done = erase(settings(tmp_path), source="doc:story")
        assert done.runs.being_written == [staged.run_id]
    erase(settings(tmp_path), source="doc:story")
    erase(settings(tmp_path), source="memory:bo")
    assert holding(tmp_path) == []


def test_the_first_run_of_a_folder_that_is_stored_while_the_corpus_is_erased_is_erased_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = told(tmp_path)
    erased = Corpus.erase

    def after_a_run(corpus: Corpus, selection: Any, **how: Any) -> Any:
        asked(story, batch=True)
        return erased(corpus, selection, **how)

    monkeypatch.setattr(Corpus, "erase", after_a_run)
    assert len(erase(settings(tmp_path), source="doc:story").runs.runs) == 1
    monkeypatch.undo()
    erase(settings(tmp_path), source="memory:bo")
    assert holding(tmp_path) == []


def test_an_erasure_whose_receipt_nobody_may_close_is_told_as_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked(told(tmp_path), batch=True)
    other, without_texts = filelock.FileLock(tmp_path / "corpus" / "LOCK"), corpus_erasure.erase_evidence

    def before_another_writer(*given: Any, **how: Any) -> Any:
        other.acquire()
        return without_texts(*given, **how)

    with monkeypatch.context() as patch:
        patch.setattr(writing, "WAIT_SECONDS", 0)
        patch.setattr(corpus_erasure, "erase_evidence", before_another_writer)
        done = erase(settings(tmp_path), source="doc:story")
    assert (done.rows, len(done.runs.runs), done.dry_run) == (2, 1, False)
    busy = f"Expected no other writer, got a held lock - at {tmp_path / 'corpus'}"
    assert done.as_dict()["receipt_unclosed"] == busy
    assert done.text().endswith(
        f"all of that is done, and the receipt does not say so yet: {busy}\nask for the same again, which closes the receipt\n"
    )
    assert holding(tmp_path, GONE) == holding(tmp_path, MORE) == []
    other.release()
    done = erase(settings(tmp_path), source="doc:story")
    assert (done.unclosed, "receipt" in done.text()) == ("", False)
    (receipt,) = json.loads((tmp_path / "corpus" / "ERASED.json").read_text())["receipts"]
    assert receipt["finished"]


def test_a_corpus_that_moved_past_an_erasure_may_be_shown(tmp_path: Path) -> None:
    told(tmp_path)
    corpus = Corpus.open(tmp_path / "corpus")
    erase(settings(tmp_path), source="doc:story")
    with pytest.raises(ErasedError):
        corpus.view().expect_unerased()
    corpus.publish(other_rows(), now=NOON)
    corpus.view().expect_unerased()


def test_a_corpus_that_was_opened_amid_an_erasure_is_refused_when_it_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told(tmp_path)
    opened: list[Corpus] = []
    without = corpus_store.without_rows

    def amid(*given: Any) -> Any:
        opened.append(Corpus.open(tmp_path / "corpus"))
        opened[0].expect_unerased()  # what is asked for is not done yet
        return without(*given)

    monkeypatch.setattr(corpus_store, "without_rows", amid)
    erase(settings(tmp_path), source="doc:story")
    for each in (opened[0], opened[0].view()):
        with pytest.raises(ErasedError):
            each.expect_unerased()


def test_no_receipt_is_read_while_the_generation_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told(tmp_path)
    erase(settings(tmp_path), source="doc:story")
    corpus = Corpus.open(tmp_path / "corpus")
    with monkeypatch.context() as patch:
        patch.setattr(corpus_store, "receipts", lambda _: pytest.fail("however many rows were erased, it is read"))
        corpus.expect_unerased()
    erase(settings(tmp_path), source="memory:bo")
    with pytest.raises(ErasedError):
        corpus.expect_unerased()


def test_an_erasure_of_what_came_later_leaves_who_opened_before_in_peace(tmp_path: Path) -> None:
    told(tmp_path)
    before = Corpus.open(tmp_path / "corpus")
    Corpus.open(tmp_path / "corpus").publish(other_rows(), now=NOON)
    erase(settings(tmp_path), source="doc:more")
    before.expect_unerased()
    assert Corpus.open(tmp_path / "corpus").generation == before.generation


def other_rows() -> pa.Table:
    """A document of a source of its own."""
    table = pa.Table.from_pylist([row("doc", "docs/other.md", KEPT, source_id="doc:more")])
    return normalise(table, project="shop", principal="ana", now=NOON)[0]


def test_what_is_no_pack_stays_where_it_lies(tmp_path: Path) -> None:
    story = told(tmp_path)
    stray = tmp_path / "corpus" / "packs" / ".DS_Store"
    stray.write_text("")
    erase(settings(tmp_path), source="doc:story")
    Corpus.open(tmp_path / "corpus").gc()
    assert stray.exists()
    assert CANARY not in story.ask("who keeps the login token?").block


@pytest.mark.parametrize("batch", [True, False], ids=["compacted", "interactive"])
def test_no_byte_holds_what_an_importer_said_of_an_erased_row(tmp_path: Path, batch: bool) -> None:
    said = dict.fromkeys(("title", "uri", "content_type", "document_type", "domain", "entity"), CANARY)
    said |= {name: ["plain", CANARY] for name in ("tags", "applicable_roles", "excluded_roles")}
    story = Story(
        tmp_path, row("doc", "docs/keep.md", KEPT), row("doc", "docs/said.md", GONE, source_id="doc:said", **said)
    )
    (tmp_path / "grants.yaml").write_text(yaml.safe_dump(GRANTS), encoding="utf-8")
    asked(story, batch=batch)
    assert any("runs" in name for name in holding(tmp_path))
    erase(settings(tmp_path), source="doc:said")
    assert holding(tmp_path) == []
    assert holding(tmp_path, "ten minutes") != []


@pytest.mark.parametrize("batch", [True, False], ids=["compacted", "interactive"])
def test_no_byte_holds_what_a_request_took_from_an_erased_event_of_its_session(tmp_path: Path, batch: bool) -> None:
    snapshot = asked(observed(tmp_path), batch=batch, **LOOKING)
    assert any("runs" in name for name in holding(tmp_path, SEEN))
    assert holding(tmp_path / "runs", "It broke in") == [], "no event is shown"
    erase(settings(tmp_path), source="session-event:story")
    assert holding(tmp_path, SEEN) == []
    assert holding(tmp_path / "runs", KEPT) != []
    assert verify(RunStore(tmp_path / "runs"), snapshot).status == "erased"


def test_what_other_requests_asked_stays_when_an_event_is_erased(tmp_path: Path) -> None:
    asked(observed(tmp_path), batch=True, **LOOKING | {"session_id": "s-2"})
    before = {path: path.read_bytes() for path in (tmp_path / "runs").rglob("*") if path.is_file()}
    assert erase(settings(tmp_path), source="session-event:story").runs.runs == []
    assert {path: path.read_bytes() for path in (tmp_path / "runs").rglob("*") if path.is_file()} == before


def test_the_same_text_of_the_same_source_stays_out_and_other_text_comes_in(tmp_path: Path) -> None:
    story = told(tmp_path)
    erase(settings(tmp_path), source="doc:story")
    for path in ("docs/old.md", "docs/moved.md"):
        story.tell(row("doc", path, GONE), row("doc", "docs/fresh.md", "a new line"), complete=["doc:story"])
    texts = Corpus.open(tmp_path / "corpus").frame().evidence["text"].to_pylist()
    assert GONE not in texts
    assert "a new line" in texts


def test_a_publication_says_what_it_kept_out(tmp_path: Path) -> None:
    story = told(tmp_path)
    erase(settings(tmp_path), source="doc:story")
    rows, _ = normalise(
        pa.Table.from_pylist(
            [{"source_id": "doc:story", "path": "docs/old.md", "text": GONE, "line_start": 1, "line_end": 1}]
        ),
        project="shop",
        principal="ana",
        now=NOON,
    )
    report = Corpus.open(tmp_path / "corpus").publish(rows, now=NOON + timedelta(days=1))
    assert (report.new_rows, report.erased_rows) == (0, 1)
    assert story.ask("quartermaster").status in ("ok", "empty")


def test_by_evidence_user_and_project(tmp_path: Path) -> None:
    story = told(tmp_path)
    frame = Corpus.open(tmp_path / "corpus").frame()
    one = frame.evidence["evidence_id"][frame.evidence["text"].to_pylist().index(GONE)].as_py()
    assert erase(settings(tmp_path), evidence=[one]).rows == 1
    assert erase(settings(tmp_path), user="bo").rows == 1
    left = Corpus.open(tmp_path / "corpus")
    assert sorted(left.frame().evidence["text"].to_pylist()) == sorted([MORE, KEPT])
    assert left.info()["placements"] == 2
    assert erase(settings(tmp_path), project="shop").rows == 2
    empty = Corpus.open(tmp_path / "corpus")
    assert (empty.info()["rows"], empty.info()["placements"], empty.verify()) == (0, 0, [])
    assert story.ask("quartermaster").status == "empty"


def test_an_owner_erases_their_own_and_nobody_elses(tmp_path: Path) -> None:
    told(tmp_path)
    with pytest.raises(AccessError, match="Expected evidence that you may erase, got none - at source doc:story"):
        erase(settings(tmp_path, "bo"), source="doc:story")
    with pytest.raises(AccessError, match="Expected evidence that you may erase, got none - at source doc:none"):
        erase(settings(tmp_path, "bo"), source="doc:none")
    assert erase(settings(tmp_path, "bo"), source="memory:bo").rows == 1
    with pytest.raises(InputError, match="Expected a source, user, project or evidence id"):
        erase(settings(tmp_path))


def test_an_erasure_does_not_count_the_rows_of_anothers_that_was_broken_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told(tmp_path)
    with monkeypatch.context() as patch, pytest.raises(OSError, match="no space"):
        patch.setattr(Corpus, "finish_erasure", lambda *_: (_ for _ in ()).throw(OSError(28, "no space left")))
        erase(settings(tmp_path), source="doc:story")
    assert erase(settings(tmp_path, "bo"), user="bo", dry_run=True).rows == 1
    assert erase(settings(tmp_path, "bo"), user="bo").rows == 1
    assert erase(settings(tmp_path), source="doc:story").rows == 2


def test_a_process_that_went_to_another_folder_is_told_of_an_erasure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told(tmp_path)
    monkeypatch.chdir(tmp_path)
    how = {"principal": "ana", "grants": "grants.yaml", "runs": "runs", "lanes": ["lexical"]}
    (folder := tmp_path / "elsewhere").mkdir()
    with Retriever.open("corpus", **how) as retriever:
        monkeypatch.chdir(folder)
        assert CANARY in retriever.retrieve(QUESTION).block
        erase(settings(tmp_path), source="doc:story")
        with pytest.raises(ErasedError):
            retriever.retrieve(QUESTION)
    assert list(folder.iterdir()) == []


def test_an_erasure_does_not_call_anothers_finished_that_was_broken_off_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told(tmp_path)
    finish = Corpus.finish_erasure

    def meanwhile(*given: Any) -> None:
        monkeypatch.setattr(Corpus, "finish_erasure", finish)
        with monkeypatch.context() as patch, pytest.raises(OSError, match="no space"):
            patch.setattr(corpus_store, "without_rows", lambda *_: (_ for _ in ()).throw(OSError(28, "no space left")))
            erase(settings(tmp_path, "bo"), user="bo")
        finish(*given)

    monkeypatch.setattr(Corpus, "finish_erasure", meanwhile)
    erase(settings(tmp_path), source="doc:story")
    assert [(each.by, each.finished) for each in tombstones.receipts(tmp_path / "corpus")] == [
        ("ana", True),
        ("bo", False),
    ]
    erase(settings(tmp_path), source="doc:other")
    assert all(each.finished for each in tombstones.receipts(tmp_path / "corpus"))
    assert holding(tmp_path) == []


def test_who_appends_goes_through_no_row_that_was_erased_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = told(tmp_path)
    erase(settings(tmp_path), source="doc:story")
    erase(settings(tmp_path), source="memory:bo")
    looked, among = [], tombstones.among
    monkeypatch.setattr(tombstones, "among", lambda values, those: looked.append(len(those)) or among(values, those))
    story.tell(row("doc", "docs/other.md", "Another text."), row("doc", "docs/old.md", GONE))
    story.tell(row("doc", "docs/third.md", "A third text."))
    assert looked == [1]
    texts = Corpus.open(tmp_path / "corpus").frame().evidence["text"].to_pylist()
    assert sorted(texts) == ["A third text.", "Another text.", KEPT]


def test_a_dry_run_counts_and_writes_nothing(tmp_path: Path) -> None:
    story = told(tmp_path)
    asked(story, batch=False)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    done = erase(settings(tmp_path), source="doc:story", dry_run=True)
    assert (done.rows, len(done.runs.runs), done.dry_run) == (2, 1, True)
    assert done.runs.texts == 5  # two items, their locators and their block
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert after == before


def test_the_receipt_has_no_payload(tmp_path: Path) -> None:
    told(tmp_path)
    erase(settings(tmp_path), source="doc:story", reason="asked")
    (receipt,) = json.loads((tmp_path / "corpus" / "ERASED.json").read_text())["receipts"]
    assert (receipt["by"], receipt["reason"], receipt["selection"], receipt["finished"]) == (
        "ana",
        "asked",
        {"source": "doc:story"},
        True,
    )
    assert len(receipt["evidence_ids"]) == len(receipt["keys"]) == 2
    assert "drawer" not in json.dumps(receipt)


def unfinished(story: Story, rows: Sequence[dict[str, Any]] = ({}, {}), **fields: Any) -> str:
    """The id of a run of these requests, one to a shard, that was interrupted before the last one was answered."""

    def but_the_last(job: ShardJob, shards: Sequence[int], clock: Callable[[], datetime]) -> Iterator[int]:
        yield from in_this_process(job, shards[:-1], clock)
        raise KeyboardInterrupt

    row = {"question": "login token", "project": "shop", "purpose": "answer-question"} | fields
    with story.open(runs=story.folder / "runs", shard_requests=1) as retriever, pytest.raises(KeyboardInterrupt):
        asked = [row | {"request_id": f"r{number}"} | each for number, each in enumerate(rows)]
        retriever.run(asked, engine=but_the_last)
    (run_id,) = RunStore(story.folder / "runs").unfinished()
    return run_id


def ended(story: Story, run_id: str) -> dict[str, str]:
    """The status of each request of a run that is resumed, by its id; what it says is in order."""
    store = RunStore(story.folder / "runs")
    with story.open(runs=store) as retriever:
        retriever.run(resume=run_id)
    assert verify(store, run_id).status == "ok"
    snapshots = store.open(run_id).snapshots
    return dict(zip(*(snapshots[name].to_pylist() for name in ("request_id", "status")), strict=True))


MIXED = ({}, {"allowed_sources": ["doc:other"]}, {}, {})
"""Requests of which the second shows nothing of what is erased here, and the last one is not answered."""


def test_only_shards_that_show_the_text_are_dropped_of_an_unfinished_run(tmp_path: Path) -> None:
    story = told(tmp_path)
    run_id = unfinished(story, MIXED)
    assert any("runs" in name for name in holding(tmp_path))
    erase(settings(tmp_path), user="bo", project="shop")
    done = erase(settings(tmp_path), source="doc:story")
    assert done.runs.dropped == {run_id: (2, 2)}
    assert f"dropped: 2 shards with 2 requests of {run_id}, which is unfinished" in done.text()
    assert done.as_dict()["shards_dropped"] == {run_id: {"shards": 2, "requests": 2}}
    assert erase(settings(tmp_path), source="doc:story").runs.dropped == {}
    assert holding(tmp_path) == []
    assert ended(story, run_id) == {"r0": "failed", "r1": "ok", "r2": "failed", "r3": "failed"}
    assert holding(tmp_path) == []


def test_a_damaged_log_keeps_no_erasure_from_unfinished_runs(tmp_path: Path) -> None:
    story = told(tmp_path)
    for _ in range(2):
        with story.open(runs=tmp_path / "runs") as retriever:
            finished = retriever.run([QUESTION]).run_id
    run_id = unfinished(story)
    file = tmp_path / "runs" / "LOG"
    file.write_bytes(file.read_bytes().replace(b'"ana"', b'"bob"', 1))
    done = erase(settings(tmp_path), source="doc:story")
    assert (done.runs.dropped, done.runs.unreadable) == ({run_id: (1, 1)}, [])
    assert finished in done.runs.runs
    erase(settings(tmp_path), user="bo", project="shop")
    assert holding(tmp_path) == []


def test_a_dry_run_counts_the_shards_of_an_unfinished_run_and_leaves_them(tmp_path: Path) -> None:
    run_id = unfinished(told(tmp_path), MIXED)
    before = holding(tmp_path)
    done = erase(settings(tmp_path), source="doc:story", dry_run=True)
    assert done.runs.dropped == {run_id: (2, 2)}
    assert f"would drop: 2 shards with 2 requests of {run_id}, which is unfinished" in done.text()
    assert holding(tmp_path) == before
    assert RunStore(tmp_path / "runs").resume(run_id).pending() == [3]


@pytest.mark.parametrize("damage", ["no receipt", "no part", "a damaged part"])
def test_no_byte_stays_of_a_shard_that_a_crash_left_half_stored(tmp_path: Path, damage: str) -> None:
    story = told(tmp_path)
    run_id = unfinished(story, MIXED)
    folder = tmp_path / "runs" / run_id
    receipt, part = folder / "stage/receipts/00000.json", folder / "tables/trimmed/part-00000.parquet"
    if damage == "a damaged part":
        part.write_bytes(part.read_bytes()[:-9])
    else:
        (receipt if damage == "no receipt" else part).unlink()
    (folder / "texts/.tmp-left").write_text(CANARY)
    erase(settings(tmp_path), project="shop")
    assert holding(tmp_path) == []
    assert ended(story, run_id)["r0"] == "failed"


def test_an_unfinished_run_that_took_words_from_an_event_says_them_no_more(tmp_path: Path) -> None:
    story = observed(tmp_path)
    run_id = unfinished(story, **LOOKING)
    assert any("runs" in name for name in holding(tmp_path, SEEN))
    assert erase(settings(tmp_path), source="session-event:story").runs.dropped == {run_id: (1, 1)}
    assert holding(tmp_path, SEEN) == []
    assert ended(story, run_id) == {"r0": "failed", "r1": "failed"}


def test_an_erasure_that_cannot_list_the_parts_of_an_unfinished_run_is_not_done(
    tmp_path: Path, failing_reads: FailingReads
) -> None:
    run_id = unfinished(told(tmp_path))
    parts = {tmp_path / "runs" / run_id / "tables" / name for name in ("trimmed", "citations")}
    with failing_reads.of(lambda path: path in parts, PermissionError(13, "Permission denied")):
        done = erase(settings(tmp_path), source="doc:story")
    assert (done.runs.dropped, done.runs.unreadable) == ({}, [run_id])
    assert erase(settings(tmp_path), source="doc:story").runs.dropped == {run_id: (1, 1)}


def test_an_erasure_that_cannot_read_a_part_of_an_unfinished_run_is_not_done(
    tmp_path: Path, failing_reads: FailingReads
) -> None:
    run_id = unfinished(told(tmp_path))
    part = tmp_path / "runs" / run_id / "tables/decisions/part-00000.parquet"
    with failing_reads.of(lambda path: path == part, OSError(5, "Input/output error")):
        done = erase(settings(tmp_path), source="doc:story")
    assert (done.runs.dropped, done.runs.unreadable) == ({}, [run_id])
    assert erase(settings(tmp_path), source="doc:story").runs.dropped == {run_id: (1, 1)}


def test_an_erasure_of_an_unfinished_run_that_failed_at_any_write_is_done_by_asking_again(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    run_id = unfinished(told(whole), MIXED)
    every = 1 if os.environ.get("TEST_PROFILE") == "full" else 5
    for at in count(0, every):
        folder = tmp_path / f"try-{at}"
        shutil.copytree(whole, folder)
        with failing(at) as touched, suppress(OSError):
            erase(settings(folder), project="shop")
        erase(settings(folder), project="shop")
        assert holding(folder) == []
        assert RunStore(folder / "runs").resume(run_id).pending() == [0, 1, 2, 3]
        shutil.rmtree(folder)
        if touched[0] <= at:
            break
    assert at > 20


def test_an_erasure_finds_the_runs_where_their_folder_cannot_be_looked_at(tmp_path: Path) -> None:
    asked(told(tmp_path), batch=True)
    with unseen(tmp_path / "runs"), pytest.raises(StoreError):
        erase(settings(tmp_path), source="doc:story")
    assert len(erase(settings(tmp_path), source="doc:story").runs.runs) == 1


@pytest.mark.parametrize(("owner", "step", "left"), [(compacting, "_remove", True), (log.Log, "append", False)])
def test_no_byte_stays_of_a_session_whose_compaction_was_broken_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, step: str, left: bool
) -> None:
    snapshot = asked(told(tmp_path), batch=False)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(owner, step, lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        erase(settings(tmp_path), project="shop")
    assert any("live" in name for name in holding(tmp_path)) == left
    erase(settings(tmp_path), project="shop")
    assert holding(tmp_path) == []
    assert verify(RunStore(tmp_path / "runs"), snapshot).status == "erased"


def test_an_erasure_that_is_asked_again_reaches_another_folder_of_runs(tmp_path: Path) -> None:
    asked(told(tmp_path), batch=True)
    shutil.copytree(tmp_path / "runs", tmp_path / "others")
    assert len(erase(settings(tmp_path), project="shop").runs.runs) == 1
    assert {Path(name).parts[0] for name in holding(tmp_path)} == {"others"}
    shutil.rmtree(tmp_path / "runs")
    shutil.move(tmp_path / "others", tmp_path / "runs")
    assert len(erase(settings(tmp_path), project="shop").runs.runs) == 1
    assert holding(tmp_path) == []


def test_no_byte_stays_of_a_session_whose_files_a_loss_of_power_brought_back(tmp_path: Path) -> None:
    snapshot = asked(told(tmp_path), batch=False)
    store = RunStore(tmp_path / "runs")
    run = store.open(snapshot)
    shutil.copytree(run.folder / "live", tmp_path / "aside")
    compact(store, run.run_id)
    shutil.move(tmp_path / "aside", run.folder / "live")
    erase(settings(tmp_path), project="shop")
    assert holding(tmp_path) == []
    assert verify(store, snapshot).status == "erased"


def test_a_part_that_an_erasure_named_and_left_is_told_to_be_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = asked(told(tmp_path), batch=True)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(runs_erasure, "write_bytes", _after_the_receipt(runs_erasure.write_bytes))
        erase(settings(tmp_path), project="shop")
    (problem,) = verify(RunStore(tmp_path / "runs"), snapshot).problems
    assert (problem.kind, problem.part) == ("changed", "texts/part-00000.parquet")
    assert problem.detail == "a receipt says that texts of it were erased, and they stand: ask for the erasure again"


def _after_the_receipt(right: Any) -> Any:
    def stopped(path: Path, data: Any, *, sync: bool) -> str:
        if path.suffix == ".parquet":
            raise KeyboardInterrupt
        return right(path, data, sync=sync)

    return stopped


@contextmanager
def failing(at: int) -> Iterator[list[int]]:
    """The write or removal number `at` of an erasure fails; gives how many were tried."""
    touched = [0]
    with pytest.MonkeyPatch.context() as patch:
        for owner, name in PLACES:
            patch.setattr(owner, name, _failing(getattr(owner, name), at, touched))
        yield touched


def _failing(right: Any, at: int, touched: list[int]) -> Any:
    def wrong(*args: Any, **how: Any) -> Any:
        touched[0] += 1
        if touched[0] - 1 == at:
            raise OSError(28, "no space left")
        return right(*args, **how)

    return wrong


PLACES = [
    (tombstones, "write_atomic"), (manifest, "write_atomic"), (packs, "publish_folder"), (packs, "write_table"),
    (erasing, "forget_packs"), (runs_erasure, "write_bytes"), (runs_store, "write_parquet"), (runs_store, "write_json"),
    (compacting, "_remove"), (log.Log, "append"), (shutil, "rmtree"), (Path, "unlink"),
]  # fmt: skip


@pytest.mark.parametrize("batch", [True, False], ids=["compacted", "interactive"])
def test_an_erasure_that_failed_at_any_write_is_done_by_asking_again(tmp_path: Path, batch: bool) -> None:
    whole = tmp_path / "whole"
    snapshot = asked(told(whole), batch=batch)
    every = 1 if batch or os.environ.get("TEST_PROFILE") == "full" else 6  # compaction writes many parts
    for at in count(0, every):
        folder = tmp_path / f"try-{at}"
        shutil.copytree(whole, folder)
        with failing(at) as touched:
            try:
                done: Erasure | None = erase(settings(folder), project="shop")
            except OSError:
                done = None
        assert Corpus.open(folder / "corpus").verify() == []
        if done is None or done.runs.unreadable:
            erase(settings(folder), project="shop")
        assert holding(folder) == []
        store = RunStore(folder / "runs")
        assert (verify(store, snapshot).status, replay(store, snapshot).status) == ("erased", "erased")
        shutil.rmtree(folder)
        if touched[0] <= at:
            break
    assert at > 5


class Killed(BaseException):
    """The process ends here."""


def killed_shard(story: Story) -> None:
    """The process ends amid the first shard of a run: its texts stand, and no table that says what they show."""

    def texts_alone(folder: Path, path: str, table: pa.Table) -> Any:
        if Path(path).parts[1] in ("trimmed", "citations", "structured_facts", "session_events"):
            raise Killed
        return right(folder, path, table)

    right = runs_writing._write_part
    with pytest.MonkeyPatch.context() as patch, story.open(runs=story.folder / "runs") as retriever:
        patch.setattr(runs_writing, "_write_part", texts_alone)
        with pytest.raises(Killed):
            retriever.run([QUESTION])


def killed_snapshot(story: Story) -> None:
    """The process ends before the first snapshot of a session has its name."""

    def killed(path: Path, data: bytes | memoryview, *, sync: bool) -> str:
        path.with_name(".tmp-1").write_bytes(data)
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(live_files, "write_bytes", killed)
        with pytest.raises(Killed):
            story.open(runs=story.folder / "runs").retrieve(QUESTION)


def killed_part(story: Story) -> None:
    """The process ends before a part of a finished run, written anew, has its name."""
    part = RunStore(story.folder / "runs").open(asked(story, batch=True)).folder / "texts" / "part-00000.parquet"
    shutil.copy(part, part.with_name(".tmp-1.parquet"))


def killed_removal(story: Story, left: str = "texts") -> None:
    """Somebody who was removing an unfinished run went away when the `left` folders stood still."""
    run_id = unfinished(story)
    for name in {"stage", "tables", "texts"} - {*left.split()}:
        shutil.rmtree(story.folder / "runs" / run_id / name)


def killed_removal_of_tables(story: Story) -> None:
    killed_removal(story, "stage texts")


@pytest.mark.parametrize(
    "killed", [killed_shard, killed_snapshot, killed_part, killed_removal, killed_removal_of_tables]
)
def test_no_byte_stays_of_what_a_writer_left_that_was_killed(tmp_path: Path, killed: Callable[[Story], None]) -> None:
    story = told(tmp_path)
    killed(story)
    assert any("runs" in name for name in holding(tmp_path))
    done = erase(settings(tmp_path), project="shop")
    assert (done.runs.unreadable, done.runs.being_written) == ([], [])
    assert holding(tmp_path) == []


def test_an_unfinished_run_goes_on_after_an_erasure_of_what_it_does_not_show(tmp_path: Path) -> None:
    story = told(tmp_path)
    run_id = unfinished(story, max_items=1, allowed_sources=["doc:other"])
    left = tmp_path / "runs" / run_id / "texts" / "part-00001.parquet"
    left.write_bytes(b"of a shard without a receipt")
    done = erase(settings(tmp_path), source="memory:bo")
    assert (done.runs.dropped, done.runs.remains, left.exists()) == ({}, [], False)
    assert RunStore(tmp_path / "runs").resume(run_id).pending() == [1]


def test_a_run_without_its_manifest_is_told_as_one_that_nobody_can_read(tmp_path: Path) -> None:
    snapshot = asked(told(tmp_path), batch=True)
    run = RunStore(tmp_path / "runs").open(snapshot)
    (run.folder / "manifest.json").unlink()
    assert erase(settings(tmp_path), project="shop").runs.unreadable == [run.run_id]
    (receipt,) = json.loads((tmp_path / "corpus" / "ERASED.json").read_text())["receipts"]
    assert not receipt["finished"]
