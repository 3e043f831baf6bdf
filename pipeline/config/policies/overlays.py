"""Role overlays: document 004's JSON as declared types, validated as a whole before any of it is applied.

Reads: the JSON of one overlay. Gives: `RoleOverlay` (S4.8, S4.15 to S4.17), `read_overlay` and `validate_overlay`. Every
name may be written in snake_case or camelCase; a word of a closed list may be any of its aliases.

Note: nothing here grants access. An overlay prefers, caps and forbids within the rows that a contract may see; its
`allowed_sources` narrow them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, model_validator

from ....nodes.errors import InputError, PolicyError
from ....nodes.vocabulary import AUTHORITY, CITATION_STYLES, ORIGIN_CLASSES, REQUIRED_EVIDENCE
from ...parsing.documents import ModelDocument, checked, expected, word
from ...progress import counted
from ...sources.jsonl import parse_json

__all__ = ["OverlayFile", "RoleOverlay", "overlay_of", "read_overlay", "validate_overlay"]

WEIGHTS_TOLERANCE = 0.01
DEFAULT_BOOST = 0.25
"""Boost of a preferred source without one."""
DEFAULT_PENALTY = 0.2
"""Default penalties of a stale row and of a row for other roles."""
WEIGHTS = ("lexical", "semantic", "metadata", "rerank")


def _selector(value: str) -> str:
    return ORIGIN_CLASSES.aliases.get(value, value)


def _spoken(value: str) -> str:
    if not value.strip() or not value.isprintable():
        raise expected("printable text", counted(len(value), "character"))
    return value.strip()


Text = Annotated[str, AfterValidator(_spoken)]
Selector = Annotated[Text, AfterValidator(_selector)]
TrustTier = Annotated[str, word(AUTHORITY)]
Boost = Annotated[float, Field(ge=-1, le=1)]
Penalty = Annotated[float, Field(ge=0, le=1)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1, lt=2**31)]


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
    """Limits, weights and penalties (S4.16). The weights may also be flat fields, such as `lexical_weight`."""

    max_selected_chunks: Count
    weights: Weights
    require_source_diversity: bool = False
    max_chunks_per_source: Count | None = None
    freshness_max_age_days: Annotated[float, Field(gt=0)] | None = None
    stale_penalty: Penalty = DEFAULT_PENALTY
    role_mismatch_penalty: Penalty = DEFAULT_PENALTY

    @model_validator(mode="before")
    @classmethod
    def _gathered(cls, value: Any) -> Any:
        if not isinstance(value, Mapping) or "weights" in value:
            return value
        flat = {name: key for name in WEIGHTS for key in (f"{name}_weight", f"{name}Weight") if key in value}
        if not flat:
            return value
        rest = {key: one for key, one in value.items() if key not in flat.values()}
        return rest | {"weights": {name: value[key] for name, key in flat.items()}}


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
class OverlayFile:
    """An overlay with the SHA-256 of its source."""

    overlay: RoleOverlay
    digest: str


def validate_overlay(value: Any, file: str = "overlay") -> dict[str, Any]:
    """`{valid, errors}` (S4.5): every error names file, key, expected and actual value."""
    _, errors = checked(RoleOverlay, value, file)
    return {"valid": not errors, "errors": errors}


def overlay_of(value: Mapping[str, Any] | RoleOverlay, file: str = "overlay") -> OverlayFile:
    """An overlay from plain values.

    Raises:
        PolicyError: it is invalid; nothing of it is applied.
    """
    if isinstance(value, RoleOverlay):
        value = value.model_dump(mode="json")
    found, errors = checked(RoleOverlay, value, file)
    if found is None:
        more = f"and {len(errors) - 1} more; `policies check` lists them" if len(errors) > 1 else ""
        raise PolicyError(errors[0], hint=more)
    return OverlayFile(found, hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest())


def read_overlay(path: Path | Any, file: str | None = None) -> OverlayFile:
    """An overlay from a file; its digest is that of the bytes.

    Raises:
        PolicyError: the file is not an overlay.
    """
    data, file = path.read_bytes(), file or str(path)
    try:
        found = overlay_of(parse_json(data, file), file)
    except PolicyError:
        raise
    except InputError as error:
        raise PolicyError(error.message, hint=error.hint) from error
    return OverlayFile(found.overlay, hashlib.sha256(data).hexdigest())
