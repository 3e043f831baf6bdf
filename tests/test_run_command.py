"""`run`: what its rows take from flags and settings, and what becomes of rows that are not what was expected."""

import json
from pathlib import Path

from command_line import indexed_fixture, run, shop_fixture  # noqa: F401 - fixtures

ROW = {"question": "default role", "purpose": "answer-question"}


def asked(*args: str, rows=(ROW,), capsys) -> tuple[int, list[dict], str]:
    """Exit code, snapshots in the order of their ids, and standard error of a run of these rows."""
    Path("q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, out, err = run("run", "q.jsonl", *args, "--json", capsys=capsys)
    listed = run("log", json.loads(out)["run_id"], "--json", capsys=capsys)[1] if "run_id" in out else "[]"
    return code, json.loads(listed), err


def test_rows_without_a_project_take_the_flag_and_else_the_setting(shop, capsys, monkeypatch):
    rows = [ROW | {"request_id": "mine"}, ROW | {"request_id": "own", "project": "shop"}]

    def projects(*args: str) -> dict[str, str]:
        return {one["request_id"]: one["project"] for one in asked(*args, rows=rows, capsys=capsys)[1]}

    assert projects() == {"mine": "shop", "own": "shop"}
    assert projects("--project", "pay") == {"mine": "pay", "own": "shop"}
    monkeypatch.setenv("SCOPED_RETRIEVAL_PROJECT", "nosuch")
    assert projects() == {"mine": "nosuch", "own": "shop"}
    assert projects("--project", "pay") == {"mine": "pay", "own": "shop"}


def test_a_preset_settles_the_project_of_a_run(shop, capsys, monkeypatch):
    Path("p.json").write_text('{"project": "shop"}')
    code, _, err = asked("--project", "pay", "--preset", "p.json", capsys=capsys)
    assert (code, err) == (2, "error: Expected shop, the project of the preset, got 'pay' - at defaults.project\n")
    monkeypatch.setenv("SCOPED_RETRIEVAL_PROJECT", "pay")
    code, (row,), _ = asked("--preset", "p.json", capsys=capsys)
    assert (code, row["project"]) == (0, "shop")


def test_a_run_says_which_lanes_its_answers_did_without(shop, capsys):
    Path("q.jsonl").write_text(json.dumps(ROW) + "\n" + json.dumps(ROW | {"request_id": "again"}) + "\n")
    code, out, err = run("run", "q.jsonl", "--json", capsys=capsys)
    (off,) = json.loads(out)["lanes_off"]
    assert (code, off["lane"], off["requests"]) == (0, "semantic", 2)
    assert off["message"].startswith("the rows that this contract reaches were indexed without vectors")
    assert f"lane_off: semantic, for 2 requests: {off['message']}" in err
