"""A corpus with a text that is to be erased, runs that show it, and where its words are still found."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from scoped_retrieval.pipeline.engines.shards import ShardJob, in_this_process
from scoped_retrieval.pipeline.runs import Runs
from scoped_retrieval.pipeline.runs.live import SUFFIX, read_tables
from small_corpus import Story, row
from small_corpus import settings_of as settings

__all__ = ["settings"]

CANARY = "zebrafink quartermaster"
GONE = f"The login token of the {CANARY} is kept in a drawer."
MORE = f"The {CANARY} resets the login on Mondays."
KEPT = "The login token expires after ten minutes."
SEEN = "zebrafink_login"
QUESTION = {"question": "who keeps the login token?", "project": "shop", "purpose": "answer-question"}
LOOKING = {"session_id": "s-1", "purpose": "explain-code", "max_items": 1}
GRANTS = {"principals": {"ana": {"projects": ["shop"], "audit": True}, "bo": {"projects": ["shop"]}}}


def told(folder: Path, **how: Any) -> Story:
    """Three publications of three sources in `shop`, one of them bo's own."""
    story = Story(
        folder, row("doc", "docs/old.md", GONE), row("doc", "docs/keep.md", KEPT, source_id="doc:other"), **how
    )
    story.tell(row("doc", "docs/new.md", MORE))
    story.tell(
        row("memory", "m/1", f"bo recalls the {CANARY}", source_id="memory:bo", owner_user="bo", lifecycle="verified")
    )
    (folder / "grants.yaml").write_text(yaml.safe_dump(GRANTS), encoding="utf-8")
    return story


def asked(story: Story, *, batch: bool, **fields: Any) -> str:
    """The id of a snapshot that shows the rows of every source."""
    question = QUESTION | fields
    with story.open(runs=story.folder / "runs") as retriever:
        if not batch:
            found = retriever.retrieve(question)
            assert (fields or CANARY in found.block) and KEPT in found.block
            retriever.close(compacted=False)
            return found.snapshot_id or ""
        summary = retriever.run([question])
    return Runs(story.folder / "runs").open(summary.run_id).snapshots["snapshot_id"][0].as_py()


def observed(folder: Path) -> Story:
    """A document, and an event of the session `s-1` that names something."""
    event = row(
        "session-event", "s-1.jsonl", f"It broke in `{SEEN}` at src/{SEEN}.py", session_id="s-1", owner_user="ana"
    )
    story = Story(folder, row("doc", "docs/keep.md", KEPT, source_id="doc:other"), event)
    (folder / "grants.yaml").write_text(yaml.safe_dump(GRANTS), encoding="utf-8")
    return story


def holding(folder: Path, text: str = CANARY) -> list[str]:
    """Files below a folder with these bytes, in any encoding that a file here is written in."""
    return [
        str(path.relative_to(folder)) for path in sorted(folder.rglob("*")) if path.is_file() and text in readable(path)
    ]


def readable(path: Path) -> str:
    """The bytes of a file, those of compressed columns unpacked."""
    data = path.read_bytes().decode("utf-8", "replace")
    if path.suffix == ".parquet":
        return data + str(pq.read_table(path).to_pylist())
    if path.name.endswith(SUFFIX):
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        return data + "".join(str(table.to_pylist()) for table in read_tables(path, sha256).values())
    return data


def unfinished(story: Story, rows: Sequence[dict[str, Any]] = ({}, {}), **fields: Any) -> str:
    """The id of a run of these requests, one to a shard, that was interrupted before the last one was answered."""

    def but_the_last(job: ShardJob, shards: Sequence[int], clock: Callable[[], datetime]) -> Iterator[int]:
        yield from in_this_process(job, shards[:-1], clock)
        raise KeyboardInterrupt

    row = {"question": "login token", "project": "shop", "purpose": "answer-question"} | fields
    with story.open(runs=story.folder / "runs", shard_requests=1) as retriever, pytest.raises(KeyboardInterrupt):
        asked = [row | {"request_id": f"r{number}"} | each for number, each in enumerate(rows)]
        retriever.run(asked, engine=but_the_last)
    (run_id,) = Runs(story.folder / "runs").unfinished()
    return run_id
