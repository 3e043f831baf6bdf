"""Verification of a stored generation: changed manifests, damaged files, rows that do not match their id or digest,
changed content.

Note: the SHA-256 in a manifest does not protect against a user who can write both file and manifest. Ids and row
digests are derived from the rows, and the generation's id from these, so all of them are recomputed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...nodes.columns.digests import text_sha256
from ..storage.durable import file_sha256
from ..storage.places import Place
from .commits import commit_hash
from .generation import Generation
from .identity import evidence_ids, row_digests
from .manifest import manifest_of, stored
from .packs import FILES
from .stored import StoredRows

__all__ = ["changed_manifests", "changed_row", "damaged_files", "problems"]

_ROWS_AT_ONCE = 1 << 16


def changed_manifests(base: Generation) -> list[str]:
    """Manifests of other generations that do not match the line that names them."""
    return [
        f"Expected SHA-256 {line.body['manifest']}, got another - at generations/{at.name}"
        for line in stored(base.path, base.chain)
        if line != base.manifest.line and file_sha256(at := manifest_of(base.path, line)) != line.body["manifest"]
    ]


def damaged_files(path: Place, base: Generation) -> list[str]:
    """Files of the generation that do not match their SHA-256. Reads all files."""
    return [
        f"Expected SHA-256 {entry['sha256']}, got another - at packs/{pack.folder.name}/{name}"
        for pack in base.packs.values()
        for name, entry in {FILES: pack.entry, **pack.files}.items()
        if file_sha256(path / "packs" / pack.folder.name / name) != entry["sha256"]
    ]


def changed_row(base: Generation) -> str | None:
    """The first row whose id, digest or text digest does not match its columns, as pack and row; None if all match.

    The files must match the manifest, see `damaged_files`. No id is named: it would disclose rows to users without
    access.
    """
    stored = StoredRows.of(base, base.segments())
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
    return None


def _different(stored: Any, computed: pa.Array) -> NDArray[np.bool_]:
    return pc.not_equal(stored.combine_chunks().cast(computed.type), computed).fill_null(True).to_numpy(False)


def problems(path: Place, base: Generation) -> list[str]:
    """Damaged files, a changed row, or content whose digest is not the generation's. Empty if there are no problems."""
    if damaged := damaged_files(path, base):
        return damaged
    if (changed := changed_row(base)) is not None:
        return [changed]
    manifest = base.manifest
    stored = StoredRows.of(base, base.segments())
    content = stored.hash(np.arange(base.rows)) + commit_hash(base.all_commits)
    if content != manifest.content or stored.placements.num_rows != manifest.placements:
        return [f"Expected generation {manifest.generation}, got other content - at {path}"]
    return []
