"""Events that a run emits on request: OpenLineage events and an OpenTelemetry span.

Reads: a staged run, and the run that it becomes. Gives: `observed`.

Note: events are sent outside of the run. If sending one fails, the error comes from the sender; the
run is unaffected and can be resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from datetime import datetime
from typing import Any

from ...nodes.errors import ScopedRetrievalError
from ..runs import Run, StagedRun
from .telemetry import audits

__all__ = ["Emit", "observed"]

Emit = Callable[[Mapping[str, Any]], None]
"""Receives one OpenLineage event as plain values."""


@contextmanager
def observed(
    staged: StagedRun,
    telemetry: Any,
    emit: Emit | None,
    clock: Callable[[], datetime],
    audited: Callable[[], Collection[str]],
) -> Iterator[Callable[[Run], None]]:
    """Report that a run starts, and that it failed if the body raises. Yields a function that takes the finished run.

    Row counts of its tables are included only if the principal audits everything that the run could reach.
    """
    with telemetry.run() if telemetry is not None else nullcontext(lambda *_: None) as ended:
        if emit is None:
            yield lambda run: ended(run.run_id, run.manifest["statuses"], run.node_seconds)
            return
        from ..views.openlineage import complete_event, fail_event, start_event

        settings = staged.plan["settings"]
        emit(start_event(staged.run_id, settings, clock().isoformat()))
        finished: list[Run] = []
        try:
            yield finished.append
        except BaseException as error:
            emit(fail_event(staged.run_id, settings, _message(error), clock().isoformat()))
            raise
        (run,) = finished
        ended(run.run_id, run.manifest["statuses"], run.node_seconds)
        reached = {name: run.stored(name) for name in ("contracts", "contract_bounds")}
        rows = run.rows if audits(reached, audited()) else None
        emit(complete_event(run.run_id, run.manifest, run.lineage, rows, at=clock().isoformat()))


def _message(error: BaseException) -> str:
    """The public text of an error: the message of this package's own errors, otherwise the type."""
    return error.message if isinstance(error, ScopedRetrievalError) else type(error).__name__
