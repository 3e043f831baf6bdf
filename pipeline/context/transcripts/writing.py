"""What importers of transcripts share: events with ids and rounds, relative paths, versions of files by their content."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any, NamedTuple

from ..changes import may_change
from .speaking import OTHERS, Speech

__all__ = ["Transcript", "asked", "exit_code_of", "text_of", "version_of"]

MOST = 2**31
"""Numbers from here on are no exit codes and no lines."""
INFERRED = "inferred: the call ran later"
"""What a grant says that no record states."""


class Call(NamedTuple):
    """What a call of a tool was to do."""

    tool: str
    action: str | None
    """The command, file or address that it names."""
    given: str = ""
    """All that it was given, where it names none."""


@dataclass
class Transcript:
    """The events of a transcript as they come."""

    session_id: str
    root: str = ""
    """The working directory: paths below it are written from there."""
    folder: str = ""
    """Where the session works by now, if that is another folder."""
    events: list[dict[str, Any]] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    round: int = 0
    at: str = "1970-01-01T00:00:00Z"
    """The time of the last record that had one."""
    spoken: bool = False
    """The user set a goal."""
    ids: Counter[str] = field(default_factory=Counter)
    refused: dict[Call, list[str | None]] = field(default_factory=dict)
    """Calls that were denied and have not run since, with the ids of their requests."""

    def time(self, value: Any) -> None:
        """Take the time of a record; an invalid one is counted, and the previous time stays."""
        if value is None:
            return
        try:
            read = datetime.fromisoformat(value) if isinstance(value, str) else None
        except ValueError:
            read = None
        if read is None or read.tzinfo is None:
            self.left_out["times that cannot be read"] += 1
        else:
            self.at = value

    def add(self, kind: str, id_: str, **payload: Any) -> None:
        """Add an event; an id that comes again gets a number."""
        self.ids[id_] += 1
        numbered = id_ if self.ids[id_] == 1 else f"{id_}.{self.ids[id_]}"
        given = {name: value for name, value in payload.items() if value is not None}
        self.events.append(
            {"id": numbered, "turnId": str(self.round), "kind": kind, "createdAt": self.at, "payload": given}
        )

    def denied(self, id_: str, call: Call, text: str, request: str | None = None) -> None:
        """A call was denied."""
        named = {"tool": call.tool, "action": call.action, "arguments": call.given or None}
        self.add("permission.denied", id_, **named, text=text, requestId=request)
        self.refused.setdefault(call, []).append(request)

    def let_through(self, id_: str, call: Call) -> None:
        """A call was run: where the same one was denied before, it has been granted."""
        named = {"tool": call.tool, "action": call.action, "arguments": call.given or None}
        for request in self.refused.pop(call, ()):
            self.add("permission.granted", f"{id_}:granted", **named, requestId=request, text=INFERRED)

    def works_in(self, folder: Any) -> None:
        """The session works in a folder from now on; the first one is its working directory."""
        if isinstance(folder, str) and folder:
            self.root = self.root or folder
            self.folder = "" if folder == self.root else folder

    def request(self, id_: str) -> None:
        """A request to the model begins a round."""
        self.round += 1
        self.add("model.request", f"{id_}:request")

    def user(self, id_: str, text: str) -> None:
        """What the user says: first the goal."""
        if text.strip():
            self.add("user.message" if self.spoken else "user.goal", id_, text=text)
            self.spoken = True

    def in_mode(self, begun: int, mode: Any) -> None:
        """The permission mode in which the user wrote the messages from an event on."""
        for each in self.events[begun:] if isinstance(mode, str) else ():
            if each["kind"] in ("user.goal", "user.message") and "origin" not in each["payload"]:
                each["payload"]["permissionMode"] = mode

    def read(self, id_: str, path: str, text: str, lines: Mapping[str, int] = MappingProxyType({})) -> None:
        """A file that was read, or lines of it. The version of a file follows from its whole content alone."""
        version = None if lines else version_of(text)
        self.add("file.read", id_, path=path, text=text or "(empty)", version=version, **lines)

    def other(self, id_: str, text: str) -> None:
        """Words under the user's role that the user did not write."""
        if text.strip():
            self.add("user.message", id_, text=text, origin=OTHERS)

    def proposed(self, id_: str, text: str) -> None:
        """Words that may be the user's, or of a program that prints what the harness would."""
        if text.strip():
            self.add("user.constraint", id_, text=text, origin=OTHERS)

    def add_speech(self, id_: str, said: Speech) -> None:
        """A text under the user's role, by who said it; what the harness said is counted."""
        if said.blocks:
            self.left_out["messages of the harness"] += len(said.blocks)
        if said.summary:
            self.add("history.summarized", id_, text=said.summary)
        self.user(id_, said.own)
        self.other(id_, said.others)

    def changed_since(self, begun: int) -> bool | None:
        """Whether a file may have been modified behind an event: what a command that began there tells of files may be out of date."""
        later = self.events[begun + 1 :]
        by_command = (each["payload"].get("command", "") for each in later if each["kind"] == "command.finished")
        return any(each["kind"] == "file.modified" for each in later) or any(map(may_change, by_command)) or None

    def ran_in(self, folder: Any) -> dict[str, str | None]:
        """Where a command ran, as its event says it: in a folder of the working directory, and what that is."""
        cwd = self.path(folder) if isinstance(folder, str) and folder else "."
        return {"cwd": None if cwd == "." else cwd, "root": self.root or None}

    def path(self, path: str) -> str:
        """A path from the working directory."""
        given = PurePosixPath(path.replace("\\", "/"))
        if self.root and given.is_relative_to(self.root):
            return given.relative_to(self.root).as_posix()
        return given.as_posix()


def asked(given: Any) -> str:
    """The questions that the model asks the user in a call."""
    listed = given.get("questions") if isinstance(given, Mapping) else None
    said = [each.get("question") for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []
    return "\n".join(each for each in said if isinstance(each, str))


def exit_code_of(value: Any) -> int | None:
    """How a command ended, where a record says it in a number."""
    return value if type(value) is int and -MOST <= value < 2 * MOST else None


def version_of(text: str) -> str:
    """The version of a file whose content this is."""
    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:16]}"


def text_of(content: Any) -> str:
    """The words of a content: a text, or a list of blocks with texts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        words = [
            block if isinstance(block, str) else block.get("text")
            for block in content
            if isinstance(block, (str, Mapping))
        ]
        return "\n".join(word for word in words if isinstance(word, str))
    return ""
