"""Shared parts of the transcript importers: events with ids and rounds, relative paths, versions of files."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any, NamedTuple

from ..changes import may_change
from .speaking import OTHERS, Speech

__all__ = ["Transcript", "asked", "exit_code_in", "exit_code_of", "line_span", "repeated", "text_of", "version_of"]

MOST = 2**31
"""Numbers from here on are neither exit codes nor lines."""
_SHORT_NUMBER = re.compile(r"-?\d{1,10}")
"""Longer numbers are not exit codes."""
INFERRED = "inferred: the call ran later"
"""The text of a grant that no record states."""


class Call(NamedTuple):
    """A tool call: the tool, and what it was to do."""

    tool: str
    action: str | None
    """The command, file or address that the call names."""
    given: str = ""
    """All its arguments, if it names none."""


@dataclass
class Transcript:
    """Collects the events of a transcript."""

    session_id: str
    root: str = ""
    """The working directory: paths below it are stored relative to it."""
    folder: str = ""
    """The current folder of the session, if it is another one."""
    events: list[dict[str, Any]] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    round: int = 0
    at: str = "1970-01-01T00:00:00Z"
    """The time of the last record that had one."""
    spoken: bool = False
    """Whether the user has set a goal."""
    ids: Counter[str] = field(default_factory=Counter)
    delegated: bool = False
    """Whether an agent that may change files was started."""
    refused: dict[Call, list[str | None]] = field(default_factory=dict)
    """Calls that were denied and have not run since, with the ids of their requests."""

    def time(self, value: Any) -> None:
        """Set the time from a record; an invalid one is counted, and the previous time stays."""
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
        """Add an event; a repeated id gets a number."""
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
        """A call was run: if the same call was denied before, it has been granted."""
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
        """Words of the user, the first of which are the goal."""
        if text.strip():
            self.add("user.message" if self.spoken else "user.goal", id_, text=text)
            self.spoken = True

    def in_mode(self, begun: int, mode: Any) -> None:
        """Set the permission mode in which the user wrote the messages from an event on."""
        for each in self.events[begun:] if isinstance(mode, str) else ():
            if each["kind"] in ("user.goal", "user.message") and "origin" not in each["payload"]:
                each["payload"]["permissionMode"] = mode

    def read(self, id_: str, path: str, text: str, lines: Mapping[str, int] = MappingProxyType({})) -> None:
        """A file that was read, or lines of it. The version of a file derives from its whole content only."""
        version = None if lines else version_of(text)
        self.add("file.read", id_, path=path, text=text or "(empty)", version=version, **lines)

    def other(self, id_: str, text: str) -> None:
        """Words with the role `user` that the user did not write."""
        if text.strip():
            self.add("user.message", id_, text=text, origin=OTHERS)

    def proposed(self, id_: str, text: str) -> None:
        """Words that may be the user's, or those of a program that imitates the harness."""
        if text.strip():
            self.add("user.constraint", id_, text=text, origin=OTHERS)

    def add_speech(self, id_: str, speech: Speech) -> None:
        """Add a text of the role `user`, split by speaker; blocks of the harness are counted."""
        if speech.blocks:
            self.left_out["messages of the harness"] += len(speech.blocks)
        if speech.summary:
            self.add("history.summarized", id_, text=speech.summary)
        self.user(id_, speech.own)
        self.other(id_, speech.others)

    def changed_since(self, begun: int) -> bool | None:
        """Whether a file may have been modified after an event: output of a command that began there may be
        outdated.
        """
        later = self.events[begun + 1 :]
        by_command = (each["payload"].get("command", "") for each in later if each["kind"] == "command.finished")
        changed = any(each["kind"] == "file.modified" or each["payload"].get("changedFiles") for each in later)
        return changed or any(map(may_change, by_command)) or None

    def ran_in(self, folder: Any) -> dict[str, str | None]:
        """The folder of a command as fields of its event: relative to the working directory, with that directory."""
        cwd = self.path(folder) if isinstance(folder, str) and folder else "."
        return {"cwd": None if cwd == "." else cwd, "root": self.root or None}

    def path(self, path: str) -> str:
        """A path relative to the working directory if it is below it."""
        given = PurePosixPath(path.replace("\\", "/"))
        if self.root and given.is_relative_to(self.root):
            return given.relative_to(self.root).as_posix()
        return given.as_posix()


def repeated(records: Sequence[Mapping[str, Any]]) -> set[int]:
    """The places of repeated records, with the same id and the same content."""
    ids = [_id_of(record) for record in records]
    often, seen, found = Counter(ids), set[str](), set[int]()
    for number, id_ in enumerate(ids):
        if id_ and often[id_] > 1:
            form = json.dumps(records[number], sort_keys=True)
            found |= {number} if form in seen else set()
            seen.add(form)
    return found


def _id_of(record: Mapping[str, Any]) -> str | None:
    """The id of a record, of its item, or of the item's call."""
    payload = record.get("payload")
    item = payload if isinstance(payload, Mapping) else record
    ids = (record.get("uuid"), item.get("id"), item.get("call_id"))
    return next((id_ for id_ in ids if isinstance(id_, str)), None)


def asked(given: Any) -> str:
    """The questions of a call that asks the user."""
    listed = given.get("questions") if isinstance(given, Mapping) else None
    questions = (
        [each.get("question") for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []
    )
    return "\n".join(each for each in questions if isinstance(each, str))


def exit_code_of(value: Any) -> int | None:
    """A value as an exit code; None if it is not one."""
    return value if type(value) is int and -MOST <= value < 2 * MOST else None


def exit_code_in(digits: str) -> int | None:
    """The exit code that a text gives in digits."""
    return exit_code_of(int(digits)) if _SHORT_NUMBER.fullmatch(digits) else None


def line_span(first: int, last: int) -> dict[str, int]:
    """The lines of a partial read as fields of an event; empty if the numbers are not valid lines."""
    return {"lineStart": first, "lineEnd": last} if 1 <= first <= last < MOST else {}


def version_of(text: str) -> str:
    """The version of a file with this content."""
    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:16]}"


def text_of(content: Any) -> str:
    """The text of a content: a text, or a list of blocks with texts."""
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
