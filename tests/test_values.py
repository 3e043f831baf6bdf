"""The checks that settings, YAML, requests and JSON lines share: what is a number, a flag, a time, and what a message says of the rest."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.pipeline.parsing import values, yaml_files
from scoped_retrieval.pipeline.parsing.values import TIME, YEARS
from scoped_retrieval.pipeline.sources.jsonl import Record


@pytest.mark.parametrize(("read", "value", "message"), [
    (values.whole, True, "Expected a whole number from 0 to 2147483647, got true - at f: max_tokens"),
    (values.whole, 2**31, "Expected a whole number from 0 to 2147483647, got 2147483648 - at f: max_tokens"),
    (values.whole, 2.5, "Expected a whole number from 0 to 2147483647, got 2.5 - at f: max_tokens"),
    (values.whole, math.inf, "Expected a whole number from 0 to 2147483647, got inf - at f: max_tokens"),
    (values.whole, "AKIAIOSFODNN7EXAMPLE", "Expected a whole number from 0 to 2147483647, got text - at f: max_tokens"),
    (values.number, math.nan, "Expected a number, got nan - at f: max_tokens"),
    (values.number, False, "Expected a number, got false - at f: max_tokens"),
    (values.number, 10**400, "Expected a finite number, got 1000"),
    (values.number, -math.inf, "Expected a finite number, got -inf - at f: max_tokens"),
    (values.flag, 1, "Expected true or false, got"),
    (values.instant, 5, f"Expected {TIME}, got"),
    (values.instant, "2025-01-01", f"Expected {TIME}, got"),
    (values.instant, datetime(2025, 1, 1), f"Expected {TIME}, got"),
    (values.instant, "0001-01-01T00:00:00+14:00", f"Expected {YEARS}, got"),
    (values.mapping, [], "Expected an object, got a list - at f: max_tokens"),
])  # fmt: skip
def test_what_is_none_is_named_with_what_was_expected(read: Callable[..., Any], value: Any, message: str):
    with pytest.raises(InputError) as caught:
        read(value, "f: max_tokens")
    assert caught.value.message.startswith(message)


def test_a_bound_that_is_none_is_not_named():
    for given, message in (((1, math.inf), "a number from 1, got 0"), ((0.5, 1.0), "a number from 0.5 to 1, got 0")):
        with pytest.raises(InputError, match=f"Expected {message} - at x"):
            values.number(0, "x", *given)


def test_what_is_one_is_what_it_means():
    assert (values.whole(2.0, "x"), type(values.whole(2.0, "x"))) == (2, int)
    assert values.number(math.inf, "x", infinite=True) == math.inf
    with pytest.raises(InputError, match="Expected a finite number"):
        values.number(10**400, "x", infinite=True)
    noon = datetime(2025, 6, 1, 12, tzinfo=UTC)
    assert values.instant(" 2025-06-01T14:00:00+02:00 ", "x") == values.instant(noon, "x") == noon
    assert values.instant("2025-06-01", "x", dates=True) == datetime(2025, 6, 1, tzinfo=UTC)
    assert values.instant(noon.timestamp() * 1000, "x", milliseconds=True) == noon


def test_a_part_of_a_line_of_a_file_is_no_line():
    record = Record("f:1", {"lineStart": 3.5, "matches": {"path": "a"}})
    with pytest.raises(InputError, match=r"Expected a whole number from 0 to 2147483647, got 3.5 - at f:1.lineStart"):
        record.whole("line", "lineStart")
    with pytest.raises(InputError, match=r"Expected a list, got an object - at f:1.matches"):
        record.objects("matches")


def test_a_value_of_a_yaml_file_that_is_one_costs_no_look_at_its_keys(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(yaml_files, "shown_key", lambda key: pytest.fail(f"looked at {key}"))
    assert yaml_files.YamlItem(3, "f", "budget.max_items").count() == 3
