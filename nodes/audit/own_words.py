"""Whether a row says a word that was asked with, or a synonym of one, and not only words of the role (S4.9).

Reads selected rows, SUB_QUERIES, CONTRACTS, ROLE_POLICIES and EVIDENCE. Gives one flag per row. Words are the terms of the
lexical index, of the same columns; where a role added nothing, every lexical match is one of words that were asked with.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.keys import codes_of, flat, gathered, positions, take_or
from ..columns.ragged import Ragged
from ..text.text_analysis import query_tokens, terms_by_kind

__all__ = ["says_own_words"]

_INDEXED = ("title", "path", "section", "text")


def says_own_words(
    request_ids: pa.ChunkedArray,
    rows: pa.Array,
    sub_queries: pa.Table,
    contracts: pa.Table,
    role_policies: pa.Table,
    evidence: pa.Table,
) -> NDArray[np.bool_]:
    """One flag per row of EVIDENCE (`rows`, int64) that was selected for a request; true without an expansion."""
    said = np.ones(len(rows), dtype=bool)
    extended = pc.unique(sub_queries["request_id"].filter(pc.is_valid(sub_queries["expansion"])))
    asked = np.asarray(pc.is_in(request_ids, value_set=extended)).nonzero()[0]
    if not len(asked):
        return said
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
    said[asked] = np.bincount(np.arange(len(asked)).repeat(counts[-1])[found], minlength=len(asked)) > 0
    return said
