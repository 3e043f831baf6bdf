"""How well each role serves its own golden set, and every other's: the purpose of an overlay's `eval_profile` (S4.17).

Reads: overlays, golden sets (`<golden_set_id>.jsonl`: query_id, question, relevant {entity: grade}) and one evidence
file. Gives: `RoleScores`, the mean of a measure per golden set and role, and the distinctiveness checks that fail.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from ...nodes.errors import InputError
from ..asking.retriever import Retriever
from ..config.grants import grant_all
from ..config.policies.tables import Policies
from ..corpus.store import Corpus
from ..sources.importing import normalize
from ..sources.jsonl import read_lines
from ..sources.records import read_evidence
from ..sources.report import SourceReport
from .metrics import per_query

METRIC = "nDCG@5"
PROJECT, PRINCIPAL = "harbor", "evaluation"
READ_AT = datetime(2026, 6, 1, tzinfo=UTC)
"""The time at which the sample counts as read and queried, so that the ages of its rows do not depend on the date."""
LANES = ("lexical", "symbol", "exact", "recent")
"""A fixed selection: the figures of the sample do not depend on an encoder or on lanes that are added later."""


@dataclass(frozen=True)
class RoleScores:
    """`table` has a row per golden set and a column per role."""

    metric: str
    table: pd.DataFrame
    failed: tuple[str, ...]
    """The distinctiveness checks that fail, in words."""

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"metric": self.metric, "scores": self.table.round(4).to_dict("index"), "failed": list(self.failed)}


def bundled_sample() -> tuple[Path, Path]:
    """The bundled evidence file and folder of golden sets."""
    folder = Path(str(resources.files(f"{__name__.rpartition('.pipeline')[0]}.data"))) / "demo" / "roles"
    return folder / "evidence.jsonl", folder / "golden"


def score_roles(policies: Policies, evidence: Path, golden: Path, metric: str = METRIC) -> RoleScores:
    """Run every golden set's questions under every role, by words alone: no vectors, so no model is needed.

    Raises:
        InputError: a golden set is missing or names missing evidence.
    """
    rows = pa.concat_tables(
        normalize(table, project=PROJECT, principal=PRINCIPAL, now=READ_AT)[0]
        for table in read_evidence(evidence, report=SourceReport())
    )
    corpus = Corpus.of_rows(rows, now=READ_AT)
    named = corpus.frame().evidence.select(["evidence_id", "entity"]).to_pylist()
    entity = {row["evidence_id"]: row["entity"] for row in named}
    profiles = policies.roles.policies.select(["role", "golden_set_id", "distinctiveness_checks"]).to_pylist()
    sets = list(dict.fromkeys(profile["golden_set_id"] for profile in profiles))
    judged = pd.concat([_golden(golden, name, set(entity.values())) for name in sets])
    retriever = Retriever.open(
        corpus, principal=PRINCIPAL, grants=grant_all(PRINCIPAL, PROJECT), policies=policies, lanes=LANES, encoder=None,
        clock=lambda: READ_AT,
    )  # fmt: skip
    asked, table = judged.drop_duplicates("query_id").set_index("query_id"), {}
    for role in (profile["role"] for profile in profiles):
        run = [
            (query, entity[item["evidence_id"]], -float(item["position"]))
            for query, question in asked["question"].items()
            for item in retriever.retrieve(question, role=role, project=PROJECT).citations
        ]
        ranking = pd.DataFrame(run, columns=pd.Index(["query_id", "doc_id", "score"]))
        table[role] = per_query(judged, ranking, (metric,))[metric].groupby(asked["golden_set"]).mean()
    found = pd.DataFrame(table).reindex(sets).rename_axis(None)
    scores = found.to_dict("index")
    failed = [
        f"{other} scores {scores[own][other]:.4f} on {own}, {profile['role']} {scores[own][profile['role']]:.4f}"
        for profile in profiles
        for own in [profile["golden_set_id"]]
        for other in profile["distinctiveness_checks"]
        if other in table and scores[own][other] >= scores[own][profile["role"]]
    ]
    return RoleScores(metric, found, tuple(failed))


def _golden(folder: Path, name: str, entities: set[str]) -> pd.DataFrame:
    """The judgements of a golden set: golden_set, query_id, question, doc_id, relevance."""
    path = folder / f"{name}.jsonl"
    if not path.is_file():
        raise InputError.described("a golden set", "none", str(path), hint="eval_profile.golden_set_id names the file")
    found = []
    for record in read_lines(path):
        query = (name, f"{name}/{record.required('query_id')}", record.required("question"))
        for doc, grade in record.mapping("relevant").fields.items():
            if doc not in entities:
                raise InputError.expected("the entity of a row", doc, f"{record.at}.relevant")
            if isinstance(grade, bool) or not isinstance(grade, int):
                raise InputError.expected("a whole number", type(grade).__name__, f"{record.at}.relevant.{doc}")
            found.append((*query, doc, grade))
    return pd.DataFrame(found, columns=pd.Index(["golden_set", "query_id", "question", "doc_id", "relevance"]))
