"""The facts that the events of a session assert, which `context_state` folds into the state of the agent.

Gives `assertions`: a table of facts for every slot. A fact without a value ends the earlier fact of its name.

Note: the words of an event enter the state only if the event itself may be shown, and each fact carries the zone of its
event. Of other events the state keeps, without words, which facts they end and that a file changed.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.keys import among, codes_of, constants, distinct_rows, flat, integers
from ..columns.ragged import Ragged
from ..context_tables import STATE_FACTS
from .joining import joined
from .scopes import ALWAYS, TOPICS, folders_of, last_segments, paths_named, topics_in
from .words import RUNNING

__all__ = ["ABOUT", "ACTION", "RING", "WORD", "assertions"]

Bool = NDArray[np.bool_]
Int = NDArray[np.int64]

RING = 64
"""Most artifacts that a state remembers."""
OTHERS = ("system", "global", "repository", "model", "memory", "tool")
"""Speakers besides the user: each replaces only its own facts. Any other speaker counts as a tool."""
SHARED = ("public", "internal")
"""Zones whose words a state keeps; words of other zones are only in their events."""
ABOUT = "\x1f"
"""Separates the subject of a denial from the names of the action that it denies."""
ACTION = "\x1e"
"""Prefix of an action; doubled for an action that is denied to every tool."""
WORD = "\x1d"
"""Prefix of a word of an action by which a yes may name it."""
_DENIED_CHARACTERS = 80
"""Most characters of a denied command that the state keeps."""
_LOGS = r"^\*$|\.(?:log|out)$"
_UNLISTED = rf"{_LOGS}|^/(?:tmp|dev|var/tmp)/"
"""Files changed by commands that the state does not name: any file, and logs."""
_OF_A_FACT = ["session_id", "event_id", "seq", "actor", "subject", "visibility", "zone"]
"""The columns of an event that its facts need: an event may have thousands of them, and its texts are long."""
_TEXT = pa.large_string()


def assertions(events: pa.Table) -> list[pa.Table]:
    """The facts that events assert, slot by slot; a value of null ends the fact."""
    of = _Events(events)
    parts = (
        _goals(of), _constraints(of), _results(of), _files(of), _permissions(of), _reported(of), _touched(of), _disclosed(of),
    )  # fmt: skip
    return [made for part in parts for made in part if made.num_rows]


class _Events:
    """Events with their speakers."""

    def __init__(self, events: pa.Table) -> None:
        self.table = events
        self.none = pa.nulls(events.num_rows, _TEXT)
        self.one = pa.repeat("", events.num_rows)
        """The name of the fact in a slot for a single fact."""
        self.id = self.column("event_id")
        self.named = pc.coalesce(self.column("subject"), self.id)
        self.by_user = self.by("user")
        self.by_harness = self.by("user", "system")
        self.shown = among(events["visibility"], ("model-visible",)) & among(events["zone"], SHARED)
        """Events whose words the state may keep."""

    def column(self, name: str) -> pa.Array:
        return flat(self.table[name])

    def kind(self, *names: str) -> Bool:
        return among(self.table["kind"], names)

    def by(self, *actors: str) -> Bool:
        return among(self.table["actor"], actors)

    def has(self, name: str) -> Bool:
        return np.asarray(self.column(name).is_valid()).astype(bool)

    def check(self, outcome: str) -> Bool:
        """Checks with this outcome, except those that a model reports."""
        return among(self.table["check_outcome"], (outcome,)) & ~self.by("model", "memory")

    def each(self, slot: str, column: str, mask: Bool, value: pa.Array | None = None) -> pa.Table:
        """A fact for every entry of a list column, named by the entry; its value is that of the event, if any."""
        rows = np.flatnonzero(mask)
        held = Ragged.of(self.column(column).take(pa.array(rows)))
        names = held.vocabulary.take(pa.array(held.codes)).cast(pa.string())
        values = names if value is None else value.take(pa.array(rows[held.rows]))
        return self.of_rows(slot, rows[held.rows], names, values)

    def of_rows(self, slot: str, rows: Int, names: pa.Array, value: pa.Array) -> pa.Table:
        """A fact of each of these events for each distinct name that it has."""
        if not len(rows):
            return STATE_FACTS.empty()
        once = np.zeros(len(rows), dtype=bool)
        once[distinct_rows(codes_of([pa.array(rows), names]))[0]] = True
        of = _Events(self.table.select(_OF_A_FACT).take(pa.array(rows)))
        return of.facts(slot, once, names, value)

    def facts(self, slot: str, mask: Bool, fact: pa.Array, value: pa.Array, origin: pa.Array | None = None) -> pa.Table:
        """STATE_FACTS of the events of a mask; `origin` defaults to the speaker of the event."""
        if not mask.any():
            return STATE_FACTS.empty()
        index = pa.array(np.flatnonzero(mask))
        speaker: pa.Array = self.column("actor") if origin is None else origin
        return STATE_FACTS.build(
            {
                "session_id": self.column("session_id").take(index),
                "slot": pa.repeat(slot, len(index)),
                "fact": fact.take(index).cast(pa.string()),
                "value": value.take(index).cast(_TEXT),
                "origin": speaker.take(index).cast(pa.string()),
                "zone": self.column("zone").take(index),
                "event_id": self.id.take(index),
                "from_seq": self.column("seq").take(index),
                "until_seq": pa.nulls(len(index), pa.int64()),
            }
        )


def _goals(of: _Events) -> Iterator[pa.Table]:
    """The goal in the user's words; its binding parts, and those of messages, stay when another goal is set."""
    goal = of.kind("user.goal") & of.shown
    message = of.kind("user.message", "user.confirmation") & of.by_user & of.shown
    binds = of.has("binding") & (message | (goal & of.by_user))
    yield of.facts("goal", goal & of.by_user, of.one, of.column("text"))
    yield of.facts("constraint", binds, of.id, of.column("binding"), of.column("kind"))
    yield of.facts("said", message, of.one, of.column("text"), of.column("kind"))
    wrote = of.kind("user.goal", "user.message", "user.confirmation", "user.constraint", "constraint.ended")
    yield of.facts("wrote", wrote & of.by_user, of.one, of.id)  # without words, so that hidden ones count


def _constraints(of: _Events) -> Iterator[pa.Table]:
    """Constraints by speaker. Proposals of others have names of their own, so that they replace nothing of the
    user's.
    """
    origin = pc.coalesce(of.column("origin"), of.column("actor"))
    posing = ~of.by_user & np.asarray(pc.starts_with(origin, pattern="user")).astype(bool)
    speaker = pc.if_else(pa.array(of.by_user), "user", pc.if_else(pa.array(posing), OTHERS[-1], origin))
    standing = pc.if_else(pc.is_in(speaker, value_set=constants(OTHERS)), speaker, OTHERS[-1])
    name = pc.if_else(pa.array(of.by_user), of.named, _of_others(standing, of.named))
    proposed = of.kind("user.goal") & ~of.by_user & of.shown
    ends = of.kind("constraint.ended") & of.by_user
    yield of.facts("constraint", proposed, _of_others("goal", name), of.column("text"), joined("goal by ", speaker))
    yield of.facts("constraint", of.kind("user.constraint") & of.shown, name, of.column("text"), speaker)
    yield of.facts("constraint", ends, of.named, of.none)
    for each in OTHERS:
        yield of.facts("constraint", ends, _of_others(each, of.named), of.none)
        yield of.facts("constraint", ends, _of_others("goal", _of_others(each, of.named)), of.none)


def _of_others(standing: pa.Array | str, name: pa.Array) -> pa.Array:
    """The name of a fact of another speaker, which never equals that of a fact of the user."""
    return joined("\x1f", standing, "\x1f", name)


def _results(of: _Events) -> Iterator[pa.Table]:
    """Commands, failures and verifications. A model's statement that its tests passed is not a test run."""
    command, text = of.column("command"), pc.coalesce(of.column("summary"), of.column("text"))
    ran = of.kind("command.finished") & ~of.by("model", "memory")
    failing, passing, unknown = (of.check(outcome) for outcome in ("failed", "passed", "unknown"))
    # Reports of a tool, and runs of others, do not end a failure, but may report one.
    own = of.kind("command.finished") & among(of.table["origin"], ("tool",))
    reported = of.has("check_outcome") & of.has("origin") & of.by("tool") & ~own
    passing, unknown = passing & ~reported, unknown & ~reported
    check = failing | passing | unknown
    outcome = pc.replace_substring(of.column("check_outcome"), pattern="unknown", replacement="outcome unknown")
    broken_off = of.kind("command.finished") & of.has("subject") & of.check("unknown")
    broken_off &= ~among(of.table["subject"], (RUNNING,))
    outcome = pc.if_else(pa.array(broken_off), of.column("subject").cast(_TEXT), outcome.cast(_TEXT))
    whole = pc.or_kleene(command.is_valid(), pc.equal(text.cast(_TEXT), of.column("subject").cast(_TEXT)))
    result = pc.if_else(
        pc.fill_null(whole, False),
        joined(pc.coalesce(command.cast(_TEXT), text.cast(_TEXT)), ": ", outcome),
        joined(text.cast(_TEXT), " (", outcome, ")"),  # the words of a verification, or its name with its words
    )
    yield of.facts("command", ran & of.has("command") & of.has("observation_class") & of.shown, of.one, command)
    quiet = pc.equal(pc.fill_null(text.cast(_TEXT), ""), "")
    fails = pc.if_else(
        quiet,
        joined(pc.coalesce(command.cast(_TEXT), pa.scalar("a check", _TEXT)), ": failed and printed nothing"),
        text.cast(_TEXT),
    )
    yield of.each("failure", "check_fails", failing & of.shown, fails)
    ended = of.has("check_clears") & ~of.by("model", "memory") & ~reported
    yield of.each("cleared", "check_clears", ended & of.shown)
    yield of.facts("verification", check & of.shown, of.one, result)
    yield of.facts("verification", check & ~of.shown, of.one, of.none)
    yield of.facts("artifact", of.has("ref") & of.shown, _ring(of), of.column("ref"))


def _files(of: _Events) -> Iterator[pa.Table]:
    """Versions of files: the state names files of shown events only, but older contents of all files are stale."""
    on_file, path = of.has("path"), of.column("path")
    version = pc.coalesce(of.column("version"), of.id)
    modified = of.kind("file.modified")
    yield of.facts("modified", modified & on_file & of.shown, path, version)
    yield of.facts("changed", modified & on_file & ~of.shown, path, of.id)
    yield of.each("changed", "may_change", of.has("may_change") & ~of.shown)
    by_command = of.each("modified", "may_change", of.has("may_change") & of.shown, of.id)
    unlisted = pc.match_substring_regex(by_command["fact"], pattern=_UNLISTED)
    yield by_command.filter(pc.invert(unlisted))
    others = by_command.filter(unlisted)
    place = others.schema.get_field_index("slot")
    yield others.set_column(
        place, others.schema.field(place), pa.repeat("changed", others.num_rows).cast(others.schema.field(place).type)
    )
    yield of.each("doubtful", "doubtful", of.has("doubtful"))
    touched = (of.has("may_change") | of.has("doubtful")) & ~of.has("check_scope")
    yield of.facts("verification", modified | touched, of.one, of.none)


def _permissions(of: _Events) -> Iterator[pa.Table]:
    """Denials, by subject and action. A grant that names an action ends only the denials of that action, and of its
    subject if it names one; a grant without an action ends those of all actions. A denial without a subject has its
    action as the subject.
    """
    action = of.column("command")
    named = pc.coalesce(of.column("subject"), action.cast(pa.string()), of.id)
    confirmed = of.kind("permission.granted") & of.by_harness | of.kind("user.confirmation") & of.by_user
    granted = np.asarray(of.column("grants")).astype(bool) & confirmed
    cut = pc.utf8_slice_codeunits(action, 0, _DENIED_CHARACTERS)
    cut = pc.if_else(pc.equal(cut, action), cut, joined(cut, "..."))
    denied = pc.coalesce(
        joined(of.column("subject"), " (", cut, ")"), of.column("subject"), cut.cast(pa.string()), of.id
    )
    about = joined(named, pc.binary_join(of.column("lifts"), ABOUT), between=ABOUT, skip_nulls=True)
    yield of.facts("approval", of.kind("permission.denied") & of.shown, about, denied)
    yield of.facts("lifted", granted & ~of.has("command"), named, named)
    yield of.each("lifted", "lifts", confirmed)  # a yes that names a word of an action applies to that action only


def _reported(of: _Events) -> Iterator[pa.Table]:
    """The phase, revoked memories, and the model's own plan and summary of earlier rounds."""
    planned = of.kind("plan.updated") & of.shown
    revoked = of.kind("memory.revoked") & (of.by_harness | of.by("memory"))
    by = pc.coalesce(of.column("origin"), of.column("actor"))
    yield of.facts("phase", of.kind("phase.changed") & of.by_harness, of.one, of.column("subject"), by)
    yield of.facts("revoked", revoked, of.named, of.named)
    yield of.facts("plan", planned, of.one, of.column("text"))
    yield of.facts("interpretation", planned & of.has("excerpt"), of.one, of.column("excerpt"))
    yield of.facts("history", of.kind("history.summarized") & of.shown, of.one, of.column("text"))


def _touched(of: _Events) -> Iterator[pa.Table]:
    """Topics and folders of the work so far, which only add up, so that a rule that applies stays: of what the user
    says, of files that were read or modified, and topics of files that fail. Paths may be absolute here, so that of
    a path only the name of the file touches a topic.
    """
    by_user = of.kind("user.goal", "user.message", "user.confirmation", "user.constraint") & of.by_user & of.shown
    text = pc.if_else(pa.array(by_user), of.column("text").cast(_TEXT), None)
    rows, paths = _paths_touched(of, text)
    folder = folders_of(paths)
    inside = np.asarray(pc.not_equal(folder, ""))
    yield of.of_rows("folder", rows[inside], *_of_zone(of, rows[inside], folder.filter(pa.array(inside))))
    failing = np.flatnonzero(of.check("failed") & of.shown)
    output = pc.coalesce(of.column("summary").cast(_TEXT), of.column("text").cast(_TEXT), "")
    output = pc.if_else(pc.equal(output, ""), of.column("command").cast(_TEXT), output)
    failed = Ragged.of(paths_named(output.take(pa.array(failing))))
    about = topics_in(text)
    np.logical_or.at(about, rows, topics_in(last_segments(paths, 1)))  # turns add those of their folders
    np.logical_or.at(about, failing[failed.rows], topics_in(failed.vocabulary)[failed.codes])
    about[:, ALWAYS] = False
    row, topic = np.nonzero(about)
    yield of.of_rows("topic", row, *_of_zone(of, row, constants(tuple(TOPICS)).take(pa.array(topic))))


def _paths_touched(of: _Events, text: pa.Array) -> tuple[Int, pa.Array]:
    """Files that the user names, editors' mentions (`@src/a.ts`) among them, and files that were read or modified,
    logs aside; each with the row of its event.
    """
    own = np.flatnonzero(of.kind("file.read", "file.modified") & of.has("path") & of.shown)
    changed = Ragged.of(pc.if_else(pa.array(of.has("may_change") & of.shown), of.column("may_change"), None))
    named = Ragged.of(paths_named(text))
    spoken = pc.replace_substring_regex(named.vocabulary.cast(_TEXT), pattern=r"^@(?:\./)*", replacement="")
    paths = (
        of.column("path").take(pa.array(own)),
        changed.vocabulary.take(pa.array(changed.codes)),
        spoken.take(pa.array(named.codes)),
    )
    rows, found = (
        np.concatenate([own, changed.rows, named.rows]),
        pa.concat_arrays([each.cast(_TEXT) for each in paths]),
    )
    kept = pc.invert(pc.match_substring_regex(found, pattern=_LOGS))
    return rows[np.asarray(kept).astype(bool)], found.filter(kept)


def _of_zone(of: _Events, rows: Int, values: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The names of facts, by the zone of their events, so that none hides one of another zone; and their values."""
    return joined(of.column("zone").take(pa.array(rows)), values, between=ABOUT), values


def _ring(of: _Events) -> pa.Array:
    """Slots for artifacts: each replaces the one `RING` events older, so that a state does not grow with its log."""
    return pc.cast(pa.array(integers(of.table["seq"]) % RING), pa.string())


def _disclosed(of: _Events) -> Iterator[pa.Table]:
    """Disclosures of earlier inputs of the session: evidence ids, and memories as `memory:<id>`; the snapshots of
    inputs that do not list the items shown; and all snapshots that events name, also hidden ones, since a snapshot
    retrieved for an earlier turn does not belong to this turn.
    """
    asked = of.kind("model.request")
    yield of.each("disclosed", "evidence_ids", asked)
    yield of.each("listed", "snapshot_ids", asked & of.has("snapshot_ids") & ~of.has("evidence_ids"))
    yield of.each("retrieved", "snapshot_ids", of.has("snapshot_ids"))
