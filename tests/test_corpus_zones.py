"""Effective zones: a part is at least as sensitive as every row that contains it, as far up as that goes."""

from __future__ import annotations

from pathlib import Path

import pytest
from corpus_rows import day, import_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from scoped_retrieval.nodes.vocabulary import ZONES
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.corpus.incoming import incoming


def part(name: str, zone: str | None, parent: str | None = None, **more) -> dict:
    return {"text": name, "path": f"{name}.md", "entity": name, "zone": zone, "parent_id": parent} | more


def zones(evidence) -> dict[str, str]:
    return dict(zip(evidence["entity"].to_pylist(), evidence["zone"].to_pylist(), strict=True))


def test_a_part_takes_the_zone_of_its_parents_parent():
    rows = [part("page", "public", "chapter"), part("chapter", "internal", "book"), part("book", "private")]
    found = zones(incoming(import_rows(*rows), day(1)).evidence)
    assert found == {"page": "private", "chapter": "private", "book": "private"}


@pytest.mark.parametrize(("own", "parent", "effective"), [
    ("private", "public", "private"), ("public", "restricted", "restricted"), ("public", "unheard-of", "restricted"),
    (None, "public", None), ("internal", None, "restricted"),
])  # fmt: skip
def test_the_higher_zone_counts_and_what_is_not_known_counts_as_the_highest(own, parent, effective):
    found = incoming(import_rows(part("page", own, "book"), part("book", parent)), day(1)).evidence
    assert zones(found)["page"] == effective


def test_a_parent_is_named_by_evidence_id_or_inside_its_project_by_entity():
    book = incoming(import_rows(part("book", "private")), day(1)).evidence["evidence_id"][0].as_py()
    by_id = import_rows(part("page", "public", book), part("book", "private"))
    assert zones(incoming(by_id, day(1)).evidence)["page"] == "private"
    elsewhere = import_rows(part("page", "public", "book"), part("book", "private", owner_project="pay"))
    assert zones(incoming(elsewhere, day(1)).evidence)["page"] == "public"


OWNERS = [
    ({"owner_user": "bo"}, {"owner_user": "bo"}, "restricted"),
    ({"owner_user": "bo"}, {"owner_user": None}, "restricted"),
    ({"owner_user": None}, {"owner_user": None}, "restricted"),
    ({"owner_user": "ana"}, {"owner_user": "bo"}, "public"),
    ({"owner_user": None}, {"owner_user": "bo"}, "public"),
    ({"owner_project": "pay"}, {"owner_project": "shop"}, "public"),
    ({"owner_project": "pay", "owner_user": "bo"}, {"owner_project": "shop", "owner_user": "bo"}, "public"),
]
"""Owner of a part, owner of its parent, and the zone of the part if the parent is restricted."""


@pytest.mark.parametrize(("of_part", "of_parent", "effective"), OWNERS)
@pytest.mark.parametrize(("named_by", "order"), [("id", "together"), ("entity", "parent first"), ("id", "part first")])
def test_a_part_takes_the_zone_of_a_parent_of_its_own_user_or_of_nobody(
    tmp_path: Path, of_part, of_parent, effective, named_by, order
):
    book = part("book", "restricted", **of_parent)
    named = incoming(import_rows(book), day(1)).evidence["evidence_id"][0].as_py() if named_by == "id" else "book"
    page = part("page", "public", named, **of_part)
    corpus = Corpus.create(tmp_path / "corpus")
    imports = {"together": [[book, page]], "parent first": [[book], [page]], "part first": [[page], [book], [page]]}
    for number, rows in enumerate(imports[order], 1):
        corpus.publish(import_rows(*rows), now=day(number))
    evidence = corpus.frame().evidence
    assert zones(evidence)["page"] == effective


def test_a_users_own_parent_decides_before_a_shared_one_of_that_entity():
    rows = [
        part("book", "private", owner_user=None),
        part("book", "internal", owner_user="bo", path="own.md"),
        part("page", "public", "book", owner_user="bo"),
    ]
    found = incoming(import_rows(*rows), day(1)).evidence
    assert zones(found)["page"] == "internal"


def test_a_stored_parent_counts_and_the_zone_is_part_of_what_the_row_says(tmp_path: Path):
    corpus = Corpus.create(tmp_path / "corpus")
    corpus.publish(import_rows(part("book", "private")), now=day(1))
    corpus.publish(import_rows(part("page", "public", "book")), now=day(2))
    assert zones(corpus.frame().evidence)["page"] == "private"
    corpus.publish(import_rows(part("book", "restricted"), part("page", "public", "book")), now=day(3))
    assert zones(corpus.frame().evidence) == {"book": "restricted", "page": "restricted"}
    assert corpus.verify() == []


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(ZONES.values), st.none() | st.integers(0, 9)), min_size=1, max_size=10))
def test_every_zone_is_the_highest_on_the_way_up(drawn):
    rows = [part(str(n), zone, None if up is None else str(up)) for n, (zone, up) in enumerate(drawn)]
    found = zones(incoming(import_rows(*rows), day(1)).evidence)
    for n in range(len(drawn)):
        seen, at = set(), n
        while at is not None and at < len(drawn) and at not in seen:
            seen.add(at)
            at = drawn[at][1]
        assert found[str(n)] == ZONES.values[max(ZONES.values.index(drawn[one][0]) for one in seen)]
