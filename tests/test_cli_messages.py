"""What the command line says of bad input, interruptions and damage: a place, a code, never a traceback."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import ask, run
from scoped_retrieval.pipeline.cli import main
from scoped_retrieval.pipeline.corpus import Corpus, publishing
from stand_in_encoder import WordsByTheirStart


def test_a_row_that_failed_keeps_its_question_and_project(shop, capsys):
    Path("r.jsonl").write_text('\n{"question": "default role", "project": "shop", "purpose": "nope"}\n')
    code, out, err = run("run", "r.jsonl", "--json", capsys=capsys)
    assert code == 4
    assert "line-2" in err
    assert err.rstrip().endswith("got 'nope' - at r.jsonl:2.purpose")
    _, listed, _ = run("log", json.loads(out)["run_id"], "--json", capsys=capsys)
    (row,) = json.loads(listed)
    kept = [row[name] for name in ("request_id", "question", "project", "purpose")]
    assert kept == ["line-2", "default role", "shop", None]
    assert "query: default role\n" in run("show", row["snapshot_id"], "--as", "text", capsys=capsys)[1]
    _, out, _ = run("show", row["snapshot_id"], "--as", "xray", capsys=capsys)
    assert "default role" in out and "line-2" in out and "in project shop" in out
    _, out, _ = run("log", capsys=capsys)
    assert row["snapshot_id"] in out
    assert "default role" in out


@pytest.mark.parametrize("name", ["rows.parquet", "rows.arrow"])
def test_damaged_input_gives_one_message_whoever_reads_it(shop, capsys, name):
    Path(name).write_bytes(b"PAR1 and then nothing")
    code, _, err = run("index", "--add", f"evidence={name}", "--project", "shop", "--no-semantic", capsys=capsys)
    assert (code, "got one that is damaged or cut off - at " in err, "Error" in err) == (2, True, False)
    if name.endswith("parquet"):
        code, _, again = run("run", name, capsys=capsys)
        assert (code, again) == (2, err.removeprefix("reading sources of project shop\n"))


class _Stopped(WordsByTheirStart):
    """An encoder that is interrupted at its third piece."""

    asked = 0

    def encode(self, texts):
        self.asked += 1
        if self.asked == 3:
            raise KeyboardInterrupt
        return super().encode(texts)


def test_an_index_that_is_interrupted_while_it_embeds_keeps_the_batches_before(tmp_path, capsys, monkeypatch):
    from scoped_retrieval.pipeline.indexing import importing

    monkeypatch.chdir(tmp_path)
    rows = [{"source_id": "notes:a", "text": f"note number{n} of the queue"} for n in range(400)]
    Path("rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    command = ("index", "--add", "evidence=rows.jsonl", "--project", "shop")
    monkeypatch.setattr(publishing, "ENCODED_ROWS", 128)
    monkeypatch.setattr(importing, "load_encoder", lambda *_: _Stopped())
    monkeypatch.setattr(importing, "encoder_available", lambda: (True, ""))
    code, _, err = run(*command, capsys=capsys)
    assert (code, "Interrupted" in err) == (130, True)
    assert Corpus.open(Path(".scoped-retrieval/corpus")).info()["encoded_rows"] == 256


def test_an_interrupted_run_says_how_to_finish_it(shop, capsys, monkeypatch):
    from scoped_retrieval.pipeline.engines import shards

    Path("r.jsonl").write_text('{"question": "default role", "purpose": "explain-code"}\n')

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shards, "run_line", interrupted)
        code, out, err = run("run", "r.jsonl", "--project", "shop", capsys=capsys)
    assert (code, out) == (130, "")
    resume = re.fullmatch(
        r"answering 1 request in 1 shard\nerror: Interrupted\n\nHint: `run --resume (run-\S+)` finishes the rest.\n",
        err,
    )
    assert resume
    assert run("run", "--resume", resume[1], capsys=capsys)[0] == 0


def test_any_interrupted_command_says_so(shop, capsys, monkeypatch):
    from scoped_retrieval.pipeline.maintenance import doctor

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(doctor, "examine", interrupted)
    code, _, err = run("doctor", capsys=capsys)
    assert (code, err.strip()) == (130, "error: Interrupted")


def test_who_is_granted_nothing_is_told_where_to_look_and_not_what_there_is(shop, capsys, monkeypatch):
    assert run("index", "shop", "--project", "pay", "--no-semantic", capsys=capsys)[0] == 0
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "eve")
    Path("r.jsonl").write_text('{"question": "default role", "purpose": "explain-code"}\n')
    pointer = "`doctor` lists the projects that you may search"

    def told(*args: str) -> tuple[int, str]:
        code, out, err = run(*args, capsys=capsys)
        return code, re.sub(r"(retr-snap|run)-[0-9a-v]{18}(-[0-9]{4})?", "", out + err)

    for command in (("ask", "default role"), ("run", "r.jsonl")):
        foreign, unknown = (told(*command, "--project", project) for project in ("pay", "nope"))
        assert foreign == unknown
        assert (foreign[0], pointer in foreign[1]) == (3, True)


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["ask", "q", "--corpus", "s3://b*/c"], 2, "got 's3://b*/c' - at --corpus"),
        (["eval", "/nowhere/xx"], 7, "Expected a folder with a labeled collection, got none - at /nowhere/xx"),
        (["ask", "q", "--project", "shop", "--corpus", "nowhere"], 7, "nowhere"),
        (["ask", "q", "--project", "shop", "--as-of", "2026-05-20"], 2, "at request.as_of"),
        (["ask", "q", "--set", "budget.max_items=99999999999"], 2, "budget.max_items"),
        (["ask", "q", "--corpus", "shop/README.md"], 2, "Expected a folder, got a file - at flag --corpus"),
        (["run", "r.jsonl", "--runs", "shop/README.md"], 2, "Hint: --runs names the folder"),
        (
            ["log", "--status", "zz"],
            2,
            "Expected one of ok, empty, denied, partial, failed, erased, got 'zz' - at --status",
        ),
        (["lineage", "--format", "dot", "--out", "nowhere/x"], 2, "No such file or directory: --out nowhere/x"),
        (["run", "."], 2, "got no suffix"),
        (["run", "shop/README", "--project", "shop"], 2, "got no suffix - at README"),
        (["erase", "--project", "shop"], 2, "Expected --yes or --dry-run, got neither - at erase"),
        (["ask", "--project", "shop"], 2, "Expected a question or an anchor, got neither - at request"),
        (
            ["ask", "q", "-c", "lanes="],
            2,
            "at -c lanes",
        ),
        (["run"], 2, "Expected a file of requests or --resume, got none - at REQUESTS"),
        (["ask", "x", "--project", "shop", "--workspace", "nowhere"], 2, "got 'nowhere' - at --workspace"),
        (["index", "shop", "--project", "\udcff"], 2, "Expected names and paths in UTF-8"),
        (["demo", "--folder", "shop/README.md"], 2, "Expected a folder, got a file"),
        (["show", "retr-snap-0"], 7, "runs"),
        (["lineage", "--format", "bmp"], 2, "json, dot, svg, png"),
    ],
)
def test_bad_input_gives_a_message_and_a_code(shop, capsys, args, code, message):
    found, _, err = run(*args, capsys=capsys)
    assert (found, message in err, "Traceback" in err) == (code, True, False), err


def test_a_block_is_utf8_whatever_the_locale_says_and_a_note_begins_a_line_where_both_outputs_are_one(shop):
    Path("shop/docs/roles.md").write_text("# Rôles\n\nThere is no default role: 默认角色.\n", encoding="utf-8")
    assert main(["index", "shop", "--project", "shop", "--no-semantic"]) == 0
    done = subprocess.run(
        [sys.executable, "-m", "scoped_retrieval.pipeline.cli", "ask", "default role", "--project", "shop"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, "PYTHONIOENCODING": "ascii"}, check=True,
    )  # fmt: skip
    assert "默认角色" in done.stdout.decode() and "\nsnapshot: retr-snap-" in done.stdout.decode()


@pytest.mark.parametrize(
    "command",
    [
        "status --corpus {}", "show {snapshot} --out {}", "run {}", "index --add sessions={}", "context open {} event:1",
        "ask default -c weights={}",
    ],
)  # fmt: skip
def test_a_path_under_the_home_of_nobody_is_refused(shop, capsys, command: str):
    path = "~nobody-of-this-name/x"
    code, _, err = run(*command.format(path, snapshot=ask(capsys=capsys)[1]).split(), capsys=capsys)
    assert code == 2
    assert err.startswith(f"error: Expected a path whose ~ is the home of a user, got {path!r}")


def test_without_a_home_the_variable_is_named_and_help_is_there(shop, monkeypatch, capsys):
    def nobody(_: object) -> None:
        raise KeyError

    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", nobody)
    code, _, err = run("ask", "default", capsys=capsys)
    assert (code, " - at HOME" in err) == (2, True)
    assert run("--help", capsys=capsys)[0] == run("ask", "--help", capsys=capsys)[0] == 0


def test_a_path_under_the_home_of_the_user_is_read(shop, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "fields.json").write_text('{"purpose": "explain-code"}', encoding="utf-8")
    for command in ("contract ~/fields.json", "ask default --preset=~/fields.json"):
        assert run(*command.split(), capsys=capsys)[0] == 0
