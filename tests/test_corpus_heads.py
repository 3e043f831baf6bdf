"""A corpus that was rewritten is refused, and one that was set back does not have its anchor."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from corpus_rows import day, import_rows
from scoped_retrieval.nodes.errors import StoreError, VerificationError
from scoped_retrieval.pipeline.corpus import Corpus, Selection
from scoped_retrieval.pipeline.runs import Runs
from small_corpus import Story, row
from stored_corpus import heads, manifest_at, repin, reseal, written_again


def published(path: Path) -> Corpus:
    """A corpus with three publications after its creation; the last one has all the rows."""
    corpus = Corpus.create(path)
    for number, text in enumerate(("one", "two", "three"), start=1):
        corpus.append(import_rows({"text": text, "path": f"{text}.md"}), now=day(number))
    return corpus


def rewritten(path: Path, change: Callable[[pa.Table], pa.Table]) -> Path:
    """Change the evidence of the current pack with the word `three` and its checksums in the manifest: the manifest."""
    (file,) = (each for each in path.glob("packs/*/evidence.arrow") if b"three" in each.read_bytes())
    table = change(pa.ipc.open_file(pa.py_buffer(file.read_bytes())).read_all())
    with pa.ipc.new_file(str(file), table.schema) as writer:
        writer.write_table(table.combine_chunks())
    reseal(path, file.parent)
    return manifest_at(path)


def changed(column: str) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        at = table.column_names.index(column)
        field = table.schema.field(at)
        return table.set_column(at, field, pa.array(["three, x"] * table.num_rows, field.type))

    return change


def test_the_manifest_of_an_older_generation_is_verified(tmp_path: Path) -> None:
    corpus = published(tmp_path)
    at = manifest_at(tmp_path, heads(tmp_path)[1].body["generation"])
    whole = at.read_bytes()
    for other in (whole + b" ", b"{"):
        at.write_bytes(other)
        (problem,) = corpus.verify()
        assert re.fullmatch(rf"Expected SHA-256 \w{{64}}, got another - at generations/{at.name}", problem)
    at.write_bytes(whole)
    assert corpus.verify() == []
    at.unlink()  # as `gc` does
    assert corpus.verify() == []


def test_every_publication_is_a_line_and_the_last_one_is_current(tmp_path: Path) -> None:
    corpus = published(tmp_path)
    written_again(corpus, day(5))
    found = heads(tmp_path)
    assert [line.number for line in found] == [1, 2, 3, 4, 5]
    assert found[-1].body["generation"] == corpus.generation
    assert corpus.head == corpus.pin["head"] == Corpus.open(tmp_path).head == found[-1].hash


@pytest.mark.parametrize("column", ["owner_user", "title", "text"])
def test_a_rewritten_row_is_named_although_all_hashes_match(tmp_path: Path, column: str) -> None:
    published(tmp_path)
    anchor = Corpus.open(tmp_path).head
    at = rewritten(tmp_path, changed(column))
    with pytest.raises(StoreError, match=r"^Expected SHA-256 \w{64}, got \w{64} - at ") as caught:
        Corpus.open(tmp_path)
    assert caught.value.message.endswith(f"- at {at}")
    repin(tmp_path)
    (problem,) = Corpus.open(tmp_path).verify()
    assert "that the row's columns give, got another - at packs/" in problem
    assert problem.endswith("/evidence.arrow:0")
    assert Corpus.open(tmp_path).verify(anchor)[0].startswith("Expected the anchor among the heads of the corpus")


def test_an_earlier_head_is_an_anchor_for_good(tmp_path: Path) -> None:
    corpus = published(tmp_path)
    anchor = corpus.head
    corpus.append(import_rows({"text": "four"}), now=day(9))
    written_again(corpus, day(9))
    corpus.gc(keep=1)
    selection = Selection("ana", frozenset({"shop"}), evidence=(corpus.frame().evidence["evidence_id"][0].as_py(),))
    corpus.erase(selection, now=day(10))
    assert Corpus.open(tmp_path).verify(anchor) == []


def test_a_corpus_that_was_set_back_lacks_its_anchor(tmp_path: Path) -> None:
    corpus = published(tmp_path)
    anchor = corpus.head
    lines = (tmp_path / "HEADS").read_bytes().splitlines(keepends=True)
    (tmp_path / "HEADS").write_bytes(b"".join(lines[:-1]))
    assert Corpus.open(tmp_path).verify(anchor)[0].startswith("Expected the anchor among the heads of the corpus")
    with pytest.raises(VerificationError):
        (tmp_path / "HEADS").write_bytes(b"".join([lines[0], lines[2]]))
        Corpus.open(tmp_path).verify()


def test_a_run_names_the_head_of_the_corpus_that_it_read(tmp_path: Path) -> None:
    story = Story(tmp_path, row("doc", "docs/0.md", "Handler 0."))
    with story.open(runs=tmp_path / "runs", shard_requests=1) as opened:
        run = opened.run([{"request_id": "r", "project": "shop", "purpose": "explain-code", "question": "handler"}])
    begun = Runs(tmp_path / "runs").open(run.run_id).lines[0].body
    assert begun["pin"]["head"] == Corpus.open(tmp_path / "corpus").head
