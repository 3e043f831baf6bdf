"""What `index` says about an import: every place by file and line, what was assumed, and what was not read."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from command_line import run
from repositories import committed
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.pipeline.config.settings import load_settings
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.indexing.following import IndexRequest
from scoped_retrieval.pipeline.indexing.importing import index_into
from scoped_retrieval.pipeline.indexing.report import IndexReport
from scoped_retrieval.pipeline.progress import quiet


def indexed(folder: Path, said: list[str] | None = None, **sources: Any) -> IndexReport:
    flags = {"corpus": str(folder / "corpus"), "project": "shop", "principal": "ana"}
    settings = load_settings(flags, cwd=folder, environ={}, user=folder / "none.toml")
    sources = {name: (value,) if isinstance(value, Path) else value for name, value in sources.items()}
    say = quiet if said is None else said.append
    return index_into(settings, IndexRequest(**sources, semantic=False), say=say)


def lines_of(report: IndexReport) -> list[str]:
    return report.text().splitlines()


def test_a_state_that_nobody_knows_is_noted_with_its_place(tmp_path: Path):
    memories = [{"id": f"m{n}", "content": f"Fact {n}.", "status": s} for n, s in enumerate(["verified", "weird"])]
    (tmp_path / "m.jsonl").write_text("\n".join(map(json.dumps, memories)))
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.md").write_text("---\ntitle: A\nstatus: BANANA\n---\n# A\n\nText.\n")
    lines = lines_of(indexed(tmp_path, read=(("memory", tmp_path / "m.jsonl"), ("decisions", tmp_path / "d"))))
    (memory,) = [line for line in lines if line.startswith("note: a state that is not one of ")]
    assert memory.endswith(f"counts as candidate ({tmp_path}/m.jsonl:2)")
    (decision,) = [line for line in lines if line.startswith("note: a decision record whose status ")]
    assert decision.endswith(f"counts as candidate ({tmp_path}/d/a.md.status)")


def test_a_project_that_others_hold_is_not_granted_by_indexing_into_it(shop, capsys, monkeypatch):
    grants = shop / ".scoped-retrieval" / "corpus" / "grants.yaml"
    before = grants.read_bytes()
    code, out, err = run("index", "shop", "--project", "shop", "--no-semantic", capsys=capsys)
    assert (code, "granted:" in out, "grant" in err, grants.read_bytes()) == (0, False, False, before)
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "eve")
    code, out, err = run("index", "shop", "--project", "shop", "--no-semantic", capsys=capsys)
    assert (code, "granted:" in out, grants.read_bytes()) == (0, False, before)
    assert f"no grant was written: others may ask in shop, you (eve) may not; a grant goes into {grants}\n" in err
    assert run("ask", "default role", "--project", "shop", capsys=capsys)[0] == 3
    code, out, err = run("index", "shop", "--project", "new", "--no-semantic", capsys=capsys)
    assert (code, f"granted access to new in {grants}\n" in out, "grant" in err) == (0, True, False)
    assert run("ask", "default role", "--project", "new", capsys=capsys)[0] == 0


def test_records_go_to_the_only_project_or_one_of_the_folder_s_name(shop, capsys):
    (shop / "rows.jsonl").write_text('{"source_id": "notes:a", "text": "The zebra rule."}')
    added = ["index", "--add", "evidence=rows.jsonl", "--no-semantic", "--json"]
    assert json.loads(run(*added, capsys=capsys)[1])["project"] == "shop"
    assert json.loads(run(*added, "--corpus", "new", capsys=capsys)[1])["project"] == shop.name
    assert "at --add" in run("index", "--add", "what=rows.jsonl", capsys=capsys)[2]


def test_an_import_that_reads_nothing_says_so_and_why(tmp_path: Path):
    for name in ("a.txt", "b.rst", ".hidden/c.txt"):
        (tmp_path / "t" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "t" / name).write_text("Status: accepted\n")
    lines = lines_of(indexed(tmp_path, read=(("decisions", tmp_path / "t"),)))
    assert lines[:2] == [
        "decisions: 0 rows, nothing was read",
        "skipped: 2 of another kind than .md, .markdown, .mdx (a.txt, b.rst)",
    ]


@pytest.mark.parametrize(
    ("git", "changed", "same"),
    [(True, False, True), (True, True, False), (False, False, False)],
    ids=["committed history", "uncommitted files", "work tree"],
)
def test_only_what_is_committed_has_one_generation_whenever_it_is_imported(
    tmp_path: Path, git: bool, changed: bool, same: bool
):
    repository = tmp_path / "shop"
    repository.mkdir()
    (repository / "a.md").write_text("# A\n\nText.\n")
    committed(repository)
    if changed:
        (repository / "a.md").write_text("# A\n\nOther text.\n")

    def generation(corpus: str, hour: int) -> str:
        flags = {"corpus": str(tmp_path / corpus), "project": "shop", "principal": "ana"}
        settings = load_settings(flags, cwd=tmp_path, environ={}, user=tmp_path / "none.toml")
        request = IndexRequest(paths=(repository,), history=git, semantic=False)
        return index_into(settings, request, now=datetime(2100, 1, 1, hour, tzinfo=UTC), grant=False).generation

    assert generation("first", 1) == generation("again", 1)
    assert (generation("later", 2) == generation("first", 1)) is same


def test_the_same_words_on_another_day_of_a_session_are_another_event(tmp_path: Path):
    for day in ("2026-05-01", "2026-05-02"):
        said = {"createdAt": f"{day}T00:00:00Z", "sessionId": "s", "role": "user", "text": "yes, deploy it"}
        (tmp_path / f"{day}.jsonl").write_text(json.dumps(said))
        indexed(tmp_path, read=(("sessions", tmp_path / f"{day}.jsonl"),))
    rows = Corpus.open(tmp_path / "corpus").frame().evidence
    assert sorted(time.day for time in rows["event_time"].to_pylist()) == [1, 2]


def two_folders_of_one_name(folder: Path) -> tuple[Path, Path]:
    for above in ("a", "b"):
        (folder / above / "src").mkdir(parents=True)
        (folder / above / "src" / f"{above}.md").write_text(f"# zebra from {above}\n")
    return folder / "a" / "src", folder / "b" / "src"


def texts_of(folder: Path) -> list[str]:
    """The current rows of the corpus."""
    frame = Corpus.open(folder / "corpus").frame(["shop"])
    placed = frame.placements
    placed = placed.filter(pc.and_(pc.is_null(placed["superseded_at"]), pc.is_null(placed["deleted_at"])))
    return sorted(set(frame.evidence["text"].take(placed["row"]).to_pylist()))


@pytest.mark.parametrize("kind", ["tree", "history", "standards"])
def test_a_folder_takes_the_place_of_another_one_of_its_name_where_that_is_said(tmp_path: Path, kind: str):
    one, other = two_folders_of_one_name(tmp_path)
    for tree in (one, other) if kind == "history" else ():
        committed(tree)

    def read(path: Path, source: str | None = None) -> IndexReport:
        given = {"read": ((kind, path),)} if kind == "standards" else {"paths": path, "history": kind == "history"}
        return indexed(tmp_path, **given, source=source)

    read(one)
    read(other, "other")
    assert [text.split()[-1] for text in texts_of(tmp_path)] == ["a", "b"]
    report = read(other, "src")
    assert [text.split()[-1] for text in texts_of(tmp_path)] == ["b"]
    assert "ended: 1 row that was removed or moved" in lines_of(report)


def test_a_folder_that_was_moved_is_the_same_source(tmp_path: Path):
    one, other = two_folders_of_one_name(tmp_path)
    indexed(tmp_path, paths=one)
    shutil.rmtree(other)
    one.rename(other)
    report = indexed(tmp_path, paths=other)
    assert report.published["closed_placements"] == report.published["new_rows"] == 0
    (tmp_path / "link").symlink_to(other.parent)
    assert indexed(tmp_path, paths=tmp_path / "link" / "src").unread == {"work tree": 1}


def test_two_folders_of_one_name_are_not_read_as_one(tmp_path: Path):
    one, other = two_folders_of_one_name(tmp_path)
    with pytest.raises(InputError, match=rf"Expected folders of different names, got {one} - at {other}"):
        indexed(tmp_path, paths=(one, other))
    assert not (tmp_path / "corpus" / "HEADS").exists()
    indexed(tmp_path, paths=(one, other), source="both")
    assert [text.split()[-1] for text in texts_of(tmp_path)] == ["a", "b"]
