"""Later use: what the model did with a source of its input, as far as the log shows.

Gives `later_use`, the last three layers of S3.43, `Traces`, which recognizes the use of a source in an act, and the
names by which the model may refer to one: `names_of` a row of the ledger and `names_of_file`.

Note: a verdict needs proof. A model did not use a source if the source has a name, the model acted, the full text of
its acts is available, and none of them names the source, quotes it or may have read or changed it unnamed, also later
in the task; an answer in words that name no file may be based on any. Rules are followed but seldom named. A tool
failed on a source if the call or its error names it, and no later act on it succeeded. A check is missing if the model
changed files other than documents, no user forbade or refused a check, and no later command or call may have been one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import takewhile
from pathlib import PurePosixPath
from typing import Any

from ..sources.file_kinds import is_file_name
from .check_lines import may_check, may_read
from .program_changes import ANY_FILE
from .summaries import summary_of
from .tool_names import capability_of

__all__ = ["Traces", "later_use", "names_of", "names_of_file"]

Row = Mapping[str, Any]

SAYS = {
    "model_did_not_use": "it is in the input, and no action of the model names it",
    "tool_execution_wrong": "the model used it, and the tool failed",
    "verification_missing": "the model used it and changed files, and no check ran after that",
}
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W_a-zA-Z0-9]+")
"""A part of a name: `AuthService`, `auth_service` and `auth-service` have the same ones, so do `code#1` and `code
1`.
"""
_PATTERN = re.compile(r"[^\s\"'`;|&()<>=,:*?\[{]*[*?\[{][^\s\"'`;|&()<>]*")
"""A file pattern, as a shell or a tool accepts it."""
QUOTED = 12
"""Fewest characters of a line of a source that count as a quotation in the model's text."""
_LABEL = re.compile(r"\w#\d")
_DOCUMENTS = (".md", ".markdown", ".mdx", ".rst", ".txt", ".adoc")
_CHECKS = r"(?:tests?|testing|checks?|lint\w*|builds?|suites?|pytest|vitest|jest|mypy|tsc|ruff|eslint)"
_NOT = r"(?:\b(?:not|never|no\s+need|avoid|stop|skip|without)|n['\u2019]?t)\s+(?:(?:need|have|want|bother|worry|about|to|for|you|please|with|any)\s+){0,4}"
_FORBIDS_CHECKS = re.compile(
    rf"(?i)(?:{_NOT}(?:(?:re-?)?run(?:ning)?|execut\w+|start\w*|do(?:ing)?)\s+(?:anything|(?:any\s+)?commands?|(?:[^\s.!?]+\s+){{0,4}}?`?{_CHECKS}\b)|"
    rf"{_NOT}(?:test|build|check|verify|lint)(?:\s+(?:it|this|that|anything)\b|\s*(?:[.!,;]|$))|\b(?:skip|avoid|stop)\s+(?:(?:the|all|any|unit)\s+)*{_CHECKS}\b|"
    rf"(?<!are\s)(?<!were\s)(?<!is\s)\bno\s+(?:tests?|testing|checks?|lint\w*|builds?)\s*(?:[.!,;]|$|(?:now|yet|please|today|here|needed|required)\b)|"
    rf"\bi(?:['\u2019]ll|\s+will)\s+(?:run|do|start|test|verify|check)\b|\bleave\s+(?:the\s+)?{_CHECKS}\s+to\s+me\b)|"
    "[\u4e0d\u522b\u52ff\u65e0][\u8981\u7528\u9700]{0,2}(?:\u518d)?(?:\u8dd1|\u8fd0\u884c|\u6267\u884c|\u505a)?(?:\u5355\u5143|\u4efb\u4f55)?(?:\u6d4b\u8bd5|\u68c0\u67e5)"
)
"""Words by which a user forbids checks, or may be doing so."""
_CHECKING = re.compile(rf"(?i)(?<![a-z]){_CHECKS}(?![a-z])")
_ASKS_FOR_CHECKS = re.compile(
    r"(?i)(?:\b(?:not|never)|n['\u2019]?t)\s+(?:(?:commit|push|merge|finish|stop|end|release|deploy|submit|close|report)\b[^,.!?\n]{0,40}?\bwithout|skip)\b|"
    r"(?:^|[.!?\n]\s*)(?:why|how|when|does|did|do\s+(?:we|you|i|they)|is|are|was|should)\b[^.!?\n]*\?"
)
"""Words that ask for a check (`do not commit without running the tests`), or whether one runs."""
_GOING_ON = ("file.modified", "tool.intent", "model.request")
"""Kinds of events that end the log only if it was captured while the model was working."""
_ENDS_OF_COMMANDS = ("command.finished", "tool.error", "permission.denied")
_OF_FOLDER = ("index", "__init__", "mod")
"""Files that are referred to by the names of their folders."""


def names_of(row: Row) -> set[str]:
    """The names by which the model may refer to a source of a ledger: of its file, its evidence, or its label."""
    if row["standing"] == "instruction":
        return set()
    labels = row["source_id"].split(":", 2)[2:] if row["source_kind"] == "retrieval_result" else ()
    return {name for name in (*names_of_file(row["path"] or ""), row["evidence_id"], *labels) if name}


def names_of_file(path: str) -> set[str]:
    """The names by which the model may refer to a file, without folders and suffix."""
    file = PurePosixPath(path)
    short = {file.stem if len(file.stem) > 3 else file.name}
    return {name for name in (short | {file.parent.name} if file.stem in _OF_FOLDER else short) if name}


@dataclass(frozen=True)
class Traces:
    """The traces by which an act is recognized as a use of a source."""

    names: Collection[str]
    path: str | None = None
    text_lines: Sequence[str] = ()
    """The lines of its text."""

    @cached_property
    def lines(self) -> set[str]:
        """The lines that are too long to be written by accident."""
        return {line for each in self.text_lines if len(line := each.strip()) >= QUOTED}

    def named_in(self, text: str) -> bool:
        return self._naming(unicodedata.normalize("NFC", text)) is not None

    def used_by(self, event: Row) -> bool:
        """Whether an act names the source, found its file, or quotes a line of it."""
        text = event["text"] or "" if event["actor"] == "model" else ""
        return self.named_in(_texts_of(event)) or any(line in text for line in self.lines)

    def may_be_used_by(self, event: Row) -> bool:
        """Whether an act may have used its file without naming it: by a pattern, or as one of all files."""
        if not self.path or event["kind"] not in ("command.finished", "tool.intent"):
            return False
        return ANY_FILE in (event["may_change"] or ()) or _is_matched(PurePosixPath(self.path).name, _texts_of(event))

    @cached_property
    def _naming(self) -> Any:
        """Finds any of its names in a text, regardless of case and of how the parts are joined."""
        parts = (r"[\W_]*".join(map(re.escape, _PART.findall(name))) or re.escape(name) for name in self.names)
        return re.compile(rf"(?i)(?<![a-z0-9])(?:{'|'.join(parts)})(?![a-z0-9])").search


def later_use(as_of: int, events: Sequence[Row], traces: Traces) -> tuple[str, str] | None:
    """The layer at which a source was lost after the input before event `as_of`, and what happened there; None if
    nothing went wrong, or it cannot be determined.
    """
    behind = [event for event in events if event["seq"] >= as_of]
    if behind and behind[0]["kind"] == "model.request":
        behind = behind[1:]
    ends = (place for place, event in enumerate(behind) if event["kind"] in ("model.request", "user.goal"))
    answer = behind[: next(ends, len(behind))]
    task = list(takewhile(lambda each: each["kind"] != "user.goal", behind))  # the next goal is another task
    acts, later = ([each for each in some if each["actor"] in ("model", "tool")] for some in (answer, task))
    if not acts or not traces.names:
        return None
    if not any(map(traces.used_by, acts)):
        cut = any(event["cut"] for event in acts if _is_text_of_model(event))
        known = not cut and not any(map(traces.may_be_used_by, acts)) and not _may_have_read(acts)
        known &= not any(map(traces.used_by, later)) and not _in_own_words(acts)
        return ("model_did_not_use", SAYS["model_did_not_use"]) if known else None
    for place, event in enumerate(answer):
        about = _failed(event) and _is_about(event, answer[:place], traces)
        if about and not any(traces.named_in(_texts_of(each)) for each in later if _came_off(each, event["seq"])):
            return "tool_execution_wrong", f"{SAYS['tool_execution_wrong']}: event {event['event_id']}"
    modified = [
        place for place, event in enumerate(task) if event["kind"] == "file.modified" and not _is_document(event)
    ]
    changes = [place for place in modified if task[place]["actor"] in ("model", "tool")]
    goes_on = task[-1] is behind[-1] and task[-1]["kind"] in _GOING_ON
    if (
        not changes
        or goes_on
        or _may_have_checked(task[changes[0] :])
        or _no_check_wanted([*(each for each in events if each["seq"] < as_of), *task])
    ):
        return None
    return "verification_missing", f"{SAYS['verification_missing']} (after event {task[changes[-1]]['event_id']})"


def _failed(event: Row) -> bool:
    return event["kind"] == "tool.error" or event["observation_class"] == "timeout"


def _came_off(event: Row, behind: int) -> bool:
    """Whether an event after another one is a tool's success."""
    return event["seq"] > behind and event["actor"] == "tool" and not event["failed"] and not _failed(event)


def _in_own_words(acts: Sequence[Row]) -> bool:
    """Whether an answer consists only of words that name no file and no label."""
    words = (word.strip(".,:;()[]`\"'") for event in acts for word in (event["text"] or "").split())
    return all(event["kind"] == "model.message" for event in acts) and not any(
        _LABEL.search(word) or is_file_name(word.split(":")[0]) for word in words
    )


def _is_document(event: Row) -> bool:
    """Whether a file is a document, which no check reads."""
    return PurePosixPath(event["path"] or "").suffix.lower() in _DOCUMENTS


def _no_check_wanted(events: Sequence[Row]) -> bool:
    """Whether the user said that no check is to run, or one was denied."""
    messages = (each["text"] or "" for each in events if each["actor"] == "user")
    refused = [each["command"] or "" for each in events if each["kind"] == "permission.denied"]
    messages = (_ASKS_FOR_CHECKS.sub(" ", each) for each in messages)
    calls = [each.partition(" ")[2] or each for each in refused]  # without the name of a tool
    return (
        any(map(_FORBIDS_CHECKS.search, messages)) or any(map(_CHECKING.search, refused)) or any(map(may_check, calls))
    )


def _is_about(failed: Row, before: Sequence[Row], traces: Traces) -> bool:
    """Whether a tool failed on a source: its event names the source, or every call that may be its own does."""
    if traces.named_in("\n".join((_texts_of(failed), failed["text"] or ""))):
        return True
    last = next((place for place in reversed(range(len(before))) if before[place]["kind"] == "tool.intent"), -1)
    calls = [*takewhile(lambda each: each["kind"] == "tool.intent", reversed(before[: last + 1]))]
    tool = _tool(failed)
    own = [call for call in calls if tool and _tool(call) == tool] or calls
    return bool(own) and all(traces.named_in(_texts_of(call)) for call in own)


def _tool(event: Row) -> str:
    return (event["command"] or "").partition(" ")[0]


def _unknown_calls(events: Sequence[Row]) -> Iterator[Row]:
    """Calls whose effect the log does not show: of a tool whose name does not tell it (MCP, another agent), and of
    tools that run commands if there are fewer results than calls.
    """
    calls = [event for event in events if event["kind"] == "tool.intent"]
    running = [call for call in calls if capability_of(_tool(call)) == "run"]
    ended = sum(event["kind"] in _ENDS_OF_COMMANDS for event in events)
    yield from running if len(running) > ended else ()
    yield from (call for call in calls if capability_of(_tool(call)) in ("external", "external_read", "other"))


def _may_have_read(acts: Sequence[Row]) -> bool:
    """Whether an act may have shown the model a source without naming it."""
    searched = any(event["kind"] == "search.result" for event in acts)
    commands = (event["kind"] == "command.finished" and may_read(event["command"]) for event in acts)
    calls = (event["kind"] == "tool.intent" and _names_nothing(event, searched=searched) for event in acts)
    return any(commands) or any(calls) or any(_unknown_calls(acts))


def _names_nothing(call: Row, *, searched: bool) -> bool:
    """Whether a call reads without naming a file, or searches without a result in the log."""
    does = capability_of(_tool(call))
    return (does == "search" and not searched) or (
        does == "read" and not any(map(is_file_name, _texts_of(call).split()))
    )


def _is_text_of_model(event: Row) -> bool:
    """Whether the text of an event was written by the model, not printed by a tool."""
    return event["actor"] == "model" or event["kind"] == "file.modified"


def _texts_of(event: Row) -> str:
    """The texts of an act that may name its sources: a call may appear only in its result, a search in its matches."""
    text = event["text"] if _is_text_of_model(event) else None
    texts = (text, event["command"], event["path"], *event["found"], *(event["evidence_ids"] or ()))
    return "\n".join(filter(None, texts))


def _is_matched(file: str, text: str) -> bool:
    """Whether a pattern in the words of an act may match a file of this name in any folder."""
    last = (re.sub(r"\{[^{}]*\}", "*", each[0]).rsplit("/", 1)[-1] for each in _PATTERN.finditer(text))
    return any(fnmatchcase(file, each) for each in last)


def _may_have_checked(events: Sequence[Row]) -> bool:
    """Whether a check may have run: a check of any outcome, a command or a call that may be one, or output with the
    summary of one, as Git hooks print it; not one that was merely reported.
    """
    return any(_unknown_calls(events)) or any(map(_may_be_check, events))


def _may_be_check(event: Row) -> bool:
    command, verification = event["kind"] == "command.finished", event["kind"] == "verification.finished"
    if event["actor"] in ("model", "memory") or (verification and event["actor"] == "tool" and event["origin"]):
        return False
    printed = command or event["kind"] in ("external.result", "tool.error")
    ran = event["check_outcome"] is not None or (command and may_check(event["command"]))
    return ran or (printed and summary_of(event["text"] or "") is not None)
