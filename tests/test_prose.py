"""The prose check reads what people read, leaves code alone, and names file and line."""

from __future__ import annotations

import pytest

pytest.importorskip("proselint", reason="proselint comes with the development tools")

from prose_check import found
from prose_text import Prose, of_source, without_code

WORDS = [{"pattern": "the doors?", "use": "interface"}]


def test_code_links_and_fields_are_no_prose():
    text = "A `door of code` and [the page](the-door.md).\n```\nthe door\n```\nOf {name} the door."
    blank = without_code(text)
    assert blank.count("door") == 1
    assert (len(blank), blank.count("\n")) == (len(text), text.count("\n"))


def test_docstrings_and_messages_are_prose_and_names_are_none():
    source = '"""Through the door."""\nkey = "the_door"\nraise_(f"Expected the door, got {name}")\n'
    assert [(piece.line, piece.text.split()) for piece in of_source("a.py", source)] == [
        (1, ["Through", "the", "door."]),
        (3, ["Expected", "the", "door,", "got"]),
    ]


def test_a_private_word_is_found_at_its_line_with_what_to_write():
    prose = [Prose("a.md", 1, "Nothing here."), Prose("b.py", 7, "First line.\nAt the door of a house.")]
    assert [one[1:] for one in found(prose, WORDS)] == [("b.py", 8, "write 'interface' instead of 'the door'")]


def test_checks_of_the_linter_are_in_use():
    prose = [Prose("a.md", 3, "The box is rectangular in shape.")]
    assert [one[1:3] for one in found(prose, WORDS)] == [("a.md", 3)]
