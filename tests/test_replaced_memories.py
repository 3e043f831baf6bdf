"""A memory that was replaced is history and never current, in every reader and across imports.

Which version stands is decided inside A(r): the property that rows outside of it change nothing is in
`properties/test_promises.py`, with `versions_chosen_before_the_gates` as its planted fault.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import run

OLD = {
    "id": "m1",
    "content": "The walrus sleeps in the hall.",
    "status": "verified",
    "createdAt": "2026-05-01T00:00:00Z",
}
NEW = {"id": "m2", "content": "It rests in the garden.", "status": "verified", "createdAt": "2026-06-01T00:00:00Z"}
"""The newer one has no word of the question."""
RETRIEVAL = {"k_in": 30, "k_out": 10, "chunk_expansion": True, "include_deleted": True}
UNTIMED = {"createdAt": None}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "ana")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    Path("memories").mkdir()


def imported(files: dict[str, list[dict[str, Any]]], capsys: pytest.CaptureFixture[str], *flags: str) -> None:
    """One import of some files."""
    for name, records in files.items():
        path = Path("memories", name)
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
        flags += ("--add", f"memory={path}")
    code, _, err = run("index", *flags, "--project", "p", "--no-semantic", capsys=capsys)
    assert code == 0, err


def found(capsys: pytest.CaptureFixture[str], *flags: str) -> str:
    """The block."""
    code, block, err = run("ask", "where does the walrus sleep", "--project", "p", *flags, capsys=capsys)
    assert code == 0, err
    return block


def shown(block: str) -> tuple[bool, bool]:
    """Whether the newer and the older memory are in a block."""
    return "garden" in block, "hall" in block


FORMS = {
    "supersededBy": {"a.jsonl": [OLD | {"supersededBy": "m2"}], "b.jsonl": [NEW]},
    "supersedes": {"a.jsonl": [OLD], "b.jsonl": [NEW | {"supersedes": "m1"}]},
    "supersedes, the newer first": {"b.jsonl": [NEW | {"supersedes": ["m1"]}], "a.jsonl": [OLD]},
    "same id": {"2026-05-01.jsonl": [OLD], "2026-06-01.jsonl": [NEW | {"id": "m1"}]},
    "same id, the newer first": {"2026-06-01.jsonl": [NEW | {"id": "m1"}], "2026-05-01.jsonl": [OLD]},
    "same id, no times": {"1.jsonl": [OLD | UNTIMED], "2.jsonl": [NEW | UNTIMED | {"id": "m1"}]},
    "names nothing that is known": {"a.jsonl": [OLD | {"supersededBy": "elsewhere"}], "b.jsonl": [NEW]},
}


@pytest.mark.parametrize(
    ("files", "at_once"), [(files, number % 2 == 0) for number, files in enumerate(FORMS.values())], ids=FORMS
)
def test_a_replaced_memory_is_never_current(
    capsys: pytest.CaptureFixture[str], files: dict[str, list[dict[str, Any]]], at_once: bool
) -> None:
    for part in [files] if at_once else [{name: records} for name, records in files.items()]:
        imported(part, capsys)
    assert shown(found(capsys)) == (True, False)


@pytest.mark.parametrize("times", [{}, UNTIMED], ids=["times", "no times"])
@pytest.mark.parametrize("state", ["verified", "forgotten"])
def test_a_later_line_of_a_file_ends_the_earlier_one(
    capsys: pytest.CaptureFixture[str], times: dict[str, None], state: str
) -> None:
    imported({"a.jsonl": [OLD | times, NEW | times | {"id": "m1", "status": state}]}, capsys)
    assert shown(found(capsys)) == (state == "verified", False)


def test_of_a_folder_the_later_file_ends_the_earlier_and_what_is_removed_ends(
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = ("index", "--add", "memory=memories", "--project", "p", "--no-semantic")
    for name, record in (("1", OLD), ("2", NEW | {"id": "m1"})):
        Path("memories", f"{name}.jsonl").write_text(json.dumps(record | UNTIMED))
    assert run(*folder, capsys=capsys)[0] == 0
    assert shown(found(capsys)) == (True, False)
    Path("memories", "2.jsonl").write_text(json.dumps(OLD | {"id": "m2", "content": "The walrus likes fish."}))
    assert run(*folder, capsys=capsys)[0] == 0
    assert shown(found(capsys)) == (False, True)
    Path("memories", "1.jsonl").unlink()
    assert run(*folder, capsys=capsys)[0] == 0
    assert shown(found(capsys)) == (False, False)


def test_the_same_files_without_times_are_the_same_generation(capsys: pytest.CaptureFixture[str]) -> None:
    for name, record in (("1", OLD), ("2", NEW | {"id": "m1"})):
        Path("memories", f"{name}.jsonl").write_text(json.dumps(record | UNTIMED))
    reports = list[dict[str, Any]]()
    for _ in range(2):
        code, out, err = run(
            "index", "--add", "memory=memories", "--project", "p", "--no-semantic", "--json", capsys=capsys
        )
        assert code == 0, err
        reports.append(json.loads(out))
    assert reports[0]["generation"] == reports[1]["generation"]


def test_a_chain_leads_to_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    between = NEW | {"id": "m3", "content": "It dozes on the stairs.", "createdAt": "2026-05-15T00:00:00Z"}
    for name, record in (("a", OLD), ("b", between | {"supersedes": "m1"}), ("c", NEW | {"supersedes": "m3"})):
        imported({f"{name}.jsonl": [record]}, capsys)
    block = found(capsys)
    assert (*shown(block), "stairs" in block) == (True, False, False)


def test_an_earlier_as_of_has_the_older_one_and_a_review_has_it_as_history(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, record in (("a", OLD), ("b", NEW | {"supersedes": "m1"})):
        imported({f"{name}.jsonl": [record]}, capsys)
    assert shown(found(capsys, "--as-of", "2026-05-20T00:00:00Z")) == (False, True)
    Path("policies/modes").mkdir(parents=True)
    mode = {"mode": "review", "search_paths": ["/**"], "retrieval_params": RETRIEVAL, "strategies": ["temporal"]}
    Path("policies/modes/review.yaml").write_text(json.dumps(mode))
    monkeypatch.setenv("SCOPED_RETRIEVAL_POLICIES", "policies")
    code, out, err = run(
        "ask", "where does the walrus sleep", "--project", "p", "--mode", "review", "--json", capsys=capsys
    )
    assert code == 0, err
    standing = {cited["path"]: cited["standing"] for cited in json.loads(out)["citations"]}
    assert standing == {"memory/m1": "history", "memory/m2": "evidence"}


def test_an_earlier_as_of_has_a_memory_that_says_later_what_replaced_it(capsys: pytest.CaptureFixture[str]) -> None:
    old = OLD | {"supersededBy": "m2", "supersededAt": "2026-06-01T00:00:00Z"}
    imported({"a.jsonl": [old], "b.jsonl": [NEW]}, capsys)
    assert shown(found(capsys)) == (True, False)
    assert shown(found(capsys, "--as-of", "2026-05-20T00:00:00Z")) == (False, True)


def test_of_two_memories_of_one_time_that_replace_each_other_one_stays(capsys: pytest.CaptureFixture[str]) -> None:
    now = {"createdAt": NEW["createdAt"]}
    imported({"a.jsonl": [OLD | now | {"supersedes": "m2"}], "b.jsonl": [NEW | {"supersedes": "m1"}]}, capsys)
    assert sum(shown(found(capsys))) == 1


def test_why_and_the_xray_say_that_it_was_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    for name, record in (("a", OLD), ("b", NEW | {"supersedes": "m1"})):
        imported({f"{name}.jsonl": [record]}, capsys)
    found(capsys)
    _, out, _ = run("why", "@", "memory/m1", "--json", capsys=capsys)
    (answer,) = json.loads(out)
    assert (answer["outcome"], answer["stage"], answer["reason_code"]) == ("rejected", "merge", "replaced")
    assert "replaced 1" in run("show", "@", "--as", "xray", capsys=capsys)[1]


@pytest.mark.parametrize("lanes", ["lexical", "lexical,expansion"])
def test_a_replaced_memory_is_not_current_without_the_lane_that_finds_its_replacement(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, lanes: str
) -> None:
    for name, record in (("a", OLD), ("b", NEW | {"supersedes": "m1"})):
        imported({f"{name}.jsonl": [record]}, capsys)
    monkeypatch.setenv("SCOPED_RETRIEVAL_LANES", lanes)
    assert shown(found(capsys)) == ("expansion" in lanes, False)


@pytest.mark.parametrize(
    "beyond",
    [{"scope": {"visibility": "project"}}, {"user": "ben"}, {"zone": "restricted"}, {"status": "revoked"}],
    ids=["the project's", "another user's", "zone", "state"],
)
@pytest.mark.parametrize("names", [{"id": "m1"}, {"supersedes": "m1"}], ids=["id", "supersedes"])
def test_a_version_of_another_owner_or_outside_of_the_boundary_replaces_nothing(
    capsys: pytest.CaptureFixture[str], beyond: dict[str, Any], names: dict[str, str]
) -> None:
    imported({"a.jsonl": [OLD]}, capsys)
    imported({"b.jsonl": [NEW | beyond | names]}, capsys)
    assert shown(found(capsys))[1]
