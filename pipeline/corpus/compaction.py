"""Merges small packs into one: segments move unchanged, so that owners added one by one share files.

Reads: a generation. Gives: `crowded_packs` and `several_packs`, which choose, and `gathered`, which writes. Small packs
of commit tables are chosen in the same way, see `commits.py`.

Note: a segment that moves keeps its id, its rows and their order, its posting lists, and its position among the
segments. So no frame, answer, digest or delta changes, and nothing is analyzed or sorted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from ...nodes.columns.ragged import starts_of
from ..storage.places import Place
from .commits import FILE, SMALL_TABLE
from .deltas import CHANGES, DESCRIPTIONS
from .frame import stored_evidence, stored_placements
from .generation import Generation
from .packs import Files, Pack, PackSegment, write_gathered
from .parts import without_vectors
from .postings import PostingLists


def crowded_packs(base: Generation, fan_in: int, full: int) -> set[str]:
    """The small packs of every kind and size class (powers of `fan_in`) that has at least `fan_in` of them."""
    classes = defaultdict(set)
    for kind, sizes in enumerate(_small_packs(base, full)):
        for pack, size in sizes.items():
            classes[kind, int(np.log(max(size, 1)) / np.log(fan_in))].add(pack)
    return {pack for packs in classes.values() if len(packs) >= fan_in for pack in packs}


def several_packs(base: Generation, full: int) -> set[str]:
    """The small packs of every kind that has more than one."""
    return {pack for sizes in _small_packs(base, full) if len(sizes) > 1 for pack in sizes}


def _small_packs(base: Generation, full: int) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """The rows in use of packs that use fewer than a quarter of `full`; the bytes of small packs of commit tables."""
    manifest = base.manifest
    tables = {pack: int(manifest.packs[pack][FILE]["bytes"]) for pack in manifest.commits.values()}
    small = {pack: size for pack, size in tables.items() if size < SMALL_TABLE}
    return {pack: count for pack, count in base.live.items() if 4 * count < full}, small


def gathered(folder: Place, packs: Mapping[str, Pack], segments: Sequence[PackSegment]) -> Files:
    """Write segments of some packs as the pack `folder`, in their order; returns its files."""
    lists = [packs[segment.pack].postings(segment) for segment in segments]
    spans = [slice(each.starts[0], each.starts[-1]) for each in lists]
    joined = PostingLists(
        np.concatenate([each.hashes for each in lists]),
        pa.concat_arrays([each.keys for each in lists]),
        starts_of(np.concatenate([np.diff(each.starts) for each in lists])),
        np.concatenate([each.rows[span] for each, span in zip(lists, spans, strict=True)]),
        np.concatenate([each.freqs[span] for each, span in zip(lists, spans, strict=True)]),
    )
    evidence = stored_evidence(segments, packs, DESCRIPTIONS.empty_table())
    placements = stored_placements(segments, packs, CHANGES.empty_table())
    return write_gathered(folder, segments, evidence, placements, joined, _vectors(packs, segments))


def _vectors(packs: Mapping[str, Pack], segments: Sequence[PackSegment]) -> pa.Table | None:
    """`text_digest` and `vector` of every row; None if no segment has vectors."""
    found = [
        packs[segment.pack].vectors(segment.row_start, segment.size) if segment.encoded else None
        for segment in segments
    ]
    schema = next((table.schema for table in found if table is not None), None)
    if schema is None:
        return None
    return pa.concat_tables(
        without_vectors(schema, segment.size) if table is None else table
        for table, segment in zip(found, segments, strict=True)
    )
