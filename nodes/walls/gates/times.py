"""The times at which a row was recorded, valid and current: the seven time gates.

Note: their predicate is one kernel over (row, instant) pairs, `time_gates`, because a batch has thousands of instants.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from .gate import ANGLES, BOUNDED, Bounds, Canary, Case, Contract, Gate, Ground, Opening, Row, Rule

_FAR = timedelta(days=36_500)
_DAY = timedelta(days=1)


def _instant(value: datetime | None) -> str:
    return "open" if value is None else value.isoformat().replace("+00:00", "Z")


def _at(says: str) -> Callable[[Contract, Bounds], Rule]:
    return lambda contract, bounds: ("as_of", says.format(_instant(contract["as_of"])))


def _standing(says: str) -> Callable[[Contract, Bounds], Rule]:
    """Explains a gate for text that has ended, which passes only if the mode shows history."""

    def rule(contract: Contract, bounds: Bounds) -> Rule:
        if contract["include_deleted"]:
            return f"mode {contract['mode']}", "What had ended too, as history."
        return _at(says)(contract, bounds)

    return rule


def _window(field: str, says: str) -> Callable[[Contract, Bounds], Rule]:
    def rule(contract: Contract, bounds: Bounds) -> Rule:
        value = contract[field]
        return ("", "Open.") if value is None else ("request.time", says.format(value.isoformat()))

    return rule


def _another_instant(case: Case) -> Opening:
    row, asked = case.row, case.contract["as_of"]
    spans = []
    for placed in case.placements:
        start = max(filter(None, (placed["recorded_time"], row["valid_from"])))
        ends = [end for end in (placed["superseded_at"], placed["deleted_at"], row["valid_until"]) if end]
        if not ends or start < min(ends):
            spans.append((start, min(ends) if ends else None))
    if not spans:
        return Opening(f"as_of {_instant(asked)}", "another row: this one was never valid while it existed", False)
    case.contract["as_of"] = spans[-1][0]
    periods = [f"from {_instant(start)}" + (f" until {_instant(end)}" if end else " on") for start, end in spans]
    return Opening(f"as_of {_instant(asked)}", f"an as_of {' or '.join(periods)}")


def _another_window(case: Case) -> Opening:
    start, end = case.contract["window_start"], case.contract["window_end"]
    case.contract |= {"window_start": None, "window_end": None}
    happened = case.row["event_time"] or case.placements[-1]["recorded_time"]
    rule = f"request.time: from {_instant(start)} to {_instant(end)}"
    return Opening(rule, f"a window that has {_instant(happened)} in it")


def _shifted(name: str, days: int) -> Callable[[Ground], Row]:
    """A row with an instant some days from the request's `as_of`."""
    return lambda ground: {name: ground.as_of + days * _DAY}


def _bounds_of(ground: Ground) -> tuple[datetime, datetime]:
    return ground.as_of - _FAR, ground.as_of - timedelta(hours=3)


def _asked_window(ground: Ground) -> Mapping[str, Any]:
    start, end = _bounds_of(ground)
    return {"time": {"include_after": start.isoformat(), "exclude_after": end.isoformat()}}


def _gate(
    name: str,
    reason_code: str,
    doc: str,
    explain: Callable[[Contract, Bounds], Rule],
    remedy: Callable[[Case], Opening],
    canary: Callable[[Ground], Row],
) -> Gate:
    windowed = name.startswith("window_")
    asked = _asked_window if windowed else lambda ground: {}
    planted = Canary(name, canary, asked, (BOUNDED,) if windowed else ANGLES)
    return Gate(name, "time", reason_code, doc, explain=explain, remedy=remedy, canaries=(planted,))


RECORDED = _gate(
    "recorded",
    "after_as_of",
    "it was recorded at or before as_of",
    _at("Rows recorded by {}."),
    _another_instant,
    _shifted("recorded_time", 1),
)
SUPERSEDED = _gate(
    "superseded",
    "superseded",
    "no other text had taken its place at as_of",
    _standing("Rows that no other text had replaced by {}."),
    _another_instant,
    _shifted("superseded_at", -1),
)
DELETED = _gate(
    "deleted",
    "deleted",
    "it was not removed at as_of",
    _standing("Rows that were not removed by {}."),
    _another_instant,
    _shifted("deleted_at", -1),
)
VALID_FROM = _gate(
    "valid_from",
    "not_yet_valid",
    "its validity has begun at as_of",
    _at("Rows whose validity had begun by {}."),
    _another_instant,
    _shifted("valid_from", 1),
)
VALID_UNTIL = _gate(
    "valid_until",
    "expired",
    "its validity has not ended at as_of",
    _at("Rows whose validity had not ended by {}."),
    _another_instant,
    _shifted("valid_until", -1),
)
WINDOW_START = _gate(
    "window_start",
    "before_window",
    "it did not happen before the window",
    _window("window_start", "Rows that happened from {} on."),
    _another_window,
    lambda ground: {"event_time": _bounds_of(ground)[0] - _DAY},
)
WINDOW_END = _gate(
    "window_end",
    "after_window",
    "it happened before the window's end",
    _window("window_end", "Rows that happened before {}."),
    _another_window,
    lambda ground: {"event_time": _bounds_of(ground)[1] + timedelta(hours=1)},
)

IN_ORDER = (RECORDED, SUPERSEDED, DELETED, VALID_FROM, VALID_UNTIL, WINDOW_START, WINDOW_END)
"""The time gates in the order of the ladder."""
