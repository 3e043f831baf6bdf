"""`policies` as commands: exit codes, text and JSON, whose snapshot it is."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from command_line import ask, run
from role_world import overlay
from scoped_retrieval.pipeline.config.policies.tables import load_policies
from scoped_retrieval.pipeline.evaluation.roles import bundled_sample


@pytest.mark.parametrize("broken", ["{}", '{"selected": []}'], ids=["overlay", "bundle"])
def test_a_file_that_is_none_is_named_and_exits_2(broken: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    code, out, err = run("policies", "check", str(tmp_path / "none.json"), capsys=capsys)
    assert (code, out, "No such file" in err) == (2, "", True)
    file = tmp_path / "broken.json"
    file.write_text("{")
    code, out, _ = run("policies", "check", str(file), capsys=capsys)
    assert (code, out.count("\n"), "broken.json" in out) == (2, 1, True)
    file.write_text(broken)
    code, out, _ = run("policies", "check", str(file), "--json", capsys=capsys)
    found = json.loads(out)
    assert (code, found["valid"], len(found["errors"]) > 2) == (2, False, True)
    code, out, _ = run("policies", "check", str(file), capsys=capsys)
    assert (code, out.splitlines()) == (2, found["errors"])


def test_a_valid_overlay_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "reader.json"
    file.write_text(json.dumps(overlay()))
    assert run("policies", "check", str(file), capsys=capsys)[:2] == (0, "valid\n")


def test_roles_are_listed_with_those_of_the_folder_of_policies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    code, out, _ = run("policies", "list", "--json", capsys=capsys)
    bundled = [each["role"] for each in json.loads(out)]
    assert (code, bundled) == (0, sorted(load_policies().roles.names))
    (tmp_path / "roles").mkdir()
    (tmp_path / "roles" / "reader.json").write_text(json.dumps(overlay()))
    monkeypatch.setenv("SCOPED_RETRIEVAL_POLICIES", str(tmp_path))
    code, out, _ = run("policies", "list", capsys=capsys)
    assert (code, "reader" in out, "Reader" in out) == (0, True, True)


def test_the_bundle_of_a_snapshot_is_valid_and_its_callers_alone(
    shop: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    _, snapshot = ask("--set", "role=architect", capsys=capsys)
    code, out, _ = run("show", snapshot, "--as", "bundle", capsys=capsys)
    assert (code, json.loads(out)["role_id"]) == (0, "architect")
    (shop / "bundle.json").write_text(out)
    assert run("policies", "check", "bundle.json", capsys=capsys)[:2] == (0, "valid\n")
    assert run("show", "retr-snap-none", "--as", "bundle", capsys=capsys)[0] != 0
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "eve")
    code, out, err = run("show", snapshot, "--as", "bundle", capsys=capsys)
    assert (code, out, "Expected a snapshot that you may read" in err) == (3, "", True)


def test_scores_exit_5_where_a_role_is_no_better_than_another(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    code, out, _ = run("policies", "score", "--json", capsys=capsys)
    assert (code, json.loads(out)["failed"]) == (0, [])
    sets = tmp_path / "sets"
    shutil.copytree(bundled_sample()[1], sets)
    shutil.copy(sets / "security-reviewer.jsonl", sets / "architect.jsonl")
    code, _, err = run("policies", "score", "--golden", str(sets), capsys=capsys)
    assert (code, "not distinct: " in err and "architect" in err) == (5, True)
