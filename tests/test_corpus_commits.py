"""The commit tables of a corpus: whole histories, kept over generations, replaced and erased with their source."""

from __future__ import annotations

from pathlib import Path

import pytest
from corpus_rows import SOURCE, day, history, import_rows
from scoped_retrieval.pipeline.corpus import Corpus, Selection
from stored_corpus import written_again

OTHER = "git:other"
NONE = import_rows().slice(0, 0)


def known(corpus: Corpus, project: str = "shop") -> list[tuple[str, str]]:
    """Source and day of every commit."""
    rows = corpus.commits(project).to_pylist()
    return [(row["source_id"], str(row["recorded_time"].date())) for row in rows]


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    corpus = Corpus.create(tmp_path / "corpus")
    corpus.publish(import_rows({"text": "one"}), commits={SOURCE: history(1, 2)}, project="shop", now=day(3))
    return corpus


def test_a_later_generation_keeps_the_commits(corpus: Corpus):
    corpus.append(import_rows({"text": "two"}), now=day(4))
    corpus.publish(NONE, commits={OTHER: history(3)}, project="shop", now=day(4))
    corpus.publish(NONE, commits={OTHER: history(9)}, project="pay", now=day(4))
    written_again(corpus, day(5))
    corpus.gc(keep=1)
    opened = Corpus.open(corpus.path)
    expected = [(OTHER, "2025-01-04"), (SOURCE, "2025-01-02"), (SOURCE, "2025-01-03")]
    assert known(opened) == expected
    assert known(opened, "pay") == [(OTHER, "2025-01-10")]
    assert known(opened, "nowhere") == []
    assert opened.verify() == []


def test_a_source_that_is_read_again_replaces_its_commits(corpus: Corpus):
    first = corpus.generation
    corpus.publish(NONE, commits={SOURCE: history(2, 5)}, project="shop", now=day(6))
    assert known(corpus) == [(SOURCE, "2025-01-03"), (SOURCE, "2025-01-06")]
    assert known(Corpus.open(corpus.path, first)) == [(SOURCE, "2025-01-02"), (SOURCE, "2025-01-03")]


@pytest.mark.parametrize(
    ("selection", "left"),
    [
        ({"source": SOURCE}, [(OTHER, "2025-01-04")]),
        ({"project": "shop", "source": OTHER}, [(SOURCE, "2025-01-02"), (SOURCE, "2025-01-03")]),
        ({"source": "git:none"}, None),
    ],
)
def test_commits_are_erased_with_their_source(corpus: Corpus, selection: dict[str, str], left: list | None):
    corpus.publish(NONE, commits={OTHER: history(3)}, project="shop", now=day(4))
    before = known(corpus)
    for audited in (frozenset[str](), frozenset(["shop"])):
        chosen = Selection("ana", audited, **selection)
        assert bool(corpus.stored(chosen).histories) == (bool(audited) and left is not None)
        corpus.erase(chosen, now=day(5))
        assert known(corpus) == (before if left is None or not audited else left)
    assert corpus.verify() == []
    tables = list(corpus.path.glob("packs/*/commits.arrow"))
    assert len(tables) == (1 if left is None or left else 0) or left is None
    assert Corpus.open(corpus.path).commits("shop").equals(corpus.commits("shop"))


PROJECTS = [f"p{number:02}" for number in range(20)]


@pytest.fixture
def shared(tmp_path: Path) -> Corpus:
    """Projects that were read one by one."""
    corpus = Corpus.create(tmp_path / "shared")
    for number, project in enumerate(PROJECTS):
        read = {SOURCE: history(number), OTHER: history(number + 100)}
        corpus.publish(NONE, commits=read, project=project, now=day(3))
    return corpus


@pytest.mark.parametrize("read_again", [False, True])
def test_commits_that_are_erased_leave_those_of_other_projects(shared: Corpus, read_again: bool):
    """Also if the project was read again, and its former commits are in an earlier generation."""
    written_again(shared, day(4))
    (sha,) = [row["version"].encode() for row in shared.commits("p07").to_pylist() if row["source_id"] == SOURCE]
    if read_again:
        shared.publish(NONE, commits={SOURCE: history(300)}, project="p07", now=day(5))
    before = {project: shared.commits(project) for project in PROJECTS if project != "p07"}
    assert any(sha in file.read_bytes() for file in shared.path.rglob("*.arrow"))
    shared.erase(Selection("ana", frozenset(["p07"]), project="p07", source=SOURCE), now=day(6))
    assert not any(sha in file.read_bytes() for file in shared.path.rglob("*.arrow"))
    opened = Corpus.open(shared.path)
    assert all(opened.commits(project).equals(table) for project, table in before.items())
    assert known(opened, "p07") == [(OTHER, str(day(107).date()))]
    assert opened.verify() == []
