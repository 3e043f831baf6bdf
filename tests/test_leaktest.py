"""`leak-test` finds nothing in the demo nor among many tenants, and something in each line that is broken on purpose."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from importlib import resources
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
import test_planted_faults as faults
import yaml
from command_line import run
from scoped_retrieval.nodes import audit_snapshot, rendering, scope_resolution
from scoped_retrieval.nodes.audit.condition_rules import Answered
from scoped_retrieval.nodes.errors import AccessError, InputError
from scoped_retrieval.nodes.vocabulary import Vocabulary
from scoped_retrieval.nodes.walls.gates import GATES, NUMBER
from scoped_retrieval.pipeline.config.grants import load_grants
from scoped_retrieval.pipeline.config.policies.tables import load_policies
from scoped_retrieval.pipeline.config.settings import Settings, load_settings
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.demo import run_demo
from scoped_retrieval.pipeline.evaluation import lost_gold
from scoped_retrieval.pipeline.leaktest import ANGLES, LeakReport, batches, leak_test, surfaces, through_servers
from scoped_retrieval.pipeline.leaktest.angles import Others, angle, with_own_presets
from scoped_retrieval.pipeline.leaktest.batches import Bench
from scoped_retrieval.pipeline.leaktest.canaries import ROLES, CanaryCase, folder_of, planting
from scoped_retrieval.pipeline.leaktest.probes import Probe, from_angle
from scoped_retrieval.pipeline.leaktest.tenants import Tenant, asking_for_all, others_of
from scoped_retrieval.pipeline.leaktest.testing import CHECKS
from scoped_retrieval.pipeline.maintenance import model_checks
from scoped_retrieval.pipeline.servers import retriever_pool
from scoped_retrieval.pipeline.sources import importing
from scoped_retrieval.pipeline.sources.importing import normalize
from scoped_retrieval.pipeline.storage.chain import Chain

Plant = Callable[[pytest.MonkeyPatch], None]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    run_demo(folder, repository=None, semantic=False, progress=False, say=lambda _: None)
    return folder


@pytest.fixture
def indoors(monkeypatch: pytest.MonkeyPatch) -> None:
    """No tenant asks over HTTP and MCP, and one lists: for faults that are seen in answers, or in the lists of one."""
    monkeypatch.setattr(batches, "THROUGH_DOORS", 0)
    monkeypatch.setattr(batches, "LISTED", 1)


@pytest.fixture
def one_format(monkeypatch: pytest.MonkeyPatch) -> None:
    """HTTP and MCP are asked for a snapshot in one format: for faults that are in no format."""
    monkeypatch.setattr(through_servers, "FORMATS", Vocabulary("format", ("block",), {}))


@pytest.fixture
def planted_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Canaries are planted, and neither changed nor removed: for faults that are seen as soon as they are there."""
    monkeypatch.setattr(batches, "STATES", ("planted",))


NOW = datetime(2026, 11, 20, tzinfo=UTC)
FEW = 24
"""Canaries per tenant and angle where a test needs no pair of role and reason in particular."""


def settings_in(folder: Path) -> Settings:
    return load_settings({}, cwd=folder, environ={}, user=folder / "none.toml")


def probed(folder: Path, **how: Any) -> LeakReport:
    return leak_test(settings_in(folder), **{"principal": "ana", "project": "shop", "probes": 2, "canaries": FEW} | how)


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four users with three notes each, every one in a project of their own."""
    folder = tmp_path_factory.mktemp("crowd")
    users = [f"user-{number:02d}" for number in range(4)]
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
    assert (report.ok, report.leaks, report.differences, report.tenants) == (True, [], 0, 1)
    assert (report.own, report.skipped) == (len(CHECKS), [])
    assert report.batches == len(ANGLES)
    assert report.comparisons > 100
    assert content(demo / "corpus") == before
    assert set(report.roles) == set(ROLES)
    assert set(report.gates) == {gate.name for gate in GATES}


def test_a_tenant_with_nobody_around_has_canaries_of_nobody() -> None:
    lone = Tenant("ana", "shop", "internal", frozenset({"ana"}), frozenset({"shop"}))
    reader = Tenant("bo", "pay", "internal", frozenset({"bo", "ana"}), frozenset({"pay"}))
    assert others_of([lone], ["shop"]) == [Others("leak-test-nobody", "leak-test-nobody")]
    assert others_of([lone], ["shop", "pay"])[0].project == "pay"
    assert others_of([lone, reader], ["shop", "pay"])[0].principal == "leak-test-nobody", "bo reads what is ana's"


@pytest.mark.parametrize("name", ANGLES)
def test_every_canary_is_stopped_by_the_gate_of_its_reason_and_by_no_earlier_one(
    name: str, crowd: Path, tmp_path: Path
) -> None:
    grants, policies = load_grants(crowd / "corpus" / "grants.yaml"), with_own_presets(load_policies())
    settings = settings_in(crowd)
    bench = Bench(settings, asking_for_all(grants), policies, None, crowd / "corpus", tmp_path, NOW)
    frame = Corpus.open(crowd / "corpus").frame(["user-00"], ["user-00"])
    seen = frame.evidence.slice(0, 1).to_pylist()[0] | frame.placements.slice(0, 1).to_pylist()[0]
    others = Others("user-01", "user-01")
    here = angle(name, seen, folder_of(seen), ("user-00", "user-00", "internal"), others, ["notes:crowd"], bench.as_of)
    case = CanaryCase("case", seen, "breakfast", here)
    planted = planting([case], bench.as_of)
    time = {"as_of": bench.as_of.isoformat()}
    fields = {
        "question": "breakfast",
        "project": "user-00",
        "purpose": "fix-test",
        "time": time,
        "principal": "user-00",
    }
    asked = from_angle(Probe("one", fields), here).fields
    stopped, corpus = [], Corpus.create(tmp_path / "corpus")
    for state in ("hooks", "planted"):
        corpus.publish(planted.table(state), now=NOW)
        run = bench.ask(tmp_path / "corpus", [asked], tmp_path / f"runs-{state}")
        ladder = run.table("filter_ladder").to_pylist()
        stopped.append({row["gate"]: row["considered"] - row["admitted"] for row in ladder})
    found = {gate: stopped[1][gate] - stopped[0][gate] for gate in stopped[0]}
    wanted = Counter(here.gates[reason] for _, reason in case.pairs())
    inside = [gate.name for gate in GATES if gate.name not in ("project", "owner")]  # segments of others stay shut
    assert {gate: found[gate] for gate in inside} == {gate: wanted[gate] for gate in inside}


def test_tenants_in_a_row_have_every_pair_of_role_and_reason_between_them() -> None:
    seen = {"session_id": None, "source_id": "notes:x", "origin_class": "memory", "zone": "internal", "path": None}
    others = Others("bo", "pay")
    here = angle("guided", seen, "", ("ana", "shop", "internal"), others, [], NOW)
    whole = CanaryCase("case", seen, "words", here)
    parts = [whole.thinned(number, FEW).pairs() for number in range(len(whole.pairs()) // FEW + 1)]
    assert sorted(itertools.chain(*parts)) == sorted(whole.pairs())
    assert max(map(len, parts)) <= FEW


@pytest.mark.usefixtures("indoors")
def test_many_tenants_take_one_batch_from_each_angle(crowd: Path) -> None:
    report = probed(crowd, principal=None, project=None, probes=1)
    assert (report.ok, report.leaks, report.skipped) == (True, [], [])
    assert (report.tenants, report.batches) == (4, len(ANGLES))
    assert set(report.roles) == set(ROLES)
    assert set(report.gates) == {gate.name for gate in GATES}


@pytest.mark.usefixtures("indoors", "planted_alone")
def test_a_difference_in_a_batch_is_narrowed_down_to_tenants(crowd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count_shown(monkeypatch)
    report = probed(crowd, principal=None, project=None, probes=1, angles=("open",))
    assert {leak.principal for leak in report.leaks} == {f"user-{number:02d}" for number in range(4)}
    assert {leak.kind for leak in report.leaks} == {"another answer"}
    assert report.narrowed == [f"user-{n:02d} in user-{n:02d}, open: differs alone, too" for n in range(3)]


@pytest.mark.usefixtures("indoors", "planted_alone")
def test_a_canary_of_another_tenant_is_found(crowd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every contract reaches a project that no grant opens: what is planted for its tenant is the next one's own."""
    right = scope_resolution.bounds_of

    def wrong(requests: pa.Table, reach: Any, denied: Any) -> pa.Table:
        found = right(requests, reach, denied)
        more = found.set_column(1, found.schema.field(1), pa.array(["user-03"] * found.num_rows))
        elsewhere = more.filter(pc.not_equal(found["project"], "user-03"))
        order = [("request_id", "ascending"), ("project", "ascending"), ("rule_id", "ascending")]
        return pa.concat_tables([found, elsewhere]).sort_by(order).combine_chunks()

    monkeypatch.setattr(scope_resolution, "bounds_of", wrong)
    report = probed(crowd, principal=None, project=None, probes=1, angles=("open",))
    assert any("planted for user-03 in user-03" in leak.detail for leak in report.leaks)


def count_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A condition says how many rows were withheld."""
    right = audit_snapshot.condition_rows

    def wrong(tables: Answered) -> pa.Table:
        found, withheld = right(tables), sum(tables.candidates["withheld"].to_pylist())
        return found.set_column(
            4, "message", pa.array([f"{m} ({withheld} more)" for m in found["message"].to_pylist()], pa.large_string())
        )

    monkeypatch.setattr(audit_snapshot, "condition_rows", wrong)


def canary_in_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A condition names a row that was withheld."""
    right = audit_snapshot.condition_rows

    def wrong(tables: Answered) -> pa.Table:
        found, candidates = right(tables), tables.candidates
        rows = candidates.filter(candidates["withheld"])["row"]
        named = " ".join(filter(None, tables.evidence["title"].take(pc.unique(rows)).to_pylist()))
        return found.set_column(
            4, "message", pa.array([f"{m} {named}" for m in found["message"].to_pylist()], pa.large_string())
        )

    monkeypatch.setattr(audit_snapshot, "condition_rows", wrong)


def preview_of_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """`contract` counts the rows of the project, whatever a gate says of them."""
    right = surfaces.preview

    def wrong(scope: Any) -> dict[str, Any]:
        return right(scope) | {"rows": scope.frame.evidence.num_rows}

    monkeypatch.setattr(surfaces, "preview", wrong)


def actions_with_withheld(monkeypatch: pytest.MonkeyPatch) -> None:
    """`context_actions.csv` names the candidates of a retrieval, those that were withheld among them."""
    right = surfaces.actions_of

    def wrong(run: Any, snapshots: Any) -> list[dict[str, Any]]:
        ids = " ".join(run.table("decisions")["evidence_id"].to_pylist())
        return [action | {"citations": ids} for action in right(run, snapshots)]

    monkeypatch.setattr(surfaces, "actions_of", wrong)


def gold_of_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """`why --gold` tells who asked of every row what it tells an auditor."""
    right = surfaces.lost_gold

    def wrong(settings: Any, id_: str, qrels: Any, **how: Any) -> Any:
        with monkeypatch.context() as patch:
            everything = frozenset(Corpus.open(settings["corpus"]).projects())
            patch.setattr(lost_gold, "audited_projects", lambda *_: everything)
            patch.setattr(lost_gold, "audiences", lambda *a: _as_auditor(audiences(*a)))
            return right(settings, id_, qrels, **how)

    audiences = lost_gold.audiences
    monkeypatch.setattr(surfaces, "lost_gold", wrong)


def doctor_for_auditors(monkeypatch: pytest.MonkeyPatch) -> None:
    """`doctor` tells everybody what it tells auditors of the corpus."""
    monkeypatch.setattr(model_checks.Subject, "audited", True)
    monkeypatch.setattr(batches, "THROUGH_DOORS", 1)


def _as_auditor(seen: pa.Table) -> pa.Table:
    return seen.set_column(seen.schema.get_field_index("audience"), "audience", pa.array(["audit"] * seen.num_rows))


@pytest.mark.parametrize(
    ("plant", "surface"),
    [
        (preview_of_everything, "contract"),
        (actions_with_withheld, "context actions"),
        (gold_of_everything, "why --gold"),
        (doctor_for_auditors, "doctor"),
    ],
)
@pytest.mark.usefixtures("indoors", "one_format", "planted_alone")
def test_a_list_that_tells_of_rows_out_of_scope_is_found(
    plant: Plant, surface: str, crowd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    report = probed(crowd, principal="user-01", project="user-01", probes=1, angles=("open",))
    assert {leak.surface for leak in report.leaks} == {surface}
    assert "another answer" in {leak.kind for leak in report.leaks}


BROKEN: dict[str, tuple[Plant, str, str]] = {
    "corpus-wide statistics": (faults.corpus_wide_document_frequency, "another answer", "open"),
    "dropped gate": (faults._without(NUMBER["zone"]), "a canary", "open"),
    "canary in conditions": (canary_in_conditions, "a canary", "open"),
    "dropped time gates": (faults.dropped_time_gates, "a canary", "open"),
    "dropped path denial": (faults._without(NUMBER["path_deny"]), "a canary", "bounded"),
    "shadowing by inadmissible texts": (faults.shadowing_by_inadmissible_texts, "another answer", "bounded"),
    "dropped level": (faults._without(NUMBER["level"]), "a canary", "guided"),
    "walks through withheld rows": (faults.walks_through_withheld_rows, "another answer", "guided"),
}


@pytest.mark.parametrize(("plant", "kind", "angle"), BROKEN.values(), ids=BROKEN)
@pytest.mark.usefixtures("indoors", "planted_alone")
def test_a_broken_line_is_found(
    plant: Plant,
    kind: str,
    angle: str,
    demo: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    plant(monkeypatch)
    monkeypatch.chdir(demo)
    args = ("--principal", "ana", "--project", "shop", "--probes", "2", "--angle", angle, "--json")
    code, out, _ = run("leak-test", *args, capsys=capsys)
    found = json.loads(out)
    assert (code, found["ok"]) == (5, False)
    assert kind in {leak["kind"] for leak in found["leaks"]}
    assert {leak["state"] for leak in found["leaks"]} <= {"before", "planted"}
    assert {leak["angle"] for leak in found["leaks"]} == {angle}


def secrets_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines of a key are looked at one by one."""
    monkeypatch.setattr(importing, "without_keys_over_rows", lambda texts, _: texts)


def tokens_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "redact_columns", lambda columns: list(columns))


def characters_that_act(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "escape", lambda text: text)


def any_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    """HEADS is taken for what it says."""
    monkeypatch.setattr(Chain, "anchored", lambda *_: True)


OWN: dict[str, tuple[Plant, str]] = {
    "key lines": (secrets_stored, "corpus"),
    "tokens": (tokens_stored, "corpus"),
    "control characters": (characters_that_act, "block"),
    "chain set back": (any_chain, "heads"),
}


@pytest.mark.parametrize(("plant", "surface"), OWN.values(), ids=OWN)
@pytest.mark.usefixtures("indoors", "planted_alone")
def test_a_secret_a_control_character_or_an_older_head_is_found(
    plant: Plant, surface: str, demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    report = probed(demo, probes=1, canaries=1, angles=("open",))
    assert {leak.surface for leak in report.leaks if leak.probe == "own rows"} == {surface}


def test_an_angle_that_there_is_not_is_an_error(demo: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(demo)
    code, _, error = run("leak-test", "--angle", "sideways", capsys=capsys)
    assert (code, "Expected one of open, bounded, guided, got 'sideways' - at --angle" in error) == (2, True)


@pytest.mark.usefixtures("indoors", "planted_alone")
def test_a_leak_is_told_without_what_leaked(demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    canary_in_conditions(monkeypatch)
    report = probed(demo, angles=("open",))
    assert not report.ok
    assert "zq" not in report.text() + json.dumps(report.as_dict())
    assert "shut by" in report.text()


def test_what_a_request_shows_as_history_is_no_canary(demo: Path) -> None:
    request = {"question": "default role of a session", "project": "shop", "purpose": "fix-test", "mode": "review"}
    variables = {"venture": "acme", "current_project": "shop"}
    policies = demo / "policies" / "modes"
    policies.mkdir(parents=True, exist_ok=True)
    text = resources.files("scoped_retrieval.data").joinpath("policies/modes/review.yaml").read_text(encoding="utf-8")
    (policies / "review.yaml").write_text(text.replace("search_paths:\n", 'search_paths:\n  - "**/*"\n'))
    settings = load_settings({"policies": demo / "policies"}, cwd=demo, environ={}, user=demo / "none.toml")
    report = leak_test(settings, principal="ana", project="shop", requests=[{**request, "variables": variables}])
    assert (report.ok, report.leaks, report.tenants) == (True, [], 1)
    assert "lifecycle" in report.gates
    assert not {"superseded", "deleted"} & set(report.gates)


def test_a_test_without_tenants_is_no_success(demo: Path) -> None:
    with pytest.raises(InputError, match="Expected a tenant with rows to be shown, got none in the grants"):
        probed(demo, principal="nobody")
    with pytest.raises(InputError, match="got ana in shop: no row is shown"):
        probed(demo, requests=[{"question": "default role", "project": "billing", "purpose": "fix-test"}])


@pytest.mark.usefixtures("one_format", "planted_alone")
def test_an_answer_of_a_door_that_tells_of_rows_out_of_scope_is_found(
    demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("fastapi", reason="needs the extra serve")
    pytest.importorskip("mcp", reason="needs the extra serve")

    def telling(found: Any) -> dict[str, Any]:
        considered = pc.sum(found.tables["filter_ladder"]["considered"]).as_py()
        return values_of(found) | {"block": f"{found.block} of {considered} rows"}

    values_of = retriever_pool.answer_values
    monkeypatch.setattr(retriever_pool, "answer_values", telling)
    report = probed(demo, angles=("open",))
    found = {(leak.surface, leak.kind) for leak in report.leaks}
    assert {("HTTP retrieve", "another answer"), ("MCP scoped_retrieve", "another answer")} <= found
    assert {leak.surface for leak in report.leaks} <= {"HTTP retrieve", "HTTP expand", "MCP scoped_retrieve"}


@pytest.mark.usefixtures("one_format", "planted_alone")
def test_a_list_of_a_door_that_tells_of_a_row_out_of_scope_is_found(
    crowd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("fastapi", reason="needs the extra serve")
    pytest.importorskip("mcp", reason="needs the extra serve")

    def known(_: Any, __: str, evidence: str) -> dict[str, Any]:
        if evidence == surfaces.UNKNOWN_ID:
            raise AccessError("Expected a row, got none - at evidence")
        return {"rows": []}

    monkeypatch.setattr(retriever_pool.PrincipalSession, "why", known)
    report = leak_test(settings_in(crowd), tenants=1, probes=1, canaries=FEW, angles=("open",))
    assert {"HTTP why", "MCP why"} <= {leak.surface for leak in report.leaks if leak.kind == "another refusal"}
