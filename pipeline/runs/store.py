"""A folder of runs: staged, written shard by shard, finished once, and read again.

A batch is staged with its resolved requests and the pinned corpus generation, and a line begins it; each finished shard
writes its parts and has a line; then comes the line of the run. After a crash at any point, `resume` runs exactly the
remaining steps: a shard without a line is run again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cached_property, partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.errors import ErasedError, ScopedRetrievalError, StoreError, VerificationError
from ...nodes.tables import FAILURES, REQUESTS
from ..progress import counted
from ..storage.durable import entries, make_folders, remove_tree, sync_all
from ..storage.file_access import keep_out, system_errors
from ..storage.places import Place, fixed_place
from ..storage.signing import UNSIGNED, Signer
from .files import files_below, read_parquet, write_parquet
from .ids import RUN_ID, new_run_id, run_named, snapshot_id
from .live import HEADER, LIVE, header_of, live_file, read_inputs
from .log import Line, RunFolder, is_unfinished, of_kind
from .model_inputs import CONTEXTS, records_in
from .parts import STORED, LineTimings, Vectors, distinct_texts, expect_format, stored_whole
from .run import Run, parts_of, pieces_of
from .writing import shard_name, write_parts

STAGE = "stage"
"""Folder of a run that is not finished."""
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
        lanes, ...). `pin` names the corpus, see `Corpus.pin`.
        """

        def written(files: list[Place]) -> dict[str, Any]:
            run_id = new_run_id(now)
            stage = self.path / run_id / STAGE
            make_folders(stage, self.path)
            asked = requests.append_column(_SHARD, shards.cast(pa.int32()))
            for name, table in (("requests", asked), ("failures", failures)):
                files.append(stage / f"{name}.parquet")
                write_parquet(files[-1], table)
            sync_all(files[-2:], self.path)
            return header_of(self, run_id, inputs, lineage, settings) | {
                "created_at": now.isoformat(),
                "pin": pin,
                "shards": max(shards.to_pylist(), default=-1) + 1,
                "failures": failures.num_rows,
            }

        line = self.commit_files("begin", written)
        assert line is not None  # it is allowed
        return StagedRun(self, line.body["run_id"])

    def sweep(self) -> None:
        """Remove what no line names: files of interactive snapshots, texts of model inputs, and parts and folders of runs. While
        a line is changed, what it names is unknown, and all stays.
        """
        files = [*entries(self.path / LIVE), *entries(self.path / CONTEXTS)]
        of_runs = [entry for entry in self.path.iterdir() if RUN_ID.fullmatch(entry.name) and entry.is_dir()]
        folders = {folder.name: list(files_below(folder)) for folder in of_runs}
        self.log.commit("sweep", {})
        runs, kept = self.log.by_run(), {record["texts"] for record in records_in(self)}
        if not all(runs.values()):
            return
        for run_id, lines in runs.items():
            kept.update(live_file(self.path, piece).name for piece in pieces_of(lines).values())
            with suppress(StoreError, VerificationError):  # of another version, or damaged: its files stay
                expect_format(lines[0].body, run_id)
                named = {path for parts in parts_of(lines)[0].values() for path in parts}
                for path in folders.get(run_id, ()):
                    if path not in named and not (is_unfinished(lines) and path.startswith(f"{STAGE}/")):
                        (self.path / run_id / path).unlink(missing_ok=True)
        for file in files:
            if file.name not in kept:
                file.unlink(missing_ok=True)
        for run_id in folders.keys() - runs.keys():
            remove_tree(self.path / run_id)

    def resume(self, run_id: str) -> StagedRun:
        """An unfinished run, to finish it.

        Raises:
            StoreError: there is no such run, or it is finished.
        """
        if not is_unfinished(self.log.of(run_id)):
            got = "one that is finished or was never begun"
            raise StoreError(f"Expected an unfinished run, got {got} - at {run_id}", hint="`log --of runs` lists them")
        return StagedRun(self, run_id)

    def discard(self, run_id: str) -> None:
        """Remove an unfinished run. Who writes it cannot finish it.

        Raises:
            StoreError: there is no such run, or it is finished.
        """
        self.resume(run_id)
        if self.log.commit("discard", {"run_id": run_id}, lambda: is_unfinished(self.log.of(run_id))) is None:
            self.resume(run_id)
        remove_tree(self.path / run_id)

    def unfinished(self) -> list[str]:
        """Ids of batch runs that were begun and not finished, oldest first."""
        return [run_id for run_id, lines in self.log.by_run().items() if is_unfinished(lines)]

    def list(self) -> list[Run]:
        """Every readable run, finished or interactive, oldest first. `verify` names the others."""
        found = list[Run]()
        for run_id, lines in self.log.by_run().items():
            with suppress(StoreError, VerificationError):
                found.append(Run(self, run_id, lines))
        return found

    def run_ids(self) -> tuple[str, ...]:
        """The ids of every run that LOG names and that is not unfinished, damaged ones included, oldest first."""
        return tuple(run_id for run_id, lines in self.log.by_run().items() if not is_unfinished(lines))

    def open(self, run_id: str) -> Run:
        """A run to read, by its id or by the id of one of its snapshots.

        Raises:
            StoreError: there is no such run, it is not finished, or it cannot be read.
            VerificationError: its lines contradict each other.
        """
        run_id = run_named(run_id)
        if not RUN_ID.fullmatch(run_id) or not (lines := self.log.of(run_id)):
            hint = "`log --of runs` lists them"
            raise StoreError(f"Expected a run in this folder, got none - at {run_id}", hint=hint)
        return Run(self, run_id, lines)

    def starter_of(self, run_id: str) -> str | None:
        """The principal who started a run, finished or not; None if nothing says who."""
        with suppress(ScopedRetrievalError):
            return next((line.body.get("started_by") for line in self.log.of(run_id)), None)
        return None


def _staged_schema(columns: Sequence[str]) -> pa.Schema:
    """The schema of the requests of a staged run, including those `columns` that plugins may add."""
    return REQUESTS.widened(REQUESTS.schema, columns).append(_SHARD)


class StagedRun:
    """A run being written. If several processes answer a shard, the first line counts."""

    def __init__(self, store: Runs, run_id: str) -> None:
        self.store = store
        self.run_id = run_id
        self.folder = store.path / run_id
        self.begun = store.log.of(run_id)[0]
        expect_format(self.begun.body, run_id)
        self._requests = read_parquet(self.folder / STAGE / "requests.parquet", _staged_schema)
        self.failures = read_parquet(self.folder / STAGE / "failures.parquet", FAILURES.schema)

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
        return mine, self.failures if shard == self.begun.body["shards"] else FAILURES.empty()

    @cached_property
    def inputs(self) -> Mapping[str, pa.Table]:
        """The tables that are the same for all requests."""
        return read_inputs(self.store, self.begun)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that it began with."""
        return json.loads(self.inputs["settings"]["settings"][0].as_py())

    def snapshot_ids(self, request_ids: Iterable[str]) -> dict[str, str]:
        """The snapshot id of each of these requests, by request id."""
        return {request_id: snapshot_id(self.run_id, self._numbers[request_id]) for request_id in sorted(request_ids)}

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {request_id: number for number, request_id in enumerate(self.request_ids, start=1)}

    def pending(self) -> list[int]:
        """Shards still to run: those without a line.

        Raises:
            ErasedError: the run was discarded.
            StoreError: LOG cannot be read now.
        """
        done = parts_of(self._lines)[0]
        return [shard for shard in self._shards if shard_name(shard) not in done]

    @property
    def _lines(self) -> list[Line]:
        """Its lines by now. A discarded run cannot be continued."""
        lines = [self.begun, *self.store.log.after([self.begun])]
        if of_kind(lines, "discard"):
            hint = "open it again and start a new run"
            raise ErasedError(f"Expected the run that was begun, got a discarded one - at {self.run_id}", hint=hint)
        return lines

    @property
    def _shards(self) -> range:
        """All shards. The last one is for requests that failed on arrival."""
        return range(self.begun.body["shards"] + (1 if self.begun.body["failures"] else 0))

    def described(self, shards: list[int]) -> str:
        """The remaining work in words: `answering 300 requests in 2 shards`."""
        if not shards:
            return "every request is answered"
        mine = pc.sum(pc.is_in(self._requests["shard"], pa.array(shards, pa.int32()))).as_py() or 0
        requests = mine + (self.failures.num_rows if self.begun.body["shards"] in shards else 0)
        return f"answering {counted(requests, 'request')} in {counted(len(shards), 'shard')}"

    def write(
        self,
        shard: int,
        tables: Mapping[str, pa.Table],
        vectors: Vectors | None = None,
        seconds: Mapping[str, float] | None = None,
    ) -> None:
        """Store a finished shard: its parts, then its line.

        Raises:
            ErasedError: the run was discarded.
            StoreError: the shard cannot be written.
        """
        requests = tables["snapshots"].num_rows
        took = {f"shard {shard}": LineTimings(sum(seconds.values()), requests, seconds)} if seconds else {}
        stored = stored_whole(tables, vectors, took)
        header = {name: self.begun.body[name] for name in HEADER}
        self.store.commit_files(
            "shard",
            lambda files: header | write_parts(self.folder, shard_name(shard), stored, files),
            lambda: shard in self.pending(),
        )

    def finish(self) -> Run:
        """Add the line to LOG, and remove the stage. Every shard must be done."""
        if pending := self.pending():
            raise StoreError(f"Expected every shard, got {len(pending)} still to run - at {self.run_id}")
        self.store.log.commit("run", {"run_id": self.run_id}, lambda: is_unfinished(self._lines))
        remove_tree(self.folder / STAGE)
        return Run(self.store, self.run_id)


SHRINKS = 8
"""From so many files on, a run takes less room in Parquet, whose parts have a size of their own."""
FILES_EACH = 512
"""Files per shard of a compacted run; most have one snapshot."""


def compact(store: Runs, run_id: str) -> Run:
    """The run as Parquet parts; a run that has them is returned unchanged.

    Raises:
        StoreError: a file that LOG names is missing or changed. No part of it was named.
    """
    run_id = (run := store.open(run_id)).run_id
    waiting = {*run.files}  # its session may go on
    while files := [file for file in run.files if file in waiting][:FILES_EACH]:
        names = [name for file in files for name in run.files[file]]
        store.commit_files(
            "shard",
            lambda parts, run=run, names=names: _written(run, names, parts),
            lambda run=run: not of_kind(store.log.after(run.lines), "shard", "erase"),
        )
        run = Run(store, run_id)
        for file in {*files} - {*run.files}:
            live_file(store.path, file).unlink(missing_ok=True)
    return run


def _written(run: Run, names: list[str], files: list[Place]) -> dict[str, Any]:
    """Write some snapshots as the parts of a shard, see `commit_files`; returns what its line says."""
    make_folders(run.folder, run.store.path)
    stored = run.tables(dict.fromkeys([*STORED, "texts", "timings"]), names)
    stored["texts"] = distinct_texts(stored["texts"])
    return run.header | write_parts(run.folder, shard_name(len(run.shards)), stored, files)
