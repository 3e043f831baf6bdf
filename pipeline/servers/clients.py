"""The configuration of coding agents that start the MCP server: where it is, and its text with the server or without it.

Gives: `CLIENTS`, the files of a project in which agents look for servers and hooks, and `with_hook`. Everything else in a file is
kept as it is written, so that taking the server out gives the file as it was; a file that cannot be parsed is not
changed. The places and forms are those that the agents' own pages describe.

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
        servers = _json(existing, path).get(self.key, {})
        if not isinstance(servers, dict):
            raise InputError.of_kind("an object", servers, f"{path}: {self.key}")
        place = (self.key, NAME)
        text = _without(existing or "", place)
        return text if server is None else _with(text, place, server)


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
    hooks = _json(existing, path).get("hooks", {})
    groups = hooks.get("UserPromptSubmit", []) if isinstance(hooks, dict) else None
    if not isinstance(groups, list):
        raise InputError.described("lists of hooks by event", "another form", f"{path}: hooks")
    place, text = ("hooks", "UserPromptSubmit"), existing or ""
    for number, group in reversed([*enumerate(groups)]):  # users may have joined the hook with theirs
        others = group.get("hooks") if isinstance(group, dict) else None
        for at, hook in reversed([*enumerate(others if isinstance(others, list) else ())]):
            if isinstance(hook, dict) and hook.get("server") == NAME:
                text = _without(text, (*place, number, "hooks", at))
    return _with(text, (*place, len(groups)), {"hooks": [_HOOK]}) if added else text


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


def _with(text: str, place: Sequence[str | int], value: Any) -> str:
    """The JSON text with a value at a place that it lacks, last in its object or list; those on the way are made."""
    text = text if text.strip() else "{}\n"
    at, depth = _after_space(text, 0), 0
    while place[depth] in (members := _members(text, at)):
        at, depth = members[place[depth]][1], depth + 1
    for name in reversed(place[depth + 1 :]):
        value = [value] if isinstance(name, int) else {name: value}
    spans = [*members.values()]
    space = text[at + 1 : spans[0][0]] if spans else "\n" + "  " * (depth + 1)
    new = json.dumps(value, indent=2 if "\n" in space else None, ensure_ascii=False).replace("\n", space)
    new = new if text[at] == "[" else f'"{place[depth]}": {new}'
    if spans:
        return f"{text[: spans[-1][2]]},{space}{new}{text[spans[-1][2] :]}"
    return f"{text[: at + 1]}{space}{new}{space[:-2]}{text[_after_space(text, at + 1) :]}"


def _without(text: str, place: Sequence[str | int]) -> str:
    """The JSON text without the member at a place, nor the objects and lists that had nothing else."""
    at, way = _after_space(text, 0), list[tuple[Members, str | int]]()
    for name in place if text.strip() else ():
        members = _members(text, at)
        if name not in members:
            return text
        way.append((members, name))
        at = members[name][1]
    for members, name in reversed(way):
        if len(members) > 1:
            spans, number = [*members.values()], [*members].index(name)
            first, last = (spans[number - 1][2], spans[number][2]) if number else (spans[0][0], spans[1][0])
            return text[:first] + text[last:]
    return ""


Members = Mapping[str | int, tuple[int, int, int]]
"""By name or number, where each member begins, where its value does, and where it ends."""


def _members(text: str, at: int) -> Members:
    """The members of the object or list at `at` of a valid JSON text."""
    found: dict[str | int, tuple[int, int, int]] = {}
    read, end = json.JSONDecoder().raw_decode, at
    while text[begin := _after_space(text, end + 1)] not in "]}":
        name, value = len(found), begin
        if text[at] == "{":
            name, colon = read(text, begin)
            value = _after_space(text, _after_space(text, colon) + 1)
        found[name] = begin, value, read(text, value)[1]
        end = _after_space(text, found[name][2])  # at a comma or the closing bracket
        if text[end] != ",":
            break
    return found


def _after_space(text: str, at: int) -> int:
    return at + len(text[at:]) - len(text[at:].lstrip())


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
