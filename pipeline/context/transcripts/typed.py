"""Slash commands in transcripts of Claude Code (`/fix never touch src/api`): which of them are words of the user.

Gives `Typed`. The record of a command has its name and its arguments in tags. A command becomes a prompt, which the next records hold
under the user's role, or the harness handles it and the model never sees it.

Note: what shows that the harness handled a command is its output, or its name where the record is followed by neither output nor prompt.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .speaking import Speech
from .writing import Transcript

__all__ = ["Typed"]

_TYPED = re.compile(r"\A\s*<command-")
_COMMAND = re.compile(r"<command-name>(?P<name>[^<]*)</command-name>")
_ARGUMENTS = re.compile(r"<command-args>(?P<text>.*?)</command-args>", re.DOTALL)
_HANDLED = frozenset((
    "add-dir", "agents", "allowed-tools", "bashes", "bug", "checkpoint", "clear", "color", "compact", "config", "context", "cost", "doctor", "effort", "exit", "export",
    "fast", "feedback", "help", "hooks", "ide", "keybindings", "login", "logout", "mcp", "memory", "model", "new", "output-style", "permissions", "plugin",
    "privacy-settings", "quit", "release-notes", "remote-control", "rename", "reset", "resume", "rewind", "sandbox", "settings", "skills", "stats", "status", "tasks",
    "terminal-setup", "theme", "todos", "upgrade", "usage", "vim",
))  # fmt: skip
"""Commands of the harness that become no prompt."""


@dataclass
class Typed:
    """The command that was typed last, until later records show what became of it."""

    made: Transcript
    id_: str = ""
    name: str = ""
    arguments: str = ""

    def follows(self, id_: str, text: str, said: Speech) -> None:
        """A text under the user's role follows: the output of the command, other words of the user, or another command."""
        begun = _COMMAND.search(text) if _TYPED.match(text) else None
        if any(name.startswith("local-command-std") for name, _ in said.blocks):
            self.handled()
        elif begun or said.own.strip() or text.lstrip().startswith("<bash-input>"):
            self.answered()
        if begun and "<local-command-std" not in text:
            arguments = _ARGUMENTS.search(text)
            self.id_, self.name = id_, begun["name"].strip()
            self.arguments = arguments["text"].strip() if arguments else ""

    def prompted(self) -> None:
        """The prompt that the command became follows: the user said the command."""
        self.made.user(self.id_, " ".join(filter(None, (self.name, self.arguments))))
        self.handled()

    def answered(self) -> None:
        """The conversation goes on: what the user typed behind the name of a command is the user's, unless the command is the harness's own."""
        if self.arguments and self.name.lstrip("/") not in _HANDLED:
            self.prompted()
        self.handled()

    def handled(self) -> None:
        """The command is done with."""
        self.id_ = self.name = self.arguments = ""
