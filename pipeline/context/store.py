"""Recorded projections: the sources of each model input, to reproduce it byte for byte and to explain it.

    store = ContextStore.of(settings)
    store.record(projections)          # one folder below `<runs>/contexts`
    store.replay("s-1/9")

A record contains the tables of the line; texts are stored separately by SHA-256, as in runs. An input is not stored as
a whole: a replay assembles it from the lines of its sources and verifies the digest. So erasing the text of a row of
evidence removes it from every input that showed it, and leaves the ledgers intact.

Note: the name of a record derives from the content of its tables (texts by their digests) and its principal. Recording
the same projection twice changes nothing. The id of a record finds that record alone; the id of an input that was
projected several times finds the record written last.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.columns.digests import named_digest, stored_form, table_digest, text_sha256
from ...nodes.columns.keys import flat, positions
from ...nodes.context_tables import CONTEXT_TABLES
from ...nodes.errors import AccessError, InputError, StoreError, VerificationError
from ...nodes.turns.fitting import shown_texts
from ...nodes.turns.frame import sealed
from ..config.opening import runs_of
from ..config.settings import Settings
from ..reading.grants import audits
from ..runs.files import read_json, read_parquet, sha256_of, write_json, write_parquet
from ..runs.model_inputs import CONTEXTS, TEXTS, records_in
from ..runs.parts import changed_texts
from ..storage.durable import exists, make_folders
from ..storage.file_access import keep_out
from ..storage.places import Place, place_of
from .artifacts import Artifacts
from .projection import Projection, Projections, rows_of

_PARTS = {"record", "recorded_at", "principal", "projects", "inputs", "snapshots", "sha256"}


@dataclass(frozen=True)
class Replayed:
    """A recorded turn. `erased` are sources whose text was erased; then `projection` has no input text."""

    projection: Projection
    record: str
    recorded_at: str
    principal: str
    erased: tuple[str, ...]


class ContextStore:
    """The records below a folder of runs."""

    def __init__(self, runs: str | Place, *, principal: str, settings: Settings | None = None) -> None:
        self.path = place_of(str(runs)) / CONTEXTS
        self.principal, self.settings = principal, settings
        self.damaged: list[str] = []
        """Records whose manifest could not be read when they were last listed."""

    @classmethod
    def of(cls, settings: Settings) -> ContextStore:
        """The records next to the runs of these settings, for their principal."""
        return cls(settings["runs"], principal=settings.principal, settings=settings)

    # --- writing ----------------------------------------------------------------------------------------------------

    def record(self, projections: Projections, *, now: datetime | None = None) -> str:
        """Record projections durably; returns the name of the record."""
        texts: list[pa.Array] = []
        stored: dict[str, pa.Table] = {}
        for name, declared in CONTEXT_TABLES.items():
            table = projections.tables[name]
            stored[name] = stored_form(table, declared)
            if name == "model_inputs":  # assembled again from its sources, except the schemas
                texts += [flat(table["tool_schemas"])]
                continue
            texts += [
                flat(table[column]).drop_null().cast(pa.large_string()) for column in declared.names(free_text=True)
            ]
        known = pc.unique(pa.concat_arrays([each.cast(pa.large_string()) for each in texts]))
        about = {name: table_digest(table) for name, table in stored.items()} | {"principal": self.principal}
        record = f"ctx-{named_digest(about)[:24]}"
        if exists(self.path / record / "manifest.json"):
            return record
        if self.settings is not None:
            runs_of(self.settings, create=True)
        make_folders(self.path)
        keep_out(self.path)
        folder = self.path / record
        make_folders(folder)
        parts = {name: write_parquet(folder / f"{name}.parquet", stored[name], sync=True) for name in CONTEXT_TABLES}
        texts = pa.Table.from_arrays([text_sha256(known), known], schema=TEXTS)
        write_parquet(folder / "texts.parquet", texts, sync=True)
        turns = projections.tables["context_turns"]
        manifest = {
            "record": record,
            "recorded_at": (now or datetime.now(UTC)).isoformat(),
            "principal": self.principal,
            "projects": sorted({project for project in turns["project"].to_pylist() if project}),
            "inputs": turns["input_id"].to_pylist(),
            "snapshots": sorted(
                {name for names in stored["model_inputs"]["snapshot_ids"].to_pylist() for name in names}
            ),
            "sha256": parts,
        }
        write_json(folder / "manifest.json", manifest, sync=True)
        return record

    # --- reading ----------------------------------------------------------------------------------------------------

    def records(self) -> list[dict[str, Any]]:
        """The manifests that the principal may read, oldest first. Damaged records are listed in `damaged`."""
        found, self.damaged = [], []
        for folder in records_in(self.path):
            try:
                manifest = read_json(folder / "manifest.json")
                if not isinstance(manifest, dict) or not manifest.keys() >= _PARTS:
                    raise StoreError(f"Expected the manifest of a record, got another - at {folder.name}")
                found.append(manifest)
            except StoreError:
                self.damaged.append(folder.name)
        return sorted(
            (each for each in found if self._may_read(each)), key=lambda each: (each["recorded_at"], each["record"])
        )

    def _may_read(self, manifest: Mapping[str, Any]) -> bool:
        if manifest["principal"] == self.principal:
            return True
        return self.settings is not None and bool(manifest["projects"]) and audits(self.settings, manifest["projects"])

    def replay(self, what: str) -> Replayed:
        """A recorded model input, assembled again and verified by its digest: the only input of a record, or, by the id
        of an input, that of its last record.

        Raises:
            AccessError: it is in no record that the principal may read.
            InputError: a record has several inputs.
            VerificationError: the stored tables do not reproduce the recorded input.
            StoreError: the record cannot be read.
        """
        manifests = self.records()
        for manifest in manifests:
            if manifest["record"] == what:
                if len(manifest["inputs"]) != 1:
                    raise InputError.described("the record of one input", f"one of {len(manifest['inputs'])}", what,
                                               hint="`log --of inputs` names its inputs: ask for one of them.")  # fmt: skip
                return self._replayed(manifest, manifest["inputs"][0])
        if having := [manifest for manifest in manifests if what in manifest["inputs"]]:
            return self._replayed(having[-1], what)
        raise AccessError(
            f"Expected an answer, a run or a model input that you may read, got none - at {what}",
            hint="`log` lists answers, `log --of inputs` the inputs that `context project` recorded"
            + (f"; {len(self.damaged)} records are damaged: {', '.join(self.damaged)}" if self.damaged else ""),
        )

    def children_of(self, snapshot_id: str) -> list[Replayed]:
        """The model inputs that were offered items of a snapshot, newest first: what the model really saw of it."""
        found = []
        for manifest in reversed(self.records()):
            if snapshot_id in manifest["snapshots"]:
                inputs = self._table(manifest, "model_inputs")
                rows = inputs.select(["input_id", "snapshot_ids"]).to_pylist()
                mine = [row["input_id"] for row in rows if snapshot_id in row["snapshot_ids"]]
                found += [self._replayed(manifest, input_id, whole=False) for input_id in mine]
        return found

    def _table(self, manifest: Mapping[str, Any], name: str) -> pa.Table:
        file = self.path / manifest["record"] / f"{name}.parquet"
        if sha256_of(file) != manifest["sha256"][name]:
            raise VerificationError(
                f"Expected the part that was recorded, got another - at {manifest['record']}/{name}"
            )
        return read_parquet(file, CONTEXT_TABLES[name].stored_schema)

    def _replayed(self, manifest: Mapping[str, Any], input_id: str, *, whole: bool = True) -> Replayed:
        texts = read_parquet(self.path / manifest["record"] / "texts.parquet", TEXTS)
        if len(changed_texts(texts)):
            raise VerificationError(f"Expected the texts that were recorded, got others - at {manifest['record']}")
        rows = {name: self._rows(manifest, name, input_id, texts) for name in CONTEXT_TABLES}
        found = Projection.of(rows, Artifacts())
        without = [row for row in found.decisions if row["place"] >= 0 and row["lines"] is None]
        if lost := [row["source_id"] for row in without if row["evidence_id"] is None]:  # no erasure removes those
            raise VerificationError(f"Expected the text of {lost[0]}, got none - at {manifest['record']}/texts")
        gone = tuple(row["source_id"] for row in without)
        complete = whole and not gone and found.model_input["tool_schemas"] is not None
        system, user = sealed(*shown_texts(found.decisions, found.turn["fences"])) if complete else ("", "")
        projection = replace(found, model_input={**found.model_input, "system_text": system, "user_text": user})
        if complete and hashlib.sha256(projection.neutral().encode()).hexdigest() != projection.input_sha256:
            raise VerificationError(f"Expected the input that was recorded, got another - at {input_id}")
        return Replayed(projection, manifest["record"], manifest["recorded_at"], manifest["principal"], gone)

    def _rows(self, manifest: Mapping[str, Any], name: str, input_id: str, texts: pa.Table) -> pa.Table:
        """The rows of one input, with their texts; null where a text was erased."""
        declared = CONTEXT_TABLES[name]
        table = rows_of(self._table(manifest, name), input_id)
        for column in declared.names(free_text=True):
            at = positions(table[column], texts["sha256"])
            value = flat(texts["text"]).take(pa.array(at, mask=at < 0))
            table = table.set_column(
                table.schema.get_field_index(column), pa.field(column, pa.large_string(), True), value
            )
        return table
