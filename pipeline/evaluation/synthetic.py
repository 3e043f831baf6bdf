"""Judged requests without judges: known items of a corpus, and commits of a repository.

Reads: rows of evidence, or a Git history. Gives: `known_items`, requests with their qrels, and `commit_collection`, which
judges lines, too.

Note: a known item is a row that is searched for with its own words (Azzopardi et al. 2007): such figures compare
weights on one corpus, and do not carry over to real questions. A commit's subject serves as a question, answered by the
files that it changed; it is run against the state before the commit.
"""

from __future__ import annotations

import re
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from ...nodes.errors import InputError
from ..sources.git_commands import ABSENT, Git
from .collections import Collection, code_collection, snapshots_of

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{3,}")
_WORDS = 4
_FILES = 8
"""A commit that changes more files is not a clear answer to a question."""
_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? ")
Requests = list[dict[str, Any]]


def known_items(evidence: pa.Table, count: int, **fields: Any) -> tuple[Requests, pd.DataFrame]:
    """`count` requests for rows of `evidence`, each with four words of its row, and the row of each; the same each time.

    Args:
        evidence: rows with `evidence_id` and `text`; those with fewer distinct words are skipped.
        fields: additional fields of every request, such as `project` and `purpose`.

    Returns:
        The requests, and qrels (query_id, doc_id, relevance) by evidence id.

    Raises:
        InputError: no row has enough words.
    """
    texts = zip(evidence["evidence_id"].to_pylist(), evidence["text"].to_pylist(), strict=True)
    rows = [(id_, sorted({w.lower() for w in _WORD.findall(text or "")})) for id_, text in sorted(texts)]
    rows = [(id_, own) for id_, own in rows if len(own) >= _WORDS]
    if not rows:
        raise InputError.described(f"rows with {_WORDS} words", "none", "evidence")
    random = np.random.default_rng(0)
    chosen = random.integers(len(rows), size=count)
    requests, relevant = [], []
    for number, row in enumerate(chosen.tolist()):
        id_, own = rows[row]
        picked = random.choice(len(own), size=_WORDS, replace=False)
        request_id = f"item-{number:05d}"
        requests.append({"request_id": request_id, "question": " ".join(own[word] for word in picked), **fields})
        relevant.append((request_id, id_, 1))
    return requests, pd.DataFrame(relevant, columns=["query_id", "doc_id", "relevance"])


def commit_collection(repository: Path, count: int) -> Collection:
    """The subjects of the latest commits, about the state before each: the files that it changed, and their lines.

    Merges, commits that change no file or more than eight, and those that only add files are skipped.

    Raises:
        InputError: there is no Git history here, or no such commit in it.
    """
    git = Git(repository)
    head = git.head()
    options = ("--first-parent", "--no-merges", f"--max-count={count * 4}", "--encoding=UTF-8", "--format=%H %s")
    listed = git.run("rev-list", *options, head).decode("utf-8", "replace").split("\n")
    subjects = dict(line.split(" ", 1) for line in listed if line and not line.startswith("commit "))
    history = git.commits(head)
    commits = [commit for commit in reversed(history) if commit.parent and commit.sha in subjects]
    asked, changed = [], []
    for commit, group in groupby(git.changes(commits) or (), key=attrgetter("commit")):
        changes = list(group)
        paths = [
            change.path.decode("utf-8", "replace") for change in changes if ABSENT not in (change.before, change.mode)
        ]
        if not paths or len(changes) > _FILES or len(asked) == count:
            continue
        query = f"commit-{commit.sha[:12]}"
        asked.append((query, subjects[commit.sha], commit.parent))
        changed += [(query, path, 1) for path in paths]
    if not asked:
        raise InputError.described("commits that change files of the commit before", "none", str(repository))
    queries = pd.DataFrame(asked, columns=pd.Index(["query_id", "text", "commit"]))
    files = pd.DataFrame(changed, columns=pd.Index(["query_id", "path", "relevance"]))
    lines = pd.concat([_changed_lines(git, query) for query in queries["query_id"]]).merge(files)
    lines["path"] += ":" + lines["first"].astype(str) + "-" + lines["last"].astype(str)
    before = [commit for commit in history if commit.sha in set(queries["commit"])]
    judged = pd.concat([files, lines[[*files]]], ignore_index=True)
    return code_collection(repository.name, *snapshots_of(git, before), queries, judged, "answer-question")


def _changed_lines(git: Git, query: str) -> pd.DataFrame:
    """The lines of the state before a commit that it changed, or between which it added some: query_id, path, first, last."""
    commit = query.removeprefix("commit-")
    patch = git.run("diff-tree", "-p", "-U0", "--no-commit-id", "--no-ext-diff", "--no-textconv", commit)
    path, found = "", []
    for line in patch.split(b"\n"):
        if line.startswith(b"--- "):
            path = line[6:].decode("utf-8", "replace")
        elif hunk := _HUNK.match(line):
            first, count = int(hunk[1]), int(hunk[2] or 1)
            found.append((query, path, first, first + max(count - 1, 0)))
    return pd.DataFrame(found, columns=pd.Index(["query_id", "path", "first", "last"]))
