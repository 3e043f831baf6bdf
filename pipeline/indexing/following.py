"""What `index` is asked to read, and the folders that a corpus follows, which `freshness` reads again before each question.

Gives: `IndexRequest`, the inputs of an import; `remember` an import, `imports`, `followed`, `uncommitted`; `of_folder`, the settings with the
project that a folder belongs to, and `defaults_in`, the fields of a request made in a folder.

Note: files are compared by name, size and time, as Git does. Which folders, and how they are read, is kept in the state
folder of the user, by the path of the corpus: a repository cannot bring it.
"""

from __future__ import annotations

import glob
import hashlib
import os
import time
from array import array
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from ...nodes.errors import InputError
from ..config.grants import load_grants
from ..config.opening import corpus_of, head_of
from ..config.settings import Settings
from ..requests.fields import columns_named
from ..sources.git_commands import Git, work_tree_root
from ..sources.report import SourceReport
from ..sources.selection import Selection
from ..storage.durable import exists, make_folders, write_atomic
from ..storage.file_access import held
from ..storage.places import user_folder
from .report import IndexReport

FOLLOWS_NOTHING = (
    "edits are not read: this corpus follows no folder here. `index FOLDER` reads the one that it is in again and follows "
    "it; where it has several, `--source NAME` says which one that was"
)
_RACY = 100_000_000
"""Nanoseconds: a moment."""


@dataclass(frozen=True)
class IndexRequest:
    """The inputs of an import: work trees in `paths`, and records."""

    paths: tuple[Path, ...] = ()
    history: bool = False
    """Whether the Git history of `paths` is read, too."""
    read: tuple[tuple[str, str | Path], ...] = ()
    """Names of readers of records, including those of plugins, each with a file or folder; `mcp` with `NAME=COMMAND` or
    `NAME=URL`.
    """
    source: str | None = None
    selection: Selection = field(default_factory=Selection)
    """Which files of `paths` are read."""
    semantic: bool = True
    workers: int = 0
    """Processes that cut files and blobs; 0: as many as there are processors."""


def of_folder(settings: Settings, folder: Path | None) -> Settings:
    """The settings with a project for a folder, or for records if there is none: the one that is set, else the one that follows
    the folder; else the only one of the corpus, if that lies in the folder or follows none; else the folder's name.
    """
    if settings["project"]:
        return settings
    here, corpus, known = (folder or Path()).resolve(), settings["corpus"], imports(settings)
    held = {project for project, request, _ in known if here in request.paths}
    own = folder is None or not known or (isinstance(corpus, Path) and corpus.resolve().is_relative_to(here))
    if not held and own and head_of(settings) is not None:
        held = {*corpus_of(settings).projects()}
    return settings.having("name of the folder", project=held.pop() if len(held) == 1 else here.name)


@dataclass(frozen=True)
class Seen:
    """What an import found."""

    files: str
    """A digest of the names, sizes and times of its files and of their commit, before it read them."""
    settled: bool
    """Whether none of them had been written a moment before, and so may be written again at the same time of its clock."""
    head: str | None = None
    """The `head_of` the corpus after it."""
    uncommitted: bool = False
    """Whether files of its histories differ from what is committed."""


def remember(settings: Settings, request: IndexRequest, before: Seen, report: IndexReport) -> None:
    """Follow the work trees of an import from now on, read as they were in it; other inputs are read once. `before`: its
    files before it read them.
    """
    file = file_of(settings)
    if file is None or not request.paths or request.read:
        return
    made = replace(request, paths=tuple(path.resolve() for path in request.paths))
    seen = replace(before, head=head_of(settings), uncommitted=bool(report.rows.get("uncommitted")))
    with suppress(OSError):
        make_folders(file.parent)
        with held(file.with_suffix(".lock")):
            kept = [each for each in _kept(file) if each[0] != settings["project"] or not _replaced(each[1], made)]
            write_atomic(file, _followed().dump_json([*kept, (settings["project"], made, seen)]))


def _replaced(before: IndexRequest, after: IndexRequest) -> bool:
    """Whether an import reads all that another one read, or sources of the names of all its folders."""
    named = _folders(before).keys()
    return set(before.paths) <= set(after.paths) or bool(named and named <= _folders(after).keys())


def _folders(request: IndexRequest) -> dict[str, Path]:
    """The folders of an import by the names of their sources."""
    return {request.source or path.resolve().name: path for path in request.paths if path.is_dir()}


def expect_names(settings: Settings, request: IndexRequest) -> None:
    """Refuse a folder that has the name of another one in the project, unless the request names its source: each would end
    the other's rows.

    Raises:
        InputError: there is one, in the request or among those that the corpus follows.
    """
    if request.source is not None:
        return
    folders = {name: path for _, each, _ in imports(settings) for name, path in _folders(each).items()}
    for path in request.paths:
        name = path.resolve().name
        if path.is_dir() and not (other := folders.setdefault(name, path)).samefile(path):
            hint = f"name this one with `--source NAME`; `--source {name}` replaces the other"
            raise InputError(f"Expected folders of different names, got {other} - at {path}", hint=hint)


def with_its_source(settings: Settings, request: IndexRequest) -> IndexRequest:
    """The request with the source that its folder has in the corpus: the name under which it is followed or, where nothing
    is followed and the corpus lies in the folder, the only one of the project: the folder was moved or copied.
    """
    if request.source is not None or len(request.paths) != 1:
        return request
    folder, known = request.paths[0].resolve(), imports(settings)
    names = {each.source for _, each, _ in known if folder in each.paths}
    if not known and file_of(settings) is not None and settings["corpus"].resolve().is_relative_to(folder):
        names = folders_in(settings)
    return replace(request, source=names.pop()) if len(names) == 1 else request


def folders_in(settings: Settings) -> set[str]:
    """The names of the folders whose text the corpus has, as its sources name them."""
    if head_of(settings) is None:
        return set()
    evidence = corpus_of(settings).frame(settings["project"] and {settings["project"]}).evidence
    parts = [source.partition(":") for source in evidence["source_id"].unique().to_pylist()]
    return {name for kind, _, name in parts if kind in ("workspace", "git")}


def followed(settings: Settings) -> list[dict[str, Any]]:
    """What the corpus follows: project, folders, those of them that are gone, and whether all are as they were read.

    Raises:
        InputError: the files cannot be listed.
    """
    found = list[dict[str, Any]]()
    for project, request, seen in own_imports(settings):
        gone = [str(path) for path in request.paths if not path.exists()]
        current = not gone and seen_in(request).files == seen.files
        paths = [str(path) for path in request.paths]
        found.append({"project": project, "paths": paths, "gone": gone, "current": current})
    return found


def uncommitted(settings: Settings, shown: str | None) -> list[Path]:
    """The folders of the project but the one `shown` whose committed text alone is shown, although files in them differ."""
    return [
        path
        for _, request, seen in own_imports(settings)
        if seen.uncommitted
        for path in request.paths
        if str(path) != shown
    ]


def defaults_in(settings: Settings, folder: Path | None, request: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that a request made in a folder has unless it names them: the project and purpose of the settings, else
    of the principal's projects the one that follows the folder; of the work trees that its project follows, as workspace,
    so that edits show, the one with a history that the folder is in, else the only one; and as denied sources those read
    from other work trees of the repository that the folder is in. None are denied if the folder's own tree was not read,
    or if the request names sources. It depends on which fields a request names, and on its project.
    """
    named = columns_named(request)
    project = named.get("project") or settings["project"]
    if not project and folder and "project" not in named:
        project = _project_around(settings, folder.resolve())
    kept = [each for of, each, _ in _kept(file_of(settings)) if project in (None, of)]
    read = [(path, request) for request in kept for path in request.paths]
    trees = [path for path, request in read if request.history]
    around = [path for path in trees if folder and folder.resolve().is_relative_to(path)]
    tree = max(around, default=trees[0] if len(trees) == 1 else None)
    found = {
        "project": project,
        "purpose": settings["purpose"],
        "workspace_root": tree and str(tree),
        "denied_sources": _other_trees(read, folder) if folder and "allowed_sources" not in named else None,
    }
    return {name: value for name, value in found.items() if value and name not in named}


def _project_around(settings: Settings, folder: Path) -> str | None:
    """Of the projects that are granted to the principal, the one that follows the folder or the nearest around it."""
    around = [(path, of) for of, request, _ in own_imports(settings) for path in request.paths]
    around = [(path, of) for path, of in around if folder.is_relative_to(path)]
    nearest = {of for path, of in around if path == max(around)[0]}
    return nearest.pop() if len(nearest) == 1 else None


def _other_trees(read: Sequence[tuple[Path, IndexRequest]], folder: Path) -> list[str]:
    found = list[tuple[str, Git]]()
    for path, request in read if len(read) > 1 else ():
        with suppress(InputError):  # no repository, or one that Git refuses
            git, name = Git(path), request.source
            found.append((git.source_id(name) if request.history else f"workspace:{name or path.name}", git))
    here = work_tree_root(folder)
    own = {git.repository for _, git in found if git.root == here}
    return sorted({glob.escape(source) for source, git in found if git.root != here and git.repository in own})


def seen_in(request: IndexRequest) -> Seen:
    """The files that an import reads, as they are now.

    Raises:
        InputError: they cannot be listed.
    """
    now, newest, found = time.time_ns(), 0, array("q")
    digest = hashlib.sha256(str((request.history, request.selection)).encode())
    for root in (path.resolve() for path in request.paths):
        if request.history:
            digest.update(str(Git(root).branch()).encode())
        here = os.fsencode(root)
        for below in request.selection.files(root, SourceReport()) if root.is_dir() else [b""]:
            name = b"%b/%b" % (here, below) if below else here
            try:
                of = os.lstat(name)
            except OSError:  # it is gone, or in a folder that may not be entered
                continue
            modified, changed = of.st_mtime_ns, of.st_ctime_ns
            newest = max(newest, modified, changed)
            found.extend((of.st_size, modified, changed))
            digest.update(name + b"\0")
    digest.update(found)
    return Seen(digest.hexdigest(), newest <= now - _RACY)


def file_of(settings: Settings) -> Path | None:
    """Where it is kept what a corpus follows; None for one on an object store or without a state folder."""
    if isinstance(settings["corpus"], Path):
        with suppress(InputError):
            name = hashlib.sha256(os.fsencode(settings["corpus"].resolve())).hexdigest()
            return user_folder("state") / "followed" / f"{name}.json"
    return None


def imports(settings: Settings) -> list[tuple[str, IndexRequest, Seen]]:
    """Projects and imports that the corpus follows, and what the last of each found: those of the project that is set, if
    one is.
    """
    return [each for each in _kept(file_of(settings)) if settings["project"] in (None, each[0])]


def own_imports(settings: Settings) -> list[tuple[str, IndexRequest, Seen]]:
    """The `imports` of the projects that the principal may ask in."""
    grants = settings.grants_path
    mine = load_grants(grants).projects(settings.principal) if exists(grants) else ()
    return [each for each in imports(settings) if each[0] in mine]


def _kept(file: Path | None) -> list[tuple[str, IndexRequest, Seen]]:
    with suppress(FileNotFoundError, ValueError):  # a file that cannot be read follows nothing
        return [] if file is None else _followed().validate_json(file.read_bytes())
    return []


@cache
def _followed() -> TypeAdapter[list[tuple[str, IndexRequest, Seen]]]:
    return TypeAdapter(list[tuple[str, IndexRequest, Seen]])
