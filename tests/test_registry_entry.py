"""`server.json`, the entry of the MCP registry, is of this version and starts this command.

Where MCP_SERVER_SCHEMA names a copy of the registry's schema of 2025-12-11 (https://static.modelcontextprotocol.io/schemas/),
the entry is held against it.
"""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

ROOT = Path(__file__).parents[1]
OFFICIAL = os.environ.get("MCP_SERVER_SCHEMA")


def entry() -> dict[str, Any]:
    return json.loads((ROOT / "server.json").read_text(encoding="utf-8"))


@pytest.mark.skipif(OFFICIAL is None, reason="needs the registry's schema; its path is MCP_SERVER_SCHEMA")
def test_the_entry_is_as_the_registry_s_own_schema_says():
    schema = json.loads(Path(str(OFFICIAL)).read_text(encoding="utf-8"))
    assert schema["$id"] == entry()["$schema"]
    assert [error.message for error in Draft7Validator(schema).iter_errors(entry())] == []


def test_the_entry_is_of_this_version():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    (package,) = entry()["packages"]
    assert (entry()["version"], package["version"], package["identifier"]) == (version, version, "scoped-retrieval")
    assert package["runtimeArguments"][0]["value"] == f"scoped-retrieval[serve]=={version}"
    assert f"mcp-name: {entry()['name']}" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_arguments_are_flags_of_the_command(capsys: pytest.CaptureFixture[str]):
    from scoped_retrieval.pipeline.cli import main

    assert main(["serve", "--help"]) == 0
    shown = capsys.readouterr().out
    (package,) = entry()["packages"]
    first, *flags = package["packageArguments"]
    assert first["value"] == "serve" and all(flag["name"] in shown for flag in flags)
