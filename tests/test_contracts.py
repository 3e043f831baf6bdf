"""What a contract could see, in counts and words, before anything is asked; and what cannot be meant."""

from __future__ import annotations

from datetime import timedelta

import pytest
import yaml
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.nodes.walls.gates import GATES
from scoped_retrieval.pipeline.config.grants import load_grants
from scoped_retrieval.pipeline.config.policies.tables import load_policies
from scoped_retrieval.pipeline.contracts.explain import explain, lint
from scoped_retrieval.pipeline.contracts.scope import ContractResolver, delegated, difference, written_out
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.requests.fields import columns_of
from scoped_retrieval.pipeline.requests.narrowing import Fields
from scoped_retrieval.pipeline.requests.presets import plain_fields
from small_corpus import NOON, Story, days_ago, row

ROWS = (
    row("workspace", "src/cart.py", "def total(cart): return sum(cart)", days=40, evidence_kind="code"),
    row("workspace", "src/keys/sign.py", "def sign(cart): ...", days=3, evidence_kind="code"),
    row("project-doc", "docs/cart.md", "The cart has a total.", days=2, evidence_kind="doc"),
    row("artifact", "logs/cart.log", "cart test failed", days=1, evidence_kind="test-log", zone="private"),
    row("memory", "memory/1", "cart totals are in cents", evidence_kind="memory", lifecycle="candidate", owner_user=""),
)
SHARED = {"zones": "internal", "reason": "shared", "expires": "2099-01-01T00:00:00Z"}
GRANTS = {
    "principals": {"ana": {"projects": ["shop"]}, "cyd": {"projects": [{"project": "shop", "zones": "restricted"}]}},
    "grants": [{"principal": "ana", "project": "pay", "sources": ["workspace"], **SHARED}],
}


@pytest.fixture(name="resolver", scope="module")
def desk_fixture(tmp_path_factory) -> ContractResolver:
    folder = tmp_path_factory.mktemp("resolver")
    Story(folder, *ROWS).tell(row("workspace", "src/pay.py", "def pay(cart): ...", evidence_kind="code"), project="pay")
    (folder / "grants.yaml").write_text(yaml.safe_dump(GRANTS))
    return ContractResolver(
        Corpus.open(folder / "corpus"), load_grants(folder / "grants.yaml"), load_policies(), "ana", NOON,
        {"project": "shop", "purpose": "answer-question"},
    )  # fmt: skip


def fields(**given) -> Fields:
    return Fields(columns_of(given, "request"))


def paths(resolver: ContractResolver, asked: Fields) -> set[str]:
    return set(resolver.scope(asked).column("path").to_pylist())


def test_a_preview_counts_admissible_rows_alone(resolver):
    found = explain(resolver.scope(fields(denied_paths=["src/keys/"])))
    assert found["rows"] == found["documents"] == 4
    assert found["by"]["project"] == {"shop": 3, "pay": 1}
    assert found["by"]["zone"] == {"internal": 4}
    assert found["by"]["lifecycle"] == {"verified": 3, "candidate": 1}
    assert found["by"]["origin_class"] == {"workspace": 2, "memory": 1, "project-doc": 1}
    assert found["by"]["month"] == {days_ago(40).strftime("%Y-%m"): 1, "2026-05": 3}


def test_a_preview_of_a_denied_contract_counts_nothing(resolver):
    for asked in (fields(project="nowhere"), fields(allowed_paths=[]), fields(principal="cyd")):
        found = explain(resolver.scope(asked))
        assert (found["gates"], found["rows"], found["by"]["source"]) == ([], 0, {})
        assert found["denied_reason"] in ("nothing_granted", "no_path_allowed", "act_as_not_granted")


def test_every_gate_is_explained_with_the_rule_that_decides(resolver):
    asked = fields(
        denied_sources=["external"], allowed_paths=["docs/", ["src/", "*.py"]], branch="main", min_authority=1
    )
    found = explain(resolver.scope(asked))
    told = {gate["gate"]: (gate["rule"], gate["says"]) for gate in found["gates"]}
    assert list(told) == [gate.name for gate in GATES]
    own, shared = "principals.ana.projects[0]", "grants[0]"
    assert told["project"] == (f"{shared}, {own}", "Rows of pay, shop.")
    assert told["zone"] == (
        f"{shared}, {own}",
        "Rows whose zone is at most internal in pay; is at most internal in shop.",
    )
    assert told["source_allow"] == (shared, "Rows whose source matches workspace in pay.")
    assert told["source_deny"] == ("request.denied_sources", "Rows whose source does not match external.")
    assert told["path_allow"] == (
        "request.allowed_paths",
        "Rows whose path matches (*.py and src/) or docs/.",
    )
    assert told["branch"] == ("request.branch", "Rows whose branch is none or main.")
    assert told["workspace"][1] == "Rows whose work tree is none or that of the request, none."
    assert told["min_authority"] == ("request.min_authority", "Rows whose authority is at least 1.")
    assert told["lifecycle"][0] == "purpose answer-question"
    assert found["refusal"] is None


@pytest.mark.parametrize(("zone", "rule", "says"), [
    ("restricted", "", "Every zone."),
    ("private", "grants[0], principals.ana.projects[0]", "Rows whose zone is at most private or is at most internal in shop."),
    ("internal", "grants[0], principals.ana.projects[0]", "Rows whose zone is at most internal in shop."),
])  # fmt: skip
def test_of_two_grants_of_a_project_either_suffices(resolver, tmp_path, zone, rule, says):
    second = SHARED | {"principal": "ana", "project": "shop", "zones": zone}
    (tmp_path / "grants.yaml").write_text(yaml.safe_dump({"principals": GRANTS["principals"], "grants": [second]}))
    two = ContractResolver(
        resolver.corpus, load_grants(tmp_path / "grants.yaml"), resolver.policies, "ana", NOON, resolver.defaults
    )
    told = {gate["gate"]: (gate["rule"], gate["says"]) for gate in explain(two.scope(fields()))["gates"]}
    assert told["zone"] == (rule, says)


@pytest.mark.parametrize(("denied", "words"), [("hr/", "hr/ or (none)"), ("path:hr/", "path:hr/")])
def test_a_denial_says_whether_it_denies_rows_without_a_path(resolver, denied, words):
    told = {gate["gate"]: gate["says"] for gate in explain(resolver.scope(fields(denied_paths=[denied])))["gates"]}
    assert told["path_deny"] == f"Rows whose path does not match {words}."


def rules(resolver: ContractResolver, **given) -> list[tuple[str, str, str]]:
    return [(one["level"], one["rule"], one["at"]) for one in lint(resolver, fields(**given))]


@pytest.mark.parametrize(("given_", "finding"), [
    ({"project": "nowhere"}, ("error", "allows_nothing", "nothing_granted")),
    ({"allowed_sources": ["docs:*"]}, ("warning", "matches_nothing", "request.allowed_sources")),
    ({"as_of": (NOON - timedelta(days=400)).isoformat()}, ("error", "allows_nothing", "contract")),
])  # fmt: skip
def test_what_cannot_be_meant_is_named(resolver, given_, finding):
    assert finding in rules(resolver, **given_)


def test_a_rule_of_a_grant_that_matches_nothing_is_named(resolver, tmp_path):
    content = {"principals": {"ana": {"projects": [{"project": "shop", "paths": ["src/", "old/"]}]}}}
    (tmp_path / "grants.yaml").write_text(yaml.safe_dump(content))
    narrow = ContractResolver(
        resolver.corpus, load_grants(tmp_path / "grants.yaml"), resolver.policies, "ana", NOON, resolver.defaults
    )
    found = [one for one in lint(narrow, fields()) if one["rule"] == "matches_nothing"]
    assert [(one["at"], one["message"]) for one in found] == [
        ("principals.ana.projects[0].paths", "old/ matches nothing that could be seen.")
    ]


def test_lint_tells_nothing_of_rows_that_no_such_request_may_see(tmp_path):
    """A log in a private zone, and none at all, are linted in the same words."""
    told = []
    for name, rows in (("with", ROWS), ("without", ROWS[:3] + ROWS[4:])):
        Story(tmp_path / name, *rows)
        (tmp_path / name / "grants.yaml").write_text(yaml.safe_dump(GRANTS))
        grants = load_grants(tmp_path / name / "grants.yaml")
        resolver = ContractResolver(
            Corpus.open(tmp_path / name / "corpus"), grants, load_policies(), "ana", NOON, {"project": "shop"}
        )
        given_ = fields(purpose="fix-test", required_evidence=["test-log"], denied_sources=["artifact"])
        told.append((lint(resolver, given_), explain(resolver.scope(given_))["by"]))
    assert told[0] == told[1]


def test_two_contracts_differ_in_fields_and_in_rows_of_each(resolver):
    one, other = (
        resolver.scope(fields(allowed_paths=["src/"])),
        resolver.scope(fields(allowed_paths=["docs/", "src/keys/"])),
    )
    found = difference(one, other, ids=True)
    assert found["rows"] == {"only_a": 2, "only_b": 1, "both": 1}
    assert found["fields"] == [{"field": "allowed_paths", "a": ["src/"], "b": ["docs/", "src/keys/"]}]
    assert set(found["ids"]["only_b"]) <= set(other.ids.to_pylist())
    assert "ids" not in difference(one, other)
    assert difference(one, one)["fields"] == []


def test_a_child_sees_no_row_that_its_parent_does_not(resolver):
    parent = fields(allowed_paths=["src/"], max_tokens=900, as_of=days_ago(2).isoformat())
    child = fields(allowed_paths=["**/keys/", "docs/"], max_tokens=5000, max_unverified_items=9)
    narrow, above, below = delegated(resolver, parent, child)
    assert (len(above.rows), set(below.column("path").to_pylist())) == (2, {"src/keys/sign.py"})
    assert (narrow.given["max_tokens"], narrow.given["as_of"]) == (900, days_ago(2))
    assert narrow.given["max_unverified_items"] == above.contract["max_unverified_items"]
    assert {"workspace_root", "mode"} <= narrow.without
    assert plain_fields(narrow)["allowed_paths"] == [["**/keys/", "src/"], ["docs/", "src/"]]


@pytest.mark.parametrize("given_", [
    {"project": "pay"}, {"purpose": "fix-test"}, {"workspace_root": "/w"}, {"principal": "cyd"},
    {"as_of": "2026-05-01T00:00:00Z"}, {"mode": "review"},
])  # fmt: skip
def test_a_child_stands_where_its_parent_does(resolver, given_):
    with pytest.raises(InputError, match="as in the preset or parent contract"):
        delegated(resolver, fields(as_of=NOON.isoformat()), fields(**given_))


MODE = {"mode": "planning", "variables": {"venture": "acme"}}


@pytest.mark.parametrize(
    "asked",
    [
        {
            "allowed_paths": ["src/"],
            "denied_sources": ["memory"],
            "branch": "main",
            "window_days": 30,
            "min_authority": 1,
        },
        MODE,
    ],
)
def test_a_contract_written_out_resolves_to_itself(resolver, asked):
    once = resolver.scope(fields(**asked))
    assert resolver.scope(written_out(once)).contract == once.contract


def test_a_child_keeps_the_variables_of_its_parent(resolver):
    for other in ({"venture": "acme", "restricted_context": True}, {"venture": "other"}):
        with pytest.raises(InputError, match="as in the preset or parent contract"):
            delegated(resolver, fields(**MODE), fields(variables=other))
