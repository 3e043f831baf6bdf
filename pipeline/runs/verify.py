"""Verify: checks that a run is unchanged since it was written.

The log is checked as a chain that names each run and snapshot once, then every file against the line that names it,
then the files against each other: texts against their hashes, snapshot digests recomputed from
the tables, one outcome per candidate. The first difference is reported first. A text that was erased
with a receipt is erased, not changed; a run that LOG names and that is gone is missing; what nothing names is extra,
unless it is temporary.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.audit.records import snapshot_digests
from ...nodes.columns.keys import flat
from ...nodes.errors import ScopedRetrievalError, StoreError, VerificationError
from ..deadline import expect_time
from ..storage.durable import TEMPORARY, exists
from ..storage.places import Place
from .erasing import Erased
from .files import files_below, sha256_of
from .ids import run_named
from .live import live_file
from .log import Line, of_kind, snapshots_named
from .parts import PER_RUN, changed_texts, check_conservation, references
from .run import Run
from .store import Runs
from .writing import STAGE, part_path

__all__ = ["RunProblem", "VerifyReport", "verify"]

Kind = Literal["changed", "missing", "extra"]


@dataclass(frozen=True, slots=True)
class RunProblem:
    """One difference: its kind, the part, and the expectation."""

    kind: Kind
    part: str
    detail: str


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
    reported only if a second look confirms it while no process writes: an erasure rewrites parts after its line.

    Raises:
        StoreError: there is no such run, and LOG does not name it.
    """
    expect_time()
    run_id = run_named(run_id)
    report = _verified(store, run_id, anchor)
    if report.ok or report.state:
        return report
    with suppress(OSError), store.log.writing():
        return _verified(store, run_id, anchor)
    return _verified(store, run_id, anchor)  # LOG cannot be locked here


def _verified(store: Runs, run_id: str, anchor: str | None) -> VerifyReport:
    found, erased, snapshots, lines = _Found(), Erased(), 0, list[Line]()
    try:
        lines = store.log.lines()
    except VerificationError as error:
        found.add("changed", "LOG", error.message)
    head = lines[-1].hash if lines else ""
    if anchor is not None and anchor not in {line.hash for line in lines}:
        found.add("changed", "LOG", "no line has the hash of the anchor")
    own = [line for line in lines if line.body.get("run_id") == run_id]
    if not own and not found.problems:
        if exists(store.folder(run_id) / STAGE / "run.json"):
            problem = RunProblem("missing", run_id, "a batch that was not finished")
            return VerifyReport(run_id, (problem,), 0, 0, head=head, state="unfinished")
        raise StoreError(f"Expected a finished run, got none - at {run_id}")
    state = ""
    try:
        if not found.problems:
            run, state = _opened(store, run_id, own, found)
            if run is not None:
                erased = Erased.of(own)
                _check_live(run, found) if run.live else _check_files(run, erased, found)
            if run is not None and not found.problems:
                snapshots = _check_contents(run, erased, found)
    except ScopedRetrievalError as error:
        found.add("changed", run_id, error.message)
    except OSError as error:
        found.add("changed", run_id, _unread(error))
    except (KeyError, TypeError, ValueError, AttributeError, pa.ArrowException) as error:
        found.add("changed", run_id, f"its content is malformed ({type(error).__name__})")
    problems = tuple(found.problems)
    return VerifyReport(run_id, problems, found.parts, snapshots, tuple(sorted(erased.texts)), head, state)


def _opened(store: Runs, run_id: str, lines: list[Line], found: _Found) -> tuple[Run | None, str]:
    """The run, or a problem and a state, if it is not a change."""
    snapshots_named(lines)
    try:
        run = Run(store, run_id, lines)
    except VerificationError:
        raise
    except StoreError as error:
        found.add("changed", "LOG", error.message)
        return None, "unreadable"
    if not run.live and not run.folder.is_dir():
        found.add("missing", run_id, "LOG names it")
        return None, ""
    return run, ""


def _check_files(run: Run, erased: Erased, found: _Found) -> None:
    """Check every file of a run against its line in LOG."""
    expected = {part_path(name, shard): sha256 for shard, parts in run.parts.items() for name, sha256 in parts.items()}
    texts = {part_path("texts", shard) for shard in run.parts}
    if other := sorted({*erased.parts} - texts):
        found.add("changed", "LOG", f"a receipt names {other[0]}, which is no part of texts")
    before = {path: expected[path] for path in erased.parts if path in expected}
    for path, sha256 in (expected | erased.parts).items():
        got = _check_file(run.folder / path, path, found)
        if got == before.get(path) and got is not None and got != sha256:
            found.add("changed", path, "texts that a receipt lists as erased still exist: run the erasure again")
        elif got not in (sha256, None):
            found.add("changed", path, "its SHA-256 is not the recorded one")
    _check_shared(run, [run.lineage_sha256], found)
    for path in files_below(run.folder):
        if path not in expected and not path.startswith(f"{STAGE}/") and not Path(path).name.startswith(TEMPORARY):
            found.add("extra", path, "LOG does not name it")
    ids, digests = (run.snapshots[name].to_pylist() for name in ("snapshot_id", "snapshot_digest"))
    held = dict(zip(ids, digests, strict=True))
    for name, one in run.kept.items():
        if held.get(name) != one["snapshot_digest"]:
            found.add("changed", f"snapshots/{name}", "its digest is not the one in LOG")


def _check_live(run: Run, found: _Found) -> None:
    """Check every interactive file against its line in LOG."""
    for name, one in run.kept.items():
        path = live_file(run.store.path, name)
        part = f"{path.parent.name}/{path.name}"
        if _check_file(path, part, found) not in (one["sha256"], None):
            found.add("changed", part, "its SHA-256 is not the one in LOG")
    bodies = [line.body for line in of_kind(run.lines, "live")]
    _check_shared(run, [body[name] for body in bodies for name in ("inputs_sha256", "lineage_sha256")], found)


def _check_shared(run: Run, names: list[str], found: _Found) -> None:
    for sha256 in dict.fromkeys(names):
        if _check_file(run.store.shared(sha256), f"shared/{sha256}", found) not in (sha256, None):
            found.add("changed", f"shared/{sha256}", "its SHA-256 is not its name")


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


def _check_contents(run: Run, erased: Erased, found: _Found) -> int:
    """Check each shard by itself; returns the number of snapshots checked."""
    per_run = run.tables(dict.fromkeys(PER_RUN))
    return sum(_check_shard(run, {**per_run, **tables}, erased, found) for tables in run.shards())


def _check_shard(run: Run, tables: dict[str, pa.Table], erased: Erased, found: _Found) -> int:
    """Check texts, snapshot digests and conservation; returns the number of snapshots."""
    texts = tables.pop("texts")
    for sha256 in changed_texts(texts).to_pylist():
        found.add("changed", f"texts/{sha256}", "the text is not the one that was hashed")
    wanted, present = references(tables), flat(texts["sha256"])
    for sha256 in _without(wanted, present):
        if sha256 not in erased.texts:
            found.add("missing", f"texts/{sha256}", "a table refers to it, and no receipt says that it was erased")
    for sha256 in _without(present, wanted):
        found.add("extra", f"texts/{sha256}", "no table refers to it")
    for sha256 in {*present.to_pylist()} & erased.texts:
        found.add("extra", f"texts/{sha256}", "a receipt says that it was erased")
    snapshots = tables["snapshots"].combine_chunks()
    digests = pa.array(snapshot_digests(tables, run.provenance, flat(snapshots["request_id"])), pa.string())
    differs = pc.not_equal(digests, flat(snapshots["snapshot_digest"]))
    for snapshot in flat(snapshots["snapshot_id"]).filter(differs).to_pylist():
        found.add("changed", f"snapshots/{snapshot}", "its digest does not follow from the stored tables")
    try:
        check_conservation(tables, run.run_id)
    except VerificationError as error:
        found.add("changed", "decisions", error.message)
    return snapshots.num_rows


def _without(values: pa.Array, known: pa.Array) -> list[str]:
    return values.filter(pc.invert(pc.is_in(values, value_set=known))).to_pylist()
