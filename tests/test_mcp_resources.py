"""Resources of an MCP server as a source, read by the official client from a server of its own."""

from __future__ import annotations

import json
import shlex
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from command_line import indexed_fixture, run, shop_fixture  # noqa: F401 - fixtures

pytest.importorskip("mcp", reason="needs the extra serve")

SERVER = """
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.resources import TextResource

server = MCPServer("wiki")
for name, text in {texts!r}.items():
    server.add_resource(TextResource(uri=f"wiki://handbook/{{name}}", name=name, mime_type="text/markdown", text=text))


@server.resource("wiki://handbook/logo")
def logo() -> bytes:
    return b"PNG"


@server.resource("wiki://handbook/broken")
def broken() -> str:
    if {broken}:
        raise ValueError("secret")
    return "The quagga rule."


server.run()
"""
TEXTS = {"okapi": "# Okapi\n\nThe okapi rule: no default role.", "zebra": "# Zebra\n\nThe zebra rule."}


def wiki(folder: Path, texts: dict[str, str], *, broken: bool = False) -> str:
    (folder / "wiki.py").write_text(SERVER.format(texts=texts, broken=broken))
    return f"wiki={shlex.join([sys.executable, str(folder / 'wiki.py')])}"


def indexed(capsys, *servers: str) -> tuple[int, str, str]:
    flags = [part for one in servers for part in ("--add", f"mcp={one}")]
    return run("index", *flags, "--project", "shop", "--no-semantic", "--json", capsys=capsys)


def block(capsys, question: str) -> str:
    return run("ask", question, "--project", "shop", capsys=capsys)[1]


def test_resources_of_a_server_are_read_as_untrusted_rows(shop: Path, capsys):
    code, out, _ = indexed(capsys, wiki(shop, TEXTS))
    assert code == 0 and json.loads(out)["rows"]["mcp"] == 3
    code, out, _ = run("ask", "okapi rule", "--project", "shop", "--json", capsys=capsys)
    (cited,) = [
        one
        for one in json.loads(out)["citations"]
        if one["source_id"] == "mcp-resource:wiki" and "okapi" in one["path"]
    ]
    assert (cited["path"], cited["standing"], cited["authority"]) == ("handbook/okapi", "untrusted", "low")
    assert (
        "okapi rule"
        not in run("ask", "okapi rule", "--project", "shop", "--set", "denied_sources=mcp-resource", capsys=capsys)[1]
    )


def test_a_resource_that_is_gone_has_ended_and_one_that_cannot_be_read_has_not(shop: Path, capsys):
    indexed(capsys, wiki(shop, TEXTS))
    assert "quagga" in block(capsys, "quagga rule")
    code, out, _ = indexed(capsys, wiki(shop, TEXTS, broken=True))
    assert code == 0 and "secret" not in out and "quagga" in block(capsys, "quagga rule")
    indexed(capsys, wiki(shop, {"okapi": TEXTS["okapi"]}))
    assert "The zebra rule" not in block(capsys, "zebra rule") and "okapi rule" in block(capsys, "okapi rule")


def test_what_stands_behind_the_most_that_is_read_has_not_ended(shop: Path, capsys, monkeypatch: pytest.MonkeyPatch):
    indexed(capsys, wiki(shop, TEXTS))
    monkeypatch.setattr("scoped_retrieval.pipeline.sources.mcp_resources.MOST", 1)
    assert indexed(capsys, wiki(shop, TEXTS))[0] == 0 and "The zebra rule" in block(capsys, "zebra rule")


def test_a_server_over_http_is_read_too(shop: Path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    over_http = SERVER.format(texts=TEXTS, broken=False).replace(
        "server.run()", f'server.run("streamable-http", host="127.0.0.1", port={port})'
    )
    (shop / "wiki.py").write_text(over_http)
    with subprocess.Popen([sys.executable, str(shop / "wiki.py")], stderr=subprocess.DEVNULL) as started:
        try:
            for _ in range(200):
                with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                    break
                time.sleep(0.1)
            code, out, _ = indexed(capsys, f"wiki=http://127.0.0.1:{port}/mcp")
        finally:
            started.terminate()
    assert code == 0 and json.loads(out)["rows"]["mcp"] == 3 and "okapi rule" in block(capsys, "okapi rule")
