"""Weight files: weights of score terms per purpose, in place of those of the purposes' policies.

    schema_version: 1
    weights:
      answer-question: {semantic: 0.23, lexical: 0.36}
    fitted: {command: ..., date: ..., data: [...], held_out: [...]}

The term of a plugin has its usual name, `acme.length`. `tune` writes these files and records under `fitted` what they
were fitted on; only `weights` is used. A term that a file does not name keeps the weight of the policy, and weights of
a role or a request take precedence. One of the named sets (`WEIGHT_SETS`) may replace a file; it applies to every
purpose.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import yaml
from pydantic import AfterValidator, Field

from ....nodes.errors import InputError, PolicyError
from ....nodes.score_terms import terms_of_plugins
from ....nodes.tables import PURPOSE_POLICIES
from ....nodes.vocabulary import PURPOSES, WEIGHED_TERMS
from ...parsing.documents import Document, FirstVersion, document, expected, word
from ...parsing.quoting import shown_key
from ...parsing.yaml_files import parse
from ..declared_settings import WEIGHT_SETS


def _weighed(value: dict[str, float]) -> dict[str, float]:
    """Weights of terms of the package and of plugins, which need not be installed."""
    if unknown := [term for term in value if term not in (*WEIGHED_TERMS, *terms_of_plugins(value))]:
        raise expected(f"one of {', '.join(WEIGHED_TERMS)}", repr(shown_key(unknown[0])))
    return value


PurposeWeights = Annotated[dict[str, Annotated[float, Field(ge=0, le=100)]], AfterValidator(_weighed)]
"""Score term -> weight."""


class _File(Document):
    schema_version: FirstVersion = 1
    weights: dict[Annotated[str, word(PURPOSES)], PurposeWeights]
    fitted: Any = None


@dataclass(frozen=True)
class WeightFile:
    """The weights of a file and the SHA-256 of its bytes, hex; or of a named set and its content."""

    weights: Mapping[str, Mapping[str, float]]
    """Purpose -> score term -> weight."""
    digest: str


def load_weights(path: str | Path) -> WeightFile:
    """The weights of a file, or of the set with this name; `./NAME` is always a file.

    Raises:
        PolicyError: there is no such file, it is of another version, or names an unknown purpose or score term.
    """
    if isinstance(path, str) and path in WEIGHT_SETS:
        named = dict.fromkeys(PURPOSES.values, WEIGHT_SETS[path])
        return WeightFile(named, hashlib.sha256(json.dumps(named, sort_keys=True).encode()).hexdigest())
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        hint = f"`tune` writes one with --out; named sets: {', '.join(WEIGHT_SETS)}"
        raise PolicyError(f"{error.strerror}: weight file {path}", hint=hint) from error
    weights = {name: one for name, one in document(_File, parse(data, str(path)), str(path)).weights.items() if one}
    return WeightFile(weights, hashlib.sha256(data).hexdigest())


def expect_weighed(term: str, of_plugins: Collection[str], at: str, error: type[InputError] = InputError) -> None:
    """Refuse a weight for a term that neither the package nor an active plugin provides: it would have no effect.

    Raises:
        InputError: the term is unknown; the message lists the known ones.
    """
    if term not in (known := (*WEIGHED_TERMS, *of_plugins)):
        hint = "a name with a dot is a term of a plugin that `plugins` names or that a run recorded"
        raise error.one_of(known, term, at, hint=hint)


def reweighed(purpose_policies: pa.Table, file: WeightFile) -> pa.Table:
    """PURPOSE_POLICIES with the weights of a file; the version of a purpose that it names follows from both."""
    rows = purpose_policies.to_pylist()
    for row in rows:
        if stated := file.weights.get(row["purpose"]):
            row |= {f"weight_{term}": weight for term, weight in stated.items()}
            row["version"] = hashlib.sha256(f"{row['version']}:{file.digest}".encode()).hexdigest()[:16]
    return PURPOSE_POLICIES.from_rows(rows)


def weight_file_text(weights: Mapping[str, Mapping[str, float]], fitted: Mapping[str, Any]) -> str:
    """A weight file with these weights, and under `fitted` how they were found."""
    head = "# Weights of score terms, for the setting `weights`. Written by `scoped-retrieval tune`.\n"
    content = {"schema_version": 1, "weights": {p: dict(w) for p, w in weights.items()}, "fitted": fitted}
    return head + yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=110)
