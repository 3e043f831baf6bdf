"""Which runs and snapshots a principal may open; a forbidden id gets the same answer as an unknown one.

Reads: settings, the folder of runs and its LOG. Gives: `opened`, the one way to a run or snapshot by its id; `opened_snapshot`,
`readable_replay`, `replayed`, `known_runs`, `pinned_corpus` and `unknown`, the uniform refusal.

Note: what a user reads of an earlier answer is what the present grants admit; see `present_rights`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from ...nodes.errors import AccessError, ScopedRetrievalError, StoreError, VerificationError
from ..config.settings import Settings
from .grants import audited, audits_everything, grants_or_none
from .present_rights import within_rights
from .snapshots import Readable

if TYPE_CHECKING:
    from ..corpus import Corpus
    from ..runs import Replay, Run


def opened(settings: Settings, id_: str, *, auditors: str = "") -> Readable:
    """What the principal may read of the run, or of the snapshot, with this id.

    With `auditors`, only who audits all of it may; it is the hint for all others.

    Raises:
        AccessError: it does not exist, or the principal neither started the run nor may read anything of it, or does not
            audit it; absent, foreign and unknown ones are not distinguished.
        InputError: it is not an id.
        StoreError: there is no folder of runs; or the run is damaged, or is the principal's own and unfinished. Damage is
            told to those who may know of the run.
    """
    from ..runs import Run, Runs
    from ..runs.ids import is_snapshot, run_named
    from ..runs.log import is_unfinished

    store = Runs(settings["runs"], create=False)
    run_id = run_named(id_)
    try:
        lines = store.log.of(run_id)
        if not lines or (is_unfinished(lines) and lines[0].body.get("started_by") != settings.principal):
            raise unknown(id_)
        run = Run(store, run_id, lines)
        seen = Readable.of(settings, run, grants_or_none(settings), id_ if is_snapshot(id_) else None)
    except (StoreError, VerificationError) as error:
        if known_runs(settings, store)(run_id):
            raise
        raise unknown(id_) from error
    if not seen.rows.num_rows and (seen.snapshot or run.started_by != settings.principal):
        raise unknown(id_)
    if auditors and not seen.whole:
        raise AccessError("Permission denied: only auditors of its projects may do this", at=id_, hint=auditors)
    return seen


def opened_snapshot(settings: Settings, snapshot_id: str) -> Readable:
    """`opened` for a snapshot; the id of a run names none."""
    from ..runs.ids import is_snapshot

    if not is_snapshot(snapshot_id):
        raise unknown(snapshot_id, "snapshot")
    return opened(settings, snapshot_id)


def known_runs(settings: Settings, store: Any) -> Callable[[str], bool]:
    """A predicate: whether the principal may learn that the run with an id exists. Reads grants and LOG once for all
    calls.

    True if they started it, may read one of its snapshots, or audit every project in the grants. A finished run that is
    damaged or gone is known to those who may learn of damage, an unfinished one only to the user who started it.
    """
    from ..runs import Run
    from ..runs.log import is_unfinished

    grants, by_run = grants_or_none(settings), store.log.by_run()
    everything = audits_everything(settings, grants)

    @cache
    def known(run_id: str) -> bool:
        lines = by_run.get(run_id, [])
        if lines and lines[0].body.get("started_by") == settings.principal:
            return True
        if is_unfinished(lines):
            return False
        try:
            run = Run(store, run_id, lines)
            # In this order: for an auditor of all projects, the requests of a run need not be read.
            return everything or bool(Readable.of(settings, run, grants).rows.num_rows)
        except ScopedRetrievalError:
            return bool(audited(settings, grants))

    return known


def replayed(settings: Settings, snapshot_id: str) -> Replay:
    """The replay of a snapshot that the principal may read, unless they audit it reduced to a caller's part and to the
    items that the present grants admit.

    Raises:
        AccessError: the snapshot does not exist or belongs to another principal.
        StoreError: its run is damaged.
        VerificationError: stored data does not match its hashes.
    """
    seen, found = readable_replay(settings, snapshot_id)
    return found if seen.audit else found.for_caller()


def readable_replay(settings: Settings, snapshot_id: str) -> tuple[Readable, Replay]:
    """A snapshot that the principal may read, and its replay with what the present grants admit; see `replayed`."""
    from ..runs import replay

    seen = opened_snapshot(settings, snapshot_id)
    found = replay(seen.run, snapshot_id)
    return seen, found if seen.audit else within_rights(found, seen.grants)


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
