"""Runs of each format, kept as archives: a batch of two requests and one interactive snapshot."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest
from scoped_retrieval.pipeline.cli import main

FORMATS = Path(__file__).parents[1] / "fixtures" / "formats"
CANARY = "azurelark"
"""A word of the evidence that the first request of the batch and the interactive one show, and the second does not."""
_NOTES = {
    "retries.md": f"# Retries\n\nThe word {CANARY} opens payments: they are retried three times.\n",
    "buttons.md": "# Buttons\n\nButtons are green, and tulips grow in spring.\n",
}
_QUESTIONS = ("How often are payments retried?", "Which color do buttons have?")
_FLAGS = ("--corpus", "corpus", "--grants", "grants.yaml")


def runs_of(version: int | str, folder: Path) -> Path:
    """Unpack the runs of one format into `folder`; returns the folder of runs."""
    with tarfile.open(FORMATS / f"runs-{version}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "runs"


def keep_runs(version: int, folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Write runs of the present format in an empty folder, and keep them as those of `version`."""
    patch.chdir(folder)
    patch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "ana")
    patch.setenv("XDG_CONFIG_HOME", "config")
    (folder / "notes").mkdir()
    for name, text in _NOTES.items():
        (folder / "notes" / name).write_text(text, encoding="utf-8")
    (folder / "grants.yaml").write_text("principals: {ana: {projects: [shop], audit: true}}\n", encoding="utf-8")
    asked = {"project": "shop", "purpose": "explain-code"}
    rows = [{"request_id": f"r{at}", "question": text, **asked} for at, text in enumerate(_QUESTIONS, 1)]
    (folder / "requests.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    at, runs = ("--project", "shop"), ("--runs", "runs")
    for command in (
        ("index", "notes", "--no-semantic", *at, *_FLAGS),
        ("run", "requests.jsonl", *runs, *_FLAGS),
        ("ask", _QUESTIONS[0], "--purpose", "explain-code", *at, *runs, *_FLAGS),
    ):
        assert main(list(command)) == 0
    with tarfile.open(FORMATS / f"runs-{version}.tar.xz", "w:xz") as archive:
        archive.add("runs", filter=_anonymous)


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """An entry without its owner; locks are left out."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return None if Path(entry.name).name.startswith(".") else entry
