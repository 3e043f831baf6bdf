"""Probes: the requests of a tenant in every state of the canaries.

Reads rows of the tenant's projects. Gives request fields without ids. Some probes limit a
lane to so few rows that a single canary would displace an answer; one asks for canaries by name.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pyarrow as pa

from ...nodes.vocabulary import PURPOSES
from .angles import Angle

__all__ = ["Probe", "derived", "foreign", "from_angle", "naming"]

_WORD = re.compile(r"[^\W\d_]{3,20}")
_WORDS = 8
"""Words of a row in a question."""
_TIGHT = {"lane_k": 2, "max_items": 3}


@dataclass(frozen=True)
class Probe:
    """A request, and whether it names canaries itself: then its echo in the answer is not a leak."""

    name: str
    fields: dict[str, Any]
    names_canaries: bool = False


def derived(evidence: pa.Table, project: str, count: int, as_of: datetime, seed: str) -> list[Probe]:
    """Questions made of words of up to `count` rows, with their symbols and paths as anchors."""
    ids = evidence["evidence_id"].to_pylist()
    order = sorted(range(len(ids)), key=lambda row: hashlib.sha256(f"{seed}{ids[row]}".encode()).digest())
    probes = []
    for row in order:
        text, path, symbols = (evidence[name][row].as_py() for name in ("text", "path", "symbols"))
        words = list(dict.fromkeys(_WORD.findall(text[:4000])))[:_WORDS]
        if not words:
            continue
        number = len(probes)
        fields: dict[str, Any] = {
            "question": " ".join(words),
            "project": project,
            "purpose": PURPOSES.values[number % len(PURPOSES.values)],
            "time": {"as_of": as_of.isoformat()},
            "anchors": {"symbols": (symbols or [])[:2] or None, "current_files": [path] if path else None},
        }
        if number % 2:
            fields["budget"] = _TIGHT
        probes.append(Probe(f"row {number + 1}", fields))
        if len(probes) == count:
            break
    return probes


def naming(tokens: Sequence[str], ids: Sequence[str], project: str, as_of: datetime) -> Probe:
    """A request that asks for canaries by word, symbol, path and id."""
    fields = {
        "question": " ".join([*tokens[:6], *ids[:2]]),
        "project": project,
        "purpose": "explain-code",
        "time": {"as_of": as_of.isoformat()},
        "anchors": {"symbols": [*tokens[:4]], "current_files": [f"{token}.md" for token in tokens[:3]]},
    }
    return Probe("canaries by name", fields, names_canaries=True)


def foreign(project: str, number: int, as_of: datetime) -> Probe:
    """A request in a project that is not the tenant's, or that does not exist: the answers must not differ."""
    time = {"as_of": as_of.isoformat()}
    fields = {"question": "what is there?", "project": project, "purpose": "answer-question", "time": time}
    return Probe(f"foreign project {number}", fields)


def from_angle(probe: Probe, angle: Angle) -> Probe:
    """The probe with the fields of the angle added; the probe takes precedence, and `time` is merged."""
    asked = {**angle.asked, **probe.fields, "time": {**angle.asked.get("time", {}), **probe.fields["time"]}}
    return replace(probe, fields=asked)
