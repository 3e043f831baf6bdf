"""A package that knows `scoped_retrieval.pipeline.plugins` alone: a gate, a lane, a score term and a reader."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from scoped_retrieval.pipeline.config.settings import load_settings
from small_corpus import Story

SOURCE = '''
"""Rules of Acme: rows with the tag `embargo` are for nobody, long rows count a little more, and tags are searched."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scoped_retrieval.pipeline.plugins import (
    PLUGIN_REASON, Canary, Gate, Lane, Opening, Scored, ScoreTerm, SourceReader,
)


def _tagged(tags, word):
    """The rows of a list column that have a word."""
    lists = tags.combine_chunks() if isinstance(tags, pa.ChunkedArray) else tags
    found = np.zeros(len(lists), dtype=bool)
    rows, words = pc.list_parent_indices(lists), pc.list_flatten(lists)
    found[np.asarray(rows.filter(pc.equal(words, word)))] = True
    return found


def stops(segment, contract):
    return _tagged(segment.column("tags"), "embargo")


def removes(rows, contracts):
    return np.array(["embargo" in (tags or ()) for tags in rows["tags"].to_pylist()], dtype=bool)


def explain(contract, bounds):
    return "acme", "Rows without the tag embargo."


def remedy(case):
    return Opening("the row", "a row without the tag embargo", False)


EMBARGO = Gate(
    "acme.embargo", "visibility", PLUGIN_REASON, "it is not under embargo", columns=("tags",),
    stops=stops, removes=removes, explain=explain, remedy=remedy,
    canaries=(Canary("acme.embargo", lambda ground: {"tags": ["embargo"]}),),
)
SEALED = Gate(
    "acme.sealed", "access", PLUGIN_REASON, "it is not sealed", columns=("tags",),
    stops=lambda segment, contract: _tagged(segment.column("tags"), "sealed"),
    removes=lambda rows, contracts: np.array(["sealed" in (tags or ()) for tags in rows["tags"].to_pylist()], dtype=bool),
)


def recall(scope):
    """Rows with a tag that is a word of the query."""
    words = [set(re.findall(r"[a-z]+", text.lower())) for text in scope.queries["query_text"].to_pylist()]
    tags = [set(found or ()) for found in scope.rows["tags"].to_pylist()]
    hits = [(q, r, float(len(asked & own))) for q, asked in enumerate(words) for r, own in enumerate(tags) if asked & own]
    query, row, score = zip(*hits) if hits else ((), (), ())
    return Scored(query, row, score)


TAGS = Lane("acme.tags", "rows with a tag that the query says", columns=("tags",), recall=recall)


def length(rows, asked):
    return np.minimum(pc.fill_null(pc.utf8_length(rows["text"]), 0).to_numpy() / 1000, 1.0)


LENGTH = ScoreTerm("acme.length", "its length in thousands of characters", weight=0.3, columns=("text",), value=length)


def read(path, *, project, now, report):
    """Tickets: a line `ID: text` each."""
    lines = path.read_text().splitlines()
    report.read += len(lines)
    found = [line.split(": ", 1) for line in lines]
    yield pa.table(
        {"source_id": ["acme:tickets"] * len(found), "entity": [one for one, _ in found], "text": [two for _, two in found]}
    )


TICKETS = SourceReader("acme.tickets", read)
'''

ENTRIES = """
[scoped_retrieval.gates]
acme.embargo = acme_rules:EMBARGO
acme.sealed = acme_rules:SEALED
[scoped_retrieval.lanes]
acme.tags = acme_rules:TAGS
[scoped_retrieval.score_terms]
acme.length = acme_rules:LENGTH
[scoped_retrieval.readers]
acme.tickets = acme_rules:TICKETS
"""


def install(folder: Path, patch: pytest.MonkeyPatch, source: str = SOURCE, entries: str = ENTRIES) -> None:
    """Lay the package where Python looks for modules and their entry points."""
    site = folder / "site"
    info = site / "acme_rules-1.0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (site / "acme_rules.py").write_text(source)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-rules\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entries)
    patch.syspath_prepend(str(site))
    patch.delitem(sys.modules, "acme_rules", raising=False)


def settings_of(story: Story, **flags: Any) -> Any:
    given = {name: story.folder / name for name in ("corpus", "runs")} | {"grants": story.folder / "grants.yaml"}
    return load_settings({**given, "principal": "ana", "project": "shop", **flags})
