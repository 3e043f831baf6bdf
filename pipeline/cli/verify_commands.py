"""`verify`: checks what was recorded, without retrieving again unless `--rerun` asks for it; `gc`: removes what nothing needs;
`erase`: removes texts for good; `leak-test`: probes a corpus for leaks.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ..progress import counted
from ..views.text_table import plain_text
from .options import given, settings_of
from .output import EXIT, InterruptedCommandError, emit, note

_STATE_CODES = {
    "unfinished": EXIT["failed"],
    "unreadable": EXIT["unreadable"],
}
"""Exit codes of `verify` for runs in which nothing was rewritten; any other difference is 5."""


def verify(
    name: Annotated[
        str,
        typer.Argument(
            metavar="[ID]",
            help="A run or snapshot, `corpus`, or a file of `show --as export`, which is checked on its own. Default: every "
            "run; with --rerun and --answer, your last answer.",
        ),
    ] = "",
    rerun: Annotated[
        bool,
        typer.Option(
            "--rerun",
            help="Execute the run or snapshot again at its pinned generation: the first table, row and column that differs, "
            "and why.",
        ),
    ] = False,
    answer: Annotated[
        Path | None,
        typer.Option(
            "--answer",
            metavar="FILE",
            help="Compare this answer of a model with what it was shown: citations, quotes, values, records, actions; - reads "
            "standard input. Findings are logged.",
        ),
    ] = None,
    event: Annotated[
        Path | None,
        typer.Option(
            "--event",
            metavar="FILE",
            help="The event of a model request (JSON): the snapshots that it names, and whether the input matches its hash.",
        ),
    ] = None,
    anchor: Annotated[
        str | None,
        typer.Option("--anchor", metavar="HASH", help="Head of the log or corpus that was stored elsewhere."),
    ] = None,
) -> int:
    """Verify runs, a corpus, an answer or a file. Reports the first part that differs from its record."""
    from ...nodes.errors import InputError
    from ..reading.across_runs import snapshot_named
    from ..runs.ids import is_snapshot
    from ..storage.places import at_home

    if anchor is not None and not re.fullmatch("[0-9a-f]{64}", anchor):
        hint = (
            "`verify` prints the head of the log, `verify corpus` that of the corpus; the anchor is one that you kept"
        )
        raise InputError.described("64 hex digits", counted(len(anchor), "character"), "--anchor", hint=hint)
    asked = {"corpus": name == "corpus", "--event": event, "--answer": answer, "--rerun": rerun}
    if len(chosen := [each for each, value in asked.items() if value]) > 1:
        raise InputError.described("one of them", " and ".join(chosen), "verify")
    if event is not None:
        return _verify_turn(event)
    if name == "corpus":
        return _verify_corpus(anchor)
    recorded = name.startswith(("@", "run-")) or is_snapshot(name)  # whatever files have such names
    if name and not recorded and (file := at_home(Path(name), "ID")).is_file():
        return _verify_file(file, anchor)
    settings = settings_of("runs", "corpus")
    if answer is not None:
        return _verify_answer(settings, snapshot_named(settings, name or "@"), answer)
    if rerun:
        return _rerun(settings, snapshot_named(settings, name or "@"))
    return _verify_runs(settings, snapshot_named(settings, name), anchor)


def _verify_runs(settings: Any, run: str, anchor: str | None) -> int:
    from ..reading.reports import verified

    report = verified(settings, run or None, anchor=anchor)
    columns = ("run_id", "status", "parts", "snapshots")
    runs = [{name: one[name] for name in columns} for one in report["runs"]]
    problems = [{"run_id": one["run_id"], **problem} for one in report["runs"] for problem in one["problems"]]
    shown = {"ok": report["ok"], "head_of_the_log": report["head"], "runs": runs, "problems": problems}
    emit(report, text=plain_text(shown))
    if report["ok"]:
        return EXIT["ok"]
    states = {one["status"] for one in report["runs"] if one["problems"]}
    if states - _STATE_CODES.keys():
        return EXIT["differs"]
    return max(_STATE_CODES[state] for state in states)


def _rerun(settings: Any, name: str) -> int:
    from ..reading.auditing.reproduce import reproduced

    found = reproduced(settings, name)
    emit(found.as_dict())
    return EXIT["ok"] if found.same else EXIT["differs"]


def _verify_answer(settings: Any, snapshot: str, answer: Path) -> int:
    from ..reading.answers import answer_report

    report, entry, not_logged = answer_report(settings, snapshot, _text_of(answer))
    emit({**report.as_dict(), "logged": entry}, text=report.text())
    if not_logged:
        note(f"warning: not logged: {not_logged}")
    if report.status == "erased":
        return EXIT["erased"]
    return EXIT["ok"] if report.ok else EXIT["differs"]


def _verify_turn(event: Path) -> int:
    from ..reading.model_turns import replayed_turn

    turn = replayed_turn(settings_of("runs"), event)
    emit(turn.as_dict())
    if not turn.agrees:
        return EXIT["differs"]
    return EXIT["erased"] if any(one.replay.status == "erased" for one in turn.snapshots) else EXIT["ok"]


def _verify_corpus(anchor: str | None) -> int:
    """Check files, rows and heads; auditors of all projects also see problems and the head."""
    from ..config.opening import corpus_of
    from ..reading.grants import audits_corpus

    settings = settings_of("corpus")
    opened = corpus_of(settings)
    problems = opened.verify(anchor)
    told = audits_corpus(settings, opened.projects())
    emit({"ok": not problems} | ({"problems": problems, "head": opened.head} if told else {}))
    return EXIT["differs"] if problems else EXIT["ok"]


def _verify_file(file: Path, anchor: str | None) -> int:
    """Check an exported snapshot: no folder of runs is read."""
    from ..config.opening import signer_of
    from ..reading.auditing.export import check_file

    found = check_file(file, signer_of(settings_of()), anchor=anchor)
    emit(found.as_dict())
    if not found.ok:
        note("do not rely on this file: ask for it again, or export the snapshot again and compare")
    elif not found.signed:
        note("no trusted key was given, so no signature was checked")
    return EXIT["ok"] if found.ok else EXIT["differs"]


def _text_of(file: Path) -> str:
    """The text of a file in UTF-8, or of standard input for `-`."""
    from ...nodes.errors import InputError

    try:
        data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except OSError as error:
        raise InputError(f"{error.strerror}: --answer {file}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"Expected text in UTF-8, got another encoding - at --answer {file}") from error


def gc(
    keep: Annotated[
        int | None, typer.Option("--keep", min=1, help="Remove older generations of the corpus than so many.")
    ] = None,
    discard: Annotated[
        str | None, typer.Option("--discard", metavar="RUN", help="Remove only this unfinished run and its answers.")
    ] = None,
) -> int:
    """Remove what nothing names. Interactive snapshots of a long session become Parquet; digests do not change."""
    from ..reading.access import known_runs, unknown
    from ..runs import Runs

    settings = settings_of("runs", "corpus")
    if discard is not None:
        store = Runs(settings["runs"], create=False)
        if not known_runs(settings, store)(discard):
            raise unknown(discard)
        store.discard(discard)
        emit({"discarded": discard})
        return EXIT["ok"]
    found = _compacted(settings) | _without_old_generations(settings, keep or sys.maxsize)
    emit(found)
    return EXIT["differs"] if found["damaged"] else EXIT["ok"]


def _compacted(settings: Any) -> dict[str, Any]:
    """The long interactive runs that the principal may know of, in Parquet now, and those that are damaged."""
    from ...nodes.errors import StoreError, VerificationError
    from ..config.opening import runs_of
    from ..reading.access import known_runs
    from ..runs import compact
    from ..runs.store import SHRINKS

    done, damaged = {}, []
    if not settings["runs"].is_dir():
        return {"compacted": done, "damaged": damaged}
    store = runs_of(settings)
    waiting = [run.run_id for run in store.list() if len(run.files) >= SHRINKS]
    for run_id in filter(known_runs(settings, store), waiting):
        try:
            done[run_id] = compact(store, run_id).snapshots.num_rows
        except (StoreError, VerificationError) as error:
            if getattr(error.__cause__, "errno", None) is not None:  # of the disk: this and later runs are unchanged
                raise
            damaged.append(f"{run_id}: {error.message}")
    return {"compacted": done, "damaged": damaged}


def _without_old_generations(settings: Any, keep: int) -> dict[str, Any]:
    """What was removed from the corpus and what it keeps, for auditors of all projects."""
    from ..config.opening import corpus_of, head_of
    from ..reading.grants import audits_corpus

    if head_of(settings) is None:
        return {}
    corpus = corpus_of(settings)
    removed, info = corpus.gc(keep), corpus.info()
    if not audits_corpus(settings, info["projects"]):
        return {}
    return {
        "removed": removed,
        "kept": {"generations": len(info["generations"]), "packs": info["packs"], "bytes": info["bytes"]},
    }


def erase(
    source: Annotated[str | None, typer.Option(metavar="SOURCE", help="Rows of this source, by its full id.")] = None,
    user: Annotated[str | None, typer.Option(metavar="USER", help="Rows that belong to this user.")] = None,
    evidence: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="This row, by its evidence id; repeatable.")
    ] = None,
    questions: Annotated[
        bool | None,
        typer.Option(
            "--questions/--no-questions",
            help="Also erase the text of requests in runs: questions, anchors, query vectors. Default: on with --user or --project.",
        ),
    ] = None,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Reason, recorded in the receipts.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count what would be erased; write nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Confirm; erased text cannot be restored.")] = False,
) -> int:
    """Permanently erase evidence and questions. Applies to a corpus and its runs; several selectors, with --project for those of one project, are combined with AND."""
    from ...nodes.errors import InputError
    from ..maintenance.erasure import STAYS
    from ..maintenance.erasure import erase as erased

    if dry_run == yes:
        hint = "--dry-run counts what would be erased; --yes erases it, which cannot be undone."
        raise InputError.described("--yes or --dry-run", "both" if yes else "neither", "erase", hint=hint)
    try:
        done = erased(
            settings_of("corpus", "runs"),
            source=source,
            user=user,
            project=given("project"),
            evidence=evidence or (),
            questions=questions,
            reason=reason,
            dry_run=dry_run,
        )
    except KeyboardInterrupt:
        left = "some rows may remain in corpus or runs; run the same command again to erase the rest."
        raise InterruptedCommandError("Interrupted", hint=left if yes else "") from None
    emit(done.as_dict())
    for run in done.runs.unreadable:
        note(f"{run} cannot be read; restore it from a backup and run the same command again")
    note(f"stays: {STAYS}")
    return EXIT["unreadable"] if done.runs.unreadable else EXIT["ok"]


def leak_test(
    principal: Annotated[str | None, typer.Option(metavar="NAME", help="Only this principal; default: all.")] = None,
    probes: Annotated[int, typer.Option(min=1, help="Questions per tenant, generated from the tenant's rows.")] = 4,
    canaries: Annotated[
        int | None,
        typer.Option(min=1, help="At most this many canaries per tenant and angle; default: one per role and reason."),
    ] = None,
) -> int:
    """Test that nothing leaks between tenants. Tests all projects, or --project. Plants rows outside each tenant's scope in a copy of the corpus; no byte of any answer may change."""
    from ..leaktest import leak_test as tested
    from ..progress import quiet

    report = tested(
        settings_of("corpus"),
        principal=principal,
        project=given("project"),
        probes=probes,
        canaries=canaries,
        say=note if sys.stderr.isatty() else quiet,
    )
    emit(report.as_dict())
    return EXIT["ok"] if report.ok else EXIT["differs"]
