"""Runs of the same questions by one engine and another: what they leave behind, and a disk that fails them."""

from __future__ import annotations

from pathlib import Path

from scoped_retrieval.pipeline.asking.retrieval import RunSummary
from scoped_retrieval.pipeline.runs import Runs
from small_corpus import Story, row
from stand_in_encoder import WordsByTheirStart

ASKED = {"project": "shop", "purpose": "answer-question"}
QUESTIONS = [
    f"where is handler {number} of the {word} described" for number, word in enumerate(["amber", "cobalt", "ochre"] * 7)
]


def handlers(folder: Path) -> Story:
    """A corpus that answers the questions."""
    rows = [
        row("doc", f"docs/{n}.md", f"Handler {n} is described here, amber and cobalt and ochre.") for n in range(24)
    ]
    return Story(folder, *rows, encoder=WordsByTheirStart())


def asked(story: Story, where: str, *, count: int = 6, **how) -> RunSummary:
    """A run of the first `count` questions, one to a shard."""
    engine = {"engine": how.pop("engine")} if "engine" in how else {}
    with story.open(runs=story.folder / where, shard_requests=1, **how) as opened:
        return opened.run([ASKED | {"question": q} for q in QUESTIONS[:count]], **engine)


def digests(run: RunSummary) -> dict[str, list[str]]:
    """The digests of the snapshots and of the texts of a run."""
    found = Runs(run.path.parent).open(run.run_id)
    return {
        "snapshots": found.snapshots["snapshot_digest"].to_pylist(),
        "texts": sorted(found.texts["sha256"].to_pylist()),
    }
