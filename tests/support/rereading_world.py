"""A folder that is indexed again and again, with what is known of it and without."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from scoped_retrieval.pipeline.config.settings import load_settings
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.corpus.manifest import CACHE
from scoped_retrieval.pipeline.indexing.importing import index_into
from scoped_retrieval.pipeline.indexing.report import IndexReport
from scoped_retrieval.pipeline.indexing.request import IndexRequest

NOW = datetime.now(UTC) + timedelta(hours=1)
SECRET = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"


@dataclass
class World:
    """A folder `tree` and the corpus that it is indexed into, each time a minute later; `whole` knows nothing from before."""

    folder: Path
    git: bool = False
    whole: bool = False
    name: str = "corpus"
    times: int = 0

    def index(self, *paths: Path, principal: str = "ana", **asked: Any) -> IndexReport:
        flags = {"corpus": str(self.corpus), "project": "shop", "principal": principal}
        settings = load_settings(flags, cwd=self.folder, environ={}, user=self.folder / "none.toml")
        if self.whole:
            shutil.rmtree(self.corpus / CACHE, ignore_errors=True)
        self.times += 1
        request = IndexRequest(**{"paths": paths or (self.tree,), "history": self.git, "semantic": False} | asked)
        return index_into(settings, request, now=NOW + timedelta(minutes=self.times))

    @property
    def corpus(self) -> Path:
        return self.folder / self.name

    @property
    def tree(self) -> Path:
        return self.folder / "tree"

    def write(self, **files: str) -> None:
        for name, text in files.items():
            (self.tree / f"{name}.md").parent.mkdir(parents=True, exist_ok=True)
            (self.tree / f"{name}.md").write_text(text)


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True)


def paths_of(corpus: Path) -> set[str]:
    """The paths of rows that have not ended."""
    frame = Corpus.open(corpus).frame()
    ended = [
        a or b for a, b in zip(*(frame.placements[n].to_pylist() for n in ("superseded_at", "deleted_at")), strict=True)
    ]
    rows = frame.placements["row"].to_pylist()
    return {frame.evidence["path"][row].as_py() for row, end in zip(rows, ended, strict=True) if end is None}


def rows_of(corpus: Path) -> set[str]:
    """The ids of rows that have not ended somewhere."""
    frame = Corpus.open(corpus).frame()
    columns = (frame.placements[name].to_pylist() for name in ("row", "superseded_at", "deleted_at"))
    return {
        frame.evidence["evidence_id"][row].as_py() for row, *ends in zip(*columns, strict=True) if ends == [None] * 2
    }


@pytest.fixture(name="world")
def world_fixture(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.write(a="# A\n\nOne.\n", b="# B\n\nTwo.\n")
    return world
