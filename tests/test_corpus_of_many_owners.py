"""A corpus whose owners came one after the other, each with a few rows."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from corpus_rows import HashEncoder, content, day, import_rows
from scoped_retrieval.pipeline.corpus import Corpus, Selection, publishing

FEW_DESCRIPTORS = """
import resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from small_corpus import NOON, Story, row
from scoped_retrieval.pipeline.corpus import Corpus, publishing
publishing.FAN_IN = 10**6  # a pack for each owner, as earlier versions left them
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
story = Story(Path(sys.argv[1]))
for number in range(40):
    story.tell(row("doc", f"docs/{number}.md", f"The ochre handler, note {number}."), project=f"p{number:02}")
story.grant("ana", "p07")
corpus = Corpus.open(story.folder / "corpus")
assert (corpus.info()["packs"], corpus.frame().evidence.num_rows) == (40, 40)
assert [citation["path"] for citation in story.ask("ochre handler", project="p07").citations] == ["docs/7.md"]
corpus.merge(now=NOON)
corpus.gc()
assert Corpus.open(corpus.path).verify() == []
"""


@pytest.mark.skipif(os.name == "nt", reason="no such limit")
def test_a_corpus_of_more_packs_than_files_may_be_open_is_written_and_read(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FEW_DESCRIPTORS, str(tmp_path), str(Path(__file__).parent / "support")]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")


def one_by_one(folder: Path, owners: int) -> Corpus:
    """Each owner comes with an import of its own; every third is encoded, and every fifth described again."""
    corpus = Corpus.create(folder)
    for number in range(owners):
        row = {"text": f"note {number}", "owner_project": f"p{number % 7}", "owner_user": f"u{number:02}"}
        encoder = HashEncoder() if number % 3 == 0 else None
        rows = import_rows(dict(row), {**row, "path": "b.md", "text": "same"})
        corpus.append(rows, now=day(1), encoder=encoder)
        if number % 5 == 0:
            corpus.append(import_rows({**row, "zone": "private", "line_start": 9}), now=day(2))
    return corpus


def rows_only(corpus: Corpus) -> list[str]:
    """The packs that hold rows."""
    return sorted({segment.pack for segment in corpus._base.segments()})


@pytest.fixture
def apart_and_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Corpus, Corpus]:
    """The same imports, with a pack for each owner and with shared ones."""
    corpora = []
    for name, fan_in in (("apart", 10**6), ("shared", 4)):
        monkeypatch.setattr(publishing, "FAN_IN", fan_in)
        corpora.append(one_by_one(tmp_path / name, 40))
    return corpora[0], corpora[1]


def test_owners_that_come_one_by_one_share_packs(apart_and_shared: tuple[Corpus, Corpus]) -> None:
    apart, shared = apart_and_shared
    assert (len(rows_only(apart)), apart.info()["segments"]) == (40, 40)
    assert (len(rows_only(shared)) <= 10, shared.info()["segments"]) == (True, 40)


def test_a_segment_that_moves_is_the_segment_it_was(apart_and_shared: tuple[Corpus, Corpus]) -> None:
    apart, shared = apart_and_shared
    assert apart.generation == shared.generation
    frames = [Corpus.open(corpus.path).frame() for corpus in apart_and_shared]
    for name in ("evidence", "placements", "segments"):
        assert getattr(frames[0], name).equals(getattr(frames[1], name)), name
    for one, other in zip(frames[0].postings.parts, frames[1].postings.parts, strict=True):
        assert one.keys.equals(other.keys)
        lists = [[part.rows[slice(*span)].tolist() for span in pairwise(part.starts)] for part in (one, other)]
        assert lists[0] == lists[1]
    assert frames[0].vectors is not None and frames[1].vectors is not None
    for one, other in zip(frames[0].vectors.parts, frames[1].vectors.parts, strict=True):
        assert (one is None) == (other is None)
        assert one is None or np.array_equal(one, other)
    assert shared.verify() == []


def test_what_is_gathered_stays_readable_until_nothing_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "FAN_IN", 4)
    corpus = one_by_one(tmp_path, 3)
    before, reader = corpus.generation, Corpus.open(tmp_path)
    wanted = content(corpus.frame())
    packs = rows_only(corpus)
    for number in range(3):
        corpus.append(import_rows({"text": "more", "owner_project": f"q{number}"}), now=day(3))
    assert not set(packs) & set(rows_only(corpus))
    assert content(Corpus.open(tmp_path, before).frame()) == wanted
    corpus.gc()
    assert {folder.name for folder in (tmp_path / "packs").iterdir()} == set(corpus._base.packs)
    assert content(reader.frame()) == wanted


def test_a_merge_leaves_the_small_packs_as_one_and_then_nothing_to_do(tmp_path: Path) -> None:
    corpus = one_by_one(tmp_path, 12)
    wanted, generation = content(corpus.frame()), corpus.generation
    assert len(rows_only(corpus)) == 12
    corpus.merge(now=day(3))
    assert (len(rows_only(corpus)), corpus.info()["packs"]) == (1, 1)
    assert (content(corpus.frame()), corpus.generation, corpus.verify()) == (wanted, generation, [])
    written = (tmp_path / "HEADS").read_text()
    assert corpus.merge(now=day(4)).segments_written == 0
    assert (tmp_path / "HEADS").read_text() == written


def test_what_is_erased_of_a_shared_pack_leaves_the_other_owners_whole(tmp_path: Path) -> None:
    corpus = one_by_one(tmp_path, 12)
    corpus.merge(now=day(3))
    corpus.append(
        import_rows({"text": "note 4", "owner_project": "p4", "owner_user": "u04", "zone": "public"}), now=day(3)
    )
    kept = [row for row in content(corpus.frame())[0] if row["owner_user"] != "u04"]
    corpus.erase(Selection("ana", frozenset({"p4"}), user="u04"), now=day(4))
    assert content(corpus.frame())[0] == kept
    assert not [path for path in tmp_path.rglob("*.arrow") if b"note 4" in path.read_bytes()]
    assert corpus.verify() == []
