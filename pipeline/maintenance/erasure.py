"""Erasure: removes rows of evidence from a corpus and from every run that showed them, and the text of requests from
runs.

    done = erase(settings, source="memory:ana", dry_run=True)

Reads: a selection by source, user, project or evidence id. Gives: counts. The order is receipt and current generation, older
generations and packs, runs; after a crash at any point, repeating the command completes it. Any later erasure completes that
of the corpus.

Note: a row may be erased by its owner and by auditors of its project; for all others it does not exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from ...nodes.errors import AccessError, InputError
from ..config.grants import load_grants
from ..config.opening import corpus_of, runs_of
from ..config.settings import Settings
from ..corpus import Corpus, Selection
from ..reading.grants import grants_in_force
from ..runs import RequestSelection, RunsErased, StagedRun, erase_evidence
from ..runs.model_inputs import erase_from_inputs
from ..storage.durable import entries

STAYS = (
    "ids, names of projects, sources and principals, rules about paths, counts, times and SHA-256 of what went, so that "
    "`verify` can still check the runs; answers and exports that were saved elsewhere"
)
"""What no erasure removes, as text for people."""


@dataclass(frozen=True)
class Erasure:
    """The result of an erasure, or with `dry_run` its preview: counts and ids, no text."""

    dry_run: bool
    rows: int
    generations: int
    runs: RunsErased = field(default_factory=RunsErased)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        of_runs = {name: value for name, value in asdict(self.runs).items() if name != "lost"}
        return {"dry_run": self.dry_run, "rows": self.rows, "generations_forgotten": self.generations} | of_runs


def erase(
    settings: Settings,
    *,
    source: str | None = None,
    user: str | None = None,
    project: str | None = None,
    evidence: Sequence[str] = (),
    questions: bool | None = None,
    reason: str = "",
    dry_run: bool = False,
) -> Erasure:
    """Erase the rows that match all of the given selectors, from the corpus and the runs.

    With `questions`, requests lose all their text, too, what was shown included: those by `user` in `project`; with a source
    or evidence id, only those that were shown an erased row. None means: if a user or project is given. Unless a user is
    given, rows that the corpus lost go from runs in which the principal asked or audits a request that cites them.

    Raises:
        InputError: no selector was given.
        AccessError: no such row or request exists that the principal may erase; absent and foreign ones are not
            distinguished.
        BusyError: another process kept writing to the corpus; nothing was erased.
        StoreError: the corpus is damaged, or cannot be read or written.
    """
    if not (source or user or project or evidence):
        raise InputError.described("a source, user, project or evidence id", "none", "erase")
    table = grants_in_force(load_grants(settings.grants_path).table, settings.principal)
    audited = frozenset(table.filter(table["audit"])["project"].to_pylist())
    selection = Selection(settings.principal, audited, source, user, project, tuple(evidence))
    corpus = corpus_of(settings)
    found = corpus.stored(selection)
    chosen = ids = found.ids
    stored = found.any
    if questions is None:
        questions = bool(user or project)
    asked = RequestSelection(settings.principal, audited, found.held, user, project, source, tuple(evidence), questions)
    generations = 0
    if not dry_run:
        # Includes ids of interrupted erasures, which are not counted here.
        ids, generations = corpus.erase(selection, now=datetime.now(UTC), reason=reason)
    # Opened after the receipt was written: later writers check receipts first.
    store = runs_of(settings) if entries(settings["runs"]) else None
    runs = RunsErased()
    if store:
        # The generations with erased rows are gone, and with them whatever an unfinished run has of these rows.
        left = set() if dry_run else {*corpus.info()["generations"]}

        def may_go_on(staged: StagedRun) -> bool:
            pin = staged.begun.body["pin"] or {}
            return pin.get("corpus_id") != corpus.pin["corpus_id"] or staged.settings.get("generation") in left

        runs = erase_evidence(store, ids, asked=asked, may_go_on=may_go_on, reason=reason, dry_run=dry_run)
    if store and (gone := ids | runs.lost) and not dry_run:
        erase_from_inputs(store, gone)
    if not stored and not runs.any:
        raise _nothing(corpus, selection, questions=questions)
    if dry_run:
        return Erasure(True, len(chosen), 0, runs)
    return Erasure(False, len(chosen), generations, runs)


def _nothing(corpus: Corpus, selection: Selection, *, questions: bool) -> AccessError:
    """The error for a selection of nothing; if its source lacks a kind, with sources of that name that match."""
    named = ", ".join(f"{name} {value}" for name, value in selection.named.items())
    hint = "you may erase your own rows and questions, and with an `audit` grant those of the project."
    if (source := selection.source) is not None and ":" not in source:
        hint = f"a source is given by its full id, such as `workspace:{source}` or `git:{source}`; {hint}"
        found = corpus.stored(replace(selection, source=None)).chosen["source_id"].unique().to_pylist()
        if near := sorted(each for each in found if each.partition(":")[2] == source):
            hint = f"did you mean {' or '.join(near)}? {hint}"
    return AccessError(
        f"Expected evidence{' or requests' if questions else ''} that you may erase, got none - at {named}", hint=hint
    )
