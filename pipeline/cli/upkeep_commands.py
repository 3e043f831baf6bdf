"""`gc`: what corpus and runs no longer need is removed."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from ..progress import counted
from .options import settings_of
from .output import EXIT, emit

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(gc)


def gc(
    keep: Annotated[
        int | None, typer.Option("--keep", min=1, help="Remove older generations of the corpus than so many.")
    ] = None,
    discard: Annotated[
        str | None, typer.Option("--discard", metavar="RUN", help="Remove only this unfinished run and its answers.")
    ] = None,
) -> int:
    """Compact snapshots and remove what nothing names. Interactive snapshots become Parquet; digests do not change."""
    from ..reading.access import known_runs, unknown
    from ..runs import Runs

    settings = settings_of("runs", "corpus")
    if discard is not None:
        store = Runs(settings["runs"], create=False)
        if not known_runs(settings, store)(discard):
            raise unknown(discard)
        store.discard(discard)
        emit({"discarded": discard}, text=f"{discard}: discarded")
        return EXIT["ok"]
    found = _compacted(settings) | _without_old_generations(settings, keep or sys.maxsize)
    lines = [f"{run_id}: compacted {counted(number, 'snapshot')}" for run_id, number in found["compacted"].items()]
    lines += found["damaged"]
    if "removed" in found:
        lines += [f"{name}: {_counted(found[name])}" for name in ("removed", "kept")]
    emit(found, text="\n".join(lines) or "ok")
    return EXIT["differs"] if found["damaged"] else EXIT["ok"]


def _compacted(settings: Any) -> dict[str, Any]:
    """The interactive runs that the principal may know of, in Parquet now, and those that are damaged."""
    from ...nodes.errors import StoreError, VerificationError
    from ..config.opening import runs_of
    from ..reading.access import known_runs
    from ..runs import compact

    done, damaged = {}, []
    if not settings["runs"].is_dir():
        return {"compacted": done, "damaged": damaged}
    store = runs_of(settings)
    for run_id in filter(known_runs(settings, store), store.uncompacted()):
        try:
            done[run_id] = compact(store, run_id).snapshots.num_rows
        except (StoreError, VerificationError) as error:
            if getattr(error.__cause__, "errno", None) is not None:  # of the disk: this and later runs are unchanged
                raise
            damaged.append(f"{run_id}: {error.message}")
    return {"compacted": done, "damaged": damaged}


def _without_old_generations(settings: Any, keep: int) -> dict[str, Any]:
    """What was removed from the corpus and what it keeps, for auditors of all projects."""
    from ..config.opening import corpus_of, head_of
    from ..reading.grants import audits_corpus

    if head_of(settings) is None:
        return {}
    corpus = corpus_of(settings)
    removed, info = corpus.gc(keep), corpus.info()
    if not audits_corpus(settings, info["projects"]):
        return {}
    return {
        "removed": removed,
        "kept": {"generations": len(info["generations"]), "packs": info["packs"], "bytes": info["bytes"]},
    }


def _counted(found: dict[str, int]) -> str:
    """`{"packs": 1, "bytes": 2048}` as `1 pack, 2,048 bytes`."""
    return ", ".join(f"{count:,} {name.removesuffix('s') if count == 1 else name}" for name, count in found.items())
