"""Context sources: everything that a model input might show, before any decision.

Reads: a turn, the log with the state as of the turn, rules, memories, items of retrieval, tools. Gives `context_sources`:
its sources, made once. Each ends in one row of the ledger.

Note: events are gathered newest first until their short forms would fill the window; the events before that are one
row per kind, with their number and range, and so are events that only set something. The user's own words are gathered from the state, however old they are.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .context_tables import TurnStates
from .turns.fitting import BEGINNING, input_limit, words_room
from .turns.folding import FRAME, Fact, Folded, counted_as, labelled, of_label
from .turns.frame import bullet
from .turns.reading import Row, Rows, TurnSources, escaped_id
from .turns.words import OBSERVATIONS, PHASE_POLICIES, SILENT, UNSEEN

CHARACTERS_PER_TOKEN = 4
"""Of the short forms of events, to decide how many may matter; the budget counts tokens."""
MATCHES = 100
"""Most matches of one search that are sources of their own; one more row counts the others."""
HEADING = 240
"""Longest command, tool or path in a heading, in characters."""


def context_sources(
    context_turn: Row,
    turn_states: TurnStates,
    log_events: Rows,
    folded: Folded,
    rule_texts: Rows,
    memory_records: Rows,
    retrieved_items: Mapping[str, Rows],
    tool_schemas: Rows,
) -> TurnSources:
    """The turn with its sources in the order in which they were gathered. `of` is the record that a source comes from."""
    turn, (state,) = context_turn, turn_states.to_pylist()
    phase = PHASE_POLICIES[state["phase"]]
    gathered = _Gathered(turn, state, folded, log_events, phase.full_characters)
    sources = [
        *_rules(rule_texts), *gathered.goal(), *gathered.constraints(), *gathered.words(), *gathered.state(), *gathered.log(),
        *gathered.files(), *gathered.items(retrieved_items), *_memories(memory_records, turn), *gathered.history(), *gathered.older(),
        *_tools(tool_schemas),
    ]  # fmt: skip
    for position, row in enumerate(sources):
        change = folded.last_change.get(row["path"])
        row |= {"input_id": turn["input_id"], "position": position, "changed_seq": change.seq if change else -1,
                "changed_at": change.detail if change else None}  # fmt: skip
    return TurnSources(turn, state, phase, sources)


def _source(kind: str, id_: str, part: str, standing: str, text: str | None = None, **fields: Any) -> dict[str, Any]:
    """A source. Null: `heading`, the words in front of the text; `summary`, the text in one line; `excerpt`, the part of it that matters most; `reference`, where the whole of it
    can be opened.
    """
    return {
        "source_kind": kind, "source_id": id_, "part": part, "standing": standing, "text": text,
        "characters": len(text or ""), "masked": (text or "").count("[REDACTED:"), "seq": -1, "of": {}, "heading": None, "summary": None,
        "excerpt": None, "reference": None, "path": None, "evidence_id": None, "refused": None, **fields,
    }  # fmt: skip


def _rules(rules: Rows) -> Iterator[dict[str, Any]]:
    for rule in rules:
        kind = "system_rules" if rule["origin"] == "system" else "repository_instructions"
        where = f"{rule['path']}:{rule['line']}" if rule["path"] and rule["line"] else rule["path"]
        yield _source(
            kind, f"rule:{rule['rule_id']}", "rules", "instruction", rule["text"], heading=_rule_level(rule), reference=where,
            path=rule["path"], of=rule,
        )  # fmt: skip


def _rule_level(rule: Row) -> str:
    """How near a rule is to the work: of the system, of all repositories, of the repository, or of a folder in it."""
    if rule["origin"] != "repository":
        return {"system": "System rule", "global": "Global rule"}[rule["origin"]]
    where = f" ({rule['path']}:{rule['line']})" if rule["path"] else ""
    return (f"Folder rule, {rule['folder']}" if rule["folder"] else "Repo rule") + where


def _memories(memories: Rows, turn: Row) -> Iterator[dict[str, Any]]:
    """Each memory as it was last recalled."""
    for memory in {each["memory_id"]: each for each in memories if each["from_seq"] < turn["as_of_seq"]}.values():
        name = f"memory:{memory['memory_id']}"
        yield _source(
            "memory_candidate", name, "memory", "hint", memory["text"], reference=name, evidence_id=name, seq=memory["from_seq"], of=memory
        )  # fmt: skip


def _tools(tools: Rows) -> Iterator[dict[str, Any]]:
    for tool in tools:
        yield _source("tool_schema", f"tool:{tool['tool']}", "tools", "evidence", tool["schema"], heading=tool["tool"], of=tool)  # fmt: skip


class _Gathered:
    """What the log and the state of one turn give."""

    def __init__(self, turn: Row, state: Row, folded: Folded, events: Rows, full: int) -> None:
        self.turn, self.state_, self.folded, self.events, self.full = turn, state, folded, events, full
        self.end = turn["as_of_seq"]
        self.zones = turn["zones"]
        self.room = CHARACTERS_PER_TOKEN * input_limit(turn)
        self.since = self._horizon()
        """Events from here on are sources of their own."""
        self.seen = Counter[str]()
        """Of each kind the number of events that are sources of their own."""
        self.latest: int | None = None
        self.said: list[Fact] = []
        """The user's words that are sources of their own."""

    def _horizon(self) -> int:
        """The first event that is a source of its own."""
        left, place = self.room, self.end
        while place > 0 and left > 0:
            place -= 1
            event = self.events[place]
            if self._visible(event):
                named, silent = len(event["command"] or event["path"] or ""), event["kind"] in SILENT
                left -= FRAME + (0 if silent else min(event["characters"], self.full) + min(named, HEADING))
        return place

    def _visible(self, event: Row) -> bool:
        """Whether the turn may see an event: what it may not see takes no room."""
        return event["visibility"] == "model-visible" and event["zone"] in self.zones

    # --- the user -----------------------------------------------------------------------------------------------------

    def goal(self) -> Iterator[dict[str, Any]]:
        if fact := self.folded.one("goal", self.zones):
            yield self._of_user("user_goal", f"goal:{fact.event_id}", fact)

    def constraints(self) -> Iterator[dict[str, Any]]:
        """Declared constraints by origin; what others than the user propose is a hint."""
        names = {"user": "User request", "repository": "Repo rule", "system": "Global rule"}
        for fact in self.folded.facts("constraint", self.zones):
            yield _source(
                "active_constraint", f"constraint:{fact.fact}", "user_goal", "instruction", fact.value, heading=names.get(fact.origin or "", "Constraint"),
                reference=f"event:{fact.event_id}", seq=fact.seq, of={"topics": [fact.status] if fact.status else [], "origin": fact.origin},
            )  # fmt: skip
        for fact in self.folded.facts("proposal", self.zones):
            yield _source(
                "active_constraint", f"proposal:{fact.fact}", "memory", "hint", fact.value, heading=f"Proposed by {fact.origin}",
                reference=f"event:{fact.event_id}", seq=fact.seq,
            )  # fmt: skip

    def words(self) -> Iterator[dict[str, Any]]:
        """The user's own words: the latest message, and one source for the others, the newest last, as many as may have
        room. Goal and declared constraints in force have headings of their own.
        """
        own = {fact.event_id for fact in self._headed()}
        words = self.folded.facts("word", self.zones)
        said = [fact for fact in words if fact.event_id not in own]
        latest = next((fact for fact in reversed(said) if not _is_constraint(fact)), None)
        if latest:
            said.remove(latest)
            self.said = [latest]
            yield self._of_user("user_message", f"event:{latest.event_id}", latest, heading="Latest message")
        if not said:
            return
        room, least = CHARACTERS_PER_TOKEN * words_room(self.turn), 0
        kept: list[Fact] = []
        for fact in reversed(said):
            least += min(len(fact.value), BEGINNING) + FRAME
            if least > room and fact.seq < self.since:
                break
            kept.insert(0, fact)
        self.said += kept
        items = [bullet(_said(fact)) for fact in kept]
        yield _source(
            "user_message", "words", "user_goal", "instruction", "".join(items), heading="Messages", reference=f"log:{words[0].seq}-{said[-1].seq}",
            seq=said[-1].seq, items=items, events=[(fact.seq, fact.event_id) for fact in kept], all=len(kept) == len(said),
        )  # fmt: skip

    def _headed(self) -> list[Fact]:
        """The goal and the declared constraints of this turn. Detail: what each event counts as."""
        goal = self.folded.one("goal", self.zones)
        of_goal = [goal._replace(detail=labelled("user.goal", goal.zone))] if goal else []
        return [*self.folded.facts("constraint", self.zones), *of_goal]

    def _apart(self) -> list[Fact]:
        """Facts whose events are sources of their own, however old: the user's words, constraints, proposals and the
        newest summary of earlier rounds. Detail: what each event counts as.
        """
        history = self.folded.one("history", self.zones)
        of_history = [history._replace(detail=labelled("history.summarized", history.zone))] if history else []
        return [
            *self.said,
            *self._headed(),
            *self.folded.facts("proposal", self.zones),
            *of_history,
        ]

    def _of_user(self, kind: str, id_: str, fact: Fact, **fields: Any) -> dict[str, Any]:
        where = f"event:{fact.event_id}"
        return _source(kind, id_, "user_goal", "instruction", fact.value, reference=where, seq=fact.seq, **fields)

    # --- the state ----------------------------------------------------------------------------------------------------

    def state(self) -> Iterator[dict[str, Any]]:
        """Three groups of lines: what the harness states, what tools say, what the model says."""
        of, checks = self.state_, json.loads(self.state_["checks"])
        observed = [
            f"current failure: {each['summary']}" for each in checks if each["status"] == "failed" and each["summary"]
        ]
        observed += [f"check {each['name']}: {each['status']} ({', '.join(_about(each))})" for each in checks]
        stated = [
            f"phase: {of['phase']}" + ("" if of["phase_stated"] else " (no event states one)"),
            f"turn: {of['turn_count']}",
            _listed("modified_files", of["modified_files"]),
            f"commands that may have changed files without saying so: {of['unstated_changes']}" if of["unstated_changes"] else None,
            f"latest command: {of['latest_command']}" if of["latest_command"] else None,
            _listed("read_files", of["read_files"], 12),
            _listed("artifacts", of["artifact_refs"], 6),
            *(f"permission {each['status']}: {each['text']} ({each['id']})" for each in json.loads(of["approvals"])[:12]),
        ]  # fmt: skip
        for name, standing, lines in (
            ("state", "evidence", stated),
            ("state:observed", "untrusted", observed),
            ("state:said", "hint", [f"plan: {of['plan']}"] if of["plan"] else []),
        ):
            if text := "\n".join(" ".join(line.split()) for line in lines if line):
                yield _source("state_summary", name, "state", standing, text)

    # --- the log ------------------------------------------------------------------------------------------------------

    def log(self) -> Iterator[dict[str, Any]]:
        """Events from the horizon on, the newest first; the last result of a tool is the latest observation."""
        given = self.folded.one("observation", self.zones)
        if given is not None and given.seq < 0:
            yield _observation(given.value)
        apart, answered = {fact.event_id for fact in self._apart() if fact.seq >= 0}, set[str]()
        for place in range(self.end - 1, self.since - 1, -1):
            event = self.events[place]
            if event["kind"] in SILENT:
                continue
            self.seen[counted_as(event)] += 1
            if event["event_id"] in apart:
                continue  # a source of its own: the goal, a constraint, the user's words
            if event["kind"] in OBSERVATIONS and self._visible(event):
                answered.add(event["subject"])
                if self.latest is None and event["actor"] not in _GUESSING:
                    self.latest = place
            source = self._event(event, place == self.latest)
            if event["kind"] == "tool.intent" and event["subject"] and event["subject"] in answered:
                source["refused"] = "answered"
            yield source
            if event["kind"] == "search.result" and event["matches"]:
                yield from _matches(event)

    def _event(self, event: Row, latest: bool) -> dict[str, Any]:
        part = "latest_observation" if latest else "recent_tail"
        standing = "hint" if event["actor"] in _GUESSING else _STANDINGS.get(event["actor"], "untrusted")
        what = event["command"] or " ".join(filter(None, (event["tool"], event["path"]))) or ", ".join(event["checks"])
        read = latest and event["kind"] == "file.read" and event["content"] is not None  # else a source of its own
        text = event["content"] if read else event["text"]
        if len(what) > HEADING:  # the heading has its beginning
            text, what = f"{what}\n{text}" if text else what, f"{what[:HEADING]}..."
        return _source(
            part, f"event:{event['event_id']}", part, standing, text,
            heading=", ".join(filter(None, (f"Turn {event['turn_id'] or event['turn']}", _happened(event), what))),
            summary=event["summary"], excerpt=event["excerpt"], reference=event["refs"][-1] if event["refs"] else f"event:{event['event_id']}",
            path=event["path"], characters=max(len(text or ""), event["characters"] if event["text"] is not None else 0), masked=event["masked"], seq=event["seq"], of=event,
        )  # fmt: skip

    def files(self) -> Iterator[dict[str, Any]]:
        """The last content of each file that was read or changed, whether or not it is still current: the newest ones, as
        many as may have room.
        """
        found = set[tuple[str, Any, Any]]()
        newer: dict[str, Rows] = {}
        left = self.room
        for place in range(self.end - 1, -1, -1):
            event, path = self.events[place], self.events[place]["path"]
            if left <= 0:
                return
            if event["content"] is None or not path or not self._visible(event):
                continue
            start, end = event["line_start"], event["line_end"]
            latest = place == self.latest and event["kind"] == "file.read"
            if not latest and not {(path, start, end), (path, None, None)} & found:
                found.add((path, start, end))
                left -= min(len(event["content"]), self.full) + FRAME
                span = "" if start is None and end is None else f":{start or 1}-{end or ''}"
                yield _source(
                    "file_content", f"file:{path}{span}", "retrieval", "untrusted", event["content"], heading=f"{path}{span}",
                    reference=f"event:{event['event_id']}", path=path, masked=event["masked"], seq=event["seq"], of=event,
                    refused=_superseded(event, newer.get(path, ())),
                )  # fmt: skip
            newer.setdefault(path, []).append(event)

    def items(self, snapshots: Mapping[str, Rows]) -> Iterator[dict[str, Any]]:
        """Items of the snapshots that the turn names, else of those that its last events created or that the caller gave."""
        now, named = self.turn["as_of_seq"], self.turn["snapshot_ids"]
        created = {fact.fact: fact.seq for fact in self.folded.facts("retrieved", self.zones) if fact.seq >= self.since}
        given = {name: now for name, items in snapshots.items() if items[0]["given"]}
        wanted = {**given, **created} if named is None else {name: created.get(name, now) for name in named}
        for name, seq in wanted.items():
            if name not in snapshots:
                yield _source("retrieval_result", f"snapshot:{name}", "retrieval", "evidence", reference=name, seq=seq)
            for item in snapshots.get(name, ()):
                label, id_ = f"{item['block_ref']}:{item['label']}", escaped_id(name)
                yield _source(
                    "retrieval_result", f"item:{id_}:{item['label']}" if item["label"] else f"snapshot:{id_}", "retrieval",
                    "evidence" if item["standing"] == "instruction" else item["standing"],
                    item["text"], heading=f"[{label}] {item['locator'] or ''}".rstrip(), reference=label if item["label"] else name,
                    path=item["path"], evidence_id=item["evidence_id"], seq=seq, of=item,
                )  # fmt: skip

    def history(self) -> Iterator[dict[str, Any]]:
        if fact := self.folded.one("history", self.zones):
            yield _source(
                "history_summary", f"history:{fact.event_id}", "recent_tail", "hint", fact.value,
                heading=fact.detail, reference=f"event:{fact.event_id}", seq=fact.seq,
            )  # fmt: skip

    def older(self) -> Iterator[dict[str, Any]]:
        """One row for the events of each kind before the horizon, with their number and range; of those that only set
        something, for all.
        """
        apart = Counter(fact.detail for fact in self._apart() if 0 <= fact.seq < self.since)
        kept = self.seen + apart
        for fact in self.folded.facts("kind"):
            number, first, last = fact.value
            kind, sight = of_label(fact.fact)
            silent, count = kind in SILENT, number - kept[fact.fact]
            if count > 0:
                until = last if silent else max(min(self.since - 1, last), first)
                yield _source(
                    "older_history", f"older:{fact.fact}", "recent_tail", "evidence",
                    heading=f"{count} {'' if silent else 'earlier '}events, {fact.fact}", reference=f"log:{first}-{until}",
                    of={"kind": kind, "visibility" if sight in UNSEEN else "zone": sight},
                )  # fmt: skip


_GUESSING = ("model", "memory")
"""Speakers whose words are hints."""
_STANDINGS = {"user": "history", "system": "history"}


def _is_constraint(word: Fact) -> bool:
    return (word.detail or "").startswith("user.constraint")


def _said(word: Fact) -> str:
    """A message; of a constraint only one that has ended is among them."""
    return f"Constraint, no longer in force: {word.value}" if _is_constraint(word) else word.value


def _about(check: Row) -> Iterator[str]:
    if check["event_id"] is None:
        yield "no run seen"
        return
    if check["command"] and check["command"] != check["name"]:
        yield f"last run: {check['command']}"
    yield f"event {check['event_id']}"
    yield f"files changed since: {check['changed_since']}"


def _listed(name: str, values: Sequence[str], most: int = 40) -> str | None:
    if not values:
        return None
    more = f" and {len(values) - most} more" if len(values) > most else ""
    return f"{name}: {', '.join(values[:most])}{more}"


def _happened(event: Row) -> str:
    """The kind of an event in words, and how it ended where the event says so."""
    name = event["kind"].replace(".", " ")
    if event["kind"] in ("command.finished", "tool.finished"):
        name = f"{name.split()[0]} {(event['outcome'] or 'finished').replace('_', ' ')}"
        return f"{name} (exit {event['exit_code']})" if event["exit_code"] is not None else name
    claimed = event["kind"] in ("permission.granted", "permission.denied") and event["actor"] not in ("user", "system")
    if claimed:
        return f"no permission: words of the {event['actor']}"
    return f"{name}: {', '.join(event['checks'].values())}" if event["checks"] else name


def _superseded(event: Row, newer: Sequence[Row]) -> str | None:
    """A partial read is replaced by a later read in another version, or of at least the same lines."""
    for later in newer:
        if event["version"] and later["version"] and event["version"] != later["version"]:
            return "stale_version"
        before = (later["line_start"] or 1) <= (event["line_start"] or 1)
        if before and (event["line_end"] or 2**31) <= (later["line_end"] or 2**31):
            return "superseded"
    return None


def _observation(given: Row) -> dict[str, Any]:
    """The latest observation of a given state, an object of document 003 (S3.50)."""
    refs, code = [str(each) for each in given.get("artifacts") or ()], given.get("exitCode")
    event = {
        "kind": "command.finished", "command": given.get("command"), "tool": None, "exit_code": code, "checks": {}, "refs": refs, "diff": False,
        "outcome": None if code is None else "failed" if code else "succeeded",
    }  # fmt: skip
    text = given.get("visibleExcerpt")
    return _source(
        "latest_observation", "observation:state", "latest_observation", "untrusted", text, summary=given.get("summary"), excerpt=text,
        heading=given.get("command") or given.get("kind"), reference=refs[-1] if refs else None, of=event,
    )  # fmt: skip


def _matches(event: Row) -> Iterator[dict[str, Any]]:
    """The matches of a search, each to be opened on demand."""
    found = event["matches"]
    sight = {name: event[name] for name in ("zone", "visibility")}
    for number, match in enumerate(found[:MATCHES], start=1):
        locator = f"{match['path']}:{match['line']}" if match.get("line") else match["path"]
        yield _source(
            "search_match", f"match:{event['event_id']}:{number}", "retrieval", "untrusted", match.get("text"), heading=locator, reference=locator,
            path=match["path"], seq=event["seq"], of=match | sight,
        )  # fmt: skip
    if len(found) > MATCHES:
        yield _source(
            "search_match", f"match:{event['event_id']}:rest", "retrieval", "untrusted", heading=f"{len(found) - MATCHES} other matches",
            reference=f"event:{event['event_id']}", seq=event["seq"], of=sight,
        )  # fmt: skip
