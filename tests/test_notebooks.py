"""Every notebook runs from top to bottom."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the kernel's own packages
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom(notebook: Path, tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat", reason="needs the extra `notebook`")
    nbclient = pytest.importorskip("nbclient", reason="needs the extra `notebook`")
    book = nbformat.read(notebook, as_version=4)
    _repository(tmp_path)
    nbclient.NotebookClient(book, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in book.cells for output in cell.get("outputs", ())]
    assert any("image/png" in output.get("data", ()) for output in outputs)  # it is drawn with pictures
    assert all(not cell.get("outputs") for cell in nbformat.read(notebook, as_version=4).cells)  # and kept without


def _repository(folder: Path) -> None:
    """A checkout to start in, with a few commits."""

    def git(*args: str) -> None:
        who = ["-c", "user.name=ana", "-c", "user.email=ana@example.org"]
        subprocess.run(["git", *who, *args], cwd=folder, check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    for number, subject in enumerate(("Begin", "Retry: wait longer between attempts", "Send: retry on timeouts")):
        (folder / "retry.py").write_text(
            f'def wait_between_attempts(attempt):\n    """How long a request waits."""\n    return {number} * attempt\n'
        )
        (folder / "send.py").write_text(
            "from retry import wait_between_attempts\n\n\ndef send(request):\n"
            f'    """Send a request again on timeouts."""\n    return wait_between_attempts({number // 2})\n'
        )
        git("add", "-A")
        git("commit", "-qm", subject)
