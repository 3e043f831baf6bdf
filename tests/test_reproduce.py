"""Reproduce names the first value that differs, and what changed since: each change is made once and named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from audited_runs import audited, settings_of
from changed_record import with_values
from scoped_retrieval.nodes.audit.records import view
from scoped_retrieval.nodes.errors import AccessError
from scoped_retrieval.pipeline.reading.auditing import reproduce, rerun
from scoped_retrieval.pipeline.reading.auditing.reproduce import reproduced
from stand_in_encoder import WordsByTheirStart
from stored_corpus import repin, reseal


@pytest.fixture(name="world")
def world_fixture(tmp_path):
    return audited(tmp_path)


def test_what_did_not_change_is_reproduced(world):
    for name, snapshots in ((world.ana, 1), (world.bob, 1), (world.run, 3)):
        found = reproduced(settings_of(world.folder), name)
        assert (found.same, found.snapshots, found.first, found.changed) == (True, snapshots, None, {})


def test_changed_policies_are_named(world):
    own = world.folder / "policies" / "purposes"
    own.mkdir(parents=True)
    bundled = Path(rerun.__file__).parents[3] / "data/policies/purposes/answer-question.yaml"
    text = bundled.read_text(encoding="utf-8")
    (own / "answer-question.yaml").write_text(text.replace("max_items: 12", "max_items: 1"), encoding="utf-8")
    found = reproduced(settings_of(world.folder, policies=world.folder / "policies"), world.ana)
    assert not found.same
    assert found.first and (found.first.table, found.first.column) == ("contracts", "max_items")
    assert (found.first.stored, found.first.computed) == (12, 1)
    assert list(found.changed) == ["policies"]


def test_policies_that_change_no_value_are_told_and_reproduced(world):
    own = world.folder / "policies" / "purposes"
    own.mkdir(parents=True)
    bundled = Path(rerun.__file__).parents[3] / "data/policies/purposes/review-risk.yaml"
    (own / "review-risk.yaml").write_text(bundled.read_text(encoding="utf-8") + "# a comment\n", encoding="utf-8")
    found = reproduced(settings_of(world.folder, policies=world.folder / "policies"), world.ana)
    assert (found.same, list(found.changed)) == (True, ["policies"])


def test_changed_code_is_named(world, monkeypatch):
    monkeypatch.setattr("scoped_retrieval.pipeline.line.provenance.code_digest", lambda: "0" * 64)
    assert reproduced(settings_of(world.folder), world.ana).same  # another version that gives the same values
    line_of = reproduce.line_of

    def other(*given: Any, **how: Any) -> Any:
        line = line_of(*given, **how)
        return replace(line, bm25=replace(line.bm25, k1=2.0))

    monkeypatch.setattr(reproduce, "line_of", other)
    found = reproduced(settings_of(world.folder), world.ana)
    assert (found.same, list(found.changed)) == (False, ["code"])
    assert found.first and (found.first.table, found.first.column) == ("hits", "score")


def test_a_changed_corpus_is_named(world):
    """A pinned generation whose rows were rewritten, with every checksum of it mended."""
    (pack,) = [path for path in (world.folder / "corpus/packs").iterdir() if (path / "evidence.arrow").exists()]
    evidence = pack / "evidence.arrow"
    data = evidence.read_bytes()
    assert data.count(b"is three, and") == 1
    evidence.write_bytes(data.replace(b"is three, and", b"is seven, an "))
    reseal(world.folder / "corpus", pack)
    repin(world.folder / "corpus")
    found = reproduced(settings_of(world.folder), world.ana)
    assert (found.same, len(found.problems)) == (False, 1)


def test_another_model_is_named(tmp_path, monkeypatch):
    encoder = WordsByTheirStart()
    world = audited(tmp_path, encoder=encoder)
    monkeypatch.setattr(rerun, "encoder_of", lambda *_: encoder)
    assert reproduced(settings_of(tmp_path), world.ana).same

    class Other(WordsByTheirStart):
        profile = "other/2"

    monkeypatch.setattr(rerun, "encoder_of", lambda *_: Other())
    found = reproduced(settings_of(tmp_path), world.ana)
    assert (found.same, list(found.changed)) == (False, ["encoder"])


def test_one_changed_cell_is_named_by_table_row_and_column(world):
    (part,) = (world.folder / "runs" / world.run / "tables/record").glob("*.parquet")
    record = pq.read_table(part)
    terms = view(record, "score_terms")
    was = terms["anchor"].to_pylist()
    more = iter([0.25 * (place == 3) for place in range(len(was))])
    pq.write_table(with_values(record, "score_terms", "anchor", lambda value: value + next(more)), part)
    found = reproduced(settings_of(world.folder), world.run)
    assert (found.same, found.changed, found.problems) == (False, {}, ())
    assert found.first and (found.first.table, found.first.column) == ("score_terms", "anchor")
    assert found.first.row == {name: terms[name][3].as_py() for name in ("request_id", "evidence_id")}
    assert (found.first.stored, found.first.computed) == (was[3] + 0.25, was[3])


def test_only_auditors_reproduce(world):
    with pytest.raises(AccessError, match="only auditors of its projects"):
        reproduced(settings_of(world.folder, "bob"), world.bob)
    with pytest.raises(AccessError, match="that you may read"):
        reproduced(settings_of(world.folder, "eve"), world.run)
