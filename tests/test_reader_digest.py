"""What makes everything be read again: other readers, other vectors, other libraries, and nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from scoped_retrieval.pipeline.indexing import reader_digest as reader_module
from scoped_retrieval.pipeline.indexing.reader_digest import reader_digest


def test_another_version_of_what_decides_rows_or_vectors_is_another_digest(monkeypatch: pytest.MonkeyPatch):
    digests = [reader_digest(), reader_digest(vectors=True)]
    for module, name in ((reader_module.platform, "python_version"), (reader_module, "version")):
        with monkeypatch.context() as patched:
            patched.setattr(module, name, lambda *of: "0")
            digests += [reader_digest.__wrapped__(), reader_digest.__wrapped__(vectors=True)]
    assert len(set(digests)) == len(digests)


@pytest.mark.parametrize(("changed", "rows", "vectors"), [
    ("nodes/tables.py", True, True),
    ("nodes/text/text_analysis.py", True, True),
    ("pipeline/sources/files.py", True, True),
    ("data/grammars/go.scm", True, True),
    ("pipeline/redaction/rules.py", True, True),
    ("pipeline/indexing/importing.py", True, True),
    ("pipeline/encoders/encoder.py", False, True),
    ("pipeline/maintenance/doctor.py", False, False),
])  # fmt: skip
def test_a_change_of_what_decides_rows_or_vectors_is_another_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str, rows: bool, vectors: bool
):
    root = Path(reader_module.__file__).parents[2]
    for name in ("nodes", "pipeline", "data/grammars"):
        shutil.copytree(root / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(reader_module.resources, "files", lambda package: tmp_path.joinpath(*package.split(".")[1:]))
    monkeypatch.setattr(reader_module, "QUERIES", tmp_path / "data/grammars")
    before = [reader_digest.__wrapped__(vectors=told) for told in (False, True)]
    assert before == [reader_digest(vectors=told) for told in (False, True)], "a copy elsewhere reads the same"
    (tmp_path / changed).write_text("CHANGED = 1\n")
    after = [reader_digest.__wrapped__(vectors=told) for told in (False, True)]
    assert [new != old for new, old in zip(after, before, strict=True)] == [rows, vectors]
