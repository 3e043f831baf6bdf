"""`server.json`, the entry of the MCP registry, is of this version and starts this command.

Where MCP_SERVER_SCHEMA names a copy of the registry's schema of 2025-12-11 (https://static.modelcontextprotocol.io/schemas/),
the entry is held against it.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


def entry() -> dict[str, Any]:
    return json.loads((ROOT / "server.json").read_text(encoding="utf-8"))


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
