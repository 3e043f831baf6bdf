"""Ids of runs and snapshots: unique, and in order of time when sorted as text.

A snapshot id carries its run's token and its number in the run (`retr-snap-<token>-0007`), so it leads to its run.
Ids are envelope: they are in no block and in no digest.
"""

from __future__ import annotations

import re
import secrets
from datetime import datetime

from ...nodes.errors import InputError

_DIGITS = "0123456789abcdefghijklmnopqrstuv"
_TOKEN = "[0-9a-v]{18}"
RUN_ID = re.compile(f"run-(?P<token>{_TOKEN})")
SNAPSHOT_ID = re.compile(f"retr-snap-(?P<token>{_TOKEN})-(?P<number>[0-9]{{4,}})")


def new_run_id(now: datetime) -> str:
    """`run-` and 18 characters: milliseconds since 1970 (10 characters), then 40 random bits."""
    milliseconds = int(now.timestamp() * 1000)
    return f"run-{_base32(milliseconds, 10)}{_base32(secrets.randbits(40), 8)}"


def snapshot_id(run_id: str, number: int) -> str:
    """The id of the run's snapshot `number`, from 1."""
    return f"retr-snap-{run_id.removeprefix('run-')}-{number:04d}"


def is_snapshot(id_: str) -> bool:
    """Whether an id has the prefix of snapshot ids."""
    return id_.startswith("retr-snap-")


def run_named(id_: str) -> str:
    """The run id of a run or snapshot id; any other id unchanged.

    Raises:
        InputError: the id has the prefix of snapshot ids but is invalid.
    """
    return run_of(id_) if is_snapshot(id_) else id_


def run_of(snapshot: str) -> str:
    """The run id of a snapshot id.

    Raises:
        InputError: it is not a snapshot id.
    """
    match = SNAPSHOT_ID.fullmatch(snapshot)
    if not match:
        raise InputError.expected("a snapshot id such as retr-snap-<token>-0007", snapshot, "snapshot")
    return f"run-{match['token']}"


def _base32(value: int, width: int) -> str:
    return "".join(_DIGITS[(value >> shift) & 31] for shift in range(5 * (width - 1), -1, -5))
