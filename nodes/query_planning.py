"""Query planning: turns each request into several sub-queries, each with its own text, lanes, sources and limits.

Reads requests, contracts, the plan rules of the purpose, the words of the role and `session_texts`, the latest
observations of each request's own session. Gives `anchors`, `sub_queries` and `query_terms`.

Note: the query text of a sub-query is not the user's sentence. It is assembled from the parts its rule names: question,
context, declared anchors, anchors found in traces, state and the session's last events (S0.42). A rule whose parts are
all empty plans nothing, unless the request requires the evidence it serves.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .columns.keys import (
    NOWHERE,
    constants,
    distinct_numbers,
    first_of_runs,
    flat,
    gathered,
    gathered_columns,
    literal,
    positions,
    truth,
)
from .columns.list_columns import flattened, held
from .columns.ragged import Ragged, expand_ranges, starts_of
from .frames import MICROS_PER_DAY, micros
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
from .text.anchor_keys import definition_terms, id_terms, literal_terms, path_terms, small_ids
from .text.anchor_patterns import KINDS, anchors_in, fixed_part, normalized_paths, spoken_state
from .text.role_words import EXPANSION_WEIGHT, expansions
from .text.text_analysis import query_tokens
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
"""Weight of an anchor by its origin, most trusted first: 1 where it was declared, less in prose."""

_KIND_PLACES = np.argsort(np.argsort(KINDS))
"""The alphabetical rank of each of KINDS."""
_PRINTED = ("failing_test", "error_text", "stack_trace", "question", "state", "context_summary")
_MINIMAL = frozenset({"lexical", "exact", "expansion"})
_GRAPH = ("symbol", "expansion", "graph")
_TEXT = pa.large_string()
_RULED = ("intent", "sources", "kinds", "lane_k", "min_authority", "max_age_days")
_CONTRACTED = ("request_id", "mode", "lane_k", "as_of", "role", "window_paths", "path_window_start")
"""The columns of a sub-query that come from its rule and from its contract."""
_TEXT_COLUMNS = ("question", "context_summary", "failing_test", "error_text", "state")
"""The request columns that query texts are assembled from, besides anchors."""
_BY_SUB_QUERY = pc.SortOptions([("request_id", "ascending"), ("sub_query_id", "ascending")])

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
    efforts = RECALL_EFFORTS.values
    effort = positions(contracts["recall_effort"], constants(efforts))
    denied = contracts["denied"].to_numpy()
    rule_purposes = pc.unique(flat(plan_rules["purpose"]))
    purpose = positions(contracts["purpose"], rule_purposes)
    purpose[denied | (effort == efforts.index("none"))] = -1
    rule_purpose = positions(plan_rules["purpose"], rule_purposes)
    by_purpose = rule_purpose.argsort(kind="stable")
    starts = starts_of(np.bincount(rule_purpose, minlength=len(rule_purposes)))
    planned = (purpose >= 0).nonzero()[0]
    first = starts[purpose[planned]]
    counts = starts[purpose[planned] + 1] - first
    request = planned.repeat(counts)
    rule = by_purpose[expand_ranges(first, counts)]

    extra, extras = _mode_lanes(contracts)
    lanes, plan_lanes = _lanes(plan_rules, rule, effort[request], extra[request], extras)
    text = _query_texts(contracts, requests, anchors, plan_rules, request, rule)
    required = _required(contracts, plan_rules, request, rule)
    worded = np.asarray(pc.binary_length(pc.utf8_trim_whitespace(text))) > 0
    kept = ((worded | required) & (np.asarray(lanes.value_lengths()) > 0)[plan_lanes]).nonzero()[0]
    request, rule, text, plan_lanes = request[kept], rule[kept], text.take(pa.array(kept)), plan_lanes[kept]
    ordinal = np.arange(len(request)) - request.searchsorted(request) + 1
    at = pa.array(rule)
    asked = gathered(requests["lane_k"], positions(contracts["request_id"], requests["request_id"])[request])
    ruled = gathered_columns(plan_rules, _RULED, at)
    of = gathered_columns(contracts, _CONTRACTED, request)
    lane_k = pc.coalesce(pc.if_else(of["mode"].is_valid(), None, ruled["lane_k"]), of["lane_k"])
    age = ruled["max_age_days"]
    days = np.nan_to_num(age.fill_null(0.0).to_numpy())
    oldest = micros(of["as_of"], 0) - np.rint(days * MICROS_PER_DAY).astype(np.int64)
    return SUB_QUERIES.build(
        {
            "request_id": of["request_id"],
            "sub_query_id": pc.binary_join_element_wise("q", pa.array(ordinal).cast(pa.string()), ""),
            "ordinal": ordinal.astype(np.int32),
            "intent": ruled["intent"],
            "query_text": text,
            "expansion": expansions(text, of["role"], role_policies, role_rules),
            "lanes": lanes.take(pa.array(plan_lanes)),
            "sources": ruled["sources"],
            "kinds": ruled["kinds"],
            "lane_k": pc.min_element_wise(lane_k, asked),
            "min_authority": ruled["min_authority"],
            "oldest": pa.array(oldest, mask=~np.asarray(age.is_valid())).cast(TIMESTAMP),
            "window_paths": of["window_paths"],
            "window_start": of["path_window_start"],
        }
    )


def query_terms(sub_queries: SubQueries, anchors: Anchors) -> QueryTerms:
    """The index keys each sub-query looks up, by request, sub-query, field and term; no term is capped or dropped.

    A text term weighs its count in the query text, a quarter of that in the role's expansion. An anchor's keys have its
    weight, less for vaguer keys; where two anchors share a key, the greater weight counts.
    """
    names = ("lexical", "file", "symbol", "exact")
    uses = dict(zip(names, held(sub_queries["lanes"], names), strict=True))
    lanes = {name: use.nonzero()[0] for name, use in uses.items()}
    worded = (uses["lexical"] | uses["file"]).nonzero()[0]
    parts = [
        _text_terms(sub_queries["query_text"], worded, 1.0),
        _text_terms(sub_queries["expansion"], worded, EXPANSION_WEIGHT),
    ]
    asked = sub_queries["request_id"].unique()
    kind = positions(anchors["kind"], constants(KINDS))
    owner, mine = (positions(table["request_id"], asked) for table in (anchors, sub_queries))
    for lane, kinds, fields, terms_of in (
        ("symbol", ("identifier", "test"), ("definition", "reference"), definition_terms),
        ("symbol", ("path",), ("path",), path_terms),
        ("exact", ("id",), ("id",), id_terms),
        ("exact", ("literal",), ("literal",), literal_terms),
    ):
        chosen = (np.logical_or.reduce([kind == KINDS.index(k) for k in kinds]) & (owner >= 0)).nonzero()[0]
        if not len(chosen) or not len(lanes[lane]):
            continue
        chosen = chosen[owner[chosen].argsort(kind="stable")]
        terms, shares = terms_of(gathered(anchors["value"], chosen))
        starts = owner[chosen].searchsorted(mine[lanes[lane]])
        counts = owner[chosen].searchsorted(mine[lanes[lane]], side="right") - starts
        sub = lanes[lane].repeat(counts)
        anchor = expand_ranges(starts, counts)
        per = (terms.starts[1:] - terms.starts[:-1])[anchor]
        at = expand_ranges(terms.starts[anchor], per)
        weight = anchors["weight"].to_numpy()[chosen][anchor.repeat(per)] * shares[at]
        values = terms.vocabulary.take(pa.array(terms.codes[at])).cast(_TEXT)
        parts += [(field, sub.repeat(per), values, weight) for field in fields]
    row, value = small_ids(gathered(sub_queries["query_text"], lanes["exact"]))
    parts.append(("id", lanes["exact"][row], value, np.full(len(row), _WEIGHTS["question"])))
    return _terms_table(sub_queries, parts)


def _text_terms(texts: pa.ChunkedArray, subs: Int, weight: float) -> tuple[str, Int, pa.Array, NDArray[np.float64]]:
    """Every term in the texts of some sub-queries, each with the same weight; a null text has none."""
    if not len(subs) or texts.null_count == len(texts):
        return "text", NOWHERE, constants((), _TEXT), np.empty(0)
    if texts.null_count:
        subs = subs[np.asarray(texts.is_valid())[subs]]
    encoded = flat(texts).dictionary_encode()
    tokens = Ragged.of(query_tokens(encoded.dictionary))
    counts = tokens.starts[1:] - tokens.starts[:-1]
    code = encoded.indices.take(pa.array(subs)).to_numpy()
    of = subs.repeat(counts[code])
    term = tokens.codes[expand_ranges(tokens.starts[:-1][code], counts[code])]
    return "text", of, tokens.vocabulary.take(pa.array(term)).cast(_TEXT), np.full(len(of), weight)


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


def _mode_lanes(contracts: pa.Table) -> tuple[NDArray[np.int64], list[list[str]]]:
    """The distinct lists of lanes that modes add, and the list number of each contract."""
    lists = pc.binary_join(flat(contracts["mode_lanes"]), " ").dictionary_encode()
    return lists.indices.to_numpy().astype(np.int64), [words.split() for words in lists.dictionary.to_pylist()]


def _lanes(plan_rules: pa.Table, rule: Int, effort: Int, extra: Int, extras: list[list[str]]) -> tuple[pa.Array, Int]:
    """The lists of lanes that a plan uses, one per (rule, recall effort, lanes of the mode), and the one of each pair.

    `graph` adds the walking lanes, `minimal` keeps words, ids and, for conflict sets alone, the expansion (S0.111).
    """
    efforts, ruled = RECALL_EFFORTS.values, plan_rules["lanes"].to_pylist()
    distinct, which = distinct_numbers((rule * len(efforts) + effort) * len(extras) + extra)
    lists = []
    for code in distinct.tolist():
        pair, added = divmod(code, len(extras))
        of_rule, of_effort = divmod(pair, len(efforts))
        walks, few = efforts[of_effort] == "graph", efforts[of_effort] == "minimal"
        chosen = dict.fromkeys([*ruled[of_rule], *extras[added], *(_GRAPH if walks else ())])
        lists.append([lane for lane in chosen if not few or lane in _MINIMAL])
    return pa.array(lists, type=pa.list_(pa.string())), which


def _query_texts(
    contracts: pa.Table,
    requests: pa.Table,
    anchors: pa.Table,
    plan_rules: pa.Table,
    request: Int,
    rule: Int,
) -> pa.Array:
    """The query text of each (contract, rule) pair: the non-empty parts of the rule, one per line."""
    place = positions(contracts["request_id"], requests["request_id"])
    asked = gathered_columns(requests, _TEXT_COLUMNS, place)
    owner = positions(anchors["request_id"], contracts["request_id"])
    origin = positions(anchors["origin"], constants(("stack_trace", "session_events")))
    traced, observed, asked_for = origin == 0, origin == 1, origin < 0
    kind = positions(anchors["kind"], constants(KINDS))
    is_kind = {name: kind == number for number, name in enumerate(KINDS)}

    def named(mask: NDArray[np.bool_]) -> pa.Array | None:
        chosen = (mask & (owner >= 0)).nonzero()[0]
        if not len(chosen):
            return None
        lists = pa.LargeListArray.from_arrays(
            pa.array(starts_of(np.bincount(owner[chosen], minlength=contracts.num_rows))),
            flat(anchors["value"]).take(pa.array(chosen)),
        )
        return pc.binary_join(lists, literal(" "))

    errors = named(~observed & is_kind["error"])
    parts = {
        "question": asked["question"],
        "context": asked["context_summary"],
        "failing_test": asked["failing_test"],
        "error": asked["error_text"] if errors is None else pc.coalesce(asked["error_text"], errors),
        "stack": named(traced & (is_kind["identifier"] | is_kind["path"])),
        "files": named(asked_for & is_kind["path"]),
        "symbols": named(asked_for & is_kind["identifier"]),
        "state": spoken_state(asked["state"]),
        "session": named(observed),
    }
    given = {name: text for name, text in parts.items() if text is not None and text.null_count < len(text)}
    columns = []
    for text, named_by in zip(given.values(), held(plan_rules["parts"], tuple(given)), strict=True):
        text = text.cast(_TEXT)
        filled = truth(pc.greater(pc.binary_length(text), 0))
        columns.append(text.take(pa.array(request, mask=~(named_by[rule] & filled[request]))))
    if not columns:
        return pa.repeat(literal(""), len(request))
    # Arrow's join with `skip` drops a row whose values are all null, so such a row gets an empty value.
    blank = np.logical_and.reduce([np.asarray(column.is_null()) for column in columns])
    columns[0] = pc.if_else(pa.array(blank), literal(""), columns[0]) if blank.any() else columns[0]
    return pc.binary_join_element_wise(*columns, literal("\n"), null_handling="skip")


def _required(contracts: pa.Table, plan_rules: pa.Table, request: Int, rule: Int) -> NDArray[np.bool_]:
    """Whether the contract requires evidence that the rule serves."""
    wanted = held(contracts["required_evidence"], REQUIRED_EVIDENCE.values)
    served = held(plan_rules["requires"], REQUIRED_EVIDENCE.values)
    return np.logical_or.reduce(wanted[:, request] & served[:, rule], axis=0)


def _terms_table(sub_queries: pa.Table, parts: list[tuple[str, Int, pa.Array, NDArray[np.float64]]]) -> pa.Table:
    """The looked-up keys in declared order: equal text terms add up, equal anchor keys keep the greatest weight."""
    parts = [part for part in parts if len(part[1])]
    if not parts:
        return QUERY_TERMS.empty()
    fields = tuple(sorted({field for field, _, _, _ in parts}))
    sub = np.concatenate([part[1] for part in parts])
    field = np.array([fields.index(part[0]) for part in parts]).repeat([len(part[1]) for part in parts])
    terms = pa.concat_arrays([part[2] for part in parts])
    weight = np.concatenate([part[3] for part in parts])
    place = _places(terms)
    sub_place = np.empty(sub_queries.num_rows, dtype=np.int64)
    sub_place[pc.sort_indices(sub_queries, options=_BY_SUB_QUERY).to_numpy()] = np.arange(len(sub_place))
    order = np.lexsort((place, field, sub_place[sub]))
    first = first_of_runs(sub[order], field[order], place[order])
    added, greatest = (use.reduceat(weight[order], first) for use in (np.add, np.maximum))
    chosen = order[first]
    total = np.where(np.array([name == "text" for name in fields])[field[chosen]], added, greatest)
    of = gathered_columns(sub_queries, ("request_id", "sub_query_id"), sub[chosen])
    return QUERY_TERMS.build(
        {
            **of,
            "field": constants(fields).take(pa.array(field[chosen])),
            "term": terms.take(pa.array(chosen)),
            "weight": total,
        }
    )


def _places(values: pa.Array) -> Int:
    """The rank of each value among the sorted distinct values."""
    encoded = values.dictionary_encode()
    place = np.empty(len(encoded.dictionary), dtype=np.int64)
    place[pc.array_sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(place))
    return place[encoded.indices.to_numpy()]
