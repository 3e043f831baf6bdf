"""An answer against what its model was shown: each kind of finding, none for a faithful one, and what the command says."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from command_line import ask, run
from scoped_retrieval.nodes.answers.answer_checks import Shown, answer_findings
from scoped_retrieval.nodes.facts.fact_values import values_in
from scoped_retrieval.nodes.tables import ANSWER_FINDINGS
from scoped_retrieval.pipeline.runs import Runs

CODE = "export function createSession(user: User): Session {\n  return { role: user.role };\n}\n"
ITEMS = [
    Shown("rule#1", "docs/roles.md#3 (Roles)", "There is no default role since 2026-04-14. The limit is 1,000 tokens."),
    Shown("code#2", "src/auth/session.ts#8 (createSession)", CODE),
    Shown("test-log#3", "logs/vitest.log#1", "npx vitest tests/auth/session.test.ts\nFAIL expected role admin (DEL-12345)"),
    Shown("structured-fact#4", "widgets/refunds", "widget: refunds\nrefresh: every 60 seconds\nowner: support\ndue: 2026-07-01"),
]  # fmt: skip
FAITHFUL = """There is "no default role" since 14 April 2026 [rule#1]; the limit is 1000 tokens [rule#1].

```ts
  return { role: user.role };
```

The session is made there [code#2]. DEL-12345 failed [test-log#3]. The owner is support [structured-fact#4].
Change `createSession` in `src/auth/session.ts` [code#2] and run `npx vitest tests/auth/session.test.ts` [test-log#3].
"""


def found(answer: str, items: list[Shown] = ITEMS) -> list[tuple[str, str]]:
    """Findings that are wrong, as (kind, subject)."""
    table = ANSWER_FINDINGS.check(answer_findings(items, answer))
    return [(row["finding"], row["subject"]) for row in table.to_pylist() if row["wrong"]]


def test_a_faithful_answer_has_no_finding() -> None:
    assert answer_findings(ITEMS, FAITHFUL).to_pylist() == []


@pytest.mark.parametrize(
    ("answer", "finding"),
    [
        ("It is so [rule#7].", ("unknown_citation", "rule#7")),
        ("It is so [memo#1].", ("unknown_citation", "memo#1")),
        ("It says \"there is a default role\" [rule#1].", ("changed_quote", "there is a default role")),
        ("It says \u201cno default roles\u201d [rule#1].", ("changed_quote", "no default roles")),
        ("It says \"no default role\" [code#2].", ("misattributed_quote", "no default role")),
        ("> There never was a default role.\n> [rule#1]\n", ("changed_quote", "There never was a default role.")),
        ("[code#2]:\n```ts\n  return { role: 'admin' };\n```\n", ("changed_quote", "  return { role: 'admin' };\n")),
        ("[code#2]\n```diff\n--- a/src/auth/session.ts\n-  return { role: 'x' };\n+  return 1;\n```\n",
         ("changed_quote", "  return { role: 'x' };")),
        ("The limit is 2,000 tokens [rule#1].", ("unsupported_value", "2,000")),
        ("It changed on 15 April 2026 [rule#1].", ("unsupported_value", "15 April 2026")),
        ("See DEL-54321 [rule#1].", ("unsupported_value", "DEL-54321")),
        ("Its refresh is every 70 seconds.", ("unsupported_value", "70")),
        ("[code#2]\n```diff\n--- a/src/auth/roles.ts\n+++ /dev/null\n```\n", ("unfounded_action", "src/auth/roles.ts")),
        ("[test-log#3]\n```sh\nnpm publish\n```\n", ("unfounded_action", "npm publish")),
    ],
)  # fmt: skip
def test_each_kind_of_finding(answer: str, finding: tuple[str, str]) -> None:
    assert found(answer) == [finding]


@pytest.mark.parametrize(
    "answer",
    [
        'It says "There is no default role ... The limit is 1,000 tokens" [rule#1].',
        "[code#2]\n```diff\n--- a/src/auth/session.ts\n+++ b/src/auth/session.ts\n-  return { role: user.role };\n+  return { role: user.role, since: 5 };\n```\n",
        "1. First, read it [rule#1].\n2. Then change `session.ts` [code#2].",
        "The owner was not told [structured-fact#4].",
        "It takes 1000.0 tokens [rule#1].",
    ],
)
def test_what_the_evidence_carries_is_no_finding(answer: str) -> None:
    assert found(answer) == []


def test_a_finding_names_line_and_bytes_of_the_answer() -> None:
    answer = "Größe \u2713\nThe limit is 77 [rule#1].\n"
    (row,) = [r for r in answer_findings(ITEMS, answer).to_pylist() if r["wrong"]]
    assert row["line"] == 2
    assert answer.encode()[row["byte_start"] : row["byte_end"]] == b"77"


@pytest.mark.parametrize(
    ("answer", "findings"),
    [
        ("Parts are limited in src/wrappers.py:120 [code#1].", []),
        ("Parts are limited in `wrappers.py#L119-L140` [code#1].", []),
        ("Parts are limited there, lines 119-122 [code#1].", []),
        ("Parts are limited on line 130 (src/wrappers.py) [code#1].", []),
        (
            "Parts are limited on lines 118\u2013122 [code#1].",
            [("partly_shown", False, "lines 118\u2013122", "lines 119-140")],
        ),
        ("Parts are limited in wrappers.py:118 [code#1].", [("unsupported_value", True, "118", None)]),
        ("Parts are limited in other.py:120 [code#1].", [("unsupported_value", True, "120", None)]),
        ("Parts are limited to 120 [code#1].", [("unsupported_value", True, "120", None)]),
    ],
)
def test_a_line_of_a_place_that_is_shown_is_right(answer: str, findings: list[tuple]) -> None:
    item = Shown("code#1", "src/wrappers.py#119 (Request)", "def parts(self): ...", (119, 140))
    rows = answer_findings([item], answer).to_pylist()
    assert [(row["finding"], row["wrong"], row["subject"], row["expected"]) for row in rows] == findings


FEE = Shown("structured-fact#5", "fees/basic", "fee: basic\namount: EUR 480")


@pytest.mark.parametrize(
    ("answer", "items", "mismatches", "subjects"),
    [
        ("The fee is EUR 500.", [], [(11, "EUR 500", "EUR 480"), (15, "500", "480")], ["EUR 500"]),
        ("The amount is EUR 500 [structured-fact#5].", [FEE], [(14, "EUR 500", "EUR 480")], ["EUR 500"]),
        ("It was 500 and 600.", [], [(7, "500", "480"), (15, "600", "580")], ["500", "600"]),
    ],
)
def test_an_amount_with_and_without_its_currency_is_one_finding_per_place(
    answer: str, items: list[Shown], mismatches: list[tuple[int, str, str]], subjects: list[str]
) -> None:
    wrong = [row for row in answer_findings(items, answer, mismatches=mismatches).to_pylist() if row["wrong"]]
    assert [(row["finding"], row["subject"]) for row in wrong] == [("contradicted_fact", one) for one in subjects]
    assert [answer[row["byte_start"] : row["byte_end"]] for row in wrong] == subjects


def test_without_evidence_every_value_and_citation_is_a_finding() -> None:
    assert found("It is 5 [doc#1].", []) == [("unsupported_value", "5"), ("unknown_citation", "doc#1")]
    assert answer_findings([], "").num_rows == 0


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1,000 and 1000.50", [("number", "1000"), ("number", "1000.5")]),
        ("v1.2.3, 1.2.3", [("name", "1.2.3")] * 2),
        ("30-Nov-2025, 2025/11/30, 30th November 2025, November 30th 2025", [("date", "2025-11-30")] * 4),
        ("eng-001 = ENG-001, not sha-256", [("id", "eng-001")] * 2 + [("number", "256")]),
        ("\u20ac5 -3 10-12 31 June 2026", [("money", "5"), ("number", "-3"), ("number", "10"), ("number", "12"), ("date", "31 june 2026")]),
    ],
)  # fmt: skip
def test_values_have_one_canonical_form(text: str, values: list[tuple[str, str]]) -> None:
    assert [(v.kind, v.canonical) for v in values_in(text)] == values


@pytest.fixture(name="snapshot")
def snapshot_fixture(shop: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """A snapshot of the shop, whose corpus is gone."""
    _, snapshot = ask(capsys=capsys)
    shutil.rmtree(shop / ".scoped-retrieval" / "corpus" / "packs")
    return snapshot


def cited(snapshot: str, path: str) -> str:
    found = Runs(".scoped-retrieval/runs").open(snapshot).table("citations", texts=True).to_pylist()
    return next(c["label"] for c in found if c["path"] == path)


def answered(text: str, snapshot: str, capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    Path("answer.md").write_text(text, encoding="utf-8")
    return run("verify", snapshot, "--answer", "answer.md", *args, capsys=capsys)


def test_a_faithful_answer_exits_0_and_a_wrong_one_5(snapshot: str, capsys: pytest.CaptureFixture[str]) -> None:
    label = cited(snapshot, "docs/roles.md")
    code, out, _ = answered(f'"There is no default role." [{label}]\n', snapshot, capsys)
    assert (code, out.splitlines()[-1]) == (0, f"0 wrong, {len(out.splitlines()) - 1} noted")
    code, out, _ = answered(f'"There is a default role." [{label}] since 2019\n', snapshot, capsys)
    assert code == 5
    assert out.splitlines()[:2] == [
        f"line 1: quotes text that is not in the visible text: There is a default role. [{label}]",
        "line 1: gives a value that is not in the visible text: 2019",
    ]


def test_lines_of_a_place_in_the_block_are_right_and_those_around_it_noted(snapshot: str, capsys) -> None:
    label = cited(snapshot, "src/session.ts")
    code, out, _ = answered(f"The role is set in src/session.ts:2 [{label}].\n", snapshot, capsys)
    assert (code, "src/session.ts" in out) == (0, False)
    code, out, _ = answered(f"The role is set in src/session.ts:2-70 [{label}].\n", snapshot, capsys)
    assert code == 0 and "src/session.ts:2-70" in out


def test_json_has_every_finding(snapshot: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = answered("As in [doc#99].", snapshot, capsys, "--json")
    found = json.loads(out)
    assert (code, found["ok"], found["wrong"], found["status"]) == (5, False, 1, "ok")
    wrong = [row for row in found["findings"] if row["wrong"]]
    assert [(row["finding"], row["label"], row["line"]) for row in wrong] == [("unknown_citation", "doc#99", 1)]


def test_every_verified_answer_is_listed_for_whoever_may_read_its_snapshot(
    snapshot: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    logged = [
        json.loads(answered(text, snapshot, capsys, "--json")[1])["logged"] for text in ("As in [doc#99].", "So.")
    ]
    assert len(set(logged)) == 2
    code, out, _ = run("log", "--of", "checks", "--json", capsys=capsys)
    found = json.loads(out)
    assert (code, [(e["snapshot_id"], e["principal"], e["ok"]) for e in found]) == (
        0,
        [(snapshot, "ana", True), (snapshot, "ana", False)],
    )
    assert run("log", snapshot, "--of", "checks", "--json", capsys=capsys)[1] == out
    assert run("verify", snapshot, capsys=capsys)[0] == 0
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "eve")
    assert json.loads(run("log", "--of", "checks", "--json", capsys=capsys)[1]) == []
    code, out, err = run("log", snapshot, "--of", "checks", capsys=capsys)
    assert (code, out, "Expected a snapshot that you may read" in err) == (3, "", True)


def test_an_answer_to_another_principals_snapshot_is_refused(
    snapshot: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "eve")
    code, out, err = answered("x", snapshot, capsys)
    assert (code, out) == (3, "")
    assert "Expected a snapshot that you may read" in err


def test_an_erased_snapshot_cannot_be_judged(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, snapshot = ask(capsys=capsys)
    code, out, _ = run("erase", "--project", "shop", "--yes", capsys=capsys)
    assert code == 0, out
    code, out, _ = answered("There is no default role.", snapshot, capsys)
    assert (code, out.splitlines()[-1]) == (6, "cannot tell: texts of this snapshot were erased")
    assert run("show", snapshot, capsys=capsys)[0] == 6
