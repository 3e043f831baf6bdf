"""Slash commands in transcripts of Claude Code (`/fix never touch src/api`): which of them are words of the user.

Gives `Typed`. The record of a command has its name and its arguments in tags. A command becomes a prompt, which the
next records contain with the role `user`, or the harness handles it and the model never sees it.

Note: a command was handled by the harness if its output follows, or, if neither output nor prompt follows, by its name.
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
"""Commands of the harness that do not become a prompt."""


@dataclass
class Typed:
    """The last typed command, until later records show whether it became a prompt."""

    made: Transcript
    id_: str = ""
    name: str = ""
    arguments: str = ""

    def follows(self, id_: str, text: str, speech: Speech) -> None:
        """A text of the role `user` follows: the output of the command, other words of the user, or another command."""
        begun = _COMMAND.search(text) if _TYPED.match(text) else None
        if any(name.startswith("local-command-std") for name, _ in speech.blocks):
            self.handled()
        elif begun or speech.own.strip() or text.lstrip().startswith("<bash-input>"):
            self.answered()
        if begun and "<local-command-std" not in text:
            arguments = _ARGUMENTS.search(text)
            self.id_, self.name = id_, begun["name"].strip()
            self.arguments = arguments["text"].strip() if arguments else ""

    def prompted(self) -> None:
        """The prompt of the command follows: the command counts as words of the user."""
        self.made.user(self.id_, " ".join(filter(None, (self.name, self.arguments))))
        self.handled()

    def answered(self) -> None:
        """The conversation continues: the arguments are the user's words, unless the harness handles the command."""
        if self.arguments and self.name.lstrip("/") not in _HANDLED:
            self.prompted()
        self.handled()

    def handled(self) -> None:
        """The command is finished."""
        self.id_ = self.name = self.arguments = ""
