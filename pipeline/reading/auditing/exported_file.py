"""Checking an exported snapshot alone: nothing but the file, and a public key or a head that the auditor kept.

Reads: the file of `export`. Gives: `check_file`, a `Checked` with every problem in the order of the file.

Note: without a trusted key and without an anchor, a sound file says that its parts belong together, not who wrote it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ....nodes.audit.snapshot_digest import COVERED, snapshot_digests
from ....nodes.columns.digests import text_sha256
from ....nodes.errors import InputError, VerificationError
from ....nodes.schema import Table
from ...corpus.trust import Trust
from ...parsing.strict_json import strict_json
from ...runs.parts import references, with_texts
from .export import PAYLOAD_TYPE, PREDICATE_TYPE, STATEMENT_TYPE, plain, pre_authentication

__all__ = ["Checked", "check_file"]


@dataclass(frozen=True)
class Checked:
    """What checking a file found."""

    snapshot_id: str
    problems: tuple[str, ...]
    signed: bool
    """Whether the trusted key signed it; False where none was given."""
    head: str
    """The head of the log that the file leads to."""
    chained: bool
    """Whether the snapshot's own line and the way to the head are in the file."""
    erased: int
    """Texts that had been erased when it was written."""

    @property
    def ok(self) -> bool:
        """Nothing is wrong with it."""
        return not self.problems

    def as_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "ok": self.ok, "snapshot_id": self.snapshot_id, "problems": list(self.problems), "signed": self.signed,
            "head": self.head, "chained": self.chained, "erased": self.erased,
        }  # fmt: skip


def check_file(path: Path, trust: Trust, *, anchor: str | None = None) -> Checked:
    """Check a file of `export`.

    Args:
        path: the file.
        trust: its public key, if it has one, must have signed the file.
        anchor: a head of the log that was kept elsewhere; the file's way through the log must pass it.

    Raises:
        InputError: it cannot be read, or is no such file.
    """
    try:
        envelope = strict_json(path.read_bytes())
        payload = base64.b64decode(envelope["payload"], validate=True).decode()
        statement = strict_json(payload)
        predicate = statement["predicate"]
        kinds = envelope["payloadType"], statement["_type"], statement["predicateType"]
        name, head = predicate["snapshot_id"], predicate["log"]["head"]
        lines, erased = predicate["log"]["lines"] or (), predicate["erased"] or ()
        signatures = [one["sig"] for one in envelope["signatures"]]
        if not all(isinstance(one, str) for one in (name, head, *lines, *erased, *signatures)):
            raise TypeError("another kind of value")
    except OSError as error:
        raise InputError(f"Expected an exported snapshot, got {error.strerror} - at {path}") from error
    except (ValueError, KeyError, TypeError, binascii.Error) as error:
        raise InputError(
            f"Expected an exported snapshot, got another file - at {path}", hint="`export` writes them"
        ) from error
    if kinds != (PAYLOAD_TYPE, STATEMENT_TYPE, PREDICATE_TYPE):
        raise InputError.expected(PREDICATE_TYPE, str(kinds[2]), str(path))
    problems: list[str] = []
    signed = False
    if trust.trusted_key is not None:
        signed = any(trust.is_signature(pre_authentication(payload), one) for one in signatures)
        if not signed:
            problems.append(f"Expected a signature of {trust.trusted_key}, got {'another' if signatures else 'none'}")
    for check in (_tables, _log, _manifest):
        try:
            problems += check(statement)
        except (
            ValueError,
            KeyError,
            TypeError,
            IndexError,
            AttributeError,
            pa.ArrowException,
            VerificationError,
        ) as error:
            said = error.message if isinstance(error, VerificationError) else type(error).__name__
            problems.append(f"Expected {check.__name__.strip('_')} as `export` writes them, got {said}")
    if anchor is not None and not any(line.startswith(anchor) for line in lines):
        problems.append(f"Expected the anchor {anchor} on the way to the head, got another way")
    return Checked(name, tuple(problems), signed, head, bool(lines), len(erased))


def _tables(statement: Mapping[str, Any]) -> Iterator[str]:
    """The snapshot digest follows from the tables, each text from its hash, the block and what is readable from both."""
    predicate = statement["predicate"]
    stored = {table.name: _unpacked(predicate["tables"][table.name], table) for table in COVERED}
    subjects = {one["name"]: one["digest"]["sha256"] for one in statement["subject"]}
    request = stored["snapshots"]["request_id"]
    (digest,) = snapshot_digests(stored, _unpacked(predicate["provenance"], None), request.combine_chunks())
    snapshot = stored["snapshots"].to_pylist()[0]
    if not digest == snapshot["snapshot_digest"] == subjects[predicate["snapshot_id"]]:
        yield "Expected the snapshot digest to follow from the tables, got another"
    if snapshot["snapshot_id"] != predicate["snapshot_id"]:
        yield f"Expected the tables of {predicate['snapshot_id']}, got those of another snapshot"
    texts = pa.table(
        {
            "sha256": pa.array(list(predicate["texts"]), pa.string()),
            "text": pa.array(list(predicate["texts"].values()), pa.large_string()),
        }
    )
    for sha256, hashed in zip(texts["sha256"].to_pylist(), text_sha256(texts["text"]).to_pylist(), strict=True):
        if sha256 != hashed:
            yield f"Expected the text that was hashed, got another - at {sha256[:16]}"
            return
    missing = set(references(stored).to_pylist()) - set(predicate["texts"])
    if missing != set(predicate["erased"]):
        yield f"Expected {len(predicate['erased'])} erased texts, got {len(missing)} missing ones"
    tables = {table.name: with_texts(stored[table.name], table, texts) for table in COVERED}
    found = _Found(tables)
    if found.block is not None and not (
        hashlib.sha256(found.block.encode()).hexdigest() == snapshot["visible_sha256"] == subjects["block"]
    ):
        yield "Expected the block that was hashed, got another"
    if plain(found) != predicate["readable"]:
        yield "Expected the readable part to follow from the tables, got another"


class _Found:
    """The tables of a file in the form of a replay."""

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        self.tables = tables
        self.citations, self.conditions, self.decisions = (tables[n] for n in ("citations", "conditions", "decisions"))
        requests, blocks = tables["requests"].to_pylist(), tables["blocks"].to_pylist()
        self.request = requests[0] if requests else {}
        self.block = blocks[0]["text"] if blocks else ""


def _log(statement: Mapping[str, Any]) -> Iterator[str]:
    """The lines chain from the snapshot's own, which names its digest or its manifest, to the head."""
    predicate = statement["predicate"]
    previous = None
    bodies = []
    for raw in predicate["log"]["lines"]:
        hash_, _, text = raw.partition(" ")
        body = strict_json(text)
        bodies.append(body)
        if hashlib.sha256(text.encode()).hexdigest() != hash_ or (previous and body["previous"] != previous):
            yield f"Expected lines of the log that chain, got another - at line {body.get('sequence')}"
            return
        previous = hash_
    if not bodies:
        return
    if len(bodies) > 1 and previous != predicate["log"]["head"]:
        yield "Expected the lines of the log to end at the head, got another end"
    own, digest = bodies[0], statement["subject"][1]["digest"]["sha256"]
    if own["run_id"] != predicate["run_id"]:
        yield f"Expected a line of {predicate['run_id']}, got one of another run"
    if own["kind"] == "live" and own["snapshot_digest"] != digest:
        yield "Expected the log to name the snapshot digest, got another"


def _manifest(statement: Mapping[str, Any]) -> Iterator[str]:
    """Of a run of parts: the log names the manifest, the manifest the part, and the part the snapshot digest."""
    predicate = statement["predicate"]
    if predicate["manifest"] is None:
        return
    data = base64.b64decode(predicate["manifest"])
    part = base64.b64decode(predicate["snapshots_part"]["parquet"])
    bodies = [strict_json(raw.partition(" ")[2]) for raw in predicate["log"]["lines"]]
    named = [
        body["manifest_sha256"]
        for body in bodies
        if body["kind"] in ("run", "upgrade") and body["run_id"] == predicate["run_id"]
    ]
    if named and hashlib.sha256(data).hexdigest() not in named:
        yield "Expected the manifest that the log names, got another"
    hashes = {one["path"]: one["sha256"] for one in strict_json(data)["tables"]["snapshots"]["parts"]}
    if hashes.get(predicate["snapshots_part"]["path"]) != hashlib.sha256(part).hexdigest():
        yield "Expected the part that the manifest names, got another"
    rows = pq.read_table(io.BytesIO(part)).select(["snapshot_id", "snapshot_digest"]).to_pylist()
    if {
        "snapshot_id": predicate["snapshot_id"],
        "snapshot_digest": statement["subject"][1]["digest"]["sha256"],
    } not in rows:
        yield "Expected the part to name the snapshot with its digest, got another"


def _unpacked(text: str, declared: Table | None) -> pa.Table:
    table = pa.ipc.open_stream(base64.b64decode(text)).read_all()
    if declared is not None and not table.schema.equals(declared.widened(declared.stored_schema, table.column_names)):
        raise ValueError("another schema")
    return table
