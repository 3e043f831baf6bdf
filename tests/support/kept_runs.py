"""Runs that earlier versions wrote, kept as archives: a batch of two requests and one interactive snapshot of each format."""

from __future__ import annotations

import tarfile
from pathlib import Path

FORMATS = Path(__file__).parents[1] / "fixtures" / "formats"


def runs_of(version: int | str, folder: Path) -> Path:
    """Unpack the runs of one format into `folder`; returns the folder of runs."""
    with tarfile.open(FORMATS / f"runs-{version}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "runs"
