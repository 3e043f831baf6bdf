"""Context selection: five gates in order decide whether a source may enter the input.

Reads: sources with their origins, turns, states, phases. Gives `selection`, one row per source: the first gate that
refused it with the reason, or the reason it is shown.

Note: relevance never admits by itself (S3.21). A relevant log may be stale, a relevant file denied, a relevant memory a
guess. No model has a say here: nothing a model or a tool wrote changes a gate's decision (S3.19).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .columns.keys import among, codes_of, constants, flags_at, flat, integers, pair_positions, take_or
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
from .turns.as_of import FOREVER, HORIZON, before, last_by
from .turns.duties import has_duty
from .turns.judging import known
from .turns.scopes import (
    TIERS,
    Paths,
    below,
    folders_above,
    in_pairs,
    permitted,
    tiers,
    topic_matrix,
    value_at,
)
from .turns.versions_read import changes_read
from .turns.words import RULES_NOT_READ, SELECTION_GATES
from .turns.worth import Worth

Int = NDArray[np.int64]
Bool = NDArray[np.bool_]

DAY = 86_400_000_000
_CODE = r"\.(?:[cm]?[jt]sx?|py|go|rs|java|kt|rb|c|cc|cpp|h|hpp|cs|swift|scala|php)$"
PROPOSALS = 6
"""Maximum number of constraints and goals not from the user, newest first; all keep their rows and events."""
BEHIND = 1000
"""Added to the rank of proposals, so that memories, which are governed, go first."""
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
    """The gates' decision on every source, in the order of the sources."""
    work = _Work(context_sources, context_turns, turn_states, state_facts, phase_policies)
    work.judge_rules(rule_texts)
    work.judge_constraints()
    work.judge_conflicts()
    work.judge_files(log_matches, retrieved_items, log_events)
    work.judge_events(log_events, log_matches)
    work.judge_memories(memory_records, log_events)
    work.judge_tools(tool_schemas)
    work.judge_worth(log_events, log_matches, retrieved_items)
    return SELECTION.build(
        {
            "input_id": context_sources["input_id"],
            "source_id": context_sources["source_id"],
            "position": context_sources["position"],
            "decided_by": constants((*SELECTION_GATES.values, None)).take(pa.array(work.gate)),
            "reason_code": pa.array(work.reason, pa.string()),
            "referenced": work.referenced,
            "tier": work.tier.astype(np.int32),
            "rank": work.rank.astype(np.int32),
            "carrier": work.carrier,
        }
    )


class _Work(Worth):
    """Judges the sources by the first four gates."""

    # --- rules ------------------------------------------------------------------------------------------------------

    def judge_rules(self, rules: pa.Table) -> None:
        """Repository rules: for folders and topics that the task touches, from paths that the contract names."""
        mine = np.flatnonzero(self.of("repository_instructions"))
        turn, row = self.turn[mine], self.row[mine]
        unread = flat(rules["left_out"]).take(pa.array(row))
        for code in RULES_NOT_READ if unread.null_count < len(unread) else ():
            self.refuse_some("relevance", mine, among(unread, (code,)), code)
        task = self.task_paths()
        above = folders_above(task.path)
        folders = (task.owner[above.rows], above.vocabulary.take(pa.array(above.codes)))
        everyone = np.arange(self.turns.num_rows)
        folders = (
            np.concatenate([folders[0], everyone]),
            pa.concat_arrays([folders[1].cast(pa.string()), pa.repeat("", len(everyone))]),
        )
        touched = in_pairs((turn, flat(rules["folder"]).take(pa.array(row))), folders)
        wanted, about = topic_matrix(flat(rules["topics"])), self.task_topics()
        every_task = np.asarray(~wanted.any(axis=1))
        on_topic = every_task[row] | (wanted[row] & about[turn]).any(axis=1)
        binding = has_duty(rules["text"])[row] & known(flat(rules["path"]).take(pa.array(row)))
        self.refuse_some("relevance", mine, ~touched | ~(on_topic | binding), "out_of_task_scope")
        self.refuse_some("trust", mine, ~self._named(turn, self.path.take(pa.array(mine))), "unnamed_instructions")
        self.judge_given(np.flatnonzero(self.of("system_rules", "repository_instructions")), rules)
        other = mine[~on_topic & self.passed()[mine]]
        self.referenced[other] = True
        self.reason[other] = "section_on_demand"

    def judge_constraints(self) -> None:
        """User messages, constraints and history in the state: in the turn's zones, each distinct text once."""
        kept = np.flatnonzero(self.of("active_constraint", "history_summary", "user_message"))
        self.refuse_some("permission", kept, ~self.zone(kept, self.facts), "zone_denied")
        mine = np.flatnonzero(self.of("active_constraint"))
        words = codes_of([flat(self.sources[name]).take(pa.array(mine)) for name in ("heading", "text")])
        first = np.unique(np.stack([self.turn[mine], words], axis=1), axis=0, return_index=True)[1]
        again = np.ones(len(mine), dtype=bool)
        again[first] = False
        hint = among(self.sources["standing"], ("hint",))[mine]
        self.refuse_some("worth", mine[~hint], again[~hint], "stands_above")
        self.refuse_some("worth", mine[hint], again[hint], "duplicate")
        proposed = mine[hint]
        self.reason[proposed[self.passed()[proposed]]] = "proposed"
        self.ranked(proposed[np.lexsort((-self.seq[proposed], self.turn[proposed]))])
        self.refuse_some("worth", proposed, self.rank[proposed] >= PROPOSALS, "proposal_cap")
        self.rank[proposed] += BEHIND

    def judge_conflicts(self) -> None:
        """Pairs of rules that may disagree: shown only where both rules are."""
        mine = np.flatnonzero(self.of("rule_conflict"))
        about = Ragged.of(flat(self.sources["about"]).take(pa.array(mine)))
        ids = about.vocabulary.take(pa.array(about.codes)).cast(pa.string())
        shown = self.passed() & ~self.referenced
        gone = ~shown & self.of("system_rules", "repository_instructions", "active_constraint", "user_goal")
        left_out = (self.turn[gone], flat(self.sources["source_id"]).filter(pa.array(gone)))
        missing = np.zeros(len(mine), dtype=bool)
        missing[about.rows[in_pairs((self.turn[mine][about.rows], ids), left_out)]] = True
        self.refuse_some("relevance", mine, missing, "rule_left_out")

    def _named(self, turn: Int, path: pa.Array) -> Bool:
        """Whether the turn's contract names each path as a source of instructions; true for rules without a path."""
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

    def judge_files(self, matches: pa.Table, items: pa.Table, events: pa.Table) -> None:
        """Evidence about files: inside the package, not generated, current; and its distance to the failure."""
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
        inside = below(path, root)
        code = np.asarray(pc.fill_null(pc.match_substring_regex(path, pattern=_CODE), False)).astype(bool)
        here = self.of("latest_observation")[index]
        worked_on = Paths.of(self.states["modified_files"], self.turns["task_paths"]).have(turn, path)
        self.refuse_some("relevance", index, generated & ~here & ~worked_on, "generated_file")
        self.refuse_some("relevance", index, ~inside & code & ~here & ~near, "outside_package")
        shown, dated = self._last_reflected(index, item, row, items, events)
        changed, reading = self.held("changed"), self.of("file_content", "latest_observation")[index]
        for (owner, fact, seq), reason, judged in (
            (self.held("modified"), "stale_version", dated),
            (changed, "stale_version", dated),
        ):
            last = value_at((turn, path), (owner, fact), seq)
            self.refuse_some("currency", index, (last > shown) & judged, reason)
        since, until = self._proven(index, index[reading & known(path)], events, (self.held("modified"), changed))
        self.refuse_some("currency", index, (since > shown) & dated, "stale_version")
        self._judge_reads(index[reading & known(path)], events)
        owner, fact, seq = self.held("doubtful")
        doubted = np.maximum(self._any_changed(*changed)[turn], value_at((turn, path), (owner, fact), seq))
        doubted = np.maximum(doubted, until)
        doubtful = (doubted > shown) & dated & ~here
        self.reason[index[doubtful & self.passed()[index]]] = "may_have_changed"
        self.judge_given(index[item], items)
        missing = self.of("retrieval_result") & (self.row < 0)
        self.refuse("trust", missing, "snapshot_missing")
        empty = np.asarray(take_or(items["label"], row[item]).is_null()).astype(bool)
        self.refuse_some("worth", index[item], empty, "snapshot_empty")

    def _judge_reads(self, index: Int, events: pa.Table) -> None:
        """Refuses reads of a file that were repeated later with at least the same lines, or in another version."""
        at = pa.array(self.row[index])
        lines = pc.extract_regex(flat(events["subject"]).take(at), pattern=r"^(?P<first>\d+)-(?P<last>\d+)$")
        first, last = (
            integers(pc.struct_field(lines, name).cast(pa.int64()).fill_null(whole))
            for name, whole in (("first", 1), ("last", FOREVER))
        )
        version, versioned = flat(events["version"]).take(at), known(flat(events["version"]).take(at))
        code = codes_of([version.fill_null("")])
        visible = among(flat(events["visibility"]).take(at), ("model-visible",)) & self.zone(index, events)
        group = codes_of([pa.array(self.turn[index]), self.path.take(pa.array(index))])
        order = np.lexsort((self.seq[index], group))
        place = np.arange(len(index))
        which, behind = spread(place + 1, group[order].searchsorted(group[order], side="right") - place - 1)
        older, newer = order[which], order[behind]
        other = versioned[older] & versioned[newer] & (code[older] != code[newer])
        again = (first[newer] <= first[older]) & (last[newer] >= last[older])
        for reason, mask in (("stale_version", other), ("superseded", again)):
            refused = np.zeros(len(index), dtype=bool)
            refused[older[mask & visible[newer]]] = True
            self.refuse_some("currency", index, refused, reason)

    def _proven(
        self, index: Int, reads: Int, events: pa.Table, changes: Sequence[tuple[Int, pa.Array, Int]]
    ) -> tuple[Int, Int]:
        """The last two reads that prove a change of the file of each source, by their different versions; -1 for none.
        What was seen before the first of them is stale, what was seen between them may be.
        """
        visible = among(flat(events["visibility"]).take(pa.array(self.row[reads])), ("model-visible",))
        version = flat(events["version"]).take(pa.array(self.row[reads]))
        path = self.path.take(pa.array(reads))
        explained = [value_at((self.turn[reads], path), (owner, fact), seq) for owner, fact, seq in changes]
        since_change = self.seq[reads] > np.maximum(*explained)  # a change that the log has needs no proof
        kept = visible & self.zone(reads, events) & known(version) & since_change
        reads, version = reads[kept], version.filter(pa.array(kept))
        asked = self.turn[index], self.path.take(pa.array(index))
        return changes_read(asked, (self.turn[reads], self.path.take(pa.array(reads))), self.seq[reads], version)

    def _any_changed(self, owner: Int, fact: pa.Array, seq: Int) -> Int:
        """The last event of each turn that may have changed files that it does not name, -1 for none."""
        last = np.full(self.turns.num_rows, -1, dtype=np.int64)
        unnamed = among(fact, ("*",))
        np.maximum.at(last, owner[unnamed], seq[unnamed])
        return last

    def _last_reflected(self, index: Int, item: Bool, row: Int, items: pa.Table, events: pa.Table) -> tuple[Int, Bool]:
        """The last event whose changes each text about a file reflects, and whether that is known: the text's own event
        or, for items of a dated snapshot, the last event of the horizon before that date, if any.
        """
        shown = self.seq[index].copy()
        when = flat(items["as_of"]).take(pa.array(row[item]))
        dated_items = np.flatnonzero(item)[known(when)]
        turn, event = before(self.sessions, self.sessions.codes(events["session_id"]), integers(events["seq"]), HORIZON)
        created = micros(events["created_at"], 0)[event]
        asked = self.turn[index[dated_items]], micros(when.drop_null(), 0)
        last = last_by(asked, turn, integers(events["seq"])[event], created)
        own = shown[dated_items]
        shown[dated_items] = np.where(own >= 0, np.minimum(own, last), last)
        dated = shown >= 0
        dated[dated_items] = True
        return shown, dated

    # --- events -----------------------------------------------------------------------------------------------------

    def judge_events(self, events: pa.Table, matches: pa.Table) -> None:
        """Events: admits key events of kinds and zones that the model may see."""
        of_event = np.flatnonzero(self.of("recent_tail", "latest_observation", "file_content"))
        key = flags_at(events["key_event"], self.row[of_event])
        tail = self.of("recent_tail")[of_event]
        rules = among(flat(events["kind"]).take(pa.array(self.row[of_event])), ("rules.system", "rules.repository"))
        self.refuse_some("trust", of_event, tail & rules, "rules_of_log")
        self.refuse_some("relevance", of_event, tail & ~rules & ~key, "not_key_event")
        self.refuse("trust", self.of("pasted_text") & (self.row >= 0), "pasted_text")
        content = flat(self.sources["content_class"])
        self.refuse("permission", among(content, ("ui_only",)), "ui_only")
        self.refuse("permission", among(content, ("audit_only",)), "audit_only")
        self.refuse_some("permission", of_event, ~self.zone(of_event, events), "zone_denied")
        found = np.flatnonzero(self.of("search_match"))
        self._as_its_event(found, *self._places(found, matches, "seq"), events)
        item = np.flatnonzero(self.of("retrieval_result") & (self.seq >= 0))
        session = flat(self.turns["session_id"]).take(pa.array(self.turn[item]))
        self._as_its_event(item, session, pa.array(self.seq[item]), events)

    def _places(self, index: Int, table: pa.Table, seq: str) -> tuple[pa.Array, pa.Array]:
        """The session and the event that the row of each source comes from."""
        at = pa.array(self.row[index])
        return flat(table["session_id"]).take(at), flat(table[seq]).take(at)

    def _as_its_event(self, index: Int, session: pa.Array, seq: pa.Array, events: pa.Table) -> None:
        """Sources that came from an event, given by session and position, are shown only where the event may be."""
        row, given = np.full(len(index), -1, dtype=np.int64), np.flatnonzero(known(session))
        asked = (session.take(pa.array(given)), seq.cast(pa.string()).take(pa.array(given)))
        row[given] = pair_positions(asked, (events["session_id"], events["seq"].cast(pa.string())))
        index, row = index[row >= 0], row[row >= 0]
        at = pa.array(row)
        zone = permitted(self.turn[index], flat(events["zone"]).take(at), self.turns["zones"])
        self.judge_sight(index, zone, flat(events["visibility"]).take(at))

    # --- memories ---------------------------------------------------------------------------------------------------

    def judge_memories(self, memories: pa.Table, events: pa.Table) -> None:
        """Memories: governed, in scope, recently verified, current; those without metadata are candidates (S3.54)."""
        mine = np.flatnonzero(self.of("memory_candidate"))
        row, turn = self.row[mine], self.turn[mine]
        at = pa.array(row)
        scope, project = flat(memories["scope"]).take(at), flat(self.turns["project"]).take(pa.array(turn))
        task = self.task_paths()
        above = folders_above(task.path)
        folder = in_pairs((turn, scope), (task.owner[above.rows], above.vocabulary.take(pa.array(above.codes))))
        in_scope = np.asarray(pc.fill_null(pc.equal(scope, project), False)).astype(bool) | folder
        self.refuse_some("relevance", mine, ~in_scope & np.asarray(scope.is_valid()).astype(bool), "wrong_scope")
        now = micros(self.turns["as_of"], 0)[turn]
        state = flat(memories["lifecycle"]).take(at)
        revoked, seen = among(state, ("revoked",)), self.held("revoked")
        revoked |= in_pairs((turn, flat(memories["memory_id"]).take(at)), (seen[0], seen[1]))
        self.refuse_some("currency", mine, revoked, "revoked")
        ends, checked = (flat(memories[name]).take(at) for name in ("expires_at", "last_verified_at"))
        self.refuse_some(
            "currency", mine, known(ends) & (micros(ends, 0) <= now) | among(state, ("expired",)), "expired"
        )
        self.refuse_some("currency", mine, among(state, ("deprecated",)), "superseded")
        days = self.allowed("memory_days")[mine].astype(np.int64)
        lately = known(checked) & (micros(checked, 0) > now - days * DAY) & (micros(checked, 0) <= now)
        whole = [known(flat(memories[name]).take(at)) for name in ("scope", "source", "confidence", "expires_at")]
        whole.append(
            np.asarray(pc.greater(pc.list_value_length(flat(memories["source_refs"]).take(at)), 0)).astype(bool)
        )
        governed = np.logical_and.reduce(whole) & ~among(state, ("candidate",))
        self.refuse_some("currency", mine, governed & ~lately, "unverified_recently")
        guess = among(flat(memories["source"]).take(at), ("model",))
        self.refuse_some("trust", mine, guess & ~among(state, ("verified",)), "model_guess")
        self.refuse_some("trust", mine, ~governed, "ungoverned_memory")
        self.refuse_some("permission", mine, ~self.zone(mine, memories), "zone_denied")
        self._as_its_event(mine, *self._places(mine, memories, "from_seq"), events)
        confidence = flat(memories["confidence"]).take(at).fill_null(0.0).to_numpy(zero_copy_only=False)
        self.refuse_some("worth", mine, confidence < self.allowed("memory_confidence")[mine], "low_confidence")
        order = np.lexsort((row, -micros(checked, 0), -confidence, turn))
        self.ranked(mine[order])

    def judge_tools(self, tools: pa.Table) -> None:
        """Tools: admits those visible in this phase (S3.57)."""
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
        unknown = among(capability, ("other",)) & ~given
        self.refuse_some("relevance", mine, ~visible & unknown, "unknown_capability")
        self.refuse_some("relevance", mine, ~visible, "phase_hidden_tool")
        self.ranked(mine)
