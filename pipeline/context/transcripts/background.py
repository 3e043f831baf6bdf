"""Commands of Claude Code that run in the background: attributes later output and endings to them.

Gives `Background`. A call requests the output (`BashOutput`, `TaskOutput`), or the harness reports with the role `user`
that a command has ended (`<task-notification>`). Both name the command by the id that it got when it began.

Note: only the fields before the output of a command report how it ended. If files changed since, it cannot pass.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..outcomes import NO_OUTPUT
from .agents import agent_ended
from .writing import Transcript, exit_code_in

__all__ = ["Background"]

_ID = re.compile(r"\bwith ID: (?P<id>[\w-]+)")
_HEAD = re.compile(r"\A(?:\s*<(?:retrieval_status|task_id|task_type|status|exit_code|timestamp)>[^<]*</\w+>)+")
_FIELD = re.compile(r"<(?P<name>status|exit_code|task-id|summary)>(?P<text>[^<]*)<")
_OPENS = re.compile(r"<(?P<name>stdout|stderr|output)>\n?")
_CLOSES = {name: re.compile(rf"\n?</{name}>(?=\s*(?:<|\Z))") for name in ("stdout", "stderr", "output")}
_NOTE = re.compile(r"\A\s*<task-notification>")
_CODE = re.compile(r"\bexit code (?P<code>\d+)\b")


@dataclass
class Background:
    """The commands of a session that moved to the background."""

    made: Transcript
    begun: dict[str, tuple[Mapping[str, Any], int]] = field(default_factory=dict)
    """The arguments of the call and the event at which it began, by id."""

    def begin(self, given: Mapping[str, Any], text: str, named: Any) -> None:
        """A call moved to the background under an id, which a field next to its result or the result itself names."""
        found = _ID.search(text)
        if name := str(named or (found and found["id"]) or ""):
            self.begun[name] = (given, len(self.made.events))

    def asked(self, id_: str, given: Mapping[str, Any], text: str) -> bool:
        """Output of a command since it was last requested; False if the call names no known command."""
        name = str(given.get("bash_id") or given.get("shell_id") or given.get("task_id"))
        head = _HEAD.match(text)
        fields = _fields(head[0] if head else "")
        printed = _streams(text)
        return self._ran(id_, name, fields.get("status"), fields.get("exit_code", ""), printed or {"stdout": NO_OUTPUT})

    def noted(self, id_: str, text: str) -> bool:
        """A note of the harness that a command has ended; False if the text is not one, or names no known command. An
        unknown one may be an agent.
        """
        if not _NOTE.match(text):
            return False
        fields = _fields(text)
        code, summary = _CODE.search(fields.get("summary", "")), fields.get("summary") or NO_OUTPUT
        name, status = fields.get("task-id", ""), fields.get("status")
        if name not in self.begun:
            agent_ended(self.made, id_)
        return self._ran(id_, name, status, code["code"] if code else "", {"stdout": summary})

    def _ran(self, id_: str, name: str, status: str | None, code: str, printed: Mapping[str, str]) -> bool:
        if name not in self.begun:
            return False
        given, begun = self.begun[name]
        command = str(given.get("command", "")) or "Bash"
        self.made.add(
            "command.finished",
            id_,
            command=command,
            exitCode=exit_code_in(code),
            status=status,
            background=self.made.changed_since(begun),
            **printed,
            **self.made.ran_in(given.get("cwd")),
        )
        return True


def _streams(text: str) -> dict[str, str]:
    """The output of a command by stream; an element without a closing tag extends to the end of the text."""
    found, at = dict[str, str](), 0
    while opened := _OPENS.search(text, at):
        closed = _CLOSES[opened["name"]].search(text, opened.end())
        content = text[opened.end() : closed.start() if closed else None]
        if content.strip():
            found[opened["name"].replace("output", "stdout")] = content
        at = closed.end() if closed else len(text)
    return found


def _fields(text: str) -> dict[str, str]:
    return {each["name"]: each["text"].strip() for each in _FIELD.finditer(text)}
