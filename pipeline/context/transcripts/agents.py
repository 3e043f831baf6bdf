"""Changes of files outside the conversation of a transcript: by agents, by tools of servers, by the user.

Gives: `changed_by_call`, the files that a tool changed, `Aside`, the records of subagents in the file of their session,
and `noted_changes`, which the harness reports.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..changes import ANY_FILE, changed_files
from ..tool_changes import changed_by
from .writing import Transcript, text_of, version_of

__all__ = ["Aside", "changed_by_call", "noted_changes"]

_LOOKS_AFTER = frozenset(("taskoutput", "agentoutputtool", "wait_agent", "wait", "close_agent"))
"""Tools that wait for agents started before."""
_NOTE = re.compile(r"<system-reminder>\s*Note: (?P<path>[^\n]+?) was modified, either by the user or by a linter\b")
_SHOWN = re.compile(r"\(shown with line numbers\):\n(?P<lines>.*?)\s*(?:</system-reminder>|\Z)", re.DOTALL)
_EDITS = ("Edit", "Write", "MultiEdit", "NotebookEdit")
_COMMANDS = ("Bash", "PowerShell")


def changed_by_call(made: Transcript, tool: str, given: Any, *, failed: bool = False) -> list[str] | None:
    """The files that a call changed, relative to the working directory; None if its name indicates no change."""
    if isinstance(given, str):
        given = json.loads(given) if given.startswith("{") else {}
    given = given if isinstance(given, Mapping) else {}
    if tool.lower() in _LOOKS_AFTER:
        return [ANY_FILE] if made.delegated else None
    found = [made.path(path) for path in changed_by(tool, given)]
    if ANY_FILE in found and len(found) == 1:
        made.delegated = True
        return found
    of_agent = tool in ("Task", "Agent", "spawn_agent")
    return found if not failed and (found or of_agent) else None


def noted_changes(made: Transcript, id_: str, blocks: Iterable[tuple[str, str]]) -> None:
    """Add the files that others modified, as the harness reports."""
    for _, text in blocks:
        if (note := _NOTE.match(text)) is not None:
            shown = _SHOWN.search(text)
            said = shown["lines"] if shown and shown["lines"].strip() else "modified by the user or a linter"
            made.add("file.modified", id_, path=made.path(note["path"]), text=said, version=version_of(f"{id_}{text}"), noted=True)  # fmt: skip


@dataclass
class Aside:
    """Records of subagents among those of their session: messages are left out, changed files are not."""

    made: Transcript
    tools: dict[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)
    """The tool and its arguments, by the id of the call."""

    def take(self, id_: str, message: Any) -> None:
        content = message.get("content") if isinstance(message, Mapping) else None
        for block in content if isinstance(content, list) else []:
            if not isinstance(block, Mapping):
                continue
            if block.get("type") == "tool_use":
                given = block.get("input")
                self.tools[str(block.get("id"))] = (str(block.get("name")), given if isinstance(given, Mapping) else {})
            elif block.get("type") == "tool_result":
                tool, given = self.tools.get(str(block.get("tool_use_id")), ("", {}))
                failed, said = block.get("is_error") is True, text_of(block.get("content"))
                for path in _changed(tool, given, said, failed=failed):
                    self.made.add("file.modified", id_, path=self.made.path(path), text="modified by a subagent", version=version_of(f"{id_}{path}"), noted=True)  # fmt: skip


def _changed(tool: str, given: Mapping[str, Any], said: str, *, failed: bool) -> list[str]:
    """The named files that a call of a subagent changed."""
    if tool in _COMMANDS:
        found = changed_files(str(given.get("command") or ""), failed=failed, said=said).sure
    elif failed:
        found = ()
    elif tool in _EDITS:
        found = (given.get("file_path") or given.get("notebook_path"),)
    else:
        found = changed_by(tool, given)
    return [path for path in found if isinstance(path, str) and path and path != ANY_FILE]
