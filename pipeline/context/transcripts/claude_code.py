"""Transcripts of Claude Code: one record per line, with `type`, `uuid`, `timestamp` and a `message` of blocks.

A response of the model consists of several records with one `message.id`, and is one round here. Results of tools are
messages of the user, with the effect of the tool in `toolUseResult`, if the version writes it. Attachments contain
rules, files, and text that the user typed while the model worked. Records of subagents are marked (`isSidechain:
true`) and left out: their report is the result of a call.

Records name their parent (`parentUuid`). The current conversation is found by walking back from the last message
(S3.63); a compaction begins a new tree that names the old one as `logicalParentUuid`, if at all. Rewinding to the first
prompt also begins a new tree, with words of the user: the records before it are abandoned. Records off this path are not
necessarily on a rewound branch: results of tools that ran concurrently are siblings, of which only one is on the path. A
branch was rewound if it has words of the user, or another response of the model.

Note: which records of the type `user` the user typed is stated by fields that grew with the versions. `isMeta` and
others mark those of the harness; prompts have `permissionMode`, `thinkingMetadata` or `origin`. If a version writes none
of these, a text from an opening to a closing tag is the harness's, and any other text is the user's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from .transcript import CAPABILITIES, Record, Transcript, is_tagged, mapping, mappings, text_of, whole, words

_BY_HARNESS = ("isMeta", "isVisibleInTranscriptOnly", "isSynthetic", "turnCompanion", "isCompactSummary")
"""Fields that mark a record of the type `user` as not written by the user."""
_OF_PROMPTS = ("permissionMode", "thinkingMetadata", "promptSource")
"""Fields that prompts have, and other records of the type `user` lack, if the version writes them."""
_INTERRUPTED = ("[Request interrupted by user]", "[Request interrupted by user for tool use]")
_COMMAND = re.compile(r"<command-name>([^<]*)</command-name>")
_ARGUMENTS = re.compile(r"<command-args>(.*)</command-args>", re.DOTALL)
_NOT_DENIED = ("interrupted", "cancelled")
"""Values of `toolDenialKind` for calls that were not refused."""
_REJECTED = "User rejected tool use"
"""The `toolUseResult` of a refusal by the user, where the version has no `toolDenialKind`."""


def events_of(numbered: Sequence[tuple[int, Record]], name: str) -> Transcript:
    """The events of a session; `name` is its id if no record has one."""
    records = dict[str, Record]()
    for number, record in numbered:
        id_ = str(record.get("uuid") or f"line-{number}")
        if records.get(id_) != record:
            records[id_ if id_ not in records else f"{id_}:{number}"] = record
    spoken = [record for record in records.values() if record.get("type") in ("user", "assistant")]
    named = _first(spoken, "sessionId") or _first(list(records.values()), "sessionId") or name
    made = Transcript(named, _first(spoken, "cwd") or "")
    if repeated := len(numbered) - len(records):
        made.left_out["repeated records"] = repeated
    own = [{} if record.get("isSidechain") else record for record in records.values()]
    prompts = [each for each in spoken if each.get("type") == "user" and not each.keys().isdisjoint(_OF_PROMPTS)]
    marking = {version for each in prompts if (version := words(each.get("version")))}
    notes = [mapping(record.get("attachment")) for record in records.values()]
    attached = {text_of(each.get("prompt")) for each in notes if each.get("type") == "queued_command"}
    left, session = _rewound(own, partial(_has_typed, marking)), _Session(made, marking, attached)
    for place, (id_, record) in enumerate(records.items()):
        made.time(record.get("timestamp"))
        if record.get("isSidechain"):
            made.left_out["records of subagents"] += 1
        elif place in left:
            made.left_out["records of a branch that was rewound"] += 1
        else:
            session.take(id_, record)
    return made


def _first(records: Sequence[Record], name: str) -> str | None:
    return next((each for record in records if (each := words(record.get(name)))), None)


def _blocks(content: Any) -> list[Record]:
    return mappings(content) if isinstance(content, list) else [{"type": "text", "text": content}]


def _has_typed(marking: Collection[Any], record: Record) -> bool:
    """Whether a record is a message of the user; `marking` are the versions that mark prompts."""
    blocks = _blocks(mapping(record.get("message")).get("content")) if record.get("type") == "user" else []
    return any(
        block.get("type") == "image" or (block.get("type") == "text" and _typed(marking, record, text_of(block)))
        for block in blocks
    )


def _typed(marking: Collection[Any], record: Record, text: str) -> str:
    """The words of the user in a text of a record; empty if it is the harness's."""
    content, origin = mapping(record.get("message")).get("content"), mapping(record.get("origin")).get("kind")
    beside_results = any(block.get("type") == "tool_result" for block in mappings(content))
    if any(record.get(each) is True for each in _BY_HARNESS) or record.get("promptSource") == "system":
        return ""
    if origin != "human" and (origin is not None or beside_results or text.strip() in _INTERRUPTED):
        return ""
    if (command := _COMMAND.search(text)) and text.lstrip().startswith("<command-"):
        arguments = _ARGUMENTS.search(text)
        return f"{command[1].strip()} {arguments[1].strip()}" if arguments and arguments[1].strip() else ""
    if record.get("version") in marking and record.keys().isdisjoint((*_OF_PROMPTS, "origin")):
        return ""
    stated = origin == "human" and isinstance(content, str)  # an editor adds its context as blocks of a list
    return "" if is_tagged(text) and not stated else text


def _rewound(records: Sequence[Record], by_user: Callable[[Record], bool]) -> set[int]:
    """The places of the records on abandoned branches; `by_user` returns whether a record is words of the user."""
    place = {record["uuid"]: number for number, record in enumerate(records) if isinstance(record.get("uuid"), str)}
    before = {number: _before(records[number], place) for number in sorted(place.values())}
    tree: dict[int, int] = {}
    for number, parent in before.items():  # a record comes after its parent
        tree[number] = number if parent is None else tree.get(parent, number)
    linked = next((number for number, parent in before.items() if parent is not None), len(records))
    begun = max((n for n in before if n > linked and _begins(records[n]) and by_user(records[n])), default=0)
    last = {tree[number]: number for number in before if tree[number] >= begun and _is_message(records[number])}
    walked = {number for leaf in last.values() for number in _back(leaf, before)}
    responses = {_response(records[number]) for number in walked} - {None}
    branch: dict[int, int] = {}
    for number, parent in before.items():
        if number not in walked:
            branch[number] = branch.get(parent, number) if parent is not None else number
    left = {branch[number] for number in branch if by_user(records[number]) or _answers(records[number], responses)}
    return {number for number, first in branch.items() if first in left}


def _begins(record: Record) -> bool:
    """Whether a record is marked as the first of the session itself."""
    alone = record.get("parentUuid", "") is None and record.get("logicalParentUuid") is None
    return alone and record.get("isSidechain") is not True


def _before(record: Record, place: Mapping[str, int]) -> int | None:
    named = record.get("parentUuid") or record.get("logicalParentUuid")
    return place.get(named) if isinstance(named, str) and named != record.get("uuid") else None


def _back(leaf: int, before: Mapping[int, int | None]) -> set[int]:
    found: set[int] = set()
    at: int | None = leaf
    while at is not None and at not in found:
        found.add(at)
        at = before[at]
    return found


def _is_message(record: Record) -> bool:
    return record.get("type") in ("user", "assistant")


def _response(record: Record) -> str | None:
    message = record.get("message")
    return message.get("id") if record.get("type") == "assistant" and isinstance(message, Mapping) else None


def _answers(record: Record, responses: set[str | None]) -> bool:
    """Whether a record belongs to a response off the path."""
    spoken = record.get("type") == "assistant" and isinstance(record.get("message"), Mapping)
    return spoken and _response(record) not in responses


@dataclass
class _Session:
    """Reads records in the order of the conversation."""

    made: Transcript
    marking: Collection[Any]
    """The versions that mark prompts."""
    attached: Collection[str]
    """Texts from the queue of the user that attachments have."""
    response: str | None = None
    """The response of the model that was read last."""
    queue: list[str] = field(default_factory=list)
    """What the user typed while the model worked, until it is delivered."""

    def take(self, id_: str, record: Record) -> None:
        kind, message = record.get("type"), mapping(record.get("message"))
        if kind == "user":
            blocks = _blocks(message.get("content"))
            alone = sum(block.get("type") == "tool_result" for block in blocks) == 1
            for block in blocks:
                if block.get("type") == "tool_result":
                    self._result(id_, record, block, record.get("toolUseResult") if alone else None)
                elif block.get("type") == "text":
                    self._text(id_, record, text_of(block))
                else:
                    self.made.left_out[f"blocks of type {block.get('type')}"] += 1
        elif kind == "assistant":
            if (response := words(message.get("id"))) is None or response != self.response:
                self.made.request(id_)
            self.response = response
            for block in _blocks(message.get("content")):
                self._said(id_, record, block)
        elif kind == "queue-operation":
            self._queued(id_, record.get("operation"), text_of(record.get("content")))
        elif kind == "attachment":
            self._attachment(id_, mapping(record.get("attachment")))
        else:
            self.made.left_out[f"records of type {kind}"] += 1

    def _text(self, id_: str, record: Record, text: str) -> None:
        """A text of the type `user`."""
        typed = _typed(self.marking, record, text)
        if record.get("isCompactSummary") is True:
            self.made.add("history.summarized", id_, text=text)
        elif typed:
            self.made.user(id_, typed)
        elif text.strip():
            self.made.add("harness.message", id_, text=text)

    def _queued(self, id_: str, operation: Any, text: str) -> None:
        """Text typed while the model worked: `remove` delivers it at once, `dequeue` as a prompt, `popAll` takes all back."""
        if operation == "enqueue":
            self.queue.append(text)
        elif operation == "popAll":
            self.queue.clear()
        elif self.queue and (text := self.queue.pop(0)) not in self.attached and operation == "remove":
            self._text(id_, {}, text)

    def _said(self, id_: str, record: Record, block: Record) -> None:
        """A block of the model."""
        if block.get("type") == "tool_use":
            given = mapping(block.get("input"))
            self.made.called(id_, block.get("id"), str(block.get("name")), given, record.get("cwd"))
        elif block.get("type") != "text":
            self.made.left_out[f"blocks of type {block.get('type')}"] += 1
        elif text := words(block.get("text")):
            self.made.add("model.message", id_, text=text)

    def _result(self, id_: str, record: Record, block: Record, effect: Any) -> None:
        """The result of a call; `effect` is what the record states of it beside the text."""
        call = self.made.calls.get(str(block.get("tool_use_id")), {"tool": "unknown"})
        about = self.made.about(block.get("tool_use_id")) or call
        tool, given, beside, denial = call["tool"], mapping(call.get("arguments")), mapping(effect), record.get("toolDenialKind")  # fmt: skip
        text, failed, capability = text_of(block.get("content")), block.get("is_error") is True, CAPABILITIES.get(tool)
        interrupted = denial in _NOT_DENIED or beside.get("interrupted") is True or None
        never_ran = failed and isinstance(effect, str) and not effect.startswith("Error")
        if (isinstance(denial, str) and denial not in _NOT_DENIED) or (failed and effect == _REJECTED):
            said = words(record.get("userFeedback"))
            by = "user" if denial is None or denial.startswith("user") else denial
            self.made.add("permission.denied", id_, **call, text=text, reason=said, decidedBy=by)
            self.made.user(id_, said or "")
        elif not never_ran and (
            capability == "run" or (capability == "run_read_only" and _task(beside).get("exitCode") is not None)
        ):
            self._ran(id_, about, given, beside, text, {"isError": failed, "interrupted": interrupted})
        elif failed or interrupted:
            self.made.add("tool.error", id_, **about, text=text, isError=failed, interrupted=interrupted)
        elif tool == "Read":
            self._read(id_, about, mapping(beside.get("file")), text)
        elif capability == "edit":
            path = about.get("path") or self.made.path(beside.get("filePath"))
            changed = {"text": _diff(beside, given) or text, "content": _content(beside, given)}
            self.made.add("file.modified", id_, **{**about, "path": path}, **changed, isError=False)
        elif capability == "search":
            named = beside.get("filenames")
            found = [{"path": self.made.path(each)} for each in named] if isinstance(named, list) else None
            matches = None if not found and beside.get("mode") == "content" else found
            self.made.add("search.result", id_, **about, text=text, matches=matches, isError=False)
        elif tool in ("Task", "Agent") or tool.startswith("mcp__") or capability == "external_read":
            self.made.add("external.result", id_, **about, text=text, isError=False)
        elif tool != "TodoWrite":
            self.made.add("tool.finished", id_, **about, text=text, isError=False)
            answers = mapping(beside.get("answers")).values() if tool == "AskUserQuestion" else ()
            self.made.user(id_, "\n".join(each for each in answers if isinstance(each, str)))
            if tool == "ExitPlanMode" and (plan := words(beside.get("plan"))):
                self.made.add("plan.updated", id_, text=plan)

    def _ran(self, id_: str, about: Record, given: Record, beside: Record, text: str, ended: Record) -> None:
        """A command that ended or runs on, or a report about one that was left running."""
        task = _task(beside)
        named = (given.get(name) for name in ("task_id", "bash_id", "shell_id"))
        before = next(
            (self.made.running[each] for each in named if isinstance(each, str) and each in self.made.running), {}
        )
        started = words(beside.get("backgroundTaskId"))
        if started:
            self.made.running[started] = {name: about.get(name) for name in ("command", "cwd")}
        streams = {name: each for name in ("stdout", "stderr") if (each := words(task.get(name)))}
        shown = streams or {"text": words(task.get("output")) or text}
        running = started is not None or task.get("status") == "running" or None
        self.made.add("command.finished", id_, **{**about, **before}, exitCode=whole(task.get("exitCode")), running=running, **ended, **shown)  # fmt: skip

    def _read(self, id_: str, about: Record, file: Record, text: str) -> None:
        """A file that was read: its content if the record has it, with the lines if it is a part."""
        content, first, count = file.get("content"), whole(file.get("startLine")), whole(file.get("numLines"))
        part = bool(first and count) and not (first == 1 and count == file.get("totalLines"))
        lines = {"lineStart": first, "lineEnd": first + count - 1} if part and first and count else {}
        shown = {"content": content} if isinstance(content, str) else {"text": text}
        path = about.get("path") or self.made.path(file.get("filePath"))
        self.made.add("file.read", id_, **{**about, "path": path}, isError=False, **lines, **shown)

    def _attachment(self, id_: str, given: Record) -> None:
        """An attachment of a message."""
        kind, content = given.get("type"), mapping(given.get("content"))
        path = self.made.path(given.get("filename") or given.get("path") or content.get("path"))
        if kind == "instructions":
            for file in mappings(given.get("files")):
                if text := words(file.get("content")):
                    self.made.add("rules.repository", id_, path=self.made.path(file.get("path")), text=text)
        elif kind == "nested_memory" and (text := words(content.get("content"))):
            self.made.add("rules.repository", id_, path=path, text=text)
        elif kind == "edited_text_file" and path:
            self.made.add("file.modified", id_, path=path, text=words(given.get("snippet")))
        elif kind == "file" and path and isinstance(mapping(content.get("file")).get("content"), str):
            self._read(id_, {"path": path}, mapping(content.get("file")), "")
        elif kind == "queued_command" and given.get("commandMode") in ("prompt", "task-notification"):
            typed = given.get("commandMode") == "prompt"
            self._text(id_, given if typed else {"isMeta": True}, text_of(given.get("prompt")))
        else:
            self.made.left_out[f"attachments of type {kind}"] += 1


def _task(beside: Record) -> Record:
    """What a record states of a command, which some versions put into a field of its own."""
    return mapping(beside.get("task")) or beside


def _replacements(beside: Record, given: Record) -> list[tuple[str, str, bool]]:
    """The replacements of an edit: old and new text, and whether all occurrences are replaced."""
    edits = mappings(given.get("edits")) or [{**given, **{_CAMEL[k]: v for k, v in beside.items() if k in _CAMEL}}]
    return [
        (text_of(each.get("old_string")), text_of(each.get("new_string")), each.get("replace_all") is True)
        for each in edits
    ]


_CAMEL = {"oldString": "old_string", "newString": "new_string", "replaceAll": "replace_all"}


def _diff(beside: Record, given: Record) -> str:
    """The hunks that the record states, else the lines of the arguments."""
    if hunks := mappings(beside.get("structuredPatch")):
        return "\n".join(line for hunk in hunks for line in _hunk(hunk))
    added = next((text for name in ("content", "new_source") if (text := words(given.get(name)))), None)
    pairs = [("", added, False)] if added else _replacements(beside, given)
    marked = (
        [*(f"-{each}" for each in old.splitlines()), *(f"+{each}" for each in new.splitlines())]
        for old, new, _ in pairs
    )
    return "\n".join(line for lines in marked for line in lines)


def _hunk(hunk: Record) -> list[str]:
    begins, lines = [hunk.get(each) for each in ("oldStart", "oldLines", "newStart", "newLines")], hunk.get("lines")
    head = "@@ -{},{} +{},{} @@".format(*begins)
    return [head, *(each for each in lines if isinstance(each, str))] if isinstance(lines, list) else []


def _content(beside: Record, given: Record) -> str | None:
    """The whole file after an edit: as written, or the original with the replacements; None if the record lacks it."""
    if beside.get("userModified") is True:
        return None
    if isinstance(given.get("content"), str):
        return given["content"]
    if not isinstance(text := beside.get("originalFile"), str):
        return None
    for old, new, everywhere in _replacements(beside, given):
        if old not in text or (text and not old):
            return None
        text = text.replace(old, new, -1 if everywhere else 1)
    return text
