"""The log of verified answers: findings, answer and snapshot, without their text (S1.29).

runs/answers/<sha256>.json        one verified answer; LOG contains its SHA-256 as a line of the snapshot's run

Note: a log of texts would retain what `erase` removes, and so would hashes of values, as dates and amounts can be
guessed. An entry contains kinds, places, ids of records, and hashes of the whole answer and of field names: the text of
the answer is only in the answer itself, that of a record in the texts of its run, until erased.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from typing import Any

from ...nodes.errors import VerificationError
from ...nodes.tables import STRUCTURED_FACTS
from ..storage.durable import file_sha256, make_folders
from ..storage.places import Place
from .files import json_bytes, read_json, write_bytes
from .log_lines import LogEntry
from .store import RunStore

__all__ = ["FOLDER", "KIND", "check_answers", "log_answer", "logged_answers", "sha256_of_text"]

FOLDER = "answers"
KIND = "answer"
"""The kind of lines of answers in LOG."""


def sha256_of_text(text: str | None) -> str | None:
    """The hash under which a run stores a text; None for None."""
    return None if text is None else hashlib.sha256(text.encode()).hexdigest()


def log_answer(store: RunStore, entry: dict[str, Any]) -> str:
    """Write an entry and its line in LOG; returns its SHA-256. The same entry twice is one file and two lines.

    Raises:
        StoreError: the folder cannot be written to.
    """
    data = json_bytes(entry)
    sha256 = hashlib.sha256(data).hexdigest()
    folder = store.path / FOLDER
    make_folders(folder, store.path)
    write_bytes(folder / f"{sha256}.json", data, sync=True)
    store.log.append(KIND, entry["run_id"], entry=sha256, snapshot_id=entry["snapshot_id"])
    return sha256


def logged_answers(store: RunStore, snapshots: Collection[str]) -> list[dict[str, Any]]:
    """The entries of some snapshots in the order of LOG, with the values of records whose texts are not erased.

    Raises:
        VerificationError: an entry is missing or is not the one that LOG names.
    """
    wanted = set(snapshots)
    entries = [
        _entry(store, line) for line in store.log.lines() if line.kind == KIND and line.body["snapshot_id"] in wanted
    ]
    on_record = {id_: _on_record(store, id_) for id_ in {e["snapshot_id"] for e in entries if e["facts"]}}
    return [
        entry | {"facts": [_readable(fact, on_record[entry["snapshot_id"]]) for fact in entry["facts"]]}
        for entry in entries
    ]


def _on_record(store: RunStore, snapshot_id: str) -> dict[tuple[str, str | None], dict[str, Any]]:
    """The values of records in a snapshot, by record and hash of the field name; null if erased."""
    rows = store.open(snapshot_id).table(STRUCTURED_FACTS.name, texts=True, snapshot_id=snapshot_id).to_pylist()
    return {
        (row["evidence_id"], sha256_of_text(row["field"])): {
            "field": row["field"], "canonical": row["value"], "locator": row["locator"],
        }
        for row in rows
    }  # fmt: skip


def _readable(fact: dict[str, Any], on_record: dict[tuple[str, str | None], dict[str, Any]]) -> dict[str, Any]:
    """A fact of an entry without hashes, with the value of the record."""
    recorded = on_record.get(
        (fact["record_id"], fact["field_sha256"]), dict.fromkeys(("field", "canonical", "locator"))
    )
    return {name: value for name, value in fact.items() if not name.endswith("_sha256")} | recorded


def check_answers(store: RunStore, lines: Iterable[LogEntry]) -> list[tuple[str, bool]]:
    """The entries named by these lines of LOG that are missing (True) or changed (False), by file."""
    wrong = []
    for line in lines:
        if line.kind == KIND:
            found = file_sha256(_file(store, line))
            if found != line.body["entry"]:
                wrong.append((f"{FOLDER}/{_file(store, line).name}", found is None))
    return wrong


def _entry(store: RunStore, line: LogEntry) -> dict[str, Any]:
    wrong = check_answers(store, [line])
    if wrong:
        name, missing = wrong[0]
        raise VerificationError(
            f"Expected the entry that LOG names, got {'none' if missing else 'another'} - at {name}"
        )
    return read_json(_file(store, line))


def _file(store: RunStore, line: LogEntry) -> Place:
    return store.path / FOLDER / f"{line.body['entry']}.json"
