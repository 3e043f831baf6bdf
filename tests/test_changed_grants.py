"""Grants that change while a retriever is open: what was withdrawn is gone with the next request, what was given is there."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from retrieving import LEXICAL, NOON
from scoped_retrieval.nodes.errors import PolicyError
from scoped_retrieval.pipeline.asking.retriever import Retriever
from scoped_retrieval.pipeline.config.grants import WatchedGrants, grant_all
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.runs import RunStore, verify
from scoped_retrieval.pipeline.storage.places import place_of

QUESTION = {"question": "what does role_3 return?", "project": "shop", "purpose": "explain-code"}


def granting(corpus: Corpus, people: str) -> None:
    (corpus.path / "grants.yaml").write_text(f"principals: {people}\n")


@pytest.fixture(name="retriever")
def retriever_fixture(corpus: Corpus, tmp_path: Path):
    granting(corpus, "{ana: {projects: [shop]}}")
    with Retriever.open(
        corpus, principal="ana", runs=tmp_path / "runs", lanes=LEXICAL, clock=lambda: NOON
    ) as retriever:
        yield retriever


def test_a_grant_that_was_withdrawn_is_gone_with_the_next_request(corpus: Corpus, tmp_path: Path, retriever: Retriever):
    before = retriever.retrieve(QUESTION)
    granting(corpus, "{bob: {projects: [shop]}}")
    after = retriever.retrieve(QUESTION)
    granting(corpus, "{ana: {projects: [shop]}}")
    again = retriever.retrieve(QUESTION)
    assert [one.status for one in (before, after, again)] == ["ok", "denied", "ok"]
    assert (after.block, again.block) == ("", before.block)
    store = RunStore(tmp_path / "runs")
    retriever.close()
    assert [verify(store, run_id).status for run_id in store.folders()] == ["ok", "ok"]
    runs = [store.open(str(one.snapshot_id)).provenance for one in (before, after, again)]
    rested = [dict(zip(*run.to_pydict().values(), strict=True))["grants"] for run in runs]
    assert rested[0] == rested[2] == retriever.grants.digest != rested[1]


def test_a_path_that_is_denied_from_now_on_is_not_shown(corpus: Corpus, retriever: Retriever):
    (citation, *_) = retriever.retrieve(QUESTION).citations
    granting(corpus, f"{{ana: {{projects: [shop], denied_paths: ['{citation['path']}']}}}}")
    assert citation["path"] not in [one["path"] for one in retriever.retrieve(QUESTION).citations]


def test_a_run_is_staged_under_the_grants_of_its_moment(corpus: Corpus, retriever: Retriever):
    granting(corpus, "{ana: {projects: [elsewhere]}}")
    assert retriever.run([QUESTION]).statuses == {"denied": 1}


def test_the_only_project_is_the_only_one_now(corpus: Corpus, retriever: Retriever):
    retriever.retrieve("what does role_3 return?")
    granting(corpus, "{ana: {projects: [elsewhere]}}")
    found = retriever.retrieve("what does role_3 return?")
    assert found.tables["requests"]["project"].to_pylist() == ["elsewhere"]


@pytest.mark.parametrize("content", ["principals: [", None], ids=["damaged", "gone"])
def test_under_grants_that_nobody_can_read_nothing_is_answered(
    corpus: Corpus, tmp_path: Path, retriever: Retriever, content: str | None
):
    file = corpus.path / "grants.yaml"
    file.unlink() if content is None else file.write_text(content)
    for ask in (lambda: retriever.retrieve(QUESTION), lambda: retriever.run([QUESTION])):
        with pytest.raises(PolicyError, match=r"grants\.yaml"):
            ask()
    assert not RunStore(tmp_path / "runs").folders()
    granting(corpus, "{ana: {projects: [shop]}}")
    assert retriever.retrieve(QUESTION).status == "ok"


def test_the_same_grants_written_again_are_no_other_grants(corpus: Corpus, tmp_path: Path, retriever: Retriever):
    for _ in range(2):
        granting(corpus, "{ana: {projects: [shop]}}")
        assert retriever.retrieve(QUESTION).status == "ok"
    assert len(RunStore(tmp_path / "runs").folders()) == 1


@pytest.mark.parametrize("modified", [None, 10**9], ids=["now", "long ago, as its writer says"])
def test_grants_are_read_again_until_their_time_tells_the_next_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, modified: int | None
):
    file, stat = tmp_path / "grants.yaml", Path.stat

    def even_seconds(path: Path, **how: bool) -> SimpleNamespace:
        found = stat(path, **how)
        coarse = found.st_mtime_ns // 2_000_000_000 * 2_000_000_000
        return SimpleNamespace(
            st_ino=found.st_ino, st_size=found.st_size, st_mode=found.st_mode, st_mtime_ns=modified or coarse,
            st_ctime_ns=coarse,
        )  # fmt: skip

    monkeypatch.setattr(Path, "stat", even_seconds)
    file.write_text("principals: {ana: {projects: [shop]}}")
    watched = WatchedGrants(file)
    file.write_text("principals: {bob: {projects: [shop]}}")
    assert watched.now().principals == ("bob",)


@pytest.mark.parametrize("other", ["st_ino", "st_size", "st_mtime_ns", "st_ctime_ns"])
def test_grants_of_which_any_part_of_the_status_is_another_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str
):
    """A file that is put in the place of another may have its size, and the time that its writer gave it."""
    status = dict.fromkeys(("st_ino", "st_size", "st_mode", "st_mtime_ns", "st_ctime_ns"), 1)
    monkeypatch.setattr(Path, "stat", lambda path, **how: SimpleNamespace(**status))
    file = tmp_path / "grants.yaml"
    file.write_text("principals: {ana: {projects: [shop]}}")
    watched = WatchedGrants(file)
    file.write_text("principals: {bob: {projects: [shop]}}")
    assert watched.now().principals == ("ana",)
    status[other] = 2
    assert watched.now().principals == ("bob",)


def test_grants_on_an_object_store_are_read_each_time():
    place = place_of("memory://grants-that-change/grants.yaml")
    place.write_bytes(b"principals: {ana: {projects: [shop]}}")
    watched = WatchedGrants(place)
    place.write_bytes(b"principals: {bob: {projects: [shop]}}")
    assert [watched.file.principals, watched.now().principals] == [("ana",), ("bob",)]


def test_grants_that_were_given_as_such_stay(corpus: Corpus):
    with Retriever.open(corpus, principal="ana", grants=grant_all("ana", "shop"), lanes=LEXICAL) as retriever:
        (corpus.path / "grants.yaml").unlink(missing_ok=True)
        assert retriever.retrieve(QUESTION).status == "ok"


def test_a_grant_of_a_project_for_corpora_without_grants_is_of_it_alone_and_audits_nothing():
    (row,) = grant_all("ana", "shop").table.to_pylist()
    assert (row["principal"], row["project"], row["own_project"], row["audit"], row["act_as"]) == (
        "ana",
        "shop",
        True,
        False,
        None,
    )
