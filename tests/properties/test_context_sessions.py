"""A turn is the same from the events themselves, from a file of them and from the folder of a log, wherever it is in the log."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from context_session import Session, item, memory, policy, reasons, snapshot
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scoped_retrieval.pipeline.config.settings import load_settings
from scoped_retrieval.pipeline.context.events import LogTables, read_events
from scoped_retrieval.pipeline.context.log import SessionLog
from scoped_retrieval.pipeline.context.projections import project_log

COUNT = 140
INPUTS = {
    "project": "shop",
    "memories": [memory("m1"), memory("m2", "Uses zig builds.")],
    "snapshots": [snapshot(item("code#1", f"src/f{n}.ts", f"text {n}"), name=f"snap-{n}", ref=f"ref{n}") for n in range(9)],
    "state": {"activeConstraints": ["Never dance.", "Never sing."]},
    "budget": {"maxTokens": 3000},
}  # fmt: skip


def one_session() -> Session:
    """Snapshots are named by their own events and by requests of the model, early, late, and twice."""
    session = Session("Fix src/m3.ts. Do not change the public API.")
    for number in range(1, COUNT):
        turn = number // 5
        if number % 24 == 11:
            session.add("retrieval.snapshot.created", turn=turn, snapshotId=f"snap-{number // 24 % 7}")
        elif number % 40 == 20:
            session.add("model.request", turn=turn, retrievalSnapshotIds=["snap-7"], evidenceIds=["row-1"])
        elif number % 30 == 8:
            session.add("memory.recalled", turn=turn, **memory("m2", f"Uses build {number}."))
        elif number % 37 == 6:
            session.add("constraint.ended", turn=turn, constraintId=f"state:{number % 2}")
        elif number % 6 == 4:
            session.failing(f"src/m{number % 5}.ts:{number} error", turn=turn)
        elif number % 6 == 1:
            session.add("file.modified", turn=turn, path=f"/repo/src/m{number % 5}.ts", version=str(number), text="fix")
        else:
            session.add(
                "file.read", turn=turn, path=f"src/m{number % 5}.ts", version=str(number), text=f"text {number}"
            )
    return session


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[LogTables, Path]:
    session, place = one_session(), tmp_path_factory.mktemp("kept")
    (place / "s-1.jsonl").write_text("".join(json.dumps(event) + "\n" for event in session.events))
    log = SessionLog.open(place / "s-1", session_id="s-1")
    log.append(session.events[:70])
    log.compact()
    log.append(session.events[70:])
    (place / "inputs.json").write_text(json.dumps(INPUTS | {"turn": {"workingDirectory": "/repo"}}))
    return read_events(session.events, "s-1"), place


@settings(max_examples=2)
@given(places=st.lists(st.integers(0, COUNT), min_size=2, max_size=2, unique=True))
@example(places=[100])
def test_a_turn_is_the_same_from_a_list_a_file_and_a_folder(kept: tuple[LogTables, Path], places: list[int]):
    events, folder = kept
    given = {name: INPUTS[name] for name in ("memories", "snapshots", "state", "budget")}
    turns = [{"workingDirectory": "/repo", "asOfSeq": place} for place in places]
    made = policy((), (), project="shop").project_turns(turns=turns, events=events, session_id="s-1", **given)
    for place, turn in enumerate(turns):
        state = policy().state(events=events, state=INPUTS["state"], turn=turn, session_id="s-1")
        assert state == made[place].state, "the state alone"
    none = load_settings(environ={}, user=folder / "none")
    (folder / "at.json").write_text(json.dumps(INPUTS | {"turn": turns[0]}))
    others = [project_log(none, folder / "s-1", inputs=folder / "at.json")]
    others += [project_log(none, folder / "s-1", inputs=folder / "inputs.json", at=place) for place in places[1:]]
    if places == [100]:
        others += [project_log(none, folder / "s-1.jsonl", inputs=folder / "at.json")]
        said = reasons(made[0])
        assert {said[f"snapshot:snap-{n}"] for n in (0, 1, 5, 7)} == {"other_turn"}, "earlier ones, and later ones"
        assert "other_turn" not in {said[f"item:snap-{n}:code#1"] for n in (2, 3, 8)}
    for seen in (other[0] for other in others):
        own = next(each for each in made if each.input_id == seen.input_id)
        assert seen.model_input == own.model_input and seen.neutral() == own.neutral()
        assert seen.state == own.state
        assert [dict(row) for row in seen.decisions] == [dict(row) for row in own.decisions]
