"""`as_of: commit:SHA`: a commit is known to users with a grant that opens its history, and to no others."""

from __future__ import annotations

import subprocess
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from scoped_retrieval.nodes.errors import InputError
from scoped_retrieval.pipeline.indexing.importing import index_into
from scoped_retrieval.pipeline.indexing.request import IndexRequest
from small_corpus import NOON, Row, Story, days_ago, row, settings_of

SHA = "ab" * 20
UNKNOWN = "cd" * 20
GIT = "git:story"


def line(**times: datetime) -> pa.Table:
    """A history: commits by id."""
    times = {sha.removeprefix("c"): time for sha, time in times.items()}
    return pa.table({"version": list(times), "recorded_time": pa.array(times.values(), pa.timestamp("us", "UTC"))})


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


def test_every_commit_of_a_real_line_is_known(tmp_path: Path):
    """A merge that changes nothing, an image, a removal: none of these has a row of its own."""
    repository = tmp_path / "story"
    repository.mkdir()

    def git(*arguments: str) -> str:
        identity = ("-c", "user.name=a", "-c", "user.email=a@b.c")
        done = subprocess.run(["git", "-C", str(repository), *identity, *arguments], check=True, capture_output=True)
        return done.stdout.decode().strip()

    git("init", "-q", "-b", "main")
    for name, text in (("a.py", "A = 1\n"), ("logo.svg", "<svg/>\n"), ("b.py", "B = 2\n")):
        (repository / name).write_text(text)
        git("add", ".")
        git("commit", "-qm", name)
    git("commit", "-q", "--allow-empty", "-m", "nothing")
    git("checkout", "-q", "-b", "side")
    git("commit", "-q", "--allow-empty", "-m", "aside")
    git("checkout", "-q", "main")
    git("merge", "-q", "--no-ff", "-m", "merge", "side")
    git("rm", "-q", "b.py")
    git("commit", "-qm", "gone")
    story = Story(tmp_path)
    index_into(
        settings_of(tmp_path, project="shop"), IndexRequest(paths=(repository,), history=True, semantic=False), now=NOON
    )
    listed = git("rev-list", "--first-parent", "--reverse", "HEAD").split()
    times = [as_of(story, sha) for sha in listed]
    assert len(listed) == 6
    assert times == sorted(set(times))
    (aside,) = set(git("rev-list", "HEAD").split()) - set(listed)
    assert refusal(story, aside) == refusal(story, UNKNOWN)
