"""Overlay files: what is not what was expected names file, key, what was expected and what came; nothing is half applied."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from resolving import resolve_requests
from role_world import overlay
from scoped_retrieval.nodes.errors import InputError, PolicyError
from scoped_retrieval.nodes.tables import ROLE_POLICIES, ROLE_RULES
from scoped_retrieval.pipeline.config.policies.roles import load_roles, overlay_of, validate_overlay
from scoped_retrieval.pipeline.requests.allowed_names import AllowedNames

ROLES = ["architect", "critic-reviewer", "release-manager", "security-reviewer", "test-engineer"]


def written(folder: Path, value: Any, name: str = "reader.json") -> Path:
    path = folder / "roles" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def test_five_roles_ship_and_each_is_valid():
    roles = load_roles()
    assert roles.names == ROLES
    ROLE_POLICIES.check(roles.policies)
    ROLE_RULES.check(roles.rules)
    assert roles.rules.equals(roles.rules.sort_by([(name, "ascending") for name in ROLE_RULES.order]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mission": None}, "Expected a value, got nothing - at o.json: mission"),
        ({"anti_goals": "x"}, "Expected a list, got 'x' - at o.json: anti_goals"),
        ({"source_policy.preferred_sources": [{"pattern": "docs:*", "reason": "r", "boost": 2}]},
         "Expected a number less than or equal to 1, got 2 - at o.json: source_policy.preferred_sources[0].boost"),
        ({"retrieval_policy.weights": {"lexical": 0.5, "semantic": 0.2, "metadata": 0.2, "rerank": 0.2}},
         "Expected weights that sum to 1 within 0.01, got 1.1 - at o.json: retrieval_policy.weights"),
        ({"synthesis_policy.required_evidence_kinds": ["rumor"]}, "got 'rumor'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_place(changes: dict[str, Any], message: str):
    found = validate_overlay(overlay(changes), "o.json")
    assert not found["valid"]
    assert any(message in error for error in found["errors"]), found["errors"]
    with pytest.raises(PolicyError):
        overlay_of(overlay(changes), "o.json")


def test_weights_may_miss_one_by_a_hundredth_and_no_more():
    weights = {"lexical": 0.25, "semantic": 0.25, "metadata": 0.25}
    for rerank, valid in ((0.26, True), (0.24, True), (0.2611, False), (0.2389, False)):
        assert validate_overlay(overlay({"retrieval_policy.weights": weights | {"rerank": rerank}}))["valid"] is valid


def test_a_user_overlay_stands_beside_the_bundled_ones_or_in_place_of_one(tmp_path: Path):
    written(tmp_path, overlay())
    written(tmp_path, overlay({"role_id": "architect", "label": "Mine"}), "architect.json")
    roles = load_roles(tmp_path)
    assert roles.names == sorted([*ROLES, "reader"])
    labels = dict(zip(roles.names, roles.policies["label"].to_pylist(), strict=True))
    assert (labels["architect"], labels["reader"]) == ("Mine", "Reader")
    assert roles.digest != load_roles().digest


def test_the_name_of_a_file_is_its_role_id(tmp_path: Path):
    written(tmp_path, overlay(), "other.json")
    with pytest.raises(PolicyError, match="Expected other, got 'reader'"):
        load_roles(tmp_path)


def test_a_request_names_a_role_that_has_an_overlay(tmp_path: Path):
    from role_world import NOW

    row = {"question": "q", "project": "shop", "purpose": "fix-test", "role": "architcet"}
    _, failures = resolve_requests([row], principal="ana", asked_at=NOW, known=AllowedNames(roles=ROLES))
    assert (
        failures["error"]
        .to_pylist()[0]
        .startswith(f"Expected one of {', '.join(ROLES)}, got 'architcet' - at requests[0].role")
    )
    requests, _ = resolve_requests(
        [row | {"role": "architect"}], principal="ana", asked_at=NOW, known=AllowedNames(roles=ROLES)
    )
    assert requests["role"].to_pylist() == ["architect"]
    assert issubclass(PolicyError, InputError)
