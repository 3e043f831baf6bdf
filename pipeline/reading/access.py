"""Who may look at what was written: the snapshots of others, the facts of a corpus.

Reads: settings, grants in force, the requests of a run. Gives: `open_run`, `audience_of`, `expect_reader`,
`known_runs`, `audited_projects`, `readable_snapshots`, `audits_corpus`, `corpus_facts`, `grants_in_force`. Whoever
asked sees their part; an auditor of every project that a request reached sees all of it; anybody else gets the answer
that an unknown id gets.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...nodes.columns.keys import codes_of, distinct_rows, flat
from ...nodes.errors import AccessError, ScopedRetrievalError, StoreError
from ...nodes.tables import CONTRACT_BOUNDS, FAILURES, GRANTS, REQUESTS, SNAPSHOTS
from ..config.settings import Settings
from ..storage.durable import stands

if TYPE_CHECKING:
    from ..corpus import Corpus
    from ..runs import Run

__all__ = [
    "Audience",
    "audience_of",
    "audiences",
    "audited_projects",
    "audits",
    "audits_corpus",
    "audits_whole",
    "corpus_facts",
    "expect_reader",
    "grants_in_force",
    "grants_now",
    "hears_of_damage",
    "known_runs",
    "open_run",
    "pinned_corpus",
    "readable_snapshots",
    "summaries_for",
    "unknown",
]

Audience = Literal["audit", "caller"]
_AUDIT_ONLY = frozenset(SNAPSHOTS.names(audience="audit"))


def open_run(settings: Settings, id_: str) -> Run:
    """The run of this id, or the run that holds this snapshot. Who may read which part of it is asked apart.

    Raises:
        AccessError: there is none, or an unfinished one of another user's; the message is the one for foreign runs.
        InputError: it is no id.
        StoreError: there is no folder of runs, the run is damaged and the principal started it or audits a project, or
            it is the principal's and unfinished.
    """
    from ..runs import RunStore, started_by
    from ..runs.ids import run_of

    store = RunStore(settings["runs"], create=False)
    run_id = run_of(id_) if id_.startswith("retr-snap-") else id_
    try:
        folder = store.folder(run_id)
    except StoreError as error:
        raise unknown(id_) from error
    if not store.holds(run_id) and not started_by(folder, settings.principal):
        raise unknown(id_)
    try:
        with as_damage(run_id):
            return store.open(run_id)
    except StoreError as error:
        if hears_of_damage(settings, run_id):
            raise
        raise unknown(id_) from error


def expect_reader(settings: Settings, run: Run) -> None:
    """Stop a principal who neither started a run nor may read one of its snapshots.

    Raises:
        AccessError: there is nothing in it for them; absent and foreign read alike.
    """
    try:
        with as_damage(run.run_id):
            mine = _starter(run) == settings.principal
        if mine or readable_snapshots(settings, run):
            return
    except StoreError:
        if hears_of_damage(settings, run.run_id):
            raise
    raise unknown(run.run_id)


def known_runs(settings: Settings, store: Any) -> Callable[[str], bool]:
    """Whether the principal may learn that a run exists, by its id. Grants and LOG are read once, however many are asked.

    They started it, or may read one of its snapshots, or audit every project that there are grants for. Of a finished
    one that is damaged or gone, those who hear of damage; of an unfinished one only the user who started it.
    """
    from ..runs import started_by

    grants = cache(lambda: _in_force(settings))
    logged = cache(lambda: _logged(store))
    everything = cache(lambda: _audits_everything(settings, grants()))

    @cache
    def known(run_id: str) -> bool:
        try:
            with as_damage(run_id):
                run = store.open(run_id)
                mine = _starter(run) == settings.principal
            # In this order: what an auditor of everything may know takes no look at the requests of a run.
            return mine or everything() or bool(_readable(settings, run, grants()))
        except ScopedRetrievalError:
            if started_by(store.path / run_id, settings.principal):
                return True
            if logged().get(run_id) == settings.principal:
                return True
            nobodys = store.holds(run_id) or run_id in logged() or _nobodys(store.path / run_id)
            return nobodys and _audits_any(settings, grants())

    return known


def _nobodys(folder: Any) -> bool:
    """Whether a folder of a run exists of which nothing says who started it."""
    from ..runs import starter_of

    try:
        return folder.is_dir() and starter_of(folder) is None
    except ScopedRetrievalError:
        return True


def _logged(store: Any) -> dict[str, str | None]:
    """The runs that LOG names, and who started each as far as it says; of a damaged one none."""
    try:
        lines = store.log.lines()
    except ScopedRetrievalError:
        return {}
    found: dict[str, str | None] = {}
    for line in lines:
        found[line.run_id] = line.body.get("started_by") or found.get(line.run_id)
    return found


def _audits_everything(settings: Settings, grants: pa.Table | None) -> bool:
    projects = set() if grants is None else set(grants["project"].drop_null().to_pylist())
    return bool(projects) and projects <= _audited(settings, grants)


def _audits_any(settings: Settings, grants: pa.Table | None) -> bool:
    return bool(_audited(settings, grants))


def audits_whole(settings: Settings, run: Run) -> bool:
    """Whether the principal audits every snapshot of a run: then whole tables of it, and their counts, are no secret."""
    mine = readable_snapshots(settings, run)
    return len(mine) == run.snapshots.num_rows and all("recalled" in row for row in mine)


def audience_of(settings: Settings, run: Run, snapshot_id: str) -> Audience:
    """How much of a snapshot the principal may see: all of it, or what its caller may.

    Raises:
        AccessError: the principal neither asked for the snapshot nor audits its project; absent and foreign read alike.
        StoreError: the run is damaged, and the principal started it or audits a project.
    """
    try:
        with as_damage(run.run_id):
            if not run.holds(snapshot_id):
                raise unknown(snapshot_id)
            asked, failed, bounds = (
                run.table(table.name, snapshot_id=snapshot_id).to_pylist()
                for table in (REQUESTS, FAILURES, CONTRACT_BOUNDS)
            )
    except StoreError as error:
        if hears_of_damage(settings, run.run_id):
            raise
        raise unknown(snapshot_id) from error
    asked_by = asked[0] if asked else _refused_at_the_door(run, failed[0] if failed else {})
    viewer = _Viewer(settings.principal, _grants_for(run, _in_force(settings)))
    audience = viewer.audience(asked_by, {bound["project"] for bound in bounds})
    if audience is None:
        raise unknown(snapshot_id)
    return audience


def audiences(settings: Settings, run: Run) -> pa.Table:
    """How much of every snapshot of a run the principal may see: snapshot_id, request_id, audience; null = nothing.

    Raises:
        StoreError: the run is damaged.
    """
    with as_damage(run.run_id):
        table, of_alike, alike = _judged(run, _Viewer(settings.principal, _grants_for(run, _in_force(settings))))
    found = pa.array(of_alike, pa.string()).take(pa.array(alike))
    return table.select(["snapshot_id", "request_id"]).append_column("audience", found)


def audited_projects(settings: Settings, run: Run) -> frozenset[str]:
    """Projects whose snapshots the principal may see whole: those of its grants with `audit` that have not expired.

    The grants file in force decides; where it is gone, the grants stored with the run.
    """
    return _Viewer(settings.principal, _grants_for(run, _in_force(settings))).audited


def grants_now(settings: Settings) -> pa.Table:
    """The grants of all users as they are now; none where there is no grants file."""
    found = _in_force(settings)
    return GRANTS.empty() if found is None else found


def _in_force(settings: Settings) -> pa.Table | None:
    """The grants file in force; None where there is none, never where it cannot be read now: what it took back stays so.

    It is read again when it changes.
    """
    from ..config.grants import load_grants

    path = settings.grants_path
    if not stands(path):
        return None
    status = path.stat() if isinstance(path, Path) else None
    if status is None:
        return load_grants(path).table
    return _loaded(path, status.st_mtime_ns, status.st_size, status.st_ino)


@lru_cache(maxsize=4)
def _loaded(path: Path, *stamp: int) -> pa.Table:
    """The grants of a file that has this time, size and inode."""
    from ..config.grants import load_grants

    del stamp
    return load_grants(path).table


def _grants_for(run: Any, grants: pa.Table | None) -> pa.Table:
    return run.stored("grants") if grants is None else grants


def audits(settings: Settings, projects: Collection[str]) -> bool:
    """Whether the principal holds grants with `audit` in all of these projects, in the grants file in force."""
    from ..config.grants import load_grants

    mine = grants_in_force(load_grants(settings.grants_path).table, settings.principal)
    return set(projects) <= set(mine.filter(mine["audit"])["project"].to_pylist())


def pinned_corpus(settings: Settings, run: Run) -> Corpus:
    """The corpus at the generation that a run was made from.

    Raises:
        StoreError: the corpus or that generation is gone.
    """
    from ..config.opening import corpus_of

    generation = dict(zip(*(run.provenance[c].to_pylist() for c in ("part", "value")), strict=True))["generation"]
    try:
        return corpus_of(settings, generation)
    except StoreError as error:
        hint = "what is not written in the run is judged by the rows it was made from; --corpus names their folder"
        raise StoreError(f"Expected generation {generation}, got none - at {settings['corpus']}", hint=hint) from error


def grants_in_force(grants: pa.Table, principal: str) -> pa.Table:
    """The grants of a principal that have not expired."""
    in_force = pc.fill_null(pc.greater(grants["expires"], pa.scalar(datetime.now(UTC))), True)
    return grants.filter(pc.and_(pc.equal(grants["principal"], principal), in_force))


def corpus_facts(settings: Settings) -> dict[str, Any]:
    """What the principal may know of the corpus: the projects it may ask in; all of it, if it audits every project.

    Not even the generation is shown to all users: it moves with rows that a caller may not know of.
    """
    from ..config.opening import corpus_of

    found = corpus_of(settings).info()
    if audits_corpus(settings, found["projects"]):
        return found
    mine = _grants_of(settings, _in_force(settings))
    granted = set(mine.filter(mine["own_project"])["project"].to_pylist())
    shown = {name: found[name] for name in ("path", "analyzers")}
    return shown | {"projects": [project for project in found["projects"] if project in granted]}


def audits_corpus(settings: Settings, projects: Collection[str]) -> bool:
    """Whether the principal audits every project of a corpus; without a grants file no user does, except of an empty one."""
    return set(projects) <= _audited(settings, _in_force(settings))


def _grants_of(settings: Settings, grants: pa.Table | None) -> pa.Table:
    return grants_in_force(GRANTS.empty() if grants is None else grants, settings.principal)


def _audited(settings: Settings, grants: pa.Table | None) -> set[str | None]:
    mine = _grants_of(settings, grants)
    return set(mine.filter(mine["audit"])["project"].to_pylist())


def readable_snapshots(
    settings: Settings, run: Any, *, status: str | None = None, session: str | None = None, last: int | None = None
) -> list[dict[str, Any]]:
    """The snapshots of a run that the principal may read, with question, project, purpose and `as_of` of their requests.

    Of a row that was refused on arrival, what of it could be read. `status` and `session` keep those of it, `last` so many
    of the last.

    Raises:
        StoreError: the run is damaged.
    """
    return _readable(settings, run, _in_force(settings), {"status": status, "session_id": session}, last)


def _readable(
    settings: Settings,
    run: Any,
    grants: pa.Table | None,
    wanted: Mapping[str, str | None] | None = None,
    last: int | None = None,
) -> list[dict[str, Any]]:
    with as_damage(run.run_id):
        return _rows_for(settings, run, grants, wanted or {}, last)


@contextmanager
def as_damage(run_id: str) -> Iterator[None]:
    """What is of another form than this package writes, as damage of that run: anybody may have written it.

    Raises:
        StoreError: something of the run could not be read.
    """
    try:
        yield
    except ScopedRetrievalError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, OSError, pa.ArrowException) as error:
        got = type(error).__name__
        raise StoreError(f"Expected a run as this version writes it, got {got} - at {run_id}") from error


class RunSummary(NamedTuple):
    """What a list says of a run: when it was made, how many snapshots of each status the principal may read, its format."""

    created_at: str | None
    statuses: dict[str, int]
    format: str | None


def summaries_for(settings: Settings) -> Callable[[Any], RunSummary]:
    """What a list says of a run, for the principal; grants are looked at once, however many runs are asked about.

    Raises:
        StoreError: of the function, the run is damaged.
    """
    grants = _in_force(settings)
    viewer = None if grants is None else _Viewer(settings.principal, grants)
    return lambda run: _summary(run, viewer or _Viewer(settings.principal, run.stored("grants")))


def _summary(run: Any, viewer: _Viewer) -> RunSummary:
    from ..runs.listing import format_of

    with as_damage(run.run_id):
        table, audiences, of = _judged(run, viewer)
        kept = np.array([audience is not None for audience in audiences], dtype=bool)[of]
        counted = table["status"].filter(pa.array(kept)).value_counts().to_pylist()
        statuses = {one["values"]: one["counts"] for one in sorted(counted, key=lambda one: one["values"])}
        if run.live:
            first = table["created_at"][0].as_py().isoformat() if table.num_rows else None
            return RunSummary(first, statuses, format_of(run, table))
        return RunSummary(run.manifest.get("created_at"), statuses, run.format)


def _rows_for(
    settings: Settings, run: Any, grants: pa.Table | None, wanted: Mapping[str, str | None], last: int | None
) -> list[dict[str, Any]]:
    table, audiences, of = _judged(run, _Viewer(settings.principal, _grants_for(run, grants)))
    mask = np.array([audience is not None for audience in audiences], dtype=bool)[of]
    for column, value in wanted.items():
        if value is not None:
            mask &= np.asarray(pc.fill_null(pc.equal(table[column], value), False))
    kept = mask.nonzero()[0]
    kept = kept if last is None else kept[max(0, len(kept) - last) :]
    told = table.drop_columns(["principal", "asked_by", "reached"]).take(pa.array(kept)).to_pylist()
    return [
        row if audiences[code] == "audit" else {name: value for name, value in row.items() if name not in _AUDIT_ONLY}
        for row, code in zip(told, of[kept].tolist(), strict=True)
    ]


def _judged(run: Any, viewer: _Viewer) -> tuple[pa.Table, list[Audience | None], NDArray[np.int64]]:
    """The snapshots of a run, what the principal may see of those asked alike that reached the same, and which are alike."""
    from ..runs.listing import listed

    table = listed(run)
    whose = table.select(["project", "principal", "asked_by", "reached"])
    names = [whose[name] for name in ("project", "principal", "asked_by")]
    first, alike = distinct_rows(codes_of([*names, _spelled(whose["reached"])]))
    return table, [viewer.audience(one, one["reached"]) for one in whose.take(pa.array(first)).to_pylist()], alike


def _spelled(lists: pa.ChunkedArray) -> pa.Array:
    """Each list of names as one text."""
    return pc.binary_join(flat(lists), "\n")


class _Viewer:
    """A principal who wants to see snapshots, and what the grants in force say of them."""

    def __init__(self, principal: str, grants: pa.Table) -> None:
        self.principal = principal
        self._grants = grants
        self._opened: dict[str, frozenset[str]] = {}
        mine = grants_in_force(grants, principal)
        self.audited = frozenset(mine.filter(mine["audit"])["project"].to_pylist())
        lending = mine.filter(mine["act_as"].is_valid()).select(["act_as", "project"]).to_pylist()
        self._lent = {(other, row["project"]) for row in lending for other in row["act_as"]}

    def audience(self, asked: Mapping[str, Any], reached: Collection[str]) -> Audience | None:
        """An auditor of the project asked in and of every project reached sees all; those asked by and for see their part.

        Their part as long as the grants in force still open, to whom it was asked for, every project that the answer
        reached, and still let the user who asked act for them.
        """
        project, subject = asked.get("project"), asked.get("principal")
        if project in self.audited and self.audited.issuperset(reached):
            return "audit"
        if self.principal not in (subject, asked.get("asked_by")):
            return None
        lent = self.principal == subject or not self._lent.isdisjoint({(subject, None), (subject, project)})
        return "caller" if not reached or (lent and self._opens(str(subject)).issuperset(reached)) else None

    def _opens(self, principal: str) -> frozenset[str]:
        if principal not in self._opened:
            held = grants_in_force(self._grants, principal)
            self._opened[principal] = frozenset(held.filter(held["act_as"].is_null())["project"].to_pylist())
        return self._opened[principal]


def _refused_at_the_door(run: Any, failure: Mapping[str, Any]) -> Mapping[str, Any]:
    """In place of a request that was refused: it belongs to the user who started the run."""
    return {**failure, "principal": _starter(run)}


def _starter(run: Any) -> str | None:
    return run.settings.get("principal")


def hears_of_damage(settings: Settings, run_id: str) -> bool:
    """Whether damage may be told: to auditors, and to the user who started the run, as it says itself or else LOG.

    Where neither can tell whose a run is, it counts as another user's: its existence is not disclosed.
    """
    from ..runs import RunStore, started_by

    store = RunStore(settings["runs"], create=False)
    mine = started_by(store.path / run_id, settings.principal) or _logged(store).get(run_id) == settings.principal
    return mine or _audits_any(settings, _in_force(settings))


def unknown(id_: str) -> AccessError:
    """The one answer about a run or snapshot that is absent, foreign or unknown."""
    kind, lists = ("snapshot", "snapshots") if id_.startswith("retr-snap-") else ("run", "runs")
    return AccessError(
        f"Expected a {kind} that you may read, got none - at {id_}",
        hint=f"run `scoped-retrieval {lists}` to list yours; auditors need a grant with `audit: true`.",
    )
