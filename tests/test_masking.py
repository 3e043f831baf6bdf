"""E-mails and absolute paths masked where policy says so: nothing shows through, no position moves, the budget stays hard."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scoped_retrieval.nodes.blocks.masking import DETECTOR, masked, masked_spans
from scoped_retrieval.nodes.blocks.token_counting import Counters
from scoped_retrieval.pipeline.contracts.why import why_not
from scoped_retrieval.pipeline.views.bundle import TABLES_READ, bundle
from selection_line import line
from small_corpus import Story, row, settings_of

BOTH = "absolute-path email"
EMAILS = ["bob@example.com", "a@b.co", "j.o'neil+x@mail.example.co.uk", "jürgen@straße.de"]
PATHS = [
    "/home/bob/notes.txt", "/Users/bob/shop/src", "/srv/a/b/", "C:\\Users\\bob\\x.py", "\\\\host\\share\\x.doc",
    "/opaque/tree/file.py", "file:///home/bob/x",
]  # fmt: skip
HARMLESS = [
    "/api/users",
    "https://example.com/home/bob",
    "a @ b",
    "x@1.2.3",
]
TEXT = "Ask bob@example.com first.\nThe log is /home/bob/shop/run.log today.\n"


def cover(text: str, classes: str | None = BOTH) -> str:
    return masked(pa.array([text], pa.large_string()), pa.array([classes])).to_pylist()[0]


@pytest.mark.parametrize("secret", [EMAILS[0], EMAILS[1], EMAILS[3], *PATHS])
def test_a_finding_is_covered_byte_for_byte(secret: str) -> None:
    text = f"see {secret} or (`{secret}`), über"
    found = cover(text)
    assert secret not in found
    assert len(found.encode()) == len(text.encode())
    assert found.startswith(("see [", "see ******")) and found.endswith("), über")


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_neither_stays(text: str) -> None:
    assert cover(f"x {text} y") == f"x {text} y"


@given(st.lists(st.sampled_from([*EMAILS, *PATHS, *HARMLESS, " ", "\n", "é", "x", "[email]"]), max_size=8).map("".join))
def test_spans_are_where_the_text_differs(text: str) -> None:
    found, spans = masked_spans(text, BOTH)
    before, after = text.encode(), found.encode()
    assert len(before) == len(after)
    inside = {at for span in spans for at in range(*span)}
    assert all(before[at] == after[at] for at in range(len(before)) if at not in inside)


def test_block_citation_and_record_agree() -> None:
    row = {
        "text": TEXT,
        "evidence_kind": "doc",
        "path": "docs/a.md",
        "section": "by bob@example.com",
        "byte_start": 100,
    }
    made = line([row], requests={"r1": {"mask": ["absolute-path", "email"]}}).run()
    block, item, citation = (made[name].to_pylist()[0] for name in ("blocks", "trimmed", "citations"))
    assert "bob" not in block["text"]
    assert item["visible_text"] in block["text"].replace("|", "")
    data = TEXT.encode()
    for span in item["masked"]:
        assert data[span["start"] : span["end"]].decode() in ("bob@example.com", "/home/bob/shop/run.log")
    assert item["masked_by"] == DETECTOR
    assert (citation["resolves"], citation["byte_start"], citation["byte_end"]) == (True, 100, 100 + len(data) - 1)
    assert citation["locator"] == "docs/a.md#1 (by [email********])"
    assert "by [email********]\n" in block["text"]


def test_a_citation_masks_its_source_and_path_and_still_resolves() -> None:
    row = {"text": TEXT, "source_id": "mail:bob@example.com", "path": "/home/bob/shop/run.log", "line_start": 1}
    asked = {"r1": {"mask": ["email", "absolute-path"]}, "r2": {"mask": ["email"]}, "r3": {}}
    made = line([row], requests=asked).run()
    places = [(c["source_id"], c["path"], c["locator"]) for c in made["citations"].to_pylist()]
    covered = f"{'[path'.ljust(len(row['path']) - 1, '*')}]"
    assert places == [
        ("mail:[email********]", covered, f"{covered}#1"),
        ("mail:[email********]", row["path"], f"{row['path']}#1"),
        (row["source_id"], row["path"], f"{row['path']}#1"),
    ]
    assert made["citations"]["resolves"].to_pylist() == [True] * 3
    assert len(set(made["citations"]["evidence_id"].to_pylist())) == 1


def test_what_stands_beside_a_text_is_masked_with_it() -> None:
    record = {
        "text": "id: ENG-001\nfee: $5\nowner: bob@example.com\n", "entity": "ENG-001", "origin_class": "structured-sot",
        "evidence_kind": "structured-fact", "path": "/home/bob/sot.csv", "line_start": 2, "title": "by bob@example.com",
        "uri": "file:///home/bob/sot.csv",
    }  # fmt: skip
    rows = [{"text": "The fee of ENG-001 is $6.\n", "evidence_kind": "doc", "path": "a.md"}, record]
    made = line(rows, requests={"r1": {"mask": ["absolute-path", "email"], "exact_lookups": True}}).run()
    assert "fee is $5 in [path***********]#2" in made["trimmed"]["fact_note"].to_pylist()
    assert "bob" not in made["blocks"]["text"][0].as_py()
    for name in ("structured_facts", "fact_checks", "item_details"):
        assert made[name].num_rows and "bob" not in str(made[name].to_pylist()), name


def test_whatever_an_importer_says_of_a_row_is_masked_with_it() -> None:
    said = dict.fromkeys(("entity", "uri", "content_type", "document_type", "domain"), "of bob@example.com")
    said |= {name: ["/home/bob/x.md", "ok", "é"] for name in ("tags", "applicable_roles", "excluded_roles")}
    record = {"text": "fee: $5\n", "origin_class": "structured-sot", "evidence_kind": "structured-fact", **said}
    rows = [
        {"text": TEXT, "evidence_kind": "doc", "path": "a.md", **said},
        {"text": "Nothing.", "path": "b.md"},
        record,
    ]
    asked = {"r1": {"mask": ["absolute-path", "email"], "exact_lookups": True}, "r2": {"exact_lookups": True}}
    made = line(rows, requests=asked).run()
    for name in ("item_details", "structured_facts"):
        found = {r: [row for row in made[name].to_pylist() if row["request_id"] == r] for r in asked}
        assert "bob" not in str(found["r1"]) and "bob" in str(found["r2"]), name
    details = [row for row in made["item_details"].to_pylist() if row["request_id"] == "r1"]
    told = [(row["domain"], row["tags"], row["excluded_roles"]) for row in details]
    assert told.count(("of [email********]", ["[path********]", "ok", "é"], ["[path********]", "ok", "é"])) == 2
    assert told.count((None, None, None)) == 1


def test_the_budget_is_counted_on_what_is_shown() -> None:
    rows = [{"text": TEXT * 6, "evidence_kind": "doc", "path": f"/home/bob/{n}.md"} for n in range(3)]
    limits = [*range(1, 120, 7), 400]
    asked = {f"r{most:03}": {"mask": ["absolute-path", "email"], "max_tokens": most} for most in limits}
    blocks = line(rows, requests=asked).run()["blocks"]["text"].combine_chunks()
    counted = Counters().count(blocks, ["approx-bpe/1"], np.zeros(len(limits), np.int64))
    assert [most for most, tokens in zip(limits, counted.tolist(), strict=True) if tokens > most] == []
    assert "bob" not in "".join(blocks.to_pylist())


def masking(folder: Path, classes: str) -> Path:
    """A folder of policies in which the purpose that is asked for masks these classes."""
    policy = Path(__file__).parents[1] / "data" / "policies" / "purposes" / "answer-question.yaml"
    (folder / "own" / "purposes").mkdir(parents=True)
    own = folder / "own" / "purposes" / policy.name
    own.write_text(policy.read_text(encoding="utf-8") + f"\nmask: [{classes}]\n", encoding="utf-8")
    return folder / "own"


def test_the_policy_key_alone_changes_the_block(tmp_path: Path) -> None:
    story = Story(tmp_path, row("doc", "docs/a.md", TEXT))
    own = masking(tmp_path, "email")
    question = {"question": "who reads the log?", "project": "shop", "purpose": "answer-question"}
    with story.open() as plain, story.open(policies=own) as covered:
        before, after = plain.retrieve(question), covered.retrieve(question)
    assert before.block.replace("bob@example.com", "[email********]").splitlines()[3:5] == after.block.splitlines()[3:5]
    assert [d["redacted"] for d in after.tables["decisions"].to_pylist()] == [True]
    assert [d["redacted"] for d in before.tables["decisions"].to_pylist()] == [False]
    assert after.tables["snapshots"]["redacted"][0].as_py() == 1


def test_a_caller_reads_no_place_of_a_rejected_row_that_the_contract_masks(tmp_path: Path) -> None:
    rows = [row("doc", f"/home/bob/{n}.md", f"the log {n}", source_id="mail:bob@example.com") for n in range(3)]
    story = Story(tmp_path, *rows)
    question = {"question": "the log", "project": "shop", "purpose": "answer-question", "budget": {"max_items": 1}}
    with story.open(policies=masking(tmp_path, "email, absolute-path"), runs=tmp_path / "runs") as retriever:
        found = retriever.retrieve(question)
    lost = found.bundle["rejected"]
    assert [one["source_id"] for one in lost] == ["mail:[email********]"] * 2
    assert "bob" not in str(found.bundle)
    raw = bundle({name: found.tables[name].to_pylist() for name in TABLES_READ}, audit=True)
    assert [one["source_id"] for one in raw["rejected"]] == ["mail:bob@example.com"] * 2
    told = why_not(settings_of(tmp_path), found.snapshot_id or "", lost[0]["chunk_id"])
    assert told[0]["reason_code"] == "budget_items" and "bob" not in str(told)
