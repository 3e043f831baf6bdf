"""HTML reports: golden files, no script and no request, everything escaped, and nothing for callers but their part."""

from __future__ import annotations

import copy
from html.parser import HTMLParser
from pathlib import Path

import pytest
from audited_runs import settings_of
from golden_file import expect_golden
from scoped_retrieval.nodes.errors import AccessError
from scoped_retrieval.pipeline.reading.reports import report_of
from scoped_retrieval.pipeline.runs.ids import is_snapshot
from scoped_retrieval.pipeline.servers.renderings import rendered
from scoped_retrieval.pipeline.views.report import snapshot_page
from snapshot_rows import ROWS

GOLDEN = Path(__file__).parent / "golden"
_VOID = {"meta", "rect", "br", "link"}


def page_of(settings, name: str) -> str:
    return rendered(settings, name, "html").text if is_snapshot(name) else report_of(settings, name)


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


def test_an_erased_text_is_named_where_it_stood():
    rows = ROWS | {"trimmed": [ROWS["trimmed"][0] | {"visible_text": None}]}
    assert "The text was erased." in snapshot_page(rows) and "The text was erased." not in snapshot_page(ROWS)


def test_a_page_asks_nobody_and_runs_nothing(world):
    for name in (world.ana, world.run):
        text = page_of(settings_of(world.folder), name)
        page = Page(text)
        assert not {"script", "iframe", "object", "embed", "link", "img", "form", "base"} & set(page.tags)
        assert not [attribute for attribute in page.attributes if attribute.startswith("on") or attribute == "style"]
        assert all(link.startswith("#") for link in page.links)
        assert "url(" not in text
        assert "http:" not in text and "https:" not in text
        assert "default-src 'none'; style-src 'sha256-" in text


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


def test_a_report_is_for_who_may_read_it(world):
    for who, name in (("bob", world.ana), ("eve", world.run), ("bob", world.run)):
        with pytest.raises(AccessError, match="that you may read"):
            page_of(settings_of(world.folder, who), name)
