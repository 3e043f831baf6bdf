"""Who may look: absent, foreign and unknown ids get the same answer."""

import json
from pathlib import Path

import pytest
from command_line import ask, run
from failing_reads import unseen
from scoped_retrieval.pipeline.config.settings import load_settings
from scoped_retrieval.pipeline.runs import Runs
from written_runs import file_of

FOREIGN, ABSENT = "000000000000000000", "0123456789abcdefgh"


@pytest.fixture(name="runs_of_ana")
def runs_of_ana_fixture(shop, capsys):
    """An interactive snapshot, a batch run and an unfinished one of ana's: their ids."""
    _, snapshot = ask(capsys=capsys)
    Path("q.jsonl").write_text('{"question": "default role", "purpose": "answer-question"}')
    batch = json.loads(run("run", "q.jsonl", "--json", capsys=capsys)[1])["run_id"]
    begun = f"run-{FOREIGN}"
    Runs(shop / ".scoped-retrieval" / "runs").log.commit("begin", {"run_id": begun, "started_by": "ana"})
    return snapshot, batch, begun


def said(*args: str, capsys) -> tuple[int, str, str]:
    """What a command answers, without the id that it was given."""
    code, out, err = run(*args, capsys=capsys)
    return code, out, next((err.replace(arg, "ID") for arg in sorted(args, key=len, reverse=True) if arg in err), err)


@pytest.mark.parametrize(
    "command", ["show ID", "show ID --as xray", "why ID x.py", "show ID --as bundle", "verify ID --answer q.jsonl"]
)
def test_a_snapshot_of_another_and_one_of_no_run_read_alike(runs_of_ana, capsys, monkeypatch, command):
    mine, batch, begun = runs_of_ana
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "eve")
    of_batch, of_begun = (f"retr-snap-{name.removeprefix('run-')}-0001" for name in (batch, begun))
    wrong = (mine, of_batch, of_begun, f"{mine[:-4]}9999", f"retr-snap-{ABSENT}-0001")
    answers = {said(*command.replace("ID", one).split(), capsys=capsys) for one in wrong}
    assert len(answers) == 1
    ((code, out, err),) = answers
    assert (code, out) == (3, "")
    assert err.startswith("error: Expected a snapshot that you may read, got none - at ID\n")


@pytest.mark.parametrize("command", ["why ID x.py", "log --of checks ID"])
def test_a_run_is_no_snapshot(runs_of_ana, capsys, command):
    code, out, err = said(*command.replace("ID", runs_of_ana[1]).split(), capsys=capsys)
    assert (code, out) == (3, "")
    assert err.startswith("error: Expected a snapshot that you may read, got none - at ID\n")


@pytest.mark.parametrize("command", ["lineage ID", "log ID", "verify ID"])
def test_a_run_of_another_and_one_that_is_not_there_read_alike(runs_of_ana, capsys, monkeypatch, command):
    snapshot, batch, begun = runs_of_ana
    live = f"run-{snapshot.split('-')[2]}"
    assert [said(*command.replace("ID", one).split(), capsys=capsys)[0] for one in (live, batch, begun)] == [
        0,
        0,
        4 if command.startswith("verify") else 7,
    ]
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "eve")
    wrong = (live, batch, begun, f"run-{ABSENT}", "nonsense")
    answers = {said(*command.replace("ID", one).split(), capsys=capsys) for one in wrong}
    assert len(answers) == 1
    ((code, out, err),) = answers
    assert (code, out) == (3, "")
    assert err.startswith("error: Expected a run that you may read, got none - at ID\n")


def test_a_run_to_resume_that_is_anothers_and_one_that_is_not_there_read_alike(runs_of_ana, capsys, monkeypatch):
    _, batch, begun = runs_of_ana
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "eve")
    answers = {said("run", "--resume", one, capsys=capsys) for one in (batch, begun, f"run-{ABSENT}")}
    assert answers == {
        (
            3,
            "",
            "error: Expected a run that you started, got none - at ID\n\nHint: `log --of runs` lists yours, `verify` names those that are damaged\n",
        )
    }


def test_gc_tells_sizes_to_auditors_alone(shop, capsys, monkeypatch):
    for principal, removed in (("ana", "removed: generations 1, packs 0, files 0, bytes 0"), ("eve", "nothing")):
        monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", principal)
        code, out, _ = run("gc", "--keep", "1", capsys=capsys)
        assert (code, out.splitlines()[0], "bytes" in out) == (0, removed, principal == "ana")
    assert json.loads(run("gc", "--json", capsys=capsys)[1]) == {"compacted": {}, "damaged": []}


def test_damage_is_told_to_whose_it_is_and_not_to_others(runs_of_ana, shop, capsys, monkeypatch):
    _, batch, _ = runs_of_ana
    snapshot = f"retr-snap-{batch.removeprefix('run-')}-0001"
    (part,) = (shop / ".scoped-retrieval" / "runs" / batch / "tables" / "snapshots").iterdir()
    part.write_bytes(part.read_bytes()[:100])
    for command in (["show", snapshot], ["show", snapshot, "--as", "xray"], ["log", batch]):
        code, out, err = run(*command, capsys=capsys)
        assert (code, out) == (7, "")
        where = f"{batch}/tables/snapshots/{part.name}"
        assert err.startswith(f"error: Expected a whole part, got a damaged one - at {where}\n")
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "eve")
    for command in (["show", snapshot], ["show", snapshot, "--as", "xray"], ["log", batch], ["lineage", batch]):
        code, _, err = run(*command, capsys=capsys)
        assert (code, " that you may read, got none - at " in err) == (3, True)


@pytest.mark.parametrize("damaged", ["file", "line", "both"])
@pytest.mark.parametrize("which", ["interactive", "batch"])
def test_damage_that_hides_whose_a_run_is_does_not_tell_strangers_that_it_is_there(
    runs_of_ana, shop, capsys, monkeypatch, which, damaged
):
    snapshot, batch, _ = runs_of_ana
    name = {"interactive": f"run-{snapshot.split('-')[2]}", "batch": batch}[which]
    folder = shop / ".scoped-retrieval" / "runs" / name
    parts = folder / "tables/snapshots"
    file = next(parts.iterdir()) if which == "batch" else file_of(Runs(folder.parent).open(name), 1)
    if damaged != "line":
        file.write_bytes(file.read_bytes()[:9])
    if damaged != "file":  # a line of this run, or of another
        log, hurt = folder.parent / "LOG", name if damaged == "line" else f"run-{FOREIGN}"
        whole = log.read_text().splitlines(keepends=True)
        log.write_text("".join(line.replace("kind", "KIND") if hurt in line else line for line in whole))
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "eve")
    for command in ("lineage ID", "log ID", "run --resume ID"):
        answers = {said(*command.replace("ID", one).split(), capsys=capsys) for one in (name, f"run-{ABSENT}")}
        assert [code for code, _, _ in answers] == [3], answers
    assert json.loads(run("log", "--of", "runs", "--json", capsys=capsys)[1]) == []
    wanted = (f"retr-snap-{name.removeprefix('run-')}-0001", f"retr-snap-{ABSENT}-0001")
    answers = {said("show", one, capsys=capsys) for one in wanted}
    assert [code for code, _, _ in answers] == [3]


def test_a_damaged_run_of_another_does_not_keep_a_principal_from_their_answers(runs_of_ana, shop, capsys, monkeypatch):
    _, batch, _ = runs_of_ana
    grants = shop / ".scoped-retrieval" / "corpus" / "grants.yaml"
    grants.write_text(grants.read_text() + "  eve: {projects: [shop]}\n")
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "eve")
    _, mine = ask(capsys=capsys)
    Path("answer.md").write_text("So.")
    run("verify", mine, "--answer", "answer.md", capsys=capsys)
    (part,) = (shop / ".scoped-retrieval" / "runs" / batch / "tables" / "snapshots").iterdir()
    part.write_bytes(part.read_bytes()[:100])
    code, out, err = run("log", "--of", "checks", "--json", capsys=capsys)
    assert (code, err) == (0, ""), "that it is damaged is not eve's to know"
    assert [entry["snapshot_id"] for entry in json.loads(out)] == [mine]


def test_checks_count_and_name_the_runs_that_a_principal_may_know_of(runs_of_ana, shop, capsys, monkeypatch):
    def told() -> tuple[set[str], str, list[str], str]:
        report = json.loads(run("verify", "--json", capsys=capsys)[1])
        health = json.loads(run("doctor", "--json", capsys=capsys)[1])
        counted = next(check["found"] for check in health["checks"] if check["name"] == "runs").split()[0]
        compacted = [*json.loads(run("gc", "--json", capsys=capsys)[1])["compacted"]]
        return {one["run_id"] for one in report["runs"]}, report["head"], compacted, counted

    snapshot, batch, _ = runs_of_ana
    live = f"run-{snapshot.split('-')[2]}"
    grants = shop / ".scoped-retrieval" / "corpus" / "grants.yaml"
    first = grants.read_text()
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "eve")
    assert told() == (set(), "", [], "0")
    code, _, err = run("verify", "--anchor", "0" * 64, capsys=capsys)
    assert (code, "got no such run - at LOG" in err) == (5, True), "of a log with lines of others"
    grants.write_text(first + "  eve: {projects: [shop]}\n")
    _, mine = ask(capsys=capsys)
    of_eve = f"run-{mine.split('-')[2]}"
    assert (told()[0], told()[3]) == ({of_eve}, "1")
    log = (shop / ".scoped-retrieval" / "runs" / "LOG").read_text().splitlines()
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "ana")
    assert told()[0] == {live, batch, of_eve}, "an auditor sees all of them"
    assert told()[1] == (shop / ".scoped-retrieval" / "runs" / "LOG").read_text().splitlines()[-1].split()[0]
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "eve")
    assert told()[1] in {line.split()[0] for line in log if of_eve in line}, "what others did since is not said"


def test_what_a_grants_file_took_back_stays_so_where_it_cannot_be_looked_at(runs_of_ana, shop, capsys):
    snapshot, _, _ = runs_of_ana
    path = load_settings(environ={}).grants_path
    path.write_text("principals: {}\n")
    assert run("show", snapshot, capsys=capsys)[0] == 3
    with unseen(path):
        code, out, err = run("show", snapshot, capsys=capsys)
    assert (code, out) == (7, "") and "grants.yaml" in err


def test_gc_names_a_damaged_run_and_goes_on(runs_of_ana, shop, capsys, monkeypatch):
    snapshot, _, _ = runs_of_ana
    _, other = ask(capsys=capsys)
    damaged, whole = (f"run-{one.split('-')[2]}" for one in (snapshot, other))
    assert damaged != whole
    file = file_of(Runs(shop / ".scoped-retrieval/runs").open(damaged), 1)
    file.write_bytes(file.read_bytes()[:9])
    assert json.loads(run("gc", "--json", capsys=capsys)[1])["compacted"] == {}, "they would grow"
    monkeypatch.setattr("scoped_retrieval.pipeline.runs.store.SHRINKS", 1)
    code, out, _ = run("gc", "--json", capsys=capsys)
    assert code == 5
    found = json.loads(out)
    assert (found["compacted"], found["damaged"]) == (
        {whole: 1},
        [f"{damaged}: Expected a whole snapshot, got a damaged one - at live/{file.name}"],
    )
