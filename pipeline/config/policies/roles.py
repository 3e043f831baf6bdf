"""Role overlays: document 004's JSON as declared types, validated as a whole, and as the tables that the line reads.

Reads: the JSON of overlays, the bundled ones and a user's own. Gives: `RoleOverlay` (S4.8, S4.15 to S4.17), `overlay_of` and
`validate_overlay`; `Roles` (ROLE_POLICIES, ROLE_RULES and a digest); `policy_files`, the files of any kind of policy. Every
name may be written in snake_case or camelCase; a word of a closed list may be any of its aliases. A file of the same role
id in the user's folder replaces the bundled one; the file's name is the role id.

Note: nothing here grants access. An overlay prefers, caps and forbids within the rows that a contract may see; its
`allowed_sources` narrow them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
from pydantic import AfterValidator, Field, model_validator

from ....nodes.errors import InputError, PolicyError
from ....nodes.tables import ROLE_POLICIES, ROLE_RULES
from ....nodes.vocabulary import AUTHORITY, CITATION_STYLES, REQUIRED_EVIDENCE
from ...parsing.documents import Count, ModelDocument, Share, checked, document, expected, selector, word
from ...parsing.quoting import shown_key
from ...progress import counted
from ...sources.jsonl import parse_json

WEIGHTS_TOLERANCE = 0.01
DEFAULT_BOOST = 0.25
"""Boost of a preferred source without one."""
DEFAULT_PENALTY = 0.2
"""Default penalties of a stale row and of a row for other roles."""


def _spoken(value: str) -> str:
    if not value.strip() or not value.isprintable():
        raise expected("printable text", counted(len(value), "character"))
    return value.strip()


Text = Annotated[str, AfterValidator(_spoken)]
Selector = Annotated[Text, AfterValidator(selector)]
TrustTier = Annotated[str, word(AUTHORITY)]
Boost = Annotated[float, Field(ge=-1, le=1)]


class PreferredSource(ModelDocument):
    """A source that the role prefers, and why."""

    pattern: Selector
    reason: Text
    boost: Boost = DEFAULT_BOOST


class RoleVocabulary(ModelDocument):
    """The role's vocabulary (S4.15)."""

    preferred_terms: tuple[Text, ...]
    synonyms: dict[Text, tuple[Text, ...]]
    boost_phrases: tuple[Text, ...]
    suppress_phrases: tuple[Text, ...] = ()


class SourcePolicy(ModelDocument):
    """Sources that the role prefers, is limited to, and never reads (S4.15)."""

    preferred_sources: tuple[PreferredSource, ...]
    allowed_sources: tuple[Selector, ...] | None = None
    forbidden_sources: tuple[Selector, ...] = ()
    trust_tier_boosts: dict[TrustTier, Boost] = Field(default_factory=dict)
    document_type_boosts: dict[Text, Boost] = Field(default_factory=dict)
    domain_boosts: dict[Text, Boost] = Field(default_factory=dict)


class Weights(ModelDocument):
    """Shares of the final score; together 1."""

    lexical: Share
    semantic: Share
    metadata: Share
    rerank: Share

    @model_validator(mode="after")
    def _add_up(self) -> Weights:
        total = self.lexical + self.semantic + self.metadata + self.rerank
        if abs(total - 1) > WEIGHTS_TOLERANCE + 1e-9:
            raise expected(f"weights that sum to 1 within {WEIGHTS_TOLERANCE:g}", f"{total:g}")
        return self


class RetrievalPolicy(ModelDocument):
    """Limits, weights and penalties (S4.16)."""

    max_selected_chunks: Count
    weights: Weights
    require_source_diversity: bool = False
    max_chunks_per_source: Count | None = None
    freshness_max_age_days: Annotated[float, Field(gt=0)] | None = None
    stale_penalty: Share = DEFAULT_PENALTY
    role_mismatch_penalty: Share = DEFAULT_PENALTY


class SynthesisPolicy(ModelDocument):
    """Preferred evidence of the answer, and its citation style (S4.17)."""

    prioritize: tuple[Text, ...]
    avoid: tuple[Text, ...]
    required_evidence_kinds: tuple[Annotated[str, word(REQUIRED_EVIDENCE)], ...] = ()
    citation_style: Annotated[str, word(CITATION_STYLES)] = CITATION_STYLES.values[0]


class EvalProfile(ModelDocument):
    """The golden set of the role, and the roles that must score lower on it (S4.17)."""

    golden_set_id: Text
    distinctiveness_checks: tuple[Text, ...]


class RoleOverlay(ModelDocument):
    """One role (S4.8)."""

    role_id: Text
    version: Text
    label: Text
    mission: Text
    anti_goals: tuple[Text, ...]
    vocabulary: RoleVocabulary
    source_policy: SourcePolicy
    retrieval_policy: RetrievalPolicy
    synthesis_policy: SynthesisPolicy
    eval_profile: EvalProfile
    bridge_roles: tuple[Text, ...] = ()


@dataclass(frozen=True)
class Roles:
    """The overlays of a run and the SHA-256 over their contents."""

    policies: pa.Table
    rules: pa.Table
    digest: str

    @property
    def names(self) -> list[str]:
        """The ids of the roles, sorted."""
        return self.policies["role"].to_pylist()


def validate_overlay(value: Any, file: str = "overlay") -> dict[str, Any]:
    """`{valid, errors}` (S4.5): every error names file, key, expected and actual value."""
    _, errors = checked(RoleOverlay, value, file)
    return {"valid": not errors, "errors": errors}


def overlay_of(value: Mapping[str, Any] | RoleOverlay, file: str = "overlay") -> RoleOverlay:
    """An overlay from plain values.

    Raises:
        PolicyError: it is invalid; nothing of it is applied.
    """
    return value if isinstance(value, RoleOverlay) else document(RoleOverlay, value, file)


def policy_files(kind: str, suffix: str, folder: Path | None) -> dict[str, tuple[str, bytes]]:
    """Place and bytes of every policy of a kind, by name; those of the user's folder replace bundled ones.

    Raises:
        PolicyError: a file of the user's folder has another ending of policies.
    """
    bundled = resources.files(f"{__name__.rpartition('.pipeline')[0]}.data").joinpath("policies", kind)
    files: dict[str, tuple[str, Any]] = {
        file.name: (f"policies/{kind}/{file.name}", file) for file in bundled.iterdir()
    }
    for file in sorted(folder.glob(f"{kind}/*")) if folder is not None else ():
        if file.suffix in (".json", ".yaml", ".yml") and file.suffix != suffix:
            raise PolicyError(f"Expected a file ending in {suffix}, got '{shown_key(file.name)}'", at=file.parent)
        files[file.name] = (str(file), file)
    return {
        name.removesuffix(suffix): (place, file.read_bytes())
        for name, (place, file) in sorted(files.items())
        if name.endswith(suffix)
    }


def load_roles(folder: Path | None = None) -> Roles:
    """The bundled overlays, replaced or extended by those of `folder/roles/*.json`.

    Raises:
        PolicyError: a file is not an overlay, or its name is not its role id.
    """
    found = []
    for name, (at, data) in policy_files("roles", ".json", folder).items():
        try:
            value = parse_json(data, at)
        except InputError as error:
            raise PolicyError(error.what, at=error.at, hint=error.hint) from error
        overlay = overlay_of(value, at)
        if overlay.role_id != name:
            got, hint = f"'{shown_key(overlay.role_id)}'", "the file name determines it"
            raise PolicyError(f"Expected {name}, got {got}", at=f"{at}: role_id", hint=hint)
        found.append(overlay)
    return roles_of(found)


def roles_of(overlays: Iterable[RoleOverlay]) -> Roles:
    """The tables of some overlays, one per role id."""
    rows, rules, digest = list[dict[str, Any]](), list[dict[str, Any]](), hashlib.sha256()
    for overlay in sorted(overlays, key=lambda one: one.role_id):
        content = overlay.model_dump_json().encode()
        digest.update(content)
        rows.append(_row(overlay, hashlib.sha256(content).hexdigest()[:16]))
        rules += _rules(overlay)
    rules.sort(key=lambda rule: tuple(rule[name] for name in ROLE_RULES.order))
    return Roles(ROLE_POLICIES.from_rows(rows), ROLE_RULES.from_rows(rules), digest.hexdigest())


def max_age_days(role_policies: pa.Table, role: str | None) -> float | None:
    """The age from which a row is stale under a role of ROLE_POLICIES; None if the role has no such age or no overlay."""
    limits = zip(*(role_policies[name].to_pylist() for name in ("role", "freshness_max_age_days")), strict=True)
    return dict(limits).get(role)


def _row(overlay: RoleOverlay, version: str) -> dict[str, Any]:
    """The columns of a role: the fields of the parts of its overlay that have their names, and those renamed here."""
    content = overlay.model_dump()
    parts = [content, *(part for part in content.values() if isinstance(part, dict))]
    stated = {name: value for part in parts for name, value in part.items() if name in ROLE_POLICIES.columns}
    return stated | {
        "role": overlay.role_id,
        "version": version,
        **{f"weight_{name}": weight for name, weight in content["retrieval_policy"]["weights"].items()},
        "required_evidence": overlay.synthesis_policy.required_evidence_kinds,
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
    for term, others in overlay.vocabulary.synonyms.items():
        rules["synonym", term] = {"boost": 0.0, "words": others}
    return [{"role": role, "rule": rule, "pattern": pattern} | row for (rule, pattern), row in rules.items()]


NO_ROLES = roles_of([])
"""No overlays: the role of a request has no effect."""
