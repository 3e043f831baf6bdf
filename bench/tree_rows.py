"""`index` over a folder of files, and again after 1 % of them changed: as a work tree, and with `--history` after a commit.

Every file is a note of some sections under a title. Of the files that change, one has a word of a section replaced and the
next has a paragraph more, in turns: most of a changed file's text stays, as it does when people edit.
"""

from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import synthetic
from bench_records import Row
from options import Options
from scoped_retrieval.pipeline.config.settings import load_settings
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.indexing.following import IndexRequest
from scoped_retrieval.pipeline.indexing.importing import index_into

FILES, SECTIONS = 4_000, 8
SHARE = 100
"""One file of so many changes."""
_WHO = ("-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "commit.gpgsign=false", "-c", "gc.auto=0")


def tree_rows(folder: Path, options: Options) -> Iterator[Row]:
    """A build and what it costs again, twice: without a history, and with one."""
    for git in (False, True):
        tree = Tree(folder / ("history" if git else "tree"), options.batch(FILES), git=git)
        yield from _rows(tree, options)


class Tree:
    """A folder of files, and the corpus that it is indexed into."""

    def __init__(self, folder: Path, files: int, *, git: bool) -> None:
        self.files, self.git, self.corpus = files, git, folder / "corpus"
        self._root = folder / "notes"
        texts = synthetic.corpus_rows(files * SECTIONS, 1, seed=31)["text"].to_pylist()
        for number in range(files):
            own = enumerate(texts[number * SECTIONS : (number + 1) * SECTIONS])
            sections = "\n".join(f"## Section {at}\n\n{text}\n" for at, text in own)
            self._path(number).parent.mkdir(parents=True, exist_ok=True)
            self._path(number).write_text(f"# Note {number}\n\n{sections}", encoding="utf-8")
        if git:
            self._run("init", "--quiet")
            self._commit()

    def index(self) -> float:
        """Seconds of one import."""
        flags = {"corpus": str(self.corpus), "project": "p", "principal": "bench"}
        settings = load_settings(flags, cwd=self.corpus.parent, environ={}, user=None)
        started = time.perf_counter()
        index_into(settings, IndexRequest(paths=(self._root,), history=self.git, semantic=False))
        return time.perf_counter() - started

    def change(self, turn: int) -> None:
        """Another 1 % of the files each turn; with a history, committed."""
        for place, number in enumerate(range(turn, self.files, SHARE)):
            text = self._path(number).read_text(encoding="utf-8")
            if place % 2:
                text = f"{text}\nWhat changed in turn {turn}.\n"
            else:
                head, mark, rest = text.partition("## Section 4\n\n")
                text = f"{head}{mark}turn{turn} {rest}"
            self._path(number).write_text(text, encoding="utf-8")
        if self.git:
            self._commit()

    def _path(self, number: int) -> Path:
        return self._root / f"part-{number // 100:03d}" / f"note-{number:05d}.md"

    def _commit(self) -> None:
        self._run("add", "--all")
        self._run("commit", "--quiet", "--message", "notes")

    def _run(self, *arguments: str) -> None:
        subprocess.run(["git", "-C", str(self._root), *_WHO, *arguments], check=True, stdout=subprocess.DEVNULL)


def _rows(tree: Tree, options: Options) -> Iterator[Row]:
    name, how = ("-git", " --history") if tree.git else ("", "")
    full = tree.index()
    rows = Corpus.open(tree.corpus).info()["rows"]
    assert rows, f"Expected rows, got none - at {tree.corpus}"
    yield Row(
        part="indexing", row=f"indexing/build{name}", unit="rows/s", ours=rows / full, value=full, value_unit="s",
        what=f"`index{how}` of {tree.files:,} files, {rows:,} rows, no vectors", aim="", met=None, queries={"ours": rows},
    )  # fmt: skip
    again = []
    for turn in range(1, options.rounds + 1):
        tree.change(turn)
        again.append(tree.index())
    value = 100 * statistics.median(again) / full
    after = "1 % of the files changed in one commit" if tree.git else f"1 % of {tree.files:,} files changed"
    yield Row(
        part="indexing", row=f"indexing/again{name}", what=f"`index{how}` again after {after}", unit="s",
        ours=statistics.median(again), systems={"full build": full}, value=value, value_unit="% of a full build",
        aim="at most 5 %", met=value <= 5, better="less", rounds=len(again), spread={"ours": [min(again), max(again)]},
        notes="writing and committing the change off the clock",
        extra={"segments": Corpus.open(tree.corpus).info()["segments"]},
    )  # fmt: skip
