"""The MCP inspector's command line calls every tool, over stdio and HTTP, on both protocol eras.

It is a program of Node: `npm install @modelcontextprotocol/inspector`, then the path of `mcp-inspector` in MCP_INSPECTOR.
Inspectors before 2.0 speak the handshake revisions only: their tests of the stateless one are skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_line import indexed_fixture, shop_fixture  # noqa: F401 - fixtures
from served import MCP, server

INSPECTOR = os.environ.get("MCP_INSPECTOR") or shutil.which("mcp-inspector")
pytestmark = pytest.mark.skipif(INSPECTOR is None, reason="needs the MCP inspector; its path is MCP_INSPECTOR")
MODULE = (
    sys.executable,
    "-m",
    "scoped_retrieval.pipeline.cli",
    "serve",
    "--stdio",
    "--project",
    "shop",
    "-c",
    "lanes=lexical",
)
STDIO = ("-e", "SCOPED_RETRIEVAL_PRINCIPAL=ana", *MODULE)  # servers are started without the variables of the inspector
ERAS = ("legacy", "modern")
"""Revisions with a handshake (2025-11-25 at the latest), and the stateless one (2026-07-28)."""


@cache
def knows_eras() -> bool:
    """Whether the inspector takes `--protocol-era`."""
    shown = subprocess.run(
        [str(INSPECTOR), "--cli", "--help"], capture_output=True, text=True, timeout=120, check=False
    )
    return "--protocol-era" in shown.stdout


def in_era(server: tuple[str, ...], era: str) -> tuple[str, ...]:
    if knows_eras():
        return (*server, "--protocol-era", era)
    if era == "modern":
        pytest.skip("this inspector knows no revision without a handshake")
    return server


def inspected(server: tuple[str, ...], *asked: str) -> Any:
    command = [str(INSPECTOR), "--cli", *server, *asked]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert found.returncode == 0, found.stderr + found.stdout
    return json.loads(found.stdout)


def called(server: tuple[str, ...], name: str, **arguments: str) -> Any:
    said = [part for key, value in arguments.items() for part in ("--tool-arg", f"{key}={value}")]
    found = inspected(server, "--method", "tools/call", "--tool-name", name, *said)
    assert not found.get("isError"), found
    return found["structuredContent"]


def every_tool(server: tuple[str, ...]) -> None:
    """Calls each tool that the server offers."""
    tools = {tool["name"] for tool in inspected(server, "--method", "tools/list")["tools"]}
    found = called(server, "scoped_retrieve", question="default role")
    cited, snapshot = found["citations"][0], found["snapshot_id"]
    assert called(server, "recall_xray", query="default role")["snapshotFound"] is True
    assert called(server, "replay", snapshot_id=snapshot)["block"] == found["block"]
    assert (
        called(server, "why", snapshot_id=snapshot, evidence=cited["evidence_id"])["rows"][0]["outcome"] == "selected"
    )
    added = called(server, "append_evidence", rows=json.dumps([{"text": "The okapi rule."}]))
    assert added["evidence_ids"]
    assert tools == {"scoped_retrieve", "recall_xray", "replay", "why", "append_evidence"}


@pytest.fixture
def appending(shop: Path) -> None:
    file = shop / ".scoped-retrieval/corpus/grants.yaml"
    grants = yaml.safe_load(file.read_text())
    grants["principals"]["ana"]["append"] = ["shop"]
    file.write_text(yaml.safe_dump(grants))


@pytest.mark.usefixtures("appending")
@pytest.mark.parametrize("era", ERAS)
def test_the_inspector_calls_every_tool_over_stdio(era: str):
    every_tool(in_era(STDIO, era))


@pytest.mark.usefixtures("appending")
@pytest.mark.parametrize("era", ERAS)
def test_the_inspector_calls_every_tool_over_http(era: str):
    with server(*MCP) as (_, port):
        every_tool(in_era((f"http://127.0.0.1:{port}/mcp", "--transport", "http"), era))
