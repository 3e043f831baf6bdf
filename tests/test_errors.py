"""Messages say what came in words of people, never in those of Python."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from scoped_retrieval.nodes.errors import InputError, kind_of


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, "nothing"),
        (True, "true or false"),
        (5, "a number"),
        (0.5, "a number"),
        ("x", "text"),
        ([], "a list"),
        ({}, "an object"),
        (datetime(2026, 6, 1, tzinfo=UTC), "a time"),
    ],
)
def test_a_value_of_the_wrong_kind_is_called_what_people_call_it(value: Any, kind: str):
    assert kind_of(value) == kind
    assert str(InputError.of_kind("x", value, "a.b")) == f"Expected x, got {kind} - at a.b"


@pytest.mark.parametrize(("value", "shown"), [(None, "nothing"), (True, "true"), (5, "5"), ("5", "'5'")])
def test_a_value_outside_a_list_is_shown_as_it_was_written(value: Any, shown: str):
    assert str(InputError.one_of(("a", "b"), value, "x")) == f"Expected one of a, b, got {shown} - at x"
