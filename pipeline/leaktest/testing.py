"""The test itself: per tenant the same probes before canaries, among them, after they changed and after they are gone.

    report = leak_test(settings, tenants=5)
    report.ok, report.leaks

Every surface must be the same bytes in all four states, none may hold a forbidden string, none may show an audit column.
What one would otherwise get wrong: a test that sees nothing finds nothing. A tenant counts only if rows of theirs that
point to canaries were shown; one without rows is named, and a test without any tenant is an error.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.errors import InputError
from ...nodes.tables import IMPORT_ROWS
from ..corpus import Corpus
from ..grants import GrantsFile, load_grants
from ..retriever import Retriever
from ..runs import RunStore
from ..settings import Settings, Value
from .canaries import NOBODY, Canaries, canaries, reasons
from .probes import Probe, derived, given, naming
from .surfaces import ECHOES, Surfaces, audit_keys, recorded_logs, surfaces_of

__all__ = ["Leak", "LeakReport", "leak_test"]

STATES = ("planted", "changed", "removed")
PROBES = 4
"""Derived probes of a tenant where nothing is said."""


@dataclass(frozen=True)
class Leak:
    """One thing that a caller learned: who, in which state, from which probe and surface, and what it was."""

    principal: str
    project: str
    state: str
    probe: str
    surface: str
    kind: str
    detail: str


@dataclass
class LeakReport:
    """What was compared, and what leaked; counts, names and places, no evidence."""

    tenants: int = 0
    probes: int = 0
    canaries: int = 0
    comparisons: int = 0
    differences: int = 0
    leaks: list[Leak] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.leaks

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"ok": self.ok, **asdict(self)}

    def text(self) -> str:
        """One line per leak, then what was compared."""
        lines = [
            f"leak: {leak.principal} in {leak.project}: {leak.kind} in {leak.surface} of {leak.probe}, {leak.state}: {leak.detail}"
            for leak in self.leaks
        ]
        lines += [f"skipped: {one}" for one in self.skipped]
        lines.append(
            f"{self.tenants} tenants, {self.probes} probes, {self.canaries} canaries, {self.comparisons} comparisons: "
            f"{self.differences} differences, {len(self.leaks)} leaks"
        )
        return "\n".join(lines) + "\n"


def leak_test(
    settings: Settings,
    *,
    principal: str | None = None,
    project: str | None = None,
    tenants: int | None = None,
    probes: int = PROBES,
    requests: Sequence[dict[str, Any]] | None = None,
    now: datetime | None = None,
) -> LeakReport:
    """Test a copy of the corpus of the settings under its grants, tenant by tenant.

    Args:
        settings: corpus, grants, policies and lanes.
        principal: only tenants of this principal.
        project: only tenants that ask in this project.
        tenants: at most so many, in order of name.
        probes: derived probes per tenant.
        requests: rows to ask in place of derived probes, those of other projects left out.
        now: the instant of the test.

    Raises:
        InputError: there is no tenant to test.
    """
    now = now or datetime.now(UTC)
    grants = load_grants(settings.grants_path)
    own = grants.table.filter(grants.table["own_project"]).to_pylist()
    chosen = sorted(
        {(g["principal"], g["project"], g["zone"]) for g in own if principal in (None, g["principal"]) and project in (None, g["project"])}
    )  # fmt: skip
    report = LeakReport()
    with tempfile.TemporaryDirectory(prefix="leak-test-") as folder:
        pristine = Path(folder) / "pristine"
        shutil.copytree(settings["corpus"], pristine)
        for number, (who, where, zone) in enumerate(chosen):
            if tenants is not None and report.tenants == tenants:
                break
            work = Path(folder) / f"tenant-{number}"
            shutil.copytree(pristine, work / "corpus", copy_function=_linked)
            tenant = _Tenant(settings, grants, who, where, zone, work, now)
            tenant.test(report, probes, requests)
            shutil.rmtree(work)
    if not report.tenants:
        found = "; ".join(report.skipped) or "none in the grants"
        raise InputError(f"Expected a tenant with rows to be shown, got {found} - at {settings.grants_path}")
    return report


@dataclass(frozen=True)
class _Tenant:
    """One principal in one project, on a copy of the corpus of their own."""

    settings: Settings
    grants: GrantsFile
    principal: str
    project: str
    zone: str
    folder: Path
    now: datetime

    @property
    def as_of(self) -> datetime:
        return self.now + timedelta(hours=1)

    def test(self, report: LeakReport, count: int, requests: Sequence[dict[str, Any]] | None) -> None:
        """Compare every state with the first, and add what was found to the report."""
        seed = f"{self.principal}/{self.project}"
        corpus = Corpus.open(self.folder / "corpus")
        frame = corpus.frame([self.project], self._readable())
        asked = (
            derived(frame.evidence, self.project, count, self.as_of, seed)
            if requests is None
            else given(requests, self.project, self.as_of)
        )
        seen = self._shown(asked, frame) if asked else None
        if seen is None:
            report.skipped.append(f"{self.principal} in {self.project}: no row is shown")
            return
        elsewhere = next((p for p in corpus.projects() if p not in self._reached()), NOBODY)
        words = " ".join(dict.fromkeys(" ".join(str(probe.fields.get("question", "")) for probe in asked).split()[:60]))
        shut = reasons(self.project, elsewhere, self.zone, self.as_of)
        rows = canaries(seen, shut, words, self.as_of, seed)
        asked = [*asked, naming(rows.tokens, sorted(rows.forbidden), self.project, self.as_of)]
        encoder = self._encoder(corpus)
        corpus.publish(rows.hooks, now=self.now, encoder=encoder)
        first, log = self._state("before", asked, elsewhere)
        if not any(hook in first[probe.name]["citations"] for probe in asked for hook in rows.hook_ids):
            report.skipped.append(f"{self.principal} in {self.project}: no row that points to a canary is shown")
            return
        report.tenants += 1
        report.probes += len(asked)
        report.canaries += rows.count
        self._judge(report, "before", first, first, log, rows, asked)
        for minute, state in enumerate(STATES, start=1):
            table: pa.Table = getattr(rows, state)
            corpus.publish(table, now=self.now + timedelta(minutes=minute), encoder=encoder)
            after, log = self._state(state, asked, elsewhere)
            self._judge(report, state, first, after, log, rows, asked)

    def _open(self, runs: RunStore | None) -> Retriever:
        return Retriever.open(
            self.folder / "corpus",
            principal=self.principal,
            runs=runs,
            grants=self.grants,
            policies=self.settings["policies"],
            lanes=self.settings["lanes"],
            clock=lambda: self.as_of,
            cross_encoder=self.settings["cross_encoder"],
        )

    def _state(self, state: str, asked: Sequence[Probe], elsewhere: str) -> tuple[Surfaces, str]:
        """The surfaces of one state, and what was logged meanwhile."""
        runs = self.folder / f"runs-{state}"
        mine = {"corpus": self.folder / "corpus", "runs": runs, "grants": self.grants.path, "principal": self.principal}
        settings = Settings(
            {**self.settings.values, **{name: Value(value, "leak-test") for name, value in mine.items()}}
        )
        with recorded_logs() as stream:
            retriever = self._open(RunStore(runs))
            found = surfaces_of(retriever, settings, asked, [elsewhere, f"{NOBODY}-unknown"], runs)
        return found, stream.getvalue()

    def _shown(self, asked: Sequence[Probe], frame: Any) -> dict[str, Any] | None:
        """A row of the tenant's that one of the probes shows, as IMPORT_ROWS by name."""
        retriever = self._open(None)
        for probe in asked:
            for citation in retriever.retrieve(probe.fields).citations:
                at = pc.index(frame.evidence["evidence_id"], citation["evidence_id"]).as_py()
                if at >= 0 and frame.evidence["owner_project"][at].as_py() == self.project:
                    placed = frame.placements.filter(pc.equal(frame.placements["row"], at)).to_pylist()[-1]
                    row = frame.evidence.slice(at, 1).to_pylist()[0] | placed
                    return {name: row.get(name) for name in IMPORT_ROWS.columns}
        return None

    def _readable(self) -> set[str]:
        """The users whose rows the tenant may read: the principal, and those granted."""
        table = self.grants.table
        mine = table.filter(pc.equal(table["principal"], self.principal))["users"].to_pylist()
        return {self.principal}.union(*(users for users in mine if users))

    def _reached(self) -> set[str]:
        table = self.grants.table
        return set(table.filter(pc.equal(table["principal"], self.principal))["project"].to_pylist())

    def _encoder(self, corpus: Corpus) -> Any:
        """The encoder that canaries need to be found by the semantic lane; None where that lane is off."""
        from ..encoder import encoder_of

        profile = corpus.encoder_profile if "semantic" in self.settings["lanes"] else None
        return encoder_of(profile, self.settings["ollama_url"])

    def _judge(
        self,
        report: LeakReport,
        state: str,
        first: Surfaces,
        after: Surfaces,
        log: str,
        rows: Canaries,
        asked: Sequence[Probe],
    ) -> None:
        """Add what a state shows that it must not."""
        naming_ = {probe.name for probe in asked if probe.names_canaries}

        def leak(probe: str, surface: str, kind: str, detail: str) -> None:
            report.leaks.append(Leak(self.principal, self.project, state, probe, surface, kind, detail))

        for probe, surfaces in after.items():
            for surface, text in surfaces.items():
                report.comparisons += 1
                if text != first[probe][surface]:
                    report.differences += 1
                    leak(
                        probe, surface, "another answer", f"differs at character {_first(first[probe][surface], text)}"
                    )
                for column in audit_keys(surface, text):
                    leak(probe, surface, "a column for auditors", column)
                if not (probe in naming_ and surface in ECHOES):
                    for what in _held(rows, text):
                        leak(probe, surface, "a canary", what)
        unknown = [after[f"foreign project {n}"]["refusal"] for n in (1, 2)]
        if unknown[0] != unknown[1]:
            leak("foreign project 1", "refusal", "another refusal", "a foreign and an unknown project read differently")
        for what in _held(rows, log):
            leak("all", "log", "a canary", what)


def _held(rows: Canaries, text: str) -> list[str]:
    """Roles and reasons of the canaries that a text holds something of."""
    return sorted({name for string, name in rows.forbidden.items() if string in text})


def _first(one: str, other: str) -> int:
    """The first character at which two texts differ."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _linked(source: str, target: str) -> None:
    """A second name for a file of our own copy: packs are immutable, and everything else is replaced, never changed."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
