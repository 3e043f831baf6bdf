"""What ends a failure: a command that is known to repeat the check, or to take it in, in the same place, with an outcome that is known.

Everything else is unknown. Each table is a list of commands that all follow a failure, and of each whether it ends that failure.
"""

from __future__ import annotations

from typing import Any

import pytest
from context_session import Session, projected, state_of
from scoped_retrieval.pipeline.context.events import read_events
from scoped_retrieval.pipeline.context.outcomes import checked
from scoped_retrieval.pipeline.sources.jsonl import Record

OK = "3 passed in 0.10s"
"""How pytest sums up; tables below give other runners their own words."""


def came_out(command: str, stdout: str = "", code: int | None = 0, folder: str = "", **payload: Any) -> dict[str, Any]:
    record = Record("event", payload)
    return checked("command.finished", record, command, stdout, folder=folder, root="/repo", code=code, ended=None)


def ends(failing: str, passing: str, stdout: str = "", code: int | None = 0, **places: str) -> bool:
    """Whether a command ends the failure of another one."""
    failed = came_out(failing, "a.py:3 boom", 1, places.get("failed_in", ""))["check_fails"]
    assert failed, failing
    passed = came_out(passing, stdout, code, places.get("passed_in", ""))["check_clears"]
    return all(set(names.split("\n")) & set(passed or ()) for names in failed)


ENDS_NO_FAILURE_OF_PYTEST = (
    # It may not have run, or its end is another's.
    "pytest -q &", "nohup pytest &", "! pytest", "pytest || true", "pytest -q || echo failed", "pytest & wait", "pytest; cat old.log", "if pytest; then echo; fi",
    "exit 0; pytest", "alias pytest=true; pytest", "pytest() { :; }; pytest", "false && pytest || echo ok", "test -f x || pytest", "set -n; pytest", "eval pytest",
    "PATH=/fake:$PATH; pytest", "trap 'exit 0' EXIT; pytest", "echo pytest", "command -v pytest", "true 'pytest", "echo \"$(pytest)\"", "pytest `cat args`", "pytest $ARGS",
    "export PYTEST_ADDOPTS=-kx; pytest", "source env.sh; pytest", "for t in a; do pytest; done", "pytest | grep passed", "pytest | head -3", "cat old.log; pytest | tail -3",
    "pytest; echo '3 passed in 0.10s'", "pytest | tee old.log; cat other.log", "(pytest) && (true)", "pytest > new.log; cat old.log", "pytest a.py | tail; cat old.log",
    # It runs no test, or not all of them.
    "pytest --cache-show", "pytest --setup-only", "pytest --collect-only", "pytest -ktest_b", "pytest -k test_b", "pytest -m 'not slow'", "pytest --lf", "pytest --sw",
    'PYTEST_ADDOPTS="-k x" pytest', "pytest --shard 1/2", "pytest tests/b.py", "pytest tests/b.py::test_x", "pytest --deselect a.py::test_a", "pytest --ignore tests",
    "pytest -p my_plugin", "pytest -c other.ini", "pytest --rootdir other", "pytest --runslow", "pytest @args.txt", "pytest --pyargs pkg", "pytest tests/*.py", "pytest -o addopts=",
    "PYTHONPATH=/other pytest", "uv run --with other pytest", "ls tests", "grep pytest x", "python -m pytest_watch", "pytest -qk test_b", "pytest --co -q", "pytest -x -k a",
    # It changes what it has tested.
    "pytest && sed -i s/1/2/ src/a.py", "pytest; git checkout other", "pytest && ruff format .", "pytest && echo 1 > src/a.py", "pytest && ./generate.sh", "pytest && patch -p1 < x",
    "pytest && git stash pop", "pytest && black . && pytest_other", "pytest && python fix.py", "pytest && mv a.py b.py",
    # It tests something else, or somewhere else.
    "npm test", "go test ./...", "make test", "tox", "ruff check .", "cd packages/b && pytest", "pushd packages/b && pytest", "cd packages/b; pytest", "cd .. && pytest",
    "cd ~/other && pytest", "cd $HERE && pytest", "cd - && pytest", "bash -c 'cd packages/b && pytest'", "(cd packages/b && pytest)", "cd a | pytest", "make -C packages/b test",
    "npx playwright install", "cypress open", "make test-env", "uv run --directory packages/b pytest",
    # It is another program, or changes what it has tested in another way.
    "./pytest", "/tmp/fake/pytest", "python pytest", "pytest && tee src/a.py", "pytest | tee src/a.py", "pytest > src/a.py", "pytest && make all", "pytest && sort -o a.py a.py",
    "pytest && npm run format", "pytest && curl x | sh", "pytest && find . -delete", "pytest && cat > src/a.py <<'EOF'\nx\nEOF", "pytest; exit 0", "coproc pytest", "{ pytest; }",
    # `-e` ends a shell only where it is on, and only behind the last program of a list.
    "set -e; pytest > a.log && echo ok; echo done", "set -e; set +e; pytest > a.log; echo done", "pytest > a.log; set -e; echo done", "set -e; pytest | grep x && echo ok; ls",
    "set -o pipefail; set +o pipefail; pytest | cat old.log", "set +o pipefail; pytest | grep x", "git stash && pytest", "git stash -u; pytest", "pytest --collectonly",
    "pytest --splits 3 --group 1", "pytest --testmon", "pytest --noconftest", "python -c 'x' pytest", "xargs pytest", "docker run x pytest", "cd nowhere; pytest", "env -i pytest",
)  # fmt: skip


def test_what_is_not_known_to_run_all_tests_here_ends_no_failure():
    said = f"{OK}\n"
    assert not [each for each in ENDS_NO_FAILURE_OF_PYTEST if ends("pytest -q", each, said)]


OTHERS = {
    "mvn test": ("mvn -DskipTests package", "mvn -DskipTests test", "mvn -Dtest=Foo test", "mvn -pl a test", "mvn -Dmaven.test.skip=true verify", "mvn compile"),
    "./gradlew test": ("gradlew build -x test", "./gradlew test --tests Foo", "./gradlew :app:test", "./gradlew assemble", "./gradlew -m test", "./gradlew test -PonlyFast"),
    "tox": ("tox -l", "tox -elint", "tox -e py311", "tox list", "tox --notest", "tox -- -k x", "TOXENV=lint tox"),
    "npx jest": ("jest --clearCache", "jest --testPathPattern foo", "jest --shard 1/2", "jest --shard=1/2", "jest src/a.test.ts", "jest -t name", "jest --onlyChanged",
                 "jest --findRelatedTests a.ts", "jest --listTests", "jest --selectProjects a", "jest --config other.js"),
    "ctest": ("ctest -N", "ctest -R foo", "ctest --show-only", "ctest -I 1,2", "ctest --test-dir other", "ctest -C Debug"),
    "go test ./...": ("go test -list . ./...", "go test -c", "go test", "go test ./pkg", "go test -run X ./...", "go test -short ./...", "go vet ./...", "go test -tags x ./...",
                      "go test -skip X ./..."),
    "make test": ("TEST=foo make test", "make test TEST=foo", "make test-env", "make -n test", "make -q test", "make", "make -f other.mk test", "make tests"),
    "npx playwright test": ("npx playwright install", "npx playwright test --shard 1/2", "npx playwright test a.spec.ts", "npx playwright test --project=x", "playwright test --list"),
    "npx cypress run": ("cypress open", "cypress verify", "cypress run --spec a.cy.ts"),
    "cargo test": ("cargo +nightly test", "cargo +nightly test --workspace", "RUSTFLAGS=-Cpanic=abort cargo test --workspace", "cargo test --lib", "cargo test -p a", "cargo test name", "cargo test --no-run", "cargo test -- --ignored", "cargo build", "cargo test --doc",
                   "cargo test --features x", "cargo test -- --skip x"),
    "cargo test --workspace": ("cargo test",),
    **dict.fromkeys(("cargo test --benches", "cargo test --bench b", "cargo test --examples"), ("cargo test", "cargo test --tests", "cargo test --no-run", "cargo test --bench other")),
    **dict.fromkeys(("cargo test --no-run --benches", "cargo check --benches"), ("cargo test --no-run", "cargo test", "cargo check --tests")),
    "cargo check --all-targets": ("cargo test", "cargo check --tests", "cargo check"), "cargo check --lib --tests": ("cargo check --tests", "cargo check"),
    "cargo check --test it": ("cargo test --test other", "cargo test --lib", "cargo fmt --check"), "cargo check --lib": ("cargo check --tests", "cargo test --lib"),
    "cargo test --doc": ("cargo test --all-targets",), "cargo +nightly test": ("cargo test", "cargo +stable test"),
    "cargo test --release": ("cargo test --all-targets --workspace",),
    "cargo check": ("cargo build -p a", "cargo test --lib", "cargo build --release", "cargo clippy --features x", "cargo fmt --check", "cargo nextest run --no-run"),
    **dict.fromkeys(("cargo check --tests", "cargo check --examples", "cargo check --test it", "cargo clippy --tests", "cargo build --benches"),
                    ("cargo check", "cargo build", "cargo clippy", "cargo check --lib")),
    "cargo clippy": ("cargo check", "cargo build", "cargo test"), "cargo build": ("cargo check", "cargo clippy", "cargo test"),
    "npm test": ("npm test -- src/a.test.ts", "npm test -- -t name", "npm run test:unit", "npm test --workspace a", "pnpm --filter a test", "npm --prefix web test", "npm ci",
                 "npm run lint", "npm test --if-present", "pnpm -r test", "yarn workspace a test", "npx jest"),
    "dotnet test": ("dotnet test --filter X", "dotnet test --list-tests", "dotnet build", "dotnet test A.csproj", "dotnet test --no-build"),
    "bundle exec rspec": ("rspec spec/a_spec.rb", "rspec -e name", "rspec --dry-run", "rspec --tag fast", "rspec --only-failures"),
    "prove": ("prove t/a.t", "prove -D", "prove --dry", "prove --version", "prove -Iother", "prove --state=failed", "perl t/a.t"),
    "prove -r": ("prove", "prove t"), "bats tests/a.bats": ("bats tests/b.bats", "bats -f name tests/a.bats", "bats --count tests/a.bats"),
    "mypy --strict": ("mypy", "mypy --strict src/a.py"),
    "pytest src/a.py": ("pytest tests", "pytest src/b.py", "cd src && pytest a.py", "pytest -k x src"),
}  # fmt: skip


@pytest.mark.parametrize("failing", OTHERS)
def test_a_narrower_run_of_any_runner_ends_no_wider_failure(failing: str):
    said = (
        "3 passed in 0.10s\nTests: 3 passed, 3 total\nok  \tpkg\t0.1s\nBUILD SUCCESSFUL in 1s\n3 examples, 0 failures\n"
    )
    assert not [each for each in OTHERS[failing] if ends(failing, each, said) or ends(failing, each)]


ENDS = {
    "pytest": (
        "pytest", "pytest -q", "python -m pytest", "python3.11 -m pytest -x", "uv run pytest -n 4", "poetry run pytest", ".venv/bin/pytest", ".venv/bin/python -m pytest -vv",
        "CI=1 timeout 600 pytest -xvs --tb=short", "bash -lc 'pytest -q'", "cd /repo && pytest -q", "cd . && pytest", "pytest tests", "pytest .", "pytest -n auto --cov=src",
        "source .venv/bin/activate && pytest", "set -euo pipefail; pytest", "ruff check . && pytest", "pip install -e . && pytest", "sed -i s/1/2/ a.py && pytest",
        "pytest && git add -A && git commit -m done", "pytest -q && echo ok", "(cd /repo && pytest)", "set -o pipefail; pytest | tail -3", "cd web && cd .. && pytest",
        "hatch run pytest", "uv run -m pytest", "pytest -p no:cacheprovider", "nice -n 10 pytest", "coverage run -m pytest && coverage report", "pytest && cd packages/b && ls", "pytest -q --durations 5 --color=no", "pdm run pytest --ff",
        "mkdir -p build && pytest --junitxml=build/out.4711.xml", "pytest > /tmp/out.log 2>&1", "pytest && mypy src", "pytest && make build", "pytest && npm run build", "export CI=1 && pytest", "env CI=1 pytest",
    ),
    "npm test": ("npm test", "npm run test", "npm t", "pnpm test", "yarn test", "yarn run test", "bun run test", "CI=true npm test -- --coverage --watch=false", "npm test --silent"),
    "make test": ("make test", "make -j4 test", "make -s test", "make lint test", "gmake test"),
    "cargo test": ("cargo test", "cargo test -q", "cargo t", "cargo test -- --nocapture --test-threads=1", "cargo test --workspace"),
    "cargo test -p a": ("cargo test -p a", "cargo test"), "cargo +nightly test": ("cargo +nightly test", "cargo +nightly t -q"),
    "cargo clippy --tests": ("cargo clippy --all-targets", "cargo clippy --all-targets -- -D warnings"),
    "cargo check --tests": ("cargo check --all-targets", "cargo test", "cargo test --no-run", "cargo test --tests", "cargo nextest run", "cargo clippy --tests", "cargo check --tests --workspace"),
    "cargo check --test it": ("cargo test --test it", "cargo test", "cargo check --tests", "cargo check --test=it"), "cargo check --tests -p a": ("cargo test -p a", "cargo check -p a --all-targets"),
    **dict.fromkeys(("cargo test --no-run --test it", "cargo test --no-run --tests"), ("cargo test --no-run", "cargo test", "cargo test --no-run --all-targets")),
    **dict.fromkeys(("cargo test --test it", "cargo test --tests", "cargo test --lib"), ("cargo test", "cargo test --all-targets")),
    "cargo check --all-targets": ("cargo clippy --all-targets -- -D warnings", "cargo check --all-targets --tests"), "cargo clippy --release": ("cargo clippy --release --all-targets",),
    "cargo check --tests --examples": ("cargo check --examples --tests", "cargo check --all-targets"), "cargo test --lib --bins": ("cargo test --bins --lib",),
    "cargo test --release --all-features": ("cargo test --all-features --release",), "cargo test --features x --features y": ("cargo test --features x --features y",),
    "cargo check": ("cargo check", "cargo c", "cargo build", "cargo test", "cargo test --no-run", "cargo clippy", "cargo clippy --all-targets -- -D warnings",
                    "cargo build --workspace", "cargo nextest run"),
    "cargo check -p a": ("cargo check -p a", "cargo build -p a", "cargo clippy", "cargo test --no-run -p a"), "cargo test --no-run": ("cargo test",),
    "go test ./...": ("go test ./...", "go test -v -race ./...", "go test -count=1 -timeout 60s ./..."),
    "go test ./pkg/a": ("go test ./pkg/a", "go test ./pkg/a/", "go test -v ./..."),
    "mvn test": ("mvn test", "mvn -q -B clean test", "./mvnw test", "mvn verify"),
    "./gradlew test": ("./gradlew test", "gradle test --info", "./gradlew clean test", "./gradlew check", "./gradlew build", "gradlew cleanTest test"),
    "./gradlew :app:test": ("./gradlew :app:test", "./gradlew test"),
    "tox": ("tox", "tox -q", "tox run", "tox -p auto"), "tox -e py311": ("tox -e py311", "tox -epy311", "tox"), "nox": ("nox", "nox -r"),
    "prove": ("prove", "prove -v", "prove -lv t/", "prove -l -j4", "prove -r"), "prove -v t/a.t": ("prove t/a.t", "prove"),
    "bats tests/a.bats": ("bats tests/a.bats", "bats --tap -j 4 tests"), "bats -r tests": ("bats -r tests", "npx bats -r tests"),
    "ctest": ("ctest", "ctest --output-on-failure -j8"), "bundle exec rspec": ("bundle exec rspec", "bin/rspec", "rspec spec", "rspec --format documentation"),
    "dotnet test": ("dotnet test", "dotnet test --nologo -v q"), "npx jest": ("npx jest", "yarn jest --ci", "node_modules/.bin/jest --coverage", "npx --yes jest"),
    "npx vitest run": ("npx vitest run", "pnpm vitest --run", "vitest run --reporter=verbose"), "mix test": ("mix test",), "deno test": ("deno test",),
    "python -m unittest": ("python -m unittest", "python3 -m unittest discover", "python -m unittest -v"), "python manage.py test": ("./manage.py test --keepdb -v 2",),
    "pytest tests/a.py": ("pytest tests/a.py", "pytest -v ./tests/a.py", "pytest /repo/tests/a.py", "pytest tests/a.py tests/b.py", "pytest tests", "pytest", "cd /repo && pytest tests/"),
    "pytest tests/a.py::T::test_x": ("pytest tests/a.py::T::test_x", "pytest tests/a.py::T", "pytest tests/a.py", "pytest tests"),
    "pytest -k x tests/a.py": ("pytest -k x tests/a.py", "pytest tests/a.py -k x", "pytest tests/a.py", "pytest tests", "pytest"),
    "cd web && pytest a.py": ("cd web && pytest a.py", "cd /repo/web && pytest", "cd web; pytest -q ./a.py"), "npm --prefix web test": ("cd web && npm test", "npm -C web test"),
    "mypy": ("mypy", "uv run mypy"), "ruff check": ("ruff check", "ruff check .", "ruff check --fix ."), "pre-commit run": ("pre-commit run --all-files",),
    "./run_tests.sh": ("./run_tests.sh", "bash run_tests.sh"), "pytest --maxfail=1 -p no:randomly": ("pytest -p no:randomly",),
}  # fmt: skip


@pytest.mark.parametrize("failing", ENDS)
def test_the_ordinary_ways_to_run_all_tests_end_a_failure(failing: str):
    assert not [each for each in ENDS[failing] if not ends(failing, each)]


@pytest.mark.parametrize(
    ("command", "stdout", "code", "outcome"),
    [
        # The end of the line is another program's: its summary decides.
        ("pytest tests 2>&1 | tail -20", f"...\n{OK}", 0, "passed"),
        ("pytest -q | tail -2", "...", 0, "unknown"),
        ("pytest -q | tail -2", "1 failed, 2 passed in 0.10s", 0, "failed"),
        ("python -m pytest 2>&1 | tail -5 && echo OK", OK, 0, "passed"),
        ("pytest -q; echo exit=$?", f"{OK}\nexit=0", 0, "passed"),
        ("pytest -q 2>&1 | tee out.log | tail -3", OK, 0, "passed"),
        ("pytest > /tmp/out.log 2>&1; tail -3 /tmp/out.log", OK, 0, "passed"),
        ("pytest -q > /tmp/out.log; tail -3 /tmp/old.log", OK, 0, "unknown"),
        ("npm ci && npm test 2>&1 | tail -20", "Tests:       5 passed, 5 total", 0, "passed"),
        ("cargo test 2>&1 | tail -5", "test result: ok. 3 passed; 0 failed; 0 ignored", 0, "passed"),
        ("cargo test 2>&1 | tail -2", "error: test failed, to rerun pass `--lib`", 0, "failed"),
        ("go test ./... | tail -3", "ok  \tx/a\t0.1s\nFAIL", 0, "failed"),
        ("mypy . && pytest | tail -1", OK, 0, "passed"),
        ("pytest --runslow | tail -3", OK, 0, "unknown"),
        # The last lines cover a part: a failure may be before them.
        ("npx vitest run | tail -4", "Tests  5 passed (5)\nStart at  12:00\nDuration  1s", 0, "unknown"),
        ("npx vitest run | tail -20", "Test Files  2 passed (2)\nTests  5 passed (5)", 0, "passed"),
        (
            "npx jest | tail -4",
            "Tests: 3 passed, 3 total\nSnapshots: 0 total\nTime: 1 s\nRan all test suites.",
            0,
            "unknown",
        ),
        (
            "npx jest | tail -5",
            "Test Suites: 1 passed, 1 total\nTests: 3 passed, 3 total\nSnapshots: 0 total\nTime: 1 s\nRan all test suites.",
            0,
            "passed",
        ),
        ("npx playwright test | tail -n 2", "[chromium] a.spec.ts\n3 passed (5.2s)", 0, "unknown"),
        ("npx playwright test 2>&1 | tail -20", "Running 3 tests using 1 worker\n3 passed (5.2s)", 0, "passed"),
        (
            "dotnet test | tail -1",
            "Passed!  - Failed:     0, Passed:     5, Skipped:     0, Total:     5, Duration: 1 s - B.dll",
            0,
            "unknown",
        ),
        ("nox | tail -c 90", "nox > * tests-3.9: success", 0, "unknown"),
        ("npm test --workspaces | tail -3", "Test Suites: 1 passed, 1 total\nTests: 3 passed, 3 total", 0, "unknown"),
        ("set -euo pipefail; pytest -q | tail -1; echo ok", "ok", 0, "passed"),
        # Another line than the last summary says that it failed.
        ("pytest a.py; pytest b.py", f"1 failed in 0.1s\n{OK}", 0, "failed"),
        ("pytest | grep FAILED", "FAILED a.py::test_b - assert 1 == 2", 0, "failed"),
        ("pytest | grep ERROR", "ERROR a.py - ImportError: no x", 0, "failed"),
        (
            "pytest | tail -4",
            f"FAIL Required test coverage of 80% not reached. Total coverage: 70.00%\n{OK}",
            0,
            "failed",
        ),
        (
            "npx jest | tail",
            'Jest: "global" coverage threshold for lines (80%) not met: 70%\nTest Suites: 1 passed, 1 total',
            0,
            "failed",
        ),
        ("npx vitest run | tail", "Test Files  2 passed (2)\nTests  5 passed (5)\nErrors  1 error", 0, "failed"),
        (
            "npx karma start | tail -2",
            "Firefox: Executed 3 of 3 SUCCESS (1 secs)\nTOTAL: 1 FAILED, 5 SUCCESS",
            0,
            "failed",
        ),
        ("make -k test | tail -3", f"{OK}\nmake: Target 'test' not remade because of errors.", 0, "failed"),
        ("pre-commit run -a | tail -9", "ruff.......Passed\nmypy.......Failed", 0, "failed"),
        ("pre-commit run", "ruff.......(no files to check)Skipped", 0, "unknown"),
        ("pre-commit run", "ruff.......Passed\nmypy.......(no files to check)Skipped", 0, "passed"),
        # No exit code: the summary decides.
        ("pytest -q", OK, None, "passed"),
        ("pytest -q", "collecting", None, "unknown"),
        ("make test", "ok  \tx/a\t0.1s", None, "passed"),
        # Nothing ran.
        ("pytest", "collected 0 items", 0, "unknown"),
        ("npx jest --passWithNoTests", "No tests found, exiting with code 0", 0, "unknown"),
        ("go test ./...", "?   \tx/a\t[no test files]", 0, "unknown"),
        ("go test ./...", "?   \tx/a\t[no test files]\nok  \tx/b\t0.1s", 0, "passed"),
        ("python -m unittest", "Ran 0 tests in 0.000s\n\nOK", 0, "unknown"),
        ("npx mocha", "0 passing (1ms)", 0, "unknown"),
        ("make test", "make: 'test' is up to date.", 0, "unknown"),
        ("pytest", "3 skipped in 0.1s", 0, "unknown"),
        # An exit code that is its own.
        ("pytest -q", "", 1, "failed"),
        ("! pytest", "", 1, "unknown"),
        ("pytest && git push", f"{OK}\nrejected", 1, "unknown"),
        ("pytest --cov-fail-under=90", f"FAIL Required test coverage of 90% not reached.\n{OK}", 1, "failed"),
        ("pytest -q | tail", "", 1, "unknown"),
        # A word that is not understood: it runs tests where it says so, and is known to be itself alone.
        ("pytest --runslow", OK, 0, "passed"),
        ("pytest --runslow", "", 0, "unknown"),
        # Words of warnings and logs are no failures.
        ("ruff check --fix . | cat", "Found 2 errors (2 fixed, 0 remaining).", 0, "passed"),
        ("npx eslint . | cat", "✖ 3 problems (0 errors, 3 warnings)", 0, "unknown"),
        ("npx eslint .", "✖ 3 problems (0 errors, 3 warnings)", 0, "passed"),
        ("npx mocha", "  ✓ retries 2 failing requests\n  ✓ 1 failing\n\n  2 passing (3ms)", 0, "passed"),
        ("pytest -s", f"ERROR: 3 errors, 1 failed request\n[error] boom\n{OK}", 0, "passed"),
        ("npm test", "1 error in the log, as expected\nTests: 3 passed, 3 total", 0, "passed"),
    ],
)
def test_a_pass_needs_a_line_that_is_understood_and_an_end_that_is_its_own(
    command: str, stdout: str, code: int | None, outcome: str
):
    assert came_out(command, stdout, code)["check_outcome"] == outcome


def test_a_failure_belongs_to_the_folder_in_which_the_command_ran():
    assert ends("pytest", "pytest", failed_in="/repo", passed_in="")
    assert ends("pytest", "pytest", failed_in="packages/b", passed_in="/repo/packages/b")
    assert ends("pytest", "cd packages/b && pytest", failed_in="/repo/packages/b")
    assert ends("cd packages/b && pytest a.py", "cd .. && cd b && pytest", passed_in="/repo/packages/b")
    assert not ends("pytest", "pytest", passed_in="packages/b")
    assert not ends("pytest", "pytest", failed_in="/other")
    assert not ends("pytest tests/a.py", "pytest a.py", passed_in="tests")


def test_of_several_checks_the_one_fails_whose_output_says_so():
    both = "ruff check . && pytest"
    assert came_out(both, "1 failed in 0.1s", 1)["check_fails"] == ["pytest:\n*"]
    assert came_out(both, "Found 1 error.", 1)["check_fails"] == ["ruff check:\n*"]
    assert came_out(both, "", 1)["check_fails"] == ["ruff check:\n*", "pytest:\n*"]


def state(*events: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    session = Session()
    for number, (kind, payload) in enumerate(events):
        session.add(kind, turn=number + 1, **payload)
    return state_of(session)


def ran(command: str, stdout: str = "", code: int = 0, **payload: Any) -> tuple[str, dict[str, Any]]:
    return "command.finished", {"command": command, "stdout": stdout, "exitCode": code, **payload}


def test_failures_of_several_folders_end_one_by_one():
    failed = (ran("pytest", "root.py:1 boom", 1), ran("pytest", "b.py:1 boom", 1, cwd="packages/b"))
    assert state(*failed)["failure"] == "b.py:1 boom"
    assert state(*failed, ran("pytest", OK))["failure"] == "b.py:1 boom"
    assert state(*failed, ran("cd packages/b && pytest", OK))["failure"] == "root.py:1 boom"
    assert state(*failed, ran("pytest", OK, cwd="packages/b"), ran("pytest", OK))["failure"] is None


def test_the_state_names_every_check_that_still_fails():
    session = Session()
    for command, folder in (("pytest", ""), ("pytest tests/a.py", "packages/b"), ("npm run test:unit", "")):
        session.add("command.finished", turn=1, command=command, cwd=folder, exitCode=1, stdout=f"{command} boom")
    names = ["script test:unit", "pytest in packages/b:tests/a.py", "pytest"]
    seen = projected(session)
    assert (seen.state["failing"], seen.state["failure_count"]) == (names, 3)
    assert f"- current failure: npm run test:unit boom\n- failing checks: {', '.join(names)}\n" in seen.text()
    for command in ("npm run test:unit", "pytest"):
        session.add("command.finished", turn=2, command=command, exitCode=0)
    seen = projected(session)
    assert (seen.state["failing"], seen.state["failure_count"]) == (names[1:2], 1)
    assert "failing checks" not in seen.text(), "one is named by what it printed"
    for number in range(20):
        session.failing("boom", turn=3, command=f"pytest tests/t{number}.py")
    assert state_of(session)["failure_count"] == 21


def test_a_narrower_run_says_that_it_passed_and_leaves_the_failure():
    seen = state(ran("pytest", "a.py:3 boom", 1), ran("pytest -k other", OK))
    assert (seen["failure"], seen["verification"]) == ("a.py:3 boom", "pytest -k other: passed")


@pytest.mark.parametrize(("origin", "ended"), [("web", False), ("subagent", False), ("model", False), ("tool", True), (None, True), ("system", True)])  # fmt: skip
def test_what_others_ran_ends_no_failure(origin: str | None, ended: bool):
    named = {"origin": origin} if origin else {}
    seen = state(ran("pytest", "a.py:3 boom", 1), ran("pytest", OK, **named))
    assert (seen["failure"] is None) == ended
    assert seen["verification"] == f"pytest: {'passed' if ended else 'failed'}"


def test_an_edit_behind_a_check_leaves_it_unknown():
    seen = state(ran("pytest", "a.py:3 boom", 1), ran("pytest && sed -i s/1/2/ src/a.py", OK))
    assert (seen["failure"], seen["verification"]) == (
        "a.py:3 boom",
        "pytest && sed -i s/1/2/ src/a.py: outcome unknown",
    )


def test_the_key_of_a_failure_is_the_same_in_every_run():
    """The thread's number and the time differ from run to run."""
    said = (
        "running 1 test\ntest tests::adds ... FAILED\n\nfailures:\n\n---- tests::adds stdout ----\n\n"
        "thread 'tests::adds' ({}) panicked at src/lib.rs:10:9:\nassertion `left == right` failed\n  left: 1\n right: 2\n"
        "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n\n"
        "test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in {}s\n"
    )
    key = "tests::adds at src/lib.rs:10:9 assertion `left == right` failed left: 1 right: 2"
    assert {state(ran("cargo test", said.format(*each), 101))["failure"] for each in ((4711, 0.01), (5, 0.32))} == {key}
    old = "thread 'tests::adds' panicked at 'boom', src/lib.rs:10:9\nnote: run with `RUST_BACKTRACE=1`"
    assert state(ran("cargo test", old, 101))["failure"] == "tests::adds at src/lib.rs:10:9 boom"


def test_a_passing_check_is_summed_up_by_no_line_of_its_log():
    session = Session()
    session.add("command.finished", turn=1, command="pytest -s", exitCode=0, stdout=f"ERROR: a.py:3 retried\n{OK}")
    assert "a.py:3 retried" not in str(state_of(session))


FAILS = ("pytest", 1, "a.py:3 boom")
PASSES = ("pytest", 0, OK)


def after(*commands: tuple[str, int, str]) -> Session:
    session = Session()
    for command, code, out in commands:
        session.add("command.finished", turn=1, command=command, exitCode=code, stdout=out)
    return session


def ends_failure(*commands: tuple[Any, ...]) -> bool:
    """Whether a pass behind some commands ends the failure of one of them."""
    session = Session()
    for command, code, out, *said in (*commands, PASSES):
        session.add("command.finished", turn=1, command=command, exitCode=code, stdout=out, **(said[0] if said else {}))
    rows = read_events(session.events).events.to_pylist()
    (failed,) = (row["check_fails"] for row in rows if row["command"] == "pytest" and row["exit_code"])
    passed = rows[-1]["check_clears"]
    return all(set(names.split("\n")) & set(passed) for names in failed)


AWAY = (
    (("git stash",), ("git stash pop",)), (("git stash -u",), ("git stash apply",)), (("git stash push -m pop",), ("git stash pop",)), (("git checkout main",), ("git checkout fix",)),
    (("git switch main",), ("git switch -",)), (("git checkout v1.2",), ("git checkout -",)), (("git stash", "git checkout main"), ("git checkout -", "git stash pop")), (("git stash && git status",), ("git stash pop",)),
    (("git stash", "pytest > out.log 2>&1"), ("git stash pop",)), (("git stash", "git stash list"), ("git stash pop && git status",)),
    (("git checkout main && git pull",), ("git checkout fix",)), (("git switch main", "git pull", "black ."), ("git switch -",)), (("git stash && git pull",), ("git stash pop",)),
    (("git stash", "sed -i s/1/2/ a.py", "rm tests/a.snap"), ("git stash pop",)), (("git checkout release/1.x",), ("git checkout -",)), (("git switch -c new origin/main",), ("git switch -",)),
    (("git bisect start HEAD v1.0", "git bisect good"), ("git bisect reset",)), (("gh pr checkout 12",), ("git checkout -",)), (("gh co 12",), ("git checkout -",)),
    (("git stash", "cd ../other && git stash pop"), ("git stash pop",)), (("git stash", "git -C ../other stash pop"), ("git -C .. stash pop",)), (("cd web && git stash", "(cd ../other && git stash pop)"), ("(cd ../other && ls); git stash pop",)), (("git -C . switch main",), ("sudo git switch -",)),
)  # fmt: skip
"""Commands that put other code in the place of the work, and those that bring it back."""
NOT_AWAY = (
    "git pull", "git checkout -- a.py", "git checkout src/a.py", "git checkout Makefile", "git checkout src/", "git checkout main src", "git checkout -f", "git switch -c x", "git checkout -b x HEAD", "git checkout .", "git restore .", "git reset --hard",
    "git -C ../other stash", "cd ../other && git stash", "cd .worktrees/fix && git checkout main", "git -C .claude/worktrees/fix stash", "cd ../other && git checkout main", "git --work-tree ../other --git-dir=../other/.git checkout main", "(cd ../other; git stash)", "cd web && cd ../../other && git stash",
    "git checkout -b fix", "git stash list", "git commit -am x", "git stash; git stash pop", "git checkout main && git checkout fix", "git status", "echo git stash", "digit stash",
)  # fmt: skip


@pytest.mark.parametrize(("leaves", "returns"), AWAY, ids=str)
def test_a_pass_on_other_code_ends_no_failure_of_the_work(leaves: tuple[str, ...], returns: tuple[str, ...]):
    away, back = ([(each, 0, "") for each in commands] for commands in (leaves, returns))
    assert state_of(after(FAILS, *away, PASSES, *back))["failure"] == FAILS[2]
    assert state_of(after(FAILS, *away, PASSES, *back, PASSES))["failure"] is None, "it ends where the work is back"


@pytest.mark.parametrize("command", ["cd ../x && ls && cd - && git stash", "pushd ../x && ls && popd && git stash", "cd ../x && make && cd ../app && git stash"])  # fmt: skip
def test_a_line_that_comes_back_from_another_folder_stashes_the_work(command: str):
    assert state_of(after(FAILS, (command, 0, ""), PASSES))["failure"] == FAILS[2]


BESIDE = (
    {"cwd": "/w/app-fix", "root": "/w/app"},
    {"cwd": "/w/app/.worktrees/fix", "root": "/w/app"},
    {"cwd": "/w/app", "root": "/w/app/.claude/worktrees/fix"},
    {"cwd": "../lib"},
)
"""Where a check runs in a repository or a work tree beside that of the session."""


@pytest.mark.parametrize(("leaves", "returns"), [("git stash", "git stash pop"), ("git switch main", "git switch -")])
@pytest.mark.parametrize("there", BESIDE, ids=str)
def test_code_that_git_moves_beside_the_work_is_that_of_the_checks_there(
    there: dict[str, str], leaves: str, returns: str
):
    def failing(*commands: str) -> list[str]:
        session = Session()
        session.add("command.finished", turn=1, command="pytest", exitCode=1, stdout=FAILS[2], **there)
        for command in commands:
            session.add("command.finished", turn=1, command=command, exitCode=0, stdout="", **there)
        return state_of(session)["failing"]

    assert failing("pytest") == failing(leaves, returns, "pytest") == []
    assert len(failing(leaves, "pytest")) == 1, "it ran on other code"


@pytest.mark.parametrize("there", [
    {"command": "cd /w/app-fix && pytest"}, {"command": "pytest", "cwd": "/w/app-fix"}, {"command": "pytest", "cwd": "../app-fix"},
    {"command": "cd ../app-fix && pytest"}, {"command": "cd web && cd ../../app-fix && pytest"}, {"command": "pytest --rootdir x", "cwd": "."},
], ids=str)  # fmt: skip
def test_a_folder_beside_the_work_is_one_however_it_is_named(there: dict[str, str]):
    session = Session()
    session.add(
        "command.finished", turn=1, command="cd ../app-fix && pytest", exitCode=1, stdout=FAILS[2], root="/w/app"
    )
    session.add("command.finished", turn=1, exitCode=0, stdout="", root="/w/app", **there)
    assert (state_of(session)["failing"] == []) == ("app-fix" in str(there))


@pytest.mark.parametrize("elsewhere", ["cd ../lib && git checkout dev", "cd C:/Users/me/lib && git stash", "cd /tmp && git clone x y", "git -C /tmp/y stash", "cd /c/Users/me/lib && git stash"])  # fmt: skip
def test_git_beside_the_work_moves_no_session_on_windows(elsewhere: str):
    def failing(command: str) -> list[str]:
        session = Session()
        for number, (line, code) in enumerate((("pytest", 1), (command, 0), ("pytest", 0))):
            session.add(
                "command.finished", turn=number, command=line, exitCode=code, stdout="", root="C:\\Users\\me\\app"
            )
        return state_of(session)["failing"]

    assert (
        failing(elsewhere)
        == failing("cd /c/Users/me/app && pytest")
        == failing('cd "C:\\Users\\me\\lib" && git checkout dev')
        == []
    )
    for own in (
        "cd /c/Users/me/app && git stash",
        "git -C C:/Users/me/app stash",
        "cd c:/Users/me/app && git stash",
        'cd "c:\\Users\\me\\app" && git stash',
    ):
        assert failing(own) == ["pytest"], own


def test_git_in_the_main_work_tree_moves_no_session_in_another_one():
    session, root = Session(), "/w/app/.claude/worktrees/fix"
    for number, (command, code) in enumerate((("pytest", 1), ("cd /w/app && git stash", 0), ("pytest", 0))):
        session.add("command.finished", turn=number, command=command, exitCode=code, stdout="", root=root)
    assert state_of(session)["failing"] == []


@pytest.mark.parametrize("leaves", ["git stash", "git switch develop", "git -C ../app stash"])
@pytest.mark.parametrize("there", BESIDE[:2], ids=str)
def test_git_in_the_work_moves_no_code_of_the_checks_beside_it(there: dict[str, str], leaves: str):
    session = Session()
    session.add("command.finished", turn=1, command="pytest", exitCode=1, stdout=FAILS[2], **there)
    session.add("command.finished", turn=1, command=leaves, exitCode=0, stdout="", root="/w/app")
    session.add("command.finished", turn=1, command="pytest", exitCode=0, stdout="", **there)
    assert state_of(session)["failing"] == []


@pytest.mark.parametrize("command", NOT_AWAY)
def test_other_commands_put_no_other_code_in_its_place(command: str):
    assert state_of(after(FAILS, (command, 0, ""), PASSES))["failure"] is None


@pytest.mark.parametrize("command", ["pytest && git checkout main && git checkout -", "git checkout main && pytest; git checkout -", "git stash && pytest && git stash pop"])  # fmt: skip
def test_a_line_that_leaves_and_returns_says_nothing_of_where_it_checked(command: str):
    assert state_of(after(FAILS, (command, 0, OK)))["failure"] == FAILS[2]


@pytest.mark.parametrize(("command", "there"), [
    ("git stash", {"cwd": "/srv/other"}), ("cd /srv/other && git stash", {}), ("git -C ~/other stash", {}), ("git stash", {"cwd": "../other"}),
])  # fmt: skip
def test_what_git_does_in_another_repository_moves_no_session(command: str, there: dict[str, str]):
    git = {"exitCode": 0, "stdout": "", "root": "/srv/shop"}
    session = Session(None)
    session.add("command.finished", turn=1, command=command, **git, **there)
    assert not moved(session)
    for leaves in ("cd /srv/shop/web && git stash", "git -C ~/shop checkout main"):
        session = Session(None)
        session.add("command.finished", turn=1, command=leaves, **git, cwd="/srv/shop")
        assert moved(session)


def moved(session: Session) -> bool:
    """Whether a check would run on other code than that of the work."""
    session.add("command.finished", turn=1, command="pytest", exitCode=0, stdout=OK)
    return "pytest:" not in read_events(session.events).events["check_clears"].to_pylist()[-1]


FOLDERS = (
    ("file.read", {"path": "src/app/a.py", "text": "x"}), ("file.modified", {"path": "src/app/a.py", "text": "x"}), ("file.read", {"path": "/repo/src/app/a.py", "text": "x", "root": "/repo"}),
    ("search.result", {"query": "x", "matches": [{"path": "src/app/a.py"}]}), ("command.finished", {"command": "sed -i s/1/2/ src/app/a.py", "exitCode": 0}),
)  # fmt: skip


@pytest.mark.parametrize("seen", FOLDERS, ids=str)
def test_a_folder_that_the_log_has_named_is_no_branch(seen: tuple[str, dict[str, Any]]):
    for command, leaves in (
        ("git checkout src", False), ("git checkout src/app", False), ("cd src && git checkout app", False), ("git checkout app", True),
        ("git checkout -b src origin/main", True), ("git switch src", True),
    ):  # fmt: skip
        session = Session(None)
        session.add(seen[0], turn=1, **seen[1])
        session.add("command.finished", turn=1, command=command, exitCode=0, stdout="")
        assert moved(session) == leaves, command


def test_a_branch_with_the_name_of_a_folder_is_one_where_it_is_known():
    session = after(("git checkout src", 0, "Switched to branch 'src'"), ("git checkout -", 0, ""))
    session.add("file.read", turn=1, path="src/a.py", text="x")
    session.add("command.finished", turn=1, command="git checkout src", exitCode=0, stdout="")
    assert moved(session)
    assert not moved(after(("git checkout src", 0, "Updated 3 paths from the index")))


BRANCHED = (
    ("git checkout main", "git checkout -b fix", None, "git checkout main"), ("git checkout main && git pull && git checkout -b fix", None, "git checkout main"),
    ("git checkout -b fix", None, "git checkout -"), ("git switch -c fix", None, "git commit -am x", "git switch -"), ("git switch main", "git switch -c fix", None, "git stash", "git switch main"),
    (None, "git checkout abc1234", "git checkout def5678"), (None, "git checkout v1.2", "git checkout v1.3"),
)  # fmt: skip


@pytest.mark.parametrize("line", BRANCHED, ids=str)
def test_the_branch_that_a_new_one_leaves_is_other_code(line: tuple[str | None, ...]):
    """None is where the check fails."""
    events = [FAILS if each is None else (each, 0, "") for each in line]
    (failing,) = state_of(after(*events, PASSES))["failing"]
    assert failing in ("pytest", "pytest @fix")


def test_a_new_branch_takes_the_work_along():
    for begins in ("git checkout -b fix", "git switch -c fix", "git checkout -B fix && git checkout -B fix"):
        assert state_of(after(("git checkout main", 0, ""), FAILS, (begins, 0, ""), PASSES))["failing"] == []
        assert (
            state_of(after(FAILS, (begins, 0, ""), ("git checkout main", 0, ""), ("git checkout fix", 0, ""), PASSES))[
                "failing"
            ]
            == []
        )


@pytest.mark.parametrize("line", [
    ("git stash", "make gen && git stash pop"), ("git checkout main", "npm ci && git checkout -"),
])  # fmt: skip
def test_a_line_that_fails_brings_no_work_back(line: tuple[str, str]):
    session = after(FAILS, (line[0], 0, ""), (line[1], 1, "error"), PASSES)
    assert state_of(session)["failing"] == ["pytest"]


def test_what_git_says_counts_for_the_program_that_says_it():
    out = "Saved working directory and index state\nAlready on 'main'"
    assert state_of(after(FAILS, ("git stash && git checkout main", 0, out), PASSES))["failing"] == ["pytest"]
    assert state_of(after(FAILS, ("cd web && git checkout nope", 1, "error: pathspec"), PASSES))["failing"] == []
    conflict = (("git stash", 0, ""), ("git stash pop", 1, "CONFLICT (content): a.py"), ("git stash drop", 0, ""))
    assert state_of(after(FAILS, *conflict, PASSES))["failing"] == []


@pytest.mark.parametrize("said", [{"origin": "user"}, {"origin": "subagent"}, {"actor": "user"}], ids=str)
def test_what_others_do_with_git_moves_the_session(said: dict[str, str]):
    """They share the work tree, unless they name another one. What a model claims, no one ran."""
    assert not ends_failure(FAILS, ("git stash", 0, "", said))
    assert not ends_failure(FAILS, ("git switch main", 0, "", said))
    assert ends_failure(FAILS, ("git stash", 0, ""), ("git stash pop", 0, "", said))
    assert ends_failure(FAILS, ("git stash", 0, "", {**said, "cwd": "../other"}))
    assert not ends_failure(FAILS, ("git stash", 0, ""), ("git stash pop", 0, "", {"origin": "model"}))


@pytest.mark.parametrize(("command", "code", "out"), [
    ("git stash pop", 1, "error: Your local changes would be overwritten"),
    ("ruff check", 1, "Found 3 errors."), ("cd docs && make test", 2, "x"), ("pytest tests/a.py", 1, "1 failed"), ("npm ci", 0, "added 3 packages"),
])  # fmt: skip
def test_what_happens_on_other_code_brings_no_work_back(command: str, code: int, out: str):
    session = after(FAILS, ("git stash", 0, ""), (command, code, out), PASSES)
    assert "pytest" in state_of(session)["failing"]


@pytest.mark.parametrize(("command", "code", "out"), [
    ("git checkout main", 1, "error: Your local changes would be overwritten"), ("git checkout main", 0, "Already on 'main'"), ("git stash", 0, "No local changes to save"),
])  # fmt: skip
def test_what_git_did_not_do_puts_nothing_aside(command: str, code: int, out: str):
    assert state_of(after(FAILS, (command, code, out), PASSES))["failure"] is None


def test_what_fails_on_other_code_ends_where_it_passes_there_or_where_the_work_is():
    for place in ("git checkout review", "git stash"):
        there = after((place, 0, ""), FAILS, ("npm ci", 0, "added 3 packages"), PASSES)
        assert state_of(there)["failure"] is None, "it failed there, and passes there"
    both = after(FAILS, ("git stash", 0, ""), FAILS, ("git stash pop", 0, ""))
    assert state_of(both)["failing"] == ["pytest @(work stashed)", "pytest"]
    both.add("command.finished", turn=1, command="pytest", exitCode=0, stdout=OK)
    assert state_of(both)["failure"] is None


@pytest.mark.parametrize(
    ("there", "back", "place"),
    [("git stash", "git stash pop", "@(work stashed)"), ("git switch main", "git switch fix", "@main")],
)
def test_the_only_check_that_fails_is_named_where_it_failed_on_other_code(there: str, back: str, place: str):
    for check, name in (
        ("pytest",) * 2,
        ("cargo test --workspace",) * 2,
        ("pnpm --filter @a/web test", "script test --filter @a/web"),
    ):
        session = Session()
        session.add("command.finished", turn=1, command=there, exitCode=0, stdout="")
        session.failing("1 failed, 47 passed in 1s", turn=2, command=check)
        session.add("command.finished", turn=3, command=back, exitCode=0, stdout="")
        assert f"- failing checks: {name} {place}\n" in projected(session).text()
    for command in (
        "pytest",
        "pnpm --filter @acme/web test",
        "pnpm --filter @acme test",
        "npx vitest run src/@a/b.test.ts",
        "cargo test -p foo@1.2",
    ):
        assert "failing checks" not in projected(after((command, 1, "a.py:3 boom"))).text()


FAILED, STASHED, DROPPED = (
    "1 failed in 0.1s",
    "Saved working directory and index state WIP on fix: abc1234 x",
    "Dropped refs/stash@{0} (abc1234)",
)
MAIN, BACK, BEGUN = "Switched to branch 'main'", "Switched to branch 'fix'", "Switched to a new branch 'fix'"
KEPT = "error: Your local changes to the following files would be overwritten by merge:\n\ta.py\nAborting\nThe stash entry is kept in case you need it again."
REFUSED = "error: Your local changes to the following files would be overwritten by checkout:\n\ta.py\nPlease commit your changes.\nAborting"
CONFLICT, UNKNOWN = (
    "CONFLICT (content): Merge conflict in a.py",
    "error: pathspec 'fix' did not match any file(s) known to git\n",
)
STASH, SWITCH = ("git stash", 0, STASHED), ("git checkout main", 0, MAIN)
LINES = (
    # Of a line that fails, what Git prints says how far it came.
    (("git stash && pytest -q && git stash pop", 1, f"{STASHED}\n{FAILED}"), False), (("git stash -q && pytest -q && git stash pop -q", 1, FAILED), False),
    (("git checkout main && pytest -q && git checkout -", 1, f"{MAIN}\n{FAILED}"), False), (("git stash && pytest -q && git stash pop", None, STASHED, {"timedOut": True}), False),
    (STASH, ("git stash pop && pytest -q", 1, f"{DROPPED}\n{FAILED}"), True), (SWITCH, ("git checkout - && pytest -q", 1, f"{BACK}\n{FAILED}"), True),
    (STASH, ("git stash pop; pytest -q", 1, FAILED), True), (SWITCH, ("git checkout -q - && pytest -q", 1, FAILED), True), (("git switch main && pytest -q", 1, REFUSED), True),
    (STASH, SWITCH, ("git checkout - && git stash pop", 0, f"{DROPPED}\n{BACK}"), True), (("git fetch up; git checkout main", 0, f"fatal: 'up' is none\n{MAIN}"), False),
    (("git status && git checkout fix", 1, f"On branch x\n{UNKNOWN}"), True),
    # What Git refuses is not done, whatever the exit code.
    (STASH, ("git stash pop 2>&1 | tail -5", 0, KEPT), False), (SWITCH, ("git checkout fix 2>&1 | tail", 0, REFUSED), False), (SWITCH, ("git checkout fix 2>&1 | tail -1", 0, "Aborting"), False),
    # What is given up, and what is brought elsewhere, is of the code that is here.
    (STASH, ("git stash drop", 0, DROPPED), True), (STASH, ("git stash clear", 0, ""), True), (STASH, ("git stash pop", 1, "No stash entries found."), True),
    (STASH, SWITCH, ("git stash pop", 0, DROPPED), True), (STASH, SWITCH, ("git stash pop", 0, DROPPED), STASH, False), (STASH, ("git stash branch fix", 0, ""), True),
    (STASH, ("git stash pop", 1, f"{CONFLICT}\nThe stash entry is kept"), ("git reset --hard", 0, ""), False), (STASH, ("git stash apply", 0, ""), ("git reset --hard", 0, ""), False),
    *((("git switch -c fix", 0, BEGUN), ("git switch main", 0, MAIN), *then, ended) for *then, ended in (
        (False,), (("git merge fix", 0, "Fast-forward"), True), (("git merge -", 0, ""), True), (("git cherry-pick main..fix", 0, ""), True), (("git rebase fix", 0, ""), True),
        (("git rebase main fix", 0, ""), True), (("git merge other", 0, ""), False), (("git merge fix", 1, CONFLICT), True), (("git merge fix", 1, CONFLICT), ("git merge --abort", 0, ""), False),
        (("git branch -D fix", 0, ""), True), (("git branch -d fix", 1, "error: The branch 'fix' is not fully merged."), False), (("git branch -m fix new", 0, ""), ("git switch new", 0, ""), True), (("git branch -M other main", 0, ""), ("git switch fix", 0, ""), True),
    )),
    # Of `A || B`, one did it.
    (("git checkout fix || git checkout -b fix", 0, UNKNOWN + BEGUN), True), (("git checkout fix 2>/dev/null || git checkout -b fix", 0, BEGUN), True),
    (("git checkout fix || git checkout -b fix", 0, BACK), False), (("git checkout fix || git checkout -b fix", 0, f"{BEGUN}\nbranch 'fix' set up to track 'origin/fix'."), False),
    (("git switch -c fix || git switch fix", 0, f"fatal: a branch named 'fix' already exists\n{BACK}"), False), (("git switch -c fix || git switch fix", 0, BEGUN), True),
    # What is a branch, and whose name the first one has.
    (("git checkout abc1234", 0, ""), ("git checkout origin/main", 0, ""), False), (("git checkout main --", 0, ""), False), (("git checkout fix/login.js", 0, ""), False),
    (("git checkout v", 0, "HEAD is now at abc1234 x"), ("git checkout w", 0, "HEAD is now at def5678 y"), False), (("git checkout a/x.js", 0, "Switched to branch 'a/x.js'"), False),
    (SWITCH, ("git checkout -", 0, BACK), ("git checkout dev", 0, ""), False), (("git checkout main", 0, "Already on 'main'"), ("git checkout x", 0, ""), ("git checkout y", 0, ""), False),
)  # fmt: skip


@pytest.mark.parametrize("case", LINES, ids=str)
def test_what_git_did_says_on_which_code_a_check_ran(case: tuple[Any, ...]):
    *lines, ended = case
    assert ends_failure(FAILS, *lines) == ended


def test_code_that_holds_the_work_and_more_is_code_of_its_own():
    """What fails where work was merged to does not end where it came from."""
    merged = (("git switch -c fix", 0, BEGUN), ("git switch main", 0, MAIN), ("git merge fix", 0, "Fast-forward"))
    assert not ends_failure(*merged, FAILS, ("git switch fix", 0, BACK))
    assert ends_failure(*merged, FAILS, ("git switch fix", 0, BACK), ("git switch main", 0, MAIN))
    started = (*merged[:2], ("git switch -c next fix", 0, ""))
    assert ends_failure(merged[0], FAILS, merged[1], started[2])
    assert not ends_failure(*started, FAILS, ("git switch fix", 0, BACK))


def test_a_check_that_fails_within_a_line_has_the_name_of_its_place():
    line = ("git stash && pytest && git stash pop", 1, f"{STASHED}\n{FAILED}")
    assert state_of(after(FAILS, line))["failing"] == ["pytest @(work stashed)", "pytest"]
    both = after(("pytest; git checkout main && pytest", 1, f"{FAILED}\n{MAIN}\n{FAILED}"))
    assert sorted(state_of(both)["failing"]) == ["pytest", "pytest @main"]
