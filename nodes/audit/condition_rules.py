"""The conditions of an answer, each with subject and action.

Conditions for callers depend on the request, the contract and what was shown, all of them functions of the admissible
rows alone. Rules that read withheld rows are for auditors, and do not affect other rules.

Whether a row contains a word of the question, and not only words of the role (S4.9), is decided by the terms of the
lexical index; where a role added nothing, every lexical match is a match of the question's words.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.keys import (
    codes_of,
    constants,
    flags_at,
    flat,
    floats,
    gathered,
    gathered_columns,
    objects,
    positions,
    take_or,
    truth,
)
from ..columns.ragged import Ragged
from ..facts.fact_conditions import mismatches, stale_records
from ..facts.fact_conflicts import rivals
from ..tables import CONDITIONS
from ..text.text_analysis import query_tokens, terms_by_kind
from ..vocabulary import ACTIONS, AUDIT_CONDITIONS, EVIDENCE_NEEDS

STRONG_SEMANTIC = 0.5
"""Minimum cosine of a shown row that counts as a strong match by meaning."""
STRONG_LEXICAL = 0.25
"""Minimum lexical term of a shown row with a word of the question that counts as a strong match by words: about half of
the words, since a word that occurs once scores about half of its maximum."""
FEW_ITEMS = 3
"""Below this many items, diversity is not assessed."""

Row = tuple[NDArray[np.bool_], str, str, str, str | NDArray[np.object_]]
"""One flag per request, whether the condition holds; condition, subject, action, message."""


@dataclass(frozen=True)
class Answered:
    """The tables of answered requests that determine the conditions."""

    requests: pa.Table
    failures: pa.Table
    contracts: pa.Table
    sub_queries: pa.Table
    role_policies: pa.Table
    lane_states: pa.Table
    candidates: pa.Table
    """The record of candidates."""
    trimmed: pa.Table
    blocks: pa.Table
    evidence: pa.Table
    structured_facts: pa.Table
    fact_checks: pa.Table
    admissible: pa.Table


def condition_rows(tables: Answered) -> pa.Table:
    """CONDITIONS of every request and failure."""
    failures, contracts, candidates = tables.failures, tables.contracts, tables.candidates
    ids = _ids(tables.requests, failures)
    contract = positions(ids, contracts["request_id"])
    failed = positions(ids, failures["request_id"])
    walls = np.zeros(len(ids), bool)
    walls[positions(candidates["request_id"].filter(candidates["verdicts.wall_disagreement"]), ids)] = True
    denied = flags_at(contracts["denied"], contract)
    rules: list[Row] = [
        (failed >= 0, "request_failed", "", "block", objects(take_or(failures["error"], failed, ""))),
        (walls, "wall_disagreement", "", "block", "the two walls disagree about a row, so nothing is shown"),
        (denied & (failed < 0), "nothing_granted", "", "block", "nothing that was asked for is granted"),
        *_lane_rules(ids, tables.lane_states),
        *_overlay_rules(ids, tables.requests, contracts),
    ]  # fmt: skip
    open_ = (contract >= 0) & ~denied & ~walls & (failed < 0)
    shown = _shown_rules(ids, contract, tables)
    rules += [(mask & open_, name, subject, action, message) for mask, name, subject, action, message in shown]
    rules += [
        (held & open_, name, "", "warn", message)
        for name, (held, message) in (
            ("fact_mismatch", mismatches(ids, tables.fact_checks, tables.trimmed)),
            ("sot_stale", stale_records(ids, tables.structured_facts)),
        )
    ]
    rules.append(_unmatched_rule(ids, tables.admissible, open_))
    reported = np.zeros(len(ids), bool)
    for mask, name, *_ in rules:
        if name not in AUDIT_CONDITIONS:
            reported |= mask
    rules.append((~reported, "healthy", "", "continue", "nothing to remark"))
    return _table(ids, rules)


def worst_actions(ids: pa.Array, conditions: pa.Table) -> NDArray[np.object_]:
    """The worst action of the conditions that each caller may see; `continue` where there are none."""
    conditions = conditions.filter(pc.equal(conditions["audience"], "caller"))
    level = positions(conditions["action"], constants(ACTIONS.values))
    worst = np.zeros(len(ids), np.int64)
    np.maximum.at(worst, positions(conditions["request_id"], ids), level)
    return np.asarray(ACTIONS.values, dtype=object)[worst]


def _ids(requests: pa.Table, failures: pa.Table) -> pa.Array:
    both = pa.concat_arrays([flat(requests["request_id"]), flat(failures["request_id"])])
    return pc.unique(both.take(pc.sort_indices(both)))


def _unmatched_rule(ids: pa.Array, admissible: pa.Table, open_: NDArray[np.bool_]) -> Row:
    """Source names in the request that match no row it may see (S0.21): often misspelled."""
    at = positions(ids, admissible["request_id"])
    names = pc.binary_join(flat(admissible["unmatched_sources"]), ", ")
    unmatched = objects(take_or(pc.replace_substring(names, "\n", " and "), at, ""))
    return (
        (unmatched != "") & open_,
        "source_unmatched",
        "sources",
        "warn",
        "no row that may be shown is of: " + unmatched,
    )


def _lane_rules(ids: pa.Array, lane_states: pa.Table) -> Iterator[Row]:
    lanes = sorted(pc.unique(lane_states["lane"]).to_pylist())  # a handful: the loop below is over lane names
    at = positions(lane_states["lane"], pa.array(lanes, pa.string())), positions(lane_states["request_id"], ids)
    state, message = (np.full((len(lanes), len(ids)), "", dtype=object) for _ in range(2))
    state[at], message[at] = objects(lane_states["state"]), objects(lane_states["message"])
    for lane, own, text in zip(lanes, state, message, strict=True):
        yield own == "failed", "lane_failed", lane, "degrade", text
        yield own == "off", "lane_off", lane, "continue", text


def _overlay_rules(ids: pa.Array, requests: pa.Table, contracts: pa.Table) -> Iterator[Row]:
    """A requested role without an overlay sees the shared corpus (S4.9)."""
    at, contract = positions(ids, requests["request_id"]), positions(ids, contracts["request_id"])
    given = np.asarray(take_or(requests["role"], at).is_valid())
    applied = np.asarray(take_or(contracts["role"], contract).is_valid())
    yield given & ~applied, "no_overlay", "role", "continue", "no role overlay was applied: the shared corpus alone"


def _shown_rules(ids: pa.Array, contract: NDArray[np.int64], tables: Answered) -> Iterator[Row]:
    """The conditions about shown or missing items; `contract` is the row of each request's contract."""
    contracts, candidates, trimmed = tables.contracts, tables.candidates, tables.trimmed
    blocks, evidence = tables.blocks, tables.evidence
    chosen = pc.equal(candidates["decisions.outcome"], "selected")
    selected = candidates.filter(chosen)
    row = flat(selected["candidates.row"])
    owner = positions(selected["request_id"], ids)
    count = np.bincount(owner, minlength=len(ids))
    block = positions(ids, blocks["request_id"])
    items = np.asarray(take_or(blocks["items"], block, 0))

    def at_least(column: str, floor: float) -> NDArray[np.bool_]:
        return floats(selected[f"score_terms.{column}"]) >= floor

    def number(mask: NDArray[np.bool_]) -> NDArray[np.int64]:
        return np.bincount(owner[mask], minlength=len(ids))

    packed = (
        np.bincount(positions(candidates["request_id"].filter(candidates["packs.kept"]), ids), minlength=len(ids)) > 0
    )
    over = packed & (items == 0)
    own_words = says_own_words(
        selected["request_id"], row, tables.sub_queries, contracts, tables.role_policies, evidence
    )
    strong = at_least("anchor", 2.0**-30) | at_least("semantic", STRONG_SEMANTIC)
    strong |= at_least("lexical", STRONG_LEXICAL) & own_words
    yield (number(strong) == 0) & ~over, "no_strong_match", "", "warn", _weakness(ids, items, tables)

    stale = objects(selected["score_terms.freshness"]) == "stale"
    yield (
        (count > 0) & (2 * number(stale) > count),
        "stale_dominant",
        "",
        "warn",
        "most of what is shown is old for its kind",
    )

    stored = gathered_columns(evidence, ("lifecycle", "conflict_set"), row)
    lifecycle = objects(stored["lifecycle"])
    unverified = (lifecycle == "candidate") | (lifecycle == None)  # noqa: E711 - element-wise
    yield (count > 0) & (number(unverified) == count), "unverified_only", "", "degrade", "nothing shown is verified"

    noted = np.bincount(positions(trimmed["request_id"].filter(trimmed["conflict_note"]), ids), minlength=len(ids))
    # A claim shown with its rivals is as disputed as one without them.
    noted += number(np.asarray(stored["conflict_set"].is_valid()))
    disagree, message = rivals(ids, candidates, truth(chosen), evidence, contracts)
    message = np.where(noted > 0, "competing claims exist about something shown", message)
    disputed = ((noted > 0) | disagree) & (items > 0)
    unshown = _decided(candidates, "conflict_downrank", ids) & ~disputed
    message = np.where(unshown, "competing claims have no room together, and none of them is shown", message)
    yield disputed | unshown, "conflicting", "", "warn", message

    withheld = _decided(candidates, "forbidden_source", ids)
    yield withheld, "forbidden_hit", "", "continue", "rows of sources that the role forbids were withheld"

    kinds = objects(selected["decisions.evidence_kind"])
    distinct = np.zeros(len(ids), np.int64)
    for kind in sorted(set(kinds.tolist())):
        distinct += number(kinds == kind) > 0
    few = (items >= FEW_ITEMS) & (distinct == 1)
    yield few, "low_diversity", "", "continue", "everything shown is of one kind"

    bound_by = objects(take_or(blocks["bound_by"], block))
    yield over, "over_budget", "", "degrade", "the budget is too small for any item"
    for limit in ("max_items", "max_tokens", "max_chars", "max_chunk_tokens"):
        yield (bound_by == limit) & ~over, "over_budget", limit, "continue", f"{limit} cut something that was ranked"
    tokens, most = take_or(blocks["tokens"], block, 0), take_or(contracts["max_tokens"], contract, 0)
    unused = 2 * np.asarray(tokens).astype(np.int64) < np.asarray(most)
    advice = pc.binary_join_element_wise(tokens.cast(pa.string()), most.cast(pa.string()), " of ")
    advice = "max_items ended the block at " + objects(advice) + " tokens: raise it for more"
    yield (bound_by == "max_items") & unused & ~over, "budget_unused", "max_items", "continue", advice

    yield from _missing(ids, contracts, contract, owner, kinds, lifecycle)


def _nothing(ids: pa.Array, requests: pa.Table, admissible: pa.Table) -> NDArray[np.object_]:
    """The message for requests with nothing shown: that nothing matches or, where A(r) is empty, that there is no row.

    The latter names `as_of`, whether or not there are rows at another time, and whenever it was asked.
    """
    at = positions(ids, requests["request_id"])
    rows = np.asarray(take_or(admissible["rows"], positions(ids, admissible["request_id"]), 1))
    seconds = take_or(requests["as_of"], at).cast(pa.timestamp("s", "UTC"), safe=False)
    time = pc.strftime(seconds, format="%Y-%m-%dT%H:%M:%SZ")
    none = objects(pc.binary_join_element_wise("there is no row that may be shown as of", time, " "))
    return np.where(rows > 0, "nothing that may be shown matches the question", none).astype(object)


def _decided(candidates: pa.Table, reason: str, ids: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Whether each request has a decision with this reason."""
    found = candidates["request_id"].filter(pc.equal(candidates["decisions.reason_code"], reason))
    return np.bincount(positions(found, ids), minlength=len(ids)) > 0


def _weakness(ids: pa.Array, items: NDArray[np.int64], tables: Answered) -> NDArray[np.object_]:
    """The message for each request whose answer is weak."""
    message = np.full(len(ids), "nothing shown matches the question strongly", dtype=object)
    bare = np.flatnonzero(items == 0)
    if len(bare):
        message[bare] = _nothing(ids.take(pa.array(bare)), tables.requests, tables.admissible)
    return message


def _missing(
    ids: pa.Array,
    contracts: pa.Table,
    contract: NDArray[np.int64],
    owner: NDArray[np.int64],
    kinds: NDArray[np.object_],
    lifecycle: NDArray[np.object_],
) -> Iterator[Row]:
    required = take_or(contracts["required_evidence"], contract)
    parents, values = np.asarray(pc.list_parent_indices(required)), objects(pc.list_flatten(required))
    if not len(values):
        return
    for need, (kind, state) in EVIDENCE_NEEDS.items():
        asked = np.zeros(len(ids), bool)
        asked[parents[values == need]] = True
        served = kinds == kind if state is None else (kinds == kind) & (lifecycle == state)
        found = np.bincount(owner[served], minlength=len(ids)) > 0
        yield asked & ~found, "missing_evidence", need, "warn", f"no {need} is shown, though it was required"


def _table(ids: pa.Array, rules: list[Row]) -> pa.Table:
    names = ids.to_pylist()
    rows = [
        {
            "request_id": names[at],
            "condition": condition,
            "subject": subject,
            "action": action,
            "message": message if isinstance(message, str) else message[at],
            "audience": "audit" if condition in AUDIT_CONDITIONS else "caller",
        }
        for mask, condition, subject, action, message in rules
        for at in mask.nonzero()[0].tolist()
    ]
    return CONDITIONS.from_rows(sorted(rows, key=itemgetter(*CONDITIONS.order)))


_INDEXED = ("title", "path", "section", "text")


def says_own_words(
    request_ids: pa.ChunkedArray,
    rows: pa.Array,
    sub_queries: pa.Table,
    contracts: pa.Table,
    role_policies: pa.Table,
    evidence: pa.Table,
) -> NDArray[np.bool_]:
    """Whether each selected row of EVIDENCE (`rows`, int64) has a word of the question; true without an expansion."""
    mentions = np.ones(len(rows), dtype=bool)
    extended = pc.unique(sub_queries["request_id"].filter(pc.is_valid(sub_queries["expansion"])))
    asked = np.asarray(pc.is_in(request_ids, value_set=extended)).nonzero()[0]
    if not len(asked):
        return mentions
    chosen = rows.take(pa.array(asked))
    queries = sub_queries.filter(pc.is_in(sub_queries["request_id"], value_set=extended))
    role = take_or(contracts["role"], positions(queries["request_id"], contracts["request_id"]))
    preferred = pc.binary_join(flat(role_policies["preferred_terms"]).cast(pa.list_(pa.string())), " ").cast(
        pa.large_string()
    )
    parts = [query_tokens(flat(queries[name]).cast(pa.large_string())) for name in ("query_text", "expansion")]
    parts.append(query_tokens(take_or(preferred, positions(role, role_policies["role"]))))
    texts = [gathered(evidence[name], chosen).cast(pa.large_string()) for name in _INDEXED]
    joined = pc.binary_join_element_wise(*texts, pa.scalar("\n", pa.large_string()), null_handling="skip")
    terms = terms_by_kind(joined, gathered(evidence["evidence_kind"], chosen))
    words = [*map(Ragged.of, parts), terms]
    owners = [*[flat(queries["request_id"])] * len(parts), flat(request_ids).take(pa.array(asked))]
    counts = [np.diff(each.starts) for each in words]
    of = [
        owner.take(pa.array(np.arange(len(n)).repeat(n))).cast(pa.string())
        for owner, n in zip(owners, counts, strict=True)
    ]
    spoken = [each.vocabulary.take(pa.array(each.codes)).cast(pa.string()) for each in words]
    codes = codes_of([pa.chunked_array(of), pa.chunked_array(spoken)])
    own, added, of_role, of_rows = np.split(codes, np.cumsum([n.sum() for n in counts])[:-1])
    own = np.concatenate([own, np.setdiff1d(added, of_role)])
    found = np.isin(of_rows, own)
    mentions[asked] = np.bincount(np.arange(len(asked)).repeat(counts[-1])[found], minlength=len(asked)) > 0
    return mentions
