"""Session logs for tests of the context policy, written event by event, and what is made of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from scoped_retrieval.pipeline.context.policy import ContextPolicy
from scoped_retrieval.pipeline.context.projection import Projection

START = datetime(2026, 5, 20, 8, 0, tzinfo=UTC)
RULES = ("Only modify the current workspace.", "Never publish a package.")
TOOLS = (
    {"name": "read_file", "capability": "read"}, {"name": "search", "capability": "search"},
    {"name": "run_command", "capability": "run_read_only"}, {"name": "apply_patch", "capability": "edit"},
    {"name": "web", "capability": "external"},
)  # fmt: skip


class Session:
    """Events in their order; every method adds one and gives its id."""

    def __init__(self, goal: str | None = "Fix the failing tests.") -> None:
        self.events: list[dict[str, Any]] = []
        if goal is not None:
            self.add("user.goal", turn=0, text=goal)

    def add(self, kind: str, *, turn: int | None = None, top: Mapping[str, Any] | None = None, **payload: Any) -> str:
        number = len(self.events)
        at = START + timedelta(minutes=number)
        id_ = f"e{number}"
        event = {
            "id": id_,
            "turnId": None if turn is None else str(turn),
            "kind": kind,
            "createdAt": at.isoformat(),
            "payload": payload,
        }
        self.events.append({**event, **(top or {})})
        return id_

    def failing(self, text: str, *, turn: int = 1, command: str = "pnpm test", **payload: Any) -> str:
        return self.add("command.finished", turn=turn, command=command, exitCode=1, stdout=text, **payload)


def memory(id_: str = "m1", text: str = "This project uses pnpm.", **fields: Any) -> dict[str, Any]:
    """A governed memory; a field of None is left out."""
    record = {
        "memoryId": id_, "text": text, "scope": "shop", "source": "user", "confidence": 0.9, "lifecycle": "verified",
        "lastVerifiedAt": "2026-05-10T00:00:00Z", "expiresAt": "2026-12-01T00:00:00Z", "sourceRefs": ["package.json"],
    } | fields  # fmt: skip
    return {name: value for name, value in record.items() if value is not None}


def item(
    label: str = "code#1", path: str = "src/a.ts", text: str = "export const a = 1;", **fields: Any
) -> dict[str, Any]:
    return {"label": label, "path": path, "text": text, "line": 1} | fields


def snapshot(*items: Mapping[str, Any], name: str = "snap-1", ref: str = "abc0") -> dict[str, Any]:
    return {"snapshot_id": name, "block_ref": ref, "items": list(items)}


def policy(rules: Any = RULES, tools: Any = TOOLS, **defaults: Any) -> ContextPolicy:
    return ContextPolicy(rules=rules, tools=tools, checks=["pnpm test"], defaults={"project": "shop", **defaults})


def projected(
    session: Session | None = None,
    *,
    rules: Any = RULES,
    tools: Any = TOOLS,
    defaults: Mapping[str, Any] | None = None,
    **given: Any,
) -> Projection:
    """The input at the end of a session."""
    budget = given.pop("budget", {"maxTokens": 20_000})
    events = (session or Session()).events
    return policy(rules, tools, **(defaults or {})).project(events=events, budget=budget, **given)


def reasons(seen: Projection) -> dict[str, str]:
    """The reason of every source."""
    return {row["source_id"]: row["reason_code"] for row in seen.decisions}


def modes(seen: Projection) -> dict[str, str]:
    """The mode of every source."""
    return {row["source_id"]: row["mode"] for row in seen.decisions}
