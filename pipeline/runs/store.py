"""A folder of runs: staged, written shard by shard, finished once, and read again.

A run is staged with its resolved requests and the pinned corpus generation; each finished shard writes its parts and a
receipt; then come the manifest, the removal of the stage, and the line in LOG. After a crash at any point, `resume`
runs exactly the remaining steps: a shard whose receipt is missing, or whose parts do not match it, is run again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.errors import StoreError, VerificationError
from ...nodes.tables import FAILURES, REQUESTS, TABLES
from ..progress import counted
from ..storage.durable import exists, make_folders, publish_folder, remove_tree, sync_all
from ..storage.file_access import keep_out, make_folder
from ..storage.locks import confirm
from ..storage.places import ObjectPlace, Place, fixed_place
from .files import files_below, locked, read_json, read_parquet, remove_unnamed, sha256_of, write_json, write_parquet
from .ids import RUN_ID, new_run_id, run_named, snapshot_id
from .live_files import is_live
from .log import log_at
from .parts import PER_RUN, Vectors
from .receipts import receipt_name, receipt_of
from .run import BATCH, FORMAT, INTERACTIVE, STAGE, Run
from .signed_head import Signer, sign
from .staging import remove_abandoned, run_folder
from .writing import PROVENANCE_PART, write_manifest, write_shard

_SHARD = pa.field("shard", pa.int32(), False)


class RunStore:
    """One folder of runs."""

    def __init__(self, path: str | Place, *, create: bool = True, signer: Signer | None = None) -> None:
        self.path = fixed_place(path)
        if create:
            try:
                make_folders(self.path)
                keep_out(self.path)
            except OSError as error:
                raise StoreError(f"{error.strerror}: folder of runs {self.path}") from error
        elif not self.path.is_dir():
            raise StoreError(f"Expected a folder of runs, got none - at {self.path}")
        self.log = log_at(self.path, signer)
        self._signer = signer

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
        run_id = new_run_id(now)
        plan = {
            "format": FORMAT,
            "run_id": run_id,
            "created_at": now.isoformat(),
            "settings": dict(settings),
            "pin": pin,
            "shards": max(shards.to_pylist(), default=-1) + 1,
            "failures": failures.num_rows,
        }
        try:
            self.remove_abandoned()
            with run_folder(self.path, run_id, self.lock_of(run_id)) as new:
                make_folder(new / STAGE / "receipts")
                write_parquet(new / STAGE / "requests.parquet", requests.append_column(_SHARD, shards.cast(pa.int32())))
                write_parquet(new / STAGE / "failures.parquet", failures)
                receipt = write_shard(new, 0, {name: inputs[name] for name in PER_RUN}, per_run=True)
                write_json(new / STAGE / "receipts" / "inputs.json", receipt, sync=True)
                write_json(new / "lineage.json", lineage, sync=False)
                write_json(new / STAGE / "run.json", plan, sync=True)
                sync_all([new / name for name in files_below(new)], new)
                publish_folder(new, self.path / run_id, last=f"{STAGE}/run.json")
        except OSError as error:
            if isinstance(error, StoreError):
                raise
            raise StoreError(f"{error.strerror or error}: {self.path}") from error
        return StagedRun(self, run_id)

    def remove_abandoned(self) -> None:
        """Remove the remains of runs whose processes were killed while staging."""
        remove_abandoned(self.path, self.path / ".locks")

    def resume(self, run_id: str) -> StagedRun:
        """An unfinished run, to finish it.

        Raises:
            StoreError: there is no such run, or it is finished.
        """
        folder = self.folder(run_id)
        if exists(folder / "manifest.json"):
            run = StagedRun(self, run_id, finished=True)
            if run_id in self.logged():
                raise StoreError(f"Expected an unfinished run, got a finished one - at {run_id}")
            if run_kind(folder) != BATCH:
                hint = f"`compact {run_id}` completes it"
                raise StoreError(f"Expected an unfinished batch run, got an interactive one - at {run_id}", hint=hint)
            return run
        if not exists(folder / STAGE / "run.json"):
            raise StoreError(f"Expected an unfinished run, got none - at {run_id}")
        return StagedRun(self, run_id)

    def unfinished(self) -> list[str]:
        """Ids of batch runs that were staged and not finished, oldest first."""
        logged = self.log.named("run")
        return [run_id for run_id in self.folders() if run_id not in logged and _is_batch(self.path / run_id)]

    def plan_of(self, run_id: str) -> dict[str, Any] | None:
        """The plan with which a run was staged, including its generation; None if everything was answered.

        Raises:
            StoreError: the plan cannot be read.
        """
        folder = self.folder(run_id)
        return None if exists(folder / "manifest.json") else read_json(folder / STAGE / "run.json")

    def uncompacted(self) -> list[str]:
        """Ids of interactive runs that `compact` has not finished, oldest first."""
        logged = self.logged()
        rest = (run_id for run_id in self.folders() if run_id not in logged)
        return [run_id for run_id in rest if run_kind(self.path / run_id) == INTERACTIVE]

    def list(self) -> list[Run]:
        """Every readable run, finished or interactive, oldest first. `verify` names the others."""
        return [*self.newest()][::-1]

    def newest(self) -> Iterator[Run]:
        """The runs of `list`, newest first, opened lazily."""
        for run_id in reversed(self.folders()):
            with suppress(StoreError, VerificationError):
                if self._readable(self.path / run_id):
                    yield self.open(run_id)

    def run_ids(self) -> tuple[str, ...]:
        """The ids of every run that was finished or is interactive, damaged ones included."""
        return tuple(run_id for run_id in self.folders() if self._readable(self.path / run_id))

    def holds(self, run_id: str) -> bool:
        """Whether a run of this id was finished or is interactive, damaged or not."""
        return bool(RUN_ID.fullmatch(run_id)) and self._readable(self.path / run_id)

    def open(self, run_id: str) -> Run:
        """A run to read, by its id or by the id of one of its snapshots.

        Raises:
            StoreError: there is no such run, or it is not finished.
        """
        run_id = run_named(run_id)
        folder = self.folder(run_id)
        if not self._readable(folder):
            raise StoreError(
                f"Expected a finished run, got an unfinished one - at {run_id}", hint="run it again with --resume"
            )
        return Run(folder)

    @staticmethod
    def _readable(folder: Place) -> bool:
        return exists(folder / "manifest.json") or is_live(folder)

    def lock_of(self, run_id: str) -> Place:
        """The lock file that a writer of this run holds."""
        return self.path / ".locks" / run_id

    def session_of(self, run_id: str) -> Place:
        """The lock file that the session of an interactive run holds until it ends."""
        return self.path / ".locks" / f"{run_id}.session"

    @property
    def opened(self) -> Place:
        """The folder of marks of runs that a session may still write to."""
        return self.path / ".open"

    def folders(self) -> list[str]:
        """The ids of everything that is or becomes a run."""
        return sorted(entry.name for entry in self.path.iterdir() if RUN_ID.fullmatch(entry.name) and entry.is_dir())

    def folder(self, run_id: str) -> Place:
        """The folder of a run.

        Raises:
            StoreError: there is no run with this id.
        """
        folder = self.path / run_id
        if not RUN_ID.fullmatch(run_id) or not folder.is_dir():
            raise StoreError(f"Expected a run in this folder, got none - at {run_id}", hint="`runs` lists them")
        return folder

    def sign_log(self) -> bool:
        """Sign the log as it is, whatever was signed before; False if there is no key or nothing to sign.

        Raises:
            VerificationError: its chain is broken.
        """
        if self._signer is None or not self._signer.signs or not isinstance(self.path, Path):
            return False
        return sign(self.path, self._signer, self.log.lines())

    def logged(self) -> set[str]:
        """The ids of the runs that LOG names as finished."""
        return {line.run_id for line in self.log.lines() if line.kind == "run"}


def run_kind(folder: Place) -> str | None:
    """The kind of the run in a folder, even of one that a crash left; None if unknown."""
    if exists(folder / "manifest.json"):
        with suppress(StoreError, AttributeError):
            return read_json(folder / "manifest.json").get("kind")
        return None
    if exists(folder / STAGE / "run.json"):
        return BATCH
    return INTERACTIVE if is_live(folder) else None


def _is_batch(folder: Place) -> bool:
    """Whether a folder contains a batch run, staged or with its manifest; False if it cannot be read."""
    with suppress(StoreError):
        kept = exists(folder / "manifest.json") or exists(folder / STAGE / "run.json")
        return kept and run_kind(folder) == BATCH
    return False


def _staged_schema(columns: Sequence[str]) -> pa.Schema:
    """The schema of the requests of a staged run, including those `columns` that plugins may add."""
    return REQUESTS.widened(REQUESTS.schema, columns).append(_SHARD)


class StagedRun:
    """A run being written. One process at a time holds it."""

    def __init__(self, store: RunStore, run_id: str, *, finished: bool = False) -> None:
        self.store = store
        self.run_id = run_id
        self.folder = store.path / run_id
        self._finished = finished
        self._listed: set[str] = set()
        self._whole: set[int] = set()
        """Shards whose parts were verified against their receipt."""
        stage = self.folder / STAGE
        self.plan: dict[str, Any] = read_json(self.folder / "manifest.json" if finished else stage / "run.json")
        if self.plan.get("format") != FORMAT:
            raise StoreError(f"Expected format {FORMAT}, got {self.plan.get('format')} - at {run_id}")
        if not finished:
            self._requests = read_parquet(stage / "requests.parquet", _staged_schema)
            self.failures = read_parquet(stage / "failures.parquet", FAILURES.schema)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the run.

        Raises:
            BusyError: another process is writing it.
            StoreError: another process finished or removed it since it was opened here.
        """
        with locked(self.store.lock_of(self.run_id), "a run", timeout=0.1):
            written = exists(self.folder / "manifest.json")
            if self._finished:
                ended = not written or self.run_id in self.store.logged()
            else:
                ended = written or not exists(self.folder / STAGE / "run.json")
            if ended:
                raise StoreError(
                    f"Expected an unfinished run, got one that another process has finished - at {self.run_id}"
                )
            yield

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
        return read_parquet(self.folder / PROVENANCE_PART, TABLES["provenance"].schema)

    def snapshot_ids(self, request_ids: Iterable[str]) -> dict[str, str]:
        """The snapshot id of each of these requests, by request id."""
        return {request_id: snapshot_id(self.run_id, self._numbers[request_id]) for request_id in sorted(request_ids)}

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {request_id: number for number, request_id in enumerate(self.request_ids, start=1)}

    def pending(self) -> list[int]:
        """Shards still to run. The last one is for requests that failed on arrival."""
        if self._finished:
            return []
        shards = self.plan["shards"] + (1 if self.plan["failures"] else 0)
        if isinstance(self.folder, ObjectPlace):
            self._listed = set(self.folder.files())
        return [shard for shard in range(shards) if not self._receipt(shard)]

    def described(self, shards: list[int], doing: str = "answering") -> str:
        """The remaining work in words: `answering 300 requests in 2 shards`."""
        if not shards:
            return "every request is answered"
        mine = pc.sum(pc.is_in(self._requests["shard"], pa.array(shards, pa.int32()))).as_py() or 0
        requests = mine + (self.failures.num_rows if self.plan["shards"] in shards else 0)
        return f"{doing} {counted(requests, 'request')} in {counted(len(shards), 'shard')}"

    def write(
        self,
        shard: int,
        tables: Mapping[str, pa.Table],
        vectors: Vectors | None = None,
        seconds: Mapping[str, float] | None = None,
    ) -> None:
        """Store a finished shard: its parts, then its receipt.

        Raises:
            VerificationError: a candidate is not decided exactly once.
            StoreError: the shard cannot be written.
        """
        receipt = write_shard(self.folder, shard, tables, vectors=vectors) | {"seconds": dict(seconds or {})}
        write_json(self._receipt_path(shard), receipt, sync=False)

    def finish(self) -> Run:
        """Write the manifest, remove the stage, add the line to LOG. Every shard must be done."""
        if pending := self.pending():
            raise StoreError(f"Expected every shard, got {len(pending)} still to run - at {self.run_id}")
        manifest = self.folder / "manifest.json"
        if not self._finished:
            receipts = [read_json(self.folder / STAGE / "receipts" / "inputs.json")]
            shards = self.plan["shards"] + (1 if self.plan["failures"] else 0)
            receipts += [read_json(self._receipt_path(shard)) for shard in range(shards)]
            confirm(self.store.lock_of(self.run_id))
            remove_unnamed(self.folder, {part["path"] for receipt in receipts for part in receipt["parts"]})
            write_manifest(self.folder, self.plan, receipts, kind=BATCH)
            self._finished = True
        with suppress(FileNotFoundError):
            remove_tree(self.folder / STAGE)
        started_by = self.plan["settings"].get("principal")
        self.store.log.append("run", self.run_id, manifest_sha256=sha256_of(manifest), started_by=started_by)
        return Run(self.folder)

    def _receipt_path(self, shard: int) -> Place:
        return self.folder / receipt_name(shard)

    def _receipt(self, shard: int) -> bool:
        """Whether a shard is done: it has a receipt that its parts match.

        Raises:
            StoreError: its receipt cannot be read now.
        """
        if shard not in self._whole and receipt_of(self.folder, shard, self._listed) is not None:
            self._whole.add(shard)
        return shard in self._whole
