"""The requests that a page of another site can make a browser send, with which every route of an application is tried.

A page chooses method, path, query and one of three body types; it cannot choose `Origin`, `Host` or `Sec-Fetch-Site`, and adds no
header of its own without a preflight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

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
