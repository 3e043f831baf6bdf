"""Every promise must fail once its guard is broken: a property that holds for a broken line proves nothing.

Each fault replaces one helper of the line by a plausible wrong one; the check of `tests/support/promises.py` that
`test_promises.py` runs must then find a counterexample. All faults are looked for in the same cases, drawn as they are
needed, and those of the line in the same corpora, built while no fault is planted.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import fields, replace
from datetime import timedelta
from functools import cache, partial
from itertools import chain
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from asking import built
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from promises import (
    check_conservation,
    check_contributions,
    check_hard_budget,
    check_non_interference,
    check_one_answer,
    check_same_answers,
)
from scoped_retrieval.nodes import audit_snapshot as audit
from scoped_retrieval.nodes import (
    boundary_gates,
    task_aware_reranking,
)
from scoped_retrieval.nodes.blocks import greedy_fit
from scoped_retrieval.nodes.recall import (
    feedback,
    graph_recall,
    group_scores,
    lane_recall,
    posting_recall,
    recall_scope,
    turns,
    versions,
)
from scoped_retrieval.nodes.tables import DECISIONS
from scoped_retrieval.nodes.walls import first_wall, gate_order, second_wall, time_gates
from scoped_retrieval.pipeline.corpus import incoming, next_generation, publishing, store, vectors
from scoped_retrieval.pipeline.corpus.identity import MultisetHash
from worlds import NOW, SHUT, Row, World, foreign_rows, worlds

ASKED = 8
"""Requests of a world: a fault is found sooner in more small worlds."""

AT_ONCE, DRAWS = 20, 10
"""Cases that are drawn together, and how often: a fault that none of them shows is not found."""

Plant = Callable[[pytest.MonkeyPatch], None]
Case = tuple[Any, ...]
Found = Callable[[Plant, str], bool]


def in_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    """No compiled loops, whichever test loaded them: the fault is planted in what they do the work of."""
    monkeypatch.setattr(posting_recall, "kernels", lambda visits: None)


def corpus_wide_document_frequency(monkeypatch: pytest.MonkeyPatch) -> None:
    """df counts every posting of the scope, admissible or not."""
    monkeypatch.setattr(posting_recall, "_held", lambda open_, keys, line, key: keys.counts(key))
    in_arrays(monkeypatch)


def corpus_wide_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    """N and avgdl are those of every row of the opened segments."""

    def wrong(tables: Any) -> Any:
        contracts, length = tables.contracts.num_rows, tables.row_index.length
        return np.full(contracts, len(length)), np.full(contracts, length.sum())

    monkeypatch.setattr(recall_scope.RecallTables, "statistics", property(wrong))


def feedback_terms_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """The terms of feedback are those of the rows beside the best ones, visible or not."""
    right = feedback._terms

    def wrong(request: Any, row: Any, score: Any, evidence: Any) -> Any:
        return right(request, (row + 1) % evidence.num_rows, score, evidence)

    monkeypatch.setattr(feedback, "_terms", wrong)


def feedback_vectors_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """The vectors of feedback are those of the rows beside the best ones."""
    right = feedback.mean_cosines

    def wrong(pairs: Any, among: Any, requests: int, vectors: Any) -> Any:
        rows = vectors.row_starts[-1] + (0 if vectors.parts[-1] is None else len(vectors.parts[-1]))
        return right(pairs, replace(among, row=(among.row + 1) % max(rows, 1)), requests, vectors)

    monkeypatch.setattr(feedback, "mean_cosines", wrong)


def post_filtering(monkeypatch: pytest.MonkeyPatch) -> None:
    """The k best of all rows are taken first, and the withheld ones removed after."""
    right = posting_recall.best_rows

    def wrong(asked: Any, gates: Any, gate: Any, k: Any, place: Any) -> Any:
        number, row, score = right(asked, np.ones_like(gates), gate, k, place)
        kept = gates[gate[number], row]
        return number[kept], row[kept], score[kept]

    monkeypatch.setattr(posting_recall, "best_rows", wrong)
    in_arrays(monkeypatch)


class Opened(recall_scope.ScopeGroup):
    """A scope whose rows are all admitted."""

    def admitted(self, request: Any, local: Any) -> Any:
        return np.ones(len(local), dtype=bool), super().admitted(request, local)[1]


def opened(scope: Any) -> Opened:
    return Opened(*(getattr(scope, field.name) for field in fields(scope)))


def versions_chosen_before_the_gates(monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest version of a record replaces the others, whether or not the request may see it."""
    right = versions.replacing
    monkeypatch.setattr(versions, "replacing", lambda scope, *rest: right(opened(scope), *rest))


def _without(gate: int) -> Plant:
    def plant(monkeypatch: pytest.MonkeyPatch) -> None:
        left = tuple(each for each in first_wall.GATES if each.number != gate)
        monkeypatch.setattr(first_wall, "GATES", left)
        place = second_wall._first
        name_ = boundary_gates.GATES[gate - 1].name
        monkeypatch.setattr(second_wall, "_first", lambda removed: place([(n, m) for n, m in removed if n != name_]))

    return plant


def dropped_time_gates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both walls take every instant for as_of."""
    codes = time_gates.time_codes

    def open_codes(*args: Any, **how: Any) -> Any:
        found, placement = codes(*args, **how)
        return np.zeros_like(found), placement

    monkeypatch.setattr(time_gates, "time_codes", open_codes)
    monkeypatch.setattr(boundary_gates, "time_codes", open_codes)

    def none_stopped(_: object, row: np.ndarray, *__: object) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros(len(row), np.int64), np.zeros(len(row), bool)

    monkeypatch.setattr(gate_order, "time_stops", none_stopped)


def vectors_of_whole_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """`lane_off` speaks of every segment that the contract opens, whatever its rows."""

    def wrong(_: Any, vectors: Any) -> int:
        return 0 if vectors is None else 1

    monkeypatch.setattr(boundary_gates._Shown, "encoded", wrong)


def vectors_lent_by_equal_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that is published without an encoder takes the vector of equal text elsewhere."""
    right = next_generation.Next._units

    def wrong(self: Any, fresh: Any) -> Any:
        stored = [pack.table("vectors.arrow") for pack in self.base.packs.values() if "vectors.arrow" in pack]
        for part, new in right(self, fresh):
            if self.encoder is None and stored and new != MultisetHash.of():
                texts = vectors.encoded_texts(part.evidence).to_pylist()
                digests = pa.array([hashlib.sha256(text.encode()).digest() for text in texts], pa.binary(32))
                known = pa.concat_tables(stored).combine_chunks()
                at = pc.index_in(digests, value_set=known["text_digest"].combine_chunks())
                lent = pa.table({"text_digest": digests, "vector": known["vector"].combine_chunks().take(at)})
                part = replace(part, vectors=lent, profile=self._profile)
                new = part.content()
            yield part, new

    monkeypatch.setattr(next_generation.Next, "_units", wrong)


def imports_that_encode_their_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    """An import with an encoder encodes every row of the owners that it names."""
    right = publishing.unencoded

    def wrong(base: Any, ids: Any) -> Any:
        old, rows = right(base, ids)
        owners = [segment.owner for segment in old.segments]
        own = {owners[at] for at in old.segments_of(rows)}
        return old, np.flatnonzero([owners[at] in own for at in old.segments_of(np.arange(old.evidence.num_rows))])

    monkeypatch.setattr(publishing, "unencoded", wrong)
    monkeypatch.setattr(store, "unencoded", wrong)


def zones_inherited_across_owners(monkeypatch: pytest.MonkeyPatch) -> None:
    """A parent is looked up by its name alone, without regard to its owner."""
    monkeypatch.setattr(incoming, "_keys", lambda family, names, shared=False: names)


def shadowing_by_inadmissible_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text of the work tree shadows the committed one, even where the request may not see it."""
    right = boundary_gates._shadow

    def wrong(parts: Any, *asked: Any) -> None:
        opened = [(start, segment, np.zeros_like(codes)) for start, segment, codes in parts]
        right(opened, *asked)
        for (_, _, codes), (_, _, shadowed) in zip(parts, opened, strict=True):
            codes[(shadowed != 0) & ((codes == 0) | (codes > shadowed))] = shadowed.max(initial=0)

    monkeypatch.setattr(boundary_gates, "_shadow", wrong)


def files_of_every_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is all of its rows: those that a request may not see count in its length, and in how many files there are."""
    right = group_scores._Statistics.of

    def wrong(groups: Any, open_: Any, length: Any) -> Any:
        return right(groups, np.ones_like(open_), length)._replace(member=open_ & (groups.of >= 0))

    monkeypatch.setattr(group_scores._Statistics, "of", wrong)


def outlines_of_whole_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """The outline of a definition names what the rest of its file says, visible or not."""
    right = vectors.encoded_texts

    def wrong(evidence: Any) -> Any:
        paths, texts = evidence["path"].to_pylist(), evidence["text"].to_pylist()
        of_file = {path: " ".join(t for p, t in zip(paths, texts, strict=True) if p == path) for path in {*paths}}
        joined = [f"{text}\n{of_file[path]}" for text, path in zip(right(evidence).to_pylist(), paths, strict=True)]
        return pa.array(joined, pa.large_string())

    monkeypatch.setattr(vectors, "encoded_texts", wrong)


def outlines_over_every_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """The nearest outlines of a file are divided by all of its rows, those that a request may not see included."""
    right = task_aware_reranking.file_terms

    def wrong(owner: Any, rows: Any, lexical: Any, semantic: Any, best: Any, evidence: Any) -> Any:
        counts = Counter(evidence["path"].to_pylist())
        of_file = np.array([counts[path] for path in rows["path"].to_pylist()], np.int64)
        found = right(owner, rows, lexical, semantic, best, evidence)
        return found._replace(outlines=task_aware_reranking.quantise(3 * found.outlines / np.maximum(of_file, 1)))

    monkeypatch.setattr(task_aware_reranking, "file_terms", wrong)


def symbols_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a row defines is what the row beside it defines, visible or not."""
    right = task_aware_reranking.name_terms

    def wrong(owner: Any, row: Any, rows: Any, questions: Any, evidence: Any) -> Any:
        beside = right(owner, (row + 1) % evidence.num_rows, rows, questions, evidence)
        return right(owner, row, rows, questions, evidence)._replace(definition=beside.definition)

    monkeypatch.setattr(task_aware_reranking, "name_terms", wrong)


def turns_beside_withheld_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn is scored with its neighbours, even with those that a visibility gate withholds."""
    right = turns._in_order

    def wrong(scope: Any, *rest: Any) -> Any:
        return right(replace(scope, withheld=np.zeros_like(scope.withheld)), *rest)

    monkeypatch.setattr(turns, "_in_order", wrong)


def sessions_counted_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions are counted whether the request may see a turn of theirs or not."""
    right = group_scores._Statistics.of

    def wrong(groups: Any, open_: Any, length: Any) -> Any:
        return right(groups, open_, length)._replace(groups=groups.count)

    monkeypatch.setattr(group_scores._Statistics, "of", wrong)


def walks_to_withheld_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """An edge of the graph ends at any row of the scope, whatever time and visibility say."""
    right = graph_recall._edges
    monkeypatch.setattr(graph_recall, "_edges", lambda scope, *rest: right(opened(scope), *rest))


def walks_through_withheld_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A walk goes on from a withheld row, though it does not return it."""
    once = graph_recall._once
    walks_to_withheld_rows(monkeypatch)

    def wrong(scope: Any, reached: Any, width: int) -> Any:
        found = once(scope, reached, width)
        passes, _ = scope.admitted(scope.tables.sub_request[found[0]], scope.local(found[1]))
        return tuple(column[passes] for column in found)

    monkeypatch.setattr(graph_recall, "_once", wrong)


def unordered_ties(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores that are about equal are taken as they come: the order differs from call to call."""
    top, calls = posting_recall.top, np.random.default_rng(5)

    def wrong(score: Any, id_rank: Any, k: int) -> Any:
        return top(np.floor(score), calls.permutation(len(id_rank)), k)

    monkeypatch.setattr(posting_recall, "top", wrong)
    monkeypatch.setattr(lane_recall, "top", wrong)


def batch_dependent_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Terms and contributions are rounded to a precision that follows the size of the batch."""
    for name in ("quantise", "unit"):
        monkeypatch.setattr(task_aware_reranking, name, lambda values: np.round(values, 2 + np.size(values) % 5))


def lost_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    """The record forgets one candidate."""

    class Forgetful:
        @staticmethod
        def build(columns: Any, **named: Any) -> Any:
            return DECISIONS.build(columns, **named).slice(1)

    monkeypatch.setattr(audit, "DECISIONS", Forgetful)


def frame_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels and fences cost nothing."""
    for name in ("FRAME", "BARE_FRAME"):
        monkeypatch.setattr(greedy_fit, name, "")
    monkeypatch.setattr(greedy_fit.Fitting, "around", lambda *_: "")


def lines_counted_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A block is as long as its lines, whatever its counter finds in the whole."""
    monkeypatch.setattr(greedy_fit.Fitting, "fit", lambda request, counters: request._fit())


def unrounded_contributions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Contributions keep all their bits, so their sum depends on the order."""
    monkeypatch.setattr(task_aware_reranking, "quantise", lambda values: np.asarray(values) * (1 + 1e-12))


INTERFERENCE: dict[str, Plant] = {
    "corpus-wide document frequency": corpus_wide_document_frequency,
    "corpus-wide N and avgdl": corpus_wide_lengths,
    "feedback terms from outside": feedback_terms_from_outside,
    "feedback vectors from outside": feedback_vectors_from_outside,
    "post-filtering": post_filtering,
    "dropped time gates": dropped_time_gates,
    "versions chosen before the gates": versions_chosen_before_the_gates,
    "files of every row": files_of_every_row,
    "outlines over every row": outlines_over_every_row,
    "walks to withheld rows": walks_to_withheld_rows,
    "shadowing by inadmissible texts": shadowing_by_inadmissible_texts,
    **{f"dropped gate {g.name}": _without(g.number) for g in boundary_gates.GATES if g.name in ("principals", "zone", "workspace", "visibility", "lifecycle")},
}  # fmt: skip
IN_PUBLICATIONS: dict[str, tuple[Plant, str]] = {
    "imports that encode their owner": (imports_that_encode_their_owner, "rows"),
    "zones inherited across owners": (zones_inherited_across_owners, "rows"),
    "outlines of whole files": (outlines_of_whole_files, "rows"),
    "vectors lent by equal texts": (vectors_lent_by_equal_texts, "equal texts"),
}
"""Planted before the corpora are built, with the cases that they are looked for in."""
OF_VECTORS: dict[str, Plant] = {"vectors of whole segments": vectors_of_whole_segments}
OF_NAMES: dict[str, Plant] = {"symbols from outside": symbols_from_outside}
OF_TURNS: dict[str, Plant] = {
    "turns beside withheld ones": turns_beside_withheld_ones,
    "sessions counted whole": sessions_counted_whole,
}
DEPENDENCE: dict[str, Plant] = {
    "unordered ties": unordered_ties,
    "batch-dependent rounding": batch_dependent_rounding,
}
BUDGET: dict[str, Plant] = {
    "an uncounted frame": frame_not_counted,
    "lines counted alone": lines_counted_alone,
}


def _withheld_turn(row: Row, session: str) -> Row:
    said = {"session_id": session, "event_time": NOW - timedelta(days=30, minutes=200)}
    return row | said | {"origin_class": "session-event", "evidence_kind": "session-event"}


def _asking_by_name(world: World) -> World:
    """Its requests name a definition that none of its rows has."""
    rows = tuple(row | {"symbols": []} for row in world.rows)
    return replace(world, rows=rows, requests=tuple(r | {"question": "createUser"} for r in world.requests))


_foreign = foreign_rows()
_withheld = foreign_rows(but=set(SHUT) - {"visibility", "lifecycle"})
CASES: dict[str, st.SearchStrategy[Case]] = {
    "rows": st.tuples(worlds(asked=ASKED), st.lists(foreign_rows(), min_size=12, max_size=24)),
    "vectors": st.tuples(
        worlds(asked=ASKED, encoded=[(True,), (False,)]), st.lists(foreign_rows(), min_size=12, max_size=24)
    ),
    "names": st.tuples(
        worlds(asked=ASKED).map(_asking_by_name),
        st.lists(_foreign.map(lambda row: row | {"symbols": ["createUser"]}), min_size=12, max_size=24),
    ),
    "equal texts": st.tuples(
        worlds(asked=ASKED, encoded=[(False,)]),
        st.lists(
            _foreign.map(lambda row: row | {"echo": row["echo"] | 1, "joins": "before, encoded"}),
            min_size=12,
            max_size=24,
        ),
    ),
    "turns": st.tuples(
        worlds(asked=ASKED),
        st.lists(
            st.builds(_withheld_turn, _withheld, st.sampled_from(["s-1", "s-2", "s-foreign"])), min_size=6, max_size=12
        ),
    ),
    "budgets": st.tuples(worlds(asked=ASKED), st.integers(20, 200)),
}
"""Worlds with the rows that are planted in them, or a budget. A fault is seen soonest in worlds that its subject is in: rows that
all have vectors or none, questions by a name that the planted rows define, planted rows with vectors and texts of the others."""


@cache
def drawn(kind: str, number: int) -> Sequence[Case]:
    found: list[Case] = []

    @seed(number)
    @settings(
        max_examples=AT_ONCE,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(CASES[kind])
    def draw(case: Case) -> None:
        found.append(case)

    draw()
    return found


def cases(kind: str) -> Iterator[Case]:
    """The cases of a kind, the same ones at every call."""
    return chain.from_iterable(drawn(kind, number) for number in range(1, DRAWS + 1))


def finds(plant: Plant, check: Callable[[], object], wrong: tuple[type[Exception], ...] = (AssertionError,)) -> bool:
    """Whether a check fails while the fault is planted. A fault that breaks requests shows nothing."""
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        try:
            check()
        except wrong:
            return True
    return False


@pytest.fixture(scope="module")
def found_in_the_line() -> Iterator[Found]:
    """Says whether a fault of the line moves an answer in some case, where nothing does without it. The corpora of a case,
    without the planted rows and with them, are built once.
    """
    checks: dict[tuple[str, int], Callable[[], None]] = {}
    sound: set[tuple[str, int]] = set()
    with ExitStack() as stack:

        def found(plant: Plant, kind: str) -> bool:
            for number, (world, planted) in enumerate(cases(kind)):
                case = kind, number
                if case not in checks:
                    corpora = stack.enter_context(built(world)), stack.enter_context(built(world, planted=planted))
                    checks[case] = partial(check_same_answers, world, planted, *corpora)
                if finds(plant, checks[case]):
                    if case not in sound:
                        checks[case]()
                        sound.add(case)
                    return True
            return False

        yield found


@pytest.mark.parametrize("plant", INTERFERENCE.values(), ids=INTERFERENCE)
def test_non_interference_finds(plant: Plant, found_in_the_line: Found) -> None:
    assert found_in_the_line(plant, "rows")


@pytest.mark.parametrize(("plant", "kind"), IN_PUBLICATIONS.values(), ids=IN_PUBLICATIONS)
def test_non_interference_finds_what_publications_leak(plant: Plant, kind: str) -> None:
    assert any(finds(plant, partial(check_non_interference, *case)) for case in cases(kind))


@pytest.mark.parametrize("plant", OF_VECTORS.values(), ids=OF_VECTORS)
def test_non_interference_finds_what_vectors_leak(plant: Plant, found_in_the_line: Found) -> None:
    assert found_in_the_line(plant, "vectors")


@pytest.mark.parametrize("plant", OF_NAMES.values(), ids=OF_NAMES)
def test_non_interference_finds_what_names_leak(plant: Plant, found_in_the_line: Found) -> None:
    assert found_in_the_line(plant, "names")


@pytest.mark.parametrize("plant", OF_TURNS.values(), ids=OF_TURNS)
def test_non_interference_finds_what_conversations_leak(plant: Plant, found_in_the_line: Found) -> None:
    assert found_in_the_line(plant, "turns")


@pytest.mark.parametrize("plant", DEPENDENCE.values(), ids=DEPENDENCE)
def test_one_answer_finds(plant: Plant) -> None:
    asked = (
        partial(check_one_answer, world, batch=4, order=Random(3), threads=2, batches=3)
        for world, _ in cases("budgets")
    )
    assert any(finds(plant, check) for check in asked)


def test_conservation_finds_a_lost_decision() -> None:
    wrong = (AssertionError, RuntimeError)  # the record refuses it already
    assert any(finds(lost_decision, partial(check_conservation, world), wrong) for world, _ in cases("budgets"))


@pytest.mark.parametrize("plant", BUDGET.values(), ids=BUDGET)
def test_the_hard_budget_finds(plant: Plant) -> None:
    asked = (
        partial(check_hard_budget, world, max_tokens=tokens, max_chars=100_000) for world, tokens in cases("budgets")
    )
    assert any(finds(plant, check) for check in asked)


def test_exact_sums_find_unrounded_contributions() -> None:
    assert any(finds(unrounded_contributions, partial(check_contributions, world)) for world, _ in cases("budgets"))
