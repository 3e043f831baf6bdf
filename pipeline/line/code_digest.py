"""The digest of the code behind a snapshot: the modules of the line, and those that make its inputs.

Reads: the sources of this package. Gives: `code_digest`, a part of PROVENANCE, and `modules`, the names that it covers.

Note: a module is included because it is imported, not because of its folder. `answers` is in `nodes/` and affects no
snapshot; `tokenizers` is in `pipeline/` and does. Imports are parsed from the sources, so the digest does not depend on
the modules loaded in a process.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from ...nodes.columns.digests import named_digest

INPUTS = (
    "config.grants", "config.policies.tables", "config.policies.weight_files", "corpus.frame", "corpus.postings", "corpus.vectors",
    "encoders.cross_encoder", "encoders.encoder", "requests.resolver", "requests.resolve",
)  # fmt: skip
"""Modules of `pipeline` that make the inputs of the line: rows with postings and vectors, requests, grants, policies."""

BESIDE = ("corpus", "corpus.identity", "corpus.incoming", "storage.durable", "storage.file_access", "storage.places")
"""Excluded modules imported by those: they determine the content of a generation, which its id covers, or file
paths."""

_IMPORT = re.compile(r"^[ \t]*from[ \t]+(\.+)([\w.]*)[ \t]+import[ \t]+(?:\(([^)]*)\)|(.*))", re.MULTILINE)
"""A relative import, as the formatter writes it; a test compares it with the parser, which is 100 times slower."""


@lru_cache(maxsize=1)
def code_digest() -> str:
    """SHA-256 over the names and sources of `modules` of this package."""
    from .driver import STEPS

    package = __name__.rsplit(".", 3)[0]
    return digest_of({name: resources.files(f"{package}.{name}") for name in ("nodes", "pipeline")}, STEPS)


def digest_of(folders: Mapping[str, Traversable | Path], steps: Collection[str]) -> str:
    """SHA-256 over names and sources, for the packages `nodes` and `pipeline` in these folders."""
    sources = modules(folders, steps)
    return named_digest({name: hashlib.sha256(source).hexdigest() for name, source in sources.items()})


def modules(folders: Mapping[str, Traversable | Path], steps: Collection[str]) -> dict[str, bytes]:
    """The sources in the digest, by dotted name, sorted: the step modules, the driver, `INPUTS`, and their imports."""
    files = dict(pair for name, folder in folders.items() for pair in sources_below(folder, name))
    beside = {f"pipeline.{name}" for name in BESIDE}
    found: dict[str, bytes] = {}
    wanted = [f"nodes.{step}" for step in steps] + [f"pipeline.{name}" for name in ("line.driver", *INPUTS)]
    while wanted:
        name = wanted.pop()
        if name in found or name in beside or name not in files:  # most imported names are not modules
            continue
        found[name] = files[name].read_bytes()
        package = name if files[name].name == "__init__.py" else name.rpartition(".")[0]
        wanted += _imported(found[name].decode(), package)
    return dict(sorted(found.items()))


def sources_below(folder: Traversable | Path, name: str) -> Iterator[tuple[str, Traversable | Path]]:
    """Every source in the folder of a package and below, by dotted name; a module comes after a package of its name."""
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        stem, dot, ending = entry.name.partition(".")
        if not dot and entry.is_dir():
            yield from sources_below(entry, f"{name}.{stem}")
        elif ending == "py":
            yield (name if stem == "__init__" else f"{name}.{stem}"), entry


def _imported(source: str, package: str) -> Iterator[str]:
    """The modules that a module of a package may import: each module named, and each name imported from one."""
    for dots, module, listed, rest in _IMPORT.findall(source):
        above = package.split(".")
        base = [*above[: len(above) + 1 - len(dots)], *(module.split(".") if module else [])]
        yield ".".join(base)
        names = re.sub(r"#.*", "", listed or rest).split(",")
        yield from (".".join([*base, name.split(" as ")[0].strip()]) for name in names if name.strip())
