"""The conditions of an answer, each with subject and action.

Conditions for callers depend on the request, the contract and what was shown, all of them functions of the admissible
rows alone. Rules that read withheld rows are for auditors, and do not affect other rules.

Whether a row contains a word of the question, and not only words of the role (S4.9), is decided by the terms of the
lexical index; where a role added nothing, every lexical match is a match of the question's words.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..columns.kept import rows_by
from ..columns.keys import flat, gathered_columns, positions
from ..tables import CONDITIONS
from ..text.text_analysis import TEXT_COLUMNS, analyzer_for, index_text, terms_in, tokens_of
from ..vocabulary import ACTIONS, AUDIT_CONDITIONS, EVIDENCE_NEEDS

STRONG_SEMANTIC = 0.5
"""Minimum cosine of a shown row that counts as a strong match by meaning."""
STRONG_LEXICAL = 0.25
"""Minimum lexical term of a shown row with a word of the question that counts as a strong match by words: about half of
the words, since a word that occurs once scores about half of its maximum."""
NOTED = "competing claims exist about something shown"
FEW_ITEMS = 3
"""Below this many items, diversity is not assessed."""
_AFTER_PATH = re.compile(r"#.*$| \([^()]*\)$")
"""What follows the path in a locator."""
_LIMITS = ("max_items", "max_tokens", "max_chars", "max_chunk_tokens")

Row = Mapping[str, Any]
Condition = tuple[str, str, str, str]
"""Condition, subject, action, message."""


Said = tuple[str, str, str, str, str]
"""The request, then the condition."""


def condition_rows(ids: Iterable[str], said: Sequence[Said]) -> pa.Table:
    """CONDITIONS of requests and failures: those without a condition for callers are healthy, too."""
    told = {request_id for request_id, name, *_ in said if name not in AUDIT_CONDITIONS}
    healthy = [(one, "healthy", "", "continue", "nothing to remark") for one in ids if one not in told]
    rows = [(*one, "audit" if one[1] in AUDIT_CONDITIONS else "caller") for one in sorted([*said, *healthy])]
    return CONDITIONS.from_rows([dict(zip(CONDITIONS.columns, row, strict=True)) for row in rows])


def of_lanes(lane_states: pa.Table) -> Iterator[Said]:
    """The conditions about lanes that did not run."""
    for row in lane_states.to_pylist():
        action = {"failed": "degrade", "off": "continue"}[row["state"]]
        yield row["request_id"], f"lane_{row['state']}", row["lane"], action, row["message"]


def worst_actions(ids: pa.Array, conditions: pa.Table) -> list[str]:
    """The worst action of the conditions that each caller may see; `continue` where there are none."""
    worst = dict.fromkeys(ids.to_pylist(), 0)
    for request_id, action, audience in zip(
        *(conditions[name].to_pylist() for name in ("request_id", "action", "audience")), strict=True
    ):
        if audience == "caller":
            worst[request_id] = max(worst[request_id], ACTIONS.values.index(action))
    return [ACTIONS.values[level] for level in worst.values()]


def by_id(table: pa.Table, names: Sequence[str]) -> dict[str, Row]:
    """Some columns of a table with a row per request, by request id."""
    return {row["request_id"]: row for row in table.select(["request_id", *names]).to_pylist()}


def mismatches(fact_checks: pa.Table, trimmed: pa.Table) -> dict[str, str]:
    """Requests that show a value which a record contradicts; the message names the fields."""
    shown = {*trimmed["place"].to_pylist()}
    rows = fact_checks.select(["request_id", "place", "finding", "field"]).to_pylist()
    wrong = [
        (row["request_id"], row["field"]) for row in rows if row["finding"] == "mismatch" and row["place"] in shown
    ]
    return _listed(wrong, "shown values differ from the structured records in ")


def stale_records(structured_facts: pa.Table) -> dict[str, str]:
    """Requests that looked up stale records; the message names their files."""
    stale = structured_facts.filter(structured_facts["stale"])
    files = [_AFTER_PATH.sub("", locator) for locator in stale["locator"].to_pylist()]
    owned = zip(stale["request_id"].to_pylist(), files, strict=True)
    return _listed(owned, "structured records are more than 30 days old in ")


def _listed(owned: Iterable[tuple[str, str]], words: str) -> dict[str, str]:
    """The distinct names of each request after some words."""
    names = defaultdict[str, set[str]](set)
    for owner, name in owned:
        names[owner].add(name)
    return {owner: words + ", ".join(sorted(own)) for owner, own in names.items()}


def shown_rows(
    candidates: pa.Table, pool: pa.Table, score_terms: pa.Table, shown: NDArray[np.bool_]
) -> dict[str, pa.Array]:
    """The candidates that are shown: request, frame row and scores."""
    at = pa.array(shown.nonzero()[0])
    rows = {"owner": flat(candidates["request_id"]).take(at), "row": flat(candidates["row"]).take(at)}
    place = positions(at, pool["candidate"])
    return rows | gathered_columns(score_terms, ("anchor", "semantic", "lexical", "freshness"), place)


def selected_rows(
    shown: Mapping[str, pa.Array],
    sub_queries: pa.Table,
    contracts: pa.Table,
    role_policies: pa.Table,
    evidence: pa.Table,
) -> Mapping[str, list[Row]]:
    """The rows that are shown, by request: their scores and what is stored of them."""
    owner, row = shown["owner"], shown["row"]
    own = _says_own_words(owner.to_pylist(), row, sub_queries, contracts, role_policies, evidence)
    stored = gathered_columns(evidence, ("lifecycle", "conflict_set", "evidence_kind"), row)
    found = defaultdict[str, list[Row]](list)
    for one in pa.table({**shown, "own_words": own, **stored}).to_pylist():
        found[one["owner"]].append(one)
    return found


def of_answer(
    request: Row,
    contract: Row,
    admissible: Row,
    block: Row,
    shown: Sequence[Row],
    of_candidates: Collection[str],
    messages: Mapping[str, str],
) -> Iterator[Condition]:
    """The conditions that hold for what was answered.

    Args:
        shown: the rows that are shown, see `selected_rows`.
        of_candidates: what else is true of the candidates: `packed` (one reached trimming), `noted` (an item is marked as
            disputed), and the reasons of decisions that conditions speak of.
        messages: what rows with high trust disagree about, facts that records contradict, and old records, by condition.
    """
    packed, items = "packed" in of_candidates, block["items"]
    if not any(_is_strong(row) for row in shown) and (items or not packed):
        yield "no_strong_match", "", "warn", _weakness(request, admissible, items)
    if shown and 2 * sum(row["freshness"] == "stale" for row in shown) > len(shown):
        yield "stale_dominant", "", "warn", "most of what is shown is old for its kind"
    if shown and all(row["lifecycle"] in (None, "candidate") for row in shown):
        yield "unverified_only", "", "degrade", "nothing shown is verified"
    # A claim shown with its rivals is as disputed as one without them.
    noted = "noted" in of_candidates or any(row["conflict_set"] is not None for row in shown)
    if items and (noted or "conflicting" in messages):
        yield "conflicting", "", "warn", NOTED if noted else messages["conflicting"]
    elif "conflict_downrank" in of_candidates:
        yield "conflicting", "", "warn", "competing claims have no room together, and none of them is shown"
    if "forbidden_source" in of_candidates:
        yield "forbidden_hit", "", "continue", "rows of sources that the role forbids were withheld"
    if items >= FEW_ITEMS and len({row["evidence_kind"] for row in shown}) == 1:
        yield "low_diversity", "", "continue", "everything shown is of one kind"
    for name in ("fact_mismatch", "sot_stale"):
        if name in messages:
            yield name, "", "warn", messages[name]
    yield from _of_limits(contract, block, packed=packed)
    for need, (kind, state) in EVIDENCE_NEEDS.items():
        served = (row["evidence_kind"] == kind and state in (None, row["lifecycle"]) for row in shown)
        if need in contract["required_evidence"] and not any(served):
            yield "missing_evidence", need, "warn", f"no {need} is shown, though it was required"
    if unmatched := ", ".join(admissible["unmatched_sources"]).replace("\n", " and "):
        yield "source_unmatched", "sources", "warn", f"no row that may be shown is of: {unmatched}"


def _is_strong(row: Row) -> bool:
    by_words = row["lexical"] >= STRONG_LEXICAL and row["own_words"]
    return row["anchor"] > 0 or row["semantic"] >= STRONG_SEMANTIC or by_words


def _weakness(request: Row, admissible: Row, items: int) -> str:
    """The message for a weak answer: where nothing is shown, that nothing matches or, if A(r) is empty, that it has no row.

    The latter names `as_of`, whether or not there are rows at another time, and whenever it was asked.
    """
    if items:
        return "nothing shown matches the question strongly"
    if admissible["rows"]:
        return "nothing that may be shown matches the question"
    as_of = request["as_of"].isoformat(timespec="seconds").replace("+00:00", "Z")
    return f"there is no row that may be shown as of {as_of}"


def _of_limits(contract: Row, block: Row, *, packed: bool) -> Iterator[Condition]:
    items, tokens, bound_by = (block[name] for name in ("items", "tokens", "bound_by"))
    if packed and not items:
        yield "over_budget", "", "degrade", "the budget is too small for any item"
        return
    if bound_by in _LIMITS:
        yield "over_budget", bound_by, "continue", f"{bound_by} cut something that was ranked"
    if bound_by == "max_items" and 2 * tokens < contract["max_tokens"]:
        used = f"{tokens} of {contract['max_tokens']}"
        yield "budget_unused", "max_items", "continue", f"max_items ended the block at {used} tokens: raise it for more"


def _says_own_words(
    owners: Sequence[str],
    rows: pa.Array,
    sub_queries: pa.Table,
    contracts: pa.Table,
    role_policies: pa.Table,
    evidence: pa.Table,
) -> list[bool]:
    """Whether each selected row of EVIDENCE (`rows`, int64) has a word of the question; without an expansion, whether the
    question has any.
    """
    own, roles = defaultdict[str, set[str]](set), rows_by(role_policies, "role")
    role_of = dict(zip(*(contracts[name].to_pylist() for name in ("request_id", "role")), strict=True))
    queries = sub_queries.select(["request_id", "query_text", "expansion"]).to_pylist()
    expanded = {query["request_id"] for query in queries if query["expansion"] is not None}
    for query in queries:
        role = roles.get(role_of[query["request_id"]])
        preferred = tokens_of(" ".join(role["preferred_terms"])) if role else ()
        own[query["request_id"]] |= {*terms_in(query["query_text"])}  # stop words match everything
        own[query["request_id"]] |= {*tokens_of(query["expansion"] or "")}.difference(preferred)
    at = [place for place, owner in enumerate(owners) if owner in expanded]
    stored = gathered_columns(evidence, ("evidence_kind", *TEXT_COLUMNS), rows.take(pa.array(at, pa.int64())))
    says = [bool(own[owner]) for owner in owners]
    for place, kind, text in zip(at, stored["evidence_kind"].to_pylist(), index_text(stored).to_pylist(), strict=True):
        says[place] = not own[owners[place]].isdisjoint(terms_in(text, analyzer_for(kind)))
    return says
