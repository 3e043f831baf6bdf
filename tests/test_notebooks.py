"""Every notebook runs from top to bottom."""

from __future__ import annotations

from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the kernel's own packages
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom(notebook: Path, tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat", reason="needs the extra `notebook`")
    nbclient = pytest.importorskip("nbclient", reason="needs the extra `notebook`")
    book = nbformat.read(notebook, as_version=4)
    nbclient.NotebookClient(book, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert all("outputs" in cell for cell in book.cells if cell.cell_type == "code")
