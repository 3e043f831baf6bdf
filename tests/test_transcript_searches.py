"""What a search found, in imported transcripts: context lines and counts are no lines that matched, and one file has its name."""

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
