"""Rules and constraints of different levels that speak of the same thing.

Gives `meeting`: whether they agree is not judged; they are shown together, each under its level (S3.47).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["meeting"]


def meeting(sources: Sequence[Mapping[str, Any]], rules: Sequence[Mapping[str, Any]]) -> set[int]:
    """The places of those sources that share a declared topic with a source of another level, or that are files of
    rules for one folder, or for one inside the other, without declared topics: both then apply to the files of the inner.
    """
    found: set[int] = set()
    held = [(n, _level(source, rules)) for n, source in enumerate(sources)]
    named = [(n, level) for n, level in held if level is not None]
    for place, (n, (level, topics, folder)) in enumerate(named):
        for m, (other, theirs, outer) in named[place + 1 :]:
            nested = not topics and not theirs and None not in (folder, outer) and _nested(str(folder), str(outer))
            if level != other and (topics & theirs or nested):
                found |= {n, m}
    return found


def _level(source: Mapping[str, Any], rules: Sequence[Mapping[str, Any]]) -> tuple[str, set[str], str | None] | None:
    """Level, declared topics and folder of a rule or a constraint; None for other sources."""
    if source["source_kind"] in ("system_rules", "repository_instructions"):
        rule = rules[source["row"]]
        folder = (rule["folder"] or "") if rule["path"] else None
        return f"{rule['origin']} {rule['folder'] or ''}", set(rule["topics"] or ()), folder
    if source["source_kind"] == "active_constraint" and source["standing"] == "instruction":
        detail = json.loads(source["detail"])
        return str(detail["origin"]), {detail["topic"]} - {None}, None
    return None


def _nested(folder: str, outer: str) -> bool:
    short, long = sorted((folder, outer), key=len)
    return not short or long == short or long.startswith(f"{short}/")
