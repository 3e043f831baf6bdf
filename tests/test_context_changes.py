"""Files that a command may have changed: what was read of them before is stale, or may be."""

from __future__ import annotations

import pytest
from context_session import Session, item, projected, snapshot
from scoped_retrieval.pipeline.context.changes import may_change

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
    "cp b.ts a.ts": ("a.ts",), "cp new/a.ts src/": ("src/a.ts",), "cp a.ts b.ts src": ("src/a.ts", "src/b.ts"), "cp a.ts src": ("src", "src/a.ts"),
    "cp -t src a.ts b.ts": ("*",), "mv new/a.ts src/": ("new/a.ts", "src/a.ts"), "cd web && cp x/a.ts .": ("web", "web/a.ts"), "install -m 644 a.ts src/a.ts": ("src/a.ts",),
    "make 2> a.log": ("a.log",), "make &>> a.log": ("a.log",), "make >& a.log": ("a.log",), "cat b > a.ts 2>&1": ("a.ts",),
    "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: src/a.ts\n-1\n+2\n*** Move to: src/b.ts\n*** End Patch\nEOF": ("src/a.ts", "src/b.ts"),
    "apply_patch < x.patch": ("*",), "sort a | sponge a": ("a",), "git diff --output=a.diff": ("a.diff",),
    "git rm src/a.ts": ("src/a.ts",), "git rm -f a.ts b.ts": ("a.ts", "b.ts"), "git restore -s HEAD~1 a.ts": ("a.ts",), "cd web && git restore a.ts": ("web/a.ts",),
    "git mv a.ts b.ts": ("a.ts", "b.ts"), "git restore .": ("*",), "git rm -r src": ("*",), "git restore 'src/*.ts'": ("*",), "git mv a.ts src": ("*",), "git rm LICENSE": ("LICENSE",),
    "git restore 'src dir/a b.py' Makefile": ("src dir/a b.py", "Makefile"), "git restore release": ("*",), "sed -i s/1/2/ 'src dir/a b.py'": ("src dir/a b.py",),
    "ed -s a.ts <<'EOF'\n1d\nw\nEOF": ("a.ts",), "printf '1d\\nw\\n' | ed -s a.ts": ("a.ts",), "bash -lc 'curl -o a.ts https://x'": ("a.ts",),
}  # fmt: skip
CHANGES_NOTHING = (
    "git status", "git stash list", "git checkout -b fix", "git reset HEAD a.ts", "git restore --staged a.ts", "git commit -am x", "sed -n 1p a.ts",
    "black --check .", "ruff format --check .", "ls 2>/dev/null", "grep -w format a.ts", "pytest", "tar -tf a.tar", "echo 'a > b'",
    "curl https://x/a.ts", "wget -qO- https://x/a.ts", "dd if=a.ts of=/dev/null", "sort a.txt", "awk '{print}' a.txt", "make 2>&1", "grep -o x a.ts", "curl -o - https://x",
    "ssh -o A=b host",
)  # fmt: skip


@pytest.mark.parametrize(("command", "paths"), CHANGES.items())
def test_what_a_command_may_change_is_read_from_its_programs(command: str, paths: tuple[str, ...]):
    assert may_change(command) == paths


@pytest.mark.parametrize("command", CHANGES_NOTHING)
def test_other_commands_change_nothing(command: str):
    assert may_change(command) == ()


def after(command: str, **turn: str) -> tuple[str, dict[str, str]]:
    session = Session()
    session.add("command.finished", turn=1, command="pytest", exitCode=0, stdout="3 passed")
    session.add("file.read", turn=1, path="src/a.ts", version="1", text="const a = 1")
    session.add("retrieval.snapshot.created", turn=1, snapshotId="snap-1")
    session.add("command.finished", turn=2, command=command, exitCode=0, stdout="")
    session.add("command.finished", turn=3, command="ls", exitCode=0, stdout="src")
    seen = projected(session, snapshots=[snapshot(item(path="src/b.ts", text="const b = 1"))], turn=turn)
    assert seen.state["verification"] == ("pytest: passed" if may_change(command) == () else None)
    return seen.text(), {row["source_id"]: row["reason_code"] for row in seen.decisions}


def test_a_file_that_a_command_names_is_stale():
    text, reasons = after("sed -i s/1/2/ src/a.ts")
    assert "const a = 1" not in text and reasons["event:e2"] == "stale_version"
    assert "const b = 1" in text and "may have changed" not in text
    text, reasons = after("sed -i s/1/2/ /repo/src/a.ts", workingDirectory="/repo")
    assert reasons["event:e2"] == "stale_version", "by the name that it has from the working directory"


def test_what_was_read_before_a_command_that_names_no_file_says_that_it_may_have_changed():
    text, reasons = after("git checkout other")
    assert "const a = 1" in text and reasons["event:e2"] == "may_have_changed" == reasons["item:snap-1:code#1"]
    assert text.count("may have changed since: a later command changes files") == 2
    assert "may have changed" not in after("git status")[0]


def test_a_file_that_is_read_again_is_as_it_is_now():
    session = Session()
    session.add("file.read", turn=1, path="src/a.ts", text="const a = 1")
    session.add("command.finished", turn=2, command="git pull", exitCode=0, stdout="")
    session.add("file.read", turn=3, path="src/a.ts", text="const a = 2")
    session.add("command.finished", turn=4, command="ls", exitCode=0, stdout="src")
    text = projected(session).text()
    assert "const a = 2" in text and "const a = 1" not in text and "may have changed" not in text
