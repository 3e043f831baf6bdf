"""The digest of the code that decides what a snapshot holds: the modules of the line, and those that make its inputs.

Reads: the sources of this package. Gives: `code_digest`, a part of PROVENANCE, and `modules`, the names that it covers.

What one would otherwise get wrong: a module counts because something imports it, not because of its folder. `answer_checks`
lies in `nodes/` and moves no snapshot; `tokenizers` lies in `pipeline/` and does. Imports are read off the sources, so the
digest does not depend on what a process has loaded.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from ..nodes.digests import named_digest

INPUTS = (
    "commits", "corpus.frame", "corpus.postings", "corpus.vectors", "cross_encoder", "encoder", "grants", "policies",
    "requests",
)  # fmt: skip
"""Modules of `pipeline` that make the inputs of the line: rows with postings and vectors, requests, grants, policies."""

BESIDE = ("corpus", "corpus.identity", "corpus.incoming", "durable", "locks", "places")
"""Modules of `pipeline` that those import, and that decide what a generation holds, which its id says, or where files lie."""

_IMPORT = re.compile(r"^[ \t]*from[ \t]+(\.+)([\w.]*)[ \t]+import[ \t]+(?:\(([^)]*)\)|(.*))", re.MULTILINE)
"""A relative import, as the formatter writes it; a test holds this against the parser, which takes a hundred times as long."""


@lru_cache(maxsize=1)
def code_digest() -> str:
    """SHA-256 over the names and sources of `modules` of this package."""
    from .driver import STEPS

    package = __name__.rsplit(".", 2)[0]
    return digest_of({name: resources.files(f"{package}.{name}") for name in ("nodes", "pipeline")}, STEPS)


def digest_of(folders: Mapping[str, Traversable | Path], steps: Collection[str]) -> str:
    """SHA-256 over names and sources, for the packages `nodes` and `pipeline` in these folders."""
    sources = modules(folders, steps)
    return named_digest({name: hashlib.sha256(source).hexdigest() for name, source in sources.items()})


def modules(folders: Mapping[str, Traversable | Path], steps: Collection[str]) -> dict[str, bytes]:
    """The sources that decide digests, by dotted name, sorted: the step modules, the driver, `INPUTS`, and what they import."""
    beside = {f"pipeline.{name}" for name in BESIDE}
    found: dict[str, bytes] = {}
    wanted = [f"nodes.{step}" for step in steps] + [f"pipeline.{name}" for name in ("driver", *INPUTS)]
    while wanted:
        name = wanted.pop()
        if name in found or name in beside:
            continue
        file = _file(folders, name)
        if file is not None:
            found[name] = file.read_bytes()
            package = name if file.name == "__init__.py" else name.rpartition(".")[0]
            wanted += _imported(found[name].decode(), package)
    return dict(sorted(found.items()))


def _file(folders: Mapping[str, Traversable | Path], name: str) -> Traversable | Path | None:
    """The source of a module or package; None if nothing has that name, as the names in a module have not."""
    top, *below = name.split(".")
    if top not in folders:
        return None
    *parents, last = below or ["__init__"]
    folder = folders[top]
    for parent in parents:
        folder = folder / parent
    file = folder / f"{last}.py"
    package = folder / last / "__init__.py"
    return file if file.is_file() else package if package.is_file() else None


def _imported(source: str, package: str) -> Iterator[str]:
    """The modules that a module of a package may import: each that it names, and each name that it takes from one."""
    for dots, module, listed, rest in _IMPORT.findall(source):
        above = package.split(".")
        base = [*above[: len(above) + 1 - len(dots)], *(module.split(".") if module else [])]
        yield ".".join(base)
        names = re.sub(r"#.*", "", listed or rest).split(",")
        yield from (".".join([*base, name.split(" as ")[0].strip()]) for name in names if name.strip())
