"""Projections for the command line: combines logs, input files and snapshots.

Gives: `project_log`, `import_transcript`, `snapshots_of`, `demonstration`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from importlib import resources
from pathlib import Path
from typing import Any

from ...nodes.errors import AccessError, InputError, StoreError
from ...nodes.turns.words import PHASES
from ..config.settings import Settings
from ..parsing.quoting import canonical, shown_key
from ..parsing.yaml_files import parse
from ..progress import counted
from ..runs.ids import is_snapshot
from ..sources.jsonl import Record
from .events import LogRows
from .inputs import TASK
from .log import SessionLog, read_session
from .masking import listed
from .policy import ContextPolicy
from .projection import Projection, Projections
from .rules import about_rules, rule_files
from .transcripts import events_of_transcript

_DEFAULTS = ("run_id", *TASK)
_KEYS = (
    "rules",
    "tools",
    "memories",
    "snapshots",
    "budget",
    "state",
    "turn",
    "checks",
    "duty_words",
    *_DEFAULTS,
)


def project_log(
    settings: Settings | None,
    log: Path,
    *,
    inputs: Path | None = None,
    rules: Path | None = None,
    at: int | None = None,
    every: bool = False,
    max_tokens: int | None = None,
    phase: str | None = None,
) -> Projections:
    """Projections of a session log under an input file. Without settings there are no recorded snapshots.

    Raises:
        InputError: a file, field or flag is invalid.
    """
    given = _read(inputs)
    turn = _object(given, "turn") | ({"asOfSeq": at} if at is not None else {})
    place = turn.get("asOfSeq", turn.get("as_of_seq"))
    rows = read_session(log)
    if phase is not None:
        turn["phase"] = canonical(PHASES, phase, "--phase")
    budget = _object(given, "budget")
    if max_tokens is not None:
        budget = {**{k: v for k, v in budget.items() if k not in ("maxTokens", "max_tokens")}, "maxTokens": max_tokens}
    turns = [turn]
    if every:
        asked = [row for row in rows.events if row["kind"] == "model.request"]
        if type(place) is int:  # the input of the request with this number has only the events before it
            asked = [row for row in asked if row["seq"] <= place]
        if not asked:
            raise InputError.described("a `model.request` event for every input", "none", f"--all of {log}",
                                       hint="without --all the input after the last event is projected, with --at N the one before event N.")  # fmt: skip
        turns = [
            turn | {"asOfSeq": row["seq"], "turnId": row["turn_id"] or str(row["seq"]), "inputId": f"{rows.session_id}/{row['seq']}"}
            for row in asked
        ]  # fmt: skip
    own = [] if settings is None else _own_snapshots(settings, rows, turns)
    policy = ContextPolicy(
        rules=[*_given(given, "rules"), *(rule_files(rules) if rules else [])],
        **{name: _given(given, name) for name in ("tools", "checks", "duty_words")},
        defaults={name: given[name] for name in _DEFAULTS if name in given},
    )
    found = policy.project_turns(
        turns=turns, events=rows, state=given.get("state"), budget=budget, memories=_given(given, "memories"),
        snapshots=[*_given(given, "snapshots"), *own],
    )  # fmt: skip
    if rows.skipped:
        found = found.under("records_skipped", f"lines of the log could not be read and are left out: {rows.skipped}")
    if rules and (missing := about_rules(rules, policy.rules)):
        found = found.under(*missing)
    return found


def _object(given: Mapping[str, Any], name: str) -> dict[str, Any]:
    """An object of an input file; a name without a value is an empty one."""
    value = given.get(name)
    if value is not None and not isinstance(value, Mapping):
        raise InputError.of_kind("an object", value, name)
    return dict(value or {})


def _given(given: Mapping[str, Any], name: str) -> list[Any]:
    """A list of an input file; a name without a value is an empty one."""
    return [] if given.get(name) is None else listed(given[name], name, name)


def _read(inputs: Path | None) -> dict[str, Any]:
    if inputs is None:
        return {}
    try:
        data = inputs.read_bytes()
    except OSError as error:
        raise InputError(f"{error.strerror}: {inputs}") from error
    given = parse(data, str(inputs))
    if not isinstance(given, dict):
        raise InputError.of_kind(f"a mapping with the keys {', '.join(_KEYS)}", given, str(inputs))
    if unknown := given.keys() - set(_KEYS):
        raise InputError.one_of(_KEYS, shown_key(min(unknown)), str(inputs))
    return given


def _own_snapshots(settings: Settings, rows: LogRows, turns: list[dict[str, Any]]) -> list[Any]:
    """The snapshots of this project's runs that turns or events name, and that the principal may read; the ledger reports
    the others as missing.
    """
    named = {name for row in rows.events for name in row["snapshot_ids"] or ()}
    for turn in turns:
        named.update(Record.of(turn, "turn").strings("retrievalSnapshotIds", "snapshotIds") or [])
    found = (_replayed(settings, name) for name in sorted(filter(is_snapshot, named)))
    return [each for each in found if each is not None]


def import_transcript(path: str | Path, out: str | Path) -> dict[str, Any]:
    """Write a transcript into a session log; events that it already has are skipped.

    Raises:
        InputError: as `events_of_transcript`, or the folder is the log of another session.
    """
    session_id, events, left_out = events_of_transcript(path)
    log = SessionLog.open(out, session_id=session_id)
    held = {row["event_id"] for row in log.read().events}
    new = log.append([event for event in events if event["id"] not in held])
    notes = list[str]()
    if others := len(held - {event["id"] for event in events}):
        notes.append(
            f"{counted(others, 'event')} of the log {'is' if others == 1 else 'are'} not in the transcript: appended here, or of a "
            "branch that was rewound since; import into another folder to leave them out"
        )
    counts = {"events": len(events), "new": new, "left_out": dict(sorted(left_out.items()))}
    return {"session_id": session_id, **counts, "notes": notes}


def snapshots_of(settings: Settings, seen: Projection) -> dict[str, Any]:
    """The retrieval snapshots of an input by their ids (S0.52): the replay of each, None where the principal may not read it."""
    return {name: _replayed(settings, name) for name in seen.model_input["snapshot_ids"]}


def _replayed(settings: Settings, name: str) -> Any:
    from ..reading.access import replayed

    with suppress(AccessError, StoreError, InputError):
        return replayed(settings, name)
    return None


def demonstration() -> Projection:
    """Round 9 of the bundled session (S3.61)."""
    folder = resources.files(f"{__name__.rsplit('.', 3)[0]}.data") / "context" / "round-9"
    with resources.as_file(folder) as place:
        return project_log(None, place / "round-9.jsonl", inputs=place / "inputs.yaml")[0]
