"""Verify: checks that a run is unchanged since it was written.

The log is checked as a chain that names each run and snapshot once, then every file against the line that names it,
then the files against each other: texts against their hashes, snapshot digests recomputed from
the tables, one outcome per candidate. The first difference is reported first. A text that was erased
with a receipt is erased, not changed; a run that LOG names and that is gone is missing; what nothing names is extra,
unless it is temporary, or has the content that its own name says: then a writer left it that was interrupted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from ...nodes.errors import ScopedRetrievalError, StoreError, VerificationError
from ..deadline import expect_time
from ..storage.durable import TEMPORARY, file_sha256
from ..storage.places import Place
from .erasing import erased_from
from .files import files_below, sha256_of
from .ids import run_named
from .live import LIVE, SUFFIX, live_file
from .log import LOG, digests_named, is_unfinished, of_kind
from .parts import PER_RUN, RunProblem, expect_format, problems_in
from .run import Run
from .store import STAGE, Runs
from .writing import is_named_for

_SHARED = ("inputs_sha256", "lineage_sha256")


@dataclass(frozen=True)
class VerifyReport:
    """The result of `verify`; `problems` has the first difference first, and `head` is the log's last hash."""

    run_id: str
    problems: tuple[RunProblem, ...]
    parts: int = 0
    snapshots: int = 0
    erased: tuple[str, ...] = ()
    head: str = ""
    state: str = ""
    """Of a run that cannot be verified: `unfinished`, or `unreadable`, as another version wrote it."""

    @property
    def status(self) -> str:
        """The `state` of a run that cannot be verified; else `missing` if the whole run is, `changed` if anything
        differs, `erased` if texts were erased with a receipt, else `ok`."""
        if self.state:
            return self.state
        if self.problems:
            return "missing" if any(p.kind == "missing" and p.part == self.run_id for p in self.problems) else "changed"
        return "erased" if self.erased else "ok"

    @property
    def ok(self) -> bool:
        return not self.problems


def verify(store: Runs, run_id: str, *, anchor: str | None = None) -> VerifyReport:
    """Check one run (or the run of a snapshot id) against the log and itself.

    `anchor` is a hash of the log's head that was kept elsewhere: the log must still contain it. A difference is
    reported only if a second look confirms it: the run may have been compacted or erased from in the meantime.

    Raises:
        StoreError: there is no such run, and LOG does not name it.
    """
    expect_time()
    run_id = run_named(run_id)
    report = _verified(store, run_id, anchor)
    return report if report.ok or report.state else _verified(store, run_id, anchor)


def _verified(store: Runs, run_id: str, anchor: str | None) -> VerifyReport:
    try:
        lines, own = store.log.lines(), store.log.by_run().get(run_id, [])
    except VerificationError as error:
        return VerifyReport(run_id, (RunProblem("changed", LOG, error.message),))
    head = lines[-1].hash if lines else ""
    if anchor is not None and anchor not in {line.hash for line in lines}:
        return VerifyReport(run_id, (RunProblem("changed", LOG, "no line has the hash of the anchor"),), head=head)
    if not own:
        raise StoreError(f"Expected a run in this folder, got none - at {run_id}")
    if is_unfinished(own):
        problem = RunProblem("missing", run_id, "a batch that was not finished")
        return VerifyReport(run_id, (problem,), head=head, state="unfinished")
    erased, problems = erased_from(own), list[RunProblem]()
    report = VerifyReport(run_id, (), head=head, erased=tuple(sorted(set[str]().union(*erased.values()))))
    try:
        expect_format(own[0].body, LOG)
    except StoreError as error:
        return replace(report, problems=(RunProblem("changed", LOG, error.message),), state="unreadable")
    try:
        run = Run(store, run_id, own)
        report = replace(report, parts=len(_named(run)), snapshots=len(run.pieces))
        problems += _of_files(run)
        problems += () if problems else _of_contents(run, erased)
    except ScopedRetrievalError as error:
        problems.append(RunProblem("changed", run_id, error.message))
    except OSError as error:
        problems.append(RunProblem("changed", run_id, _unread(error)))
    except (KeyError, TypeError, ValueError, AttributeError, pa.ArrowException) as error:
        problems.append(RunProblem("changed", run_id, f"its content is malformed ({type(error).__name__})"))
    return replace(report, problems=tuple(problems))


def _named(run: Run) -> dict[str, tuple[Place, str]]:
    """Each file that the lines of a run name, with its SHA-256, by its name in reports."""
    found = {f"{LIVE}/{sha256}{SUFFIX}": (live_file(run.store.path, sha256), sha256) for sha256 in run.files}
    found |= {path: (run.folder / path, sha256) for parts in run.shards.values() for path, sha256 in parts.items()}
    shared = {line.body[name] for line in run.lines for name in _SHARED if name in line.body}
    return found | {f"shared/{sha256}": (run.store.shared(sha256), sha256) for sha256 in sorted(shared)}


def _of_files(run: Run) -> Iterator[RunProblem]:
    """Every file of a run against its line in LOG."""
    if run.shards and not run.folder.is_dir():
        yield RunProblem("missing", run.run_id, "LOG names it")
        return
    named = _named(run)
    for part, (file, sha256) in named.items():
        try:
            if sha256_of(file) != sha256:
                yield RunProblem("changed", part, "its SHA-256 is not the one in LOG")
        except FileNotFoundError:
            yield RunProblem("missing", part, "LOG names it")
        except ScopedRetrievalError:
            raise
        except OSError as error:
            yield RunProblem("changed", part, _unread(error))
    for path in files_below(run.folder):
        if path in run.replaced:
            detail = "texts that a receipt lists as erased still exist: run the erasure again"
            yield RunProblem("changed", path, detail)
        elif path not in named and not _is_leftover(run, path):
            yield RunProblem("extra", path, "LOG does not name it")


def _is_leftover(run: Run, path: str) -> bool:
    """Whether a writer that was interrupted left a file, rather than someone who adds one."""
    if path.startswith(f"{STAGE}/") or Path(path).name.startswith(TEMPORARY):
        return True
    return is_named_for(path, file_sha256(run.folder / path))


def _unread(error: OSError) -> str:
    return f"it cannot be read ({error.strerror or type(error).__name__})"


def _of_contents(run: Run, erased: Mapping[str, set[str]]) -> Iterator[RunProblem]:
    """The digests in LOG, and each piece by itself."""
    ids, digests = (run.snapshots[name].to_pylist() for name in ("snapshot_id", "snapshot_digest"))
    held = dict(zip(ids, digests, strict=True))
    named = [pair for line in of_kind(run.lines, "live", "shard") for pair in digests_named(line.body).items()]
    for name in dict.fromkeys(name for name, digest in named if held.get(name) != digest):
        yield RunProblem("changed", f"snapshots/{name}", "its digest is not the one in LOG")
    per_run = run.tables(dict.fromkeys(PER_RUN))
    for shard, tables in run.in_pieces():
        texts = tables.pop("texts")
        yield from problems_in({**per_run, **tables}, texts, run.provenance, erased.get(shard, ()))
