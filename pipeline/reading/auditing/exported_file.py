"""Checks an exported snapshot from the file alone, with a public key or a head that the auditor kept.

Reads: the file of `show --as export`. Gives: `check_file`, a `CheckedExport` with every problem in the order of the file.

Note: without a trusted key or an anchor, a valid file proves that its parts belong together, not who wrote it. An
anchor vouches for whatever the log names: digest, id and block of the snapshot, and the lineage. The times of asking
and writing are in no digest, so for an interactive snapshot only a signature vouches for them.

A small file could fill the auditor's memory: the unpacked size of a stream or a Parquet part is determined without
unpacking it.
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
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ....nodes.audit.snapshot_digest import COVERED, snapshot_digests
from ....nodes.columns.digests import text_sha256
from ....nodes.errors import InputError, VerificationError, kind_of
from ....nodes.schema import Table
from ....nodes.tables import SNAPSHOTS
from ...corpus import Trust
from ...parsing.strict_json import strict_json
from ...progress import counted
from ...runs.files import json_bytes
from ...runs.parts import references, with_texts
from .export import PAYLOAD_TYPE, PREDICATE_TYPE, STATEMENT_TYPE, plain, pre_authentication
from .unpacked_sizes import page_bytes, unpacked_bytes

__all__ = ["CheckedExport", "check_file"]

MOST_BYTES = 1 << 26
"""The most memory that a table of one snapshot may take."""
_LIVE, _RUN = "live", "run"
"""Kinds of log lines that name a snapshot: by its digest, or by the manifest of its run."""
_KINDS: dict[type, str] = {str: "text", list: "a list", dict: "an object"}


@dataclass(frozen=True)
class CheckedExport:
    """The result of checking a file."""

    snapshot_id: str
    problems: tuple[str, ...]
    signed: bool
    """Whether the trusted key signed it; False if none was given."""
    head: str
    """The head of the log in the file."""
    chained: bool
    """Whether the file contains all log lines from the snapshot's own to the head."""
    erased: int
    """Number of texts that had been erased before the export."""

    @property
    def ok(self) -> bool:
        """Whether no problem was found."""
        return not self.problems

    def as_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "ok": self.ok, "snapshot_id": self.snapshot_id, "problems": list(self.problems), "signed": self.signed,
            "head": self.head, "chained": self.chained, "erased": self.erased,
        }  # fmt: skip


def check_file(path: Path, trust: Trust, *, anchor: str | None = None) -> CheckedExport:
    """Check a file of `show --as export`.

    Args:
        path: the file.
        trust: its public key, if any, must have signed the file.
        anchor: a head of the log that was kept elsewhere; it must be among the log lines of the file.

    Raises:
        InputError: it cannot be read, or is not such a file.
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
        raise InputError(f"{error.strerror}: exported snapshot {path}") from error
    except (ValueError, KeyError, TypeError, binascii.Error) as error:
        raise InputError(
            f"Expected an exported snapshot, got another file - at {path}", hint="`show --as export` writes them"
        ) from error
    if kinds != (PAYLOAD_TYPE, STATEMENT_TYPE, PREDICATE_TYPE):
        raise InputError.expected(PREDICATE_TYPE, str(kinds[2]), str(path))
    problems: list[str] = []
    signed = False
    if trust.trusted_key is not None:
        signed = any(trust.is_signature(pre_authentication(payload), one) for one in signatures)
        if not signed:
            problems.append(f"Expected a signature of {trust.trusted_key}, got {'another' if signatures else 'none'}")
    for check, place in ((_tables, "tables"), (_log, "log"), (_manifest, "manifest"), (_lineage, "lineage")):
        try:
            problems += check(statement)
        except VerificationError as error:
            problems.append(error.message)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, pa.ArrowException):
            problems.append(f"Expected values that `show --as export` writes, got others - at predicate.{place}")
    hashes = [line.partition(" ")[0] for line in lines]
    if anchor is not None and anchor not in hashes:
        problems.append(f"Expected the anchor {anchor} on the way to the head, got another way")
    return CheckedExport(name, tuple(dict.fromkeys(problems)), signed, head, hashes[-1:] == [head], len(erased))


def _held(document: Any, place: str, kind: type = str, at: str = "predicate") -> Any:
    """The value at a dotted place of a document.

    Raises:
        VerificationError: it is absent or of another kind.
    """
    value, walked = document, at
    for name in place.split("."):
        walked += f".{name}"
        if not isinstance(value, Mapping) or name not in value:
            raise VerificationError(f"Expected {_KINDS[kind]}, got none - at {walked}")
        value = value[name]
    if not isinstance(value, kind):
        raise VerificationError(f"Expected {_KINDS[kind]}, got {kind_of(value)} - at {walked}")
    return value


def _bytes(document: Any, place: str) -> bytes:
    """The bytes of a base64 value."""
    try:
        return base64.b64decode(_held(document, place), validate=True)
    except ValueError as error:
        raise VerificationError(f"Expected base64, got other text - at predicate.{place}") from error


def _subjects(statement: Mapping[str, Any]) -> dict[str, str]:
    """The SHA-256 of each subject, including the block and the snapshot, by name."""
    subjects = _held(statement, "subject", list, "statement")
    found = {_held(one, "name", str, "subject"): _held(one, "digest.sha256", str, "subject") for one in subjects}
    if len(found) < len(subjects):
        raise VerificationError("Expected each subject once, got one twice - at statement.subject")
    for name in ("block", statement["predicate"]["snapshot_id"]):
        if name not in found:
            raise VerificationError(f"Expected a subject {name}, got none - at statement.subject")
    return found


def _tables(statement: Mapping[str, Any]) -> Iterator[str]:
    """Check that the snapshot digest follows from the tables, and each text, the block and the readable part match."""
    predicate = statement["predicate"]
    stored = {table.name: _unpacked(predicate, f"tables.{table.name}", table) for table in COVERED}
    subjects, held = _subjects(statement), _held(predicate, "texts", dict)
    provenance = _unpacked(predicate, "provenance", None)
    if stored["snapshots"].num_rows != 1:
        rows = counted(stored["snapshots"].num_rows, "row")
        raise VerificationError(f"Expected one snapshot, got {rows} - at predicate.tables.snapshots")
    (digest,) = snapshot_digests(stored, provenance, stored["snapshots"]["request_id"].combine_chunks())
    snapshot = stored["snapshots"].to_pylist()[0]
    if not digest == snapshot["snapshot_digest"] == subjects[predicate["snapshot_id"]]:
        yield "Expected the snapshot digest to follow from the tables, got another - at predicate.tables"
    if snapshot["snapshot_id"] != predicate["snapshot_id"]:
        yield f"Expected the tables of {predicate['snapshot_id']}, got those of another snapshot - at predicate.tables"
    for sha256 in held:
        _held(held, sha256, str, "predicate.texts")
    texts = pa.table(
        {
            "sha256": pa.array(list(held), pa.string()),
            "text": pa.array(list(held.values()), pa.large_string()),
        }
    )
    for sha256, hashed in zip(texts["sha256"].to_pylist(), text_sha256(texts["text"]).to_pylist(), strict=True):
        if sha256 != hashed:
            yield f"Expected the text that was hashed, got another - at predicate.texts.{sha256[:16]}"
            return
    missing = set(references(stored).to_pylist()) - set(held)
    if missing != set(predicate["erased"]):
        expected = counted(len(predicate["erased"]), "erased text")
        yield f"Expected {expected}, got {len(missing)} missing - at predicate.texts"
    if _held(predicate, "status") != (status := "erased" if missing else snapshot["status"]):
        yield f"Expected the status {status}, got another - at predicate.status"
    tables = {table.name: with_texts(stored[table.name], table, texts) for table in COVERED}
    found = _Found(tables)
    if found.block is not None and not (
        hashlib.sha256(found.block.encode()).hexdigest() == snapshot["visible_sha256"] == subjects["block"]
    ):
        yield "Expected the block that was hashed, got another - at predicate.tables.blocks"
    if plain(found) != _held(predicate, "readable", dict):
        yield "Expected the readable part to follow from the tables, got another - at predicate.readable"


class _Found:
    """The tables of a file in the form of a replay."""

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        self.tables = tables
        self.citations, self.conditions, self.decisions = (tables[n] for n in ("citations", "conditions", "decisions"))
        requests, blocks = tables["requests"].to_pylist(), tables["blocks"].to_pylist()
        self.request = requests[0] if requests else {}
        self.block = blocks[0]["text"] if blocks else ""


def _log(statement: Mapping[str, Any]) -> Iterator[str]:
    """Check that the first line names the snapshot or the manifest of its run, and the others chain from it to the
    head.
    """
    predicate, bodies = statement["predicate"], _lines(statement)
    if not bodies:
        raise VerificationError("Expected the line that names the snapshot, got none - at predicate.log.lines")
    previous = None
    for place, (raw, body) in enumerate(zip(predicate["log"]["lines"], bodies, strict=True)):
        hash_, _, text = raw.partition(" ")
        if hashlib.sha256(text.encode()).hexdigest() != hash_ or (
            previous and _held(body, "previous", str, _line(place)) != previous
        ):
            yield f"Expected lines of the log that chain, got another - at {_line(place)}"
            return
        previous = hash_
    if len(bodies) > 1 and previous != predicate["log"]["head"]:
        yield "Expected the lines of the log to end at the head, got another end - at predicate.log.head"
    own, run = _held(bodies[0], "body", dict, _line(0)), _held(predicate, "run_id")
    if _held(own, "run_id", str, _line(0)) != run:
        yield f"Expected a line of {run}, got one of another run - at {_line(0)}"
    if (kind := _held(own, "kind", str, _line(0))) == _LIVE:
        yield from _named_alone(statement, own)
    elif kind != _RUN:
        yield f"Expected the line that names the snapshot, got one of kind {kind} - at {_line(0)}"


def _named_alone(statement: Mapping[str, Any], line: Mapping[str, Any]) -> Iterator[str]:
    """Check that the line of an interactive snapshot names it with its digest."""
    name = statement["predicate"]["snapshot_id"]
    named = {
        _held(one, "snapshot_id", str, _line(0)): one.get("snapshot_digest")
        for one in _held(line, "snapshots", list, _line(0))
    }
    if name not in named:
        yield f"Expected a snapshot that the log names, got {name} - at {_line(0)}"
    elif named[name] != _subjects(statement)[name]:
        yield f"Expected the log to name the snapshot digest, got another - at {_line(0)}"


def _line(place: int) -> str:
    return f"predicate.log.lines[{place}]"


def _lines(statement: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Each line of the log."""
    bodies = []
    for place, raw in enumerate(statement["predicate"]["log"]["lines"] or ()):
        try:
            body = strict_json(raw.partition(" ")[2])
        except ValueError:
            body = None
        if not isinstance(body, Mapping):
            raise VerificationError(f"Expected a hash and a JSON object, got other text - at {_line(place)}")
        bodies.append(body)
    return bodies


def _manifest(statement: Mapping[str, Any]) -> Iterator[str]:
    """For a run of parts: check that the log names the manifest, the manifest the part, and the part the snapshot."""
    predicate = statement["predicate"]
    lines = [_held(line, "body", dict, _line(place)) for place, line in enumerate(_lines(statement))]
    if predicate.get("manifest") is None and (not lines or lines[0].get("kind") == _LIVE):
        return  # an interactive snapshot, named by its own line
    named = [
        body.get("manifest_sha256")
        for body in lines
        if body.get("kind") == _RUN and body.get("run_id") == _held(predicate, "run_id")
    ]
    data, part = _bytes(predicate, "manifest"), _bytes(predicate, "snapshots_part.parquet")
    if named and hashlib.sha256(data).hexdigest() not in named:
        yield "Expected the manifest that the log names, got another - at predicate.manifest"
    parts = _held(_manifest_of(data), "tables.snapshots.parts", list, "manifest")
    hashes = {_held(one, "path", str, "manifest"): _held(one, "sha256", str, "manifest") for one in parts}
    if hashes.get(_held(predicate, "snapshots_part.path")) != hashlib.sha256(part).hexdigest():
        yield "Expected the part that the manifest names, got another - at predicate.snapshots_part"
    row = _unpacked(predicate, "tables.snapshots", SNAPSHOTS).to_pylist()[0]
    if _rows_of_snapshot(part, row["snapshot_id"]) != [row]:
        yield "Expected the part to have the row of the snapshot, got others - at predicate.snapshots_part"


def _rows_of_snapshot(part: bytes, name: str) -> list[dict[str, Any]]:
    """The row of a snapshot in a part of SNAPSHOTS; empty unless there is exactly one.

    Strings stay codes of a dictionary: one long value repeated in every row takes no more memory than its page.
    """
    at = "predicate.snapshots_part.parquet"
    try:
        footer, schema = pq.read_metadata(io.BytesIO(part)), pq.read_schema(io.BytesIO(part))
        _expect_columns(schema, SNAPSHOTS, at)
        _expect_size(page_bytes(part, footer), at)
        words = [field.name for field in schema if pa.types.is_string(field.type)]
        rows = pq.read_table(io.BytesIO(part), read_dictionary=words)
        ids = rows["snapshot_id"].combine_chunks()
        rows = rows.filter(pc.is_in(ids.dictionary, pa.array([name])).take(ids.indices))
    except (ValueError, LookupError, OSError, RecursionError, pa.ArrowException) as error:
        raise VerificationError(f"Expected snapshots in Parquet, got other bytes - at {at}") from error
    return rows.to_pylist() if rows.num_rows == 1 else []


def _manifest_of(data: bytes) -> Any:
    try:
        return strict_json(data)
    except ValueError as error:
        raise VerificationError("Expected a manifest in JSON, got other bytes - at predicate.manifest") from error


def _lineage(statement: Mapping[str, Any]) -> Iterator[str]:
    """Check that the graph has the SHA-256 in the snapshot's own line or the manifest of its run."""
    predicate = statement["predicate"]
    if not (lines := _lines(statement)):
        return
    own = _held(lines[0], "body", dict, _line(0))
    names = own if own.get("kind") == _LIVE else _manifest_of(_bytes(predicate, "manifest"))
    if hashlib.sha256(json_bytes(_held(predicate, "lineage", dict))).hexdigest() != names.get("lineage_sha256"):
        yield "Expected the lineage that the log or the manifest names, got another - at predicate.lineage"


def _unpacked(predicate: Mapping[str, Any], place: str, declared: Table | None) -> pa.Table:
    """A table of the file.

    Raises:
        VerificationError: it is not an Arrow stream, or has another schema.
    """
    data = _bytes(predicate, place)
    try:
        _expect_size(unpacked_bytes(data), f"predicate.{place}")
        table = pa.ipc.open_stream(data).read_all()
        table.validate(full=True)
    except (ValueError, OSError, pa.ArrowException) as error:
        raise VerificationError(f"Expected an Arrow stream, got other bytes - at predicate.{place}") from error
    if declared is not None:
        _expect_columns(table.schema, declared, f"predicate.{place}")
    return table


def _expect_size(size: int, at: str) -> None:
    if size > MOST_BYTES:
        raise VerificationError(f"Expected a table of at most {MOST_BYTES:,} bytes, got more - at {at}")


def _expect_columns(schema: pa.Schema, declared: Table, at: str) -> None:
    if not schema.equals(declared.widened(declared.stored_schema, schema.names)):
        raise VerificationError(
            f"Expected the columns that this version writes of {declared.name}, got others - at {at}"
        )
