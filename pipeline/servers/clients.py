"""The configuration of coding agents that start the MCP server: where it is, and its text with the server or without it.

Gives: `CLIENTS`, the files of a project in which agents look for servers and hooks, and `with_hook`. Everything else in a file is
kept, TOML as it is written, JSON indented by two; a file that cannot be parsed is not changed. The places and forms are those that the agents' own pages describe.

Note: the server is named by its command, without a path or a person, and finds the corpus from the folder in which the
agent starts it: these files are committed.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...nodes.errors import InputError
from ..parsing.strict_json import strict_json

NAME = "scoped-retrieval"
"""The command, and the name of its server."""
_HOOK = {
    "type": "mcp_tool",
    "server": NAME,
    "tool": "before_prompt",
    "input": {"question": "${prompt}", "session_id": "${session_id}", "max_tokens": 1_200},
}
"""A hook that calls a tool of the running server; the client replaces the names by fields of its event."""


@dataclass(frozen=True)
class Client:
    """An agent: the file below the project, and the key of its servers."""

    file: str
    key: str
    more: Mapping[str, Any] = field(default_factory=dict)
    """Fields of a server besides command and arguments."""
    joined: bool = False
    """Whether command and arguments are one list."""
    hooks: str = ""
    """The file of its hooks, if one before a prompt can call a tool of a server."""

    def with_server(self, args: Sequence[str] | None, existing: str | None, path: Path) -> str:
        """The text of the file with the server, started with these arguments; without it if `args` is None.

        Raises:
            InputError: the existing file is invalid.
        """
        server = None
        if args is not None:
            start = {"command": [NAME, *args]} if self.joined else {"command": NAME, "args": [*args]}
            server = {**self.more, **start}
        if path.suffix == ".toml":
            return _toml(self.key, server, existing or "", path)
        before = _json(existing, path)
        servers = before.get(self.key, {})
        if not isinstance(servers, dict):
            raise InputError.of_kind("an object", servers, f"{path}: {self.key}")
        kept = {name: each for name, each in servers.items() if name != NAME}
        return _text(existing, before, self.key, kept if server is None else {**kept, NAME: server})


CLIENTS: Mapping[str, Client] = {
    "claude-code": Client(".mcp.json", "mcpServers", hooks=".claude/settings.json"),
    "codex": Client(".codex/config.toml", "mcp_servers", hooks=".codex/hooks.json"),
    "cursor": Client(".cursor/mcp.json", "mcpServers"),
    "vscode": Client(".vscode/mcp.json", "servers", {"type": "stdio"}),
    "gemini-cli": Client(".gemini/settings.json", "mcpServers"),
    "qwen-code": Client(".qwen/settings.json", "mcpServers"),
    "opencode": Client("opencode.json", "mcp", {"type": "local"}, joined=True),
    "zed": Client(".zed/settings.json", "context_servers"),
    "roo-code": Client(".roo/mcp.json", "mcpServers"),
    "kiro": Client(".kiro/settings/mcp.json", "mcpServers"),
    "amazon-q": Client(".amazonq/mcp.json", "mcpServers"),
    "junie": Client(".junie/mcp/mcp.json", "mcpServers"),
}


def with_hook(existing: str | None, path: Path, *, added: bool) -> str:
    """The text of a client's hooks with one that runs before each prompt, in place of an earlier one; without one if it is
    not to be added.

    Raises:
        InputError: the existing file is invalid.
    """
    before = _json(existing, path)
    hooks = before.get("hooks", {})
    groups = hooks.get("UserPromptSubmit", []) if isinstance(hooks, dict) else None
    if not isinstance(groups, list):
        raise InputError.described("lists of hooks by event", "another form", f"{path}: hooks")
    kept = [each for group in groups if (each := _without_ours(group))] + ([{"hooks": [_HOOK]}] if added else [])
    others = {event: each for event, each in hooks.items() if event != "UserPromptSubmit"}
    return _text(existing, before, "hooks", others | ({"UserPromptSubmit": kept} if kept else {}))


def _without_ours(group: Any) -> Any:
    """A group of hooks without that of this package, which users may have joined with theirs; none if it has no other."""
    if not isinstance(group, dict) or not isinstance(hooks := group.get("hooks"), list):
        return group
    kept = [each for each in hooks if not (isinstance(each, dict) and each.get("server") == NAME)]
    return {**group, "hooks": kept} if kept or not hooks else None


def _text(existing: str | None, before: Mapping[str, Any], key: str, value: Mapping[str, Any]) -> str:
    """The JSON text with a value at a key, without the key if the value is empty; as it was if that changes nothing."""
    after = {**before, key: value} if value else {name: each for name, each in before.items() if name != key}
    if after == before:
        return existing or ""
    return json.dumps(after, indent=2, ensure_ascii=False) + "\n" if after else ""


def _json(existing: str | None, path: Path) -> dict[str, Any]:
    if existing is None or not existing.strip():
        return {}
    try:
        content = strict_json(existing)
    except ValueError as error:
        hint = "comments and mistakes would be lost: run it with --print, and add the entry by hand"
        raise InputError.described("JSON without comments", "another text", str(path), hint=hint) from error
    if not isinstance(content, dict):
        raise InputError.of_kind("an object", content, str(path))
    return content


def _toml(key: str, server: Mapping[str, Any] | None, existing: str, path: Path) -> str:
    """The text with the table of the server in place of the one that it has."""
    others = _parsed(existing, path)
    servers = others.get(key, {})
    known = servers.pop(NAME, None) if isinstance(servers, dict) else None
    text = existing
    if known is not None:  # its table, up to the next one, and the line break before it
        text = re.sub(rf"(?ms)\n?^\[{key}\.{NAME}\]$.*?(?=^\[|\Z)", "", existing)
    if server is not None:
        line = "\n" if text else ""
        fields = "".join(f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in server.items())
        text = f"{text}{line}[{key}.{NAME}]\n{fields}"
    wanted = {**others, key: {**servers, NAME: dict(server)}} if server is not None else others
    try:
        if tomllib.loads(text) in (wanted, {name: each for name, each in wanted.items() if name != key or each}):
            return text
    except tomllib.TOMLDecodeError:
        pass  # an inline table cannot be extended
    hint = f"change the entry {key}.{NAME} by hand"
    raise InputError.described(f"a table [{key}.{NAME}], or none", "another form", str(path), hint=hint)


def _parsed(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError.described("TOML", "another text", str(path)) from error
