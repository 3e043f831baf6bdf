"""`as_of: commit:SHA`: a commit is known by the texts that the request may see, and by nothing else."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from scoped_retrieval.nodes.errors import InputError
from small_corpus import NOON, Row, Story, days_ago, row

SHA = "ab" * 20
UNKNOWN = "cd" * 20
TEXT = "def role():\n    return 'guest'\n"


def committed(**columns: Any) -> Row:
    return row("code", "src/role.py", TEXT, days=3, version=SHA) | columns


def as_of(story: Story, sha: str, **fields: Any) -> Any:
    found = story.ask("default role", as_of=f"commit:{sha}", **fields)
    return found.tables["requests"]["as_of"][0].as_py()


def refusal(story: Story, sha: str, **fields: Any) -> str:
    with pytest.raises(InputError) as error:
        as_of(story, sha, **fields)
    return str(error.value).replace(sha, "SHA")


def test_a_commit_stands_for_the_time_it_was_first_recorded(tmp_path: Path):
    other = row("code", "src/other.py", "x = 1\n", days=2, version=SHA)
    story = Story(tmp_path, committed(), other)
    assert as_of(story, SHA) == as_of(story, SHA[:8]) == days_ago(3)


def test_a_prefix_of_two_commits_stands_for_neither(tmp_path: Path):
    twin = row("code", "src/other.py", "x = 1\n", version=SHA[:-2] + "cd")
    story = Story(tmp_path, committed(), twin)
    assert as_of(story, SHA) == days_ago(3)
    assert refusal(story, SHA[:12]) == refusal(story, UNKNOWN[:12])


@pytest.mark.parametrize(
    ("columns", "fields"),
    [
        ({"zone": "restricted"}, {}),
        ({"principals": ["bob"]}, {}),
        ({"owner_user": "bob"}, {}),
        ({"declared_visibility": "user-only"}, {}),
        ({"declared_safety": "blocked"}, {}),
        ({"lifecycle": "revoked"}, {}),
        ({"branch": "side"}, {"branch": "main"}),
        ({"namespace": "hidden"}, {"namespace": "open"}),
        ({"workspace_root": "/elsewhere"}, {"workspace_root": "/here"}),
        ({}, {"denied_sources": ["code:story"]}),
        ({}, {"allowed_sources": ["memory"]}),
        ({}, {"min_authority": 3}),
        ({"valid_until": days_ago(5)}, {}),
        ({"event_time": days_ago(90)}, {"window_days": 30.0}),
        ({}, {"exclude_after": days_ago(4).isoformat()}),
    ],
)
def test_a_commit_that_the_request_may_not_see_reads_like_an_unknown_one(
    tmp_path: Path, columns: dict[str, Any], fields: dict[str, Any]
):
    visible = Story(tmp_path / "visible", committed())
    assert as_of(visible, SHA) == days_ago(3)
    story = Story(tmp_path / "hidden", committed(**columns))
    assert refusal(story, SHA, **fields) == refusal(story, UNKNOWN, **fields)


def test_an_expired_grant_tells_nothing_of_commits(tmp_path: Path):
    story = Story(tmp_path, committed())
    expires = (NOON - timedelta(hours=1)).isoformat()
    grants = f"principals:\n  ana: {{projects: [{{project: shop, expires: '{expires}'}}]}}\n"
    (tmp_path / "grants.yaml").write_text(grants)
    assert refusal(story, SHA) == refusal(story, UNKNOWN)


def test_a_commit_of_another_project_is_unknown_here(tmp_path: Path):
    story = Story(tmp_path)
    story.tell(committed(), project="pay")
    story.grant("ana", "pay")
    assert as_of(story, SHA, project="pay") == days_ago(3)
    assert refusal(story, SHA) == refusal(story, UNKNOWN)


def test_a_text_under_a_work_tree_still_dates_the_commit_before_it(tmp_path: Path):
    mine = row("code", "src/role.py", "def role():\n    return 'admin'\n", workspace_root="/here")
    story = Story(tmp_path, committed(), mine)
    assert as_of(story, SHA, workspace_root="/here") == days_ago(3)
    early = mine | {"recorded_time": days_ago(4), "path": "src/early.py"}
    story.tell(early, committed(path="src/early.py", version=UNKNOWN))
    assert as_of(story, UNKNOWN) == days_ago(3)
    assert refusal(story, UNKNOWN, workspace_root="/here") == refusal(story, "ef" * 20, workspace_root="/here")
