"""The state of a session, folded from its events: facts that later events replace or end.

    folded = Folded()
    for row in events:
        folded.add(row)
    folded.facts("modified")          # newest last

Gives: `Folded`, and `SLOTS`, what it keeps. Only fields of events decide; no text is interpreted.

Note: a fact is kept per zone, so that words of a zone that a turn may not see replace nothing that it may. Events that
are not model-visible say nothing: of them only what they end and which files they change is kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from .words import MAY_CHANGE, OBSERVATIONS, USER_WORDS

SLOTS: Mapping[str, str] = {
    "goal": "the goal in the user's words",
    "word": "by event: the user's own words; detail: see `counted_as`",
    "constraint": "by id: a declared constraint; status: its topic; origin: user, repository or system; detail: see `counted_as`",
    "proposal": "by id: a goal or constraint of another than the user; detail: see `counted_as`",
    "phase": "the phase",
    "plan": "the model's plan",
    "history": "the newest summary of earlier rounds; detail: what it refers to",
    "command": "the last command; detail: how it ended",
    "check": "by name: what its last run says, its summary in the first line; status: passed, failed or unknown; detail: the command",
    "observation": "the last result of a tool: its event, or an object of document 003 (S3.50)",
    "modified": "by path: the file was changed",
    "changed": "by path: an event that is not model-visible changed it",
    "unstated": "commands that may have changed files without saying so, since files were last stated: their number",
    "read": "by path: the file was read",
    "artifact": "by reference: an artifact",
    "approval": "by request: asked for, or denied, and not granted since; status: requested or denied",
    "revoked": "by id: a memory that no longer holds",
    "retrieved": "by id: a retrieval snapshot that an event created",
    "turns": "number of rounds",
    "kind": "by kind of event, see `counted_as`: how many, and their first and last place",
}
FRAME = 40
"""Characters of the frame of a message, or of an event in the tail."""
_HARNESS = ("user", "system")
_ENDED_CALLS = ("command.finished", "tool.finished")


class Fact(NamedTuple):
    """One fact of a slot: `fact` is its name there, a path or an id, if a slot has several; `seq` is -1 before the log."""

    fact: str = ""
    value: Any = None
    detail: Any = None
    status: str | None = None
    origin: str | None = None
    zone: str = "internal"
    event_id: str = "state"
    seq: int = -1


class Folded:
    """Facts by slot, name and zone, the newest last. `facts` are those from before the log, each with its slot."""

    def __init__(self, facts: Iterable[tuple[str, Fact]] = ()) -> None:
        self._slots: dict[str, dict[tuple[str, str], Fact]] = {slot: {} for slot in SLOTS}
        self.last_change: dict[str, Fact] = {}
        """The last change of each file, whatever its zone; detail: its time."""
        self.turn = -1
        for slot, fact in facts:
            self._keep(slot, fact)

    def facts(self, slot: str, zones: Collection[str] | None = None) -> list[Fact]:
        """The facts of a slot that these zones may see, one of each name, the newest last."""
        held = self._slots[slot].values()
        newest = {fact.fact: fact for fact in held if zones is None or fact.zone in zones}
        if len(newest) == len(held):
            return list(held)
        return sorted(newest.values(), key=lambda fact: fact.seq)

    def one(self, slot: str, zones: Collection[str] | None = None) -> Fact | None:
        """The newest fact of a slot."""
        found = self.facts(slot, zones)
        return found[-1] if found else None

    @property
    def rounds(self) -> int:
        """Number of rounds, those before the log included."""
        before = self._slots["turns"].get(("", "internal"))
        return self.turn + 1 + (int(before.value) if before else 0)

    def add(self, row: Mapping[str, Any]) -> None:
        """The next event."""
        kind, actor, id_ = row["kind"], row["actor"], row["event_id"]
        subject = row["subject"] or id_
        self.turn = row["turn"]
        self._count(row)
        self._ended(kind, actor, subject)
        self._changes(row)
        if row["visibility"] != "model-visible":
            return
        if kind in USER_WORDS and actor == "user" and row["text"]:
            self._set(row, "word", id_, row["text"], counted_as(row))
            if kind == "user.goal":
                self._set(row, "goal", "", row["text"])
        if kind == "user.constraint" or (kind == "user.goal" and actor != "user"):
            stated = actor in ("user", "system", "repository") and kind == "user.constraint"
            name = subject if actor == "user" else f"{actor}:{subject}"  # no other replaces what the user stated
            self._set(row, "constraint" if stated else "proposal", name, row["text"], counted_as(row), row["topic"])
        elif kind == "phase.changed" and actor in _HARNESS:
            self._set(row, "phase", "", row["subject"])
        elif kind == "plan.updated":
            self._set(row, "plan", "", row["text"])
        elif kind == "history.summarized":
            self._set(row, "history", "", row["text"], ", ".join(row["refs"]) or None)
        elif kind == "permission.requested" or (kind == "permission.denied" and actor in _HARNESS):
            status = "denied" if kind == "permission.denied" else "requested"
            asked = ": ".join(filter(None, (row["command"] or row["tool"], row["text"])))
            self._set(row, "approval", subject, asked, row["command"], status)
        elif kind == "retrieval.snapshot.created":
            for name in row["snapshot_ids"] or ():
                self._set(row, "retrieved", name, name)
        self._results(row, kind, actor)

    def _results(self, row: Mapping[str, Any], kind: str, actor: str) -> None:
        """Commands, checks, reads and artifacts. A model's claim that its checks pass is no run of them."""
        by_model = actor in ("model", "memory")
        if kind == "command.finished" and row["command"] and not by_model:
            self._set(row, "command", "", row["command"], row["outcome"])
        if row["checks"] and not by_model:
            said = "\n".join(filter(None, (row["summary"], row["excerpt"]))) or row["text"]
            for name, status in row["checks"].items():
                self._set(row, "check", name, said, row["command"], status)
        if kind in OBSERVATIONS and not by_model:
            self._set(row, "observation", "", row)
        if kind == "file.read" and row["path"]:
            self._set(row, "read", row["path"], row["path"])
        for name in row["refs"]:
            self._set(row, "artifact", name, name)

    def _changes(self, row: Mapping[str, Any]) -> None:
        """Files that an event says it changed, and commands that may have changed some without saying so."""
        stated = row["changed_files"]
        if stated is None and row["kind"] == "file.modified" and row["path"]:
            stated = [row["path"]]
        slot = "modified" if row["visibility"] == "model-visible" else "changed"
        for path in stated or ():
            self._set(row, slot, path, path, row["created_at"])
        if row["kind"] == "work.changed":
            self._slots["unstated"].clear()
        elif stated is None and (
            row["kind"] == "file.modified" or (row["kind"] in _ENDED_CALLS and row["capability"] in MAY_CHANGE)
        ):
            before = self._slots["unstated"].get(("", "internal"))
            count = before.value + 1 if before else 1
            self._keep("unstated", Fact("", count, origin=row["actor"], event_id=row["event_id"], seq=row["seq"]))

    def _ended(self, kind: str, actor: str, subject: str) -> None:
        """What the user or the harness ends; a memory may also be revoked by the memory itself."""
        if kind == "memory.revoked" and actor in (*_HARNESS, "memory"):
            self._keep("revoked", Fact(subject, subject, origin=actor))
        slots = {"constraint.ended": ("constraint", "proposal"), "permission.granted": ("approval",)}.get(kind, ())
        for slot in slots if actor in _HARNESS else ():
            for name, zone in [*self._slots[slot]]:
                if subject in (name, name.removeprefix(f"{self._slots[slot][name, zone].origin}:")):
                    del self._slots[slot][name, zone]

    def _count(self, row: Mapping[str, Any]) -> None:
        kind = counted_as(row)
        held = self._slots["kind"].get((kind, "internal"))
        count, first = (held.value[0], held.value[1]) if held else (0, row["seq"])
        self._keep("kind", Fact(kind, (count + 1, first, row["seq"]), event_id=row["event_id"], seq=row["seq"]))

    def _set(
        self,
        row: Mapping[str, Any],
        slot: str,
        fact: str,
        value: Any,
        detail: Any = None,
        status: str | None = None,
    ) -> None:
        self._keep(slot, Fact(fact, value, detail, status, row["actor"], row["zone"], row["event_id"], row["seq"]))

    def _keep(self, slot: str, fact: Fact) -> None:
        """Keep a fact as the newest of its slot."""
        held = self._slots[slot]
        held.pop((fact.fact, fact.zone), None)
        held[fact.fact, fact.zone] = fact
        if slot in ("modified", "changed"):
            self.last_change[fact.fact] = fact


def counted_as(row: Mapping[str, Any]) -> str:
    """What an event is counted as: its kind, apart from the user's words if he did not say it, and apart from what other
    turns may see: `user.message`, `other user.message`, `user.message:private`, `file.read:runtime-only`.
    """
    words = row["actor"] == "user" and row["text"]
    kind = row["kind"] if words or row["kind"] not in USER_WORDS else f"other {row['kind']}"
    return labelled(kind, row["zone"] if row["visibility"] == "model-visible" else row["visibility"])


def labelled(kind: str, sight: str) -> str:
    """A kind of events of one zone, or of one visibility that the model does not have."""
    return kind if sight == "internal" else f"{kind}:{sight}"


def of_label(label: str) -> tuple[str, str]:
    """Kind and zone, or visibility, of what `counted_as` returns."""
    kind, _, sight = label.partition(":")
    return kind.removeprefix("other "), sight or "internal"


def observation(row: Mapping[str, Any]) -> dict[str, Any]:
    """The Observation object of document 003 (S3.50) of an event; one that is given stays as it is."""
    if "event_id" not in row:
        return dict(row)
    kind = "command_result" if row["kind"] == "command.finished" else row["kind"]
    found = {
        "kind": kind, "command": row["command"], "exitCode": row["exit_code"], "summary": row["summary"], "artifacts": list(row["refs"]),
        "trustLevel": "fact" if row["actor"] in ("tool", "system") else "untrusted", "visibleExcerpt": row["excerpt"],
    }  # fmt: skip
    return {name: value for name, value in found.items() if value is not None}
