"""Verification of a stored generation: changed manifests, damaged files, rows that do not match their id or digest,
changed content.

Note: the SHA-256 in a manifest does not protect against a user who can write both file and manifest. Ids and row
digests are derived from the rows, and the generation's id from these, so all of them are recomputed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...nodes.columns.digests import text_sha256
from ..storage.durable import file_sha256
from .commits import commit_hash
from .generation import Generation
from .identity import evidence_ids, row_digests
from .manifest import manifest_of, stored
from .packs import FILES
from .stored import StoredRows

__all__ = ["problems"]

_ROWS_AT_ONCE = 1 << 16


def problems(base: Generation) -> Iterator[str]:
    """Manifests of other generations that do not match the line that names them, and of this one, until something is wrong:
    files that do not match their SHA-256, a row that does not match its id or digest, content with another digest. Reads
    all files.
    """
    for line in stored(base.path, base.chain):
        at = manifest_of(base.path, line)
        if line != base.manifest.line and file_sha256(at) != line.body["manifest"]:
            yield f"Expected SHA-256 {line.body['manifest']}, got another - at generations/{at.name}"
    damaged = [
        f"Expected SHA-256 {entry['sha256']}, got another - at packs/{pack.folder.name}/{name}"
        for pack in base.packs.values()
        for name, entry in {FILES: pack.entry, **pack.files}.items()
        if file_sha256(pack.folder / name) != entry["sha256"]
    ]
    if damaged:
        yield from damaged
        return
    rows = StoredRows.of(base, base.segments())
    if changed := _changed_row(rows):
        yield changed
        return
    content = rows.hash(np.arange(base.rows)) + commit_hash(base.all_commits)
    if content != base.manifest.content or rows.placements.num_rows != base.manifest.placements:
        yield f"Expected generation {base.manifest.generation}, got other content - at {base.path}"


def _changed_row(stored: StoredRows) -> str:
    """The first row whose id, digest or text digest does not match its columns, as pack and row; empty if all match. No id
    is named: it would disclose rows to users without access.
    """
    for start in range(0, stored.evidence.num_rows, _ROWS_AT_ONCE):
        rows = stored.evidence.slice(start, _ROWS_AT_ONCE).combine_chunks()
        for column, different in (
            ("text_sha256", _different(rows["text_sha256"], text_sha256(rows["text"].combine_chunks()))),
            ("evidence_id", _different(rows["evidence_id"], evidence_ids(rows))),
            ("row_digest", _different(rows["row_digest"], row_digests(rows))),
        ):
            if different.any():
                at = int(np.argmax(different))
                (segment,) = stored.segments_of(np.array([start + at])).tolist()
                pack, row = stored.segments[segment], start + at - int(stored.starts[segment])
                return (
                    f"Expected the {column} that the row's columns give, got another - at "
                    f"packs/{pack.pack}/evidence.arrow:{pack.row_start + row}"
                )
    return ""


def _different(stored: Any, computed: pa.Array) -> NDArray[np.bool_]:
    return pc.not_equal(stored.combine_chunks().cast(computed.type), computed).fill_null(True).to_numpy(False)
