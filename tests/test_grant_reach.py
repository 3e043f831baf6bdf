"""Rights: judged at asked_at for the principal acted for; nothing revives one that expired, was removed or never was."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judged_rows import grants_of, requests_of, seen
from scoped_retrieval.nodes.mode_presets import mode_presets
from scoped_retrieval.nodes.scope_resolution import contract_bounds, contract_layers
from scoped_retrieval.nodes.tables import CONTRACT_LAYERS, CONTRACTS
from wall_worlds import DAY, MODES, NOON, POLICIES, ROLES, contracts_of, grant_changes, request_changes, row_changes

BOT = {"principal": "bot", "project": None, "own_project": False, "act_as": ["ana"]}
BY_BOT = {"asked_by": "bot"}


def contract(request: dict, *grants: dict) -> dict:
    return CONTRACTS.check(contracts_of(requests_of(request), grants_of(*grants))).to_pylist()[0]


def test_a_request_for_another_runs_under_an_act_as_grant_with_their_rights_alone():
    own = {"principal": "bot", "project": "shop", "zone": "restricted", "users": ["bob"]}
    rows = [{}, {"zone": "restricted"}, {"owner_user": "bob"}, {"owner_user": "ana"}, {"owner_user": "bot"}]
    assert seen(rows, BY_BOT, [{}, BOT, own]) == {0, 3}
    assert seen(rows, {"principal": "bot"}, [{}, BOT, own]) == {0, 1, 2, 4}
    found = contract(BY_BOT, {}, BOT)
    assert (found["principal"], found["asked_by"], found["denied"]) == ("ana", "bot", False)


@pytest.mark.parametrize("right", [
    {}, {"principal": "other"}, {"act_as": ["bob"]}, {"act_as": []}, {"expires": NOON}, {"project": "pay"},
])  # fmt: skip
def test_without_an_act_as_grant_that_holds_here_the_request_is_denied(right):
    grants = [{}, BOT | right] if right else [{}]
    assert contract(BY_BOT, *grants)["denied_reason"] == "act_as_not_granted"
    assert seen([{}], BY_BOT, grants) == set()


@pytest.mark.parametrize("right", [{"expires": NOON + DAY}, {"project": "shop"}, {"act_as": ["bob", "ana"]}])
def test_an_act_as_grant_holds_until_it_expires_in_its_project(right):
    assert not contract(BY_BOT, {}, BOT | right)["denied"]


def test_a_principal_that_may_not_be_acted_as_and_one_that_is_unknown_read_alike():
    known = contract(BY_BOT | {"principal": "ana"}, {}, {"principal": "bot"})
    unknown = contract(BY_BOT | {"principal": "nobody"}, {}, {"principal": "bot"})
    assert {name for name in known if known[name] != unknown[name]} == {"principal", "contract_id"}


def test_an_act_as_grant_opens_no_rows_and_is_not_passed_on():
    assert seen([{}], {"principal": "bot"}, [{}, BOT]) == set()
    chain = [{}, BOT, {"principal": "tool", "project": None, "own_project": False, "act_as": ["bot"]}]
    assert contract({"asked_by": "tool"}, *chain)["denied_reason"] == "act_as_not_granted"


def test_who_asks_for_whom_and_each_layer_is_a_row_in_order():
    requests = requests_of({}, BY_BOT, BY_BOT | {"preset": "c0ffee"}, {"asked_by": "eve"})
    layers = CONTRACT_LAYERS.check(
        contract_layers(requests, grants_of({}, BOT), POLICIES, mode_presets(requests, MODES), ROLES)
    ).to_pylist()
    told = [(row["request_id"], row["ordinal"], row["layer"]) for row in layers]
    plain = ["grants", "purpose", "request"]
    bound = ["act_as", "grants", "purpose", "preset", "request"]
    wanted = {"r0": plain, "r1": ["act_as", *plain], "r2": bound, "r3": ["act_as", *plain]}
    assert told == [(r, n, layer) for r, names in wanted.items() for n, layer in enumerate(names, start=1)]
    effects = {(row["request_id"], row["layer"]): row["effect"] for row in layers}
    assert (effects["r1", "act_as"], effects["r3", "act_as"], effects["r3", "grants"]) == (
        "principal",
        "denied",
        "denied",
    )
    assert next(row["version"] for row in layers if row["layer"] == "preset") == "c0ffee"


@pytest.mark.parametrize(("request_change", "reason"), [
    ({"allowed_sources": []}, "no_source_allowed"), ({"allowed_paths": []}, "no_path_allowed"),
    ({"accepted_authority": []}, "no_authority_accepted"),
])  # fmt: skip
def test_an_empty_list_of_allowances_is_denied(request_change, reason):
    assert contract(request_change, {})["denied_reason"] == reason
    assert not contract({}, {})["denied"]


@pytest.mark.parametrize("grant", [{"sources": []}, {"paths": []}])
def test_a_grant_that_allows_nothing_is_no_grant(grant):
    assert contract({}, grant)["denied_reason"] == "nothing_granted"
    assert seen([{}], {}, [grant, {}]) == {0}


def test_a_denied_path_is_denied_by_every_grant_of_its_project_and_no_other():
    requests, held = (
        requests_of({}, {"project": "pay"}),
        grants_of({}, {"denied_paths": ["b/", "a/"]}, {"project": "pay"}),
    )
    bounds = contract_bounds(requests, held, contracts_of(requests, held)).to_pylist()
    assert [(row["request_id"], row["denied_paths"]) for row in bounds] == [
        ("r0", ["a/", "b/"]), ("r0", ["a/", "b/"]), ("r1", []),
    ]  # fmt: skip


instants = st.integers(-9, 9).map(lambda days: NOON + days * DAY)


@settings(max_examples=40, deadline=None)
@given(st.lists(row_changes, min_size=1, max_size=6), request_changes, grant_changes, instants)
def test_an_expired_grant_and_a_removed_principal_stay_shut_at_every_as_of(rows, request, grant, as_of):
    rows = [row | {"recorded": as_of - DAY} for row in rows]
    request = request | {"as_of": as_of, "project": "shop"}
    assert seen(rows, request, [grant | {"expires": NOON}]) == set()
    assert seen(rows, request, [grant | {"principal": "somebody else"}]) == set()


@settings(max_examples=40, deadline=None)
@given(st.lists(row_changes, min_size=1, max_size=6), request_changes, grant_changes, grant_changes)
def test_acting_for_another_is_asking_as_them(rows, request, theirs, own):
    mine = own | {"principal": "bot"}
    assert seen(rows, request | BY_BOT, [theirs, mine, BOT]) == seen(rows, request, [theirs])
