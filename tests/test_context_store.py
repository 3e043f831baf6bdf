"""Recorded projections: read again byte for byte, only by those allowed to, and without erased texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from context_session import Session, item, policy, snapshot
from power_cut import each_cut
from scoped_retrieval.nodes.errors import AccessError, ErasedError, InputError, StoreError, VerificationError
from scoped_retrieval.pipeline.context.store import ContextStore
from scoped_retrieval.pipeline.runs import Runs, erase_evidence
from scoped_retrieval.pipeline.runs.log import RunLog
from scoped_retrieval.pipeline.runs.model_inputs import erase_from_inputs
from scoped_retrieval.pipeline.storage.durable import entries

NOON = datetime(2026, 5, 20, 12, tzinfo=UTC)


def made(**given: Any) -> Any:
    session = Session()
    for number in range(6):
        session.failing(f"src/a.ts:{number} error", turn=number)
    turns = [{"asOfSeq": place, "turnId": str(place), "snapshotIds": ["snap-1"]} for place in (2, 4, 6)]
    return policy().project_turns(
        turns=turns, events=session.events, snapshots=[snapshot(item(evidence_id="ev-1"))], session_id="s", **given
    )


def test_a_recorded_input_is_read_again_byte_for_byte(tmp_path: Path):
    projections = made()
    store = ContextStore(tmp_path, principal="ana")
    record = store.record(projections, now=NOON)
    assert record == store.record(projections), "recorded once"
    for seen in projections:
        again = store.replay(seen.input_id)
        assert again.projection.text() == seen.text() and again.projection.neutral() == seen.neutral()
        assert again.projection.ledger() == seen.ledger() and again.projection.conditions == seen.conditions
        assert again.projection.openai() == seen.openai() and again.erased == ()
    with pytest.raises(InputError, match="Expected the record of one input, got one of 3"):
        store.replay(record)


def test_a_record_is_replayed_by_its_name_though_its_input_was_recorded_again(tmp_path: Path):
    session = Session()
    store, policy_ = ContextStore(tmp_path, principal="ana"), policy()
    first, second = (
        policy_.project_turns(turns=[{}], events=session.events, session_id="s", budget=budget)
        for budget in ({"maxTokens": 9000}, {"maxTokens": 9000, "fences": "lines"})
    )
    names = [store.record(first, now=NOON), store.record(second, now=NOON + timedelta(hours=1))]
    assert first[0].input_id == second[0].input_id and names[0] != names[1]
    for name, made_ in zip(names, (first, second), strict=True):
        again = store.replay(name)
        assert (again.record, again.projection.text()) == (name, made_[0].text())
        assert store.record(made_) == name, "recorded once"
    last = store.replay(first[0].input_id)
    assert (last.record, last.projection.text()) == (names[1], second[0].text())


def test_records_of_one_input_that_differ_in_anything_kept_have_names_of_their_own(tmp_path: Path):
    store, names = ContextStore(tmp_path, principal="ana"), []
    for project, run in (("A", "r1"), ("B", "r1"), ("A", "r2")):
        given = policy(project=project, run_id=run).project_turns(turns=[{}], events=Session().events, session_id="s")
        names.append(store.record(given, now=NOON))
        turn = store.replay(names[-1]).projection.turn
        assert (turn["project"], turn["run_id"]) == (project, run)
    assert len(set(names)) == 3


def test_no_text_stands_in_a_table_and_no_input_as_a_whole(tmp_path: Path):
    store = ContextStore(tmp_path, principal="ana")
    store.record(made())
    for file in (texts_in(tmp_path), *(tmp_path / "shared").iterdir()):
        rows = str(pq.read_table(file).to_pylist())
        assert ("export const a = 1;" in rows) == (file.parent.name == "contexts"), file
    texts = pq.read_table(texts_in(tmp_path))["text"].to_pylist()
    assert not [text for text in texts if "Latest observation" in text and "Evidence:" in text]


def test_erased_evidence_is_gone_from_every_input_and_the_ledger_stands(tmp_path: Path):
    store = ContextStore(tmp_path, principal="ana")
    projections = made()
    store.record(projections)
    assert erase_from_inputs(store.runs, ["ev-0"]) == 0
    assert shown_in(tmp_path)
    assert erase_from_inputs(store.runs, ["ev-1"]) == 1
    again = store.replay("s/4")
    assert again.erased == ("item:snap-1:code#1",) and again.projection.text() == ""
    assert again.projection.ledger() == projections[1].ledger()
    assert not shown_in(tmp_path)


def test_another_principal_reads_nothing(tmp_path: Path):
    ContextStore(tmp_path, principal="ana").record(made())
    other = ContextStore(tmp_path, principal="bo")
    assert other.records() == []
    with pytest.raises(AccessError, match=r"Expected an answer, .* model input that you may read, got none - at s/4"):
        other.replay("s/4")
    with pytest.raises(AccessError, match="got none - at nothing"):
        ContextStore(tmp_path, principal="ana").replay("nothing")


def test_a_record_that_was_changed_is_told(tmp_path: Path):
    store = ContextStore(tmp_path, principal="ana")
    store.record(made())
    file = tmp_path / "shared" / store.records()[0]["tables"]["context_decisions"]
    pq.write_table(pq.read_table(file).slice(1), file)
    with pytest.raises(VerificationError, match="context_decisions"):
        store.replay("s/2")


def test_a_text_that_no_erasure_removes_is_missed(tmp_path: Path):
    store = ContextStore(tmp_path, principal="ana")
    store.record(made())
    table = pq.read_table(file := texts_in(tmp_path))
    kept = [number for number, text in enumerate(table["text"].to_pylist()) if "Only modify" not in text]
    assert len(kept) < table.num_rows
    pq.write_table(table.take(kept), file)
    with pytest.raises(VerificationError, match=r"Expected the text of rule:system:0, got none - at .*/texts"):
        store.replay("s/2")


def test_an_input_that_kept_nothing_of_a_snapshot_is_its_child(tmp_path: Path):
    session = Session()
    items = [item("code#1", "src/a.py", "long words " * 400, evidence_id="row-a")]
    some = [snapshot(*items), snapshot(name="snap-2")]
    store = ContextStore(tmp_path, principal="ana")
    store.record(
        policy().project_turns(
            turns=[{}], events=session.events, snapshots=some, budget={"maxTokens": 160, "reservedOutputTokens": 0}
        )
    )
    (child,) = store.children_of("snap-1")
    (row,) = [row for row in child.projection.decisions if row["evidence_id"] == "row-a"]
    assert (child.projection.status, row["action"]) == ("ok", "exclude") and row["reason_code"].startswith("budget")
    assert store.children_of("snap-2") == [], "it has no items"


def test_the_children_of_a_snapshot_are_the_inputs_that_draw_on_it(tmp_path: Path):
    store = ContextStore(tmp_path, principal="ana")
    store.record(made())
    found = store.children_of("snap-1")
    assert sorted(each.projection.input_id for each in found) == ["s/2", "s/4", "s/6"]
    (row,) = [row for row in found[0].projection.decisions if row["source_kind"] == "retrieval_result"]
    assert row["reason_code"] == "failing_stack"


def test_an_input_that_does_not_follow_from_its_record_is_told(tmp_path: Path):
    """Texts alone do not match their hashes; recorded with all that names them, the digest of the input finds it."""
    store = ContextStore(tmp_path, principal="ana")
    store.record(made())
    texts = pq.read_table(file := texts_in(tmp_path))
    words = [text.replace("Only modify", "Always leave") for text in texts["text"].to_pylist()]
    pq.write_table(texts.set_column(1, texts.schema.field("text"), pa.array(words, pa.large_string())), file)
    with pytest.raises(VerificationError, match="Expected the texts that were recorded, got others - at ctx-"):
        store.replay("s/2")
    other = made()
    decisions = other.tables["context_decisions"]
    at = decisions.schema.get_field_index("lines")
    lines = [text and text.replace("Only modify", "Always leave") for text in decisions["lines"].to_pylist()]
    changed = decisions.set_column(at, decisions.schema.field(at), pa.array(lines, decisions.schema.field(at).type))
    store.record(replace(other, tables={**other.tables, "context_decisions": changed}))
    with pytest.raises(VerificationError, match="Expected the input that was recorded, got another - at s/2"):
        store.replay("s/2")


def texts_in(folder: Path) -> Path:
    """The file of the texts of the only record."""
    (file,) = (folder / "contexts").iterdir()
    return file


def shown_in(folder: Path) -> list[Path]:
    """The files of texts that have the text of ev-1, with and without a line."""
    files = (folder / "contexts").glob("*.parquet")
    return [file for file in files if "export const a" in str(pq.read_table(file)["text"].to_pylist())]


def erase(folder: Path) -> None:
    """Erase ev-1 as the command does."""
    erase_evidence(Runs(folder), ["ev-1"], reason="test")
    erase_from_inputs(Runs(folder), ["ev-1"])


def opened(folder: Path) -> ContextStore:
    """The store of a folder, every record of which replays."""
    store = ContextStore(folder, principal="ana")
    assert all(store.replay(name).record for manifest in store.records() for name in manifest["inputs"])
    return store


def test_an_erasure_that_is_killed_at_any_step_leaves_records_that_can_be_read_and_is_done_by_asking_again(
    tmp_path: Path,
):
    ContextStore(tmp_path / "start", principal="ana").record(made())
    step, shown = 0, set[bool]()
    for step, _, left in each_cut(tmp_path / "start", tmp_path, erase, power=False):
        store = opened(left)
        shown.add(bool(shown_in(left)))
        erase(left)
        assert store.replay("s/4").erased == ("item:snap-1:code#1",), step
        assert [*(left / "contexts").iterdir()] == [left / "contexts" / store.records()[0]["texts"]], step
        assert not shown_in(left), step
    assert step > 3 and shown == {True, False}


def test_a_record_that_is_killed_at_any_step_is_whole_or_not_there(tmp_path: Path):
    (tmp_path / "start").mkdir()
    inputs, step, shown = made(), 0, set[tuple[int, bool]]()
    for step, _, left in each_cut(tmp_path / "start", tmp_path, lambda at: opened(at).record(inputs), power=False):
        store = opened(left)
        recorded = len(store.records())
        shown.add((recorded, bool(shown_in(left))))
        erase(left)
        assert not shown_in(left) and len(entries(left / "contexts")) == recorded, step
    assert step > 20 and shown == {(0, False), (0, True), (1, True)}


def test_a_changed_line_hides_no_other_record(tmp_path: Path):
    store = ContextStore(tmp_path, principal="ana")
    store.record(made())
    store.record(made(budget={"fences": "lines"}))
    first, *rest = (tmp_path / "LOG").read_bytes().split(b"\n")
    (tmp_path / "LOG").write_bytes(b"\n".join([first.replace(b'"s/2"', b'"x/2"'), *rest]))
    assert len(store.records()) == store.unreadable == 1
    assert store.replay("s/4").projection.input_id == "s/4"
    with pytest.raises(AccessError) as refused:
        store.replay("s/3")
    assert "1 damaged line" in refused.value.hint


def test_an_erasure_goes_on_behind_a_damaged_record_and_says_so(tmp_path: Path):
    store = ContextStore(tmp_path, principal="ana")
    store.record(made())
    store.record(made(budget={"fences": "lines"}))
    damaged, other = (tmp_path / "contexts" / each["texts"] for each in store.records())
    assert {*shown_in(tmp_path)} == {damaged, other}
    damaged.write_bytes(b"damaged")
    with pytest.raises(StoreError, match="Expected a whole part, got a damaged one"):
        erase_from_inputs(store.runs, ["ev-1"])
    assert "export const a" not in str(pq.read_table(other)["text"].to_pylist())


def beside(monkeypatch: pytest.MonkeyPatch, point: str, action: Callable[[], Any]) -> None:
    """Do something while a record is written: before its files (after `sweeps`) or between them and its line (`commit`)."""
    real = getattr(RunLog, point)

    def patched(self: RunLog, *given: Any) -> Any:
        monkeypatch.undo()
        done = real(self) if point == "sweeps" else None
        action()
        return done or real(self, *given)

    monkeypatch.setattr(RunLog, point, patched)


POINTS = pytest.mark.parametrize("point", ["sweeps", "commit"])


@POINTS
def test_a_record_of_evidence_that_is_erased_before_its_line_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
):
    store, shown = ContextStore(tmp_path, principal="ana"), list[Path]()
    beside(monkeypatch, point, lambda: (shown.extend(shown_in(tmp_path)), erase(tmp_path)))
    with pytest.raises(ErasedError):
        store.record(made())
    assert len(shown) == (point == "commit")
    assert store.records() == [] and entries(tmp_path / "contexts") == []


@POINTS
def test_an_erasure_of_another_row_that_swept_before_leaves_a_record_that_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
):
    Runs(tmp_path).sweep()
    beside(monkeypatch, point, lambda: erase_from_inputs(Runs(tmp_path), ["ev-0"]))
    ContextStore(tmp_path, principal="ana").record(made())
    assert opened(tmp_path).replay("s/4").erased == () and len(shown_in(tmp_path)) == 1


@POINTS
def test_a_projection_that_two_record_at_once_is_recorded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
):
    names = list[str]()
    beside(monkeypatch, point, lambda: names.append(ContextStore(tmp_path, principal="ana").record(made())))
    names.append(ContextStore(tmp_path, principal="ana").record(made()))
    (only,) = opened(tmp_path).records()
    assert names == [only["record"]] * 2 and len(shown_in(tmp_path)) == 1
