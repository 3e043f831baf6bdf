"""The basis of a run besides its requests: digests of code, corpus, policies, grants, models and settings."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib import metadata

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.blocks.token_counting import BASE
from ...nodes.columns.digests import FORM, named_digest
from ...nodes.tables import PROVENANCE
from ...nodes.text.text_analysis import ANALYZERS
from ..redaction.masking import REDACTOR
from .code_digest import code_digest

PACKAGES = ("apache-hamilton", "numpy", "pandas", "pyarrow", "PyStemmer")
"""Packages whose versions may affect results; a manifest lists them, a digest does not cover them."""


_version = lru_cache(metadata.version)
"""Read once: a process keeps its loaded packages."""


def package_versions() -> dict[str, str]:
    """Versions of the packages that results depend on."""
    return {name: _version(name) for name in PACKAGES}


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
        "code": named_digest({"package": code_digest(), "plugins": plugins}) if plugins else code_digest(),
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
    before, after = (dict(zip(t["part"].to_pylist(), t["value"].to_pylist(), strict=True)) for t in (staged, now))
    return next((part for part in sorted(before | after) if before.get(part) != after.get(part)), None)
