"""Files changed by a tool that runs no command line, by its name and arguments.

Gives: `changed_by`, `changed_by_tool` for an event, `only_reads` for an agent, `AGENTS` and `arguments_of` a call.

Note: a tool changes files if its name indicates it (`write_file`, `replace_symbol_body`) and an argument names one. An
agent may change any file, unless its kind is known to be read-only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from ..sources.jsonl import Record
from .program_changes import ANY_FILE
from .tool_names import capability_of

__all__ = ["AGENTS", "arguments_of", "changed_by", "changed_by_tool", "only_reads"]

AGENTS = frozenset(("task", "agent", "spawn_agent", "send_input", "resume_agent"))
"""Tools that start an agent or give it work."""
_READERS = frozenset(("explore", "explorer", "plan", "claude-code-guide"))
"""Kinds of read-only agents."""
_WRITES = re.compile(
    r"(?:\A|[_\W]|(?<=[a-z])(?=[A-Z]))(?i:write|edit|create|replace|insert|delete|remove|move|copy|rename|patch|append|update|overwrite|save|modify|multiedit)(?![a-z])"
)
_LOOKS = re.compile(
    r"(?i:view|list|get|read|preview|validate|check|show|search)(?![a-z])(?!.*(?:[_\W]|(?<=[a-z])(?=[A-Z]))(?i:and|or|then|replace)(?![a-z]))"
)
"""Verbs that change no file, at the beginning of a name (`view_edit_history`) or of an argument `command`."""
_FILE_NAMED = re.compile(
    r"(?i)(?:(?:abs(?:olute)?|relative(?:_?workspace)?|full|local|script|output|notebook|old|source|src|from|new|target|destination|dest|dst|to)_?)?(?:path|file|file_?path|file_?name|uri)|file_?uri|path_?in_?project"
)
"""Arguments that name a file."""
_MOVED = re.compile(r"(?i)source|src|destination|dest|dst|target")
"""The same for a tool that moves or copies."""
_ENDS = ("from", "to")
"""The same for one that moves files by its name (`move_file`, not `rename_in_file`), unless an id names them."""
_BY_ID = re.compile(r"(?i)(?:file|drive|doc(?:ument)?|item|node)_?id")
_OF_FILES = re.compile(r"(?:\A|[_\W]|(?<=[a-z])(?=F))(?<!in_)(?<!in)(?i:files?)(?![a-z])")
_TARGET = re.compile(r"(?i)new|target|dest|dst|to")
"""The same for a tool that copies, by the beginning of the name."""
_ELSEWHERE = frozenset(("owner", "repo", "repository", "branch", "bucket", "url", "page_id", "database"))
"""Arguments that indicate a file on a server."""
_FOLDERS = re.compile(r"(?i)director(?:y|ies)|folder|memor(?:y|ies)")


def changed_by_tool(payload: Record, *, failed: bool) -> tuple[str, ...] | None:
    """The files that a tool changed, from its event; None if the event does not indicate any.

    Raises:
        InputError: `changedFiles` is not a list of texts.
    """
    listed = payload.strings("changedFiles", "changed_files")
    tool = payload.text("tool", "toolName")
    if listed is not None or tool is None or failed or payload.text("command") is not None:
        return None if listed is None else tuple(listed)
    return changed_by(tool, arguments_of(payload.value("arguments", "input"))) or None


def changed_by(tool: str, given: Mapping[str, Any]) -> tuple[str, ...]:
    """The files that a call of a tool changed if it did not fail; `ANY_FILE` for those that it does not name."""
    if tool.lower() in AGENTS:
        return () if only_reads(given) else (ANY_FILE,)
    own = tool.rpartition("__")[2] if tool.startswith("mcp") else tool
    reads = capability_of(tool) in ("read", "search", "external_read", "ask_user")
    reads |= any(map(_LOOKS.match, (own, str(given.get("command")))))
    dry = given.get("dryRun") is True or given.get("dry_run") is True
    if reads or dry or not _WRITES.search(own) or _FOLDERS.search(own) or _ELSEWHERE & given.keys():
        return ()
    moves, copies = (re.search(rf"(?i){verb}", own) for verb in ("(?<!re)move|rename|copy(?!right)", "copy(?!right)"))
    names = [each for each in given if _FILE_NAMED.fullmatch(each) or (moves and _MOVED.fullmatch(each))]
    if moves and _OF_FILES.search(own) and not any(map(_BY_ID.fullmatch, given)):
        names += [each for each in _ENDS if each in given]
    names = [each for each in names if not copies or _TARGET.match(each)]
    named = filter(None, (_path(each, given[each]) for each in names))
    spreads = re.search(r"(?i)rename", own) and any("symbol" in name.lower() for name in (own, *given))
    return (*dict.fromkeys(named), *((ANY_FILE,) if spreads else ()))


def only_reads(given: Mapping[str, Any]) -> bool:
    """Whether the kind of agent that the call names is read-only."""
    return str(given.get("subagent_type") or given.get("agent_type") or "").lower() in _READERS


def _path(name: str, value: Any) -> str | None:
    """The value of an argument as the path of a local file; None if it is not one."""
    if not isinstance(value, str) or not value.strip() or "\n" in value:
        return None
    if value.startswith("file://"):
        return re.sub(r"\A/(?=[A-Za-z]:)", "", unquote(value.removeprefix("file://"))) or None
    return None if "://" in value or name.lower().endswith("uri") else value


def arguments_of(given: Any) -> Mapping[str, Any]:
    """The arguments of a tool, by name."""
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            return {}
    return given if isinstance(given, Mapping) else {}
