"""Verification of stored runs: `verify` over one run or a folder of them.

Reads: a folder of runs. Gives: `verified`. A run that cannot be read is a finding about that run; the others are checked
regardless.
"""

from __future__ import annotations

import re
from dataclasses import asdict, replace
from typing import Any

from ...nodes.errors import InputError, VerificationError
from ..config.opening import signer_of
from ..config.settings import Settings
from ..progress import counted
from .access import known_runs, unknown

__all__ = ["verified"]


def verified(settings: Settings, run_id: str | None = None, *, anchor: str | None = None) -> dict[str, Any]:
    """The verification of one run, or of every run of the folder that the principal may know of, as plain values.

    `head` is the hash of the last line of the log about a run that the principal may know of: it vouches for all lines
    before it, and discloses nothing about later runs of others.

    Raises:
        AccessError: the run does not exist or the principal may not know of it.
        InputError: the anchor is not a hash.
        VerificationError: the log was changed, or there is an anchor and no run that the principal may know of.
    """
    from ..runs import RunProblem, Runs, verify
    from ..runs.ids import RUN_ID, run_named
    from ..runs.log import LOG, RunLog

    if anchor is not None and not re.fullmatch("[0-9a-f]{64}", anchor):
        hint = "`verify` prints the head of the log; the anchor is one that you kept"
        raise InputError.described("64 hex digits", counted(len(anchor), "character"), "--anchor", hint=hint)
    store = Runs(settings["runs"], create=False)
    named = [run_named(run_id)] if run_id else None
    if named and not RUN_ID.fullmatch(named[0]):
        raise unknown(str(run_id))
    lines = store.log.lines()
    known = known_runs(settings, store)
    logged = {str(line.body["run_id"]) for line in lines if line.body.get("run_id")}
    ids = [one for one in named or sorted({*logged, *store.unfinished()}) if known(one)]
    if run_id and not ids:
        raise unknown(run_id)
    if anchor is not None and not ids:
        # Runs of others are not reported, so the answer is the same whether there are any.
        raise VerificationError("Expected the anchor in a log of runs visible to you, got no such run", at="LOG")
    reports = [verify(store, one, anchor=anchor) for one in ids]
    try:
        RunLog(store.path, signer_of(settings)).last()
    except VerificationError as error:
        found = RunProblem("changed", LOG, error.message)
        reports = [replace(report, problems=(found, *report.problems), state="") for report in reports]
    if not named:  # a batch in progress is not a finding about the folder
        pending = {report.run_id for report in reports if report.status == "unfinished"}
        reports = [report for report in reports if report.run_id not in pending]
    return {
        "ok": all(report.ok for report in reports),
        "head": next((line.hash for line in reversed(lines) if known(line.body.get("run_id") or "")), ""),
        "runs": [
            {"run_id": report.run_id, "status": report.status}
            | {
                name: value
                for name, value in asdict(report).items()
                if name in ("parts", "snapshots", "problems", "erased")
            }
            for report in reports
        ],
    }
