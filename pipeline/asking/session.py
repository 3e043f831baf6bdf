"""An interactive session: requests answered as they come, each with a durable snapshot before its block leaves.

Requests of one pass go through the line together and are separated again: every table has its rows by request, and no
answer depends on the other requests of the pass (one answer everywhere).

Note: snapshot ids are assigned before the line runs. The snapshots of a pass are stored together, all or none, and only
then is any of its answers returned.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import count
from typing import Any, NamedTuple

import pyarrow as pa

from ...nodes.errors import ErasedError, InputError, VerificationError, public_text
from ...nodes.tables import CAPTURES, FAILURES
from ..config.grants import GrantsFile, load_grants
from ..config.policies.roles import max_age_days
from ..engines.shards import by_request, with_counters
from ..line.driver import Line, run_line
from ..line.planned_driver import Timing, seconds_by_node, timings
from ..line.provenance import with_part
from ..requests.resolve import RequestResolver
from ..runs import LineTimings, LiveRun, Runs, RunTakenError, packed
from ..runs.ids import new_run_id, snapshot_id
from ..storage.chain import LineInDoubtError
from ..storage.places import Place
from ..views.lineage import current_lineage
from .retrieval import WRITING, Retrieval, retrieval_of, without_snapshot


class PendingRequest(NamedTuple):
    """A request as its caller wrote it, and its arrival time by `time.perf_counter`."""

    row: Mapping[str, Any]
    at: float


@dataclass
class Session:
    """Answers groups of requests under the grants of a file, which are read again when it changes.

    Whether evidence was erased since the corpus was opened is asked before an answer is computed, and again before its
    snapshot is written: a later erasure finds the snapshot, or refuses its line.
    """

    source: GrantsFile | Place
    """The grants, or the file that they are read from."""
    line: Line
    resolver: RequestResolver
    runs: Runs | None
    """Where snapshots are written; None if no folder of runs was named."""
    settings: Mapping[str, Any]
    """What a run records of its settings: enough to resume the run, or to check it."""
    clock: Callable[[], datetime]
    live: LiveRun | None = None
    used: set[str] = field(default_factory=set)
    """Ids of the requests that have a snapshot, or may have one."""
    repeats: Iterator[int] = field(default_factory=lambda: count(2))
    """The suffixes of repeated requests."""

    def answers(self, group: Sequence[PendingRequest]) -> list[Retrieval | Exception]:
        """An answer or an error per request, in order, once all their snapshots are durable, under the current grants. If
        the grants changed, another run is begun.
        """
        self.renew()
        try:
            return self._answers(group)
        except RunTakenError:  # nothing was written, and the run takes no more: this pass goes into another
            self.live = None
            return self._answers(group)

    def renew(self) -> None:
        """Switch to the current grants, in the line and in the resolver.

        Raises:
            PolicyError: the grants file is missing or invalid.
        """
        if (grants := load_grants(self.source)).digest != self.resolver.grants.digest:
            self.resolver = replace(self.resolver, grants=grants)
            provenance = with_part(self.line.provenance, "grants", grants.digest)
            self.line = replace(self.line, grants=grants.table, provenance=provenance)
            self.live = None

    def _answers(self, group: Sequence[PendingRequest]) -> list[Retrieval | Exception]:
        self.resolver.corpus.expect_unerased()
        now = self.clock()
        if self.runs is not None and self.live is None:
            self.live = LiveRun(
                self.runs, now=now, inputs=self.line.inputs, lineage=current_lineage(), settings=self.settings
            )
        resolved = self._resolved(group, now)
        valid = [one for one in resolved if not isinstance(one, InputError)]
        if not valid:
            return [one for one in resolved if isinstance(one, Exception)]
        names = (
            self.live.take(len(valid))
            if self.live
            else [snapshot_id(new_run_id(now), place) for place in range(1, len(valid) + 1)]
        )
        requests = self.resolver.table(valid)
        captures = [(request["request_id"], name, now) for request, name in zip(valid, names, strict=True)]
        captures = CAPTURES.from_rows([dict(zip(CAPTURES.columns, one, strict=True)) for one in sorted(captures)])
        self.line = with_counters(self.line, requests)
        with timings() as timed:
            tables = run_line(requests, FAILURES.empty(), captures, self.line)
        told = {name: table for name, table in tables.items() if name != "texts"}  # those are of all requests
        of_request = by_request(told) if len(valid) > 1 else lambda _: told
        seconds = round((timed[-1].ended - timed[0].began) / 1e9, 6)
        found = list[Retrieval | Exception]()
        for asked, request in zip(group, resolved, strict=True):
            if isinstance(request, InputError):
                found.append(request)
                continue
            answer = replace(
                retrieval_of(of_request(request["request_id"])),
                latency_ms=round(1_000 * (time.perf_counter() - asked.at), 3),
                max_age_days=max_age_days(self.line.policies["role_policies"], request.get("role")),
                timings=tuple(timed),
                together=len(valid),
            )
            found.append(answer)
        began = time.perf_counter_ns()
        lost, changed = self._write(tables, LineTimings(seconds, len(valid), seconds_by_node(timed)), valid)
        wrote = Timing(WRITING, began, time.perf_counter_ns())
        for place, (request, answer) in enumerate(zip(resolved, found, strict=True)):
            if isinstance(request, InputError) or isinstance(answer, Exception):
                continue
            if lost is None:
                found[place] = replace(answer, timings=(*answer.timings, wrote))
            elif changed or request["require_snapshot"] or self.runs is not None:
                required = changed or request["require_snapshot"]
                found[place] = without_snapshot(answer, required=required, reason=lost)
        return found

    def close(self) -> LiveRun | None:
        """End the session; returns its run if it began one."""
        live, self.live = self.live, None
        self.used.clear()
        return live

    def _resolved(self, group: Sequence[PendingRequest], now: datetime) -> list[dict[str, Any] | InputError]:
        """The columns of REQUESTS under an id that this session has not used, or an error, per request."""
        taken = set[str]()
        found: list[dict[str, Any] | InputError] = []
        defaults = {**self.resolver.project, "purpose": "answer-question", "require_snapshot": self.runs is not None}
        common = self.resolver.common(defaults)
        for asked in group:
            try:
                request, named = self.resolver.one(asked.row, common, now)
                request["request_id"] = self._unused(request["request_id"], taken, named=named)
                taken.add(request["request_id"])
                found.append(request)
            except InputError as error:
                found.append(error)
        return found

    def _unused(self, wanted: str, taken: set[str], *, named: bool) -> str:
        """A repeated request gets a snapshot and an id of its own, neither used nor `taken` by the group.

        The cost must not grow with the session: repeated requests are numbered through.
        """
        free = wanted
        while free in self.used or free in taken:
            if named:
                raise InputError(f"Expected a request_id of its own, got one that was asked before - at {wanted}")
            free = f"{wanted}-{next(self.repeats)}"
        return free

    def _write(
        self, tables: Mapping[str, pa.Table], took: LineTimings, requests: Sequence[Mapping[str, Any]]
    ) -> tuple[str | None, bool]:
        """Make the snapshots of a pass durable; if they are not, why, and whether the log was changed. The requests count as
        asked unless it is certain that nothing was written.

        Raises:
            RunTakenError: nothing was written, and the run takes no more.
            ErasedError: evidence was erased since the corpus was opened.
        """
        expect_unerased = self.resolver.corpus.expect_unerased
        if self.live is None:
            expect_unerased()
            return "no folder of runs was named", False
        ids = {request["request_id"] for request in requests}
        self.used |= ids
        try:
            self.live.write(packed(tables, self.line.vectors.used(tables), took), expect_unerased)
        except BaseException as error:
            if not isinstance(error, LineInDoubtError):
                self.used -= ids
            if not isinstance(error, Exception):  # the run may have them: who asks again asks in another
                self.live = None
            if isinstance(error, (RunTakenError, ErasedError)) or not isinstance(error, (VerificationError, OSError)):
                raise
            expect_unerased()  # not checked yet if writing failed earlier
            return public_text(error), isinstance(error, VerificationError)
        return None, False
