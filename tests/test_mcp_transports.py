"""The official client drives every tool of the MCP server as a process: stdio and HTTP, on both protocol eras."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from served import MCP, server

pytest.importorskip("mcp", reason="needs the extra serve")
import anyio
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

TOOLS = {"scoped_retrieve", "recall_xray", "replay", "why", "append_evidence"}
ERAS = {"2026-07-28": "2026-07-28", "legacy": "2025-11-25"}
"""The revision that the client is to speak, and the one that it then speaks."""
Work = Callable[[Client], Awaitable[None]]


@pytest.fixture(autouse=True)
def appending(shop: Path) -> None:
    """Ana may append, so that every tool is there."""
    file = shop / ".scoped-retrieval/corpus/grants.yaml"
    grants = yaml.safe_load(file.read_text())
    grants["principals"]["ana"]["append"] = ["shop"]
    file.write_text(yaml.safe_dump(grants))


def over_stdio(mode: Any, work: Work) -> None:
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "scoped_retrieval.pipeline.cli", "serve", "--stdio", "--project", "shop", "-c", "lanes=lexical"],
        env=dict(os.environ),
    )
    connected(command, mode, work)


def over_http(mode: Any, work: Work) -> None:
    with server(*MCP) as (_, port):
        connected(f"http://127.0.0.1:{port}/mcp", mode, work)


def connected(to: Any, mode: Any, work: Work) -> None:
    async def run() -> None:
        async with Client(to, mode=mode) as client:
            await work(client)

    anyio.run(run)


async def every_tool(client: Client) -> None:
    """Calls each tool."""
    tools = (await client.list_tools()).tools
    assert {tool.name for tool in tools} == TOOLS
    assert sum(len(tool.model_dump_json(exclude_none=True)) for tool in tools) < 6_144, "a model reads all of it"
    called: set[str] = set()

    async def call(name: str, **arguments: Any) -> Any:
        answer = await client.call_tool(name, arguments)
        assert answer.is_error is False, (name, answer.content)
        called.add(name)
        return answer

    answer = await call("scoped_retrieve", question="default role")
    found = answer.structured_content
    cited, snapshot = found["citations"][0], found["snapshot_id"]
    assert "block" not in found, "it stands once, in the text"
    for name in ("recall_xray", "engram.recall_xray", "remnic.recall_xray"):
        shown = await call(name, query="default role", sessionKey="s-1", budget=700, format="text")
        assert shown.content[0].text.startswith("=== Recall X-ray") and shown.structured_content is None, (
            "it stands once"
        )
    assert answer.content[0].text.startswith((await call("replay", snapshot_id=snapshot)).content[0].text)
    why = await call("why", snapshot_id=snapshot, evidence=cited["evidence_id"])
    assert "outcome: selected" in why.content[0].text and why.structured_content is None
    await call("append_evidence", rows=[{"text": "The okapi rule."}])
    assert called == {*TOOLS, "engram.recall_xray", "remnic.recall_xray"}, "document 002's names answer, too"

    refused = await client.call_tool("scoped_retrieve", {"question": "role", "project": "pay"})
    assert refused.is_error is True and "got 'project'" in refused.content[0].text
    with pytest.raises(MCPError, match="Expected one of scoped_retrieve"):
        await client.call_tool("drop_table", {})


@pytest.mark.parametrize("over", [over_stdio, over_http])
@pytest.mark.parametrize("mode", ERAS)
def test_every_tool_answers(mode: Any, over: Callable[[Any, Work], None]):
    async def work(client: Client) -> None:
        assert client.protocol_version == ERAS[mode]
        await every_tool(client)

    over(mode, work)


def test_the_sdk_knows_these_revisions_and_no_newer_one():
    """A newer SDK makes this fail, so that what the documentation says of revisions is read again."""
    assert (HANDSHAKE_PROTOCOL_VERSIONS[-1], MODERN_PROTOCOL_VERSIONS) == ("2025-11-25", ("2026-07-28",))
