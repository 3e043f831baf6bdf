"""The folder: generations, segments, merging, cleaning up, one writer, damage."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import filelock
import numpy as np
import pytest
from corpus_rows import SOURCE, content, day, import_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from scoped_retrieval.nodes.errors import BusyError, StoreError
from scoped_retrieval.nodes.frames import key_hashes
from scoped_retrieval.pipeline.corpus import Corpus, CorpusFrame, next_generation, publishing
from scoped_retrieval.pipeline.corpus.incoming import incoming
from scoped_retrieval.pipeline.corpus.manifest import SCHEMA_VERSION
from scoped_retrieval.pipeline.corpus.postings import posting_lists, postings_of
from scoped_retrieval.pipeline.storage import chain
from stored_corpus import repin, written_again


def all_postings(frame: CorpusFrame) -> dict[str, list[tuple[str, int]]]:
    """Key -> (evidence id, frequency), over all segments."""
    ids, found = frame.evidence["evidence_id"].to_pylist(), {}
    for part, start in zip(frame.postings.parts, frame.postings.row_starts, strict=True):
        assert np.all(part.hashes == key_hashes(part.keys.to_pylist()))
        assert np.all(np.diff(part.hashes.astype(object)) >= 0)
        for i, key in enumerate(part.keys.to_pylist()):
            span = slice(part.starts[i], part.starts[i + 1])
            assert np.all(np.diff(part.rows[span]) > 0)
            pairs = zip(part.rows[span], part.freqs[span], strict=True)
            found.setdefault(key, []).extend((ids[start + row], int(freq)) for row, freq in pairs)
    return {key: sorted(pairs) for key, pairs in found.items()}


def rebuilt_postings(frame: CorpusFrame) -> dict[str, list[tuple[str, int]]]:
    """The same from the rows as they are, one by one."""
    found: dict[str, list[tuple[str, int]]] = {}
    for i, evidence_id in enumerate(frame.evidence["evidence_id"].to_pylist()):
        lists, _ = posting_lists(postings_of(frame.evidence.slice(i, 1))[0], np.array([0, 1]))
        for key, freq in zip(lists.keys.to_pylist(), lists.freqs.tolist(), strict=True):
            found.setdefault(key, []).append((evidence_id, freq))
    return {key: sorted(pairs) for key, pairs in found.items()}


TEXTS = st.sampled_from(["parse the url", "parseUrl fails", "你好 url", "", "three three three", "x.y_z"])
FIELDS = {
    "text": TEXTS,
    "path": st.sampled_from(["a.md", "src/a.py", None]),
    "owner_project": st.sampled_from(["shop", "bank"]),
    "owner_user": st.sampled_from([None, "ana"]),
    "recorded_time": st.sampled_from([day(0), day(1), day(2)]),
    "line_start": st.sampled_from([1, 7, None]),
    "occurrence": st.sampled_from([0, 1]),
    "superseded_at": st.sampled_from([None, None, day(3)]),
}
ROWS = st.fixed_dictionaries(FIELDS)
DESCRIBED = {"title": st.sampled_from([None, "Guide"]), "importance": st.sampled_from([None, 0.5])}
BATCHES = st.lists(st.lists(st.fixed_dictionaries(FIELDS | DESCRIBED), min_size=1, max_size=4), min_size=1, max_size=5)


@settings(max_examples=15, deadline=None)
@given(
    BATCHES,
    st.lists(st.booleans(), min_size=5, max_size=5),
    st.integers(2, 5),
    st.sampled_from([2, 3, 4, 5, 6, 64]),
)
def test_what_is_stored_does_not_depend_on_how_it_was_cut(
    tmp_path_factory: pytest.TempPathFactory,
    batches: list[list[dict]],
    complete: list[bool],
    fan_in: int,
    block: int,
) -> None:
    """Segments, blocks, deltas, gathered packs and merges leave no trace in rows, postings or generation."""
    corpora = []
    for cut in ((10**6, 10**6, 10**6), (fan_in, block, -1)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(publishing, "FAN_IN", cut[0])
            patch.setattr(publishing, "SEGMENT_ROWS", cut[1])
            patch.setattr(next_generation, "SEGMENT_ROWS", cut[1])
            patch.setattr(publishing, "DELTAS_KEPT", cut[2])
            corpus = Corpus.create(tmp_path_factory.mktemp("corpus") / "c")
            for number, rows in enumerate(batches):
                sources = {SOURCE} if complete[number] else set()
                corpus.publish(import_rows(*map(dict, rows)), complete_sources=sources, now=day(4 + number))
                assert corpus.verify() == []
            corpora.append(corpus)
    one, other = corpora
    assert one.generation == other.generation
    assert content(one.frame()) == content(other.frame())
    assert all_postings(one.frame()) == all_postings(other.frame()) == rebuilt_postings(one.frame())
    ids = one.frame().evidence["evidence_id"].to_pylist()
    assert len(set(ids)) == len(ids)

    before, postings = content(one.frame()), all_postings(one.frame())
    generation = one.generation
    for corpus in corpora:
        written_again(corpus, day(20))
        assert corpus.generation == generation
        assert (content(corpus.frame()), all_postings(corpus.frame())) == (before, postings)
        owners = {(s["owner_project"], s["owner_user"]) for s in corpus.frame().segments.to_pylist()}
        assert (corpus.info()["segments"], corpus.info()["packs"]) == (len(owners), 1)
        assert corpus.verify() == Corpus.open(corpus.path).verify() == []
        corpus.gc(keep=1)
        assert content(Corpus.open(corpus.path).frame()) == before


@settings(max_examples=10, deadline=None)
@given(st.lists(ROWS, min_size=1, max_size=6), st.randoms())
def test_the_same_rows_have_the_same_generation_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict], random: Any
) -> None:
    rows = [row | {"superseded_at": None} for row in rows]
    at_once = Corpus.create(tmp_path_factory.mktemp("corpus") / "c")
    at_once.publish(import_rows(*map(dict, rows)), now=day(9))
    one_by_one = Corpus.create(tmp_path_factory.mktemp("corpus") / "c")
    for row in sorted(rows, key=lambda row: (row["recorded_time"], random.random())):
        one_by_one.append(import_rows(dict(row)), now=day(10))
    assert one_by_one.generation == at_once.generation
    assert content(one_by_one.frame()) == content(at_once.frame())


def test_a_reader_keeps_the_generation_it_opened(tmp_path: Path) -> None:
    writer = Corpus.create(tmp_path)
    writer.publish(import_rows({"text": "old"}), now=day(1))
    reader, generation = Corpus.open(tmp_path), writer.generation
    writer.publish(import_rows({"text": "new"}), complete_sources={SOURCE}, now=day(2))
    written_again(writer, day(2))
    writer.gc(keep=1)
    assert reader.frame().evidence["text"].to_pylist() == ["old"]
    assert reader.frame().placements["superseded_at"].to_pylist() == [None]
    with pytest.raises(StoreError, match=f"got '{generation}' - at "):
        Corpus.open(tmp_path, generation)


def test_a_pinned_generation_stays_and_cannot_be_written_to(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path)
    corpus.publish(import_rows({"text": "old"}), now=day(1))
    generation = corpus.generation
    corpus.publish(import_rows({"text": "new"}), now=day(2))
    written_again(corpus, day(2))
    pinned = Corpus.open(tmp_path, generation)
    assert (pinned.generation, pinned.frame().evidence["text"].to_pylist()) == (generation, ["old"])
    with pytest.raises(StoreError, match="Expected the current generation, got pinned"):
        pinned.append(import_rows({"text": "more"}), now=day(3))


def test_gc_keeps_as_many_generations_as_asked(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path)
    for number in range(4):
        corpus.append(import_rows({"text": f"note {number}"}), now=day(number))
    known = corpus.info()["generations"]
    (tmp_path / "packs" / ".tmp-left").touch()
    removed = corpus.gc(keep=2)
    assert (corpus.info()["generations"], removed["generations"]) == (known[-2:], 3)
    assert not (tmp_path / "packs" / ".tmp-left").exists()
    assert Corpus.open(tmp_path, known[-2]).frame().evidence.num_rows == 3
    assert corpus.verify() == []


def test_two_writers_take_turns_and_a_third_is_told_to_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "WAIT_SECONDS", 0)
    one, two = Corpus.create(tmp_path), Corpus.open(tmp_path)
    one.append(import_rows({"text": "one"}), now=day(1))
    two.append(import_rows({"text": "two"}), now=day(1))
    one.append(import_rows({"text": "three"}), now=day(1))
    assert sorted(one.frame().evidence["text"].to_pylist()) == ["one", "three", "two"]
    with filelock.FileLock(tmp_path / ".HEADS.lock"), pytest.raises(BusyError, match="Expected no other writer"):
        two.append(import_rows({"text": "four"}), now=day(1))


def test_what_is_no_corpus_is_refused_with_a_reason(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"^Expected a corpus, got none - at "):
        Corpus.open(tmp_path)
    corpus = Corpus.create(tmp_path)
    with pytest.raises(StoreError, match=r"^Expected no corpus, got one - at "):
        Corpus.create(tmp_path)
    [manifest] = (tmp_path / "generations").glob("*.json")
    stored = manifest.read_text()
    for old, new, message in (
        (
            f'"schema_version": {SCHEMA_VERSION}',
            '"schema_version": 1',
            f"Expected schema version {SCHEMA_VERSION}, got 1 - ",
        ),
        ("prose/2", "prose/0", "Expected analyzers code/2, prose/2, got code/2, prose/0 - at "),
    ):
        manifest.write_text(stored.replace(old, new))
        repin(tmp_path)
        with pytest.raises(StoreError, match=message):
            Corpus.open(tmp_path)
        [manifest] = (tmp_path / "generations").glob("*.json")
    manifest.unlink()
    with pytest.raises(StoreError, match="Expected a manifest, got none - at ") as caught:
        Corpus.open(tmp_path)
    assert caught.value.hint == "restore it from a backup, or index the sources into a new corpus."
    assert corpus.frame().evidence.num_rows == 0


def test_a_damaged_or_missing_file_is_named(tmp_path: Path) -> None:
    corpus = Corpus.create(tmp_path)
    corpus.publish(import_rows({"text": "one"}), now=day(1))
    for file in sorted(tmp_path.rglob("*.arrow")):
        whole, at = file.read_bytes(), f"{file.parent.name}/{file.name}"
        file.unlink()  # the open corpus keeps the file it has mapped
        assert corpus.verify() == [f"Expected SHA-256 {hashlib.sha256(whole).hexdigest()}, got another - at packs/{at}"]
        with pytest.raises(StoreError, match=f"^Expected a pack, got none - at .*{at}\n\nHint: restore the pack"):
            Corpus.open(tmp_path)
        for other in (whole[:50], whole + b"0"):
            file.write_bytes(other)
            got = f"^Expected size {len(whole)}, got {len(other)} - at .*{at}\n\nHint: restore the pack"
            with pytest.raises(StoreError, match=got):
                Corpus.open(tmp_path)
        file.write_bytes(bytes(len(whole)))
        with pytest.raises(StoreError, match=f"^Expected checksum .*, got .* - at .*{at}\n\nHint: restore the pack"):
            Corpus.open(tmp_path).frame()
        file.write_bytes(whole)
    assert corpus.verify() == []


def ids(*rows: dict[str, Any]) -> list[str]:
    """The id of each row."""
    return [incoming(import_rows(dict(row)), day(1)).evidence["evidence_id"][0].as_py() for row in rows]


def test_an_id_has_not_changed_since_it_was_first_given() -> None:
    assert ids({"text": "one"}) == ["c3tsid53hgbe18kpbslsbfg6ll"]


@pytest.mark.parametrize(
    "change",
    [
        {"owner_project": "bank"}, {"owner_user": "ana"}, {"source_id": "workspace:other"}, {"path": "b.md"},
        {"path": None}, {"path": ""}, {"section": "S"}, {"section": ""}, {"text": "two"}, {"occurrence": 1},
        {"branch": "dev"}, {"workspace_root": "/w"},
    ],
)  # fmt: skip
def test_everything_an_id_is_made_of_changes_it(change: dict[str, Any]) -> None:
    one, other = ids({"text": "one"}, {"text": "one"} | change)
    assert one != other


def digest(row: dict[str, Any], now: int = 1) -> bytes:
    """The digest of what describes a row."""
    return incoming(import_rows(row), day(now)).evidence["row_digest"][0].as_py()


@pytest.mark.parametrize(
    "change",
    [
        {"zone": "public"}, {"zone": ""}, {"authority": 0}, {"confidence": 0.5}, {"principals": []}, {"title": "T"},
        {"principals": ["ana"]}, {"valid_from": day(1)}, {"generated": True}, {"redactions": [{"start": 0, "end": 1}]},
    ],
)  # fmt: skip
def test_a_row_digest_covers_what_describes_a_row(change: dict[str, Any]) -> None:
    assert digest({"text": "one"} | change) != digest({"text": "one"})
