"""Readers of plugins: records through the import of rows, and files of a language cut at their definitions."""

from __future__ import annotations

from typing import Any

import pytest
from plugin_package import SOURCE, install, settings_of
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.pipeline.indexing.importing import index_into
from scoped_retrieval.pipeline.indexing.request import IndexRequest
from scoped_retrieval.pipeline.plugins import installed
from scoped_retrieval.pipeline.sources.chunking import chunk_document
from scoped_retrieval.pipeline.sources.file_kinds import file_kind
from scoped_retrieval.pipeline.sources.source_reader import languages
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


def test_files_of_a_plugin_s_language_are_cut_at_their_definitions(tmp_path, monkeypatch):
    install(tmp_path, monkeypatch)
    story = Story(tmp_path)
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "pay.zig").write_text("fn limit() u8 {\n    return 3;\n}\nfn wait() void {\n    pause();\n}\n")
    request = IndexRequest(paths=(tmp_path / "tree",), semantic=False)

    def read(**flags: Any) -> set[tuple[Any, ...]]:
        index_into(settings_of(story, **flags), request, now=NOON)
        with story.open() as retriever:
            frame = retriever.corpus.frame(["shop"], None)
            current = frame.placements["row"].filter(frame.placements["superseded_at"].is_null())
            rows = frame.evidence.take(current.combine_chunks()).to_pylist()
        return {(one["language"], one["section"], *one["symbols"]) for one in rows}

    assert read(plugins="acme") == {("zig", "limit", "limit"), ("zig", "wait", "wait")}


def test_a_plugin_cuts_what_the_package_knows_but_has_no_grammar_for(tmp_path, monkeypatch):
    cut = {name: file_kind(f"pay.{name}").splitter for name in ("lua", "scala", "r", "sql")}
    name = next(name for name, splitter in cut.items() if splitter == "lines")  # one that still has no grammar
    install(tmp_path, monkeypatch, SOURCE.replace('extensions=("zig",)', f'extensions=("{name}", "yaml")'))
    with languages(installed(("acme",)).readers):
        kinds = [file_kind(path) for path in (f"src/pay.{name}", f"docs/pay.{name}", "deploy.yaml")]
        chunks = chunk_document(f"pay.{name}", "fn limit()\n    return 3\nfn wait()\n    pause()\n")
    assert [(one.splitter, one.language, one.document_type) for one in kinds] == [
        ("acme.zig", name, None), ("acme.zig", name, "example"), ("acme.zig", "yaml", "config"),
    ]  # fmt: skip
    assert [one.section for one in chunks] == ["limit", "wait"]
