"""`show --as export`: one self-contained file with everything an auditor needs to check a snapshot; `verify FILE` checks it.

    {"content": {"tables": {...}, "texts": {...}, "lineage": ..., "log": [...], ...}, "signature": "..."}

`exported` writes it, `check_file` checks it alone. The content is plain JSON: tables in stored form with the texts beside
them by SHA-256, the provenance, the lineage, the whole `line` of the log that names the snapshot, and from there to the
head what the hashes of lines are of, without what they say. The hash of a line needs all of it: where requests were
answered together, it names each of them, in a session with project, status and times. The signature is that of chains (`storage.signing`), over the content as JSON in one line with sorted keys; empty without a key.

Note: free text occurs only among the texts, so an erased text is absent from the file and all digests still verify. A
later erasure does not reach exported files. Without a trusted key or an anchor, a valid file proves that its parts belong
together, not who wrote it. An anchor vouches for whatever the log names: digest, id and block of the snapshot, and the
lineage. The times of asking and writing are in no digest, so only a signature vouches for them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, ValidationError

from ....nodes.audit.records import RECORD, VIEWED, schema_with
from ....nodes.errors import InputError, VerificationError
from ....nodes.tables import PROVENANCE
from ...config.opening import signer_of
from ...config.settings import Settings
from ...parsing.data_files import bytes_of
from ...parsing.strict_json import strict_json
from ...progress import counted
from ...runs import replay
from ...runs.files import json_bytes
from ...runs.log import Line, digests_named, of_kind
from ...runs.parts import SCHEMAS, STORED, TEXTS, problems_in, references
from ...storage.chain import sealed
from ...storage.signing import Signer
from ..access import opened

MOST_LINES = 100_000
"""The most log lines in one file; a snapshot further from the head is exported with its own line alone."""


class _Content(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    format: Literal["scoped-retrieval/snapshot/2"] = "scoped-retrieval/snapshot/2"
    snapshot_id: str
    run_id: str
    erased: list[str]
    """Hashes of the texts that had been erased before the export."""
    tables: dict[str, list[dict[str, Any]]]
    texts: dict[str, str]
    provenance: dict[str, str]
    lineage: dict[str, Any]
    line: str
    log: list[str]


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    content: _Content
    signature: str

    @property
    def signed(self) -> str:
        """The text that is signed."""
        return json.dumps(self.content.model_dump(), sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True)
class CheckedExport:
    """The result of checking a file."""

    snapshot_id: str
    problems: tuple[str, ...]
    signed: bool
    """Whether the trusted key signed it; False if none was given."""
    head: str
    """The hash of the last line of the log in the file."""
    erased: int
    """Number of texts that had been erased before the export."""

    @property
    def ok(self) -> bool:
        """Whether no problem was found."""
        return not self.problems

    def as_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {"ok": self.ok, **asdict(self)}


def exported(settings: Settings, snapshot_id: str) -> dict[str, Any]:
    """The file of a snapshot that the principal audits, as JSON values.

    Raises:
        AccessError: the principal does not audit the snapshot, or it does not exist.
        StoreError: its run is damaged.
        VerificationError: stored data does not match its hashes.
    """
    hint = "an export holds what was decided about every row; `show --as xray` has your part of it"
    run = opened(settings, snapshot_id, auditors=hint).run
    found = replay(run, snapshot_id)
    stored = {name: run.table(name, snapshot_id=snapshot_id) for name in STORED}
    texts = run.beside(snapshot_id)["texts"]
    texts = texts.filter(pc.is_in(texts["sha256"], value_set=references(stored[RECORD])))
    own = own_line(run, snapshot_id)
    assert own is not None  # a run has the snapshots that its lines name
    lines = [line for line in run.store.log.lines() if line.number >= own.number]
    content = _Content(
        snapshot_id=snapshot_id,
        run_id=run.run_id,
        erased=list(found.erased),
        tables={name: _rows(table) for name, table in stored.items()},
        texts=dict(zip(texts["sha256"].to_pylist(), texts["text"].to_pylist(), strict=True)),
        provenance=found.provenance,
        lineage=run.lineage,
        line=own.text,
        log=[sealed(line.text) for line in (lines if len(lines) <= MOST_LINES else [own])],
    )
    file = _File(content=content, signature="")
    file.signature = signer_of(settings).signature(file.signed)
    return file.model_dump()


def own_line(run: Any, snapshot_id: str) -> Line | None:
    """The line that made a snapshot durable: the first one with its digest."""
    lines = of_kind(run.lines, "live", "shard")
    return next((line for line in lines if snapshot_id in digests_named(line.body)), None)


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    return table.cast(_plain(table.schema)).to_pylist()


def _table(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    """The stored table of some rows.

    Raises:
        VerificationError: they have other columns, or values of another kind.
    """
    try:
        schema = schema_with(_plugin_columns(rows[0])) if name == RECORD and rows else SCHEMAS[name]
        found = pa.Table.from_pylist(rows, _plain(schema)).cast(schema)
    except (ValueError, TypeError, OverflowError, AttributeError, pa.ArrowException) as error:
        raise VerificationError(f"Expected values of {name}, got others", at="tables") from error
    if _rows(found) != rows:
        raise VerificationError(f"Expected the columns of {name}, got others", at="tables")
    return found


def _plugin_columns(row: Mapping[str, Any]) -> dict[str, list[str]]:
    """The columns of plugins in a row of the record, by table."""
    found = {}
    for name, table in VIEWED.items():
        if table.extra is not None and (own := row.get(name)):
            found[name] = [column for column in (own[0] if isinstance(own, list) else own) if "." in column]
    return found


def _plain(schema: pa.Schema) -> pa.Schema:
    """The schema with times as text, which JSON has."""
    return pa.schema([field.with_type(_plain_type(field.type)) for field in schema])


def _plain_type(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_list(type_):
        return pa.list_(_plain_type(type_.value_type))
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_plain_type(field.type)) for field in type_])
    return pa.string() if pa.types.is_timestamp(type_) else type_


def check_file(path: Path, signer: Signer, *, anchor: str | None = None) -> CheckedExport:
    """Check a file of `show --as export`.

    Args:
        path: the file.
        signer: its public key, if any, must have signed the file.
        anchor: a head of the log that was kept elsewhere; it must be among the log lines of the file.

    Raises:
        InputError: it cannot be read, or is not such a file.
    """
    data = bytes_of(path)
    try:
        file = _File.model_validate(strict_json(data))
    except (ValueError, ValidationError) as error:
        raise InputError(
            "Expected an exported snapshot, got another file", at=path, hint="`show --as export` writes them"
        ) from error
    content, problems = file.content, list[str]()
    signed = signer.trusted_key is not None and signer.is_signature(file.signed, file.signature)
    if signer.trusted_key is not None and not signed:
        got = "another" if file.signature else "none"
        problems.append(f"Expected a signature of {signer.trusted_key}, got {got}")
    try:
        problems += _problems(content)
    except VerificationError as error:
        problems.append(error.message)
    hashes = [_sha256(line) for line in content.log]
    if anchor is not None and anchor not in hashes:
        problems.append(f"Expected the anchor {anchor} on the way to the head, got another way")
    return CheckedExport(
        content.snapshot_id, tuple(problems), signed, hashes[-1] if hashes else "", len(content.erased)
    )


def _problems(content: _Content) -> Iterator[str]:
    """Check that the tables give the digest, the texts their hashes, and the log leads to both."""
    if content.tables.keys() != {*STORED}:
        raise VerificationError("Expected the tables of a snapshot, got others", at="tables")
    stored = {name: _table(name, content.tables[name]) for name in STORED}
    snapshots = stored["snapshots"]
    provenance = PROVENANCE.build({"part": list(content.provenance), "value": list(content.provenance.values())})
    if snapshots.num_rows != 1:
        rows = counted(snapshots.num_rows, "row")
        raise VerificationError(f"Expected one snapshot, got {rows}", at="tables.snapshots")
    snapshot = snapshots.to_pylist()[0]
    texts = pa.Table.from_pylist([{"sha256": sha256, "text": text} for sha256, text in content.texts.items()], TEXTS)
    for problem in problems_in(stored, texts, provenance, content.erased):
        yield f"{problem.detail} - at {problem.part}"
    if snapshot["snapshot_id"] != content.snapshot_id:
        yield f"Expected the tables of {content.snapshot_id}, got those of another snapshot - at tables.snapshots"
    own = _own_body(content)
    if digests_named(own).get(content.snapshot_id) != snapshot["snapshot_digest"]:
        yield "Expected the log to name the snapshot with its digest, got another - at line"
    if _sha256(json_bytes(content.lineage)) != own["lineage_sha256"]:
        yield "Expected the lineage that the log names, got another - at lineage"


def _own_body(content: _Content) -> Mapping[str, Any]:
    """The line that names the snapshot or its run, from which the others chain.

    Raises:
        VerificationError: there is none, or they do not chain.
    """
    lines = [strict_json(line) for line in content.log]
    if not lines or sealed(content.line) != content.log[0]:
        raise VerificationError("Expected the line with which the log begins, got another", at="line")
    for place in range(1, len(lines)):
        if lines[place]["previous"] != _sha256(content.log[place - 1]):
            raise VerificationError("Expected lines of the log that chain, got another", at=f"log[{place}]")
    body = strict_json(content.line)["body"]
    if body["kind"] not in ("live", "shard") or body["run_id"] != content.run_id:
        raise VerificationError(f"Expected the line that names the snapshot of {content.run_id}, got none", at="line")
    return body


def _sha256(data: str | bytes) -> str:
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()
