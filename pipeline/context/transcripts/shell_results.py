"""Results of commands in transcripts of Claude Code: how a command ended, from its record and the harness's words.

Gives `ShellResult`.

Note: with an exit code that no signal and no timeout explains, words of the harness are the command's own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..outcomes import NO_OUTPUT
from .effects import SHELLS
from .writing import exit_code_in, exit_code_of

__all__ = ["ShellResult"]

_BACKGROUND = re.compile(r"\ACommand (?:running in background|was (?:manually )?backgrounded)")
_EXITED = re.compile(r"\A(?:Error: )?Exit code (?P<code>\d+)(?:\n|\Z)")
_TIMED_OUT = re.compile(r"\A(?:Error: )?Command timed out after \d")
_ABORTED = re.compile(
    r"(?:<error>Command was aborted before completion</error>|\[Request interrupted by user[^\[\]\n]*\])\s*\Z"
)
_KILLED = (None, 137, 143)
"""Exit codes of a command that the harness stopped; with any other code, the words are the command's own."""
_NOT_RUN = re.compile(
    r"\A\s*(?:Error: )?(?:<tool_use_error>|Hook PreToolUse:\S+ denied|Execution stopped by|Tool permission|PreToolUse:\S+ hook (?:error|blocking error|stopped)\b|\[Request interrupted)"
)
"""Messages of the harness for a call that it did not start."""


@dataclass(frozen=True)
class ShellResult:
    """The result of a call, which may be of a tool that runs commands."""

    tool: str
    given: Mapping[str, Any]
    """The arguments of the call."""
    text: str
    failed: bool
    beside: Mapping[str, Any]
    """The effect of the tool in the record."""

    @classmethod
    def of(
        cls, record: Mapping[str, Any], tool: str, given: Mapping[str, Any], text: str, *, failed: bool
    ) -> ShellResult:
        beside = record.get("toolUseResult")
        return cls(tool, given, text, failed, beside if isinstance(beside, Mapping) else {})

    @cached_property
    def exited(self) -> re.Match[str] | None:
        """The exit code at the beginning of the text."""
        return _EXITED.match(self.text)

    @cached_property
    def stopped(self) -> bool:
        """Whether the user stopped a command."""
        return self.tool in SHELLS and bool(_ABORTED.search(self.text)) and not _NOT_RUN.match(self.text)

    @cached_property
    def began(self) -> bool:
        """Whether the text of a failed call is that of a command that was started."""
        return bool(self.exited or self.stopped or _TIMED_OUT.match(self.text))

    @cached_property
    def of_command(self) -> bool:
        """Whether it is the result of a command that was started."""
        return self.tool in SHELLS and not (self.failed and not self.exited and _NOT_RUN.match(self.text) is not None)

    @cached_property
    def runs_on(self) -> bool:
        """Whether the command runs in the background."""
        named = self.given.get("run_in_background") is True or bool(self.beside.get("backgroundTaskId"))
        return named or bool(_BACKGROUND.match(self.text))

    @cached_property
    def is_open(self) -> bool:
        """Whether its ending is not known yet, or a nonzero code was not treated as an error."""
        return self.runs_on or bool(self.beside.get("returnCodeInterpretation"))

    def fields(self) -> dict[str, Any]:
        """The command, its ending and its output as fields of an event."""
        text, code_field, beside, failed = self.text, self.beside.get("exitCode"), self.beside, self.failed
        interrupted = beside.get("interrupted") is True or (failed and self.stopped)
        code = 0 if code_field is None and not failed and not interrupted else exit_code_of(code_field)
        if self.is_open or (self.tool != "Bash" and not code):
            code = None  # PowerShell may exit with 0 although a program of the line failed
        if self.exited:
            code, text = exit_code_in(self.exited["code"]), text[self.exited.end() :] or NO_OUTPUT
        of_time = (text, beside.get("stderr")) if beside.get("interrupted") is True else (text,) if failed else ()
        late = code in _KILLED and any(_TIMED_OUT.match(each) for each in of_time if isinstance(each, str))
        streams = {
            name: beside[name] for name in ("stdout", "stderr") if isinstance(beside.get(name), str) and beside[name]
        }
        return {
            "command": str(self.given.get("command", "")) or self.tool, "exitCode": code, "timedOut": late,
            "interrupted": (interrupted and not late) or None, "failed": (failed and code is None) or None,
            "status": "running" if self.runs_on and not failed else None, **(streams or {"stdout": text}),
        }  # fmt: skip
