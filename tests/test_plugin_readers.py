"""Readers of plugins: records through the import of rows, and files of a language cut at their definitions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from plugin_package import SOURCE, install, settings_of
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.pipeline.indexing import importing
from scoped_retrieval.pipeline.indexing.importing import IndexRequest, index_into
from scoped_retrieval.pipeline.plugins import installed
from scoped_retrieval.pipeline.sources.chunking import chunk_document
from scoped_retrieval.pipeline.sources.file_kinds import file_kind
from scoped_retrieval.pipeline.sources.source_reader import SourceReader, languages, tables_of
from small_corpus import NOON, Story


def test_a_reader_of_records_reads_through_the_door_of_the_corpus(tmp_path, monkeypatch):
    install(tmp_path, monkeypatch)
    story = Story(tmp_path)
    (tmp_path / "tickets.txt").write_text("T-1: billing fails at noon\nT-2: token ghp_" + "a1B2" * 9 + "\n")
    request = IndexRequest(read=(("acme.tickets", tmp_path / "tickets.txt"),), semantic=False)
    report = index_into(settings_of(story, plugins="acme"), request, now=NOON)
    assert (report.rows["acme.tickets"], report.masked) == (2, 1)
    with story.open(plugins=("acme",)) as retriever:
        rows = retriever.corpus.frame(["shop"], None).evidence.to_pylist()
    assert [one["entity"] for one in rows] == ["T-1", "T-2"] and all(one["zone"] == "internal" for one in rows)
    assert "ghp_" not in rows[1]["text"]
    with pytest.raises(InputError, match=r"got 'acme\.tickets' - at --read"):
        index_into(settings_of(story), request, now=NOON)


def test_a_reader_of_the_package_needs_a_line(tmp_path, monkeypatch):
    install(tmp_path, monkeypatch)
    (tickets,) = (reader for reader in installed(("acme",)).readers if reader.read is not None)
    monkeypatch.setitem(importing.RECORDS, "tickets", replace(tickets, name="tickets"))
    story = Story(tmp_path)
    (tmp_path / "tickets.txt").write_text("T-1: billing fails at noon\n")
    request = IndexRequest(read=(("tickets", tmp_path / "tickets.txt"),), semantic=False)
    assert index_into(settings_of(story), request, now=NOON).rows == {"tickets": 1}


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


@pytest.mark.parametrize(
    ("extensions", "message"),
    [
        (
            '("zig", "py")',
            r"Expected extensions that no other reader splits, got 'py', which this package splits - at acme\.zig\.ext",
        ),
        ('("zig", "zig")', r"got 'zig', which acme\.zig splits"),
        ('"zig"', r"Expected a tuple, got .* - at acme\.zig\.extensions"),
    ],
)
def test_a_reader_that_would_never_be_asked_is_refused(tmp_path, monkeypatch, extensions, message):
    install(tmp_path, monkeypatch, SOURCE.replace('extensions=("zig",)', f"extensions={extensions}"))
    with pytest.raises(InputError, match=message):
        installed(("acme",))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            "lines.nope",
            r"Expected a plugin that runs, got AttributeError - at acme\.zig\.outline \(acme_rules\.py, line \d+\)",
        ),
        (
            "Outline([Chunk(0, 1)], ['limit'])",
            r"Expected pairs of a line, .*, got others - at acme\.zig\.outline\.symbols",
        ),
    ],
)
def test_an_outline_that_is_none_is_refused_by_name(tmp_path, monkeypatch, given, message):
    body = "    starts = [at for at, raw in enumerate"
    install(tmp_path, monkeypatch, SOURCE.replace(body, f"    return {given}\n{body}"))
    with languages(installed(("acme",)).readers), pytest.raises(InputError, match=message):
        chunk_document("pay.zig", "fn limit()\n    return 3\n")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            "yield path.nope",
            r"Expected a plugin that runs, got AttributeError - at acme\.tickets\.read \(acme_rules\.py, line \d+\)",
        ),
        ("return None", r"Expected tables, got nothing - at acme\.tickets\.read"),
        ("return iter([{'text': []}])", r"Expected a table, got an object - at acme\.tickets\.read"),
        ("path.with_name('none').read_text()", "none"),
    ],
)
def test_what_a_reader_of_records_does_wrong_is_told_by_its_name(tmp_path, given, message):
    body = f"def read(path, *, project, now, report):\n    {given}\n"
    scope: dict[str, Any] = {}
    exec(compile(body, str(tmp_path / "acme_rules.py"), "exec"), scope)
    reader = SourceReader("acme.tickets", "Tickets.", read=scope["read"])
    (tmp_path / "tickets.txt").touch()
    with pytest.raises((InputError, FileNotFoundError), match=message):
        list(tables_of(reader, tmp_path / "tickets.txt", project="shop", now=NOON, report=None))


def test_a_reader_may_yield_tables_without_rows_or_columns(tmp_path):
    reader = SourceReader(
        "acme.none", "nothing", read=lambda path, **_: iter([pa.table({}), pa.table({"text": ["x"]})])
    )
    assert [table.num_rows for table in tables_of(reader, tmp_path)] == [1]


def test_a_reader_without_a_dot_in_its_name_is_refused(tmp_path, monkeypatch):
    entries = "[scoped_retrieval.readers]\nacme = acme_rules:ZIG\n"
    install(tmp_path, monkeypatch, SOURCE.replace('SourceReader("acme.zig"', 'SourceReader("acme"'), entries)
    with pytest.raises(InputError, match="Expected a name with a dot in it, got 'acme' - at readers"):
        installed(("acme",))
