"""`leak-test` finds nothing in the demo nor among many tenants, and something in each line that is broken on purpose."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
import test_planted_faults as faults
import yaml
from command_line import run
from plugin_package import SOURCE, install
from scoped_retrieval.nodes import audit_snapshot, scope_resolution
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.nodes.walls.gates import GATES, NUMBER
from scoped_retrieval.pipeline.config.settings import Settings, load_settings
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.demo import run_demo
from scoped_retrieval.pipeline.leaktest import ANGLES, LeakReport, leak_test, surfaces
from scoped_retrieval.pipeline.leaktest.canaries import ROLES
from scoped_retrieval.pipeline.servers import renderings
from scoped_retrieval.pipeline.sources.importing import normalize
from scoped_retrieval.pipeline.views.audit_snapshot import audit_snapshot as audit_snapshot_of
from small_corpus import Story, row

Plant = Callable[[pytest.MonkeyPatch], None]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    run_demo(folder, semantic=False, progress=False, say=lambda _: None)
    return folder


NOW = datetime(2026, 11, 20, tzinfo=UTC)
FEW = 24
"""Canaries per tenant and angle where a test needs no pair of role and reason in particular."""


def settings_in(folder: Path) -> Settings:
    return load_settings({}, cwd=folder, environ={}, user=folder / "none.toml")


def probed(folder: Path, **how: Any) -> LeakReport:
    return leak_test(settings_in(folder), **{"principal": "ana", "project": "shop", "probes": 2, "canaries": FEW} | how)


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three users with three notes each, every one in a project of their own."""
    folder = tmp_path_factory.mktemp("crowd")
    users = [f"user-{number:02d}" for number in range(3)]
    rows = [
        {"source_id": "notes:crowd", "text": f"{what} of {user} on day {day}", "owner_project": user, "owner_user": user,
         "origin_class": "session-event", "evidence_kind": "session-event", "lifecycle": "verified",
         "recorded_time": NOW - timedelta(days=30 + day)}
        for user in users
        for day, what in enumerate(("breakfast with the neighbors", "the long meeting", "an evening at the lake"))
    ]  # fmt: skip
    table, _ = normalize(pa.Table.from_pylist(rows), project="crowd", principal="crowd", now=NOW)
    Corpus.create(folder / "corpus").publish(table, now=NOW)
    people = {user: {"projects": [user]} for user in users}
    (folder / "corpus" / "grants.yaml").write_text(yaml.safe_dump({"principals": people}))
    (folder / "scoped-retrieval.toml").write_text(
        'corpus = "corpus"\nlanes = ["lexical", "recent", "exact", "expansion", "graph"]\n'
    )
    return folder


def content(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_the_demo_leaks_nothing_and_stays_as_it_is(demo: Path) -> None:
    before = content(demo / "corpus")
    report = probed(demo, canaries=None, probes=1)
    assert (report.ok, report.leaks, report.tenants) == (True, [], 1)
    assert report.skipped == []
    assert report.batches == len(ANGLES)
    assert report.comparisons > 50
    assert content(demo / "corpus") == before
    assert set(report.roles) == set(ROLES)
    assert set(report.gates) == {gate.name for gate in GATES}


def test_many_tenants_take_one_batch_from_each_angle(crowd: Path) -> None:
    report = probed(crowd, principal=None, project=None, probes=1)
    assert (report.ok, report.leaks, report.skipped) == (True, [], [])
    assert (report.tenants, report.batches) == (3, len(ANGLES))
    assert set(report.roles) == set(ROLES)
    assert set(report.gates) == {gate.name for gate in GATES}


def test_a_difference_is_told_for_each_tenant_of_a_batch(crowd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count_shown(monkeypatch)
    report = probed(crowd, principal=None, project=None, probes=1, angles=("open",))
    assert {leak.principal for leak in report.leaks} == {f"user-{number:02d}" for number in range(3)}
    assert {leak.kind for leak in report.leaks} == {"another answer"}


def test_a_canary_of_another_tenant_is_found(crowd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every contract reaches a project that no grant opens: what is planted for its tenant is the next one's own."""
    right = scope_resolution.bounds_of

    def wrong(requests: pa.Table, reach: Any) -> pa.Table:
        found = right(requests, reach)
        more = found.set_column(1, found.schema.field(1), pa.array(["user-02"] * found.num_rows))
        elsewhere = more.filter(pc.not_equal(found["project"], "user-02"))
        order = [("request_id", "ascending"), ("project", "ascending"), ("rule_id", "ascending")]
        return pa.concat_tables([found, elsewhere]).sort_by(order).combine_chunks()

    monkeypatch.setattr(scope_resolution, "bounds_of", wrong)
    report = probed(crowd, principal=None, project=None, probes=1, angles=("open",))
    assert any("planted for user-02 in user-02" in leak.detail for leak in report.leaks)


def said_in_conditions(monkeypatch: pytest.MonkeyPatch, words: Callable[[pa.Table, pa.Table], Any]) -> None:
    """Every condition says something of the candidates that were withheld, and of the stored rows."""
    shown, selected, right = audit_snapshot.shown_rows, audit_snapshot.selected_rows, audit_snapshot.condition_rows
    seen = list[pa.Table]()

    def watched(candidates: pa.Table, *others: Any) -> Any:
        seen[:] = [candidates.filter(candidates["withheld"])]
        return shown(candidates, *others)

    def beside(*given: Any) -> Any:
        seen.append(given[-1])
        return selected(*given)

    def wrong(*said: Any) -> pa.Table:
        found, more = right(*said), words(*seen)
        messages = pa.array([f"{message} {more}" for message in found["message"].to_pylist()], pa.large_string())
        return found.set_column(4, "message", messages)

    monkeypatch.setattr(audit_snapshot, "shown_rows", watched)
    monkeypatch.setattr(audit_snapshot, "selected_rows", beside)
    monkeypatch.setattr(audit_snapshot, "condition_rows", wrong)


def count_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A condition says how many rows were withheld."""
    said_in_conditions(monkeypatch, lambda withheld, _: withheld.num_rows)


def canary_in_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A condition names a row that was withheld."""
    said_in_conditions(
        monkeypatch,
        lambda withheld, evidence: evidence["title"].take(pc.unique(withheld["row"])).to_pylist(),
    )


def contract_of_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """`contract` counts the rows of the project, whatever a gate says of them."""
    right = surfaces.explain

    def wrong(scope: Any) -> dict[str, Any]:
        return right(scope) | {"rows": scope.frame.evidence.num_rows}

    monkeypatch.setattr(surfaces, "explain", wrong)


def actions_with_withheld(monkeypatch: pytest.MonkeyPatch) -> None:
    """`context_actions.csv` names the candidates of a retrieval, those that were withheld among them."""
    right = surfaces.actions_of

    def wrong(settings: Settings, run: Any, snapshots: Any) -> list[dict[str, Any]]:
        ids = " ".join(run.table("decisions")["evidence_id"].to_pylist())
        return [action | {"citations": ids} for action in right(settings, run, snapshots)]

    monkeypatch.setattr(surfaces, "actions_of", wrong)


def audit_for_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    """`show --as audit` tells everybody what it tells an auditor."""
    monkeypatch.setitem(renderings.FORMS, "audit", lambda seen: audit_snapshot_of(seen.rows))


def doctor_of_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """`doctor` tells everybody what is known of the corpus."""
    right = surfaces.examine

    def wrong(settings: Settings) -> dict[str, Any]:
        return right(settings) | {"corpus": Corpus.open(settings["corpus"]).info()}

    monkeypatch.setattr(surfaces, "examine", wrong)


@pytest.mark.parametrize(
    ("plant", "surface"),
    [
        (contract_of_everything, "contract"),
        (actions_with_withheld, "context actions"),
        (audit_for_everybody, "show --as audit"),
        (doctor_of_everything, "doctor"),
    ],
)
def test_a_list_that_tells_of_rows_out_of_scope_is_found(
    plant: Plant, surface: str, crowd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    report = probed(crowd, principal="user-01", project="user-01", probes=1, angles=("open",))
    assert {leak.surface for leak in report.leaks} == {surface}
    assert "another answer" in {leak.kind for leak in report.leaks}


def why_of_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """`why` says whether a row is stored, whoever asks."""

    def wrong(settings: Settings, snapshot_id: str, evidence: str) -> dict[str, Any]:
        return {"stored": evidence in Corpus.open(settings["corpus"]).frame().evidence["evidence_id"].to_pylist()}

    monkeypatch.setattr(surfaces, "why_not", wrong)


def refusal_of_known_projects(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal has another action where the project exists."""
    right = surfaces.retrieval_of

    def wrong(tables: Any) -> Any:
        answer, asked = right(tables), tables["requests"]["project"][0].as_py()
        return replace(answer, action="warn") if answer.status == "denied" and asked.startswith("user-") else answer

    monkeypatch.setattr(surfaces, "retrieval_of", wrong)


@pytest.mark.parametrize(
    ("plant", "surface", "kind"),
    [
        (why_of_everything, "why", "another refusal"),
        (refusal_of_known_projects, "refusal", "another refusal"),
    ],
)
def test_a_fact_that_no_caller_may_learn_is_found(
    plant: Plant, surface: str, kind: str, crowd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    report = probed(crowd, principal="user-01", project="user-01", probes=1, angles=("open",))
    assert (surface, kind) in {(leak.surface, leak.kind) for leak in report.leaks}


BROKEN: dict[str, tuple[Plant, str, str]] = {
    "corpus-wide statistics": (faults.corpus_wide_document_frequency, "another answer", "open"),
    "dropped path denial": (faults._without(NUMBER["path_deny"]), "a canary", "bounded"),
    "dropped level": (faults._without(NUMBER["level"]), "a canary", "guided"),
    "walks through withheld rows": (faults.walks_through_withheld_rows, "another answer", "guided"),
}


@pytest.mark.parametrize(("plant", "kind", "angle"), BROKEN.values(), ids=BROKEN)
def test_a_broken_line_is_found(
    plant: Plant, kind: str, angle: str, demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    report = probed(demo, canaries=None, angles=(angle,))
    assert not report.ok
    assert kind in {leak.kind for leak in report.leaks}
    assert {leak.angle for leak in report.leaks} == {angle}


def test_a_leak_is_told_without_what_leaked(demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    canary_in_conditions(monkeypatch)
    report = probed(demo, angles=("open",))
    assert not report.ok
    told = json.dumps(report.as_dict())
    assert "zq" not in told and "shut by" in told


def test_a_test_without_tenants_is_no_success(demo: Path) -> None:
    with pytest.raises(InputError, match="Expected a tenant with rows to be shown, got none in the grants"):
        probed(demo, principal="nobody")


def test_the_command_says_what_leaks_and_ends_with_a_code_of_its_own(
    demo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    count_shown(monkeypatch)
    monkeypatch.chdir(demo)
    args = ("--principal", "ana", "--project", "shop", "--probes", "1", "--canaries", "4", "--json")
    code, out, _ = run("leak-test", *args, capsys=capsys)
    assert (code, json.loads(out)["ok"]) == (5, False)


ROWS = (
    row("doc", "limits.md", "The retry limit of billing is three.", tags=["retry"]),
    row("doc", "pauses.md", "Payments of billing resume after a pause.", tags=["billing"]),
    row("doc", "owners.md", "The owner of billing is the payments team.", tags=["owner", "billing"]),
)
REMEMBERS = """KNOWN = set()


def recall(scope):
    KNOWN.update(tag for tags in scope.rows["tags"].to_pylist() for tag in tags or ())
    asked, row = scope.queries.num_rows, len(KNOWN) % max(scope.rows.num_rows, 1)
    return Scored(list(range(asked)), [row] * asked, [1.0] * asked)


def searched("""
"""A lane that remembers tags of every caller: the row that one caller is shown depends on the rows of the others."""


@pytest.fixture(name="folder")
def folder_fixture(tmp_path: Path) -> Path:
    Story(tmp_path, *ROWS).tell(*ROWS, project="pay", principal="bo")
    people = "principals:\n  ana: {projects: [shop]}\n  bo: {projects: [pay]}\n"
    (tmp_path / "grants.yaml").write_text(people)
    return tmp_path


def probed_with(folder: Path, patch: pytest.MonkeyPatch, source: str = SOURCE) -> LeakReport:
    install(folder, patch, source)
    flags = {"corpus": folder / "corpus", "grants": folder / "grants.yaml"}
    environ = {"SCOPED_RETRIEVAL_PLUGINS": "acme", "SCOPED_RETRIEVAL_LANES": "lexical,exact"}
    settings = load_settings(flags, cwd=folder, environ=environ, user=folder / "none.toml")
    return leak_test(settings, probes=1, angles=("open",), canaries=40)


def test_a_plugin_that_only_narrows_leaks_nothing_and_its_gates_are_tested(folder, monkeypatch):
    report = probed_with(folder, monkeypatch)
    assert report.ok, report.leaks
    assert report.gates["acme.embargo"] > 0
    sealed, others = report.skipped
    assert sealed == "acme.sealed: the gate declares no canary"
    assert others.startswith("gates that no canary of this test was planted for: source_allow, ")


def test_a_lane_that_remembers_rows_of_others_is_found(folder, monkeypatch):
    report = probed_with(folder, monkeypatch, SOURCE.replace("def recall(", REMEMBERS))
    assert not report.ok
    assert "another answer" in {leak.kind for leak in report.leaks}
