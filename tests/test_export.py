"""Export and verify FILE: one file that is checked alone; every change to it is named, and erased text is not in it."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from audited_runs import ASKED, audited, settings_of
from command_line import run as command
from scoped_retrieval.nodes.audit.snapshot_digest import snapshot_digests
from scoped_retrieval.nodes.errors import AccessError, InputError
from scoped_retrieval.pipeline.corpus import Trust
from scoped_retrieval.pipeline.corpus.manifest import UNSIGNED
from scoped_retrieval.pipeline.reading.answers import answer_report
from scoped_retrieval.pipeline.reading.auditing import exported_file
from scoped_retrieval.pipeline.reading.auditing.export import exported
from scoped_retrieval.pipeline.reading.auditing.exported_file import check_file
from scoped_retrieval.pipeline.runs import Runs, replay
from scoped_retrieval.pipeline.runs.erasing import erase_evidence
from signing_keys import keys
from written_runs import head


@pytest.fixture(name="world", scope="module")
def world_fixture(tmp_path_factory):
    return audited(tmp_path_factory.mktemp("export"))


def batch_snapshot(world) -> str:
    return Runs(world.folder / "runs").open(world.run).snapshots["snapshot_id"][0].as_py()


def written(folder: Path, envelope: dict[str, Any]) -> Path:
    path = folder / "exported.json"
    path.write_text(json.dumps(envelope), encoding="utf-8")
    return path


def statement_of(envelope: dict[str, Any]) -> dict[str, Any]:
    return json.loads(base64.b64decode(envelope["payload"]))


def with_statement(envelope: dict[str, Any], statement: dict[str, Any]) -> dict[str, Any]:
    return envelope | {"payload": base64.b64encode(json.dumps(statement, ensure_ascii=False).encode()).decode()}


def test_a_snapshot_of_either_kind_of_run_is_checked_without_the_runs(world, tmp_path):
    for name in (world.ana, batch_snapshot(world)):
        found = check_file(written(tmp_path, exported(settings_of(world.folder), name)), UNSIGNED)
        assert (found.problems, found.snapshot_id, found.chained, found.erased) == ((), name, True, 0)
        assert found.head == head(Runs(world.folder / "runs"))


def test_the_statement_names_block_and_snapshot_and_reads_without_a_tool(world):
    statement = statement_of(exported(settings_of(world.folder), world.ana))
    snapshot = replay(Runs(world.folder / "runs"), world.ana)
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert [one["name"] for one in statement["subject"]] == ["block", world.ana]
    readable = statement["predicate"]["readable"]
    assert (readable["question"], readable["block"]) == (ASKED["question"], snapshot.block)
    assert len(readable["decisions"]) == snapshot.decisions.num_rows


CHANGES = {
    "block": lambda p: p["readable"].update(block="another"),
    "text": lambda p: p["texts"].update({next(iter(p["texts"])): "another"}),
    "table": lambda p: p["tables"].update(ranked=p["tables"]["decisions"]),
    "log line": lambda p: p["log"]["lines"].__setitem__(0, p["log"]["lines"][0].replace("number", "Number")),
    "log gap": lambda p: p["log"]["lines"].pop(1),
    "own lines": lambda p: p["log"].update(lines=[line for line in p["log"]["lines"] if p["run_id"] not in line]),
    "status": lambda p: p.update(status="denied"),
    "id": lambda p: renamed(p, p["run_id"].replace("run-", "retr-snap-") + "-0007"),
}


def renamed(predicate: dict[str, Any], name: str) -> None:
    """Another id of the snapshot, wherever the file has it; no digest covers it."""
    predicate["tables"]["snapshots"] = replaced(predicate["tables"]["snapshots"], snapshot_id=name)
    predicate["snapshot_id"] = name


def replaced(packed: str, **values: str) -> str:
    """A packed table of one row with other values."""
    table = pa.ipc.open_stream(base64.b64decode(packed)).read_all()
    for name, value in values.items():
        at = table.schema.get_field_index(name)
        table = table.set_column(at, table.schema.field(at), pa.array([value], table.schema.field(at).type))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return base64.b64encode(sink.getvalue()).decode()


def forged(statement: dict[str, Any], text: str) -> None:
    """Another block, and every digest in the file recomputed for it."""
    predicate = statement["predicate"]
    packed, sha256 = predicate["tables"], hashlib.sha256(text.encode()).hexdigest()
    packed["blocks"] = replaced(packed["blocks"], text=sha256)
    packed["snapshots"] = replaced(packed["snapshots"], visible_sha256=sha256)
    tables = {name: pa.ipc.open_stream(base64.b64decode(data)).read_all() for name, data in packed.items()}
    provenance = pa.ipc.open_stream(base64.b64decode(predicate["provenance"])).read_all()
    (digest,) = snapshot_digests(tables, provenance, tables["snapshots"]["request_id"].combine_chunks())
    packed["snapshots"] = replaced(packed["snapshots"], snapshot_digest=digest)
    predicate["texts"] = {sha256: text} | {
        key: value for key, value in predicate["texts"].items() if value != predicate["readable"]["block"]
    }
    predicate["readable"]["block"] = text
    named = {"block": sha256, predicate["snapshot_id"]: digest}
    statement["subject"] = [{"name": name, "digest": {"sha256": value}} for name, value in named.items()]


FORGERIES = {
    "as it was": (lambda p: None, "predicate.snapshots_part"),
    "without its manifest": (lambda p: p.update(manifest=None), "predicate.manifest"),
    "without its line": (lambda p: p["log"]["lines"].clear(), "predicate.log.lines"),
    "with a line of another kind": (
        lambda p: p["log"].update(lines=[line for line in p["log"]["lines"] if '"answer"' in line]),
        "got one of kind answer - at predicate.log.lines[0]",
    ),
}


@pytest.mark.parametrize("how", FORGERIES)
def test_another_block_is_found_though_every_digest_in_the_file_follows_and_it_leads_to_the_head(
    forgeable, tmp_path, how
):
    envelope, head = forgeable
    statement = statement_of(envelope)
    forged(statement, "another block")
    change, place = FORGERIES[how]
    change(statement["predicate"])
    found = check_file(written(tmp_path, with_statement(envelope, statement)), UNSIGNED, anchor=head)
    assert any(problem.endswith(f"at {place}") or problem.endswith(place) for problem in found.problems)
    assert not any("tables" in problem or "readable" in problem for problem in found.problems)


@pytest.fixture(name="forgeable", scope="module")
def forgeable_fixture(world):
    """An export of a batch snapshot, whose run has an answer as the last line of the log, and the head."""
    settings, name = settings_of(world.folder), batch_snapshot(world)
    answer_report(settings, name, "an answer")
    return exported(settings, name), head(Runs(world.folder / "runs"))


def test_a_line_that_does_not_lead_to_the_head_is_no_way_to_it(world, tmp_path):
    envelope = exported(settings_of(world.folder), world.ana)
    statement = statement_of(envelope)
    del statement["predicate"]["log"]["lines"][1:]
    found = check_file(written(tmp_path, with_statement(envelope, statement)), UNSIGNED)
    assert (found.chained, found.head) == (False, head(Runs(world.folder / "runs")))


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_is_named(world, tmp_path, change):
    envelope = exported(settings_of(world.folder), world.ana)
    statement = statement_of(envelope)
    CHANGES[change](statement["predicate"])
    found = check_file(written(tmp_path, with_statement(envelope, statement)), UNSIGNED)
    assert found.problems, change
    assert all(problem.startswith("Expected ") for problem in found.problems)


def with_smaller_footer(data: bytes) -> bytes:
    """A Parquet file whose footer says 10 bytes for whatever unpacks to more than a megabyte."""
    footer, group = (
        len(data) - 8 - int.from_bytes(data[-8:-4], "little"),
        pq.read_metadata(io.BytesIO(data)).row_group(0),
    )
    sizes = {group.total_byte_size, *(group.column(n).total_uncompressed_size for n in range(group.num_columns))}
    for size in (each for each in sizes if each > 1 << 20):
        said = bytes((2 * size >> 7 * n & 127) | (128 if 2 * size >> 7 * (n + 1) else 0) for n in range(4))
        data = data[:footer] + data[footer:].replace(said, bytes([20 | 128, 128, 128, 0]))
    assert pq.read_metadata(io.BytesIO(data)).row_group(0).total_byte_size < 1 << 20
    return data


@pytest.mark.parametrize(("repeated", "said"), [(1, "a table of at most"), (1_000, "the part to have the row")])
def test_a_part_that_would_fill_the_memory_is_named_and_not_read(world, tmp_path, monkeypatch, repeated, said):
    """Small in the file: one value of many equal characters, or one value in many rows by its code."""
    monkeypatch.setattr(exported_file, "MOST_BYTES", 1 << 20)
    statement = statement_of(envelope := exported(settings_of(world.folder), batch_snapshot(world)))
    part = statement["predicate"]["snapshots_part"]
    rows = pq.read_table(io.BytesIO(base64.b64decode(part["parquet"]))).slice(0, 1)
    at, status = rows.schema.get_field_index("status"), "x" * ((1 << 21) // min(repeated, 20))
    rows = rows.set_column(at, rows.schema.field(at), pa.array([status])).take([0] * repeated)
    pq.write_table(rows, packed := io.BytesIO(), compression="zstd")
    packed = io.BytesIO(with_smaller_footer(packed.getvalue()))
    part["parquet"] = base64.b64encode(packed.getvalue()).decode()
    file, row_bytes = written(tmp_path, with_statement(envelope, statement)), len(status)
    del rows, status
    tracemalloc.start()
    found = check_file(file, UNSIGNED)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(packed.getvalue()) < 100_000 < row_bytes
    assert any(problem.startswith(f"Expected {said}") for problem in found.problems), found.problems
    assert peak < 20 * (1 << 20)


def test_another_manifest_or_part_is_named(world, tmp_path):
    envelope = exported(settings_of(world.folder), batch_snapshot(world))
    for name in ("manifest", "snapshots_part"):
        statement = statement_of(envelope)
        if name == "manifest":
            data = base64.b64decode(statement["predicate"]["manifest"]) + b" "
            statement["predicate"]["manifest"] = base64.b64encode(data).decode()
        else:
            statement["predicate"]["snapshots_part"]["path"] = "tables/snapshots/part-00009.parquet"
        assert check_file(written(tmp_path, with_statement(envelope, statement)), UNSIGNED).problems, name


def test_a_signature_is_checked_with_the_trusted_key_alone(world, tmp_path):
    private, public = keys(tmp_path, "own")
    _, other = keys(tmp_path, "other")
    envelope = exported(settings_of(world.folder, signing_key=private), world.ana)
    path = written(tmp_path, envelope)
    assert check_file(path, Trust(trusted_key=public)).signed
    assert check_file(path, Trust(trusted_key=other)).problems == (f"Expected a signature of {other}, got another",)
    assert check_file(path, UNSIGNED).ok
    unsigned = written(tmp_path, envelope | {"signatures": []})
    assert check_file(unsigned, Trust(trusted_key=public)).problems == (f"Expected a signature of {public}, got none",)


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
    envelope = exported(settings_of(tmp_path), world.ana)
    assert item["visible_text"] not in base64.b64decode(envelope["payload"]).decode()
    found = check_file(written(tmp_path, envelope), UNSIGNED)
    assert (found.ok, found.erased > 0) == (True, True)


def test_only_auditors_export(world):
    with pytest.raises(AccessError, match="only auditors of its projects"):
        exported(settings_of(world.folder, "bob"), world.bob)
    with pytest.raises(AccessError, match="that you may read"):
        exported(settings_of(world.folder, "eve"), world.bob)


def test_another_file_is_refused(tmp_path):
    deep = "[" * 100_000
    in_payload = json.dumps({"payload": base64.b64encode(deep.encode()).decode(), "payloadType": "x"})
    for text in ("", "[]", '{"payload": "!"}', '{"payload": "e30=", "payloadType": "x"}', deep, in_payload):
        (tmp_path / "file.json").write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match="Expected an exported snapshot, got another file"):
            check_file(tmp_path / "file.json", UNSIGNED)
    with pytest.raises(InputError, match="No such file"):
        check_file(tmp_path / "none.json", UNSIGNED)


def test_the_commands_write_and_check_a_file(world, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "ana")
    flags = ["--runs", str(world.folder / "runs"), "--grants", str(world.folder / "grants.yaml")]
    assert command("show", world.ana, "--as", "export", "-o", "one.json", *flags, capsys=capsys)[0] == 0
    code, out, _ = command("verify", "one.json", capsys=capsys)
    assert code == 0
    assert out.startswith(f"{world.ana}: ok\n")
    envelope = json.loads(Path("one.json").read_text(encoding="utf-8"))
    statement = statement_of(envelope)
    statement["predicate"]["readable"]["block"] = "another"
    Path("one.json").write_text(json.dumps(with_statement(envelope, statement)), encoding="utf-8")
    assert command("verify", "one.json", capsys=capsys)[0] == 5
