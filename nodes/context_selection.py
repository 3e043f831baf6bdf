"""Context selection: five gates in order decide whether a source may enter the input.

Reads: sources with what they come from, turns, states, phases. Gives `selection`, one row per source: the first gate that
refused it with the reason, or what it is shown for.

What one would otherwise get wrong: relevance never admits by itself (S3.21). A relevant log may be stale, a relevant file
denied, a relevant memory a guess. And no model has a say here: nothing a model or a tool wrote moves a gate (S3.19).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .columns.keys import among, constants, flags_at, flat, integers, objects, positions, rank_within, take_or
from .columns.ragged import Ragged, spread
from .context_tables import (
    SELECTION,
    ContextSources,
    ContextTurns,
    LogEvents,
    LogMatches,
    MemoryRecords,
    PhasePolicies,
    RetrievedItems,
    RuleTexts,
    Selection,
    StateFacts,
    ToolSchemas,
    TurnStates,
)
from .frames import micros
from .scope.selectors import matching_paths
from .turns.asof import FOREVER, Sessions, holding
from .turns.joining import joined
from .turns.scopes import (
    ALWAYS,
    TESTING_PHASES,
    TIERS,
    TOPICS,
    Paths,
    folders_above,
    in_pairs,
    tiers,
    topic_matrix,
    topics_in,
    value_at,
)
from .turns.words import GATES

Int = NDArray[np.int64]
Bool = NDArray[np.bool_]

REFERENCES = 12
"""Most references on demand in one input."""
NOTICED = ("generated_file", "outside_package", "stale_version")
"""Reasons for which a file is left out that the input names (S3.55)."""
NOTICES = 6
"""Most files that an input names as left out."""
REASONING = 2
"""Most events of the model's own words in the tail."""
AHEAD = 8
"""Events by which a user's message or a decision about a permission counts as newer than it is."""
DAY = 86_400_000_000
_CODE = r"\.(?:[cm]?[jt]sx?|py|go|rs|java|kt|rb|c|cc|cpp|h|hpp|cs|swift|scala|php)$"
_SHOWN_FOR = {
    "system_rules": "always_present", "repository_instructions": "rule_in_scope", "user_goal": "always_present",
    "active_constraint": "always_present", "state_summary": "always_present", "latest_observation": "latest_result",
    "recent_tail": "key_event", "file_content": "current_content", "search_match": "on_demand",
    "retrieval_result": "snapshot_item", "memory_candidate": "verified_memory", "history_summary": "history_kept",
    "older_history": "older_events", "tool_schema": "phase_tool",
}  # fmt: skip
_TIER_REASONS = ("", "failing_stack", "recently_modified", "beside_failing_case", "public_api", "on_demand")


def selection(
    context_sources: ContextSources,
    context_turns: ContextTurns,
    turn_states: TurnStates,
    state_facts: StateFacts,
    log_events: LogEvents,
    log_matches: LogMatches,
    rule_texts: RuleTexts,
    memory_records: MemoryRecords,
    retrieved_items: RetrievedItems,
    tool_schemas: ToolSchemas,
    phase_policies: PhasePolicies,
) -> Selection:
    """What the gates said of every source, in the order of the sources."""
    work = _Work(context_sources, context_turns, turn_states, state_facts, phase_policies)
    work.judge_rules(rule_texts)
    work.judge_files(log_matches, retrieved_items)
    work.judge_events(log_events)
    work.judge_memories(memory_records)
    work.judge_tools(tool_schemas)
    work.judge_worth(log_events)
    return SELECTION.build(
        {
            "input_id": context_sources["input_id"],
            "source_id": context_sources["source_id"],
            "position": context_sources["position"],
            "decided_by": constants((*GATES.values, None)).take(pa.array(work.gate)),
            "reason_code": pa.array(work.reason, pa.string()),
            "referenced": work.referenced,
            "tier": work.tier.astype(np.int32),
            "rank": work.rank.astype(np.int32),
            "carrier": work.carrier,
        }
    )


class _Work:
    """The sources under judgment. `gate` is the place of the gate that refused, `len(GATES)` where none did."""

    def __init__(self, sources: pa.Table, turns: pa.Table, states: pa.Table, facts: pa.Table, phases: pa.Table) -> None:
        self.sources, self.turns, self.states, self.facts = sources, turns, states, facts
        rows = sources.num_rows
        self.turn = positions(sources["input_id"], turns["input_id"])
        self.row, self.seq = integers(sources["row"]), integers(sources["seq"])
        self.kind, self.path = flat(sources["source_kind"]), flat(sources["path"])
        self.policy = positions(states["phase"], phases["phase"])
        self.phases = phases
        self.gate = np.full(rows, len(GATES.values), dtype=np.int64)
        kinds = tuple(_SHOWN_FOR)
        self.reason = objects(
            constants(tuple(_SHOWN_FOR.values())).take(pc.index_in(self.kind, value_set=constants(kinds)))
        )
        self.referenced = self.of("older_history")
        self.tier = np.zeros(rows, dtype=np.int64)
        self.rank = np.zeros(rows, dtype=np.int64)
        self.carrier = pa.nulls(rows, pa.string())
        self.sessions = Sessions.of(turns)

    def of(self, *kinds: str) -> Bool:
        """Which sources are of these kinds."""
        return among(self.kind, kinds)

    def allowed(self, name: str) -> Int:
        """A number of each source's phase."""
        return self.phases[name].to_numpy()[self.policy[self.turn]]

    def refuse(self, gate: str, mask: Bool, reason: str) -> None:
        """Refuse what no earlier gate refused, nor an earlier rule of this one."""
        place = GATES.values.index(gate)
        mine = mask & (self.gate > place)
        self.gate[mine] = place
        self.reason[mine] = reason

    def held(self, slot: str) -> tuple[Int, pa.Array, Int]:
        """(turn, fact, event) of what holds in a slot of the state."""
        some = self.facts.filter(pc.equal(self.facts["slot"], slot))
        until = integers(pc.fill_null(some["until_seq"], FOREVER))
        start = integers(some["from_seq"])
        fact, turn = holding(self.sessions, self.sessions.codes(some["session_id"]), start, until)
        return turn, flat(some["fact"]).take(pa.array(fact)), start[fact]

    # --- rules ------------------------------------------------------------------------------------------------------

    def judge_rules(self, rules: pa.Table) -> None:
        """Repository rules: of folders and topics that the task touches, from paths that the contract names."""
        mine = np.flatnonzero(self.of("repository_instructions"))
        turn, row = self.turn[mine], self.row[mine]
        task = self._task_paths()
        above = folders_above(task.path)
        folders = (task.owner[above.rows], above.vocabulary.take(pa.array(above.codes)))
        everyone = np.arange(self.turns.num_rows)
        folders = (
            np.concatenate([folders[0], everyone]),
            pa.concat_arrays([folders[1].cast(pa.string()), pa.repeat("", len(everyone))]),
        )
        touched = in_pairs((turn, flat(rules["folder"]).take(pa.array(row))), folders)
        wanted, about = topic_matrix(flat(rules["topics"])), self._topics(task)
        every_task = np.asarray(~wanted.any(axis=1))
        on_topic = every_task[row] | (wanted[row] & about[turn]).any(axis=1)
        self._refuse_some("relevance", mine, ~(touched & on_topic), "out_of_task_scope")
        self._refuse_some("trust", mine, ~self._named(turn, self.path.take(pa.array(mine))), "unnamed_instructions")

    def _refuse_some(self, gate: str, index: Int, mask: Bool, reason: str) -> None:
        whole = np.zeros(len(self.gate), dtype=bool)
        whole[index] = mask
        self.refuse(gate, whole, reason)

    def _task_paths(self) -> Paths:
        working = joined(flat(self.turns["working_directory"]), ".", between="/")
        there = np.asarray(working.is_valid()).astype(bool)
        of_task = Paths.of(self.turns["task_paths"], self.states["modified_files"], self.states["failure_paths"])
        owner = np.concatenate([of_task.owner, np.flatnonzero(there)])
        return Paths(owner, pa.concat_arrays([of_task.path, working.filter(pa.array(there)).cast(pa.string())]))

    def _topics(self, task: Paths) -> NDArray[np.bool_]:
        """The topics that each task touches: by its goal, its files, its phase."""
        about = topics_in(flat(self.states["user_goal"]))
        of_path = topics_in(task.path)
        np.logical_or.at(about, task.owner, of_path)
        names = list(TOPICS)
        about[:, names.index("tests")] |= among(self.states["phase"], TESTING_PHASES)
        about[:, [names.index(name) for name in ALWAYS]] = True
        return about

    def _named(self, turn: Int, path: pa.Array) -> Bool:
        """Whether the contract of each source's turn names its path as a source of instructions; rules without one are the harness's."""
        lists = flat(self.turns["instruction_sources"])
        joined = pc.binary_join(lists, "\n").dictionary_encode()
        which = np.asarray(joined.indices).astype(np.int64)[turn]
        paths = path.dictionary_encode()
        code = np.asarray(pc.fill_null(paths.indices, -1)).astype(np.int64)
        found = np.stack(
            [
                np.append(matching_paths(paths.dictionary, globs.split("\n")), True)
                for globs in joined.dictionary.to_pylist()
            ]
        )
        return found[which, code]

    # --- files ------------------------------------------------------------------------------------------------------

    def judge_files(self, matches: pa.Table, items: pa.Table) -> None:
        """Evidence about files: inside the package, not generated, as the file is now; and how near it is to the failure."""
        mine = self.of("file_content", "search_match", "retrieval_result") | (
            self.of("latest_observation") & among(self.sources["observation_class"], ("file_content",))
        )
        index = np.flatnonzero(mine)
        turn, path = self.turn[index], self.path.take(pa.array(index))
        match, item = self.of("search_match")[index], self.of("retrieval_result")[index] & (self.row[index] >= 0)
        row = self.row[index]
        generated, public = np.zeros((2, len(index)), dtype=bool)
        for part, table in ((match, matches), (item, items)):
            generated[part] = flags_at(table["generated"], row[part])
            public[part] = flags_at(table["public_api"], row[part])
        failing, modified = Paths.of(self.states["failure_paths"]), Paths.of(self.states["modified_files"])
        cases = Paths.of(self.states["failure_paths"], self.turns["task_paths"])
        self.tier[index] = tiers(turn, path, public, failing, modified, cases)
        near = (self.tier[index] < TIERS) & self.of("search_match", "retrieval_result", "file_content")[index]
        self.reason[index[near]] = np.array(_TIER_REASONS, dtype=object)[self.tier[index[near]]]
        root = flat(self.turns["package_root"]).take(pa.array(turn))
        inside = _below(path, root)
        code = np.asarray(pc.fill_null(pc.match_substring_regex(path, pattern=_CODE), False)).astype(bool)
        here = self.of("latest_observation")[index]
        self._refuse_some("relevance", index, generated & ~here, "generated_file")
        self._refuse_some("relevance", index, ~inside & code & ~here & ~near, "outside_package")
        shown = self.seq[index]
        for slot, reason in (("modified", "stale_version"), ("read", "superseded")):
            owner, fact, seq = self.held(slot)
            last = value_at((turn, path), (owner, fact), seq)
            reading = among(self.kind.take(pa.array(index)), ("file_content", "latest_observation"))
            stale = (last > shown) & (shown >= 0) & ((slot == "modified") | reading)
            self._refuse_some("currency", index, stale, reason)
        missing = self.of("retrieval_result") & (self.row < 0)
        missing[index[item]] |= np.asarray(take_or(items["label"], row[item]).is_null()).astype(bool)
        self.refuse("trust", missing, "snapshot_missing")

    # --- events -----------------------------------------------------------------------------------------------------

    def judge_events(self, events: pa.Table) -> None:
        """Events: key ones, of kinds and zones that the model may see."""
        of_event = np.flatnonzero(self.of("recent_tail", "latest_observation", "file_content"))
        key = flags_at(events["key_event"], self.row[of_event])
        tail = self.of("recent_tail")[of_event]
        self._refuse_some("relevance", of_event, tail & ~key, "not_key_event")
        content = flat(self.sources["content_class"])
        self.refuse("permission", among(content, ("ui_only",)), "ui_only")
        self.refuse("permission", among(content, ("audit_only",)), "audit_only")
        self._refuse_some("permission", of_event, ~self._zone(of_event, events), "zone_denied")

    def _zone(self, index: Int, table: pa.Table) -> Bool:
        """Whether the turn may see the zone of each source."""
        zones = Ragged.of(self.turns["zones"])
        held = (zones.rows, zones.vocabulary.take(pa.array(zones.codes)))
        return in_pairs((self.turn[index], flat(table["zone"]).take(pa.array(self.row[index]))), held)

    # --- memories ---------------------------------------------------------------------------------------------------

    def judge_memories(self, memories: pa.Table) -> None:
        """Memories: governed, in scope, verified lately, not ended; whoever lacks metadata is a candidate and no memory (S3.54)."""
        mine = np.flatnonzero(self.of("memory_candidate"))
        row, turn = self.row[mine], self.turn[mine]
        at = pa.array(row)
        scope, project = flat(memories["scope"]).take(at), flat(self.turns["project"]).take(pa.array(turn))
        task = self._task_paths()
        above = folders_above(task.path)
        folder = in_pairs((turn, scope), (task.owner[above.rows], above.vocabulary.take(pa.array(above.codes))))
        in_scope = np.asarray(pc.fill_null(pc.equal(scope, project), False)).astype(bool) | folder
        self._refuse_some("relevance", mine, ~in_scope & np.asarray(scope.is_valid()).astype(bool), "wrong_scope")
        now = micros(self.turns["as_of"], 0)[turn]
        state = flat(memories["lifecycle"]).take(at)
        revoked, seen = among(state, ("revoked",)), self.held("revoked")
        revoked |= in_pairs((turn, flat(memories["memory_id"]).take(at)), (seen[0], seen[1]))
        self._refuse_some("currency", mine, revoked, "revoked")
        ends, checked = (flat(memories[name]).take(at) for name in ("expires_at", "last_verified_at"))
        self._refuse_some(
            "currency", mine, _known(ends) & (micros(ends, 0) <= now) | among(state, ("expired",)), "expired"
        )
        self._refuse_some("currency", mine, among(state, ("deprecated",)), "superseded")
        days = self.allowed("memory_days")[mine].astype(np.int64)
        lately = _known(checked) & (micros(checked, 0) > now - days * DAY)
        whole = [_known(flat(memories[name]).take(at)) for name in ("scope", "source", "confidence", "expires_at")]
        whole.append(
            np.asarray(pc.greater(pc.list_value_length(flat(memories["source_refs"]).take(at)), 0)).astype(bool)
        )
        governed = np.logical_and.reduce(whole) & ~among(state, ("candidate",))
        self._refuse_some("currency", mine, governed & ~lately, "unverified_recently")
        guess = among(flat(memories["source"]).take(at), ("model",))
        self._refuse_some("trust", mine, guess & ~among(state, ("verified",)), "model_guess")
        self._refuse_some("trust", mine, ~governed, "ungoverned_memory")
        self._refuse_some("permission", mine, ~self._zone(mine, memories), "zone_denied")
        confidence = flat(memories["confidence"]).take(at).fill_null(0.0).to_numpy(zero_copy_only=False)
        self._refuse_some("worth", mine, confidence < self.allowed("memory_confidence")[mine], "low_confidence")
        order = np.lexsort((row, -micros(checked, 0), -confidence, turn))
        self._ranked(mine[order])

    def judge_tools(self, tools: pa.Table) -> None:
        """Tools: what this phase shows (S3.57)."""
        mine = np.flatnonzero(self.of("tool_schema"))
        shown = Ragged.of(self.phases["capabilities"])
        policy = self.policy[self.turn[mine]]
        capability = flat(tools["capability"]).take(pa.array(self.row[mine]))
        visible = in_pairs((policy, capability), (shown.rows, shown.vocabulary.take(pa.array(shown.codes))))
        own = Ragged.of(tools["phases"])
        phase = flat(self.states["phase"]).take(pa.array(self.turn[mine]))
        named = in_pairs((self.row[mine], phase), (own.rows, own.vocabulary.take(pa.array(own.codes))))
        given = np.asarray(flat(tools["phases"]).is_valid()).astype(bool)[self.row[mine]]
        visible = np.where(given, named, visible)
        self._refuse_some("relevance", mine, ~visible, "phase_hidden_tool")
        self._ranked(mine)

    # --- worth ------------------------------------------------------------------------------------------------------

    def judge_worth(self, events: pa.Table) -> None:
        """What is left, by its rank within its part: as much as the phase takes."""
        self._tail(events)
        self._evidence(events)
        memory = np.flatnonzero(self.of("memory_candidate") & self._passed())
        self._refuse_some("worth", memory, self.rank[memory] >= self.allowed("memory_items")[memory], "memory_cap")
        self._disclosure()

    def _passed(self) -> Bool:
        return self.gate == len(GATES.values)

    def _ranked(self, ordered: Int) -> None:
        """Ranks within each turn, of those that no gate refused first; `ordered` is sorted by turn and merit."""
        passed = self._passed()[ordered]
        order = np.lexsort((np.arange(len(ordered)), ~passed, self.turn[ordered]))
        self.rank[ordered[order]] = rank_within(self.turn[ordered[order]])

    def _tail(self, events: pa.Table) -> None:
        tail = np.flatnonzero(self.of("recent_tail"))
        kind = flat(events["kind"]).take(pa.array(self.row[tail]))
        again = among(kind, ("history.summarized",))
        for slot, at in (("goal", "user.goal"), ("constraint", "user.constraint")):
            owner, _, seq = self.held(slot)
            again |= among(kind, (at,)) & _isin(self.turn[tail], self.seq[tail], owner, seq)
        self._refuse_some("worth", tail, again, "duplicate")
        model = among(flat(events["actor"]).take(pa.array(self.row[tail])), ("model",)) & ~among(kind, ("tool.intent",))
        spoken = tail[model & self._passed()[tail]]
        newest = spoken[np.lexsort((-self.seq[spoken], self.turn[spoken]))]
        self._refuse_some("worth", newest, rank_within(self.turn[newest]) >= REASONING, "reasoning_cap")
        first = among(
            kind, ("user.message", "user.goal", "user.confirmation", "permission.denied", "permission.granted")
        )
        merit = self.seq[tail] + np.where(first, AHEAD, 0)
        self._ranked(tail[np.lexsort((-self.seq[tail], -merit, self.turn[tail]))])
        limit = integers(self.turns["tail_limit"])[self.turn[tail]]
        self._refuse_some("worth", tail, self.rank[tail] >= limit, "tail_limit")
        latest = np.flatnonzero(self.of("latest_observation"))
        self._ranked(latest[np.lexsort((-self.seq[latest], self.turn[latest]))])

    def _evidence(self, events: pa.Table) -> None:
        mine = np.flatnonzero(self.of("file_content", "search_match", "retrieval_result"))
        far = self.of("search_match")[mine] & (self.tier[mine] == TIERS)
        kind = np.where(self.of("file_content")[mine], 0, np.where(self.of("retrieval_result")[mine], 1, 2))
        order = np.lexsort(
            (np.arange(len(mine)), np.where(kind == 0, -self.seq[mine], 0), kind, self.tier[mine], far, self.turn[mine])
        )
        ordered, far = mine[order], far[order]
        twice = self._passed()[ordered] & np.asarray(
            flat(self.sources["evidence_id"]).take(pa.array(ordered)).is_valid()
        )
        again = ordered[twice]
        code = positions(self.sources["evidence_id"], pc.unique(flat(self.sources["evidence_id"])))[again]
        first = np.unique(np.stack([self.turn[again], code], axis=1), axis=0, return_index=True)[1]
        copies = np.ones(len(again), dtype=bool)
        copies[first] = False
        self._refuse_some("worth", again, copies, "duplicate")
        self._ranked(ordered)
        passed = self._passed()[ordered]
        beyond = passed & ~far & (self.rank[ordered] >= self.allowed("retrieval_items")[ordered])
        self.reason[ordered[beyond]] = "retrieval_cap"
        self.referenced[ordered[passed & (beyond | far)]] = True
        wanted = ordered[passed & (beyond | far)]
        late = wanted[rank_within(self.turn[wanted]) >= REFERENCES]
        self._refuse_some("worth", late, np.ones(len(late), dtype=bool), "retrieval_cap")
        self.referenced[late] = False
        self._carried(events)
        self._noticed()

    def _noticed(self) -> None:
        """Files that are left out and that the model should know of: it learns why, and none of their text."""
        told = np.isin(self.reason.astype(str), NOTICED) & ~self._passed() & _known(self.path)
        told &= self.of("file_content", "search_match", "retrieval_result")
        mine = np.flatnonzero(told)
        code = positions(self.path, pc.unique(self.path))[mine]
        mine = mine[np.sort(np.unique(np.stack([self.turn[mine], code], axis=1), axis=0, return_index=True)[1])]
        self.referenced[mine[rank_within(self.turn[mine]) < NOTICES]] = True

    def _carried(self, events: pa.Table) -> None:
        """Evidence that an event of this input carries already."""
        event = np.flatnonzero(self.of("recent_tail", "latest_observation") & self._passed())
        held = Ragged.of(flat(events["evidence_ids"]))
        which, place = spread(held.starts[self.row[event]], np.diff(held.starts)[self.row[event]])
        if not len(which):
            return
        ids = held.vocabulary.take(pa.array(held.codes[place]))
        item = np.flatnonzero(self.of("retrieval_result") & self._passed())
        asked = (self.turn[item], flat(self.sources["evidence_id"]).take(pa.array(item)))
        carrier = value_at(asked, (self.turn[event][which], ids), event[which])
        whole = np.full(len(self.gate), -1, dtype=np.int64)
        whole[item] = carrier
        self.carrier = take_or(self.sources["source_id"], whole)

    def _disclosure(self) -> None:
        """What the session may still disclose of a part, beyond what it did; the same evidence again is no new disclosure."""
        caps = Ragged.of(self.turns["disclosure"])
        for part, kind, column in (
            ("retrieval", "retrieval_result", "evidence_id"),
            ("memory", "memory_candidate", "reference"),
        ):
            limit = _limit(caps, f"{part}=", self.turns.num_rows)
            if (limit == FOREVER).all():
                continue
            mine = np.flatnonzero(self.of(kind) & self._passed())
            mine = mine[np.lexsort((self.rank[mine], self.turn[mine]))]
            owner, shown, _ = self.held("disclosed")
            of_part = np.asarray(pc.starts_with(shown, pattern="memory:")).astype(bool) == (part == "memory")
            owner, shown = owner[of_part], shown.filter(pa.array(of_part))
            known = in_pairs((self.turn[mine], flat(self.sources[column]).take(pa.array(mine))), (owner, shown))
            count = np.bincount(owner, minlength=self.turns.num_rows)
            new = mine[~known]
            self._refuse_some(
                "worth",
                new,
                count[self.turn[new]] + rank_within(self.turn[new]) >= limit[self.turn[new]],
                "disclosure_cap",
            )


def _below(path: pa.Array, root: pa.Array) -> Bool:
    """Whether each path lies in the folder beside it; where there is no folder, or no path, it does."""
    folder = pc.replace_substring_regex(root.cast(pa.string()), pattern=r"/*$", replacement="/")
    encoded = folder.dictionary_encode()
    inside = np.ones(len(path), dtype=bool)
    code = np.asarray(pc.fill_null(encoded.indices, -1)).astype(np.int64)
    for place, name in enumerate(encoded.dictionary.to_pylist()):
        mine = np.flatnonzero(code == place)
        inside[mine] = np.asarray(pc.fill_null(pc.starts_with(path.take(pa.array(mine)), pattern=name), True)).astype(
            bool
        )
    return inside


def _known(values: pa.Array) -> Bool:
    return np.asarray(values.is_valid()).astype(bool)


def _isin(turn: Int, seq: Int, turns: Int, seqs: Int) -> Bool:
    """Which (turn, event) pairs occur among others."""
    width = int(max(seq.max(initial=0), seqs.max(initial=0))) + 1
    return np.isin(turn * width + seq, turns * width + seqs)


def _limit(caps: Ragged, prefix: str, turns: int) -> Int:
    """The number behind a prefix in lists of `part=number`; no limit where there is none."""
    number = [
        int(text.removeprefix(prefix)) if text.startswith(prefix) else FOREVER for text in caps.vocabulary.to_pylist()
    ]
    found = np.full(turns, FOREVER, dtype=np.int64)
    np.minimum.at(found, caps.rows, np.array([*number, FOREVER], dtype=np.int64)[caps.codes])
    return found
