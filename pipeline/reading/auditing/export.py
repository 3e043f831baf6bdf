"""`show --as export`: one self-contained file with everything an auditor needs to check a snapshot; `verify FILE` checks it.

Reads: a stored snapshot, its run's manifest and lineage, the log. Gives: a DSSE envelope around an in-toto Statement
(in-toto Attestation Framework, Statement v1; DSSE 1.0.2), signed with Ed25519 if a key is set. The subjects are the
block and the snapshot; the predicate contains the tables in stored form (Arrow IPC, base64), the texts by SHA-256, the
provenance, the lineage, and the lines of the log from the snapshot's own to the head.

Note: free text occurs only among the texts, so an erased text is absent from the file and all digests still verify. A
later erasure does not reach exported files.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ....nodes.audit.snapshot_digest import COVERED
from ....nodes.errors import AccessError, StoreError, VerificationError
from ...config.opening import trust_of
from ...config.settings import Settings
from ...runs import replay
from ...runs.log import Line, of_kind
from ...runs.parts import references
from ...storage.durable import read_whole
from ..access import audience_of, open_run

__all__ = ["PAYLOAD_TYPE", "PREDICATE_TYPE", "STATEMENT_TYPE", "exported", "plain", "pre_authentication"]

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:scoped-retrieval:snapshot:1"
MOST_LINES = 100_000
"""The most log lines in one file; a snapshot further from the head is exported without the lines up to it."""


def exported(settings: Settings, snapshot_id: str) -> dict[str, Any]:
    """The envelope of a snapshot that the principal audits.

    Raises:
        AccessError: the principal does not audit the snapshot, or it does not exist.
        StoreError: its run is damaged, or in no line of the log.
        VerificationError: stored data does not match its hashes.
    """
    run = open_run(settings, snapshot_id)
    if audience_of(settings, run, snapshot_id) != "audit":
        raise AccessError(
            f"Permission denied: only auditors of its projects may do this - at {snapshot_id}",
            hint="an export holds what was decided about every row; `show --as xray` has your part of it",
        )
    found = replay(run, snapshot_id)
    stored = {table.name: run.table(table.name, snapshot_id=snapshot_id) for table in COVERED}
    texts = run.texts_of(snapshot_id)
    texts = texts.filter(pc.is_in(texts["sha256"], value_set=references(stored)))
    lines = run.store.log.lines()
    own = own_line(run, snapshot_id)
    if own is None:
        raise StoreError(f"Expected a line of the log that names {run.run_id}, got none - at LOG")
    predicate = {
        "schema_version": 1,
        "snapshot_id": snapshot_id,
        "run_id": run.run_id,
        "status": found.status,
        "erased": list(found.erased),
        "readable": plain(found),
        "tables": {name: _packed(table) for name, table in stored.items()},
        "provenance": _packed(run.provenance),
        "texts": dict(zip(texts["sha256"].to_pylist(), texts["text"].to_pylist(), strict=True)),
        "lineage": run.lineage,
        "log": _log(lines, own),
        **_manifest(run, snapshot_id),
    }
    statement = {
        "_type": STATEMENT_TYPE,
        "subject": [
            {"name": "block", "digest": {"sha256": found.snapshot["visible_sha256"]}},
            {"name": snapshot_id, "digest": {"sha256": found.snapshot["snapshot_digest"]}},
        ],
        "predicateType": PREDICATE_TYPE,
        "predicate": predicate,
    }
    payload = json.dumps(statement, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    trust = trust_of(settings)
    signatures = [{"keyid": "", "sig": trust.signature(pre_authentication(payload))}] if trust.signing_key else []
    return {
        "payloadType": PAYLOAD_TYPE,
        "payload": base64.b64encode(payload.encode()).decode(),
        "signatures": signatures,
    }


def pre_authentication(payload: str) -> str:
    """The bytes that DSSE signs: the type and the payload, each with its length in bytes."""
    return f"DSSEv1 {len(PAYLOAD_TYPE)} {PAYLOAD_TYPE} {len(payload.encode())} {payload}"


def plain(found: Any) -> dict[str, Any]:
    """The human-readable parts of a replay, as JSON values."""
    tables = {
        "contract": found.tables["contracts"],
        "citations": found.citations,
        "conditions": found.conditions,
        "decisions": found.decisions,
    }
    values = {name: [_json_of(row) for row in table.to_pylist()] for name, table in tables.items()}
    return {"question": found.request.get("question"), "block": found.block, **values}


def _json_of(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.isoformat() if hasattr(value, "isoformat") else value for name, value in row.items()}


def _packed(table: pa.Table) -> str:
    """A table as an Arrow IPC stream, base64."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table.combine_chunks())
    return base64.b64encode(sink.getvalue()).decode()


def _log(lines: Sequence[Line], own: Line) -> dict[str, Any]:
    """The lines of the log from the snapshot's own to the head."""
    after = [line for line in lines if line.number >= own.number]
    kept = after if len(after) <= MOST_LINES else after[:1]
    return {"lines": [f"{line.hash} {text_of(line)}" for line in kept], "head": lines[-1].hash}


def text_of(line: Line) -> str:
    """The JSON of a line, whose SHA-256 is its hash."""
    content = {"body": line.body, "number": line.number, "previous": line.previous}
    return json.dumps(content, sort_keys=True, separators=(",", ":"))


def own_line(run: Any, snapshot_id: str) -> Line | None:
    """The line that made a snapshot durable: the one with its digest, else the one with its run's manifest."""
    for line in of_kind(run.lines, "live"):
        if snapshot_id in {one["snapshot_id"] for one in line.body["snapshots"]}:
            return line
    return next(iter(of_kind(run.lines, "run")), None)


def _manifest(run: Any, snapshot_id: str) -> dict[str, Any]:
    """For a run of Parquet parts: the manifest, and the part of SNAPSHOTS with the snapshot, whose hash is in the
    manifest.
    """
    if run.live:
        return {"manifest": None, "snapshots_part": None}
    for entry in run.manifest["tables"]["snapshots"]["parts"]:
        data = read_whole(run.folder / entry["path"])
        if hashlib.sha256(data).hexdigest() != entry["sha256"]:
            raise VerificationError(f"Expected SHA-256 {entry['sha256']}, got another - at {entry['path']}")
        if snapshot_id in run.part("snapshots", entry["path"])["snapshot_id"].to_pylist():
            part = {"path": entry["path"], "parquet": base64.b64encode(data).decode()}
            manifest = read_whole(run.folder / "manifest.json")
            return {"manifest": base64.b64encode(manifest).decode(), "snapshots_part": part}
    raise VerificationError(f"Expected the snapshot in a part of its run, got none - at {snapshot_id}")
