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

from ...nodes.errors import ErasedError, InputError, ScopedRetrievalError, VerificationError
from ...nodes.tables import CAPTURES, FAILURES
from ..config.grants import GrantsFile, load_grants
from ..config.policies.roles import max_age_days
from ..engines.shards import by_request, with_counters
from ..line.driver import Line, run_line
from ..line.planned_driver import Timing, seconds_by_node, timings
from ..line.provenance import with_part
from ..requests.resolve import RequestResolver
from ..runs import LineTimings, LiveRun, PackedSnapshot, Runs, RunTakenError, packed
from ..runs.ids import new_run_id, snapshot_id
from ..runs.log import LineInDoubtError
from ..storage.places import Place
from ..views.lineage import current_lineage
from .retrieval import WRITING, Retrieval, retrieval_of, without_snapshot

__all__ = ["PendingRequest", "Session"]


class PendingRequest(NamedTuple):
    """A request as its caller wrote it, and its arrival time by `time.perf_counter`."""

    row: Mapping[str, Any]
    at: float


class _Answered(NamedTuple):
    """An answer that has no durable snapshot yet."""

    found: Retrieval
    required: bool
    """Whether it may not leave without its snapshot."""
    snapshot: PackedSnapshot | None


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

    def answers(self, group: Sequence[PendingRequest]) -> Iterator[Retrieval | Exception]:
        """An answer or an error per request, in order, each once its snapshot is durable, under the current grants. If
        the grants changed, another run is begun.
        """
        self.renew()
        yield from self._answers(group)

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

    def _answers(self, group: Sequence[PendingRequest]) -> Iterator[Retrieval | Exception]:
        self.resolver.corpus.expect_unerased()
        now = self.clock()
        if self.runs is not None and self.live is None:
            self.live = LiveRun(
                self.runs, now=now, inputs=self.line.inputs, lineage=current_lineage(), settings=self.settings
            )
        resolved = self._resolved(group, now)
        valid = [one for one in resolved if not isinstance(one, InputError)]
        if not valid:
            yield from (one for one in resolved if isinstance(one, Exception))
            return
        names = (
            self.live.take(len(valid))
            if self.live
            else [snapshot_id(new_run_id(now), place) for place in range(1, len(valid) + 1)]
        )
        requests = self.resolver.table(valid)
        ids = [request["request_id"] for request in valid]
        captures = [(request_id, name, now) for request_id, name in zip(ids, names, strict=True)]
        captures = CAPTURES.from_rows([dict(zip(CAPTURES.columns, one, strict=True)) for one in sorted(captures)])
        self.line = with_counters(self.line, requests)
        with timings() as timed:
            tables = run_line(requests, FAILURES.empty(), captures, self.line)
        of_request = by_request(tables) if len(valid) > 1 else lambda _: tables
        seconds = timed[-1].ended - timed[0].began
        took = LineTimings(round(seconds / 1e9, 6), len(valid), seconds_by_node(timed))
        asked = [one for one, found in zip(group, resolved, strict=True) if not isinstance(found, Exception)]
        answered: list[_Answered | Exception] = []
        for request_id, one in zip(ids, asked, strict=True):
            try:
                answered.append(self._answered(of_request(request_id), one, tuple(timed), took))
            except Exception as error:  # any error is the answer to this request alone
                answered.append(error)
        try:
            kept = iter(self._kept([one for one in answered if isinstance(one, _Answered)]))
        except RunTakenError:  # another process closed the run: this pass goes into another
            self.live = None
            found = iter([answer for one in asked for answer in self._again(one)])
        else:
            found = iter([next(kept) if isinstance(one, _Answered) else one for one in answered])
        yield from (one if isinstance(one, Exception) else next(found) for one in resolved)

    def _again(self, asked: PendingRequest) -> Iterator[Retrieval | Exception]:
        """The answer under the next id, or the error; earlier requests have snapshots, so none is answered twice."""
        try:
            yield from self._answers([asked])
        except Exception as error:  # any error is the answer to this request alone
            yield error

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

    def _answered(
        self, tables: dict[str, pa.Table], asked: PendingRequest, timings: tuple[Timing, ...], took: LineTimings
    ) -> _Answered:
        """An answer with its snapshot, if there is a run to write it to."""
        request = tables["requests"].select(["role", "require_snapshot"]).to_pylist()[0]
        snapshot, required = None, request["require_snapshot"]
        found = replace(
            retrieval_of(tables),
            latency_ms=round(1_000 * (time.perf_counter() - asked.at), 3),
            max_age_days=max_age_days(self.line.policies["role_policies"], request["role"]),
            timings=timings,
            together=took.requests,
        )
        if self.live is not None:
            snapshot = packed(tables, self.line.vectors.used(tables), took)
        return _Answered(found, required, snapshot)

    def _kept(self, answered: Sequence[_Answered]) -> list[Retrieval | Exception]:
        """The answers, once their snapshots are durable; if they could not be written, the answers report that.

        Raises:
            RunTakenError: nothing was written, and the run takes no more.
        """
        live = self.live
        expect_unerased = self.resolver.corpus.expect_unerased
        if live is None:
            expect_unerased()
            reason = "no folder of runs was named"
            return [
                without_snapshot(one.found, required=True, reason=reason) if one.required else one.found
                for one in answered
            ]
        began = time.perf_counter_ns()
        try:
            self._write(live, answered)
        except RunTakenError:
            raise
        except ErasedError as error:
            return [error for _ in answered]
        except (VerificationError, OSError) as error:
            expect_unerased()  # not checked yet if writing failed earlier
            reason, changed = _message_of(error), isinstance(error, VerificationError)  # the log was changed
            return [without_snapshot(one.found, required=one.required or changed, reason=reason) for one in answered]
        wrote = Timing(WRITING, began, time.perf_counter_ns())
        return [
            replace(one.found, timings=(*one.found.timings, wrote)) if one.found.timings else one.found
            for one in answered
        ]

    def _write(self, live: LiveRun, answered: Sequence[_Answered]) -> None:
        """Make snapshots durable. The requests count as asked unless it is certain that nothing was written."""
        ids = {one.found.request_id for one in answered}
        self.used |= ids
        try:
            live.write(
                [one.snapshot for one in answered if one.snapshot is not None], self.resolver.corpus.expect_unerased
            )
        except LineInDoubtError:
            raise
        except BaseException as error:
            self.used -= ids
            if not isinstance(error, Exception):  # the run may have them: who asks again asks in another
                self.live = None
            raise


def _message_of(error: Exception) -> str:
    """The public text of an error of the disk or of the record."""
    if isinstance(error, ScopedRetrievalError):
        return error.message
    return (error.strerror if isinstance(error, OSError) else None) or "an error of the disk"
