"""The test itself: from every angle, the probes of all tenants before and after canaries are planted.

    report = leak_test(settings, tenants=5)
    report.ok, report.leaks

Every surface must be byte-identical in both states; none may contain a forbidden string or an audit column.

Note: a test that sees nothing finds nothing. A tenant counts only if rows of theirs that point to canaries were shown;
one without is listed as skipped, and a test without any tenant is an error.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from ...nodes.columns.keys import flat
from ...nodes.errors import InputError
from ...nodes.tables import IMPORT_ROWS
from ...nodes.walls.gate import ANGLES, OPEN
from ..config.grants import load_grants
from ..config.policies.tables import load_policies
from ..config.settings import Settings
from ..corpus import Corpus
from ..corpus.manifest import chain_of
from ..plugins import installed
from ..progress import Say, quiet
from ..storage.durable import copy_tree, remove_tree
from .angles import Probe, angle, derived, with_own_presets
from .batches import Bench, test_batch
from .canaries import TenantCase, folder_of
from .report import LeakReport
from .tenants import Tenant, apart, asking_for_all, others_of, tenants_of

PROBES = 4
"""Default number of probes of a tenant; half as many from each angle but the first."""
_SOURCES = 1_000
"""The most sources of a tenant that are used."""


@dataclass(frozen=True)
class _Ready:
    """A tenant with probes and a row that was shown."""

    tenant: Tenant
    probes: Sequence[Probe]
    seen: Mapping[str, Any]
    sources: Sequence[str]


def leak_test(
    settings: Settings,
    *,
    principal: str | None = None,
    project: str | None = None,
    tenants: int | None = None,
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
        tenants: the most tenants, in order of name.
        probes: probes per tenant.
        canaries: about this many per tenant and angle, different ones for the next tenant; default: every role for
            every reason.
        angles: the ANGLES to ask from.
        say: receives a line at each step.

    Raises:
        InputError: there is no tenant to test.
    """
    grants = load_grants(settings.grants_path)
    policies = load_policies(settings["policies"], settings["weights"])
    plugins = installed(settings["plugins"]).line
    report, tested = LeakReport(), set[Tenant]()
    with tempfile.TemporaryDirectory(prefix="leak-test-") as temporary:
        folder = Path(temporary)
        corpus = _copied(settings, folder / "pristine")
        asking, encoder = asking_for_all(grants, corpus.projects()), _encoder(corpus, settings)
        bench = Bench(settings, asking, policies, encoder, folder / "pristine", folder, datetime.now(UTC), plugins, say)
        ready = _ready(bench, corpus, tenants_of(grants.table, principal, project), probes, report)[:tenants]
        units = {name: _units(bench, corpus, ready, name, canaries) for name in ANGLES if name in angles}
        own = with_own_presets(policies)
        for name, of_angle in units.items():
            for group in of_angle:
                tested |= test_batch(replace(bench, policies=policies if name == OPEN else own), group, report)
    report.tenants = len(tested)
    if not report.tenants:
        found = "; ".join(report.skipped) or "none in the grants"
        raise InputError(f"Expected a tenant with rows to be shown, got {found} - at {settings.grants_path}")
    report.skipped += [f"{gate.name}: the gate declares no canary" for gate in plugins.gates if not gate.canaries]
    if untested := [gate.name for gate in plugins.order.gates if gate.canaries and gate.name not in report.gates]:
        report.skipped.append(f"gates that no canary of this test was planted for: {', '.join(untested)}")
    return report


def _copied(settings: Settings, pristine: Path) -> Corpus:
    """A copy of the corpus in a local folder."""
    copy_tree(settings["corpus"], pristine)
    heads = pristine / "HEADS"
    if heads.is_dir():
        remove_tree(heads)  # of an object store
    heads.write_bytes(chain_of(settings["corpus"]).data())
    return Corpus.open(pristine)


def _ready(bench: Bench, corpus: Corpus, chosen: Sequence[Tenant], count: int, report: LeakReport) -> list[_Ready]:
    """The tenants with a row that one of their probes shows; the others are reported as skipped."""
    bench.say("asking before anything is planted")
    frames = [corpus.frame([tenant.project], tenant.users) for tenant in chosen]
    asked = [
        derived(frame.evidence, tenant.project, count, bench.as_of, tenant.name)
        for tenant, frame in zip(chosen, frames, strict=True)
    ]
    rows = [
        {**probe.fields, "principal": tenant.principal, "request_id": f"{number}/{at}"}
        for number, (tenant, probes) in enumerate(zip(chosen, asked, strict=True))
        for at, probe in enumerate(probes)
    ]
    cited: dict[str, list[str]] = {}
    if rows:
        run = bench.ask(bench.pristine, rows, bench.folder / "runs-first")
        for row in run.table("citations").select(["request_id", "evidence_id"]).to_pylist():
            cited.setdefault(row["request_id"].partition("/")[0], []).append(row["evidence_id"])
    found = []
    for number, (tenant, frame, probes) in enumerate(zip(chosen, frames, asked, strict=True)):
        seen = _shown(tenant, frame, cited.get(str(number), ()))
        if seen is None:
            report.skipped.append(f"{tenant.name}: no row is shown")
        else:
            sources = pc.unique(flat(frame.evidence["source_id"])).to_pylist()[:_SOURCES]
            found.append(_Ready(tenant, probes, seen, sources))
    return found


def _shown(tenant: Tenant, frame: Any, cited: Sequence[str]) -> dict[str, Any] | None:
    """The first cited row of the tenant's project, as IMPORT_ROWS by name."""
    for evidence_id in cited:
        at = pc.index(frame.evidence["evidence_id"], evidence_id).as_py()
        if at >= 0 and frame.evidence["owner_project"][at].as_py() == tenant.project:
            placed = frame.placements.filter(pc.equal(frame.placements["row"], at)).to_pylist()[-1]
            row = frame.evidence.slice(at, 1).to_pylist()[0] | placed
            return {name: row.get(name) for name in IMPORT_ROWS.columns}
    return None


def _units(
    bench: Bench, corpus: Corpus, ready: Sequence[_Ready], name: str, canaries: int | None
) -> list[list[TenantCase]]:
    """The tenants for one angle, in groups that can share a corpus."""
    of_tenant = {one.tenant: one for one in ready}
    number = 0
    groups = []
    for group in apart([one.tenant for one in ready]):
        units = []
        for tenant, others in zip(group, others_of(group, corpus.projects()), strict=True):
            one = of_tenant[tenant]
            seen, gates = dict(one.seen), bench.plugins.order.gates
            from_here = angle(name, tenant, seen, folder_of(seen), others, one.sources, bench.as_of, gates)
            questions = " ".join(probe.fields["question"] for probe in one.probes).split()
            words = " ".join(dict.fromkeys(questions[:60]))
            probes = one.probes if name == OPEN else one.probes[: (len(one.probes) + 1) // 2]
            case = TenantCase(f"{number:05d}-{name}", seen, words, from_here, tenant, probes, others[1])
            units.append(case.thinned(number, canaries))
            number += 1
        groups.append(units)
    return groups


def _encoder(corpus: Corpus, settings: Settings) -> Any:
    """The encoder by which the semantic lane can find canaries; None if that lane is off."""
    from ..encoders.encoder import encoder_of

    profile = corpus.encoder_profile if "semantic" in settings["lanes"] else None
    return encoder_of(profile, settings.encoder_choice)
