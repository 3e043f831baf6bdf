"""Erasure: no byte of corpus or runs holds the text any more, a receipt says so, and it does not come back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from erasing_world import (
    CANARY,
    GONE,
    GRANTS,
    KEPT,
    LOOKING,
    MORE,
    QUESTION,
    SEEN,
    asked,
    holding,
    observed,
    settings,
    told,
)
from scoped_retrieval.nodes.errors import AccessError, ErasedError, InputError
from scoped_retrieval.pipeline.asking import session
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.corpus import store as corpus_store
from scoped_retrieval.pipeline.engines.shards import ShardJob, in_this_process
from scoped_retrieval.pipeline.maintenance.erasure import erase
from scoped_retrieval.pipeline.runs import Runs, replay, verify
from scoped_retrieval.pipeline.servers.renderings import FORMATS, rendered
from scoped_retrieval.pipeline.sources.importing import normalize
from small_corpus import NOON, Story, row
from stand_in_encoder import WordsByTheirStart
from stored_corpus import manifest_at


@pytest.mark.parametrize("batch", [True, False], ids=["compacted", "interactive"])
@pytest.mark.parametrize("encoder", [None, WordsByTheirStart()], ids=["lexical", "vectors"])
def test_no_byte_holds_an_erased_source(tmp_path: Path, batch: bool, encoder: Any) -> None:
    story = told(tmp_path, encoder=encoder)
    snapshot = asked(story, batch=batch)
    assert {Path(name).parts[0] for name in holding(tmp_path)} == {"corpus", "runs"}
    done = erase(settings(tmp_path), source="doc:story", reason="asked by its owner")
    done = erase(settings(tmp_path), source="memory:bo")
    assert holding(tmp_path) == []
    assert (done.runs.discarded, done.runs.unreadable) == ([], [])
    store = Runs(tmp_path / "runs")
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
    assert not kept or all(verify(Runs(tmp_path / "runs"), run).ok for run in Runs(tmp_path / "runs").run_ids())


@pytest.mark.parametrize("requests", [1, 2])
def test_a_run_that_goes_on_beside_an_erasure_stores_nothing_more(tmp_path: Path, requests: int) -> None:
    story = told(tmp_path)
    store = Runs(tmp_path / "runs")

    def erased_meanwhile(job: ShardJob, shards: Sequence[int], clock: Callable[[], datetime]) -> Iterator[int]:
        for shard in in_this_process(job, shards, clock):
            yield shard
            for source in ("doc:story", "memory:bo"):
                erase(settings(tmp_path), source=source)

    with story.open(runs=store, shard_requests=1) as retriever:
        with pytest.raises(ErasedError) as raised:
            retriever.run([QUESTION, QUESTION | {"request_id": "z"}][:requests], engine=erased_meanwhile)
        with pytest.raises(ErasedError, match=r"Hint: open it again$"):
            retriever.run([QUESTION])
    assert store.unfinished() == []
    assert raised.value.hint.startswith("open it again") and "--resume" not in raised.value.hint
    for source in ("doc:story", "memory:bo"):
        erase(settings(tmp_path), source=source)
    assert (holding(tmp_path), store.unfinished()) == ([], [])


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
    without = corpus_store.erased

    def amid(*given: Any) -> Any:
        opened.append(Corpus.open(tmp_path / "corpus"))
        opened[0].expect_unerased()  # what is asked for is not done yet
        return without(*given)

    monkeypatch.setattr(corpus_store, "erased", amid)
    erase(settings(tmp_path), source="doc:story")
    for each in (opened[0], opened[0].view()):
        with pytest.raises(ErasedError):
            each.expect_unerased()


def other_rows() -> pa.Table:
    """A document of a source of its own."""
    table = pa.Table.from_pylist([row("doc", "docs/other.md", KEPT, source_id="doc:more")])
    return normalize(table, project="shop", principal="ana", now=NOON)[0]


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
    assert verify(Runs(tmp_path / "runs"), snapshot).status == "erased"


def test_what_other_requests_asked_stays_when_an_event_is_erased(tmp_path: Path) -> None:
    asked(observed(tmp_path), batch=True, **LOOKING | {"session_id": "s-2"})
    (run,) = Runs(tmp_path / "runs").list()
    before = set(run.texts["text"].to_pylist())
    erase(settings(tmp_path), source="session-event:story")
    assert before - set(Runs(tmp_path / "runs").open(run.run_id).texts["text"].to_pylist()) == {"s-1.jsonl"}


def test_the_same_text_of_the_same_source_stays_out_and_other_text_comes_in(tmp_path: Path) -> None:
    story = told(tmp_path)
    erase(settings(tmp_path), source="doc:story")
    for path in ("docs/old.md", "docs/moved.md"):
        story.tell(row("doc", path, GONE), row("doc", "docs/fresh.md", "a new line"), complete=["doc:story"])
    texts = Corpus.open(tmp_path / "corpus").frame().evidence["text"].to_pylist()
    assert GONE not in texts
    assert "a new line" in texts


def test_the_same_erasure_again_leaves_the_generations_since(tmp_path: Path) -> None:
    story = told(tmp_path)
    assert erase(settings(tmp_path), source="doc:story").generations > 0
    story.tell(row("doc", "docs/fresh.md", "a new line", source_id="doc:more"))
    since = Corpus.open(tmp_path / "corpus").info()["generations"]
    assert len(since) == 2
    assert erase(settings(tmp_path), source="doc:story").generations == 0
    assert Corpus.open(tmp_path / "corpus").info()["generations"] == since


def test_an_erased_snapshot_is_shown_in_every_form(tmp_path: Path) -> None:
    snapshot = asked(told(tmp_path), batch=False)
    erase(settings(tmp_path), source="doc:story")
    for form in FORMATS.values:
        shown = rendered(settings(tmp_path), snapshot, form)
        assert (shown.status, GONE in shown.text) == ("erased", False), form


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


def test_a_source_without_its_kind_leads_to_the_full_ids_of_rows_that_may_be_erased(tmp_path: Path) -> None:
    told(tmp_path)

    def hint(principal: str, source: str) -> str:
        with pytest.raises(AccessError) as refused:
            erase(settings(tmp_path, principal), source=source)
        return refused.value.hint

    full = "a source is given by its full id, such as `workspace:story` or `git:story`; you may erase your own"
    assert hint("ana", "story").startswith(f"did you mean doc:story? {full}")
    assert hint("bo", "story").startswith(full), "a source of other people's rows is not named"
    assert hint("bo", "bo").startswith("did you mean memory:bo?")
    assert hint("ana", "doc:none").startswith("you may erase your own")


def test_a_dry_run_counts_and_writes_nothing(tmp_path: Path) -> None:
    story = told(tmp_path)
    asked(story, batch=False)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    done = erase(settings(tmp_path), source="doc:story", dry_run=True)
    assert (done.rows, len(done.runs.runs), done.dry_run) == (2, 1, True)
    assert done.runs.texts == 7  # two items, their locators, their paths and their block
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert after == before


def test_the_receipt_has_no_payload(tmp_path: Path) -> None:
    told(tmp_path)
    erase(settings(tmp_path), source="doc:story", reason="asked")
    (receipt,) = json.loads(manifest_at(tmp_path / "corpus").read_text())["receipts"]
    assert (receipt["by"], receipt["reason"], receipt["selection"]) == ("ana", "asked", {"source": "doc:story"})
    (file,) = (tmp_path / "corpus").glob("packs/*/erased.arrow")
    assert (receipt["rows"], file.parent.name) == (2, receipt["pack"])
    assert b"drawer" not in file.read_bytes() + json.dumps(receipt).encode()


MEMO = "The fee of ENG-001 is $50,000, said the memo."
NOTE = "on record: fee is $52,500"
VARIABLES = {"venture": "acme", "engagement": "e", "current_project": "p"}


@pytest.mark.parametrize("batch", [True, False], ids=["compacted", "interactive"])
def test_no_byte_holds_what_an_erased_record_said_beside_other_items(tmp_path: Path, batch: bool) -> None:
    record = row("structured-fact", "sot/engagements.csv", "id: ENG-001\nfee: $52,500\n", entity="ENG-001", authority=3)
    memo = row("doc", "ventures/acme/projects/p/context/memo.md", MEMO)
    story = Story(tmp_path, record, memo)
    (tmp_path / "grants.yaml").write_text(yaml.safe_dump(GRANTS), encoding="utf-8")
    question = QUESTION | {"question": "What is the fee of ENG-001?", "mode": "execution", "variables": VARIABLES}
    with story.open(runs=tmp_path / "runs") as retriever:
        if batch:
            summary = retriever.run([question])
        else:
            found = retriever.retrieve(question)
            assert NOTE in found.block
            retriever.close(compacted=False)
    store = Runs(tmp_path / "runs")
    snapshot = store.open(summary.run_id).snapshots["snapshot_id"][0].as_py() if batch else found.snapshot_id
    assert any(NOTE in str(text) for text in store.open(snapshot).texts["text"].to_pylist())

    erase(settings(tmp_path), source="structured-fact:story")
    assert holding(tmp_path, "52,500") == []
    assert holding(tmp_path / "runs", "said the memo") != [], "what the memo says is another source"
    assert verify(store, snapshot).status == "erased"
