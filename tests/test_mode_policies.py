"""The mode files say what document 001 says, in its keys, and a malformed one is refused by file and key."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from scoped_retrieval.nodes.errors import PolicyError
from scoped_retrieval.nodes.tables import MODE_POLICIES
from scoped_retrieval.pipeline.config.policies.tables import load_policies

ADR_EXECUTION = """
mode: execution
search_paths:
  - /ventures/{venture}/engagements/{engagement}/  # Contract constraints
  - /sot/  # Structured canonical data (IDs, dates, schemas)

retrieval_params:
  k_in: 20  # Narrower scope
  k_out: 6  # High precision
  chunk_expansion: false  # Exact facts only
  exact_lookups: true  # Validate IDs/dates against CSV/YAML

strategies:
  - Exact match for IDs (ULIDs), dates, acceptance criteria
  - Keyword search for technical constraints
  - Schema validation against SoT YAML
"""
SMALL = {
    "mode": "review",
    "search_paths": ["/decisions/"],
    "retrieval_params": {"k_in": 3, "k_out": 2},
    "strategies": ["Temporal search"],
}


def modes(folder: Path | None = None) -> dict[str, dict]:
    table = MODE_POLICIES.check(load_policies(folder).mode_policies)
    return {row["mode"]: row for row in table.to_pylist()}


def written(folder: Path, text: str, mode: str = "review") -> Path:
    (folder / "modes").mkdir(exist_ok=True)
    (folder / "modes" / f"{mode}.yaml").write_text(text, encoding="utf-8")
    return folder


def test_the_bundled_modes_have_the_counts_and_switches_of_the_document() -> None:
    found = modes()
    assert {name: (row["lane_k"], row["max_items"]) for name, row in found.items()} == {
        "planning": (30, 8),
        "execution": (20, 6),
        "review": (30, 10),
    }
    assert [found[name]["chunk_expansion"] for name in ("planning", "execution")] == [True, False]
    assert [name for name, row in found.items() if row["exact_lookups"]] == ["execution"]
    assert [name for name, row in found.items() if row["include_deleted"]] == ["review"]
    assert (found["review"]["window_days"], found["review"]["window_paths"]) == (30.0, ["**/logs/"])


def test_the_yaml_of_the_document_reads_as_it_stands(tmp_path: Path) -> None:
    row = modes(written(tmp_path, ADR_EXECUTION, "execution"))["execution"]
    assert (row["lane_k"], row["max_items"], row["exact_lookups"], row["lanes"]) == (20, 6, True, ["exact", "lexical"])
    assert row["search_paths"] == ["/ventures/{venture}/engagements/{engagement}/", "/sot/"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"strategies": ["Guesswork"]}, "Expected a text that begins with one of semantic, bm25, keyword"),
        ({"search_paths": []}, "Expected at least one entry, got a list of 0"),
        ({"exclude": [{"what": "logs"}]}, "Expected paths, levels or zones to leave out"),
        ({"mode": "planning"}, "Expected review, got 'planning'"),
    ],
)
def test_a_malformed_mode_is_refused_by_file_and_key(tmp_path: Path, change, message) -> None:
    with pytest.raises(PolicyError) as raised:
        load_policies(written(tmp_path, yaml.safe_dump({**SMALL, **change})))
    assert str(raised.value).startswith(message)
    assert "review.yaml: " in str(raised.value)


def test_a_mode_changes_the_digest_of_the_policies(tmp_path: Path) -> None:
    assert load_policies(written(tmp_path, yaml.safe_dump(SMALL))).digest != load_policies().digest
