"""A corpus frame: some segments of one generation as one flat row space, zero-copy over mapped packs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...nodes.columns.ragged import starts_of
from ...nodes.frames import PostingIndex, RowIndex, VectorIndex
from ...nodes.tables import PLACEMENTS
from .deltas import applied, described
from .packs import Pack, PackSegment, side_by_side
from .parts import STORED_EVIDENCE, shifted, with_rows


@dataclass(frozen=True)
class CorpusFrame:
    """The rows of some segments. Row `i` of every part is the same row; access is not restricted here."""

    generation: str
    evidence: pa.Table
    placements: pa.Table
    segments: pa.Table
    postings: PostingIndex
    vectors: VectorIndex | None
    encoder_profile: str | None

    @cached_property
    def row_index(self) -> RowIndex:
        """NumPy views for gates and kernels; the only copy that a frame makes, on first use."""
        return RowIndex.of(self.evidence, self.placements)

    def inputs(self) -> dict[str, Any]:
        """The inputs of the line's driver, by name."""
        names = ("evidence", "placements", "segments", "row_index", "postings", "vectors")
        return {name: getattr(self, name) for name in names}


def stored_evidence(segments: Sequence[PackSegment], packs: Mapping[str, Pack], descriptions: pa.Table) -> pa.Table:
    """`STORED_EVIDENCE` of these segments with all changes, one after the other."""
    slices = [
        packs[first.pack].table("evidence.arrow").slice(first.row_start, last.row_end - first.row_start)
        for first, last in _ends(segments)
    ]
    stored = pa.concat_tables(slices) if slices else STORED_EVIDENCE.empty_table()
    descriptions, rows = _placed(descriptions, segments)
    return described(stored, rows, descriptions)


def stored_placements(segments: Sequence[PackSegment], packs: Mapping[str, Pack], changes: pa.Table) -> pa.Table:
    """PLACEMENTS of these segments with all changes; rows are numbered across the segments."""
    slices, row = [PLACEMENTS.empty()], 0
    for first, last in _ends(segments):
        start, count = first.placement_start, last.placement_end - first.placement_start
        slices.append(shifted(packs[first.pack].table("placements.arrow").slice(start, count), row - first.row_start))
        row += last.row_end - first.row_start
    changes, rows = _placed(changes, segments)
    return applied(pa.concat_tables(slices), with_rows(changes, rows))


def _placed(amended: pa.Table, segments: Sequence[PackSegment]) -> tuple[pa.Table, NDArray[np.int64]]:
    """Deltas of rows of these segments, by `segment_id` and `row`, and the row number of each across all segments."""
    starts = starts_of(np.array([segment.size for segment in segments], dtype=np.int64))
    at = pc.index_in(amended["segment_id"], value_set=pa.array([s.segment_id for s in segments], pa.string()))
    amended, at = amended.filter(at.is_valid()), at.drop_null().to_numpy()
    return amended, amended["row"].to_numpy() + starts[at]


def _ends(segments: Sequence[PackSegment]) -> list[tuple[PackSegment, PackSegment]]:
    """The first and the last of the segments that lie side by side."""
    return [(segments[run.start], segments[run.stop - 1]) for run in side_by_side(segments, range(len(segments)))]
