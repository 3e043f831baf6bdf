"""The test itself: from every angle, the probes of all tenants before canaries are planted, with them, after a change
and after removal.

    report = leak_test(settings, tenants=5)
    report.ok, report.leaks

Every surface must be byte-identical in all four states; none may contain a forbidden string or an audit column.

Note: a test that sees nothing finds nothing. A tenant counts only if rows of theirs that point to canaries were shown;
one without is listed as skipped, and a test without any tenant is an error.

Three more checks need rows of the tenant's own: a made-up token and a private key, line by line in separate rows, must
be in no file of the corpus; control characters must be in no block; the pointer from before the publication and a
changed manifest must be refused on opening.
"""

from __future__ import annotations

import base64
import hashlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.columns.hidden_characters import escape
from ...nodes.columns.keys import flat
from ...nodes.errors import InputError, ScopedRetrievalError
from ...nodes.tables import IMPORT_ROWS
from ...nodes.vocabulary import MODES
from ..config.grants import load_grants
from ..config.opening import trust_of
from ..config.policies.tables import load_policies
from ..config.settings import Settings
from ..corpus import Corpus
from ..plugins import installed
from ..sources.importing import normalize
from ..storage.durable import copy_tree, remove_tree
from .angles import ANGLES, LEAK_TEST, OPEN, angle, with_own_presets
from .batches import Bench, TenantCase, test_batch
from .canaries import CanaryCase, base_of, folder_of
from .probes import Probe, derived, given
from .report import Leak, LeakReport
from .tenants import Tenant, apart, asking_for_all, others_of, tenants_of

__all__ = ["CHECKS", "PROBES", "leak_test"]

PROBES = 4
"""Default number of derived probes of a tenant; half as many from each angle but the first."""
_SOURCES = 1_000
"""The most sources of a tenant that are used."""


@dataclass(frozen=True)
class _Ready:
    """A tenant with probes and a row that was shown."""

    tenant: Tenant
    probes: Sequence[Probe]
    seen: Mapping[str, Any]
    sources: Sequence[str]


def leak_test(  # noqa: PLR0913 - options by keyword
    settings: Settings,
    *,
    principal: str | None = None,
    project: str | None = None,
    tenants: int | None = None,
    probes: int = PROBES,
    canaries: int | None = None,
    angles: Sequence[str] = ANGLES,
    requests: Sequence[dict[str, Any]] | None = None,
    now: datetime | None = None,
    progress: bool = False,
) -> LeakReport:
    """Test a copy of the corpus under its grants, with as many tenants together as do not reach each other.

    Args:
        settings: corpus, grants, policies, lanes and plugins.
        principal: only tenants of this principal.
        project: only tenants that ask in this project.
        tenants: the most tenants, in order of name.
        probes: derived probes per tenant.
        canaries: about this many per tenant and angle, different ones for the next tenant; default: every role for
            every reason.
        angles: the ANGLES to ask from.
        requests: rows to ask instead of derived probes, except those of other projects; from the open angle only, as
            the other angles depend on fields of the test.
        now: the instant of the test.
        progress: show a bar.

    Raises:
        InputError: there is no tenant to test.
    """
    now = now or datetime.now(UTC)
    grants = load_grants(settings.grants_path)
    policies = load_policies(settings["policies"], settings["weights"])
    plugins = installed(settings["plugins"]).line
    report = LeakReport()
    with tempfile.TemporaryDirectory(prefix="leak-test-") as temporary, _bar(progress) as bar:
        folder = Path(temporary)
        pristine = folder / "pristine"
        copy_tree(settings["corpus"], pristine)
        heads = pristine / "HEADS"
        if heads.is_dir():
            remove_tree(heads)  # of an object store
        heads.write_bytes(trust_of(settings).chain(settings["corpus"]).data())
        corpus = Corpus.open(pristine)
        asking = asking_for_all(grants, corpus.projects())
        bench = Bench(settings, asking, policies, _encoder(corpus, settings), pristine, folder, now, plugins, bar)
        chosen = tenants_of(grants.table, principal, project)
        ready = _ready(bench, corpus, chosen, probes, requests, report)[:tenants]
        asked = (OPEN,) if requests is not None else tuple(name for name in ANGLES if name in angles)
        units = [_units(bench, corpus, ready, name, canaries) for name in asked]
        if bar is not None:
            bar.reset(sum(len(unit.probes) + 1 for of_angle in units for group in of_angle for unit in group) * 4)
        own, tested = with_own_presets(policies), set[Tenant]()
        for name, of_angle in zip(asked, units, strict=True):
            under = policies if name == OPEN else own
            for group in of_angle:
                tested |= test_batch(bench.under(under), group, report)
        if ready and requests is None:
            (first,) = units[0][0][:1]
            report.own = len(CHECKS)
            report.leaks += _own_rows(bench, first.tenant, first.case, report)
        report.tenants = len(tested)
    if not report.tenants:
        found = "; ".join(report.skipped) or "none in the grants"
        raise InputError(f"Expected a tenant with rows to be shown, got {found} - at {settings.grants_path}")
    report.skipped += [f"{gate.name}: the gate declares no canary" for gate in plugins.gates if not gate.canaries]
    if untested := [gate.name for gate in plugins.order.gates if gate.canaries and gate.name not in report.gates]:
        report.skipped.append(f"gates that no canary of this test was planted for: {', '.join(untested)}")
    return report


def _ready(
    bench: Bench,
    corpus: Corpus,
    chosen: Sequence[Tenant],
    count: int,
    requests: Sequence[dict[str, Any]] | None,
    report: LeakReport,
) -> list[_Ready]:
    """The tenants with a row that one of their probes shows; the others are reported as skipped."""
    bench.tell("asking before anything is planted")
    asked: dict[str, tuple[Probe, ...]] = {}
    rows: list[dict[str, Any]] = []
    frames = [corpus.frame([tenant.project], tenant.users) for tenant in chosen]
    for number, (tenant, frame) in enumerate(zip(chosen, frames, strict=True)):
        if requests is None:
            probes = derived(frame.evidence, tenant.project, count, bench.as_of, tenant.name)
        else:
            probes = given(requests, tenant.project, bench.as_of)
        asked[str(number)] = tuple(probes)
        who = {"principal": tenant.principal}
        rows += [{**probe.fields, **who, "request_id": f"{number}/{at}"} for at, probe in enumerate(probes)]
    cited: dict[str, list[str]] = {}
    if rows:
        run = bench.ask(bench.pristine, rows, bench.folder / "runs-first")
        columns = run.table("citations").select(["request_id", "evidence_id"]).to_pylist()
        for row in columns:
            cited.setdefault(row["request_id"].partition("/")[0], []).append(row["evidence_id"])
    found = []
    for number, (tenant, frame) in enumerate(zip(chosen, frames, strict=True)):
        seen = _shown(tenant, frame, cited.get(str(number), ()))
        if seen is None:
            report.skipped.append(f"{tenant.name}: no row is shown")
        else:
            sources = pc.unique(flat(frame.evidence["source_id"])).to_pylist()[:_SOURCES]
            found.append(_Ready(tenant, asked[str(number)], seen, sources))
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
    modes = bench.policies.mode_policies
    history = {*modes.filter(modes["include_deleted"])["mode"].to_pylist()}
    history |= {alias for alias, mode in MODES.aliases.items() if mode in history}
    number = 0
    groups = []
    for group in apart([one.tenant for one in ready]):
        units = []
        for tenant, others in zip(group, others_of(group, corpus.projects()), strict=True):
            one = of_tenant[tenant]
            who = (tenant.principal, tenant.project, tenant.zone)
            seen = dict(one.seen)
            gates = bench.plugins.order.gates
            from_here = angle(name, seen, folder_of(seen), who, others, one.sources, bench.as_of, gates)
            if any(probe.fields.get("mode") in history for probe in one.probes):
                from_here = from_here.with_history()
            words = " ".join(
                dict.fromkeys(" ".join(str(p.fields.get("question", "")) for p in one.probes).split()[:60])
            )
            case = CanaryCase(f"{number:05d}-{name}", seen, words, from_here).thinned(number, canaries)
            probes = one.probes if name == OPEN else one.probes[: (len(one.probes) + 1) // 2]
            units.append(TenantCase(tenant, case, probes, others.project))
            number += 1
        groups.append(units)
    return groups


def _encoder(corpus: Corpus, settings: Settings) -> Any:
    """The encoder by which the semantic lane can find canaries; None if that lane is off."""
    from ..encoders.encoder import encoder_of

    profile = corpus.encoder_profile if "semantic" in settings["lanes"] else None
    return encoder_of(profile, settings.encoder_choice)


def _bar(shown: bool) -> Any:
    """A progress bar over requests read, or none."""
    if not shown:
        return nullcontext()
    from tqdm.auto import tqdm

    return tqdm(unit="request")


CHECKS = ("secrets", "terminals", "heads")
_MARK = "zqown"
_ACTING = "\x1b]0;zq\x07\x1b[2J\u202e\u200b\x9b31m"
_LINES = 24


def _own_rows(bench: Bench, tenant: Tenant, case: CanaryCase, report: LeakReport) -> Iterator[Leak]:
    """Leaks of the planted secrets, control characters and heads; a check that saw nothing is reported as skipped."""
    bench.tell("secrets, control characters and heads")
    at = bench.folder / "own"
    copy_tree(bench.pristine, at)
    heads = (at / "HEADS").read_bytes()
    secrets = [_token(), *_key()]
    rows, _ = normalize(
        _planted(case, bench, secrets), project=tenant.project, principal=tenant.principal, now=bench.now
    )
    Corpus.open(at).publish(rows, now=bench.now, encoder=bench.encoder)

    def leak(surface: str, kind: str, detail: str) -> Leak:
        return Leak(tenant.principal, tenant.project, case.angle.name, "own rows", "own rows", surface, kind, detail)

    evidence = Corpus.open(at).frame([tenant.project], tenant.users).evidence
    stored = "\n".join(text for name in ("text", "title") for text in evidence[name].to_pylist() if text)
    if left := [secret for secret in secrets if secret in stored]:
        yield leak("corpus", "a secret", f"{len(left)} of {len(secrets)} planted ones were stored")
    question = {"question": f"{_MARK}act {case.words}", "project": tenant.project, "purpose": "answer-question",
                "principal": tenant.principal, "request_id": "own", "time": {"as_of": bench.as_of.isoformat()}}  # fmt: skip
    (block,) = bench.ask(at, [question], bench.folder / "runs-own").table("blocks", texts=True)["text"].to_pylist()
    if f"{_MARK}act" not in (block or ""):
        report.skipped.append(f"{tenant.name}: the planted control characters were not shown")
    if escape(block or "") != (block or ""):
        yield leak("block", "a control character", "a character that acts on a terminal or hides is in a block")
    for what in _accepted(at, heads):
        yield leak("heads", "an accepted change", what)


def _accepted(at: Path, before: bytes) -> Iterator[str]:
    """Changes to the chain of a corpus that verifying it against its anchor accepts."""
    corpus = Corpus.open(at)
    anchor, manifest = corpus.head, next((at / "generations").glob(f"{corpus.pin['sequence']:09d}-*"))
    changes: Mapping[str, tuple[Path, bytes]] = {
        "a chain that was set back": (at / "HEADS", before),
        "a manifest that was changed": (manifest, manifest.read_bytes() + b" "),
    }
    for what, (file, content) in changes.items():
        kept = file.read_bytes()
        file.write_bytes(content)
        try:
            if not Corpus.open(at).verify(anchor):
                yield what
        except ScopedRetrievalError:
            pass
        finally:
            file.write_bytes(kept)


def _planted(case: CanaryCase, bench: Bench, secrets: list[str]) -> pa.Table:
    """Rows next to the shown one, which its tenant may see."""
    base = base_of(case, bench.as_of) | {
        "recorded_time": bench.now - timedelta(hours=1),
        "source_refs": None,
        "symbols": None,
    }
    own = {"section": LEAK_TEST, "entity": None, "title": None}
    rows = [base | own | {"text": f"{_MARK}act {case.words} {_ACTING}", "title": f"{_MARK}{_ACTING}"}]
    rows += [
        base | own | {"text": secret, "line_start": line, "line_end": line} for line, secret in enumerate(secrets, 2)
    ]
    return IMPORT_ROWS.from_rows([{**row, "occurrence": None} for row in rows])


def _token() -> str:
    """A token of a known form that was never issued."""
    return "ghp_" + base64.b32encode(hashlib.sha256(LEAK_TEST.encode()).digest()).decode()[:36].title()


def _key() -> list[str]:
    """Lines that begin like an RSA key and continue with digests."""
    noise = b"".join(hashlib.sha256(f"{LEAK_TEST}{n}".encode()).digest() for n in range(2 * _LINES))
    encoded = base64.b64encode(bytes.fromhex("3082092802010002820201") + noise).decode()
    return [encoded[at : at + 64] for at in range(0, 64 * _LINES, 64)]
