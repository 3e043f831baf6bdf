"""`Retriever`: the service behind every interface. Opens a corpus for one principal, answers one request or a table.

    with Retriever.open("corpus", principal="ana", runs="runs") as retriever:
        print(retriever.retrieve("why does the default role fail?").block)

Reads the clock once per pass (`asked_at`) and no other external state after that. A durable snapshot is written
before a block leaves; if a request requires one and it could not be written, no block leaves.

Note: a retriever stays at the generation that the corpus had when it was opened, even if the same process writes to the
corpus. To see later writes, open another retriever. After an erasure it refuses all requests, as its tables may contain
erased evidence.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...nodes.columns.kept import rows_by
from ...nodes.errors import AccessError, InputError, PolicyError, StoreError
from ...nodes.recall.bm25 import Bm25
from ...nodes.score_terms import terms_of_plugins
from ...nodes.vocabulary import LANES as LANE_NAMES
from ..config.grants import GrantsFile, load_grants
from ..config.policies.tables import Policies, load_policies
from ..config.policies.weight_files import expect_weighed
from ..corpus import Corpus
from ..encoders.choice import EncoderChoice
from ..encoders.cross_encoder import CrossEncoder, PairReader, PairScores
from ..encoders.encoder import encoder_of
from ..engines.shards import Engine, ShardJob, in_this_process, resumable, shards_of, with_counters
from ..line.driver import LANES, Line, ordered_lanes
from ..line.lanes import lanes_off
from ..line.provenance import difference, package_versions, provenance, with_part
from ..line.query_vectors import QueryVectors
from ..line.tokenizers import registered
from ..plugins import Plugins, installed, with_digest
from ..progress import Say, StepReporter, quiet
from ..requests.allowed_names import AllowedNames
from ..requests.files import Row
from ..requests.presets import Preset, fields_in
from ..requests.resolve import Defaults, RequestResolver, no_defaults
from ..runs import Runs, StagedRun, compact
from ..storage.places import ObjectPlace, Place, fixed_place
from ..views.lineage import current_lineage
from .grouping import Grouped
from .retrieval import Retrieval, RunSummary
from .session import PendingRequest, Session
from .telemetry import Telemetry

if TYPE_CHECKING:
    from ..config.settings import Settings
    from ..reading.auditing.difference import SnapshotsDiff
    from ..reading.auditing.reproduce import Reproduction
    from ..reading.auditing.what_if import WhatIf

SHARD_REQUESTS = 512
"""Requests per shard: the unit of memory, progress and retry."""
COMPILED_FROM = 4_096
"""Size of a run from which the compiled loops are loaded, if possible; loading takes a second once they are cached."""


class Retriever:
    """Answers requests of one principal over one generation of a corpus, the one that `corpus` has open."""

    def __init__(
        self,
        session: Session,
        *,
        policies: Policies,
        shard_requests: int,
        telemetry: Telemetry | None,
    ) -> None:
        """Use `open`."""
        resolver = session.resolver
        self.corpus, self.principal, self.preset = resolver.corpus, resolver.principal, resolver.preset
        self.policies = policies
        self.runs = session.runs
        self._session = session
        self._shard_requests = shard_requests
        self._telemetry = telemetry
        self._grouped = Grouped(session.answers, shard_requests)

    @property
    def grants(self) -> GrantsFile:
        """The grants under which the last request was answered."""
        return self._session.resolver.grants

    @classmethod
    def open(  # noqa: PLR0913 - options by keyword
        cls,
        corpus: Corpus | str | Place,
        *,
        principal: str,
        runs: Runs | str | Place | None = None,
        grants: GrantsFile | str | Place | None = None,
        policies: Policies | str | Path | None = None,
        lanes: Collection[str] | None = None,
        encoder: Any = "auto",
        bm25: Bm25 | None = None,
        shard_requests: int = SHARD_REQUESTS,
        clock: Callable[[], datetime] | None = None,
        preset: Preset | str | Path | None = None,
        work_trees: Collection[str | Path] = (),
        tokenizers: Collection[str | Path] = (),
        cross_encoder: PairReader | str | Path | None = None,
        telemetry: Telemetry | None = None,
        plugins: Plugins | Collection[str] = (),
    ) -> Retriever:
        """A retriever over a corpus in a folder or at a URL, or an open one, at its current generation.

        `grants` defaults to `grants.yaml` in the corpus folder, `policies` to the bundled ones, `lanes` to all; a
        grants file is reloaded when it changes, so a withdrawn right ends with the next request. `encoder` may be an
        encoder, None, or "auto" (the corpus's own profile, if the extra is installed); an `EncoderChoice`, or the name of an encoder, locates its weights or its server, for a
        corpus with such vectors. Without `runs` no snapshot is written. A `preset` bounds every request. For a request without a
        mode, `SHO.json` is read if its work tree is one of `work_trees`. `tokenizers` are the tokenizer files that a
        request may name, by path. `cross_encoder`, the folder of a model or a loaded one, reranks
        each request's best candidates: as many as its mode's `k_in`, without a mode three times its `max_items`. With
        `telemetry`, every retrieval emits OpenTelemetry spans. `plugins` are gates, lanes and score
        terms, or the names of plugins that are installed.

        Raises:
            InputError: there is no principal, or a lane is unknown.
            ModelError: the folder of the cross-encoder has no model that loads.
            StoreError: there is no corpus, or it has another schema version.
        """
        if not principal:
            raise InputError.described("a principal", "none", "principal", hint="a principal name is required")
        if shard_requests < 1:
            raise InputError.expected("at least 1 request", shard_requests, "shard_requests")
        wanted = [LANE_NAMES.canonical(lane, "lanes") for lane in (LANES if lanes is None else lanes)]
        opened = Corpus.open(corpus) if isinstance(corpus, (str, Path, ObjectPlace)) else corpus
        policies = policies if isinstance(policies, Policies) else load_policies(policies)
        store = Runs(runs) if isinstance(runs, (str, Path, ObjectPlace)) else runs
        active = with_digest(plugins) if isinstance(plugins, Plugins) else installed(plugins).line
        if isinstance(encoder, (str, EncoderChoice)):
            choice = encoder if isinstance(encoder, EncoderChoice) else EncoderChoice(encoder)
            encoder = encoder_of(opened.encoder_profile if "semantic" in wanted else None, choice)
        if isinstance(cross_encoder, (str, Path)):
            cross_encoder = CrossEncoder(cross_encoder)
        bounds = Preset(fields_in(preset)) if isinstance(preset, (str, Path)) else preset
        viewed = opened.view()
        source = opened.path / "grants.yaml" if grants is None else grants
        source = source if isinstance(source, GrantsFile) else fixed_place(source)
        current = load_grants(source)
        roles = None if policies.any_role else policies.roles.names
        modes = rows_by(policies.mode_policies, "mode")
        known = AllowedNames(modes, roles, registered(tokenizers), active.term_names)
        for column in terms_of_plugins(policies.purpose_policies.column_names):
            expect_weighed(column.removeprefix("weight_"), active.term_names, "weights", PolicyError)
        trees = frozenset(Path(tree).resolve() for tree in work_trees)
        bm25, used = bm25 or Bm25(), ordered_lanes(wanted)
        settings = {"lanes": ",".join(used), "bm25": f"k1={bm25.k1} b={bm25.b}"}
        if active:
            settings["plugins"] = ",".join(active.names)
        off = lanes_off(wanted, viewed.encoder_profile, encoder)
        line = Line(
            corpus=viewed,
            policies=policies.inputs(),
            grants=current.table,
            provenance=provenance(
                generation=viewed.generation,
                policies=policies.digest,
                grants=current.digest,
                encoder=viewed.encoder_profile if "semantic" in used and "semantic" not in off else None,
                settings=settings,
                cross_encoder=cross_encoder.profile if cross_encoder is not None else None,
                plugins=active.digest,
            ),
            lanes=used,
            bm25=bm25,
            vectors=QueryVectors(encoder),
            lanes_off=off,
            pairs=PairScores(cross_encoder),
            plugins=active,
        )
        who = {"principal": principal, "generation": viewed.generation, "packages": package_versions()}
        resolver = RequestResolver(principal, viewed, current, bounds, known, trees)
        return cls(
            Session(source, line, resolver, store, {**settings, **who}, clock or (lambda: datetime.now(UTC))),
            policies=policies,
            shard_requests=shard_requests,
            telemetry=telemetry,
        )

    def retrieve(self, request: str | Mapping[str, Any], **fields: Any) -> Retrieval:
        """Answer one request: a question, or a mapping of request fields; `fields` are added to it.

        The project defaults to the principal's only one, the purpose to answer-question. The snapshot is durable before
        this returns. If it could not be written, the answer reports that, and is withheld only if a snapshot is
        required; if its record does not add up, the request fails.

        Threads may share this method: concurrent requests are answered in one pass, each as if asked alone. `run` needs
        a retriever to itself.

        Raises:
            InputError: the request is invalid.
            StoreError: the corpus cannot be read, or evidence was erased from it since it was opened (ErasedError);
                no snapshot is written.
        """
        if not isinstance(request, str | Mapping):
            raise InputError.of_kind("a question or a mapping of request fields", request, "request")
        row = {**({"question": request} if isinstance(request, str) else request), **fields}
        if self._telemetry is None:
            return self._grouped(PendingRequest(row, time.perf_counter()))
        with self._telemetry.retrieval() as answered:
            found = self._grouped(PendingRequest(row, time.perf_counter()))
            answered(found)
        return found

    def run(
        self,
        requests: Iterable[Row] | None = None,
        *,
        defaults: Defaults = no_defaults,
        resume: str | None = None,
        progress: bool = False,
        say: Say = quiet,
        engine: Engine = in_this_process,
    ) -> RunSummary:
        """Answer a table of requests as one run; with `resume`, complete an interrupted one at its generation.

        `defaults` gives the fields that a row omits, by the columns that it has; the project is by default the principal's
        only one. The `engine` decides where shards are executed; the result is the same. With `progress`, a bar is shown;
        `say` receives lines instead.

        A row that is malformed, or that makes the line fail, becomes a failed snapshot; the others are unaffected.

        Raises:
            InputError: there are no requests, or no folder of runs, or the preset fixes another project.
            AccessError: the run to resume does not exist or was started by another principal.
            StoreError: it is finished, or was begun with another policy or code, or its generation is gone; or the
                corpus cannot be read or a shard cannot be written: then the run can be resumed.
            ModelError: a tokenizer file is not the one that the run began with.
        """
        if self.runs is None:
            raise InputError.described("a folder of runs", "none", "runs")
        from tqdm.auto import tqdm

        started = time.perf_counter()
        self.corpus.expect_unerased()
        self._session.renew()
        line = self._session.line
        staged, line = self._resumed(resume, line) if resume else (self._staged(requests, defaults), line)
        with resumable(staged):
            shards = staged.pending()
            say(staged.described(shards))
            pays = len(shards) * self._shard_requests >= COMPILED_FROM
            # Closed in any case: an interrupted engine may have workers to stop.
            with closing(engine(ShardJob(staged, line, pays), shards, self._session.clock)) as done:
                tell = StepReporter(say, "answered {:,} of {:,} shards")
                shown = tqdm(done, total=len(shards), unit="shard", disable=not progress)
                for count, _ in enumerate(shown, start=1):
                    tell(count, len(shards))
            run = staged.finish()
        return RunSummary(run.run_id, run.folder, run.statuses, time.perf_counter() - started)

    def what_if(self, name: str, changes: Mapping[str, Any] | None = None, **fields: Any) -> WhatIf:
        """A snapshot, or every request of a run, under other weights, budgets, merge policy or role; nothing is written.

        Raises:
            AccessError: the principal may not read it.
            InputError: there is no folder of runs, or a column cannot be changed.
            StoreError: the generation that the run pinned is gone.
        """
        from ..reading.auditing.what_if import what_if

        return what_if(self._places(), name, {**(changes or {}), **fields})

    def diff(self, before: str, after: str) -> SnapshotsDiff:
        """The differences between two snapshots or two runs that the principal may read."""
        from ..reading.auditing.difference import compared

        return compared(self._places(), before, after)

    def reproduce(self, name: str) -> Reproduction:
        """A run or snapshot that the principal audits, executed again: the first value that differs, and why."""
        from ..reading.auditing.reproduce import reproduced

        return reproduced(self._places(), name)

    def sql(self, query: str, runs: Sequence[str] = ()) -> pa.Table:
        """The result of a query over the tables of runs that the principal audits; needs the extra `sql`."""
        from ..reading.auditing.sql import queried

        return queried(self._places(), query, runs)

    def close(self, *, compacted: bool = True) -> None:
        """End the interactive run, if there is one; its snapshots become Parquet parts if `compacted`."""
        with self._grouped.alone():
            live = self._session.close()
        if live is not None and live.written and self.runs is not None and compacted:
            compact(self.runs, live.run_id)

    def __enter__(self) -> Retriever:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _staged(self, rows: Iterable[Row] | None, defaults: Defaults = no_defaults) -> StagedRun:
        session = self._session
        now, resolver, project = session.clock(), session.resolver, defaults({}).get("project")
        settled = self.preset.fields.given.get("project") if self.preset else None
        if project and settled not in (None, project):
            raise InputError.expected(f"{settled}, the project of the preset", project, "defaults.project")
        requests, failures = resolver.resolve(rows or (), now, lambda given: {**resolver.project, **defaults(given)})
        if not requests.num_rows and not failures.num_rows:
            raise InputError.described("at least one request", "none", "requests")
        assert self.runs is not None
        return self.runs.stage(
            requests, failures, shards_of(requests, self._shard_requests), now=now, inputs=session.line.inputs,
            settings={**session.settings, "shard_requests": self._shard_requests}, lineage=current_lineage(),
            pin=self.corpus.pin,
        )  # fmt: skip

    def _places(self) -> Settings:
        """The folders of the retriever and its principal, as settings."""
        from ..config.settings import load_settings

        source = self._session.source
        grants = None if isinstance(source, GrantsFile) else source
        places = {"runs": self.runs and self.runs.path, "corpus": self.corpus.path, "grants": grants}
        for kind, place in places.items():
            if place is None:
                raise InputError.described(f"a {kind} folder or file", "none", kind)
        return load_settings(
            {**places, "principal": self.principal, "tokenizers": sorted(self._session.resolver.known.tokenizers)}
        )

    def _resumed(self, run_id: str, line: Line) -> tuple[StagedRun, Line]:
        """An interrupted run of the principal, and the line at the generation that it pinned. If all of its requests are
        answered, nothing is retrieved, and neither corpus nor policies matter.
        """
        store = self.runs
        assert store is not None
        if store.starter_of(run_id) != self.principal:
            hint = "`log --of runs` lists yours, `verify` names those that are damaged"
            raise AccessError(f"Expected a run that you started, got none - at {run_id}", hint=hint)
        staged = store.resume(run_id)
        if not staged.pending():
            return staged, line
        generation = staged.settings["generation"]
        if generation != self.corpus.generation:
            try:
                corpus = Corpus.open(self.corpus.path, generation, self.corpus.signer)
            except StoreError as error:
                hint = f"resume it over the corpus that it began with, or remove it: `gc --discard {run_id}`"
                raise StoreError(error.message, hint=error.hint or hint) from error
            line = replace(line, corpus=corpus, provenance=with_part(line.provenance, "generation", generation))
        if part := difference(staged.inputs["provenance"], line.provenance):
            raise StoreError(
                f"Expected the {part} that the run began with, got another - at {run_id}",
                hint="resume with the same policies, grants, settings and version, or start a new run",
            )
        return staged, with_counters(line, staged.requests)
