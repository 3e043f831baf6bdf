"""What the interfaces share: who sees how much of a snapshot, and checks that a damaged neighbor does not stop."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
import yaml
from changed_record import with_values
from retrieving import LEXICAL
from scoped_retrieval.nodes.audit.records import VIEWED, snapshot_digests
from scoped_retrieval.nodes.errors import AccessError, StoreError, VerificationError
from scoped_retrieval.nodes.tables import TABLES
from scoped_retrieval.pipeline.asking.retriever import Retriever
from scoped_retrieval.pipeline.config.settings import Settings, load_settings
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.reading.access import replayed
from scoped_retrieval.pipeline.reading.across_runs import snapshot_named
from scoped_retrieval.pipeline.reading.reports import verified
from scoped_retrieval.pipeline.runs import Run, Runs, replay, verify
from scoped_retrieval.pipeline.runs.live import _bytes_of, read_tables
from scoped_retrieval.pipeline.runs.parts import STORED
from small_corpus import Story, row
from written_runs import file_of, log_again

NOON = datetime(2025, 6, 1, 12, tzinfo=UTC)
ASKED = {"question": "default role", "purpose": "explain-code", "project": "shop"}


@pytest.fixture
def settings(corpus: Corpus, tmp_path: Path) -> Settings:
    flags = {"corpus": str(corpus.path), "runs": str(tmp_path / "runs"), "principal": "ana"}
    return load_settings(flags, cwd=tmp_path, environ={}, user=None)


def opened(settings: Settings, **how: object) -> Retriever:
    return Retriever.open(
        settings["corpus"], principal="ana", runs=settings["runs"], lanes=LEXICAL, clock=lambda: NOON, **how
    )


def test_a_replay_shows_a_caller_what_the_retrieval_showed_and_an_auditor_every_column(settings: Settings):
    with opened(settings) as retriever:
        found = retriever.retrieve(ASKED)
    seen = replayed(settings, found.snapshot_id)
    assert seen.citations.to_pylist() == found.citations
    assert seen.conditions.to_pylist() == list(found.conditions)
    assert seen._repr_html_() == found._repr_html_()
    for form in ("event", "observation", "context_block", "block"):
        assert getattr(seen, form) == getattr(found, form), form
    assert seen.decisions.num_rows == 0 and seen.provenance == {}
    for name, table in seen.tables.items():
        assert set(table.column_names) <= set(TABLES[name].names(audience="caller")), name

    auditor = {"principals": {"ana": {"projects": ["shop"], "audit": True}}}
    settings.grants_path.write_text(yaml.safe_dump(auditor))
    whole = replayed(settings, found.snapshot_id)
    citations = TABLES["citations"].columns.items()
    assert whole.citations.column_names == [name for name, column in citations if column.stored]
    assert whole.decisions.num_rows > 0


def test_the_last_recall_of_a_session_is_the_one_captured_last_whichever_run_began_first(settings: Settings):
    minutes = iter(range(60))

    def asking() -> Retriever:
        return Retriever.open(settings["corpus"], principal="ana", runs=settings["runs"], lanes=LEXICAL,
                              clock=lambda: NOON + timedelta(minutes=next(minutes)))  # fmt: skip

    with asking() as first, asking() as second:
        first.retrieve(ASKED, session_id="s-1")
        second.retrieve(ASKED, session_id="s-1")
        found = first.retrieve(ASKED, session_id="s-1")
        last, block_ref = found.snapshot_id, found.block_ref
        assert block_ref is not None and snapshot_named(settings, block_ref) == last  # all have the same block
        other = second.retrieve(ASKED, session_id="s-2").snapshot_id
        assert snapshot_named(settings, "@session:s-1") == last
        assert snapshot_named(settings, "@session:s-2") == other == snapshot_named(settings, "@")
    assert snapshot_named(settings, "@session:s-1") == last  # compacted, too
    with pytest.raises(AccessError):
        snapshot_named(settings, "@session:s-3")


def test_an_old_snapshot_is_read_as_long_as_the_grants_in_force_open_what_it_reached(settings: Settings):
    bot = load_settings(
        {**{n: str(settings[n]) for n in ("corpus", "runs")}, "principal": "bot"}, environ={}, user=None
    )
    ana, lent = {"projects": ["shop"]}, {"act_as": ["ana"]}

    def grant(**principals: object) -> None:
        settings.grants_path.write_text(yaml.safe_dump({"principals": principals}))

    def readable(viewer: Settings, snapshot: str) -> bool:
        try:
            return bool(replayed(viewer, snapshot).block)
        except AccessError:
            return False

    grant(ana=ana, bot=lent)
    asking = {"principal": "bot", "runs": settings["runs"], "lanes": LEXICAL, "clock": lambda: NOON}
    with opened(settings) as own, Retriever.open(settings["corpus"], **asking) as other:
        mine, theirs = own.retrieve(ASKED).snapshot_id, other.retrieve({**ASKED, "principal": "ana"}).snapshot_id
    assert [readable(settings, mine), readable(settings, theirs), readable(bot, theirs)] == [True] * 3
    grant(ana=ana, bot={})
    assert [readable(settings, theirs), readable(bot, theirs)] == [True, False]
    expired = {"projects": [{"project": "shop", "expires": "2025-01-01T00:00:00Z"}]}
    for left in ({}, expired):
        grant(ana=left, bot=lent)
        assert [readable(settings, mine), readable(settings, theirs), readable(bot, theirs)] == [False] * 3


def test_a_run_whose_generation_is_gone_is_checked(settings: Settings):
    settings.grants_path.write_text(yaml.safe_dump({"principals": {"ana": {"projects": ["shop"], "audit": True}}}))
    with opened(settings) as retriever:
        run_id = retriever.run([ASKED]).run_id
    for manifest in (settings["corpus"] / "generations").glob("*.json"):
        manifest.unlink()
    report = verified(settings)
    assert [(one["run_id"], one["status"]) for one in report["runs"]] == [(run_id, "ok")]


QUESTION = "what is the default role of guests"
SAYS = "the default role of sessions is guest\n"


@pytest.fixture
def batch(tmp_path: Path) -> Run:
    """Three requests in three shards."""
    story = Story(tmp_path, row("doc", "docs/roles.md", SAYS))
    with story.open(runs=tmp_path / "runs", shard_requests=1) as retriever:
        rows = [{"request_id": name, "question": QUESTION, "purpose": "answer-question"} for name in "abc"]
        summary = retriever.run(rows)
    return Runs(tmp_path / "runs").open(summary.run_id)


@pytest.fixture
def session(tmp_path: Path) -> Run:
    """Three interactive snapshots."""
    story = Story(tmp_path, row("doc", "docs/roles.md", SAYS))
    retriever = story.open(runs=tmp_path / "runs")
    found = [retriever.retrieve(QUESTION) for _ in range(3)]
    return Runs(tmp_path / "runs").open(str(found[0].snapshot_id))


def shard_parts(run: Run, shard: str) -> list[Path]:
    return [Path(str(run.folder / path)) for path in run.shards[shard]]


def ids(run: Run) -> list[str]:
    return run.snapshots["snapshot_id"].to_pylist()


def test_damage_in_one_shard_keeps_no_other_snapshot_back(batch: Run):
    store, (first, _, last) = batch.store, ids(batch)
    for path in shard_parts(batch, "00000"):
        path.write_bytes(b"no parquet")
    assert replay(store, last).status == "ok"
    with pytest.raises(StoreError, match=r"Expected a whole part, got a damaged one"):
        replay(store, first)


def test_damage_in_one_interactive_file_keeps_no_other_snapshot_back(session: Run):
    store, (first, second, third) = session.store, ids(session)
    file_of(session, 2).write_bytes(b"no arrow")
    assert [replay(store, one).status for one in (first, third)] == ["ok", "ok"]
    with pytest.raises(
        StoreError, match=r"Expected a whole snapshot, got a damaged one - at live/[0-9a-f]{64}.arrow.lz4"
    ):
        replay(store, second)


def forge(run: Run, table: str, column: str, value: str) -> None:
    """Rewrite the first interactive file with another value in every row of a column, and the log with its hash."""
    lines = run.store.log.lines()
    before = lines[0].body["snapshots"][0]["sha256"]
    path = file_of(run, 1).with_name(f"{before}.arrow.lz4")
    tables = read_tables(path, before)
    if table in VIEWED:
        tables["record"] = with_values(tables["record"], table, column, lambda _: value)
    else:
        rows, place = tables[table], tables[table].column_names.index(column)
        tables[table] = rows.set_column(
            place, rows.schema.field(place), pa.array([value] * len(rows), rows[column].type)
        )
    data = _bytes_of(tables)
    sha256 = hashlib.sha256(data).hexdigest()
    path.with_name(f"{sha256}.arrow.lz4").write_bytes(data)
    changed = lines[0].body["snapshots"][0] | {"sha256": sha256}
    first = ("live", {**lines[0].body, "snapshots": [changed]})
    log_again(run.store, first, *((line.body["kind"], dict(line.body)) for line in lines[1:]))


@pytest.mark.parametrize(("table", "column"), [("texts", "text"), ("decisions", "reason_text")])
def test_nobody_is_shown_a_record_that_was_changed(session: Run, table: str, column: str):
    first, second, _ = ids(session)
    forge(session, table, column, "what is the root password")
    run = session.store.open(first)
    with pytest.raises(VerificationError, match=r"Expected the (snapshot digest to follow|text that was hashed)"):
        replay(run, first)
    assert replay(run, second).request["question"] == QUESTION


def test_a_block_that_is_not_the_one_that_was_hashed_is_not_shown_whatever_its_record_adds_up_to(session: Run):
    first, *_ = ids(session)
    forge(session, "snapshots", "visible_sha256", "0" * 64)
    run = session.store.open(first)
    record, snapshots = (run.table(name, snapshot_id=first) for name in STORED)
    (digest,) = snapshot_digests(record, snapshots, run.provenance)
    forge(session, "snapshots", "snapshot_digest", digest)
    with pytest.raises(VerificationError, match=r"^Expected the block that was hashed, got another - at retr-snap-"):
        replay(session.store, first)
    told = {problem.detail for problem in verify(session.store, session.run_id).problems}
    assert "Expected the block that was hashed, got another" in told


def test_a_question_that_was_changed_is_not_listed(session: Run):
    forge(session, "texts", "text", "what is the root password")
    run = session.store.open(session.run_id)
    with pytest.raises(
        VerificationError, match=r"Expected the text that was hashed, got another - at requests\.question"
    ):
        run.table("requests", texts=True)
