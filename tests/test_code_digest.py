"""The digest of the code covers what the line imports, wherever it lies, and nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from scoped_retrieval.pipeline.line.code_digest import code_digest, digest_of
from scoped_retrieval.pipeline.line.driver import STEPS

from scoped_retrieval import nodes, pipeline

FOLDERS = {name: Path(package.__file__ or "").parent for name, package in (("nodes", nodes), ("pipeline", pipeline))}


@pytest.fixture
def copied(tmp_path: Path) -> dict[str, Path]:
    for name, folder in FOLDERS.items():
        shutil.copytree(folder, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    return {name: tmp_path / name for name in FOLDERS}


@pytest.mark.parametrize("module", ["nodes/recall/bm25", "pipeline/corpus/postings"])
def test_a_change_of_what_the_line_imports_is_another_code(copied: dict[str, Path], module: str):
    before = digest_of(copied, STEPS)
    assert before == code_digest(), "a copy elsewhere is the same code"
    file = copied["nodes"].parent / f"{module}.py"
    file.write_text(file.read_text() + "\nCHANGED = 1\n")
    assert digest_of(copied, STEPS) != before


def test_a_change_of_anything_else_is_the_same_code(copied: dict[str, Path]):
    before = digest_of(copied, STEPS)
    file = copied["nodes"].parent / "pipeline/maintenance/doctor.py"
    file.write_text(file.read_text() + "\nCHANGED = 1\n")
    assert digest_of(copied, STEPS) == before
