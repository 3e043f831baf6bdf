"""Which runs and snapshots a principal may open; a forbidden id gets the same answer as an unknown one.

Reads: settings, the folder of runs and its LOG. Gives: `open_run`, `audience_of` a snapshot, `readable_replay`, `replayed`,
`expect_reader`, `expect_auditor`, `known_runs`, `pinned_corpus` and `unknown`, the uniform refusal.

Note: what a user reads of an earlier answer is what the present grants admit; see `present_rights`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from ...nodes.errors import AccessError, ScopedRetrievalError, StoreError, VerificationError
from ..config.settings import Settings
from .grants import Audience, audited, audits_everything, grants_for, grants_or_none
from .present_rights import within_rights
from .snapshots import Readable, as_damage, readable

if TYPE_CHECKING:
    from ..corpus import Corpus
    from ..runs import Replay, Run


def open_run(settings: Settings, id_: str) -> Run:
    """The run with this id, or the run of this snapshot. Does not check which parts of it the principal may read.

    Raises:
        AccessError: it does not exist, or is unfinished and another user's; the message is the same for all foreign
            runs.
        InputError: it is not an id.
        StoreError: there is no folder of runs, the run is damaged and the principal started it or audits a project, or
            it is the principal's and unfinished.
    """
    from ..runs import Runs
    from ..runs.ids import run_named
    from ..runs.log import is_unfinished

    store = Runs(settings["runs"], create=False)
    run_id = run_named(id_)
    if not (lines := store.log.of(run_id)) or (is_unfinished(lines) and store.starter_of(run_id) != settings.principal):
        raise unknown(id_)
    with _damage_told(settings, run_id, id_):
        return store.open(run_id)


@contextmanager
def _damage_told(settings: Settings, run_id: str, id_: str) -> Iterator[None]:
    """Damage of a run is an error for those who may know of it; to all others, what they named does not exist."""
    from ..runs import Runs

    try:
        with as_damage(run_id):
            yield
    except (StoreError, VerificationError) as error:
        if known_runs(settings, Runs(settings["runs"], create=False))(run_id):
            raise
        raise unknown(id_) from error


def expect_reader(settings: Settings, run: Run) -> None:
    """Refuse a principal who neither started a run nor may read one of its snapshots.

    Raises:
        AccessError: they may read nothing of it; absent and foreign runs are not distinguished.
    """
    with _damage_told(settings, run.run_id, run.run_id):
        if run.started_by != settings.principal and not readable(settings, run).rows.num_rows:
            raise unknown(run.run_id)


def expect_auditor(settings: Settings, run: Run, snapshot_id: str | None = None, *, hint: str) -> None:
    """Refuse a principal who does not audit a snapshot, or every snapshot of a run.

    Raises:
        AccessError: they do not, or may read nothing of it; absent and foreign ones are not distinguished.
    """
    if snapshot_id is None:
        expect_reader(settings, run)
    if not (audience_of(settings, run, snapshot_id) == "audit" if snapshot_id else readable(settings, run).whole):
        message = "Permission denied: only auditors of its projects may do this"
        raise AccessError(message, at=snapshot_id or run.run_id, hint=hint)


def known_runs(settings: Settings, store: Any) -> Callable[[str], bool]:
    """A predicate: whether the principal may learn that the run with an id exists. Reads grants and LOG once for all
    calls.

    True if they started it, may read one of its snapshots, or audit every project in the grants. A finished run that is
    damaged or gone is known to those who may learn of damage, an unfinished one only to the user who started it.
    """
    from ..runs import Run
    from ..runs.log import is_unfinished

    grants = cache(lambda: grants_or_none(settings))
    everything = cache(lambda: audits_everything(settings, grants()))
    by_run = cache(store.log.by_run)

    @cache
    def known(run_id: str) -> bool:
        lines = list[Any]()
        with suppress(ScopedRetrievalError):  # a damaged line of a run is told where that run is read
            lines = by_run().get(run_id, [])
        if lines and lines[0].body.get("started_by") == settings.principal:
            return True
        if is_unfinished(lines):
            return False
        try:
            with as_damage(run_id):
                run = Run(store, run_id, lines)
                # In this order: for an auditor of all projects, the requests of a run need not be read.
                return everything() or bool(Readable.of(settings, run, grants()).rows.num_rows)
        except ScopedRetrievalError:
            return bool(audited(settings, grants()))

    return known


def audience_of(settings: Settings, run: Run, snapshot_id: str) -> Audience:
    """How much of a snapshot the principal may see: all of it, or the caller's part.

    Raises:
        AccessError: the principal neither asked for the snapshot nor audits its project; absent and foreign ones are
            not distinguished.
        StoreError: the run is damaged, and the principal started it or audits a project.
    """
    with _damage_told(settings, run.run_id, snapshot_id):
        seen = Readable.of(settings, run, grants_or_none(settings), [snapshot_id])
    if not seen.rows.num_rows:
        raise unknown(snapshot_id)
    return "audit" if seen.audit else "caller"


def replayed(settings: Settings, snapshot_id: str) -> Replay:
    """The replay of a snapshot that the principal may read, unless they audit it reduced to a caller's part and to the
    items that the present grants admit.

    Raises:
        AccessError: the snapshot does not exist or belongs to another principal.
        StoreError: its run is damaged.
        VerificationError: stored data does not match its hashes.
    """
    _, found, audience = readable_replay(settings, snapshot_id)
    return found if audience == "audit" else found.for_caller()


def readable_replay(settings: Settings, snapshot_id: str) -> tuple[Run, Replay, Audience]:
    """The run of a snapshot that the principal may read, its replay and the principal's audience; see `replayed`."""
    from ..runs import replay

    run = open_run(settings, snapshot_id)
    audience = audience_of(settings, run, snapshot_id)
    found = replay(run, snapshot_id)
    if audience == "caller":
        found = within_rights(found, grants_for(run, grants_or_none(settings)))
    return run, found, audience


def pinned_corpus(settings: Settings, run: Run) -> Corpus:
    """The corpus at the generation of a run.

    Raises:
        StoreError: the corpus or that generation is gone.
    """
    from ..config.opening import corpus_of

    generation = dict(zip(*(run.provenance[c].to_pylist() for c in ("part", "value")), strict=True))["generation"]
    try:
        return corpus_of(settings, generation)
    except StoreError as error:
        hint = "what is not written in the run is judged by the rows it was made from; --corpus names their folder"
        raise StoreError(f"Expected generation {generation}, got none", at=settings["corpus"], hint=hint) from error


def unknown(id_: str, kind: str | None = None) -> AccessError:
    """The same error for any run or snapshot that is absent, foreign or unknown."""
    from ..runs.ids import is_snapshot

    kind = kind or ("snapshot" if is_snapshot(id_) else "run")
    return AccessError(
        f"Expected a {kind} that you may read, got none",
        at=id_,
        hint=f"`log{' --of runs' if kind == 'run' else ''}` lists yours; auditors need a grant with `audit: true`.",
    )
