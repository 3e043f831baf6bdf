"""What the doors share: a retriever opened under the settings, and who may look at a snapshot.

Reads: settings, grants. Gives: `open_retriever`, `audience_of`, `snapshot_rows`. Every door (command line, and later
others) goes through these, so that the same request gives the same bytes everywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from ..nodes.errors import AccessError, StoreError
from ..nodes.tables import BLOCKS, CONTRACT_BOUNDS, FAILURES, GRANTS, REQUESTS, SNAPSHOTS
from .settings import Settings
from .views.harness_forms import event
from .views.xray import TABLES_READ

__all__ = [
    "Audience",
    "audience_of",
    "audited_projects",
    "bundle_of",
    "corpus_facts",
    "events_of",
    "open_retriever",
    "open_run",
    "readable_snapshots",
    "snapshot_rows",
]

Audience = Literal["audit", "caller"]
_ASKED = ("request_id", "principal", "project", "purpose", "as_of", "question")
_AUDIT_ONLY = frozenset(SNAPSHOTS.names(audience="audit"))


@contextmanager
def open_retriever(settings: Settings) -> Iterator[Any]:
    """A retriever under the settings, closed at the end; its snapshots stay as they were written until `compact`.

    Raises:
        StoreError: there is no corpus, or one of another schema version.
    """
    from ..nodes.bm25 import Bm25
    from .retriever import Retriever

    retriever = Retriever.open(
        settings["corpus"],
        principal=settings.principal,
        runs=settings["runs"],
        grants=settings.grants_path,
        policies=settings["policies"],
        lanes=settings["lanes"],
        ollama_url=settings["ollama_url"],
        bm25=Bm25(variant=settings["bm25"], k1=settings["bm25_k1"], b=settings["bm25_b"]),
        shard_requests=settings["shard_requests"],
    )
    try:
        yield retriever
    finally:
        retriever.close(compacted=False)


def open_run(settings: Settings, id_: str) -> Any:
    """The run of this id, or the run that holds this snapshot.

    Raises:
        StoreError: there is no such run or snapshot.
    """
    from .runs import RunStore

    return RunStore(settings["runs"], create=False).open(id_)


def audience_of(settings: Settings, run: Any, snapshot_id: str) -> Audience:
    """How much of a snapshot the principal may see: all of it, or what its caller may.

    Raises:
        AccessError: the principal neither asked for the snapshot nor audits its project; absent and foreign read alike.
    """
    try:
        asked, failed, bounds = (
            run.table(table.name, snapshot_id=snapshot_id).to_pylist()
            for table in (REQUESTS, FAILURES, CONTRACT_BOUNDS)
        )
    except StoreError as error:
        raise _unknown(snapshot_id) from error
    asked_by = asked[0] if asked else _refused_at_the_door(run, failed[0] if failed else {})
    audience = _audience(settings.principal, audited_projects(settings, run), asked_by, {b["project"] for b in bounds})
    if audience is None:
        raise _unknown(snapshot_id)
    return audience


def audited_projects(settings: Settings, run: Any) -> frozenset[str]:
    """Projects whose snapshots the principal may see whole: those of its grants with `audit` that have not expired.

    The grants file in force decides; where it is gone, the grants stored with the run.
    """
    from .grants import load_grants

    path = settings.grants_path
    grants = load_grants(path).table if path.exists() else run.stored("grants")
    mine = _in_force(grants, settings.principal)
    return frozenset(mine.filter(mine["audit"])["project"].to_pylist())


def _in_force(grants: pa.Table, principal: str) -> pa.Table:
    """The grants of a principal that have not expired."""
    in_force = pc.fill_null(pc.greater(grants["expires"], pa.scalar(datetime.now(UTC))), True)
    return grants.filter(pc.and_(pc.equal(grants["principal"], principal), in_force))


def corpus_facts(settings: Settings) -> dict[str, Any]:
    """What the principal may know of the corpus: the projects it may ask in; all of it, if it audits every project."""
    from .corpus import Corpus
    from .grants import load_grants

    found = Corpus.open(settings["corpus"]).info()
    table = load_grants(settings.grants_path).table if settings.grants_path.exists() else GRANTS.empty()
    mine = _in_force(table, settings.principal)
    if set(found["projects"]) <= set(mine.filter(mine["audit"])["project"].to_pylist()):
        return found
    granted = set(mine.filter(mine["own_project"])["project"].to_pylist())
    shown = {name: found[name] for name in ("path", "generation", "created", "encoder_profile", "analyzers")}
    return shown | {"projects": [project for project in found["projects"] if project in granted]}


def readable_snapshots(settings: Settings, run: Any, *, questions: bool = True) -> list[dict[str, Any]]:
    """The snapshots of a run that the principal may read, with question, project, purpose and `as_of` of their requests.

    Of a row that was refused at the door, what of it could be read. Without `questions`, no text is read.
    """
    failures, asked_rows = (
        run.table(table.name, texts=questions).select([n for n in _ASKED if n in table.columns]).to_pylist()
        for table in (FAILURES, REQUESTS)
    )
    requests = {row["request_id"]: _refused_at_the_door(run, row) for row in failures}
    requests |= {row["request_id"]: row for row in asked_rows}
    reached: dict[str, set[str]] = {}
    for bound in run.stored(CONTRACT_BOUNDS.name).select(["request_id", "project"]).to_pylist():
        reached.setdefault(bound["request_id"], set()).add(bound["project"])
    audited = audited_projects(settings, run)
    rows = []
    for row in run.snapshots.to_pylist():
        asked = requests.get(row["request_id"], _refused_at_the_door(run, {}))
        row |= {name: asked.get(name) for name in ("project", "purpose", "as_of", "question")}
        audience = _audience(settings.principal, audited, asked, reached.get(row["request_id"], set()))
        if audience:
            rows.append(row if audience == "audit" else {k: v for k, v in row.items() if k not in _AUDIT_ONLY})
    return rows


def events_of(run: Any, snapshots: Collection[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The events of S0.83 of some snapshots of a run, in their order."""
    intents = _by_request(run, REQUESTS.name, "intent_id")
    items = _by_request(run, BLOCKS.name, "items")
    return [event(row, items.get(row["request_id"], 0), intents.get(row["request_id"])) for row in snapshots]


def _by_request(run: Any, table: str, column: str) -> dict[str, Any]:
    stored = run.stored(table)
    return dict(zip(stored["request_id"].to_pylist(), stored[column].to_pylist(), strict=True))


def _audience(
    principal: str, audited: frozenset[str], asked: Mapping[str, Any], reached: Collection[str]
) -> Audience | None:
    """An auditor of the project asked in and of every project reached sees all; whoever asked sees their part."""
    if asked.get("project") in audited and audited.issuperset(reached):
        return "audit"
    return "caller" if asked.get("principal") == principal else None


def _refused_at_the_door(run: Any, failure: Mapping[str, Any]) -> Mapping[str, Any]:
    """Stands for a request that never became one: it belongs to whoever started the run."""
    return {**failure, "principal": run.manifest.get("settings", {}).get("principal")}


def replayed(settings: Settings, snapshot_id: str) -> Any:
    """The replay of a snapshot that the principal may read.

    Raises:
        AccessError: the snapshot is another's.
        StoreError: no run holds it.
        VerificationError: what is stored does not match its hashes.
    """
    from .runs import RunStore, replay

    audience_of(settings, open_run(settings, snapshot_id), snapshot_id)
    return replay(RunStore(settings["runs"], create=False), snapshot_id)


def verified(
    settings: Settings, run_id: str | None = None, *, anchor: str | None = None, witness: bool = False
) -> dict[str, Any]:
    """The verification of one run, or of every run of the folder, as plain values.

    `witness` recomputes the lexical scores of the runs with rank-bm25 on the corpus they were made from.
    """
    from .runs import RunStore, verify

    store = RunStore(settings["runs"], create=False)
    logged = {line.run_id for line in store.log.lines()}
    ids = [run_id] if run_id else sorted(logged | set(store.run_ids()))
    reports = [verify(store, one, anchor=anchor) for one in ids]
    seen = _witnessed(settings, store, ids) if witness else []
    return {
        "ok": all(report.ok for report in reports) and all(line["ok"] for line in seen),
        "head": reports[-1].head if reports else "",
        "runs": [
            {
                "run_id": report.run_id,
                "status": report.status,
                "parts": report.parts,
                "snapshots": report.snapshots,
                "problems": [asdict(problem) for problem in report.problems],
                "erased": list(report.erased),
            }
            for report in reports
        ],
        "witness": seen,
    }


def _witnessed(settings: Settings, store: Any, run_ids: Sequence[str]) -> list[dict[str, Any]]:
    """Per run: how many lexical scores rank-bm25 was asked about, and how many it does not confirm."""
    from ..nodes.bm25 import Bm25
    from .corpus import Corpus
    from .witness import witness_scores

    bm25 = Bm25(variant=settings["bm25"], k1=settings["bm25_k1"], b=settings["bm25_b"])
    found = []
    for run_id in run_ids:
        run = store.open(run_id)
        names = ("contracts", "contract_bounds", "sub_queries", "hits")
        tables = {name: run.table(name, texts=name == "sub_queries") for name in names}
        generation = dict(zip(*(run.provenance[c].to_pylist() for c in ("part", "value")), strict=True))["generation"]
        projects = pc.unique(tables["contract_bounds"]["project"]).to_pylist()
        scores = witness_scores(Corpus.open(settings["corpus"], generation).frame(projects), tables, bm25)
        differing = pc.sum(pc.invert(scores["agrees"])).as_py() or 0
        found.append({"run_id": run.run_id, "ok": not differing, "scores": scores.num_rows, "differing": differing})
    return found


def bundle_of(settings: Settings, snapshot_id: str) -> dict[str, Any]:
    """The `RetrievalBundle` of a stored snapshot, as far as the principal may see it.

    Raises:
        AccessError: the snapshot is another's.
        StoreError: no run holds it.
    """
    from .role_policies import max_age_days
    from .views.bundle import TABLES_READ as BUNDLE_TABLES
    from .views.bundle import bundle

    run = open_run(settings, snapshot_id)
    audience = audience_of(settings, run, snapshot_id)
    rows = {name: run.table(name, texts=True, snapshot_id=snapshot_id).to_pylist() for name in BUNDLE_TABLES}
    role = rows["requests"][0]["role"] if rows["requests"] else None
    limit = max_age_days(run.stored("role_policies"), role)
    return bundle(rows, audit=audience == "audit", max_age_days=limit)


def snapshot_rows(run: Any, snapshot_id: str) -> dict[str, list[dict[str, Any]]]:
    """The rows of one snapshot by table name, free text in place: what an x-ray is rendered from."""
    return {name: run.table(name, texts=True, snapshot_id=snapshot_id).to_pylist() for name in TABLES_READ}


def _unknown(snapshot_id: str) -> AccessError:
    return AccessError(
        f"Expected a snapshot that you may read, got none - at {snapshot_id}",
        hint="`scoped-retrieval snapshots` lists yours; auditors need a grant with `audit: true`.",
    )
