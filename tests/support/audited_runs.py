"""Snapshots of two people over a few rows, and the settings to ask about them: for tests of what auditors ask."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import yaml
from small_corpus import NOON, Story, days_ago, row, settings_of

SAYS = "the retry limit of a session"
ROWS = tuple(
    row(kind, path, text, days=days, **{"evidence_kind": evidence, **more})
    for kind, evidence, path, text, days, more in (
        ("workspace", "code", "src/retry.py", f"def retry_limit(): {SAYS} is read here", 3, {}),
        ("workspace", "code", "src/session.py", f"class Session: {SAYS} is passed on", 5, {}),
        ("project-doc", "doc", "docs/retry.md", f"{SAYS} is three, and a pause is a second", 40, {}),
        ("project-doc", "doc", "docs/limits.md", f"every limit: {SAYS}, rows, bytes", 400, {}),
        ("decision-record", "decision-record", "decisions/7.md", f"we decided that {SAYS} is three", 90, {}),
        ("memory", "memory", "memory/1", f"bob remembers {SAYS}", 2, {"lifecycle": "verified", "owner_user": None}),
        ("artifact", "test-log", "logs/test.log", f"FAILED: {SAYS} was exceeded", 1, {}),
        ("project-doc", "doc", "docs/other.md", "of something else", 1, {}),
    )
)  # fmt: skip
PEOPLE = {"ana": {"projects": ["shop"], "audit": True}, "bob": {"projects": ["shop"]}, "eve": {"projects": ["pay"]}}
ASKED = {"question": f"what is {SAYS}?", "project": "shop", "time": {"as_of": days_ago(0).isoformat()}}


def audited(folder: Path, *, encoder: Any = None) -> SimpleNamespace:
    """A corpus, a snapshot of ana's and one of bob's, and a run of three requests by ana."""
    story = Story(folder, *ROWS, encoder=encoder)
    (folder / "grants.yaml").write_text(yaml.safe_dump({"principals": PEOPLE}))
    found: dict[str, Any] = {}
    for who in ("ana", "bob"):
        with story.open(principal=who, runs=folder / "runs") as retriever:
            found[who] = retriever.retrieve(ASKED).snapshot_id
    with story.open(runs=folder / "runs") as retriever:
        budgets = {"answer-question": {}, "explain-code": {}, "fix-test": {"max_items": 3}}
        rows = [ASKED | {"request_id": purpose, "purpose": purpose, "budget": b} for purpose, b in budgets.items()]
        found["run"] = retriever.run(rows).run_id
    return SimpleNamespace(folder=folder, story=story, **found)


__all__ = ["ASKED", "NOON", "PEOPLE", "ROWS", "SAYS", "audited", "settings_of"]
