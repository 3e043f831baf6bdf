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
from ..nodes.tables import CONTRACT_BOUNDS, REQUESTS, SNAPSHOTS
from .settings import Settings
from .views.xray import TABLES_READ

__all__ = [
    "Audience",
    "audience_of",
    "audited_projects",
    "open_retriever",
    "open_run",
    "readable_snapshots",
    "snapshot_rows",
]

Audience = Literal["audit", "caller"]
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
        asked, bounds = (run.table(t.name, snapshot_id=snapshot_id).to_pylist() for t in (REQUESTS, CONTRACT_BOUNDS))
    except StoreError as error:
        raise _unknown(snapshot_id) from error
    asked_by = asked[0] if asked else _refused_at_the_door(run)
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
    in_force = pc.fill_null(pc.greater(grants["expires"], pa.scalar(datetime.now(UTC))), True)
    own = pc.and_(pc.equal(grants["principal"], settings.principal), grants["audit"])
    return frozenset(grants["project"].filter(pc.and_(own, in_force)).to_pylist())


def readable_snapshots(settings: Settings, run: Any) -> list[dict[str, Any]]:
    """The snapshots of a run that the principal may read, with project, purpose and `as_of` of their requests."""
    requests = {row["request_id"]: row for row in run.stored(REQUESTS.name).to_pylist()}
    reached: dict[str, set[str]] = {}
    for bound in run.stored(CONTRACT_BOUNDS.name).select(["request_id", "project"]).to_pylist():
        reached.setdefault(bound["request_id"], set()).add(bound["project"])
    audited = audited_projects(settings, run)
    rows = []
    for row in run.snapshots.to_pylist():
        asked = requests.get(row["request_id"], _refused_at_the_door(run))
        row |= {name: asked.get(name) for name in ("project", "purpose", "as_of")}
        audience = _audience(settings.principal, audited, asked, reached.get(row["request_id"], set()))
        if audience:
            rows.append(row if audience == "audit" else {k: v for k, v in row.items() if k not in _AUDIT_ONLY})
    return rows


def _audience(
    principal: str, audited: frozenset[str], asked: Mapping[str, Any], reached: Collection[str]
) -> Audience | None:
    """An auditor of the project asked in and of every project reached sees all; whoever asked sees their part."""
    if asked.get("project") in audited and audited.issuperset(reached):
        return "audit"
    return "caller" if asked.get("principal") == principal else None


def _refused_at_the_door(run: Any) -> Mapping[str, Any]:
    """Stands for a request that never became one: it belongs to whoever started the run."""
    return {"principal": run.manifest.get("settings", {}).get("principal")}


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


def snapshot_rows(run: Any, snapshot_id: str) -> dict[str, list[dict[str, Any]]]:
    """The rows of one snapshot by table name, free text in place: what an x-ray is rendered from."""
    return {name: run.table(name, texts=True, snapshot_id=snapshot_id).to_pylist() for name in TABLES_READ}


def _unknown(snapshot_id: str) -> AccessError:
    return AccessError(
        f"Expected a snapshot that you may read, got none - at {snapshot_id}",
        hint="`scoped-retrieval snapshots` lists yours; auditors need a grant with `audit: true`.",
    )
