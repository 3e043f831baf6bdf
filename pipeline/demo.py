"""`demo`: indexes the bundled sample and this repository, executes one batch run and shows one snapshot in detail.

Reads: `data/demo`, the current Git checkout. Gives: a folder with corpus, grants, runs, an HTML report and pictures,
and a `Demonstration` of what to look at. The sample is indexed as of the morning of its story, so its answers do not
depend on the current date; the repository is indexed as of now.

Note: the demo asks as `ana`, and once as `bo` in the other project. The local user may query and audit the same
projects as ana, so the printed commands reproduce what the demo showed.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any

from ..nodes.errors import InputError
from .asking.opening import open_retriever
from .config.grants import write_starter_grants
from .config.opening import adopt, corpus_of
from .config.settings import PROJECT_FILE, Settings, SettingValue, load_settings
from .indexing.importing import IndexReport, IndexRequest, index_into
from .progress import counted
from .reading.replaying import snapshot_rows
from .reading.reports import report_of
from .runs import Runs, replay
from .sources.git_commands import work_tree_root
from .sources.git_history import commit_times
from .views.demonstration import Demonstration
from .views.lineage import to_dot, write_picture
from .views.refusal import refusals
from .views.xray import render_text

__all__ = ["run_demo"]

MARKER = ".scoped-retrieval-demo"
PROJECT_SETTINGS = """\
# So that commands started in this folder read the demo.
corpus = "corpus"
runs = "runs"
project = "shop"
"""
SAMPLE_TIME = datetime(2026, 5, 20, 8, 45, tzinfo=UTC)
"""The time as of which the sample is indexed: between the failing run and the questions."""
SHOP, BILLING = "shop", "billing"
ASKS, ASKS_IN_BILLING = "ana", "bo"
OPENED_UP = "1-fix-test"
ASKED, REFUSED = "4-rule-today", "6-twin"
"""The same question in a project that ana may query and in one that she may not."""
MAX_COMMITS = 400
MAX_EMBEDDED_ROWS = 1_200
"""Above these limits, a repository is indexed without its history or without vectors."""

Say = Callable[[str], None]


def run_demo(
    folder: Path,
    *,
    repository: Path | None = None,
    semantic: bool = True,
    history: bool = False,
    progress: bool = False,
    say: Say = print,
) -> Demonstration:
    """Index the sources, run the requests and show one snapshot in detail.

    Args:
        folder: where the demo writes; an earlier demo in it is replaced.
        repository: a folder inside a Git checkout to index as well; any other folder is ignored.
        semantic: compute embeddings if the extra `semantic` is installed.
        history: also read the history of the repository if it is short.
        say: called with each progress line.

    Raises:
        InputError: `folder` contains files that are not a demo.
    """
    started = time.perf_counter()
    folder = _fresh(folder)
    sample = Path(str(resources.files(f"{__name__.rpartition('.pipeline')[0]}.data"))) / "demo"
    settings = _settings(folder, ASKS)
    reports = [_index_shop(settings, sample, semantic, progress), _index_billing(folder, sample, semantic, progress)]
    settings.grants_path.write_text(_grants(sample / "grants.yaml"), encoding="utf-8")
    checkout = work_tree_root(repository) if repository else None
    requests = _lines(sample / "requests.jsonl")
    if checkout:
        report = _index_checkout(settings, checkout, semantic, history, progress, say)
        reports.append(report)
        requests.append(_question_about(checkout, report.project))
    for report in reports:
        say(f"indexed {report.project}: {counted(sum(report.rows.values()), 'row')} in {report.seconds:.1f} s")
        write_starter_grants(settings.grants_path, _local_user(), report.project)

    with open_retriever(settings) as retriever:
        summary = retriever.run(requests, progress=progress)
    adopt(settings, "corpus", "runs")
    say(f"ran {counted(summary.snapshots, 'request')} in {summary.seconds:.1f} s")
    return _opened(folder, settings, summary.run_id, requests, reports, started)


def _opened(
    folder: Path,
    settings: Settings,
    run_id: str,
    requests: list[dict[str, Any]],
    reports: list[IndexReport],
    started: float,
) -> Demonstration:
    """Read the run back and render one of its snapshots."""
    store = Runs(settings["runs"], create=False)
    run = store.open(run_id)
    by_request = {row["request_id"]: row["snapshot_id"] for row in run.snapshots.to_pylist()}
    rows = {request: snapshot_rows(run, by_request[request]) for request in sorted(by_request)}
    block = "".join(row["text"] for row in rows[OPENED_UP]["blocks"])
    twin = [row for row in refusals(*_contract(run, by_request[OPENED_UP]), _frame(settings, BILLING)) if row["path"]]
    dot = folder / "lineage.dot"
    dot.write_text(to_dot(run.lineage), encoding="utf-8")
    report = folder / "report.html"
    report.write_text(report_of(_settings(folder, _local_user()), by_request[OPENED_UP]), encoding="utf-8")
    return Demonstration(
        folder=folder,
        run_id=run_id,
        run_folder=run.folder,
        requests=requests,
        rows=rows,
        opened=by_request[OPENED_UP],
        asked=by_request[ASKED],
        report=report,
        block=block,
        xray=render_text(rows[OPENED_UP]),
        replayed=replay(store, by_request[OPENED_UP]).block == block,
        question=rows[ASKED],
        denied=rows[REFUSED],
        twin=twin,
        twin_block=_ask_in_billing(folder),
        indexed=[report.as_dict() for report in reports],
        pictures=[dot, *_picture(run.lineage, folder / "lineage.svg")],
        seconds=time.perf_counter() - started,
        command=_command(),
    )


def _index_shop(settings: Settings, sample: Path, semantic: bool, progress: bool) -> IndexReport:
    shop = sample / SHOP
    request = IndexRequest(
        paths=(shop / "work_tree",),
        source=SHOP,
        read=(
            ("sessions", shop / "sessions.jsonl"),
            ("memory", shop / "memory.jsonl"),
            ("artifacts", shop / "artifacts"),
            ("decisions", shop / "decisions"),
            ("preferences", shop / "preferences.jsonl"),
            ("standards", shop / "standards"),
            ("external", shop / "external"),
        ),
        evidence=(shop / "rules.jsonl", shop / "records.jsonl"),
        semantic=semantic,
    )
    return index_into(_in(settings, SHOP), request, now=SAMPLE_TIME, progress=progress, grant=False)


def _index_billing(folder: Path, sample: Path, semantic: bool, progress: bool) -> IndexReport:
    billing = sample / BILLING
    request = IndexRequest(
        paths=(billing / "work_tree",), source=BILLING, evidence=(billing / "rules.jsonl",), semantic=semantic
    )
    settings = _in(_settings(folder, ASKS_IN_BILLING), BILLING)
    return index_into(settings, request, now=SAMPLE_TIME, progress=progress, grant=False)


def _index_checkout(
    settings: Settings, checkout: Path, semantic: bool, history: bool, progress: bool, say: Say
) -> IndexReport:
    """Index the work tree of the repository, with its history if requested and short."""
    project = checkout.name if checkout.name not in (SHOP, BILLING) else f"{checkout.name}-checkout"
    if history:
        try:
            commits = commit_times(checkout).num_rows
        except InputError as error:
            say(f"{project}: {error.message}")
            commits = 0
        history = 0 < commits <= MAX_COMMITS
        if not history:
            say(f"{project}: {counted(commits, 'commit')}, so only its work tree is read")
    request = IndexRequest(paths=(checkout,), history=history, semantic=semantic, max_embedded_rows=MAX_EMBEDDED_ROWS)
    report = index_into(_in(settings, project), request, progress=progress, grant=False)
    write_starter_grants(settings.grants_path, ASKS, project)
    for note in report.notes:
        say(note)
    return report


def _question_about(checkout: Path, project: str) -> dict[str, Any]:
    return {
        "request_id": "7-this-repo",
        "project": project,
        "purpose": "explain-code",
        "question": "What is this project for, and where does its command line start?",
        "workspace_root": str(checkout),
        "budget": {"max_tokens": 900},
    }


def _ask_in_billing(folder: Path) -> str:
    """The answer that `bo` gets in the other project to the question that `ana` may not ask there."""
    with open_retriever(_settings(folder, ASKS_IN_BILLING)) as retriever:
        return retriever.retrieve(
            {
                "question": "What is the default role of a session?",
                "project": BILLING,
                "purpose": "answer-question",
                "time": {"as_of": "2026-05-20T09:00:00Z"},
                "budget": {"max_tokens": 600, "max_items": 1},
            }
        ).block


def _settings(folder: Path, principal: str) -> Settings:
    """Settings of the demo alone, independent of the user's files and environment."""
    return load_settings(
        {
            "corpus": folder / "corpus",
            "runs": folder / "runs",
            "principal": principal,
        },
        cwd=folder,
        environ={},
        user=folder / "no-user-file",
    )


def _in(settings: Settings, project: str) -> Settings:
    return Settings(dict(settings.values) | {"project": SettingValue(project, "demo")})


def _fresh(folder: Path) -> Path:
    """The folder, emptied if it contains an earlier demo; a folder with other files is refused."""
    folder = folder.resolve()
    if folder.exists() and not folder.is_dir():
        raise InputError.described("a folder", "a file", f"{folder}")
    if folder.exists() and not (folder / MARKER).exists() and any(folder.iterdir()):
        raise InputError.described("an empty folder or an earlier demo", "other files", f"{folder}")
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    (folder / MARKER).touch()
    (folder / PROJECT_FILE).write_text(PROJECT_SETTINGS, encoding="utf-8")
    return folder


def _contract(run: Any, snapshot_id: str) -> tuple[Any, Any]:
    return tuple(run.table(name, snapshot_id=snapshot_id) for name in ("contracts", "contract_bounds"))  # type: ignore[return-value]  # two names, two tables


def _frame(settings: Settings, project: str) -> Any:
    return corpus_of(settings).frame([project])


def _picture(lineage: Mapping[str, Any], path: Path) -> Iterator[Path]:
    try:
        yield write_picture(lineage, path)
    except InputError:
        return  # the extra `viz` is not installed; the DOT text is written anyway


def _command() -> str:
    """The console script of this installation, callable from any folder."""
    beside = Path(sys.executable).with_name("scoped-retrieval")
    return str(beside) if beside.exists() else "scoped-retrieval"


def _grants(sample: Path) -> str:
    """The sample's grants, plus the local user as a second auditor."""
    text, user = sample.read_text(encoding="utf-8"), _local_user()
    named = user in (ASKS, ASKS_IN_BILLING)
    return text if named else f"{text}  {json.dumps(user)}: {{projects: [{SHOP}], audit: true}}\n"


def _local_user() -> str:
    return load_settings().principal


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
