"""The basis of a run besides its requests: digests of code, corpus, policies, grants, models and settings."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib import metadata, resources
from importlib.resources.abc import Traversable

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.blocks.token_counting import BASE
from ...nodes.columns.digests import FORM, named_digest
from ...nodes.tables import PROVENANCE
from ...nodes.text.text_analysis import ANALYZERS
from ..redaction.masking import REDACTOR

PACKAGES = ("apache-hamilton", "numpy", "pandas", "pyarrow", "PyStemmer")
"""Packages whose versions may affect results; a manifest lists them, a digest does not cover them."""


_version = lru_cache(metadata.version)
"""Read once: a process keeps its loaded packages."""


def package_versions() -> dict[str, str]:
    """Versions of the packages that results depend on."""
    return {name: _version(name) for name in PACKAGES}


@lru_cache(maxsize=1)
def code_digest() -> str:
    """SHA-256 over the names and sources of this package's modules: what a snapshot depends on, and the commands too."""
    package = __name__.rsplit(".", 3)[0]
    folders = ((name, resources.files(f"{package}.{name}")) for name in ("nodes", "pipeline"))
    sources = (pair for name, folder in folders for pair in sources_below(folder, name))
    return named_digest({name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in sources})


def sources_below(folder: Traversable, name: str) -> Iterator[tuple[str, Traversable]]:
    """Every source in the folder of a package and below, by dotted name; a module comes after a package of its name."""
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        stem, dot, ending = entry.name.partition(".")
        if not dot and entry.is_dir():
            yield from sources_below(entry, f"{name}.{stem}")
        elif ending == "py":
            yield (name if stem == "__init__" else f"{name}.{stem}"), entry


def code_of_line(plugins: str) -> str:
    """The digest of the package's code and of its plugins' (a digest; empty without plugins)."""
    return named_digest({"package": code_digest(), "plugins": plugins}) if plugins else code_digest()


def parts_of(provenance: pa.Table) -> dict[str, str]:
    """PROVENANCE by part."""
    return dict(zip(provenance["part"].to_pylist(), provenance["value"].to_pylist(), strict=True))


def provenance(
    *,
    generation: str,
    policies: str,
    grants: str,
    encoder: str | None,
    settings: Mapping[str, object],
    cross_encoder: str | None = None,
    plugins: str = "",
) -> pa.Table:
    """PROVENANCE of a run, by part. `policies` and `grants` are digests of the files that were read; `plugins` is that
    of the code of plugins, which is part of the run's code.

    Without a cross-encoder there is no part of that name.
    """
    parts = {
        "analyzers": ",".join(sorted(ANALYZERS)),
        "code": code_of_line(plugins),
        **({"cross_encoder": cross_encoder} if cross_encoder is not None else {}),
        "digest": FORM,
        "encoder": encoder or "none",
        "generation": generation,
        "grants": grants,
        "policies": policies,
        "redactor": REDACTOR,
        "settings": named_digest({name: str(value) for name, value in settings.items()}),
        "tokenizer": BASE,
    }
    return PROVENANCE.build({"part": list(parts), "value": list(parts.values())})


def with_part(provenance: pa.Table, part: str, value: str) -> pa.Table:
    """The provenance with a new value of one part."""
    value = pc.if_else(pc.equal(provenance["part"], part), pa.scalar(value), provenance["value"])
    return provenance.set_column(1, provenance.schema.field("value"), value)


def difference(staged: pa.Table, now: pa.Table) -> str | None:
    """The first part of two provenances that differs; None if they are the same."""
    before, after = parts_of(staged), parts_of(now)
    return next((part for part in sorted(before | after) if before.get(part) != after.get(part)), None)
