"""Verify: checks that a run is unchanged since it was written.

The log is checked as a chain that names each run and snapshot once, then every file against the line that names it,
then the files against each other: texts against their hashes, snapshot digests recomputed from
the tables, one outcome per candidate. The first difference is reported first. A text that was erased
with a receipt is erased, not changed; a run that LOG names and that is gone is missing; what nothing names is extra,
unless it is temporary, or has the content that its own name says: then a writer left it that was interrupted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from ...nodes.errors import ScopedRetrievalError, StoreError, VerificationError
from ..deadline import expect_time
from ..storage.durable import TEMPORARY, file_sha256
from ..storage.places import Place
from .erasing import erased_from
from .files import files_below, sha256_of
from .ids import run_named
from .live import live_file
from .log import Line, digests_named, is_unfinished, of_kind
from .parts import PER_RUN, Kind, RunProblem, problems_in
from .run import Run
from .store import STAGE, Runs
from .writing import is_named_for

_SHARED = ("inputs_sha256", "lineage_sha256")


@dataclass(frozen=True)
class VerifyReport:
    """The result of `verify`; `problems` has the first difference first, and `head` is the log's last hash."""

    run_id: str
    problems: tuple[RunProblem, ...]
    parts: int
    snapshots: int
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


@dataclass
class _Found:
    problems: list[RunProblem] = field(default_factory=list)
    parts: int = 0

    def add(self, kind: Kind, part: str, detail: str) -> None:
        self.problems.append(RunProblem(kind, part, detail))


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
    found, snapshots, lines = _Found(), 0, list[Line]()
    try:
        lines = store.log.lines()
    except VerificationError as error:
        found.add("changed", "LOG", error.message)
    head = lines[-1].hash if lines else ""
    if anchor is not None and anchor not in {line.hash for line in lines}:
        found.add("changed", "LOG", "no line has the hash of the anchor")
    erased, state, own = dict[str, set[str]](), "", [] if found.problems else store.log.of(run_id)
    if not own and not found.problems:
        raise StoreError(f"Expected a run in this folder, got none - at {run_id}")
    if is_unfinished(own):
        problem = RunProblem("missing", run_id, "a batch that was not finished")
        return VerifyReport(run_id, (problem,), 0, 0, head=head, state="unfinished")
    try:
        if not found.problems:
            erased = erased_from(own)
            run, state = _opened(store, run_id, own, found)
            if run is not None:
                _check_files(run, found)
            if run is not None and not found.problems:
                snapshots = _check_contents(run, erased, found)
    except ScopedRetrievalError as error:
        found.add("changed", run_id, error.message)
    except OSError as error:
        found.add("changed", run_id, _unread(error))
    except (KeyError, TypeError, ValueError, AttributeError, pa.ArrowException) as error:
        found.add("changed", run_id, f"its content is malformed ({type(error).__name__})")
    problems = tuple(found.problems)
    return VerifyReport(
        run_id, problems, found.parts, snapshots, tuple(sorted(set[str]().union(*erased.values()))), head, state
    )


def _opened(store: Runs, run_id: str, lines: list[Line], found: _Found) -> tuple[Run | None, str]:
    """The run, or a problem and a state, if it is not a change."""
    try:
        run = Run(store, run_id, lines)
    except VerificationError:
        raise
    except StoreError as error:
        found.add("changed", "LOG", error.message)
        return None, "unreadable"
    if run.shards and not run.folder.is_dir():
        found.add("missing", run_id, "LOG names it")
        return None, ""
    return run, ""


def _check_files(run: Run, found: _Found) -> None:
    """Check every file of a run against its line in LOG."""
    for sha256 in run.files:
        path = live_file(run.store.path, sha256)
        _expect(path, f"{path.parent.name}/{path.name}", sha256, found)
    parts = {path: sha256 for shard in run.shards.values() for path, sha256 in shard.items()}
    for path, sha256 in parts.items():
        _expect(run.folder / path, path, sha256, found)
    for name in dict.fromkeys(line.body[name] for line in run.lines for name in _SHARED if name in line.body):
        _expect(run.store.shared(name), f"shared/{name}", name, found)
    for path in files_below(run.folder):
        if path in run.replaced:
            found.add("changed", path, "texts that a receipt lists as erased still exist: run the erasure again")
        elif path not in parts and not _is_leftover(run, path):
            found.add("extra", path, "LOG does not name it")
    if not found.problems:
        ids, digests = (run.snapshots[name].to_pylist() for name in ("snapshot_id", "snapshot_digest"))
        held = dict(zip(ids, digests, strict=True))
        named = [pair for line in of_kind(run.lines, "live", "shard") for pair in digests_named(line.body).items()]
        for name in dict.fromkeys(name for name, digest in named if held.get(name) != digest):
            found.add("changed", f"snapshots/{name}", "its digest is not the one in LOG")


def _is_leftover(run: Run, path: str) -> bool:
    """Whether a writer that was interrupted left a file, rather than someone who adds one."""
    if path.startswith(f"{STAGE}/") or Path(path).name.startswith(TEMPORARY):
        return True
    return is_named_for(path, file_sha256(run.folder / path))


def _expect(file: Place, part: str, sha256: str, found: _Found) -> None:
    if _check_file(file, part, found) not in (sha256, None):
        found.add("changed", part, "its SHA-256 is not the one in LOG")


def _check_file(file: Place, part: str, found: _Found) -> str | None:
    """The SHA-256 of a file; None if it is missing or cannot be read, which is reported."""
    found.parts += 1
    try:
        return sha256_of(file)
    except FileNotFoundError:
        found.add("missing", part, "LOG names it")
    except ScopedRetrievalError:
        raise
    except OSError as error:
        found.add("changed", part, _unread(error))
    return None


def _unread(error: OSError) -> str:
    return f"it cannot be read ({error.strerror or type(error).__name__})"


def _check_contents(run: Run, erased: Mapping[str, set[str]], found: _Found) -> int:
    """Check each piece by itself; returns the number of snapshots checked."""
    per_run, snapshots = run.tables(dict.fromkeys(PER_RUN)), 0
    for shard, tables in run.in_pieces():
        texts = tables.pop("texts")
        found.problems += problems_in({**per_run, **tables}, texts, run.provenance, erased.get(shard, ()))
        snapshots += tables["snapshots"].num_rows
    return snapshots
