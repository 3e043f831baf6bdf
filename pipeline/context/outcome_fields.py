"""What the fields of a command or a verification say of how it came out, and the parts that a verification lists.

Gives: `says`, `code_of` an object, and `Listed`, a verification or a part of one.

Note: where fields do not agree, what failed counts before what still runs, that before what is not whole, and a pass comes last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from ..sources.jsonl import Record
from .endings import CODES, ENDING_FIELDS, RUNS_ON, SAYING, ending, truth
from .verified_parts import LABELS, PLACES, VerifiedPart, named

__all__ = ["Listed", "code_of", "says"]

_TOLD = {"failed": False, "isError": False, "is_error": False, "passed": True, "success": True, "ok": True}
"""Fields by which a harness says how a command or a verification came out, and what it says where they are true."""
_STATES = {
    **dict.fromkeys(("passed", "pass", "success", "succeeded", "ok"), "passed"),
    **dict.fromkeys(("failed", "fail", "failure", "error", "errored"), "failed"),
    **dict.fromkeys(("timeout", "timed_out", "killed"), "failed"),
    **dict.fromkeys(("running", "pending", "queued", "started", "in_progress"), "running"),
    **dict.fromkeys(("skipped", "not_run", "interrupted", "cancelled", "canceled", "aborted"), "short"),
}
"""What `status` and `outcome` say; other words of theirs say nothing of a check."""
_MOST = 64
"""Names of a list that count one by one."""
_NAMED = (*LABELS, *SAYING, "results")
"""Fields whose objects may have a field for every name: `checks: {"lint": "failed"}`."""
_LISTS = frozenset((*_NAMED, *PLACES, "jobs", "steps", "stages", "counts", "stats"))
"""Fields whose objects say how what they name came out, or how many of it."""
_COPIED = frozenset((*_TOLD, *SAYING, *CODES, *ENDING_FIELDS, *chain.from_iterable(RUNS_ON)))
"""Fields of a verification that say of each name in its list what they say of all."""
_WORDS = ("command", "tool", "toolName", "text", "message", "output", "summary")


@dataclass(frozen=True)
class Listed:
    """A verification, or a part that one lists, without the parts that it lists itself."""

    payload: Record
    lists: bool

    @classmethod
    def of(cls, payload: Record) -> list[Listed]:
        """A verification, and behind it all parts that it lists: objects in its fields that have a name or a command, and say how that
        came out; and of a list of names (`checks: ["pytest", "ruff"]`) each, which came out as the verification did.
        """
        waiting, found = [payload], list[Listed]()
        for one in waiting:  # it grows
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
    """What fields say: `failed` where any of them does, or an object in one that names no part; `running`; `short` of what did not run, or
    where fewer passed than there are; `passed`; or nothing.
    """
    said = _own(payload)
    for field in _LISTS & payload.fields.keys():
        for one in _objects(payload, field):
            said |= set() if _is_part(one) else _own(one) - {"passed"} | ({"failed"} if code_of(one) else set())
    return next((each for each in ("failed", "running", "short", "passed") if each in said), None)


def _own(payload: Record) -> set[str]:
    """All that the fields of an object say themselves."""
    said: set[str | None] = set()
    for name, passed in _TOLD.items():
        known = truth(payload.value(name))
        said |= {None if known is None else "passed" if known is passed else "failed"}
    said |= {"failed" for name in ("failures", "errors") if truth(payload.value(name))}
    said |= {"failed"} if truth(payload.value("error"), unknown=True) else set()
    for name in SAYING:
        said |= {_STATES.get(str(payload.value(name))[:20].strip().lower().replace("-", "_"))}
    passed, total = payload.value("passed"), payload.value("total")
    said |= {"short"} if type(passed) is int and type(total) is int and passed < total else set()
    return {each for each in said if each}


def _is_part(one: Record) -> bool:
    """Whether an object has a name or a command, and says how that came out."""
    has_name = named(one, "") != VerifiedPart() or one.text("command", "tool", "toolName") is not None
    return has_name and _says_how(one)


def _says_how(one: Record) -> bool:
    """Whether an object says how something came out: in words, by an exit code, or by what ended it."""
    return bool(_own(one)) or code_of(one) is not None or ending(one, None, None) is not None


def code_of(one: Record) -> int | None:
    """The exit code that an object names; of several the one that is not 0."""
    codes = [code for name in CODES if type(code := one.value(name)) is int]
    return next((code for code in codes if code), 0 if codes else None)


def _objects(payload: Record, field: str) -> Iterator[Record]:
    """The objects in a field, or those of the names in one that has an outcome for every name."""
    value = payload.fields[field]
    for each in value if isinstance(value, list) else [value]:
        if not isinstance(each, Mapping):
            continue
        one = _object(payload.at, each)
        if field in _NAMED and named(one, "") == VerifiedPart() and not _says_how(one):
            for name, said in each.items():
                outcome = (
                    said if isinstance(said, Mapping) else {"passed" if isinstance(said, bool) else "outcome": said}
                )
                yield _object(payload.at, {"name": name, **outcome})
        else:
            yield one


def _names(payload: Record, field: str) -> Iterator[Record]:
    """The names in a list of several, as objects that say what this one says, and of what; of a command they are what it runs."""
    value, command = payload.fields[field], payload.text("command")
    if field in LABELS and isinstance(value, list) and _are_texts(value) and 1 < len(value) <= _MOST and not command:
        said = {name: each for name, each in payload.fields.items() if name in _COPIED}
        of = {name: payload.fields[name] for name in PLACES if _are_texts(payload.fields.get(name))}
        yield from (_object(payload.at, {"name": name, **said, **of}) for name in value)


def _are_texts(value: Any) -> bool:
    """Whether a field holds a text, or texts alone."""
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(each, str) for each in value))


def _object(at: str, fields: Mapping[str, Any]) -> Record:
    """An object within a verification; of its words those that are text."""
    return Record(at, {name: each for name, each in fields.items() if name not in _WORDS or isinstance(each, str)})


def _without(value: Any, parts: Sequence[Record]) -> Any:
    """What a field holds besides its parts."""
    if not parts or not isinstance(value, list):
        return None if parts else value
    if _are_texts(value):  # each of them is a part
        return None
    return [each for each in value if not (isinstance(each, Mapping) and _is_part(_object("", each)))]
