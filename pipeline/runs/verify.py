"""Verify: checks that a run is unchanged since it was written.

The log is checked as a chain that names each manifest and file once, then the manifest against the log, then every file
against the manifest, then the files against each other: logical digests, texts against their hashes, snapshot digests
recomputed from the tables, one decision per candidate. The first difference is reported first. A text that was erased
with a receipt is erased, not changed; a run that LOG names and that is gone is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.audit.snapshot_digest import snapshot_digests
from ...nodes.columns.keys import flat
from ...nodes.errors import ScopedRetrievalError, StoreError, VerificationError
from ..deadline import expect_time
from ..progress import counted
from ..storage.durable import TEMPORARY, exists
from ..storage.places import Place
from .answer_log import check_answers
from .erasure_receipts import Erased, erased_from
from .files import files_below, locked, sha256_of
from .formats import UPGRADED
from .ids import run_named, snapshot_id
from .live_files import live_files, number_of, unlogged
from .log import files_named, manifest_named
from .log_lines import LogEntry
from .parts import changed_texts, check_conservation, logical_digest, references
from .run import INTERACTIVE, Run
from .states import CRASHED, LOOKS_AGAIN_WITHIN, UNFINISHED, UNKNOWN_VERSION, UNREADABLE, state_of
from .store import RunStore

Kind = Literal["changed", "missing", "extra", "left"]
"""The kind of a problem; `left` is left by a crash and no sign of tampering."""


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
    """A state of `states` that is not a change: unfinished, crashed, unreadable, unknown version."""

    @property
    def status(self) -> str:
        """The `state` of a run that cannot be verified or that a crash interrupted; else `missing` if the whole run is,
        `changed` if anything differs, `erased` if texts were erased with a receipt, else `ok`."""
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

    @property
    def sound(self) -> bool:
        """Whether all problems were left by a crash."""
        return all(problem.kind == "left" for problem in self.problems)

    def add(self, kind: Kind, part: str, detail: str) -> None:
        self.problems.append(RunProblem(kind, part, detail))


def verify(
    store: RunStore, run_id: str, *, anchor: str | None = None, log: list[LogEntry] | None = None
) -> VerifyReport:
    """Check one run (or the run of a snapshot id) against the log and itself.

    `anchor` is a hash of the log's head that was kept elsewhere: the log must still contain it. `log` is every line of
    LOG, if the caller has already read it. A difference is reported only if a second look confirms it, under the lock
    of the run if possible: a live session briefly has a file without a line.

    Raises:
        StoreError: there is no such run, and LOG does not name it.
    """
    expect_time()
    run_id = run_named(run_id)
    if unverifiable := _state(store, run_id):
        return unverifiable
    report = _verified(store, run_id, anchor, log)
    if not report.ok and report.status != "missing":
        with suppress(OSError), locked(store.lock_of(report.run_id), "a run", timeout=LOOKS_AGAIN_WITHIN):
            return _verified(store, run_id, anchor, None)
        again = _verified(store, run_id, anchor, None)  # it is being written for long, or cannot be locked here
        return replace(again, problems=tuple(one for one in again.problems if one in report.problems))
    return report


def _state(store: RunStore, run_id: str) -> VerifyReport | None:
    """The report of a run that cannot be verified because of its state; None for any other."""
    try:
        folder, logged = store.folder(run_id), {line.run_id for line in store.log.lines()}
    except ScopedRetrievalError:
        return None
    found = state_of(store, run_id, logged=logged.__contains__)
    if found.state in (UNFINISHED, CRASHED):
        return VerifyReport(run_id, (RunProblem("missing", run_id, found.detail),), 0, 0, state=found.state)
    if found.state == UNKNOWN_VERSION and run_id in logged:
        lines = [line for line in store.log.lines() if line.run_id == run_id]
        with suppress(ScopedRetrievalError, OSError):
            if manifest_named(lines) not in (None, sha256_of(folder / "manifest.json")):
                return None  # rewritten, whichever version it names
    if found.state == UNKNOWN_VERSION:
        problem = RunProblem("changed", "manifest.json", found.detail)
        return VerifyReport(run_id, (problem,), 0, 0, state=found.state)
    return None


def _verified(store: RunStore, run_id: str, anchor: str | None, log: list[LogEntry] | None) -> VerifyReport:
    found = _Found()
    lines: list[LogEntry] = []
    try:
        lines = store.log.lines() if log is None else log
    except VerificationError as error:
        found.add("changed", "LOG", error.message)
    try:
        run: Run | None = store.open(run_id)
    except VerificationError:
        run = None
    except OSError:
        run = _unreadable(store, run_id, [line for line in lines if line.run_id == run_id], found)
    folder = run.folder if run else store.path / run_id
    receipts = Erased()
    snapshots = 0
    if anchor is not None and anchor not in {line.hash for line in lines}:
        found.add("changed", "LOG", "no line has the hash of the anchor")
    own = [line for line in lines if line.run_id == folder.name]
    if run is not None and found.sound:
        try:
            _check_lines(own, found)
            if found.sound:
                receipts = erased_from(store, run, own)
                _check_live(run, own, found) if run.live else _check_files(run, own, receipts.parts, found)
            if found.sound:
                snapshots = _check_contents(run, receipts, found)
            for part, missing in check_answers(store, own):
                found.add("missing" if missing else "changed", part, "LOG names its SHA-256")
        except ScopedRetrievalError as error:
            found.add("changed", folder.name, error.message)
        except OSError as error:
            found.add("changed", folder.name, _unread(error))
        except (KeyError, TypeError, ValueError, AttributeError, pa.ArrowException) as error:
            found.add("changed", folder.name, f"its content is malformed ({type(error).__name__})")
    head = lines[-1].hash if lines else ""
    problems = tuple(found.problems)
    if problems and all(problem.kind == "left" or _left_by_upgrade(folder, own, problem) for problem in problems):
        return VerifyReport(folder.name, problems, found.parts, snapshots, (), head, CRASHED)
    lost = run is None and [p.part for p in problems] == ["manifest.json"] and folder.is_dir()
    state = UNREADABLE if lost and state_of(store, folder.name, logged=lambda _: bool(own)).state == UNREADABLE else ""
    return VerifyReport(folder.name, problems, found.parts, snapshots, tuple(sorted(receipts.texts)), head, state)


def _left_by_upgrade(folder: Place, lines: list[LogEntry], problem: RunProblem) -> bool:
    """Whether a crash during an upgrade causes this problem: new parts beside the old, or a staged manifest."""
    if problem.kind == "extra":
        return (
            problem.part.startswith((f"{UPGRADED}/", "tables/", "texts/"))
            and any(line.kind == "upgrade" for line in lines)
        ) or problem.part.startswith(f"{UPGRADED}/")
    staged, upgrades = folder / UPGRADED / "manifest.json", [line for line in lines if line.kind == "upgrade"]
    return (
        problem.part == "manifest.json"
        and bool(upgrades)
        and exists(staged)
        and sha256_of(staged) == upgrades[-1].body["manifest_sha256"]
        and sha256_of(folder / "manifest.json") == upgrades[-1].body["before_sha256"]
    )


def _unreadable(store: RunStore, run_id: str, lines: list[LogEntry], found: _Found) -> Run | None:
    """Reports a run that exists in LOG or its folder but cannot be opened; raises for any other id."""
    folder, logged = store.path / run_id, bool(lines)
    if logged and not folder.is_dir():
        found.add("missing", run_id, "LOG names it")
        return None
    folder = store.folder(run_id)
    try:
        there = exists(folder / "manifest.json")
    except StoreError:  # the folder cannot be read
        found.add("changed", "manifest.json", "the manifest cannot be read")
        return None
    known = logged or there or any(folder.glob("tables/*/*.parquet"))
    if not known or (not logged and exists(folder / "stage")):
        raise StoreError(f"Expected a finished run, got none - at {run_id}")
    if lines and all(line.kind == "live" for line in lines):  # not compacted: it never had a manifest
        for file in sorted({line.body["file"] for line in lines}):
            found.add("missing", f"live/{file}", "LOG names it")
        return None
    kind: Kind = "changed" if there else "missing"
    found.add(kind, "manifest.json", "the manifest cannot be read" if kind == "changed" else "every run has one")
    return None


def _check_lines(lines: list[LogEntry], found: _Found) -> None:
    """Check that LOG names each manifest and interactive file once: an old anchor would vouch for both of two lines."""
    try:
        manifest_named(lines)
        files_named(lines)
    except VerificationError as error:
        found.add("changed", "LOG", error.message)


def _check_files(run: Run, lines: list[LogEntry], rewritten: Mapping[str, str], found: _Found) -> None:
    """Check the manifest against LOG, then every file against the manifest."""
    logged = manifest_named(lines)
    if logged is None:
        gives = "`compact`" if run.manifest.get("kind") == INTERACTIVE else "`run --resume`"
        found.add(
            "left", "LOG", f"no line names this run: interrupted by a crash while finishing; run {gives} to recover"
        )
        logged = sha256_of(run.folder / "manifest.json")
    if sha256_of(run.folder / "manifest.json") != logged:
        return found.add("changed", "manifest.json", "its SHA-256 is not the one in LOG")
    expected = {"manifest.json": logged, "lineage.json": run.manifest["lineage_sha256"]}
    for table in run.manifest["tables"].values():
        expected |= {part["path"]: part["sha256"] for part in table["parts"]}
    before = {path: expected[path] for path in rewritten if path in expected}
    expected |= rewritten
    for path, sha256 in expected.items():
        found.parts += 1
        file = run.folder / path
        if not exists(file):
            found.add("missing", path, "the manifest names it")
        elif (got := _sha256(file, path, found)) not in (sha256, None):
            unfinished = "texts that a receipt lists as erased still exist: run the erasure again"
            found.add("changed", path, unfinished if before.get(path) == got else "its SHA-256 is not the recorded one")
    for path in files_below(run.folder):
        if path not in expected:
            found.add(*_unnamed(path, "the manifest does not name it", ("live/",)))
    compacted = {entry["file"]: entry["sha256"] for entry in run.manifest.get("compacted_from", ())}
    for file, sha256 in files_named(lines).items():
        if compacted.get(file) != sha256:
            found.add("changed", "manifest.json", f"live/{file} is not the file that LOG names")
    return _check_compacted(run, lines, found) if found.sound else None


def _sha256(file: Place, part: str, found: _Found) -> str | None:
    """The SHA-256 of a file; None if it cannot be read, which is reported."""
    try:
        return sha256_of(file)
    except ScopedRetrievalError:
        raise
    except OSError as error:
        found.add("changed", part, _unread(error))
        return None


def _unread(error: OSError) -> str:
    return f"it cannot be read ({error.strerror or type(error).__name__})"


def _unnamed(path: str, why: str, below: tuple[str, ...]) -> tuple[Kind, str, str]:
    """The problem of an unexpected file: extra, or left by an interrupted compaction."""
    if path.startswith(below) or Path(path).name.startswith(TEMPORARY):
        return "left", path, f"{why}; left by an interrupted compaction: run `compact` to recover"
    return "extra", path, why


def _check_compacted(run: Run, lines: list[LogEntry], found: _Found) -> None:
    """Check that a compacted session has the digests that LOG recorded when each snapshot was returned."""
    ids, digests = (run.snapshots[name].to_pylist() for name in ("snapshot_id", "snapshot_digest"))
    held = dict(zip(ids, digests, strict=True))
    for line in lines:
        if line.kind == "live" and "snapshot_digest" in line.body:
            name = snapshot_id(run.run_id, number_of(line.body["file"]))
            if held.get(name) != line.body["snapshot_digest"]:
                found.add("changed", f"snapshots/{name}", "its digest is not the one in LOG")


def _check_live(run: Run, lines: list[LogEntry], found: _Found) -> None:
    """Check every interactive file against its line in LOG."""
    if manifest_named(lines) is not None:
        return found.add("missing", "manifest.json", "LOG names it")
    logged = {f"live/{file}": sha256 for file, sha256 in files_named(lines).items()}
    files = live_files(run.folder)
    present = {f"live/{file}" for file in files}
    adopted = {f"live/{file}" for file in unlogged(files, files_named(lines))}
    for path, sha256 in logged.items():
        found.parts += 1
        if path not in present:
            found.add("missing", path, "LOG names it")
        elif _sha256(run.folder / path, path, found) not in (sha256, None):
            found.add("changed", path, "its SHA-256 is not the one in LOG")
    for path in files_below(run.folder):
        if path in adopted:
            cause = "a crash came between the file and its line; the next session, or `compact`, adopts it"
            found.add("left", path, f"LOG does not name it: {cause}")
        elif path not in logged and path != "lineage.json":
            found.add(*_unnamed(path, "LOG does not name it", () if path in present else ("tables/", "texts/")))
    lineage = run.folder / "lineage.json"
    if not exists(lineage):
        found.add("missing", "lineage.json", "every run has one")
    elif logged and {sha256_of(lineage)} != {line.body["lineage_sha256"] for line in lines if line.kind == "live"}:
        found.add("changed", "lineage.json", "its SHA-256 is not the one in LOG")
    return None


def _check_contents(run: Run, receipts: Erased, found: _Found) -> int:
    """Check logical digests, texts, snapshot digests and conservation; returns the number of snapshots checked."""
    if not run.live:
        for name, table in run.manifest["tables"].items():
            for part in table["parts"]:
                _check_part(run, name, part, part["path"] in receipts.parts, found)
    tables, erased = run.tables(), receipts.texts
    for sha256 in changed_texts(run.texts).to_pylist():
        found.add("changed", f"texts/{sha256}", "the text is not the one that was hashed")
    wanted, present = references(tables), flat(run.texts["sha256"])
    for sha256 in _without(wanted, present):
        if sha256 not in erased:
            found.add("missing", f"texts/{sha256}", "a table refers to it, and no receipt says that it was erased")
    for sha256 in _without(present, wanted) if not run.older else ():
        found.add("extra", f"texts/{sha256}", "no table refers to it")
    for sha256 in present.to_pylist() if erased else ():
        if sha256 in erased:
            found.add("extra", f"texts/{sha256}", "a receipt says that it was erased")
    ids = run.snapshots["request_id"].combine_chunks()
    if not run.digests_follow:
        return len(ids)
    digests = pa.array(snapshot_digests(tables, run.provenance, ids), pa.string())
    differs = pc.not_equal(digests, run.snapshots["snapshot_digest"].combine_chunks())
    for snapshot in run.snapshots["snapshot_id"].combine_chunks().filter(differs).to_pylist():
        found.add("changed", f"snapshots/{snapshot}", "its digest does not follow from the stored tables")
    try:
        check_conservation(tables, run.run_id)
    except VerificationError as error:
        found.add("changed", "decisions", error.message)
    return len(ids)


def _without(values: pa.Array, known: pa.Array) -> list[str]:
    return values.filter(pc.invert(pc.is_in(values, value_set=known))).to_pylist()


def _check_part(run: Run, name: str, part: dict[str, Any], rewritten: bool, found: _Found) -> None:
    """Check rows and logical digest of a part; for one rewritten by an erasure, only that it lost rows."""
    table = run.part(name, part["path"])
    if rewritten:
        if table.num_rows >= part["rows"]:
            found.add("changed", part["path"], "a receipt lists erased texts of it, but none is missing")
    elif table.num_rows != part["rows"]:
        found.add("changed", part["path"], f"it has {counted(table.num_rows, 'row')}, the manifest says {part['rows']}")
    elif not run.older and logical_digest(name, table) != part["digest"]:
        found.add("changed", part["path"], "its logical digest is not the recorded one")
