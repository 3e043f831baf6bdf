"""Policies: the files of `data/policies/`, read into the tables of purposes, modes and roles.

Each purpose and mode is one YAML file, each role one JSON file (`roles`). A user folder of the same layout replaces
whole files by name, and may add roles; missing files come from the package. A malformed file is an error, and nothing
of any file is applied.

Document 001's own YAML of a mode is read unchanged: `search_paths`, `retrieval_params` and `strategies` in its words. Its prose
about material to include and exclude becomes entries with selectors here: `{what, paths, when}` and `{what, paths |
levels | zones, unless}`, where `when` and `unless` name a variable of the request.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from ....nodes.errors import PolicyError
from ....nodes.score_terms import TERMS
from ....nodes.tables import KIND_POLICIES, MODE_POLICIES, PLAN_RULES, PURPOSE_POLICIES
from ....nodes.vocabulary import (
    EVIDENCE_KINDS,
    INTENTS,
    LANES,
    LEVELS,
    LIFECYCLES,
    MASKS,
    MERGE_POLICIES,
    MODES,
    OUTPUT_SHAPES,
    PURPOSES,
    REQUIRED_EVIDENCE,
    ROLE_TERMS,
    SCORE_TERMS,
    ZONES,
    Vocabulary,
)
from ...parsing import values
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
from ...parsing.patterns import GLOBS, path_glob
from ...parsing.quoting import shown, shown_key
from ...parsing.values import authority_rank, days
from ...parsing.yaml_files import parse
from .roles import Roles, load_roles, policy_files
from .weight_files import PurposeWeights, load_weights, reweighed

STRATEGIES = {
    "semantic": "semantic",
    "bm25": "lexical",
    "keyword": "lexical",
    "exact": "exact",
    "temporal": "recent",
    "citation": "expansion",
    "cross-encoder": None,
    "schema": None,
}
"""First word of a strategy, and the lane that every sub-query then uses. `cross-encoder` needs a model named by the
settings, and a request reports if none is set; records are checked against their schema by `index --add sot=FILE`: these two add
no lane.
"""

_TEMPLATE = re.compile(r"(?:/|\*\*/)(?:[^{}\x00-\x1f]|\{[a-z][a-z0-9_]*\})*")


def _strategy(value: str) -> str:
    """The first word of a strategy; the rest is a description."""
    first = value.split()[0].strip(":,").lower()
    if first not in STRATEGIES:
        raise expected(f"a text that begins with one of {', '.join(STRATEGIES)}", shown_key(first))
    return first


def _template(value: str) -> str:
    """A path template: from the root (`/`) or from anywhere (`**/`)."""
    if not _TEMPLATE.fullmatch(value):
        raise expected("a path that begins with / or **/, with variables such as {venture}", str(shown(value)))
    if (glob := path_glob(value.removeprefix("/") or "**")) is None:
        raise expected("a path such as /ventures/{venture}/notes/", f"{shown(value)} ({GLOBS})")
    return f"/{glob}" if value.startswith("/") else glob


Templates = tuple[Annotated[Text, AfterValidator(_template)], ...]
SomeTemplates = Annotated[Templates, Field(min_length=1)]
Variable = Annotated[str, Field(pattern="^[a-z][a-z0-9_]*$")]


class Window(Document):
    """How far back paths are read; `last_30_days` is a window for every path."""

    last: Annotated[float, converted(values.days), Field(gt=0)]
    paths: SomeTemplates = ("**",)


class Params(Document):
    """The counts and switches of a mode."""

    k_in: Count
    k_out: Count
    chunk_expansion: bool = False
    exact_lookups: bool = False
    time_window: Annotated[
        Window, BeforeValidator(lambda value: {"last": value} if isinstance(value, str) else value)
    ] = ABSENT
    include_deleted: bool = False


class Include(Document):
    """Material that a mode adds."""

    what: Text
    paths: SomeTemplates
    when: Variable = ""


class Exclude(Document):
    """Material that a mode leaves out."""

    what: Text
    paths: Templates = ()
    levels: tuple[Annotated[str, word(LEVELS)], ...] = ()
    zones: tuple[Annotated[str, word(ZONES)], ...] = ()
    unless: Variable = ""

    @model_validator(mode="after")
    def _some(self) -> Exclude:
        if not (self.paths or self.levels or self.zones):
            raise expected("paths, levels or zones to leave out", "none")
        return self


class Mode(Document):
    """The policy of a mode, in the keys of document 001."""

    schema_version: FirstVersion = 1
    mode: Annotated[str, word(MODES)]
    search_paths: SomeTemplates
    retrieval_params: Params
    strategies: tuple[Annotated[Text, AfterValidator(_strategy)], ...]
    include: tuple[Include, ...] = ()
    exclude: tuple[Exclude, ...] = ()


def mode_choices(mode: Mode) -> dict[str, Any]:
    """The columns of MODE_POLICIES."""
    params, window = mode.retrieval_params, mode.retrieval_params.time_window
    include = [(path, entry.when) for entry in mode.include for path in entry.paths]
    exclude = [
        (kind, value, entry.unless)
        for entry in mode.exclude
        for kind, values in (("path", entry.paths), ("level", entry.levels), ("zone", entry.zones))
        for value in values
    ]
    return {
        "search_paths": mode.search_paths,
        "include_paths": [path for path, _ in include],
        "include_when": [when for _, when in include],
        "exclude_kinds": [kind for kind, _, _ in exclude],
        "exclude_values": [value for _, value, _ in exclude],
        "exclude_unless": [unless for _, _, unless in exclude],
        "lanes": list(dict.fromkeys(lane for one in mode.strategies if (lane := STRATEGIES[one]))),
        "lane_k": params.k_in,
        "max_items": params.k_out,
        "window_days": window and window.last,
        "window_paths": [path.removeprefix("/") for path in window.paths] if window else [],
        "chunk_expansion": params.chunk_expansion,
        "exact_lookups": params.exact_lookups,
        "include_deleted": params.include_deleted,
        "citation_chaining": "citation" in mode.strategies,
        "newest_first": "temporal" in mode.strategies,
        "cross_encoder": "cross-encoder" in mode.strategies,
    }


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
    named = ("merge_policy", "output_shape", "include_states", "graph_floor", "graph_iterations")
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
