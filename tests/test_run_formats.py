"""Runs of the formats that fixtures hold: each is listed, replayed, verified, upgraded and erased."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from command_line import run as command
from kept_runs import CANARY, FORMATS, keep_runs, runs_of
from scoped_retrieval.nodes.errors import StoreError, VerificationError
from scoped_retrieval.pipeline.runs import RunStore, replay, upgrading, verify
from scoped_retrieval.pipeline.runs.compacting import compact
from scoped_retrieval.pipeline.runs.erasing import erase_evidence
from scoped_retrieval.pipeline.runs.formats import FORMAT, VERSION
from scoped_retrieval.pipeline.runs.states import states
from scoped_retrieval.pipeline.runs.upgrading import upgrade

VERSIONS = sorted(path.name.removeprefix("runs-").removesuffix(".tar.xz") for path in FORMATS.glob("runs-*.tar.xz"))
"""`2-to-6` was written by version 2 and upgraded by version 6. `8` has the first columns of its format, `8-last` the last."""


@pytest.fixture(name="written", params=VERSIONS, ids=[f"runs-{version}" for version in VERSIONS])
def written_fixture(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunStore:
    """A batch of two requests and one interactive snapshot, as the code of that version wrote them for ana."""
    runs_of(request.param, tmp_path)
    (tmp_path / "grants.yaml").write_text("principals: {ana: {projects: [shop], audit: true}}\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "ana")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return RunStore(tmp_path / "runs", create=False)


@pytest.mark.golden
def test_runs_of_the_present_format_are_kept_for_later_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.environ.get("UPDATE_GOLDEN") and str(VERSION) not in VERSIONS:
        keep_runs(VERSION, tmp_path, monkeypatch)
    assert (FORMATS / f"runs-{VERSION}.tar.xz").exists(), "`make golden` writes it"


def flags() -> list[str]:
    return ["--runs", "runs", "--grants", "grants.yaml"]


def holding(folder: Path) -> list[str]:
    """Parts below a folder whose columns contain the canary."""
    parts = [path for path in folder.rglob("*.parquet") if CANARY in str(pq.ParquetFile(path).read().to_pylist())]
    raw = [path for path in folder.rglob("*") if path.is_file() and CANARY.encode() in path.read_bytes()]
    return sorted({str(path.relative_to(folder)) for path in (*parts, *raw)})


def shown_ids(store: RunStore) -> set[str]:
    """The rows of evidence whose block contains the canary."""
    found = set()
    for run in store.list():
        for snapshot in run.snapshots["snapshot_id"].to_pylist():
            if CANARY in (replay(store, snapshot).block or ""):
                found |= set(replay(store, snapshot).tables["trimmed"]["evidence_id"].to_pylist())
    return found


def test_every_format_is_listed_replayed_and_verified(written: RunStore, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = command("runs", "--json", *flags(), capsys=capsys)
    listed = json.loads(out)
    assert code == 0
    assert [(one["kind"], one["snapshots"], one["state"]) for one in listed["runs"]] == [
        ("batch", 2, "ok"),
        ("interactive", 1, "ok"),
    ]
    assert listed["not_ok"] == []
    snapshots = [s for run in written.list() for s in run.snapshots["snapshot_id"].to_pylist()]
    replayed = [replay(written, snapshot) for snapshot in snapshots]
    assert [one.status for one in replayed] == ["ok"] * 3
    assert [CANARY in (one.block or "") for one in replayed] == [True, False, True]
    assert command("verify", *flags(), capsys=capsys)[0] == 0


def test_every_format_is_upgraded_once_and_reads_as_before(
    written: RunStore, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshots = [s for run in written.list() for s in run.snapshots["snapshot_id"].to_pylist()]
    before = [replay(written, snapshot).block for snapshot in snapshots]
    assert command("runs", "upgrade", *flags(), capsys=capsys)[0] == 0
    assert [replay(written, snapshot).block for snapshot in snapshots] == before
    assert {run.format for run in written.list()} == {FORMAT}
    assert [verify(written, run.run_id).status for run in written.list()] == ["ok", "ok"]
    assert command("runs", "upgrade", *flags(), capsys=capsys)[1] == "nothing to upgrade\n"


def test_an_erasure_reaches_every_format(written: RunStore) -> None:
    done = erase_evidence(written, shown_ids(written), reason="asked by its owner")
    assert (len(done.runs), done.unreadable) == (2, [])
    assert holding(written.path) == []
    assert [verify(written, run.run_id).status for run in written.list()] == ["erased", "erased"]


def test_a_changed_part_of_any_format_is_changed_and_not_upgraded(written: RunStore) -> None:
    run_id = written.list()[0].run_id
    part = next((written.path / run_id).rglob("decisions/*.parquet"))
    part.write_bytes(part.read_bytes() + b" ")
    assert verify(written, run_id).status == "changed"
    if written.open(run_id).older:
        with pytest.raises(VerificationError, match="Expected a run as it was written"):
            upgrade(written, run_id)


def test_an_upgrade_does_not_start_from_another_manifest(written: RunStore) -> None:
    run = written.list()[0]
    written.log.append("upgrade", run.run_id, manifest_sha256="0" * 64, before_sha256="1" * 64)
    assert verify(written, run.run_id).problems[0].part == "LOG"


def test_a_later_version_is_named_and_is_no_change(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs_of(6, tmp_path)
    store = RunStore(tmp_path / "runs", create=False)
    run_id = compact(store, store.list()[1].run_id).run_id
    manifest = tmp_path / "runs" / run_id / "manifest.json"
    later = json.loads(manifest.read_text(encoding="utf-8")) | {"format": "scoped-retrieval/run/99"}
    (tmp_path / "runs" / "LOG").unlink()
    manifest.write_text(json.dumps(later), encoding="utf-8")
    with pytest.raises(StoreError, match=rf"Expected format {FORMAT}, got scoped-retrieval/run/99"):
        store.open(run_id)
    assert verify(store, run_id).status == "unknown version"
    assert {state.run_id: state.state for state in states(store)}[run_id] == "unknown version"


def test_each_state_has_its_word_and_its_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runs_of(6, tmp_path)
    (tmp_path / "grants.yaml").write_text("principals: {ana: {projects: [shop], audit: true}}\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "ana")
    batch, _ = (run.run_id for run in RunStore(tmp_path / "runs").list())
    left = f"run-{'0' * 18}"
    (tmp_path / "runs" / left / "live").mkdir(parents=True)
    assert command("verify", left, *flags(), capsys=capsys)[0] == 4
    (tmp_path / "runs" / batch / "manifest.json").unlink()
    _, out, _ = command("runs", "--json", *flags(), capsys=capsys)
    assert {one["run_id"]: one["state"] for one in json.loads(out)["not_ok"]} == {batch: "unreadable", left: "crashed"}
    assert command("verify", batch, *flags(), capsys=capsys)[0] == 7
    _, _, err = command("snapshots", *flags(), capsys=capsys)
    assert f"skipped: {batch}: unreadable" in err
    assert command("runs", "discard", left, "--yes", *flags(), capsys=capsys)[0] == 0
    assert not (tmp_path / "runs" / left).exists()
    assert command("runs", "discard", batch, "--yes", *flags(), capsys=capsys)[0] == 7


@pytest.mark.parametrize("fails_at", ["append", "manifest"])
def test_an_upgrade_that_was_interrupted_is_a_crash_and_is_finished_by_the_next(
    fails_at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs_of(2, tmp_path)
    store = RunStore(tmp_path / "runs", create=False)
    run_id = store.list()[0].run_id
    write = upgrading.write_bytes

    def interrupted(path: Path, *rest: object, **how: object) -> str:
        if path.parent.name == run_id:
            raise KeyboardInterrupt
        return write(path, *rest, **how)  # type: ignore[arg-type]

    def unlogged(*_: object, **__: object) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if fails_at == "manifest":
            patch.setattr(upgrading, "write_bytes", interrupted)
        else:
            patch.setattr(store.log, "append", unlogged)
        with pytest.raises(KeyboardInterrupt):
            upgrade(store, run_id)
    assert verify(store, run_id).status == "crashed"
    assert upgrade(store, run_id).format == FORMAT
    assert verify(store, run_id).status == "ok"


def test_an_upgrade_leaves_no_part_of_the_version_in_between(tmp_path: Path) -> None:
    runs_of("2-to-6", tmp_path)
    store = RunStore(tmp_path / "runs", create=False)
    for run in store.list():
        assert (run.folder / "v6").is_dir() or run.live or "v6" not in str(run.manifest["tables"])
        upgraded = upgrade(store, run.run_id)
        named = {part["path"] for table in upgraded.manifest["tables"].values() for part in table["parts"]}
        assert {str(p.relative_to(run.folder)) for p in run.folder.rglob("*.parquet")} == named
