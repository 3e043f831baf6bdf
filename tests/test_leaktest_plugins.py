"""`leak-test` asks with the plugins of the settings: it plants rows behind their gates and notices what their lanes remember."""

from __future__ import annotations

from pathlib import Path

import pytest
from plugin_package import SOURCE, install
from scoped_retrieval.pipeline.config.settings import load_settings
from scoped_retrieval.pipeline.leaktest import LeakReport, leak_test
from small_corpus import Story, row

ROWS = (
    row("doc", "limits.md", "The retry limit of billing is three.", tags=["retry"]),
    row("doc", "pauses.md", "Payments of billing resume after a pause.", tags=["billing"]),
    row("doc", "owners.md", "The owner of billing is the payments team.", tags=["owner", "billing"]),
)
REMEMBERS = """KNOWN = set()


def recall(scope):
    KNOWN.update(tag for tags in scope.rows["tags"].to_pylist() for tag in tags or ())
    asked, row = scope.queries.num_rows, len(KNOWN) % max(scope.rows.num_rows, 1)
    return Scored(list(range(asked)), [row] * asked, [1.0] * asked)


def searched("""
"""A lane that remembers tags of every caller: the row that one caller is shown depends on the rows of the others."""


@pytest.fixture(name="folder")
def folder_fixture(tmp_path: Path) -> Path:
    Story(tmp_path, *ROWS).tell(*ROWS, project="pay", principal="bo")
    people = "principals:\n  ana: {projects: [shop]}\n  bo: {projects: [pay]}\n"
    (tmp_path / "grants.yaml").write_text(people)
    return tmp_path


def probed(folder: Path, patch: pytest.MonkeyPatch, source: str = SOURCE) -> LeakReport:
    install(folder, patch, source)
    flags = {"corpus": folder / "corpus", "grants": folder / "grants.yaml"}
    environ = {"SCOPED_RETRIEVAL_PLUGINS": "acme", "SCOPED_RETRIEVAL_LANES": "lexical,exact"}
    settings = load_settings(flags, cwd=folder, environ=environ, user=folder / "none.toml")
    return leak_test(settings, probes=1, angles=("open",), canaries=40)


def test_a_plugin_that_only_narrows_leaks_nothing_and_its_gates_are_tested(folder, monkeypatch):
    report = probed(folder, monkeypatch)
    assert report.ok, report.text()
    assert report.gates["acme.embargo"] > 0
    sealed, others = report.skipped
    assert sealed == "acme.sealed: the gate declares no canary"
    assert others.startswith("gates that no canary of this test was planted for: source_allow, ")


def test_a_lane_that_remembers_rows_of_others_is_found(folder, monkeypatch):
    report = probed(folder, monkeypatch, SOURCE.replace("def recall(", REMEMBERS))
    assert not report.ok
    assert "another answer" in {leak.kind for leak in report.leaks}
