"""Which commands are checks, how they came out, and which failures they end: by what ran and what it printed, never by a word."""

from __future__ import annotations

from typing import Any

import pytest
from context_session import Session, projected
from scoped_retrieval.pipeline.context.checks import checks_of
from scoped_retrieval.pipeline.context.outcomes import printed_outcome

NO_CHECKS = (
    "ls tests", "rm -rf build", "mkdir -p build", "grep -rn boom tests/", "sed -n 1,20p tests/test_a.py", "cd tests && ls",
    "python -c 'print(1)' # test", "vim tests/x.py", "find . -name '*.test.ts'", "npm install jest", "npm ci", "pip install pytest",
    "docker ps | grep test", "head -5 tests/a.py", "wc -l tests/a.py", "touch build/x", "pytest --collect-only", "pytest --version",
    "uv run python scripts/build_docs.py", "sleep 5; tail test.log", "git commit -m 'fix: pytest && make test'", "echo pytest", "make -n test",
    "ruff format .", "python gen.py test", "which pytest",
)  # fmt: skip
CHECKS = {
    "pytest -q": "test:", "uv run pytest -n 4": "test:", "bash -lc 'pytest -q'": "test:", "CI=1 timeout 60 python -m pytest tests": "test:",
    "cd web && pytest": "test:cd web", "pytest -q tests/a.py": "test:tests/a.py", "pytest -k parser": "test:-k parser",
    "pnpm test --filter parser": "test:--filter parser", "npm run -s test": "test:", "yarn workspace web test": "test:web",
    "npm run test:unit": "test:test:unit", "make -j4 check": "all:", "make": "build:", "go test ./...": "test:", "go test ./pkg": "test:./pkg",
    "cargo clippy": "lint:", "npx tsc --noEmit": "types:", "ruff check nodes": "lint:nodes", "ruff format --check .": "lint:",
    "./gradlew test": "test:", "bash run_tests.sh": "test:", "python tests/test_a.py": "test:tests/test_a.py", "tox": "all:",
}  # fmt: skip


@pytest.mark.parametrize("command", NO_CHECKS)
def test_a_command_that_names_tests_and_runs_none_ends_no_failure(command: str):
    session = Session()
    session.failing("a.py:3 boom", command="pytest -q")
    session.add("command.finished", turn=2, command=command, exitCode=0, stdout="3 passed")
    state = projected(session).state
    assert state["failure"] == "a.py:3 boom"
    assert state["verification"] in ("pytest -q: failed", None)


@pytest.mark.parametrize(("command", "scope"), CHECKS.items())
def test_a_check_is_the_program_that_a_shell_would_start(command: str, scope: str):
    assert [check.scope for check in checks_of(command)] == [scope]


def ended(command: str, stdout: str, **payload: Any) -> tuple[str | None, str | None]:
    session = Session()
    session.failing("a.py:3 boom", command="pytest -q")
    session.add("command.finished", turn=2, command=command, stdout=stdout, **payload)
    state = projected(session).state
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


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("===== 1 failed, 2 passed in 0.1s =====", False),
        ("===== 2 passed, 1 xfailed in 0.1s =====", True),
        ("Tests:       1 failed, 5 passed, 6 total", False),
        (" Tests  5 passed (5)", True),
        ("--- FAIL: TestA (0.00s)\nFAIL\n", False),
        ("ok  \texample.com/a\t0.1s", True),
        ("test result: FAILED. 1 passed; 1 failed;", False),
        ("test result: ok. 3 passed; 0 failed;", True),
        ("Ran 3 tests in 0.1s\n\nFAILED (failures=1)", False),
        ("Ran 3 tests in 0.1s\n\nOK", True),
        ("Found 3 errors.", False),
        ("All checks passed!", True),
        ("Found 1 error in 1 file (checked 3 source files)", False),
        ("Success: no issues found in 3 source files", True),
        ("0 errors, 0 warnings, 0 notes", True),
        ("✖ 3 problems (3 errors, 0 warnings)", False),
        ("src/a.ts(3,1): error TS2322: no", False),
        ("BUILD FAILURE", False),
        ("BUILD SUCCESSFUL in 3s", True),
        ("make: *** [test] Error 1", False),
        ("100% tests passed, 0 tests failed out of 3", True),
        ("collecting ...", None),
    ],
)
def test_the_summaries_of_common_runners_are_read(text: str, outcome: bool | None):
    assert printed_outcome(text) is outcome


@pytest.mark.parametrize(
    "text", ["\n" * 100_000, " " * 100_000, "1" * 100_000, "Tests " * 20_000, "FAILED " + "x" * 100_000]
)
def test_an_output_takes_time_in_proportion_to_its_length(text: str):
    """Each took seconds, or would, where a pattern began anew at every line."""
    assert printed_outcome(text) is None


@pytest.mark.parametrize(
    ("payload", "passes"),
    [
        ({"text": "3 failed"}, False),
        ({"text": "all pass"}, True),
        ({"text": "done"}, None),
        ({"text": "done", "failed": False}, True),
        ({"text": "done", "exitCode": 0}, True),
        ({"command": "pytest", "text": "3 failed", "failed": False}, False),
    ],
)
def test_a_verification_says_how_it_came_out(payload: dict[str, Any], passes: bool | None):
    session = Session()
    session.failing("a.py:3 boom", command="pytest -q")
    session.add("verification.finished", turn=2, **payload)
    state = projected(session).state
    assert (state["failure"] is None) == (passes is True)
    assert state["verification"].endswith({True: "passed", False: "failed", None: "outcome unknown"}[passes])


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
        ("npm test", "npx vitest run", True),
        ("ruff check . && pytest", "pytest", True),
        ("pytest tests/a.py", "make check", True),
    ],
)
def test_a_check_ends_the_failures_that_it_covers(failing: str, passing: str, ends: bool):
    session = Session()
    session.failing("a.py:3 boom", command=failing)
    session.add("command.finished", turn=2, command=passing, exitCode=0, stdout="")
    assert (projected(session).state["failure"] is None) == ends


def test_of_the_failures_that_stand_the_last_one_is_told():
    session = Session()
    session.failing("all.py:1 boom", command="pytest")
    session.failing("a.py:3 boom", command="pytest a.py", turn=2)
    assert projected(session).state["failure"] == "a.py:3 boom"
    session.add("command.finished", turn=3, command="pytest a.py", exitCode=0, stdout="")
    assert projected(session).state["failure"] == "all.py:1 boom"
    session.add("command.finished", turn=4, command="pytest", exitCode=0, stdout="")
    assert projected(session).state["failure"] is None
