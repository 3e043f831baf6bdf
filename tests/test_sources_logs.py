"""Logs are cut by failure."""

from __future__ import annotations

import pytest
from scoped_retrieval.pipeline.sources.chunking import read_document


def sections(text: str) -> list[str | None]:
    return [chunk.section for chunk in read_document("run.log", text).chunks]


PYTEST = """\
collected 3 items

=================================== FAILURES ===================================
_________________________________ test_total __________________________________

    def test_total():
>       assert total([1]) == 2
E       assert 1 == 2

tests/test_cart.py:7: AssertionError
______________________________ TestShop.test_sell ______________________________
tests/test_shop.py:3: in test_sell
    sell()
=========================== short test summary info ============================
FAILED tests/test_cart.py::test_total - assert 1 == 2
============================== 2 failed in 0.10s ===============================
"""


def test_pytest_output_is_cut_by_failing_test() -> None:
    chunks = read_document("run.log", PYTEST).chunks
    assert [c.section for c in chunks] == [None, "test_total", "TestShop.test_sell", "short test summary info"]
    assert chunks[1].links == ("tests/test_cart.py",)
    assert chunks[3].calls[1:] == ("test_total",)
    assert {c.content_type for c in chunks} == {"excerpt"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("start\n  ● cart \u203a adds\n\n    expected 1\n\n      at f (src/a.test.js:3:1)\n\n  ● cart \u203a drops\n\n    no\n\nTest Suites: 1 failed\n",
         [None, "cart \u203a adds", "cart \u203a drops"]),
        ("run\n FAIL  src/a.test.ts [ src/a.test.ts ]\nError: no\n⎯⎯⎯⎯⎯⎯⎯[1/1]⎯\nend\n",
         [None, "src/a.test.ts [ src/a.test.ts ]", None]),
        ("info\nTraceback (most recent call last):\n  File \"a.py\", line 1, in f\n    g()\nKeyError: 'a'\n\n"
         "During handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n"
         '  File "b.py", line 2, in h\nshop.CartError: no\ninfo\n',
         [None, "shop.CartError", None]),
        ("x\nTypeError: no\n    at f (/app/a.js:1:2)\n    at async main (/app/b.js:3:4)\ny\n", [None, "TypeError", None]),
        ("x\npanic: oh no\n\ngoroutine 1 [running]:\nmain.main()\n\t/app/main.go:5 +0x1\nexit status 2\n\ny\n", [None, "oh no", None]),
        ("x\nthread 'main' panicked at src/a.rs:3:1:\noh no\n\nserved\nserved\n", [None, "main", None]),
        ("x\npanic: oh no\n\ngoroutine 1 [running]:\nmain.main()\n\t/app/main.go:5 +0x1\n\nserved\nserved\n", [None, "oh no", None]),
        ("ok\n--- FAIL: TestCart (0.00s)\n    cart_test.go:7: no\nFAIL\n", [None, "TestCart"]),
    ],
    ids=["jest", "vitest-suite", "python-chain", "js", "go", "rust-panic", "go-panic", "go-test"],
)  # fmt: skip
def test_a_failure_is_one_block(text: str, expected: list[str | None]) -> None:
    assert sections(text) == expected


def test_frames_are_calls_and_links() -> None:
    (chunk,) = read_document(
        "a.log", 'Traceback (most recent call last):\n  File "shop/cart.py", line 3, in total\nKeyError\n'
    ).chunks
    assert (chunk.calls, chunk.links) == (("KeyError", "total"), ("shop/cart.py",))
