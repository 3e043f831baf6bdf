"""The page in which a client with MCP Apps shows an x-ray: `ui://` HTML that makes no request and escapes what it shows.

Gives: `XRAY_APP`, its URI, which the x-ray tools name, and `xray_page`. Clients without the extension show the text.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

from ...nodes.columns.hidden_characters import ESCAPED

__all__ = ["APP_META", "XRAY_APP", "xray_page"]

XRAY_APP = "ui://scoped-retrieval/xray.html"
APP_META: dict[str, Any] = {"ui": {"csp": {"connectDomains": [], "resourceDomains": []}, "prefersBorder": True}}
"""What the page may reach: nothing."""


@cache
def xray_page() -> str:
    """The page; it is given the answer of the tool by the client, and shows text with the escapes of every other view."""
    folder = resources.files(f"{__name__.rpartition('.pipeline')[0]}.data").joinpath("apps")
    escaped = "".join(one if one.isascii() else f"\\u{{{ord(one):x}}}" for one in ESCAPED)
    return folder.joinpath("xray.html").read_text(encoding="utf-8").replace("ESCAPED", escaped)
