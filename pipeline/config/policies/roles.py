"""Role overlays as the tables that the line reads.

Reads: overlay files, the bundled ones and a user's own. Gives: `Roles` (ROLE_POLICIES, ROLE_RULES and a digest). A file
of the same role id in the user's folder replaces the bundled one; the file's name is the role id.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import pyarrow as pa

from ....nodes.errors import PolicyError
from ....nodes.tables import ROLE_POLICIES, ROLE_RULES
from ....nodes.vocabulary import AUTHORITY
from ...parsing.quoting import shown_key
from .overlays import OverlayFile, RoleOverlay, read_overlay

__all__ = ["NO_ROLES", "Roles", "load_roles", "roles_of"]


@dataclass(frozen=True)
class Roles:
    """The overlays of a run and the SHA-256 over their files."""

    policies: pa.Table
    rules: pa.Table
    digest: str

    @property
    def names(self) -> list[str]:
        """The ids of the roles, sorted."""
        return self.policies["role"].to_pylist()

    def max_age_days(self, role: str | None) -> float | None:
        """The age from which a row is stale under a role; None if the role has no such age or no overlay."""
        return max_age_days(self.policies, role)


def load_roles(folder: Path | None = None) -> Roles:
    """The bundled overlays, replaced or extended by those of `folder/roles/*.json`.

    Raises:
        PolicyError: a file is not an overlay, or its name is not its role id.
    """
    package = f"{__name__.rpartition('.pipeline')[0]}.data"
    bundled = resources.files(package).joinpath("policies", "roles")
    files = {file.name: (file, f"policies/roles/{file.name}") for file in bundled.iterdir() if _is_overlay(file.name)}
    if folder is not None:
        files |= {file.name: (file, str(file)) for file in sorted(folder.glob("roles/*")) if _is_overlay(file.name)}
    found = []
    for name, (file, at) in sorted(files.items()):
        one = read_overlay(file, at)
        if one.overlay.role_id != name.removesuffix(".json"):
            raise PolicyError(
                f"Expected {name.removesuffix('.json')}, got '{shown_key(one.overlay.role_id)}'",
                at=f"{at}: role_id",
                hint="the file name determines it",
            )
        found.append(one)
    return roles_of(found)


def roles_of(overlays: Iterable[OverlayFile]) -> Roles:
    """The tables of some overlays, one per role id."""
    files = sorted(overlays, key=lambda file: file.overlay.role_id)
    digest = hashlib.sha256("".join(f"{f.overlay.role_id}:{f.digest}\n" for f in files).encode()).hexdigest()
    rules = [rule for file in files for rule in _rules(file.overlay)]
    rules.sort(key=lambda rule: tuple(rule[name] for name in ROLE_RULES.order))
    return Roles(ROLE_POLICIES.from_rows([_row(file) for file in files]), ROLE_RULES.from_rows(rules), digest)


def max_age_days(role_policies: pa.Table, role: str | None) -> float | None:
    """The maximum ages in ROLE_POLICIES, such as those of a stored run."""
    limits = zip(*(role_policies[name].to_pylist() for name in ("role", "freshness_max_age_days")), strict=True)
    return dict(limits).get(role)


def _is_overlay(name: str) -> bool:
    return name.endswith(".json")


def _row(file: OverlayFile) -> dict[str, Any]:
    """The columns of a role: the fields of the parts of its overlay that have their names, and those renamed here."""
    content = file.overlay.model_dump()
    parts = [content, *(part for part in content.values() if isinstance(part, dict))]
    stated = {name: value for part in parts for name, value in part.items() if name in ROLE_POLICIES.columns}
    return stated | {
        "role": file.overlay.role_id,
        "version": file.digest[:16],
        **{f"weight_{name}": weight for name, weight in content["retrieval_policy"]["weights"].items()},
        "required_evidence": file.overlay.synthesis_policy.required_evidence_kinds,
    }


def _rules(overlay: RoleOverlay) -> list[dict[str, Any]]:
    sources, role = overlay.source_policy, overlay.role_id
    rules: dict[tuple[str, str], dict[str, Any]] = {}
    for source in sources.preferred_sources:
        rules["preferred_source", source.pattern] = {"boost": source.boost, "reason": source.reason}
    for tier, boost in sources.trust_tier_boosts.items():
        rules["trust_tier", str(AUTHORITY.values.index(tier))] = {"boost": boost}
    for name, boost in sources.document_type_boosts.items():
        rules["document_type", name] = {"boost": boost}
    for name, boost in sources.domain_boosts.items():
        rules["domain", name] = {"boost": boost}
    for word, others in overlay.vocabulary.synonyms.items():
        rules["synonym", word] = {"boost": 0.0, "words": others}
    return [{"role": role, "rule": rule, "pattern": pattern} | row for (rule, pattern), row in rules.items()]


NO_ROLES = roles_of([])
"""No overlays: the role of a request has no effect."""
