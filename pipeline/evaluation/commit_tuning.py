"""`tune --commits`: weights fitted to a repository's own history.

Reads a Git checkout. Its latest commits become questions (`synthetic.commit_questions`), each about the state before
the commit. Gives a `Tuning` with figures by files, those that a commit changed, and by lines: the rows, among the
candidates, that contain a line that it changed. Weights are fitted by files.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ...nodes.errors import InputError
from ..asking.retriever import Retriever
from ..config.settings import load_settings
from ..corpus import Corpus
from ..indexing.following import IndexRequest
from ..indexing.importing import index_into
from ..runs import Run, Runs
from ..sources.git_commands import Git
from .evaluate import DEEP, EVALUATION_PRINCIPAL, Asking, lanes_on, work_folder
from .frozen_terms import FrozenTerms
from .metrics import package
from .synthetic import commit_questions
from .tuning import DEFAULT, FITTED, LEAST_QUERIES, MEASURES, Part, Tuning, fit

COMMITS = 200
PURPOSE = "explain-code"
_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? ")


def tune_commits(
    repository: Path, how: Asking, *, measures: Sequence[str] = MEASURES, least_queries: int = LEAST_QUERIES
) -> Tuning:
    """Index a repository with its history, ask about its latest commits, and fit weights to the answers.

    Args:
        how: `limit` is the number of commits, by default 200; `purpose` by default explain-code.

    Raises:
        InputError: there is no Git history, or too few commits tell weights apart.
    """
    git, name, work = Git(repository), repository.resolve().name, work_folder(how.work.resolve())
    places = {"corpus": work / "history", "grants": work / "history-grants.yaml"}
    settings = load_settings(
        {**places, "project": name, "principal": EVALUATION_PRINCIPAL}, cwd=work, environ={}, user=work / "none"
    )
    how.progress(f"indexing {name} with its history")
    index_into(settings, IndexRequest(paths=(repository,), history=True, semantic=how.semantic))
    fields = {"project": name, "purpose": how.purpose or PURPOSE, "budget": DEEP}
    requests, qrels = commit_questions(repository, how.limit or COMMITS, **fields)
    how.progress(f"asking about {len(requests)} commits")
    with Retriever.open(
        places["corpus"], principal=EVALUATION_PRINCIPAL, grants=places["grants"], runs=work / "runs",
        policies=how.policies, lanes=[lane.name for lane in lanes_on(how) if "." not in lane.name],
        encoder=how.encoder, plugins=how.plugins,
    ) as retriever:  # fmt: skip
        summary = retriever.run(requests)
    run = Runs(work / "runs", create=False).open(summary.run_id)
    queries = tuple(request["request_id"] for request in requests)
    files = FrozenTerms.of(run, qrels, documents="path", queries=queries)
    changed = pd.concat([_changed_lines(git, query) for query in queries], ignore_index=True)
    rows = _rows_of(run, Corpus.open(places["corpus"]), name, changed)
    lines = FrozenTerms.of(run, rows, queries=queries)
    head = git.run("rev-parse", "HEAD").decode().strip()
    part = Part(name, "code", fields["purpose"], files, np.arange(len(queries)), head, lines)
    return fit(run.run_id, [part], measures, least_queries, how.progress)


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


def _rows_of(run: Run, corpus: Corpus, project: str, changed: pd.DataFrame) -> pd.DataFrame:
    """Judgements by evidence id: the candidates that contain a changed line."""
    frame = corpus.frame([project])
    candidates = run.table("candidates").select(["request_id", "evidence_id", "row", "placement"]).to_pandas()
    paths = frame.evidence["path"].take(candidates["row"].to_numpy()).to_pandas()
    lines = frame.placements.select(["line_start", "line_end"]).take(candidates["placement"].to_numpy()).to_pandas()
    rows = pd.concat([candidates.rename(columns={"request_id": "query_id"}), lines], axis=1).assign(path=paths)
    pairs = rows.merge(changed, on=["query_id", "path"])
    pairs = pairs[(pairs["line_start"] <= pairs["last"]) & (pairs["line_end"] >= pairs["first"])]
    judged = pairs[["query_id", "evidence_id"]].drop_duplicates().rename(columns={"evidence_id": "doc_id"})
    return judged.assign(relevance=1)


def draw(tuning: Tuning, path: Path) -> None:
    """Write a picture of the held-out means, in force and fitted, one bar per collection and measure.

    Raises:
        InputError: matplotlib is missing, or the file cannot be written.
    """
    figure: Any = package("matplotlib.figure", "--picture").Figure(figsize=(8, 4), layout="constrained")
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
