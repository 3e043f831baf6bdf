"""Judged requests without judges: commits of a repository.

Reads: a Git history. Gives: `commit_questions`, requests with their qrels. A commit's subject serves as a question, answered
by the files that it changed; it is run against the state before the commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import pandas as pd

from ...nodes.errors import InputError
from ..sources.git_commands import ABSENT, Git

__all__ = ["commit_questions"]

_FILES = 8
"""A commit that changes more files is not a clear answer to a question."""
Requests = list[dict[str, Any]]


def commit_questions(repository: str | Path, count: int = 100, **fields: Any) -> tuple[Requests, pd.DataFrame]:
    """The subjects of the latest commits as questions about the state before them, and the files that each changed.

    Merges, commits that change no file or more than eight, and those that only add files are skipped. The requests need
    the history of the repository (`index --history`).

    Returns:
        The requests, and qrels (query_id, doc_id, relevance) by path.

    Raises:
        InputError: there is no Git history here.
    """
    git = Git(repository)
    _, head = git.branch(None)
    if head is None:
        raise InputError.described("a repository with commits", "one without", str(repository))
    subjects = git.subjects(head, count * 4)
    commits = [commit for commit in reversed(git.commits(head)) if commit.parent and commit.sha in subjects]
    requests, relevant = [], []
    for commit, group in groupby(git.changes(commits), key=attrgetter("commit")):
        changes = list(group)
        changed = [
            change.path.decode("utf-8", "replace") for change in changes if ABSENT not in (change.before, change.mode)
        ]
        if not changed or len(changes) > _FILES or len(requests) == count:
            continue
        request_id = f"commit-{commit.sha[:12]}"
        time: Mapping[str, str] = {"as_of": f"commit:{commit.parent}"}
        requests.append({"request_id": request_id, "question": subjects[commit.sha], "time": time, **fields})
        relevant += [(request_id, path, 1) for path in changed]
    return requests, pd.DataFrame(relevant, columns=["query_id", "doc_id", "relevance"])
