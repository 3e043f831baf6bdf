"""Commands of Claude Code that run in the background: what is printed of them later, and how they end, belongs to the command.

Gives `Background`. A call asks for the output (`BashOutput`, `TaskOutput`), or the harness notes under the user's role that a command
has ended (`<task-notification>`). Both name the command by the id that it got when it began.

Note: only the fields in front of what a command printed say how it ended. Where files changed after it began, it passes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..outcomes import NO_OUTPUT
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
    """The commands of a session that went on in the background."""

    made: Transcript
    begun: dict[str, tuple[Mapping[str, Any], int]] = field(default_factory=dict)
    """By id, what the call was given, and the event at which it began."""

    def begin(self, given: Mapping[str, Any], text: str, named: Any) -> None:
        """A call went on in the background under an id, which a field beside its result names, or the result."""
        found = _ID.search(text)
        if name := str(named or (found and found["id"]) or ""):
            self.begun[name] = (given, len(self.made.events))

    def asked(self, id_: str, given: Mapping[str, Any], text: str) -> bool:
        """What a command printed since it was last asked for; False where the call asks for no command that is known."""
        name = str(given.get("bash_id") or given.get("shell_id") or given.get("task_id"))
        head = _HEAD.match(text)
        fields = _fields(head[0] if head else "")
        printed = _streams(text)
        return self._ran(id_, name, fields.get("status"), fields.get("exit_code", ""), printed or {"stdout": NO_OUTPUT})

    def noted(self, id_: str, text: str) -> bool:
        """A note of the harness that a command has ended; False where the text is none, or no command is known."""
        if not _NOTE.match(text):
            return False
        fields = _fields(text)
        code, summary = _CODE.search(fields.get("summary", "")), fields.get("summary") or NO_OUTPUT
        return self._ran(
            id_, fields.get("task-id", ""), fields.get("status"), code["code"] if code else "", {"stdout": summary}
        )

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
    """What a command printed, by stream; an element without a closing tag extends to the end of the text."""
    found, at = dict[str, str](), 0
    while opened := _OPENS.search(text, at):
        closed = _CLOSES[opened["name"]].search(text, opened.end())
        said = text[opened.end() : closed.start() if closed else None]
        if said.strip():
            found[opened["name"].replace("output", "stdout")] = said
        at = closed.end() if closed else len(text)
    return found


def _fields(text: str) -> dict[str, str]:
    return {each["name"]: each["text"].strip() for each in _FIELD.finditer(text)}
