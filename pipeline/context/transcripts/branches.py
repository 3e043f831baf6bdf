"""Branches of a transcript: a rewound conversation continues from an earlier record and abandons the records after it.

Records of Claude Code name their parent record (`parentUuid`). The current conversation is found by walking back from
the last message (S3.63); a compaction begins a new tree that names the old one as `logicalParentUuid`, if at all.
Rewinding to the first prompt also begins a new tree, with words of the user: the records before it are abandoned.

Note:
    Records off this path are not necessarily on a rewound branch: results of tools that ran concurrently are siblings,
    of which only one is on the path. A branch was rewound if it has words of the user, or another response of the
    model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = ["rewound"]

Record = Mapping[str, Any]


def rewound(records: Sequence[Record], by_user: Callable[[Record], bool]) -> set[int]:
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
