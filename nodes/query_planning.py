"""Query planning: turns each request into several sub-queries, each with its own text, lanes, sources and limits.

Reads requests, contracts, the plan rules of the purpose, the words of the role and `session_texts`, the latest
observations of each request's own session. Gives `anchors`, `sub_queries` and `query_terms`.

Note: the query text of a sub-query is not the user's sentence. It is assembled from the parts its rule names: question,
context, declared anchors, anchors found in traces, state and the session's last events (S0.42). A rule whose parts are
all empty plans nothing, unless the request requires the evidence it serves.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from .frames import FIELDS, MICROS_PER_DAY, micros
from .schema import Table
from .tables import (
    ANCHORS,
    QUERY_TERMS,
    SUB_QUERIES,
    Anchors,
    Contracts,
    PlanRules,
    QueryTerms,
    Requests,
    RolePolicies,
    RoleRules,
    SessionTexts,
    SubQueries,
)
from .text.anchor_patterns import KINDS, LOWER_CASE_ID, anchors_in, fixed_part, normalized_paths, spoken_state
from .text.index_keys import anchor_keys
from .text.role_words import EXPANSION_WEIGHT, expansion
from .text.text_analysis import tokens_of

_WEIGHTS = {
    "failing_test": 1.0,
    "error_text": 1.0,
    "stack_trace": 1.0,
    "current_files": 1.0,
    "anchor_symbols": 1.0,
    "regexes": 1.0,
    "variables": 1.0,
    "question": 0.5,
    "state": 0.5,
    "context_summary": 0.25,
    "session_events": 0.25,
}
"""Weight of an anchor by its origin, most trusted first: 1 where it was declared, less in prose."""

_DECLARED = ("current_files", "anchor_symbols", "regexes", "variables")
_PRINTED = ("failing_test", "error_text", "stack_trace", "question", "state", "context_summary")
_MINIMAL = frozenset({"lexical", "exact", "expansion"})
_GRAPH = ("symbol", "expansion", "graph")
_TEXT = pa.large_string()
_SMALL_ID = re.compile(LOWER_CASE_ID, re.ASCII)
_ASKED = ["request_id", "question", "regexes", "context_summary", "failing_test", "error_text", "state", "lane_k"]
_CONTRACTED = ["request_id", "purpose", "denied", "recall_effort", "mode", "mode_lanes", "required_evidence", "lane_k", "role",
               "window_paths", "path_window_start"]  # fmt: skip
_SEARCHED = ["request_id", "query_text", "expansion", "lanes"]
"""The columns that are read of requests, contracts and sub-queries."""
_LOOKED_UP = {
    "identifier": ("symbol", ("definition", "reference")),
    "test": ("symbol", ("definition", "reference")),
    "path": ("symbol", ("path",)),
    "id": ("exact", ("id",)),
    "literal": ("exact", ("literal",)),
    "regex": ("exact", ("regex",)),
}
"""The lane and the index fields in which an anchor of each kind is looked up."""


def anchors(requests: Requests, session_texts: SessionTexts) -> Anchors:
    """The anchors of each request, by request, kind and value; of equal values the most trusted origin is kept."""
    named, texts = list[tuple[str, str, str, str]](), list[tuple[str, str, str]]()
    for row in requests.select(["request_id", *_DECLARED, *_PRINTED]).to_pylist():
        request, state = row["request_id"], row["state"]
        if files := row["current_files"]:
            paths = normalized_paths(pa.array(files, _TEXT)).to_pylist()
            named += [(request, "path", path, "current_files") for path in paths]
        named += [(request, "identifier", name, "anchor_symbols") for name in row["anchor_symbols"] or ()]
        named += [(request, "regex", f"(?m){value}", "regexes") for value in row["regexes"] or ()]
        variables = json.loads(row["variables"] or "{}").values()
        named += [(request, "id", value, "variables") for value in variables if isinstance(value, str)]
        for origin, kind in (("failing_test", "test"), ("error_text", "error"), ("error_text", "literal")):
            named.append((request, kind, (row[origin] or "").strip().partition("\n")[0], origin))
        said = row | {"state": spoken_state(state) if state is not None else None}
        texts += [(request, origin, said[origin]) for origin in _PRINTED if said[origin] is not None]
    observed = (session_texts[name].to_pylist() for name in ("request_id", "text"))
    texts += [(request, "session_events", text) for request, text in zip(*observed, strict=True)]
    for at, kind, value in anchors_in(pa.array([text for *_, text in texts], _TEXT)):
        request, origin, _ = texts[at]
        named.append((request, kind, value, origin))
    ranks, best = {origin: rank for rank, origin in enumerate(_WEIGHTS)}, dict[tuple[str, str, str], str]()
    for request, kind, value, origin in sorted(named, key=lambda one: -ranks[one[3]]):
        searched = fixed_part(value) if kind == "literal" else value if kind == "regex" else value.strip()
        if searched and (kind != "literal" or len(searched.split()) > 1):
            best[request, kind, searched] = origin
    rows = [(*key, best[key], _WEIGHTS[best[key]]) for key in sorted(best)]
    return ANCHORS.build(_columns(rows, ANCHORS), rows=len(rows))


def sub_queries(
    contracts: Contracts,
    requests: Requests,
    anchors: Anchors,
    plan_rules: PlanRules,
    role_policies: RolePolicies,
    role_rules: RoleRules,
) -> SubQueries:
    """The retrieval plan of each request, by request and ordinal; none if denied or at recall effort none."""
    rules: dict[str, list[dict[str, Any]]] = {}
    for rule in plan_rules.to_pylist():
        rules.setdefault(rule["purpose"], []).append(rule)
    asked = {row["request_id"]: row for row in requests.select(_ASKED).to_pylist()}
    named = _by_request(anchors)
    rows: list[dict[str, Any]] = []
    for contract, as_of in zip(
        contracts.select(_CONTRACTED).to_pylist(), micros(contracts["as_of"], 0).tolist(), strict=True
    ):
        name, effort, planned = contract["request_id"], contract["recall_effort"], 0
        request = asked[name]
        parts = _parts(request, named.get(name, ()))
        for rule in () if contract["denied"] or effort == "none" else rules.get(contract["purpose"], ()):
            text = "\n".join(words for part, words in parts.items() if words and part in rule["parts"])
            lanes = _lanes(rule["lanes"], contract["mode_lanes"], effort)
            if request["regexes"] and not text.strip():  # what is written, and nothing that is near
                text, lanes = "\n".join(request["regexes"]), [lane for lane in lanes if lane == "exact"]
            required = not {*(contract["required_evidence"] or ())}.isdisjoint(rule["requires"] or ())
            if not lanes or not (text.strip() or required):
                continue
            planned += 1
            most = [rule["lane_k"] if contract["mode"] is None else None, contract["lane_k"]]
            limits = [next(limit for limit in most if limit is not None), request["lane_k"]]
            age = rule["max_age_days"]
            rows.append(
                {
                    **{column: rule[column] for column in ("intent", "sources", "kinds", "min_authority")},
                    "request_id": name,
                    "sub_query_id": f"q{planned}",
                    "ordinal": planned,
                    "query_text": text,
                    "expansion": expansion(text, contract["role"], role_policies, role_rules),
                    "lanes": lanes,
                    "lane_k": min(limit for limit in limits if limit is not None),
                    "oldest": None if age is None else as_of - round(age * MICROS_PER_DAY),
                    "window_paths": contract["window_paths"],
                    "window_start": contract["path_window_start"],
                }
            )
    return SUB_QUERIES.from_rows(rows)


def query_terms(sub_queries: SubQueries, anchors: Anchors) -> QueryTerms:
    """The index keys each sub-query looks up, by sub-query, field and term; no term is capped or dropped.

    A text term weighs its count in the query text, a quarter of that in the role's expansion. An anchor's keys have its
    weight, less for vaguer keys; where two anchors share a key, the greater weight counts.
    """
    asked = sub_queries.select(_SEARCHED).to_pylist()
    named = _by_request(anchors)
    found: list[tuple[int, str, str, float]] = []
    for number, sub in enumerate(asked):
        lanes, terms = set(sub["lanes"]), dict[tuple[str, str], float]()
        if lanes & {"lexical", "file"}:
            for text, weight in ((sub["query_text"], 1.0), (sub["expansion"], EXPANSION_WEIGHT)):
                for term in tokens_of(text or ""):
                    terms["text", term] = terms.get(("text", term), 0.0) + weight
        for kind, _, value, weight in named.get(sub["request_id"], ()):
            lane, fields = _LOOKED_UP.get(kind, ("", ()))
            if lane in lanes:
                for term, share in anchor_keys(kind, value):
                    for field in fields:
                        terms[field, term] = max(terms.get((field, term), 0.0), weight * share)
        # Ids in lower case (S1.20) are keys, not anchors: `utf-8` would score every text that contains it.
        for value in _SMALL_ID.findall(sub["query_text"]) if "exact" in lanes else ():
            terms["id", value] = max(terms.get(("id", value), 0.0), _WEIGHTS["question"])
        found += [(number, field, f"{FIELDS[field]}:{term}", weight) for (field, term), weight in sorted(terms.items())]
    return QUERY_TERMS.build(_columns(found, QUERY_TERMS), rows=len(found))


def _columns(rows: Sequence[tuple[Any, ...]], of: Table) -> dict[str, list[Any]]:
    """Rows as the columns of a table."""
    columns = zip(*rows, strict=True) if rows else ([],) * len(of.columns)
    return dict(zip(of.columns, map(list, columns), strict=True))


Named = tuple[str, str, str, float]
"""Kind, origin, value and weight of an anchor."""


def _by_request(anchors: pa.Table) -> dict[str, list[Named]]:
    found: dict[str, list[Named]] = {}
    columns = (anchors[name].to_pylist() for name in ("request_id", "kind", "origin", "value", "weight"))
    for request, *anchor in zip(*columns, strict=True):
        found.setdefault(request, []).append(tuple(anchor))
    return found


def _parts(request: Mapping[str, Any], anchors: Iterable[Named]) -> dict[str, str | None]:
    """The texts that query texts are assembled from, in their order."""

    def named(*kinds: str, origins: Collection[str]) -> str:
        return " ".join(value for kind, origin, value, _ in anchors if kind in kinds and origin in origins)

    told = {*_WEIGHTS} - {"stack_trace", "session_events"}
    besides = told - {"question"}  # its names stand in it, and would count twice
    return {
        "question": request["question"] or request["error_text"] or request["failing_test"],
        "context": request["context_summary"],
        "failing_test": request["failing_test"],
        "error": named("error", origins={*told, "stack_trace"})
        if request["error_text"] is None
        else request["error_text"],
        "stack": named("identifier", "path", origins=("stack_trace",)),
        "files": named("path", origins=besides),
        "symbols": named("identifier", origins=besides),
        "state": None if request["state"] is None else spoken_state(request["state"]),
        "session": named(*KINDS, origins=("session_events",)),
    }


def _lanes(ruled: Iterable[str], of_mode: Iterable[str] | None, effort: str) -> list[str]:
    """The lanes of a rule and of the mode. `graph` adds the walking lanes, `minimal` keeps words, ids and, for conflict
    sets alone, the expansion (S0.111).
    """
    chosen = dict.fromkeys([*ruled, *(of_mode or ()), *(_GRAPH if effort == "graph" else ())])
    return [lane for lane in chosen if effort != "minimal" or lane in _MINIMAL]
