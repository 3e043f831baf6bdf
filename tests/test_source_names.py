"""A source name that matches nothing is reported, judged by the rows that the caller may see (S0.21)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest
from small_corpus import NOON, Story, row

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
