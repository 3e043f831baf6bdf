"""What a mode chooses for a request: paths with variables filled in, and nothing that the bounds do not hold."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.nodes.scope import mode_choices
from scoped_retrieval.nodes.scope.mode_choices import filled
from scoped_retrieval.nodes.walls.second_wall import leads_to

POLICY = {
    "mode": "planning", "version": "v", "search_paths": ["/ventures/{venture}/", "/decisions/"],
    "include_paths": ["/drafts/"], "include_when": ["drafts"], "exclude_kinds": ["path", "level", "zone"],
    "exclude_values": ["**/logs/", "sprint", "restricted"], "exclude_unless": ["debugging", "", "restricted_context"],
    "lanes": ["recent"], "lane_k": 7, "max_items": 3, "window_days": 30.0, "window_paths": ["**/{venture}/"],
    "chunk_expansion": False, "exact_lookups": True, "citation_chaining": True, "include_deleted": True,
    "newest_first": True, "cross_encoder": False,
}  # fmt: skip


def chosen(mode: str | None = "planning", **variables: Any) -> dict[str, Any]:
    return mode_choices.chosen(mode, json.dumps(variables) if variables else None, {"planning": POLICY})


def test_variables_fill_the_paths_and_the_leading_slash_is_the_root() -> None:
    found = chosen(venture="acme")
    assert found["search_paths"] == ["decisions/", "ventures/acme/"]
    assert found["window_paths"] == ["**/acme/"]
    assert (found["lane_k"], found["pool_k"], found["max_items"]) == (7, 14, 3)


def test_a_variable_is_known_with_and_without_current() -> None:
    assert chosen(current_venture="acme")["search_paths"] == chosen(venture="acme")["search_paths"]


@pytest.mark.parametrize("value", ["a/b", "..", "a\n**", "a\u2028b"])
def test_a_value_that_is_no_folder_is_refused(value: object) -> None:
    with pytest.raises(
        InputError, match=r"Expected the name of one folder, without /, got .* at requests.variables.venture"
    ):
        chosen(venture=value)


def test_a_switch_lifts_an_exclusion_and_opens_an_inclusion() -> None:
    plain, lifted = chosen(venture="a"), chosen(venture="a", debugging=True, drafts="yes", restricted_context=True)
    assert (plain["excluded_paths"], plain["excluded_zones"]) == (["**/logs/"], ["restricted"])
    assert (lifted["excluded_paths"], lifted["excluded_zones"]) == ([], [])
    assert lifted["search_paths"] == ["decisions/", "drafts/", "ventures/a/"]
    assert lifted["excluded_levels"] == ["sprint"]


@pytest.mark.parametrize("off", [False, "no", 0])
def test_a_switch_that_is_off_opens_nothing(off: object) -> None:
    found = chosen(venture="a", debugging=off, drafts=off, restricted_context=off)
    assert found == chosen(venture="a")


@pytest.mark.parametrize("on", [True, "yes", 1])
def test_a_switch_is_on_in_every_common_spelling(on: object) -> None:
    found = chosen(venture="a", restricted_context=on)
    assert found["excluded_zones"] == []


names = st.text(st.sampled_from("ab*?[]."), min_size=1, max_size=4).filter(lambda name: name not in (".", ".."))


@settings(max_examples=150, deadline=None)
@given(names, names)
def test_a_value_stands_for_itself_whatever_it_holds(value: str, other: str) -> None:
    glob = filled("/ventures/{venture}/", {"venture": value}, "r")
    for name in (value, other):
        assert leads_to(glob, f"ventures/{name}/x.md") == (name == value)


paths = st.text(st.sampled_from("ab/*[."), min_size=1, max_size=8)
