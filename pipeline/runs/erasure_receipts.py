"""Receipts of erasures: the texts removed from a run, and the parts that were rewritten.

runs/receipts/<sha256>.json       run, hashes of the erased texts, rewritten parts; LOG contains its SHA-256
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ...nodes.errors import VerificationError
from ..storage.durable import exists, make_folders
from .files import json_bytes, read_json, sha256_of, write_bytes
from .log_lines import LogEntry
from .run import Run
from .store import RunStore

__all__ = ["Erased", "erased_from", "write_receipt"]

RECEIPTS = "receipts"


@dataclass(frozen=True)
class Erased:
    """The erasures from a run: hashes of removed texts, and the SHA-256 of each rewritten part."""

    texts: frozenset[str] = frozenset()
    parts: dict[str, str] = field(default_factory=dict)


def write_receipt(store: RunStore, receipt: dict[str, Any]) -> str:
    """Write a receipt named by its SHA-256, which is returned."""
    data = json_bytes(receipt)
    sha256 = hashlib.sha256(data).hexdigest()
    folder = store.path / RECEIPTS
    make_folders(folder, store.path)
    return write_bytes(folder / f"{sha256}.json", data, sync=True)


def erased_from(store: RunStore, run: Run, lines: Iterable[LogEntry]) -> Erased:
    """The content of the receipts named by these lines of LOG; lines of other kinds are ignored.

    A receipt accounts for texts and their parts. It cannot vouch for any other file of a run.

    Raises:
        VerificationError: a receipt is missing, not the one that LOG names, or names files that erasures do not
            rewrite.
    """
    texts: set[str] = set()
    parts: dict[str, str] = {}
    lines = list(lines)
    upgraded = max((line.sequence for line in lines if line.kind == "upgrade"), default=0)
    for line in lines:
        if line.kind == "erase":
            found = _read_receipt(store, line)
            replaced = line.sequence < upgraded  # the upgrade rewrote every part without the erased texts
            _check_receipt(found, run, line, parts=not replaced)
            texts.update(found["texts"])
            parts |= {} if replaced else found["parts"]
    return Erased(frozenset(texts), parts)


def _check_receipt(receipt: dict[str, Any], run: Run, line: LogEntry, *, parts: bool) -> None:
    at = f"{RECEIPTS}/{line.body['receipt']}.json"
    if receipt["run_id"] != run.run_id:
        raise VerificationError(f"Expected a receipt of {run.run_id}, got one of another run - at {at}")
    if not receipt["texts"]:
        raise VerificationError(f"Expected a receipt that names erased texts, got one without any - at {at}")
    held = set() if run.live else {part["path"] for part in run.manifest["tables"]["texts"]["parts"]}
    if parts and (other := sorted(set(receipt["parts"]) - held)):
        raise VerificationError(f"Expected a receipt that names parts of texts, got {other[0]} - at {at}")


def _read_receipt(store: RunStore, line: LogEntry) -> dict[str, Any]:
    name = f"{RECEIPTS}/{line.body['receipt']}.json"
    path = store.path / name
    if not exists(path):
        raise VerificationError(f"Expected the receipt that LOG names, got none - at {name}")
    if sha256_of(path) != line.body["receipt"]:
        raise VerificationError(f"Expected the receipt that LOG names, got a changed one - at {name}")
    return read_json(path)
