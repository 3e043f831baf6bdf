"""What a search found, in imported transcripts: context lines and counts are no lines that matched, one file has its name, and what a
form of output leaves open is not told.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scoped_retrieval.pipeline.context.transcripts import read_transcript
from transcript_records import Rows, call, called, claude, codex, output, result

AROUND = (
    "src/z1.ts-10-function f() {\nsrc/z1.ts:11:  foo();\nsrc/z1.ts-12-}\n--\nsrc/z-2.ts-3-a.b:4:c\nsrc/z-2.ts:4:foo"
)
HITS = [{"path": "src/z1.ts", "line": 11, "text": "foo();"}, {"path": "src/z-2.ts", "line": 4, "text": "foo"}]
COUNTS = "src/a.ts:40\nsrc/b.ts:0\nMakefile:1"
FILES = [{"path": "src/a.ts"}, {"path": "Makefile"}]
ONE = "10-function f() {\n11:  foo();\n12-}"
HIT = [{"path": "src/z1.ts", "line": 11, "text": "foo();"}]
LOG = "logs/app.log:2026-05-19 02:00:11 ERROR foo\nlogs/app.log:12:30:05 foo"
"""Lines without a number in front, which look as if they had one."""
PLAIN = (
    "Makefile-2-\t./wait.sh db:5432:x\nMakefile:3:foo\n--\n.env-1-URL=http://api:3000:x\n.env:2:foo\n--\n2026-05-20-notes.md-3-a\n"
    "2026-05-20-notes.md:4:see a-1-b.ts:7:foo\r\n2026-05-20-notes.md:5:foo\n2026-05-20-notes.md-6-x\nq-2-r:3:foo"
)
PLAIN_HITS = [
    {"path": "Makefile", "line": 3, "text": "foo"},
    {"path": ".env", "line": 2, "text": "foo"},
    {"path": "2026-05-20-notes.md", "line": 4, "text": "see a-1-b.ts:7:foo"},
    {"path": "2026-05-20-notes.md", "line": 5, "text": "foo"},
]
"""The last line may be one around a match in `q`, whose match was cut off."""
HEADED = "src/z1.ts\n11:  foo();\n12-}\n\nMakefile\n3:foo"
HEADED_HITS = [*HIT, {"path": "Makefile", "line": 3, "text": "foo"}]
NAMES = "src/a.ts\nMakefile\n.env"
NAMED = [{"path": "src/a.ts"}, {"path": "Makefile"}, {"path": ".env"}]


@pytest.mark.parametrize(
    ("given", "text", "matches"),
    [
        ({"output_mode": "content", "-n": True, "-C": 1}, AROUND, HITS),
        ({"output_mode": "content", "-n": True, "context": 1}, AROUND, HITS),
        ({"output_mode": "content", "-A": 1}, "src/z1.ts:foo()\nsrc/z1.ts-}", []),
        ({"output_mode": "count"}, f"{COUNTS}\n\nFound 41 total occurrences across 2 files.", FILES),
        ({"output_mode": "count", "path": "/home/me/shop/src/a.ts"}, "40", FILES[:1]),
        ({"output_mode": "content", "-n": True, "-C": 1, "path": "/home/me/shop/src/z1.ts"}, ONE, HIT),
        ({"output_mode": "content", "-n": True, "path": "src/z1.ts"}, "11:  foo();", HIT),
        ({"output_mode": "content", "path": "src/z1.ts"}, "11:  foo();", []),  # may be the words of the file
        ({"output_mode": "content", "-n": True}, "11:  foo();", []),
        ({"output_mode": "content", "-n": True, "path": "src"}, "src/z1.ts:11:  foo();", HIT),
        ({}, "Found 2 files\nsrc/a.ts\nsrc/b.ts", [{"path": "src/a.ts"}, {"path": "src/b.ts"}]),
        ({}, f"Found 3 files limit: 3, offset: 0\n{NAMES}", NAMED),
        ({}, "No files found", []),
        ({}, "src/z1.ts:11:  foo();", []),  # files alone are named
        ({"output_mode": "content", "-n": True, "-B": 1}, PLAIN, PLAIN_HITS),
        (
            {"output_mode": "content", "-n": True},
            "Makefile:3:foo\nbin/run:4:a.b:5:c",
            [{"path": "Makefile", "line": 3, "text": "foo"}, {"path": "bin/run", "line": 4, "text": "a.b:5:c"}],
        ),
        ({"output_mode": "content", "-n": False}, LOG, []),
        ({"output_mode": "content", "-n": False}, "src/z1.ts:11:  foo();", []),
        ({"output_mode": "content"}, LOG, []),
        ({"output_mode": "content"}, "logs/app.log:12:30:05 foo", []),
        ({"output_mode": "content"}, "src/z1.ts:11:  foo();", HIT),  # newer versions number lines unless told otherwise
        ({"output_mode": "content"}, "src/z1.ts:11:  foo();\nsrc/z1.ts:bar", []),
        ({"output_mode": "content"}, "logs/a.log:12:a\nlogs/a.log:11:b", []),
        (
            {"output_mode": "content", "-n": True},
            "src/z1.ts:11:  foo();\n\n[Showing results with pagination = limit: 1, offset: 0]",
            HIT,
        ),
        ({"output_mode": "content", "-n": True}, "src\\z1.ts:11:  foo();", HIT),
        ({"output_mode": "content", "-n": True}, "C:\\w\\z1.ts:11:  foo();", [{**HIT[0], "path": "C:/w/z1.ts"}]),
    ],
)
def test_a_grep_of_claude_code_names_what_matched(
    tmp_path: Path, given: dict[str, Any], text: str, matches: list[dict[str, Any]]
):
    told = _last(claude(call("m1", "t1", "Grep", pattern="foo", **given), result("t1", text)), tmp_path)
    assert (told["kind"], told["payload"]["matches"], told["payload"]["text"]) == ("search.result", matches, text)


@pytest.mark.parametrize(
    ("command", "text", "matches"),
    [
        ("rg -n -C1 foo", AROUND, HITS),
        ("rg -nC 1 foo src | head -20", AROUND, HITS),
        ("grep -rn -1 foo .", AROUND, HITS),
        ("find . -name '*.ts' | xargs grep -n --context=1 foo", AROUND, HITS),
        ("rg -c foo", COUNTS, FILES),
        ("grep -rc foo .", COUNTS, FILES),
        ("rg --count-matches foo", COUNTS, FILES),
        ("rg -c foo src/a.ts", "40", FILES[:1]),
        ("rg -n foo src/z1.ts", "11:  foo();", HIT),
        ("cat x; rg -n foo src/z1.ts", "11:  foo();", None),
        ("rg -n -e foo -g '*.ts' src/z1.ts", "11:  foo();", HIT),
        ("rg --line-number --type ts foo -- src/z1.ts | sort", "11:  foo();", HIT),
        ("grep -n -C1 foo src/z1.ts", ONE, HIT),
        ("rg -n foo src/z1.ts | wc -l", "11", None),
        ("rg -n foo src/z1.ts | sed 's/^/1:/'", "1:11:  foo();", None),
        ("rg foo src/z1.ts", "11:  foo();", None),  # may be the words of the file
        ("rg -n foo src/z1.ts src/z2.ts", "11:  foo();", None),
        ("rg -c foo src | wc -l", "40", None),
        ("rg -l foo", "src/a.ts\nsrc/b.ts", [{"path": "src/a.ts"}, {"path": "src/b.ts"}]),
        ("fd -e ts", "./src/a.ts\nsrc/b.ts", [{"path": "src/a.ts"}, {"path": "src/b.ts"}]),
        ("git grep -n foo", "src/z1.ts:11:  foo();", HIT),
        ("rg -n 'unclosed", "src/z1.ts:11:  foo();", HIT),
        ("grep -r foo logs", LOG, None),
        ("rg foo", LOG, None),
        ("git grep foo", LOG, None),
        ("rg -nN foo", LOG, None),
        ("rg -n --no-line-number foo", LOG, None),
        ("rg foo src; grep -rn bar src", LOG, None),
        ("rg -n foo | cut -d: -f1,3-", "logs/app.log:12:30", None),
        ("rg -n foo && cat notes", "notes:3:foo", None),
        ("rg -n foo; cd web; rg -n bar", "src/z1.ts:11:  foo();", None),
        ("grep -rHn foo .", "src/z1.ts:11:  foo();", HIT),
        ("rg -n foo | grep -v test | head -5", "src/z1.ts:11:  foo();", HIT),
        ("rg -n foo 2>/dev/null || true", "src/z1.ts:11:  foo();\r\n", HIT),
        ("rg -n foo src || echo none", "src/z1.ts:11:  foo();", HIT),
        ("rg -n foo; rg --line-number bar", "src/z1.ts:11:  foo();", HIT),
        ("rg --vimgrep foo", "src/z1.ts:11:3:  foo();", HIT),
        ("rg --column foo", "src/z1.ts:11:3:  foo();", HIT),
        ("rg -n -r bar foo", "src/z1.ts:11:  bar();", [{"path": "src/z1.ts", "line": 11}]),
        ("rg -n --color=always foo", "\x1b[0m\x1b[35msrc/z1.ts\x1b[0m:\x1b[32m11\x1b[0m:  foo();", HIT),
        ("grep -n foo src/*.ts", "11:  foo();", None),
        ('grep -n foo "$F"', "11:  foo();", None),
        ("grep -n foo src/{a,b}.ts", "11:  foo();", None),
        ("grep -n foo src/z?.ts", "11:  foo();", None),
        ("grep -n foo ~/z1.ts", "11:  foo();", None),
        ("grep -n foo src/$(cat f)", "11:  foo();", None),
        ("grep -n foo `cat f`", "11:  foo();", None),
        ('grep -n foo "src/${F}.ts"', "11:  foo();", None),
        ("find src -name '*.ts' -exec grep -n foo {} +", "11:  foo();", None),
        ("find src -name '*.ts' | xargs -I{} grep -n foo '{}'", "11:  foo();", None),
        ("git grep -hn foo HEAD", "11:  foo();", None),
        ("grep -rhn foo src", "11:  foo();", None),
        ("rg -n foo src/", "11:  foo();", None),
        ("grep -Hn foo < src/z1.ts", "(standard input):11:  foo();", None),
        ("grep -n 'foo$' 'src/[id].ts'", "11:  foo();", [{**HIT[0], "path": "src/[id].ts"}]),
        ('grep -n "foo$" src/z1.ts', "11:  foo();", HIT),
        ("rg -n foo src/z1.ts --max-filesize 1M", "11:  foo();", HIT),
        ("grep -rn -B1 foo .", PLAIN, PLAIN_HITS),
        ("rg -n -B 1 foo", PLAIN, PLAIN_HITS),
        ("git grep -n -W foo", "src/z1.ts=10=function f() {\nsrc/z1.ts:11:  foo();\nsrc/z1.ts-12-}", HIT),
        ("rg -n --passthru foo src", "a-b-1-x\na-b:2:foo", [{"path": "a-b", "line": 2, "text": "foo"}]),
        ("git grep -n foo HEAD", "HEAD:src/z1.ts:11:  foo();", None),
        ("grep -rL foo src", "src/a.ts\nsrc/b.ts", None),
        ("git grep -L foo", "src/a.ts", None),
        ("grep --files-without-match -r foo src", "src/a.ts", None),
        ("rg --files-without-match foo", "src/a.ts", None),
        ("rg -L -l foo", "src/a.ts", FILES[:1]),  # of rg `-L` follows links
        ("rg -l foo", NAMES, NAMED),
        ("rg --files", NAMES, NAMED),
        ("grep -rl foo . | sort | head", NAMES, NAMED),
        ("rg -n foo | cut -d: -f1 | sort -u", NAMES, NAMED),
        ("rg -n foo src | grep -v ':0:' | cut -d: -f1 | sort -u", NAMES, NAMED),
        ("rg -n foo src/a.ts | cut -d: -f1", "11\n12", None),
        ("rg -n foo %F%", "11:  foo();", None),
        (
            "rg -n -M 80 foo",
            "src/z1.ts:11:[Omitted long matching line]",
            [{"path": "src/z1.ts", "line": 11, "text": None}],
        ),
        ("rg -l foo | xargs cat", "src/a.ts", None),
        ("find . -name '*.ts' -exec cat {} +", "src/a.ts", None),
        ("find . -name '*.ts' | wc -l", "12", None),
        ("rg -n --heading foo", HEADED, HEADED_HITS),
        ("rg -p foo", HEADED, HEADED_HITS),
        ("rg foo", HEADED, HEADED_HITS),  # to a terminal
        ("rg --heading foo", "src/a.ts\nsee\n\nsrc/b.ts\nsrc/c.ts", None),
        ("rg --heading foo logs", "logs/app.log\n12:30:05 foo\n12:31:05 foo", None),
        ("rg foo", "src/a.ts: import './b.ts'\nsrc/b.ts", None),
        ("rg foo src/a.ts", "src/b.ts", None),  # a word of the file
        ("rg -q foo", "src/a.ts", None),
        ("rg --json foo", '{"path":"src/a.ts"}', None),
        ("grep -Zrn foo .", "src/z1.ts\x0011:foo", None),
        ("grep -E '^[a-z-]+:' Makefile | cut -d: -f1", "build\ntest", None),  # words of the file
        ("grep -rE '^[a-z-]+:' Makefile | cut -d: -f1", "build\ntest", None),
        ("grep -rh foo src | cut -d: -f1", "foo", None),
        ("grep foo < notes | cut -d: -f1", "foo", None),
        ("rg foo < notes | cut -d: -f1", "foo", None),
        ("grep -r foo . | cut -d: -f1", NAMES, NAMED),
        ("rg foo | cut -d: -f1", NAMES, NAMED),
        ("rg -l foo src || echo none", "none", None),
        ("rg -l foo src; echo done here", f"{NAMES}\ndone here", NAMED),
        ("rg -l foo src; echo done", f"{NAMES}\ndone", NAMED),
        ("rg -l foo src; printf 'a\\ndone\\n'", f"{NAMES}\na\ndone", NAMED),
        ("find . -name x; echo EXIT=$?", "EXIT=1", None),
        ('rg -l foo; echo "exit:$?"', f"{NAMES}\nexit:0", NAMED),
        ("rg -l foo; echo $? done", "1 done", None),
        ("rg --heading -n foo; echo", f"{HEADED}\n", HEADED_HITS),
        ("rg -n foo; echo src/a.ts:3:x", "src/z1.ts:11:  foo();\nsrc/a.ts:3:x", HIT),
        ("rg -n foo; printf 'src/a.ts:3:x\\n'", "src/a.ts:3:x", None),
        ("rg -n foo; printf '%s:3:x\\n' src/a.ts", "src/a.ts:3:x", None),
        ("rg -n foo; printf src/a.ts:; cat x", "src/a.ts:3:x", None),
        ("rg -n foo; echo -n src/a.ts; rg -n bar", "src/a.tssrc/b.ts:3:x", None),
        ("rg -n foo; echo -e 'src/a.ts\\x3a3:x'", "src/a.ts:3:x", None),
        ('rg -n foo; echo "$F:3:x"', "src/a.ts:3:x", None),
        ("rg -n foo; echo src/a.ts:3:x | cat", "src/a.ts:3:x", None),
        ("rg -n foo; echo == b; rg -n bar", "src/z1.ts:11:  foo();\n== b", HIT),
        ("rg -n foo | grep bar notes", "src/z1.ts:1:bar", None),
        ("rg -l foo | grep -oE 'src/.'", "src/a", None),
        ("rg -l foo | head -c9", "src/a.t", None),
        ("rg -n foo src", "\nsrc/z1.ts\n11:  foo();", HIT),
        ("rg -n foo src", "note\nsrc/z1.ts\n11:  foo();", None),  # `src` has no line 11
        ("rg -n foo src/", "\n11:  foo();", None),
    ],
)
def test_a_search_of_codex_names_what_matched(
    tmp_path: Path, command: str, text: str, matches: list[dict[str, Any]] | None
):
    out = f"Process exited with code 0\nOutput:\n{text}"
    rows = codex({"record": "session_meta", "id": "c-1", "cwd": "/home/me/shop"}, called("1", "exec_command", {"cmd": command}), output("1", out))  # fmt: skip
    told = _last(rows, tmp_path)
    assert told["kind"] == ("command.finished" if matches is None else "search.result")
    assert told["payload"].get("matches") == matches


def _last(rows: Rows, folder: Path) -> dict[str, Any]:
    file = folder / "t.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return read_transcript(file)[1][-1]
