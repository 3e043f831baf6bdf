"""`demo`: indexes the bundled sample, executes one batch run and shows a question and its refusal.

Reads: `data/demo`. Gives: a folder with corpus, grants, runs and an HTML report, and a
`Demonstration` of what to look at. The sample is indexed as of the morning of its story, so its answers do not
depend on the current date.

Note: the demo asks as `ana`. The local user may query and audit the same
projects as ana, so the printed commands reproduce what the demo showed.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from ..nodes.errors import InputError
from .asking.opening import open_retriever
from .config.opening import adopt, corpus_of
from .config.settings import PROJECT_FILE, Settings, load_settings
from .contracts.why import refusals
from .indexing.following import IndexRequest
from .indexing.importing import index_into
from .progress import Say, counted
from .requests.files import read_requests
from .runs import Runs, replay
from .servers.renderings import rendered
from .storage.file_access import keep_out
from .views.xray import Rows, rows_of

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
ASKS = "ana"
SOURCES = {
    SHOP: (
        ASKS,
        ("sessions", "sessions.jsonl"),
        ("memory", "memory.jsonl"),
        ("artifacts", "artifacts"),
        ("decisions", "decisions"),
        ("preferences", "preferences.jsonl"),
        ("standards", "standards"),
        ("external", "external"),
        ("evidence", "rules.jsonl"),
        ("evidence", "records.jsonl"),
    ),
    BILLING: ("bo", ("evidence", "rules.jsonl")),
}
"""Who indexes a project, and what it has besides its work tree."""
OPENED_UP = "1-fix-test"
ASKED, REFUSED = "4-rule-today", "6-twin"
"""The same question in a project that ana may query and in one that she may not."""


@dataclass(frozen=True)
class Demonstration:
    """The run of the demo. `rows` has the tables of every snapshot by request; `opened` is the snapshot of the report, and
    `twin` why an auditor reads that rows of the other project were out of its reach.
    """

    folder: Path
    run_id: str
    rows: Mapping[str, Rows]
    opened: str
    report: Path
    twin: Sequence[Mapping[str, Any]]
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        statuses = {request: rows["snapshots"][0]["status"] for request, rows in self.rows.items()}
        found = {name: value for name, value in vars(self).items() if name != "rows"}
        return found | {"statuses": statuses}

    def screen(self) -> str:
        """One screen: a question, its block, its refused twin, where to look next and the report."""
        question, denied = self.rows[ASKED], self.rows[REFUSED]
        refused = [f"{c['condition']}: {c['message']}" for c in denied["conditions"] if c["audience"] == "caller"]
        same = next((t for t in self.twin if t["path"].endswith("default-role.md")), self.twin[0])
        looks = (
            (f"show {self.opened} --as xray", "why each item is there"),
            (f"what-if {question['snapshots'][0]['snapshot_id']} --set max_tokens=600", "with a larger budget"),
            (f"show {self.run_id} --as html -o run.html", "the whole run"),
        )
        script = Path(sys.executable).with_name("scoped-retrieval")  # callable from any folder
        return "\n".join(
            (
                f'In project shop, ana asks: "{question["requests"][0]["question"]}"',
                "",
                *question["blocks"][0]["text"].splitlines(),
                "",
                "In project billing, which holds the same words, ana asks the same:",
                f"  {denied['snapshots'][0]['status']}, {'; '.join(refused)}",
                "An auditor reads why one of its documents was out of reach:",
                f"  {same['path']}: gate {same['decided_by']}, {same['reason_code']}",
                "",
                f"Look next: cd {self.folder}",
                f"           {script if script.exists() else script.name} ...",
                *(f"  {command:<64} {what}" for command, what in looks),
                "",
                f"{counted(len(self.rows), 'request')} answered, {self.seconds:.0f} s in all. The failing test of the sample as a report:",
                f"{self.report}",
                "",
            )
        )


def run_demo(
    folder: Path,
    *,
    semantic: bool = True,
    progress: bool = False,
    say: Say = print,
) -> Demonstration:
    """Index the sources, run the requests and show one snapshot in detail.

    Args:
        folder: where the demo writes; an earlier demo in it is replaced.
        semantic: compute embeddings if the extra `semantic` is installed.
        say: called with each progress line.

    Raises:
        InputError: `folder` contains files that are not a demo.
    """
    started = time.perf_counter()
    folder = _fresh(folder)
    sample = Path(str(resources.files(f"{__name__.rpartition('.pipeline')[0]}.data"))) / "demo"
    for project, (asker, *records) in SOURCES.items():
        of = sample / project
        read = tuple((kind, of / name) for kind, name in records)
        request = IndexRequest(paths=(of / "work_tree",), source=project, read=read, semantic=semantic)
        report = index_into(_settings(folder, asker, project), request, now=SAMPLE_TIME, progress=progress, grant=False)
        say(f"indexed {project}: {counted(sum(report.rows.values()), 'row')} in {report.seconds:.1f} s")
    settings, user = _settings(folder, ASKS), load_settings().principal
    grants = yaml.safe_load((sample / "grants.yaml").read_text(encoding="utf-8"))
    grants["principals"].setdefault(user, {"projects": [*SOURCES], "audit": True})
    settings.grants_path.write_text(yaml.safe_dump(grants), encoding="utf-8")
    with open_retriever(settings) as retriever:
        summary = retriever.run(read_requests(sample / "requests.jsonl"), progress=progress)
    adopt(settings, "corpus", "runs")
    say(f"ran {counted(summary.snapshots, 'request')} in {summary.seconds:.1f} s")
    run = Runs(settings["runs"], create=False).open(summary.run_id)
    by_request = {row["request_id"]: row["snapshot_id"] for row in run.snapshots.to_pylist()}
    opened = by_request[OPENED_UP]
    page = folder / "report.html"
    page.write_text(rendered(_settings(folder, user), opened, "html").text, encoding="utf-8")
    contracts, bounds = (run.table(name, snapshot_id=opened) for name in ("contracts", "contract_bounds"))
    return Demonstration(
        folder=folder,
        run_id=run.run_id,
        rows={request: rows_of(replay(run, by_request[request]).tables) for request in sorted(by_request)},
        opened=opened,
        report=page,
        twin=[row for row in refusals(contracts, bounds, corpus_of(settings).frame([BILLING])) if row["path"]],
        seconds=round(time.perf_counter() - started, 2),
    )


def _settings(folder: Path, principal: str, project: str | None = None) -> Settings:
    """Settings of the demo alone, independent of the user's files and environment."""
    flags = {"corpus": folder / "corpus", "runs": folder / "runs", "principal": principal, "project": project}
    return load_settings(flags, cwd=folder, environ={}, user=folder / "no-user-file")


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
    keep_out(folder)
    (folder / PROJECT_FILE).write_text(PROJECT_SETTINGS, encoding="utf-8")
    return folder
