"""A corpus whose manifest was changed, with CURRENT and HEADS rewritten to match: only an anchor detects it."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

from scoped_retrieval.pipeline.corpus.heads import HEADS, START, chain, pointer_bytes


def repin(path: Path) -> None:
    """Make the chain name the manifests as they are now."""
    heads, previous = [], START
    for head in chain(path):
        file = path / "generations" / f"{head.generation}.json"
        sha256 = hashlib.sha256(file.read_bytes()).hexdigest() if file.exists() else head.manifest_sha256
        heads.append(replace(head, manifest_sha256=sha256, previous=previous))
        previous = heads[-1].hash
    (path / HEADS).write_text("".join(f"{head.line}\n" for head in heads))
    (path / "CURRENT").write_bytes(pointer_bytes(heads[-1]))
