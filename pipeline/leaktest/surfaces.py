"""Surfaces: everything that a caller gets back from one state of a corpus, as text by name.

Reads a retriever, its caller's settings, probes. Gives `{probe: {surface: text}}`. Ids of snapshots and the folder of the test
are envelope and stand as placeholders. The surface `scores` is what the line computes from admissible rows, audit columns
included: no caller sees all of it, and no row outside may move it.
"""

from __future__ import annotations

import io
import json
import logging
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.errors import ScopedRetrievalError
from ...nodes.tables import TABLES
from ..retrieval import Retrieval
from ..runs.ids import SNAPSHOT_ID
from ..service import audited_projects, corpus_facts, open_run, readable_snapshots
from ..settings import Settings
from ..views import xray
from .probes import Probe

__all__ = ["ECHOES", "Surfaces", "audit_keys", "recorded_logs", "surfaces_of"]

Surfaces = dict[str, dict[str, str]]

ECHOES = frozenset({"xray text", "xray", "tables", "scores", "context block", "bundle"})
"""Surfaces that repeat the question."""

INSIDE = ("sub_queries", "score_terms", "ranked", "packs", "trimmed", "trims", "citations", "blocks")
"""Tables made from admissible rows alone."""


def surfaces_of(
    retriever: Any, settings: Settings, probes: Iterable[Probe], foreign: Sequence[str], folder: Path
) -> Surfaces:
    """What the caller gets for each probe, for asking in projects that are not theirs, and from lists of what is there.

    `settings` are those of the caller on this state: corpus, runs, grants and principal.
    """
    found: Surfaces = {}
    asked: dict[str, str] = {}
    for probe in probes:
        answer = retriever.retrieve(probe.fields)
        asked[probe.name] = answer.snapshot_id
        found[probe.name] = _answered(answer)
    for number, project in enumerate(foreign):
        found[f"foreign project {number + 1}"] = {"refusal": _refused(retriever, project)}
    run = open_run(settings, next(iter(asked.values())))
    if not audited_projects(settings, run):
        listed = readable_snapshots(settings, run)
        found["lists"] = {
            "corpus info": _json(corpus_facts(settings)),
            "snapshots": _json([{k: v for k, v in row.items() if k != "question"} for row in listed]),  # an echo
        }
    for name, snapshot_id in asked.items():
        rows = {t: run.table(t, texts=True, snapshot_id=snapshot_id).to_pylist() for t in xray.TABLES_READ}
        found[name]["xray text"] = xray.render_text(rows, audit=False)
        found[name]["xray"] = _json(xray.caller_rows(rows))
    return {name: {surface: _plain(text, folder) for surface, text in one.items()} for name, one in found.items()}


def audit_keys(surface: str, text: str) -> list[str]:
    """Columns for auditors that a surface made of tables shows, as `table.column`."""
    if surface not in ("xray", "tables"):
        return []
    shown = {(name, column) for name, rows in json.loads(text).items() for row in rows for column in row}
    return sorted(f"{name}.{column}" for name, column in shown if column not in TABLES[name].names(audience="caller"))


@contextmanager
def recorded_logs() -> Iterator[io.StringIO]:
    """All that is logged, warned or printed meanwhile, at every level and by every logger."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    root = logging.getLogger()
    loggers = [root, *(one for one in root.manager.loggerDict.values() if isinstance(one, logging.Logger))]
    levels = [(logger, logger.level) for logger in loggers]
    root.addHandler(handler)
    try:
        for logger in loggers:
            if logger is root or 0 < logger.level <= logging.CRITICAL:  # what is silenced on purpose stays silent
                logger.setLevel(logging.DEBUG)
        with redirect_stdout(stream), redirect_stderr(stream), warnings.catch_warnings():
            warnings.simplefilter("always")
            yield stream
    finally:
        root.removeHandler(handler)
        for logger, level in levels:
            logger.setLevel(level)


def _answered(found: Retrieval) -> dict[str, str]:
    return {
        "block": found.block,
        "citations": _json(found.citations),
        "citation map": _json(found.citation_map),
        "conditions": _json([found.status, found.action, found.conditions]),
        "event": _json(found.event),
        "observation": _json(found.observation),
        "context block": _json(found.context_block),
        "bundle": _json(replace(found, latency_ms=None).bundle),
        "tables": _json(_caller_tables(found.tables)),
        "scores": _json(_inside_tables(found.tables)),
    }


def _refused(retriever: Any, project: str) -> str:
    """What asking in a project that is not granted gives, its name apart: status and words, or an error's message."""
    try:
        found = retriever.retrieve({"question": "what is there?", "project": project, "purpose": "answer-question"})
        text = _json([found.status, found.action, found.conditions, found.citations, found.block])
    except ScopedRetrievalError as error:
        text = f"{type(error).__name__}: {error}"
    return text.replace(project, "PROJECT")


def _caller_tables(tables: Mapping[str, pa.Table]) -> dict[str, list[dict[str, Any]]]:
    """Caller columns of every table the line made, envelope left out."""
    shown = {}
    for name, table in tables.items():
        declared = TABLES[name]
        columns = [c for c in declared.names(audience="caller") if declared.columns[c].digest]
        if columns and "request_id" in declared.columns:
            shown[name] = declared.for_callers(table).select(columns).to_pylist()
    return shown


def _inside_tables(tables: Mapping[str, pa.Table]) -> dict[str, list[dict[str, Any]]]:
    shown = {name: tables[name] for name in INSIDE if name in tables}
    shown |= {
        name: tables[name].filter(pc.invert(tables[name]["withheld"]))
        for name in ("hits", "candidates")
        if name in tables
    }
    return {
        name: table.select([c for c in table.column_names if TABLES[name].columns[c].digest]).to_pylist()
        for name, table in shown.items()
    }  # fmt: skip


def _json(value: Any) -> str:
    return json.dumps(value, default=str, ensure_ascii=False, sort_keys=True)


def _plain(text: str, folder: Path) -> str:
    """The text with placeholders for the ids of snapshots, numbers apart, and for the folder of the test."""
    return SNAPSHOT_ID.sub(r"SNAPSHOT-\g<number>", text).replace(str(folder), "FOLDER")
