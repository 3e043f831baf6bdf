"""Plugins: gates, lanes, score terms and readers that other packages provide through entry points.

Gives: `installed`, the objects of the plugins that the setting `plugins` names, and the classes for writing one, so a
plugin needs only this module. `docs/how-to/extend.md` walks through one of each.

Note: an installed plugin does nothing until it is named. The digest of its code is part of the code digest of a
snapshot, so a run with a plugin is never mistaken for one without.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from ..nodes.errors import InputError
from ..nodes.lanes import Lane
from ..nodes.plugins import ASKED, NO_PLUGINS, LaneScope, Plugins, Scored, check_names
from ..nodes.score_terms import ScoreTerm
from ..nodes.walls.gate import PLUGIN_REASON, Canary, Case, Gate, Ground, Opening
from .sources.readers import SourceReader

__all__ = [
    "ASKED",
    "NO_PLUGINS",
    "PLUGIN_REASON",
    "Canary",
    "Case",
    "Gate",
    "Ground",
    "InputError",
    "Installed",
    "Lane",
    "LaneScope",
    "Opening",
    "Plugins",
    "ScoreTerm",
    "Scored",
    "SourceReader",
    "code_of",
    "installed",
    "is_installed",
    "plugins_of",
    "with_digest",
]

_KINDS = {"gates": Gate, "lanes": Lane, "score_terms": ScoreTerm, "readers": SourceReader}
"""The types that an entry point of each group has."""
_INSTALLED = re.compile(r"(^|/)\.|\.dist-info/|\.egg-info/|\.py[co]$|\.pth$")
"""Hidden files, metadata and scripts that an installer writes, and compiled code; they differ between machines."""


@dataclass(frozen=True)
class Installed:
    """The objects of some plugins, for the line and for imports."""

    line: Plugins = NO_PLUGINS
    readers: tuple[SourceReader, ...] = ()


def installed(names: Collection[str]) -> Installed:
    """The objects of the plugins with these names; an entry point `acme.embargo` belongs to the plugin `acme`.

    Raises:
        InputError: a plugin is not installed, does not load, or an object is not of the type of its group.
    """
    if not names:
        return Installed()
    found = {group: _objects(group, kind, names) for group, kind in _KINDS.items()}
    known = {one.name.partition(".")[0] for objects in found.values() for one in objects}
    if missing := sorted(set(names) - known):
        hint = "install the package whose entry points scoped_retrieval.gates, .lanes, .score_terms or .readers have it"
        raise InputError.described("plugins that are installed", f"no {missing[0]}", "plugins", hint=hint)
    check_names([one.name for one in found["readers"]], "readers")
    line = with_digest(Plugins(found["gates"], found["lanes"], found["score_terms"]))
    return Installed(line, found["readers"])


def is_installed(plugins: Plugins) -> bool:
    """Whether the installed plugins of these names are the same, by digest."""
    try:
        return installed(plugins.names).line.digest == plugins.digest
    except InputError:
        return False


def plugins_of(run: Any) -> Plugins:
    """The plugins that a run used, as installed now.

    Raises:
        InputError: a plugin of the run is not installed.
    """
    named = run.settings.get("plugins")
    return installed(named.split(",") if named else ()).line


def with_digest(plugins: Plugins) -> Plugins:
    """The plugins with the digest of their code."""
    if not plugins or plugins.digest:
        return plugins
    return replace(plugins, digest=code_of((*plugins.gates, *plugins.lanes, *plugins.score_terms)))


def code_of(objects: Iterable[Any]) -> str:
    """SHA-256 over the declarations of some objects and every file of the distributions that define their functions;
    those of this package are covered anyway.

    Raises:
        InputError: a function has no source file.
    """
    declarations, roots, sources = list[str](), dict[str, str](), dict[str, bytes]()
    for one in objects:
        declarations.append(_declared(one))
        roots |= {_root(function): one.name for function in _functions(one)}
    roots.pop(__name__.partition(".")[0], None)
    for root, name in roots.items():
        sources |= dict(_files(root, name))
    digests = [f"{name} {hashlib.sha256(data).hexdigest()}" for name, data in sorted(sources.items())]
    return hashlib.sha256("\n".join([*sorted(declarations), *digests]).encode()).hexdigest()


def _objects(group: str, kind: type[Any], names: Collection[str]) -> tuple[Any, ...]:
    """The objects of the entry points `scoped_retrieval.GROUP` that belong to some plugins, by name."""
    entries = sorted(entry_points(group=f"scoped_retrieval.{group}"), key=lambda entry: entry.name)
    return tuple(_loaded(entry, kind) for entry in entries if entry.name.partition(".")[0] in names)


def _loaded(entry: EntryPoint, kind: type[Any]) -> Any:
    at = f"{entry.group}: {entry.name}"
    try:
        one = entry.load()
    except Exception as error:  # third-party code may raise anything
        raise InputError.described("a plugin that loads", f"{type(error).__name__}: {error}", at) from error
    if not isinstance(one, kind):
        raise InputError.of_kind(f"a {kind.__name__}", one, at)
    if one.name != entry.name:
        raise InputError.expected(f"an entry point of the name {one.name!r}", entry.name, at)
    return one


def _declared(one: Any) -> str:
    """The declaration of an object, without its functions."""
    values = {field.name: getattr(one, field.name) for field in fields(one)}
    plain = {name: value for name, value in values.items() if not callable(value) and name != "canaries"}
    return f"{type(one).__name__} {sorted(plain.items())}"


def _functions(one: Any) -> Iterator[Callable[..., Any]]:
    for field in fields(one):
        value = getattr(one, field.name)
        if callable(value):
            yield value
        elif isinstance(value, tuple):
            for part in value:
                yield from _functions(part) if is_dataclass(part) else ()


def _root(function: Any) -> str:
    """The package or module that defines a function."""
    while hasattr(function, "func"):  # partial
        function = function.func
    return (getattr(function, "__module__", None) or type(function).__module__).partition(".")[0]


def _files(root: str, name: str) -> Iterator[tuple[str, bytes]]:
    """Every file of a package or module, and of the distributions whose plugins it defines, by relative path; what an
    installer adds is left out.
    """
    package = sys.modules.get(root) or import_module(root)
    if folders := getattr(package, "__path__", None):
        found = [
            (f"{root}/{file.relative_to(folder).as_posix()}", file)
            for folder in folders
            for file in Path(folder).rglob("*")
        ]
    elif file := getattr(package, "__file__", None):
        found = [(Path(file).name, Path(file))]
    else:
        raise InputError.described("a module with a source file", root, name)
    entries = [entry for group in _KINDS for entry in entry_points(group=f"scoped_retrieval.{group}")]
    for dist in (entry.dist for entry in entries if entry.dist and entry.module.partition(".")[0] == root):
        found += [(str(file), Path(str(file.locate()))) for file in dist.files or ()]
    for path, file in found:
        if not _INSTALLED.search(path) and file.is_file():
            yield path, file.read_bytes()
