"""Transcripts of Claude Code: one record per line, with `type`, `uuid`, `timestamp` and a `message` of blocks.

A response of the model consists of several records with one `message.id`, and is one round here. Results of tools are
messages of the user, with the effect of the tool in `toolUseResult`, if the version writes it. Attachments contain
rules, files, and text that the user typed while the model worked. Records of subagents are marked (`isSidechain:
true`); they are sessions of their own: left out of others, and read only if a file has nothing else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..outcomes import NO_OUTPUT
from .agents import Aside, changed_by_call, noted_changes
from .background import Background
from .branches import rewound
from .effects import EDITS, SHELLS, edits_of, lines_of, marked
from .refusals import feedback, is_denied
from .search_output import matches_in
from .searching import Search
from .shell_results import ShellResult
from .speaking import speech_in
from .typed import Typed
from .writing import Call, Transcript, asked, repeated, text_of, version_of

__all__ = ["events_of"]

_TAGS = re.compile(
    r"command-\w+|local-command-\w+|system-reminder|task-notification|bash-\w+|[\w-]+-hook|user-memory-input|ide_\w+|fork-boilerplate"
)
"""Names of tags that the harness and editors write with the role `user`."""
_NOT_WRITTEN_BY_USER = ("isMeta", "isVisibleInTranscriptOnly", "isSynthetic", "turnCompanion")
"""Fields that mark a record of the role `user` as not written by the user."""
_RAN = re.compile(r"\A\s*<bash-input>(?P<command>.*?)</bash-input>", re.DOTALL)
_SHELL = re.compile(r"\s*<bash-(?P<stream>stdout|stderr)>")
_NUMBERED = re.compile(r"^[ \t]*\d+[→\t]", re.MULTILINE)
_OF_USER = ("ExitPlanMode", "AskUserQuestion")  # a repeated call is the same one
Record = Mapping[str, Any]


@dataclass
class _Calls:
    """The calls and commands to which results may belong."""

    background: Background
    typed: Typed
    tools: dict[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)
    """The tool and its arguments, by the id of the call."""
    shell: str | None = None
    """A command that the user ran in the shell of the agent."""


def events_of(records: Sequence[Record], name: str) -> Transcript:
    """The events of a session; `name` is its id if no record has one."""
    named = next((record["sessionId"] for record in records if isinstance(record.get("sessionId"), str)), name)
    root = next((record["cwd"] for record in records if isinstance(record.get("cwd"), str)), "")
    spoken = [record for record in records if record.get("type") in ("user", "assistant")]
    alone = bool(spoken) and all(record.get("isSidechain") is True for record in spoken)
    agent = next((record["agentId"] for record in records if isinstance(record.get("agentId"), str)), name)
    made = Transcript(f"{named}/{agent}" if alone and named != name else named, root)
    calls = _Calls(Background(made), Typed(made))
    response, aside = None, Aside(made)
    again = repeated(records)
    read = ({} if number in again else record for number, record in enumerate(records))
    left = rewound([record if alone or not record.get("isSidechain") else {} for record in read], _by_user)
    for number, record in enumerate(records):
        if number in again:
            made.left_out["repeated records"] += 1
            continue
        kind, message = record.get("type"), record.get("message")
        id_ = str(record.get("uuid") or f"line-{number + 1}")
        made.time(record.get("timestamp"))
        if record.get("isSidechain") and not alone:
            made.left_out["records of subagents"] += 1
            aside.take(id_, record)
        elif number in left:
            made.left_out["records of a branch that was rewound"] += 1
        elif kind == "user" and isinstance(message, Mapping) and (summary := _summary(record, message)):
            calls.typed.answered()
            made.add("history.summarized", id_, text=summary)
        elif _not_written_by_user(record):
            made.left_out["messages of the harness"] += 1
            speech = speech_in(text_of(message.get("content")) if isinstance(message, Mapping) else "", _TAGS)
            noted_changes(made, id_, speech.blocks if _by_harness(record) else ())
            if speech.own.strip():
                calls.typed.prompted()
        elif kind == "user" and isinstance(message, Mapping):
            begun = len(made.events)
            _user(made, id_, record, message, calls)
            made.in_mode(begun, record.get("permissionMode"))
        elif kind == "assistant" and isinstance(message, Mapping):
            calls.typed.answered()
            if message.get("id") != response or response is None:
                response = message.get("id") or id_
                made.request(id_)
            _assistant(made, id_, record, message, calls)
        elif kind == "attachment" and isinstance(record.get("attachment"), Mapping):
            _attachment(made, id_, record["attachment"], calls)
        else:
            made.left_out[f"records of type {kind}"] += 1
            if record.get("subtype") == "local_command":
                calls.typed.handled()
    return made


def _attachment(made: Transcript, id_: str, given: Mapping[str, Any], calls: _Calls) -> None:
    """The attachments of a message: rules, files, text that the user typed while the model worked."""
    kind, content = given.get("type"), given.get("content")
    path = given.get("filename") or given.get("path")
    if kind == "instructions":
        files = given.get("files")
        for file in files if isinstance(files, list) else []:
            if isinstance(file, Mapping) and isinstance(file.get("content"), str) and file["content"].strip():
                made.add("rules.repository", id_, path=made.path(str(file.get("path") or "")), text=file["content"])
    elif kind == "nested_memory" and isinstance(content, Mapping) and isinstance(content.get("content"), str):
        made.add(
            "rules.repository", id_, path=made.path(str(path or content.get("path") or "")), text=content["content"]
        )
    elif kind == "edited_text_file" and isinstance(path, str) and isinstance(given.get("snippet"), str):
        made.add(
            "file.modified",
            id_,
            path=made.path(path),
            text=given["snippet"],
            version=version_of(f"{id_}{given['snippet']}"),
            noted=True,
        )
    elif kind == "file" and isinstance(content, Mapping) and isinstance(content.get("file"), Mapping):
        words = content["file"].get("content")
        if isinstance(words, str) and isinstance(path, str):
            made.read(id_, made.path(path), words)
    elif kind == "queued_command" and given.get("commandMode") == "prompt" and given.get("isMeta") is not True:
        _message(made, id_, text_of(given.get("prompt")), calls, given)
    elif kind == "queued_command" and _by_harness(given) and calls.background.noted(id_, text_of(given.get("prompt"))):
        pass
    else:
        made.left_out[f"attachments of type {kind}"] += 1


def _summary(record: Record, message: Mapping[str, Any]) -> str:
    """The summary of earlier rounds, if a record of the role `user` is one."""
    text = text_of(message.get("content"))
    return text if record.get("isCompactSummary") else speech_in(text, _TAGS).summary


def _by_user(record: Record) -> bool:
    """Whether a record is a message by the user."""
    message = record.get("message")
    if record.get("type") != "user" or not isinstance(message, Mapping):
        return False
    if record.get("isCompactSummary") or _not_written_by_user(record) or _writer(record) is False:
        return False
    content = message.get("content")
    kinds = (
        {str(each.get("type")) for each in content if isinstance(each, Mapping)} if isinstance(content, list) else set()
    )
    speech = speech_in(text_of(content), _TAGS, human=_writer(record) is True)
    return bool(speech.own.strip()) or bool(kinds - {"text", "tool_result"})


def _not_written_by_user(record: Record) -> bool:
    return any(record.get(name) is True for name in _NOT_WRITTEN_BY_USER)


def _writer(record: Record) -> bool | None:
    """Whether the user wrote a record of the role `user`; None if the record does not state it."""
    origin, message = record.get("origin"), record.get("message")
    kind = origin.get("kind") if isinstance(origin, Mapping) else None
    role = message.get("role") if isinstance(message, Mapping) else None
    if role not in (None, "user") or record.get("promptSource") == "system":
        return False
    return kind in ("human", "user") if isinstance(kind, str) else None


def _by_harness(record: Record) -> bool:
    """Whether a record may contain a note of the harness: no other agent sent it."""
    origin = record.get("origin")
    return not isinstance(origin, Mapping) or origin.get("kind") == "task-notification"


def _user(made: Transcript, id_: str, record: Record, message: Mapping[str, Any], calls: _Calls) -> None:
    """A message of the user, or results of tools."""
    content = message.get("content")
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    for block in blocks:
        if not isinstance(block, Mapping):
            continue
        if block.get("type") == "tool_result":
            _result(made, id_, record, block, calls)
        elif block.get("type") == "text" and isinstance(block.get("text"), str):
            if _by_harness(record) and calls.background.noted(id_, block["text"]):
                continue
            _message(made, id_, block["text"], calls, record)
        else:
            made.left_out[f"blocks of type {block.get('type')}"] += 1


def _message(made: Transcript, id_: str, text: str, calls: _Calls, record: Record) -> None:
    """Text that the user wrote, or a command that the user ran in the shell of the agent."""
    by_user = _writer(record)
    speech = speech_in(text, _TAGS, human=by_user is True)
    noted_changes(made, id_, speech.blocks if _by_harness(record) else ())
    if by_user is False:
        made.add_speech(id_, replace(speech, own="", others=speech.own or speech.others))
        return
    calls.typed.follows(id_, text, speech)
    if ran := _RAN.match(text):
        calls.shell = ran["command"].strip()
    elif calls.shell is not None and _SHELL.match(text):
        command, calls.shell = calls.shell, None
        printed = {name: content for name, content in _streams(text).items() if content.strip()} or {
            "stdout": NO_OUTPUT
        }
        made.add("command.finished", id_, command=command, **printed, **made.ran_in(record.get("cwd")))
    else:
        made.add_speech(id_, speech)


def _streams(text: str) -> dict[str, str]:
    """The output of a command that the user ran, in consecutive blocks."""
    found, at = dict[str, str](), 0
    while opened := _SHELL.match(text, at):
        closing = f"</bash-{opened['stream']}>"
        if (end := text.find(closing, opened.end())) < 0:
            break
        found[opened["stream"]], at = text[opened.end() : end], end + len(closing)
    return found


def _assistant(made: Transcript, id_: str, record: Record, message: Mapping[str, Any], calls: _Calls) -> None:
    content = message.get("content")
    for block in content if isinstance(content, list) else [{"type": "text", "text": content}]:
        if not isinstance(block, Mapping):
            continue
        if block.get("type") == "text" and isinstance(block.get("text"), str) and block["text"].strip():
            made.add("model.message", id_, text=block["text"])
        elif block.get("type") == "tool_use":
            tool, given = str(block.get("name")), block.get("input")
            given = given if isinstance(given, Mapping) else {}
            calls.tools[str(block.get("id"))] = (
                tool,
                {**given, "cwd": record.get("cwd")} if tool in SHELLS else given,
            )
            if tool == "TodoWrite":
                listed = given.get("todos")
                todos = [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []
                made.add(
                    "plan.updated",
                    id_,
                    text="\n".join(f"{each.get('status')}: {each.get('content')}" for each in todos) or "no plan",
                )
                continue
            path = given.get("file_path") or given.get("path") or given.get("notebook_path")
            names = ("plan",) if tool == "ExitPlanMode" else ("description", "command", "pattern", "query", "url")
            named = (given.get(name) for name in names)
            words = next(filter(None, named), None) or asked(given) or tool
            made.add(
                "tool.intent", id_, tool=tool, path=made.path(path) if isinstance(path, str) else None, text=str(words)
            )
        else:
            made.left_out[f"blocks of type {block.get('type')}"] += 1


def _result(made: Transcript, id_: str, record: Record, block: Mapping[str, Any], calls: _Calls) -> None:
    tool, given = calls.tools.get(str(block.get("tool_use_id")), ("tool", {}))
    text, failed = text_of(block.get("content")), block.get("is_error") is True
    ran = ShellResult.of(record, tool, given, text, failed=failed)
    beside = ran.beside
    path = given.get("file_path") or given.get("notebook_path") or beside.get("filePath")
    path = made.path(path) if isinstance(path, str) else None
    waits = beside.get("awaitingLeaderApproval") is True
    called = _called(tool, given, path)
    if is_denied(record, tool, text, failed=failed and not ran.exited):
        made.denied(id_, called, text, str(block.get("tool_use_id")))
        own, others = feedback(record, tool, text)
        made.user(id_, own)
        made.proposed(id_, others)
        return
    if not (failed or waits) or ran.began:
        made.let_through(id_, called)  # after any other error it is unknown whether it ran
    if tool == "AskUserQuestion" and isinstance(beside.get("answers"), Mapping):
        made.user(id_, "\n".join(_answers(beside)))
    elif tool in ("BashOutput", "TaskOutput") and calls.background.asked(id_, given, text):
        pass
    elif ran.of_command:
        if ran.is_open:
            calls.background.begin(given, text, beside.get("backgroundTaskId"))
        made.add("command.finished", id_, **ran.fields(), **made.ran_in(given.get("cwd")))
    elif failed:
        changed = changed_by_call(made, tool, given, failed=True, output=text)
        made.add("tool.error", id_, tool=tool, text=text, path=path, changedFiles=changed)
    elif tool == "Read" and path:
        file = beside.get("file")
        file = file if isinstance(file, Mapping) else {}
        words = file["content"] if isinstance(file.get("content"), str) else _NUMBERED.sub("", text)
        made.read(id_, path, words, lines_of(file, given))
    elif tool in EDITS and path:
        diff = "\n".join(
            line for old, new in edits_of(beside, given) for line in [*marked("- ", old), *marked("+ ", new)]
        )
        made.add("file.modified", id_, path=path, text=diff or text or tool, version=version_of(f"{id_}{diff}"))
    elif tool in ("Grep", "Glob"):
        names = beside.get("filenames")
        found = (
            [{"path": made.path(each)} for each in names if isinstance(each, str)]
            if isinstance(names, list) and names
            else matches_in(text, made, Search.of_call(given))
        )
        made.add(
            "search.result", id_, query=str(given.get("pattern", "")) or tool, matches=found[:200], text=text or None
        )
    elif tool in ("WebFetch", "WebSearch"):
        made.add(
            "external.result", id_, url=str(given.get("url") or given.get("query") or tool), text=text or "(empty)"
        )
    else:
        if tool == "ExitPlanMode" and not waits:
            _approved(made, id_, beside, given)
        changed = changed_by_call(made, tool, given)
        made.add("command.finished", id_, tool=tool, text=text or NO_OUTPUT, changedFiles=changed)


def _approved(made: Transcript, id_: str, *given: Mapping[str, Any]) -> None:
    """The plan that the user approved: as changed, from the record of the result, else as the call proposed it."""
    plans = (each["plan"] for each in given if isinstance(each.get("plan"), str) and each["plan"].strip())
    if plan := next(plans, None):
        made.add("plan.updated", f"{id_}:plan", text=plan)


def _called(tool: str, given: Mapping[str, Any], path: str | None) -> Call:
    """The action of a call: its command, file or address if a permission is about that only, else all arguments."""
    named = () if tool in _OF_USER or tool.startswith("mcp__") else (given.get("command"), path, given.get("url"))
    action = next((each for each in named if isinstance(each, str)), None)
    whole = "" if action or tool in _OF_USER else json.dumps(given, ensure_ascii=False, sort_keys=True, default=str)
    return Call(tool, action, "" if whole == "{}" else whole)


def _answers(beside: Mapping[str, Any]) -> list[str]:
    """The user's answers to the questions of a call, with notes."""
    noted = beside.get("annotations")
    notes = (
        [each.get("notes") for each in noted.values() if isinstance(each, Mapping)]
        if isinstance(noted, Mapping)
        else []
    )
    return [each for each in (*beside["answers"].values(), *notes) if isinstance(each, str)]
