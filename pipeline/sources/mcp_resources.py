"""Resources of an MCP server as a source (S0.22); their text is untrusted.

Reads: a server, by URL or by a command to start it, through the official client (extra `serve`). Gives:
`read_mcp`, one row per resource, or per chunk of a long one; `source_id` is `mcp-resource:<name>`.

Note: the user chooses the name, not the server, or one server could end the rows of another. Authority is 0 and
standing untrusted. If a resource could not be read, no row of the source ends.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from ...nodes.errors import EngineError, InputError
from .files import MAX_FILE_BYTES
from .record_rows import Row, record_table, rows_of_text
from .report import SourceReport

MOST = 10_000
"""Maximum number of resources read from one server."""
SECONDS = 60
"""Timeout for one response of a server."""
_NAME = re.compile(r"[\w.-]{1,100}")
_UNREAD = "MCP resource that could not be read"
_SUFFIXES = {"text/markdown": ".md", "text/x-rst": ".rst", "text/html": ".html"}


def read_mcp(server: str, *, project: str, report: SourceReport, **_: Any) -> Iterator[pa.Table]:
    """The text resources that a server lists, in order of their URIs.

    Args:
        server: `NAME=COMMAND` or `NAME=URL`.

    Raises:
        EngineError: the official client is not installed.
        InputError: the text has another form, a server has that name already, or there is no such server, or it does not respond as an MCP server.
    """
    name, equals, at = server.partition("=")
    if not equals or not _NAME.fullmatch(name) or not at.strip():
        hint = "for example --add 'mcp=wiki=python wiki_server.py' or --add mcp=wiki=http://localhost:8765/mcp"
        raise InputError.described("NAME=COMMAND or NAME=URL", "another form", "--add mcp", hint=hint)
    if find_spec("mcp") is None:
        hint = "pip install 'scoped-retrieval[serve]'"
        raise EngineError("Expected mcp, got no such package - at the extra serve", hint=hint)
    import anyio

    source = f"mcp-resource:{name}"
    if source in report.complete_sources:
        raise InputError.described("each name once", f"{name} twice", "--add mcp")
    base = {"source_id": source, "origin_class": "mcp-resource", "owner_project": project, "authority": 0,
            "declared_standing": "untrusted", "declared_safety": "requires-review"}  # fmt: skip
    try:
        rows = anyio.run(_rows, at.strip(), base, report)
    except Exception as error:  # a server, its transport and the client may raise anything
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        raise InputError.described(
            "an MCP server that lists its resources", type(error).__name__, f"--add mcp={name}"
        ) from error
    report.read += len(rows)
    if rows:
        yield record_table(rows)
    if not report.skipped[_UNREAD]:
        report.complete_sources.add(source)


async def _rows(server: str, base: Row, report: SourceReport) -> list[Row]:
    """The rows of the text resources of all pages; those after the first `MOST` count as not readable, so no row of the
    source ends.
    """
    from mcp import Client, StdioServerParameters
    from mcp.shared.exceptions import MCPError

    command = [] if re.match(r"https?://", server) else shlex.split(server)
    target: Any = StdioServerParameters(command=command[0], args=command[1:]) if command else server
    listed, rows, page, cursor = list[Any](), list[Row](), None, None
    async with Client(target, read_timeout_seconds=SECONDS) as client:
        while page is None or (cursor is not None and len(listed) < MOST):
            page = await client.list_resources(cursor=cursor)
            listed, cursor = listed + page.resources, page.next_cursor
        if cursor is not None or len(listed) > MOST:
            report.skip(_UNREAD, at=f"resources after the first {MOST:,}")
        for resource in sorted(listed[:MOST], key=lambda one: str(one.uri)):
            uri = str(resource.uri)
            try:
                contents = (await client.read_resource(uri)).contents
            except MCPError:
                report.skip(_UNREAD, at=uri)
                continue
            row = base | {"path": _path(uri), "uri": uri, "title": resource.title or resource.name}
            for one in contents:
                text, mime = getattr(one, "text", None), one.mime_type or resource.mime_type or ""
                if text is None:
                    report.skip("MCP resource that is not text", at=uri)
                elif len(text.encode()) > MAX_FILE_BYTES:
                    report.skip(f"larger than {MAX_FILE_BYTES:,} bytes", at=uri)
                else:
                    rows += rows_of_text(text, row["path"] + _SUFFIXES.get(mime.split(";")[0].strip(), ""), row)
    return rows


def _path(uri: str) -> str:
    """The URI as a path: without scheme, query and `..`."""
    place = unquote(re.sub(r"^[A-Za-z][\w+.-]*:/*", "", uri).split("?")[0].split("#")[0]).replace("\\", "/")
    parts = [part for part in place.split("/") if part.strip() not in ("", ".", "..")]
    return "/".join(parts) or "resource"
