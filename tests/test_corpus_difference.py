"""When a stored text is open: what ends it, since when it is back, and which of several placements count."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from corpus_rows import SOURCE, day, import_rows
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.corpus.incoming import incoming

Times = list[tuple[datetime, datetime | None]]


def times(placements) -> Times:
    """Since when and until when each placement is open."""
    return list(zip(placements["recorded_time"].to_pylist(), placements["deleted_at"].to_pylist(), strict=True))


def history(folder: Path, *imports: tuple[datetime, datetime | None]) -> Times:
    """The placements of one row after complete imports: each at a time, of the row as recorded then or without it."""
    corpus = Corpus.create(folder)
    for now, recorded in imports:
        rows = import_rows(
            {"text": "kept", "path": "kept.md"},
            *([] if recorded is None else [{"text": "came and went", "recorded_time": recorded}]),
        )
        corpus.publish(rows, complete_sources=[SOURCE], now=now)
    frame = corpus.frame()
    row = frame.evidence["path"].to_pylist().index("a.md")
    return [
        time for time, at in zip(times(frame.placements), frame.placements["row"].to_pylist(), strict=True) if at == row
    ]


def test_text_that_comes_back_is_back_since_the_import_that_brought_it(tmp_path: Path):
    gone = ((day(1), day(1)), (day(2), None))
    assert history(tmp_path, *gone, (day(9), day(1))) == [(day(1), day(2)), (day(9), None)]


def test_text_that_says_since_when_it_is_back_is_believed(tmp_path: Path):
    gone = ((day(1), day(1)), (day(2), None))
    assert history(tmp_path, *gone, (day(9), day(4))) == [(day(1), day(2)), (day(4), None)]


def test_of_open_placements_in_one_place_the_earliest_counts_beside_those_that_ended():
    ended, *open_ = ({"text": "said once", "recorded_time": day(number)} for number in (1, 4, 3, 3))
    ended["deleted_at"] = day(2)
    first, *others = open_
    placements = incoming(import_rows(first, ended, *others, dict(ended)), day(9)).placements
    assert times(placements) == [(day(1), day(2)), (day(3), None)]


def test_an_import_ends_no_row_of_another_user_in_a_source_of_the_same_name(tmp_path: Path):
    corpus = Corpus.create(tmp_path)
    notes = {owner: {"text": f"note of {owner}", "owner_user": owner, "path": f"{owner}.md"} for owner in ("ana", "bo")}
    for number, owner in enumerate(notes, 1):
        corpus.publish(import_rows(notes[owner]), complete_sources=[SOURCE], user=owner, now=day(number))
    shared = import_rows({"text": "shared", "path": "shared.md"})
    corpus.publish(shared, complete_sources=[SOURCE], user="ana", project="shop", now=day(3))
    frame = corpus.frame()
    ended = dict(zip(frame.evidence["path"].to_pylist(), frame.placements["deleted_at"].to_pylist(), strict=True))
    assert ended == {"ana.md": day(3), "bo.md": None, "shared.md": None}
