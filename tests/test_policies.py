"""Purpose policies: every column of every purpose, exact errors, whole files replaced, nothing half-applied."""

from __future__ import annotations

import math
from importlib import resources
from pathlib import Path

import pyarrow.compute as pc
import pytest
import yaml
from scoped_retrieval.nodes.errors import PolicyError
from scoped_retrieval.nodes.score_terms import TERMS
from scoped_retrieval.nodes.tables import KIND_POLICIES, PLAN_RULES, PURPOSE_POLICIES
from scoped_retrieval.nodes.vocabulary import (
    EVIDENCE_KINDS,
    PURPOSES,
    REQUIRED_EVIDENCE,
    SCORE_TERMS,
)
from scoped_retrieval.pipeline.cli import main
from scoped_retrieval.pipeline.config.policies.tables import load_policies
from scoped_retrieval.pipeline.config.policies.weight_files import load_weights, weight_file_text
from scoped_retrieval.pipeline.runs import Runs

FIX_TEST = resources.files("scoped_retrieval.data").joinpath("policies", "purposes", "fix-test.yaml").read_text()


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "purposes").mkdir()
    return tmp_path


def write(folder, text: str, name: str = "fix-test.yaml") -> None:
    (folder / "purposes" / name).write_text(text)


def changed(**changes) -> str:
    """The bundled file with values replaced by dotted key (`__` for a dot); None removes the key."""
    content = yaml.safe_load(FIX_TEST)
    for path, value in changes.items():
        *parents, last = path.split("__")
        place = content
        for key in parents:
            place = place[int(key) if isinstance(place, list) else key.replace("_", "-") if key not in place else key]
        if value is None:
            del place[last]
        else:
            place[last] = value
    return yaml.safe_dump(content)


def test_the_bundled_policies_hold_every_purpose_kind_and_weight():
    policies = load_policies()
    purposes = PURPOSE_POLICIES.check(policies.purpose_policies).to_pylist()
    assert [row["purpose"] for row in purposes] == sorted(PURPOSES.values)
    for row in purposes:
        assert any(row.get(f"weight_{term}") for term in SCORE_TERMS)
        assert "revoked" not in row["include_states"]
    kinds = KIND_POLICIES.check(policies.kind_policies)
    wide = kinds.filter(pc.equal(kinds["document_type"], ""))
    assert wide.num_rows == len(PURPOSES.values) * len(EVIDENCE_KINDS.values)
    rules = PLAN_RULES.check(policies.plan_rules).to_pylist()
    for purpose in PURPOSES.values:
        mine = [rule for rule in rules if rule["purpose"] == purpose]
        assert [rule["ordinal"] for rule in mine] == list(range(1, len(mine) + 1))
        assert {need for rule in mine for need in rule["requires"]} == set(REQUIRED_EVIDENCE.values)


def test_fix_test_asks_its_six_questions_and_prefers_logs_and_code_to_documents():
    policies = load_policies()
    asked = [rule["intent"] for rule in policies.plan_rules.to_pylist() if rule["purpose"] == "fix-test"]
    assert asked == ["find-error", "find-rule", "find-code", "find-rule", "find-memory", "find-decision"]
    kinds = {(row["purpose"], row["evidence_kind"]): row for row in policies.kind_policies.to_pylist()}
    assert kinds["fix-test", "doc"]["actionability"] < kinds["fix-test", "test-log"]["actionability"]
    assert kinds["fix-test", "test-log"]["half_life_days"] < kinds["fix-test", "code"]["half_life_days"]
    assert kinds["review-risk", "rule"]["actionability"] > kinds["review-risk", "code"]["actionability"]
    assert {kinds[p, k]["half_life_days"] for p in PURPOSES.values for k in ("rule", "decision-record")} == {math.inf}


def test_a_plan_may_use_words_for_authority_and_age(folder):
    rule = {"intent": "find-error", "question": "?", "parts": ["question"], "lanes": ["lexical"]}
    write(folder, changed(plan=[rule | {"lane_k": 7, "min_authority": "medium", "max_age_days": "36h"}]))
    plan = load_policies(folder).plan_rules
    mine = [row for row in plan.to_pylist() if row["purpose"] == "fix-test"]
    assert [(row["lane_k"], row["min_authority"], row["max_age_days"]) for row in mine] == [(7, 1, 1.5)]


def test_a_file_of_the_users_folder_replaces_one_purpose_whole(folder):
    write(folder, changed(budget__max_tokens=77))
    own, bundled = load_policies(folder), load_policies()
    tokens = dict(
        zip(own.purpose_policies["purpose"].to_pylist(), own.purpose_policies["max_tokens"].to_pylist(), strict=True)
    )
    assert (tokens["fix-test"], tokens["answer-question"]) == (77, 1200)
    assert own.digest != bundled.digest
    assert own.purpose_policies["version"].to_pylist()[:3] != own.purpose_policies["version"].to_pylist()[1:]


def test_a_policy_weighs_a_term_that_it_leaves_out_0_unless_a_role_shares_a_weight_out_to_it(folder):
    shared = {term.name for term in TERMS if term.share}
    left_out = [name for name in yaml.safe_load(FIX_TEST)["weights"] if name not in shared]
    assert {"diversity", "scope"} < set(left_out)
    write(folder, changed(**dict.fromkeys([f"weights__{name}" for name in left_out])))
    (own,) = (row for row in load_policies(folder).purpose_policies.to_pylist() if row["purpose"] == "fix-test")
    assert {name for name in own if name.startswith("weight_") and own[name]} <= {f"weight_{name}" for name in shared}


def test_an_error_of_a_document_has_its_place_and_the_valid_values_as_fields(folder):
    write(folder, changed(purpose="fix-tests"))
    with pytest.raises(PolicyError) as refused:
        load_policies(folder)
    assert refused.value.at == f"{folder}/purposes/fix-test.yaml: purpose"
    assert refused.value.choices == PURPOSES.values


def written(folder: Path, content: dict | str) -> Path:
    path = folder / "weights.yaml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


def test_a_file_changes_the_weights_that_it_names_and_nothing_else(tmp_path):
    file = written(tmp_path, weight_file_text({"explain-code": {"lexical": 0.61}}, {"date": "today"}))
    assert load_weights(file).weights == {"explain-code": {"lexical": 0.61}}
    before, after = load_policies(), load_policies(weights=file)
    rows = zip(before.purpose_policies.to_pylist(), after.purpose_policies.to_pylist(), strict=True)
    changed = {one["purpose"]: {name for name in one if one[name] != other[name]} for one, other in rows}
    assert changed.pop("explain-code") == {"weight_lexical", "version"}
    assert set(changed) == {"answer-question", "fix-test", "review-risk"}
    assert not any(changed.values())
    assert after.digest != before.digest
    assert load_policies(weights=written(tmp_path, {"weights": {}})).digest != after.digest


def test_a_flag_or_a_setting_puts_the_file_in_force(shop, capsys):
    file = written(shop, {"weights": {"explain-code": {"lexical": 0.75, "authority": 0}}})
    (shop / "requests.jsonl").write_text(
        '{"question": "default role?", "purpose": "explain-code", "project": "shop"}\n'
    )
    assert main(["ask", "default role?", "--purpose", "explain-code", "-c", f"weights={file}"]) == 0
    assert main(["run", "requests.jsonl", "-c", f"weights={file}"]) == 0
    (shop / "scoped-retrieval.toml").write_text('weights = "weights.yaml"\n')
    assert main(["run", "requests.jsonl"]) == 0
    assert main(["run", "requests.jsonl", "-c", "weights=absent.yaml"]) == 2
    assert "No such file or directory: weight file" in capsys.readouterr().err
    store = Runs(shop / ".scoped-retrieval" / "runs", create=False)
    runs = [store.open(run_id) for run_id in store.run_ids()]
    stated = [run.table("rerank_weights").select(["lexical", "authority"]).to_pylist() for run in runs]
    assert stated == [[{"lexical": 0.75, "authority": 0.0}]] * 3
