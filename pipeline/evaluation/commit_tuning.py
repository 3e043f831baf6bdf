"""`tune --commits`: weights fitted to a repository's own history.

Reads a Git checkout. Its latest commits become the questions of a collection (`synthetic.commit_questions`), each about
the state before the commit. Gives a `Tuning` with figures by files, those that a commit changed, and by lines: the rows, among the
candidates, that contain a line that it changed. Weights are fitted by files.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from ...nodes.errors import InputError
from ..extras import package
from ..sources.git_commands import Git
from .collections import Collection, code_collection, snapshots_of
from .evaluate import Asking, JudgedRun, ask
from .frozen_terms import FrozenTerms
from .synthetic import commit_questions
from .tuning import DEFAULT, FITTED, LEAST_QUERIES, MEASURES, Tuning, fit, parts_of

COMMITS = 200
PURPOSE = "explain-code"
_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? ")


def tune_commits(
    repository: Path, how: Asking, *, measures: Sequence[str] = MEASURES, least_queries: int = LEAST_QUERIES
) -> Tuning:
    """Ask about the latest commits of a repository, and fit weights to the answers.

    Args:
        how: `limit` is the number of commits, by default 200; `purpose` by default explain-code.

    Raises:
        InputError: there is no Git history, or too few commits tell weights apart.
    """
    collection = commit_collection(repository.resolve(), how.limit or COMMITS)
    asked = ask([collection], replace(how, limit=None, purpose=how.purpose or PURPOSE), blocks=None)
    (part,) = parts_of(asked, [collection], how.purpose or PURPOSE)
    lines = FrozenTerms.of(asked.run, _rows_of(asked, collection), queries=part.terms.queries)
    return fit(asked.run.run_id, [replace(part, lines=lines)], measures, least_queries, how.progress)


def commit_collection(repository: Path, count: int) -> Collection:
    """The subjects of the latest commits, about the state before each: the files that it changed, and their lines."""
    git = Git(repository)
    requests, qrels = commit_questions(repository, count)
    asked = [(r["request_id"], r["question"], r["time"]["as_of"].removeprefix("commit:")) for r in requests]
    queries = pd.DataFrame(asked, columns=pd.Index(["query_id", "text", "commit"]))
    files = qrels.rename(columns={"doc_id": "path"})
    lines = pd.concat([_changed_lines(git, query) for query in queries["query_id"]]).merge(files)
    lines["path"] += ":" + lines["first"].astype(str) + "-" + lines["last"].astype(str)
    commits = [commit for commit in git.commits("HEAD") if commit.sha in set(queries["commit"])]
    judged = pd.concat([files, lines[[*files]]], ignore_index=True)
    return code_collection(repository, "test", judged, {"queries": queries, **snapshots_of(git, commits)})


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


def _rows_of(asked: JudgedRun, collection: Collection) -> pd.DataFrame:
    """Judgements by evidence id: the candidates that contain a judged line."""
    frame = asked.corpus.frame(collection.projects())
    candidates = asked.run.table("candidates").select(["request_id", "evidence_id", "row", "placement"]).to_pandas()
    paths = frame.evidence["path"].take(candidates["row"].to_numpy()).to_pandas()
    lines = frame.placements.select(["line_start", "line_end"]).take(candidates["placement"].to_numpy()).to_pandas()
    rows = pd.concat([candidates.rename(columns={"request_id": "query_id"}), lines], axis=1).assign(doc_id=paths)
    pairs = rows.merge(collection.labels, on=["query_id", "doc_id"])
    pairs = pairs[(pairs["line_start"] <= pairs["last"]) & (pairs["line_end"] >= pairs["first"])]
    judged = pairs[["query_id", "evidence_id"]].drop_duplicates().rename(columns={"evidence_id": "doc_id"})
    return judged.assign(relevance=1)


def draw(tuning: Tuning, path: Path) -> None:
    """Write a picture of the held-out means, in force and fitted, one bar per collection and measure.

    Raises:
        InputError: matplotlib is missing, or the file cannot be written.
    """
    figure: Any = package("matplotlib.figure", "eval").Figure(figsize=(8, 4), layout="constrained")
    table = tuning.held_out()
    means = table.set_index(table["metric"] + "\n" + table["collection"])[[DEFAULT, FITTED]]
    title = "Questions that were left out of the fit"
    axes: Any = means.plot.bar(ax=figure.subplots(), rot=0, ylim=(0, 1), xlabel="", title=title)
    for bars in axes.containers:
        axes.bar_label(bars, fmt="%.3f", fontsize=8)
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:
        raise InputError(f"{error}: --picture {path}") from error
