"""SQL over runs: the ready views, what a query may not do, and who may ask."""

from __future__ import annotations

import json
import time

import pytest
from audited_runs import audited, settings_of
from command_line import run as command
from scoped_retrieval.nodes.errors import AccessError, InputError
from scoped_retrieval.nodes.vocabulary import SCORE_TERMS
from scoped_retrieval.pipeline.reading.auditing.sql import VIEWS, named_in, queried, tables_of
from scoped_retrieval.pipeline.runs import RunStore


@pytest.fixture(name="world", scope="module")
def world_fixture(tmp_path_factory):
    return audited(tmp_path_factory.mktemp("sql"))


def test_every_view_answers(world):
    for name in VIEWS:
        found = queried(settings_of(world.folder), f"select * from {name}", [world.run])
        assert found.num_rows, name
        assert found.column_names[:2] == ["run_id", "request_id"]


def test_the_views_say_what_the_tables_say(world):
    settings, run = settings_of(world.folder), RunStore(world.folder / "runs").open(world.run)
    (shown,) = queried(settings, "select count(*) n from items", [world.run])["n"].to_pylist()
    assert shown == run.table("trimmed").num_rows
    funnel = queried(settings, "select sum(recalled) r, sum(shown) s from funnel", [world.run]).to_pylist()[0]
    assert (int(funnel["r"]), int(funnel["s"])) == (run.table("decisions").num_rows, shown)
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


def test_texts_stand_in_place(world):
    found = queried(settings_of(world.folder), "select question from questions", [world.run])
    assert set(found["question"].to_pylist()) == {"what is the retry limit of a session?"}


@pytest.mark.parametrize(
    "query",
    [
        "select * from read_csv('/etc/hostname')",
        "select * from '/etc/hostname'",
        "copy snapshots to '/tmp/never.csv'",
        "set enable_external_access = true",
        "install httpfs",
        "attach '/tmp/never.db'",
        "select * from settings_of",
        "selec",
    ],
)
def test_a_query_reads_the_tables_it_names_and_nothing_else(world, query):
    with pytest.raises(InputError, match="Expected a query over tables of runs"):
        queried(settings_of(world.folder), query)


def test_a_query_reads_no_table_that_it_does_not_name():
    assert named_in("select * from items") == ["ranked", "trimmed", "citations"]
    assert named_in("select 1") == []


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
    with pytest.raises(AccessError, match="only auditors of all its projects"):
        tables_of(settings_of(world.folder, "bob"), ["snapshots"], [own])


KINDS = """select sum(recalled) whole, 1.50::decimal(5, 2) as part, date '2026-06-01' as day, time '10:00' as clock,
    interval 1 day as spell, null::int as absent, 9007199254740993 as large, [1, null] as list, '=1+1' as formula,
    true as claim, 2 as claim from funnel"""


def test_values_of_every_kind_are_printed_as_json_and_as_csv(world, monkeypatch, capsys):
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "ana")
    flags = ["--run", world.run, "--runs", str(world.folder / "runs"), "--grants", str(world.folder / "grants.yaml")]
    code, shown, _ = command("sql", KINDS, *flags, "--json", capsys=capsys)
    (row,) = json.loads(shown)
    whole = row.pop("whole")
    assert code == 0 and isinstance(whole, int) and row.pop("spell")
    assert row == {
        "part": 1.5, "day": "2026-06-01", "clock": "10:00:00", "absent": None, "large": 9007199254740993,
        "list": [1, None], "formula": "=1+1", "claim": True, "claim_1": 2,
    }  # fmt: skip
    code, shown, _ = command("sql", KINDS.replace("interval 1 day", "1"), *flags, "--csv", capsys=capsys)
    assert code == 0 and shown == (
        "whole,part,day,clock,spell,absent,large,list,formula,claim,claim_1\n"
        f'{whole},1.5,2026-06-01,10:00:00,1,,9007199254740993,"[1, null]",\'=1+1,true,2\n'
    )
    assert command("sql", KINDS, *flags, capsys=capsys)[0] == 0


def test_a_column_of_whole_numbers_stays_one_beside_an_absent_value(world, monkeypatch, capsys):
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "ana")
    where = ["--runs", str(world.folder / "runs"), "--grants", str(world.folder / "grants.yaml")]
    query = "select * from (values (5), (null)) as t(n)"
    assert command("sql", query, *where, "--csv", capsys=capsys)[1] == 'n\n5\n""\n'


UNLIKELY = """select 'nan'::double as number, ['inf'::float, 1] as numbers, timestamp '2026-06-01 10:00' as clock,
    timestamp_ns '2026-06-01 10:00:00.000000001' as fine"""


def test_numbers_and_times_of_every_kind_are_json_and_the_same_in_every_time_zone(world, monkeypatch, capsys):
    where = ["--runs", str(world.folder / "runs"), "--grants", str(world.folder / "grants.yaml")]
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "ana")
        elsewhere.setenv("TZ", "America/New_York")
        time.tzset()
        code, shown, _ = command("sql", UNLIKELY, *where, "--json", capsys=capsys)
        _, table, _ = command("sql", UNLIKELY, *where, capsys=capsys)
        _, _, refused = command("sql", "select date 'infinity' as day", *where, capsys=capsys)
    time.tzset()
    assert code == 0 and json.loads(shown, parse_constant=pytest.fail) == [
        {
            "number": None, "numbers": [None, 1.0], "clock": "2026-06-01T10:00:00Z",
            "fine": "2026-06-01T10:00:00.000000001Z",
        }
    ]  # fmt: skip
    assert "2026-06-01T10:00:00Z" in table
    assert refused.startswith("error: Expected dates from the year 1 to 9999, got others - at column day\n")


def test_runs_that_cannot_be_read_are_named_beside_the_result(world, monkeypatch, capsys):
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "ana")
    where = ["--runs", str(world.folder / "runs"), "--grants", str(world.folder / "grants.yaml")]
    manifest = world.folder / "runs" / world.run / "manifest.json"
    manifest.rename(manifest.with_name("aside"))
    code, _, err = command("sql", "select 1", *where, capsys=capsys)
    manifest.with_name("aside").rename(manifest)
    assert (code, err) == (0, f"skipped: {world.run}: unreadable\n")
