"""What the interfaces share: who sees how much of a snapshot, and checks that a damaged neighbor does not stop."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from retrieving import LEXICAL
from scoped_retrieval.nodes.errors import AccessError
from scoped_retrieval.nodes.tables import TABLES
from scoped_retrieval.pipeline.asking.retriever import Retriever
from scoped_retrieval.pipeline.config.settings import Settings, load_settings
from scoped_retrieval.pipeline.corpus import Corpus
from scoped_retrieval.pipeline.reading.access import replayed
from scoped_retrieval.pipeline.reading.across_runs import snapshot_named
from scoped_retrieval.pipeline.reading.reports import verified

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
