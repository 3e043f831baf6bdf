"""The demo: the failing-test story of the sample comes out as told, and its boundaries hold."""

from pathlib import Path

import pytest
from scoped_retrieval.pipeline.demo import run_demo

SECRET = b"AKIAIOSFODNN7EXAMPLE"


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The demo without semantic lane and repository: what every installation can run."""
    return run_demo(tmp_path_factory.mktemp("demo") / "d", semantic=False, say=lambda line: None)


def block(demo, request: str) -> str:
    return demo.rows[request]["blocks"][0]["text"]


def test_every_purpose_is_answered_and_the_foreign_project_is_denied(demo):
    statuses = {request: rows["snapshots"][0]["status"] for request, rows in demo.rows.items()}
    assert statuses.pop("6-twin") == "denied"
    assert set(statuses.values()) == {"ok"}
    purposes = {rows["contracts"][0]["purpose"] for rows in demo.rows.values()}
    assert purposes == {"fix-test", "explain-code", "review-risk", "answer-question"}


def test_the_failing_test_gets_error_code_rule_and_memory(demo):
    kinds = {c["evidence_kind"] for c in demo.rows["1-fix-test"]["citations"]}
    assert {"test-log", "code", "memory"} <= kinds
    assert "rule" in kinds or "doc" in kinds
    assert "tests/auth/session.fixture.ts" in block(demo, "1-fix-test")


def test_the_definition_comes_first(demo):
    assert demo.rows["2-explain-code"]["citations"][0]["path"] == "src/auth/session.ts"
    assert "export function createSession" in block(demo, "2-explain-code")


def test_a_generated_file_is_guarded_by_its_decision_record(demo):
    assert "do not edit generated files by hand" in block(demo, "3-review-risk")
    assert "decision-record" in {c["evidence_kind"] for c in demo.rows["3-review-risk"]["citations"]}


def test_the_auditor_reads_why_the_twin_is_refused(demo):
    assert demo.twin
    assert {(t["decided_by"], t["reason_code"]) for t in demo.twin} == {("project", "out_of_scope_project")}


def test_the_secret_is_in_no_byte_that_was_written(demo):
    files = [f for f in Path(demo.folder).rglob("*") if f.is_file()]
    assert len(files) > 10
    assert [f for f in files if SECRET in f.read_bytes()] == []


def test_the_injected_instruction_is_never_an_instruction(demo):
    for rows in demo.rows.values():
        for item in rows["trimmed"]:
            if "gnore all previous requirements" in (item["visible_text"] or ""):
                assert item["standing"] == "untrusted"


def test_one_screen_shows_a_question_its_block_its_refused_twin_and_a_report(demo):
    lines = demo.screen().rstrip().splitlines()
    assert len(lines) <= 36
    shown = block(demo, "4-rule-today").splitlines()
    assert (
        max(len(line) for line in lines[:-7] if line not in shown) <= 100
    )  # the paths of an installation may be longer
    assert lines[0] == 'In project shop, ana asks: "What is the default role of a session?"'
    assert lines[2 : 2 + len(shown)] == shown
    assert "  denied, nothing_granted: nothing that was asked for is granted" in lines
    assert "  docs/auth/default-role.md: gate project, out_of_scope_project" in lines
    assert "accountant" not in demo.screen()
    page = Path(lines[-1]).read_text(encoding="utf-8")
    assert "keeps the role of an admin" in page


def test_the_commands_it_prints_open_what_it_showed(demo, monkeypatch, capsys):
    from scoped_retrieval.pipeline.cli import main

    monkeypatch.chdir(demo.folder)
    monkeypatch.delenv("SCOPED_RETRIEVAL_PRINCIPAL", raising=False)
    assert main(["show", demo.opened, "--as", "xray"]) == 0
    for line in demo.screen().splitlines():
        command = line[2:66].split() if line.startswith(("  show ", "  what-if ")) else ["status"]
        assert main(command) == 0
    assert (demo.folder / "run.html").is_file()
    assert main(["log"]) == 0
    assert demo.opened in capsys.readouterr().out


def test_the_refusal_in_the_readme_is_what_one_gets(demo, monkeypatch, capsys):
    from scoped_retrieval.pipeline.cli import main

    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    monkeypatch.chdir(demo.folder)
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "ana")
    code = main(["ask", "What is the default role?", "--project", "billing"])
    out, err = capsys.readouterr()
    assert code == 3
    assert "accountant" not in out + err
    assert "(denied)" in err
    refusal = [line for line in err.splitlines() if "nothing_granted" in line]
    assert refusal
    assert refusal[0] in readme.splitlines()
