"""Notebooks as they are executed and kept: pictures, and what two executions say alike.

A reader of a notebook sees its pictures and tables without running it. An output is kept if it is a picture, or if
another execution, in another folder at another time, gave the same text: times, ids of runs and paths of a machine are not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from repositories import git

USER = "auditor"
"""The current user, who is the principal of the notebooks."""
PICTURES = ("image/png", "image/svg+xml")
TEXTS = ("text/plain", "text/html")
Output = Mapping[str, Any]


def executed(notebook: Path, folder: Path) -> Any:
    """The notebook after every cell ran, started in a checkout of its own."""
    import nbclient
    import nbformat

    book = nbformat.read(notebook, as_version=4)
    for cell in book.cells:
        cell.pop("outputs", None) if cell.cell_type != "code" else cell.update(outputs=[])
    _repository(folder)
    nbclient.NotebookClient(book, timeout=600, resources={"metadata": {"path": str(folder)}}).execute()
    return book


def agreed(outputs: Sequence[Output], others: Sequence[Output]) -> list[dict[str, Any]]:
    """The outputs of a cell that another execution gives, too: the same texts, and pictures of the same kinds."""
    kept = []
    for output in outputs:
        if output["output_type"] == "stream":
            if output["name"] == "stdout" and any(_same_stream(output, other) for other in others):
                kept.append(dict(output))
        elif data := _agreed_data(output.get("data", {}), [other.get("data", {}) for other in others]):
            kept.append({"output_type": "display_data", "data": data, "metadata": {}})
    return kept


def _same_stream(one: Output, other: Output) -> bool:
    return other["output_type"] == "stream" and (one["name"], one["text"]) == (other["name"], other["text"])


def _agreed_data(data: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    pictures = {kind: data[kind] for kind in PICTURES if kind in data and any(kind in other for other in others)}
    texts = {kind: data[kind] for kind in TEXTS if kind in data and any(data[kind] == o.get(kind) for o in others)}
    return pictures | (texts if pictures or "text/html" in texts or "text/html" not in data else {})


def _repository(folder: Path) -> None:
    """A checkout to start in, with a few commits."""
    git(folder, "init", "-q", "-b", "main")
    for number, subject in enumerate(("Begin", "Retry: wait longer between attempts", "Send: retry on timeouts")):
        (folder / "retry.py").write_text(
            f'def wait_between_attempts(attempt):\n    """How long a request waits."""\n    return {number} * attempt\n'
        )
        (folder / "send.py").write_text(
            "from retry import wait_between_attempts\n\n\ndef send(request):\n"
            f'    """Send a request again on timeouts."""\n    return wait_between_attempts({number // 2})\n'
        )
        git(folder, "add", "-A")
        git(folder, "commit", "-qm", subject)
