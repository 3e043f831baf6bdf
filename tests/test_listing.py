"""Lists of answers and runs: each principal's own, the last ones, and nothing of what was erased."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_line import ask, run
from retrieving import batch, opened
from scoped_retrieval.pipeline.asking.retriever import Retriever
from scoped_retrieval.pipeline.config.settings import load_settings
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.reading.across_runs import read_each
from scoped_retrieval.pipeline.reading.snapshots import readable
from scoped_retrieval.pipeline.runs import Run, Runs, compact
from scoped_retrieval.pipeline.runs.listing import whose


@pytest.fixture(name="asked")
def asked_fixture(shop: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """The runs of ana: two questions one by one, and a batch of one."""
    ask(capsys=capsys)
    ask(capsys=capsys)
    row = {"question": "who has a role?", "project": "shop", "purpose": "answer-question"}
    Path("q.jsonl").write_text(json.dumps(row) + "\n")
    assert run("run", "q.jsonl", capsys=capsys)[0] == 0
    return shop / ".scoped-retrieval/runs"


def lists(capsys: pytest.CaptureFixture[str]) -> list[tuple[int, str, str]]:
    return [
        run("log", "--of", what, *form, capsys=capsys) for what in ("answers", "runs") for form in ((), ("--json",))
    ]


def test_each_principal_gets_their_own_list(
    asked: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(json.loads(lists(capsys)[1][1])) == 3
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "eve")
    assert json.loads(lists(capsys)[1][1]) == []
    assert json.loads(lists(capsys)[3][1]) == []


def test_a_run_that_changed_is_read_again(asked: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lists(capsys)
    ask(capsys=capsys)
    assert len(json.loads(lists(capsys)[1][1])) == 4
    file = next(asked.glob("live/*"))
    file.write_bytes(file.read_bytes()[:9])
    assert "damaged" in run("log", capsys=capsys)[2]


@pytest.mark.parametrize(("last", "listed", "said"), [("1", 1, True), ("2", 2, True), ("3", 3, False), ("0", 3, False)])
def test_the_last_snapshots_are_listed_and_that_there_are_others(
    asked: Path, capsys: pytest.CaptureFixture[str], last: str, listed: int, said: bool
) -> None:
    everything = json.loads(run("log", "--json", capsys=capsys)[1])
    code, out, err = run("log", "--json", "-n", last, capsys=capsys)
    assert (code, json.loads(out)) == (0, everything[:listed])
    assert (f"the last {last}; older ones are not listed: -n 0 lists all" in err) is said
    of_one = everything[0]["snapshot_id"].rpartition("-")[0].replace("retr-snap-", "run-")
    assert len(json.loads(run("log", of_one, "--json", "-n", "1", capsys=capsys)[1])) == 1
    assert json.loads(run("log", "--json", "-n", last, "--status", "denied", capsys=capsys)[1]) == []


def test_snapshots_by_id_are_told_of_in_the_order_of_their_run(corpus: Corpus, tmp_path: Path) -> None:
    with opened(corpus, runs=tmp_path / "runs") as session:
        names = [str(session.retrieve(one).snapshot_id) for one in batch(8)]
        (run,) = Runs(tmp_path / "runs").list()
        assert len(run.files) == 8
        assert whose(run, names[::-1])["snapshot_id"].to_pylist() == names
    assert whose(Runs(tmp_path / "runs").open(run.run_id), names[::-1])["snapshot_id"].to_pylist() == names


def test_answers_of_sessions_at_one_time_are_listed_newest_first(shop: Path, capsys) -> None:
    places = {"runs": ".scoped-retrieval/runs", "grants": ".scoped-retrieval/corpus/grants.yaml"}
    sessions = [Retriever.open(".scoped-retrieval/corpus", principal="ana", lanes=["lexical"], **places) for _ in "ab"]
    asked = [sessions[n].retrieve("default role", project="shop").snapshot_id for n in (0, 1, 0)]
    for retriever in sessions:
        retriever.close()
    assert [row["snapshot_id"] for row in json.loads(run("log", "--json", "--adopt", capsys=capsys)[1])] == asked[::-1]


def test_an_erasure_leaves_no_question_in_it(asked: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "who has a role?" in "".join(out for _, out, _ in lists(capsys))
    assert run("erase", "--user", "ana", "--project", "shop", "--yes", capsys=capsys)[0] == 0
    assert "who has a role?" not in "".join(out for _, out, _ in lists(capsys))
    assert not any(b"who has a role?" in file.read_bytes() for file in asked.rglob("*") if file.is_file())


def test_a_run_that_is_compacted_while_it_is_listed_is_read_again(corpus: Corpus, tmp_path: Path) -> None:
    """No damaged run is reported where none is."""
    session = opened(corpus, runs=tmp_path / "runs")
    session.retrieve(batch(1)[0])
    session.close(compacted=False)
    store = Runs(tmp_path / "runs", create=False)
    flags: dict[str, Any] = {"runs": tmp_path / "runs", "grants": tmp_path / "none.yaml", "principal": "ana"}
    settings = load_settings(flags, cwd=tmp_path, environ={}, user=tmp_path / "none.toml")
    calls: list[bool] = []

    def read(run: Run) -> list[dict[str, Any]]:
        calls.append(bool(run.files))
        compact(store, run.run_id)
        return readable(settings, run).listed()

    damaged = dict[str, str]()
    found = list(read_each(settings, store, read, damaged))
    assert calls == [True]
    assert damaged == {}
    assert [len(rows) for _, rows in found] == [1]


GRANTS = Path(".scoped-retrieval/corpus/grants.yaml")


def test_status_tells_what_changed_since_the_files_were_read(shop: Path, capsys):
    assert run("index", "shop", "--project", "shop", "--no-semantic", capsys=capsys)[0] == 0
    (known,) = json.loads(run("status", "--json", capsys=capsys)[1])["followed"]
    assert (known["project"], known["current"]) == ("shop", True)
    readme = shop / "shop" / "README.md"
    later = readme.stat().st_mtime + 60
    os.utime(readme, (later, later))
    (known,) = json.loads(run("status", "--json", capsys=capsys)[1])["followed"]
    assert known["current"] is False


def test_a_token_opens_a_server_and_the_file_has_only_its_hash(shop: Path, capsys):
    code, token, _ = run("grants", "token", "ana", capsys=capsys)
    tokens = yaml.safe_load(GRANTS.read_text())["tokens"]
    assert (code, tokens) == (0, {hashlib.sha256(token.strip().encode()).hexdigest(): "ana"})
    before = GRANTS.read_bytes()
    code, out, err = run("grants", "token", "nobody", capsys=capsys)
    assert (code != 0, out, "nobody" in err, GRANTS.read_bytes() == before) == (True, "", True, True)


def test_grants_of_others_are_shown_to_auditors_of_their_projects(shop: Path, monkeypatch, capsys):
    GRANTS.write_text(
        yaml.safe_dump(
            {"principals": {"ana": {"projects": ["shop"], "audit": True}, "bo": {"projects": ["shop", "pay"]}}}
        )
    )
    shown = json.loads(run("grants", "show", "--json", capsys=capsys)[1])
    assert [(row["principal"], row["project"]) for row in shown] == [("ana", "shop"), ("bo", "shop")]
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "bo")
    shown = json.loads(run("grants", "show", "--json", capsys=capsys)[1])
    assert [(row["principal"], row["project"]) for row in shown] == [("bo", "shop"), ("bo", "pay")]


def test_a_setting_for_one_command_counts_before_and_after_it(shop: Path, capsys):
    code, out, _ = run("-c", "lanes=exact", "doctor", "-c", "progress=false", "--json", capsys=capsys)
    found = {each["name"]: each for each in json.loads(out)["settings"]}
    assert (found["lanes"]["value"], found["lanes"]["origin"]) == (["exact"], "flag -c lanes")
    assert found["progress"]["value"] is False
    code, _, err = run("ask", "q", "-c", "lane=exact", capsys=capsys)
    assert (code, "-c lane" in err) == (2, True)


@pytest.mark.parametrize("command", ["scoped", "scoped-retrieval"])
def test_a_shell_completes_the_names_of_commands(monkeypatch: pytest.MonkeyPatch, capfd, command: str):
    monkeypatch.setattr(sys, "argv", [f"/usr/bin/{command}"])
    monkeypatch.setenv("COMP_WORDS", f"{command} xr")
    monkeypatch.setenv("COMP_CWORD", "1")
    monkeypatch.setenv(f"_{command.upper().replace('-', '_')}_COMPLETE", "complete_bash")
    from scoped_retrieval.pipeline.cli import main

    main()
    assert capfd.readouterr().out.split() == ["xray"]


def test_the_last_answer_is_the_last_one_that_was_asked_for_whoever_s_rights_it_has(shop: Path, monkeypatch, capsys):
    GRANTS.write_text(
        yaml.safe_dump(
            {"principals": {"ana": {"projects": ["shop"], "act_as": ["bob"]}, "bob": {"projects": ["shop"]}}}
        )
    )
    assert run("ask", "default role", "--project", "shop", capsys=capsys)[0] == 0
    asked = run("ask", "createSession", "--project", "shop", "--set", "principal=bob", capsys=capsys)
    assert (asked[0], run("show", "@", capsys=capsys)[:2]) == (0, (0, asked[1]))


def test_a_field_is_given_once(shop: Path, capsys):
    for flags in (
        ("--set", "question=other"),
        ("--as-of", "2026-01-01T00:00:00Z", "--set", "time.as_of=2026-01-01T00:00:00Z"),
    ):
        code, out, err = run("ask", "default role", *flags, capsys=capsys)
        assert (code, out, f"at {flags[-2]} {flags[-1].partition('=')[0]}" in err) == (2, "", True)
