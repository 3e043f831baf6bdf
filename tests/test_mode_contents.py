"""What each mode of document 001 takes in and leaves out, over a tree in which every file answers the question."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from portfolio import VARIABLES, asked, indexed

OWN = "ventures/acme/projects/proj-001"
QUESTION = "why did the export miss its deadline?"
FILES = {
    "context/playbooks/strategy.md": "portfolio",
    "decisions/adr-1.md": "policy",
    "sot/notes.md": "portfolio",
    "ventures/acme/context/positioning.md": "venture",
    "ventures/acme/decisions/adr-2.md": "project",
    "ventures/acme/offers/care/context/offer.md": "offer",
    "ventures/acme/engagements/eng-001/context/engagement.md": "engagement",
    "ventures/acme/engagements/eng-001/strategy.md": "venture",
    "ventures/acme/programs/prog-01/charter.md": "program",
    f"{OWN}/context/execution_brief_v01.md": "project",
    f"{OWN}/context/review_brief_v01.md": "project",
    f"{OWN}/context/attempts/first.md": "project",
    f"{OWN}/deliverables/del-1/spec.md": "deliverable",
    f"{OWN}/logs/status.md": "task",
    f"{OWN}/planning/next.md": "project",
    f"{OWN}/sprints/sprint-003/retro_notes.md": "sprint",
    "ventures/nova/context/positioning.md": "venture",
    "ventures/nova/offers/scan/context/offer.md": "offer",
    "ventures/nova/offers/secret/context/offer.md": "offer",
    "ventures/nova/engagements/eng-9/context/engagement.md": "engagement",
    "ventures/nova/projects/proj-9/context/brief.md": "project",
    "ventures/nova/projects/proj-9/sprints/sprint-1/retro_notes.md": "sprint",
}
TABLES = {
    "logs/context_actions.csv": "timestamp,principal,question\n2025-10-20T09:00:00Z,ana,export deadline\n",
    f"{OWN}/logs/tasks.csv": "date,task,note\n2025-10-20,export,deadline\n",
    "sot/deliverables.csv": "id,name\nDEL-1,export deadline\n",
    "SHO.json": '{"mode": "execution", "next": "export deadline"}\n',
}
BRIEFS = {f"{OWN}/context/{name}_brief_v01.md" for name in ("execution", "review")}
PLANNING = BRIEFS | {
    "context/playbooks/strategy.md", "decisions/adr-1.md", "ventures/acme/context/positioning.md",
    "ventures/acme/offers/care/context/offer.md", "ventures/acme/engagements/eng-001/context/engagement.md",
    f"{OWN}/context/attempts/first.md", "ventures/nova/offers/scan/context/offer.md",
    "ventures/nova/engagements/eng-9/context/engagement.md", "ventures/nova/projects/proj-9/context/brief.md",
}  # fmt: skip
EXECUTION = BRIEFS | {
    "SHO.json", "sot/deliverables.csv", "ventures/acme/engagements/eng-001/context/engagement.md",
    f"{OWN}/deliverables/del-1/spec.md",
}  # fmt: skip
REVIEW = BRIEFS | {
    "decisions/adr-1.md", "logs/context_actions.csv", "ventures/acme/decisions/adr-2.md", f"{OWN}/logs/tasks.csv",
    f"{OWN}/logs/status.md", f"{OWN}/context/attempts/first.md", f"{OWN}/deliverables/del-1/spec.md",
    f"{OWN}/sprints/sprint-003/retro_notes.md",
}  # fmt: skip
SWITCHED: list[tuple[str, dict[str, Any], set[str]]] = [
    ("planning", {"restricted_context": True}, {"ventures/nova/offers/secret/context/offer.md"}),
    ("execution", {"debugging": True}, {f"{OWN}/context/attempts/first.md"}),
    ("execution", {"program": "prog-01"}, {"ventures/acme/programs/prog-01/charter.md"}),
    ("review", {"comparables": True}, {"ventures/nova/projects/proj-9/sprints/sprint-1/retro_notes.md"}),
]


@pytest.fixture(scope="module")
def corpus() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        for name, level in FILES.items():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            zone = "restricted" if "secret" in name else "internal"
            head = f"- entity: note\n- level: {level}\n- zone: {zone}\n- date: 2025-10-20\n"
            (tree / name).write_text(f"# Export deadline {len(name)}\n\n{head}\nSee {name}.\n", encoding="utf-8")
        for name, text in TABLES.items():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_text(text, encoding="utf-8")
        indexed(Path(folder) / "corpus", tree)
        grants = {"principals": {"ana": {"projects": ["portfolio"], "zones": "restricted"}}}
        (Path(folder) / "grants.yaml").write_text(yaml.safe_dump(grants), encoding="utf-8")
        yield Path(folder) / "corpus"


def reached(corpus: Path, mode: str | None, **more: Any) -> set[str]:
    """The paths of everything that could have been shown."""
    fields = {"mode": mode, "variables": VARIABLES | more} if mode else {"lane_k": 200, "pool_k": 400}
    tables = asked(corpus, QUESTION, **fields).tables
    seen = {row["evidence_id"] for row in tables["candidates"].to_pylist() if not row["withheld"]}
    return {row["path"] for row in tables["decisions"].to_pylist() if row["evidence_id"] in seen}


@pytest.mark.parametrize(("mode", "paths"), [("planning", PLANNING), ("execution", EXECUTION), ("review", REVIEW)])
def test_a_mode_takes_in_what_the_document_lists_and_nothing_else(corpus: Path, mode: str, paths: set[str]) -> None:
    assert reached(corpus, mode) == paths


@pytest.mark.parametrize(("mode", "switch", "more"), SWITCHED)
def test_a_switch_of_the_request_opens_what_the_document_keeps_shut_unless_needed(
    corpus: Path, mode: str, switch: dict[str, Any], more: set[str]
) -> None:
    assert reached(corpus, mode, **switch) - reached(corpus, mode) == more


def test_the_whole_tree_answers_where_no_mode_narrows_it(corpus: Path) -> None:
    assert reached(corpus, None) == {*FILES, *TABLES}
