"""One flipped bit in a file of a corpus: an error that names the file, or the answer of the file as it was written."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from corpus_rows import HashEncoder, content, day, import_rows
from scoped_retrieval.nodes.errors import StoreError
from scoped_retrieval.pipeline.corpus import Corpus, blocks
from scoped_retrieval.pipeline.corpus.blocks import CheckedFile, entry_of
from scoped_retrieval.pipeline.storage.durable import write_atomic
from scoped_retrieval.pipeline.storage.places import Place, place_of

WORDS = ("lock", "timeout", "session", "guard", "role", "token", "cache", "shard")


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of 60 rows of two owners with vectors, in blocks of 256 bytes."""
    path = tmp_path_factory.mktemp("stored")
    rows = [
        {
            "text": f"{WORDS[n % 8]} {WORDS[n * 3 % 7]} number {n}",
            "path": f"docs/{n}.md",
            "owner_user": "bo" if n % 5 == 0 else None,
        }
        for n in range(60)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "FEWEST_BYTES", 256)
        corpus = Corpus.create(path)
        corpus.publish(import_rows(*rows), now=day(1), encoder=HashEncoder())
        corpus.append(import_rows({**rows[1], "zone": "private"}), now=day(2))
        corpus.gc()  # of the rows without vectors
    return path


def everything(path: Path) -> object:
    """All that a question can read of a corpus: evidence, placements, posting lists and vectors."""
    frame = Corpus.open(path).frame()
    lists = [
        (
            words.hashes.tolist(),
            words.keys.to_pylist(),
            words.starts.tolist(),
            words.rows.tolist(),
            words.freqs.tolist(),
        )
        for words in frame.postings.parts
    ]
    vectors = [None if part is None else part.tolist() for part in frame.vectors.parts] if frame.vectors else []
    return content(frame), lists, vectors


FILES = ("evidence.arrow", "placements.arrow", "postings.arrow", "vectors.arrow")


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_is_told_or_changes_nothing(tmp_path: Path, stored: Path, name: str) -> None:
    path = tmp_path / "corpus"
    shutil.copytree(stored, path)
    expected = everything(path)
    (file,) = (file for file in path.glob(f"packs/*/{name}") if file.with_name("evidence.arrow").exists())
    whole = file.read_bytes()
    told = 0
    for bit in range(3, 8 * len(whole), 8 * len(whole) // 20):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        file.write_bytes(damaged)
        os.utime(
            file, ns=(bit, bit)
        )  # the clock of a file system advances in steps that may be longer than a turn here
        try:
            assert everything(path) == expected, f"bit {bit} of {name} changed an answer"
        except StoreError as error:
            told += 1
            assert f"packs/{file.parent.name}/{name}" in error.message
            assert error.hint.startswith("restore the pack from a backup")
    file.write_bytes(whole)
    assert told > 6
    assert everything(path) == expected


@pytest.fixture(params=["folder", "store"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return tmp_path if request.param == "folder" else place_of(f"memory://{tmp_path.name}")


def checked(file: Place, data: bytes, written: bytes | None = None) -> CheckedFile:
    """A file as it is, with the entry of the one that was written."""
    write_atomic(file, data)
    return CheckedFile(file, entry_of(memoryview(written or data)))


def test_only_the_blocks_that_are_read_are_verified(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "READ_AT_ONCE", 1 << 16)
    whole = bytes(4 << 16)
    damaged = whole[: 3 << 16] + b"\1" + whole[(3 << 16) + 1 :]
    file = checked(place / "f", damaged, whole)
    file.expect_bytes(0, 3 << 16)
    with pytest.raises(StoreError, match=r"^Expected checksum \w{16} of bytes 196608 to 262144, got \w{16} - at .*f"):
        file.expect_bytes(0, (3 << 16) + 1)


@pytest.mark.parametrize(
    ("offsets", "expected"),
    [
        ([0, 3, 99], r"Expected \d+ bytes, got an offset to 99 "),
        ([0, 5, 2], "Expected ascending offsets, got others "),
        ([-4, 2, 4], "Expected ascending offsets, got others "),
    ],
)
def test_offsets_are_verified_before_they_are_followed(place: Place, offsets: list[int], expected: str) -> None:
    """Even where checksums fit: a writer with a fault gives them as well."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, pa.schema([("text", pa.string())])) as writer:
        writer.write_table(pa.table({"text": pa.array(["ab", "cd"])}))
    data = sink.getvalue().to_pybytes()
    written, other = (np.array(each, np.int32).tobytes() for each in ([0, 2, 4], offsets))
    data = data.replace(written, other)
    file = checked(place / "f", data)
    table = file.table()
    with pytest.raises(StoreError, match=expected):
        file.expect_rows(table, 0, 2)
