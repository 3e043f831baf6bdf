"""BM25 over groups of rows: what admissible rows say together, independent of other requests and other rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from recall_world import Row, day, frame, line, passes, rules
from scoped_retrieval.nodes.columns.keys import codes_of, present
from scoped_retrieval.nodes.recall import group_scores
from scoped_retrieval.nodes.recall.bm25 import Bm25
from scoped_retrieval.nodes.recall.group_scores import Groups, pair_group_scores
from scoped_retrieval.nodes.recall.lane_recall import FieldTerms
from scoped_retrieval.nodes.recall.pair_scores import Pairs
from scoped_retrieval.nodes.recall.recall_scope import RecallTables, ScopeGroup

WORDS = ("session", "token", "cache", "retry", "role")
REQUESTS: list[Row] = [
    {"request_id": "a", "question": "session token", "projects": ("shop", "docs"), "as_of": day(30)},
    {"request_id": "b", "question": "session token", "projects": ("shop",), "as_of": day(9)},
    {"request_id": "c", "question": "cache role absent", "projects": ("shop", "docs"), "as_of": day(30)},
    {"request_id": "d", "question": "token", "projects": ("docs",), "as_of": day(2)},
]
PLAN = rules({}, {"kinds": ["code"]})


def by_session(scope: ScopeGroup) -> Groups:
    """Rows of one project and session."""
    session = scope.column("session_id")
    return Groups.numbered(codes_of([session, pa.array(scope.owner)]), present(session))


def rows(seed: int = 0) -> list[dict[str, Any]]:
    """150 rows of two projects in sessions or none, recorded over a month; some withheld, some in no request's scope."""
    rng = np.random.default_rng(seed)
    return [
        {
            "text": " ".join(rng.choice(WORDS, int(rng.integers(1, 9)))),
            "project": "shop" if n % 3 else "docs",
            "path": f"src/{n}.py",
            "session_id": f"s{n % 7}" if n % 5 else None,
            "recorded_time": day(int(rng.integers(1, 28))),
            "withheld_by": 11 if n % 13 == 0 else 0,
            "foreign": n % 11 == 0,
        }
        for n in range(150)
    ]


def scored(world: dict[str, Any], requests: Sequence[Row] = REQUESTS) -> dict[tuple[str, int], tuple[float, float]]:
    """Score and reach of the group of every admissible row, by request and row."""
    out = line(world, requests, "recall_tables", "query_terms", plan=PLAN)
    tables: RecallTables = out["recall_tables"]  # pyright: ignore[reportAssignmentType]
    named = tables.contracts["request_id"].to_pylist()
    by_id = {request["request_id"]: request for request in requests}
    pairs = [
        (r, at) for r, name in enumerate(named) for at in range(len(world["rows"])) if passes(world, by_id[name], at)
    ]
    request, row = np.array(pairs).T
    terms = FieldTerms.of(tables, out["query_terms"], ("text",))
    score, reach = pair_group_scores(
        tables, "lexical", by_session, terms, Pairs(request, row), world["postings"], Bm25()
    )
    return {(named[r], at): (s, most) for (r, at), s, most in zip(pairs, score.tolist(), reach.tolist(), strict=True)}


def expected(world: dict[str, Any], request: Row, at: int) -> tuple[float, float]:
    """The same in plain Python."""
    groups: dict[tuple[str, str], Counter[str]] = {}
    for other, row in enumerate(world["rows"]):
        if row["session_id"] is not None and passes(world, request, other):
            groups.setdefault((row["project"], row["session_id"]), Counter()).update(row["text"].split())
    own = world["rows"][at]
    group = groups.get((own["project"], own["session_id"]))
    mean = sum(sum(one.values()) for one in groups.values()) / len(groups)
    score = reach = 0.0
    for word in request["question"].split():
        held = sum(word in one for one in groups.values())
        if group is None or not held:
            continue
        idf = math.log(1 + (len(groups) - held + 0.5) / (held + 0.5))
        norm = 1.2 * (0.25 + 0.75 * sum(group.values()) / mean)
        score += idf * group[word] / (group[word] + norm)
        reach += idf
    return score, reach


@pytest.mark.parametrize("at_once", [5, 1 << 21])
def test_a_group_scores_as_one_document_of_its_admissible_rows(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for bound in ("CELLS", "PAIRS"):
        monkeypatch.setattr(group_scores, bound, at_once)
    world = frame(rows())
    by_id = {request["request_id"]: request for request in REQUESTS}
    found = scored(world)
    assert {name for name, _ in found} == set(by_id)
    for (name, at), values in found.items():
        assert values == pytest.approx(expected(world, by_id[name], at), abs=1e-8)
        assert all((value * 2**30).is_integer() for value in values)


def test_a_request_has_the_same_scores_alone_and_in_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    world = frame(rows())
    together = scored(world)
    monkeypatch.setattr(group_scores, "PAIRS", 7)
    alone = {key: value for request in REQUESTS for key, value in scored(world, [request]).items()}
    assert alone == together


def test_rows_that_are_not_admissible_are_in_no_group() -> None:
    everything = rows()
    open_ = [row for row in everything if not row["withheld_by"] and not row["foreign"]]
    request = {"request_id": "a", "question": "session token cache", "projects": ("shop",), "as_of": day(15)}
    found = []
    for given in (everything, open_, [row for row in open_ if row["recorded_time"] <= day(15)]):
        world = frame(given)
        found.append({world["rows"][at]["path"]: values for (_, at), values in scored(world, [request]).items()})
    assert found[0] == found[1] == found[2]


def test_without_a_group_nothing_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    world = frame([row | {"session_id": None} for row in rows()])

    def refuse(*_: Any) -> None:
        raise AssertionError("looked up")

    monkeypatch.setattr(group_scores, "group_scores", refuse)
    assert set(scored(world).values()) == {(0.0, 0.0)}
