"""What both importers share: the events of a transcript, the tools of the two products, and readers of untyped JSON.

Gives `Transcript` and `CAPABILITIES`; `mapping`, `mappings`, `words`, `whole` and `text_of` read a
value of any type and give an empty one if it has another.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

Record = Mapping[str, Any]

CAPABILITIES: Mapping[str, str] = {
    # Claude Code
    "Read": "read", "LS": "read", "NotebookRead": "read", "Grep": "search", "Glob": "search",
    "Bash": "run", "PowerShell": "run", "BashOutput": "run_read_only", "TaskOutput": "run_read_only",
    "Edit": "edit", "MultiEdit": "edit", "Write": "edit", "NotebookEdit": "edit",
    "WebFetch": "external_read", "WebSearch": "external_read", "AskUserQuestion": "ask_user", "ExitPlanMode": "ask_user",
    # Codex CLI
    "shell": "run", "local_shell": "run", "shell_command": "run", "container.exec": "run", "exec_command": "run", "write_stdin": "run",
    "apply_patch": "edit", "view_image": "read", "web_search": "external_read", "request_user_input": "ask_user",
}  # fmt: skip
"""What the built-in tools of the two products can do. Any other tool has no capability that a transcript states."""
_COMMANDS = ("command", "cmd", "pattern", "query", "url")
"""Arguments of built-in tools that are a command line, a query or an address."""
_PATHS = ("file_path", "notebook_path", "path")
PLANS = {"TodoWrite": ("todos", "content"), "update_plan": ("plan", "step")}
"""Tools that state the model's plan, with the argument that has its steps and the field that says what a step is."""
_URI = re.compile(r"\Afile://(?:/(?=[A-Za-z]:))?")
_TAGGED = re.compile(r"\s*<[A-Za-z][\w.:-]*[\s>].*</[A-Za-z][\w.:-]*>\s*", re.DOTALL)


@dataclass
class Transcript:
    """Collects the events of a transcript."""

    session_id: str
    root: str = ""
    """The working directory: paths below it are stored relative to it."""
    events: list[dict[str, Any]] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    round: int = 0
    at: str = "1970-01-01T00:00:00Z"
    """The time of the last record that had one."""
    spoken: bool = False
    """Whether the user has set a goal."""
    ids: Counter[str] = field(default_factory=Counter)
    calls: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The fields of a call, by its id."""
    running: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Command and folder of a call that runs on, by the id that it has then."""

    def time(self, value: Any) -> None:
        """Set the time from a record; an invalid one is counted, and the previous time stays."""
        with suppress(ValueError, TypeError):
            if value is None or datetime.fromisoformat(value).tzinfo is not None:
                self.at = value or self.at
                return
        self.left_out["times that cannot be read"] += 1

    def add(self, kind: str, id_: str, **payload: Any) -> None:
        """Add an event; a repeated id gets a number."""
        self.ids[id_] += 1
        numbered = id_ if self.ids[id_] == 1 else f"{id_}.{self.ids[id_]}"
        given = {name: value for name, value in payload.items() if value is not None}
        self.events.append(
            {"id": numbered, "turnId": str(self.round), "kind": kind, "createdAt": self.at, "payload": given}
        )

    def request(self, id_: str) -> None:
        """A request to the model begins a round."""
        self.round += 1
        self.add("model.request", f"{id_}:request")

    def user(self, id_: str, text: str) -> None:
        """Words of the user, the first of which are the goal."""
        if text.strip():
            self.add("user.message" if self.spoken else "user.goal", id_, text=text)
            self.spoken = True

    def called(
        self, id_: str, call: Any, tool: str, given: Record, cwd: Any = None, runs: Record | None = None
    ) -> None:
        """The model calls a tool; `runs` is the command that it resumes. Arguments are only interpreted if the tool is built in."""
        capability = CAPABILITIES.get(tool)
        built_in = given if capability else {}
        paths = (self.path(built_in.get(name)) for name in _PATHS if capability in ("read", "edit"))
        self.calls[str(call)] = {
            "requestId": words(call), "tool": tool, "capability": capability, "arguments": dict(given) or None,
            "command": next((each for name in _COMMANDS if (each := words(built_in.get(name)))), None),
            "path": next(filter(None, paths), None), "cwd": self.path(cwd) if capability == "run" else None, **(runs or {}),
        }  # fmt: skip
        if tool in PLANS:
            steps, step = PLANS[tool]
            listed = (f"{each.get('status')}: {each.get(step)}" for each in mappings(given.get(steps)))
            self.add("plan.updated", id_, text="\n".join(listed) or "no plan")
        else:
            self.add("tool.intent", id_, **self.calls[str(call)])

    def about(self, call: Any) -> dict[str, Any]:
        """The fields of a call without its arguments, for the event in which it ends."""
        return {name: value for name, value in self.calls.get(str(call), {}).items() if name != "arguments"}

    def path(self, path: Any) -> str | None:
        """A path relative to the working directory if it is below it; None if the value is not a path."""
        if not isinstance(path, str) or not path:
            return None
        given, root = (PurePosixPath(_URI.sub("", each).replace("\\", "/")) for each in (path, self.root))
        below = self.root and given.is_relative_to(root)
        return (given.relative_to(root) if below else given).as_posix()


def is_tagged(text: str) -> bool:
    """Whether a text begins with an opening tag and ends with a closing one, as text of the harness does."""
    return _TAGGED.fullmatch(text) is not None


def mapping(value: Any) -> Record:
    return value if isinstance(value, Mapping) else {}


def mappings(value: Any) -> list[Record]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def words(value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


def whole(value: Any) -> int | None:
    return value if type(value) is int and abs(value) < 2**31 else None


def text_of(content: Any) -> str:
    """The text of a content: a text, or a list of blocks with texts."""
    if isinstance(content, list):
        return "\n".join(text for each in content if (text := text_of(each)))
    found = content.get("text") if isinstance(content, Mapping) else content
    return found if isinstance(found, str) else ""
