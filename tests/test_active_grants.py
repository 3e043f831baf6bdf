"""Rights: judged at asked_at for the principal acted for; nothing revives one that expired, was removed or never was."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scoped_retrieval.nodes.scope.active_grants import active_grants_of, bounds_of
from scoped_retrieval.nodes.tables import CONTRACTS
from scoped_retrieval.nodes.vocabulary import LIFECYCLES
from wall_worlds import (
    DAY,
    NOON,
    contracts_of,
    words,
)
from walls import grants_of, requests_of, seen

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


def test_an_act_as_grant_opens_no_rows_and_is_not_passed_on():
    assert seen([{}], {"principal": "bot"}, [{}, BOT]) == set()
    chain = [{}, BOT, {"principal": "tool", "project": None, "own_project": False, "act_as": ["bot"]}]
    assert contract({"asked_by": "tool"}, *chain)["denied_reason"] == "act_as_not_granted"


@pytest.mark.parametrize(("request_change", "reason"), [
    ({"allowed_sources": []}, "no_source_allowed"), ({"allowed_paths": []}, "no_path_allowed"),
    ({"accepted_authority": []}, "no_authority_accepted"),
])  # fmt: skip
def test_an_empty_list_of_allowances_is_denied(request_change, reason):
    assert contract(request_change, {})["denied_reason"] == reason
    assert not contract({}, {})["denied"]


def optional_list(*of: str) -> st.SearchStrategy[list[str] | None]:
    return st.none() | st.lists(words(of), max_size=2)


who, where, expiries = words(["ana", "bob", "bot"]), words(["shop", "pay", "hr"]), words([None, NOON, NOON + DAY])
drawn_requests = st.lists(
    st.fixed_dictionaries({"principal": who, "project": where, "asked_at": words([NOON, NOON + DAY, NOON - DAY])},
                          optional={"asked_by": who}), min_size=1, max_size=5,
)  # fmt: skip
opening = st.fixed_dictionaries(
    {"principal": who, "project": where, "own_project": st.booleans(), "expires": expiries},
    optional={
        "for_projects": optional_list("shop", "pay"), "sources": optional_list("docs:*", "memory"),
        "paths": optional_list("src/", "docs/"), "denied_paths": optional_list("a/", "b/"),
        "users": optional_list("cyd", "bob"), "namespaces": optional_list("n1", "n2"), "groups": optional_list("dev", "ops"),
        "states": optional_list("verified", "candidate", "deprecated"), "zone": words(["public", "restricted"]),
    },
)  # fmt: skip
acting = st.fixed_dictionaries(
    {"principal": who, "project": st.none() | where, "own_project": st.just(False), "expires": expiries,
     "act_as": st.lists(who, max_size=2)},
)  # fmt: skip
drawn_grants = st.lists(opening | acting, max_size=8)


def in_force(grant: dict, request: dict) -> bool:
    return grant["expires"] is None or request["asked_at"] < grant["expires"]


def may_ask(request: dict, grants: list[dict]) -> bool:
    """Whether the credential asks for itself, or for one that it may act as here and now."""
    asks = request["asked_by"]
    return asks in (None, request["principal"]) or any(
        grant["principal"] == asks and request["principal"] in (grant["act_as"] or [])
        and grant["project"] in (None, request["project"]) and in_force(grant, request)
        for grant in grants
    )  # fmt: skip


def reached(request: dict, grants: list[dict]) -> list[dict]:
    """The grants that a request reaches through: the rule, one grant at a time."""
    mine = [
        grant for grant in grants
        if grant["principal"] == request["principal"] and grant["act_as"] is None and grant["project"] is not None
        and grant["sources"] != [] and grant["paths"] != [] and in_force(grant, request)
    ]  # fmt: skip
    own = [grant for grant in mine if grant["own_project"] and grant["project"] == request["project"]]
    lent = [
        grant for grant in mine
        if not grant["own_project"] and (grant["for_projects"] is None or request["project"] in grant["for_projects"])
    ]  # fmt: skip
    found = [*own, *lent] if own and may_ask(request, grants) else []
    return sorted(found, key=lambda grant: (grant["project"], grant["rule_id"]))


def tidy(values: list[str] | None) -> list[str] | None:
    return None if values is None else sorted(set(values))


def bound(request: dict, grant: dict, through: list[dict]) -> dict:
    """The row of CONTRACT_BOUNDS of one grant."""
    denied = [glob for other in through if other["project"] == grant["project"] for glob in other["denied_paths"] or ()]
    return {
        "request_id": request["request_id"], "project": grant["project"], "rule_id": grant["rule_id"],
        "users": tidy([grant["principal"], *(grant["users"] or ())]), "sources": tidy(grant["sources"]),
        "paths": tidy(grant["paths"]), "denied_paths": tidy(denied), "zone": grant["zone"],
        "namespaces": tidy(grant["namespaces"]), "states": tidy(grant["states"]),
    }  # fmt: skip


def lifecycles(request: dict, through: list[dict]) -> set[str]:
    """What the grants of the own project leave of the lifecycles; all of them where nothing is granted."""
    own = [grant["states"] for grant in through if grant["own_project"]]
    if not own or None in own:
        return set(LIFECYCLES.values)
    return {state for states in own for state in states}


@settings(max_examples=150, deadline=None)
@given(drawn_requests, drawn_grants)
def test_who_reaches_what_is_what_the_rule_says_of_each_grant_alone(requests: list[dict], grants: list[dict]):
    asked, held = requests_of(*requests), grants_of(*grants)
    reach = active_grants_of(asked.to_pylist(), held)
    rules = held.to_pylist()
    through = [reached(request, rules) for request in asked.to_pylist()]
    names = asked["request_id"].to_pylist()
    pairs = [(name, grant["rule_id"]) for name, of in zip(names, reach, strict=True) for grant in of.grants]
    wanted = [(f"r{n}", grant["rule_id"]) for n, found in enumerate(through) for grant in found]
    assert pairs == wanted
    assert [of.acting for of in reach] == [may_ask(request, rules) for request in asked.to_pylist()]
    assert [of.groups for of in reach] == [tidy([g for one in found for g in one["groups"] or ()]) for found in through]
    assert [of.states for of in reach] == [
        lifecycles(request, found) for request, found in zip(asked.to_pylist(), through, strict=True)
    ]
    denied = [n % 3 == 2 for n in range(len(through))]
    reach = [of._replace(refused="x") if refused else of for of, refused in zip(reach, denied, strict=True)]
    bounds = bounds_of(asked, reach).to_pylist()
    assert bounds == [
        bound(request, grant, found)
        for request, found, refused in zip(asked.to_pylist(), through, denied, strict=True)
        for grant in found if not refused
    ]  # fmt: skip
