"""Flags that several commands take, declared once, and the settings with the global options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .global_options import given
from .output import note

__all__ = [
    "PresetFlag",
    "SetFlag",
    "fields_of",
    "given",
    "named",
    "pairs_of",
    "settings_of",
]

PresetFlag = Annotated[
    Path | None, typer.Option("--preset", metavar="FILE", help="Request fields that bound every request: JSON or YAML.")
]
SetFlag = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="FIELD=VALUE",
        help="A field of the request, e.g. denied_sources=external, time.as_of=2026-01-01T00:00:00Z; lists with `;`.",
    ),
]
_WRITER = {"corpus": "index", "runs": "run"}


def pairs_of(given: list[str] | None, flag: str = "--set") -> list[tuple[str, str]]:
    """The names and values of a flag such as `--set`."""
    from ...nodes.errors import InputError

    pairs = [pair.partition("=") for pair in given or ()]
    if wrong := [name for name, equals, _ in pairs if not (name and equals)]:
        raise InputError.expected("NAME=VALUE", wrong[0], flag)
    return [(name, value) for name, _, value in pairs]


def fields_of(given: list[str] | None) -> dict[str, Any]:
    """The fields of a request and their values in `--set`.

    Raises:
        InputError: a pair has another form, or a field is given twice.
    """
    from ...nodes.errors import InputError
    from ..requests.files import cell

    pairs = pairs_of(given)
    found = {name.strip(): cell(name.strip(), value.strip()) for name, value in pairs}
    if len(found) < len(pairs):
        raise InputError.described("each field once", "one twice", "--set")
    return found


def named(settings: Any, name: str) -> tuple[str, str]:
    """What an id means, a snapshot, a run or a model input, and the id itself for a name such as `@`.

    Raises:
        AccessError: there is no such snapshot that the principal may read.
    """
    from ..reading.across_runs import snapshot_named
    from ..runs.ids import is_snapshot

    name = snapshot_named(settings, name)
    return "snapshot" if is_snapshot(name) else "run" if name.startswith("run-") else "input", name


def settings_of(*stores: str, **flags: Any) -> Any:
    """The settings with the global options and the flags of a command, which reads or writes these stores.

    Raises:
        InputError: a setting is invalid, or a store is a file.
        StoreError: a store came with the folder, and the user did not adopt it.
    """
    from ...nodes.errors import InputError
    from ..config.opening import adopt, expect_known, expect_untracked
    from ..config.settings import load_settings

    shared = {name: given(name) for name in ("corpus", "runs", "grants", "project", "profile")}
    settings = load_settings(shared | flags, chosen=dict(pairs_of(given("configured"), "-c")))
    if settings.ignored:
        note(f"{settings.ignored} is not read: it is for a corpus and runs in its folder, and others are named")
    for name in stores:
        if settings[name].is_file():
            hint = f"--{name} names the folder that `{_WRITER[name]}` writes, not a file in it."
            raise InputError.described("a folder", "a file", f"{settings.origin(name)}: {settings[name]}", hint=hint)
        if given("adopt"):
            adopt(settings, name)
        else:
            expect_untracked(settings, name)
        expect_known(settings, name)
    return settings
