"""Paths of imported rows have one form, so that every spelling of a path meets the same rule."""

from __future__ import annotations

import unicodedata

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.nodes.scope.selectors import glob_mask
from scoped_retrieval.pipeline.config.grants import load_grants
from scoped_retrieval.pipeline.requests.fields import columns_of
from scoped_retrieval.pipeline.sources.importing import normalize, normalized, normalized_path
from worlds import NOW

SPELLINGS = [
    ("src/keys/a", "src/keys/a"),
    ("./src/keys/b", "src/keys/b"),
    ("src//keys/c", "src/keys/c"),
    ("src/x/../keys/d", "src/keys/d"),
    ("/src/keys/e", "src/keys/e"),
    ("src\\keys\\f", "src/keys/f"),
    ("src/keys/g/", "src/keys/g"),
    ("src/./keys/.h", "src/keys/.h"),
    ("src/keys/..i", "src/keys/..i"),
    ("src/cafe\u0301/j", "src/caf\u00e9/j"),
    ("Src/Keys/k", "Src/Keys/k"),
]
"""A path as a source spells it, and in normal form."""


@pytest.mark.parametrize(("spelled", "normal"), SPELLINGS)
def test_every_spelling_of_a_path_has_one_normal_form(spelled, normal):
    assert normalized_path(spelled) == normal
    assert normalized(pa.array([spelled, None]), str).to_pylist() == [normal, None]


@pytest.mark.parametrize("path", ["..", "a/../../b", "a/..", "\\\\"])
def test_a_path_that_leaves_its_root_or_names_nothing_is_refused_with_its_place(path):
    with pytest.raises(InputError, match=r"Expected a path inside its source, got one .* - at rows\[1\].path"):
        normalized(pa.array(["a.md", path]), "rows[{}]".format)


@given(st.lists(st.text("ab./\\\u0301\u00e9e", max_size=12), max_size=6))
def test_the_normal_form_is_stable_and_a_column_has_it(drawn):
    for path in drawn:
        if (found := normalized_path(path)) is not None:
            assert normalized_path(found) == found == unicodedata.normalize("NFC", found)
            assert not {"", ".", ".."} & set(found.split("/"))
            assert normalized(pa.array([path]), str).to_pylist() == [found]


def test_no_spelling_dodges_a_denial():
    rows = pa.table(
        {"source_id": ["notes"] * 6, "text": [f"key {n}" for n in range(6)], "path": [p for p, _ in SPELLINGS[:6]]}
    )
    stored, _ = normalize(rows, project="shop", principal="ana", now=NOW)
    assert glob_mask(stored["path"], ["src/keys/"]).all()


@pytest.mark.parametrize(
    "glob",
    [
        "./src/keys/",
        "src//keys/",
        "path:./src/keys/",
        "src/{a,b}/",
    ],
)
@pytest.mark.parametrize("field", ["denied_paths", "allowed_paths"])
def test_a_glob_of_a_request_that_no_stored_path_can_match_is_refused(field, glob):
    with pytest.raises(InputError, match=rf"Expected a glob such as src/keys/ .* at r\.{field}\[0\]"):
        columns_of({field: [glob]}, "r")


def test_a_denial_holds_in_every_unicode_form(tmp_path):
    written = unicodedata.normalize("NFD", "src/kéys/")
    assert columns_of({"denied_paths": [written]}, "r") == {"denied_paths": ["src/kéys/"]}
    assert columns_of({"denied_sources": [written]}, "r") == {"denied_sources": ["src/kéys/"]}
    (tmp_path / "grants.yaml").write_text(f"principals: {{ana: {{projects: [shop], denied_paths: ['{written}']}}}}")
    assert load_grants(tmp_path / "grants.yaml").table["denied_paths"].to_pylist() == [["src/kéys/"]]


def test_a_source_id_has_one_unicode_form():
    rows = pa.table({"source_id": ["notes", unicodedata.normalize("NFD", "externál")], "text": ["a", "b"]})
    with pytest.raises(
        InputError, match=r"Expected a source id in Unicode NFC, got another form - at rows\[1\].source_id"
    ):
        normalize(rows, project="shop", principal="ana", now=NOW)
