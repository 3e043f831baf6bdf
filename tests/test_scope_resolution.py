"""Contracts: functions of request, grants and policies; a layer only narrows, a grant only adds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from scoped_retrieval.nodes.tables import (
    CONTRACT_BOUNDS,
    CONTRACTS,
)
from wall_worlds import NOON, POLICIES, contract_bounds_of, contracts_of
from walls import grants_of, requests_of


def resolve(request: dict, *grants: dict) -> dict:
    table = contracts_of(requests_of(request), grants_of(*grants))
    return CONTRACTS.check(table).to_pylist()[0]


def reached(request: dict, *grants: dict) -> list[dict]:
    requests, held = requests_of(request), grants_of(*grants)
    return CONTRACT_BOUNDS.check(contract_bounds_of(requests, held)).to_pylist()


@pytest.mark.parametrize(
    ("request_change", "grant"),
    [
        ({"project": "absent"}, {}),
        ({}, {"principal": "bob"}),
        ({"principal": "nobody"}, {}),
        ({}, {"expires": NOON}),
        ({}, {"own_project": False}),
    ],
)
def test_absent_foreign_unknown_expired_and_cross_project_are_refused_alike(request_change, grant):
    denied = resolve(request_change, grant)
    assert (denied["denied"], denied["denied_reason"], denied["groups"]) == (True, "nothing_granted", [])
    assert reached(request_change, grant) == []
    same = resolve(request_change | {"principal": "ana", "project": "shop"}, {"principal": "someone-else"})
    assert {name for name in denied if denied[name] != same[name]} <= {"principal", "project", "contract_id"}


def test_grants_are_judged_when_asked_and_not_at_as_of():
    later = NOON + timedelta(days=1)
    assert not resolve({"as_of": later}, {"expires": later})["denied"]
    assert resolve({"as_of": NOON - timedelta(days=9), "asked_at": later}, {"expires": later})["denied"]


def test_what_a_request_gives_counts_else_its_purpose():
    given_ = resolve({"max_tokens": 1, "merge_policy": "authority-first"}, {})
    assert (given_["max_tokens"], given_["merge_policy"]) == (1, "authority-first")
    silent = resolve({}, {})
    assert (silent["max_tokens"], silent["merge_policy"], silent["lane_k"]) == (1200, "interleave-by-relevance", 50)
    assert resolve({"lane_k": -5}, {})["lane_k"] == 0


@pytest.mark.parametrize(
    ("request_change", "grant", "states"),
    [
        ({}, {}, ["verified"]),
        ({"max_unverified_items": 2}, {}, ["candidate", "verified"]),
        ({"purpose": "answer-question"}, {}, ["candidate", "verified"]),
        ({"purpose": "answer-question", "max_unverified_items": 0}, {}, ["verified"]),
        ({"allow_stale_memory": True}, {}, ["verified", "deprecated", "expired"]),
        ({"allow_stale_memory": True}, {"states": ["verified", "deprecated"]}, ["verified", "deprecated"]),
        ({"max_unverified_items": 2}, {"states": ["verified"]}, ["verified"]),
        ({}, {"states": ["revoked"]}, []),
    ],
)
def test_shown_lifecycles_are_the_purposes_as_far_as_request_and_grants_leave_them(request_change, grant, states):
    assert resolve(request_change, grant)["include_states"] == states


def test_revoked_is_never_shown_whatever_a_policy_says():
    policies = POLICIES.set_column(
        POLICIES.schema.get_field_index("include_states"), "include_states", pa.array([["revoked", "verified"]] * 4)
    )
    assert contracts_of(requests_of({}), grants_of({}), policies=policies)["include_states"].to_pylist() == [
        ["verified"]
    ]


def test_the_window_starts_at_the_later_bound():
    day = timedelta(days=1)
    assert resolve({"window_days": 2.0}, {})["window_start"] == NOON - 2 * day
    assert resolve({"window_days": 2.0, "include_after": NOON - day}, {})["window_start"] == NOON - day
    assert resolve({"window_days": 0.5, "include_after": NOON - day}, {})["window_start"] == NOON - day / 2
    assert resolve({"exclude_after": NOON}, {})["window_end"] == NOON
    assert (resolve({}, {})["window_start"], resolve({}, {})["window_end"]) == (None, None)
    assert resolve({"window_days": 1e300}, {})["window_start"] == datetime(1, 1, 1, tzinfo=UTC)


def test_the_contract_id_covers_contract_and_bounds_but_neither_asked_at_nor_request_id():
    base = resolve({}, {})["contract_id"]
    assert len(base) == 16
    assert (
        resolve({"request_id": "z", "asked_at": NOON + timedelta(days=1), "question": "other"}, {})["contract_id"]
        == base
    )
    for change in (
        {"as_of": NOON - timedelta(days=1)},
        {"branch": "main"},
        {"max_items": 3},
        {"denied_sources": ["x"]},
    ):
        assert resolve(change, {})["contract_id"] != base
    assert resolve({}, {"zone": "private"})["contract_id"] != base
    assert (
        resolve({"denied_sources": ["b", "a", "a"]}, {})["contract_id"]
        == resolve({"denied_sources": ["a", "b"]}, {})["contract_id"]
    )


@pytest.mark.parametrize(("asked", "items", "chars", "of_source"), [
    ({}, 12, 12000, 6),
    ({"max_tokens": 100}, 12, 12000, 6),  # fewer tokens take nothing else away
    ({"max_tokens": 2**31 - 1}, 21474836, 2**31 - 1, 10737418),
])  # fmt: skip
def test_items_and_characters_that_nobody_says_grow_with_the_tokens(asked, items: int, chars: int, of_source: int):
    found = resolve({"purpose": "answer-question", **asked}, {})
    assert (found["max_items"], found["max_chars"], found["max_items_per_source"]) == (items, chars, of_source)
