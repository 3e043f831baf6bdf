"""The commit tables of a corpus: whole histories, kept over generations, replaced and erased with their source."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from corpus_rows import SOURCE, day, history, import_rows
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.pipeline.corpus import Corpus, Selection
from small_corpus import NOON, Row, Story, days_ago, row
from stored_corpus import written_again

OTHER = "git:other"
NONE = import_rows().slice(0, 0)


def known(corpus: Corpus, project: str = "shop") -> list[tuple[str, str]]:
    """Source and day of every commit."""
    rows = corpus.commits(project).to_pylist()
    return [(row["source_id"], str(row["recorded_time"].date())) for row in rows]


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    corpus = Corpus.create(tmp_path / "corpus")
    corpus.publish(import_rows({"text": "one"}), commits={SOURCE: history(1, 2)}, project="shop", now=day(3))
    return corpus


def test_a_later_generation_keeps_the_commits(corpus: Corpus):
    corpus.append(import_rows({"text": "two"}), now=day(4))
    corpus.publish(NONE, commits={OTHER: history(3)}, project="shop", now=day(4))
    corpus.publish(NONE, commits={OTHER: history(9)}, project="pay", now=day(4))
    written_again(corpus, day(5))
    corpus.gc(keep=1)
    opened = Corpus.open(corpus.path)
    expected = [(OTHER, "2025-01-04"), (SOURCE, "2025-01-02"), (SOURCE, "2025-01-03")]
    assert known(opened) == expected
    assert known(opened, "pay") == [(OTHER, "2025-01-10")]
    assert known(opened, "nowhere") == []
    assert opened.verify() == []


def test_a_source_that_is_read_again_replaces_its_commits(corpus: Corpus):
    first = corpus.generation
    corpus.publish(NONE, commits={SOURCE: history(2, 5)}, project="shop", now=day(6))
    assert known(corpus) == [(SOURCE, "2025-01-03"), (SOURCE, "2025-01-06")]
    assert known(Corpus.open(corpus.path, first)) == [(SOURCE, "2025-01-02"), (SOURCE, "2025-01-03")]


def test_rows_of_a_history_are_on_the_branch_that_its_commits_were_read_from(corpus: Corpus):
    rows = import_rows({"text": "one"}, {"text": "two", "branch": "own"}, {"text": "three", "source_id": OTHER})
    corpus.publish(rows, commits={SOURCE: history(1, 2, branch="a")}, project="shop", now=day(4))
    first = corpus.generation
    report = corpus.publish(rows, commits={SOURCE: history(1, 2, branch="b")}, project="shop", now=day(5))
    assert (report.new_rows, report.described_anew) == (0, 0) and corpus.verify() == []
    for generation, branch in ((first, "a"), (corpus.generation, "b")):
        evidence = Corpus.open(corpus.path, generation).frame().evidence
        branches = dict(zip(evidence["text"].to_pylist(), evidence["branch"].to_pylist(), strict=True))
        assert branches == {"one": branch, "two": "own", "three": None}


@pytest.mark.parametrize(
    ("selection", "left"),
    [
        ({"source": SOURCE}, [(OTHER, "2025-01-04")]),
        ({"project": "shop", "source": OTHER}, [(SOURCE, "2025-01-02"), (SOURCE, "2025-01-03")]),
        ({"source": "git:none"}, None),
    ],
)
def test_commits_are_erased_with_their_source(corpus: Corpus, selection: dict[str, str], left: list | None):
    corpus.publish(NONE, commits={OTHER: history(3)}, project="shop", now=day(4))
    before = known(corpus)
    for audited in (frozenset[str](), frozenset(["shop"])):
        chosen = Selection("ana", audited, **selection)
        assert bool(corpus.stored(chosen).histories) == (bool(audited) and left is not None)
        corpus.erase(chosen, now=day(5))
        assert known(corpus) == (before if left is None or not audited else left)
    assert corpus.verify() == []
    tables = list(corpus.path.glob("packs/*/commits.arrow"))
    assert len(tables) == (1 if left is None or left else 0) or left is None
    assert Corpus.open(corpus.path).commits("shop").equals(corpus.commits("shop"))


PROJECTS = [f"p{number:02}" for number in range(20)]


@pytest.fixture
def shared(tmp_path: Path) -> Corpus:
    """Projects that were read one by one."""
    corpus = Corpus.create(tmp_path / "shared")
    for number, project in enumerate(PROJECTS):
        read = {SOURCE: history(number), OTHER: history(number + 100)}
        corpus.publish(NONE, commits=read, project=project, now=day(3))
    return corpus


@pytest.mark.parametrize("read_again", [False, True])
def test_commits_that_are_erased_leave_those_of_other_projects(shared: Corpus, read_again: bool):
    """Also if the project was read again, and its former commits are in an earlier generation."""
    written_again(shared, day(4))
    (sha,) = [row["version"].encode() for row in shared.commits("p07").to_pylist() if row["source_id"] == SOURCE]
    if read_again:
        shared.publish(NONE, commits={SOURCE: history(300)}, project="p07", now=day(5))
    before = {project: shared.commits(project) for project in PROJECTS if project != "p07"}
    assert any(sha in file.read_bytes() for file in shared.path.rglob("*.arrow"))
    shared.erase(Selection("ana", frozenset(["p07"]), project="p07", source=SOURCE), now=day(6))
    assert not any(sha in file.read_bytes() for file in shared.path.rglob("*.arrow"))
    opened = Corpus.open(shared.path)
    assert all(opened.commits(project).equals(table) for project, table in before.items())
    assert known(opened, "p07") == [(OTHER, str(day(107).date()))]
    assert opened.verify() == []


SHA = "ab" * 20
UNKNOWN = "cd" * 20
GIT = "git:story"


def line(**times: datetime) -> pa.Table:
    """A history: commits by id."""
    times = {sha.removeprefix("c"): time for sha, time in times.items()}
    instants = pa.array(times.values(), pa.timestamp("us", "UTC"))
    return pa.table({"version": list(times), "recorded_time": instants, "branch": pa.nulls(len(times), pa.string())})


def committed(**columns: Any) -> Row:
    return row("code", "src/role.py", "def role():\n    return 'guest'\n", days=3, version=SHA, source_id=GIT) | columns


def told(folder: Path, *rows: Row, **commits: pa.Table) -> Story:
    """A corpus with one history of a commit that is in no row by default."""
    story = Story(folder)
    histories = {name.replace("_", ":"): table for name, table in commits.items()} or {
        GIT: line(**{f"c{SHA}": days_ago(3)})
    }
    story.tell(*(rows or [committed(version="ef" * 20)]), commits=histories)
    return story


def grants(story: Story, *projects: Any, **principal: Any) -> None:
    held = {"principals": {"ana": {"projects": list(projects), **principal}}}
    (story.folder / "grants.yaml").write_text(yaml.safe_dump(held))


def as_of(story: Story, sha: str, **fields: Any) -> Any:
    found = story.ask("default role", as_of=f"commit:{sha}", **fields)
    return found.tables["requests"]["as_of"][0].as_py()


def refusal(story: Story, sha: str, **fields: Any) -> str:
    with pytest.raises(InputError) as error:
        as_of(story, sha, **fields)
    return str(error.value).replace(sha, "SHA")


def test_a_commit_without_a_text_stands_for_its_time(tmp_path: Path):
    story = told(tmp_path)
    assert as_of(story, SHA) == as_of(story, SHA[:8]) == as_of(story, SHA.upper()) == days_ago(3)


def test_a_prefix_of_two_commits_stands_for_neither(tmp_path: Path):
    twin = SHA[:-2] + "cd"
    story = told(tmp_path, git_story=line(**{f"c{SHA}": days_ago(3), f"c{twin}": days_ago(2)}))
    assert (as_of(story, SHA), as_of(story, twin)) == (days_ago(3), days_ago(2))
    assert refusal(story, SHA[:12]) == refusal(story, UNKNOWN[:12])


@pytest.mark.parametrize(
    "fields",
    [
        {"allowed_paths": ["docs/"]},
        {"denied_sources": [GIT]},
        {"workspace_root": "/here"},
        {"min_authority": 3},
        {"exclude_after": days_ago(4).isoformat()},
    ],
)
def test_what_a_request_leaves_out_of_its_answer_does_not_hide_a_commit(tmp_path: Path, fields: dict[str, Any]):
    assert as_of(told(tmp_path), SHA, **fields) == days_ago(3)


@pytest.mark.parametrize(
    "columns",
    [
        {"zone": "restricted"},
        {"owner_user": "bob"},
        {"lifecycle": "revoked"},
    ],
)
def test_no_row_decides_whether_a_commit_is_known(tmp_path: Path, columns: dict[str, Any]):
    story = told(tmp_path, committed(version=UNKNOWN, **columns))
    assert as_of(story, SHA) == days_ago(3)
    assert refusal(story, UNKNOWN) == refusal(story, "01" * 20)


@pytest.mark.parametrize(
    ("granted", "known"),
    [
        ("shop", True),
        ({"project": "shop", "sources": [GIT]}, True),
        ({"project": "shop", "sources": ["git:*"]}, True),
        ({"project": "shop", "sources": ["project-doc"]}, True),
        ({"project": "shop", "paths": ["docs/"]}, True),
        ({"project": "shop", "sources": ["memory", "git:other"]}, False),
        ({"project": "shop", "paths": []}, False),
        ({"project": "shop", "expires": (NOON - timedelta(hours=1)).isoformat()}, False),
        ("pay", False),
    ],
)
def test_a_commit_is_known_by_grant(tmp_path: Path, granted: Any, known: bool):
    story = told(tmp_path)
    grants(story, granted)
    if known:
        assert as_of(story, SHA) == days_ago(3)
    else:
        assert refusal(story, SHA) == refusal(story, UNKNOWN)


def test_another_principal_lends_no_grant_without_the_right_to_act(tmp_path: Path):
    story = told(tmp_path)
    held = {"principals": {"ana": {"projects": ["shop"]}, "bot": {"act_as": ["ana"]}, "eve": {"projects": ["pay"]}}}
    (tmp_path / "grants.yaml").write_text(yaml.safe_dump(held))
    asked = [story.open(principal=who).retrieve({"question": "role", "project": "shop", "principal": "ana", "as_of": f"commit:{SHA}"})
             for who in ("ana", "bot")]  # fmt: skip
    assert {found.tables["requests"]["as_of"][0].as_py() for found in asked} == {days_ago(3)}
    with pytest.raises(InputError, match="Expected a commit that this project's corpus knows"):
        story.open(principal="eve").retrieve(
            {"question": "role", "project": "shop", "principal": "ana", "as_of": f"commit:{SHA}"}
        )


def test_the_commits_of_another_project_change_nothing(tmp_path: Path):
    story = told(tmp_path)
    before = refusal(story, UNKNOWN), as_of(story, SHA[:8])
    twin = SHA[:-2] + "cd"
    story.tell(committed(), commits={GIT: line(**{f"c{UNKNOWN}": days_ago(9), f"c{twin}": days_ago(5)})}, project="pay")
    assert (refusal(story, UNKNOWN), as_of(story, SHA[:8])) == before
    story.grant("ana", "pay")
    assert as_of(story, UNKNOWN, project="pay") == days_ago(9)
    assert (refusal(story, UNKNOWN), as_of(story, SHA[:8])) == before
