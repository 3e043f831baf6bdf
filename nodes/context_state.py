"""Context state: the session log folded into the state of the agent, as of a turn.

Reads: a turn, and the events before it, folded. Gives `turn_states`, document 003's AgentState, one row.

Note: nothing is guessed. A check has the status of its last run; what no event states is unknown and said to be. Words
in zones that the turn may not see are not in its state.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from .context_tables import TURN_STATES, TurnStates
from .turns.folding import Fact, Folded, observation
from .turns.reading import Row

PLACE = re.compile(r"(?<![\w@+~./-])([\w@+~./-]+\.[A-Za-z]\w{0,5}):\d+")
"""`path:line`, as compilers, linters and test runners print places."""
_FRAME = re.compile(r'File "([^"\n]+)", line \d+')
"""A frame of Python."""
LISTED = 40
"""Most read files and artifacts that a state lists, the last ones first."""


def turn_states(context_turn: Row, folded: Folded) -> TurnStates:
    """The state of the turn: `folded` are the events before it."""
    turn, zones = context_turn, context_turn["zones"]

    def newest(slot: str) -> Fact | None:
        return folded.one(slot, zones)

    goal, phase, plan, command, latest = (newest(slot) for slot in ("goal", "phase", "plan", "command", "observation"))
    checks = list(_checks(folded, zones, turn["checks"]))
    failing = [each for each in checks if each["status"] == "failed"]
    unstated = newest("unstated")
    return TURN_STATES.from_rows([{
        "input_id": turn["input_id"],
        "user_goal": goal.value if goal else None,
        "phase": turn["phase"] or (phase.value if phase else "diagnosing"),
        "phase_stated": bool(turn["phase"] or phase),
        "constraints": _json(
            {"id": f.fact, "origin": f.origin, "topic": f.status, "text": f.value, "event_id": f.event_id, "zone": f.zone,
             "proposed": slot == "proposal"}
            for slot in ("constraint", "proposal") for f in folded.facts(slot, zones)
        ),
        "plan": plan.value if plan else None,
        "latest_command": f"{command.value} ({command.detail or 'outcome unknown'})" if command else None,
        "latest_observation": json.dumps(observation(latest.value), ensure_ascii=False) if latest else None,
        "checks": _json(checks),
        "failure_paths": sorted({path for each in failing for path in _paths_in(each["summary"]) + _paths_in(each["excerpt"])}),
        "modified_files": [f.fact for f in reversed(folded.facts("modified", zones))],
        "unstated_changes": unstated.value if unstated else 0,
        "read_files": [f.fact for f in reversed(folded.facts("read", zones))][:LISTED],
        "artifact_refs": [f.fact for f in reversed(folded.facts("artifact", zones))][:LISTED],
        "approvals": _json({"id": f.fact, "status": f.status, "text": f.value, "event_id": f.event_id} for f in reversed(folded.facts("approval", zones))),
        "revoked": [f.fact for f in folded.facts("revoked")],
        "turn_count": folded.rounds,
    }])  # fmt: skip


def _checks(folded: Folded, zones: list[str], declared: list[str]) -> Iterator[dict[str, Any]]:
    """Declared checks that never ran; then the last run of each, the newest last, and whether files changed since."""
    ran = {fact.fact for fact in folded.facts("check", zones)}
    for name in declared:
        if name not in ran:
            nothing = dict.fromkeys(("command", "summary", "excerpt", "event_id"))
            yield {"name": name, "status": "unknown", **nothing, "changed_since": "no"}
    changed = max((fact.seq for fact in folded.last_change.values()), default=-1)
    unstated = folded.one("unstated")
    for fact in folded.facts("check", zones):
        since = "yes" if changed > fact.seq else "unknown" if unstated and unstated.seq > fact.seq else "no"
        yield {
            "name": fact.fact, "status": fact.status, "command": fact.detail, "summary": _line(fact.value), "excerpt": fact.value,
            "event_id": fact.event_id, "changed_since": since,
        }  # fmt: skip


def _paths_in(text: str | None) -> list[str]:
    """The files of the places that a text names."""
    return PLACE.findall(text or "") + _FRAME.findall(text or "")


def _line(text: str | None) -> str | None:
    return " ".join(text.splitlines()[0].split())[:400] if text and text.strip() else None


def _json(values: Any) -> str:
    return json.dumps(list(values), ensure_ascii=False)
