"""Export and verify FILE: one file that is checked alone; every change to it is named, and erased text is not in it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from audited_runs import ASKED, audited, settings_of
from command_line import run as command
from scoped_retrieval.nodes.audit.records import snapshot_digests
from scoped_retrieval.nodes.errors import AccessError
from scoped_retrieval.nodes.tables import PROVENANCE
from scoped_retrieval.pipeline.reading.answers import answer_report
from scoped_retrieval.pipeline.reading.auditing.export import _table, check_file, exported
from scoped_retrieval.pipeline.runs import Runs, replay
from scoped_retrieval.pipeline.runs.erasing import erase_evidence
from scoped_retrieval.pipeline.runs.parts import STORED
from scoped_retrieval.pipeline.storage.signing import UNSIGNED, Signer
from signing_keys import keys
from written_runs import head


@pytest.fixture(name="world", scope="module")
def world_fixture(tmp_path_factory):
    world = audited(tmp_path_factory.mktemp("export"))
    for answer in ("one", "another"):  # the last lines of the log
        answer_report(settings_of(world.folder), batch_snapshot(world), answer)
    return world


def batch_snapshot(world) -> str:
    return Runs(world.folder / "runs").open(world.run).snapshots["snapshot_id"][0].as_py()


def written(folder: Path, file: dict[str, Any]) -> Path:
    path = folder / "exported.json"
    path.write_text(json.dumps(file), encoding="utf-8")
    return path


def test_a_snapshot_of_either_kind_of_run_is_checked_without_the_runs(world, tmp_path):
    for name in (world.ana, batch_snapshot(world)):
        found = check_file(written(tmp_path, exported(settings_of(world.folder), name)), UNSIGNED)
        assert (found.problems, found.snapshot_id, found.erased) == ((), name, 0)
        assert found.head == head(Runs(world.folder / "runs"))


def test_the_file_has_every_decision_and_text(world):
    content = exported(settings_of(world.folder), world.ana)["content"]
    snapshot = replay(Runs(world.folder / "runs"), world.ana)
    assert {ASKED["question"], snapshot.block} <= {*content["texts"].values()}
    assert len(content["tables"]["record"][0]["decisions"]) == snapshot.decisions.num_rows


def test_the_file_says_nothing_of_other_answers(world):
    file = json.dumps(exported(settings_of(world.folder), world.ana))
    assert len(json.loads(file)["content"]["log"]) > 2
    assert not [said for said in (world.bob, world.run) if said in file]


CHANGES = {
    "text": lambda c: c["texts"].update({next(iter(c["texts"])): "another"}),
    "value": lambda c: c["tables"]["record"][0]["decisions"][0].update(final=9.0),
    "kind of value": lambda c: c["tables"]["record"][0]["decisions"][0].update(final="9"),
    "columns": lambda c: c["tables"]["record"][0].update(more=1),
    "fields": lambda c: c["tables"]["record"][0]["decisions"][0].update(more=1),
    "table": lambda c: c["tables"].update(record=c["tables"]["snapshots"]),
    "row of another request": lambda c: c["tables"]["record"].append(
        c["tables"]["record"][0] | {"request_id": "other"}
    ),
    "another table": lambda c: c["tables"].update(more=[]),
    "no table": lambda c: c["tables"].pop("snapshots"),
    "log line": lambda c: c["log"].__setitem__(0, c["log"][0].replace("number", "Number")),
    "log gap": lambda c: c["log"].pop(1),
    "own line": lambda c: c["log"].pop(0),
    "id": lambda c: renamed(c, c["run_id"].replace("run-", "retr-snap-") + "-0007"),
    "lineage": lambda c: c["lineage"].update(more=[]),
    "erased": lambda c: c["erased"].append("0" * 64),
}


def renamed(content: dict[str, Any], name: str) -> None:
    """Another id of the snapshot, wherever the file has it; the digest does not cover it."""
    content["tables"]["snapshots"][0]["snapshot_id"] = content["snapshot_id"] = name


@pytest.mark.parametrize(
    ("kind", "change"), [(("interactive", "batch")[number % 2], change) for number, change in enumerate(CHANGES)]
)
def test_every_change_is_named(world, tmp_path, kind, change):
    file = exported(settings_of(world.folder), world.ana if kind == "interactive" else batch_snapshot(world))
    CHANGES[change](file["content"])
    found = check_file(written(tmp_path, file), UNSIGNED)
    assert found.problems, change
    assert all(problem.startswith("Expected ") for problem in found.problems)


def forged(content: dict[str, Any], text: str) -> None:
    """Another block, and every digest in the tables recomputed for it."""
    sha256, tables = hashlib.sha256(text.encode()).hexdigest(), content["tables"]
    block = tables["record"][0]["blocks"]
    content["texts"].pop(block["text"])
    content["texts"][sha256] = text
    block["text"] = tables["snapshots"][0]["visible_sha256"] = sha256
    record, snapshots = (_table(name, tables[name]) for name in STORED)
    parts = content["provenance"]
    provenance = PROVENANCE.build({"part": list(parts), "value": list(parts.values())})
    (digest,) = snapshot_digests(record, snapshots, provenance)
    tables["snapshots"][0]["snapshot_digest"] = digest


FORGERIES = {
    "as it was": lambda c: None,
    "with its digest in the line": lambda c: c.update(
        line=c["line"].replace(
            json.loads(c["line"])["body"]["snapshots"][c["snapshot_id"]], c["tables"]["snapshots"][0]["snapshot_digest"]
        )
    ),
    "without its line": lambda c: c["log"].clear(),
    "with another line": lambda c: c.update(line=c["line"].replace(c["run_id"], "run-000000000000000000")),
}


@pytest.mark.parametrize("how", FORGERIES)
def test_another_block_is_found_though_every_digest_in_the_file_follows(world, tmp_path, how):
    settings, name = settings_of(world.folder), batch_snapshot(world)
    file = exported(settings, name)
    forged(file["content"], "another block")
    FORGERIES[how](file["content"])
    found = check_file(written(tmp_path, file), UNSIGNED, anchor=head(Runs(world.folder / "runs")))
    assert any(problem.partition(" - at ")[2] == "line" for problem in found.problems)
    assert not any("tables" in problem for problem in found.problems)


def test_a_signature_is_checked_with_the_trusted_key_alone(world, tmp_path):
    private, public = keys(tmp_path, "own")
    _, other = keys(tmp_path, "other")
    file = exported(settings_of(world.folder, signing_key=private), world.ana)
    path = written(tmp_path, file)
    assert check_file(path, Signer(trusted_key=public)).signed
    assert check_file(path, Signer(trusted_key=other)).problems == (f"Expected a signature of {other}, got another",)
    assert check_file(path, UNSIGNED).ok
    file["content"]["tables"]["snapshots"][0]["created_at"] = "2026-01-01 00:00:00.000000Z"  # in no digest
    assert not check_file(written(tmp_path, file), Signer(trusted_key=public)).signed
    unsigned = written(tmp_path, file | {"signature": ""})
    assert check_file(unsigned, Signer(trusted_key=public)).problems == (f"Expected a signature of {public}, got none",)


def test_the_anchor_has_to_stand_on_the_way_to_the_head(world, tmp_path):
    path = written(tmp_path, exported(settings_of(world.folder), world.ana))
    store = Runs(world.folder / "runs")
    assert check_file(path, UNSIGNED, anchor=head(store)).ok
    for other in ("0" * 64, head(store)[:8], ""):
        assert not check_file(path, UNSIGNED, anchor=other).ok


def test_erased_text_is_not_in_the_file(tmp_path):
    world = audited(tmp_path)
    store = Runs(tmp_path / "runs")
    item = replay(store, world.ana).tables["trimmed"].to_pylist()[0]
    erase_evidence(store, {item["evidence_id"]}, reason="asked by its owner")
    path = written(tmp_path, exported(settings_of(tmp_path), world.ana))
    assert item["visible_text"] not in path.read_text(encoding="utf-8")
    found = check_file(path, UNSIGNED)
    assert (found.ok, found.erased > 0) == (True, True)


def test_only_auditors_export(world):
    with pytest.raises(AccessError, match="only auditors of its projects"):
        exported(settings_of(world.folder, "bob"), world.bob)
    with pytest.raises(AccessError, match="that you may read"):
        exported(settings_of(world.folder, "eve"), world.bob)


def test_the_commands_write_and_check_a_file(world, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "ana")
    flags = ["--runs", str(world.folder / "runs"), "--grants", str(world.folder / "grants.yaml")]
    assert command("show", world.ana, "--as", "export", "-o", "one.json", *flags, capsys=capsys)[0] == 0
    code, out, _ = command("verify", "one.json", capsys=capsys)
    assert code == 0
    assert f"snapshot id: {world.ana}\n" in out
    file = json.loads(Path("one.json").read_text(encoding="utf-8"))
    file["content"]["tables"]["snapshots"][0]["status"] = "denied"
    Path("one.json").write_text(json.dumps(file), encoding="utf-8")
    assert command("verify", "one.json", capsys=capsys)[0] == 5
