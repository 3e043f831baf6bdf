"""Query planning: turns each request into several sub-queries, each with its own text, lanes, sources and limits.

Reads requests, contracts, the plan rules of the purpose, the words of the role and `session_texts`, the latest
observations of each request's own session. Gives `anchors`, `sub_queries` and `query_terms`.

Note: the query text of a sub-query is not the user's sentence. It is assembled from the parts its rule names: question,
context, declared anchors, anchors found in traces, state and the session's last events (S0.42). A rule whose parts are
all empty plans nothing, unless the request requires the evidence it serves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .columns.keys import (
    NOWHERE,
    constants,
    first_of_runs,
    flat,
    positions,
)
from .columns.list_columns import flattened
from .columns.ragged import starts_of
from .frames import MICROS_PER_DAY, micros
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
from .text.anchor_patterns import (
    KINDS,
    LOWER_CASE_ID,
    anchors_in,
    find_all,
    fixed_part,
    normalized_paths,
    spoken_state,
)
from .text.index_keys import anchor_keys
from .text.role_words import EXPANSION_WEIGHT, expansions
from .text.text_analysis import tokens_of

_WEIGHTS = {
    "failing_test": 1.0,
    "error_text": 1.0,
    "stack_trace": 1.0,
    "current_files": 1.0,
    "anchor_symbols": 1.0,
    "question": 0.5,
    "state": 0.5,
    "context_summary": 0.25,
    "session_events": 0.25,
}
"""Weight of an anchor by its origin, most trusted first: 1 where it was declared, less in prose."""

_KIND_PLACES = np.argsort(np.argsort(KINDS))
"""The alphabetical rank of each of KINDS."""
_PRINTED = ("failing_test", "error_text", "stack_trace", "question", "state", "context_summary")
_MINIMAL = frozenset({"lexical", "exact", "expansion"})
_GRAPH = ("symbol", "expansion", "graph")
_TEXT = pa.large_string()
_ASKED = ["request_id", "question", "context_summary", "failing_test", "error_text", "lane_k"]
_CONTRACTED = ["request_id", "purpose", "denied", "recall_effort", "mode", "mode_lanes", "required_evidence", "lane_k", "role",
               "window_paths", "path_window_start"]  # fmt: skip
_SEARCHED = ["request_id", "sub_query_id", "query_text", "expansion", "lanes"]
"""The columns that are read of requests, contracts and sub-queries."""
_LOOKED_UP = {
    "identifier": ("symbol", ("definition", "reference")),
    "test": ("symbol", ("definition", "reference")),
    "path": ("symbol", ("path",)),
    "id": ("exact", ("id",)),
    "literal": ("exact", ("literal",)),
}
"""The lane and the index fields in which an anchor of each kind is looked up."""

Int = NDArray[np.int64]


def anchors(requests: Requests, session_texts: SessionTexts) -> Anchors:
    """The anchors of each request, by request, kind and value; of equal values the most trusted origin is kept."""
    parts = [_declared(requests, *rule) for rule in (("current_files", "path"), ("anchor_symbols", "identifier"))]
    parts += [_declared(requests, *rule) for rule in (("failing_test", "test"), ("error_text", "error"))]
    parts += [_declared(requests, "error_text", "literal"), *_found(_texts(requests, session_texts))]
    parts = [_searchable(*part) for part in parts]
    parts = [part for part in parts if len(part[0])]
    if not parts:
        return ANCHORS.empty()
    request = np.concatenate([part[0] for part in parts])
    kind = np.concatenate([part[1] for part in parts])
    value = pa.concat_arrays([part[2].cast(_TEXT) for part in parts])
    origins = tuple(_WEIGHTS)
    of_part = np.array([origins.index(part[3]) for part in parts])
    origin = of_part.repeat([len(part[0]) for part in parts])
    kind_place = _KIND_PLACES[kind]
    value_place = _places(value)
    order = np.lexsort((origin, value_place, kind_place, request))
    order = order[first_of_runs(request[order], kind_place[order], value_place[order])]
    return ANCHORS.build(
        {
            "request_id": requests["request_id"].take(pa.array(request[order])),
            "kind": constants(KINDS).take(pa.array(kind[order])),
            "value": value.take(pa.array(order)),
            "origin": constants(origins).take(pa.array(origin[order])),
            "weight": np.array(list(_WEIGHTS.values()))[origin[order]],
        }
    )


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
    states = dict(zip(asked, spoken_state(flat(requests["state"])).to_pylist(), strict=True))
    named = _by_request(anchors)
    rows: list[dict[str, Any]] = []
    for contract, as_of in zip(
        contracts.select(_CONTRACTED).to_pylist(), micros(contracts["as_of"], 0).tolist(), strict=True
    ):
        name, effort, planned = contract["request_id"], contract["recall_effort"], 0
        request = asked[name]
        parts = _parts(request, states[name], named.get(name, ()))
        for rule in () if contract["denied"] or effort == "none" else rules.get(contract["purpose"], ()):
            text = "\n".join(words for part, words in parts.items() if words and part in rule["parts"])
            lanes = _lanes(rule["lanes"], contract["mode_lanes"], effort)
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
                    "role": contract["role"],
                    "lanes": lanes,
                    "lane_k": min(limit for limit in limits if limit is not None),
                    "oldest": None if age is None else as_of - round(age * MICROS_PER_DAY),
                    "window_paths": contract["window_paths"],
                    "window_start": contract["path_window_start"],
                }
            )
    texts, roles = (
        pa.array([row["query_text"] for row in rows], _TEXT),
        pa.array([row.pop("role") for row in rows], pa.string()),
    )
    added = expansions(texts, roles, role_policies, role_rules).to_pylist()
    return SUB_QUERIES.from_rows([row | {"expansion": words} for row, words in zip(rows, added, strict=True)])


def query_terms(sub_queries: SubQueries, anchors: Anchors) -> QueryTerms:
    """The index keys each sub-query looks up, by request, sub-query, field and term; no term is capped or dropped.

    A text term weighs its count in the query text, a quarter of that in the role's expansion. An anchor's keys have its
    weight, less for vaguer keys; where two anchors share a key, the greater weight counts.
    """
    asked = sub_queries.select(_SEARCHED).to_pylist()
    exact = [number for number, sub in enumerate(asked) if "exact" in sub["lanes"]]
    ids: dict[int, list[str]] = {}
    for number, value in zip(
        *(part.tolist() for part in _small_ids([asked[n]["query_text"] for n in exact])), strict=True
    ):
        ids.setdefault(exact[number], []).append(value)
    named = _by_request(anchors)
    found: list[tuple[str, str, str, str, float]] = []
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
        for value in ids.get(number, ()):
            terms["id", value] = max(terms.get(("id", value), 0.0), _WEIGHTS["question"])
        place = sub["request_id"], sub["sub_query_id"]
        found += [(*place, *key, weight) for key, weight in terms.items()]
    columns = zip(*sorted(found), strict=True) if found else ([],) * 5
    return QUERY_TERMS.build(dict(zip(QUERY_TERMS.columns, map(list, columns), strict=True)), rows=len(found))


Named = tuple[str, str, str, float]
"""Kind, origin, value and weight of an anchor."""


def _by_request(anchors: pa.Table) -> dict[str, list[Named]]:
    found: dict[str, list[Named]] = {}
    columns = (anchors[name].to_pylist() for name in ("request_id", "kind", "origin", "value", "weight"))
    for request, *anchor in zip(*columns, strict=True):
        found.setdefault(request, []).append(tuple(anchor))
    return found


def _parts(request: Mapping[str, Any], state: str | None, anchors: Iterable[Named]) -> dict[str, str | None]:
    """The texts that query texts are assembled from, in their order."""

    def named(*kinds: str, origins: Collection[str]) -> str:
        return " ".join(value for kind, origin, value, _ in anchors if kind in kinds and origin in origins)

    told = {*_WEIGHTS} - {"stack_trace", "session_events"}
    besides = told - {"question"}  # its names stand in it, and would count twice
    return {
        "question": request["question"],
        "context": request["context_summary"],
        "failing_test": request["failing_test"],
        "error": named("error", origins={*told, "stack_trace"})
        if request["error_text"] is None
        else request["error_text"],
        "stack": named("identifier", "path", origins=("stack_trace",)),
        "files": named("path", origins=besides),
        "symbols": named("identifier", origins=besides),
        "state": state,
        "session": named(*KINDS, origins=("session_events",)),
    }


def _lanes(ruled: Iterable[str], of_mode: Iterable[str] | None, effort: str) -> list[str]:
    """The lanes of a rule and of the mode. `graph` adds the walking lanes, `minimal` keeps words, ids and, for conflict
    sets alone, the expansion (S0.111).
    """
    chosen = dict.fromkeys([*ruled, *(of_mode or ()), *(_GRAPH if effort == "graph" else ())])
    return [lane for lane in chosen if effort != "minimal" or lane in _MINIMAL]


def _small_ids(texts: Sequence[str]) -> tuple[Int, pa.Array]:
    """Lower-case ids (S1.20), each with the number of its text: look-up keys, not anchors.

    As an anchor, `utf-8` would score every text that contains it; as a key, it finds a record of that name or nothing.
    """
    number, values = find_all(pa.array(texts, _TEXT), LOWER_CASE_ID)
    return number, np.array(values.to_pylist(), dtype=object)


def _declared(requests: pa.Table, column: str, kind: str) -> tuple[Int, Int, pa.Array, str]:
    """A declared anchor as its own first match: each path or symbol, the test's name, the error's first line."""
    values = flat(requests[column])
    if pa.types.is_list(values.type):
        at, values = flattened(values)
        if not len(at):
            return NOWHERE, NOWHERE, constants((), _TEXT), column
    elif values.null_count == len(values):
        return NOWHERE, NOWHERE, constants((), _TEXT), column
    else:
        at, values = np.asarray(values.is_valid()).nonzero()[0], values.drop_null()
        values = pc.replace_substring_regex(pc.utf8_trim_whitespace(values), pattern=r"(?s)\n.*", replacement="")
    values = pc.utf8_trim_whitespace(normalized_paths(values) if kind == "path" else values).cast(_TEXT)
    kept = np.asarray(pc.fill_null(pc.greater(pc.binary_length(values), 0), False))
    at, values = at[kept], values.filter(pa.array(kept))
    return at, np.full(len(at), KINDS.index(kind)), values, column


def _searchable(at: Int, kind: Int, values: pa.Array, origin: str) -> tuple[Int, Int, pa.Array, str]:
    """Anchors with each literal as its fixed part; those of less than two words are no literals."""
    literal = kind == KINDS.index("literal")
    if not literal.any():
        return at, kind, values, origin
    texts = [fixed_part(text) if one else text for text, one in zip(values.to_pylist(), literal, strict=True)]
    kept = np.array([not one or len(text.split()) > 1 for text, one in zip(texts, literal, strict=True)])
    return at[kept], kind[kept], pa.array(texts, _TEXT).filter(pa.array(kept)), origin


def _texts(requests: pa.Table, session_texts: pa.Table) -> list[tuple[str, Int, pa.Array]]:
    """All texts that may contain anchors: their origin, the request of each text, the texts."""
    columns = []
    for name in _PRINTED:
        text = flat(requests[name])
        if text.null_count < len(text):
            present = text.drop_null().cast(_TEXT)
            at = np.asarray(text.is_valid()).nonzero()[0]
            columns.append((name, at, spoken_state(present) if name == "state" else present))
    if session_texts.num_rows:
        owner = positions(session_texts["request_id"], requests["request_id"])
        columns.append(("session_events", owner, flat(session_texts["text"]).cast(_TEXT)))
    return columns


def _found(columns: list[tuple[str, Int, pa.Array]]) -> list[tuple[Int, Int, pa.Array, str]]:
    """The anchors in some texts; every pattern runs once over all of them."""
    if not columns:
        return []
    starts = starts_of(np.array([len(text) for _, _, text in columns]))
    found = anchors_in(pa.concat_arrays([text for _, _, text in columns]))
    column = starts.searchsorted(found.text, side="right") - 1
    parts = []
    for number, (name, owner, _) in enumerate(columns):
        own = (column == number).nonzero()[0]
        at = owner[found.text[own] - starts[number]]
        parts.append((at, found.kind[own], found.value.take(pa.array(own)), name))
    return parts


def _places(values: pa.Array) -> Int:
    """The rank of each value among the sorted distinct values."""
    encoded = values.dictionary_encode()
    place = np.empty(len(encoded.dictionary), dtype=np.int64)
    place[pc.array_sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(place))
    return place[encoded.indices.to_numpy()]
