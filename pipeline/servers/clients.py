"""The configuration of coding agents that start the MCP server: its location, and its text with the server added.

Reads: the file of a client, if there is one. Gives: `CLIENTS` and `changed`, the file with the server added. Everything
else in a file is kept; a file that cannot be parsed is not changed.

Note: TOML is added as text, as the standard library cannot keep comments; JSON is rewritten with its keys in order.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...nodes.errors import InputError
from ..parsing.strict_json import strict_json

__all__ = ["CLIENTS", "NAME", "Client", "Server", "changed", "prompt_hook"]

NAME = "scoped-retrieval"


@dataclass(frozen=True)
class Server:
    """The command that starts the server."""

    command: str
    args: Sequence[str]
    env: Mapping[str, str]

    def as_dict(self) -> dict[str, Any]:
        return {"command": self.command, "args": list(self.args), "env": dict(self.env)}


@dataclass(frozen=True)
class Client:
    """One client: the file below the project, or below the home folder, and the key of its servers."""

    file: str
    key: str
    home: bool = False


CLIENTS: Mapping[str, Client] = {
    "claude-code": Client(".mcp.json", "mcpServers"),
    "codex": Client(".codex/config.toml", "mcp_servers", home=True),
    "cursor": Client(".cursor/mcp.json", "mcpServers"),
    "vscode": Client(".vscode/mcp.json", "servers"),
}
HOOKS = ".claude/settings.json"
"""The file in which Claude Code looks for the hooks of a project."""
_OURS = re.compile(r"(?:scoped-retrieval|scoped_retrieval\.pipeline\.cli)['\"]? prompt-hook\b")


def changed(client: str, server: Server, standing: str | None, path: Path) -> str:
    """The text of a client's file with the server in it.

    Raises:
        InputError: the existing file is invalid, or has another server of this name in TOML.
    """
    declared = CLIENTS[client]
    if path.suffix == ".toml":
        return _toml(declared.key, server, standing or "", path)
    content = _json(standing, path)
    servers = content.setdefault(declared.key, {})
    if not isinstance(servers, dict):
        raise InputError.of_kind("an object", servers, f"{path}: {declared.key}")
    servers[NAME] = ({"type": "stdio"} if client == "vscode" else {}) | server.as_dict()
    return _dumped(content)


def prompt_hook(command: str, standing: str | None, path: Path) -> str:
    """The text of Claude Code's settings with a hook that runs before each prompt; an existing one is replaced.

    Raises:
        InputError: the existing file is invalid.
    """
    content = _json(standing, path)
    hooks = content.setdefault("hooks", {})
    groups = hooks.setdefault("UserPromptSubmit", []) if isinstance(hooks, dict) else None
    if not isinstance(groups, list):
        raise InputError.described("lists of hooks by event", "another form", f"{path}: hooks")
    ours = {"hooks": [{"type": "command", "command": command, "timeout": 30}]}
    hooks["UserPromptSubmit"] = [*(kept for group in groups if (kept := _without_ours(group)) is not None), ours]
    return _dumped(content)


def _without_ours(group: Any) -> Any:
    """A group of hooks without the one written here; None if it is then empty."""
    if not isinstance(group, dict) or not isinstance(group.get("hooks"), list):
        return group
    others = [hook for hook in group["hooks"] if not _is_ours(hook)]
    return group if len(others) == len(group["hooks"]) else {**group, "hooks": others} if others else None


def _is_ours(hook: Any) -> bool:
    command = hook.get("command") if isinstance(hook, dict) else None
    return isinstance(command, str) and bool(_OURS.search(command))


def _json(standing: str | None, path: Path) -> dict[str, Any]:
    if standing is None or not standing.strip():
        return {}
    try:
        content = strict_json(standing)
    except ValueError as error:
        hint = "comments would be lost: run it without --write and add the printed entry by hand"
        raise InputError.described("JSON without comments", "another text", str(path), hint=hint) from error
    if not isinstance(content, dict):
        raise InputError.of_kind("an object", content, str(path))
    return content


def _dumped(content: Mapping[str, Any]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _toml(key: str, server: Server, standing: str, path: Path) -> str:
    try:
        content = tomllib.loads(standing)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError.described("TOML", "another text", str(path)) from error
    known = content.get(key, {}).get(NAME) if isinstance(content.get(key, {}), dict) else None
    if known == server.as_dict():
        return standing
    if known is not None:
        hint = f"remove the table [{key}.{NAME}] first"
        raise InputError.described(f"no other server {NAME}", "one", str(path), hint=hint)
    env = ", ".join(f"{_quoted(name)} = {_quoted(value)}" for name, value in server.env.items())
    table = (
        f"[{key}.{NAME}]\ncommand = {_quoted(server.command)}\n"
        f"args = [{', '.join(map(_quoted, server.args))}]\nenv = {{{env}}}\n"
    )
    text = f"{standing.rstrip()}\n\n{table}" if standing.strip() else table
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:  # an inline table cannot be extended
        hint = "move its entries to tables of their own first"
        raise InputError.described(
            f"a table [{key}], which can be extended", "another form", str(path), hint=hint
        ) from error
    return text


def _quoted(text: str) -> str:
    """A basic TOML string; JSON's escapes are valid in it."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
