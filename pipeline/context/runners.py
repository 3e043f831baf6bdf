"""The meaning of the words after a check, by program: which keep or narrow its selection, or make another check.

Gives: `options_of` a program, `SCRIPTS` and `MODULES` (of package scripts and of their runners), `Options`, and words
`Read` by them.

Note: these are allow-lists. A word in no list is not understood, and a check with such a word equals only itself: it
never counts as all tests of its program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["MODULES", "SCRIPTS", "Options", "Read", "options_of"]


class Options(NamedTuple):
    """Words that are understood. For options with `=`, the part before it."""

    inert: frozenset[str] = frozenset()
    """Options without a value that do not change the selection: verbosity, stopping at the first failure."""
    valued: frozenset[str] = frozenset()
    """The same, with a value."""
    narrow: frozenset[str] = frozenset()
    """Options without a value that select a part."""
    narrow_valued: frozenset[str] = frozenset()
    """The same, with a value."""
    other: frozenset[str] = frozenset()
    """Options without a value that select a different set, or run it differently: wider, or in another environment."""
    other_valued: frozenset[str] = frozenset()
    """The same, with a value."""
    folder: frozenset[str] = frozenset()
    """Options whose value is the folder in which the program runs."""
    letters: str = ""
    """Inert one-letter options, which may be combined: `-xvs`."""
    whole: frozenset[str] = frozenset()
    """Arguments that name everything in its folder."""
    usual: frozenset[str] = frozenset()
    """Arguments that by convention contain all tests."""
    wide: frozenset[str] = frozenset()
    """Options of `other` that include everything that the program does without them."""
    bare: str = ""
    """The default argument of a program, if that is not everything."""

    def valued_of(self, name: str) -> bool:
        """Whether an option takes a value."""
        return any(name in each for each in (self.valued, self.narrow_valued, self.other_valued, self.folder))


def _options(*, letters: str = "", bare: str = "", **words: str) -> Options:
    sets = {name: frozenset(value.split()) for name, value in words.items()}
    return Options(**sets, letters=letters, bare=bare)


_PYTEST = _options(
    inert="--quiet --verbose --exitfirst --no-header --no-summary --showlocals --ff --failed-first --nf --new-first --no-cov --full-trace "
    "--strict-markers --strict-config --disable-warnings --disable-pytest-warnings --cov --cov-branch --no-cov-on-fail --cache-clear "
    "-p=no:cacheprovider -p=no:randomly -p=no:warnings",
    valued="-n --numprocesses --maxfail --tb --durations --durations-min --color --timeout --timeout-method --junitxml --junit-xml --cov-report "
    "--cov-fail-under --dist --basetemp --log-level --log-cli-level --verbosity --capture --show-capture --code-highlight -r --cov-config",
    narrow="--lf --last-failed --sw --stepwise",
    narrow_valued="-k -m --deselect --ignore --ignore-glob",
    other_valued="-p -W -c -o --rootdir --confcutdir --import-mode --override-ini",
    letters="qvxsl",
    whole=". ./",
    usual="tests test",
)
_JS = _options(
    inert="run --run --ci --coverage --no-coverage --silent --verbose --colors --color --no-color --no-watch --runInBand --detectOpenHandles "
    "--forceExit --bail --expand --logHeapUsage --no-cache --recursive --parallel --exit --watch=false --watchAll=false --passWithNoTests",
    valued="--reporter --reporters --maxWorkers --testTimeout --timeout --workers",
    narrow="--onlyChanged -o --onlyFailures --lastCommit --changedSince --changed",
    narrow_valued="-t --testNamePattern --testPathPattern --testPathPatterns --testPathIgnorePatterns --project --selectProjects --shard -g --grep "
    "--fgrep --spec --runTestsByPath --findRelatedTests",
    whole=". ./",
    letters="i",
)
"""Options of Jest, Vitest, Mocha and the like, which share most of them."""
MODULES = _options(
    inert="-s --silent -q --quiet --no-color --color",
    valued="--loglevel --reporter",
    other="-r --recursive --workspaces -ws --if-present --include-workspace-root -ir -A --all",
    other_valued="-w --workspace --filter -F",
    folder="--prefix -C --dir --cwd",
)
_GO = _options(
    inert="-v -race -cover -failfast -json -msan -asan",
    valued="-count -timeout -parallel -p -coverprofile -covermode -coverpkg -shuffle -cpu",
    narrow="-short",
    narrow_valued="-run -skip",
    other_valued="-tags -mod",
    folder="-C",
    whole="./...",
    bare=".",
)
_CARGO = _options(
    inert="-q --quiet -v --verbose -vv --locked --offline --frozen --no-fail-fast --nocapture --show-output --",
    valued="--color -j --jobs --test-threads --message-format",
    narrow="--exact",
    narrow_valued="-p --package --exclude --skip -E --filter-expr",
    other="--workspace --all --all-features --no-default-features --release -r --ignored --include-ignored "
    "--lib --bins --doc --tests --examples --benches --all-targets",
    other_valued="--features -F --target --profile --manifest-path --bin --test --example --bench",
    wide="--workspace --all",
)
_CARGO_BUILD = _CARGO._replace(
    inert=_CARGO.inert | {"--fix", "--allow-dirty", "--allow-staged"},
    other_valued=_CARGO.other_valued | {"-D"},
    wide=_CARGO.wide | {"-D warnings"},
)
_MAKE = _options(
    inert="-j -s --silent --quiet -k --keep-going --no-print-directory -B --always-make -w", valued="-j --jobs -l", folder="-C --directory"
)  # fmt: skip
_MAVEN = _options(
    inert="clean -q --quiet -B --batch-mode -U -o --offline -e -X -ntp --no-transfer-progress -fae -ff --fail-at-end --fail-fast -am",
    valued="-T --threads",
    narrow="-Dtest -Dit.test -Dgroups -Dsurefire.includes",
    narrow_valued="-pl --projects -rf",
    other_valued="-P -f",
)
_GRADLE = _options(
    inert="clean cleanTest --info --stacktrace -s -i -q --quiet --no-daemon --daemon --continue --rerun-tasks --parallel --no-parallel --scan "
    "--build-cache --no-build-cache --offline --debug --configuration-cache --no-configuration-cache",
    valued="--console --warning-mode --max-workers",
    narrow_valued="--tests",
    folder="-p --project-dir",
)
_XUNIT = _options(
    inert="--nologo --verbose --colors --testdox --stop-on-failure --no-coverage --fail-fast --color --no-color --no-restore --keepdb --noinput --failfast "
    "--coverage --bail --no-progress --trace --enable-code-coverage",
    valued="--verbosity --logger --results-directory --format --order --reporter --timeout --parallel --max-failures",
    narrow="--only-failures --failed --stale",
    narrow_valued="--filter --testsuite --group --exclude-group --exclude-testsuite -e --example -t --tag --tags -k --only --exclude --skip --name -n",
    whole=". ./ ... //...",
    usual="spec test tests",
)
"""Options of test runners of other languages, which share most of them."""
_LINT = _options(
    inert="--fix --quiet -q --no-cache --cache --show-fixes --no-color --color --verbose -v --noEmit --pretty --check --no-error-summary "
    "--show-error-codes -- --list-different -l -c --check-only --diff",
    valued="--output-format --format -f --cache-location",
    narrow_valued="--select --ignore --exclude --rule --ext",
    other="--strict --unsafe-fixes --workspace --all-targets --all-features -b --build",
    other_valued="-p --project --config --python-version --pythonversion --pythonpath --max-warnings -D",
    whole=". ./ ./...",
)
"""Options of linters, type checkers and builds."""
_OPTIONS: dict[str, Options] = {
    "pytest": _PYTEST,
    **dict.fromkeys(("jest", "vitest", "mocha", "ava", "karma start", "cypress run", "node --test", "playwright test"), _JS),
    **dict.fromkeys(("go test", "go vet", "go build"), _GO),
    "gotestsum": _options(valued="--format -f"),
    "cargo test": _CARGO,
    "cargo nextest": _CARGO._replace(inert=_CARGO.inert | {"run"}),
    **dict.fromkeys(("cargo check", "cargo build", "cargo clippy", "cargo test --no-run"), _CARGO_BUILD),
    "make": _MAKE,
    "mvn": _MAVEN,
    "gradle": _GRADLE,
    "tox": _options(inert="run r run-parallel p -r --recreate -q -v -vv --parallel", valued="--parallel -p -o --color", narrow_valued="-e -m -f --skip-env"),
    "nox": _options(inert="-r -R --reuse-existing-virtualenvs --no-color --stop-on-first-error -x --verbose -v",
                    narrow_valued="-s -e -t -k --session --sessions --tags --keywords -p --python"),
    "ctest": _options(inert="--output-on-failure -V -VV --verbose --progress -j --stop-on-failure --parallel", valued="-j --parallel --timeout --output-junit --no-tests",
                      narrow="--rerun-failed", narrow_valued="-R -E -L -LE -I --tests-regex --exclude-regex --label-regex", other_valued="-C --build-config",
                      folder="--test-dir"),
    "unittest": _options(inert="discover --verbose --failfast --buffer --locals", letters="vfbq", narrow_valued="-k -s --start-directory -p --pattern -t --top-level-directory", usual="tests test"),
    "manage.py test": _options(inert="--keepdb --noinput --no-input --failfast --parallel", valued="-v --verbosity --parallel", narrow_valued="-k --tag --exclude-tag"),
    "meson test": _options(inert="-v --verbose --print-errorlogs --no-rebuild", valued="-j --num-processes -t", narrow_valued="--suite --no-suite", folder="-C"),
    "pre-commit": _options(inert="run --verbose -v", valued="--color", other="-a --all-files", other_valued="--files --from-ref --to-ref", wide="-a --all-files"),
    "prove": _options(inert="--verbose --lib --blib --failures --comments --quiet --QUIET --shuffle --timer --color --nocolor --merge --parse", valued="-j --jobs",
                      other="-r --recurse", other_valued="-I -M -e --exec --state --harness --formatter --source", letters="vlbfoqQsmpc", wide="-r --recurse",
                      usual="t"),
    "bats": _options(inert="-p --pretty -t --tap -T --timing -x --trace --print-output-on-failure --show-output-of-passing-tests --verbose-run --no-tempdir-cleanup", valued="-j --jobs -F --formatter -o --output",
                     narrow_valued="-f --filter --filter-tags --filter-status", other="-r --recursive"),
    "rspec": _XUNIT._replace(valued=_XUNIT.valued | {"-f"}),
    "dotnet test": _XUNIT._replace(valued=_XUNIT.valued | {"-v"}, other_valued=frozenset(("-c", "--configuration", "-f", "--framework"))),
    **dict.fromkeys(("phpunit", "pest", "mix test", "swift test", "flutter test", "dart test", "deno test", "bun test", "bazel test", "sbt test",
                     "rake test", "rake spec", "rails test", "zig test", "nose2", "tap", "busted", "stestr run", "trial"), _XUNIT),
}  # fmt: skip
SCRIPTS = Options(
    inert=_JS.inert | MODULES.inert, valued=_JS.valued | MODULES.valued, narrow=_JS.narrow, narrow_valued=_JS.narrow_valued,
    other=MODULES.other, other_valued=MODULES.other_valued, folder=MODULES.folder,
)  # fmt: skip
"""Options of package scripts, and of the runners that most of them start."""


def options_of(program: str, family: str) -> Options:
    """The words that are understood after a program."""
    return _OPTIONS.get(program, Options() if family in ("test", "all") else _LINT)


@dataclass
class Read:
    """The words after a program, classified."""

    selection: list[str] = field(default_factory=list)
    """Arguments and options that narrow it."""
    other: list[str] = field(default_factory=list)
    """Options that make it a different check."""
    strange: list[str] = field(default_factory=list)
    """Words that are not understood."""
    folder: str = ""
    """The folder in which it runs by its options."""

    @classmethod
    def of(cls, words: Sequence[str], options: Options) -> Read:
        read, left = cls(), list(words)
        while left:
            word = left.pop(0)
            name, sign, value = word.partition("=")
            short = word[:2] if len(word) > 2 and word[1] != "-" else ""
            if name in options.inert or word in options.inert:
                if name in options.valued and left and (left[0].isdigit() or left[0] == "auto"):
                    left.pop(0)
            elif not word.startswith("-"):
                read._argument(word, options)
            elif options.letters and set(word[1:]) <= set(options.letters):
                continue
            elif name in options.narrow or name in options.other:
                (read.selection if name in options.narrow else read.other).append(word)
            elif options.valued_of(name):
                value = value if sign else left.pop(0) if left and not left[0].startswith("-") else ""
                read._valued(name, value, options)
            elif short and options.valued_of(short):
                read._valued(short, word[2:].lstrip("="), options)
            else:
                read.strange.append(word)
        if options.bare and not options.whole & set(words) and all(each.startswith("-") for each in read.selection):
            read.selection.append(options.bare)
        return read

    def _argument(self, word: str, options: Options) -> None:
        if word.startswith("@") or "=" in word.split("::")[0]:
            self.strange.append(word)
        elif word not in options.whole:
            self.selection.append(word)

    def _valued(self, name: str, value: str, options: Options) -> None:
        if not value:
            self.strange.append(name)
        elif f"{name}={value}" in options.inert:
            return
        elif name in options.folder:
            self.folder = value
        elif name in options.narrow_valued:
            self.selection.append(f"{name} {value}")
        elif name in options.other_valued:
            self.other.append(f"{name} {value}")
