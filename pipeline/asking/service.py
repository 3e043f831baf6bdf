"""What the interfaces share: a retriever opened under the settings, and what was written, for those who may see it.

Reads: settings, a folder of runs. Gives: `open_retriever`, `replayed`, `answer_report`, `answers_of`, `read_each`,
`snapshot_rows`, `events_of`, and by their names here `access` (who may look) and `verification`. Every interface
(command line, and later others) goes through these, so that the same request gives the same bytes everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.tables import BLOCKS, REQUESTS
from ..config.opening import runs_of
from ..config.settings import Settings
from ..reading.access import (
    Audience,
    audience_of,
    audited_projects,
    audits,
    audits_corpus,
    audits_whole,
    corpus_facts,
    expect_reader,
    hears_of_damage,
    known_runs,
    open_run,
    pinned_corpus,
    readable_snapshots,
    summaries_for,
    unknown,
)
from ..reading.verification import verified
from ..views.harness_forms import event
from ..views.xray import TABLES_READ

if TYPE_CHECKING:  # loaded by the commands that need them
    from ..corpus import Corpus
    from ..line.encoders.cross_encoder import PairReader
    from ..line.encoders.encoder import AnyEncoder
    from ..reading.answers import AnswerReport
    from ..reading.model_turns import ModelTurn
    from ..runs import Replay, Run
    from ..runs.states import RunState
    from .retriever import Retriever

T = TypeVar("T")
Row = dict[str, Any]
"""A row of a declared table by column: `nodes/tables/` has the types of its values."""
_BLOCK_REF = re.compile("[0-9a-f]{16}")
"""The id that a block prints in its first line."""

__all__ = [
    "Audience", "Models", "answer_report", "answers_of", "audience_of", "audited_projects", "audits", "audits_corpus",
    "bundle_of", "corpus_facts", "engine_of", "events_of", "expect_reader", "known_runs", "last_of_session",
    "load_models", "open_retriever", "open_run", "other_runs", "pinned_corpus", "read_each", "readable_snapshots",
    "replayed", "replayed_turn", "report_of", "snapshot_named", "snapshot_rows", "summaries_for", "unknown",
    "verified",
]  # fmt: skip


@dataclass(frozen=True)
class Models:
    """What retrievers of several principals share: an opened corpus, and the models of its questions."""

    corpus: Corpus
    encoder: AnyEncoder | None
    cross_encoder: PairReader | None


def load_models(settings: Settings) -> Models:
    """The corpus at its generation of now, and its models.

    Raises:
        StoreError: there is no corpus.
        ModelError: a model does not load.
    """
    from ..config.opening import corpus_of
    from ..line.encoders.encoder import encoder_of

    corpus = corpus_of(settings)
    profile = corpus.encoder_profile if "semantic" in settings["lanes"] else None
    return Models(corpus, encoder_of(profile, settings.encoder_choice), settings.loaded_cross_encoder())


@contextmanager
def open_retriever(
    settings: Settings,
    *,
    preset: Path | None = None,
    capture_withheld: bool = False,
    work_trees: Collection[Path] = (),
    models: Models | None = None,
) -> Iterator[Retriever]:
    """A retriever under the settings, closed at the end; its snapshots stay as they were written until `compact`.

    `preset` bounds every request; `capture_withheld` keeps, for auditors, the best matches out of scope. Only an interface
    whose user is in them names `work_trees`, whose `SHO.json` may give a request its mode. `models`, where several
    retrievers share them, are not loaded again.

    Raises:
        StoreError: there is no corpus, or one of another schema version.
    """
    from ...nodes.recall.bm25 import Bm25
    from ..config.opening import corpus_of
    from ..config.policies.tables import load_policies
    from .retriever import Retriever
    from .telemetry import telemetry_of

    corpus = corpus_of(settings) if models is None else models.corpus
    _expect_indexed(settings, corpus)
    retriever = Retriever.open(
        corpus,
        principal=settings.principal,
        runs=runs_of(settings, create=True),
        grants=settings.grants_path,
        policies=load_policies(settings["policies"], settings["weights"]),
        lanes=settings["lanes"],
        encoder=settings.encoder_choice if models is None else models.encoder,
        bm25=Bm25(variant=settings["bm25"], k1=settings["bm25_k1"], b=settings["bm25_b"]),
        shard_requests=settings["shard_requests"],
        preset=preset,
        capture_withheld=capture_withheld,
        work_trees=work_trees,
        tokenizers=settings["tokenizers"],
        cross_encoder=settings.loaded_cross_encoder() if models is None else models.cross_encoder,
        telemetry=telemetry_of(settings["telemetry"]),
        plugins=settings["plugins"],
    )
    try:
        yield retriever
    finally:
        retriever.close(compacted=False)


def _expect_indexed(settings: Settings, corpus: Corpus) -> None:
    """Refuse a corpus whose first `index` did not finish: it is empty and has no grants.

    Raises:
        StoreError: it is one.
    """
    from ..storage.durable import stands

    if stands(settings.grants_path) or corpus.projects():
        return
    from ...nodes.errors import StoreError
    from ..corpus.embedding_checkpoints import kept_texts

    kept = kept_texts(settings["corpus"])
    again = f"; about {kept:,} texts that it embedded are kept" if kept else ""
    raise StoreError(
        f"Expected a corpus with rows, got one whose first `index` did not end - at {settings['corpus']}",
        hint=f"run the same `index` again{again}; --no-semantic skips embedding",
    )


@contextmanager
def engine_of(settings: Settings) -> Iterator[Any]:
    """The engine that the settings name, for `Retriever.run`, ready before a run is begun.

    Raises:
        EngineError: it is Ray, which is not installed or does not answer.
    """
    if settings["engine"] == "ray":
        from ..engines.ray_engine import RayEngine

        with RayEngine(settings["ray_address"]).ready() as engine:
            yield engine
    else:
        from ..engines.process_engine import local_engine

        yield local_engine(settings["workers"])


def events_of(run: Run, snapshots: Collection[Mapping[str, Any]]) -> list[Row]:
    """The events of S0.83 of some snapshots of a run, in their order."""
    intents = _by_request(run, REQUESTS.name, "intent_id")
    items = _by_request(run, BLOCKS.name, "items")
    return [event(row, items.get(row["request_id"], 0), intents.get(row["request_id"])) for row in snapshots]


def _by_request(run: Run, table: str, column: str) -> dict[str, Any]:
    stored = run.stored(table)
    return dict(zip(stored["request_id"].to_pylist(), stored[column].to_pylist(), strict=True))


def snapshot_named(settings: Settings, name: str) -> str:
    """The snapshot id that a name stands for: itself, or for a block reference the last readable snapshot with that block.

    Raises:
        AccessError: no snapshot that the principal may read has this reference.
    """
    from ..runs import RunStore

    if not _BLOCK_REF.fullmatch(name):
        return name
    store = RunStore(settings["runs"], create=False)
    read, _ = read_each(settings, store.list(), lambda run: readable_snapshots(settings, run))
    found = [row["snapshot_id"] for _, rows in read for row in rows if row.get("block_ref") == name]
    if not found:
        raise unknown(f"retr-snap-{name}")
    return max(found)


def last_of_session(settings: Settings, session: str | None) -> str | None:
    """The last snapshot that the principal may read, of a session or of all; None where there is none.

    The last one is the one captured last, whichever run it is in: a run that began earlier may still be written to.
    Damaged runs have none.
    """

    def read_last(run: Run) -> list[Row]:
        # Snapshots of a batch run are in the order of its shards, which several workers may have answered.
        return readable_snapshots(settings, run, session=session, last=1 if run.live else None)

    read, _ = read_each(settings, runs_of(settings).newest(), read_last)
    found = [(row["created_at"], row["snapshot_id"]) for _, rows in read for row in rows]
    return max(found)[1] if found else None


def replayed(settings: Settings, snapshot_id: str) -> Replay:
    """The replay of a snapshot that the principal may read, reduced to a caller's part unless they audit it.

    Raises:
        AccessError: the snapshot is another's, or there is none.
        StoreError: its run is damaged.
        VerificationError: what is stored does not match its hashes.
    """
    _, found, audience = _replay_for(settings, snapshot_id)
    return found if audience == "audit" else found.for_caller()


def _replay_for(settings: Settings, snapshot_id: str) -> tuple[Run, Replay, Audience]:
    """The run of a snapshot that the principal may read, its replay and how much of it they may see; see `replayed`."""
    from ..runs import replay

    run = open_run(settings, snapshot_id)
    audience = audience_of(settings, run, snapshot_id)
    return run, replay(run, snapshot_id), audience


def replayed_turn(settings: Settings, event: Path, model_input: Path | None = None) -> ModelTurn:
    """A model turn from its event: each snapshot as `replayed` gives it; see `model_turns.replay_turn`."""
    from ..reading.model_turns import load_event, replay_turn

    return replay_turn(load_event(event), lambda name: replayed(settings, name), model_input)


def answer_report(settings: Settings, snapshot_id: str, answer: str) -> tuple[AnswerReport, str | None, str | None]:
    """An answer held against a snapshot that the principal may read, and the hash of its entry in the log of answers.

    Where it could not be logged, no hash, and as the third why; see `answers.verify_answer`.

    Raises:
        AccessError: the snapshot is another's.
    """
    from ...nodes.errors import StoreError
    from ..reading.answers import store_report, verify_answer

    run = open_run(settings, snapshot_id)
    audience_of(settings, run, snapshot_id)
    store = runs_of(settings)
    report = verify_answer(run, snapshot_id, answer)
    try:
        entry = store_report(store, report, answer, principal=settings.principal, at=datetime.now(UTC))
    except StoreError as error:
        return report, None, error.message
    except OSError as error:
        return (
            report,
            None,
            f"Expected to write the log of answers, got {error.strerror or type(error).__name__} - at runs",
        )
    return report, entry, None


def read_each(
    settings: Settings, runs: Iterable[Run], read: Callable[[Run], T]
) -> tuple[list[tuple[Run, T]], dict[str, str]]:
    """Each run with what is read of it, and which were left out because they are damaged, with the reason.

    A run that was compacted after it was opened is read again, from its parts.

    Those that the principal hears nothing of are left out without a word.
    """
    from ...nodes.errors import StoreError, VerificationError
    from ..runs import Run
    from ..runs.states import compacted_since

    found: list[tuple[Run, T]] = []
    damaged: dict[str, str] = {}
    for run in runs:
        try:
            try:
                found.append((run, read(run)))
            except (StoreError, VerificationError):
                if not compacted_since(run):
                    raise
                again = Run(run.folder)
                found.append((again, read(again)))
        except (StoreError, VerificationError) as error:
            if hears_of_damage(settings, run.run_id):
                damaged[run.run_id] = error.message
    return found, damaged


def other_runs(settings: Settings, *, but: Collection[str] = ()) -> list[RunState]:
    """The runs that the principal may know of and that cannot be read now, with their states; `but` were read already."""
    from ..runs import RunStore
    from ..runs.states import OK, states

    store = RunStore(settings["runs"], create=False)
    known = known_runs(settings, store)
    return [state for state in states(store, but=but) if state.state != OK and known(state.run_id)]


def answers_of(settings: Settings, snapshot_id: str | None = None) -> tuple[list[Row], int]:
    """The log of verified answers, of one snapshot or of every one that the principal may read, oldest first.

    Beside it how many runs were left out because they are damaged: damage of another user's run does not hide a principal's own.

    Raises:
        AccessError: the snapshot is another's.
        VerificationError: an entry is missing or was changed.
    """
    from ..runs import RunStore, logged_answers

    store = RunStore(settings["runs"], create=False)
    if snapshot_id is not None:
        audience_of(settings, open_run(settings, snapshot_id), snapshot_id)
        return logged_answers(store, [snapshot_id]), 0
    mine, damaged = read_each(settings, store.list(), lambda run: readable_snapshots(settings, run))
    return logged_answers(store, [row["snapshot_id"] for _, rows in mine for row in rows]), len(damaged)


def bundle_of(settings: Settings, snapshot_id: str) -> dict[str, Any]:
    """The `RetrievalBundle` of a stored snapshot, as far as the principal may see it.

    Raises:
        AccessError: the snapshot is another's, or there is none.
        StoreError: its run is damaged.
        VerificationError: what is stored does not match its hashes.
    """
    from ..config.policies.roles import max_age_days
    from ..views.bundle import TABLES_READ as BUNDLE_TABLES
    from ..views.bundle import bundle

    run, found, audience = _replay_for(settings, snapshot_id)
    rows = {name: found.tables[name].to_pylist() for name in BUNDLE_TABLES}
    role = rows["requests"][0]["role"] if rows["requests"] else None
    limit = max_age_days(run.stored("role_policies"), role)
    return bundle(rows, audit=audience == "audit", max_age_days=limit)


def report_of(settings: Settings, name: str, quality: Callable[[Run, list[str]], Any] | None = None) -> str:
    """The HTML report of a snapshot or a run, as far as the principal may see it.

    Args:
        quality: of a run, gives figures of its requests by their ids, for auditors of all of them.

    Raises:
        AccessError: it is another's, or there is none.
        StoreError: its run is damaged.
        VerificationError: what is stored does not match its hashes.
    """
    from ..views.report import TABLES_READ, snapshot_page
    from ..views.run_report import TABLES_READ as COUNTED
    from ..views.run_report import run_report

    run = open_run(settings, name)
    if name.startswith("retr-snap-"):
        audit = audience_of(settings, run, name) == "audit"
        took = run.request_seconds_of(name) if audit else None
        # Times of a whole batch tell of others' requests, too; a session that measured none has none.
        whole = audit and not run.live and audits_whole(settings, run)
        return snapshot_page(
            snapshot_rows(run, name, TABLES_READ),
            audit=audit,
            lineage=run.lineage if audit else None,
            took=took,
            seconds=run.node_seconds if whole and not (took and took.nodes) else None,
        )
    expect_reader(settings, run)
    snapshots = readable_snapshots(settings, run)
    asked = pa.array([row["request_id"] for row in snapshots], pa.string())
    tables = {table: run.table(table) for table in COUNTED}
    tables = {table: rows.filter(pc.is_in(rows["request_id"], asked)) for table, rows in tables.items()}
    audit = all("recalled" in row for row in snapshots)
    judged = quality(run, asked.to_pylist()) if quality and audit else None
    whole = audits_whole(settings, run)
    mine = {row["snapshot_id"] for row in snapshots}
    return run_report(
        run.run_id,
        snapshots,
        tables,
        audit=audit,
        settings=run.settings,
        seconds=run.node_seconds if whole else {},
        took={name: took for name, took in run.request_seconds.items() if name in mine} if audit else {},
        shards=[(f"shard {shard}", count, took) for shard, count, took in run.shard_seconds] if whole else (),
        quality=judged,
    )


def snapshot_rows(run: Run, snapshot_id: str, also: Collection[str] = ()) -> dict[str, list[Row]]:
    """The rows of one snapshot by table name, free text in place: what an x-ray is rendered from, and other tables.

    Raises:
        VerificationError: what is stored does not match its hashes.
    """
    from ..runs import replay

    tables = replay(run, snapshot_id).tables
    return {name: tables[name].to_pylist() for name in (*TABLES_READ, *also)}
