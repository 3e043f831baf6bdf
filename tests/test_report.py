"""HTML reports: golden files, no script and no request, everything escaped, and nothing for callers but their part."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from audited_runs import ASKED, SAYS, audited, settings_of
from command_line import run as command
from golden_file import expect_golden
from scoped_retrieval.nodes.errors import AccessError
from scoped_retrieval.pipeline.cli import main
from scoped_retrieval.pipeline.line.driver import STEPS
from scoped_retrieval.pipeline.reading.access import open_run
from scoped_retrieval.pipeline.reading.reports import report_of
from scoped_retrieval.pipeline.views.report import snapshot_page
from scoped_retrieval.pipeline.views.run_report import AUDITORS_GET
from snapshot_rows import ROWS

GOLDEN = Path(__file__).parent / "golden"
_VOID = {"meta", "rect", "br", "link"}


@pytest.fixture(name="world", scope="module")
def world_fixture(tmp_path_factory):
    return audited(tmp_path_factory.mktemp("report"))


class Page(HTMLParser):
    """Tags in order, attributes, ids and links; every tag has to be closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.attributes: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
        found = dict(attrs)
        self.ids += [found["id"]] if "id" in found else []
        self.links += [found[name] for name in ("href", "src") if name in found]
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in _VOID:
            assert self.open.pop() == tag


@pytest.mark.golden
@pytest.mark.parametrize(("name", "audit"), [("report.html", True), ("report_caller.html", False)])
def test_the_page_is_the_golden_one(name, audit):
    expect_golden(GOLDEN / name, snapshot_page(ROWS, audit=audit))


def test_a_page_asks_nobody_and_runs_nothing(world):
    for name in (world.ana, world.run):
        text = report_of(settings_of(world.folder), name)
        page = Page(text)
        assert not {"script", "iframe", "object", "embed", "link", "img", "form", "base"} & set(page.tags)
        assert not [attribute for attribute in page.attributes if attribute.startswith("on") or attribute == "style"]
        assert all(link.startswith("#") for link in page.links)
        assert "url(" not in text
        assert "http:" not in text and "https:" not in text
        assert "default-src 'none'; style-src 'sha256-" in text


def test_the_policy_names_the_style_sheet_that_the_page_has():
    text = snapshot_page(ROWS)
    (css,) = re.findall("<style>(.*?)</style>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    assert f"'sha256-{digest}'" in text


def test_every_label_of_the_block_leads_to_its_evidence(world):
    page = Page(report_of(settings_of(world.folder), world.ana))
    items = [id_ for id_ in page.ids if id_.startswith("item-")]
    assert items
    assert [link[1:] for link in page.links if link.startswith("#item-")] == items
    assert len(set(page.ids)) == len(page.ids)


def test_evidence_is_escaped_wherever_it_stands():
    rows = copy.deepcopy(ROWS)
    attack = '</pre><script>alert(1)</script><img src=x onerror="alert(1)">{{ 7 * 7 }}{% raw %}'
    rows["requests"][0]["question"] = attack
    rows["trimmed"][0]["visible_text"] = attack
    rows["blocks"][0]["text"] = f"[test-log#1] {attack}\n"
    rows["citations"][0] |= {"locator": attack, "source_id": attack}
    rows["decisions"][1]["path"] = attack
    rows["conditions"][0]["message"] = attack
    page = Page(text := snapshot_page(rows))
    assert "script" not in page.tags
    assert "img" not in page.tags
    assert text.count("{{ 7 * 7 }}{% raw %}") == 7  # the template engine reads no evidence


def test_an_auditor_reads_funnel_gates_losses_plan_and_lineage(world):
    text = report_of(settings_of(world.folder), world.ana)
    for heading in (
        "What the model saw",
        "From recalled to visible",
        "Evidence, in the order of the block",
        "Gates",
        "Plan",
        "Lineage",
    ):
        assert f">{heading}</h2>" in text
    for step in STEPS:
        assert f"<summary>{step.replace('_', ' ')}" in text


def test_a_caller_reads_the_block_and_nothing_of_other_rows(world):
    text = report_of(settings_of(world.folder, "bob"), world.bob)
    assert SAYS in text
    for heading in ("From recalled to visible", "Gates", "Not shown", "Plan", "Lineage"):
        assert f">{heading}</h2>" not in text


def test_the_contributions_of_an_item_add_up_to_its_score(world):
    text = report_of(settings_of(world.folder), world.ana)
    sums = re.findall(r"<p>(\d\.\d{4}) = (.*?)</p>", text)
    assert sums
    for final, parts in sums:
        assert abs(sum(float(part.split(" ")[1]) for part in parts.split(" + ")) - float(final)) < 0.001


def test_a_run_counts_statuses_budgets_and_losses(world):
    text = report_of(settings_of(world.folder), world.run)
    for heading in ("Statuses", "Budgets", "Limits", "Losses", "Requests"):
        assert f">{heading}</h2>" in text
    assert "3 ok" in text
    assert "trim: budget_items" in text
    assert AUDITORS_GET not in text


def test_a_caller_reads_which_sections_are_for_auditors(world):
    run = open_run(settings_of(world.folder, "bob"), world.bob).run_id
    text = report_of(settings_of(world.folder, "bob"), run)
    assert AUDITORS_GET in text
    assert ">Losses</h2>" not in text


IN_A_TABLE = ASKED | {"purpose": "answer-question"}


def shown_times(text: str) -> list[tuple[str, float]]:
    """Names and milliseconds of the slowest requests."""
    part = text.split(">Slowest requests</h2>", 1)[1].split("</section>", 1)[0]
    rows = re.findall(r'<th scope="row">(.*?)</th><td class="number">([0-9.,]+)</td>', part)
    return [(name, float(value.replace(",", ""))) for name, value in rows]


def drawing(settings: Any, name: str, capsys: Any) -> dict[str, Any]:
    """The lineage as `lineage --format json` prints it."""
    flags = [f"--{flag}={settings[flag]}" for flag in ("runs", "grants")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", settings.principal)
        assert main(["lineage", name, *flags]) == 0
    return json.loads(capsys.readouterr().out)


def test_slowest_requests_are_named_where_each_was_measured_and_shards_where_not(world, tmp_path, capsys):
    runs = tmp_path / "runs"
    settings = settings_of(world.folder, runs=runs)
    with world.story.open(runs=runs) as retriever:
        names = [retriever.retrieve(ASKED).snapshot_id for _ in range(3)]
        live = retriever.runs.open(names[0])
        before = dict(live.request_seconds)
        text = report_of(settings, live.run_id)
        assert set(before) == set(names)
        assert all(took.seconds > 0 and took.requests == 1 for took in before.values())
        pages = [report_of(settings, name) for name in names]
        assert all("Times are those of the pass that answered this request." in page for page in pages)
        assert all("the slowest nodes" in page for page in (text, report_of(settings, live.run_id)))
        drawings = [drawing(settings, name, capsys) for name in (*names, live.run_id)]
        assert all({"ranked", "blocks"} <= set(one["seconds"]) and one["rows"]["snapshots"] for one in drawings)
        shown = shown_times(text)
        assert [name.rpartition("(")[2].rstrip(")") for name, _ in shown] == sorted(
            names, key=lambda name: (-before[name].seconds, name)
        )
        assert [value for _, value in shown] == sorted((v for _, v in shown), reverse=True)
        rows = [IN_A_TABLE | {"request_id": f"r{n}"} for n in range(3)]
        batch = retriever.run(rows).run_id
    with world.story.open(runs=runs, shard_requests=1) as retriever:
        each = retriever.run([row | {"request_id": f"{row['request_id']}-1"} for row in rows]).run_id
    compacted = open_run(settings, live.run_id)
    assert not compacted.live and compacted.request_seconds == before
    assert [report_of(settings, name) for name in names] == pages
    again = [drawing(settings, name, capsys)["seconds"] for name in (*names, live.run_id)]
    assert again == [one["seconds"] for one in drawings]
    assert drawing(settings_of(world.folder, "bob", runs=runs), world_run_of_bob(world, runs), capsys)["nodes"]
    assert [name for name, _ in shown_times(report_of(settings, live.run_id))] == [name for name, _ in shown]

    text = report_of(settings, batch)
    assert [name for name, _ in shown_times(text)] == ["shard 0: 3 requests"]
    assert "none has a time of its own" in text
    (shard,) = open_run(settings, batch).shard_seconds
    assert shown_times(text)[0][1] == pytest.approx(1_000 * shard[2] / 3, abs=0.001)
    assert "Slowest requests" not in report_of(
        settings_of(world.folder, "bob", runs=runs), world_run_of_bob(world, runs)
    )

    with world.story.open(principal="bob", runs=runs) as retriever:
        own = retriever.retrieve(ASKED).snapshot_id
    assert "answered in" not in report_of(settings_of(world.folder, "bob", runs=runs), own)
    assert "answered in" in report_of(settings, own)

    measured = open_run(settings, each)
    assert set(measured.request_seconds) == set(measured.snapshots["snapshot_id"].to_pylist())
    assert len(shown_times(report_of(settings, each))) == 3


def world_run_of_bob(world, runs) -> str:
    """A batch of a user who does not audit it."""
    with world.story.open(principal="bob", runs=runs) as retriever:
        return retriever.run([IN_A_TABLE | {"request_id": f"bob-{n}"} for n in range(2)]).run_id


def test_a_run_says_how_long_its_nodes_took_and_how_well_its_judged_requests_found(
    world, tmp_path, monkeypatch, capsys
):
    run = open_run(settings_of(world.folder), world.run)
    shown = run.table("trimmed").to_pandas()
    first = shown[shown["position"] == 1].set_index("request_id")["evidence_id"]
    lines = [f"{request} 0 {evidence} 1" for request, evidence in first.items() if request != "fix-test"]
    (tmp_path / "q.qrels").write_text("\n".join([*lines, "fix-test 0 elsewhere 1"]))
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "ana")
    flags = ["--runs", str(world.folder / "runs"), "--grants", str(world.folder / "grants.yaml")]
    code, text, err = command(
        "show", world.run, "--as", "html", "--qrels", str(tmp_path / "q.qrels"), *flags, capsys=capsys
    )
    assert code == 0, err
    assert "3 judged requests" in text
    assert '>shown in the block</th><td class="number">0.667</td>' in text
    assert "ms per request; the slowest nodes" in text
    assert text.index("<td>fix-test</td>") < text.index(
        "<td>answer-question</td>"
    )  # the purpose that found least comes first
    assert "Quality" not in report_of(settings_of(world.folder), world.run)
    (tmp_path / "q.qrels").write_text("other 0 e1 1")
    code, _, err = command(
        "show", world.run, "--as", "html", "--qrels", str(tmp_path / "q.qrels"), *flags, capsys=capsys
    )
    assert code == 2
    assert "Expected judgements of requests of the run, got none" in err


def test_a_report_is_for_who_may_read_it(world):
    for who, name in (("bob", world.ana), ("eve", world.run), ("bob", world.run)):
        with pytest.raises(AccessError, match="that you may read"):
            report_of(settings_of(world.folder, who), name)


def test_items_and_the_rows_that_they_are_made_of_are_counted_apart():
    text = snapshot_page(ROWS)
    assert sum(decision["outcome"] == "selected" for decision in ROWS["decisions"]) == 2
    assert len(ROWS["citations"]) == 1
    assert "1 item shown, made of 2 of 4 candidates" in text
    assert '<th scope="row">visible</th><td class="number">2</td>' in text
