"""The auditors' capture: best matches out of scope, apart from everything that a caller or a digest can see."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
import yaml
from asking import INSIDE
from scoped_retrieval.nodes.errors import AccessError, StoreError
from scoped_retrieval.nodes.tables import OUT_OF_SCOPE
from scoped_retrieval.pipeline.config.settings import load_settings
from scoped_retrieval.pipeline.contracts.why import captured
from scoped_retrieval.pipeline.runs import Runs, verify
from scoped_retrieval.pipeline.runs.captures import read_captured
from small_corpus import NOON, Story, row

SAYS = "the default role of a cart session is guest"
PEOPLE = {
    "ana": {"projects": ["shop"], "audit": True},
    "bob": {"projects": ["shop"]},
    "cyd": {"projects": ["shop", "pay"], "audit": True},
}


def about(path: str, **columns) -> dict:
    return row("workspace", path, f"{SAYS} {path}", evidence_kind="doc", **columns)


@pytest.fixture(name="story")
def story_fixture(tmp_path) -> Story:
    rows = [about(f"{n}.md") for n in range(4)]
    rows += [about("zone.md", zone="private"), about("owner.md", owner_user="bob"), about("keys/a.md")]
    rows += [
        about("hidden.md", declared_visibility="runtime-only"),
        row("doc", "far.md", "nothing alike", zone="private", source_id="workspace:story"),
    ]
    story = Story(tmp_path, *rows)
    story.tell(about("pay.md"), project="pay")
    (tmp_path / "grants.yaml").write_text(yaml.safe_dump({"principals": PEOPLE}))
    return story


def ask(story: Story, runs: Path, *, who: str = "ana", capture: bool = True):
    with story.open(principal=who, runs=runs, capture_withheld=capture) as retriever:
        return retriever.retrieve({"question": SAYS, "project": "shop", "denied_paths": ["keys/"]})


def kept(runs: Path, snapshot_id: str) -> dict[str, str]:
    run = Runs(runs).open(snapshot_id)
    return {one["path"]: one["decided_by"] for one in read_captured(runs, run.run_id, run.request_of(snapshot_id))}


def test_matches_that_an_access_gate_stopped_are_kept_with_the_gate(story, tmp_path):
    found = ask(story, tmp_path / "runs")
    assert kept(tmp_path / "runs", found.snapshot_id) == {
        "zone.md": "zone", "owner.md": "owner", "keys/a.md": "path_deny",
    }  # fmt: skip
    assert {item["path"] for item in found.citations} <= {f"{n}.md" for n in range(4)}


def test_an_auditor_of_another_project_gets_its_rows_too(story, tmp_path):
    found = ask(story, tmp_path / "runs", who="cyd")
    assert "pay.md" in kept(tmp_path / "runs", found.snapshot_id)


def test_nothing_else_moves_by_a_byte(story, tmp_path):
    plain, watched = (ask(story, tmp_path / name, capture=name == "watched") for name in ("plain", "watched"))
    assert plain.block == watched.block
    for name in INSIDE:
        assert plain.tables[name].equals(watched.tables[name])
    digests = [found.tables["snapshots"]["snapshot_digest"].to_pylist() for found in (plain, watched)]
    assert digests[0] == digests[1]
    for name in ("plain", "watched"):
        store = Runs(tmp_path / name)
        assert verify(store, store.run_ids()[0]).ok
    assert not (tmp_path / "plain" / "audit").exists()
    told = b"".join(file.read_bytes() for file in (tmp_path / "watched").glob("run-*/**/*") if file.is_file())
    assert b"keys/a.md" not in told


def test_a_batch_keeps_each_request_apart(story, tmp_path):
    rows = [
        {"request_id": str(n), "question": SAYS, "project": project, "purpose": "explain-code"}
        for n, project in enumerate(("shop", "pay", "shop"))
    ]
    with story.open(runs=tmp_path / "runs", capture_withheld=True, shard_requests=2) as retriever:
        run_id = retriever.run(rows).run_id
    found = [read_captured(tmp_path / "runs", run_id, str(n)) for n in range(3)]
    assert [[one["rank"] for one in each] for each in found] == [[1, 2], [], [1, 2]]
    assert {one["decided_by"] for one in found[0]} == {"zone", "owner"}
    files = sorted((tmp_path / "runs" / "audit" / run_id).glob("*.parquet"))
    assert all(pa.parquet.read_table(file).schema.names == OUT_OF_SCOPE.schema.names for file in files)


def test_only_an_auditor_may_capture_or_read(story, tmp_path):
    with pytest.raises(AccessError, match="Permission denied: 'bob' needs an audit grant - at capture_withheld"):
        ask(story, tmp_path / "runs", who="bob")
    found = ask(story, tmp_path / "runs")
    flags = {"corpus": tmp_path / "corpus", "runs": tmp_path / "runs", "grants": tmp_path / "grants.yaml"}

    def read(who: str, snapshot_id: str) -> set[str]:
        settings = load_settings(flags | {"principal": who}, environ={}, user=tmp_path / "none.toml")
        return {one["path"] for one in captured(settings, snapshot_id)}

    assert read("ana", found.snapshot_id) == {"zone.md", "owner.md", "keys/a.md"}
    with pytest.raises(AccessError):
        read("bob", found.snapshot_id)
    plain = ask(story, tmp_path / "runs", capture=False)
    with pytest.raises(StoreError, match="Expected a capture of this run, got none"):
        read("ana", plain.snapshot_id)


def until(tmp_path: Path, **expires: datetime) -> None:
    """Grants that let `ana` audit shop and pay, each until its time."""
    projects = [{"project": name, "expires": at.isoformat()} for name, at in expires.items()]
    (tmp_path / "grants.yaml").write_text(
        yaml.safe_dump({"principals": {"ana": {"audit": True, "projects": projects}}})
    )


def test_the_right_to_capture_is_judged_when_a_request_is_asked(story, tmp_path):
    until(tmp_path, shop=NOON + timedelta(days=9), pay=NOON + timedelta(hours=1))
    now, runs = [NOON], tmp_path / "runs"
    with story.open(runs=runs, capture_withheld=True, clock=lambda: now[0]) as retriever:
        found = []
        for now[0] in (NOON, NOON + timedelta(hours=1), NOON + timedelta(days=9)):
            found.append(retriever.retrieve({"question": SAYS, "project": "shop"}))
            rows = [{"request_id": "a", "question": SAYS, "project": "shop", "purpose": "explain-code"}]
            run_id = retriever.run(rows).run_id
            assert (runs / "audit" / run_id).exists() == (now[0] < NOON + timedelta(days=9))
    assert "pay.md" in kept(runs, found[0].snapshot_id)
    assert {"zone.md", "owner.md"} == set(kept(runs, found[1].snapshot_id))
    assert kept(runs, found[2].snapshot_id) == {}, "nothing was kept of the last, whose grants had expired"
