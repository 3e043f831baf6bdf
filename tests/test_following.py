"""The first question in a folder and every one after it: no set-up step, and no answer older than the files."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import anyio
import pytest
from command_line import run
from repositories import committed, git
from scoped_retrieval.pipeline.config.settings import load_settings
from scoped_retrieval.pipeline.corpus import Corpus

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file at the top and one below, as the working folder; the home folder is beside it."""
    folder = tmp_path / "shop"
    (folder / "src").mkdir(parents=True)
    (folder / "zebra.md").write_text("# Zebra\n\nHow the zebra sleeps.\n")
    (folder / "src" / "walrus.md").write_text("# Walrus\n\nHow the walrus sleeps.\n")
    monkeypatch.chdir(folder)
    for name in ("CONFIG", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "ana")
    return folder


def shown(capsys: Capture, *flags: str) -> tuple[list[str], str]:
    """The paths of an answer that finds every file, and its text."""
    code, out, err = run("ask", "how does the zebra walrus okapi sleep", "--json", *flags, capsys=capsys)
    assert code == 0, err
    answer = json.loads(out)
    return sorted({each["path"] for each in answer["citations"]}), answer["block"]


def test_a_folder_without_a_corpus_answers_at_once_and_also_from_below(shop: Path, monkeypatch, capsys: Capture):
    assert shown(capsys)[0] == ["src/walrus.md", "zebra.md"]
    monkeypatch.chdir(shop / "src")
    assert shown(capsys)[0] == ["src/walrus.md", "zebra.md"] and not (shop / "src" / ".scoped-retrieval").exists()
    assert str(shop / ".scoped-retrieval" / "corpus") in run("ask", "okapi", capsys=capsys)[2]


def test_the_first_question_below_the_top_of_a_repository_reads_all_of_it(shop: Path, monkeypatch, capsys: Capture):
    git(shop, "init", "-q")
    monkeypatch.chdir(shop / "src")
    assert shown(capsys)[0] == ["src/walrus.md", "zebra.md"]
    assert (shop / ".scoped-retrieval").exists() and not Path(".scoped-retrieval").exists()


def test_upwards_only_a_folder_with_a_corpus_is_found(shop: Path, monkeypatch, capsys: Capture):
    (shop / ".scoped-retrieval" / "runs").mkdir(parents=True)
    monkeypatch.chdir(shop / "src")
    assert shown(capsys)[0] == ["walrus.md"]


def test_each_folder_of_a_corpus_elsewhere_is_a_project_of_its_name(shop: Path, tmp_path: Path, capsys: Capture):
    (tmp_path / "zoo").mkdir()
    (tmp_path / "zoo" / "okapi.md").write_text("How the okapi sleeps.\n")
    corpus = str(tmp_path / "both")
    for folder in (shop, tmp_path / "zoo", shop):
        assert run("index", str(folder), "--corpus", corpus, "--no-semantic", capsys=capsys)[0] == 0
    assert Corpus.open(corpus).projects() == ["shop", "zoo"]


@pytest.mark.parametrize("indexed", [False, True], ids=["asked", "indexed"])
def test_an_answer_has_what_is_in_the_files_now(shop: Path, capsys: Capture, indexed: bool):
    if indexed:
        assert run("index", ".", "--no-semantic", capsys=capsys)[0] == 0
    shown(capsys)
    (shop / "zebra.md").write_text("# Zebra\n\nThe zebra sleeps standing up.\n")
    (shop / "src" / "walrus.md").unlink()
    (shop / "okapi.md").write_text("# Okapi\n\nThe okapi sleeps.\n")
    paths, block = shown(capsys)
    assert paths == ["okapi.md", "zebra.md"] and "standing up" in block and "How the zebra" not in block


def test_a_folder_is_read_again_as_it_was_indexed(shop: Path, capsys: Capture):
    assert (
        run("index", ".", "--no-semantic", "--exclude", "src/", "--project", "p", "--corpus", "c", capsys=capsys)[0]
        == 0
    )
    (shop / "okapi.md").write_text("# Okapi\n\nThe okapi sleeps.\n")
    assert shown(capsys, "--corpus", "c")[0] == ["okapi.md", "zebra.md"]


def test_of_several_projects_a_question_is_asked_in_the_one_that_follows_the_folder(
    shop: Path, monkeypatch, capsys: Capture
):
    shown(capsys)
    (shop.parent / "next").mkdir()
    (shop.parent / "next" / "okapi.md").write_text("# Okapi\n\nThe okapi sleeps.\n")
    assert run("index", "../next", "--no-semantic", "--project", "next", capsys=capsys)[0] == 0
    assert shown(capsys)[0] == ["src/walrus.md", "zebra.md"]
    corpus = str(shop / ".scoped-retrieval" / "corpus")
    monkeypatch.chdir(shop.parent / "next")
    assert shown(capsys, "--corpus", corpus)[0] == ["okapi.md"]
    assert shown(capsys, "--corpus", corpus, "--project", "shop")[0] == ["src/walrus.md", "zebra.md"]
    monkeypatch.chdir(shop.parent)
    assert "next, shop" in run("ask", "okapi", "--corpus", corpus, capsys=capsys)[2]


def test_a_question_needs_no_quotes_and_one_of_stop_words_matches_nothing_strongly(shop: Path, capsys: Capture):
    (shop / "src" / "night.py").write_text("def zebra(night):\n    # the zebra sleeps in the night\n    return night\n")
    found = {}
    for words in (["the"], ["how", "the", "zebra", "sleeps"], ["how the zebra sleeps"]):
        code, out, err = run("ask", *words, "--json", capsys=capsys)
        answer = json.loads(out)
        assert code == 0 and answer["citations"], err
        found[" ".join(words)] = "no_strong_match" in {each["condition"] for each in answer["conditions"]}
    assert found == {"the": True, "how the zebra sleeps": False}


def test_the_setting_leaves_corpora_as_they_are(shop: Path, monkeypatch, capsys: Capture):
    before = shown(capsys)
    monkeypatch.setenv("SCOPED_RETRIEVAL_FRESH", "false")
    (shop / "zebra.md").unlink()
    assert shown(capsys) == before
    monkeypatch.chdir(shop.parent)
    assert run("ask", "zebra", capsys=capsys)[0] != 0 and not (shop.parent / ".scoped-retrieval").exists()


def test_a_home_is_not_read_unasked(shop: Path, monkeypatch, capsys: Capture):
    monkeypatch.setenv("HOME", str(shop))
    assert run("ask", "zebra", capsys=capsys)[0] != 0 and not (shop / ".scoped-retrieval").exists()


def test_files_that_cannot_be_read_again_leave_the_answer_with_a_warning(shop: Path, capsys: Capture):
    shown(capsys)
    (shop / "zebra.md").unlink()
    (shop / ".git").mkdir()  # Git refuses a repository without a HEAD
    code, out, err = run("ask", "how does the zebra sleep", "--json", capsys=capsys)
    assert code == 0 and {each["path"] for each in json.loads(out)["citations"]} >= {"zebra.md"}
    assert "warning: the answer may be older than the files of shop" in err


def test_status_names_a_followed_repository_that_is_gone(shop: Path, monkeypatch, capsys: Capture):
    repository = committed(shop.rename(shop.parent / "gone"))
    shop.mkdir()
    monkeypatch.chdir(shop)
    assert run("index", str(repository), "--history", "--no-semantic", capsys=capsys)[0] == 0
    shutil.rmtree(repository)
    code, out, err = run("status", "--json", capsys=capsys)
    assert code == 0, err
    (known,) = json.loads(out)["followed"]
    assert (known["current"], known["gone"]) == (False, [str(repository)])
    assert "what was read stays" in " ".join(run("status", capsys=capsys)[1].split())
    assert str(repository) in run("ask", "how does the zebra sleep", capsys=capsys)[2]
    code, out, err = run("status", "--json", "-c", "principal=bob", capsys=capsys)
    assert code == 0 and json.loads(out)["followed"] == [] and str(repository) not in out, err


def test_a_folder_that_may_be_listed_and_not_entered_stops_no_index(shop: Path, monkeypatch, capsys: Capture):
    lstat = os.lstat

    def denied(path, **given):
        if os.fsencode(path).endswith(b"src/walrus.md"):
            raise PermissionError(13, "Permission denied", path)
        return lstat(path, **given)

    monkeypatch.setattr(os, "lstat", denied)
    assert run("index", ".", "--no-semantic", capsys=capsys)[0] == 0
    assert json.loads(run("status", "--json", capsys=capsys)[1])["followed"][0]["current"]
    assert shown(capsys)[0] == ["zebra.md"]
    monkeypatch.setattr(os, "lstat", lstat)
    assert shown(capsys)[0] == ["src/walrus.md", "zebra.md"]


def test_a_server_for_agents_starts_without_a_corpus_and_shows_edits_without_a_restart(shop: Path):
    mcp = pytest.importorskip("mcp", reason="needs the extra serve")
    server = mcp.StdioServerParameters(
        command=sys.executable,
        args=["-m", "scoped_retrieval.pipeline.cli", "serve", "--stdio"],
        env=dict(os.environ),
        cwd=str(shop),
    )

    async def asked() -> list[str]:
        async with mcp.Client(server) as client:

            async def block() -> str:
                found = await client.call_tool("scoped_retrieve", {"question": "how does the zebra walrus sleep"})
                return str(found.content[0].text)

            first = await block()
            (shop / "zebra.md").write_text("# Zebra\n\nThe zebra sleeps standing up.\n")
            return [first, await block()]

    first, second = anyio.run(asked)
    assert "How the zebra" in first and "How the walrus" in first
    assert "standing up" in second and "How the zebra" not in second


@pytest.fixture(params=[[], ["--history"]], ids=["files", "history"])
def trees(shop: Path, monkeypatch, capsys: Capture, request: pytest.FixtureRequest) -> Path:
    """A folder with two work trees of one repository, `shop` and `next`, read into one corpus of project p."""
    git(committed(shop), "worktree", "add", "-q", "-b", "next", "../next")
    (shop.parent / "next" / "zebra.md").write_text("# Zebra\n\nThe zebra sleeps standing up.\n")
    git(shop.parent / "next", "commit", "-qam", "two")
    monkeypatch.chdir(shop.parent)
    flags = ["--no-semantic", "--project", "p", "--corpus", "corpus", *request.param]
    for name in ("shop", "next"):
        assert run("index", name, *flags, capsys=capsys)[0] == 0
    return shop.parent


def test_a_question_in_a_work_tree_is_answered_from_it(trees: Path, monkeypatch, capsys: Capture):
    for place, corpus in (("shop", "../corpus"), ("next", str(trees / "corpus")), ("next/src", "../../corpus")):
        monkeypatch.chdir(trees / place)
        paths, block = shown(capsys, "--corpus", corpus)
        assert paths == ["src/walrus.md", "zebra.md"]
        assert ("standing up" in block, "How the zebra" in block) == ("next" in place, "next" not in place)
    both = shown(capsys, "--corpus", "../../corpus", "--set", "denied_sources=external")[1]
    assert "standing up" in both and "How the zebra" in both
    other = shown(capsys, "--corpus", "../../corpus", "--workspace", str(trees / "shop"))[1]
    assert "standing up" not in other and "How the zebra" in other


def test_a_row_of_a_batch_is_answered_from_the_work_tree_as_a_question_is(trees: Path, monkeypatch, capsys: Capture):
    into = ["--no-semantic", "--project", "q", "--corpus", "corpus"]
    assert run("index", "next", *into, capsys=capsys)[0] == 0
    monkeypatch.chdir(trees / "shop")
    asked, corpus = "how does the zebra walrus okapi sleep", ["--corpus", "../corpus"]
    rows = {
        "a plain one": {},
        "b other tree": {"evidence_policy": {"allowed_sources": ["workspace:next", "git:next"]}},
        "c other project": {"scope": {"projectId": "q"}},
        "d null": {"allowed_sources": None, "scope": {"project": None}},
    }
    lines = [json.dumps({"request_id": name, "question": asked, **fields}) for name, fields in rows.items()]
    Path("../rows.jsonl").write_text("\n".join(lines))
    code, out, err = run("run", "../rows.jsonl", *corpus, "--json", capsys=capsys)
    assert code == 0, err
    ran = json.loads(run("log", json.loads(out)["run_id"], *corpus, "--json", capsys=capsys)[1])
    blocks = {one["request_id"]: run("show", one["snapshot_id"], *corpus, capsys=capsys)[1] for one in ran}
    seen = {name: ("How the zebra" in block, "standing up" in block) for name, block in blocks.items()}
    mine, others = (True, False), (False, True)
    assert seen == dict(zip(rows, (mine, others, others, mine), strict=True))
    block = shown(capsys, *corpus, "--set", "project=q")[1]
    assert "standing up" in block and "How the zebra" not in block


def test_items_of_one_path_in_two_work_trees_name_their_source(trees: Path, capsys: Capture):
    (trees / "next" / "okapi.md").write_text("# Okapi\n\nThe okapi sleeps.\n")
    block = shown(capsys, "--corpus", "corpus")[1]
    labels = [line for line in block.splitlines() if line.startswith("[")]
    zebras = {label.rpartition("(")[2] for label in labels if "zebra.md" in label}
    assert zebras in ({"git:shop)", "git:next)"}, {"workspace:shop)", "workspace:next)"})
    assert not any(label.endswith(")") for label in labels if "zebra.md" not in label)


_OPENED: list[str] = []
sys.addaudithook(lambda event, args: _OPENED.append(str(args[0])) if event == "open" else None)


def test_files_that_did_not_change_are_not_read_again(shop: Path, capsys: Capture):
    def read() -> bool:
        _OPENED.clear()
        shown(capsys)
        return any(name.endswith("walrus.md") for name in _OPENED)

    assert read() and any(not read() for _ in range(9)), "not at once: files just written may be written again"
    (shop / "src" / "walrus.md").write_text("# Walrus\n\nHow the walrus dives.\n")
    assert read()


def test_python_asks_in_a_folder_as_the_command_does(shop: Path, monkeypatch, capsys: Capture):
    from scoped_retrieval import ask, index

    monkeypatch.chdir(shop.parent)
    found = ask("how does the zebra walrus okapi sleep", shop, purpose="explain-code")
    assert sorted(row["path"] for row in found.citations) == ["src/walrus.md", "zebra.md"]
    (shop / "zebra.md").write_text("# Zebra\n\nThe zebra sleeps standing up.\n")
    assert "standing up" in ask("how does the zebra sleep", shop).block
    assert index(shop, project="shop").rows
    monkeypatch.chdir(shop)
    assert shown(capsys)[1].count("standing up") == 1


def test_another_folder_of_the_same_name_is_refused_unless_its_source_is_named(
    shop: Path, monkeypatch, capsys: Capture
):
    other = shop.parent / "other" / "shop"
    other.mkdir(parents=True)
    (other / "okapi.md").write_text("# Okapi\n\nThe okapi sleeps.\n")
    monkeypatch.chdir(shop.parent)
    into = ["--no-semantic", "--project", "p", "--corpus", "corpus"]
    assert run("index", "shop", *into, capsys=capsys)[0] == 0
    code, _, err = run("index", str(other), *into, capsys=capsys)
    assert code == 2 and "Expected folders of different names" in err and "--source shop" in err
    assert run("index", str(other), *into, "--source", "shop", capsys=capsys)[0] == 0
    assert shown(capsys, "--corpus", "corpus", "--project", "p")[0] == ["okapi.md"]


def test_a_folder_that_a_later_index_does_not_name_is_followed_on(shop: Path, monkeypatch, capsys: Capture):
    (other := shop.parent / "farm").mkdir()
    (other / "okapi.md").write_text("# Okapi\n\nThe okapi sleeps.\n")
    monkeypatch.chdir(shop.parent)
    into = ["--no-semantic", "--project", "p", "--corpus", "corpus"]
    assert run("index", "shop", "farm", *into, capsys=capsys)[0] == 0
    assert run("index", "shop", *into, capsys=capsys)[0] == 0
    (other / "okapi.md").write_text("# Okapi\n\nThe okapi sleeps standing up.\n")
    assert "standing up" in shown(capsys, "--corpus", "corpus", "--project", "p")[1]


def test_where_a_history_is_read_an_answer_has_what_is_in_the_files_now(shop: Path, monkeypatch, capsys: Capture):
    def says(*flags: str) -> tuple[bool, bool]:
        code, block, notes = run("ask", "how does the zebra okapi sleep", *flags, capsys=capsys)
        assert code == 0 and "--workspace" not in notes
        return "standing up" in block, "# Okapi" in block

    committed(shop)
    assert run("index", ".", "--history", "--no-semantic", capsys=capsys)[0] == 0
    assert says() == (False, False)
    (shop / "zebra.md").write_text("# Zebra\n\nThe zebra sleeps standing up.\n")
    assert says() == says() == (True, False) == says("--workspace", ".")
    _, block, notes = run("ask", "how does the zebra sleep", "--set", "workspace_root=", capsys=capsys)
    assert "standing up" not in block and f"--workspace {shop}" in notes
    monkeypatch.chdir(shop.parent)
    assert says("--corpus", "shop/.scoped-retrieval/corpus") == (True, False)
    monkeypatch.chdir(shop)
    git(shop, "commit", "-qam", "two")
    assert says() == (True, False)
    git(shop, "checkout", "-qb", "other", "HEAD~1")
    assert says() == (False, False)
    (shop / "okapi.md").write_text("# Okapi\n\nThe okapi sleeps.\n")
    git(shop, "add", ".")
    git(shop, "commit", "-qm", "three")
    assert says() == (False, True)
    git(shop, "rebase", "-q", "@{-1}")
    assert says() == (True, True)


def test_another_branch_adds_no_more_than_its_commits_changed(shop: Path, capsys: Capture):
    def rows() -> int:
        return json.loads(run("status", "--json", capsys=capsys)[1])["rows"]

    first, both = git(committed(shop), "branch", "--show-current"), ["src/walrus.md", "zebra.md"]
    assert run("index", ".", "--history", "--no-semantic", capsys=capsys)[0] == 0
    before = rows()
    git(shop, "checkout", "-qb", "other")
    assert shown(capsys, "--set", "branch=other")[0] == both and rows() == before
    assert shown(capsys, "--set", f"branch={first}")[0] == []
    (shop / "zebra.md").write_text("# Zebra\n\nThe zebra sleeps standing up.\n")
    git(shop, "commit", "-qam", "two")
    for name, new in (("other", True), (first, False), ("other", True), (first, False)):
        git(shop, "checkout", "-q", name)
        paths, block = shown(capsys, "--set", f"branch={name}")
        assert paths == both and ("standing up" in block, "How the zebra" in block) == (new, not new)
        assert rows() == before + 1


def test_a_preset_and_not_the_folder_says_whose_edits_a_server_shows(shop: Path, capsys: Capture):
    pytest.importorskip("fastapi", reason="needs the extra serve")
    from scoped_retrieval.pipeline.servers.retriever_pool import RetrieverPool

    committed(shop)
    assert run("index", ".", "--history", "--no-semantic", capsys=capsys)[0] == 0
    (shop / "zebra.md").write_text("# Zebra\n\nThe zebra sleeps standing up.\n")
    (preset := shop.parent / "preset.json").write_text('{"workspace_root": null}')
    for bound, seen in ((None, True), (preset, False)):
        pool = RetrieverPool(load_settings(), preset=bound)
        block = pool.session_of("ana").retrieve({"question": "how does the zebra sleep"})["block"]
        pool.close()
        assert ("standing up" in block, "How the zebra" in block) == (seen, not seen)


def test_edits_of_a_history_that_the_question_is_not_asked_in_are_told_of(shop: Path, monkeypatch, capsys: Capture):
    monkeypatch.chdir(shop.parent)
    for name in ("shop", "farm"):
        folder = shop.parent / name
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.md").write_text("How the okapi sleeps.\n")
        committed(folder)
        into = ["--history", "--no-semantic", "--project", "p", "--corpus", "corpus"]
        assert run("index", name, *into, capsys=capsys)[0] == 0
    (shop / "zebra.md").write_text("# Zebra\n\nThe zebra sleeps standing up.\n")
    for folder, told in ((".", True), ("farm", True), ("shop", False)):
        monkeypatch.chdir(shop.parent / folder)
        asked = ["how does the zebra sleep", "--corpus", str(shop.parent / "corpus")]
        _, block, notes = run("ask", *asked, capsys=capsys)
        assert (f"--workspace {shop}" in notes, "standing up" in block) == (told, not told)


def test_a_run_says_that_it_reads_no_files_that_changed(shop: Path, capsys: Capture):
    shown(capsys)
    (shop.parent / "requests.jsonl").write_text(
        '{"question": "how does the zebra sleep", "purpose": "explain-code", "project": "shop"}\n'
    )
    batch = ["run", str(shop.parent / "requests.jsonl")]
    assert "changed" not in run(*batch, capsys=capsys)[2]
    (shop / "zebra.md").write_text("# Zebra\n\nThe zebra sleeps standing up.\n")
    code, _, notes = run(*batch, capsys=capsys)
    assert code == 0 and "shop: files changed since they were read" in notes


@pytest.mark.parametrize("history", [[], ["--history"]], ids=["files", "history"])
def test_an_adopted_copy_says_that_it_follows_no_folder_until_one_is_read(
    shop: Path, monkeypatch, capsys: Capture, history: list[str]
):
    git(committed(shop), "status")
    assert run("index", ".", *history, "--no-semantic", capsys=capsys)[0] == 0
    shutil.copytree(shop, copy := shop.parent / "copy")
    monkeypatch.chdir(copy)
    question = ["ask", "how does the zebra sleep"]
    for flags in (["--adopt"], []):
        assert "follows no folder" in run(*flags, *question, capsys=capsys)[2]
    facts = json.loads(run("status", "--json", capsys=capsys)[1])
    for _ in range(2):
        assert run("index", ".", *history, "--no-semantic", capsys=capsys)[0] == 0
        found = json.loads(run("status", "--json", capsys=capsys)[1])
        assert [found[name] for name in ("rows", "sources")] == [facts[name] for name in ("rows", "sources")]
    (copy / "zebra.md").write_text("# Zebra\n\nThe zebra sleeps standing up.\n")
    _, block, notes = run(*question, capsys=capsys)
    assert "standing up" in block and "How the zebra" not in block and "follows no folder" not in notes


def test_the_first_question_where_nothing_is_readable_says_what_index_says(shop: Path, capsys: Capture):
    for name in ("zebra.md", "src/walrus.md"):
        (shop / name).write_bytes(b"\0\1\2")
    notes = run("ask", "how does the zebra sleep", capsys=capsys)[2]
    said = run("index", ".", "--no-semantic", capsys=capsys)[1].splitlines()
    assert {line for line in said if "zebra.md" in line} & set(notes.splitlines())


def test_a_record_is_cited_by_the_lines_that_it_has_in_its_file(shop: Path, capsys: Capture):
    (shop / "fees.csv").write_text("id,animal,fee\nZ-1,zebra,$1\nW-1,walrus,$2\n")
    given = ["--add", "sot=fees.csv", "--project", "p", "--no-semantic", "--corpus", "c"]
    assert run("index", *given, capsys=capsys)[0] == 0
    found = json.loads(run("ask", "zebra walrus fee", "--json", "--corpus", "c", capsys=capsys)[1])
    assert sorted((each["line_start"], each["line_end"]) for each in found["citations"]) == [(2, 2), (3, 3)]
    assert "fees.csv:2 " in found["block"] and "fees.csv:3 " in found["block"]


def test_where_nothing_can_be_recorded_the_way_to_an_answer_is_named(shop: Path, capsys: Capture):
    shown(capsys)
    shutil.rmtree(shop / ".scoped-retrieval" / "runs" / "live")
    (shop / ".scoped-retrieval" / "runs" / "live").write_text("in the way")
    code, out, err = run("ask", "zebra", capsys=capsys)
    assert (code, out, "-c record=false" in err) == (4, "", True)
    code, out, err = run("ask", "zebra", "-c", "record=false", capsys=capsys)
    assert (code, "zebra.md" in out, "-c record=false" in err) == (0, True, False)


def test_a_byte_order_mark_is_no_text(shop: Path, capsys: Capture):
    (shop / "okapi.py").write_text("def okapi():\n    return 'sleeps'\n", encoding="utf-8-sig")
    assert "|def okapi():" in shown(capsys)[1]


@pytest.mark.parametrize(
    ("file", "known"),
    [
        ("src/walrus.md", True),
        ("walrus.md:3", True),
        ("{shop}/src/walrus.md", True),
        ("nosuch.go", False),
        ("rus.md", False),
    ],
)
def test_a_file_that_is_not_in_the_corpus_is_told_of(shop: Path, file: str, known: bool, capsys: Capture):
    code, _, err = run("ask", "zebra", "--file", file.format(shop=shop), capsys=capsys)
    assert (code, "request.current_files" in err) == (0, not known), err


def test_an_allowed_source_without_a_row_is_told_of_once(shop: Path, capsys: Capture):
    notes = run("ask", "zebra", "--set", "allowed_sources=nosuch", capsys=capsys)[2]
    assert notes.count("nosuch") == 1


def test_a_run_has_the_edits_that_a_question_has(shop: Path, capsys: Capture):
    committed(shop)
    assert run("index", ".", "--history", "--no-semantic", capsys=capsys)[0] == 0
    (shop / "zebra.md").write_text("# Zebra\n\nThe zebra sleeps standing up.\n")
    assert "standing up" in run("ask", "how does the zebra sleep", capsys=capsys)[1]
    (shop.parent / "requests.jsonl").write_text('{"question": "how does the zebra sleep"}\n')
    code, out, _ = run("run", str(shop.parent / "requests.jsonl"), "--json", capsys=capsys)
    assert code == 0
    assert (
        "standing up"
        in run("show", f"{json.loads(out)['run_id'].replace('run-', 'retr-snap-')}-0001", capsys=capsys)[1]
    )


@pytest.mark.parametrize("installed", [True, False])
def test_vectors_are_spoken_of_where_they_can_be_made(shop: Path, installed: bool, monkeypatch, capsys: Capture):
    monkeypatch.setattr("scoped_retrieval.pipeline.encoders.encoder.encoder_available", lambda: (installed, ""))
    assert ("makes vectors" in run("ask", "zebra", capsys=capsys)[2].splitlines()[0]) == installed
