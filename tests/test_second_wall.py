"""The second wall by itself: what of its own rules no disagreement with the first wall would show."""

from __future__ import annotations

import hashlib
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scoped_retrieval.nodes.scope.selectors import matching_paths
from scoped_retrieval.nodes.tables import EVIDENCE, GRANTS, REQUESTS
from scoped_retrieval.nodes.walls.gates import NUMBER
from scoped_retrieval.nodes.walls.second_wall import leads_to, place_stops
from wall_worlds import GRANT, REQUEST, ROW, contract_bounds_of, contracts_of


def judged(row: dict, request: dict | None = None, grant: dict | None = None, **bound: str) -> int:
    """The number of the gate that removes a row; 0 where none does. `bound` replaces columns of its only bound."""
    rows = EVIDENCE.from_rows([ROW | {"evidence_id": hashlib.sha256(b"0").hexdigest()[:26]} | row])
    asked, held = REQUESTS.from_rows([REQUEST | (request or {})]), GRANTS.from_rows([GRANT | (grant or {})])
    bounds = contract_bounds_of(asked, held)
    for name, value in bound.items():
        at = bounds.schema.get_field_index(name)
        bounds = bounds.set_column(at, bounds.schema.field(name), pa.array([value], bounds.schema.field(name).type))
    world = SimpleNamespace(rows=rows, contracts=contracts_of(asked, held), bounds=bounds)
    (stop,) = place_stops(world.rows, np.zeros(1, int), np.zeros(1, int), world.contracts, world.bounds).tolist()
    return stop


def test_a_bound_whose_zone_nobody_knows_reaches_nothing() -> None:
    assert judged({"zone": "public"}) == 0
    assert judged({"zone": "public"}, zone="attic") == NUMBER["zone"]


@pytest.mark.parametrize(
    ("glob", "path", "matches"),
    [
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("?b?", "abc", True),
        ("a?c", "abbc", False),
    ],
)
def test_a_question_mark_is_one_character_of_a_name(glob: str, path: str, matches: bool) -> None:
    assert leads_to(glob, path) is matches
    assert judged({"path": path}, {}, {"denied_paths": [glob]}) == (NUMBER["path_deny"] if matches else 0)


@given(
    st.lists(st.sampled_from(["a", "b", "a?", "*", "**", "[*]", "a.b"]), min_size=1, max_size=3),
    st.booleans(),
    st.lists(st.sampled_from(["a", "b", "ab", "*", "a.b", "c"]), min_size=1, max_size=4),
)
def test_both_walls_read_a_glob_alike(parts: list[str], below: bool, segments: list[str]) -> None:
    """A name that ends a glob is that of a file, or of a folder with everything below it."""
    glob, path = "/".join(parts) + "/" * below, "/".join(segments)
    assert leads_to(glob, path) is bool(matching_paths(pa.array([path]), [glob])[0])
