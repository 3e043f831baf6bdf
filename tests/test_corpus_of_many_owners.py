"""A corpus whose owners came one after the other, each with a few rows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FEW_DESCRIPTORS = """
import resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from corpus_rows import day, import_rows
from scoped_retrieval.pipeline.corpus import Corpus, publishing
publishing.FAN_IN = 10**6  # a pack for each owner, as earlier versions left them
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
corpus = Corpus.create(Path(sys.argv[1]))
for number in range(40):
    corpus.append(import_rows({"text": f"note {number}", "owner_project": f"p{number:02}"}), now=day(1))
again = Corpus.open(corpus.path)
assert again.info()["packs"] == 40
assert sorted(again.frame().evidence["text"].to_pylist()) == sorted(f"note {number}" for number in range(40))
assert again.frame(["p07"]).evidence["text"].to_pylist() == ["note 7"]
again.merge(now=day(2))
again.gc()
assert Corpus.open(corpus.path).verify() == []
"""


@pytest.mark.skipif(os.name == "nt", reason="no such limit")
def test_a_corpus_of_more_packs_than_files_may_be_open_is_written_and_read(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FEW_DESCRIPTORS, str(tmp_path), str(Path(__file__).parent / "support")]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
