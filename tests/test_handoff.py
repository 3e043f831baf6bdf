"""Who may open `SHO.json`: the caller who opened the retriever or gave the command, never a request."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from command_line import ask, run
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.pipeline.requests.handoff import handoff
from scoped_retrieval.pipeline.runs import Runs
from small_corpus import Story, row

REVIEW = json.dumps({"mode": "review", "variables": {"venture": "a", "current_project": "b"}})


def mode_of(folder: Path, tree: str, **how: object) -> str | None:
    story = Story(folder, row("doc", "docs/roles.md", "the default role"))
    with story.open(**how) as retriever:
        found = retriever.retrieve({"project": "shop", "question": "role", "workspace_root": tree})
    return found.tables["contracts"]["mode"].to_pylist()[0]


def test_a_request_opens_no_file_of_a_work_tree_that_nobody_named(tmp_path: Path):
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "SHO.json").write_text(REVIEW)
    assert mode_of(tmp_path / "named", str(tree), work_trees=[tree]) == "review"
    assert mode_of(tmp_path / "unnamed", str(tree)) is None
    assert mode_of(tmp_path / "another", str(tree), work_trees=[tmp_path]) is None
    for spelling in (f"{tmp_path}/./tree/../tree", f"{tree}/sub/..", "tree"):
        assert handoff(spelling, [tree]) == {}


def test_a_tree_that_nobody_named_is_not_even_looked_at(tmp_path: Path):
    os.mkfifo(tmp_path / "SHO.json")  # opening it would block forever
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "SHO.json").write_text("{")
    assert handoff(str(tmp_path), []) == handoff(str(tmp_path / "tree"), [tmp_path]) == {}


def test_a_file_longer_than_a_mebibyte_is_not_read_whole(tmp_path: Path):
    (tmp_path / "SHO.json").write_text(REVIEW + " " * (1 << 20) + "{")
    assert handoff(str(tmp_path), [tmp_path])["mode"] == "review"


def test_a_link_out_of_the_tree_is_refused(tmp_path: Path):
    (tmp_path / "elsewhere.json").write_text(REVIEW)
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "SHO.json").symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(InputError, match=r"Expected a file of the work tree, got a link out of it - at .*SHO\.json"):
        handoff(str(tmp_path / "tree"), [tmp_path / "tree"])


def test_the_command_line_reads_the_tree_it_stands_in_and_the_one_it_is_told(
    shop: Path, capsys: pytest.CaptureFixture[str]
):
    def mode(*args: str) -> str | None:
        _, snapshot = ask(*args, capsys=capsys)
        return Runs(".scoped-retrieval/runs").open(snapshot).table("contracts").to_pylist()[-1]["mode"]

    (shop / "SHO.json").write_text(REVIEW)
    (shop / "other").mkdir()
    (shop / "other" / "SHO.json").write_text(json.dumps({"mode": "planning", "variables": {"current_venture": "a"}}))
    assert mode() is None
    assert mode("--workspace", ".") == "review"
    assert mode("--workspace", "other") == "planning"
    rows = [
        {"project": "shop", "purpose": "answer-question", "question": "role", "request_id": name, "workspace_root": str(tree)}
        for name, tree in (("here", shop), ("there", shop / "other"))
    ]  # fmt: skip
    (shop / "requests.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    code, out, err = run("run", "requests.jsonl", "--json", capsys=capsys)
    assert code == 0, err
    stored = Runs(".scoped-retrieval/runs").open(json.loads(out)["run_id"]).table("contracts").to_pylist()
    assert {each["request_id"]: each["mode"] for each in stored} == {"here": "review", "there": None}
