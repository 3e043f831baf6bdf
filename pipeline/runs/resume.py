"""Resuming a run: single requests of a principal are collected in few runs, so that `compact` writes few files.

A session writes to one run and keeps it locked. The next session of the same principal resumes the last run that is not
locked, if it has the same basis: the tables of the run, its settings, its graph.

Note: the lines of a run's files are in their order in LOG, and every request id occurs once in a run. So a run is not
resumed if the end of LOG does not name each of its files.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ...nodes.errors import ScopedRetrievalError
from ...nodes.tables import TABLES
from ..storage.durable import exists
from ..storage.locks import Hold, hold
from .files import sha256_of
from .live_files import live_file, live_files, read_live, read_settings
from .log import Log
from .log_lines import LogEntry
from .parts import PER_RUN, stored_tables
from .store import RunStore

GATHERED = 100
"""A run with this many snapshots is no longer resumed."""
LOOKED_INTO = 8
"""Runs that are examined to find one: if each question uses another generation, none matches."""


@dataclass(frozen=True)
class Left:
    """A run that its session left, locked by this one: its id, its snapshots so far, the requests that they answer."""

    run_id: str
    snapshots: int
    request_ids: frozenset[str]
    lineage_sha256: str
    hold: Hold


def left_open(
    store: RunStore, *, inputs: Mapping[str, pa.Table], settings: Mapping[str, Any], asked: Collection[str] = ()
) -> Left | None:
    """The latest run of a principal that can be resumed; None if there is none, and on an object store.

    `inputs` are the tables of `PER_RUN`, `settings` those of a new run of this session; the run has none of the
    requests `asked`.
    """
    if not isinstance(store.log, Log):
        return None
    with suppress(OSError, ScopedRetrievalError):
        wanted, looks = stored_tables(inputs, [TABLES[name] for name in PER_RUN]), 0
        for run_id, lines in _interactive_runs(store.log.recent(), settings.get("principal")):
            ids = frozenset(line.body["request_id"] for line in lines)
            if len(lines) < GATHERED and not ids & {*asked} and (held := hold(store.session_of(run_id))):
                if _same(store, run_id, lines, wanted, settings):
                    return Left(run_id, len(lines), ids, lines[0].body["lineage_sha256"], held)
                held.release()
                looks += 1
            if looks == LOOKED_INTO:
                break
    return None


def _interactive_runs(lines: Collection[LogEntry], principal: str | None) -> list[tuple[str, list[LogEntry]]]:
    """The interactive runs of a principal whose lines among these begin with the first snapshot, the last run first."""
    found: dict[str, list[LogEntry]] = {}
    for line in lines:
        if line.kind != "answer":
            found[line.run_id] = [*found.pop(line.run_id, ()), line]
    return [
        (run_id, of_run)
        for run_id, of_run in reversed(found.items())
        if all(
            line.kind == "live"
            and line.body["file"] == live_file(number)
            and line.body.get("started_by") == principal
            and "request_id" in line.body
            for number, line in enumerate(of_run, start=1)
        )
    ]


def _same(
    store: RunStore, run_id: str, lines: Sequence[LogEntry], wanted: Mapping[str, pa.Table], settings: Mapping[str, Any]
) -> bool:
    """Whether a run is open, matches these lines exactly, and has the same basis as this session."""
    folder = store.path / run_id
    if exists(folder / "manifest.json") or live_files(folder) != [line.body["file"] for line in lines]:
        return False
    if any(sha256_of(folder / "live" / line.body["file"]) != line.body["sha256"] for line in lines):
        return False  # new snapshots must not share a damaged run
    if {sha256_of(folder / "lineage.json")} != {line.body["lineage_sha256"] for line in lines}:
        return False
    first = folder / "live" / live_file(1)
    if read_settings(first) != settings:
        return False
    tables = read_live(first)
    return all(tables[name].equals(table) if name in tables else not table.num_rows for name, table in wanted.items())
