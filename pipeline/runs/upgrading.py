"""Upgrade: rewrites a finished run of an earlier version in the current format; snapshots keep texts, ids and digests.

runs/<run_id>/v9/                 the parts as this version writes them

The run is verified first, so that an upgrade cannot hide a change. Then come the new parts, the line in LOG with the
SHA-256 of the manifest before and after, the new manifest, and the removal of the old parts. After a crash, the next
upgrade starts over, or completes the steps after the line in LOG. Note: digests of snapshots cover the columns of their
version, so they cannot be recomputed from upgraded tables; the new manifest records the version and the SHA-256 that it
replaces.
"""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc

from ...nodes.errors import StoreError, VerificationError
from ..storage.durable import exists, remove_tree, sync_all
from ..storage.places import Place
from .compacting import compact
from .files import files_below, json_bytes, locked, sha256_of, write_bytes
from .formats import BETWEEN, FORMAT, UPGRADED
from .parts import PERSISTED, references
from .run import Run
from .store import RunStore
from .verify import verify
from .writing import write_stored

__all__ = ["upgrade"]


def upgrade(store: RunStore, run_id: str) -> Run:
    """The run in the current format; one that has it is returned unchanged.

    Raises:
        VerificationError: the run does not match LOG and its manifest. Nothing was written.
        StoreError: it is unfinished, or of a version that this one does not read.
    """
    run = store.open(run_id)
    if exists(run.folder / UPGRADED / "manifest.json"):
        finish_upgrade(store, run.run_id)
        run = store.open(run_id)
    if not run.older:
        return run
    report = verify(store, run.run_id)
    if report.problems and report.status != "crashed":
        first = report.problems[0]
        raise VerificationError(f"Expected a run as it was written, got {first.detail} - at {run.run_id}/{first.part}")
    if run.live:
        return compact(store, run.run_id)
    with locked(store.lock_of(run.run_id), "a run"):
        run = Run(run.folder)
        if run.older:
            _upgrade(store, run)
    return Run(run.folder)


def _upgrade(store: RunStore, run: Run) -> None:
    folder, before = run.folder / UPGRADED, run.manifest
    was = sha256_of(run.folder / "manifest.json")
    if any(name.startswith(f"{UPGRADED}/") for name in files_below(run.folder)):
        remove_tree(folder)
    tables = run.tables()
    texts = run.texts.filter(pc.is_in(run.texts["sha256"], value_set=references(tables)))
    receipt = write_stored(folder, 0, tables, texts, check=False)
    entries: dict[str, Any] = {name: {"rows": 0, "parts": []} for name in [*(t.name for t in PERSISTED), "texts"]}
    for part in receipt["parts"]:
        named = {"path": f"{UPGRADED}/{part['path']}", **{key: part[key] for key in ("rows", "sha256", "digest")}}
        entries[part["table"]] = {"rows": part["rows"], "parts": [named]}
    after = before | {
        "format": FORMAT,
        "tables": entries,
        "upgraded_from": {"format": before["format"], "manifest_sha256": was},
    }
    data = json_bytes(after)
    sync_all([folder / part["path"] for part in receipt["parts"]], run.folder)
    staged = run.folder / UPGRADED / "manifest.json"
    sha256 = write_bytes(staged, data, sync=True)
    store.log.append(
        "upgrade", run.run_id, manifest_sha256=sha256, before_sha256=was, started_by=run.settings.get("principal")
    )
    write_bytes(run.folder / "manifest.json", data, sync=True)
    staged.unlink()
    _remove_old_parts(run.folder)


def finish_upgrade(store: RunStore, run_id: str) -> None:
    """Complete an upgrade that a crash interrupted after its line in LOG.

    Raises:
        StoreError: its new manifest is missing or changed.
    """
    folder = store.folder(run_id)
    with locked(store.lock_of(run_id), "a run"):
        lines = [line for line in store.log.lines() if line.run_id == run_id and line.kind == "upgrade"]
        if not lines:
            remove_tree(folder / UPGRADED)  # no line in LOG: the upgrade starts over
            return
        wanted, staged = lines[-1].body["manifest_sha256"], folder / UPGRADED / "manifest.json"
        if sha256_of(folder / "manifest.json") != wanted:
            if not exists(staged) or sha256_of(staged) != wanted:
                raise StoreError(f"Expected the manifest of the upgrade, got none - at {run_id}/{UPGRADED}")
            write_bytes(folder / "manifest.json", staged.read_bytes(), sync=True)
        staged.unlink(missing_ok=True)
        _remove_old_parts(folder)


def _remove_old_parts(folder: Place) -> None:
    """Remove the parts that the new manifest does not name, including those of upgrades to versions in between."""
    tops = {path.partition("/")[0] for path in files_below(folder) if "/" in path}
    for name in sorted(tops & {"tables", "texts", *BETWEEN}):
        remove_tree(folder / name)
