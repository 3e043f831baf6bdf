"""The outcome of a command or a verification by its fields, and the parts that a verification lists.

Gives: `says`, `code_of` an object, and `Listed`, a verification or a part of one.

Note: if fields disagree, a failure takes precedence over a running check, then an incomplete one, then a pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from ..sources.jsonl import Record
from .endings import BROKEN_OFF, CODES, ENDING_FIELDS, RUNS_ON, SAYING, ending, truth
from .verified_parts import LABELS, PLACES, VerifiedPart, named

__all__ = ["Listed", "code_of", "says"]

_FLAGS = {"failed": False, "isError": False, "is_error": False, "passed": True, "success": True, "ok": True}
"""Fields in which a harness reports whether a command or a verification passed, with their meaning if true."""
_STATES = {
    **dict.fromkeys(("passed", "pass", "success", "succeeded", "ok"), "passed"),
    **dict.fromkeys(("failed", "fail", "failure", "error", "errored"), "failed"),
    **dict.fromkeys(("timeout", "timed_out", "killed"), "failed"),
    **dict.fromkeys(("running", "pending", "queued", "started", "in_progress"), "running"),
    **dict.fromkeys(("skipped", "not_run", "interrupted", "cancelled", "canceled", "aborted"), "short"),
}
"""Words of `status` and `outcome`; other words do not report the outcome of a check."""
_MOST = 64
"""Longest list whose names count one by one."""
_NAMED = (*LABELS, *SAYING, "results")
"""Fields whose objects may map names to outcomes: `checks: {"lint": "failed"}`."""
_COUNTS = ("counts", "stats")
_OF_MUTANTS = ("killed", "timedOut", "timed_out")
"""Counts of mutants that were found."""
_LISTS = frozenset((*_NAMED, *PLACES, "jobs", "steps", "stages", *_COUNTS))
"""Fields whose objects report outcomes or counts."""
_COPIED = frozenset((*_FLAGS, *SAYING, *CODES, *ENDING_FIELDS, *chain.from_iterable(RUNS_ON)))
"""Fields of a verification that apply to each name in its list."""
_STREAMS = ("stdout", "stderr")
_RESULT = frozenset((*ENDING_FIELDS, *_STREAMS))
"""Fields of the result of a command, which are not names of checks."""
_WORDS = ("command", "tool", "toolName", "text", "message", "output", "summary")


@dataclass(frozen=True)
class Listed:
    """A verification, or a part that one lists, without its own parts."""

    payload: Record
    lists: bool

    @classmethod
    def of(cls, payload: Record) -> list[Listed]:
        """A verification, followed by all parts that it lists: objects in its fields that have a name or a command, and
        an outcome; and each of a list of names (`checks: ["pytest", "ruff"]`), with the outcome of the verification.
        """
        waiting, found = [payload], list[Listed]()
        for one in waiting:  # grows in the loop
            parts = {
                field: [*filter(_is_part, [*_objects(one, field), *_names(one, field)])]
                for field in _LISTS & one.fields.keys()
            }
            listed = [each for field in one.fields for each in parts.get(field, ())]
            kept = {field: _without(value, parts.get(field, ())) for field, value in one.fields.items()}
            found.append(cls(Record(one.at, kept), bool(listed)))
            waiting += listed
        return found


def says(payload: Record) -> str | None:
    """The outcome in the fields: `failed` if any of them, or an object without a name in one, reports it; `running`;
    `short` if something did not run, or fewer passed than there are; `passed`; or None.
    """
    outcomes = _own(payload)
    for field in _LISTS & payload.fields.keys():
        for one in _objects(payload, field):
            outcomes |= set() if _is_part(one) else _of_result(one, counts=field in _COUNTS)
    return next((each for each in ("failed", "running", "short", "passed") if each in outcomes), None)


def _of_result(one: Record, *, counts: bool) -> set[str]:
    """Everything that an object without a name reports but a pass. In `counts`, `killed` is a number of mutants."""
    aside = () if not counts else _OF_MUTANTS if "survived" in one.fields else ("killed",)
    ended = ending(Record(one.at, {name: each for name, each in one.fields.items() if name not in aside}), None, None)
    failed = {"failed"} if code_of(one) or (ended and ended not in BROKEN_OFF) else set[str]()
    return (_own(one) - {"passed"}) | failed | ({"short"} if ended in BROKEN_OFF else set())


def _own(payload: Record) -> set[str]:
    """All outcomes in the direct fields of an object."""
    outcomes: set[str | None] = set()
    for name, passed in _FLAGS.items():
        known = truth(payload.value(name))
        outcomes |= {None if known is None else "passed" if known is passed else "failed"}
    outcomes |= {"failed" for name in ("failures", "errors") if truth(payload.value(name))}
    outcomes |= {"failed"} if truth(payload.value("error"), unknown=True) else set()
    for name in SAYING:
        outcomes |= {_state(payload.value(name))}
    passed, total = payload.value("passed"), payload.value("total")
    outcomes |= {"short"} if type(passed) is int and type(total) is int and passed < total else set()
    return {each for each in outcomes if each}


def _state(word: Any) -> str | None:
    """The outcome that a word of `status` or `outcome` reports."""
    return _STATES.get(str(word)[:20].strip().lower().replace("-", "_"))


def _is_part(one: Record) -> bool:
    """Whether an object has a name or a command, and an outcome."""
    has_name = named(one, "") != VerifiedPart() or one.text("command", "tool", "toolName") is not None
    return has_name and _says_how(one)


def _says_how(one: Record) -> bool:
    """Whether an object reports an outcome: in words, by an exit code, or by what ended it."""
    return bool(_own(one)) or code_of(one) is not None or ending(one, None, None) is not None


def code_of(one: Record) -> int | None:
    """The exit code in an object; of several, one that is not 0."""
    codes = [code for name in CODES if type(code := one.value(name)) is int]
    return next((code for code in codes if code), 0 if codes else None)


def _objects(payload: Record, field: str) -> Iterator[Record]:
    """The objects in a field; for a map of names to outcomes, an object for each name."""
    value = payload.fields[field]
    for each in value if isinstance(value, list) else [value]:
        if not isinstance(each, Mapping):
            continue
        one = _object(payload.at, each)
        is_map = field in _NAMED and named(one, "") == VerifiedPart() and not _says_how(one)
        if is_map and _has_names(each, checks=field not in SAYING):
            for name, outcome in each.items():
                if not _of_a_command(name, outcome):
                    own = (
                        outcome
                        if isinstance(outcome, Mapping)
                        else {"passed" if isinstance(outcome, bool) else "outcome": outcome}
                    )
                    yield _object(payload.at, {"name": name, **own})
        else:
            yield one


def _has_names(value: Mapping[str, Any], *, checks: bool) -> bool:
    """Whether an object has names of checks as keys, and is not the result of a command. `checks`: its field says so."""
    own = [outcome for name, outcome in value.items() if not _of_a_command(name, outcome)]
    if not value.keys() & _RESULT or any(map(_state, own)):
        return True
    return checks and any(
        isinstance(each, bool) or (isinstance(each, Mapping) and _says_how(_object("", each))) for each in own
    )


def _of_a_command(name: str, outcome: Any) -> bool:
    """Whether an entry is part of the result of a command, as a stream or a flag: a check may be called `timeout`."""
    return name in _STREAMS or (name in _RESULT and not isinstance(outcome, (str, Mapping)))


def _names(payload: Record, field: str) -> Iterator[Record]:
    """The names in a list of several, as objects with the outcome and places of this one; none if it has a command."""
    value, command = payload.fields[field], payload.text("command")
    if field in LABELS and isinstance(value, list) and _are_texts(value) and 1 < len(value) <= _MOST and not command:
        copied = {name: each for name, each in payload.fields.items() if name in _COPIED}
        of = {name: payload.fields[name] for name in PLACES if _are_texts(payload.fields.get(name))}
        yield from (_object(payload.at, {"name": name, **copied, **of}) for name in value)


def _are_texts(value: Any) -> bool:
    """Whether a value is a text or a list of texts."""
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(each, str) for each in value))


def _object(at: str, fields: Mapping[str, Any]) -> Record:
    """An object within a verification, without words that are not text."""
    return Record(at, {name: each for name, each in fields.items() if name not in _WORDS or isinstance(each, str)})


def _without(value: Any, parts: Sequence[Record]) -> Any:
    """The value of a field without its parts."""
    if not parts or not isinstance(value, list):
        return None if parts else value
    if _are_texts(value):  # each text is a part
        return None
    return [each for each in value if not (isinstance(each, Mapping) and _is_part(_object("", each)))]
