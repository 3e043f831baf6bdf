"""A folder of runs: staged, written shard by shard, finished once, and read again.

A batch is staged with its resolved requests and the pinned corpus generation; each finished shard writes its parts and a
receipt; then come the line in LOG, and the removal of the stage. After a crash at any point, `resume` runs
exactly the remaining steps: a shard without a receipt is run again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cached_property, partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.audit.records import COVERED
from ...nodes.errors import ScopedRetrievalError, StoreError, VerificationError
from ...nodes.tables import FAILURES, REQUESTS, TABLES
from ..progress import counted
from ..storage.durable import entries, exists, make_folders, remove_tree, sync_all, sync_path
from ..storage.file_access import held, keep_out, system_errors
from ..storage.places import Place, fixed_place
from ..storage.signing import UNSIGNED, Signer
from .files import (
    files_below,
    json_bytes,
    read_json,
    read_parquet,
    write_json,
    write_parquet,
)
from .ids import RUN_ID, new_run_id, run_named, snapshot_id
from .live import LIVE, live_file
from .log import Line, RunFolder, of_kind, snapshots_named
from .parts import FORMAT, PER_RUN, LineTimings, Vectors, expect_format, stored_tables, stored_whole
from .run import Run
from .writing import INPUTS, STAGE, manifest, part_path, shard_name, write_parts

PLAN = f"{STAGE}/run.json"
"""Exists as long as a run is unfinished; written last, and removed first."""
_SHARD = pa.field("shard", pa.int32(), False)


class Runs(RunFolder):
    """One folder of runs."""

    def __init__(self, path: str | Place, *, create: bool = True, signer: Signer = UNSIGNED) -> None:
        super().__init__(fixed_place(path), signer)
        if create:
            with system_errors(self.path):
                make_folders(self.path)
                keep_out(self.path)
        elif not self.path.is_dir():
            hint = "`ask` records answers there; `-C DIR` or `--runs DIR` names another folder"
            raise StoreError(f"Expected a folder of runs, got none - at {self.path}", hint=hint)

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process opens the same folder."""
        return partial(Runs, create=False), (str(self.path.resolve()),)

    def stage(
        self,
        requests: pa.Table,
        failures: pa.Table,
        shards: pa.Array,
        *,
        now: datetime,
        inputs: Mapping[str, pa.Table],
        settings: Mapping[str, Any],
        lineage: Mapping[str, Any],
        pin: Mapping[str, Any] | None = None,
    ) -> StagedRun:
        """A new run, visible as unfinished: requests with the shard of each, failures, and the tables of the run.

        `inputs` are the tables of `PER_RUN`; `settings` are JSON values that the caller needs to continue (generation,
        lanes, ...). `pin` locates the pinned generation, see `Corpus.pin`; the manifest records the corpus head from
        it.
        """
        run_id, begun = new_run_id(now), self.log.number()
        with system_errors(self.path):
            plan = {
                "format": FORMAT,
                "run_id": run_id,
                "created_at": now.isoformat(),
                "settings": dict(settings),
                "pin": pin,
                "shards": max(shards.to_pylist(), default=-1) + 1,
                "failures": failures.num_rows,
                "lineage_sha256": self.share(json_bytes(lineage)),
            }
            new = self.path / run_id
            make_folders(new / STAGE / "receipts", self.path)
            write_parquet(new / STAGE / "requests.parquet", requests.append_column(_SHARD, shards.cast(pa.int32())))
            write_parquet(new / STAGE / "failures.parquet", failures)
            receipt = write_parts(new, INPUTS, stored_tables(inputs, [TABLES[name] for name in PER_RUN]))
            write_json(new / _receipt(INPUTS), receipt, sync=False)
            sync_all([new / STAGE / name for name in files_below(new / STAGE)], new)
            write_json(new / PLAN, plan, sync=True)  # from now on, it exists
        if self.log.swept(begun):  # maybe this folder, before it existed
            raise StoreError(f"Expected to stage a run, got an erasure - at {run_id}", hint="run it again.")
        return StagedRun(self, run_id)

    def sweep(self) -> None:
        """Remove what no line names: files of interactive snapshots, and folders of runs that are not staged."""
        found = [file.name for file in entries(self.path / LIVE)]
        folders = self.folders()
        self.log.commit("sweep", {})
        runs = self.log.by_run()
        kept = {
            live_file(self.path, name).name
            for lines in runs.values()
            if not of_kind(lines, "run")
            for name in snapshots_named(lines)
        }
        for name in found:
            if name not in kept:
                (self.path / LIVE / name).unlink(missing_ok=True)
        for run_id in folders:
            if run_id not in runs and not exists(self.path / run_id / PLAN):
                with suppress(FileNotFoundError):
                    remove_tree(self.path / run_id)

    def resume(self, run_id: str) -> StagedRun:
        """An unfinished run, to finish it.

        Raises:
            StoreError: there is no such run, or it is finished.
        """
        self._expect_unfinished(run_id)
        return StagedRun(self, run_id)

    @contextmanager
    def writing(self, run_id: str) -> Iterator[None]:
        """Hold an unfinished run, so that two processes do not answer the same requests; on an object store nothing is
        held.

        Raises:
            BusyError: another process is writing it.
            StoreError: it is finished, or was removed.
        """
        self._expect_unfinished(run_id)
        busy = f"Expected to write a run, got a lock that another process holds - at {run_id}"
        with held(self.path / run_id / STAGE / ".lock", 0.1, busy):
            self._expect_unfinished(run_id)
            yield

    def _expect_unfinished(self, run_id: str) -> None:
        if self.holds(run_id) or not exists(self.folder(run_id) / PLAN):
            got = "one that is finished or was never begun"
            raise StoreError(f"Expected an unfinished run, got {got} - at {run_id}", hint="`log --of runs` lists them")

    def discard(self, run_id: str) -> None:
        """Remove an unfinished run.

        Raises:
            BusyError: another process is writing it.
            StoreError: there is no such run, or it is finished.
        """
        with self.writing(run_id):
            folder = self.folder(run_id)
            (folder / PLAN).unlink()  # from now on, it does not exist
            sync_path(folder / STAGE)
            remove_tree(folder)

    def unfinished(self) -> list[str]:
        """Ids of batch runs that were staged and not finished, oldest first."""
        named = self.run_ids()
        return [id_ for id_ in self.folders() if id_ not in named and exists(self.path / id_ / PLAN)]

    def plan_of(self, run_id: str) -> dict[str, Any]:
        """The plan with which an unfinished run was staged, including its generation.

        Raises:
            StoreError: the plan cannot be read.
        """
        return read_json(self.folder(run_id) / PLAN)

    def uncompacted(self) -> list[str]:
        """Ids of interactive runs that are not compacted, oldest first."""
        return sorted(run_id for run_id, lines in self.log.by_run().items() if not of_kind(lines, "run"))

    def list(self) -> list[Run]:
        """Every readable run, finished or interactive, oldest first. `verify` names the others."""
        found, lines = list[Run](), self.log.by_run()
        for run_id in sorted(lines):
            with suppress(StoreError, VerificationError):
                found.append(Run(self, run_id, lines[run_id]))
        return found

    def run_ids(self) -> tuple[str, ...]:
        """The ids of every run that LOG names, damaged ones included, oldest first."""
        return tuple(sorted(self.log.by_run()))

    def holds(self, run_id: str) -> bool:
        """Whether LOG names a run of this id."""
        return bool(RUN_ID.fullmatch(run_id)) and bool(self.log.of(run_id))

    def open(self, run_id: str) -> Run:
        """A run to read, by its id or by the id of one of its snapshots.

        Raises:
            StoreError: there is no such run, it is not finished, or it cannot be read.
            VerificationError: two lines name it as finished.
        """
        run_id = run_named(run_id)
        if not self.holds(run_id):
            self.folder(run_id)
        return Run(self, run_id)

    def starter_of(self, run_id: str, lines: Sequence[Line] | None = None) -> str | None:
        """The principal who started a run, finished or not; None if nothing says who. See `Run` about `lines`."""
        with suppress(ScopedRetrievalError):
            for line in self.log.of(run_id) if lines is None else lines:
                if starter := line.body.get("started_by"):
                    return starter
            if exists(self.path / run_id / PLAN):
                return self.plan_of(run_id)["settings"].get("principal")
        return None

    def folders(self) -> list[str]:
        """The ids of every folder of a run, finished or not."""
        return sorted(entry.name for entry in self.path.iterdir() if RUN_ID.fullmatch(entry.name) and entry.is_dir())

    def folder(self, run_id: str) -> Place:
        """The folder of a run.

        Raises:
            StoreError: there is no run with this id.
        """
        folder = self.path / run_id
        if not RUN_ID.fullmatch(run_id) or not folder.is_dir():
            raise StoreError(
                f"Expected a run in this folder, got none - at {run_id}", hint="`log --of runs` lists them"
            )
        return folder


def _staged_schema(columns: Sequence[str]) -> pa.Schema:
    """The schema of the requests of a staged run, including those `columns` that plugins may add."""
    return REQUESTS.widened(REQUESTS.schema, columns).append(_SHARD)


def _receipt(shard: str) -> str:
    """The receipt of a shard, as a path in the folder of its run."""
    return f"{STAGE}/receipts/{shard}.json"


class StagedRun:
    """A run being written. One process at a time holds it, see `Runs.writing`."""

    def __init__(self, store: Runs, run_id: str) -> None:
        self.store = store
        self.run_id = run_id
        self.folder = store.path / run_id
        stage = self.folder / STAGE
        self.plan: dict[str, Any] = read_json(self.folder / PLAN)
        expect_format(self.plan, run_id)
        self._requests = read_parquet(stage / "requests.parquet", _staged_schema)
        self.failures = read_parquet(stage / "failures.parquet", FAILURES.schema)

    def __reduce__(self) -> tuple[Any, ...]:
        return StagedRun, (self.store, self.run_id)

    @property
    def requests(self) -> pa.Table:
        """REQUESTS of the run."""
        return self._requests.drop_columns(["shard"])

    @property
    def request_ids(self) -> list[str]:
        """Ids of all requests and failures, sorted: position + 1 is the number in the snapshot id."""
        return sorted([*self._requests["request_id"].to_pylist(), *self.failures["request_id"].to_pylist()])

    def shard(self, shard: int) -> tuple[pa.Table, pa.Table]:
        """REQUESTS and FAILURES of one shard, by request id; the last shard may contain only the failures."""
        mine = self._requests.filter(pc.equal(self._requests["shard"], shard)).drop_columns(["shard"])
        return mine, self.failures if shard == self.plan["shards"] else FAILURES.empty()

    @property
    def provenance(self) -> pa.Table:
        """PROVENANCE at the start of the run."""
        return read_parquet(self.folder / part_path("provenance", INPUTS), TABLES["provenance"].schema)

    def snapshot_ids(self, request_ids: Iterable[str]) -> dict[str, str]:
        """The snapshot id of each of these requests, by request id."""
        return {request_id: snapshot_id(self.run_id, self._numbers[request_id]) for request_id in sorted(request_ids)}

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {request_id: number for number, request_id in enumerate(self.request_ids, start=1)}

    def pending(self) -> list[int]:
        """Shards still to run: those without a receipt.

        Raises:
            StoreError: the receipts cannot be listed now.
        """
        done = {entry.name for entry in entries(self.folder / STAGE / "receipts")}
        return [shard for shard in self._shards if f"{shard_name(shard)}.json" not in done]

    @property
    def _shards(self) -> range:
        """All shards. The last one is for requests that failed on arrival."""
        return range(self.plan["shards"] + (1 if self.plan["failures"] else 0))

    def described(self, shards: list[int]) -> str:
        """The remaining work in words: `answering 300 requests in 2 shards`."""
        if not shards:
            return "every request is answered"
        mine = pc.sum(pc.is_in(self._requests["shard"], pa.array(shards, pa.int32()))).as_py() or 0
        requests = mine + (self.failures.num_rows if self.plan["shards"] in shards else 0)
        return f"answering {counted(requests, 'request')} in {counted(len(shards), 'shard')}"

    def write(
        self,
        shard: int,
        tables: Mapping[str, pa.Table],
        vectors: Vectors | None = None,
        seconds: Mapping[str, float] | None = None,
    ) -> None:
        """Store a finished shard: its parts, then its receipt.

        Raises:
            StoreError: the shard cannot be written.
        """
        requests = tables["snapshots"].num_rows
        took = {f"shard {shard}": LineTimings(sum(seconds.values()), requests, seconds)} if seconds else {}
        receipt = write_parts(self.folder, shard_name(shard), stored_whole(tables, COVERED, vectors, took))
        write_json(self.folder / _receipt(shard_name(shard)), receipt, sync=True)

    def finish(self, confirmed: Callable[[], None] = lambda: None) -> Run:
        """Add the line to LOG, and remove the stage. Every shard must be done.

        `confirmed` raises if evidence was erased. An erasure that comes later reads the line.
        """
        if pending := self.pending():
            raise StoreError(f"Expected every shard, got {len(pending)} still to run - at {self.run_id}")
        shards = [INPUTS, *map(shard_name, self._shards)]
        receipts = {shard: read_json(self.folder / _receipt(shard)) for shard in shards}

        def unnamed() -> bool:
            confirmed()
            return not self.store.holds(self.run_id)

        body = manifest(self.folder, self.plan, receipts, self.provenance)
        self.store.log.commit("run", body, unnamed)
        with suppress(FileNotFoundError):
            remove_tree(self.folder / STAGE)
        return Run(self.store, self.run_id)
