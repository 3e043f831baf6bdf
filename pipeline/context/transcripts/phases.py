"""Phases of an imported session, derived from its events: neither kind of transcript states them.

Gives `with_phases`, the events with a `phase.changed` at the beginning of each phase:

| what the session does | phase |
| --- | --- |
| the first request to the model | `diagnosing` |
| the agent enters its plan mode (`EnterPlanMode`) | `planning` |
| the user writes in plan mode (`permissionMode` of Claude Code) | `planning` |
| its plan is approved (`ExitPlanMode` is not refused), the user leaves plan mode, or an edit tool or a patch changes a file | `editing` |
| a check runs (pytest, a linter, a build; see `check_lines`) after such a change | `verifying` |

Note: such an event is marked `derived`, and the state shows its phase as a guess. A list of steps (`TodoWrite`,
`update_plan`) is maintained in every phase and indicates none, and neither does a message, which may end a task or
continue it. A phase depends only on earlier events, so a transcript that has grown yields the same events again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..check_lines import checks_of

__all__ = ["with_phases"]

_PLANNED = {"EnterPlanMode": "planning", "ExitPlanMode": "editing"}


def with_phases(events: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Events of a transcript with those of its phases, which are not key events and so take no room in the tail."""
    found: list[dict[str, Any]] = []
    phase, changed = None, False
    for event in events:
        kind, payload, shown = event["kind"], event["payload"], phase
        if kind == "model.request" and phase is None:
            phase = "diagnosing"
            found.append(_event(event, phase))  # before the request: its input is of this phase
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
    payload = {"phase": phase, "derived": True}
    return {**event, "id": f"{event['id']}:phase", "kind": "phase.changed", "payload": payload, "key": False}


def _is_edit(event: Mapping[str, Any]) -> bool:
    """Whether the agent changed a file; a change that the harness merely noted may be someone else's."""
    return event["kind"] == "file.modified" and not event["payload"].get("noted")
