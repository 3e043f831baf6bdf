"""What an exit code that a line prints shows of its checks, and what an exit code of 0 that another program hides does not."""

from __future__ import annotations

import pytest
from context_session import Session, state_of
from scoped_retrieval.pipeline.context.printed_codes import printed_codes

OK = "...\n3 passed in 0.02s\n"
VITEST = " Test Files  3 passed (3)\n      Tests  10 passed (10)\n"
CARGO = "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n"


def came_out(failing: str, command: str, stdout: str, code: int | None = 0) -> tuple[bool, str]:
    """Whether a failure still stands after a command, and the outcome of that one."""
    session = Session()
    session.failing("a.py:3 boom", command=failing)
    session.add("command.finished", turn=2, command=command, stdout=stdout, exitCode=code)
    state = state_of(session)
    return bool(state["failing"]), str(state["verification"]).removeprefix(f"{command}: ")


PASSED, FAILED, UNKNOWN = (False, "passed"), (True, "failed"), (True, "outcome unknown")
OF_PYTEST = (
    ("pytest -q; echo EXIT=$?", f"{OK}EXIT=0", PASSED), ("pytest -q; echo EXIT=$?", f"{OK}EXIT=2", FAILED), ("pytest -q; echo EXIT=$?", f"{OK[:-1]}EXIT=2", FAILED),
    ("pytest -q; echo EXIT=$?", OK, UNKNOWN), ("pytest -q\necho $?", f"{OK}1", FAILED), ('pytest -q; printf "exit %d\\n" $?', f"{OK}exit 1", FAILED),
    ('pytest -q; echo -e "\\n--- exit: $?"', f"{OK}\n--- exit: 1", FAILED), ('pytest -q; echo -e "\\n--- exit: $?"', f"{OK}\n--- exit: 0", PASSED),
    ("pytest -q | tail -3; echo ${PIPESTATUS[0]}", f"{OK}1", FAILED), ("pytest -q | tail -3; echo ${PIPESTATUS[0]}", f"{OK}0", PASSED),
    ('pytest -q | tail -3; echo "${PIPESTATUS[@]}"', f"{OK}1 0", UNKNOWN), ('pytest -q | tail -3; echo "${PIPESTATUS[@]}"', f"{OK}0 0", PASSED),
    ("pytest -q | tail -3; echo $?", f"{OK}1", UNKNOWN), ("pytest -q | tail -3; echo $?", f"{OK}0", PASSED), ("set -o pipefail; pytest -q | tail -3; echo $?", f"{OK}1", FAILED),
    ("yes | pytest -q; echo ${PIPESTATUS[0]}", f"{OK}141", UNKNOWN), ("pip install -e . && pytest -q; echo rc $?", f"{OK}rc 1", UNKNOWN),
    ("pytest -q; echo rc=$?; git status", f"{OK}rc=1\nOn branch main", UNKNOWN), ("pytest -q; echo rc=$?; git status", f"{OK}rc=0\nOn branch main", PASSED),
    ("ruff check .; echo a=$?; pytest; echo b=$?", f"All checks passed!\na=0\n{OK}b=1", UNKNOWN),
    ("ruff check .; echo $?; pytest; echo $?", f"All checks passed!\n1\n{OK}0", UNKNOWN), ("pytest -q && echo code $?", "", PASSED), ("pytest -q; echo 'EXIT=$?'", f"{OK}EXIT=$?", PASSED),
    ("pytest -q; echo $? > code", OK, UNKNOWN), ("pytest -q || echo exit $?", f"{OK}exit 1", UNKNOWN), ("pytest -q; echo exit $?; echo done", f"{OK}exit 2\ndone", UNKNOWN),
)  # fmt: skip


@pytest.mark.parametrize(("command", "stdout", "outcome"), OF_PYTEST)
def test_a_printed_exit_code_other_than_0_is_no_pass(command: str, stdout: str, outcome: tuple[bool, str]):
    found, told = came_out("pytest -q", command, stdout)
    assert (found, told.rpartition(": ")[2]) == outcome


@pytest.mark.parametrize(
    ("failing", "command", "stdout", "outcome"),
    [
        ("cargo test", "cargo test 2>&1 | tail -3; echo ${PIPESTATUS[0]}", f"{CARGO}101", FAILED),
        ("npx vitest run", 'npx vitest run; echo "exit: $?"', f"{VITEST}exit: 1", FAILED),
        ("npx vitest run", 'npx vitest run; echo "exit: $?"', f"{VITEST}exit: 0", PASSED),
        # A program that ran out of time prints nothing, and the pipe hides its exit code.
        ("npx tsc --noEmit", "timeout 60 npx tsc --noEmit 2>&1 | head -20", "", UNKNOWN),
        ("npx eslint .", "/usr/bin/timeout 60 npx eslint . 2>&1 | tail -20", "", UNKNOWN),
        ("npx tsc --noEmit", "timeout 60 npx tsc --noEmit", "", PASSED),
        ("npx tsc --noEmit", "npx tsc --noEmit 2>&1 | head -20", "", PASSED),
        # An exit code of 0 of what skips its tests, or may run nothing.
        ("mvn test", "mvn test -DskipTests", "[INFO] Tests are skipped.\n[INFO] BUILD SUCCESS", UNKNOWN),
        ("mvn test -DskipTests", "mvn test -DskipTests", "", UNKNOWN),
        ("mvn package -DskipTests", "mvn package -DskipTests", "[INFO] BUILD SUCCESS", PASSED),
        ("mvn test", "mvn test -DskipTests=false", "", UNKNOWN),
        ("npm test --if-present", "npm test --if-present", "", UNKNOWN),
        ("npm run build --if-present", "npm run build --if-present", "", UNKNOWN),
        ("npm test --if-present", "npm test --if-present", VITEST, PASSED),
        ("npm test", "npm test", "", PASSED),
        # Test tasks without tests.
        ("./gradlew test", "./gradlew test", "> Task :test NO-SOURCE\n\nBUILD SUCCESSFUL in 1s", UNKNOWN),
        ("./gradlew test", "./gradlew test", ":app:test NO-SOURCE\n:lib:test NO-SOURCE\nBUILD SUCCESSFUL in 1s", UNKNOWN),
        ("./gradlew test", "./gradlew test", "> Task :processTestResources NO-SOURCE\n> Task :test\nBUILD SUCCESSFUL in 1s", PASSED),
        ("./gradlew test", "./gradlew test", "> Task :a:test NO-SOURCE\n> Task :b:test UP-TO-DATE\nBUILD SUCCESSFUL in 1s", PASSED),
        ("./gradlew build", "./gradlew build", "> Task :test NO-SOURCE\n\nBUILD SUCCESSFUL in 1s", PASSED),
    ],
)  # fmt: skip
def test_a_code_of_0_that_shows_nothing_is_no_pass(failing: str, command: str, stdout: str, outcome: tuple[bool, str]):
    found, told = came_out(failing, command, stdout)
    assert (found, told.rpartition(": ")[2]) == outcome


def test_a_printed_code_takes_time_in_proportion_to_the_output():
    line = "pytest; echo EXIT $?; echo $?"
    assert printed_codes(line, "EXIT " * 20_000 + "\n" + "1 " * 50_000 + "\n" + "EXIT 1\n" * 20_000) == "not 0"
    several = 'pytest | tail; echo "rc ${PIPESTATUS[0]} ${PIPESTATUS[1]} ${PIPESTATUS[2]}"'
    assert printed_codes(several, "rc " + "1 " * 9_000 + "x\n" + "rc " + "1 " * 100 + "x") == "unseen"


def test_the_code_of_another_program_takes_no_pass_from_a_check_that_decides():
    session = Session()
    session.failing("a.py:3 boom", command="pytest -q")
    session.add(
        "command.finished", turn=2, command="ls no; echo $?; pytest -q", exitCode=0, stdout="2\n3 passed in 0.1s"
    )
    assert state_of(session)["failing"] == []


def test_zsh_prints_the_codes_of_all_programs_of_a_pipe():
    assert printed_codes("pytest | tail -3; echo $pipestatus", "3 passed\n0 0") is None
    assert printed_codes("pytest | tail -3; echo $pipestatus", "1 failed\n1 0") == "not 0"
    two = "pytest | tail -3; echo $pipestatus ${PIPESTATUS[@]}"
    assert printed_codes(two, "3 passed\n0 0 0 0") == "unseen", "where one list ends is unknown"
