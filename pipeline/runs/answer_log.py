"""The log of verified answers: lines of LOG with findings, answer and snapshot, without their text (S1.29).

Note: a log of texts would retain what `erase` removes, and so would hashes of values, as dates and amounts can be
guessed. An entry contains kinds, places, ids of records, and hashes of the whole answer and of field names: the text of
the answer is only in the answer itself, that of a record in the texts of its run, until erased.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from typing import Any

from ...nodes.tables import STRUCTURED_FACTS
from .store import Runs

__all__ = ["log_answer", "logged_answers", "sha256_of_text"]


def sha256_of_text(text: str | None) -> str | None:
    """The hash under which a run stores a text; None for None."""
    return None if text is None else hashlib.sha256(text.encode()).hexdigest()


def log_answer(store: Runs, entry: Mapping[str, Any]) -> str:
    """Append an entry to LOG; returns the hash of its line.

    Raises:
        StoreError: the folder cannot be written to.
    """
    line = store.log.commit("answer", entry)
    assert line is not None
    return line.hash


def logged_answers(store: Runs, snapshots: Collection[str]) -> list[dict[str, Any]]:
    """The entries of some snapshots in the order of LOG, with the values of records whose texts are not erased.

    Raises:
        VerificationError: an entry was changed.
    """
    wanted = set(snapshots)
    entries = [
        dict(line.body) for line in store.log.lines_with('"kind":"answer"') if line.body["snapshot_id"] in wanted
    ]
    on_record = {id_: _on_record(store, id_) for id_ in {e["snapshot_id"] for e in entries if e["facts"]}}
    return [
        {name: value for name, value in entry.items() if name != "kind"}
        | {"facts": [_readable(fact, on_record[entry["snapshot_id"]]) for fact in entry["facts"]]}
        for entry in entries
    ]


def _on_record(store: Runs, snapshot_id: str) -> dict[tuple[str, str | None], dict[str, Any]]:
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
