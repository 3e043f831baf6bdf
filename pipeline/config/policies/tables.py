"""Policies: the files of `data/policies/`, read into the tables of purposes, modes and roles.

Each purpose and mode is one YAML file, each role one JSON file (`roles`). A user folder of the same layout replaces
whole files by name, and may add roles; missing files come from the package. A malformed file is an error, and nothing
of any file is applied.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

import pyarrow as pa

from ....nodes.errors import PolicyError
from ....nodes.score_terms import TERMS, terms_of_plugins
from ....nodes.tables import KIND_POLICIES, MODE_POLICIES, PLAN_RULES, PURPOSE_POLICIES
from ....nodes.vocabulary import (
    AUTHORITY,
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
from ...parsing.yaml_files import YamlItem, parse
from .modes import REQUIRED as MODE_REQUIRED
from .modes import TOP as MODE_FIELDS
from .modes import mode_choices
from .roles import Roles, load_roles
from .weight_files import expect_weighed, load_weights, plugin_terms_in, reweighed

__all__ = ["Policies", "load_policies"]

PARTS = Vocabulary(
    "part", ("question", "context", "failing_test", "error", "stack", "files", "symbols", "state", "session")
)
"""The parts that may form the text of a sub-query."""

_BUDGET = ("lane_k", "pool_k", "max_items", "max_items_per_source", "max_unverified_items", "max_tokens", "max_chars",
           "max_chunk_tokens", "withheld_k")  # fmt: skip
_WEIGHTS = tuple(name for name in SCORE_TERMS if name not in ROLE_TERMS)
"""Role terms are weighted by the role only: without one they are 0."""
_NEEDED_WEIGHTS = tuple(term.name for term in TERMS if term.share and term.name in _WEIGHTS)
"""The terms over which a role's four weights are distributed. Any other term that a policy omits has weight 0."""
_MAY_BE_ZERO = ("max_unverified_items", "withheld_k")
SCHEMA_VERSION = 1
"""Schema version of policy files; see `docs/reference/limits.md`."""
_TOP = (
    "purpose",
    "merge_policy",
    "output_shape",
    "detail",
    "include_states",
    "instruction_sources",
    "mask",
    "budget",
    "weights",
    "kinds",
    "plan",
)
_KIND = ("actionability", "half_life_days")
_RULE = (
    "intent",
    "question",
    "parts",
    "lanes",
    "sources",
    "kinds",
    "lane_k",
    "min_authority",
    "max_age_days",
    "requires",
)
_RULE_ALIASES = {
    "topK": "lane_k", "top_k": "lane_k", "minAuthority": "min_authority", "maxAge": "max_age_days",
    "max_age": "max_age_days",
}  # fmt: skip
"""Document 000's names (S0.39)."""
_DURATION = re.compile(r"(\d+(?:\.\d+)?) ?(d|h)")


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
    policies, digest = _bundled_policies() if folder is None else _policies(folder)
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


def _policies(folder: str | Path | None) -> tuple[Policies, Any]:
    """The policies without a weight file, and the running digest of their files."""
    purposes, kinds, rules, modes, digest = [], [], [], [], hashlib.sha256()
    required = [name for name in _TOP if name not in ("mask", "detail")]
    for purpose, version, fields in _files(folder, PURPOSES, _TOP, required, digest):
        purposes.append({"purpose": purpose, "version": version} | _choices(fields))
        kinds += [{"purpose": purpose} | row for row in _kinds(fields["kinds"])]
        rules += [{"purpose": purpose} | row for row in _rules(fields["plan"])]
    for mode, version, fields in _files(folder, MODES, MODE_FIELDS, MODE_REQUIRED, digest):
        modes.append({"mode": mode, "version": version} | mode_choices(fields))
    roles = load_roles(Path(folder) if folder is not None else None)
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


def _files(
    folder: str | Path | None, names: Vocabulary, known: Sequence[str], required: Sequence[str], digest: Any
) -> Iterator[tuple[str, str, dict[str, YamlItem]]]:
    """Name, version and fields of every policy of one kind, by name; adds each file to the digest."""
    files = _bundled(names) | (_own(Path(folder), names) if folder is not None else {})
    for word in sorted(files):
        place, data = files[word]
        version = hashlib.sha256(data).hexdigest()
        digest.update(f"{word}:{version}\n".encode())
        fields = parse(data, place).of_version(SCHEMA_VERSION).fields(known, required=required)
        if (stated := fields[names.name].word(names)) != word:
            raise PolicyError(
                f"Expected {word}, got '{stated}' - at {fields[names.name].at}", hint="the file name determines it"
            )
        yield word, version[:16], fields


def _bundled(names: Vocabulary) -> dict[str, tuple[str, bytes]]:
    kind = f"{names.name}s"
    folder = resources.files(f"{__name__.rpartition('.pipeline')[0]}.data").joinpath("policies", kind)
    return {
        word: (f"policies/{kind}/{word}.yaml", folder.joinpath(f"{word}.yaml").read_bytes()) for word in names.values
    }


def _own(folder: Path, names: Vocabulary) -> dict[str, tuple[str, bytes]]:
    if not folder.is_dir():
        raise PolicyError(f"Expected a folder with `purposes/*.yaml`, got none - at {folder}")
    found = {}
    kind = f"{names.name}s"
    for path in sorted([*folder.glob(f"{kind}/*.yaml"), *folder.glob(f"{kind}/*.yml")]):
        if path.stem not in names or path.suffix != ".yaml":
            listed = ", ".join(f"{word}.yaml" for word in names.values)
            raise PolicyError(f"Expected one of {listed}, got '{path.name}' - at {path.parent}")
        found[path.stem] = (str(path), path.read_bytes())
    return found


def _choices(fields: Mapping[str, YamlItem]) -> dict[str, Any]:
    budget = fields["budget"].fields(_BUDGET, required=_BUDGET)
    stated = fields["weights"]
    weights = stated.fields((*_WEIGHTS, *plugin_terms_in(stated.value)), required=_NEEDED_WEIGHTS)
    return (
        {
            "merge_policy": fields["merge_policy"].word(MERGE_POLICIES),
            "output_shape": fields["output_shape"].word(OUTPUT_SHAPES),
            "detail": fields["detail"].optional(lambda item: item.word(DETAILS)) or "full",
            "include_states": fields["include_states"].words(LIFECYCLES, except_=("revoked",)),
            "instruction_sources": sorted(set(fields["instruction_sources"].texts())),
            "mask": fields["mask"].words(MASKS) or None,
        }
        | {name: item.count(0 if name in _MAY_BE_ZERO else 1) for name, item in budget.items()}
        | {
            f"weight_{name}": item.optional(lambda one: one.number(0, 100)) or 0.0
            for name, item in weights.items()
            if not (item.missing and terms_of_plugins((name,)))
        }
    )


def _kinds(kinds: YamlItem) -> list[dict[str, Any]]:
    rows = []
    for kind, item in kinds.fields(EVIDENCE_KINDS.values, required=EVIDENCE_KINDS.values).items():
        fields = item.fields((*_KIND, "document_types"), required=_KIND)
        half_life = fields["half_life_days"]
        if (days := half_life.number(0, infinite=True)) == 0:
            raise half_life.wrong("a number above 0, or .inf")
        shares = {"": fields["actionability"]} | dict(fields["document_types"].entries())
        rows += [
            {"evidence_kind": kind, "document_type": name, "actionability": share.number(0, 1), "half_life_days": days}
            for name, share in shares.items()
        ]
    return rows


def _rules(plan: YamlItem) -> list[dict[str, Any]]:
    if not (items := plan.items()):
        raise plan.wrong("at least one sub-query")
    rows = []
    for ordinal, item in enumerate(items, start=1):
        fields = item.fields(_RULE, required=("intent", "question", "parts", "lanes"), aliases=_RULE_ALIASES)
        row = {
            "ordinal": ordinal,
            "intent": fields["intent"].word(INTENTS),
            "question": fields["question"].text(),
            "parts": _in_given_order(fields["parts"], PARTS),
            "lanes": fields["lanes"].words(LANES),
            "sources": sorted(set(fields["sources"].texts())),
            "kinds": fields["kinds"].words(EVIDENCE_KINDS),
            "lane_k": fields["lane_k"].optional(lambda item: item.count(1)),
            "min_authority": fields["min_authority"].optional(_rank) or 0,
            "max_age_days": fields["max_age_days"].optional(_days),
            "requires": fields["requires"].words(REQUIRED_EVIDENCE),
        }
        for name in ("parts", "lanes"):
            if not row[name]:
                raise fields[name].wrong("at least one word")
        rows.append(row)
    return rows


def _rank(item: YamlItem) -> int:
    """A rank of authority, 0 to 3, or its word: `low`, `medium`, `high`, ..."""
    return AUTHORITY.values.index(item.word(AUTHORITY)) if isinstance(item.value, str) else item.count(0, 3)


def _days(item: YamlItem) -> float:
    """Days as a number, or a duration such as `30d` or `12h`."""
    match = _DURATION.fullmatch(item.value) if isinstance(item.value, str) else None
    if isinstance(item.value, str) and match is None:
        raise item.wrong("days as a number, or a duration such as 30d or 12h")
    return float(match[1]) / (24 if match[2] == "h" else 1) if match else item.number(0)


def _in_given_order(item: YamlItem, vocabulary: Vocabulary) -> list[str]:
    return list(dict.fromkeys(each.word(vocabulary) for each in item.items()))
