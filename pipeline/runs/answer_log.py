"""The log of answers that were verified: what was found, in which answer, against which snapshot, without a word of it (S1.29).

runs/answers/<sha256>.json        one verified answer; LOG holds its SHA-256 as a line of the snapshot's run

What one would otherwise get wrong: a log of texts would keep what `erase` takes away. So an entry holds kinds, places and
hashes: the words of the answer lie with whoever has the answer, those of a record in the texts of its run, as long as
they are there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from ...nodes.errors import VerificationError
from ..durable import file_sha256, make_folders
from .files import read_json, write_bytes
from .log import Line
from .store import RunStore

__all__ = ["FOLDER", "KIND", "check_answers", "log_answer", "logged_answers", "sha256_of_text"]

FOLDER = "answers"
KIND = "answer"
"""The kind of its line in LOG."""


def sha256_of_text(text: str | None) -> str | None:
    """The hash under which a run stores a text; of nothing, nothing."""
    return None if text is None else hashlib.sha256(text.encode()).hexdigest()


def log_answer(store: RunStore, entry: dict[str, Any]) -> str:
    """Write an entry and its line in LOG; returns its SHA-256. The same entry twice is one file and two lines.

    Raises:
        StoreError: the folder cannot be written to.
    """
    data = (json.dumps(entry, sort_keys=True, indent=1) + "\n").encode()
    sha256 = hashlib.sha256(data).hexdigest()
    folder = store.path / FOLDER
    make_folders(folder, store.path)
    write_bytes(folder / f"{sha256}.json", data, sync=True)
    store.log.append(KIND, entry["run_id"], entry=sha256, snapshot_id=entry["snapshot_id"])
    return sha256


def logged_answers(store: RunStore, snapshots: Collection[str]) -> list[dict[str, Any]]:
    """The entries of some snapshots in the order of LOG, with what records say where their texts are still there.

    Raises:
        VerificationError: an entry is missing or not the one that LOG names.
    """
    wanted = set(snapshots)
    entries = [
        _entry(store, line) for line in store.log.lines() if line.kind == KIND and line.body["snapshot_id"] in wanted
    ]
    texts: dict[str, dict[str, str]] = {}
    for run_id in dict.fromkeys(entry["run_id"] for entry in entries if entry["facts"]):
        known = store.open(run_id).texts
        texts[run_id] = dict(zip(known["sha256"].to_pylist(), known["text"].to_pylist(), strict=True))
    return [
        entry
        | {
            "facts": [
                {name: value for name, value in fact.items() if name not in _HASHED}
                | {name.removesuffix("_sha256"): texts[entry["run_id"]].get(fact[name]) for name in _HASHED}
                for fact in entry["facts"]
            ]
        }
        for entry in entries
    ]


_HASHED = ("field_sha256", "canonical_sha256", "locator_sha256")


def check_answers(store: RunStore, lines: Iterable[Line]) -> list[tuple[str, bool]]:
    """The entries that these lines of LOG name and that are missing (True) or changed (False), by file."""
    wrong = []
    for line in lines:
        if line.kind == KIND:
            found = file_sha256(_file(store, line))
            if found != line.body["entry"]:
                wrong.append((f"{FOLDER}/{_file(store, line).name}", found is None))
    return wrong


def _entry(store: RunStore, line: Line) -> dict[str, Any]:
    wrong = check_answers(store, [line])
    if wrong:
        name, missing = wrong[0]
        raise VerificationError(
            f"Expected the entry that LOG names, got {'none' if missing else 'another'} - at {name}"
        )
    return read_json(_file(store, line))


def _file(store: RunStore, line: Line) -> Path:
    return store.path / FOLDER / f"{line.body['entry']}.json"
