"""Changes of files outside the conversation of a transcript: by agents, by tools of servers, by the user.

Gives: `changed_by_call`, the files that a tool changed, `Aside`, the records of subagents in the file of their session,
`noted_changes`, which the harness reports, and `agent_ended`, of one in the background.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...sources.jsonl import Record
from ..changes import Changes, changed_files
from ..endings import OF_SIGNALS, ending
from ..outcome_fields import says
from ..program_changes import ANY_FILE
from ..tool_changes import AGENTS, arguments_of, changed_by
from .effects import EDITS, SHELLS
from .refusals import is_denied
from .shell_results import ShellResult
from .writing import Transcript, text_of, version_of

__all__ = ["Aside", "agent_ended", "changed_by_call", "noted_changes"]

_LOOKS_AFTER = frozenset(("taskoutput", "agentoutputtool", "wait_agent", "wait", "close_agent"))
"""Tools that wait for agents started before."""
_NOT_STARTED = re.compile(r"\A\s*(?:Error: )?<tool_use_error>(?!\s*(?:Cancelled|Sibling)\b)")
"""Messages of the harness for a call that it did not start."""
_NOTE = re.compile(
    r"^(?:[ \t]*<system-reminder>)?[ \t]*Note: (?P<path>[^\n]+?) was modified, either by the user or by a linter\b",
    re.MULTILINE,
)
_SHOWN = "(shown with line numbers):\n"


def changed_by_call(
    made: Transcript, tool: str, given: Any, *, failed: bool = False, output: str = ""
) -> list[str] | None:
    """The files that a call changed, relative to the working directory; None if its name indicates no change, or its
    result (`output`) states that it was not started.
    """
    given = arguments_of(given)
    if failed and _NOT_STARTED.match(output):
        return None
    if tool.lower() in _LOOKS_AFTER:
        return [ANY_FILE] if made.delegated else None
    found = [made.path(path) for path in changed_by(tool, given)]
    if ANY_FILE in found and len(found) == 1:
        made.delegated = True
        return found
    return found if not failed and (found or tool.lower() in AGENTS) else None


def noted_changes(made: Transcript, id_: str, blocks: Iterable[tuple[str, str]]) -> None:
    """Add the files that others modified, as the harness reports."""
    for name, text in blocks:
        notes = [*_NOTE.finditer(text)] if name == "system-reminder" else []
        ends = [*(each.start() for each in notes[1:]), len(text)]
        for note, end in zip(notes, ends, strict=False):
            part = text[note.start() : end]
            shown = part.partition(_SHOWN)[2].partition("</system-reminder>")[0].rstrip()
            note_text = shown or "modified by the user or a linter"
            made.add("file.modified", id_, path=made.path(note["path"]), text=note_text, version=version_of(f"{id_}{part}"), noted=True)  # fmt: skip


def agent_ended(made: Transcript, id_: str) -> None:
    """An agent in the background has ended; it may have changed any file if it was not read-only."""
    if made.delegated:
        _in_doubt(made, id_, "an agent in the background ended")


def _in_doubt(made: Transcript, id_: str, why: str) -> None:
    """Any file may have changed, which events in a row need not repeat."""
    last = made.events[-1]["payload"] if made.events else {}
    if last.get("changedFiles") != [ANY_FILE]:
        made.add("command.finished", id_, tool="Task", text=why, changedFiles=[ANY_FILE])


@dataclass
class Aside:
    """Records of subagents among those of their session: messages are left out, changed files are not."""

    made: Transcript
    tools: dict[str, tuple[str, Mapping[str, Any], str]] = field(default_factory=dict)
    """The tool, its arguments and the folder in which it ran, by the id of the call."""

    def take(self, id_: str, record: Mapping[str, Any]) -> None:
        message, folder = record.get("message"), self.made.ran_in(record.get("cwd"))["cwd"] or ""
        content = message.get("content") if isinstance(message, Mapping) else None
        for block in content if isinstance(content, list) else []:
            if not isinstance(block, Mapping):
                continue
            if block.get("type") == "tool_use":
                self.tools[str(block.get("id"))] = str(block.get("name")), arguments_of(block.get("input")), folder
            elif block.get("type") == "tool_result":
                tool, given, place = self.tools.get(str(block.get("tool_use_id")), ("", {}, ""))
                failed, output = block.get("is_error") is True, text_of(block.get("content"))
                sure, doubtful = _changed(record, ShellResult.of(record, tool, given, output, failed=failed), place)
                for path in sure:
                    if path != ANY_FILE:
                        self.made.add("file.modified", id_, path=self.made.path(path), text="modified by a subagent", version=version_of(f"{id_}{path}"), noted=True)  # fmt: skip
                if doubtful or ANY_FILE in sure:
                    _in_doubt(self.made, id_, "a subagent may have changed files")


def _changed(record: Mapping[str, Any], ran: ShellResult, folder: str) -> Changes:
    """The files that a call of a subagent changed, as those of the session's own calls; a denied call changed none."""
    if is_denied(record, ran.tool, ran.text, failed=ran.failed and not ran.exited):
        return Changes()
    if ran.of_command:
        payload = Record("", {name: value for name, value in ran.fields().items() if value is not None})
        command, code = payload.text("command"), payload.value("exitCode")
        how = ending(payload, command, code)
        failed, broken_off = bool(code) or how is not None or says(payload) == "failed", how is not None or ran.runs_on
        output = "\n".join(payload.fields[name] for name in ("stdout", "stderr") if name in payload.fields)
        return changed_files(command, folder, failed=failed, broken_off=broken_off or code in OF_SIGNALS, output=output)
    if ran.failed or ran.tool in SHELLS:
        return Changes()
    if ran.tool in EDITS:
        path = ran.given.get("file_path") or ran.given.get("notebook_path")
        return Changes((path,) if isinstance(path, str) else ())
    return Changes(changed_by(ran.tool, ran.given))
