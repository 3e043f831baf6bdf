"""Batches: the canaries of many tenants share one corpus, and one run asks all of their probes.

Reads units, each a tenant asked from one angle. Gives the differences between two states of the corpus: with hooks
only, and with canaries as well. This takes two runs for any number of tenants.

Note: in a batch the canaries of one tenant are ordinary rows for the others. Only tenants that reach none of each
other's projects may share one (`tenants.apart`), and a forbidden string is forbidden to all of them.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from ...nodes.plugins import NO_PLUGINS, Plugins
from ...nodes.vocabulary import PURPOSES
from ...nodes.walls.gate import OPEN
from ...nodes.walls.gates import LEAK_TEST
from ..asking.retriever import Retriever
from ..config.grants import GrantsFile
from ..config.policies.tables import Policies
from ..config.settings import Settings, SettingValue
from ..contracts.scope import ContractResolver
from ..corpus import Corpus
from ..progress import Say, quiet
from ..runs import Runs
from ..runs.run import Run
from .angles import Probe, foreign, from_angle, naming
from .canaries import TenantCase, planting
from .report import Leak, LeakReport
from .surfaces import ECHOES, audit_keys, health, listed, plain, refusal, surfaces_of
from .tenants import ASKER, READER, Tenant

BEFORE, PLANTED = "before", "planted"
"""The states: with hooks only, and with canaries."""
LISTED = 5
"""Tenants of a batch whose lists are compared: lists cost as much as all answers of a tenant."""
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
    say: Say = quiet
    """Receives a line at each step."""

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

    def as_tenant(self, tenant: Tenant, corpus: Path, runs: Any) -> tuple[Settings, ContractResolver]:
        """The settings and contracts of a tenant on one state of the corpus."""
        mine = {"corpus": corpus, "runs": runs, "grants": self.grants.path, "principal": tenant.principal}
        values = {name: SettingValue(value, LEAK_TEST) for name, value in mine.items()}
        resolver = ContractResolver(
            Corpus.open(corpus), self.grants, self.policies, tenant.principal, self.as_of,
            {"project": tenant.project}, plugins=self.plugins,
        )  # fmt: skip
        return Settings({**self.settings.values, **values}), resolver


@dataclass
class _Answers:
    """The result of one state: digests by request and surface, and any violations."""

    runs: Path
    digests: dict[str, dict[str, bytes]] = field(default_factory=dict)
    held: list[tuple[str, str, str, str]] = field(default_factory=list)
    """Request, surface, kind and detail of every violation within this state."""
    shown: set[str] = field(default_factory=set)
    """Cases with a cited hook."""


def test_batch(bench: Bench, units: Sequence[TenantCase], report: LeakReport) -> set[Tenant]:
    """Compare the two states and add the findings to the report; returns the tenants who were shown hooks."""
    batch = _Batch(bench, units)
    try:
        before, after = batch.answers(BEFORE), batch.answers(PLANTED)
    finally:
        shutil.rmtree(batch.folder)
    shown = [unit for unit in units if unit.name in before.shown]
    for unit in units:
        if unit not in shown:
            report.skipped.append(f"{unit.tenant.name}, {batch.angle}: no row that points to a canary is shown")
    report.batches += 1
    for unit in shown:
        report.count((role, unit.angle.gates[reason]) for role, reason in unit.pairs())
    asked = [probe for request_id, probe in batch.probes.items() if _case(request_id) in before.shown]
    report.probes += sum(probe.name not in _FOREIGN for probe in asked)
    report.comparisons += sum(len(found) for id_, found in after.digests.items() if _case(id_) in before.shown)
    for request_id, digests in after.digests.items():
        for surface in (name for name, one in digests.items() if before.digests[request_id].get(name) != one):
            if _case(request_id) in before.shown:
                report.differences += 1
                after.held.append((request_id, surface, "another answer", "differs"))
    for state, found in ((BEFORE, before), (PLANTED, after)):
        report.leaks += [
            batch.leak(request_id, state, *what)
            for request_id, *what in found.held
            if _case(request_id) in before.shown
        ]
    return {unit.tenant for unit in shown}


class _Batch:
    """Units that share a corpus."""

    def __init__(self, bench: Bench, units: Sequence[TenantCase]) -> None:
        self.bench, self.units = bench, units
        self.planted = planting(units, bench.as_of)
        self.of_case = {unit.name: unit for unit in units}
        self.angle = units[0].angle.name
        self.probes = {f"{unit.name}/{probe.name}": probe for unit in units for probe in self._probes(unit)}
        self.folder = bench.folder / "batch"
        self.corpus = self.folder / "corpus"
        shutil.copytree(bench.pristine, self.corpus)

    def _probes(self, unit: TenantCase) -> Iterator[Probe]:
        """The tenant's own, canaries by name, and foreign projects."""
        as_of, name = self.bench.as_of, unit.name
        named = naming(self.planted.tokens[name], self.planted.ids[name], unit.tenant.project, as_of)
        for probe in (*unit.probes, named):
            yield from_angle(probe, unit.angle)
        if self.angle == OPEN:
            for number, project in enumerate((unit.elsewhere, f"{LEAK_TEST}-unknown"), start=1):
                yield foreign(project, number, as_of)

    def answers(self, state: str) -> _Answers:
        """Publish the rows of a state, ask all probes and read the answers."""
        rows = self.planted.hooks if state == BEFORE else self.planted.canaries
        now = self.bench.now + timedelta(minutes=state == PLANTED)
        self.bench.say(f"{self.angle}: asking, {state}")
        Corpus.open(self.corpus).publish(rows, now=now, encoder=self.bench.encoder)
        if self.bench.plugins:
            self.bench.show_plugins(self.corpus, self.units[0].words, self.folder / f"read-{state}")
        requests = [
            {**probe.fields, "request_id": id_, "principal": self.of_case[_case(id_)].tenant.principal}
            for id_, probe in self.probes.items()
        ]
        found, refused = _Answers(self.folder / f"runs-{state}"), dict[str, str]()
        run = self.bench.ask(self.corpus, requests, found.runs)
        for request_id, answer, surfaces in surfaces_of(run, self.bench.policies.roles.policies):
            case = _case(request_id)
            if any(self.planted.hook_ids.get(row["evidence_id"]) == case for row in answer.citations):
                found.shown.add(case)
            if self.probes[request_id].name in _FOREIGN:
                surfaces = {"refusal": refusal(answer, self.probes[request_id].fields["project"])}
                if refused.setdefault(case, surfaces["refusal"]) != surfaces["refusal"]:
                    detail = "a foreign and an unknown project read differently"
                    found.held.append((request_id, "refusal", "another refusal", detail))
            self._look(found, request_id, surfaces)
        self._lists(found, run)
        return found

    def _lists(self, found: _Answers, run: Run) -> None:
        """Add what the first tenants can list and count, and their answers of `why` and, of one, of `doctor`."""
        snapshots = dict(zip(*(run.snapshots[c].to_pylist() for c in ("request_id", "snapshot_id")), strict=True))
        for number, unit in enumerate(self.units[:LISTED]):
            request_id = f"{unit.name}/{unit.probes[0].name}"
            fields, canary = self.probes[request_id].fields, self.planted.ids[unit.name][0]
            settings, resolver = self.bench.as_tenant(unit.tenant, self.corpus, run.store.path)
            surfaces = listed(settings, resolver, fields, run, snapshots[request_id], canary)
            if surfaces is None:
                continue
            at = f"{unit.name}/lists"
            if surfaces["why"] != surfaces["why of nothing"]:
                detail = "a canary and a row that does not exist read differently"
                found.held.append((at, "why", "another refusal", detail))
            if self.angle == OPEN and number == 0:
                surfaces["doctor"] = health(settings)
            self._look(found, at, surfaces)

    def _look(self, found: _Answers, request_id: str, surfaces: Mapping[str, str]) -> None:
        """Keep digests of the surfaces, and any forbidden content on them."""
        texts = {name: plain(text, found.runs) for name, text in surfaces.items()}
        found.digests[request_id] = {name: _digest(text) for name, text in texts.items()}
        probe = self.probes.get(request_id)
        for surface, text in texts.items():
            found.held += [(request_id, surface, "a column for auditors", key) for key in audit_keys(surface, text)]
            if probe is None or not (probe.names_canaries and surface in ECHOES):
                for what in self.canaries_in(text, _case(request_id)):
                    found.held.append((request_id, surface, "a canary", what))

    def canaries_in(self, text: str, case: str) -> list[str]:
        """Roles and reasons of the canaries, of any tenant, whose strings a text contains."""
        forbidden, found = self.planted.forbidden, set()
        for string in _strings(text):
            if string in forbidden:
                owner, what = forbidden[string]
                found.add(what if owner == case else f"{what}, planted for {self.of_case[owner].tenant.name}")
        return sorted(found)

    def leak(self, request_id: str, state: str, surface: str, kind: str, detail: str) -> Leak:
        """A leak to the tenant of a request."""
        tenant = self.of_case[_case(request_id)].tenant
        probe = request_id.partition("/")[2]
        return Leak(tenant.principal, tenant.project, self.angle, state, probe, surface, kind, detail)


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
