"""Surfaces: everything that callers receive from one run over one state of a corpus, as text by name.

Reads a stored run. Gives per request `{surface: text}`, every format of `show`, of which `replay` has all fields of the
answer, and what a tenant may list. The surface `scores` contains everything computed from admissible rows, including audit
columns: no caller sees all of it, and no row out of scope may change it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.errors import ScopedRetrievalError
from ...nodes.tables import TABLES
from ..asking.retrieval import Retrieval, retrieval_of
from ..config.policies.roles import max_age_days
from ..config.settings import Settings
from ..contracts.explain import explain
from ..contracts.scope import ContractResolver
from ..contracts.why import why_not
from ..engines.shards import by_request
from ..maintenance.doctor import examine
from ..reading.grants import audited, corpus_facts
from ..reading.reports import actions_of, as_csv
from ..reading.snapshots import readable
from ..requests.fields import columns_of
from ..requests.narrowing import Fields
from ..runs.ids import SNAPSHOT_ID
from ..runs.parts import VIEWS
from ..runs.replay import Replay
from ..runs.run import Run
from ..servers.renderings import FORMS, Rendering, Shown

Surfaces = dict[str, str]

SHOWN = "show --as {}"
"""The surface of a format."""
_WITH_QUESTION = ("json", "text", "markdown", "xray", "html", "bundle")
ECHOES = frozenset(map(SHOWN.format, _WITH_QUESTION)) | {"scores"}
"""Surfaces that repeat the question."""
INSIDE = ("sub_queries", "score_terms", "ranked", "packs", "trimmed", "trims", "citations", "blocks")
"""Tables computed from admissible rows only."""
WITHHELD = ("hits", "candidates")
"""Tables whose column `withheld` says which rows are not admissible."""
_RUN_ID = re.compile(r"run-(?<=\brun-)[0-9a-z]{18}\b")  # a leading literal is faster than a word boundary


def surfaces_of(run: Run, roles: pa.Table) -> Iterator[tuple[str, Retrieval, Surfaces]]:
    """Each request of a run with its answer and its surfaces, in order of their ids."""
    whole = {view.name: run.table(view.name, texts=True) for view in VIEWS}
    of_request = by_request({name: table for name, table in whole.items() if "request_id" in table.column_names})
    for request_id in sorted(run.snapshots["request_id"].to_pylist()):
        tables = of_request(request_id)
        limit = max_age_days(roles, tables["requests"]["role"][0].as_py() if tables["requests"].num_rows else None)
        answer = retrieval_of(tables)
        stored = Replay(
            str(answer.snapshot_id), run.run_id, answer.status, answer.block, answer.block_ref, tables, {}, ()
        )
        seen = Shown(stored, audit=False, max_age_days=limit)
        forms = {SHOWN.format(name): Rendering.of("", name, make(seen)).text for name, make in FORMS.items()}
        yield request_id, answer, forms | {"scores": _json(_inside(tables))}


def listed(settings: Settings, resolver: ContractResolver, asked: Mapping[str, Any], run: Run) -> Surfaces:
    """What a tenant, the principal of the settings, can list of corpus and run, and count under the contract of a request;
    nothing for auditors, who may see more.
    """
    mine = readable(settings, run)
    if audited(settings, mine.grants):
        return {}
    # Without questions, which are echoes.
    snapshots = [row | {"question": ""} for row in mine.listed()]
    return {
        "status": _json(corpus_facts(settings)),
        "snapshots": _json(snapshots),
        "context actions": as_csv(actions_of(settings, run, snapshots)),
        "contract": _json(explain(resolver.scope(Fields(columns_of(asked, "request"))))),
    }


def why(settings: Settings, snapshot_id: str, evidence: str) -> str:
    """The answer of `why` to a tenant about a row that is out of their scope, without its id."""
    try:
        text = _json(why_not(settings, snapshot_id, evidence))
    except ScopedRetrievalError as error:
        text = f"{type(error).__name__}: {error}"
    return text.replace(evidence, "EVIDENCE")


def health(settings: Settings) -> str:
    """What `doctor` tells a tenant; it reads the whole corpus."""
    return _json(examine(settings))


def refusal(answer: Retrieval, project: str) -> str:
    """The answer to a request in a project that is not granted, without the project's name."""
    text = _json([answer.status, answer.action, answer.conditions, answer.citations, answer.block])
    return text.replace(project, "PROJECT")


def plain(text: str, folder: Path) -> str:
    """The text with placeholders for snapshot ids, except their numbers, and for the folder of the test."""
    text = SNAPSHOT_ID.sub(r"SNAPSHOT-\g<number>", text)
    return _RUN_ID.sub("RUN", text).replace(str(folder), "FOLDER")


def _inside(tables: Mapping[str, pa.Table]) -> dict[str, list[dict[str, Any]]]:
    """The admissible rows of what was computed, without columns that no digest covers."""
    shown = {name: tables[name] for name in INSIDE}
    shown |= {name: tables[name].filter(pc.invert(tables[name]["withheld"])) for name in WITHHELD}
    apart = {name: {column for column, of in TABLES[name].columns.items() if not of.digest} for name in shown}
    return {
        name: table.select([column for column in table.column_names if column not in apart[name]]).to_pylist()
        for name, table in shown.items()
    }


def _json(value: Any) -> str:
    return json.dumps(value, default=str, ensure_ascii=False, sort_keys=True)
