"""The algebra of contracts: bounds compose in any order and grouping, and what they leave is part of what each leaves."""

from __future__ import annotations

import json
from datetime import timedelta
from functools import reduce

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.nodes.tables import REQUESTS
from scoped_retrieval.pipeline.parsing.patterns import common_patterns
from scoped_retrieval.pipeline.requests.fields import FIELDS, columns_of
from scoped_retrieval.pipeline.requests.narrowing import Fields, narrowed
from scoped_retrieval.pipeline.requests.presets import Preset, fields_in, plain_fields
from wall_worlds import GLOBS, NOON, SELECTORS, grant_lists, row_changes
from walls import seen

words = st.sampled_from
times = words([NOON - timedelta(days=n) for n in range(4)])
bounds = st.fixed_dictionaries(
    {},
    optional={
        "allowed_sources": st.lists(words(SELECTORS), max_size=3, unique=True),
        "denied_sources": st.lists(words(SELECTORS), max_size=2),
        "allowed_paths": st.lists(words(GLOBS), max_size=3, unique=True),
        "denied_paths": st.lists(words(GLOBS), max_size=2),
        "accepted_authority": st.lists(words(["current-workspace", "project-doc", "verified-memory"]), max_size=3),
        "min_authority": st.integers(0, 3),
        "max_unverified_items": st.integers(0, 2),
        "include_after": times,
        "exclude_after": times,
        "window_days": words([1.0, 2.0, 9.0]),
        "allow_stale_memory": st.booleans(),
        "require_citation": st.booleans(),
        "max_tokens": st.integers(1, 9),
        "recall_effort": words(["none", "minimal", "full"]),
        "branch": words(["main", "dev"]),
        "namespace": words(["a", "b"]),
    },
)


def both(one: dict, other: dict) -> dict | None:
    try:
        return dict(narrowed(Fields(one), Fields(other)).given)
    except InputError:
        return None


def said(fields: dict | None) -> str | None:
    """The fields as text, each list in its simplest form."""
    if fields is None:
        return None
    lists = {name: value for name, value in fields.items() if isinstance(value, list)}
    simple = {n: common_patterns(v, None) if n.startswith("allowed") else sorted(set(v)) for n, v in lists.items()}
    return json.dumps(fields | simple, default=str, sort_keys=True)


@settings(max_examples=100, deadline=None)
@given(st.lists(bounds, min_size=3, max_size=3), st.permutations([0, 1, 2]))
def test_bounds_compose_in_any_order_and_grouping(drawn, order):
    def folded(parts: list[dict]) -> dict | None:
        return reduce(lambda one, other: None if one is None else both(one, other), parts, {})

    first = folded(drawn)
    assert said(folded([drawn[n] for n in order])) == said(first)
    right = both(drawn[1], drawn[2])
    grouped = None if right is None else both(both({}, drawn[0]) or {}, right)
    assert said(grouped) == said(first)
    assert first is None or said(both(first, drawn[order[0]])) == said(first)


@settings(max_examples=40, deadline=None)
@given(st.lists(row_changes, min_size=1, max_size=6), bounds, bounds, grant_lists)
def test_rows_under_both_bounds_are_rows_under_each(rows, one, other, grants):
    common = both({"allow_stale_memory": False, "max_unverified_items": 2} | one, other)
    assume(common is not None)
    rows = [{"path": f"p{n}"} | row for n, row in enumerate(rows)]
    assert seen(rows, common, grants) <= seen(rows, {"max_unverified_items": 2} | one, grants)
    if "max_unverified_items" in other:
        stale = {"allow_stale_memory": True}
        assert seen(rows, common, grants) <= seen(rows, stale | other, grants)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(row_changes, min_size=1, max_size=6),
    st.lists(words(GLOBS), max_size=3),
    st.lists(words(GLOBS), max_size=3),
)
def test_the_common_part_of_two_lists_allows_what_both_allow(rows, one, other):
    rows = [
        row | {"path": path}
        for row, path in zip(rows, ["p1", "p2", "src/a.py", "src/x/a.py", "src/b.py", None], strict=False)
    ]
    common = common_patterns(one, other)
    wide = [{"zone": "restricted"}]
    expected = seen(rows, {"allowed_paths": one}, wide) & seen(rows, {"allowed_paths": other}, wide)
    assert seen(rows, {"allowed_paths": common}, wide) == expected


def test_a_place_that_is_settled_as_none_stays_none():
    settled = Fields({}, frozenset({"workspace_root"}))
    for one, other in ((settled, Fields({"workspace_root": "/w"})), (Fields({"workspace_root": "/w"}), settled)):
        with pytest.raises(InputError, match=r"Expected .*no value.* got '/w' - at requests.workspace_root"):
            narrowed(one, other)
    assert narrowed(settled, Fields({"branch": "main"})) == Fields({"branch": "main"}, settled.without)


def test_every_field_that_gates_rows_meets_or_is_a_place():
    from scoped_retrieval.pipeline.requests.narrowing import BOUNDS, PLACES

    judged = {
        "principal", "project", "namespace", "workspace_root", "branch", "test_suite", "purpose", "mode", "variables",
        "allow_stale_memory", "max_unverified_items", "allowed_sources", "denied_sources", "allowed_paths",
        "denied_paths", "include_after", "exclude_after", "window_days", "accepted_authority", "min_authority",
    }  # fmt: skip
    assert judged <= BOUNDS.keys() | set(PLACES)
    assert BOUNDS.keys() | set(PLACES) <= FIELDS.keys() & REQUESTS.columns.keys()


def test_a_preset_reads_back_as_it_was_written(tmp_path):
    given_ = columns_of(
        {"allowed_paths": ["docs/", ["src/", "**/*.py"]], "time": {"as_of": "2026-03-01T12:00:00Z"}}, "x"
    )
    fields = Fields(given_, frozenset({"mode", "workspace_root"}))
    file = tmp_path / "preset.json"
    file.write_text(json.dumps(plain_fields(fields)))
    assert fields_in(file) == fields
    assert Preset(Fields(given_)).digest != Preset(fields).digest
