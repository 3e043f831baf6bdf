"""Corpora and runs on an object store: the bytes and digests of a folder, whatever it refuses and whenever it stops."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from failing_store import FailingStore
from scoped_retrieval.nodes.errors import StoreError
from scoped_retrieval.pipeline.cli import main
from scoped_retrieval.pipeline.corpus import Corpus, Selection
from scoped_retrieval.pipeline.runs import Runs, erase_evidence, replay, verify
from scoped_retrieval.pipeline.storage.durable import copy_tree
from scoped_retrieval.pipeline.storage.places import ObjectPlace, Place, place_of
from small_corpus import NOON, Story, row
from stored_corpus import written_again

pytest.importorskip("fsspec", reason="needs the extra remote")

WORDS = ("amber", "cobalt", "ochre")
ROWS = [row("doc", f"docs/{n}.md", f"Handler {n} is described here, {WORDS[n % 3]}.") for n in range(9)]
ASKED = [{"project": "shop", "purpose": "answer-question", "question": f"which handler is {word}"} for word in WORDS]


@pytest.fixture(params=["memory", "s3"])
def prefix(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    base = "memory://stores" if request.param == "memory" else request.getfixturevalue("s3")
    return place_of(f"{base}/{tmp_path.name}")


def told(folder: Any) -> Story:
    """A story that was added to, so that its corpus has several generations, packs and changes."""
    story = Story(folder, *ROWS)
    story.tell(*ROWS[:4], complete=["doc:story"])
    story.tell(row("doc", "docs/new.md", "A new handler, amber."))
    return story


@cache
def _objects() -> dict[str, bytes]:
    """What `told` writes to a store, by name."""
    place = FailingStore().at("told-once")
    told(place)
    names = place.files()
    return dict(zip(names, place.read_all(names), strict=True))


def stored(place: ObjectPlace) -> Story:
    """`told` in a store, its objects copied there."""
    for name, data in _objects().items():
        (place / name).write_bytes(data)
    return Story.at(place)


def files_of(corpus: Place) -> list[tuple[str, bytes]]:
    """The files of the packs of a corpus, whose names are random; changes, and so digests of them, name the pack that they change."""
    names = (
        [p.relative_to(corpus).as_posix() for p in corpus.rglob("*")] if isinstance(corpus, Path) else corpus.files()
    )
    kept = (n for n in names if n.startswith("packs/") and "." in n and not n.endswith(("changes.arrow", "pack.json")))
    return sorted((n.split("/")[2], (corpus / n).read_bytes()) for n in kept)


def asked(story: Story, **how: Any) -> Any:
    engine = {"engine": how.pop("engine")} if "engine" in how else {}
    with story.open(runs=story.folder / "runs", shard_requests=1, **how) as opened:
        return opened.run(ASKED, **engine)


def digests(run: Any) -> dict[str, list[str]]:
    """The digests of the snapshots and of the texts of a run."""
    found = Runs(run.path.parent).open(run.run_id)
    return {
        "snapshots": found.snapshots["snapshot_digest"].to_pylist(),
        "texts": sorted(found.texts["sha256"].to_pylist()),
    }


def test_a_corpus_has_the_bytes_and_generations_of_one_in_a_folder(prefix: ObjectPlace, tmp_path: Path):
    here, there = told(tmp_path), told(prefix)
    assert files_of(there.folder / "corpus") == files_of(here.folder / "corpus")
    corpora = [Corpus.open(story.folder / "corpus") for story in (here, there)]
    assert not corpora[1].verify()
    assert corpora[0].info()["generations"] == corpora[1].info()["generations"]
    copy_tree(there.folder / "corpus", tmp_path / "copied")
    assert files_of(tmp_path / "copied") == files_of(here.folder / "corpus")
    for step in (lambda corpus: written_again(corpus, NOON), lambda corpus: corpus.gc(1)):
        assert step(corpora[0]) == step(corpora[1])
        assert files_of(there.folder / "corpus") == files_of(here.folder / "corpus")
    assert corpora[0].frame().evidence.equals(corpora[1].frame().evidence)


def test_a_run_has_the_digests_of_one_in_a_folder_and_is_replayed_and_verified(prefix: ObjectPlace, tmp_path: Path):
    here, there = asked(told(tmp_path)), asked(stored(prefix))
    assert digests(here) == digests(there) and here.statuses == there.statuses == {"ok": 3}
    store = Runs(prefix / "runs", create=False)
    assert verify(store, there.run_id).status == "ok" and store.unfinished() == []
    snapshot = store.open(there.run_id).snapshots["snapshot_id"][0].as_py()
    assert "Handler" in (replay(store, snapshot).block or "")


def test_what_was_erased_stands_in_no_object(prefix: ObjectPlace):
    story = stored(prefix)
    asked(story)
    corpus, store = Corpus.open(prefix / "corpus"), Runs(prefix / "runs")
    selection = Selection("ana", frozenset({"shop"}), source="doc:story")
    ids, _ = corpus.erase(selection, now=NOON, reason="asked for")
    runs = erase_evidence(store, ids, reason="asked for")
    assert runs.texts and not runs.unreadable
    assert [verify(store, run_id).status for run_id in store.run_ids()] == ["erased"]
    assert corpus.frame().evidence.num_rows == 0
    packs = [name for name in (prefix / "corpus").files() if name.startswith("packs/")]
    assert not any(b"is described here" in data for data in (prefix / "corpus").read_all(packs))


def test_a_run_that_a_store_stops_anywhere_is_finished_by_resuming(tmp_path: Path):
    whole = digests(asked(told(tmp_path)))
    stopped = 0
    for puts in (0, 5, *range(8, 99, 3)):
        failing = FailingStore()
        story = stored(failing.at(f"{tmp_path.name}/{puts}"))
        failing.puts = puts
        try:
            run = asked(story)
        except StoreError as error:
            assert "No space left on device" in f"{error.message} {error.__cause__}"
            failing.puts = None
            store = Runs(story.folder / "runs")
            for run_id in store.unfinished():
                with story.open(runs=store, shard_requests=1) as opened:
                    assert digests(opened.run(resume=run_id)) == whole
                assert verify(store, run_id).status == "ok"
                stopped += 1
        else:
            assert digests(run) == whole
            break
    assert stopped > 2


def test_a_store_that_may_only_be_read_is_read_and_refuses_what_writes(tmp_path: Path):
    failing = FailingStore()
    story = stored(failing.at(tmp_path.name))
    failing.puts, failing.error = 0, PermissionError(13, "Permission denied")
    assert story.ask("which handler is amber").block
    with pytest.raises(StoreError, match="got Permission denied - at "):
        story.tell(row("doc", "docs/late.md", "A late handler."))
    with pytest.raises(StoreError, match="got Permission denied - at "):
        asked(story)


def test_the_commands_take_urls(s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any):
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/a.md").write_text("# Handlers\n\nThe amber handler waits for ochre.\n")
    (tmp_path / "asked.jsonl").write_text('{"question": "which handler waits", "purpose": "answer-question"}\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "ana")
    where = ["--corpus", f"{s3}/cli/corpus", "--runs", f"{s3}/cli/runs"]
    assert main(["index", "tree", "--project", "shop", "--no-semantic", *where[:2]]) == 0
    assert main(["run", "asked.jsonl", "--project", "shop", *where]) == 0
    assert main(["ask", "which handler waits", "--project", "shop", *where]) == 0
    said = capsys.readouterr()
    assert "The amber handler waits for ochre." in said.out
    snapshot = said.err.split("snapshot: ")[1].split()[0]
    assert main(["show", snapshot, *where[2:]]) == 0
    assert main(["verify", *where[2:]]) == 0
    assert main(["show", snapshot, "--as", "xray", *where]) == 0
    assert main(["doctor", "--json", *where]) == 0
    checks = {
        c["name"]: c
        for c in json.loads(capsys.readouterr().out.rpartition("xray ===")[2].partition("\n{")[2].join(["{", ""]))[
            "checks"
        ]
    }
    assert checks["corpus store"]["status"] == checks["runs store"]["status"] == "ok"
    assert not list(tmp_path.glob("s3*"))
