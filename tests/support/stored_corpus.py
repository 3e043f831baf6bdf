"""The chain and the manifests of a stored corpus, and a chain that was rewritten to name manifests as they are now."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import xxhash
from scoped_retrieval.pipeline.corpus import Corpus, manifest
from scoped_retrieval.pipeline.corpus.generation import Generation
from scoped_retrieval.pipeline.corpus.manifest import chain_of
from scoped_retrieval.pipeline.corpus.next_generation import NO_ROWS, Next, Revision
from scoped_retrieval.pipeline.corpus.stored import StoredRows
from scoped_retrieval.pipeline.storage.chain import Chain, Line
from scoped_retrieval.pipeline.storage.durable import file_sha256


def heads(path: Any) -> Sequence[Line]:
    """The lines of HEADS in a folder."""
    return chain_of(path).lines()


def generations(path: Any) -> list[str]:
    """The ids of the stored generations, oldest first."""
    return manifest.generations(path, chain_of(path))


def manifest_at(path: Any, generation: str | None = None) -> Any:
    """The file of the manifest of a generation, by default of the current one."""
    found = [line for line in heads(path) if generation in (None, line.body["generation"])]
    return manifest.manifest_of(path, found[-1])


def written_again(corpus: Corpus, now: datetime) -> None:
    """Write all rows of a corpus again, into as few segments and packs as there can be."""

    def change(base: Generation) -> tuple[None, Generation]:
        old = StoredRows.of(base, base.segments())
        return None, Next(base, old, Revision(range(len(old.segments)))).write(old.imported(NO_ROWS), now)

    corpus._change(change)


def reseal(path: Path, pack: Path) -> None:
    """Rewrite the checksums of a pack as its files are now, and every manifest that names it."""
    files = {}
    for file in sorted(pack.glob("*.arrow")):
        data = file.read_bytes()
        sums = {"sha256": hashlib.sha256(data).hexdigest(), "xxh3": xxhash.xxh3_64_hexdigest(data)}
        files[file.name] = {"bytes": len(data), **sums}
    (pack / "pack.json").write_text(json.dumps(files), encoding="utf-8")
    entry = {"bytes": sum(each["bytes"] for each in files.values()), "sha256": file_sha256(pack / "pack.json")}
    for at in (path / "generations").glob("*.json"):
        document = json.loads(at.read_bytes())
        if pack.name in document["packs"]:
            document["packs"][pack.name] = entry
            at.write_text(json.dumps(document), encoding="utf-8")


def repin(path: Path) -> None:
    """Make the chain name the manifests as they are now: only an anchor or a signature detects it."""
    lines = heads(path)
    (path / "HEADS").unlink()
    chain = Chain(path / "HEADS")
    for line in lines:
        file = manifest.manifest_of(path, line)
        body = dict(line.body)
        if file.exists():
            body["manifest"] = hashlib.sha256(file.read_bytes()).hexdigest()
            file.rename(file.with_name(f"{line.number:09d}-{body['manifest'][:16]}.json"))
        chain.append(chain.last(), body)
