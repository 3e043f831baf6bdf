"""Policies: the files of `data/policies/`, read into the tables of purposes, modes and roles.

Each purpose and mode is one YAML file, each role one JSON file (`roles`). A user folder of the same layout replaces
whole files by name, and may add roles; missing files come from the package. A malformed file is an error, and nothing
of any file is applied.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
from pydantic import Field, model_validator

from ....nodes.errors import PolicyError
from ....nodes.score_terms import TERMS, terms_of_plugins
from ....nodes.tables import KIND_POLICIES, MODE_POLICIES, PLAN_RULES, PURPOSE_POLICIES
from ....nodes.vocabulary import (
    DETAILS,
    EVIDENCE_KINDS,
    INTENTS,
    LANES,
    LIFECYCLES,
    MASKS,
    MERGE_POLICIES,
    MODES,
    OUTPUT_SHAPES,
    PURPOSES,
    REQUIRED_EVIDENCE,
    ROLE_TERMS,
    SCORE_TERMS,
    Vocabulary,
)
from ...parsing.documents import (  # fmt: skip
    ABSENT,
    Count,
    CountOrZero,
    D,
    Document,
    FirstVersion,
    Share,
    Text,
    converted,
    document,
    expected,
    word,
    words,
)
from ...parsing.quoting import shown_key
from ...parsing.values import authority_rank, days
from ...parsing.yaml_files import parse
from .modes import Mode, mode_choices
from .roles import Roles, load_roles, policy_files
from .weight_files import PurposeWeights, expect_weighed, load_weights, reweighed

PARTS = Vocabulary(
    "part", ("question", "context", "failing_test", "error", "stack", "files", "symbols", "state", "session")
)
"""The parts that may form the text of a sub-query."""
Lanes = Annotated[tuple[str, ...], words(LANES), Field(min_length=1)]


class Budget(Document):
    """The limits of a purpose."""

    lane_k: Count
    pool_k: Count
    max_items: Count
    max_items_per_source: Count
    max_unverified_items: CountOrZero
    max_tokens: Count
    max_chars: Count
    max_chunk_tokens: Count
    withheld_k: CountOrZero


class Kind(Document):
    """How a kind of evidence counts: how much one can act on it, by type of document, and how it ages."""

    actionability: Share
    half_life_days: Annotated[float, Field(gt=0)]
    document_types: dict[str, Share] = Field(default_factory=dict)


class Rule(Document):
    """A sub-query of a plan (S0.39)."""

    intent: Annotated[str, word(INTENTS)]
    question: Text
    parts: Annotated[tuple[Annotated[str, word(PARTS)], ...], Field(min_length=1)]
    lanes: Lanes
    sources: tuple[Text, ...] = ()
    kinds: Annotated[tuple[str, ...], words(EVIDENCE_KINDS)] = ()
    lane_k: Count = ABSENT
    min_authority: Annotated[int, converted(authority_rank)] = 0
    max_age_days: Annotated[float, converted(days), Field(ge=0)] = ABSENT
    requires: Annotated[tuple[str, ...], words(REQUIRED_EVIDENCE)] = ()


class Purpose(Document):
    """The policy of a purpose, as its file states it."""

    schema_version: FirstVersion = 1
    purpose: Annotated[str, word(PURPOSES)]
    merge_policy: Annotated[str, word(MERGE_POLICIES)]
    output_shape: Annotated[str, word(OUTPUT_SHAPES)]
    detail: Annotated[str, word(DETAILS)] = "full"
    include_states: Annotated[tuple[str, ...], words(LIFECYCLES, except_=("revoked",))]
    instruction_sources: tuple[Text, ...]
    mask: Annotated[tuple[str, ...], words(MASKS)] = ()
    graph_floor: Annotated[float, Field(gt=0, le=1, alias="graphTraversalConfidenceFloor")] = 0.2
    graph_iterations: Annotated[int, Field(ge=1, le=20, alias="graphTraversalPageRankIterations")] = 3
    """The walk of the graph lane, also under the names of document 002 (S2.26, S2.45)."""
    budget: Budget
    weights: PurposeWeights
    kinds: dict[Annotated[str, word(EVIDENCE_KINDS)], Kind]
    plan: Annotated[tuple[Rule, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _whole(self) -> Purpose:
        if missing := [kind for kind in EVIDENCE_KINDS.values if kind not in self.kinds]:
            raise expected("every kind of evidence in kinds", f"no {missing[0]}")
        if missing := [term.name for term in TERMS if term.share and term.name not in {*self.weights, *ROLE_TERMS}]:
            raise expected("a weight of every term over which a role's weights are distributed", f"no {missing[0]}")
        return self


@dataclass(frozen=True)
class Policies:
    """The policy tables of a run, and the SHA-256 over the files they were read from."""

    purpose_policies: pa.Table
    kind_policies: pa.Table
    plan_rules: pa.Table
    mode_policies: pa.Table
    roles: Roles
    digest: str
    any_role: bool = False
    """Whether requests may name a role without an overlay; otherwise that is an error on arrival."""

    def expect_weighted_terms(self, of_plugins: Collection[str]) -> None:
        """Refuse a weight for the term of a plugin that is not active.

        Raises:
            PolicyError: a policy or a weight file names such a term.
        """
        for column in terms_of_plugins(self.purpose_policies.column_names):
            expect_weighed(column.removeprefix("weight_"), of_plugins, "weights", PolicyError)

    def inputs(self) -> dict[str, pa.Table]:
        """The tables by the names of the nodes' parameters."""
        return {
            "purpose_policies": self.purpose_policies,
            "kind_policies": self.kind_policies,
            "plan_rules": self.plan_rules,
            "mode_policies": self.mode_policies,
            "role_policies": self.roles.policies,
            "role_rules": self.roles.rules,
        }


def load_policies(folder: str | Path | None = None, weights: str | Path | None = None) -> Policies:
    """The policies of every purpose, mode and role, with those of the user's `folder` in place of bundled ones.

    `weights` is a weight file (`weight_files`), whose weights replace those of the purposes.

    Raises:
        PolicyError: the folder or weight file is missing, or a file does not match its name.
    """
    policies, digest = _bundled_policies() if folder is None else _policies(Path(folder))
    if weights is None:
        return policies
    file, digest = load_weights(weights), digest.copy()
    digest.update(f"weights:{file.digest}\n".encode())
    purposes = PURPOSE_POLICIES.check(reweighed(policies.purpose_policies, file))
    return replace(policies, purpose_policies=purposes, digest=digest.hexdigest())


@lru_cache(maxsize=1)
def _bundled_policies() -> tuple[Policies, Any]:
    """The bundled policies, read once: a process keeps the policies that it started with, as it does its code."""
    return _policies(None)


def _policies(folder: Path | None) -> tuple[Policies, Any]:
    """The policies without a weight file, and the running digest of their files."""
    if folder is not None and not folder.is_dir():
        raise PolicyError("Expected a folder with `purposes/*.yaml`, got none", at=folder)
    purposes, kinds, rules, modes, digest = [], [], [], [], hashlib.sha256()
    for purpose, version, found in _files(folder, PURPOSES, Purpose, digest):
        purposes.append({"purpose": purpose, "version": version} | _choices(found))
        kinds += [{"purpose": purpose} | row for row in _kinds(found)]
        rules += [{"purpose": purpose} | row for row in _rules(found)]
    for mode, version, found in _files(folder, MODES, Mode, digest):
        modes.append({"mode": mode, "version": version} | mode_choices(found))
    roles = load_roles(folder)
    digest.update(f"roles:{roles.digest}\n".encode())
    policies = Policies(
        PURPOSE_POLICIES.from_rows(purposes),
        KIND_POLICIES.from_rows(kinds).sort_by([(name, "ascending") for name in KIND_POLICIES.order]),
        PLAN_RULES.from_rows(rules),
        MODE_POLICIES.from_rows(modes),
        roles,
        digest.hexdigest(),
    )
    return policies, digest


def _files(folder: Path | None, names: Vocabulary, model: type[D], digest: Any) -> Iterator[tuple[str, str, D]]:
    """Name, version and content of every policy of one kind, by name; adds each file to the digest."""
    for name, (place, data) in policy_files(f"{names.name}s", ".yaml", folder).items():
        if name not in names:
            listed = ", ".join(f"{word}.yaml" for word in names.values)
            raise PolicyError(f"Expected one of {listed}, got '{shown_key(name)}.yaml'", at=Path(place).parent)
        version = hashlib.sha256(data).hexdigest()
        digest.update(f"{name}:{version}\n".encode())
        found = document(model, parse(data, place), place)
        if (stated := getattr(found, names.name)) != name:
            hint = "the file name determines it"
            raise PolicyError(f"Expected {name}, got '{stated}'", at=f"{place}: {names.name}", hint=hint)
        yield name, version[:16], found


def _choices(purpose: Purpose) -> dict[str, Any]:
    named = ("merge_policy", "output_shape", "detail", "include_states", "graph_floor", "graph_iterations")
    weights = dict.fromkeys((name for name in SCORE_TERMS if name not in ROLE_TERMS), 0.0) | purpose.weights
    return {
        **{name: getattr(purpose, name) for name in named},
        "instruction_sources": sorted(set(purpose.instruction_sources)),
        "mask": purpose.mask or None,
        **purpose.budget.model_dump(),
        **{f"weight_{name}": weight for name, weight in weights.items()},
    }


def _kinds(purpose: Purpose) -> list[dict[str, Any]]:
    return [
        {"evidence_kind": name, "document_type": type_, "actionability": share, "half_life_days": kind.half_life_days}
        for name, kind in purpose.kinds.items()
        for type_, share in {"": kind.actionability, **kind.document_types}.items()
    ]


def _rules(purpose: Purpose) -> list[dict[str, Any]]:
    rows = [{"ordinal": ordinal, **rule.model_dump()} for ordinal, rule in enumerate(purpose.plan, start=1)]
    return [row | {"parts": list(dict.fromkeys(row["parts"])), "sources": sorted(set(row["sources"]))} for row in rows]
