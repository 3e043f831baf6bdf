"""Import rows for corpus tests: everything but what a test is about has a value."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scoped_retrieval.nodes.tables import EVIDENCE, IMPORT_ROWS
from scoped_retrieval.pipeline.corpus import CorpusFrame

JANUARY = datetime(2025, 1, 1, tzinfo=UTC)
SOURCE = "workspace:shop"


def day(number: int) -> datetime:
    """That many days after the first of January."""
    return JANUARY + timedelta(days=number)


def import_rows(*rows: dict[str, Any]) -> pa.Table:
    """Normalised rows of project `shop`, path `a.md`, recorded on January 1st, unless a row says otherwise."""
    common = {
        "source_id": SOURCE,
        "origin_class": "workspace",
        "evidence_kind": "doc",
        "owner_project": "shop",
        "path": "a.md",
        "generated": False,
        "recorded_time": JANUARY,
        "line_start": 1,
        "line_end": 2,
    }
    spans = pa.array([row.pop("redactions", None) for row in rows], EVIDENCE.columns["redactions"].type)
    return IMPORT_ROWS.from_rows([common | row for row in rows]).append_column("redactions", spans)


def history(*days: int, branch: str | None = None) -> pa.Table:
    """The commits of a history, one on each of these days; a commit is named for its day."""
    return pa.table(
        {
            "version": [f"{number:x}".rjust(8, "c") + "0" * 32 for number in days],
            "recorded_time": pa.array([day(number) for number in days], pa.timestamp("us", "UTC")),
            "branch": pa.array([branch] * len(days), pa.string()),
        }
    )


def content(frame: CorpusFrame) -> tuple[list[dict], list[dict]]:
    """Evidence and placements without the columns of their positions, in order of id."""
    evidence = frame.evidence.drop(["captured_time"]).sort_by("evidence_id").to_pylist()
    by = [("evidence_id", "ascending"), ("recorded_time", "ascending"), ("line_start", "ascending")]
    return evidence, frame.placements.drop(["row"]).sort_by(by).to_pylist()


class HashEncoder:
    """An encoder for tests: four numbers from the SHA-256 of the text, and a list of what it was asked to encode."""

    def __init__(self, profile: str = "hash/1") -> None:
        self.profile = profile
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str]) -> NDArray[np.int16]:
        self.asked += texts
        digests = [hashlib.sha256(f"{self.profile} {text}".encode()).digest()[:8] for text in texts]
        return np.frombuffer(b"".join(digests), dtype="<i2").reshape(-1, 4) // 2  # none is longer than a unit vector
