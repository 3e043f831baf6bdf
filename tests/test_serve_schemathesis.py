"""Requests made from the OpenAPI document by schemathesis: no 500, and no answer that the document does not describe."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from profiles import PROFILE
from scoped_retrieval.pipeline.config.opening import adopt
from scoped_retrieval.pipeline.config.settings import load_settings

pytest.importorskip("fastapi", reason="needs the extra serve")
pytest.importorskip("schemathesis", reason="needs schemathesis, of the extra dev")
import schemathesis
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)
from scoped_retrieval.pipeline.servers.http_app import application
from starlette.testclient import TestClient

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
TOKEN = "token-of-ana"
EXAMPLES = PROFILE.max_examples // 2
OPERATIONS = (
    "POST /v1/retrieve", "POST /v1/evidence",
    "GET /v1/recall/xray", "GET /v1/recall/explain",
    "GET /v1/snapshots", "GET /v1/snapshots/{snapshot_id}", "GET /v1/snapshots/{snapshot_id}/why",
    "GET /v1/health",
)  # fmt: skip
OTHER_NAMES = ("GET /engram/v1/recall/xray", "GET /engram/v1/recall/explain")
"""Paths of functions that are tried by their own."""
NOTHING_TO_GET_WRONG = (
    "GET /v1/health",
)  # fmt: skip
"""Any text is a name, and there is nothing else to send."""


@pytest.fixture(scope="module")
def schema(indexed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The interface of a server with tokens; ana may append."""
    given = {"principal": "ana", "project": "shop", "lanes": "lexical"}
    folder = shutil.copytree(indexed, tmp_path_factory.mktemp("served"), dirs_exist_ok=True)
    values = load_settings(given, cwd=folder, environ={}, user=folder / "none.toml")
    adopt(values, "corpus")
    grants = yaml.safe_load(values.grants_path.read_text())
    grants["principals"]["ana"]["append"] = ["shop"]
    grants["tokens"] = {hashlib.sha256(TOKEN.encode()).hexdigest(): "ana"}
    values.grants_path.write_text(yaml.safe_dump(grants))
    app = application(values)
    with TestClient(app) as client:
        client.post("/v1/retrieve", json={"question": "role"}, headers={"authorization": f"Bearer {TOKEN}"})
        yield schemathesis.openapi.from_asgi("/openapi.json", app)


def test_every_operation_is_tried(schema: Any):
    assert sorted(found.ok().label for found in schema.get_all_operations()) == sorted(OPERATIONS + OTHER_NAMES)


@pytest.mark.parametrize("label", OPERATIONS)
def test_a_request_as_the_interface_describes_it_is_answered_as_it_says(schema: Any, label: str):
    tried(schema, label, GenerationMode.POSITIVE, CHECKS)


@pytest.mark.parametrize("label", [label for label in OPERATIONS if label not in NOTHING_TO_GET_WRONG])
def test_a_request_that_the_interface_does_not_describe_is_refused_as_it_says(schema: Any, label: str):
    lists = label == "POST /v1/retrieve"  # a list is answered row by row, with an error for each wrong one
    tried(schema, label, GenerationMode.NEGATIVE, CHECKS if lists else [*CHECKS, negative_data_rejection])


def tried(schema: Any, label: str, mode: Any, checks: list[Any]) -> None:
    """Sends requests of one kind to an operation and looks at the answers."""
    method, path = label.split()

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )
    @given(case=schema[path][method].as_strategy(generation_mode=mode))
    def sent(case: Any) -> None:
        case.call_and_validate(headers={"authorization": f"Bearer {TOKEN}"}, checks=checks)

    sent()
