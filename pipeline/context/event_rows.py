"""One session event as rows: its text, speaker and outcome, and the matches and the memory that it carries.

Gives `event_row`, `match_rows`, `recalled_row` and `given_memory`; `payload_of`, `ran_in` and `long_text` of an event;
and `sight_of` any record.

Note: the speaker is the origin that the event names, else the one that its kind implies; if event and payload disagree,
the one that is not the user. Text of the user is never cut; any other long text is cut, and the whole is an artifact.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ...nodes.errors import InputError
from ...nodes.turns.duties import LONG_MESSAGE, apart, binding, sections
from ...nodes.turns.words import DERIVED, EVENT_ACTORS, PHASES, RUNNING
from ...nodes.vocabulary import LIFECYCLES, VISIBILITIES, ZONES, Vocabulary
from ..parsing.quoting import canonical
from ..progress import counted
from ..redaction.masking import redact_text
from ..sources.jsonl import Record
from .changes import changed_files
from .checks import place_of
from .endings import BROKEN_OFF, CODES, OF_SIGNALS, ending, with_ending
from .flags import flags_of
from .masking import one_path
from .observations import EXCERPT, addresses_the_model, observed
from .outcome_fields import says
from .outcomes import checked, failure_of
from .permissions import ABOUT_PERMISSIONS, action_of, grants, lifts
from .tool_changes import changed_by_tool
from .verified_parts import named

__all__ = ["event_row", "given_memory", "long_text", "match_rows", "payload_of", "ran_in", "recalled_row", "sight_of"]

LONG = 6_000
"""Longest text of a tool or the model that an event keeps; a longer one is cut and kept as an artifact."""
NAME = 120
"""Most characters of the name of a verification before its text."""
_MASK = "[REDACTED:"
_SPEAKERS = {"user": "user", "model": "model", "system": "system", "memory": "memory"}
"""The speaker of each origin; any other origin is a tool. Rule files are not speakers: they grant nothing."""
KEY_KINDS = frozenset(EVENT_ACTORS) - {
    "rules.system", "rules.repository", "memory.recalled", "memory.revoked", "retrieval.snapshot.created", "model.request",
    "phase.changed", "constraint.ended",
}  # fmt: skip
"""Kinds that a later round must know about; others set something, or belong to the harness."""
_CLASS = {
    "file.read": "file_content", "file.modified": "file_diff", "search.result": "search_result", "permission.denied": "permission_denied",
    "external.result": "web_content", "tool.error": "stderr", "verification.finished": "stdout",
}  # fmt: skip
_NAMED_ORIGIN = ("user.constraint", "user.goal", "verification.finished", "command.finished")
"""Kinds whose effect depends on the origin that they name."""
_NATIVE = {"stderr": "stderr", "stdout": "stdout", "timeout": "timeout"}
_HALF = 2**31
_OTHER_CODES = (*CODES[2:], "code", "status")
"""Other names of the exit code of a command, if the value is a number."""
_TEXTS = ("text", "content", "message", "output", "diff", "summaryText")


def event_row(record: Record, kind: str, given: str, unmasked: Record, keep: Callable[[str], str]) -> dict[str, Any]:
    """A row of LOG_EVENTS without the place of the event in its log. `kind` is the canonical kind, `given` the word
    that names it; `unmasked` is the original event, whose long text `keep` stores as an artifact.

    Raises:
        InputError: a field of the event is invalid.
    """
    payload = payload_of(record)
    text, stdout, stderr = _text_of(record, payload)
    if text and stdout and stderr:  # likewise
        text = redact_text(text)
    reason = payload.value("reason")
    if kind == "permission.denied" and isinstance(reason, str) and reason.strip():
        text = redact_text(f"{text}\n{reason}") if text else reason
    command = payload.text("command", "tool", "toolName", "query", "url")
    arguments = payload.value("arguments", "input")
    if arguments is not None and command:
        words = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, sort_keys=True)
        command = redact_text(f"{command} {words}")  # a secret may be split between the two
    if kind in ABOUT_PERMISSIONS:
        command = action_of(kind, payload, command)
    code = _exit_code(payload, kind)
    how = "timed out" if given == "timeout" else ending(payload, command, code)
    folder, root = ran_in(payload)
    check = checked(kind, payload, command, text, folder=folder, root=root, code=code, ended=how)
    failed = bool(code) or payload.value("failed") is True or check["check_outcome"] == "failed"
    failed |= how is not None and (kind == "command.finished" or how not in BROKEN_OFF)
    failed |= kind in ("tool.error", "permission.denied")
    origin = _origin(record, payload)
    actor = EVENT_ACTORS[kind] if origin is None else _speaker(origin)
    class_, summary = _CLASS.get(kind), payload.text("summary", "keyExcerpt", "key_excerpt")
    excerpt, suspicious, name = None, False, ""
    of_command = kind == "command.finished"
    broke = bool(code) or how is not None or (of_command and says(payload) == "failed")
    line = command if of_command else None
    broken_off = how is not None or code in OF_SIGNALS or (code is None and says(payload) == "running")
    changed, doubtful = changed_files(line, folder, root, failed=broke, broken_off=broken_off, output=text or "")
    if kind == "command.finished":
        stream = _NATIVE.get(given) or ("stderr" if stderr and not stdout else "stdout")
        passed = check["check_outcome"] == "passed"
        seen = observed(
            text or "", command=command, failed=failed, passed=passed, stream=stream, timed_out=how == "timed out"
        )
        of_tool = not (stdout or stderr or how == "timed out" or given in _NATIVE) and _of_tool(payload, code, check)
        class_, excerpt, suspicious = None if of_tool else seen.kind, seen.excerpt, seen.suspicious
        changed, doubtful = ((), ()) if of_tool else (changed, doubtful)
        summary = summary or (seen.summary if of_tool or not failed else failure_of(command, text, how, seen.summary))
    elif text and EVENT_ACTORS[kind] == "tool":
        seen = observed(text, failed=failed, diff=kind == "file.modified")
        suspicious = seen.suspicious
        summary, excerpt = summary or seen.summary, seen.excerpt if failed or kind == "file.modified" else None
    elif text:
        suspicious = actor != "user" and addresses_the_model(text)
        if actor == "user":
            excerpt = _leading(text) if len(text) > LONG_MESSAGE else None
        else:
            summary = summary or (_first(text) if len(text) > 240 else None)
    if kind in ("command.finished", "tool.error"):
        reported = changed_by_tool(payload, failed=broke or kind == "tool.error")
        changed, doubtful = (changed, doubtful) if reported is None else (reported, ())
    if kind == "search.result" and summary is None:
        summary = _found(payload)
    if kind == "verification.finished":
        name = str(named(payload, root))[:NAME]
        if not (summary or text or command):
            summary = name or " ".join(each.removesuffix(":") for each in check["check_scope"].split(" && "))
            name = name or ("" if summary == "verification" else summary)
        elif name and summary and not summary.lower().startswith(name):
            summary = f"{name}: {summary}"
    if how is not None:
        summary = with_ending(summary, how) or f"{command or 'a command'}: {how} and printed nothing"
    if kind == "plan.updated":
        excerpt = payload.text("interpretation")
    visible_excerpt = payload.text("visibleExcerpt", "visible_excerpt")
    ref = payload.text("ref", "artifact", "stdoutRef", "stdout_ref", "stderrRef", "stderr_ref")
    ref = ref or next(iter(payload.strings("artifacts") or []), None)
    if excerpt is None and text and actor == "tool" and len(text) > EXCERPT:
        excerpt = _cut(text, EXCERPT)
    whole, masked = len(text or ""), f"{text} {command}".count(_MASK)
    if text is not None and whole > LONG and actor != "user":
        # The reference derives from the original text, independent of later detectors of secrets.
        ref = ref or keep(_text_of(unmasked, payload_of(unmasked))[0] or text)
        text = _cut(text)
    subject = (
        payload.identifier("subject", "phase")
        if kind == "phase.changed"
        else payload.identifier("subject", "constraintId", "memoryId", "requestId")
    )
    if kind == "phase.changed":
        subject = canonical(PHASES, subject, payload.place("phase", "subject")) if subject else None
        if subject is None:
            raise InputError.one_of(PHASES.values, None, payload.place("phase"))
    if kind == "file.read":
        subject = _lines_of(payload)
    if kind == "verification.finished":
        subject = name or None
    if kind == "command.finished":
        subject = how or (RUNNING if code is None and says(payload) == "running" else None)
    if kind == "memory.revoked" and subject is None:
        subject = payload.identifier("id", "memory_id")
    if kind == "constraint.ended" and subject is None:
        which = "the constraint that ends, by its constraintId or the id of its event"
        raise InputError.expected(which, None, payload.place("constraintId"))
    if kind in ("user.goal", "user.constraint") and not text:
        raise InputError.expected("text", None, payload.place("text"))
    key = record.value("key", "keyEvent")
    at = record.instant("createdAt", "created_at", "timestamp")
    granted = grants(kind, payload, text, command, at)
    if kind == "user.confirmation" and not (text or summary):
        summary = "yes" if granted else "not approved"
    speaks = kind in ("user.goal", "user.message", "user.confirmation") and actor == "user"
    return {
        "kind": kind,
        "actor": actor,
        "key_event": key if isinstance(key, bool) else kind in KEY_KINDS,
        "observation_class": class_,
        **{"visibility": "model-visible", "zone": "internal", **sight_of(record, payload)},
        "text": text,
        "characters": whole,
        "cut": whole > LONG and actor != "user",
        "masked": masked,
        "binding": binding(text) if speaks and text else None,
        "pasted": apart(text)[1] if speaks and text else None,
        "summary": summary,
        "excerpt": visible_excerpt or excerpt,
        "ref": ref,
        "command": command,
        "exit_code": code,
        "failed": failed,
        "grants": granted,
        "lifts": lifts(kind, payload, text, command, at, granted=granted) if kind in ABOUT_PERMISSIONS else None,
        **check,
        "may_change": list(map(one_path, changed)) or None,
        "doubtful": list(map(one_path, doubtful)) or None,
        "path": one_path(payload.text("path", "file", "filePath", "file_path")),
        "version": payload.identifier("version", "hash", "sha256"),
        "subject": subject,
        "origin": origin if kind in _NAMED_ORIGIN else _derived(kind, payload),
        "evidence_ids": payload.strings("evidenceIds", "evidence_ids", "shown"),
        "snapshot_ids": payload.strings(
            "retrievalSnapshotIds",
            "retrieval_snapshot_ids",
            "snapshotIds",
            "snapshot_ids",
            "snapshotId",
            "snapshot_id",
        ),
        "suspicious": suspicious,
    }


def _lines_of(payload: Record) -> str | None:
    """The lines of a partial read of a file, as in a locator: `101-200`."""
    first = payload.whole("lineStart", "line_start", least=1, what="a line number")
    last = payload.whole("lineEnd", "line_end", least=1, what="a line number")
    if first is None and last is None:
        return None
    if first is None or last is None or first > last:
        place = payload.place("lineStart", "line_start")
        raise InputError.described("two line numbers, the first from 1", f"{first} to {last}", place)
    return f"{first}-{last}"


def _of_tool(payload: Record, code: int | None, check: Mapping[str, Any]) -> bool:
    """Whether an event is the result of a tool that ran no command: it names only the tool and no exit code."""
    ran = payload.text("command") or payload.value("arguments", "input")
    return not ran and code is None and check["check_scope"] is None and payload.text("tool", "toolName") is not None


def _exit_code(payload: Record, kind: str) -> int | None:
    """The exit code of a command; of several fields, one that is not 0. Windows codes range from 0 to 2**32: the upper
    half are the negative ones.
    """
    names = ["exitCode", "exit_code"]
    if kind in ("command.finished", "verification.finished"):
        names += [name for name in _OTHER_CODES if type(payload.value(name)) is int]
    codes = [payload.whole(name, least=-_HALF, most=2 * _HALF - 1, what="an exit code") for name in names]
    codes = [code for code in codes if code is not None]
    code = next((code for code in codes if code), 0 if codes else None)
    return code - 2 * _HALF if code is not None and code >= _HALF else code


def ran_in(payload: Record) -> tuple[str, str]:
    """The folder of a command, and the absolute folder to which it is relative; `` if the event does not state it."""
    root = one_path(payload.text("root", "workspaceRoot", "workspace_root")) or ""
    folder = one_path(payload.text("cwd", "workdir", "workingDirectory", "working_directory")) or ""
    return place_of(folder, root), root


def payload_of(record: Record) -> Record:
    return record.mapping("payload") if isinstance(record.fields.get("payload"), dict) else record


def _text_of(record: Record, payload: Record) -> tuple[str | None, str | None, str | None]:
    """The text of an event, and its parts from each output stream."""
    given = record.fields.get("payload")
    text = given if isinstance(given, str) else payload.text(*_TEXTS)
    stdout, stderr = payload.text("stdout"), payload.text("stderr")
    if text is None and (stdout or stderr):
        text = "\n".join(filter(None, (stdout, stderr)))
    return text, stdout, stderr


def long_text(event: Mapping[str, Any]) -> str | None:
    """The text of an event if it is longer than a row keeps; else None."""
    record = Record("event", dict(event))
    text = _text_of(record, payload_of(record))[0]
    return text if text is not None and len(text) > LONG else None


def _origin(record: Record, payload: Record) -> str | None:
    """The origin that an event states; if event and payload disagree, the one that is not the user."""
    named = [payload.text("origin", "actor", "role"), record.text("origin", "actor", "role")]
    speakers = [
        {"human": "user", "assistant": "model", "harness": "system"}.get(each.strip().lower(), each.strip().lower())
        for each in named
        if each
    ]
    return next((each for each in speakers if _SPEAKERS.get(each) != "user"), speakers[0] if speakers else None)


def _narrowest(words: Vocabulary, records: Iterable[Record], *names: str) -> str | None:
    """The most restrictive word of a vocabulary, ordered from open to closed, that any of the records has."""
    found = [word for each in records if (word := each.word(words, *names))]
    return max(found, key=words.values.index, default=None)


def sight_of(*records: Record) -> dict[str, str]:
    """The zone and the visibility of records, the most restrictive of each; a record and its container both count."""
    zone, visibility = (
        _narrowest(ZONES, records, "zone", "sensitivity"),
        _narrowest(VISIBILITIES, records, "visibility"),
    )
    return {name: value for name, value in (("zone", zone), ("visibility", visibility)) if value is not None}


def _cut(text: str, most: int = LONG) -> str:
    """The beginning and the end of a long text, and the number of characters between."""
    half = most // 2
    head, tail = text[:half].rsplit("\n", 1)[0], text[-half:].split("\n", 1)[-1]
    return f"{head}\n[... {len(text) - len(head) - len(tail)} characters ...]\n{tail}"


def _first(text: str) -> str:
    """The beginning of a text on one line."""
    one = " ".join(text.split())
    return one if len(one) <= 300 else f"{one[:297]}..."


def _leading(text: str) -> str | None:
    """As many of the first whole sections of a long message as the tail has room for."""
    kept: list[str] = []
    for section in sections(text):
        if sum(map(len, kept)) + len(section) > LONG_MESSAGE:
            break
        kept.append(section)
    return "\n\n".join(kept) or text[:LONG_MESSAGE].rsplit(" ", 1)[0] or None


def match_rows(payload: Record, row: dict[str, Any]) -> list[dict[str, Any]]:
    found = []
    for number, match in enumerate(payload.objects("matches", "results")):
        path = one_path(match.required("path", "file"))
        found.append(
            {
                "session_id": row.get("session_id"), "seq": row.get("seq"), "place": number + 1, "path": path,
                "line": match.whole("line", "lineNumber", what=f"a line number of event {row['event_id']!r}"),
                "text": match.text("text", "content"),
                **flags_of(path, match),
            }
        )  # fmt: skip
    return found


def _found(payload: Record) -> str | None:
    """A one-line summary of the matches of a search."""
    given = payload.value("matches", "results")
    paths = (
        [each.get("path", each.get("file")) for each in given if isinstance(each, Mapping)]
        if isinstance(given, list)
        else []
    )
    named = list(dict.fromkeys(path for path in paths if isinstance(path, str)))
    return (
        f"{counted(len(paths), 'match', 'matches')}: {', '.join(named[:5])}" + (" and more" if len(named) > 5 else "")
        if named
        else None
    )


def _memory_row(payload: Record, *, session_id: str | None, from_seq: int) -> dict[str, Any]:
    """A memory record from its fields (S3.52)."""
    id_ = payload.identifier("memoryId", "memory_id", "id")
    if id_ is None:
        raise InputError.expected("the id of a memory", None, payload.place("memoryId", "id"))
    return {
        "memory_id": id_,
        "session_id": session_id,
        "from_seq": from_seq,
        "text": payload.required("text", "content"),
        "scope": payload.text("scope"),
        "source": payload.text("source"),
        "confidence": payload.number("confidence", least=0, most=1, what="a confidence"),
        "last_verified_at": payload.instant("lastVerifiedAt", "last_verified_at"),
        "expires_at": payload.instant("expiresAt", "expires_at"),
        "lifecycle": payload.word(LIFECYCLES, "lifecycle", "status") or "candidate",
        "source_refs": payload.strings("sourceRefs", "source_refs", "evidence") or [],
        "zone": payload.word(ZONES, "zone") or "internal",
    }


def recalled_row(payload: Record, row: dict[str, Any]) -> dict[str, Any]:
    """A memory that the session recalled."""
    return _governed(_memory_row(payload, session_id=row["session_id"], from_seq=row["seq"]), row["actor"])


def given_memory(record: Record) -> dict[str, Any]:
    """A memory that a caller supplies for every session."""
    origin = _origin(record, record)
    return _governed(_memory_row(record, session_id=None, from_seq=0), "memory" if origin is None else _speaker(origin))


def _governed(memory: dict[str, Any], speaker: str) -> dict[str, Any]:
    """A memory by its source: one from a tool, the model or the web was not governed, so it is a candidate."""
    return memory if speaker in ("memory", "system", "user") else {**memory, "lifecycle": "candidate"}


def _derived(kind: str, payload: Record) -> str | None:
    """The origin of a phase that was not stated but derived by an importer."""
    return DERIVED if kind == "phase.changed" and payload.value("derived") is True else None


def _speaker(origin: str) -> str:
    return _SPEAKERS.get(origin, "tool")
