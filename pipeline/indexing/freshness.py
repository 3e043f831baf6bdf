"""Freshness: what `index` read is read again before each question, so that no answer is older than the files; a folder
without a corpus gets one at its first question.

Note: a corpus that another user or machine indexes is read as it is, and so is every corpus if the setting `fresh` is
off. Rows that get no vectors at a question get them at the next `index`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...nodes.errors import InputError, StoreError
from ..config.opening import head_of
from ..config.settings import Settings
from ..progress import Say
from .following import (
    FOLLOWS_NOTHING,
    IndexRequest,
    file_of,
    folders_in,
    imports,
    of_folder,
    remember,
    seen_in,
    with_its_source,
)
from .report import IndexReport


def up_to_date(
    settings: Settings, *, progress: bool, say: Say, warn: Callable[[str, str], None] | None = None, make: bool = True
) -> Settings:
    """Read again what the corpus follows; with `make`, where a folder has no corpus, read its work tree. `warn`, else `say`, learns
    why an answer in a project may be older than its files.

    Raises:
        InputError, StoreError: the folder has no corpus, and none can be made of it.
    """
    if not settings["fresh"] or file_of(settings) is None:
        return settings
    if make and makes_corpus(settings):
        from ..encoders.encoder import encoder_available

        folder = settings["corpus"].parent.parent
        settings = of_folder(settings, folder)
        request = IndexRequest(paths=(folder,), semantic=False)
        vectors = "; `index` also makes vectors" if encoder_available()[0] else ""
        say(f"reading {folder} as project {settings['project']}{vectors}")
        say(index_followed(settings, request, progress=progress).text().rstrip())
        return settings
    followed = imports(settings)
    if not followed and settings.origin("corpus") == "default" and folders_in(settings):
        say(FOLLOWS_NOTHING)
    tell = warn or (lambda _, text: say(text))
    for project, request, seen in followed:
        if gone := [str(path) for path in request.paths if not path.exists()]:
            tell(project, f"warning: the answer may be of files that are gone: {project} follows {', '.join(gone)}")
            continue
        own = settings.having("followed", project=project)
        try:
            if not seen.settled or (seen.files, seen.head) != (seen_in(request).files, head_of(settings)):
                index_followed(own, request, semantic=False, progress=progress, grant=False)
        except (InputError, StoreError) as error:
            tell(project, f"warning: the answer may be older than the files of {project}: {error.message}")
    return settings


def index_followed(settings: Settings, request: IndexRequest, *, semantic: bool = True, **how: Any) -> IndexReport:
    """`index_into` of a request with the source that its folder had, whose files are followed from now on; without `semantic`, no vectors are made this time."""
    from .importing import index_into  # parsers and readers: a question needs none where nothing changed

    request = with_its_source(settings, request)
    before = seen_in(request)
    report = index_into(settings, replace(request, semantic=request.semantic and semantic), **how)
    remember(settings, request, before, report)
    return report


def makes_corpus(settings: Settings) -> bool:
    """Whether the first question makes a corpus of the folder that it is asked in: there is none, and the folder is not a
    home, all of which no question means.
    """
    if not settings["fresh"] or settings.origin("corpus") != "default" or head_of(settings) is not None:
        return False
    return settings["corpus"].parent.parent not in (Path.home(), *Path.home().parents)
