"""Policies, grants and requests of every version so far are read; those of a later one are refused by name."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from scoped_retrieval.nodes.errors import PolicyError
from scoped_retrieval.pipeline.config.grants import load_grants
from scoped_retrieval.pipeline.config.policies.tables import load_policies
from scoped_retrieval.pipeline.requests.files import read_requests
from scoped_retrieval.pipeline.requests.resolve import resolve_requests

INPUTS_1 = Path(__file__).parent / "fixtures/formats/inputs-1"
"""Written by hand before there was a version: a file that says none has version 1."""
NOW = datetime(2026, 6, 1, tzinfo=UTC)


def stated(file: Path, version: object) -> None:
    file.write_text(yaml.safe_dump({"schema_version": version} | yaml.safe_load(file.read_text())))


@pytest.fixture(name="inputs")
def inputs_fixture(tmp_path: Path) -> Path:
    return Path(shutil.copytree(INPUTS_1, tmp_path / "inputs"))


def test_policies_of_version_1_are_read_with_and_without_their_version(inputs: Path) -> None:
    before = load_policies(inputs / "policies")
    for file in (inputs / "policies").rglob("*.yaml"):
        stated(file, 1)
    after = load_policies(inputs / "policies")
    assert before.purpose_policies.drop(["version"]).equals(after.purpose_policies.drop(["version"]))
    assert before.mode_policies.drop(["version"]).equals(after.mode_policies.drop(["version"]))
    assert after.purpose_policies.num_rows == 4


@pytest.mark.parametrize("version", [2, [1]])
@pytest.mark.parametrize("name", ["policies/purposes/fix-test.yaml", "policies/modes/review.yaml", "grants.yaml"])
def test_another_version_of_a_file_is_refused(inputs: Path, name: str, version: object) -> None:
    stated(inputs / name, version)
    with pytest.raises(PolicyError, match=r"^Expected 1, got .* - at .*schema_version"):
        load_grants(inputs / name) if name == "grants.yaml" else load_policies(inputs / "policies")


def test_grants_of_version_1_are_read_with_and_without_their_version(inputs: Path) -> None:
    before = load_grants(inputs / "grants.yaml").table
    stated(inputs / "grants.yaml", 1)
    assert load_grants(inputs / "grants.yaml").table.equals(before)
    assert set(before["principal"].to_pylist()) == {"ana", "bo"}


def test_requests_of_version_1_are_read_with_and_without_their_version(inputs: Path) -> None:
    rows = [json.loads(line) for line in (inputs / "requests.jsonl").read_text().splitlines()]
    read, failed = resolve_requests(read_requests(inputs / "requests.jsonl"), principal="ana", asked_at=NOW)
    assert (read["request_id"].to_pylist(), failed.num_rows) == (["camel", "flat", "grouped"], 0)
    named = [{"schema_version": 1} | rows[0], {"schemaVersion": "1"} | rows[1], rows[2]]
    assert resolve_requests(named, principal="ana", asked_at=NOW)[0].equals(read)


@pytest.mark.parametrize("version", [2, [1]])
def test_a_request_of_another_version_fails_alone(version: object) -> None:
    asked = {"question": "one", "project": "shop", "purpose": "answer-question"}
    rows = [asked, asked | {"question": "two", "schema_version": version}]
    read, failed = resolve_requests(rows, principal="ana", asked_at=NOW)
    assert (read.num_rows, failed.num_rows) == (1, 1)
    assert failed["error"][0].as_py().startswith("Expected schema version 1, got ")
