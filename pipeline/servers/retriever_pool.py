"""The retriever pool: the operations of the interfaces, with one retriever per principal that threads share.

Reads: settings. Gives: `RetrieverPool`, and its `PrincipalSession` for one principal. An interface translates its input
into one call here, and the result into its own form; no decision is made in an interface.

Note: a retriever stays at one generation. When the head of the corpus changes, or evidence was erased, the pool opens
new ones; retrievers in use are closed afterwards.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ...nodes.errors import ErasedError, InputError
from ..asking.opening import Models, load_models, open_retriever
from ..config.opening import head_of, runs_of
from ..config.policies.tables import load_policies
from ..config.settings import Settings
from ..deadline import within
from ..indexing.following import defaults_in
from ..indexing.freshness import up_to_date
from ..line.driver import build_driver
from ..reading.across_runs import latest
from ..redaction.rules import rule_findings
from ..views.recall_xray import envelope
from .renderings import answer_values, shown

if TYPE_CHECKING:
    from ..asking.retrieval import Retrieval
    from ..asking.retriever import Retriever
    from ..encoders.encoder import AnyEncoder


T = TypeVar("T")
_LOG = logging.getLogger(__name__)
MOST_LISTED = 1_000
"""The most snapshots in one list."""


@dataclass(eq=False)
class _Open:
    """An open retriever, and the number of calls that use it; once retired, the last call closes it."""

    retriever: Retriever
    opened: AbstractContextManager[Retriever]
    uses: int = 0
    retired: bool = False

    def close(self) -> None:
        self.opened.__exit__(None, None, None)


def load_line() -> None:
    """Load what every question needs, whichever corpus it is asked of: code, the graph, the rules of secrets, policies."""
    from ..asking import retriever  # noqa: F401 - loads it

    build_driver()
    rule_findings(b"")
    load_policies()


class RetrieverPool:
    """Retrievers by principal, and the threads that call them."""

    def __init__(
        self, settings: Settings, *, preset: Path | None = None, makes: bool = False, folder: Path | None = None
    ) -> None:
        """`makes`: the first call makes the corpus of a folder that has none; `folder`: where all requests are made."""
        self.settings, self._makes, self._folder = settings, makes, folder
        self._preset = preset
        self._lock = threading.Lock()
        self._open: dict[str, _Open] = {}
        self._models: Models | None = None
        self._head = b""
        self.behind: dict[str, str] = {}
        """By project, why its last answer may be older than its files."""
        self._threads = defaultdict[str | None, Executor](
            lambda: ThreadPoolExecutor(settings["serve_threads"], "serve")
        )

    def session_of(self, principal: str) -> PrincipalSession:
        """The session of one principal."""
        return PrincipalSession(self.settings.having("credential", principal=principal), self)

    def ready(self) -> None:
        """Open the corpus, load its models and the line in advance, and create the folder of runs.

        Raises:
            StoreError: there is no corpus, or the folder cannot be created.
            ModelError: a model does not load.
        """
        runs_of(self.settings, create=True)
        with self._lock:
            self._current()
        load_line()

    def encoder(self) -> AnyEncoder | None:
        """The encoder of the corpus, with which added rows are embedded; None if it has none."""
        with self._lock:
            return self._current().encoder

    def defaults(self, settings: Settings, request: Mapping[str, Any]) -> dict[str, Any]:
        """The fields that a request has unless it names them; where a preset bounds it, project and purpose alone."""
        found = defaults_in(settings, self._folder, request)
        return {name: found[name] for name in found if self._preset is None or name in ("project", "purpose")}

    async def done(self, principal: str | None, work: Callable[[], T]) -> T:
        """The result of the work, done by a thread of the principal within the time limit.

        Raises:
            RefusedError: the time is up.
        """
        seconds = self.settings["serve_timeout_seconds"]
        running = asyncio.get_running_loop().run_in_executor(self._threads[principal], within(seconds, work))
        try:
            return await asyncio.wait_for(running, seconds)
        except TimeoutError as error:
            from .problems import RefusedError

            message = f"Expected an answer within {seconds} seconds, got none"
            raise RefusedError(504, "timeout", "timeout", message) from error

    def close(self) -> None:
        """Finish the calls in progress and close every retriever. Their snapshots are already stored."""
        while self._threads:  # a pool that is used again gets others
            self._threads.popitem()[1].shutdown(wait=True)
        with self._lock:
            self._retire()

    @contextmanager
    def using(self, settings: Settings) -> Iterator[Retriever]:
        """The retriever of a principal, kept open while it is used."""
        with self._lock:
            models = self._current()
            found = self._open.get(settings.principal)
            if found is None:
                opened = open_retriever(settings, preset=self._preset, models=models)
                found = self._open[settings.principal] = _Open(opened.__enter__(), opened)
            found.uses += 1
        try:
            yield found.retriever
        except ErasedError:
            with self._lock:
                self._retire()
            raise
        finally:
            with self._lock:
                found.uses -= 1
                last = found.retired and not found.uses
            if last:
                found.close()

    def _current(self) -> Models:
        """The models of the current corpus, which has what is in the files that it follows; those opened on an earlier
        head are retired.
        """
        self.behind, make = {}, self._makes and self._models is None
        up_to_date(self.settings, progress=False, say=_LOG.warning, warn=self.behind.__setitem__, make=make)
        for each in self.behind.values():
            _LOG.warning(each)
        head = head_of(self.settings)  # if there is none, opening reports it
        if self._models is None or head != self._head:
            self._retire()
            self._head = head
            self._models = load_models(self.settings)
        return self._models

    def _retire(self) -> None:
        self._models = None
        for one in self._open.values():
            one.retired = True
            if not one.uses:
                one.close()
        self._open = {}


@dataclass(frozen=True)
class PrincipalSession:
    """The operations of one principal."""

    settings: Settings
    pool: RetrieverPool

    def retrieve(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """One answer as `models.Answer`; project and purpose default to those of the settings.

        Raises:
            InputError: the request is invalid.
            StoreError: the corpus cannot be read.
        """
        return answer_values(self._retrieved(request))

    def recall_xray(
        self, question: str, session: str | None = None, namespace: str | None = None, budget: int | None = None
    ) -> tuple[dict[str, Any], str | None]:
        """Ask a question; returns the envelope of document 002 and the id of the snapshot.

        Raises:
            InputError: there is no question, or a parameter is invalid.
            StoreError: the corpus cannot be read.
        """
        if not question.strip():
            raise InputError.described("a question", "none", "q")
        fields = {"session_id": session, "namespace": namespace, "budget": {"max_chars": budget}}
        found = self._retrieved({"question": question, **fields})
        if found.snapshot_id is None or not self.settings["record"]:
            return envelope(None), None
        return envelope(shown(self.settings, found.snapshot_id).xray), found.snapshot_id

    def append(self, rows: Sequence[Mapping[str, Any]], project: str | None = None) -> dict[str, Any]:
        """`models.Appended`: adds rows of the principal's own, if a grant lets them append; see `appending`.

        Raises:
            AccessError: no grant permits it.
            InputError: a row is invalid; nothing was added.
        """
        from .appending import appended

        return appended(self.settings, rows, project, self.pool.encoder())

    def snapshots(self, run: str | None = None, status: str | None = None, last: int = 100) -> dict[str, Any]:
        """`models.Snapshots`: the latest that the principal may read, oldest first, of one run or of all.

        Raises:
            AccessError: there is no such run that they may read.
            InputError: no such status.
        """
        found = latest(self.settings, run, status=status, last=last)
        return {"snapshots": [row for row, _ in reversed(found.entries)], "left_out": len(found.damaged)}

    def why(self, snapshot: str, evidence: str) -> dict[str, Any]:
        """`models.Why`: where the rows matching `evidence` were lost.

        Raises:
            AccessError: there is no row that the principal may ask about.
        """
        from ..contracts.why import why_not
        from ..reading.across_runs import snapshot_named

        return {"rows": why_not(self.settings, snapshot_named(self.settings, snapshot), evidence)}

    def _retrieved(self, request: Mapping[str, Any]) -> Retrieval:
        given = {name: value for name, value in request.items() if value is not None}
        asked = {**self.pool.defaults(self.settings, given), **given}
        try:
            with self.pool.using(self.settings) as retriever:
                return retriever.retrieve(asked)
        except ErasedError:  # in the open generation: the next one has the remaining rows
            with self.pool.using(self.settings) as retriever:
                return retriever.retrieve(asked)
