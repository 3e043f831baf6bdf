"""Chunks are the document: in order, byte for byte, without a gap, cut where its kind of file says."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scoped_retrieval.pipeline.sources.chunking import read_document
from scoped_retrieval.pipeline.sources.grammars import Grammar
from scoped_retrieval.pipeline.sources.lines import HARD_BYTES, HARD_LINES, MAX_BYTES, MAX_LINES

PATHS = [
    "a.md",
    "a.rst",
    "a.py",
    "a.js",
    "a.ts",
    "a.tsx",
    "a.log",
    "a.txt",
    "a.yaml",
    "Makefile",
    "a.go",
    "a.rs",
    "a.rb",
    "a.h",
    "a.lua",
    "no_extension",
]

SHORT = [
    "",
    "",
    "   ",
    "text of a paragraph",
    "# Heading",
    "## Sub *heading*",
    "Title",
    "=====",
    "-----",
    "---",
    "```python",
    "```",
    "| a | b |",
    "|---|---|",
    "- item",
    "    indented",
    "def f(x):",
    "    return g(x)",
    "class A:",
    "    def m(self): pass",
    "@decorator",
    "if x: y = 1; z = 2",
    "else:",
    "'''",
    "export function f() {",
    "}",
    "describe('x', () => {",
    "})",
    "const a = () => 1, b = function () {}",
    "/* comment",
    "Traceback (most recent call last):",
    '  File "a.py", line 3, in f',
    "ValueError: no",
    "    at f (a.js:1:2)",
    "panic: oh",
    "goroutine 1 [running]:",
    "=== FAILURES ===",
    "____ test_x ____",
    "  ● suite \u203a test",
    " FAIL  a.test.ts > s > t",
    "thread 'main' panicked at a.rs:1:2:",
    "---- t stdout ----",
    "--- FAIL: TestX (0.00s)",
    "日本語の行",
    "carriage\rreturn",
    "nul\0byte",
    "\ufeffmark",
    "\u2028separator\u0085",
    "[" * 300,
]
LINES = st.sampled_from([*SHORT, "x" * 5_000, "\u00e9" * 3_000, "中文" * 2_000, "a.b(c);" * 900])
DOCUMENTS = st.one_of(
    st.lists(LINES, max_size=20).map("\n".join),
    st.lists(LINES, max_size=20).map("\r\n".join),
    st.lists(st.lists(st.sampled_from(SHORT), min_size=1, max_size=5), max_size=3).map(
        lambda parts: "\n".join("\n".join(part * 25) for part in parts)
    ),
    st.text(max_size=300),
)


@given(path=st.sampled_from(PATHS), text=DOCUMENTS, end=st.sampled_from(["", "\n", "\r\n", "\n\n\n"]))
def test_chunks_put_together_are_the_document(path: str, text: str, end: str) -> None:
    document = (text + end).encode("utf-8", "replace")
    chunks = read_document(path, document.decode("utf-8")).chunks
    at = chunks[0].byte_start if chunks else 0
    mark = 3 if document.startswith(b"\xef\xbb\xbf") else 0
    assert (
        not chunks
        or at == mark
        or (path == "a.md" and document[:at].split(b"\n")[0].strip(b"\xef\xbb\xbf\r ") == b"---")
    )
    for chunk in chunks:
        assert chunk.byte_start <= at < chunk.byte_end
        again = document[chunk.byte_start : at].decode()  # before a cut and behind it: a part of a word
        assert not re.search(r"\W", again)
        assert document[chunk.byte_start : chunk.byte_end] == chunk.text.encode()
        assert chunk.line_start == document[: chunk.byte_start].count(b"\n") + 1
        assert chunk.line_end == document[: chunk.byte_end - 1].count(b"\n") + 1
        at = chunk.byte_end
        assert len(chunk.text.encode().rstrip()) <= HARD_BYTES
        assert chunk.line_end - chunk.line_start < HARD_LINES or not chunk.text.split("\n", HARD_LINES)[-1].strip()
    assert at == (len(document) if document[mark:].strip() else 0)


@given(path=st.sampled_from([p for p in PATHS if p != "a.md"]), text=DOCUMENTS)
def test_a_chunk_is_at_most_60_lines_and_4000_bytes(path: str, text: str) -> None:
    for chunk in read_document(path, text.encode("utf-8", "replace").decode()).chunks:
        body = chunk.text.encode().rstrip()
        assert len(body) <= MAX_BYTES
        assert body.count(b"\n") < MAX_LINES or chunk.text.lstrip() != chunk.text


def test_blank_documents_have_no_chunks() -> None:
    assert read_document("a.txt", "\ufeff\n").chunks == ()
    assert read_document("a.py", "").chunks == read_document("a.md", "\n \r\n\n").chunks == ()


# --- Markdown ---------------------------------------------------------------------------------------------------------

MARKDOWN = """\
---
title: ignored
---
Before any heading, see [the guide](docs/guide.md).

# Top `code`

## First

Text with <https://example.org/a> and [[Wiki Page]].

- one
- two

```python
# not a heading
```

## Table

| a | b |
|---|---|
| 1 | 2 |

[ref]: ../other.md
"""


def test_a_section_is_its_heading_path() -> None:
    document = read_document("docs/a.md", MARKDOWN)
    assert document.title == "Top code"
    assert [(c.section, c.line_start, c.line_end) for c in document.chunks] == [
        (None, 4, 5),
        ("Top code > First", 6, 18),
        ("Top code > Table", 19, 25),
    ]
    assert [c.links for c in document.chunks] == [
        ("docs/guide.md",),
        ("https://example.org/a", "Wiki Page"),
        ("../other.md",),
    ]
    assert document.chunks[2].content_type == "table"


@pytest.mark.parametrize(
    ("text", "first", "title"),
    [
        ("---\ntitle: The guide\nowner: ops\n---\nText.\n", 5, "The guide"),
        ("---\nprose between two rules\n---\nText.\n", 1, None),
        ("---\ntags: [a\n---\nText.\n", 1, None),
        ("Text.\n---\ntitle: below\n---\n", 1, None),
    ],
)  # fmt: skip
def test_front_matter_is_metadata_and_no_text(text: str, first: int, title: str | None) -> None:
    document = read_document("a.md", text)
    assert (document.chunks[0].line_start, document.title) == (first, title)
    assert "".join(chunk.text for chunk in document.chunks).split("\n") == text.split("\n")[first - 1 :]


@pytest.mark.parametrize(
    "block",
    ["\n".join(["| a | b |", "|---|---|", *(f"| {i} | x |" for i in range(100))]),
     "\n".join(["```", *(f"line {i}\n" for i in range(50)), "```"])],
    ids=["table", "fence"],
)  # fmt: skip
def test_a_table_or_fence_is_never_cut(block: str) -> None:
    prose = "\n\n".join(f"Paragraph {i} " + "word " * 40 for i in range(30))
    chunks = read_document("a.md", f"# T\n\n{prose}\n\n{block}\n\n{prose}\n").chunks
    assert sum(block in chunk.text for chunk in chunks) == 1
    assert all(chunk.text.lstrip().startswith(("#", "Paragraph", "|", "```")) for chunk in chunks)


def test_a_long_section_is_cut_at_paragraph_ends() -> None:
    text = "# T\n\n" + "\n\n".join(f"start {i}\n" + "word\n" * 9 + "end" for i in range(30))
    chunks = read_document("a.md", text).chunks
    assert len(chunks) > 4
    assert all(chunk.text.startswith(("# T", "start")) and chunk.text.rstrip().endswith("end") for chunk in chunks)


def test_an_insertion_leaves_later_chunks_as_they_were() -> None:
    lines = [f"entry {i}: {'abc' * (i % 7)}" for i in range(600)]
    before = {c.text for c in read_document("a.txt", "\n".join(lines)).chunks}
    after = {c.text for c in read_document("a.txt", "\n".join(["new 1", "new 2", "new 3", *lines])).chunks}
    assert len(before & after) >= len(before) - 4


# --- code -------------------------------------------------------------------------------------------------------------

PYTHON = '''\
"""Module."""
import os
from shop.cart import Cart

LIMIT = 10
# a long enough preamble, so that it stands alone: ..........................................................


# why it exists
@decorate
def total(cart: Cart) -> int:
    """Sum of a cart, long enough to stand alone. ....................................................."""
    return sum(price(item) for item in cart.items)


class Shop(Base):
    """A shop. ..........................................................................................."""

    open = True

    def sell(self, item):
        return self.checkout(item)
'''


def test_code_is_cut_by_definition() -> None:
    chunks = read_document("shop.py", PYTHON).chunks
    assert [(c.section, c.line_start, c.line_end) for c in chunks] == [(None, 1, 8), ("total", 9, 15), ("Shop", 16, 22)]
    module, total, shop = chunks
    assert module.symbols == ("LIMIT",)
    assert module.calls == ("Cart",)
    assert total.symbols == ("total",)
    assert {"sum", "price", "decorate", "Cart"} <= set(total.calls)
    assert shop.symbols == ("Shop", "Shop.open", "open", "Shop.sell", "sell")
    assert set(shop.calls) == {"Base", "checkout", "item"}


def test_a_large_class_is_cut_at_its_methods() -> None:
    methods = "".join(f"    def m{i}(self):\n" + f"        self.step_number_{i}()\n" * 8 + "\n" for i in range(6))
    chunks = read_document("a.py", f'class Big:\n    """{"doc " * 50}"""\n\n{methods}').chunks
    assert [c.section for c in chunks] == ["Big", *(f"Big.m{i}" for i in range(6))]
    assert chunks[3].symbols == ("Big.m2", "m2")
    assert chunks[3].calls == ("step_number_2",)


def test_a_long_function_is_cut_at_line_ends_and_keeps_its_name() -> None:
    body = "".join(f"    value_{i} = compute({i})\n" for i in range(200))
    chunks = read_document("a.py", f"def long():\n{body}").chunks
    assert len(chunks) > 3
    assert {c.section for c in chunks} == {"long"}
    assert all(c.text.endswith("\n") for c in chunks)


TYPESCRIPT = """\
import { helper } from './helper'

export interface Options { name: string; other: string; third: number; fourth: boolean; fifth: string[]; sixth: never; }

/** Parses. */
export const parseUser = (raw: string): User => {
  const value = helper(raw); // long enough to stand alone: ........................................................
  return new User(value)
}

@sealed
export class User extends Base<Options> {
  // long enough to stand alone: .......................................................................................
  greet(): string { return format(this.name) }
}
"""


@pytest.mark.parametrize("path", ["a.ts", "a.tsx"])
def test_typescript_is_cut_by_definition(path: str) -> None:
    chunks = read_document(path, TYPESCRIPT).chunks
    by_section = {c.section: c for c in chunks}
    assert "".join(c.text for c in chunks) == TYPESCRIPT
    assert list(by_section) == ["Options", "parseUser", "User"]
    assert by_section["parseUser"].text.startswith("/** Parses. */")
    assert {"helper", "User"} <= set(by_section["parseUser"].calls)
    assert by_section["User"].symbols == ("User", "User.greet", "greet")
    assert {"format", "Base"} <= set(by_section["User"].calls)
    assert by_section["User"].text.startswith("@sealed")


def test_code_that_does_not_parse_still_has_chunks() -> None:
    text = "def broken(:\n    }}}\nclass ???\n" * 100
    assert "".join(c.text for c in read_document("a.py", text).chunks) == text


@pytest.mark.parametrize(
    ("path", "text"),
    [("a.md", "# Top\n\n## First\n\nSaid.\n\nMore.\n"), ("a.rst", "Top\n---\n\nFirst\n=====\n\nSaid.\n\nMore.\n")],
)
def test_a_heading_is_not_parted_from_what_it_names(path: str, text: str) -> None:
    lines = text.splitlines()
    levels = [level for chunk in read_document(path, text).chunks for level in chunk.statements or ()]
    assert [line for line, level in zip(lines, levels, strict=True) if level] == [lines[0], "More."]


@pytest.mark.parametrize("blank", ["", "\n"], ids=["together", "apart"])
def test_many_comments_are_parsed_a_few_times(blank: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed, tree = list[int](), Grammar.tree
    monkeypatch.setattr(Grammar, "tree", lambda self, data, *more: parsed.append(len(data)) or tree(self, data, *more))
    comments = "".join(f"# {number}\n{blank}" for number in range(400))
    text = f"{comments}def last():\n    return 2\n"
    chunks = read_document("many.py", text).chunks
    assert "".join(chunk.text for chunk in chunks) == text
    assert chunks[-1].section == "last"
    assert sum(parsed) < 4 * len(text)


def test_a_failure_in_a_log_begins_a_chunk_that_links_the_files_it_names() -> None:
    log = 'run\n\n FAIL  src/a.test.ts > adds\nexpected 1\n\nTraceback:\n  File "shop/cart.py", line 3, in total\nKeyError: no\n'
    chunks = read_document("run.log", log).chunks
    assert [(c.line_start, c.links) for c in chunks] == [(1, ()), (3, ()), (6, ("shop/cart.py",))]
    pytest_ = "____ test_a ____\n\nE   KeyError\n\na.py:1: KeyError\n____ test_b ____\n\n>   b()\n\nb.py:2: KeyError\n"
    chunks = read_document("run.log", pytest_).chunks
    assert [(c.line_start, c.links) for c in chunks][-2:] == [(3, ("a.py",)), (6, ("b.py",))]
    assert read_document("b.log", "at f (/app/a.js:1:2)\n").chunks[0].links == ("/app/a.js",)
