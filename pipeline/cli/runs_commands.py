"""`runs`: the runs of a folder with their states."""

from __future__ import annotations

from typing import Any

import typer

from .options import settings_of
from .output import EXIT, emit, note, note_left_out, write_table

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(runs)


def runs() -> int:
    """List runs with their states. Counts the snapshots that you may read."""
    from ..reading.across_runs import other_runs, read_each
    from ..reading.snapshots import summaries_for
    from ..runs import RunStore
    from ..runs.run import INTERACTIVE
    from ..runs.states import DAMAGED, OK

    settings = settings_of("runs")
    store = RunStore(settings["runs"], create=False)
    rows: list[dict[str, Any]] = []
    found, damaged = read_each(settings, store.list(), summaries_for(settings))
    for run, summary in found:
        if summary.statuses:
            rows.append(
                {
                    "run_id": run.run_id,
                    "created_at": summary.created_at,
                    "kind": INTERACTIVE if run.live else run.manifest.get("kind"),
                    "snapshots": sum(summary.statuses.values()),
                    "statuses": summary.statuses,
                    "state": OK,
                }
            )
    others = [
        {"run_id": o.run_id, "state": o.state, "detail": o.detail}
        for o in other_runs(settings, but={run.run_id for run, _ in found})
        if o.run_id not in damaged
    ]
    others += [{"run_id": run_id, "state": DAMAGED, "detail": reason} for run_id, reason in damaged.items()]
    unfinished = [id_ for id_ in store.unfinished() if store.starter_of(id_) == settings.principal]
    cells = [
        (*(r[c] for c in ("run_id", "state", "created_at", "kind", "snapshots")), _counted(r["statuses"])) for r in rows
    ]
    cells += [(o["run_id"], o["state"], None, None, None, None) for o in others]
    text = write_table("", ("run", "state", "created at", "kind", "snapshots", "statuses"), sorted(cells, key=_first))
    emit({"runs": rows, "unfinished": unfinished, "not_ok": others}, text=text)
    note_left_out(len(damaged))
    for run_id in unfinished:
        note(f"unfinished: {run_id}; {_what_resume_does(settings, store, run_id)}")
    for other in others:
        if other["run_id"] not in unfinished:
            note(f"{other['state']}: {other['run_id']}: {other['detail']}")
    return EXIT["ok"]


def _counted(statuses: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in statuses.items())


def _first(row: tuple[Any, ...]) -> str:
    return str(row[0])


def _what_resume_does(settings: Any, store: Any, run_id: str) -> str:
    """What `run --resume` will do, as far as the current corpus shows."""
    from ...nodes.errors import ScopedRetrievalError
    from ..config.opening import head_of, trust_of
    from ..corpus.pinned import pinned_at

    command = f"`run --resume {run_id}`"
    try:
        plan = store.plan_of(run_id)
        if pinned_at(plan, settings["corpus"], trust_of(settings)):
            return f"{command} completes the run"
        if head_of(settings) is not None:
            return f"its generation is gone: {command} ends it with what was answered"
    except (ScopedRetrievalError, OSError, KeyError, TypeError):  # `run --resume` reports what is wrong
        pass
    return f"{command} completes the run, or ends it if its generation is gone"
