"""Rollouts of OpenAI Codex CLI: one record per line, `timestamp`, `type` and `payload`; older ones have no payload.

Of the two accounts in a rollout, `response_item` is the input and output of the model; `event_msg` repeats it for the
user interface and is left out, except endings of script commands. A round begins when the model answers new input.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from ....nodes.turns.tagged import blocks_of
from ..outcomes import NO_OUTPUT
from .agents import agent_ended, changed_by_call
from .search_output import matches_in
from .searching import Search
from .speaking import speech_in
from .writing import Call, Transcript, asked, exit_code_in, exit_code_of, line_span, repeated, text_of, version_of

__all__ = ["events_of"]

_RULES = re.compile(r"^\s*(?:# AGENTS\.md instructions|<user_instructions>|<INSTRUCTIONS>)")
_RULE_TAGS = ("user_instructions", "INSTRUCTIONS")
_TAGS = re.compile(
    r"environment_context|turn_aborted|user_shell_command|user_action|permissions\w*|collaboration_mode|skills?|skills?_instructions|recommended_plugins|"
    r"apps_instructions|plugins\w*|subagent_notification|context_window|hook_prompt|goal_context|codex_internal_context|user_instructions|INSTRUCTIONS"
)
"""Names of tags that the harness writes with the role `user`."""
_DENIED = re.compile(
    r"(?:exec command|patch) rejected by user|`.*` rejected: .*|patch rejected: .*rejected by user approval settings.*|"
    r"exec_command failed(?: for `.*`)?: (?:CreateProcess \{ message: \"?)?Rejected\((?!\W*failed to create\b).*|"
    r"This action was rejected due to unacceptable risk\b.*",
    re.IGNORECASE | re.DOTALL,
)
"""The whole output of a call that the user or the harness's policy refused, not of a process that could not start."""
_DENIED_OF_SERVER = re.compile(r"(?:err: )?\"?user (?:rejected|cancelled) MCP tool call\"?")
"""The same for a call to an MCP server, in the words of the harness."""
_SCRIPT = re.compile(r"\A(?:Script [^\n]*\n)?(?:Wall time[^\n]*\n)?Output:\n+")
_IN_SCRIPT = re.compile(r"exec_command\(\{\s*\"?cmd\"?\s*:\s*(?P<text>\"(?:[^\"\\]|\\.)*\")")
_PATCHED = re.compile(r"^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (?P<path>.+)$", re.MULTILINE)
_HEAD = r"(?:(?:(?:Chunk ID|Total output lines|Original token count|Warning|Command|Session ID):|Wall time)[^\n]*\n|[ \t\r]*\n)*"
_EXITED = re.compile(rf"\A{_HEAD}(?:Process exited with code|Exit code:)\s*(?P<code>-?\d+)")
"""The beginning of the harness's report of an exit code; further down, the same words are those of the command."""
_GOES_ON = re.compile(rf"\A{_HEAD}Process running with session (?:ID )?\d+\n{_HEAD}(?:Output:(?:\n|\Z))?")
"""The same for a command that continues."""
_RUNS = re.compile(r"(?i)\brunning with session (?:id )?(?P<id>\d+)")
_WRITES_TO = re.compile(r"\bsession_id\W{1,4}(?P<id>\d+)")
"""The number of a process that is still running: `write_stdin` reads its further output."""
_KEYS = re.compile(r"\bchars\"?\s*:\s*(\"(?:[^\"\\]|\\.)*\")")
"""The keys that a script sends to the process."""
_LATE = re.compile(r"\Acommand timed out after \d")
_OF_TIME = (None, 124)
"""Exit codes of a command that the harness timed out; with any other code, the words are the command's own."""
_ABORTED = re.compile(r"(?:Wall time: [\d.]+ seconds\n)?aborted(?: by user(?: after [\d.]+ ?s)?)?\s*")
"""The whole output of a call that the user interrupted."""
_NOT_APPLIED = re.compile(
    r"(?i)\A[^\n]*\b(?:fail\w*|error\w*|invalid|reject\w*|abort\w*|denied|cannot|could not|unable|no such)\b"
)
"""The first line of the output of a patch that changed no file."""
_SHELLS = ("bash", "sh", "zsh", "dash")
_OUTPUT = re.compile(r"\A(?:.*\n)*?Output:\n")
_SEARCHES = re.compile(r"^\s*(?:rg|grep|git grep|fd|find)\b")
_READS = re.compile(
    r"^\s*(?:cat|nl -ba|sed -n ['\"]?(?P<first>\d{1,10}),(?P<last>\d{1,10})p['\"]?|head(?: -n? ?(?P<count>\d{1,10}))?)\s+(?P<path>[\w@+~./-]+)\s*$"
)

Record = Mapping[str, Any]


class _Call(NamedTuple):
    """A tool call: the name of the tool, the command that it ran, and all its arguments."""

    tool: str
    command: str
    given: str
    folder: str = ""
    """The folder in which it ran, if the call states it."""
    begun: int | None = None
    """The event after which it continued to run, if it did not end with its output."""
    steered: bool = False
    """Whether keys were sent to it, which may determine how it ends."""
    runs: bool = True
    """Whether it runs a command; otherwise `command` is the request."""


_UNKNOWN = _Call("tool", "", "", runs=False)


def events_of(records: Sequence[Record], name: str) -> Transcript:
    """The events of a rollout; `name` is its id if no record has one."""
    made, calls, answered, ends = Transcript(name), {}, True, list[int]()
    begun, round_starts = False, list[int]()
    again = repeated(records)
    for number, record in enumerate(records):
        if number in again:
            made.left_out["repeated records"] += 1
            continue
        made.time(record.get("timestamp"))
        payload = record.get("payload")
        kind = record.get("type")
        if "record_type" in record:
            made.left_out[f"records of type {record['record_type']}"] += 1
            continue
        if kind is None and "instructions" in record:
            kind, payload = "session_meta", record
        elif not isinstance(payload, Mapping):
            kind, payload = ("compacted", record) if kind == "compacted" else ("response_item", record)
        id_ = f"line-{number + 1}"
        if kind == "session_meta":
            _begin(made, id_, payload, first=not begun)
            begun = True
        elif kind == "turn_context":
            made.works_in(payload.get("cwd"))
        elif kind == "compacted":
            made.add("history.summarized", id_, text=str(payload.get("message") or "compacted"))
        elif kind == "response_item":
            speaks = payload.get("role") == "assistant" or str(payload.get("type")).endswith(("_call", "reasoning"))
            if speaks and answered:
                made.request(id_)
            answered = not speaks
            if str(payload.get("type")).endswith("_call"):
                ends.clear()
            count = len(made.events)
            _item(made, id_, payload, calls, ends)
            if any(event["kind"].startswith("user.") for event in made.events[count:]):
                round_starts.append(count)
        elif kind == "event_msg" and payload.get("type") == "thread_rolled_back":
            _roll_back(made, round_starts, payload.get("num_turns"))
        elif kind == "event_msg" and (end := _end_of(payload)) is not None:
            ends.append(end)
        else:
            made.left_out[f"records of type {kind}"] += 1
    return made


def _roll_back(made: Transcript, round_starts: list[int], count: Any) -> None:
    """Remove the last round_starts of the user, which begin at `round_starts`."""
    if not isinstance(count, int) or count < 1 or not round_starts:
        made.left_out["rollbacks that name no turns"] += 1
        return
    first = round_starts[-min(count, len(round_starts))]
    made.left_out["events of turns that were rolled back"] += len(made.events) - first
    del made.events[first:], round_starts[-count:]
    made.spoken = any(event["kind"] == "user.goal" for event in made.events)


def _end_of(payload: Mapping[str, Any]) -> int | None:
    """The exit code of a command in a message that reports it."""
    item = payload.get("item") if payload.get("type") == "item_completed" else None
    code = item.get("exit_code") if isinstance(item, Mapping) and item.get("type") == "CommandExecution" else None
    return exit_code_of(code)


def _begin(made: Transcript, id_: str, payload: Mapping[str, Any], *, first: bool) -> None:
    """Begin the session, or read the record of a session that it continues, without changing its own id."""
    if first and isinstance(payload.get("id"), str):
        made.session_id = payload["id"]
    if first and isinstance(payload.get("cwd"), str):
        made.root = payload["cwd"]
    instructions = payload.get("instructions")
    if isinstance(instructions, Mapping):
        instructions = instructions.get("text")
    if isinstance(instructions, str) and instructions.strip():
        made.add("rules.repository", id_, text=instructions)


def _item(made: Transcript, id_: str, payload: Mapping[str, Any], calls: dict[str, _Call], ends: Sequence[int]) -> None:
    kind = str(payload.get("type"))
    if kind == "message":
        _message(made, id_, payload)
    elif kind in ("function_call", "custom_tool_call", "local_shell_call"):
        tool = str(payload.get("name") or "shell")
        given = _arguments(payload)
        command = _command(given)
        words = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        named = given.get("workdir") or given.get("working_directory") if isinstance(given, Mapping) else None
        folder = PurePosixPath(made.folder) / str(named or "")
        writes = tool == "write_stdin" or "write_stdin(" in words
        runs = isinstance(given, str) or bool(given.get("cmd") or given.get("command")) or writes
        call = _Call(tool, command, words, "" if folder == PurePosixPath() else folder.as_posix(), runs=runs)
        if writes:
            call = calls.get(_session(_WRITES_TO, words), call)
            call = call._replace(steered=call.steered or _sends_keys(given))
        calls[str(payload.get("call_id"))] = call
        if tool == "update_plan" and isinstance(given, Mapping):
            steps = [each for each in given.get("plan") or [] if isinstance(each, Mapping)]
            made.add(
                "plan.updated",
                id_,
                text="\n".join(f"{each.get('status')}: {each.get('step')}" for each in steps) or "no plan",
            )
        else:
            made.add("tool.intent", id_, tool=tool, text=command or asked(given) or tool)
    elif kind in ("function_call_output", "custom_tool_call_output", "local_shell_call_output"):
        call = calls.get(str(payload.get("call_id")), _UNKNOWN)
        if session := _session(_RUNS, text_of(payload.get("output"))[:600]):
            begun = len(made.events) if call.begun is None else call.begun
            # Later input to the process, and its ending, belong to this command.
            calls[session] = call._replace(begun=begun)
        _output(made, id_, call, payload.get("output"), ends)
    elif kind == "web_search_call":
        action = payload.get("action")
        query = action.get("query") if isinstance(action, Mapping) else None
        made.add("tool.intent", id_, tool="web_search", text=str(query or "search"))
    else:
        made.left_out[f"items of type {kind}"] += 1


def _message(made: Transcript, id_: str, payload: Mapping[str, Any]) -> None:
    """A message; one of the user may contain rules and words of the harness besides the user's own, each in a block."""
    role, content = str(payload.get("role")), payload.get("content")
    text = text_of(content)
    if not text.strip():
        made.left_out["messages without text"] += 1
    elif role == "assistant":
        made.add("model.message", id_, text=text)
    elif role in ("developer", "system"):
        made.add("rules.system", id_, text=text)
    elif role != "user":
        made.other(id_, text)
    else:
        _of_user(made, id_, payload, content if isinstance(content, list) else [text])


def _of_user(made: Transcript, id_: str, payload: Mapping[str, Any], content: Sequence[Any]) -> None:
    about = payload.get("internal_chat_message_metadata_passthrough")
    kinds = about.get("content_item_kinds") if isinstance(about, Mapping) else None
    kinds = kinds if isinstance(kinds, list) and len(kinds) == len(content) else [None] * len(content)
    own = []
    for block, kind in zip(content, kinds, strict=True):
        text, human = text_of([block]), isinstance(kind, str) and kind.startswith("user.")
        if _RULES.match(text):
            end = next((each.end for each in blocks_of(text) if each.name in _RULE_TAGS), len(text))
            made.add("rules.repository", id_, text=text[:end])
            text = text[end:]
        speech = speech_in(text, _TAGS, human=human)
        if not human and any(name == "subagent_notification" for name, _ in speech.blocks):
            agent_ended(made, id_)
        if isinstance(kind, str) and not human and kind != "unknown":
            made.left_out["messages of the harness"] += 1
        else:
            own.append(speech.own)
            made.add_speech(id_, replace(speech, own=""))
    made.user(id_, "\n".join(filter(str.strip, own)))


def _sends_keys(given: Any) -> bool:
    """Whether a call sends keys to a running process, and does not only read its output."""
    keys = (
        given.get("chars")
        if isinstance(given, Mapping)
        else _unquoted(found[1] if (found := _KEYS.search(given)) else '""')
    )
    return bool(str(keys or "").strip(" \r\n"))


def _arguments(payload: Mapping[str, Any]) -> Any:
    """The arguments of a tool call: an object if they are one, else the text."""
    action = payload.get("action")
    if isinstance(action, Mapping):
        return action
    given = payload.get("arguments", payload.get("input"))
    if isinstance(given, str):
        try:
            read = json.loads(given)
        except (ValueError, RecursionError):
            return given
        return read if isinstance(read, Mapping) else given
    return given if isinstance(given, Mapping) else {}


def _command(given: Any) -> str:
    """The command line of a call; for a script, those of the commands that it runs."""
    if isinstance(given, str):
        found = [_unquoted(each["text"]) for each in _IN_SCRIPT.finditer(given)]
        return "; ".join(found) or given
    command = given.get("cmd") or given.get("command") or given.get("query") or given.get("path") or ""
    if isinstance(command, list):
        words = [str(each) for each in command]
        by_shell = len(words) == 3 and PurePosixPath(words[0]).name in _SHELLS and words[1] in ("-lc", "-c")
        return words[-1] if by_shell else shlex.join(words)
    return str(command)


def _unquoted(literal: str) -> str:
    """The value of a string literal in a script; one with an escape that JSON lacks stays as written."""
    try:
        return json.loads(literal, strict=False)
    except (ValueError, RecursionError):
        return literal[1:-1]


def _output(made: Transcript, id_: str, call: _Call, output: Any, ends: Sequence[int]) -> None:
    tool, command, given, folder, begun, steered, runs = call
    text, code = _read_output(output)
    action = None if tool.startswith("mcp") else command or None
    called = Call(tool, action, "" if action or given == "{}" else given)
    if code is None and (_DENIED_OF_SERVER if tool.startswith("mcp") else _DENIED).fullmatch(text.strip()):
        made.denied(id_, called, text)
        return
    if code is not None or not _NOT_APPLIED.match(text):
        made.let_through(id_, called)
    code = next((end for end in (code, *ends) if end), 0 if code == 0 or ends else None)
    if answers := _answers(tool, text):
        made.user(id_, answers)
        return
    aborted = code is None and bool(_ABORTED.fullmatch(text))
    late = code in _OF_TIME and bool(_LATE.match(text))
    patched = list(_PATCHED.finditer(given.replace("\\n", "\n"))) if "*** " in given else []
    if patched and not (code or aborted or _NOT_APPLIED.match(text) or _NOT_APPLIED.match(text_of(output))):
        for place, each in enumerate(patched):
            end = patched[place + 1].start() if place + 1 < len(patched) else None
            diff = given.replace("\\n", "\n")[each.start() : end].split("\n*** End Patch")[0]
            made.add(
                "file.modified",
                id_,
                path=made.path(str(PurePosixPath(folder) / each["path"].strip())),
                text=diff,
                version=version_of(f"{id_}{diff}"),
            )
        return
    if tool in ("update_plan",):
        made.left_out["outputs of update_plan"] += 1
    elif not (code or aborted or late) and (read := _READS.match(command)) and (lines := _lines(read)) is not None:
        made.read(id_, made.path(str(PurePosixPath(folder) / read["path"])), text, lines)
    elif _SEARCHES.match(command) and (found := matches_in(text, made, Search.of_command(command), folder)):
        made.add("search.result", id_, query=command, matches=found, text=text)
    elif not runs:
        made.add(
            "command.finished",
            id_,
            tool=tool,
            text=text or NO_OUTPUT,
            failed=bool(code) or None,
            interrupted=aborted or None,
            changedFiles=changed_by_call(made, tool, given, failed=bool(code)),
        )
    else:
        running = code is None and any(_RUNS.search(each[:600]) for each in (text_of(output), text))
        patches = bool(patched) and command.startswith("*** ")
        command = "\n".join(["apply_patch", *(each[0] for each in patched)]) if patches else command
        made.add("command.finished", id_, command=command or tool, exitCode=code, failed=(patches and code is None) or None, timedOut=late or None, interrupted=aborted or None, status="running" if running else None, stdout=text or NO_OUTPUT,
                 background=steered or (None if begun is None else made.changed_since(begun)), **made.ran_in(folder))  # fmt: skip


def _answers(tool: str, text: str) -> str:
    """The user's answers to questions of the model, if the call asked any."""
    try:
        read = json.loads(text) if tool == "request_user_input" else None
    except (ValueError, RecursionError):
        return ""
    answers = read.get("answers") if isinstance(read, Mapping) else None
    given = answers.values() if isinstance(answers, Mapping) else ()
    return "\n".join(text_of(each.get("answers")) for each in given if isinstance(each, Mapping)).strip()


def _session(where: re.Pattern[str], text: str) -> str:
    """The process that a text names, as a separate key among calls."""
    found = where.search(text)
    return f"session {found['id']}" if found else ""


def _lines(read: re.Match[str]) -> dict[str, int] | None:
    """The lines of a file that a command printed: empty for all of them, None if the numbers are not valid lines."""
    last = read["last"] or read["count"]
    if last is None and not read[0].lstrip().startswith("head"):
        return {}
    return line_span(int(read["first"] or 1), int(last or 10)) or None


def _read_output(output: Any) -> tuple[str, int | None]:
    """The text of an output, and the exit code if it has one: from JSON, a report, or plain text."""
    if isinstance(output, Mapping):
        success = output.get("success")
        code = output.get("exit_code", int(not success) if isinstance(success, bool) else None)
        words = output.get("content", output.get("output", output.get("text")))
        return text_of(words), exit_code_of(code)
    text = _SCRIPT.sub("", text_of(output), count=1) if isinstance(output, list) else text_of(output)
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        read = None
    if isinstance(read, Mapping) and isinstance(read.get("output"), str):
        about = read.get("metadata")
        code = about.get("exit_code") if isinstance(about, Mapping) else read.get("exit_code")
        return read["output"], exit_code_of(code)
    exited = _EXITED.match(text)
    if exited is None:
        return _GOES_ON.sub("", text), None
    return _OUTPUT.sub("", text, count=1), exit_code_in(exited["code"])
