"""Policies, grants and requests of another version are refused by name."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from scoped_retrieval.nodes.errors import PolicyError
from scoped_retrieval.pipeline.config.grants import load_grants
from scoped_retrieval.pipeline.config.policies.tables import load_policies
from scoped_retrieval.pipeline.requests.resolve import resolve_requests

POLICIES = Path(__file__).parents[1] / "data/policies"
NOW = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.mark.parametrize("version", [2, [1]])
@pytest.mark.parametrize("name", ["policies/purposes/fix-test.yaml", "policies/modes/review.yaml", "grants.yaml"])
def test_another_version_of_a_file_is_refused(tmp_path: Path, name: str, version: object) -> None:
    shutil.copytree(POLICIES, tmp_path / "policies")
    (tmp_path / "grants.yaml").write_text("principals: {ana: {projects: [shop]}}")
    file = tmp_path / name
    file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | {"schema_version": version}))
    with pytest.raises(PolicyError, match=r"^Expected 1, got .* - at .*schema_version"):
        load_grants(file) if name == "grants.yaml" else load_policies(tmp_path / "policies")


@pytest.mark.parametrize("version", [2, [1]])
def test_a_request_of_another_version_fails_alone(version: object) -> None:
    asked = {"question": "one", "project": "shop", "purpose": "answer-question"}
    rows = [asked, asked | {"question": "two", "schema_version": version}]
    read, failed = resolve_requests(rows, principal="ana", asked_at=NOW)
    assert (read.num_rows, failed.num_rows) == (1, 1)
    assert failed["error"][0].as_py().startswith("Expected schema version 1, got ")
