"""Adoption: interactive files that lost their line in LOG in a crash get a new one, from `compact` or the next caller.

runs/.open/<run_id> exists while a session may write to a run. One that no process holds was left by a crash.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...nodes.errors import ScopedRetrievalError, VerificationError
from ..storage.durable import entries, exists
from ..storage.locks import hold
from ..storage.places import Place
from .files import locked, sha256_of
from .ids import RUN_ID
from .live import log_fields
from .live_files import live_files, read_live, unlogged
from .log import files_named
from .log_lines import LogEntry
from .run import starter_of
from .store import RunStore

__all__ = ["adopt", "heal"]


def heal(store: RunStore) -> list[str]:
    """Adopt what crashed sessions left; only in folders, not on object stores. Returns the ids of the runs examined.

    A run that is being written or was tampered with is not modified: `verify` reports it.
    """
    looked: list[str] = []
    for mark in entries(store.opened) if isinstance(store.path, Path) else ():
        run_id = mark.name
        if not RUN_ID.fullmatch(run_id) or (held := hold(store.session_of(run_id))) is None:
            continue
        try:
            with suppress(OSError, ScopedRetrievalError), locked(store.lock_of(run_id), "a run", timeout=0.1):
                folder = store.path / run_id
                if exists(folder / "live") and not exists(folder / "manifest.json"):
                    adopt(store, folder, [line for line in store.log.lines() if line.run_id == run_id])
                mark.unlink(missing_ok=True)
                looked.append(run_id)
        finally:
            held.release()
    return looked


def adopt(store: RunStore, folder: Place, lines: list[LogEntry]) -> None:
    """Append new lines for the files of a run that lost theirs; `lines` are the lines of the run.

    Raises:
        VerificationError: a file or the graph is missing or not the one that LOG names, or a file lacks a line before
            the end of LOG, which a crash cannot cause. Nothing was written.
    """
    logged, files = files_named(lines), live_files(folder)
    _check(folder, logged, {line.body["lineage_sha256"] for line in lines if line.kind == "live"})
    lost = unlogged(files, logged)
    if others := sorted({*files} - {*logged} - {*lost}):
        raise VerificationError(f"Expected the files of a session, got one out of order - at live/{others[0]}")
    lineage, starter = sha256_of(folder / "lineage.json"), starter_of(folder)
    for file in lost:
        path = folder / "live" / file
        line: dict[str, Any] = {"file": file, "sha256": sha256_of(path), "lineage_sha256": lineage}
        line |= log_fields(read_live(path))
        store.log.append("live", folder.name, **line, started_by=starter, adopted=True)


def _check(folder: Place, logged: Mapping[str, str], lineage: Collection[str]) -> None:
    """Check that the graph and every file that LOG names exist and are unchanged."""
    if not exists(folder / "lineage.json"):
        raise VerificationError("Expected the graph of the run, got none - at lineage.json")
    if lineage and {sha256_of(folder / "lineage.json")} != set(lineage):
        raise VerificationError("Expected the file that LOG names, got a changed one - at lineage.json")
    present = {*live_files(folder)}
    for file, sha256 in logged.items():
        if file not in present:
            raise VerificationError(f"Expected the file that LOG names, got none - at live/{file}")
        if sha256_of(folder / "live" / file) != sha256:
            raise VerificationError(f"Expected the file that LOG names, got a changed one - at live/{file}")
