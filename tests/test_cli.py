"""The command line: quick help, exit codes by meaning, messages without tracebacks, JSON everywhere."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import ask, run
from reference_pages import commands
from scoped_retrieval.pipeline.cli.output import print_error
from scoped_retrieval.pipeline.runs.live import SUFFIX


def test_help_loads_nothing_of_the_data_stack():
    code = (
        "import sys; from scoped_retrieval.pipeline.cli import main; main(['--help']);"
        "print([m for m in ('torch', 'pandas', 'numpy', 'pyarrow', 'hamilton', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_lexical_question_loads_no_model_no_network_and_no_other_command(shop):
    code = (
        "import sys; from scoped_retrieval.pipeline.cli import main; main(['ask', 'default role', '--project', 'shop']);"
        "absent = ('torch', 'numba', 'rich', 'requests', 'urllib.request', 'tree_sitter', 'pyarrow.fs',"
        " 'scoped_retrieval.pipeline.indexing.importing', 'scoped_retrieval.pipeline.cli.corpus_commands');"
        "print([m for m in absent if m in sys.modules], file=sys.stderr)"
    )
    asked = {**os.environ, "SCOPED_RETRIEVAL_LANES": "lexical", "SCOPED_RETRIEVAL_FRESH": "false"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=asked)
    assert "default role" in done.stdout
    assert done.stderr.splitlines()[-1] == "[]"


@pytest.mark.parametrize("command", commands())
def test_every_command_has_help_and_json(command, capsys):
    code, out, _ = run(*command.split(), "--help", capsys=capsys)
    assert code == 0
    assert "--json" in out


def test_global_options_stand_before_or_after_the_command_and_the_later_one_counts(shop, capsys, monkeypatch):
    info = ["status"]
    for args in (["-C", str(shop), *info, "--json"], ["--json", *info, "-C", str(shop)]):
        monkeypatch.chdir(shop.parent)
        code, out, _ = run(*args, capsys=capsys)
        assert (code, json.loads(out)["projects"]) == (0, ["shop"])
    assert run("--corpus", "none", "status", "--corpus", ".scoped-retrieval/corpus", capsys=capsys)[0] == 0
    assert run("status", "-C", "none", capsys=capsys)[0] == 2
    assert run("ask", "default role", "-q", capsys=capsys)[2] == ""
    code, _, err = run("ask", "default role", "-q", "--grants", "none", capsys=capsys)
    assert code != 0 and err


def test_an_error_is_one_object_in_json(shop, capsys):
    code, out, err = run("ask", "q", "--corpus", "shop/README.md", "--json", capsys=capsys)
    error = json.loads(out)["error"]
    assert (code, error["type"], error["exit_code"]) == (2, "InputError", 2)
    assert err == f"error: {error['message']}\n\nHint: {error['hint']}\n"
    error = json.loads(run("log", "--as", "pdf", "--json", capsys=capsys)[1])["error"]
    assert (error["at"], error["choices"]) == ("--as", ["text", "csv"])


def test_an_unforeseen_error_shows_no_text_of_its_own(capsys):
    assert print_error(RuntimeError("secret evidence"), as_json=False) == 1
    assert "secret" not in capsys.readouterr().err


def test_ask_prints_the_block_alone_on_standard_output(shop, capsys):
    code, out, err = run("ask", "Is there a default role?", "--project", "shop", capsys=capsys)
    assert code == 0
    assert "There is no default role" in out
    assert "snapshot: retr-snap-" in err
    assert "retr-snap-" not in out


def test_run_takes_a_table_and_reports_statuses(shop, capsys):
    rows = [
        {"request_id": "a", "question": "default role", "project": "shop", "purpose": "answer-question"},
        {"request_id": "b", "question": "default role", "project": "shop", "purpose": "fix_tests"},
    ]
    Path("requests.jsonl").write_text("\n".join(json.dumps(r) for r in rows))
    code, out, _ = run("run", "requests.jsonl", "--json", capsys=capsys)
    summary = json.loads(out)
    assert code == 4
    assert summary["statuses"] == {"failed": 1, "ok": 1}
    _, out, _ = run("log", "--of", "runs", "--json", capsys=capsys)
    assert summary["run_id"] in [r["run_id"] for r in json.loads(out)]
    _, out, _ = run("log", summary["run_id"], "--status", "ok", "--json", capsys=capsys)
    assert [r["request_id"] for r in json.loads(out)] == ["a"]


def test_the_event_and_the_observation_are_the_same_at_every_door(shop, capsys):
    _, out, _ = run("ask", "Which role does a new user get?", "--json", capsys=capsys)
    asked = json.loads(out)
    _, out, _ = run("show", asked["snapshot_id"], "--json", capsys=capsys)
    replayed = json.loads(out)
    assert replayed["event"] == asked["event"]
    observed, items = (
        json.loads(run("show", "--as", form, capsys=capsys)[1]) for form in ("observation", "context-block")
    )
    assert observed["contextBlock"] == asked["block"] == replayed["block"]
    assert asked["event"]["selectedCount"] == len(asked["citations"]) == len(items["items"]) > 0
    assert {item["trust"] for item in items["items"]} <= {"instruction", "evidence", "untrusted-observation"}


def test_verify_names_the_part_that_was_changed(shop, capsys):
    ask(capsys=capsys)
    assert run("verify", capsys=capsys)[0] == 0
    file = next((shop / ".scoped-retrieval" / "runs").glob(f"live/*{SUFFIX}"))
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    code, out, _ = run("verify", capsys=capsys)
    assert code == 5
    assert file.name in out


@pytest.mark.parametrize("format_", ["json", "dot", "svg", "png"])
def test_lineage_of_line_and_run_in_every_format(shop, capsys, format_):
    _, snapshot = ask(capsys=capsys)
    assert run("lineage", snapshot, "--out", f"run.{format_}", capsys=capsys)[0] == 0
    assert run("lineage", "--format", format_, "--out", "line", capsys=capsys)[0] == 0
    of_run, of_line = Path(f"run.{format_}").read_bytes(), Path("line").read_bytes()
    if format_ == "json":
        of_run, of_line = ({key: json.loads(f)[key] for key in ("nodes", "edges")} for f in (of_run, of_line))
    assert (of_run == of_line) == (format_ == "json")  # the others have the rows of the run


def test_doctor_names_every_setting_and_what_is_missing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SCOPED_RETRIEVAL_EVAL_DATA", raising=False)
    code, out, _ = run("doctor", "--json", capsys=capsys)
    found = json.loads(out)
    assert code == 0
    assert {c["name"]: c["status"] for c in found["checks"]}["corpus"] == "warn"
    assert {s["origin"] for s in found["settings"]} == {"default"}


@pytest.mark.parametrize("command", ["doctor", "contract", "status"])
def test_text_fits_eighty_columns(shop, capsys, command):
    _, out, _ = run(command, "--project", "shop", capsys=capsys)
    long = [line for line in out.splitlines() if len(line) > 80]
    assert out and all(" " not in line.strip() for line in long)


def test_doctor_counts_the_packages_of_the_extras_that_an_extra_stands_for(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    needed = ["numpy", 'absent-package>=1; extra == "sql"', 'scoped-retrieval[sql]; extra == "all"']
    monkeypatch.setattr("scoped_retrieval.pipeline.maintenance.doctor.requires", lambda _: needed)
    checks = {c["name"]: c["found"] for c in json.loads(run("doctor", "--json", capsys=capsys)[1])["checks"]}
    assert (checks["packages"], checks["extra all"]) == ("installed", "not installed: absent-package")


def test_a_corpus_is_verified_against_a_head_that_was_kept(shop, capsys):
    code, out, _ = run("verify", "corpus", "--json", capsys=capsys)
    found = json.loads(out)
    assert (code, found["ok"], found["problems"]) == (0, True, [])
    assert run("verify", "corpus", "--anchor", found["head"], capsys=capsys)[0] == 0
    code, out, _ = run("verify", "corpus", "--anchor", "0" * 64, capsys=capsys)
    assert (code, out.splitlines()[-1]) == (5, f"head: {found['head']}")
    assert "problems: Expected the anchor" in out
    assert run("verify", "corpus", "--anchor", "main", capsys=capsys)[0] == 2


def test_doctor_alerts_on_records_that_nobody_has_modified_for_thirty_days(shop, capsys, monkeypatch):
    def records() -> dict | None:
        code, out, err = run("doctor", "--json", capsys=capsys)
        assert code == 0, err
        return next((c for c in json.loads(out)["checks"] if c["name"] == "records"), None)

    assert records() is None
    for name in ("fees", "dates"):
        (shop / f"{name}.csv").write_text("id,fee\nENG-001,$1\n")
    assert (
        run(
            "index",
            "--add",
            "sot=fees.csv",
            "--add",
            "sot=dates.csv",
            "--project",
            "shop",
            "--no-semantic",
            capsys=capsys,
        )[0]
        == 0
    )
    assert (records()["status"], records()["found"]) == ("ok", "2 files of records, each modified within 30 days")
    old = time.time() - 31 * 86_400
    (shop / "fees.csv").write_text("id,fee\nENG-001,$2\n")
    os.utime(shop / "fees.csv", (old, old))
    assert run("index", "--add", "sot=fees.csv", "--project", "shop", "--no-semantic", capsys=capsys)[0] == 0
    assert (records()["status"], records()["found"]) == (
        "warn",
        f"not modified for 30 days: shop: {shop.name}/fees.csv",
    )
    # Who may not read the file is not told of it.
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "eve")
    assert records() is None


def test_doctor_fails_on_a_corpus_that_cannot_be_read(shop, capsys):
    corpus = shop / ".scoped-retrieval" / "corpus"
    for file in corpus.rglob("*"):
        if file.is_file() and file.name != "grants.yaml":
            file.write_bytes(b"{}")
    code, out, _ = run("doctor", "--json", capsys=capsys)
    assert code == 7
    assert {c["name"]: c["status"] for c in json.loads(out)["checks"]}["corpus"] == "fail"


@pytest.mark.parametrize(
    "args",
    [
        ("ask", "q", "--project", "shop", "--purpose"),
        ("verify", "--event"),
        ("ask", "q", "--project", "shop", "--corpus"),
        (),
    ],
)
def test_no_error_echoes_a_token(args, shop, capsys):
    token = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    code, out, err = run(*args, token, capsys=capsys)
    assert code and token not in out + err


def test_the_id_in_a_block_leads_to_its_snapshot(shop, capsys: pytest.CaptureFixture[str]) -> None:
    block, snapshot = ask(capsys=capsys)
    reference = block.splitlines()[0].rpartition(" ")[2]
    assert run("show", reference, capsys=capsys)[1] == block
    for command in (("show", "--as", "xray"), ("why",)):
        assert run(*command, reference, capsys=capsys)[:2] == run(*command, snapshot, capsys=capsys)[:2]


def test_the_x_ray_of_an_exact_look_up_has_its_measured_time_for_auditors(shop, capsys, monkeypatch):
    _, snapshot = ask(capsys=capsys)
    (cited, *_) = json.loads(run("show", snapshot, "--json", capsys=capsys)[1])["citations"]
    shown = [json.loads(run("xray", f"What says {cited['evidence_id']}?", "--json", capsys=capsys)[1])["snapshot"]]
    grants = shop / ".scoped-retrieval/corpus/grants.yaml"
    grants.write_text("principals: {ana: {projects: [shop]}}\n")
    shown.append(json.loads(run("show", "--as", "json", capsys=capsys)[1])["snapshot"])
    assert shown[0]["tierExplain"]["latencyMs"] > 0 and "latencyMs" not in shown[1]["tierExplain"]


def test_an_answer_is_named_by_how_long_ago_its_reader_asked(
    shop, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    grants = shop / ".scoped-retrieval/corpus/grants.yaml"
    grants.write_text(grants.read_text() + "  eve: {projects: [shop], audit: true}\n")
    first, _ = ask("--session", "s-1", "--set", "max_items=1", capsys=capsys)
    second, _ = ask(capsys=capsys)
    assert first != second
    for names, block in ((("@", None), second), (("@2", "@session:s-1"), first)):
        for name in names:
            assert run("show", *([name] if name else []), capsys=capsys)[:2] == (0, block)
    assert run("show", "@3", capsys=capsys)[0] == 3
    assert "@session:S, got '@~1'" in run("diff", "@", "@~1", capsys=capsys)[2]
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "eve")
    assert run("show", "@session:s-1", capsys=capsys)[1] == first
    assert run("show", capsys=capsys)[0] == 3  # an auditor, who asked nothing


def test_an_unknown_or_foreign_reference_is_an_unknown_snapshot(
    shop, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    block, _ = ask(capsys=capsys)
    reference = block.splitlines()[0].rpartition(" ")[2]
    commands = (("show",), ("why", "docs/roles.md"))
    for command, *what in commands:
        assert run(command, "0" * 16, *what, capsys=capsys)[0] == 3
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "eve")
    for command, *what in commands:
        assert run(command, reference, *what, capsys=capsys)[0] == 3


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
