"""What a publication does to what is stored: new rows, times that end, text that comes back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from corpus_rows import JANUARY, SOURCE, HashEncoder, day, import_rows
from scoped_retrieval.nodes.errors import InputError, SchemaError, StoreError
from scoped_retrieval.pipeline.corpus import Corpus, CorpusFrame


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return Corpus.create(tmp_path / "corpus")


def times(frame: CorpusFrame) -> list[tuple[Any, ...]]:
    """(text, recorded, superseded, deleted) as days since January 1st, in order of text and time."""
    placements = frame.placements.to_pylist()
    texts = frame.evidence["text"].to_pylist()
    names = ("recorded_time", "superseded_at", "deleted_at")
    days = [[None if p[name] is None else (p[name] - JANUARY).days for name in names] for p in placements]
    assert [texts[p["row"]] for p in placements] == [  # `row` and `evidence_id` say the same
        dict(zip(frame.evidence["evidence_id"].to_pylist(), texts, strict=True))[p["evidence_id"]] for p in placements
    ]
    return sorted((texts[p["row"]], *when) for p, when in zip(placements, days, strict=True))


def rows_with(frame: CorpusFrame, *keys: str) -> list[list[str]]:
    """The texts that each key finds."""
    found = frame.postings.lookup(list(keys), np.arange(frame.segments.num_rows))
    texts = frame.evidence["text"].to_pylist()
    return [sorted(texts[row] for row in found.rows[a:b]) for a, b in zip(found.starts, found.starts[1:], strict=False)]


def test_an_unchanged_import_changes_nothing(corpus: Corpus) -> None:
    rows = import_rows({"text": "one"}, {"text": "two", "path": "b.md"})
    first = corpus.publish(rows, complete_sources={SOURCE}, now=day(1))
    again = corpus.publish(rows, complete_sources={SOURCE}, now=day(2))
    assert (first.new_rows, again.new_rows, again.unchanged_rows) == (2, 0, 2)
    assert first.generation == again.generation == corpus.generation
    assert len(corpus.info()["generations"]) == 2  # the empty one and this


def test_a_source_read_again_keeps_the_time_a_text_was_first_recorded(corpus: Corpus) -> None:
    corpus.publish(import_rows({"text": "one"}), complete_sources={SOURCE}, now=day(1))
    corpus.publish(import_rows({"text": "one", "recorded_time": day(2)}), complete_sources={SOURCE}, now=day(2))
    assert times(corpus.frame()) == [("one", 0, None, None)]


def test_text_is_superseded_where_its_path_stands_and_deleted_where_it_is_gone(corpus: Corpus) -> None:
    corpus.publish(import_rows({"text": "old"}, {"text": "gone", "path": "b.md"}), now=day(1))
    report = corpus.publish(
        import_rows({"text": "new", "recorded_time": day(3)}), complete_sources={SOURCE}, now=day(3)
    )
    assert times(corpus.frame()) == [("gone", 0, None, 3), ("new", 3, None, None), ("old", 0, 3, None)]
    assert (report.new_rows, report.closed_placements) == (1, 2)


def test_an_incomplete_import_ends_nothing(corpus: Corpus) -> None:
    corpus.publish(import_rows({"text": "one"}), now=day(1))
    corpus.append(import_rows({"text": "two"}), now=day(2))
    assert times(corpus.frame()) == [("one", 0, None, None), ("two", 0, None, None)]


def test_a_complete_source_of_one_project_ends_nothing_in_another(corpus: Corpus) -> None:
    corpus.publish(import_rows({"text": "ours"}, {"text": "theirs", "owner_project": "bank"}), now=day(1))
    corpus.publish(import_rows({"text": "new"}), complete_sources={SOURCE}, now=day(2))
    assert times(corpus.frame(["bank"])) == [("theirs", 0, None, None)]
    assert times(corpus.frame(["shop"])) == [("new", 0, None, None), ("ours", 0, 2, None)]


def test_a_revert_adds_a_placement_to_the_same_row(corpus: Corpus) -> None:
    for number, text in enumerate(("first", "second", "first"), start=1):
        corpus.publish(
            import_rows({"text": text, "recorded_time": day(number)}), complete_sources={SOURCE}, now=day(number)
        )
    assert times(corpus.frame()) == [("first", 1, 2, None), ("first", 3, None, None), ("second", 2, 3, None)]
    assert corpus.frame().evidence.num_rows == 2


def test_history_says_itself_when_its_texts_ended(corpus: Corpus) -> None:
    def history(ended: Any) -> Any:
        return import_rows(
            {"text": "one", "version": "c1", "superseded_at": day(5)},
            {"text": "two", "version": "c2", "recorded_time": day(5), "superseded_at": ended},
        )

    corpus.publish(history(None), complete_sources={SOURCE}, now=day(9))
    corpus.publish(history(day(12)), complete_sources={SOURCE}, now=day(20))
    assert times(corpus.frame()) == [("one", 0, 5, None), ("two", 5, 12, None)]


def test_the_same_text_twice_in_a_document_is_two_rows(corpus: Corpus) -> None:
    corpus.publish(import_rows({"text": "one"}, {"text": "one", "occurrence": 1, "line_start": 9}), now=day(1))
    assert corpus.frame().evidence["text"].to_pylist() == ["one", "one"]
    assert corpus.frame().placements["line_start"].to_pylist() == [1, 9]


def test_a_row_described_anew_keeps_its_id_and_times(corpus: Corpus) -> None:
    corpus.publish(import_rows({"text": "claim", "lifecycle": "candidate"}, {"text": "beside"}), now=day(1))
    before = corpus.frame()
    report = corpus.append(import_rows({"text": "claim", "lifecycle": "revoked"}), now=day(2))
    after = corpus.frame()
    assert (report.new_rows, report.described_anew) == (0, 1)
    assert sorted(after.evidence["evidence_id"].to_pylist()) == sorted(before.evidence["evidence_id"].to_pylist())
    assert dict(zip(*(after.evidence[c].to_pylist() for c in ("text", "lifecycle")), strict=True)) == {
        "claim": "revoked",
        "beside": None,
    }
    assert times(after) == times(before)
    assert rows_with(after, "t:claim", "t:besid") == [["claim"], ["beside"]]


def test_a_row_is_found_by_terms_names_paths_and_ids(corpus: Corpus) -> None:
    row = {
        "text": "joining urls",
        "title": "Guide",
        "path": "src/Session.py",
        "section": "retry_policy",
        "symbols": ["Session.resolveUrl"],
        "calls": ["urljoin"],
        "entity": "DEL-12345",
        "uri": "https://Example.org/x",
        "conflict_set": "set-1",
    }
    corpus.publish(import_rows(row, {"text": "other"}), now=day(1))
    frame = corpus.frame()
    keys = ["t:join", "t:url", "t:guid", "t:retry_policy", "t:session.py", "d:Session.resolveUrl", "d:resolveurl"]
    keys += ["r:urljoin", "p:src/session.py", "p:session.py", "p:session", "i:del-12345", "i:https://example.org/x"]
    keys += [
        "c:set-1",
        "i:" + frame.evidence["evidence_id"].to_pylist()[frame.evidence["text"].to_pylist().index("joining urls")],
    ]
    assert rows_with(frame, *keys) == [["joining urls"]] * len(keys)
    assert rows_with(frame, "t:nothing", "d:session.resolveurl") == [[], []]


def test_a_frame_has_the_projects_and_users_asked_for(corpus: Corpus) -> None:
    corpus.publish(
        import_rows(
            {"text": "shared"},
            {"text": "of ana", "owner_user": "ana"},
            {"text": "of ben", "owner_user": "ben"},
            {"text": "elsewhere", "owner_project": "bank"},
        ),
        now=day(1),
    )
    assert corpus.projects() == ["bank", "shop"]
    assert corpus.frame(["shop"], ["ana"]).evidence["text"].to_pylist() == ["shared", "of ana"]
    assert corpus.frame(["shop"], []).evidence["text"].to_pylist() == ["shared"]
    assert corpus.frame(["shop"]).evidence.num_rows == 3
    assert corpus.frame([]).evidence.num_rows == 0
    frame = corpus.frame()
    starts = zip(frame.segments["row_start"].to_pylist(), frame.segments["row_end"].to_pylist(), strict=True)
    owners = [set(frame.evidence["owner_project"].to_pylist()[a:b]) for a, b in starts]
    assert owners == [{"bank"}, {"shop"}, {"shop"}, {"shop"}]
    assert corpus.frame() is frame


def test_a_text_is_encoded_once_and_its_vector_kept(corpus: Corpus) -> None:
    encoder = HashEncoder()
    corpus.publish(import_rows({"text": "one", "section": "S"}, {"text": "two"}), now=day(1), encoder=encoder)
    corpus.publish(import_rows({"text": "two", "path": "b.md"}, {"text": "three"}), now=day(2), encoder=encoder)
    assert sorted(encoder.asked) == ["S\none", "three", "two"]
    frame = corpus.frame()
    assert frame.vectors is not None
    vectors = np.concatenate([part for part in frame.vectors.parts if part is not None])
    texts = frame.evidence["text"].to_pylist()
    assert {text: v.tolist() for text, v in zip(texts, vectors, strict=True)} == {
        text: HashEncoder().encode(["S\none" if text == "one" else text])[0].tolist() for text in texts
    }


def test_whether_rows_have_vectors_is_for_imports_of_their_own_owner_to_say(corpus: Corpus) -> None:
    plain, of_bo = {"text": "one"}, {"text": "one", "owner_user": "bo", "source_id": "memory:m", "path": "m"}
    corpus.publish(import_rows(plain), now=day(1))
    corpus.publish(import_rows(of_bo), now=day(2), encoder=HashEncoder(), complete_sources=["memory:m"])
    assert owners_encoded(corpus) == {("shop", None): False, ("shop", "bo"): True}
    corpus.publish(import_rows(plain, {"text": "two"}), now=day(3), complete_sources=[SOURCE])
    assert owners_encoded(corpus) == {("shop", None): False, ("shop", "bo"): True}  # bo has the text; that says nothing
    corpus.publish(import_rows(plain), now=day(4), encoder=HashEncoder())
    assert owners_encoded(corpus) == {("shop", None): True, ("shop", "bo"): True}


def test_whether_a_row_has_a_vector_is_for_imports_of_that_row_to_say(corpus: Corpus) -> None:
    mine = ({"text": "one"}, {"text": "two"}, {"text": "same"})
    elsewhere = ({"text": "same", "path": "c.md"}, {"text": "new", "path": "c.md"})
    corpus.publish(import_rows(*mine), now=day(1))
    corpus.publish(import_rows(*elsewhere), now=day(2), encoder=HashEncoder())
    assert encoded(corpus) == {"c.md": {"same", "new"}}
    corpus.publish(import_rows({"text": "new"}), now=day(3))
    assert encoded(corpus) == {"c.md": {"same", "new"}}, "equal text elsewhere lends no vector"
    corpus.publish(import_rows({"text": "one"}), now=day(4), encoder=HashEncoder())
    assert encoded(corpus) == {"a.md": {"one"}, "c.md": {"same", "new"}}
    corpus.publish(import_rows({"text": "one", "importance": 0.5}, {"text": "two", "importance": 0.5}), now=day(5))
    assert encoded(corpus) == {"a.md": {"one"}, "c.md": {"same", "new"}}, "a row described anew keeps its vector"
    corpus.publish(import_rows({"text": "one", "title": "First"}), now=day(6))
    assert encoded(corpus) == {"c.md": {"same", "new"}}, "the title is encoded, too"
    corpus.publish(import_rows(*mine), now=day(7), encoder=HashEncoder())
    assert encoded(corpus) == {"a.md": {"one", "two", "same"}, "c.md": {"same", "new"}}
    assert corpus.verify() == []


def encoded(corpus: Corpus) -> dict[str | None, set[str]]:
    """The texts that have a vector, by path; each vector is that of its text."""
    frame, found = corpus.frame(), {}
    assert frame.vectors is not None
    for start, part in zip(frame.vectors.row_starts.tolist(), frame.vectors.parts, strict=True):
        if part is not None:
            for row, vector in zip(frame.evidence.slice(start, len(part)).to_pylist(), part, strict=True):
                found.setdefault(row["path"], set()).add(row["text"])
                assert vector.tolist() == HashEncoder().encode([row["text"]])[0].tolist()
    return found


def owners_encoded(corpus: Corpus) -> dict[tuple[str, str | None], bool]:
    """Whether every segment of an owner has vectors."""
    return {(one.owner_project, one.owner_user): one.encoded for one in corpus._base.segments()}


def test_vectors_of_two_encoders_never_meet(corpus: Corpus) -> None:
    corpus.publish(import_rows({"text": "one"}), now=day(1), encoder=HashEncoder("hash/1"))
    with pytest.raises(StoreError, match=r"^Expected encoder hash/1, got hash/2 - at "):
        corpus.publish(import_rows({"text": "two"}), now=day(2), encoder=HashEncoder("hash/2"))


def test_rows_that_are_not_what_is_expected_leave_the_corpus_as_it_was(corpus: Corpus) -> None:
    corpus.publish(import_rows({"text": "one"}), now=day(1))
    before = corpus.generation
    rows = import_rows({"text": "two"})
    owner = rows.schema.get_field_index("owner_project")
    without_owner = rows.set_column(owner, "owner_project", pa.array([None], pa.string()))
    with pytest.raises(SchemaError, match=r"got nulls - at evidence\.owner_project$"):
        corpus.publish(without_owner, now=day(2))
    with pytest.raises(InputError, match=r"^Expected a time with a time zone, got .* - at now$"):
        corpus.publish(rows, now=day(2).replace(tzinfo=None))
    assert (corpus.generation, Corpus.open(corpus.path).generation) == (before, before)
