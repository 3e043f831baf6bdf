"""What makes everything be cut again: other readers, other libraries, and nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from scoped_retrieval.pipeline.indexing import reader_digest as reader_module
from scoped_retrieval.pipeline.indexing.reader_digest import reader_digest


def test_another_version_of_what_decides_chunks_is_another_digest(monkeypatch: pytest.MonkeyPatch):
    digests = [reader_digest()]
    for module, name in ((reader_module.platform, "python_version"), (reader_module, "version")):
        with monkeypatch.context() as patched:
            patched.setattr(module, name, lambda *of: "0")
            digests.append(reader_digest.__wrapped__())
    assert len(set(digests)) == len(digests)


@pytest.mark.parametrize(("changed", "other"), [
    ("nodes/tables.py", True),
    ("nodes/text/text_analysis.py", True),
    ("pipeline/sources/files.py", True),
    ("data/grammars/go.scm", True),
    ("pipeline/redaction/rules.py", True),
    ("pipeline/maintenance/doctor.py", False),
])  # fmt: skip
def test_a_change_of_what_decides_chunks_is_another_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str, other: bool
):
    root = Path(reader_module.__file__).parents[2]
    for name in ("nodes", "pipeline", "data/grammars"):
        shutil.copytree(root / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(reader_module.resources, "files", lambda package: tmp_path.joinpath(*package.split(".")[1:]))
    monkeypatch.setattr(reader_module, "QUERIES", tmp_path / "data/grammars")
    before = reader_digest.__wrapped__()
    assert before == reader_digest(), "a copy elsewhere reads the same"
    (tmp_path / changed).write_text("CHANGED = 1\n")
    assert (reader_digest.__wrapped__() != before) is other
