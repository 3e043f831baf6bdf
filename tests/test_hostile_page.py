"""What pages of other sites can make a browser send reaches no route, over HTTP and MCP, and leaves nothing in the runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from scoped_retrieval.pipeline.config.settings import Settings, load_settings
from scoped_retrieval.pipeline.runs import Runs
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

pytest.importorskip("fastapi", reason="needs the extra serve")
from scoped_retrieval.pipeline.servers.http_app import application
from scoped_retrieval.pipeline.servers.http_guard import OPEN

LOCAL = ("127.0.0.1", 50_000)
BASE = "http://localhost:8765"
SITE = {"origin": "https://evil.example", "sec-fetch-site": "cross-site"}
FORM = {"content-type": "text/plain"}
QUERY = "q=default+role&label=doc%231&evidence=doc%231"
PAGES: dict[str, tuple[str, dict[str, str]]] = {
    "no-cors GET": ("GET", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "empty"}),
    "img": ("GET", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"}),
    "script": ("GET", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "script"}),
    "iframe": ("GET", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"}),
    "link": ("GET", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}),
    "fetch": ("GET", {**SITE, "sec-fetch-mode": "cors"}),
    "preflight": ("OPTIONS", {**SITE, "access-control-request-method": "POST"}),
    "form": ("POST", {**SITE, **FORM}),
    "page without a name": ("POST", {"origin": "null", "sec-fetch-site": "cross-site", **FORM}),
    "other port": ("POST", {"origin": "http://localhost:3000", "sec-fetch-site": "same-site", **FORM}),
    "other port, GET": ("GET", {"sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors"}),
    "rebound name": ("GET", {"host": "evil.example:8765", "sec-fetch-site": "same-origin"}),
    "rebound name, form": (
        "POST",
        {"host": "evil.example:8765", "origin": "http://evil.example:8765", "sec-fetch-site": "same-origin", **FORM},
    ),
    "older browser, form": ("POST", {"origin": "https://evil.example", **FORM}),
    "older browser, other port": ("POST", {"origin": "http://localhost:3000", **FORM}),
    "older browser, other scheme": ("POST", {"origin": "https://localhost:8765", **FORM}),
    "older browser, name in the user": ("POST", {"origin": "http://localhost:8765@evil.example", **FORM}),
}


def paths_of(app: Any) -> list[str]:
    """Every path that an application describes, with a name for each parameter, and its description."""
    return [path.replace("{snapshot_id}", "retr-snap-x-1") for path in app.openapi()["paths"]] + [app.openapi_url]


@pytest.fixture(name="hostile_page")
def hostile_page_fixture() -> Callable[..., None]:
    """Tries each request of each page with each path: `hostile_page(app, paths, body)` fails at one that is not refused."""

    def tried(app: Any, paths: Iterable[str], body: str) -> None:
        client = TestClient(app, base_url=BASE, client=LOCAL)
        for path in paths:
            for name, (method, headers) in PAGES.items():
                answer = client.request(
                    method, f"{path}?{QUERY}", headers=headers, content=body if method == "POST" else None
                )
                assert (answer.status_code, name, path) == (403, name, path)
                assert answer.headers["cross-origin-resource-policy"] == "same-origin"
                assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
                assert not [header for header in answer.headers if header.startswith("access-control-")]
            with pytest.raises(WebSocketDisconnect), client.websocket_connect(path, headers={"origin": SITE["origin"]}):
                pass

    return tried


QUESTION = json.dumps({"question": "default role"})
CALL = {
    "jsonrpc": "2.0", "id": 1, "method": "tools/call",
    "params": {"name": "scoped_retrieve", "arguments": {"question": "default role"}},
}  # fmt: skip


@pytest.fixture
def settings(shop: Path) -> Settings:
    flags = {"principal": "ana", "project": "shop", "lanes": "lexical"}
    return load_settings(flags, cwd=shop, environ={}, user=shop / "none.toml")


def recorded(settings: Settings) -> int:
    return sum(run.snapshots.num_rows for run in Runs(settings["runs"]).list())


def test_no_route_answers_a_page_of_another_site(hostile_page: Callable[..., None], settings: Settings):
    app = application(settings)
    with TestClient(app, base_url=BASE, client=LOCAL):
        hostile_page(app, paths_of(app), QUESTION)
    assert recorded(settings) == 0


def test_no_message_of_a_page_reaches_the_mcp_server(hostile_page: Callable[..., None], settings: Settings):
    pytest.importorskip("mcp", reason="needs the extra serve")
    from scoped_retrieval.pipeline.servers.mcp_server import http_of, mcp_server
    from scoped_retrieval.pipeline.servers.mcp_tools import Tools
    from scoped_retrieval.pipeline.servers.retriever_pool import RetrieverPool

    with closing(RetrieverPool(settings)) as pool:
        app = http_of(mcp_server(lambda: Tools(settings, pool)), settings, "127.0.0.1")
        with TestClient(app, base_url=BASE, client=LOCAL):
            hostile_page(app, ["/mcp", "/"], json.dumps(CALL))
    assert recorded(settings) == 0


def test_a_get_without_a_token_states_that_it_comes_from_no_page(settings: Settings):
    app = application(settings)
    with TestClient(app, base_url=BASE, client=LOCAL) as client:
        for path in set(paths_of(app)) - OPEN:
            answer = client.get(f"{path}?{QUERY}")
            posted = path in ("/v1/retrieve", "/v1/evidence")  # which have no GET
            code = "method_not_allowed" if posted else "no_header"
            assert (answer.status_code, answer.json()["code"]) == (405 if posted else 403, code), path
        assert recorded(settings) == 0
        shown: list[dict[str, str]] = [
            {"x-scoped-retrieval": "1"},
            {"sec-fetch-site": "none"},
            {"sec-fetch-site": "same-origin", "origin": BASE},
        ]
        for number, headers in enumerate(shown, 1):
            for path in ("/engram/v1/recall/xray", "/v1/recall/xray"):
                assert client.get(path, params={"q": "default role"}, headers=headers).json()["snapshotFound"] is True
            assert recorded(settings) == 2 * number


def test_a_page_is_refused_with_a_token_as_well(settings: Settings):
    settings.grants_path.write_text(settings.grants_path.read_text() + f"tokens: {{{'f' * 64}: ana}}\n")
    with TestClient(application(settings), base_url=BASE, client=LOCAL) as client:
        for method, headers in (PAGES["no-cors GET"], PAGES["form"]):
            answer = client.request(method, "/v1/health", headers={"authorization": "Bearer x", **headers})
            assert answer.status_code == 403
