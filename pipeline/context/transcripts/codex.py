"""Rollouts of OpenAI Codex CLI: one record per line, `timestamp`, `type` and `payload`.

Of the two accounts in a rollout, `response_item` is the input and output of the model. Of the other, `event_msg`, only
what the first lacks is read: what the user typed, took back and declined. These have a form of their own, or are an
`item_completed` since 0.150. A round begins when the model answers new input.

Note: messages of the role `user` are the harness's: what the user typed is stated apart.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PureWindowsPath
from typing import Any

from .transcript import CAPABILITIES, Record, Transcript, mapping, text_of, whole, words

_HEAD = re.compile(
    r"(?:(?:Chunk ID|Wall time|Exit code|Process (?:exited|running)|Original token count|Total output lines)\b[^\n]*\n|\s*\n)+Output:\n"
)
"""What the harness writes before the output of a command."""
_CODE = re.compile(r"^(?:Exit code:|Process exited with code) (-?\d{1,9})$", re.MULTILINE)
_RUNNING = re.compile(r"^Process running with session ID (\d+)$", re.MULTILINE)
_FILE = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)\n?", re.MULTILINE)
_MOVED = re.compile(r"^\*\*\* Move to: (.+)$", re.MULTILINE)


def events_of(numbered: Sequence[tuple[int, Record]], name: str) -> Transcript:
    """The events of a rollout; `name` is its id if no record has one."""
    told = [_message(record) for _, record in numbered if record.get("type") == "event_msg"]
    rollout = _Rollout(
        Transcript(name),
        {text_of(each.get("message")) for each in told if each.get("type") == "user_message"},
        {str(each.get("call_id")) for each in told if each.get("status") == "declined"},
    )
    for number, record in numbered:
        rollout.made.time(record.get("timestamp"))
        rollout.take(f"line-{number}", record)
    return rollout.made


def _message(record: Record) -> Record:
    """A message to the user interface; a completed item in the form of the message that says the same."""
    payload = mapping(record.get("payload"))
    item = mapping(payload.get("item")) if payload.get("type") == "item_completed" else {}
    if not item:
        return payload
    kind = "user_message" if item.get("type") == "UserMessage" else item.get("type")
    return {**item, "type": kind, "call_id": item.get("id"), "message": text_of(item.get("content"))}


@dataclass
class _Rollout:
    """Reads records in their order."""

    made: Transcript
    typed: set[str]
    """What the user typed."""
    declined: set[str]
    """Calls that the user did not permit."""
    folder: Any = None
    """The folder in which commands run that name none."""
    begun: bool = False
    answered: bool = True
    """Whether the model has got new input since it spoke."""
    heard: tuple[int, str] = (0, "")
    """The last words of the user, and their round."""
    turns: list[int] = field(default_factory=list)
    """Where the messages of the user are among the events."""

    def take(self, id_: str, record: Record) -> None:
        kind, payload = record.get("type"), mapping(record.get("payload"))
        if kind == "session_meta":
            self._begin(id_, payload)
        elif kind == "turn_context":
            self.folder = payload.get("cwd")
        elif kind == "compacted" and (text := words(payload.get("message"))):
            self.made.add("history.summarized", id_, text=text)
        elif kind == "response_item":
            self._item(id_, payload)
        elif kind == "event_msg":
            self._told(id_, _message(record))
        else:
            self.made.left_out[f"records of type {kind}"] += 1

    def _begin(self, id_: str, payload: Record) -> None:
        """The session begins, or has the record of one that it continues."""
        if not self.begun:
            self.made.session_id = words(payload.get("id")) or self.made.session_id
            self.made.root = words(payload.get("cwd")) or ""
            self.folder = payload.get("cwd")
        self.begun = True
        if text := text_of(payload.get("instructions")).strip():
            self.made.add("rules.repository", id_, text=text)

    def _user(self, id_: str, text: str) -> None:
        """Words of the user, which a rollout may state in two forms."""
        if text.strip() and self.heard != (self.made.round, text):
            self.heard = (self.made.round, text)
            self.turns.append(len(self.made.events))
            self.made.user(id_, text)

    def _item(self, id_: str, item: Record) -> None:
        """Input or output of the model."""
        kind, role = str(item.get("type")), item.get("role")
        speaks = role == "assistant" or kind.endswith(("_call", "reasoning"))
        if speaks and self.answered:
            self.made.request(id_)
        self.answered = not speaks
        if kind == "message":
            blocks = item.get("content")
            for block in blocks if isinstance(blocks, list) else [blocks]:
                self._said(id_, role, text_of(block))
        elif kind in ("function_call", "custom_tool_call", "local_shell_call"):
            self._call(id_, item)
        elif kind in ("function_call_output", "custom_tool_call_output", "local_shell_call_output"):
            self._output(id_, self.made.calls.get(str(item.get("call_id")), {"tool": "unknown"}), item)
        elif kind == "web_search_call":
            self.made.called(id_, item.get("id"), "web_search", mapping(item.get("action")))
        else:
            self.made.left_out[f"items of type {item.get('type') or item.get('record_type')}"] += 1

    def _said(self, id_: str, role: Any, text: str) -> None:
        if not text.strip():
            self.made.left_out["messages without text"] += 1
        elif role == "assistant":
            self.made.add("model.message", id_, text=text)
        elif role in ("developer", "system"):
            self.made.add("rules.system", id_, text=text)
        elif text not in self.typed:
            self.made.add("harness.message", id_, text=text)

    def _call(self, id_: str, item: Record) -> None:
        tool = f"{words(item.get('namespace')) or ''}{words(item.get('name')) or 'local_shell'}"
        given = _arguments(item)
        if isinstance(argv := given.get("command"), list) and all(isinstance(each, str) for each in argv):
            if argv[:1] == ["apply_patch"]:
                tool, argv = "apply_patch", argv[1:]
            by_shell = len(argv) == 3 and argv[1] in ("-lc", "-c")
            line = argv[2] if by_shell else shlex.join(argv)
            given = {"input": argv[-1]} if tool == "apply_patch" and argv else {**given, "command": line}
        folder = self._below(given.get("workdir") or given.get("working_directory"))
        process = self.made.running.get(str(given.get("session_id"))) if tool == "write_stdin" else None
        self.made.called(id_, item.get("call_id"), tool, given, folder, process)

    def _output(self, id_: str, call: dict[str, Any], item: Record) -> None:
        """The output of a call as the model got it."""
        tool, about = call["tool"], self.made.about(item.get("call_id")) or call
        capability, patched = CAPABILITIES.get(tool), list[tuple[str, str, str | None]]()
        text, code, failed, process = _read(item.get("output"), ran=capability in ("run", "edit"))
        if process:
            self.made.running[process] = {name: about.get(name) for name in ("command", "cwd")}
        if item.get("call_id") in self.declined or tool == "update_plan":
            return
        if tool == "apply_patch" and (code == 0 or failed is False):
            patched = _patched(text_of(mapping(call.get("arguments")).get("input")))
        for path, diff, content in patched:
            path = self.made.path(self._below(path))
            self.made.add("file.modified", id_, **{**about, "path": path}, text=diff, content=content)
        if capability == "run":
            running = process is not None or None
            self.made.add("command.finished", id_, **about, exitCode=code, isError=failed, running=running, text=text)
        elif not patched:
            failed = bool(code) if code is not None else failed
            ended = "external.result" if tool.startswith("mcp__") else "tool.finished"
            self.made.add("tool.error" if failed else ended, id_, **about, text=text, isError=failed)
            if tool == "request_user_input":
                answers = mapping(_json(text).get("answers")).values()
                self._user(id_, "\n".join(text_of(mapping(each).get("answers")) for each in answers))

    def _below(self, path: Any) -> str:
        """A path, which may be relative to the folder of the session."""
        names = [each for each in (self.folder, path) if isinstance(each, str)]
        return PureWindowsPath(*names).as_posix() if names else ""

    def _told(self, id_: str, payload: Record) -> None:
        """A message to the user interface that states what no item of the model does."""
        kind = payload.get("type")
        if kind == "user_message":
            self._user(id_, text_of(payload.get("message")))
        elif kind == "thread_rolled_back":
            self._roll_back(whole(payload.get("num_turns")) or 0)
        elif kind == "guardian_assessment" and payload.get("status") in ("denied", "approved"):
            decision = "denied" if payload["status"] == "denied" else "granted"
            asked = {"requestId": words(payload.get("target_item_id")), "decidedBy": "guardian"}
            self.made.add(
                f"permission.{decision}", id_, **asked, reason=words(payload.get("rationale")),
                command=words(mapping(payload.get("action")).get("command")),
            )  # fmt: skip
        elif payload.get("status") == "declined":
            call = self.made.calls.get(str(payload.get("call_id")), {"requestId": words(payload.get("call_id"))})
            self.made.add("permission.denied", id_, **call, text=text_of(payload.get("stderr")) or None)
        else:
            self.made.left_out[f"messages of type {kind}"] += 1

    def _roll_back(self, count: int) -> None:
        """The user took back the last turns."""
        if count < 1 or not self.turns:
            self.made.left_out["rollbacks that name no turns"] += 1
            return
        first = self.turns[-min(count, len(self.turns))]
        self.made.left_out["events of turns that were rolled back"] += len(self.made.events) - first
        del self.made.events[first:], self.turns[-count:]
        self.made.spoken = any(event["kind"] == "user.goal" for event in self.made.events)


def _json(text: Any) -> Record:
    """A text as a JSON object; empty if it is not one."""
    try:
        return mapping(json.loads(text)) if isinstance(text, str) else mapping(text)
    except (ValueError, RecursionError):
        return {}


def _arguments(item: Record) -> Record:
    """The arguments of a call; those that are not an object are its `input`."""
    given = item.get("action") or item.get("arguments", item.get("input"))
    return _json(given) or ({"input": given} if words(given) else {})


def _read(output: Any, *, ran: bool) -> tuple[str, int | None, bool | None, str | None]:
    """The text of an output; exit code, whether it failed, and the process that runs on, if the output states them.

    `ran`: it is the output of a built-in tool that runs commands: others may print the same form.
    """
    success = mapping(output).get("success")
    failed = not success if isinstance(success, bool) else None
    text = text_of(mapping(output).get("content", output))
    stated = _json(text) if ran else {}
    if isinstance(stated.get("output"), str):
        return stated["output"], whole(mapping(stated.get("metadata")).get("exit_code")), failed, None
    if head := _HEAD.match(text) if ran else None:
        code, process = _CODE.search(head[0]), _RUNNING.search(head[0])
        return text[head.end() :], int(code[1]) if code else None, failed, process[1] if process else None
    return text, None, failed, None


def _patched(patch: str) -> list[tuple[str, str, str | None]]:
    """The files of a patch: path, what it changes there, and the content of a new one."""
    parts, found = _FILE.split(patch.partition("\n*** End Patch")[0]), list[tuple[str, str, str | None]]()
    for action, path, body in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        moved = _MOVED.search(body)
        content = "".join(f"{line[1:]}\n" for line in body.splitlines()) if action == "Add" else None
        found += [(each.strip(), body, content) for each in filter(None, (path, moved and moved[1]))]
    return found
