"""SQL over runs: the ready views, what a query may not do, and who may ask."""

from __future__ import annotations

import pytest
from audited_runs import settings_of
from scoped_retrieval.nodes.errors import AccessError, InputError
from scoped_retrieval.nodes.vocabulary import SCORE_TERMS
from scoped_retrieval.pipeline.reading.auditing.sql import VIEWS, queried, tables_of
from scoped_retrieval.pipeline.runs import Runs


def test_every_view_answers(world):
    for name in VIEWS:
        found = queried(settings_of(world.folder), f"select * from {name}", [world.run])
        assert found.num_rows, name
        assert found.column_names[:2] == ["run_id", "request_id"]


def test_the_views_say_what_the_tables_say(world):
    settings, run = settings_of(world.folder), Runs(world.folder / "runs").open(world.run)
    (shown,) = queried(settings, "select count(*) n from items", [world.run])["n"].to_pylist()
    assert shown == run.table("trimmed").num_rows
    lost = queried(settings, "select sum(rows) n from losses", [world.run])["n"][0].as_py()
    rejected = run.table("decisions").to_pandas()["outcome"].ne("selected").sum()
    assert int(lost) == rejected
    sums = queried(
        settings,
        "select max(abs(total - final)) gap, count(distinct term) terms from "
        "(select sum(contribution) over (partition by request_id, evidence_id) total, final, term from scores)",
        [world.run],
    ).to_pylist()[0]
    assert sums == {"gap": 0.0, "terms": len(SCORE_TERMS)}


def test_without_a_run_every_audited_run_is_read(world):
    found = queried(settings_of(world.folder), "select distinct run_id from snapshots")
    assert found.num_rows == 3


@pytest.mark.parametrize(
    "query",
    [
        "select * from read_csv('/etc/hostname')",
        "copy snapshots to '/tmp/never.csv'",
        "attach '/tmp/never.db'",
        "selec",
    ],
)
def test_a_query_reads_the_tables_it_names_and_nothing_else(world, query):
    with pytest.raises(InputError, match="Expected a query over tables of runs"):
        queried(settings_of(world.folder), query)


def test_only_auditors_ask(world):
    assert queried(settings_of(world.folder, "bob"), "select 1 as one")["one"].to_pylist() == [1]
    with pytest.raises(InputError, match="snapshots does not exist") as refused:
        queried(settings_of(world.folder, "bob"), "select * from snapshots")
    assert "no finished run whose every snapshot you audit" in str(refused.value.hint)
    with pytest.raises(InputError, match="items does not exist") as refused:
        queried(settings_of(world.folder, "bob"), "select * from items")
    assert "auditors need a grant" in str(refused.value.hint)
    with pytest.raises(InputError) as refused:
        queried(settings_of(world.folder, "bob"), "selec")
    assert "tables are those of the data dictionary" in str(refused.value.hint)
    for who, name in (("bob", world.run), ("eve", world.run)):
        with pytest.raises(AccessError):
            tables_of(settings_of(world.folder, who), ["snapshots"], [name])
    own = world.bob.rpartition("-")[0].replace("retr-snap-", "run-")
    with pytest.raises(AccessError, match="only auditors of its projects"):
        tables_of(settings_of(world.folder, "bob"), ["snapshots"], [own])
