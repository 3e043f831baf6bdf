"""Which commands are checks, how they came out, and which failures they end: by what ran and what it printed, never by a word."""

from __future__ import annotations

from typing import Any

import pytest
from context_session import Session, projected, state_of
from junitparser import JUnitXml
from scoped_retrieval.pipeline.context.check_lines import checks_of
from scoped_retrieval.pipeline.context.events import read_events
from scoped_retrieval.pipeline.context.outcomes import checked, stated_outcome
from scoped_retrieval.pipeline.context.summaries import summary_of
from scoped_retrieval.pipeline.sources.jsonl import Record

NO_CHECKS = (
    "ls tests", "rm -rf build", "mkdir -p build", "grep -rn boom tests/", "sed -n 1,20p tests/test_a.py", "cd tests && ls",
    "python -c 'print(1)' # test", "vim tests/x.py", "find . -name '*.test.ts'", "npm install jest", "npm ci", "pip install pytest",
    "docker ps | grep test", "head -5 tests/a.py", "wc -l tests/a.py", "touch build/x", "pytest --collect-only", "pytest --version",
    "uv run python scripts/build_docs.py", "sleep 5; tail test.log", "git commit -m 'fix: pytest && make test'", "echo pytest", "make -n test",
    "ruff format .", "python gen.py test", "which pytest", "hatch run python gen.py", "hatch run dev:python test", "hatch -e test run python gen.py", "uv run test",
)  # fmt: skip
CHECKS = {
    "pytest -q": "pytest:", "uv run pytest -n 4": "pytest:", "bash -lc 'pytest -q'": "pytest:", "CI=1 timeout 60 python -m pytest tests": "pytest:tests",
    "cd web && pytest": "pytest in web:", "pytest -q ./tests/a.py": "pytest:tests/a.py", "pytest -k parser": "pytest:-k parser", "pytest -kparser": "pytest:-k parser",
    "pnpm test --filter parser": "script test --filter parser:", "npm run -s test": "script test:", "yarn workspace web test": "script test workspace web:",
    "npm run test:unit": "script test%3Aunit:", "make -j4 check": "make check:", "make": "make:", "go test ./...": "go test:", "go test ./pkg": "go test:pkg",
    "cargo clippy": "cargo clippy:", "npx tsc --noEmit": "tsc:", "ruff check nodes": "ruff check:nodes", "ruff format --check .": "ruff format:",
    "./gradlew test": "gradle test:", "bash run_tests.sh": "run_tests.sh:", "python tests/test_a.py": "python:tests/test_a.py", "tox": "tox:",
    "tox -elint": "tox:-e lint", "npm --prefix web t": "script test in web:", "make -C web test": "make test in web:", "mvn -q -Dtest=Foo test": "mvn test:-Dtest=Foo",
    "pytest --runslow tests": "pytest --runslow:tests", "TEST=foo make test": "make test TEST=foo:", "go test": "go test:.", "(cd web && pytest)": "pytest in web:",
    "pnpm vitest run": "vitest:", "cd packages && cd ../web && pytest": "pytest in web:", "pytest /repo/tests/a.py": "pytest:/repo/tests/a.py",
    "pytest 2>&1 > /tmp/out.4711.log": "pytest:", "PYTHONPATH=src pytest": "pytest PYTHONPATH=src:", "npx playwright test": "playwright test:",
    "python -m unittest discover -v": "unittest:", "bundle exec rspec": "rspec:", "ctest --test-dir build": "ctest in build:",
    "prove": "prove:", "prove -lv t/": "prove:t", "prove -v -j4": "prove:", "prove -l t/a.t": "prove:t/a.t", "prove -r": "prove -r:",
    "hatch run dev:test": "hatch run dev%3Atest:", "hatch -e dev run test": "hatch run test -e dev:", "hatch run +py=3.12 test": "hatch run test +py=3.12:",
    "hatch test": "hatch test:", "CI=1 hatch run test": "hatch run test:", "hatch run types:check": "hatch run types%3Acheck:", "hatch run pytest tests/a.py": "pytest:tests/a.py",
}  # fmt: skip


@pytest.mark.parametrize("command", NO_CHECKS)
def test_a_command_that_names_tests_and_runs_none_ends_no_failure(command: str):
    session = Session()
    session.failing("a.py:3 boom", command="pytest -q")
    session.add("command.finished", turn=2, command=command, exitCode=0, stdout="3 passed")
    state = state_of(session)
    assert state["failure"] == "a.py:3 boom"
    assert state["verification"] in ("pytest -q: failed", None)


@pytest.mark.parametrize(("command", "scope"), CHECKS.items())
def test_a_check_is_the_program_that_a_shell_would_start(command: str, scope: str):
    assert [ran.check.name for ran in checks_of(command)] == [scope]


def ended(command: str, stdout: str, **payload: Any) -> tuple[str | None, str | None]:
    session = Session()
    session.failing("a.py:3 boom", command="pytest -q")
    session.add("command.finished", turn=2, command=command, stdout=stdout, **payload)
    state = state_of(session)
    return state["failure"], state["verification"]


@pytest.mark.parametrize(
    ("command", "stdout", "payload", "outcome"),
    [
        ("pytest -q", "3 passed", {"exitCode": 0}, "passed"),
        ("pytest -q", "", {"exitCode": 0}, "passed"),
        ("pytest -q", "3 passed", {}, "passed"),
        ("pytest -q", "collecting", {}, "outcome unknown"),
        ("pytest -q | tail -2", "1 failed, 2 passed", {"exitCode": 0}, "failed"),
        ("pytest -q | tail -2", "...", {"exitCode": 0}, "outcome unknown"),
        ("pytest -q || true", "", {"exitCode": 0}, "outcome unknown"),
        ("pytest -q; echo done", "done", {"exitCode": 0}, "outcome unknown"),
        ("set -o pipefail; pytest -q | tail", "", {"exitCode": 0}, "passed"),
        ("pytest -q && echo done", "done", {"exitCode": 0}, "passed"),
        ("pytest", "Command running in background with ID: b1", {"exitCode": 0}, "outcome unknown"),
        ("pytest", "Process running with session ID 4242", {"exitCode": 0}, "outcome unknown"),
        ("pytest", "", {"exitCode": 0, "background": True}, "outcome unknown"),
        ("pytest", "...", {"timedOut": True}, "failed"),
        ("mvn test", '<testsuite name="s"><testcase classname="c" name="b"><failure message="boom">E</failure></testcase></testsuite>', {"exitCode": 0}, "failed"),
    ],
)  # fmt: skip
def test_what_a_check_printed_decides_before_its_exit_code(
    command: str, stdout: str, payload: dict[str, Any], outcome: str
):
    failure, verification = ended(command, stdout, **payload)
    assert verification == f"{command}: {outcome}"
    assert (failure is None) == (outcome == "passed")


PASSED = (
    "===== 2 passed, 1 xfailed in 0.1s =====",
    " Tests  5 passed (5)",
    "ok  \texample.com/a\t0.1s",
    "test result: ok. 3 passed; 0 failed;",
    "Ran 3 tests in 0.1s\n\nOK",
    "All checks passed!",
    "Success: no issues found in 3 source files",
    "0 errors, 0 warnings, 0 notes",
    "BUILD SUCCESSFUL in 3s",
    "100% tests passed, 0 tests failed out of 3",
    "Found 2 errors (2 fixed, 0 remaining).",
    "  ✓ handles 2 failing requests\n  3 passing (10ms)",
    "ERROR retry: 3 errors\n3 passed in 0.1s",
    "?   \tx/a\t[no test files]\nok  \tx/b\t0.1s",
    "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
    "Tests:       1 skipped, 5 passed, 6 total\nTest Suites: 2 passed, 2 total",
    "3 examples, 0 failures, 1 pending",
    "3 runs, 5 assertions, 0 failures, 0 errors, 0 skips",
    "OK (3 tests, 5 assertions)",
    "Passed!  - Failed:     0, Passed:     3, Skipped:     0, Total:     3, Duration: 3 ms - a.dll (net8.0)",
    "ok | 3 passed | 0 failed (10ms)",
    "ok 1 - adds\n1..1\nok\nAll tests successful.\nFiles=1, Tests=1,  0 wallclock secs\nResult: PASS",
    " 3 pass\n 0 fail\nRan 3 tests across 1 files. [10ms]",
    "  3 passed (2.1s)",
    "[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 0\n[INFO] BUILD SUCCESS",
    "  py311: OK (1.2=setup[0.9]+cmd[0.3] seconds)\n  congratulations :) (1.3 seconds)",
    "nox > Session tests was successful.",
    "nox > * tests-3.11: success",
    "Executed 3 tests, with 0 failures (0 unexpected) in 0.1 (0.1) seconds",
    "3 doctests, 2 tests, 0 failures",
    "00:01 +3: All tests passed!",
    "Executed 1 out of 1 test: 1 test passes.",
    "Ok:                 3\nFail:               0",
    "# tests 3\n# pass 3\n# fail 0",
    " Test Files  3 passed (3)\n      Tests  10 passed (10)\nType Errors  no errors",
    "Mutants killed: 41\nworker: terminated as asked\nthe process is killed\n3 passed in 0.1s",
    "3 passed",
    "12 passed",
    "8 passed, 2 warnings in 1.20s",
    "====== 100 passed, 2 skipped, 1 warning in 12.34s (0:00:12) ======",
    "3 files inspected, no offenses detected",
    "Summary [   0.1s] 3 tests run: 3 passed, 0 skipped",
    "3 files already formatted",
    "[info] Passed: Total 3, Failed 0, Errors 0, Passed 3",
    "Test summary: total: 3, failed: 0, succeeded: 3, skipped: 0, duration: 1s",
    "Found 0 errors.",
    "DONE 3 tests in 0.1s",
    "All 3 tests passed.",
)
FAILED = (
    "Failed 1/2 subtests\n  Failed test:  2\nFiles=1, Tests=2,  0 wallclock secs\nResult: FAIL",
    "===== 1 failed, 2 passed in 0.1s =====",
    "Tests:       1 failed, 5 passed, 6 total",
    "--- FAIL: TestA (0.00s)\nFAIL\n",
    "test result: FAILED. 1 passed; 1 failed;",
    "Ran 3 tests in 0.1s\n\nFAILED (failures=1)",
    "Found 3 errors.",
    "Found 1 error in 1 file (checked 3 source files)",
    "✖ 3 problems (3 errors, 0 warnings)",
    "src/a.ts(3,1): error TS2322: no",
    "BUILD FAILURE",
    "make: *** [test] Error 1",
    "Found 3 errors (2 fixed, 1 remaining).",
    "  3 passing (10ms)\n  1 failing",
    "Test Suites: 1 failed, 1 passed, 2 total\nTests:       5 passed, 5 total",
    " Test Files  1 failed | 2 passed (3)\n      Tests  5 passed (5)",
    " Test Files  3 passed (3)\n      Tests  10 passed (10)\nType Errors  2 errors",
    "3 examples, 1 failure",
    "3 runs, 5 assertions, 0 failures, 1 errors, 0 skips",
    "FAILURES!\nTests: 3, Assertions: 5, Failures: 1.",
    "Tests: 3, Assertions: 5, Failures: 1.",
    "Failed!  - Failed:     1, Passed:     2, Skipped:     0, Total:     3",
    "FAILED | 2 passed | 1 failed (10ms)",
    " 2 pass\n 1 fail",
    "  1 failed\n  2 passed (2.1s)",
    "[ERROR] Tests run: 3, Failures: 1, Errors: 0, Skipped: 0",
    "nox > Session tests failed.",
    "00:01 +2 -1: Some tests failed.",
    "Executed 1 out of 1 test: 1 fails locally.",
    "\u2139 pass 2\n\u2139 fail 1",
    "npm ERR! code ELIFECYCLE",
    "1 failed, 2 passed",
    "1 error in 0.5s",
    "1 passed, 1 error in 0.5s",
    "3 files inspected, 2 offenses detected",
    "Summary [   0.1s] 3 tests run: 2 passed, 1 failed, 0 skipped",
    "1 file would be reformatted, 2 files left unchanged",
    "DONE 3 tests, 1 failure in 0.1s",
    "error: test failed, to rerun pass `--lib`",
)
NOTHING_RAN = (
    "Files=0, Tests=0,  0 wallclock secs\nResult: NOTESTS",
    "No tests found, exiting with code 0",
    "?   \texample.com/a\t[no test files]",
    "Ran 0 tests in 0.000s\n\nOK",
    "Ran 3 tests in 0.1s\n\nOK (skipped=3)",
    "collected 0 items\n\n==== no tests ran in 0.01s ====",
    "0 passed",
    "3 skipped in 0.1s",
    "ok  \tx/b\t0.1s [no tests to run]",
    "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
    "0 examples, 0 failures",
    "No tests executed!",
    "\u2139 tests 0\n\u2139 pass 0\n\u2139 fail 0",
    "make: Nothing to be done for 'test'.",
    "make: 'test' is up to date.",
)
SAYS_NOTHING = (
    "collecting ...",
    "✖ 3 problems (0 errors, 3 warnings)",
    "make: [Makefile:3: test] Error 1 (ignored)",
    "2 errors",
)
BROKEN_OFF = (
    "!!!! _pytest.outcomes.Exit: database not reachable !!!!\n=== 3 passed in 0.12s ===", "INTERNALERROR> RuntimeError: x\n\n=== 3 passed in 0.12s ===",
    "! _pytest.outcomes.Exit: Database is not reachable at localhost:5432, giving up !\n3 passed in 0.02s", "error: Recipe `test` failed on line 5 with exit code 1\n3 passed in 0.02s",
    "!!!! KeyboardInterrupt !!!!\n3 passed in 0.02s", "!!!! xdist.dsession.Interrupted: stopping after 1 failures !!!!\n=== 3 passed in 0.12s ===",
    *(f"3 passed in 0.02s\n{each}" for each in (
        "Segmentation fault (core dumped)", "Killed", "Killed: 9", "bash: line 1: 4711 Segmentation fault      (core dumped) pytest", "bash: line 1: 4711 Killed                  pytest -q", "zsh: killed     pytest -q",
        "Fatal Python error: Segmentation fault", "Command terminated by signal 9", "Command exited with non-zero status 2",
    )),
    "  1 interrupted\n  2 passed (3.0s)", "  3 did not run\n  2 passed (3.0s)", "  Timed out waiting 60s for the entire test run\n  2 passed (3.0s)",
    "Vitest caught 1 unhandled error during the test run.\n Test Files  3 passed (3)\n      Tests  10 passed (10)",
    "\u23af\u23af\u23af Unhandled Errors \u23af\u23af\u23af\n Test Files  3 passed (3)\n      Tests  10 passed (10)",
)  # fmt: skip


@pytest.mark.parametrize(
    ("texts", "outcome"),
    [
        (PASSED, "passed"),
        (FAILED, "failed"),
        (NOTHING_RAN, "nothing"),
        (SAYS_NOTHING, None),
        (BROKEN_OFF, "broken off"),
    ],
)
def test_the_summaries_of_common_runners_are_read(texts: tuple[str, ...], outcome: str | None):
    assert {text: summary_of(text) for text in texts} == dict.fromkeys(texts, outcome)


@pytest.mark.parametrize("said", BROKEN_OFF)
def test_a_summary_of_a_run_that_was_broken_off_ends_no_failure(said: str):
    for command in ("pytest 2>&1 | tail -9", "npx vitest run 2>&1 | tail -30", "npx playwright test | tail"):
        session = Session()
        session.failing("a.py:3 boom", command=command.split(" 2>")[0].split(" |")[0])
        session.add("command.finished", turn=2, command=command, exitCode=0, stdout=said)
        assert state_of(session)["failing"], command
    assert stated_outcome(said) is None
    assert ended("pytest -q", said, exitCode=0) == (None, "pytest -q: passed"), "its own exit code counts"


def test_a_program_is_read_by_its_own_summaries():
    assert summary_of("3 passed in 0.1s", "go test") is None
    assert summary_of("test result: FAILED. 0 passed; 1 failed\n3 passed in 0.1s", "pytest") == "passed"
    assert summary_of("1 failed in 0.1s\n===== 3 passed in 0.1s =====", "pytest") == "passed", (
        "the last one stands for all"
    )


@pytest.mark.parametrize(
    "text",
    ["\n" * 100_000, " " * 100_000, "1" * 100_000, "Tests " * 20_000, "FAILED " + "x" * 100_000, "1 a, " * 20_000],
)
def test_an_output_takes_time_in_proportion_to_its_length(text: str):
    """Each took seconds, or would, where a pattern restarted at every line."""
    assert summary_of(text) is None


@pytest.mark.parametrize("words", ["1/2 " * 50_000, "1 of 2 " * 50_000, "1/2 passed " * 20_000 + "1" * 5_000 + "/2"])
def test_a_sentence_takes_time_in_proportion_to_its_length(words: str):
    """Minutes, where every count looked for a word behind it; a number of so many digits raised an error."""
    assert stated_outcome(words) is (False if "passed" in words else None)


def test_a_report_is_parsed_once_for_all_checks_of_a_line(monkeypatch: pytest.MonkeyPatch):
    parse, parsed = JUnitXml.fromstring, list[bytes]()
    monkeypatch.setattr(JUnitXml, "fromstring", lambda text: parsed.append(text) or parse(text))
    report = "<testsuite name='s'><testcase classname='c' name='a'/></testsuite>"
    line = " && ".join(f"pytest tests/{name}.py" for name in "abc")
    found = checked("command.finished", Record("event", {}), line, report, code=0, ended=None)
    assert found["check_outcome"] == "passed" and len(parsed) == 1


def test_a_check_that_fails_and_prints_nothing_is_still_a_failure():
    for payload, how in (({"exitCode": 1}, "failed"), ({"exitCode": 1, "stdout": ""}, "failed"), ({"timedOut": True}, "timed out")):  # fmt: skip
        told = (f"pytest -q: {how} and printed nothing", "pytest -q: failed")
        assert ended("pytest -q", **{"stdout": "", **payload}) == told


@pytest.mark.parametrize(
    "says",
    [
        *({name: True} for name in ("killed", "failed", "isError", "is_error")),
        *({name: False} for name in ("success", "passed", "ok")), {"timedOut": "true"}, {"signal": "SIGKILL"},
        {"success": "false"}, {"passed": 0}, {"failed": False, "success": False},
        *({"status": word} for word in ("failed", "error", "timed-out")), {"outcome": "failed"},
        {"result": "failed"}, {"conclusion": "failure"}, {"failed": 3}, {"failed": ["a"]}, {"failures": 2}, {"errors": 1}, {"passed": "no"},
        {"passed": 5, "failed": 2}, {"failed": 3, "passed": True}, {"terminated": True}, {"timeout": True}, {"exitSignal": "SIGTERM"},
        *({name: 1} for name in ("returncode", "return_code", "exit_status", "exitStatus", "code", "status", "exit_code")), {"error": "spawn ENOENT"},
    ],
)  # fmt: skip
def test_a_harness_that_says_beside_an_exit_code_of_0_that_a_check_did_not_pass_is_believed(says: dict[str, Any]):
    failure, verification = ended("pytest", "5 passed in 0.1s", exitCode=0, **says)
    assert failure and verification == "pytest: failed"
    session = Session()
    session.failing("a.py:3 boom", command="pytest")
    session.add("verification.finished", turn=2, command="pytest", exitCode=0, **says)
    assert state_of(session)["failure"]


@pytest.mark.parametrize(
    ("says", "how"),
    [
        ({"interrupted": True}, "interrupted"), ({"timedOut": False, "interrupted": True}, "interrupted"), ({"wasInterrupted": True}, "interrupted"),
        ({"status": "interrupted"}, "interrupted"), ({"cancelled": True}, "cancelled"), ({"canceled": True}, "cancelled"), ({"status": "Cancelled"}, "cancelled"),
        ({"aborted": True}, "aborted"), *(({name: "cancelled"}, "cancelled") for name in ("outcome", "state", "result", "conclusion")), ({"outcome": "Aborted"}, "aborted"),
    ],
)  # fmt: skip
def test_a_harness_that_says_beside_an_exit_code_of_0_that_a_check_was_broken_off_is_believed(
    says: dict[str, Any], how: str
):
    assert ended("pytest", "5 passed in 0.1s", exitCode=0, **says) == ("a.py:3 boom", f"pytest: {how}")
    session = Session()
    session.failing("a.py:3 boom", command="pytest")
    session.add("verification.finished", turn=2, command="pytest", exitCode=0, **says)
    assert state_of(session)["failure"]
    session = Session()
    session.add("verification.finished", command="pytest", **says)
    assert (state_of(session)["failure"], state_of(session)["verification"]) == (
        None,
        "pytest: outcome unknown",
    )


@pytest.mark.parametrize("says", [{"status": "skipped"}, {"conclusion": "not_run"}, {"passed": 3, "total": 5}], ids=str)
def test_a_command_that_did_not_run_whole_passes_nothing(says: dict[str, Any]):
    assert ended("pytest", "", exitCode=0, **says) == ("a.py:3 boom", "pytest: outcome unknown")


@pytest.mark.parametrize("says", [{"timedOut": "after 30s"}, {"outcome": "timed out"}, {"result": "timeout"}], ids=str)
def test_words_of_a_harness_say_that_time_ran_out(says: dict[str, Any]):
    session = Session()
    session.add("command.finished", command="pytest", stdout="x", **says)
    assert "Command timed out: pytest" in projected(session).text()


@pytest.mark.parametrize(
    "says",
    [{"interrupted": True}, {"cancelled": True}, {"status": "aborted"}, {"running": True}, {"backgroundTaskId": "b1"}],
    ids=str,
)
def test_names_that_a_verification_lists_did_not_pass_where_it_was_broken_off(says: dict[str, Any]):
    session = Session()
    session.failing("a.py:3 boom", command="pytest")
    session.add("verification.finished", turn=2, checks=["pytest", "ruff check"], exitCode=0, **says)
    assert state_of(session)["failure"] == "a.py:3 boom"


@pytest.mark.parametrize("whole", [{}, {"exitCode": 0}, {"status": "passed"}], ids=str)
@pytest.mark.parametrize(
    ("part", "outcome"),
    [
        *(({name: True}, "outcome unknown") for name in ("interrupted", "cancelled", "aborted")),
        *((says, "failed") for says in ({"timedOut": True}, {"killed": True}, {"signal": "SIGKILL"}, {"exitCode": None, "timedOut": True}, {"returncode": 1}, {"rc": 2},
                                        {"status": "terminated"})),
    ],
    ids=str,
)  # fmt: skip
def test_a_part_that_says_only_how_it_ended_is_one(part: dict[str, Any], outcome: str, whole: dict[str, Any]):
    for name in ("name", "command"):
        session = Session()
        session.add("verification.finished", name="lint", status="failed", text="a.py:1 E501")
        checks = [{name: "lint", **part}, {"name": "pytest", "exitCode": 0}]
        session.add("verification.finished", turn=2, checks=checks, **whole)
        state = state_of(session)
        assert state["failure"] and str(state["verification"]).endswith(outcome), name


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        ({"stdout": "5 passed in 0.1s", "stderr": "", "interrupted": False}, "passed"), ({"timedOut": False}, "passed"), ({"timedOut": True}, "failed"), ({"killed": True}, "failed"),
        ({"interrupted": True}, "outcome unknown"), ({"stdout": "", "cancelled": True}, "outcome unknown"),
    ],
    ids=str,
)  # fmt: skip
def test_the_result_of_a_verification_is_not_a_map_of_names(result: dict[str, Any], outcome: str):
    for kind in ("verification.finished", "command.finished"):
        session = Session()
        session.add(kind, command="pytest", exitCode=0, text="5 passed in 0.1s", result=result)
        assert state_of(session)["verification"] == f"pytest: {outcome}", kind


def test_counts_are_numbers_and_a_map_of_names_may_have_a_key_of_a_result():
    session = Session()
    session.add(
        "verification.finished",
        command="npx stryker run",
        passed=True,
        counts={"killed": 41, "timedOut": 3, "survived": 0},
    )
    assert state_of(session)["verification"] == "npx stryker run: passed"
    for field, number in (("cancelled", 2), ("timedOut", 1), ("interrupted", 3)):  # but for mutants
        broken_off = Session()
        broken_off.failing("1 failed, 3 passed in 1s", command="npm test")
        broken_off.add(
            "verification.finished", turn=2, command="npm test", passed=True, counts={"passed": 5, field: number}
        )
        assert state_of(broken_off)["failing"] and "passed" not in str(state_of(broken_off)["verification"]), field
    session.add("verification.finished", turn=2, checks={"lint": "failed", "unit": "passed", "stderr": ""})
    assert "lint" in str(state_of(session)["failure"])


@pytest.mark.parametrize(
    ("payload", "outcome"),
    [
        ({"result": {"stdout": "ok", "stderr": "Segmentation fault"}}, "unknown"), ({"result": {"stdout": "success", "stderr": "curl: (7) Failed to connect"}}, "unknown"),
        ({"result": {"stdout": "ok", "stderr": "", "interrupted": False, "isImage": False}}, "unknown"),
        ({"checks": {"lint": "passed", "unit": "passed", "interrupted": False, "stderr": ""}}, "passed"), ({"checks": {"timeout": "failed", "lint": "passed"}}, "failed"),
        *(({"passed": True, "checks": checks}, "failed") for checks in ({"lint": {"passed": False}, "stderr": ""}, {"lint": {"status": "failed"}, "stdout": "x"}, {"lint": False, "interrupted": False})),
        ({"passed": True, "result": {"stdout": "x", "isImage": False, "interrupted": False}}, "passed"), ({"passed": True, "checks": {"lint": True, "stderr": ""}}, "passed"),
    ],
    ids=str,
)  # fmt: skip
def test_a_stream_or_a_flag_of_a_command_is_no_check(payload: dict[str, Any], outcome: str):
    session = Session()
    session.add("verification.finished", command="npm test", **payload)
    assert str(state_of(session)["verification"]).endswith(outcome)
    assert bool(state_of(session)["failing"]) == (outcome == "failed")


def test_an_interrupted_verification_is_told_once_and_alike():
    session = Session()
    session.add("verification.finished", command="pytest -q", interrupted=True, exitCode=0, text="collecting")
    text = projected(session).text()
    assert "verification: pytest -q: outcome unknown" in text and "Command failed" not in text
    assert "- Command: pytest -q (exit 0)\n- Summary: interrupted: collecting" in text


@pytest.mark.parametrize("command", [None, "", "# comment", ">x"])
def test_an_exit_code_of_a_timeout_needs_no_command(command: str | None):
    session = Session()
    for kind in ("command.finished", "verification.finished"):
        session.add(kind, command=command, exitCode=124, stdout="x", name="e2e")
    assert "timed out" not in projected(session).text()


def test_fields_that_say_nothing_of_a_failure_leave_a_pass():
    for says in (
        {"interrupted": False, "signal": None},
        {"running": "no", "isRunning": "false"},
        {"killed": 0, "aborted": ""},
        {"signal": "none", "cancelled": "null"},
        {"timedOut": "0", "failed": "0"},
        {"status": "completed", "error": None},
        {"success": True, "returncode": 0, "code": "x"},
    ):
        assert ended("pytest", "5 passed in 0.1s", exitCode=0, **says) == (None, "pytest: passed")
    for says in ({"status": "running"}, {"state": "running"}, {"backgroundTaskId": "b1"}, {"stillRunning": True}):
        assert ended("pytest", "...", exitCode=0, **says)[1] == "pytest: outcome unknown"
    assert (
        ended("pytest", "Command was manually backgrounded by user with ID: b1", exitCode=0)[1]
        == "pytest: outcome unknown"
    )


@pytest.mark.parametrize(
    ("words", "passed"),
    [
        ("2 of 5 tests pass", False), ("3/5 checks passed", False), ("5 of 5 tests pass", True), ("The tests did not succeed", False), ("it doesn't pass", False),
        ("Nothing passed", False), ("Tests would pass if fixed", None), ("should pass now", None), ("测试失败", False), ("测试未通过", False), ("没有失败", True),
        ("I think all pass", None), ("Did the tests pass?", None), ("tests passed before my change", None), ("all but one pass", None), ("50% pass", None),
        ("ok, still red", False), ("0 tests passed", None), ("have all tests passed", None), ("tests cannot pass", None), ("100% pass", True), ("all checks passed", True),
    ],
)  # fmt: skip
def test_a_sentence_of_a_verification_is_no_pass_where_it_denies_or_hopes_for_one(words: str, passed: bool | None):
    assert stated_outcome(words) is passed


@pytest.mark.parametrize(
    ("payload", "passes"),
    [
        ({"text": "3 failed"}, False),
        ({"text": "all pass"}, True),
        ({"text": "done"}, None),
        ({"text": "done", "failed": False}, True),
        ({"text": "done", "exitCode": 0}, True),
        ({"text": "skipped, not run", "exitCode": 0}, None),
        ({"text": "测试失败", "exitCode": 0}, False),
        ({"command": "pytest", "text": "3 failed", "failed": False}, False),
        ({"command": "pytest", "passed": True, "exitCode": 1}, False),
        ({"text": "all pass", "exitCode": 2}, False),
    ],
)
def test_a_verification_says_how_it_came_out(payload: dict[str, Any], passes: bool | None):
    session = Session()
    session.failing("a.py:3 boom", command="pytest -q")
    session.add("verification.finished", turn=2, **payload)
    state = state_of(session)
    assert (state["failure"] is None) == (passes is True)
    assert {True: "passed", False: "failed", None: "outcome unknown"}[passes] in state["verification"][-17:]


@pytest.mark.parametrize(
    "words",
    ["tests/b.py passes now", "lint passed", "Syntax check passed.", "unit tests pass", "the parser tests passed"],
)
def test_a_verification_without_a_command_that_names_a_part_passes_that_part_alone(words: str):
    session = Session()
    session.add("verification.finished", turn=1, text=words, failed=True)
    session.failing("a.py:3 boom", command="pytest -q")
    session.add("verification.finished", turn=2, text="types passed")
    session.add("verification.finished", turn=2, text=words)
    state = state_of(session)
    assert (state["failure"], state["verification"]) == ("a.py:3 boom", f"{words} (passed)")
    session.add("command.finished", turn=3, command="pytest", exitCode=0, stdout="3 passed")
    assert state_of(session)["failure"] is None
    session.add("verification.finished", turn=4, text=words, failed=True)
    session.add("verification.finished", turn=4, text="types passed")
    assert state_of(session)["failure"] == words
    session.add("verification.finished", turn=5, text="All 12 tests pass after my change.")
    assert state_of(session)["failure"] is None


@pytest.mark.parametrize(
    ("says", "told"),
    [
        ({"name": "lint"}, "lint"),
        ({"check": "eslint"}, "eslint"),
        ({"path": "tests/b.py"}, "tests/b.py"),
        ({"scope": "tests/b.py"}, "tests/b.py"),
        ({"target": "unit"}, "unit"),
        ({"suite": {"name": "unit"}}, "unit"),
        ({"files": ["tests/b.py", {"path": "tests/c.py"}]}, "tests/b.py tests/c.py"),
        ({"name": "Unit tests", "path": "web"}, "unit tests web"),
        ({"tool": "pytest", "path": "tests/b.py"}, "pytest"),
        ({"tool": "pytest", "name": "test_b"}, "pytest"),
        ({"command": "pytest", "name": "tests/b.py::test_b"}, "pytest"),
        ({"command": "pytest tests", "files": ["tests/b.py"]}, "pytest tests"),
    ],
)
def test_fields_of_a_verification_that_name_a_part_or_a_check_narrow_what_it_ends(says: dict[str, Any], told: str):
    session = Session()
    session.failing("a.py:3 boom", command="pytest")
    session.add("verification.finished", turn=2, passed=True, **says)
    state = state_of(session)
    assert (state["failure"], state["verification"]) == ("a.py:3 boom", f"{told}: passed")
    session = Session()
    session.add("verification.finished", turn=1, status="failed", **says)
    assert state_of(session)["verification"] == f"{told}: failed"
    session.add("verification.finished", turn=2, passed=True, name="another part")
    assert state_of(session)["failure"]
    session.add("verification.finished", turn=3, status="passed", **says)
    assert state_of(session)["failure"] is None, "what failed under the same name"


@pytest.mark.parametrize(
    "says",
    [
        {}, {"name": "tests"}, {"name": "pytest"}, {"check": "All checks"}, {"scope": "full"}, {"path": "."}, {"path": "/srv/app", "root": "/srv/app"},
        {"files": 12}, {"files": []}, {"tests": {"passed": 3}}, {"suite": "*"}, {"command": "pytest", "name": "unit tests"}, {"command": "pytest", "path": "tests"},
    ],
)  # fmt: skip
def test_fields_of_a_verification_that_name_all_that_there_is_narrow_nothing(says: dict[str, Any]):
    session = Session()
    session.failing("a.py:3 boom", command="pytest")
    session.add("verification.finished", turn=2, passed=True, **says)
    assert state_of(session)["failure"] is None


def verified(*failing: str, **says: Any) -> tuple[list[str], str]:
    """Which checks still fail behind a verification, where some commands have failed before, by its rows; and how it came out."""
    session = Session(None)
    for command in failing:
        session.failing(f"{command} is broken", command=command)
    session.add("verification.finished", turn=2, **says)
    stand = list[str]()
    for row in read_events(session.events).events.to_pylist():
        stand = [each for each in stand if not {*each.split("\n")} & {*(row["check_clears"] or ())}]
        stand += row["check_fails"] or ()
    return sorted({each.split("\n")[0].rstrip(":") for each in stand}), row["check_outcome"]


PARTS_THAT_FAIL = (
    {"checks": [{"name": "pytest", "status": "failed"}]}, {"checks": [{"name": "pytest", "status": "failed"}, {"name": "ruff check", "status": "passed"}]},
    {"checks": {"pytest": "failed", "ruff check": "passed"}}, {"results": {"pytest": False}}, {"checks": {"pytest": {"passed": 3, "failed": 1}}}, {"jobs": [{"command": "pytest", "exitCode": 1}]},
    {"suites": [{"name": "ci", "status": "passed", "checks": [{"name": "pytest", "success": False}]}]}, {"steps": [{"name": "pytest", "status": "passed", "text": "1 failed"}]},
)  # fmt: skip


@pytest.mark.parametrize("says", PARTS_THAT_FAIL, ids=str)
def test_a_part_that_failed_fails_whatever_a_verification_says_of_itself(says: dict[str, Any]):
    assert verified("mypy", status="passed", **says) == (["mypy", "pytest"], "failed"), "it ends nothing else"
    assert verified("pytest", status="passed", **says) == (["pytest"], "failed")


def test_a_verification_that_lists_parts_ends_what_they_repeat_and_nothing_else():
    says: dict[str, Any] = {
        "checks": [{"name": "pytest", "status": "passed"}, {"name": "ruff check", "status": "passed"}]
    }
    for status in ({"status": "passed"}, {}):
        assert verified("pytest", "ruff check .", "mypy", **says, **status) == (["mypy"], "passed")
    says["checks"][1]["status"] = "skipped"
    assert verified("pytest", "ruff check .", "mypy", status="passed", **says) == (["mypy", "ruff check"], "unknown")
    says["checks"][1]["status"] = "failed"
    assert verified("pytest", "ruff check .", status="passed", **says) == (["ruff check"], "failed")
    session = Session()
    session.failing("a.py:3 boom", command="pytest")
    session.add("verification.finished", turn=2, status="passed", **says)
    state = state_of(session)
    assert (state["failing"], state["verification"]) == (["ruff check"], "pytest ruff check: failed")


def test_a_list_of_names_is_one_check_for_each():
    assert verified("pytest", "ruff check .", "mypy", checks=["pytest", "ruff check"], passed=True) == (
        ["mypy"],
        "passed",
    )
    assert verified(checks=["pytest", "ruff"], status="failed") == (["pytest", "ruff check"], "failed")
    assert verified("pytest", "ruff check .", checks=["pytest", "ruff"], passed=True) == ([], "passed")
    session = Session()
    assert verified("pytest", checks=["pytest", "ruff"], tool="verify", passed=True) == ([], "passed")
    session.add("verification.finished", turn=1, command="make check", checks=["pytest", "ruff"], passed=False)
    session.add("command.finished", turn=2, command="make check", exitCode=0, stdout="")
    assert state_of(session)["failing"] == []
    assert verified(
        "mypy", passed=True, checks=[f"check {n}" for n in range(1_500)], files=[f"{n}.py" for n in range(1_500)]
    )[0] == ["mypy"]
    assert verified("pytest", checks=["pytest", "ruff check"]) == (["pytest"], "unknown")
    assert verified("pytest", checks=["pytest", "ruff check"], path="tests/a.py", passed=True)[0] == ["pytest"]


def test_a_part_that_failed_leaves_the_whole_unpassed():
    tests = {
        "command": "pytest",
        "tests": [{"name": "test_a", "status": "passed"}, {"name": "test_b", "status": "failed"}],
    }
    assert verified("pytest", passed=True, **tests) == (["pytest", "pytest:test_b"], "failed")
    contrary = {"status": "failed", "checks": [{"name": "pytest", "status": "passed"}]}
    assert "pytest" in verified("pytest", **contrary)[0], "which of both is wrong, no one says"
    files = [{"path": "tests/a.py", "status": "modified"}]
    assert verified("pytest tests/a.py", command="pytest", passed=True, files=files) == ([], "passed")


FEWER = (
    {"summary": "2 of 3 tests passed"}, {"summary": "Passed: 2/3"}, {"text": "2/3 checks succeeded"}, {"text": "Done.", "summary": "2 of 3 tests passed"},
    {"tests": {"passed": 2, "total": 3}}, {"total": 3, "passed": 2}, {"tests": {"status": "skipped"}},
)  # fmt: skip
FAILING = (
    {"summary": "1 failed"}, {"summary": "12 tests ran, 1 failed"}, {"text": "types failed"}, {"text": "lint passed\ntypes: failed"}, {"text": "Done.", "summary": "1 failed"},
    {"tests": {"passed": 2, "failed": 1}}, {"result": {"exitCode": 1}}, {"summary": "lint passed and types failed"}, {"text": "2 \u4e2a\u5931\u8d25"},
)  # fmt: skip


@pytest.mark.parametrize("says", (*FEWER, *FAILING), ids=str)
def test_words_and_counts_that_deny_a_pass_count_before_a_field_that_says_it(says: dict[str, Any]):
    stand, outcome = verified("pytest", **{"status": "passed", **says})
    assert "pytest" in stand and outcome == ("failed" if says in FAILING else "unknown")


@pytest.mark.parametrize("words", ["Fixed the error; all tests pass.", "3 passed, 0 failed", "12 tests, no failures", "I fixed the test that failed.", "Error handling is covered.", "3 of 3 tests passed"])  # fmt: skip
def test_words_that_deny_nothing_leave_a_pass(words: str):
    assert verified(status="passed", summary=words) == ([], "passed")


@pytest.mark.parametrize("status", [{}, {"status": "passed"}])
def test_parts_named_in_two_lines_or_sentences_pass_alone(status: dict[str, str]):
    for words in ("lint passed\ntypes passed", "lint passed. Types passed.", "lint passed\nDone."):
        assert verified("pytest", text=words, **status) == (["pytest"], "passed"), words
    assert verified("pytest", text="lint passed\nAll 12 tests pass.", **status) == ([], "passed")
    assert verified("pytest", text="Ran 3 tests in 0.1s\nOK", **status) == ([], "passed")


def test_sentences_of_which_none_says_an_outcome_name_a_part_together():
    for words in (
        "Checked src/a.py. All good.",
        "Ran the parser tests. Looks fine.",
        "Lint is clean. Nothing to report.",
    ):
        assert verified("pytest", text=words, passed=True) == (["pytest"], "passed"), words
    for words in (
        "All good.",
        "Checked everything. All good.",
        "5 passed in 0.1s",
        "Tests: 5 passed, 5 total",
        "None failed.",
        "12 passing, none failing",
    ):
        assert verified("pytest", text=words, passed=True) == ([], "passed"), words


def test_a_sentence_without_a_part_speaks_of_what_the_one_before_it_names():
    for words in ("I ran the parser tests. All passed.", "Ran tests/b.py. All 5 tests passed.", "Ran lint. Passed."):
        assert verified("pytest", text=words) == (["pytest"], "passed"), words
    assert verified("pytest", text="All tests passed. The parser reads it now.") == ([], "passed")


@pytest.mark.parametrize("words", [
    "The build is clean. All tests pass.", "Re-ran the tests. All pass.", "I ran the whole test suite and everything passes.", "42 tests passed, 3 skipped.", "The fix works. All tests pass.",
])  # fmt: skip
def test_words_that_name_no_part_narrow_nothing(words: str):
    stand = ["pytest"] if "build" in words else []
    assert verified("pytest", text=words, passed=True) == (stand, "passed")


QUIET = (
    ("npx tsc --noEmit 2>&1 | head -20", "", True), ("npx tsc --noEmit | tail -5", "(no output)", True), ("npx tsc --noEmit 2>&1 | head -20", "a.ts(1,2): error", False),
    ("npx tsc --noEmit 2>/dev/null | head", "", False), ("npx tsc --noEmit 2>&1 | grep TS2", "", False), ("npx tsc --noEmit >& a.log | head", "", False),
    ("npx tsc --noEmit | head; echo done", "done", False), ("npx tsc --noEmit | tail -n +50", "", False), ("npx tsc --noEmit | head -0", "", False),
    ("npx tsc --noEmit 2>&1 | tail -n 5", "", True), ("npx tsc --noEmit 2>&1 | cat", "", True), ("npx tsc --noEmit | head -c 2000", "", True),
)  # fmt: skip


@pytest.mark.parametrize(("command", "printed", "passes"), QUIET)
def test_a_check_that_prints_only_what_is_wrong_passes_where_nothing_is_printed(
    command: str, printed: str, passes: bool
):
    session = Session()
    session.failing("a.ts(1,2): error", command="npx tsc --noEmit")
    session.add("command.finished", turn=1, command=command, exitCode=0, stdout=printed)
    assert (state_of(session)["failing"] == []) == passes


def test_a_remark_in_parentheses_is_about_the_sentence_before_it():
    for words in (
        "Passed. (parser only)",
        "Tests passed. (all but the parser)",
        "Tests passed. (The parser ones.)",
        "Passed. (tests/b.py)",
    ):
        assert verified("pytest", text=words)[0] == ["pytest"], words
    for words in (
        "Passed. (5 s)",
        "All tests pass. (took 3 s)",
        "All tests pass. (see CI)",
        "Tests passed. (12 files)",
    ):
        assert verified("pytest", text=words, passed=True) == ([], "passed"), words


@pytest.mark.parametrize("words", ["No more login failures.", "Resolved the login failure.", "All tests pass, including the previous failures"])  # fmt: skip
def test_words_of_failures_that_are_gone_are_no_new_failure(words: str):
    assert verified("pytest", text=words, passed=True)[1] == "passed"


@pytest.mark.parametrize("words", ["Backend passed. Frontend passed.", "The smoke test passed. Full suite is running.", "Build passed. No tests."])  # fmt: skip
def test_parts_that_pass_do_not_end_a_failure_without_a_name(words: str):
    session = Session()
    session.add("verification.finished", turn=1, text="2 tests failed")
    session.add("verification.finished", turn=1, text=words)
    assert state_of(session)["failing"] == ["verification"]


def test_a_verification_of_a_file_by_a_known_program_ends_the_failure_of_that_file():
    for root, path in (("", "tests/b.py"), ("/app", "/app/tests/b.py")):
        session = Session()
        session.failing("b.py:3 boom", command="pytest tests/b.py", root=root, cwd=root)
        session.add("verification.finished", turn=2, passed=True, tool="pytest", path=path, root=root, cwd=root)
        assert state_of(session)["failure"] is None


@pytest.mark.parametrize(
    ("failing", "passing", "ends"),
    [
        ("pytest", "pytest", True),
        ("pytest -q", "python -m pytest -x", True),
        ("pytest", "pytest tests/other.py", False),
        ("pytest tests/a.py", "pytest tests/b.py", False),
        ("pytest tests/a.py", "pytest -v tests/a.py", True),
        ("pytest tests/a.py", "pytest", True),
        ("pytest", "ruff check .", False),
        ("npm test", "pnpm run test", True),
        ("npm test", "npx vitest run", False),
        ("ruff check . && pytest", "pytest", False),
        ("ruff check . && pytest", "ruff check . && pytest", True),
        ("pytest tests/a.py", "make check", False),
        ("hatch run test", "hatch run test", True),
        ("go test ./internal/httpx", "cd internal/httpx && go test .", True),
        ("cd internal/httpx && go test", "go test -race ./internal/httpx", True),
        ("go test ./internal/httpx", "cd internal && go test ./httpx", True),
        ("go test ./internal/httpx", "cd internal && go test .", False),
        ("go test ./internal/httpx", "go test ./internal", False),
        *(
            (f"cd internal/httpx && go test{each}", wider, True)
            for each in ("", " .")
            for wider in ("go test ./...", "go test ./internal/...")
        ),
        ("cd internal/httpx && go test -run TestA .", "cd internal && go test ./...", True),
        ("cd internal/httpx && go test", "go test ./internal", False),
        ("cd internal/httpx && go test", "cd internal && go test", False),
        ("cd backend && go test ./internal/httpx", "cd backend/internal/httpx && go test", True),
        ("cd backend && go test ./internal/httpx", "cd backend/internal && go test ./...", True),
        ("cd backend && go test ./internal/httpx", "go test ./...", False),
        ("cd backend/internal/httpx && go test", "cd backend && go test ./internal/httpx ./internal/b", True),
        ("go test . ./a", "go test ./a", False),
        *((each, each, True) for each in ("hatch run dev:test", "hatch -e x run test", "hatch run +py=3.12 test")),
        ("hatch run dev:test", "hatch run test", False),
        ("hatch -e x run test", "hatch run test", False),
        ("hatch run +py=3.12 test", "hatch run +py=3.11 test", False),
        ("go vet ./a", "cd a && go vet", True),
        ("cd a && go vet", "go vet ./a", True),
        ("cd a && go vet", "go test ./a", False),
        ("go vet ./a", "go vet", False),
        ("go test ./internal/httpx", "go test ./internal/...", True),
        ("go test ./internal/httpx", "cd internal/httpx && go test -run TestA .", False),
        ("cd tools && go test ./...", "go test ./...", False),  # a module of its own has its own tests
    ],
)
def test_a_check_ends_the_failures_that_it_covers(failing: str, passing: str, ends: bool):
    session = Session()
    session.failing("a.py:3 boom", command=failing)
    session.add("command.finished", turn=2, command=passing, exitCode=0, stdout="")
    assert (state_of(session)["failure"] is None) == ends


RUFF, MYPY, OK = "All checks passed!\n", "Success: no issues found in 3 source files\n", "3 passed in 0.10s\n"


@pytest.mark.parametrize(
    ("command", "printed", "failing"),
    [
        ("ruff check . && pytest -q", f"{RUFF}ERROR: usage: pytest [options]", ["pytest"]),
        ("ruff check . && pytest -q", f"{RUFF}1 failed, 2 passed in 0.1s", ["pytest"]),
        ("ruff check . && pytest -q", "a.py:1:1: F401\nFound 1 error.", ["ruff check"]),
        ("ruff check . && pytest -q", "boom", ["pytest", "ruff check"]),
        ("ruff check .; pytest -q", f"{RUFF}ERROR: usage", ["pytest"]),
        ("mypy . && pytest", f"{MYPY}ImportError: x", ["pytest"]),
        ("pytest -q && ruff check .", f"{OK}error: Failed to parse pyproject.toml", ["ruff check"]),
        ("ruff check . && mypy . && pytest", f"{RUFF}{MYPY}boom", ["pytest"]),
        ("ruff check . && mypy . && pytest", f"{RUFF}boom", ["mypy", "pytest"]),
        ("ruff check . && pytest", f"{RUFF}{OK}", ["pytest", "ruff check"]),  # which of them failed, nothing says
    ],
)
def test_a_check_whose_output_says_that_it_passed_is_not_named_as_failing(
    command: str, printed: str, failing: list[str]
):
    session = Session()
    session.add("command.finished", turn=1, command=command, failed=True, stdout=printed)
    assert state_of(session)["failing"] == failing


def test_of_the_failures_that_stand_the_last_one_is_told():
    session = Session()
    session.failing("all.py:1 boom", command="pytest")
    session.failing("a.py:3 boom", command="pytest a.py", turn=2)
    assert state_of(session)["failure"] == "a.py:3 boom"
    session.add("command.finished", turn=3, command="pytest a.py", exitCode=0, stdout="")
    assert state_of(session)["failure"] == "all.py:1 boom"
    session.add("command.finished", turn=4, command="pytest", exitCode=0, stdout="")
    assert state_of(session)["failure"] is None
