"""Files that a command may have changed: what was read of them before is stale, or may be."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from context_session import Session, item, projected, snapshot, state_of
from scoped_retrieval.pipeline.context.changes import changed_files, may_change
from scoped_retrieval.pipeline.context.shell import SimpleCommand

CHANGES = {
    "sed -i s/1/2/ src/a.ts": ("src/a.ts",), "sed -i -e s/1/2/ -e s/3/4/ a.ts b.ts": ("a.ts", "b.ts"), "perl -pi -e s/1/2/ a.pl": ("a.pl",),
    "mv a.ts b.ts": ("a.ts", "b.ts"), "rm src/a.ts": ("src/a.ts",), "cd src && rm a.ts": ("src/a.ts",), "echo 1 > a.ts": ("a.ts",),
    "cat <<'EOF' > a.py\nx\nEOF": ("a.py",), "git checkout -- a.ts": ("a.ts",), "git checkout other": ("*",), "git stash pop": ("*",),
    "git pull --rebase": ("*",), "git reset --hard": ("*",), "git -C web merge x": ("*",), "patch -p1 < x.diff": ("*",), "black .": ("*",),
    "ruff format .": ("*",), "npx prettier --write src": ("*",), "eslint --fix src": ("*",), "rm -rf src": ("*",), "rm *.ts": ("*",),
    "curl -o a.ts https://x/b": ("a.ts",), "curl -sSLo a.ts https://x/b": ("a.ts",), "curl -oa.ts https://x/b": ("a.ts",), "curl --output=a.ts x": ("a.ts",),
    "curl -sO https://x.org/src/a.ts?raw=1": ("a.ts",), "wget -O a.ts https://x/b": ("a.ts",), "wget -qO a.ts https://x/b": ("a.ts",),
    "wget https://x.org/a.ts": ("a.ts",), "wget --output-document=a.ts x": ("a.ts",), "dd if=b.ts of=a.ts bs=1": ("a.ts",),
    "sort -o a.txt a.txt": ("a.txt",), "sort -u -oa.txt b.txt": ("a.txt",), "sort --output=a.txt b.txt": ("a.txt",),
    "awk -i inplace '{print}' a.txt b.txt": ("a.txt", "b.txt"), "gawk -i inplace -f x.awk a.txt": ("a.txt",), "echo 1 | tee -a a.ts b.ts": ("a.ts", "b.ts"),
    "cp b.ts a.ts": ("a.ts",), "cp new/a.ts src/": ("src/a.ts",), "cp a.ts b.ts src": ("src/a.ts", "src/b.ts"), "cp a.ts src": ("src/a.ts", "src"),
    "cp -t src a.ts b.ts": ("*",), "mv new/a.ts src/": ("new/a.ts", "src/a.ts"), "cd web && cp x/a.ts .": ("web/a.ts", "web"), "install -m 644 a.ts src/a.ts": ("src/a.ts",),
    "make 2> a.log": ("a.log",), "make &>> a.log": ("a.log",), "make >& a.log": ("a.log",), "cat b > a.ts 2>&1": ("a.ts",),
    "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: src/a.ts\n-1\n+2\n*** Move to: src/b.ts\n*** End Patch\nEOF": ("src/a.ts", "src/b.ts"),
    "apply_patch < x.patch": ("*",), "sort a | sponge a": ("a",), "git diff --output=a.diff": ("a.diff",),
    "git rm src/a.ts": ("src/a.ts",), "git rm -f a.ts b.ts": ("a.ts", "b.ts"), "git restore -s HEAD~1 a.ts": ("a.ts",), "cd web && git restore a.ts": ("web/a.ts",),
    "git mv a.ts b.ts": ("a.ts", "b.ts"), "git restore .": ("*",), "git rm -r src": ("*",), "git restore 'src/*.ts'": ("*",), "git mv a.ts src": ("*",), "git rm LICENSE": ("LICENSE",),
    "git restore 'src dir/a b.py' Makefile": ("src dir/a b.py", "Makefile"), "git restore release": ("*",), "sed -i s/1/2/ 'src dir/a b.py'": ("src dir/a b.py",),
    "ed -s a.ts <<'EOF'\n1d\nw\nEOF": ("a.ts",), "printf '1d\\nw\\n' | ed -s a.ts": ("a.ts",), "bash -lc 'curl -o a.ts https://x'": ("a.ts",),
    "rm -f a.ts": ("a.ts",), "sed -i '' s/1/2/ a.ts": ("a.ts",), "perl -i -pe s/1/2/ a.pl": ("a.pl",), "truncate -s 0 a.ts": ("a.ts",), "cp .env.example .env": (".env",),
    "sed -i s/1/2/ src/*.ts": ("*",), "git checkout -- .": ("*",), "git checkout HEAD~1 -- src": ("*",), "gofmt -l -w .": ("*",), "git pull && rm a.ts": ("*", "a.ts"),
    "black -l 100 .": ("*",), "isort -l 100 a.py": ("*",), "perl -0pi -e s/1/2/ a.pl": ("a.pl",), "> a.ts": ("a.ts",), "ls; >> a.ts 2>&1": ("a.ts",), "(> a.ts)": ("a.ts",),
    "(cat b; cat c) > a.ts": ("a.ts",), "(cd web && cat b) > a.ts": ("a.ts",), "echo $(date) > a.ts": ("a.ts",), "echo `date` >> a.ts; ls": ("a.ts",),
    "cp a.ts ..": ("../a.ts", ".."), "mv web/a.ts ..": ("web/a.ts", "../a.ts", ".."), "cp x.yml .github": (".github/x.yml", ".github"), "cp a.ts a.ts.bak": ("a.ts.bak",), "mv a.ts v1.2": ("a.ts", "v1.2/a.ts", "v1.2"),
    **dict.fromkeys(("rsync -avz src/ dst/", "cp -rp src d", "cp -fR a b", "rm -rfv src", "rm -fR src", "mv src lib", "mv src/ lib", "ln -sfn ../x src"), ("*",)),
    **dict.fromkeys(("git ls-files | xargs black", "ls | xargs gsed -i s/1/2/", "ls | xargs -I{} cp {} d/", "fd -e py -x sed -i s/1/2/", "parallel sed -i s/1/2/ ::: a.py"), ("*",)),
    **dict.fromkeys(("pre-commit run -a", "rubocop -A", "codespell -w", "ktlint -F", "biome check --apply-unsafe", "ruff check --fix-only", "jest -u", "swiftformat .", "php-cs-fixer fix"), ("*",)),
    **dict.fromkeys(("npm run format", "npm run lint:fix", "make lint-fix", "npm run prettier:write", "./gradlew spotlessApply", "mvn spotless:apply", "tox -e format", "hatch fmt", "dotnet format"), ("*",)),
    **dict.fromkeys(("find . -delete", "find . -exec rm {} +", "find . -exec sh -c 'sed -i s/1/2/ $1' _ {} ';'", "ls | xargs eslint --fix", "tar -xf a.tar", "tar --strip-components=1 -xzf a.tgz", "tar -p -xf a.tar", "mv a.ts utils dest"), ("*",)),
    "mv utils.py utils": ("utils.py", "utils/utils.py", "utils"), "yq eval -i .a=1 a.yml": ("a.yml",), "sd -f i old new a.py": ("a.py",),
    **dict.fromkeys(("pnpm --filter web format", "pnpm -C web lint:fix", "yarn --cwd web format", "npm run -w web format", "yarn workspace web format", "npm run-script format", "nx run-many -t format", "nx run web:format", "deno task fmt"), ("*",)),
    **dict.fromkeys(("cargo +nightly fmt", "cargo xtask fmt", "go -C dir fmt ./...", "turbo run lint format", "nox -rs format", "nox -s lint format", "npm run check:fix", "npm run format:tests", "./gradlew formatKotlin"), ("*",)),
    **dict.fromkeys(("sd old new $(git grep -l old)", "rg -l x | xargs sd x ''", "ls | parallel --jobs 4 sed -i s/1/2/", "ls | xargs --max-procs 4 black", "ls | xargs -J % mv % src", "curl -L x | tar -xzf-", "tar -xzf/tmp/a.tgz"), ("*",)),
    **dict.fromkeys(("pnpm -w format", "pnpm run -w format", "make -w format", "yarn workspaces foreach -Apt run format", "pnpm --loglevel error run format", "pnpm -r run format", "nx run @acme/web:format", "tox -e lint -e format", "uv run poe fix", "npm run fixAll", "ls | xargs -I{} find {} -exec npx eslint --fix {} +"), ("*",)),
    "sd x '' a.py": ("a.py",), "cp config.example config": ("config",), "cp .env.local .env": (".env",),
    **dict.fromkeys(("gh pr checkout 1", "glab mr checkout 2", 'x="$(git stash pop 2>&1)"', 'x="$(sed -i s/1/2/ a.ts)"', "git stash push -m show"), ("*",)),
    "npm install -D lodash": ("package.json",), "cd web && yarn add x": ("web/package.json",), "uv add x": ("pyproject.toml",), "cargo add x": ("Cargo.toml",), "go mod tidy": ("go.mod",), "npm version patch": ("package.json",),
    "yq -i .a=1 a.yml": ("a.yml",), "sd old new a.py": ("a.py",), "builtin cd web && rm a.ts": ("web/a.ts",), "grep for a.py; cd web; rm a.ts": ("web/a.ts",),
    "cat > a.ts <<E\n" + "x" * 22_000 + "\nE\nsed -i s/1/2/ b.ts": ("*", "a.ts"),
    "x --output build/a.js": ("build/a.js",), "x --output=a.js": ("a.js",), "curl --output LICENSE https://x": ("LICENSE",),
}  # fmt: skip
CHANGES_NOTHING = (
    "git status", "git stash list", "git checkout -b fix", "git reset HEAD a.ts", "git restore --staged a.ts", "git commit -am x", "sed -n 1p a.ts",
    "black --check .", "ruff format --check .", "ls 2>/dev/null", "grep -w format a.ts", "pytest", "tar -tf a.tar", "echo 'a > b'",
    "curl https://x/a.ts", "wget -qO- https://x/a.ts", "dd if=a.ts of=/dev/null", "sort a.txt", "awk '{print}' a.txt", "make 2>&1", "grep -o x a.ts", "curl -o - https://x",
    "ssh -o A=b host", "patch --dry-run -p1 < x.diff", "patch -C -p1", "git apply --check x.diff", "git apply --numstat x.diff", "ruff format --diff .",
    "ruff check --fix --diff .", "black --diff a.py", "isort --check-only .", "npx prettier --check src", "cargo fmt -- --check",
    "npm run format:check", "npm run check:format", "npm run formatCheck", "npm run format:web:check", "npm run test:format", "npm run fix:check", "npm run format:dryrun", "ls | xargs -I{} find {} -name git", "make verify-format", "tox -e check-format", "uv run poe check-format",
    "just test tests/test_cli.py::test_date_format", "make test T=format", "poe test -k test_format", "poe test tests/date_format", "make build/code-format", "poe lint -- format", "nox -s lint -k format", "tar -cvzfexample.tgz src", "./gradlew spotlessCheck",
    "make fmt-check", "cargo test format_date", "npm test -- format.test.ts", "npm ls prettier", "gradle test --tests FormatTest", "find . -name ed", "fd install", "ls | xargs grep -l install",
    "ls -d */ | xargs -I{} find {} -name x", "ls | sd a b", "ls | xargs ruff check", "sd -p old new a.py", "git clean -nd", "git clean -fdn", "git submodule status", "git bisect log", "git stash clear", "git rm -n a.ts", "git mv --dry-run a.ts b.ts", "terraform fmt -check", "mix format --check-formatted", "dotnet format --verify-no-changes",
    "tar -tvf a.tar", "tar tzf a.tgz", "tar -czf x.tgz src", "unzip -p a.zip", "npm install", "npm run formatter", "npm run info -- --format=json", "find . -exec grep -l x {} +", 'echo "n: $(grep -c "=>" a.ts)"', 'git commit -m "$(printf "a -> b")" && ls',
    "kubectl get pods --output json", "aws s3 ls --output=table", "kubectl get pods --output jsonpath={.items}", "gofmt -l .", "prettier -l .", "perl -Ilib -Mstrict a.pl", "< a.ts",
)  # fmt: skip


@pytest.mark.parametrize(("command", "paths"), CHANGES.items())
def test_what_a_command_may_change_is_read_from_its_programs(command: str, paths: tuple[str, ...]):
    assert may_change(command) == paths


@pytest.mark.parametrize(
    ("command", "folder", "path"),
    [
        ("git rm /home/u/shop/src/a.ts", "", "src/a.ts"), ("cd /home/u/shop && rm src/a.ts", "web", "src/a.ts"), ("cd ..; rm shop/a.ts", "", "a.ts"), ("rm ~/shop/a.ts", "", "a.ts"), ("rm a.ts", "web", "web/a.ts"),
        ("cat > /home/u/shop/a.ts <<'EOF'\nx\nEOF", "web", "a.ts"), ("rm /home/u/other/a.ts", "", "/home/u/other/a.ts"), ("git pull", "web", "*"),
    ],
)  # fmt: skip
def test_a_file_is_named_from_the_root_of_the_session(command: str, folder: str, path: str):
    assert changed_files(command, folder, "/home/u/shop") == ((path,), ())


@pytest.mark.parametrize("command", CHANGES_NOTHING)
def test_other_commands_change_nothing(command: str):
    assert may_change(command) == ()


PATCH = "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: src/a.ts\n@@\n-1\n+2\n*** End Patch\nEOF"
OWN = "apply_patch\n*** Update File: src/a.ts"
"""How the importer writes a patch that failed."""
SED = "sed -i s/1/2/ src/a.ts"
FAILED = [
    *((command, "Failed to find expected lines in src/a.ts", "", "") for command in (PATCH, OWN, f"cd . && {PATCH}", f"{PATCH}\npytest")),
    ("git apply x.diff", "error: src/a.ts: patch does not apply", "", ""),
    ("git checkout -- src/a.ts", "error: pathspec 'src/a.ts' did not match", "", "src/a.ts"), ("git rm src/a.ts", "error: it has local modifications", "", "src/a.ts"),
    ("rm src/a.ts", "rm: cannot remove 'src/a.ts': Permission denied", "", "src/a.ts"), (SED, "sed: can't read src/a.ts: Permission denied", "", "src/a.ts"),
    (f"{SED} && pytest", "sed: can't read src/a.ts", "", "src/a.ts"), (f"{SED} && grep -c 2 src/a.ts", "", "", "src/a.ts"), (f"pytest && {SED}", "1 failed in 0.1s", "", "src/a.ts"),
    (f"pytest && {SED} && git commit -m x", "1 failed in 0.1s", "", "src/a.ts"), (f"cd web && {SED} && pytest", "bash: cd: web: No such file", "", "web/src/a.ts"),
    ("cd web && env > a.ts", "bash: line 1: cd: web: No such file", "", "web/a.ts"), (f"mkdir -p x && {SED} && pytest", "mkdir: cannot create directory", "", "src/a.ts"),
    # another program of the line failed: a check that ran after it printed its summary
    (f"{SED} && pytest", "F\n1 failed in 0.1s", "src/a.ts", ""), (f"{SED}; false", "", "src/a.ts", ""), (f"{SED} && npx eslint .", "src/b.ts\n 1:1 error", "", "src/a.ts"), (f"{SED} && grep -c 2 src/a.ts", "Exit code 1", "", "src/a.ts"),
    ("git checkout -- src/a.ts && npm run build", "error during build:", "", "src/a.ts"), ("git mv src/a.ts src/b.ts; cargo test", "test result: FAILED. 0 passed; 1 failed", "src/a.ts src/b.ts", ""),
    ("git checkout -- src/a.ts && cargo test", "error: pathspec 'src/a.ts' did not match", "", "src/a.ts"), ("git rm src/a.ts && x", "fatal: pathspec", "", "src/a.ts"),
    (f"{PATCH}\npytest", "Success. Updated the following files:\nM src/a.ts\n1 failed in 0.1s", "src/a.ts", ""),
    # a shell opens what is printed into, whatever comes of the program
    ("node gen.js > src/a.ts", "", "src/a.ts", ""), ("cd web && node gen.js > a.ts", "", "web/a.ts", ""), ("node gen.js | tee src/a.ts", "", "", "src/a.ts"), ("npm ci && node gen.js > src/a.ts", "", "", "src/a.ts"),
    ("env > a.ts", "", "a.ts", ""), ("exec 2> err.log", "", "err.log", ""), ("FOO=1 > a.ts", "", "a.ts", ""), ("cd web && sudo > a.ts", "", "web/a.ts", ""), ("cat > src/a.ts <<'EOF'\nx\nEOF\nnpx tsc", "src/a.ts(1,1): error TS1", "src/a.ts", ""),
    *((f"echo x > {path}; ls", said, "", path) for path, said in (("/Users/x/a.ts", "zsh:1: operation not permitted: /Users/x/a.ts"), ("a.ts", "bash: a.ts: cannot overwrite existing file"))),
    # a shell that refuses the line, or ends it
    (f"{SED}; cat src/(auth)/p.tsx; ls", "bash: -c: line 1: syntax error near unexpected token `('", "", "src/a.ts"), ("set -u\necho $X\nrm a.ts\nls", "bash: X: unbound variable", "", "a.ts"),
    # a summary is of a check that ran after it only if nothing before can have printed one, and a check comes after
    *((f"{before} && {SED} && git commit -am x", "1 failed in 0.1s", "", "src/a.ts") for before in ("docker compose run --rm web pytest", "npm run e2e", "php artisan test", "cat t.log")),
    (f"docker compose run web pytest && {SED} && pytest", "1 failed in 0.1s", "", "src/a.ts"), (f"grep -q foo src/a.ts || {SED} && pytest", "1 failed in 0.1s", "", "src/a.ts"),
    (f"cd . && rm b.ts && {SED} && pytest", "1 failed in 0.1s", "b.ts src/a.ts", ""), *((f"{before} && {SED} && pytest", "1 failed in 0.1s", "src/a.ts", "") for before in
      ("source .venv/bin/activate", ". act.sh && cd .", "mkdir x", "touch b", "chmod +x b", "test -f b", "export A=1", "ls")),
    ("pytest || exit 1; rm a.ts; ls", "1 failed in 0.1s", "", "a.ts"), ("if ! pytest; then exit 1; fi\nrm a.ts\nls", "1 failed in 0.1s", "", "a.ts"), (f"mkdir src && {SED} && pytest", "mkdir: cannot create directory 'src': File exists", "", "src/a.ts"),
    *((f"cd web && {SED} && pytest", f"{said}no such file or directory: web", "", "web/src/a.ts") for said in ("(eval):cd:1: ", "zsh:cd:1: ", "/bin/zsh:cd:12: ")),
    # a `cd` whose error nobody saw may have failed
    *((f"{before}cd web 2>/dev/null && echo y > a.ts", "", "", f"{at}web/a.ts") for before, at in (("", ""), ("cd web; ", "web/"))), ("cd web 2>/dev/null | grep x && echo y > a.ts", "", "", "a.ts"),
    ("git apply --reject x.diff", "error: patch failed", "*", ""), ("git pull", "fatal: no remote", "*", ""), ("black .", "error: cannot format a.py", "*", ""),
]  # fmt: skip


@pytest.mark.parametrize(("command", "said", "sure", "doubtful"), FAILED)
def test_what_failed_may_have_left_a_file_as_it_was(command: str, said: str, sure: str, doubtful: str):
    assert [*map(" ".join, changed_files(command, failed=True, output=said))] == [sure, doubtful]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (SED, "sed: can't read src/a.ts: No such file or directory\n3 passed in 0.1s"), ("cd web; sed -i s/1/2/ src/a.ts", "bash: cd: web: No such file\nb.ts"), ("perl -pi -e 's/(/x/' src/a.ts", "Unmatched ( in regex; marked by <-- HERE"),
        ("gsed -i s/1/2/ src/a.ts", "zsh:1: command not found: gsed"), ("git checkout -- src/a.ts", "bash: git: command not found"), ("sudo sed -i s/1/2/ src/a.ts", "sudo: a password is required"), ("printf w | ed -s src/a.ts", "?"),
        ("ruby -i -pe 'x(' src/a.ts", "-e:1: syntax error"), (SED, "sed: -e expression #1, char 5: unterminated `s' command"), (SED, "sed: no input files"), ("cp b.ts src/a.ts", "cp: 'b.ts' and 'src/a.ts' are the same file"),
        ("cp b.ts src/a.ts", "cp: src/a.ts: Keine Berechtigung"), ("perl -pi -e 's/a/b' src/a.ts", "Substitution replacement not terminated at -e line 1."), ("sudo rm src/a.ts", "Sorry, try again."), (f"mkdir src; {SED}", "mkdir: cannot create directory 'src': File exists"),
    ],
)  # fmt: skip
def test_an_error_message_of_any_program_makes_those_whose_exit_nobody_saw_uncertain(command: str, said: str):
    for failed in (True, False):
        assert not {"src/a.ts", "web/src/a.ts"} & {*changed_files(f"{command}; ls", failed=failed, output=said).sure}
    assert changed_files(f"{PATCH}; ls", output="Failed to find expected lines in src/a.ts\nsrc") == ((), ())


CERTAIN = (
    "rm a.ts", "rm a.ts; ls", "ls\nrm a.ts", "rm a.ts && pytest; ls", "pytest && rm a.ts", "pytest && rm a.ts | cat", "pytest; ls && rm a.ts", "ls &&\n\nrm a.ts", "set -e\npytest\nrm a.ts", "exec 2>&1; rm a.ts",
    "mkdir -p x && cd x && echo 1 > ../a.ts; ls", "echo hi > no/x && rm a.ts; ls", "cd web && rm /x/a.ts; ls", "grep x b | tee a.ts > /dev/null", "rm a.ts 2>&1; ls", "(pytest && rm a.ts)", "bash -c 'pytest && rm a.ts'", "bash -lc 'rm a.ts; ls'",
    "cat > a.ts <<'EOF'\nx || y\nEOF\nls", "rm a.ts || true", "rm a.ts; ls || exit 1", "wget -nv -O a.ts http://x/a", "rsync -i b.ts a.ts", "rm a.ts 2>/dev/null", "cd x 2>/dev/null && rm /x/a.ts", "git commit -m 'a || b (c)'; rm a.ts; ls", "rm a.ts; for i in *; do ls; done",
)  # fmt: skip
"""Plain lines, and plain parts at the start of a line, that succeeded: the program that changes `a.ts` ran."""
UNCERTAIN = (
    # behind `&&` in a list whose exit nobody saw, or whose error nobody saw
    "pytest && rm a.ts; echo done", 'make test && mv b.ts a.ts; echo "exit: $?"', "cd web && pytest && rm a.ts; ls", "pytest && cat b | tee a.ts; ls", "cd x 2>/dev/null && rm /x/a.ts; ls", "pytest &&\nrm a.ts; ls",
    "pytest && # note\nrm a.ts\nls", "rm a.ts 2>/dev/null; ls", "cp b.ts a.ts &> /dev/null; ls", "cp b.ts a.ts 2>err.txt; ls", "git checkout -- a.ts > /tmp/l 2>&1; ls", "sed -i s/1/2/ a.ts 2>&1 | grep -v x; ls", "rm a.ts 2>/dev/null | cat", "curl -s -o a.ts x; ls",
    # options that keep what exists
    "mv -i b.ts a.ts", "rsync --dry-run b.ts a.ts", "rsync --ignore-existing b.ts a.ts", "wget -nc http://x/a.ts", "wget -qnc http://x/a.ts", "wget -N http://x/a.ts", "cp -n b.ts a.ts", "mv -n b.ts a.ts", "cp -u b.ts a.ts", "cp --no-clobber b.ts a.ts",
    "pytest ||\nrm a.ts\nls",
    # behind `||`, a group, a substitution, a loop, a branch, a function or a program in the background
    "grep -q x a.ts || echo x >> a.ts", "[ -f a.ts ] || cp b.ts a.ts", "mkdir x && rm a.ts || true", "pytest || true && rm a.ts", "(cd x && pytest && rm /x/a.ts) 2>&1 | tail -5", "bash -c 'pytest && rm a.ts' | tail",
    "echo $(pytest && rm a.ts)", "! (pytest && rm a.ts)", "(set -e; pytest; rm a.ts) | tail", "bash -ec 'pytest; rm a.ts' | tail", "(pytest || exit 1); rm a.ts; ls", "ls; (pytest && rm a.ts)", "x=$(date); rm a.ts", "npm start & rm a.ts",
    "{ pytest || exit 1; rm a.ts; } | tail", "if grep -q x b; then ls; rm a.ts; fi", "for i in 1 2; do pytest && break; rm a.ts; done", "while read f; do rm a.ts; done < x", "case x in y) rm a.ts;; esac", "fix() { rm a.ts; }; ls",
    "rm a.ts & ls", "(rm a.ts; ls) | tail", "diff <(ls) b; rm a.ts", "(cd x); [ -f b ] && rm a.ts; echo $(ls)",
    # behind a program that may have left the line
    "exit 0; rm a.ts", "[ -f b ] && exit 0; rm a.ts; ls", "pytest || exit 1; rm a.ts; ls", "cd x || exit 1\nrm /x/a.ts\nls", "exec pytest; rm a.ts", "skip() { exit 0; }\n[ -f x ] && skip\nrm a.ts\nls",
)  # fmt: skip


@pytest.mark.parametrize(
    ("command", "ran"), [*((each, True) for each in CERTAIN), *((each, False) for each in UNCERTAIN)]
)
def test_a_program_that_may_not_have_run_may_have_changed_its_files(command: str, ran: bool):
    sure, doubtful = changed_files(command, output="1 failed in 0.1s\ndone")
    assert [any(path.endswith("a.ts") for path in paths) for paths in (sure, doubtful)] == [ran, not ran]


@pytest.mark.parametrize(
    ("start", "ran"),
    [
        ("set -e", False),
        ("set -euo pipefail", False),
        ("set -o errexit", False),
        ("set -x", True),
        ("set -e; true", False),
        ("set -Eeuo pipefail", False),
    ],
)
def test_a_line_with_an_option_to_end_early_may_have_ended_where_a_program_failed(start: str, ran: bool):
    line = f"{start}\nrm b.ts\npytest\nrm a.ts\nls"
    sure, doubtful = changed_files(line, failed=True, output="1 failed in 0.1s")
    assert ("a.ts" in sure, "a.ts" in doubtful) == (ran, not ran)
    assert changed_files(line, output="1 passed in 0.1s").sure == ("b.ts", "a.ts")


@pytest.mark.parametrize(
    ("line", "sure", "doubtful"),
    [
        ("npm run dev; rm a.ts; ls", "", "a.ts"), ("pytest; rm a.ts; echo done", "", "a.ts"), ("rm a.ts; npm run dev", "a.ts", ""), ("cd web && rm a.ts && pytest; rm b.ts", "web/a.ts", "b.ts"),
        ("npm run dev > a.ts", "", "a.ts"), ("sleep 600; rm a.ts; ls", "", "a.ts"), ("git push; rm a.ts; ls", "", "a.ts"), ("git rm b.js; rm a.ts; npm test", "b.js a.ts", ""), ("perl -e 1; rm a.ts", "", "a.ts"),
        ("source .venv/bin/activate\nrm a.ts\npytest", "a.ts", ""), ("source run.sh; rm a.ts", "", "a.ts"), ("curl -o big.zip http://x/y.zip; rm a.ts", "", "big.zip a.ts"),
        ("cat > a.ts <<'EOF'\nx\nEOF\nnpm test", "a.ts", ""), ("rm a.ts && npm test", "a.ts", ""),
    ],
)  # fmt: skip
def test_what_comes_after_a_program_that_was_broken_off_is_in_doubt(line: str, sure: str, doubtful: str):
    found = changed_files(line, failed=True, broken_off=True, output="listening")
    assert found == (
        tuple(sure.split()),
        tuple(doubtful.replace("b.ts", "web/b.ts" if "cd" in line else "b.ts").split()),
    )


def test_a_file_behind_a_command_that_ran_out_of_time_is_not_named_as_modified():
    for ended in ({"timedOut": True}, {"exitCode": 124}, {"exitCode": 137}, {"interrupted": True}):
        session = Session()
        session.add("command.finished", turn=1, command=f"npm run dev; {SED}; ls", stdout="listening", **ended)
        assert state_of(session)["modified_files"] == [], ended


@pytest.mark.parametrize(
    ("line", "files"),
    [
        ('for f in a.ts b.ts; do echo x >> "$f"; done', "*"), ('F=src/a.ts; echo x > "$F"', "*"), ('cat > "$D/n.ts" <<\'EOF\'\nx\nEOF', "*"), ("ls > *.ts", "*"), ('make > "$LOG"', "$LOG"), ("x > $OUT_FILE", "*"), ("pytest > run_$i.log", "run_$i.log"), ("node gen.js > $ROUTES/a.ts", "*"),
        ("rm {a,b}.ts", "*"), ("mv a.{ts,tsx}", "*"), ("cp a.ts{,.bak}", "*"), ("sed -i s/1/2/ {a,b}.ts", "*"), ("rm a{1..3}.ts", "*"), ("git checkout -- {a,b}.ts", "*"), ("rm '{x}.ts'", "{x}.ts"),
        ('git commit -m "$(cat <<\'EOF\'\nRender "a -> b" arrows, don\'t\nEOF\n)"', ""), ('rm a.ts\nrm b.ts\ngit commit -m "$(cat <<EOF\nFix "don\'t" thing > x\nEOF\n)"', "a.ts b.ts"),
        ("cat > 'app/[slug]/page.tsx' <<'EOF'\nx\nEOF", "app/[slug]/page.tsx"), ("sed -i s/a/b/ 'app/[slug]/a.tsx'", "app/[slug]/a.tsx"), ("cat > 'app/users.$id.tsx'", "app/users.$id.tsx"), ("rm 'x{1,2}.ts'", "x{1,2}.ts"),
        ("echo x > $HOME/a.ts", "~/a.ts"), ("for f in a b; do echo x >> /repo/$f.ts; done", "*"), ("curl -o /repo/$D/a.ts http://x", "*"), ("rm ~/proj/{a,b}.ts", "*"),
        ("for l in en de; do echo > locales/$l.json; done", "*"), ("cp a.ts b.ts; cp a.ts a.ts.bak.$(date +%s)", "b.ts a.ts.bak."), ('rm $(find . -name "*.orig")', "*"), ("rm -f $(git ls-files -d) a.ts", "*"), ('git commit -m "$(cat <<E\nA\nE\n b)"; rm a.ts; git commit -m "$(cat <<E\nB\nE\n)"', "a.ts"),
        ("git -C $D rm a.ts", "*"), ("git --no-pager -C web rm a.ts", "web/a.ts"), ("git -c a=b -C web rm a.ts", "web/a.ts"), ("/usr/bin/git -C web rm a.ts", "web/a.ts"), ("git -C web -C x rm a.ts", "web/x/a.ts"),
        ("pushd no >/dev/null 2>&1; rm a.ts; ls", "no/a.ts a.ts"),
    ],
)  # fmt: skip
def test_a_word_that_a_shell_expands_names_no_file(line: str, files: str):
    assert may_change(line) == tuple(files.split())


def test_a_file_of_a_program_that_may_not_have_run_is_not_named_as_modified():
    session = Session()
    session.add("file.read", turn=1, path="a.ts", text="const a = 1")
    session.add("command.finished", turn=2, command="pytest && rm a.ts; echo done", exitCode=0, stdout="1 failed\ndone")
    seen = projected(session)
    assert seen.state["modified_files"] == [] and "may have changed since" in seen.text()


FOLDERS = {
    f"(cd web && npm ci) && {SED}": "src/a.ts", f"(cd web; npm ci)\n{SED}": "src/a.ts", f"x=$(cd web && pwd); {SED}": "src/a.ts", f"x=`cd web; pwd`; {SED}": "src/a.ts",
    f"pushd web; npm ci; popd; {SED}": "src/a.ts", f"cd web; npm ci; cd -; {SED}": "src/a.ts", f"cd web && npm start & {SED}": "src/a.ts",
    f"bash -c 'cd web && npm ci'; {SED}": "src/a.ts", f"(cd web && {SED}); (cd api && rm b.ts)": "web/src/a.ts api/b.ts",
    f"cd -P web && {SED}": "web/src/a.ts", f"cd web; cd ..; {SED}": "src/a.ts", f"cd /x && {SED}": "/x/src/a.ts",
    f"cd web && npm start > /tmp/l 2>&1 &\n{SED}": "/tmp/l src/a.ts", f"bash -lc 'cd web && npm start & {SED}'": "src/a.ts", f"pushd web; cd src; npm ci; popd; {SED}": "src/a.ts",
    f"cd web | cat; {SED}": "src/a.ts", f"pushd web >/dev/null; {SED}; popd >/dev/null; rm b.ts": "web/src/a.ts b.ts", f"git -C web checkout -- src/a.ts && {SED}": "web/src/a.ts src/a.ts",
    f"for i in 1 2; do {SED}; done": "src/a.ts", f"if [ -f b ]; then ls; fi; {SED}": "src/a.ts", f"{{ ls; {SED}; }} > /tmp/l": "src/a.ts /tmp/l", f"ls; (ls && {SED})": "src/a.ts",
    f"cd ~/proj && {SED}": "~/proj/src/a.ts", f"cd C:/p && {SED}": "C:/p/src/a.ts",
}  # fmt: skip
"""Lines and the files that they may have changed, in the folders in which their programs ran."""
UNKNOWN_FOLDERS = {
    # a folder that the line does not show
    f'cd "$ROOT" && {SED}': ("", "*"), f"cd $(git rev-parse --show-toplevel) && {SED}": ("", "*"), f"popd; {SED}": ("", "*"), f"cd -; {SED}": ("", "*"), 'cd "$ROOT" && rm /x/a.ts': ("", "/x/a.ts"),
    f"cd packages/$(cat n) && {SED}": ("", "*"), 'cd "$ROOT" && pytest > out.log': ("", "out.log"), "; ".join(f"cd ../p{n} 2>/dev/null" for n in range(40)) + "; rm x.ts": ("", "*"),
    # a `cd` that failed, or may not have run, or whose message nobody sees
    **{f"cd web{end}{SED}": ("cd: web: No such file", "web/src/a.ts src/a.ts") for end in ("; ", "\n", " || true; ", " && ls; ")},
    f"cd web 2>/dev/null; {SED}": ("", "web/src/a.ts src/a.ts"), f"cd web && {SED}": ("cd: web: No such file", "web/src/a.ts"), "cd web; rm /x/a.ts": ("cd: web: No such file", "/x/a.ts"),
    f"(cd web; (cd x; ls); {SED})": ("", "web/src/a.ts src/a.ts"), f"{{ cd web; {SED}; }}; rm b.ts": ("", "web/src/a.ts src/a.ts web/b.ts b.ts"),
    f"cd api || cd web && {SED}": ("", "api/web/src/a.ts api/src/a.ts"), f"ls || (rm a.ts; {SED})": ("", "a.ts src/a.ts"), f"ls && for i in *; do {SED}; done": ("", "src/a.ts"),
    f"while read f; do {SED}; done < x": ("", "src/a.ts"), f"case x in y) {SED};; esac": ("", "src/a.ts"), "cat b > src/a.ts; ls": ("bash: src/a.ts: Permission denied", "src/a.ts"),
    f"[ -d x ] && cd x; {SED}": ("", "x/src/a.ts src/a.ts"), f"pytest || cd web; {SED}": ("", "web/src/a.ts src/a.ts"), f"mkdir web && cd web; {SED}": ("mkdir: File exists", "web/src/a.ts src/a.ts"),
    **{f"cd web; ({inner})": ("cd: web: No such file", "web/a.ts a.ts") for inner in ("rm a.ts", "ls; rm a.ts")}, "cd web; bash -c 'rm a.ts'": ("cd: web: No such file", "web/a.ts a.ts"),
    "cd web && (rm a.ts; rm b.ts); ls": ("cd: web: No such file", "web/a.ts web/b.ts"), "cd web && bash -c 'rm a.ts; rm b.ts'; ls": ("cd: web: No such file", "web/a.ts web/b.ts"),
}  # fmt: skip
"""Lines, what they print, and the files that they may have changed, in all folders in which their programs may have run."""


@pytest.mark.parametrize(("command", "paths"), FOLDERS.items())
def test_a_file_is_named_by_the_folder_in_which_its_program_ran(command: str, paths: str):
    assert sorted(may_change(command)) == sorted(paths.split())


@pytest.mark.parametrize(("command", "expected"), UNKNOWN_FOLDERS.items())
def test_a_file_in_one_of_several_folders_is_in_doubt_in_each(command: str, expected: tuple[str, str]):
    said, paths = expected
    found = changed_files(command, output=said)
    assert " ".join((*found.sure, *found.doubtful)) == paths and set(found.sure) <= {"*"}


@pytest.mark.parametrize(("before", "said"), [("cd web", "cd: web: No such file"), ("mkdir src", "mkdir: File exists")])
@pytest.mark.parametrize(
    "later",
    [
        "(rm a.ts; rm b.ts); ls",
        "bash -c 'rm a.ts; rm b.ts'",
        "for i in 1 2; do echo > a.ts; done",
        "(\nrm a.ts\nrm b.ts\n)",
    ],
)
def test_nothing_after_a_program_that_failed_and_decides_what_runs_is_certain(before: str, said: str, later: str):
    for failed in (True, False):
        assert changed_files(f"{before} && {later}", failed=failed, output=said).sure == ()


@pytest.mark.parametrize(
    "line",
    [
        "{ a;" * 4990 + "rm x",
        "if a;" * 3000 + "rm x",
        " && ".join(f"rm a{n}" for n in range(1200)) + " && pytest",
        "&& echo > f",
        "< a.ts && echo x > f",
        'git commit -m "' + "$(cat <<E\n" * 500 + "\n" * 10000 + '"',
        "rm {" + "," * 19000,
        "(a;" * 6600,
        "$(a " * 6600,
        "(rm a;" * 2500 + ")" * 2500,
        ";".join(f"cd a{n} >f" for n in range(1500)) + ";rm x",
        "rm " + " ".join(f"a/b{n}.ts" for n in range(1500)),
        "cp " + "a " * 9000 + "b",
        'echo "' + "$(a " * 4000 + '"',
        "xargs " * 3000 + "rm",
        "xargs env " * 2000 + "rm",
    ],
)
def test_deep_and_long_lines_take_no_more_than_their_length(line: str):
    tracemalloc.start()
    changed_files(line, output="cd: a: no")
    assert tracemalloc.get_traced_memory()[1] < 60_000_000
    tracemalloc.stop()


def test_a_file_read_before_a_cd_that_failed_is_in_doubt():
    session = Session()
    session.add("file.read", turn=1, path="src/a.ts", text="const a = 1")
    session.add(
        "command.finished",
        turn=2,
        command=f"cd web\n{SED}\nls",
        exitCode=0,
        stdout="bash: line 1: cd: web: No such file\nsrc",
    )
    seen = projected(session)
    assert seen.state["modified_files"] == [] and "may have changed since" in seen.text()


def test_a_long_line_is_read_in_one_pass():
    reads = 0

    def read(step: SimpleCommand) -> None:
        nonlocal reads
        reads += 1

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("scoped_retrieval.pipeline.context.program_results.check_of", read)
        changed_files(" && ".join(f"rm {n}" for n in range(300)) + " && pytest", failed=True, output="1 failed in 0.1s")
    assert reads == 301


@pytest.mark.parametrize("command", [PATCH, OWN])
def test_a_patch_that_failed_leaves_the_content_fresh(command: str):
    text, reasons = after(command, exitCode=1, stdout="Failed to find expected lines in src/a.ts")
    assert "const a = 1" in text and "may have changed" not in text and "Excluded" not in text
    assert reasons["event:e2"] not in ("stale_version", "may_have_changed")
    assert "const a = 1" not in after(PATCH, exitCode=0, stdout="")[0], "one that did not fail is a change"


@pytest.mark.parametrize(
    "ended",
    [
        {"exitCode": 1},
        {"failed": True},
        {"timedOut": True},
        {"interrupted": True},
        {"isError": True},
        {"status": "failed"},
        {"success": False},
    ],
    ids=str,
)
def test_a_file_that_a_failed_command_names_may_have_changed(ended: dict[str, bool]):
    for command in ("git checkout -- src/a.ts", "rm /repo/src/a.ts"):
        text, reasons = after(command, root="/repo", stdout="", **ended)
        assert "const a = 1" in text and reasons["event:e2"] == "may_have_changed"
        assert reasons["item:snap-1:code#1"] != "may_have_changed", "it names no other file"


def after(command: str, root: str | None = None, **ended: Any) -> tuple[str, dict[str, str]]:
    ended = ended or {"exitCode": 0, "stdout": ""}
    session = Session()
    session.add("command.finished", turn=1, command="pytest", exitCode=0, stdout="3 passed")
    session.add("file.read", turn=1, path="src/a.ts", version="1", text="const a = 1")
    session.add("retrieval.snapshot.created", turn=1, snapshotId="snap-1")
    session.add("command.finished", turn=2, command=command, **ended)
    session.add("command.finished", turn=3, command="ls", exitCode=0, stdout="src")
    seen = projected(
        session,
        snapshots=[snapshot(item(path="src/b.ts", text="const b = 1"))],
        turn={"workingDirectory": root} if root else {},
    )
    changes = changed_files(command, failed=ended.get("exitCode") != 0, output=ended.get("stdout", ""))
    assert seen.state["verification"] == (None if any(changes) else "pytest: passed")
    return seen.text(), {row["source_id"]: row["reason_code"] for row in seen.decisions}


def test_a_file_that_a_command_names_is_stale():
    text, reasons = after("sed -i s/1/2/ src/a.ts")
    assert "const a = 1" not in text and reasons["event:e2"] == "stale_version"
    assert "const b = 1" in text and "may have changed" not in text
    text, reasons = after("sed -i s/1/2/ /repo/src/a.ts", root="/repo")
    assert reasons["event:e2"] == "stale_version", "by the name that it has from the working directory"


def test_what_was_read_before_a_command_that_names_no_file_says_that_it_may_have_changed():
    text, reasons = after("git checkout other")
    assert "const a = 1" in text and reasons["event:e2"] == "may_have_changed" == reasons["item:snap-1:code#1"]
    assert text.count("may have changed since, by a later command or agent") == 2
    assert "may have changed" not in after("git status")[0]


def test_a_file_that_is_read_again_is_as_it_is_now():
    session = Session()
    session.add("file.read", turn=1, path="src/a.ts", text="const a = 1")
    session.add("command.finished", turn=2, command="git pull", exitCode=0, stdout="")
    session.add("file.read", turn=3, path="src/a.ts", text="const a = 2")
    session.add("command.finished", turn=4, command="ls", exitCode=0, stdout="src")
    text = projected(session).text()
    assert "const a = 2" in text and "const a = 1" not in text and "may have changed" not in text
