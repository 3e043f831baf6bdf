"""Source selectors and path globs: anchored, and judged on whole values."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pyarrow as pa
import pytest
from scoped_retrieval.nodes.scope.selectors import glob_mask, selected
from small_corpus import NOON, Story, row

SOURCES = ["git:shop", "git:owner/shop", "memory:ana", "external:site/page", "security-review-of-marketing-site"]
CLASSES = ["workspace", "workspace", "memory", "external", "project-doc"]


def _picked(*selectors: str) -> list[str]:
    mask = selected(selectors, pa.array(CLASSES), pa.array(SOURCES))
    return [source for source, picked in zip(SOURCES, mask, strict=True) if picked]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("workspace", ["git:shop", "git:owner/shop"]),
        ("current-workspace", ["git:shop", "git:owner/shop"]),
        ("git:shop", ["git:shop"]),
        ("git:*", ["git:shop", "git:owner/shop"]),
        ("external:*", ["external:site/page"]),
        ("git:owner/", ["git:owner/shop"]),
        ("git:sho?", ["git:shop"]),
        ("git:sh?", []),
        ("git:?", []),
        ("git:shop?", []),
        ("git:owner?shop", ["git:owner/shop"]),
        ("marketing", []),
        ("git:sh.p", []),
        ("GIT:shop", []),
        ("", []),
    ],
)
def test_a_selector_is_an_origin_class_or_an_anchored_glob_on_the_source_id(selector, expected):
    assert _picked(selector) == expected


def test_no_list_of_selectors_picks_every_source_and_an_empty_list_none():
    assert selected(None, pa.array(CLASSES), pa.array(SOURCES)).all()
    assert not selected([], pa.array(CLASSES), pa.array(SOURCES)).any()


@pytest.mark.parametrize(
    ("glob", "matching"),
    [
        ("AGENTS.md", ["AGENTS.md"]),
        ("**/AGENTS.md", ["AGENTS.md", "docs/AGENTS.md", "docs/a/AGENTS.md"]),
        ("docs/*", ["docs/AGENTS.md", "docs/a+b.md"]),
        ("docs/", ["docs/AGENTS.md", "docs/a/AGENTS.md", "docs/a+b.md"]),
        ("docs/**", ["docs/AGENTS.md", "docs/a/AGENTS.md", "docs/a+b.md"]),
        ("docs/**/AGENTS.md", ["docs/AGENTS.md", "docs/a/AGENTS.md"]),
        ("docs/a+b.md", ["docs/a+b.md"]),
        ("AGENTS?md", ["AGENTS.md"]),
        ("docs", ["docs/AGENTS.md", "docs/a/AGENTS.md", "docs/a+b.md"]),
        ("docs/a", ["docs/a/AGENTS.md"]),
        ("doc", []),
    ],
)
def test_a_path_glob_keeps_its_wildcards_inside_a_segment(glob, matching):
    paths = ["AGENTS.md", "docs/AGENTS.md", "docs/a/AGENTS.md", "docs/a+b.md", "mydocs/x.md", None]
    mask = glob_mask(pa.chunked_array([paths[:2], paths[2:]]), [glob])
    assert [path for path, picked in zip(paths, mask, strict=True) if picked] == matching


SAYS = "The default role of a session is guest."


@pytest.fixture(name="story")
def story_fixture(tmp_path) -> Story:
    story = Story(
        tmp_path,
        row("workspace", "a.md", SAYS, evidence_kind="doc", source_id="workspace:shop"),
        row("memory", "m/1", SAYS, evidence_kind="memory", lifecycle="verified", source_id="memory:ana"),
        row("workspace", "b.md", SAYS, evidence_kind="doc", source_id="docs:secret", zone="restricted"),
        row(
            "workspace",
            "c.md",
            SAYS,
            evidence_kind="doc",
            source_id="docs:future",
            recorded_time=NOON + timedelta(days=900),
        ),
        row("workspace", "d.md", SAYS, evidence_kind="doc", source_id="docs:other", owner_project="billing"),
    )
    story.grant("ana", "shop")
    return story


def unmatched(story: Story, selectors: Sequence[str] | None, **how) -> list[str]:
    found = story.ask("What is the default role?", allowed_sources=selectors, **how)
    return [c["message"] for c in found.conditions if c["condition"] == "source_unmatched"]


@pytest.mark.parametrize(
    ("selectors", "named"),
    [
        (None, None),
        (["workspace:*"], None),
        (["session-event", "memory", "git:*"], "git:*, session-event"),
        (["memory", "docs:future"], "docs:future"),
        (["memory", "docs:nowhere"], "docs:nowhere"),
    ],
)
def test_a_selector_that_picks_no_row_is_named(story: Story, selectors: list[str] | None, named: str | None) -> None:
    assert unmatched(story, selectors) == ([f"no row that may be shown is of: {named}"] if named else [])


def test_a_denied_name_and_a_refused_request_say_nothing_of_it(story: Story) -> None:
    assert unmatched(story, ["workspace:shop"], denied_sources=["workspace:nothing"]) == []
    assert unmatched(story, ["nowhere"], project="billing") == []
