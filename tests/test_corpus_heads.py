"""A corpus that was rewritten or set back is refused; a writer that dies at any step is no attack."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from corpus_rows import HashEncoder, day, import_rows
from repinned import repin
from scoped_retrieval.nodes.errors import StoreError
from scoped_retrieval.pipeline.corpus import Corpus, Selection, heads, manifest
from scoped_retrieval.pipeline.corpus.heads import HEADS, START, Head, append_head, chain
from scoped_retrieval.pipeline.corpus.trust import UNSIGNED
from scoped_retrieval.pipeline.storage.durable import file_sha256
from scoped_retrieval.pipeline.storage.places import place_of
from small_corpus import Story, row

FORMAT_1 = Path(__file__).parent / "fixtures/formats/corpus-1"


def published(path: Path) -> Corpus:
    """A corpus with three publications after its creation; the last one has all the rows."""
    corpus = Corpus.create(path)
    for number, text in enumerate(("one", "two", "three"), start=1):
        corpus.append(import_rows({"text": text, "path": f"{text}.md"}), now=day(number))
    return corpus


def rewritten(path: Path, change: Callable[[pa.Table], pa.Table]) -> Path:
    """Change the evidence of the current pack with the word `three` and mend its SHA-256 in the manifest: the manifest."""
    (file,) = (each for each in path.glob("packs/*/evidence.arrow") if b"three" in each.read_bytes())
    table = change(pa.ipc.open_file(pa.py_buffer(file.read_bytes())).read_all())
    with pa.ipc.new_file(str(file), table.schema) as writer:
        writer.write_table(table.combine_chunks())
    at = manifest.manifest_of(path, manifest.current(path, UNSIGNED)[0])
    document = json.loads(at.read_bytes())
    document["packs"][file.parent.name][file.name] = {"bytes": file.stat().st_size, "sha256": file_sha256(file)}
    at.write_text(json.dumps(document))
    return at


def owned_by_bob(table: pa.Table) -> pa.Table:
    at = table.column_names.index("owner_user")
    return table.set_column(at, table.schema.field(at), pa.array(["bob"] * table.num_rows, table.schema.field(at).type))


def test_the_manifest_of_an_older_generation_is_verified(tmp_path: Path) -> None:
    corpus = published(tmp_path)
    (at,) = (manifest.manifest_of(tmp_path, head.generation) for head in chain(tmp_path) if head.number == 2)
    whole = at.read_bytes()
    for other in (whole + b" ", b"{"):
        at.write_bytes(other)
        (problem,) = corpus.verify()
        assert re.fullmatch(rf"Expected SHA-256 \w{{64}}, got another - at generations/{at.name}", problem)
    at.write_bytes(whole)
    assert corpus.verify() == []
    at.unlink()  # as `gc` does
    assert corpus.verify() == []


def test_the_heads_chain_every_publication(tmp_path: Path) -> None:
    corpus = published(tmp_path)
    corpus.merge(now=day(5))
    found = chain(tmp_path)
    assert [head.number for head in found] == [1, 2, 3, 4, 5]
    assert [head.sequence for head in found] == [0, 1, 2, 3, 4]
    assert [head.previous for head in found] == [START, *(head.hash for head in found[:-1])]
    assert corpus.head == corpus.pin["head"] == Corpus.open(tmp_path).head == found[-1].hash


def test_a_rewritten_manifest_is_refused(tmp_path: Path) -> None:
    published(tmp_path)
    assert Corpus.open(tmp_path).verify() == []
    at = rewritten(tmp_path, owned_by_bob)
    with pytest.raises(StoreError, match=r"^Expected SHA-256 \w{64}, got \w{64} - at ") as caught:
        Corpus.open(tmp_path)
    assert caught.value.message.endswith(f"- at {at}")
    assert "restore the corpus from a backup" in caught.value.hint


@pytest.mark.parametrize("column", ["owner_user", "title", "text"])
def test_a_rewritten_row_is_named_although_all_hashes_match(tmp_path: Path, column: str) -> None:
    published(tmp_path)
    anchor = Corpus.open(tmp_path).head

    def changed(table: pa.Table) -> pa.Table:
        at = table.column_names.index(column)
        field = table.schema.field(at)
        return table.set_column(at, field, pa.array(["three, x"] * table.num_rows, field.type))

    rewritten(tmp_path, changed)
    repin(tmp_path)
    (problem,) = Corpus.open(tmp_path).verify()
    assert "that the row's columns give, got another - at packs/" in problem
    assert problem.endswith("/evidence.arrow:0")
    assert Corpus.open(tmp_path).verify(anchor)[0].startswith("Expected the anchor among the heads of the corpus")


def test_an_earlier_head_is_an_anchor_for_good(tmp_path: Path) -> None:
    corpus = published(tmp_path)
    anchor = corpus.head
    corpus.append(import_rows({"text": "four"}), now=day(9))
    corpus.merge(now=day(9))
    corpus.gc(keep=1)
    selection = Selection("ana", frozenset({"shop"}), evidence=(corpus.frame().evidence["evidence_id"][0].as_py(),))
    corpus.erase(selection, now=day(10))
    assert Corpus.open(tmp_path).verify(anchor) == []


def test_an_older_pointer_is_told_as_rolled_back(tmp_path: Path) -> None:
    corpus = published(tmp_path)
    older = (tmp_path / "CURRENT").read_bytes()
    corpus.append(import_rows({"text": "four"}), now=day(5))
    (tmp_path / "CURRENT").write_bytes(older)
    for act in (Corpus.open, lambda _: corpus.append(import_rows({"text": "five"}), now=day(6))):
        with pytest.raises(
            StoreError, match=r"^Expected CURRENT at sequence 4, got 3: the corpus was rolled back - at "
        ):
            act(tmp_path)


def test_a_pointer_without_its_head_is_refused_where_there_are_heads(tmp_path: Path) -> None:
    published(tmp_path)
    first = (tmp_path / "CURRENT").read_text().splitlines()[0]
    (tmp_path / "CURRENT").write_text(f"{first}\n")
    with pytest.raises(StoreError, match=r"^Expected CURRENT to name line 4 of HEADS, got none - at "):
        Corpus.open(tmp_path)


def test_the_same_text_again_is_no_changed_row(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path)
    corpus.append(import_rows(*({"text": "again", "occurrence": number} for number in range(300))), now=day(1))
    corpus.append(import_rows({"text": "again", "occurrence": 3, "title": "Another"}), now=day(2))
    assert corpus.verify() == []


@pytest.mark.parametrize("left", [0, 1, 2])
def test_heads_that_lost_lines_are_refused(tmp_path: Path, left: int) -> None:
    published(tmp_path)
    lines = (tmp_path / HEADS).read_bytes().splitlines(keepends=True)
    (tmp_path / HEADS).write_bytes(b"".join(lines[:left]))
    with pytest.raises(StoreError, match=r"^Expected HEADS to end with line 4 or the one before it, got line "):
        Corpus.open(tmp_path)


def test_a_changed_line_of_the_heads_is_named(tmp_path: Path) -> None:
    published(tmp_path)
    lines = (tmp_path / HEADS).read_text().splitlines(keepends=True)
    first = chain(tmp_path)[0]
    (tmp_path / HEADS).write_text(replace(first, sequence=7).line + "\n" + "".join(lines[1:]))
    with pytest.raises(StoreError, match=r"^Expected line 2 to continue the chain, got a changed one - at .*HEADS:2\n"):
        Corpus.open(tmp_path).verify()


def test_the_next_writer_appends_the_line_that_a_dead_one_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = published(tmp_path)

    def append(path: Path, head: Head) -> None:
        if head.number == 5:
            raise OSError(28, "No space left on device")
        append_head(path, head)

    with monkeypatch.context() as patched:
        patched.setattr(manifest, "append_head", append)
        corpus.append(import_rows({"text": "four"}), now=day(5))
    (tmp_path / HEADS).write_bytes((tmp_path / HEADS).read_bytes() + b"half a li")
    again = Corpus.open(tmp_path)
    assert again.generation == corpus.generation
    assert [head.number for head in chain(tmp_path)] == [1, 2, 3, 4, 5]
    again.append(import_rows({"text": "five"}), now=day(6))
    assert (tmp_path / HEADS).read_bytes().count(b"\n") == 6
    assert Corpus.open(tmp_path).verify() == []


def test_heads_are_an_object_each_on_a_store(s3: str) -> None:
    place = place_of(f"{s3}/heads")
    corpus = published(place)
    assert sorted(entry.name for entry in (place / HEADS).iterdir()) == [f"{n:09d}" for n in range(1, 5)]
    assert Corpus.open(place).verify(chain(place)[1].hash) == []
    older = (place / "CURRENT").read_bytes()
    corpus.merge(now=day(5))
    corpus.append(import_rows({"text": "four"}), now=day(5))
    (place / "CURRENT").write_bytes(older)
    with pytest.raises(StoreError, match="the corpus was rolled back"):
        Corpus.open(place)


def test_a_corpus_of_schema_version_1_is_read_as_it_is(tmp_path: Path) -> None:
    shutil.copytree(FORMAT_1, tmp_path / "corpus")
    before = {file: file.read_bytes() for file in (tmp_path / "corpus").rglob("*") if file.is_file()}
    corpus = Corpus.open(tmp_path / "corpus")
    assert sorted(corpus.frame().evidence["text"].to_pylist()) == ["later", "second", "the lock timeout"]
    assert (corpus.generation, corpus.head) == ("9a2e962dda530173255c82a7902c42e0", "")
    assert corpus.verify() == []
    assert {file: file.read_bytes() for file in (tmp_path / "corpus").rglob("*") if file.is_file()} == before


@pytest.mark.parametrize("writer", ["upgrade", "append", "merge", "gc", "erase"])
def test_every_writer_upgrades_a_corpus_of_schema_version_1(tmp_path: Path, writer: str) -> None:
    shutil.copytree(FORMAT_1, tmp_path / "corpus")
    corpus = Corpus.open(tmp_path / "corpus")
    known = corpus.info()["generations"]
    row = corpus.frame().evidence["evidence_id"][0].as_py()
    if writer == "upgrade":
        assert corpus.upgrade()
        assert not corpus.upgrade()
        assert [Corpus.open(corpus.path, name).verify() for name in known] == [[]] * 3
    elif writer == "append":
        corpus.append(import_rows({"text": "new"}), now=day(3), encoder=HashEncoder())
    elif writer == "erase":
        corpus.erase(Selection("ana", frozenset({"shop"}), evidence=(row,)), now=day(3))
        assert row not in corpus.frame().evidence["evidence_id"].to_pylist()
    else:
        getattr(corpus, writer)(**({"now": day(3)} if writer == "merge" else {}))
    again = Corpus.open(corpus.path)
    assert again.head == chain(corpus.path)[-1].hash
    assert again.verify(chain(corpus.path)[0].hash) == []


def test_the_last_line_is_found_at_the_end_of_a_long_file(tmp_path: Path) -> None:
    corpus = published(tmp_path)
    for number in range(60):
        corpus.append(import_rows({"text": f"row {number}"}), now=day(5))
    assert (tmp_path / HEADS).stat().st_size > heads._WINDOW
    assert Corpus.open(tmp_path).head == chain(tmp_path)[-1].hash


def test_a_run_names_the_head_of_the_corpus_that_it_read(tmp_path: Path) -> None:
    story = Story(tmp_path, row("doc", "docs/0.md", "Handler 0."))
    with story.open(runs=tmp_path / "runs", shard_requests=1) as opened:
        run = opened.run([{"request_id": "r", "project": "shop", "purpose": "explain-code", "question": "handler"}])
    document = json.loads((run.path / "manifest.json").read_text())
    assert document["corpus_head"] == Corpus.open(tmp_path / "corpus").head
    assert "corpus_head" not in document["provenance"]
