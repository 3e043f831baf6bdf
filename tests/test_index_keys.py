from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from scoped_retrieval.nodes.columns.ragged import Ragged
from scoped_retrieval.nodes.text.index_keys import DEPTH, conflict_keys, definition_keys, id_keys, path_keys

PATHS = st.lists(st.text("abC.", min_size=1, max_size=4), min_size=1, max_size=4).map("/".join)


def test_a_name_is_found_as_written_by_its_last_part_and_in_any_case() -> None:
    assert definition_keys("Session.resolveUrl") == ["Session.resolveUrl", "resolveUrl", "resolveurl"]
    assert definition_keys("tests/a.py::TestUrl::test_join") == ["tests/a.py::TestUrl::test_join", "test_join"]
    assert definition_keys("main()") == ["main"]
    assert definition_keys(" ") == []


def test_the_words_of_a_title_are_no_names() -> None:
    assert definition_keys("calls auth.login") == ["calls auth.login"]


def test_a_path_is_found_by_every_suffix_and_its_stem() -> None:
    assert path_keys("src/App/url.test.ts") == ["src/app/url.test.ts", "app/url.test.ts", "url.test.ts", "url.test"]
    assert path_keys(".gitignore") == [".gitignore"]
    assert path_keys("./src\\a.py") == ["src/a.py", "a.py", "a"]
    assert path_keys("") == []


@given(PATHS, PATHS)
def test_a_longer_path_of_another_machine_finds_the_stored_one(prefix: str, path: str) -> None:
    stored = path_keys(path)
    assert stored[:1] == [key for key in path_keys(f"/{prefix}/{path}") if key in stored][:1]


def test_ids_ignore_case_and_conflict_sets_do_not() -> None:
    assert id_keys(" DEL-12345 ") == ["del-12345"]
    assert conflict_keys("Set-1") == ["Set-1"]


@given(st.lists(st.one_of(st.none(), st.lists(st.text(max_size=3), max_size=3)), max_size=5))
def test_ragged_lists_come_back_as_they_were(lists: list[list[str] | None]) -> None:
    ragged = Ragged.of(pa.array(lists, pa.list_(pa.string())))
    assert ragged.to_lists().to_pylist() == [items or [] for items in lists]
    doubled = ragged.expand(lambda item: [item, item])
    assert doubled.to_lists().to_pylist() == [[i for item in items or [] for i in (item, item)] for items in lists]


def test_a_path_without_end_has_a_bounded_number_of_keys():
    keys = path_keys("a/" * 50_000 + "b.py")
    assert len(keys) == DEPTH + 2
    assert keys[0].count("/") == 50_000
    assert keys[1] == "a/" * (DEPTH - 1) + "b.py"
    assert path_keys("a/" * (DEPTH - 1) + "b.py") == keys[1:]
