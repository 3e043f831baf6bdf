"""What is wrong with a stored generation: files that are not as they were written, content that has another digest."""

from __future__ import annotations

import numpy as np

from ..durable import file_sha256
from ..places import Place
from .commits import commit_hash
from .generation import Generation
from .stored import Stored

__all__ = ["damaged_files", "problems"]


def damaged_files(path: Place, base: Generation) -> list[str]:
    """Files of the generation that are not as they were written, by their SHA-256 in the manifest. Reads them all."""
    return [
        f"Expected SHA-256 {entry['sha256']}, got another - at packs/{pack}/{name}"
        for pack, files in base.manifest.packs.items()
        for name, entry in files.items()
        if file_sha256(path / "packs" / pack / name) != entry["sha256"]
    ]


def problems(path: Place, base: Generation) -> list[str]:
    """Damaged files, or content that has another digest than the generation's. Empty if all is well."""
    if damaged := damaged_files(path, base):
        return damaged
    manifest = base.manifest
    stored = Stored.of(base, manifest.segments)
    content = stored.hash(np.arange(manifest.rows))
    content = sum((commit_hash(base.commits(project)) for project in manifest.commits), content)
    if content != manifest.content or stored.placements.num_rows != manifest.placements:
        return [f"Expected generation {manifest.generation}, got other content - at {path}"]
    return []
