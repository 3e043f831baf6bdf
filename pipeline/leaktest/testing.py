"""The test itself: from every angle, the requests of all tenants before and after canaries are planted.

    report = leak_test(settings, canaries=20)
    report.ok, report.leaks

Every surface must be byte-identical in both states; none may contain a forbidden string. Tenants that
reach none of each other's projects share one corpus and one run for each state, so the canaries of one tenant are ordinary
rows for the others, and a forbidden string is forbidden to all of them.

Note: a test that sees nothing finds nothing. A tenant counts only if rows of theirs that point to canaries were shown;
one without is listed as skipped, and a test without any tenant is an error.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.columns.keys import flat
from ...nodes.errors import InputError
from ...nodes.tables import IMPORT_ROWS
from ...nodes.vocabulary import PURPOSES
from ...nodes.walls.gate import ANGLES, OPEN, Ground
from ...nodes.walls.gates import LEAK_TEST
from ..asking.retriever import Retriever
from ..config.grants import GrantsFile, load_grants
from ..config.policies.tables import load_policies
from ..config.settings import Settings
from ..contracts.scope import ContractResolver
from ..corpus import Corpus
from ..corpus.manifest import chain_of
from ..encoders.encoder import encoder_of
from ..plugins import installed
from ..progress import Say, quiet
from ..runs import Runs
from ..runs.run import Run
from ..storage.durable import copy_tree, remove_tree
from .canaries import Planting, pairs_of, planting
from .cases import FOREIGN, NAMED, Probes, case_of, derived, folder_of, with_own_presets
from .surfaces import ECHOES, health, listed, plain, refusal, surfaces_of, why
from .tenants import ASKER, READER, Tenant, apart, asking_for_all, other_of, tenants_of

PROBES = 4
"""Default number of questions of a tenant."""
BEFORE, PLANTED = "before", "planted"
"""The states: with hooks only, and with canaries."""
LISTED = 5
"""Tenants of a batch whose lists are compared: lists cost as much as all answers of a tenant."""
_SOURCES = 1_000
"""The most sources of a tenant that are used."""
_RUNS = re.compile(r"[0-9a-z]{16,}")
_LENGTHS = (16, 26, 64)
"""Characters of a canary's word, of an evidence id, and of a digest."""
_UNKNOWN_ID = "0" * 26
"""An evidence id that no row has."""


@dataclass(frozen=True)
class Leak:
    """One leak: to whom, from which angle, in which state, probe and surface, and its kind. It quotes no evidence."""

    principal: str
    project: str
    angle: str
    state: str
    probe: str
    surface: str
    kind: str
    detail: str


@dataclass
class LeakReport:
    """The comparisons made and the leaks found: counts, names and places."""

    tenants: int = 0
    probes: int = 0
    comparisons: int = 0
    batches: int = 0
    """Runs of all probes from one angle, over tenants that do not reach each other's projects; two states each."""
    roles: Counter[str] = field(default_factory=Counter)
    """Canaries by role."""
    gates: Counter[str] = field(default_factory=Counter)
    """Canaries by the gate that excludes them."""
    leaks: list[Leak] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.leaks

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        leaks = [vars(leak) for leak in self.leaks]
        return {"ok": self.ok, "canaries": self.gates.total()} | vars(self) | {"leaks": leaks}


@dataclass(frozen=True)
class _Ready:
    """A tenant with questions, the row that it was shown, as IMPORT_ROWS by name, and its sources."""

    tenant: Tenant
    probes: Probes
    seen: Mapping[str, Any]
    sources: Sequence[str]


def leak_test(
    settings: Settings,
    *,
    principal: str | None = None,
    project: str | None = None,
    probes: int = PROBES,
    canaries: int | None = None,
    angles: Sequence[str] = ANGLES,
    say: Say = quiet,
) -> LeakReport:
    """Test a copy of the corpus under its grants, with as many tenants together as do not reach each other.

    Args:
        settings: corpus, grants, policies, lanes and plugins.
        principal: only tenants of this principal.
        project: only tenants that ask in this project.
        probes: questions per tenant.
        canaries: the most per tenant and angle, different ones for the next tenant; default: every role for every reason.
        angles: the ANGLES to ask from.
        say: receives a line at each step.

    Raises:
        InputError: there is no tenant to test.
    """
    grants, report, tested = load_grants(settings.grants_path), LeakReport(), set[Tenant]()
    with tempfile.TemporaryDirectory(prefix="leak-test-") as temporary:
        bench = _Bench(settings, grants, Path(temporary), say)
        chosen = tenants_of(grants.table, principal, project)
        ready = {one.tenant: one for one in bench.ready(chosen, probes, report)}
        for angle in (name for name in ANGLES if name in angles):
            number = 0
            for group in apart([*ready]):
                batch = _Batch(bench, angle)
                for at, tenant in enumerate(group):
                    batch.add(ready[tenant], other_of(group, at, bench.projects), number, canaries)
                    number += 1
                tested |= batch.test(report)
    report.tenants = len(tested)
    if not report.tenants:
        found = "; ".join(report.skipped) or "none in the grants"
        raise InputError(f"Expected a tenant with rows to be shown, got {found} - at {settings.grants_path}")
    plugins = bench.plugins
    report.skipped += [f"{gate.name}: the gate declares no canary" for gate in plugins.gates if not gate.canaries]
    if untested := [gate.name for gate in plugins.order.gates if gate.canaries and gate.name not in report.gates]:
        report.skipped.append(f"gates that no canary of this test was planted for: {', '.join(untested)}")
    return report


class _Bench:
    """The common inputs of all batches of a test."""

    def __init__(self, settings: Settings, grants: GrantsFile, folder: Path, say: Say) -> None:
        self.settings, self.folder, self.say = settings, folder, say
        self.now = datetime.now(UTC)
        self.as_of = self.now + timedelta(hours=1)
        """The instant of every request: after everything that the test writes."""
        self.pristine = folder / "pristine"
        """A copy of the corpus in which nothing is planted."""
        copy_tree(settings["corpus"], self.pristine)
        heads = self.pristine / "HEADS"
        if heads.is_dir():
            remove_tree(heads)  # of an object store
        heads.write_bytes(chain_of(settings["corpus"]).data())
        corpus = Corpus.open(self.pristine)
        self.projects = corpus.projects()
        self.grants = asking_for_all(grants, self.projects)
        self.policies = with_own_presets(load_policies(settings["policies"], settings["weights"]))
        self.plugins = installed(settings["plugins"]).line
        profile = corpus.encoder_profile if "semantic" in settings["lanes"] else None
        self.encoder = encoder_of(profile, settings.encoder_choice)

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

    def ready(self, tenants: Sequence[Tenant], count: int, report: LeakReport) -> list[_Ready]:
        """The tenants with a row that one of their questions shows; the others are reported as skipped."""
        self.say("asking before anything is planted")
        corpus, found = Corpus.open(self.pristine), []
        numbered = {str(number): tenant for number, tenant in enumerate(tenants)}
        rows = {number: corpus.frame([tenant.project], tenant.users) for number, tenant in numbered.items()}
        probes = {
            number: derived(rows[number].evidence, tenant.project, count, self.as_of, str(tenant))
            for number, tenant in numbered.items()
        }
        asked = [
            {**fields, "principal": numbered[number].principal, "request_id": f"{number}/{name}"}
            for number, own in probes.items()
            for name, fields in own.items()
        ]
        cited: dict[str, list[str]] = {}
        if asked:
            run = self.ask(self.pristine, asked, self.folder / "runs-first")
            for row in run.table("citations").select(["request_id", "evidence_id"]).to_pylist():
                cited.setdefault(_first(row["request_id"]), []).append(row["evidence_id"])
        for number, tenant in numbered.items():
            evidence, placements = rows[number].evidence, rows[number].placements
            known = (pc.index(evidence["evidence_id"], id_).as_py() for id_ in cited.get(number, ()))
            mine = (at for at in known if at >= 0 and evidence["owner_project"][at].as_py() == tenant.project)
            if (at := next(mine, None)) is None:
                report.skipped.append(f"{tenant}: no row is shown")
                continue
            placed = placements.filter(pc.equal(placements["row"], at)).to_pylist()[-1]
            row = evidence.slice(at, 1).to_pylist()[0] | placed
            seen = {name: row.get(name) for name in IMPORT_ROWS.columns}
            sources = pc.unique(flat(evidence["source_id"])).to_pylist()[:_SOURCES]
            found.append(_Ready(tenant, probes[number], seen, sources))
        return found


class _Batch:
    """Cases of one angle that share a corpus."""

    def __init__(self, bench: _Bench, angle: str) -> None:
        self.bench, self.angle = bench, angle
        self.planted: dict[str, Planting] = {}
        """By the name of the case."""
        self.requests: Probes = {}
        """By case and name, `CASE/NAME`."""
        self.forbidden: dict[str, tuple[str, str]] = {}
        """The strings forbidden on every surface, with case, and role and reason."""
        self.shown: set[str] = set()
        """Cases with a cited hook."""
        self.leaks: list[Leak] = []

    def add(self, one: _Ready, other: tuple[str, str], number: int, canaries: int | None) -> None:
        """Add a tenant, with at most so many canaries: successive numbers get different ones, so together they cover all."""
        bench, tenant = self.bench, one.tenant
        who = (tenant.principal, tenant.project, tenant.zone)
        ground = Ground(one.seen, folder_of(one.seen), *who, *other, one.sources, bench.as_of)
        name = f"{number:05d}-{self.angle}"
        case = case_of(name, self.angle, tenant, ground, one.probes, bench.plugins.order.gates)
        pairs = pairs_of(case)
        first = number * (canaries or 0) % len(pairs)
        planted = self.planted[name] = planting(case, [*pairs[first:], *pairs[:first]][:canaries])
        for canary in planted.canaries:
            self.forbidden.update(dict.fromkeys(canary.strings, (name, canary.what)))
        tokens, ids = zip(*((canary.token, canary.evidence_id) for canary in planted.canaries), strict=True)
        self.requests.update((f"{name}/{probe}", fields) for probe, fields in case.requests(tokens, ids).items())

    def test(self, report: LeakReport) -> set[Tenant]:
        """Compare the two states and add the findings to the report; returns the tenants who were shown hooks."""
        folder = self.bench.folder / "batch"
        shutil.copytree(self.bench.pristine, folder / "corpus")
        try:
            before, after = (self._digests(folder, state) for state in (BEFORE, PLANTED))
        finally:
            shutil.rmtree(folder)
        for request_id, surface in sorted(at for at in before.keys() | after.keys() if before.get(at) != after.get(at)):
            self._leak(PLANTED, request_id, surface, "another answer", "differs")
        tested = set()
        for name, planted in self.planted.items():
            if name not in self.shown:
                report.skipped.append(f"{planted.case.tenant}, {self.angle}: no row that points to a canary is shown")
                continue
            tested.add(planted.case.tenant)
            report.roles.update(canary.role for canary in planted.canaries)
            report.gates.update(planted.case.shut[canary.reason][0] for canary in planted.canaries)
        report.batches += 1
        report.probes += sum(_first(request_id) in self.shown for request_id in self.requests)
        report.comparisons += sum(_first(request_id) in self.shown for request_id, _ in after)
        names = {(tenant.principal, tenant.project) for tenant in tested}
        report.leaks += [leak for leak in self.leaks if (leak.principal, leak.project) in names]
        return tested

    def _digests(self, folder: Path, state: str) -> dict[tuple[str, str], bytes]:
        """Publish the rows of a state, ask everything and look at the answers: a digest by request and surface."""
        bench, corpus, runs = self.bench, folder / "corpus", folder / f"runs-{state}"
        bench.say(f"{self.angle}: asking, {state}")
        rows = pa.concat_tables([one.before if state == BEFORE else one.after for one in self.planted.values()])
        now = bench.now + timedelta(minutes=state == PLANTED)
        Corpus.open(corpus).publish(rows, now=now, encoder=bench.encoder)
        if bench.plugins:
            self._show_plugins(corpus, folder / f"read-{state}")
        asked = [
            {**fields, "request_id": id_, "principal": self._tenant(id_).principal}
            for id_, fields in self.requests.items()
        ]
        run = bench.ask(corpus, asked, runs)
        found, refused = {}, dict[str, str]()
        for request_id, answer, surfaces in surfaces_of(run, bench.policies.roles.policies):
            name, _, probe = request_id.partition("/")
            if not self.planted[name].hook_ids.isdisjoint(row["evidence_id"] for row in answer.citations):
                self.shown.add(name)
            if probe in FOREIGN:
                surfaces = {"refusal": refusal(answer, self.requests[request_id]["project"])}
                if refused.setdefault(name, surfaces["refusal"]) != surfaces["refusal"]:
                    detail = "a foreign and an unknown project read differently"
                    self._leak(state, request_id, "refusal", "another refusal", detail)
            found |= self._looked_at(state, request_id, surfaces, runs)
        snapshots = dict(zip(*(run.snapshots[c].to_pylist() for c in ("request_id", "snapshot_id")), strict=True))
        for number, (name, planted) in enumerate([*self.planted.items()][:LISTED]):
            at, request_id = f"{name}/lists", f"{name}/{next(iter(planted.case.probes))}"
            settings, resolver = self._as_tenant(planted.case.tenant, corpus, runs)
            if surfaces := listed(settings, resolver, self.requests[request_id], run):
                asked_for = (planted.canaries[0].evidence_id, _UNKNOWN_ID)
                canary, nothing = (why(settings, snapshots[request_id], evidence) for evidence in asked_for)
                if canary != nothing:
                    detail = "a canary and a row that does not exist read differently"
                    self._leak(state, at, "why", "another refusal", detail)
                if self.angle == OPEN and number == 0:
                    surfaces["doctor"] = health(settings)
                found |= self._looked_at(state, at, surfaces | {"why": canary}, runs)
        return found

    def _show_plugins(self, corpus: Path, runs: Path) -> None:
        """Ask as READER in every project, so that plugins have processed the rows of all tenants."""
        question = next(iter(self.planted.values())).case.words
        common = {"principal": READER, "question": question, "purpose": PURPOSES.values[0]}
        common |= {"time": {"as_of": self.bench.as_of.isoformat()}}
        projects = Corpus.open(corpus).projects()
        self.bench.ask(corpus, [{**common, "request_id": project, "project": project} for project in projects], runs)

    def _as_tenant(self, tenant: Tenant, corpus: Path, runs: Path) -> tuple[Settings, ContractResolver]:
        """The settings and contracts of a tenant on one state of the corpus."""
        bench = self.bench
        mine = {"corpus": corpus, "runs": runs, "grants": bench.grants.path, "principal": tenant.principal}
        resolver = ContractResolver(
            Corpus.open(corpus), bench.grants, bench.policies, tenant.principal, bench.as_of,
            {"project": tenant.project}, plugins=bench.plugins,
        )  # fmt: skip
        return bench.settings.having(LEAK_TEST, **mine), resolver

    def _looked_at(
        self, state: str, request_id: str, surfaces: Mapping[str, str], runs: Path
    ) -> dict[tuple[str, str], bytes]:
        """Digests of the surfaces; any forbidden content on them is a leak."""
        name, _, probe = request_id.partition("/")
        found = {}
        for surface, shown in surfaces.items():
            text = plain(shown, runs)
            found[request_id, surface] = hashlib.blake2b(text.encode(), digest_size=16).digest()
            if probe == NAMED and surface in ECHOES:
                continue
            for owner, what in sorted({self.forbidden[string] for string in _strings(text) & self.forbidden.keys()}):
                planted_for = "" if owner == name else f", planted for {self._tenant(owner)}"
                self._leak(state, request_id, surface, "a canary", f"{what}{planted_for}")
        return found

    def _leak(self, state: str, request_id: str, surface: str, kind: str, detail: str) -> None:
        tenant, probe = self._tenant(request_id), request_id.partition("/")[2]
        self.leaks.append(Leak(tenant.principal, tenant.project, self.angle, state, probe, surface, kind, detail))

    def _tenant(self, request_id: str) -> Tenant:
        return self.planted[_first(request_id)].case.tenant


def _first(request_id: str) -> str:
    """The case, or number, that a request belongs to."""
    return request_id.partition("/")[0]


def _strings(text: str) -> set[str]:
    """All substrings of a text that could be a word, id or digest of a canary."""
    return {
        run[at : at + length]
        for run in set(_RUNS.findall(text))
        for length in _LENGTHS
        for at in range(len(run) - length + 1)
    }
