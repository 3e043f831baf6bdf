"""Recorded projections: the sources of each model input, to reproduce it byte for byte and to explain it.

    store = ContextStore.of(settings)
    store.record(projections)          # a line of LOG
    store.replay("s-1/9")

A record is a line of the log of runs, which names the tables of the line, shared by SHA-256, and a file of their texts. An
input is not stored as a whole: a replay assembles it from the lines of its sources and verifies the digest. So erasing the
text of a row of evidence removes it from every input that showed it, and leaves the ledgers intact.

Note: the name of a record derives from the content of its tables (texts by their digests) and its principal. Recording
the same projection twice changes nothing. The id of a record finds that record alone; the id of an input that was
projected several times finds the record written last.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from secrets import token_hex
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.audit.records import TEXTS
from ...nodes.columns.digests import named_digest, stored_form, table_digest, text_sha256
from ...nodes.columns.keys import flat, positions
from ...nodes.context_tables import CONTEXT_TABLES
from ...nodes.errors import AccessError, ErasedError, InputError, VerificationError
from ...nodes.turns.fitting import shown_texts
from ...nodes.turns.frame import sealed
from ..config.opening import runs_of, signer_of
from ..config.settings import Settings
from ..progress import counted
from ..reading.access import readable_replay
from ..reading.grants import audits
from ..runs import Runs, replay
from ..runs.files import parquet_bytes, read_parquet, sha256_of, write_parquet
from ..runs.log import RunFolder
from ..runs.model_inputs import CONTEXTS, KIND, records_in, texts_of
from ..runs.parts import changed_texts
from ..storage.durable import make_folders
from ..storage.places import Place, place_of
from ..storage.signing import UNSIGNED
from .artifacts import Artifacts
from .projection import Projection, Projections, rows_of


@dataclass(frozen=True)
class Replayed:
    """A recorded turn. `erased` are sources whose text was erased; then `projection` has no input text."""

    projection: Projection
    record: str
    recorded_at: str
    principal: str
    erased: tuple[str, ...]


class ContextStore:
    """The records in a folder of runs."""

    def __init__(self, runs: str | Place, *, principal: str, settings: Settings | None = None) -> None:
        self.runs = RunFolder(place_of(str(runs)), signer_of(settings) if settings else UNSIGNED)
        self.principal, self.settings = principal, settings

    @classmethod
    def of(cls, settings: Settings) -> ContextStore:
        """The records next to the runs of these settings, for their principal."""
        return cls(settings["runs"], principal=settings.principal, settings=settings)

    # --- writing ----------------------------------------------------------------------------------------------------

    def record(self, projections: Projections, *, now: datetime | None = None) -> str:
        """Record projections durably; returns the name of the record.

        Raises:
            ErasedError: evidence was erased in the meantime, which the projections may show.
        """
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
        named = f'"record":"{record}"'
        if records_in(self.runs, named):
            return record
        store = Runs(self.runs.path) if self.settings is None else runs_of(self.settings, create=True)
        turns = projections.tables["context_turns"]

        def written(files: list[Place]) -> dict[str, Any]:
            if files:  # a sweep removed them: their rows may be erased
                raise ErasedError("Expected no erasure, got one or a `gc`", at=record, hint="project them again")
            make_folders(store.path / CONTEXTS, store.path)
            files.append(store.path / CONTEXTS / f"{token_hex(16)}.parquet")
            write_parquet(files[0], pa.Table.from_arrays([text_sha256(known), known], schema=TEXTS), sync=True)
            return {
                "record": record,
                "recorded_at": (now or datetime.now(UTC)).isoformat(),
                "principal": self.principal,
                "projects": sorted({project for project in turns["project"].to_pylist() if project}),
                "inputs": turns["input_id"].to_pylist(),
                "snapshots": sorted(
                    {name for names in stored["model_inputs"]["snapshot_ids"].to_pylist() for name in names}
                ),
                "tables": {name: store.share(parquet_bytes(table)) for name, table in stored.items()},
                "texts": files[0].name,
            }

        store.commit_files(KIND, written, lambda: not records_in(store, named))
        return record

    # --- reading ----------------------------------------------------------------------------------------------------

    def records(self) -> list[Mapping[str, Any]]:
        """The records that the principal may read, oldest first, as their lines describe them."""
        return [each for each in records_in(self.runs) if self._may_read(each)]

    @property
    def unreadable(self) -> int:
        """Number of lines of the log that were changed, which may be of records."""
        return sum(isinstance(line, bytes) for line in self.runs.log.each())

    def _may_read(self, record: Mapping[str, Any]) -> bool:
        if record["principal"] == self.principal:
            return True
        return self.settings is not None and bool(record["projects"]) and audits(self.settings, record["projects"])

    def replay(self, what: str) -> Replayed:
        """A recorded model input, assembled again and verified by its digest: the only input of a record, or, by the id
        of an input, that of its last record.

        Raises:
            AccessError: it is in no record that the principal may read, or shows what they may no longer see.
            InputError: a record has several inputs.
            VerificationError: the stored tables do not reproduce the recorded input.
            StoreError: the record cannot be read.
        """
        records = self.records()
        for record in records:
            if record["record"] == what:
                if len(record["inputs"]) != 1:
                    raise InputError.described("the record of one input", f"one of {len(record['inputs'])}", what,
                                               hint="`log --of inputs` names its inputs: ask for one of them.")  # fmt: skip
                return self._replayed(record, record["inputs"][0])
        if having := [record for record in records if what in record["inputs"]]:
            return self._replayed(having[-1], what)
        raise AccessError(
            f"Expected an answer, a run or a model input that you may read, got none - at {what}",
            hint="`log` lists answers, `log --of inputs` the inputs that `context project` recorded"
            + (
                f"; {counted(changed, 'damaged line')}: `verify` names what differs"
                if (changed := self.unreadable)
                else ""
            ),
        )

    def children_of(self, snapshot_id: str) -> list[Replayed]:
        """The model inputs that were offered items of a snapshot, newest first: what the model really saw of it."""
        found = []
        for record in reversed(self.records()):
            if snapshot_id in record["snapshots"]:
                inputs = self._table(record, "model_inputs")
                rows = inputs.select(["input_id", "snapshot_ids"]).to_pylist()
                mine = [row["input_id"] for row in rows if snapshot_id in row["snapshot_ids"]]
                for input_id in mine:
                    with suppress(AccessError):  # it shows an item that was withdrawn
                        found.append(self._replayed(record, input_id, whole=False))
        return found

    def _table(self, record: Mapping[str, Any], name: str) -> pa.Table:
        file = self.runs.shared(record["tables"][name])
        if sha256_of(file) != record["tables"][name]:
            raise VerificationError(f"Expected the part that was recorded, got another - at {record['record']}/{name}")
        return read_parquet(file, CONTEXT_TABLES[name].stored_schema)

    def _withheld(self, record: Mapping[str, Any]) -> set[str]:
        """The items of its snapshots that the present grants do not admit."""
        found = set[str]()
        if self.settings is None:
            return found
        for name in record["snapshots"]:
            seen, now = readable_replay(self.settings, name)
            found |= {*replay(seen.run, name).citations["evidence_id"].to_pylist()}
            found -= {*now.citations["evidence_id"].to_pylist()}
        return found

    def _replayed(self, record: Mapping[str, Any], input_id: str, *, whole: bool = True) -> Replayed:
        texts = read_parquet(texts_of(self.runs, record), TEXTS)
        if len(changed_texts(texts)):
            raise VerificationError(f"Expected the texts that were recorded, got others - at {record['record']}")
        rows = {name: self._rows(record, name, input_id, texts) for name in CONTEXT_TABLES}
        found = Projection.of(rows, Artifacts())
        if self._withheld(record).intersection(row["evidence_id"] for row in found.decisions):
            raise AccessError(
                f"Permission denied: the input shows what you may no longer see - at {input_id}",
                hint="an input is shown as it was given or not at all: project the turn again",
            )
        without = [row for row in found.decisions if row["place"] >= 0 and row["lines"] is None]
        if lost := [row["source_id"] for row in without if row["evidence_id"] is None]:  # no erasure removes those
            raise VerificationError(f"Expected the text of {lost[0]}, got none - at {record['record']}/texts")
        gone = tuple(row["source_id"] for row in without)
        complete = whole and not gone and found.model_input["tool_schemas"] is not None
        system, user = sealed(*shown_texts(found.decisions, found.turn["fences"])) if complete else ("", "")
        projection = replace(found, model_input={**found.model_input, "system_text": system, "user_text": user})
        if complete and hashlib.sha256(projection.neutral().encode()).hexdigest() != projection.input_sha256:
            raise VerificationError(f"Expected the input that was recorded, got another - at {input_id}")
        return Replayed(projection, record["record"], record["recorded_at"], record["principal"], gone)

    def _rows(self, record: Mapping[str, Any], name: str, input_id: str, texts: pa.Table) -> pa.Table:
        """The rows of one input, with their texts; null where a text was erased."""
        declared = CONTEXT_TABLES[name]
        table = rows_of(self._table(record, name), input_id)
        for column in declared.names(free_text=True):
            at = positions(table[column], texts["sha256"])
            value = flat(texts["text"]).take(pa.array(at, mask=at < 0))
            table = table.set_column(
                table.schema.get_field_index(column), pa.field(column, pa.large_string(), True), value
            )
        return table
