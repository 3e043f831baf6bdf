"""Keys taken all at once are those taken one by one."""

from __future__ import annotations

import random
from collections.abc import Callable

import pyarrow as pa
import pytest
from scoped_retrieval.nodes.columns.ragged import FEW_STRINGS, Ragged
from scoped_retrieval.nodes.text.index_keys import DEPTH, definition_keys, path_keys
from scoped_retrieval.nodes.text.plain_keys import keys_of_definitions, keys_of_paths


def drawn(alphabet: str, longest: int, count: int = 5_000) -> list[str]:
    chance = random.Random(alphabet)
    return sorted({"".join(chance.choices(alphabet, k=chance.randint(0, longest))) for _ in range(count)})


@pytest.mark.parametrize(
    ("all_", "one", "alphabet"),
    [(keys_of_paths, path_keys, "aB/./_\\ é-1"), (keys_of_definitions, definition_keys, "aB_1.: /#é()$")],
)
def test_keys_taken_all_at_once_are_those_of_each(
    all_: Callable[[Ragged], Ragged], one: Callable[[str], list[str]], alphabet: str
) -> None:
    assert len(drawn(alphabet, 9)) > FEW_STRINGS
    deep = ["/".join(f"D{n}" for n in range(parts)) + ".md" for parts in (DEPTH - 1, DEPTH, DEPTH + 1, 4 * DEPTH)]
    strings = [*drawn(alphabet, 9), None, "src/App/url.test.ts", "src/App/url.test.ts", *deep]
    expected = [[] if string is None else one(string) for string in strings]
    assert all_(Ragged.of(pa.array(strings, pa.string()))).to_lists().to_pylist() == expected
    assert all_(Ragged.of(pa.array([None], pa.string()))).to_lists().to_pylist() == [[]]
