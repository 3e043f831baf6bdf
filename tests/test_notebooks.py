"""Every notebook runs from top to bottom, and holds the pictures that it draws."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from notebook_outputs import PICTURES, USER, executed

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
MACHINE = re.compile(r"/(?:home|root|tmp|Users|work|usr|opt|var|private)/")
MOST_BYTES = 1_000_000
LONGEST = "rerank_weights"  # takes longer than all others together; executed before a release


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the kernel's own packages
@pytest.mark.parametrize(
    "notebook",
    [pytest.param(path, marks=[pytest.mark.full] if path.stem == LONGEST else []) for path in NOTEBOOKS],
    ids=lambda path: path.stem,
)
def test_a_notebook_runs_from_top_to_bottom_and_holds_its_pictures(
    notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nbformat = pytest.importorskip("nbformat", reason="needs the extra `notebook`")
    pytest.importorskip("nbclient", reason="needs the extra `notebook`")
    monkeypatch.setenv("LOGNAME", USER)
    kept = [cell.get("outputs", []) for cell in nbformat.read(notebook, as_version=4).cells]
    now = [cell.get("outputs", []) for cell in executed(notebook, tmp_path).cells]
    drawn = [_draws(cell) for cell in now]
    assert [_draws(cell) for cell in kept] == drawn, "`make notebooks` executes them anew"
    assert any(drawn)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_small_and_names_no_folder_of_a_machine(notebook: Path) -> None:
    nbformat = pytest.importorskip("nbformat", reason="needs the extra `notebook`")
    assert notebook.stat().st_size < MOST_BYTES
    for cell in nbformat.read(notebook, as_version=4).cells:
        for output in cell.get("outputs", ()):
            texts = [output.get("text", ""), *(t for kind, t in output.get("data", {}).items() if kind != "image/png")]
            assert not any(MACHINE.search(text) for text in texts)


def _draws(outputs: list) -> bool:
    return any(kind in output.get("data", ()) for output in outputs for kind in PICTURES)
