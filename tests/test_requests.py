"""Requests on arrival: what may be asked, under which names, and what becomes of a malformed row."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from resolving import resolve_requests
from scoped_retrieval.nodes.tables import FAILURES, REQUESTS
from scoped_retrieval.pipeline.requests.allowed_names import AllowedNames

NOW = datetime(2025, 6, 1, 12, tzinfo=UTC)
ROW: dict[str, Any] = {"project": "shop", "purpose": "fix-test", "question": "why does it fail?"}


def resolved(*rows: Any, **how: Any) -> tuple[list[dict[str, Any]], dict[str, str]]:
    requests, failures = resolve_requests(rows, principal="ana", asked_at=NOW, **how)
    REQUESTS.check(requests)
    FAILURES.check(failures)
    return requests.to_pylist(), {row["request_id"]: row["error"] for row in failures.to_pylist()}


def the_only(**fields: Any) -> dict[str, Any]:
    requests, failures = resolved(ROW | fields)
    assert not failures, failures
    return requests[0]


def refusal(row: dict[str, Any], **how: Any) -> str:
    requests, failures = resolved(row, **how)
    assert not requests
    return next(iter(failures.values()))


def test_a_row_gets_its_defaults_and_both_clocks():
    request = the_only()
    assert request["principal"] == "ana"
    assert request["asked_at"] == request["as_of"] == NOW
    assert (request["tokenizer"], request["intent_source"], request["recall_effort"]) == (
        "approx-bpe/1",
        "runtime",
        "full",
    )
    assert request["max_tokens"] is None


def test_the_documents_intent_reads_like_a_flat_row():
    intent = {
        "kind": "retrieval.request",
        "id": "intent-7",
        "projectId": "shop",
        "purpose": "fix-test",
        "question": "why?",
        "anchors": {
            "failingTest": "tests/a.py::t",
            "errorText": "E1",
            "currentFiles": ["a.py"],
            "anchorSymbols": ["f"],
        },
        "requiredEvidence": ["current-code", "rule"],
        "timeBoundary": {"asOf": "2025-01-02T00:00:00+01:00", "allowStaleMemory": True},
        "evidencePolicy": {"acceptedAuthority": ["workspace"], "maxUnverifiedItems": 0, "requireSnapshot": True},
        "budget": {"maxTokens": 1200},
    }
    flat = {
        "intent_id": "intent-7",
        "project": "shop",
        "purpose": "fix-test",
        "question": "why?",
        "failing_test": "tests/a.py::t",
        "error_text": "E1",
        "current_files": ["a.py"],
        "anchor_symbols": ["f"],
        "required_evidence": ["current-code", "project-rule"],
        "as_of": "2025-01-01T23:00:00Z",
        "allow_stale_memory": True,
        "accepted_authority": ["current-workspace"],
        "max_unverified_items": 0,
        "require_snapshot": True,
        "max_tokens": 1200,
    }
    (nested,), _ = resolved(intent)
    (plain,), _ = resolved(flat)
    assert nested == plain
    assert nested["as_of"] == datetime(2025, 1, 1, 23, tzinfo=UTC)


def test_a_row_that_names_another_principal_records_who_asks_for_whom():
    other, own = the_only(principal="bob"), the_only(principal="ana")
    assert (other["principal"], other["asked_by"]) == ("bob", "ana")
    assert (own["principal"], own["asked_by"]) == ("ana", None)


def test_patterns_that_must_all_match_are_a_list_of_their_own():
    assert the_only(allowed_paths=["docs/", ["src/", "**/*.py"]])["allowed_paths"] == ["docs/", "**/*.py\nsrc/"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"purpose": "fix_tests"}, "Expected one of fix-test, explain-code, review-risk, answer-question, got 'fix_tests' - at requests[0].purpose"),
        ({"asked_at": "2025-01-01T00:00:00Z"}, "Expected no asked_at: it is set on arrival - at requests[0].asked_at"),
        ({"budget": {"max_tokens": 0}}, "Expected a whole number from 1 to 2147483647, got 0 - at requests[0].budget.max_tokens"),
        ({"quesion": "x"}, "Expected one of request_id, intent_id, intent_source, "),
        ({"role": [None]}, "Expected text, got a list - at requests[0].role"),
        ({"question": "  "}, "Expected a question or an anchor, got neither - at requests[0].question"),
        ({"as_of": "commit:xyz"}, "Expected commit:SHA with 7 to 64 hex digits, got 'commit:xyz' - at requests[0].as_of"),
        ({"tokenizer": "gpt"}, "Expected approx-bpe/1, tiktoken:cl100k_base, tiktoken:o200k_base or a path that ends in .json, got 'gpt' - at requests[0].tokenizer"),
    ],
)  # fmt: skip
def test_what_is_not_expected_is_named(fields: dict[str, Any], message: str):
    assert refusal(ROW | fields).startswith(message)


def test_ids_are_the_digest_of_what_is_asked():
    assert the_only(trace_id="t1")["request_id"] == the_only()["request_id"]
    assert the_only(question="what else?")["request_id"] != the_only()["request_id"]
    assert len(the_only()["request_id"]) == 16


def test_the_second_of_two_equal_ids_fails_under_another():
    requests, failures = resolved(ROW | {"request_id": "a"}, ROW | {"request_id": "a"}, {"request_id": "row-2", **ROW})
    assert len(requests) == 2
    assert failures == {"row-2-2": "Expected a unique request_id, got a duplicate - at requests[1].request_id"}


def test_authority_has_words_and_ranks():
    assert [the_only(min_authority=a)["min_authority"] for a in ("low", "medium", "high", 3)] == [0, 1, 2, 3]


def test_an_anchor_makes_a_question_unnecessary():
    assert the_only(question="", failing_test="tests/a.py::t")["question"] == ""


def test_weights_are_numbers_by_score_class():
    assert the_only(weights={"semantic": 0.5, "recency": 0})["weights"] == '{"recency": 0.0, "semantic": 0.5}'
    assert the_only(**{"weights.lexical": 2})["weights"] == '{"lexical": 2.0}'
    assert (
        refusal(ROW | {"weights": {"semantic": -1}})
        == "Expected a number from 0 to 100, got -1 - at requests[0].weights.semantic"
    )
    apart = the_only(**{"weights.lexical": 2, "scope": {"weights.semantic": 1}})
    assert apart["weights"] == '{"lexical": 2.0, "semantic": 1.0}'
    twice = refusal(ROW | {"weights": {"lexical": 1}, "weights.lexical": 2})
    assert twice == "Expected weights once, got it twice - at requests[0].weights"
    unknown = refusal(ROW | {"weights": {"vocabulary": 1}})
    assert "got 'vocabulary' - at requests[0].weights.vocabulary" in unknown


def test_secrets_are_masked_before_anything_else_reads_them():
    secret = "AKIA" + "Q3EGRIF5WX7YNPKS"
    request = the_only(question=f"is {secret} valid?", current_files=[f"{secret}.py"])
    assert secret not in request["question"]
    assert secret not in request["current_files"][0]


def test_a_secret_in_the_handoff_of_a_work_tree_is_masked_like_one_in_the_row(tmp_path: Path) -> None:
    variables = {"note": "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8", "venture": "acme"}
    (tmp_path / "SHO.json").write_text(json.dumps({"mode": "planning", "variables": variables}), encoding="utf-8")
    requests, _ = resolved(ROW | {"workspace_root": str(tmp_path)}, work_trees=[tmp_path.resolve()])
    (found,), said = requests, the_only(mode="planning", variables=variables)
    assert found["variables"] == said["variables"]
    assert "acme" in found["variables"] and variables["note"] not in found["variables"]


@pytest.mark.parametrize(
    "field",
    ["request_id", "intent_id", "trace_id", "model_request_id", "project", "namespace", "workspace_root", "branch",
     "test_suite", "session_id", "turn_id", "task_id", "role", "allowed_sources", "denied_sources", "allowed_paths",
     "denied_paths"],
)  # fmt: skip
def test_a_secret_in_what_bounds_compare_is_refused_and_stands_in_no_failure(field: str):
    secret = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
    value: object = [f"src/{secret}"] if field.endswith(("sources", "paths")) else secret
    requests, failures = resolve_requests(
        [{"request_id": "good"} | ROW, {"request_id": "bad"} | ROW | {field: value}], principal="ana", asked_at=NOW
    )
    assert requests["request_id"].to_pylist() == ["good"]
    (failure,) = failures.to_pylist()
    assert failure["request_id"] == ("row-2" if field == "request_id" else "bad")
    expected = f"Expected a {field} without a secret, got one with a secret - at requests[1].{field}"
    assert failure["error"].startswith(expected)
    assert secret not in str(failure)


@pytest.mark.parametrize("at", ["tokenizer", "budget.tokenizer"])
def test_a_request_opens_no_tokenizer_file_that_nobody_registered(tmp_path: Path, at: str):
    registered, there, absent = (tmp_path / name for name in ("registered.json", "there.json", "absent.json"))
    said = []
    for path in (there, absent):
        there.write_text("no tokenizer", encoding="utf-8")
        _, failures = resolved(
            ROW | {at: str(path), "request_id": "q"}, known=AllowedNames(tokenizers=[str(registered)])
        )
        said.append(failures["q"])
    expected = "Expected approx-bpe/1, tiktoken:<encoding> or a tokenizer file that is registered, got another path"
    assert said[0] == said[1], "whether a file exists, and what is in it, is not said"
    assert said[0].startswith(f"{expected} - at requests[0].{at}")
    _, failures = resolved(ROW | {at: str(there), "request_id": "q"}, known=AllowedNames(tokenizers=[str(there)]))
    assert failures["q"].startswith("Expected a tokenizers JSON file, got one that does not parse")


def test_no_message_quotes_a_question():
    assert "launch code" not in refusal(ROW | {"question": "the launch code", "purpose": "x"})
    assert "launch code" not in refusal({"request_id": "a", "question": ["the launch code"], "project": "p"})


def test_defaults_fill_what_a_row_leaves_out():
    (request,), _ = resolved({"question": "why?"}, defaults={"project": "shop", "purpose": "explain-code"})
    assert (request["project"], request["purpose"]) == ("shop", "explain-code")


def test_a_failed_row_keeps_what_of_it_can_be_read():
    secret = "AKIA" + "Q3EGRIF5WX7YNPKS"
    _, failures = resolve_requests(
        [
            ROW | {"request_id": "a", "question": f"is {secret} valid?", "budget": {"max_tokens": 0}},
            {"request_id": "b", "project": 7, "purpose": "fix_tests", "question": "why?"},
            {"kind": "retrieval.request", "projectId": "shop", "role": ""},
        ],
        principal="ana", asked_at=NOW, defaults={"project": "pay", "purpose": "review-risk"},
    )  # fmt: skip
    kept = failures.drop_columns(["error"]).to_pylist()
    assert secret not in kept[0].pop("question")
    assert kept == [
        {"request_id": "a", "project": "shop", "purpose": "fix-test"},
        {"request_id": "b", "project": None, "purpose": None, "question": "why?"},
        {"request_id": "row-3", "project": "shop", "purpose": "review-risk", "question": None},
    ]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"question": "x" * 1_000_001},
            "Expected at most 1,000,000 characters, got 1,000,001 - at requests[0].question",
        ),
        ({"state": {"log": "x" * 1_000_000}}, "Expected at most 1,000,000 characters, got 1,000,011"),
        ({"anchors": {"anchorSymbols": ["a"] * 1_001}}, "Expected at most 1,000 entries, got 1,001"),
    ],
)
def test_a_request_beyond_a_declared_limit_is_refused_by_name(fields: dict[str, Any], message: str):
    assert message in refusal({"question": "why?", "project": "shop", "purpose": "fix-test", **fields})


def test_a_mask_that_a_path_has_may_be_named():
    assert the_only(allowed_paths=["x/[REDACTED:aws-key]/**"])["allowed_paths"] == ["x/[REDACTED:aws-key]/**"]


def test_a_field_name_that_is_no_text_fails_its_row_alone():
    requests, failures = resolved(ROW, ROW | {"\ud800": 1})
    assert len(requests) == len(failures) == 1
