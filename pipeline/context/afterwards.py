"""Afterwards: what the model did with a source that its input had, as far as the log says.

Gives `afterwards`, the last three layers of S3.43, and the names by which the model may name a source: `names_of` a row of the ledger
and `names_of_file`.

Note: a verdict that a model did not use a source needs proof: the source has a name, the model acted, the whole text
of what it did is there, and nothing of it names the source. A rule is followed and seldom named.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import takewhile
from pathlib import PurePosixPath
from typing import Any

__all__ = ["afterwards", "names_of", "names_of_file"]

Row = Mapping[str, Any]

SAYS = {
    "model_did_not_use": "it is in the input, and no action of the model names it",
    "tool_execution_wrong": "the model used it, and the tool failed",
    "verification_missing": "the model used it and changed files, and no check ran after that",
}
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W_a-zA-Z0-9]+")
"""A part of a name: `AuthService`, `auth_service` and `auth-service` have the same ones, `code#1` has those of `code 1`."""
_OF_FOLDER = ("index", "__init__", "mod")
"""Files that are known by the names of their folders."""


def names_of(row: Row) -> set[str]:
    """By what the model may name a source of a ledger: its file, its evidence, or its label."""
    if row["standing"] == "instruction":
        return set()
    labels = row["source_id"].split(":", 2)[2:] if row["source_kind"] == "retrieval_result" else ()
    return {name for name in (*names_of_file(row["path"] or ""), row["evidence_id"], *labels) if name}


def names_of_file(path: str) -> set[str]:
    """By what the model may name a file, its folders and its ending left out."""
    file = PurePosixPath(path)
    short = {file.stem if len(file.stem) > 3 else file.name}
    return {name for name in (short | {file.parent.name} if file.stem in _OF_FOLDER else short) if name}


def afterwards(as_of: int, events: Sequence[Row], names: Collection[str]) -> tuple[str, str] | None:
    """The layer at which a source with some names was lost behind the input before event `as_of`, and what happened there; None where
    nothing went wrong, or that cannot be known.
    """
    behind = [event for event in events if event["seq"] >= as_of]
    if behind and behind[0]["kind"] == "model.request":
        behind = behind[1:]
    ends = (place for place, event in enumerate(behind) if event["kind"] in ("model.request", "user.goal"))
    answer = behind[: next(ends, len(behind))]
    acts = [event for event in answer if event["actor"] in ("model", "tool")]
    if not acts or not names:
        return None
    if not any(map(_naming(names), map(_said, acts))):
        whole = not any(event["cut"] for event in acts if _is_text_of_model(event))
        return ("model_did_not_use", SAYS["model_did_not_use"]) if whole else None
    for event in answer:
        if event["kind"] == "tool.error" or event["observation_class"] == "timeout":
            return "tool_execution_wrong", f"{SAYS['tool_execution_wrong']}: event {event['event_id']}"
    changed = None
    for event in takewhile(lambda each: each["kind"] != "user.goal", behind):  # the next goal is another task
        if event["kind"] == "file.modified":
            changed = event
        elif changed is not None and _is_check(event):
            return None
    said = f"{SAYS['verification_missing']} (after event {changed and changed['event_id']})"
    return None if changed is None else ("verification_missing", said)


def _is_text_of_model(event: Row) -> bool:
    """Whether the text of an event is what the model wrote, and not what a tool printed."""
    return event["actor"] == "model" or event["kind"] == "file.modified"


def _said(event: Row) -> str:
    """What an act of the model says of its sources: a call may be known by its result alone."""
    text = event["text"] if _is_text_of_model(event) else None
    said = (text, event["command"], event["path"], *(event["evidence_ids"] or ()))
    return unicodedata.normalize("NFC", "\n".join(filter(None, said)))


def _naming(names: Iterable[str]) -> Any:
    """Finds any of some names in a text, however their parts are joined and in any case."""
    parts = (r"[\W_]*".join(map(re.escape, _PART.findall(name))) or re.escape(name) for name in names)
    return re.compile(rf"(?i)(?<![a-z0-9])(?:{'|'.join(parts)})(?![a-z0-9])").search


def _is_check(event: Row) -> bool:
    own = event["kind"] == "command.finished" and event["origin"] == "tool"
    reported = event["actor"] in ("model", "memory") or (event["actor"] == "tool" and event["origin"] and not own)
    return event["check_outcome"] in ("passed", "failed") and not reported
