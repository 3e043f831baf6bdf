"""The messages about the semantic lane: a function of the contract and of the admissible rows, never of others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scoped_retrieval.nodes.lanes import NO_VECTORS, SOME_VECTORS
from scoped_retrieval.pipeline.asking.retrieval import Retrieval
from small_corpus import NOON, Story, days_ago, row
from stand_in_encoder import WordsByTheirStart

QUESTION = "why does the default role fail?"
SEEN = {"path": "docs/roles.md", "text": "the default role is guest for sessions\n"}


def told(folder: Path, *publications: tuple[bool, dict[str, Any]], **how: Any) -> Retrieval:
    """What `ana` on branch main is answered; each publication is a row, with vectors or without."""
    story = Story(folder)
    for encoded, columns in publications:
        story.encoder = WordsByTheirStart() if encoded else None
        story.tell(row("doc", **columns))
    story.encoder = WordsByTheirStart()
    with story.open(**how) as retriever:
        return retriever.retrieve({"project": "shop", "question": QUESTION, "branch": "main"})


def off(found: Retrieval) -> list[str]:
    return [row["message"] for row in found.conditions if row["condition"] == "lane_off"]


def test_rows_that_may_be_seen_are_counted(tmp_path: Path):
    plain = {"path": "docs/b.md", "text": "default role\n"}
    assert off(told(tmp_path / "both", (True, SEEN), (False, plain))) == [SOME_VECTORS]
    assert off(told(tmp_path / "none", (False, SEEN), (False, plain))) == [NO_VECTORS]
    assert off(told(tmp_path / "all", (True, SEEN), (True, plain))) == []


def test_each_request_is_judged_at_its_own_time(tmp_path: Path):
    story = Story(tmp_path, encoder=WordsByTheirStart())
    story.tell(row("doc", "docs/old.md", "default role, first\n", days=9, deleted_at=days_ago(3)))
    story.tell(row("doc", "docs/kept.md", "default role, kept\n", days=9))
    story.encoder = None
    story.tell(row("doc", "docs/plain.md", "default role, plain\n", days=5, deleted_at=days_ago(1)))
    story.encoder = WordsByTheirStart()
    times = {7: [], 4: [SOME_VECTORS], 2: [SOME_VECTORS], 0: []}
    with story.open(runs=tmp_path / "runs") as retriever:
        for days, said in times.items():
            request = {"project": "shop", "question": QUESTION, "time": {"as_of": days_ago(days).isoformat()}}
            assert off(retriever.retrieve(request)) == said, days
        window = {"as_of": NOON.isoformat(), "include_after": days_ago(1).isoformat()}
        assert off(retriever.retrieve({"project": "shop", "question": QUESTION, "time": window})) == []


def test_a_name_without_a_letter_is_no_symbol(tmp_path: Path) -> None:
    of_unit = row("code", "a.rs", "impl Foo for () { fn parse_it() {} }", symbols=["parse_it", "()"], calls=["()"])
    assert Story(tmp_path, of_unit).ask("where is `parse_it` defined").status == "ok"
