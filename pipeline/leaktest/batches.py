"""Batches: the canaries of many tenants share one corpus, and one run asks all of their probes.

Reads units, each a tenant asked from one angle. Gives the differences between four states of the corpus: hooks only,
canaries planted, changed, removed. This takes four runs for any number of tenants.

Note: in a batch the canaries of one tenant are ordinary rows for the others. Only tenants that reach none of each
other's projects may share one (`tenants.apart`), and a forbidden string is forbidden to all of them.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from ...nodes.plugins import NO_PLUGINS, Plugins
from ...nodes.vocabulary import PURPOSES
from ..asking.retriever import Retriever
from ..config.grants import GrantsFile
from ..config.policies.tables import Policies
from ..config.settings import Settings, SettingValue
from ..contracts.scope import ContractResolver
from ..corpus import Corpus
from ..runs import Runs, replays_kept
from ..runs.run import Run
from .angles import LEAK_TEST, OPEN
from .canaries import CanaryCase, Planting, planting
from .probes import Probe, foreign, from_angle, naming
from .report import Leak, LeakReport
from .surfaces import ECHOES, UNKNOWN_ID, Lister, audit_keys, health, listed, plain, recorded_logs, refusal, surfaces_of
from .tenants import ASKER, READER, Tenant
from .through_servers import server_surfaces

__all__ = ["STATES", "Bench", "TenantCase", "test_batch"]

STATES = ("planted", "changed", "removed")
LISTED = 5
"""Tenants of a batch whose lists are compared: lists cost as much as all answers of a tenant."""
THROUGH_DOORS = 1
"""Tenants of a batch whose answers over HTTP and MCP are compared, from the open angle."""
NARROWED = 3
"""Tenants of a batch that are retested alone if their answers differ."""
_DETAILED = 500
"""Answers of a state for which the position of the difference is determined."""
_FOREIGN = ("foreign project 1", "foreign project 2")
_RUNS = re.compile(r"[0-9a-z]{16,}")
_LENGTHS = (16, 26, 64)
"""Characters of a canary's word, of an evidence id, and of a digest."""


@dataclass(frozen=True)
class Bench:
    """The common inputs of all batches of a test."""

    settings: Settings
    grants: GrantsFile
    """Those of the settings, plus ASKER and READER."""
    policies: Policies
    encoder: Any
    pristine: Path
    """A copy of the corpus in which nothing was planted."""
    folder: Path
    now: datetime
    plugins: Plugins = NO_PLUGINS
    """Those that the settings name; they are tested like the package itself."""
    bar: Any = None
    """A progress bar over requests read, if one is shown."""

    @property
    def as_of(self) -> datetime:
        """The instant of every probe: after everything that the test writes."""
        return self.now + timedelta(hours=1)

    def ask(self, corpus: Path, requests: Sequence[Mapping[str, Any]], runs: Path) -> Run:
        """Execute a run of these requests, which may have different principals."""
        retriever = Retriever.open(
            corpus,
            principal=ASKER,
            runs=runs,
            grants=self.grants,
            policies=self.policies,
            lanes=self.settings["lanes"],
            encoder=self.encoder,
            cross_encoder=self.settings.loaded_cross_encoder(),
            tokenizers=self.settings["tokenizers"],
            plugins=self.plugins,
            clock=lambda: self.as_of,
        )
        return Runs(runs).open(retriever.run([dict(row) for row in requests]).run_id)

    def show_plugins(self, corpus: Path, question: str, runs: Path) -> None:
        """Ask as READER in every project, so that plugins have processed the rows of all tenants."""
        common = {"principal": READER, "question": question, "purpose": PURPOSES.values[0]}
        common |= {"time": {"as_of": self.as_of.isoformat()}}
        projects = Corpus.open(corpus).projects()
        self.ask(corpus, [{**common, "request_id": project, "project": project} for project in projects], runs)

    def for_tenant(self, tenant: Tenant, corpus: Path, runs: Path) -> Settings:
        """The settings under which a tenant reads the corpus and runs."""
        mine = {"corpus": corpus, "runs": runs, "grants": self.grants.path, "principal": tenant.principal}
        values = {name: SettingValue(value, LEAK_TEST) for name, value in mine.items()}
        return Settings({**self.settings.values, **values})

    def resolver(self, tenant: Tenant, corpus: Path) -> ContractResolver:
        """The resolver of a tenant's contracts."""
        opened = Corpus.open(corpus)
        fields = {"project": tenant.project}
        return ContractResolver(
            opened, self.grants, self.policies, tenant.principal, self.as_of, fields, plugins=self.plugins
        )

    def under(self, policies: Policies) -> Bench:
        """A copy with other policies."""
        return replace(self, policies=policies)

    def tell(self, step: str) -> None:
        """Show the current step on the bar."""
        if self.bar is not None:
            self.bar.set_description(step)


@dataclass(frozen=True)
class TenantCase:
    """A tenant, an angle and the probes from it."""

    tenant: Tenant
    case: CanaryCase
    probes: Sequence[Probe]
    elsewhere: str
    """A project out of the tenant's reach."""

    def asked(self, planted: Planting, as_of: datetime) -> dict[str, Probe]:
        """Every probe by request id: the tenant's own, canaries by name, and foreign projects."""
        tokens, ids = planted.tokens[self.case.name], planted.ids[self.case.name]
        named = naming(tokens, ids, self.tenant.project, as_of)
        probes = [from_angle(probe, self.case.angle) for probe in (*self.probes, named)]
        if self.case.angle.name == OPEN:
            probes += [foreign(self.elsewhere, 1, as_of), foreign(f"{LEAK_TEST}-unknown", 2, as_of)]
        return {f"{self.case.name}/{probe.name}": probe for probe in probes}


@dataclass
class _Answers:
    """The result of one state: digests by request and surface, and any violations."""

    run: Run
    folder: Path
    log: str
    digests: dict[str, dict[str, bytes]] = field(default_factory=dict)
    held: list[tuple[str, str, str, str]] = field(default_factory=list)
    """Request, surface, kind and detail of every violation within this state."""
    shown: set[str] = field(default_factory=set)
    """Cases with a cited hook."""


def test_batch(bench: Bench, units: Sequence[TenantCase], report: LeakReport) -> set[Tenant]:
    """Compare the four states and add the findings to the report; returns the tenants who were shown hooks."""
    batch = _Batch(bench, units, planting([unit.case for unit in units], bench.as_of))
    shown, found = batch.test(report)
    if len(units) > 1:
        for unit in found[:NARROWED]:
            alone = _Batch(bench, [unit], planting([unit.case], bench.as_of)).differs()
            what = "differs alone, too" if alone else "does not differ alone: other tenants' canaries are in it"
            report.narrowed.append(f"{unit.tenant.name}, {unit.case.angle.name}: {what}")
    return {unit.tenant for unit in shown}


class _Batch:
    """Units that share a corpus."""

    def __init__(self, bench: Bench, units: Sequence[TenantCase], planted: Planting) -> None:
        self.bench, self.units, self.planted = bench, units, planted
        self.of_case = {unit.case.name: unit for unit in units}
        self.probes: dict[str, Probe] = {}
        self.requests: list[dict[str, Any]] = []
        for unit in units:
            for request_id, probe in unit.asked(planted, bench.as_of).items():
                self.probes[request_id] = probe
                who = {"request_id": request_id, "principal": unit.tenant.principal}
                self.requests.append({**probe.fields, **who})
        self.angle = units[0].case.angle.name
        self.folder = bench.folder / "batch"
        self.corpus = self.folder / "corpus"

    def test(self, report: LeakReport) -> tuple[list[TenantCase], list[TenantCase]]:
        """The units that were shown hooks, and those whose answers changed."""
        with closing(self._states()) as states:
            _, before = next(states)
            shown = [unit for unit in self.units if unit.case.name in before.shown]
            names = {unit.case.name for unit in shown}
            for unit in self.units:
                if unit.case.name not in names:
                    report.skipped.append(f"{unit.tenant.name}, {self.angle}: no row that points to a canary is shown")
            report.batches += 1
            for unit in shown:
                report.count((role, unit.case.angle.gates[reason]) for role, reason in unit.case.pairs())
            asked = [request_id for request_id in self.probes if _case(request_id) in names]
            report.probes += sum(not self.probes[request_id].name.startswith("foreign") for request_id in asked)
            differing: dict[str, TenantCase] = {}
            self._add(report, "before", before, names)
            for state, after in states:
                differing |= self._compared(report, state, before, after, names)
                self._add(report, state, after, names)
            return shown, list(differing.values())

    def differs(self) -> bool:
        """Whether any answer changed; stops at the first state with a changed answer."""
        with closing(self._states()) as states:
            _, before = next(states)
            return any(_differing(before, after, before.shown) for _, after in states)

    def _states(self) -> Generator[tuple[str, _Answers], None, None]:
        """Each state with its result, hooks only first; the runs of a later state are deleted after use."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.bench.pristine, self.corpus, copy_function=_linked)
        try:
            self._publish("hooks", 0)
            yield "before", self._state("before")
            for minute, state in enumerate(STATES, start=1):
                self._publish(state, minute)
                after = self._state(state)
                yield state, after
                shutil.rmtree(after.folder)
        finally:
            shutil.rmtree(self.folder)

    def _publish(self, state: str, minute: int) -> None:
        self.bench.tell(f"{self.angle}: publishing {state}")
        rows, now = self.planted.table(state), self.bench.now + timedelta(minutes=minute)
        Corpus.open(self.corpus).publish(rows, now=now, encoder=self.bench.encoder)

    def _state(self, state: str) -> _Answers:
        """Ask all probes and read the answers."""
        self.bench.tell(f"{self.angle}: asking, {state}")
        folder = self.folder / f"runs-{state}"
        if self.bench.plugins:
            self.bench.show_plugins(self.corpus, self.units[0].case.words, self.folder / f"read-{state}")
        with recorded_logs() as stream:
            run = self.bench.ask(self.corpus, self.requests, folder)
        found = _Answers(run, folder, stream.getvalue())
        self.bench.tell(f"{self.angle}: reading, {state}")
        refused: dict[str, str] = {}
        for request_id, answer, surfaces in surfaces_of(run, folder, self.bench.policies.roles.max_age_days):
            case = _case(request_id)
            cited = [row["evidence_id"] for row in answer.citations]
            if any(self.planted.hook_ids.get(id_) == case for id_ in cited):
                found.shown.add(case)
            if self.probes[request_id].name in _FOREIGN:
                surfaces = {"refusal": refusal(answer, self.probes[request_id].fields["project"])}
                if refused.setdefault(case, surfaces["refusal"]) != surfaces["refusal"]:
                    detail = "a foreign and an unknown project read differently"
                    found.held.append((request_id, "refusal", "another refusal", detail))
            self._look(found, request_id, surfaces)
            if self.bench.bar is not None:
                self.bench.bar.update()
        with recorded_logs() as stream, replays_kept():
            self._lists(found)
        found.log += stream.getvalue()
        return found

    def _lists(self, found: _Answers) -> None:
        """Add what the first tenants can list and count, and their answers of `why`."""
        snapshots = dict(zip(*(found.run.snapshots[c].to_pylist() for c in ("request_id", "snapshot_id")), strict=True))
        for number, unit in enumerate(self.units[:LISTED]):
            request_id, probe = next(iter(unit.asked(self.planted, self.bench.as_of).items()))
            canaries = self.planted.names[unit.case.name]
            settings = self.bench.for_tenant(unit.tenant, self.corpus, found.folder)
            resolver = self.bench.resolver(unit.tenant, self.corpus)
            by = Lister(settings, resolver, probe.fields, found.run, snapshots[request_id], found.folder)
            surfaces = listed(by, canaries)
            at = f"{unit.case.name}/lists"
            if surfaces is not None:
                for why in ("why", "why --gold"):
                    if surfaces[why] != surfaces[f"{why} of nothing"]:
                        detail = "a canary and a row that does not exist read differently"
                        found.held.append((at, why, "another refusal", detail))
                self._look(found, at, surfaces)
            if self.angle == OPEN and number < THROUGH_DOORS:
                rows = {"canary": canaries[0], "nothing": UNKNOWN_ID}
                shown = server_surfaces(settings, probe.fields, snapshots[request_id], rows, audits=surfaces is None)
                shown |= {} if surfaces is None else {"doctor": health(settings)}
                for server in ("HTTP", "MCP"):
                    if shown.get(f"{server} why canary") != shown.get(f"{server} why nothing"):
                        detail = "a canary and a row that does not exist read differently"
                        found.held.append((at, f"{server} why", "another refusal", detail))
                texts = {name: plain(text, found.folder) for name, text in shown.items()}
                self._look(found, f"{unit.case.name}/servers", texts)

    def _look(self, found: _Answers, request_id: str, surfaces: Mapping[str, str]) -> None:
        """Keep digests of the surfaces, and any forbidden content on them."""
        found.digests[request_id] = {name: _digest(text) for name, text in surfaces.items()}
        probe = self.probes.get(request_id)
        for surface, text in surfaces.items():
            found.held += [(request_id, surface, "a column for auditors", key) for key in audit_keys(surface, text)]
            if probe is None or not (probe.names_canaries and surface in ECHOES):
                for what in self._held(text, _case(request_id)):
                    found.held.append((request_id, surface, "a canary", what))

    def _held(self, text: str, case: str) -> list[str]:
        """Roles and reasons of the canaries, of any tenant, whose strings a text contains."""
        forbidden, found = self.planted.forbidden, set()
        for string in _strings(text):
            if string in forbidden:
                owner, what = forbidden[string]
                found.add(what if owner == case else f"{what}, planted for {self.of_case[owner].tenant.name}")
        return sorted(found)

    def _compared(
        self, report: LeakReport, state: str, before: _Answers, after: _Answers, names: set[str]
    ) -> dict[str, TenantCase]:
        """Add every changed surface to the report; returns the units they belong to."""
        report.comparisons += sum(len(found) for id_, found in after.digests.items() if _case(id_) in names)
        other = _differing(before, after, names)
        looked_up = [request_id for request_id in other if request_id in self.probes][:_DETAILED]
        places = self._places(before, after, looked_up) if looked_up else {}
        for request_id, surfaces in other.items():
            for surface in surfaces:
                at = places.get((request_id, surface))
                report.differences += 1
                detail = "differs" if at is None else f"differs at character {at}"
                report.leaks.append(self._leak(request_id, state, surface, "another answer", detail))
        return {_case(request_id): self.of_case[_case(request_id)] for request_id in other}

    def _places(self, before: _Answers, after: _Answers, wanted: Sequence[str]) -> dict[tuple[str, str], int]:
        """The first character at which surfaces differ, by request and surface."""
        limit = self.bench.policies.roles.max_age_days
        texts = [
            {request_id: surfaces for request_id, _, surfaces in surfaces_of(one.run, one.folder, limit, wanted)}
            for one in (before, after)
        ]
        return {
            (request_id, name): _first(text, texts[1][request_id][name])
            for request_id, surfaces in texts[0].items()
            for name, text in surfaces.items()
            if self.probes[request_id].name not in _FOREIGN
        }

    def _add(self, report: LeakReport, state: str, found: _Answers, names: set[str]) -> None:
        """Add the violations of a state to the report."""
        for request_id, surface, kind, detail in found.held:
            if _case(request_id) in names:
                report.leaks.append(self._leak(request_id, state, surface, kind, detail))
        for what in self._held(found.log, ""):
            report.leaks.append(Leak("all", "all", self.angle, state, "all", "log", "a canary", what))

    def _leak(self, request_id: str, state: str, surface: str, kind: str, detail: str) -> Leak:
        tenant = self.of_case[_case(request_id)].tenant
        probe = request_id.partition("/")[2]
        return Leak(tenant.principal, tenant.project, self.angle, state, probe, surface, kind, detail)


def _differing(before: _Answers, after: _Answers, names: set[str]) -> dict[str, list[str]]:
    """Surfaces that changed, by request, for the named cases."""
    found: dict[str, list[str]] = {}
    for request_id in filter(lambda id_: _case(id_) in names, after.digests):
        first, now = before.digests[request_id], after.digests[request_id]
        if wrong := [surface for surface, digest in now.items() if first.get(surface) != digest]:
            found[request_id] = wrong
    return found


def _case(request_id: str) -> str:
    """The name of the case that a request belongs to."""
    return request_id.partition("/")[0]


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _strings(text: str) -> Iterator[str]:
    """All substrings of a text that could be a word, id or digest of a canary."""
    for run in _RUNS.findall(text):
        for length in (len(run),) if len(run) in _LENGTHS else _LENGTHS:
            yield from (run[at : at + length] for at in range(len(run) - length + 1))


def _first(one: str, other: str) -> int:
    """The first character at which two texts differ."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _linked(source: str, target: str) -> None:
    """Hard-link a file of our own copy: packs are immutable, and all other files but HEADS are replaced atomically."""
    try:
        if Path(source).name == "HEADS":
            raise OSError  # HEADS is appended to
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
