"""The configuration of coding agents that start the MCP server: where it is, and its text with the server or without it.

Gives: `CLIENTS`, the files of a project in which agents look for servers, and `with_hook`. Everything else in a file is
kept; a file that cannot be parsed is not changed. The places and forms are those that the agents' own pages describe.

Note: the server is named by its command, without a path or a person, and finds the corpus from the folder in which the
agent starts it: these files are committed. TOML is changed as text, as the standard library cannot keep comments.
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
HOOKS = ".claude/settings.json"
"""The file in which Claude Code looks for the hooks of a project."""
_OURS = re.compile(rf"{NAME} prompt-hook\b")


@dataclass(frozen=True)
class Client:
    """An agent: the file below the project, and the key of its servers."""

    file: str
    key: str
    more: Mapping[str, Any] = field(default_factory=dict)
    """Fields of a server besides command and arguments."""
    joined: bool = False
    """Whether command and arguments are one list."""

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
        content = _json(existing, path)
        servers = content.get(self.key, {})
        if not isinstance(servers, dict):
            raise InputError.of_kind("an object", servers, f"{path}: {self.key}")
        others = {name: each for name, each in servers.items() if name != NAME}
        if server is None and len(others) == len(servers):
            return existing or ""
        return _dumped(_with(content, self.key, others | ({NAME: server} if server else {})))


CLIENTS: Mapping[str, Client] = {
    "claude-code": Client(".mcp.json", "mcpServers"),
    "codex": Client(".codex/config.toml", "mcp_servers"),
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


def with_hook(args: Sequence[str] | None, existing: str | None, path: Path) -> str:
    """The text of Claude Code's settings with a hook that runs before each prompt, in place of an earlier one of this
    program; without one if `args` is None.

    Raises:
        InputError: the existing file is invalid.
    """
    content = _json(existing, path)
    hooks = content.get("hooks", {})
    groups = hooks.get("UserPromptSubmit", []) if isinstance(hooks, dict) else None
    if not isinstance(groups, list):
        raise InputError.described("lists of hooks by event", "another form", f"{path}: hooks")
    kept = [each for group in groups if (each := _without_ours(group)) is not None]
    if args:
        import shlex

        kept.append({"hooks": [{"type": "command", "command": shlex.join([NAME, *args]), "timeout": 30}]})
    if kept == groups:
        return existing or ""
    return _dumped(_with(content, "hooks", _with(hooks, "UserPromptSubmit", kept)))


def _without_ours(group: Any) -> Any:
    """A group of hooks without the one written here, which users may have joined with theirs; None if it is then empty."""
    if not isinstance(group, dict) or not isinstance(group.get("hooks"), list):
        return group
    others = [hook for hook in group["hooks"] if not _is_ours(hook)]
    return group if len(others) == len(group["hooks"]) else {**group, "hooks": others} if others else None


def _is_ours(hook: Any) -> bool:
    command = hook.get("command") if isinstance(hook, dict) else None
    return isinstance(command, str) and _OURS.match(command) is not None


def _json(existing: str | None, path: Path) -> dict[str, Any]:
    if existing is None or not existing.strip():
        return {}
    try:
        content = strict_json(existing)
    except ValueError as error:
        hint = "comments would be lost: move the file aside, run it with --print, and add the entry by hand"
        raise InputError.described("JSON without comments", "another text", str(path), hint=hint) from error
    if not isinstance(content, dict):
        raise InputError.of_kind("an object", content, str(path))
    return content


def _with(content: Mapping[str, Any], name: str, value: Any) -> dict[str, Any]:
    """The content with a value in place of the one of that name, or without one where it is empty."""
    if value:
        return {**content, name: value}
    return {other: each for other, each in content.items() if other != name}


def _dumped(content: Mapping[str, Any]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n" if content else ""


def _toml(key: str, server: Mapping[str, Any] | None, existing: str, path: Path) -> str:
    """The text with the table of the server in place of the one that it has."""
    others = _parsed(existing, path)
    servers = others.get(key, {})
    known = servers.pop(NAME, None) if isinstance(servers, dict) else None
    text = existing
    if known is not None:  # its table, up to the next one
        text = re.sub(rf"(?ms)^\[{key}\.{NAME}\]$.*?(?=^\[|\Z)", "", existing)
    if server is not None:
        fields = "".join(f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in server.items())
        text = f"{text.rstrip()}\n\n[{key}.{NAME}]\n{fields}".lstrip()
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
