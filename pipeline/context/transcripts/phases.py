"""Phases of an imported session, derived from what was done in it: neither transcript states one.

Gives `with_phases`, the events with a `phase.changed` where another phase begins:

| what the session does | phase |
| --- | --- |
| the first request to the model | `diagnosing` |
| the agent enters its plan mode (`EnterPlanMode`) | `planning` |
| the user writes in plan mode (`permissionMode` of Claude Code) | `planning` |
| its plan is approved (`ExitPlanMode` is not refused), the user leaves plan mode, or a tool of edits or a patch of it changes a file | `editing` |
| a check runs (pytest, a linter, a build; see `check_lines`) behind such a change | `verifying` |

Note: such an event says `derived`, and the state shows its phase as a guess. A list of steps (`TodoWrite`, `update_plan`) is kept in every
phase and shows none, and neither does a message: it may end a task or go on with it. What follows from an event depends on those before it alone, so that
a transcript that has grown gives the same events again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..check_lines import checks_of

__all__ = ["with_phases"]

_PLANNED = {"EnterPlanMode": "planning", "ExitPlanMode": "editing"}


def with_phases(events: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Events of a transcript with those of its phases, which are no key events: the tail of an input has room for others."""
    found: list[dict[str, Any]] = []
    phase, changed = None, False
    for event in events:
        kind, payload, shown = event["kind"], event["payload"], phase
        if kind == "model.request" and phase is None:
            phase = "diagnosing"
            found.append(_event(event, phase))  # in front of the request: its input is of this phase
            shown = phase
        found.append(dict(event))
        if kind == "command.finished":
            shown = _PLANNED.get(payload.get("tool", ""), phase)
            if changed and phase == "editing" and checks_of(payload.get("command", "")):
                shown, changed = "verifying", False
        elif _is_edit(event):
            shown, changed = "editing", True
        elif mode := payload.get("permissionMode"):
            shown = "planning" if mode == "plan" else "editing" if phase == "planning" else phase
        if shown is not None and shown != phase:
            phase = shown
            found.append(_event(event, phase))
    return found


def _event(event: Mapping[str, Any], phase: str) -> dict[str, Any]:
    said = {"phase": phase, "derived": True}
    return {**event, "id": f"{event['id']}:phase", "kind": "phase.changed", "payload": said, "key": False}


def _is_edit(event: Mapping[str, Any]) -> bool:
    """Whether the agent changed a file: what the harness noted, someone else may have changed."""
    return event["kind"] == "file.modified" and not event["payload"].get("noted")
