"""Flags that several commands take, declared once."""

from __future__ import annotations

from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = [
    "ADOPT",
    "PROFILE",
    "CaptureFlag",
    "CorpusFlag",
    "GrantsFlag",
    "JsonFlag",
    "LanesFlag",
    "PresetFlag",
    "ProjectFlag",
    "RunsFlag",
    "WeightsFlag",
    "settings_of",
]

CorpusFlag = Annotated[str | None, typer.Option("--corpus", metavar="DIR", help="Folder or URL of the corpus.")]
RunsFlag = Annotated[str | None, typer.Option("--runs", metavar="DIR", help="Folder or URL of the runs.")]
GrantsFlag = Annotated[str | None, typer.Option("--grants", metavar="FILE", help="Grants file.")]
ProjectFlag = Annotated[
    str | None, typer.Option("--project", metavar="P", help="Project to search; default: your only one.")
]
LanesFlag = Annotated[str | None, typer.Option("--lanes", metavar="A,B", help="Recall lanes to use, comma separated.")]
PresetFlag = Annotated[
    Path | None, typer.Option("--preset", metavar="FILE", help="Request fields that bound every request: JSON or YAML.")
]
CaptureFlag = Annotated[
    bool,
    typer.Option(
        "--capture-withheld",
        help="For auditors: store the ids and gates of the best matches out of scope in a separate file.",
    ),
]
WeightsFlag = Annotated[
    str | None, typer.Option("--weights", metavar="FILE", help="Weights that `tune` fitted, or document-000.")
]
PROFILE: ContextVar[str | None] = ContextVar("profile", default=None)
"""The flag `--profile`, which comes before the command, so no command passes it on."""
ADOPT: ContextVar[bool] = ContextVar("adopt", default=False)
"""The flag `--adopt`, which comes before the command, too."""
_WRITER = {"corpus": "index", "runs": "run"}
JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def settings_of(**flags: Any) -> Any:
    """The settings with the flags of a command; None for a flag that was not given.

    Raises:
        InputError: a setting is invalid, or the command's corpus or runs are a file.
        StoreError: they came with the folder, and the user did not adopt them.
    """
    from ...nodes.errors import InputError
    from ..config.opening import adopt, expect_known, expect_untracked
    from ..config.settings import load_settings
    from .output import note

    settings = load_settings(flags | {"profile": PROFILE.get()})
    if settings.ignored:
        note(f"{settings.ignored} is not read: it is for a corpus and runs in its folder, and others are named")
    for name in ("corpus", "runs"):
        if name in flags and settings[name].is_file():
            hint = f"--{name} names the folder that `{_WRITER[name]}` writes, not a file in it."
            raise InputError.described("a folder", "a file", f"{settings.origin(name)}: {settings[name]}", hint=hint)
        if name in flags:
            if ADOPT.get():
                adopt(settings, name)
            else:
                expect_untracked(settings, name)
            expect_known(settings, name)
    return settings
