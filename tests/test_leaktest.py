"""`leak-test` finds nothing in the demo, and something in each of five lines that are broken on purpose."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
import test_planted_faults as faults
from command_line import run
from scoped_retrieval.nodes import audit_snapshot
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.nodes.gates import NUMBER
from scoped_retrieval.pipeline.demo import run_demo
from scoped_retrieval.pipeline.leaktest import LeakReport, canaries, leak_test
from scoped_retrieval.pipeline.settings import load_settings

Plant = Callable[[pytest.MonkeyPatch], None]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    run_demo(folder, repository=None, semantic=False, progress=False, say=lambda _: None)
    return folder


def probed(demo: Path, **how: Any) -> LeakReport:
    settings = load_settings({}, cwd=demo, environ={}, user=demo / "none.toml")
    return leak_test(settings, **{"principal": "ana", "project": "shop", "probes": 2} | how)


def content(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_the_demo_leaks_nothing_and_stays_as_it_is(demo: Path) -> None:
    before = content(demo / "corpus")
    report = probed(demo, principal=None, project=None, tenants=2)
    assert (report.ok, report.leaks, report.differences, report.tenants) == (True, [], 0, 2)
    assert report.canaries == 2 * len(canaries.ROLES) * 13
    assert report.comparisons > 100
    assert content(demo / "corpus") == before


def count_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A condition says how many rows were withheld."""
    right = audit_snapshot.condition_rows

    def wrong(*args: pa.Table) -> pa.Table:
        found, withheld = right(*args), sum(args[6]["withheld"].to_pylist())
        return found.set_column(
            4, "message", pa.array([f"{m} ({withheld} more)" for m in found["message"].to_pylist()], pa.large_string())
        )

    monkeypatch.setattr(audit_snapshot, "condition_rows", wrong)


def canary_in_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A condition names a row that was withheld."""
    right = audit_snapshot.condition_rows

    def wrong(*args: pa.Table) -> pa.Table:
        found, candidates, evidence = right(*args), args[6], args[11]
        rows = candidates.filter(candidates["withheld"])["row"]
        named = " ".join(filter(None, evidence["title"].take(pc.unique(rows)).to_pylist()))
        return found.set_column(
            4, "message", pa.array([f"{m} {named}" for m in found["message"].to_pylist()], pa.large_string())
        )

    monkeypatch.setattr(audit_snapshot, "condition_rows", wrong)


BROKEN: dict[str, tuple[Plant, str]] = {
    "corpus-wide statistics": (faults.corpus_wide_document_frequency, "another answer"),
    "post-filtering": (faults.post_filtering, "another answer"),
    "dropped gate": (faults._without(NUMBER["zone"]), "a canary"),
    "count shown": (count_shown, "another answer"),
    "canary in conditions": (canary_in_conditions, "a canary"),
}


@pytest.mark.parametrize(("plant", "kind"), BROKEN.values(), ids=BROKEN)
def test_a_broken_line_is_found(
    plant: Plant, kind: str, demo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(monkeypatch)
    monkeypatch.chdir(demo)
    args = ("--principal", "ana", "--project", "shop", "--probes", "2", "--json")
    code, out, _ = run("leak-test", *args, capsys=capsys)
    found = json.loads(out)
    assert (code, found["ok"]) == (5, False)
    assert kind in {leak["kind"] for leak in found["leaks"]}
    assert {leak["state"] for leak in found["leaks"]} <= {"before", "planted", "changed", "removed"}


def test_a_leak_is_told_without_what_leaked(demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    canary_in_conditions(monkeypatch)
    report = probed(demo)
    assert not report.ok
    assert "zq" not in report.text() + json.dumps(report.as_dict())
    assert "shut by" in report.text()


def test_requests_of_the_user_are_asked_in_their_project(demo: Path) -> None:
    requests = [
        {"request_id": "1", "question": "default role of a session", "project": "shop", "purpose": "fix-test"},
        {"request_id": "2", "question": "default role", "project": "billing", "purpose": "fix-test"},
    ]
    report = probed(demo, requests=requests)
    assert (report.ok, report.probes) == (True, 2)  # the first request, and canaries by name


def test_a_test_without_tenants_is_no_success(demo: Path) -> None:
    with pytest.raises(InputError, match="Expected a tenant with rows to be shown, got none in the grants"):
        probed(demo, principal="nobody")
    with pytest.raises(InputError, match="got ana in shop: no row is shown"):
        probed(demo, requests=[{"question": "default role", "project": "billing", "purpose": "fix-test"}])
