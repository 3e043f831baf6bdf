"""The fifth gate: limits the relevant, current, trusted and permitted sources to what the phase and the turn allow.

Gives `Worth`: limits of the tail, evidence, memories and disclosure, by rank within each part.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.keys import among, codes_of, distinct_rows, flat, integers, positions, rank_within, take_or
from ..columns.ragged import Ragged, spread
from .as_of import FOREVER
from .found_lines import quoting_events
from .joining import joined
from .judging import Judgment, known
from .scopes import TIERS, in_pairs, value_at

Int = NDArray[np.int64]
Bool = NDArray[np.bool_]

REFERENCES = 12
"""Most on-demand references in one input."""
NOTICED = ("generated_file", "outside_package", "stale_version")
"""Reasons for leaving out a file that the input states (S3.55)."""
NOTICES = 6
"""Most left-out files that an input names."""
REASONING = 2
"""Most events with the model's own words in the tail, and most intents of calls."""
OTHERS = 3
"""Places in a tail of six or more that messages of the user and decisions about permissions leave to other events."""
MESSAGES = ("user.message", "user.goal", "user.constraint", "user.confirmation")


class Worth(Judgment):
    """The fifth gate over the sources under judgment."""

    def judge_worth(self, events: pa.Table, matches: pa.Table, items: pa.Table) -> None:
        """Refuse what exceeds the limits of the phase and the turn, by rank within each part."""
        self._tail(events)
        self._evidence(events, matches)
        memory = np.flatnonzero(self.of("memory_candidate") & self.passed())
        self.refuse_some("worth", memory, self.rank[memory] >= self.allowed("memory_items")[memory], "memory_cap")
        self._disclosure(items)

    def _tail(self, events: pa.Table) -> None:
        """Keep the newest messages of the user, decisions about permissions and newest other events, up to the limit.
        The last message is in the tail even if it is a constraint as well.
        """
        tail = np.flatnonzero(self.of("recent_tail", "user_message"))
        row = np.where(self.of("user_message")[tail], -1, self.row[tail])
        kind, actor = take_or(events["kind"], row), take_or(events["actor"], row)
        earlier = row < 0
        message = earlier | (among(actor, ("user",)) & among(kind, MESSAGES))
        decided = among(kind, ("permission.denied", "permission.granted"))
        again = among(kind, ("history.summarized",))
        newest = again & self._has_row(tail, "history_summary")
        self.refuse_some("currency", tail, again & ~newest & self.passed()[tail], "superseded")
        self.refuse_some("worth", tail, newest, "history_apart")
        newest_message = np.full(self.turns.num_rows, -1, dtype=np.int64)
        np.maximum.at(newest_message, self.turn[tail[message]], self.seq[tail[message]])
        last = ~among(kind, ("user.goal", "user.constraint")) & (self.seq[tail] >= newest_message[self.turn[tail]])
        for standing, reason in (("instruction", "stands_above"), ("hint", "proposed_apart")):
            self.refuse_some("worth", tail, self._stands_above(tail, standing) & ~last, reason)
        model = among(actor, ("model",)) & ~among(kind, ("tool.intent",))
        for words in (model, among(kind, ("tool.intent",))):  # the result of a call says more than its intent
            spoken = tail[words & self.passed()[tail]]
            newest = spoken[np.lexsort((-self.seq[spoken], self.turn[spoken]))]
            self.refuse_some("worth", newest, rank_within(self.turn[newest]) >= REASONING, "reasoning_cap")
        self._ranked_tail(tail, message | decided)
        limit = integers(self.turns["tail_limit"])[self.turn[tail]]
        self.refuse_some("worth", tail, self.rank[tail] >= limit, "tail_limit")
        self.reason[tail[message & self.passed()[tail]]] = "user_message"
        latest = np.flatnonzero(self.of("latest_observation"))
        self.ranked(latest[np.lexsort((-self.seq[latest], self.turn[latest]))])

    def _has_row(self, tail: Int, kind: str) -> Bool:
        """Whether each event also has a source of this kind in its turn."""
        other = np.flatnonzero(self.of(kind))
        mine, own = (
            pc.replace_substring_regex(flat(self.sources["source_id"]).take(pa.array(each)), r"^[^:]*:", "")
            for each in (tail, other)
        )
        return in_pairs((self.turn[tail], mine), (self.turn[other], own))

    def _stands_above(self, tail: Int, standing: str) -> Bool:
        """Events whose whole text is the goal or a constraint of this standing."""
        rule = np.flatnonzero(self.of("user_goal", "active_constraint") & among(self.sources["standing"], (standing,)))
        event = pc.replace_substring_regex(flat(self.sources["reference"]).take(pa.array(rule)), r"^event:", "")
        text = flat(self.sources["text"]).take(pa.array(rule))
        # The whole goal: text pasted into it is in the input as well.
        goal = flat(self.states["user_goal"]).take(pa.array(self.turn[rule]))
        text = pc.if_else(pa.array(self.of("user_goal")[rule]), goal, text)
        whole = joined(event, text, between="\n")
        mine = flat(self.sources["source_id"]).take(pa.array(tail))
        mine = joined(
            pc.replace_substring_regex(mine, r"^event:", ""),
            flat(self.sources["text"]).take(pa.array(tail)),
            between="\n",
        )
        return in_pairs((self.turn[tail], mine), (self.turn[rule], whole))

    def _ranked_tail(self, tail: Int, first: Bool) -> None:
        """Rank messages and decisions first, but the newest `OTHERS` of the other events before the oldest of them."""
        passed = self.passed()[tail]
        limit = integers(self.turns["tail_limit"])[self.turn[tail]]
        order = np.lexsort((-self.seq[tail], ~first, ~passed, self.turn[tail]))
        group = self.turn[tail][order] * 4 + (~passed)[order] * 2 + (~first)[order]
        place = np.empty(len(tail), dtype=np.int64)
        place[order] = rank_within(group)
        room = np.maximum(limit - OTHERS, limit // 2)
        late = np.where(first, place >= room, place >= limit - room)
        self.ranked(tail[np.lexsort((-self.seq[tail], ~first, late, self.turn[tail]))])

    def _evidence(self, events: pa.Table, matches: pa.Table) -> None:
        quoting = quoting_events(self.sources, self.turn, self.passed(), self.allowed("full_characters"), matches)
        self.carrier = take_or(self.sources["source_id"], quoting)
        mine = np.flatnonzero(self.of("file_content", "search_match", "retrieval_result"))
        far = self.of("search_match")[mine] & (self.tier[mine] == TIERS)
        quoted = quoting[mine] >= 0  # lines that an event of the input shows rank behind all others
        kind = np.where(self.of("file_content")[mine], 0, np.where(self.of("retrieval_result")[mine], 1, 2))
        merit = (np.arange(len(mine)), np.where(kind == 0, -self.seq[mine], 0))
        own = np.lexsort((*merit, kind, self.tier[mine], far, quoted, ~self.passed()[mine], self.turn[mine]))
        place = np.empty(len(mine), dtype=np.int64)
        group = codes_of(
            [pa.array(each[own]) for each in (self.turn[mine], self.passed()[mine], quoted, far, self.tier[mine], kind)]
        )
        place[own] = rank_within(group)
        # Files that were read, items of snapshots and matches alternate, so no kind takes all places.
        order = np.lexsort((*merit, kind, place, self.tier[mine], far, quoted, self.turn[mine]))
        ordered, far = mine[order], far[order]
        twice = self.passed()[ordered] & np.asarray(
            flat(self.sources["evidence_id"]).take(pa.array(ordered)).is_valid()
        )
        again = ordered[twice]
        code = positions(self.sources["evidence_id"], pc.unique(flat(self.sources["evidence_id"])))[again]
        first = np.unique(np.stack([self.turn[again], code], axis=1), axis=0, return_index=True)[1]
        copies = np.ones(len(again), dtype=bool)
        copies[first] = False
        self.refuse_some("worth", again, copies, "duplicate")
        self._found_again(ordered, far, quoted[order])
        self.ranked(ordered)
        passed = self.passed()[ordered]
        beyond = passed & ~far & (self.rank[ordered] >= self.allowed("retrieval_items")[ordered])
        self.reason[ordered[beyond]] = "retrieval_cap"
        self.reason[ordered[passed & far]] = "on_demand"  # replaces a reason about changes: its text is not shown
        self.referenced[ordered[passed & (beyond | far)]] = True
        wanted = ordered[passed & (beyond | far)]
        late = wanted[rank_within(self.turn[wanted]) >= REFERENCES]
        self.refuse_some("worth", late, np.ones(len(late), dtype=bool), "retrieval_cap")
        self.referenced[late] = False
        self._carried(events)
        self._noticed()

    def _found_again(self, ordered: Int, far: Bool, quoted: Bool) -> None:
        """Refuse matches of a place that an earlier match in this order has too (with the same text, if lines are
        shown). A match that an event quotes has no line.
        """
        mine = np.flatnonzero(self.of("search_match")[ordered] & self.passed()[ordered] & ~quoted)
        at = pa.array(ordered[mine])
        text = pc.if_else(
            pa.array(far[mine]), "", pc.fill_null(flat(self.sources["text"]).take(at).cast(pa.large_string()), "")
        )
        code = codes_of([pa.array(self.turn[ordered[mine]]), flat(self.sources["reference"]).take(at), text])
        again = np.ones(len(mine), dtype=bool)
        again[np.unique(code, return_index=True)[1]] = False
        self.refuse_some("worth", ordered[mine], again, "duplicate")

    def _noticed(self) -> None:
        """Mark left-out files that the model should know about: it sees the reason, and none of their text."""
        noticed = np.isin(self.reason.astype(str), NOTICED) & ~self.passed() & ~self.hidden & known(self.path)
        noticed &= self.of("file_content", "search_match", "retrieval_result")
        mine = np.flatnonzero(noticed)
        code = positions(self.path, pc.unique(self.path))[mine]
        mine = mine[np.sort(np.unique(np.stack([self.turn[mine], code], axis=1), axis=0, return_index=True)[1])]
        self.referenced[mine[rank_within(self.turn[mine]) < NOTICES]] = True

    def _carried(self, events: pa.Table) -> None:
        """Evidence that an event of this input already carries."""
        event = np.flatnonzero(self.of("recent_tail", "latest_observation") & self.passed())
        held = Ragged.of(flat(events["evidence_ids"]))
        which, place = spread(held.starts[self.row[event]], np.diff(held.starts)[self.row[event]])
        if not len(which):
            return
        ids = held.vocabulary.take(pa.array(held.codes[place]))
        item = np.flatnonzero(self.of("retrieval_result") & self.passed())
        asked = (self.turn[item], flat(self.sources["evidence_id"]).take(pa.array(item)))
        carrier = value_at(asked, (self.turn[event][which], ids), event[which])
        whole = np.full(len(self.gate), -1, dtype=np.int64)
        whole[item] = carrier
        self.carrier = pc.coalesce(self.carrier, take_or(self.sources["source_id"], whole))

    def _disclosure(self, items: pa.Table) -> None:
        """Limit what the session may still disclose of a part; evidence that was disclosed before is not a new
        disclosure. A request that names only snapshots may have shown all their items: they count, and are shown again
        only while all of them are within the cap.
        """
        caps = Ragged.of(self.turns["disclosure"])
        for part, kind, column in (
            ("retrieval", "retrieval_result", "evidence_id"),
            ("memory", "memory_candidate", "reference"),
        ):
            limit = _limit(caps, f"{part}=", self.turns.num_rows)
            if (limit == FOREVER).all():
                continue
            mine = np.flatnonzero(self.of(kind) & self.passed())
            mine = mine[np.lexsort((self.rank[mine], self.turn[mine]))]
            owner, shown, _ = self.held("disclosed")
            of_part = np.asarray(pc.starts_with(shown, pattern="memory:")).astype(bool) == (part == "memory")
            owner, shown = owner[of_part], shown.filter(pa.array(of_part))
            asked = (self.turn[mine], flat(self.sources[column]).take(pa.array(mine)))
            known = in_pairs(asked, (owner, shown))
            count = np.bincount(owner, minlength=self.turns.num_rows)
            if part == "retrieval":
                listed = self._listed(items)
                count = count + np.bincount(listed[0][~in_pairs(listed, (owner, shown))], minlength=len(count))
                known |= in_pairs(asked, listed) & (count <= limit)[self.turn[mine]]
            new = mine[~known]
            self.refuse_some(
                "worth",
                new,
                count[self.turn[new]] + rank_within(self.turn[new]) >= limit[self.turn[new]],
                "disclosure_cap",
            )

    def _listed(self, items: pa.Table) -> tuple[Int, pa.Array]:
        """(turn, evidence) of all items of the snapshots that requests name without listing the items shown, each once;
        a missing snapshot counts as one item, under its name.
        """
        owner, name, _ = self.held("listed")
        names = pc.unique(flat(items["snapshot_id"]))
        code, of_item = positions(name, names), positions(items["snapshot_id"], names)
        by = np.argsort(of_item, kind="stable")
        low = of_item[by].searchsorted(code, side="left")
        count = np.where(code >= 0, of_item[by].searchsorted(code, side="right") - low, 0)
        which, place = spread(low, count)
        at = pa.array(by[place])
        held = np.asarray(flat(items["label"]).take(at).is_valid()).astype(bool)
        gone = np.flatnonzero(code < 0)
        evidence = flat(items["evidence_id"]).take(at).cast(pa.string()).filter(pa.array(held))
        missing = joined("snapshot:", name.take(pa.array(gone))).cast(pa.string())
        turn, ids = np.concatenate([owner[which[held]], owner[gone]]), pa.concat_arrays([evidence, missing])
        first = distinct_rows(codes_of([pa.array(turn), ids]))[0]
        return turn[first], ids.take(pa.array(first))


def _limit(caps: Ragged, prefix: str, turns: int) -> Int:
    """The number after a prefix in lists of `part=number`; no limit where there is none."""
    number = [
        int(text.removeprefix(prefix)) if text.startswith(prefix) else FOREVER for text in caps.vocabulary.to_pylist()
    ]
    found = np.full(turns, FOREVER, dtype=np.int64)
    np.minimum.at(found, caps.rows, np.array([*number, FOREVER], dtype=np.int64)[caps.codes])
    return found
