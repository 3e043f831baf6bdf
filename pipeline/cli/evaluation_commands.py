"""`eval`, `tune`: measure labeled collections, and fit weights to them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from .options import settings_of
from .output import emit, frame_table, note, write_file

Metrics = Annotated[list[str] | None, typer.Option("--metric", help="A measure by its ir_measures name, e.g. nDCG@10.")]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="At most this many queries.")]
Split = Annotated[str, typer.Option(help="Split of BEIR folders: judgements from qrels/SPLIT.tsv.")]
Purpose = Annotated[str | None, typer.Option(help="Purpose of every request.")]
NoSemantic = Annotated[bool, typer.Option("--no-semantic", help="Skip the semantic lane.")]
Work = Annotated[Path, typer.Option("--work", metavar="DIR", help="Folder for corpora, runs and figures.")]
WORK = Path(".scoped-retrieval/eval")
BLOCKS = (900, 2000, 4000)
"""Default token budgets at which the block is measured."""
COMMITS = 200
"""Default number of commits that `tune --commits` asks about."""


def eval(  # noqa: A001 - the name of the command
    collections: Annotated[list[Path], typer.Argument(metavar="COLLECTION...", help="Folders, or names in eval_data.")],
    work: Work = WORK,
    metric: Metrics = None,
    limit: Limit = None,
    split: Split = "test",
    purpose: Purpose = None,
    block: Annotated[
        list[int] | None,
        typer.Option(min=1, metavar="TOKENS", help="Measure blocks of this budget; default: 900, 2000 and 4000."),
    ] = None,
    no_semantic: NoSemantic = False,
) -> None:
    """Measure retrieval quality on labeled collections. One run covers lanes, fusion, the full line and its blocks."""
    from ..evaluation.evaluate import FULL, OF_BLOCKS, evaluate
    from ..evaluation.metrics import DEFAULT_METRICS

    settings = settings_of()
    metrics = tuple(metric or DEFAULT_METRICS)
    done = evaluate(
        opened(settings, collections, split),
        _asking(settings, work, limit, purpose, semantic=not no_semantic),
        metrics=metrics,
        blocks=block or BLOCKS,
    )
    of = done.asked
    note(f"{of.seconds_index} s index {of.corpus.path}, {of.seconds_run} s run {of.run.run_id}: {of.run.statuses}")
    text = ""
    for name in (*metrics, *OF_BLOCKS):
        if len(means := done.means(name)):
            text += frame_table(name, means)
    for kind, table in done.compared(metrics[0]).items():
        text += frame_table(f"{metrics[0]}, {kind}, compared with {FULL}", table)
    emit(done.records(), text=text)


def _asking(settings: Any, work: Path, limit: int | None, purpose: str | None, *, semantic: bool) -> Any:
    """How `eval` and `tune` ask: with vectors, if an encoder is there."""
    from ..config.policies.tables import load_policies
    from ..encoders.encoder import encoder_available, is_bundled
    from ..evaluation.asking import Asking

    return Asking(
        work,
        semantic=semantic and (encoder_available()[0] or not is_bundled(settings["encoder"])),
        encoder=settings.encoder_choice,
        limit=limit,
        purpose=purpose,
        policies=load_policies(settings["policies"], settings["weights"]),
        plugins=settings["plugins"],
        progress=note,
    )


def opened(settings: Any, collections: list[Path], split: str) -> list[Any]:
    """The collections in these folders, or with these names in `eval_data`."""
    from ..evaluation.collections import open_collection

    root = settings["eval_data"]
    folders = (given if given.exists() or not root else root / given for given in collections)
    return [open_collection(folder, split) for folder in folders]


def tune(
    collections: Annotated[
        list[Path],
        typer.Argument(metavar="COLLECTION...", help="Folders, or names in eval_data; with --commits Git checkouts."),
    ],
    commits: Annotated[
        bool, typer.Option("--commits", help="Ask what the latest commits of a checkout did; 200, or --limit.")
    ] = False,
    picture: Annotated[
        Path | None, typer.Option("--picture", metavar="FILE", help="Draw the figures, as .svg or .png.")
    ] = None,
    work: Work = WORK,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="The weight file; default: weights.yaml in --work.")
    ] = None,
    metric: Metrics = None,
    limit: Limit = None,
    split: Split = "test",
    purpose: Purpose = None,
    least_queries: Annotated[
        int,
        typer.Option("--least-queries", min=2, metavar="N", help="Minimum number of informative queries to fit to."),
    ] = 20,
    no_semantic: NoSemantic = False,
) -> None:
    """Fit weights of score terms to judged questions. They are those of collections, or of a repository's own history; figures are for held-out ones."""
    from importlib.metadata import version

    from ..config.policies.weight_files import weight_file_text
    from ..evaluation.synthetic import commit_collection
    from ..evaluation.tuning import MEASURES
    from ..evaluation.tuning import tune as tuned

    settings = settings_of()
    if commits:
        judged = [commit_collection(checkout.resolve(), limit or COMMITS) for checkout in collections]
    else:
        judged = opened(settings, collections, split)
    how = _asking(settings, work, limit, purpose, semantic=not no_semantic)
    done = tuned(judged, how, measures=metric or MEASURES, least_queries=least_queries)
    if picture is not None:
        done.draw(picture)
    versions = {name: version(name) for name in ("scoped-retrieval", "numpy", "scipy", "pyarrow")}
    date = datetime.now(UTC).isoformat(timespec="seconds")
    content = {"command": "tune", "date": date, "versions": versions} | done.fitted()
    file = out or work / "weights.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    write_file(file, weight_file_text(done.weights, content).encode())
    emit({"file": str(file), "weights": done.weights, "fitted": content}, text=_tables(done))
    if commits and any(done.weights[of].get("recency", 0) > done.before[of].get("recency", 0) for of in done.weights):
        note(
            "warning: recency weighs more, since commits change what was changed lately; other questions may lose by it"
        )
    note(f"-c weights={file} for `ask` and `run`, or the setting `weights`, applies it")


def _tables(done: Any) -> str:
    """Figures for held-out queries, and the weights."""
    import pandas as pd

    from ..evaluation.tuning import DEFAULT, FITTED

    text = ""
    for (purpose, metric), rows in done.held_out().groupby(["purpose", "metric"], sort=False):
        figures = rows.drop(columns=["purpose", "metric"]).set_index("collection")
        text += frame_table(f"{purpose}, {metric}, left out in turn: {done.left_out[purpose]}", figures)
    for purpose, fitted in done.weights.items():
        weights = pd.DataFrame({DEFAULT: done.before[purpose], FITTED: fitted}).rename_axis("term")
        text += frame_table(f"{purpose}, weights fitted to every query", weights)
    return text
