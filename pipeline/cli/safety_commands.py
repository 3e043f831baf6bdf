"""`erase`, `leak-test`: erase texts, probe a corpus for leaks."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from .options import given, settings_of
from .output import EXIT, InterruptedCommandError, emit, note

__all__ = ["register"]

Texts = list[str] | None


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(erase)
    app.command("leak-test")(leak_test)


def erase(
    source: Annotated[str | None, typer.Option(metavar="SOURCE", help="Rows of this source, by its full id.")] = None,
    user: Annotated[str | None, typer.Option(metavar="USER", help="Rows that belong to this user.")] = None,
    evidence: Annotated[Texts, typer.Option(metavar="ID", help="This row, by its evidence id; repeatable.")] = None,
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
    emit(done.as_dict(), text=done.text())
    return EXIT["unreadable"] if done.runs.unreadable or done.runs.being_written else EXIT["ok"]


def leak_test(
    principal: Annotated[str | None, typer.Option(metavar="NAME", help="Only this principal; default: all.")] = None,
    tenants: Annotated[int | None, typer.Option(min=1, help="Test at most N (principal, project) pairs.")] = None,
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
        tenants=tenants,
        probes=probes,
        canaries=canaries,
        say=note if sys.stderr.isatty() else quiet,
    )
    emit(report.as_dict(), text=report.text())
    return EXIT["ok"] if report.ok else EXIT["differs"]
