"""Query planning: turns each request into several sub-queries, each with its own text, lanes, sources and limits.

Reads requests, contracts, the plan rules of the purpose, the words of the role and `session_texts`, what each request's
own session has just observed. Gives `anchors`, `sub_queries` and `query_terms`.

The one thing to know: the query text of a sub-query is not the user's sentence. It is put together from the parts its
rule names: question, context, declared anchors, what was found in traces, state and the session's last events (S0.42).
A rule whose parts are all empty plans nothing, unless the request requires the evidence it serves.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .anchor_keys import definition_terms, id_terms, path_terms
from .anchor_patterns import KINDS, anchors_in, normalised_paths, spoken_state
from .frames import MICROS_PER_DAY, expand_ranges, micros
from .keys import first_of_runs, flat, positions
from .list_columns import flattened, holds
from .ragged import Ragged, starts_of
from .role_words import EXPANSION_WEIGHT, expansions
from .schema import TIMESTAMP
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
from .text_analysis import query_tokens
from .vocabulary import RECALL_EFFORTS, REQUIRED_EVIDENCE

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
"""How much an anchor weighs by where it was found, most trusted first: 1 where it was declared, less in prose."""

_PRINTED = ("failing_test", "error_text", "stack_trace", "question", "state", "context_summary")
_MINIMAL = frozenset({"lexical", "exact"})
_GRAPH = ("symbol", "expansion")
_TEXT = pa.large_string()

Int = NDArray[np.int64]


def anchors(requests: Requests, session_texts: SessionTexts) -> Anchors:
    """What each request names, by request, kind and value; of equal values the most trusted origin stays."""
    parts = [_declared(requests, *rule) for rule in (("current_files", "path"), ("anchor_symbols", "identifier"))]
    parts += [_declared(requests, *rule) for rule in (("failing_test", "test"), ("error_text", "error"))]
    parts += _found(_texts(requests, session_texts))
    request = np.concatenate([part[0] for part in parts])
    kind = np.concatenate([part[1] for part in parts])
    value = pa.concat_arrays([part[2].cast(_TEXT) for part in parts])
    origins = list(_WEIGHTS)
    origin = np.concatenate([np.full(len(part[0]), origins.index(part[3])) for part in parts])
    kind_place = np.argsort(np.argsort(KINDS))[kind]
    value_place = _places(value)
    order = np.lexsort((origin, value_place, kind_place, request))
    order = order[first_of_runs(request[order], kind_place[order], value_place[order])]
    return ANCHORS.build(
        {
            "request_id": requests["request_id"].take(pa.array(request[order])),
            "kind": pa.array(KINDS).take(pa.array(kind[order])),
            "value": value.take(pa.array(order)),
            "origin": pa.array(origins).take(pa.array(origin[order])),
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
    """The retrieval plan of each request, by request and ordinal; a denied request or one of effort none has none."""
    efforts = list(RECALL_EFFORTS.values)
    effort = positions(contracts["recall_effort"], pa.array(efforts))
    denied = contracts["denied"].to_numpy()
    rule_purposes = pc.unique(flat(plan_rules["purpose"]))
    purpose = positions(contracts["purpose"], rule_purposes)
    purpose[denied | (effort == efforts.index("none"))] = -1
    rule_purpose = positions(plan_rules["purpose"], rule_purposes)
    by_purpose = rule_purpose.argsort(kind="stable")
    starts = starts_of(np.bincount(rule_purpose, minlength=len(rule_purposes)))
    planned = (purpose >= 0).nonzero()[0]
    counts = np.diff(starts)[purpose[planned]]
    request = planned.repeat(counts)
    rule = by_purpose[expand_ranges(starts[purpose[planned]], counts)]

    extra, extras = _mode_lanes(contracts)
    lanes, kept_lanes = _lanes(plan_rules, efforts, extras)
    plan_lanes = (rule * len(efforts) + effort[request]) * len(extras) + extra[request]
    text = _query_texts(contracts, requests, anchors, plan_rules, request, rule)
    required = _required(contracts, plan_rules, request, rule)
    worded = np.asarray(pc.greater(pc.binary_length(pc.utf8_trim_whitespace(text)), 0))
    kept = ((worded | required) & kept_lanes[plan_lanes]).nonzero()[0]
    request, rule, text, plan_lanes = request[kept], rule[kept], text.take(pa.array(kept)), plan_lanes[kept]
    ordinal = np.arange(len(request)) - request.searchsorted(request) + 1
    at = pa.array(rule)
    asked = requests["lane_k"].take(pa.array(positions(contracts["request_id"], requests["request_id"])[request]))
    ruled = pc.if_else(contracts["mode"].is_valid().take(pa.array(request)), None, plan_rules["lane_k"].take(at))
    lane_k = pc.coalesce(ruled, contracts["lane_k"].take(pa.array(request)))
    age = plan_rules["max_age_days"].take(at)
    days = np.nan_to_num(age.fill_null(0.0).to_numpy())
    oldest = micros(contracts["as_of"], 0)[request] - np.rint(days * MICROS_PER_DAY).astype(np.int64)
    roles = flat(contracts["role"]).take(pa.array(request))
    return SUB_QUERIES.build(
        {
            "request_id": contracts["request_id"].take(pa.array(request)),
            "sub_query_id": pc.binary_join_element_wise("q", pa.array(ordinal).cast(pa.string()), ""),
            "ordinal": ordinal.astype(np.int32),
            "intent": plan_rules["intent"].take(at),
            "query_text": text,
            "expansion": expansions(text, roles, role_policies, role_rules),
            "lanes": lanes.take(pa.array(plan_lanes)),
            "sources": plan_rules["sources"].take(at),
            "kinds": plan_rules["kinds"].take(at),
            "lane_k": pc.min_element_wise(lane_k, asked),
            "min_authority": plan_rules["min_authority"].take(at),
            "oldest": pa.array(oldest, mask=~np.asarray(age.is_valid())).cast(TIMESTAMP),
            "window_paths": contracts["window_paths"].take(pa.array(request)),
            "window_start": contracts["path_window_start"].take(pa.array(request)),
        }
    )


def query_terms(sub_queries: SubQueries, anchors: Anchors) -> QueryTerms:
    """The index keys each sub-query looks up, by request, sub-query, field and term; no term is capped or dropped.

    A text term weighs its count in the query text, a quarter of that in what the role adds. An anchor's keys weigh what
    the anchor weighs, less for the vaguer ones; where two anchors share a key the greater weight counts.
    """
    lanes = {lane: holds(sub_queries["lanes"], lane).nonzero()[0] for lane in ("lexical", "symbol", "exact")}
    parts = [
        _text_terms(sub_queries["query_text"], lanes["lexical"], 1.0),
        _text_terms(sub_queries["expansion"], lanes["lexical"], EXPANSION_WEIGHT),
    ]
    kind = positions(anchors["kind"], pa.array(KINDS))
    owner = positions(anchors["request_id"], sub_queries["request_id"].unique())
    mine = positions(sub_queries["request_id"], sub_queries["request_id"].unique())
    for lane, kinds, fields, terms_of in (
        ("symbol", ("identifier", "test"), ("definition", "reference"), definition_terms),
        ("symbol", ("path",), ("path",), path_terms),
        ("exact", ("id",), ("id",), id_terms),
    ):
        chosen = (np.isin(kind, [KINDS.index(k) for k in kinds]) & (owner >= 0)).nonzero()[0]
        chosen = chosen[owner[chosen].argsort(kind="stable")]
        terms, shares = terms_of(flat(anchors["value"].take(pa.array(chosen))))
        starts = owner[chosen].searchsorted(mine[lanes[lane]])
        counts = owner[chosen].searchsorted(mine[lanes[lane]], side="right") - starts
        sub = lanes[lane].repeat(counts)
        anchor = expand_ranges(starts, counts)
        per = np.diff(terms.starts)[anchor]
        at = expand_ranges(terms.starts[anchor], per)
        weight = anchors["weight"].to_numpy()[chosen][anchor.repeat(per)] * shares[at]
        values = terms.vocabulary.take(pa.array(terms.codes[at])).cast(_TEXT)
        parts += [(field, sub.repeat(per), values, weight) for field in fields]
    return _terms_table(sub_queries, parts)


def _text_terms(texts: pa.ChunkedArray, subs: Int, weight: float) -> tuple[str, Int, pa.Array, NDArray[np.float64]]:
    """Every term of the texts of some sub-queries, each at the same weight; a null text has none."""
    subs = subs[np.asarray(texts.is_valid())[subs]]
    encoded = flat(texts).dictionary_encode()
    tokens = Ragged.of(query_tokens(encoded.dictionary))
    counts = np.diff(tokens.starts)
    code = encoded.indices.take(pa.array(subs)).to_numpy()
    of = subs.repeat(counts[code])
    term = tokens.codes[expand_ranges(tokens.starts[:-1][code], counts[code])]
    return "text", of, tokens.vocabulary.take(pa.array(term)).cast(_TEXT), np.full(len(of), weight)


def _declared(requests: pa.Table, column: str, kind: str) -> tuple[Int, Int, pa.Array, str]:
    """A declared anchor as its own first match: each path or symbol, the test's name, the error's first line."""
    values = flat(requests[column])
    if pa.types.is_list(values.type):
        at, values = flattened(values)
    else:
        at, values = np.flatnonzero(values.is_valid()), values.drop_null()
        values = pc.replace_substring_regex(pc.utf8_trim_whitespace(values), pattern=r"(?s)\n.*", replacement="")
    values = pc.utf8_trim_whitespace(normalised_paths(values) if kind == "path" else values).cast(_TEXT)
    kept = np.asarray(pc.fill_null(pc.greater(pc.binary_length(values), 0), False))
    at, values = at[kept], values.filter(pa.array(kept))
    return at, np.full(len(at), KINDS.index(kind)), values, column


def _texts(requests: pa.Table, session_texts: pa.Table) -> list[tuple[str, Int, pa.Array]]:
    """Everything that may hold anchors: where it comes from, the request of each text, the texts."""
    columns = []
    for name in _PRINTED:
        text = flat(requests[name])
        columns.append((name, np.flatnonzero(text.is_valid()), text.drop_null().cast(_TEXT)))
    state = _PRINTED.index("state")
    columns[state] = (*columns[state][:2], spoken_state(columns[state][2]))
    owner = positions(session_texts["request_id"], requests["request_id"])
    return [*columns, ("session_events", owner, flat(session_texts["text"]).cast(_TEXT))]


def _found(columns: list[tuple[str, Int, pa.Array]]) -> list[tuple[Int, Int, pa.Array, str]]:
    """The anchors that stand in some texts; every pattern runs once over all of them."""
    starts = starts_of(np.array([len(text) for _, _, text in columns]))
    found = anchors_in(pa.concat_arrays([text for _, _, text in columns]))
    column = starts.searchsorted(found.text, side="right") - 1
    parts = []
    for number, (name, owner, _) in enumerate(columns):
        own = (column == number).nonzero()[0]
        at = owner[found.text[own] - starts[number]]
        parts.append((at, found.kind[own], found.value.take(pa.array(own)), name))
    return parts


def _mode_lanes(contracts: pa.Table) -> tuple[NDArray[np.int64], list[list[str]]]:
    """The distinct lists of lanes that modes add, and which is each contract's."""
    lists = pc.binary_join(flat(contracts["mode_lanes"]), " ").dictionary_encode()
    return lists.indices.to_numpy().astype(np.int64), [words.split() for words in lists.dictionary.to_pylist()]


def _lanes(plan_rules: pa.Table, efforts: list[str], extras: list[list[str]]) -> tuple[pa.Array, NDArray[np.bool_]]:
    """The lanes of every (rule, recall effort, lanes of the mode) and whether any is left.

    `graph` adds what walks, `minimal` keeps two.
    """
    lists = []
    for lanes, effort, extra in product(plan_rules["lanes"].to_pylist(), efforts, extras):
        chosen = dict.fromkeys([*lanes, *extra, *_GRAPH] if effort == "graph" else [*lanes, *extra])
        lists.append([lane for lane in chosen if effort != "minimal" or lane in _MINIMAL])
    return pa.array(lists, type=pa.list_(pa.string())), np.array([len(lanes) > 0 for lanes in lists], dtype=bool)


def _query_texts(
    contracts: pa.Table,
    requests: pa.Table,
    anchors: pa.Table,
    plan_rules: pa.Table,
    request: Int,
    rule: Int,
) -> pa.Array:
    """The query text of each (contract, rule) pair: the parts of the rule that are not empty, one per line."""
    asked = requests.take(pa.array(positions(contracts["request_id"], requests["request_id"])))
    owner = positions(anchors["request_id"], contracts["request_id"])
    origin = {name: np.asarray(pc.equal(flat(anchors["origin"]), name)) for name in ("stack_trace", "session_events")}
    traced, observed = origin.values()
    asked_for = ~(traced | observed)
    is_kind = {kind: np.asarray(pc.equal(flat(anchors["kind"]), kind)) for kind in KINDS}

    def named(mask: NDArray[np.bool_]) -> pa.Array:
        chosen = (mask & (owner >= 0)).nonzero()[0]
        lists = pa.LargeListArray.from_arrays(
            pa.array(starts_of(np.bincount(owner[chosen], minlength=contracts.num_rows))),
            flat(anchors["value"]).take(pa.array(chosen)),
        )
        return pc.binary_join(lists, pa.scalar(" ", _TEXT))

    parts = {
        "question": asked["question"],
        "context": asked["context_summary"],
        "failing_test": asked["failing_test"],
        "error": pc.coalesce(flat(asked["error_text"]), named(~observed & is_kind["error"])),
        "stack": named(traced & (is_kind["identifier"] | is_kind["path"])),
        "files": named(asked_for & is_kind["path"]),
        "symbols": named(asked_for & is_kind["identifier"]),
        "state": spoken_state(flat(asked["state"])),
        "session": named(observed),
    }
    columns = []
    for name, text in parts.items():
        named_by = holds(plan_rules["parts"], name)[rule]
        text = flat(text).cast(_TEXT)
        empty = pc.fill_null(pc.equal(pc.binary_length(text), 0), True)
        columns.append(flat(text).take(pa.array(request, mask=~named_by | np.asarray(empty)[request])))
    # Arrow's join with `skip` loses a row whose values are all null, so such a row gets an empty one.
    blank = np.logical_and.reduce([np.asarray(column.is_null()) for column in columns])
    columns[0] = pc.if_else(pa.array(blank), pa.scalar("", _TEXT), columns[0])
    return pc.binary_join_element_wise(*columns, pa.scalar("\n", _TEXT), null_handling="skip")


def _required(contracts: pa.Table, plan_rules: pa.Table, request: Int, rule: Int) -> NDArray[np.bool_]:
    """Whether the contract requires evidence that the rule serves."""
    needed = np.zeros(len(request), dtype=bool)
    for value in REQUIRED_EVIDENCE.values:
        wanted = holds(contracts["required_evidence"], value)
        served = holds(plan_rules["requires"], value)
        needed |= wanted[request] & served[rule]
    return needed


def _terms_table(sub_queries: pa.Table, parts: list[tuple[str, Int, pa.Array, NDArray[np.float64]]]) -> pa.Table:
    """The looked-up keys in declared order: counts of equal text terms added, of equal anchor keys the greatest."""
    fields = sorted(field for field, _, _, _ in parts)
    sub = np.concatenate([part[1] for part in parts])
    field = np.concatenate([np.full(len(part[1]), fields.index(part[0])) for part in parts])
    terms = pa.concat_arrays([part[2] for part in parts])
    weight = np.concatenate([part[3] for part in parts])
    place = _places(terms)
    ordered = pc.sort_indices(
        sub_queries, sort_keys=[("request_id", "ascending"), ("sub_query_id", "ascending")]
    ).to_numpy()
    sub_place = ordered.argsort()
    order = np.lexsort((place, field, sub_place[sub]))
    first = first_of_runs(sub[order], field[order], place[order])
    text = fields.index("text")
    total = np.where(
        field[order][first] == text,
        np.add.reduceat(weight[order], first) if len(first) else weight,
        np.maximum.reduceat(weight[order], first) if len(first) else weight,
    )
    chosen = order[first]
    at = pa.array(sub[chosen])
    return QUERY_TERMS.build(
        {
            "request_id": sub_queries["request_id"].take(at),
            "sub_query_id": sub_queries["sub_query_id"].take(at),
            "field": pa.array(fields).take(pa.array(field[chosen])),
            "term": terms.take(pa.array(chosen)),
            "weight": total,
        }
    )


def _places(values: pa.Array) -> Int:
    """The place of each value among the sorted distinct values."""
    encoded = values.dictionary_encode()
    place = np.empty(len(encoded.dictionary), dtype=np.int64)
    place[pc.array_sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(place))
    return place[encoded.indices.to_numpy()]
