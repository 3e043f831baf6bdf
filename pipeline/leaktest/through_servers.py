"""The answers that a tenant receives over HTTP and MCP (extra `serve`), requested in this process.

Reads: the settings of a tenant on one state of the corpus, a request of theirs and its stored snapshot. Gives `server_surfaces`:
the output of each route and tool, as text by name; empty if the extra is not installed.

Note: tokens of the grants file are digests, so they cannot be presented. The servers read a copy
of it without tokens, and treat requests from this machine as the tenant's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any
from urllib.parse import quote, urlencode

import yaml

from ..config.settings import Settings, SettingValue
from ..servers.renderings import FORMATS
from .angles import LEAK_TEST

__all__ = ["server_surfaces"]

_NEEDED = ("fastapi", "prometheus_client", "mcp", "anyio")
_TRACE = re.compile(r"(?<=\"trace_id\": \")[0-9a-f]{32}|(?<=\"trace_id\":\")[0-9a-f]{32}|(?<=trace id )[0-9a-f]{32}")
_COUNTED = re.compile(r"(?<= )[0-9.e+-]+$", re.MULTILINE)
"""The value of a counter: of requests and seconds, which follow from no row."""
_ANSWER = ("status", "action", "conditions", "citations", "block")
"""Fields of a fresh answer that are compared; the rest contains the time and the snapshot id."""


def server_surfaces(
    settings: Settings, fields: Mapping[str, Any], snapshot_id: str, evidence: Mapping[str, str], *, audits: bool
) -> dict[str, str]:
    """Every surface by name; `evidence` names rows to ask `why` about, and `fields` is a request of the tenant's.

    For a tenant who `audits`, only answers, which no row out of scope may change for an auditor either.
    """
    if any(find_spec(module) is None for module in _NEEDED):
        return {}
    import anyio

    grants = settings["runs"] / "grants-of-servers.yaml"
    content = yaml.safe_load(settings.grants_path.read_text(encoding="utf-8")) or {}
    kept = {name: value for name, value in content.items() if name != "tokens"}
    grants.write_text(yaml.safe_dump(kept, allow_unicode=True), encoding="utf-8")
    mine = {"grants": grants, "project": str(fields["project"])}
    settings = Settings({**settings.values, **{name: SettingValue(value, LEAK_TEST) for name, value in mine.items()}})
    formats = ("block",) if audits else FORMATS.values
    return anyio.run(_Asked(settings, fields, snapshot_id, {} if audits else evidence, formats).everything)


@dataclass(frozen=True)
class _Asked:
    settings: Settings
    fields: Mapping[str, Any]
    snapshot_id: str
    evidence: Mapping[str, str]
    formats: Sequence[str]

    async def everything(self) -> dict[str, str]:
        from ..servers.http_app import application

        app = application(self.settings)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(app.router.lifespan_context(app))
            return {**await self.over_http(app), **await self.over_mcp(app.state.retrievers)}

    async def over_http(self, app: Any) -> dict[str, str]:
        """Each route that shows evidence."""
        base = f"/v1/snapshots/{self.snapshot_id}"
        found = {f"HTTP {form}": await _called(app, "GET", base, {"format": form}) for form in self.formats}
        if self.evidence:
            found["HTTP explain"] = await _called(app, "GET", "/v1/recall/explain", {"format": "text"})
            found["HTTP export"] = await _called(app, "GET", f"{base}/export", {})
            found["HTTP health"] = await _called(app, "GET", "/v1/health", {})
            found["HTTP metrics"] = _COUNTED.sub("", await _called(app, "GET", "/metrics", {}))
        for name, row in self.evidence.items():
            reply = await _called(app, "GET", f"{base}/why", {"evidence": row})
            found[f"HTTP why {name}"] = reply.replace(row, "EVIDENCE")
        answer = await _called(app, "POST", "/v1/retrieve", {}, dict(self.fields))
        found["HTTP retrieve"] = _answer(answer)
        for label in _labels(answer)[:1]:
            found["HTTP expand"] = _answer(await _called(app, "POST", f"{base}/expand", {"label": label}))
        return found

    async def over_mcp(self, pool: Any) -> dict[str, str]:
        """Each tool that shows evidence, and the snapshot as a resource."""
        from mcp import Client
        from mcp.shared.exceptions import MCPError

        from ..servers.mcp_server import TEMPLATE, mcp_server
        from ..servers.mcp_tools import TOOLS

        known = TOOLS["scoped_retrieve"].properties
        asked = {**self.fields, **self.fields.get("time", {})}
        asked = {name: value for name, value in asked.items() if name in known and name != "project"}
        calls = {"MCP scoped_retrieve": ("scoped_retrieve", asked)}
        if self.evidence:
            calls["MCP replay"] = ("replay", {"snapshot_id": self.snapshot_id})
        for name, row in self.evidence.items():
            calls[f"MCP why {name}"] = ("why", {"snapshot_id": self.snapshot_id, "evidence": row})
        found = {}
        async with Client(mcp_server(self.settings, pool)) as client:
            for name, (tool, arguments) in calls.items():
                answer = await client.call_tool(tool, arguments)
                text = "\n".join(getattr(part, "text", "") for part in answer.content)
                if tool == "scoped_retrieve" and not answer.is_error:
                    text = _answer(json.dumps(answer.structured_content)) + text
                found[name] = text.replace(arguments.get("evidence", "\0"), "EVIDENCE")
            for form in self.formats:
                uri = TEMPLATE.format(snapshot_id=self.snapshot_id, format=form)
                try:
                    (read,) = (await client.read_resource(uri)).contents
                    found[f"MCP {form}"] = getattr(read, "text", "")
                except MCPError as error:
                    found[f"MCP {form}"] = str(error)
        return found


async def _called(app: Any, method: str, path: str, parameters: Mapping[str, str], body: Any = None) -> str:
    """The body of an answer, without the trace id of a refusal."""
    from ..servers.http_guard import HEADER

    sent: list[bytes] = []
    messages = iter(({"type": "http.request", "body": b"" if body is None else json.dumps(body).encode()},))

    async def receive() -> Any:
        return next(messages, {"type": "http.disconnect"})

    async def send(message: Any) -> None:
        sent.append(message.get("body", b""))

    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
        "path": path, "raw_path": quote(path).encode(), "query_string": urlencode(parameters).encode(),
        "headers": [(b"host", b"localhost"), (HEADER.encode(), b"1")], "client": ("127.0.0.1", 1), "server": ("localhost", 80), "root_path": "",
    }  # fmt: skip
    await app(scope, receive, send)
    return _TRACE.sub("TRACE", b"".join(sent).decode())


def _answer(text: str) -> str:
    """The compared fields of a fresh answer."""
    answer = json.loads(text)
    return json.dumps({name: answer.get(name) for name in _ANSWER}, sort_keys=True)


def _labels(answer: str) -> list[str]:
    return [row["label"] for row in json.loads(answer).get("citations", ())]
