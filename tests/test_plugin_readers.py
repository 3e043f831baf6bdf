"""Readers of plugins: records through the import of rows."""

from __future__ import annotations

import pytest
from plugin_package import install, settings_of
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.pipeline.indexing.following import IndexRequest
from scoped_retrieval.pipeline.indexing.importing import index_into
from small_corpus import NOON, Story


def test_a_reader_of_records_reads_through_the_door_of_the_corpus(tmp_path, monkeypatch):
    install(tmp_path, monkeypatch)
    story = Story(tmp_path)
    (tmp_path / "tickets.txt").write_text("T-1: billing fails at noon\nT-2: token ghp_" + "a1B2" * 9 + "\n")
    request = IndexRequest(read=(("acme.tickets", tmp_path / "tickets.txt"),), semantic=False)
    report = index_into(settings_of(story, plugins="acme"), request, now=NOON)
    assert (report.rows["acme.tickets"], report.sources.masked) == (2, 1)
    with story.open(plugins=("acme",)) as retriever:
        rows = retriever.corpus.frame(["shop"], None).evidence.to_pylist()
    assert [one["entity"] for one in rows] == ["T-1", "T-2"] and all(one["zone"] == "internal" for one in rows)
    assert "ghp_" not in rows[1]["text"]
    with pytest.raises(InputError, match=r"got 'acme\.tickets' - at --add"):
        index_into(settings_of(story), request, now=NOON)
