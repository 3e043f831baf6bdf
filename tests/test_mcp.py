"""The MCP server, driven by the official client: tools, scope, errors, both protocol eras, and one answer everywhere."""

from __future__ import annotations

import hashlib
import json
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml
from command_line import run
from scoped_retrieval.pipeline.asking.retriever import Retriever
from scoped_retrieval.pipeline.config.settings import Settings, load_settings
from scoped_retrieval.pipeline.runs import Runs, replay

pytest.importorskip("mcp", reason="needs the extra serve")
pytest.importorskip("fastapi", reason="needs the extra serve")
from mcp import Client
from mcp.shared.exceptions import MCPError
from scoped_retrieval.pipeline.indexing.following import IndexRequest
from scoped_retrieval.pipeline.indexing.freshness import index_followed
from scoped_retrieval.pipeline.servers.http_app import application
from scoped_retrieval.pipeline.servers.mcp_server import http_of, mcp_server
from scoped_retrieval.pipeline.servers.mcp_tools import PAGE, Tools
from scoped_retrieval.pipeline.servers.renderings import XRAY, rendered
from scoped_retrieval.pipeline.servers.retriever_pool import RetrieverPool
from starlette.testclient import TestClient

LANES = "lexical,symbol,exact"
ASKED = {"question": "default role", "as_of": "2030-06-01T12:00:00Z"}
PROGRAM = {"x-scoped-retrieval": "1"}


@pytest.fixture
def settings(shop: Path) -> Settings:
    flags = {"principal": "ana", "lanes": LANES, "project": "shop"}
    return load_settings(flags, cwd=shop, environ={}, user=shop / "none.toml")


@pytest.fixture
def asked(settings: Settings) -> Iterator[Callable[..., Any]]:
    """What a client of one kind gets: `asked(lambda client: client.call_tool(...))`."""
    pool = RetrieverPool(settings)
    tools = Tools(settings, pool)
    pool.ready()
    server = mcp_server(lambda: tools)

    def ask(work: Callable[[Client], Any], mode: Any = "auto") -> Any:
        async def connected() -> Any:
            async with Client(server, mode=mode) as client:
                try:
                    return await work(client)
                except MCPError as error:  # inside, where it is not yet a group of one
                    return error

        found = anyio.run(connected)
        if isinstance(found, MCPError):
            raise found
        return found

    yield ask
    pool.close()


def called(asked: Callable[..., Any], name: str, arguments: dict[str, Any], mode: Any = "auto") -> Any:
    return asked(lambda client: client.call_tool(name, arguments), mode)


def refused(asked: Callable[..., Any], name: str, arguments: dict[str, Any]) -> str:
    result = called(asked, name, arguments)
    assert result.is_error is True
    return result.content[0].text


def test_every_tool_is_declared_read_only_and_an_answer_has_what_a_model_needs(asked: Callable[..., Any]):
    tools = {tool.name: tool for tool in asked(lambda client: client.list_tools()).tools}
    assert list(tools) == ["scoped_retrieve", "recall_xray", "replay", "why"]
    assert all(tool.annotations.read_only_hint and not tool.annotations.open_world_hint for tool in tools.values())
    found = called(asked, "scoped_retrieve", ASKED)
    fields = {"snapshot_id", "block_ref", "status", "conditions", "citations"}
    assert set(found.structured_content) == fields, "nothing else fills the window of a model"
    weak = called(asked, "scoped_retrieve", {"question": "best pizza in Naples"})
    assert "no_strong_match" in weak.content[0].text and "no_strong_match" not in found.content[0].text


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("recall_xray", {}, "Expected a value, got nothing - at arguments: query"),
        ("recall_xray", {"query": "role", "budget": "9"}, "at arguments: budget"),
        ("recall_xray", {"qurey": "role"}, "query, sessionKey, namespace, budget"),
        ("scoped_retrieve", {"question": "role", "principal": "bob"}, "got 'principal'"),
        ("replay", {"snapshot_id": "retr-snap-01k87pj0vvr6m3ue3e-0001"}, "Expected a snapshot that you may read"),
    ],
)
def test_what_a_tool_does_not_take_is_its_error_with_the_valid_options(asked, name, arguments, message):
    assert message in refused(asked, name, arguments)


def test_a_long_view_has_pages_and_no_copy_of_it_in_the_values(asked: Callable[..., Any], settings: Settings):
    snapshot = called(asked, "scoped_retrieve", ASKED).structured_content["snapshot_id"]
    whole, view = rendered(settings, snapshot, "html").text, {"snapshot_id": snapshot, "format": "html"}
    first = called(asked, "replay", view).content
    second = called(asked, "replay", {**view, "page": 2}).content
    assert len(first) == 2 and "page=2" in first[1].text
    assert whole.startswith(first[0].text + second[0].text) and len(first[0].text) <= PAGE
    assert "page" in refused(asked, "replay", {**view, "page": 10_000})


def test_an_answer_is_whole_however_long_it_is(asked: Callable[..., Any], settings: Settings, monkeypatch):
    monkeypatch.setattr("scoped_retrieval.pipeline.servers.mcp_tools.PAGE", 50)
    found = called(asked, "scoped_retrieve", ASKED)
    (shown,), values = found.content, found.structured_content
    assert shown.text.startswith(rendered(settings, values["snapshot_id"], "block").text) and values["citations"]
    assert "page" in refused(asked, "scoped_retrieve", {**ASKED, "page": 2})


@pytest.mark.parametrize("form", XRAY.values)
def test_the_pages_of_an_x_ray_are_of_one_snapshot(
    asked: Callable[..., Any], settings: Settings, monkeypatch, form: str
):
    monkeypatch.setattr("scoped_retrieval.pipeline.servers.mcp_tools.PAGE", 500)
    first, note = called(asked, "recall_xray", {"query": ASKED["question"], "format": form}).content
    call, next_page = note.text.removesuffix(" is the next").split(": replay with ")[1].rsplit(", page=")
    rest = dict(pair.split("=") for pair in call.split(", "))
    pages, last = [first.text], int(note.text.split(" of ")[1].split(":")[0])
    pages += [called(asked, "replay", {**rest, "page": at}).content[0].text for at in range(int(next_page), last + 1)]
    assert "".join(pages) == rendered(settings, rest["snapshot_id"], form).text
    assert "page" in refused(asked, "recall_xray", {"query": ASKED["question"], "page": 2})


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ("Where does createSession in src/session.ts take the default role of a new user from?", True),
        ("default role", False),
        ("The zebra quokka wombat numbat bilby potoroo dunnart quoll sleep", False),
    ],
    ids=["strong", "few words", "weak"],
)
def test_a_hook_gets_what_its_client_adds_to_a_prompt_if_it_may_help(
    asked: Callable[..., Any], prompt: str, said: bool
):
    (answer,) = called(asked, "before_prompt", {"question": prompt, "session_id": "s-1"}).content
    added = json.loads(answer.text).get("hookSpecificOutput", {"additionalContext": ""})["additionalContext"]
    assert ("There is no default role." in added) == bool(added) == said


def test_an_unforeseen_error_quotes_nothing(asked: Callable[..., Any], monkeypatch, caplog):
    def fails(*_: object) -> None:
        raise KeyError("secret evidence")

    monkeypatch.setattr("scoped_retrieval.pipeline.servers.retriever_pool.PrincipalSession.retrieve", fails)
    said = refused(asked, "scoped_retrieve", ASKED)
    assert said.startswith("Unexpected KeyError") and said.split()[-1] in caplog.text
    assert "secret" not in said + caplog.text


def test_a_server_of_several_projects_takes_one_that_is_granted(settings: Settings, shop: Path):
    settings.grants_path.write_text("principals: {ana: {projects: [pay, shop]}, bob: {projects: [other]}}")
    unset = load_settings({"principal": "ana", "lanes": LANES}, cwd=shop, environ={}, user=shop / "none.toml")
    tools = Tools.of(unset, None)
    found = [anyio.run(tools.called, "scoped_retrieve", {**ASKED, "project": project}) for project in ("shop", "pay")]
    assert [one.structured_content["status"] for one in found] == ["ok", "empty"]
    for chosen in ({}, {"project": "other"}):
        with pytest.raises(ValueError, match=r"got none - at request\.project|Expected 'pay' or 'shop'"):
            anyio.run(tools.called, "scoped_retrieve", {**ASKED, **chosen})
    schemas = [anyio.run(one.listed)[0].input_schema["properties"] for one in (tools, Tools.of(settings, None))]
    assert schemas[0]["project"]["enum"] == ["pay", "shop"] and "project" not in schemas[1]
    settings.grants_path.write_text("principals: {ana: {projects: [pay, shop], append: [pay]}}")
    (adds,) = [tool for tool in anyio.run(tools.listed) if tool.name == "append_evidence"]
    assert adds.input_schema["properties"]["project"]["const"] == "pay"
    rows = [{"text": "Refunds take five days."}]
    added = anyio.run(tools.called, "append_evidence", {"rows": rows, "project": "pay"})
    assert added.structured_content["project"] == "pay"


def test_below_a_block_stands_why_it_may_be_older_than_the_files(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (folder := tmp_path / "zoo").mkdir()
    (folder / "zebra.md").write_text("How the zebra sleeps.\n")
    flags = {"principal": "ana", "corpus": str(tmp_path / "corpus"), "project": "zoo"}
    known = load_settings(flags, cwd=tmp_path, environ={}, user=tmp_path / "none.toml")
    index_followed(known, IndexRequest(paths=(folder,), semantic=False))
    other = known.having("test", project="other")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "okapi.md").write_text("How the okapi sleeps.\n")
    index_followed(other, IndexRequest(paths=(tmp_path / "secret",), semantic=False), grant=False)
    for each in ("zoo", "secret"):
        shutil.rmtree(tmp_path / each)
    known.grants_path.write_text("principals: {ana: {projects: [pay, zoo]}}")
    unset = load_settings({**flags, "project": None}, cwd=tmp_path, environ={}, user=tmp_path / "none.toml")
    said = anyio.run(Tools.of(unset, None).called, "scoped_retrieve", {"question": "zebra", "project": "zoo"}).content
    assert "How the zebra sleeps." in said[0].text and str(folder) in said[0].text
    assert "secret" not in said[0].text, "a project that is not granted"


def test_where_nothing_can_be_asked_the_tools_are_listed_and_a_call_says_why(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))  # which no question reads
    nowhere = load_settings({"principal": "ana"}, cwd=tmp_path, environ={}, user=tmp_path / "none.toml")
    server = mcp_server(lambda: Tools.of(nowhere, None))

    async def connected() -> tuple[list[str], str]:
        async with Client(server) as client:
            listed = await client.list_tools()
            answer = await client.call_tool("scoped_retrieve", ASKED)
            assert answer.is_error
            return [tool.name for tool in listed.tools], answer.content[0].text

    names, said = anyio.run(connected)
    assert "scoped_retrieve" in names and "append_evidence" not in names and said


def test_over_http_each_request_stands_alone_and_the_credential_must_be_the_server_s(settings: Settings):
    grants = yaml.safe_load(settings.grants_path.read_text())
    grants["principals"]["bob"] = {"projects": ["shop"]}
    grants["tokens"] = {hashlib.sha256(who.encode()).hexdigest(): who for who in ("ana", "bob")}
    settings.grants_path.write_text(yaml.safe_dump(grants))
    pool = RetrieverPool(settings)
    pool.ready()
    app = http_of(mcp_server(lambda: Tools(settings, pool)), settings, "127.0.0.1")
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "scoped_retrieve", "arguments": ASKED},
    }
    accepts = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}
    with TestClient(app, base_url="http://127.0.0.1:8765") as client:

        def post(token: str | None) -> Any:
            headers = accepts | ({"authorization": f"Bearer {token}"} if token else {})
            return client.post("/mcp", json=call, headers=headers)

        assert post(None).status_code == post("eve").status_code == 401
        assert post("ana").json()["result"]["structuredContent"]["status"] == "ok"
        foreign = post("bob").json()["result"]
        assert foreign["isError"] and "the credential of ana" in foreign["content"][0]["text"]
        listed = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        for who, key in (("ana", "result"), ("bob", "error")):
            assert key in client.post("/mcp", json=listed, headers=accepts | {"authorization": f"Bearer {who}"}).json()
    pool.close()


def test_over_http_there_is_one_message_per_post_and_nothing_else(settings: Settings):
    pool = RetrieverPool(settings)
    pool.ready()
    app = http_of(mcp_server(lambda: Tools(settings, pool)), settings, "127.0.0.1")
    accepts = {"accept": "application/json, text/event-stream", "content-type": "application/json"} | PROGRAM
    listed = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    with TestClient(app, base_url="http://127.0.0.1:8765", client=("127.0.0.1", 9), headers=accepts) as client:
        for method in ("GET", "DELETE", "PUT"):
            answer = client.request(method, "/mcp")
            assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
        for body in ("[]", "3", "null", '{"jsonrpc": "2.0"}', json.dumps([listed]), "{"):
            answer = client.post("/mcp", content=body)
            assert (answer.status_code, answer.json()["error"]["code"] < 0) == (400, True), body
        assert client.post("/mcp", json=listed).json()["result"]["tools"]
    pool.close()


def test_one_request_has_one_digest_and_one_snapshot_one_rendering_at_every_door(
    asked: Callable[..., Any], settings: Settings, capsys
):
    corpus, runs = str(settings["corpus"]), str(settings["runs"])
    with Retriever.open(corpus, principal="ana", runs=runs, lanes=settings["lanes"]) as retriever:
        python = retriever.retrieve({**ASKED, "project": "shop"}).snapshot_id
    arguments = ["ask", ASKED["question"], "--as-of", ASKED["as_of"], "--project", "shop", "-c", f"lanes={LANES}"]
    code, block, said = run(*arguments, capsys=capsys)
    assert code == 0
    command = said.split("snapshot: ")[1].split()[0]
    found = called(asked, "scoped_retrieve", ASKED).structured_content
    with TestClient(
        application(settings), base_url="http://localhost", client=("127.0.0.1", 9), headers=PROGRAM
    ) as client:
        http = client.post("/v1/retrieve", json=ASKED).json()["snapshot_id"]
        snapshots = (python, command, found["snapshot_id"], http)
        store = Runs(settings["runs"], create=False)
        replays = [replay(store.open(f"run-{name.split('-')[2]}"), name) for name in snapshots]
        assert len({one.snapshot["snapshot_digest"] for one in replays}) == 1
        assert {one.block for one in replays} == {
            block.rstrip("\n") if block not in {o.block for o in replays} else block
        }


def test_a_question_within_a_cited_path_shows_more_of_it(asked: Callable[..., Any]):
    cited = called(asked, "scoped_retrieve", ASKED).structured_content["citations"][0]
    within = {"allowed_paths": [cited["path"]], "max_tokens": 4000}
    found = called(asked, "scoped_retrieve", ASKED | within).structured_content
    assert {one["path"] for one in found["citations"]} == {cited["path"]}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_evidence_is_appended_where_a_grant_allows_it_and_else_there_is_no_such_tool(
    asked: Callable[..., Any], settings: Settings, mode: str
):
    rows = {"rows": [{"text": "The okapi rule: no default role."}]}

    def offered() -> dict[str, Any]:
        return {tool.name: tool for tool in asked(lambda client: client.list_tools(), mode).tools}

    assert "append_evidence" not in offered()
    with pytest.raises(MCPError, match="got another tool"):
        called(asked, "append_evidence", rows, mode)
    grants = yaml.safe_load(settings.grants_path.read_text())
    grants["principals"]["ana"]["append"] = ["shop"]
    settings.grants_path.write_text(yaml.safe_dump(grants))
    tool = offered()["append_evidence"]
    assert not tool.annotations.read_only_hint and not tool.annotations.destructive_hint
    result = called(asked, "append_evidence", rows, mode)
    found = called(asked, "scoped_retrieve", {"question": "okapi rule"}, mode).structured_content
    assert set(result.structured_content["evidence_ids"]) <= {one["evidence_id"] for one in found["citations"]}
    assert "Expected one of the keys text, kind" in refused(
        asked, "append_evidence", {"rows": [{"text": "a", "zone": "public"}]}
    )
    assert "rows[0].text" in refused(asked, "append_evidence", {"rows": [{"title": "a"}]})
    assert "got 'project'" in refused(asked, "append_evidence", {**rows, "project": "pay"})


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
