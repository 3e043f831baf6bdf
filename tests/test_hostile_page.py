"""What pages of other sites can make a browser send reaches no route, over HTTP and MCP, and leaves nothing in the runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from command_line import indexed_fixture, shop_fixture  # noqa: F401 - fixtures
from hostile_page import BASE, LOCAL, PAGES, QUERY, hostile_page_fixture, paths_of  # noqa: F401 - a fixture
from scoped_retrieval.pipeline.config.settings import Settings, load_settings
from scoped_retrieval.pipeline.runs import Runs

pytest.importorskip("fastapi", reason="needs the extra serve")
from scoped_retrieval.pipeline.servers.http_app import application
from scoped_retrieval.pipeline.servers.http_guard import OPEN
from starlette.testclient import TestClient

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
    from scoped_retrieval.pipeline.servers.retriever_pool import RetrieverPool

    with closing(RetrieverPool(settings)) as pool:
        app = http_of(mcp_server(settings, pool), settings, "127.0.0.1")
        with TestClient(app, base_url=BASE, client=LOCAL):
            hostile_page(app, ["/mcp", "/"], json.dumps(CALL))
    assert recorded(settings) == 0


def test_a_get_without_a_token_states_that_it_comes_from_no_page(settings: Settings):
    app = application(settings)
    with TestClient(app, base_url=BASE, client=LOCAL) as client:
        for path in set(paths_of(app)) - OPEN:
            answer = client.get(f"{path}?{QUERY}")
            assert (answer.status_code, answer.json()["code"]) == (403, "no_header"), path
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
