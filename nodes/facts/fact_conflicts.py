"""Keys with different values in two high-trust rows without a conflict label (S4.9: high-trust sources disagree).

Reads the rows that both walls let through and those of them that are shown. Gives one flag and message per request.

Note: no prose is compared. A row states a key only by `field: value`: a structured record for its entity, a memory for
the project or user that it belongs to. The entity must have the form of an id, since two files may each number their
rows from 1; and a memory must contain nothing else, its value being an id, a date, an amount, yes or no. A row that
states a field twice states a list, which does not conflict with itself. Rows with standing history, hint or untrusted
do not count, so an earlier version does not conflict with the later one.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..blocks.masking import class_lists, masked
from ..columns.keys import among, codes_of, expect_same_rows, gathered, objects, pair_codes, positions, take_or, truth
from ..columns.list_columns import collected
from ..vocabulary import AUTHORITY
from .fact_conditions import FlagsAndMessages, nobody
from .fact_values import KINDS, STATED, canonical, values_in

__all__ = ["DISAGREE", "rivals"]

DISAGREE = "high-trust rows disagree about "
"""Start of the message that names fields of rows."""
HIGH_TRUST = AUTHORITY.values.index("preferred")
"""Minimum authority of a row that can disagree: preferred or authoritative, as in the trust posture of a bundle."""
_UNPRINTABLE = r"[\pC\p{Zl}\p{Zp}]"
"""Fields are a few words: those with control or invisible characters are ignored, so no message contains these."""
FIELDS_NAMED = 5
"""Maximum number of fields that a message names; it counts the others."""
_BOOKKEEPING = ("last_modified", "updated_at", "last_verified")
"""Fields about when a record was written, not about its subject."""
_TRUTHS = {"true": "yes", "yes": "yes", "on": "yes", "false": "no", "no": "no", "off": "no"}
Int = NDArray[np.int64]


def rivals(
    ids: pa.Array, candidates: pa.Table, verdicts: pa.Table, selected: pa.Table, evidence: pa.Table, contracts: pa.Table
) -> FlagsAndMessages:
    """Requests that show a row whose value another admitted row contradicts; the message names the fields, masked.

    Args:
        ids: request ids, sorted.
        candidates: CANDIDATES, for the stored rows.
        verdicts: VERDICTS; only admitted rows that may speak as evidence count.
        selected: DECISIONS of what is shown.
        evidence: EVIDENCE of the frame.
        contracts: CONTRACTS, for their masks.
    """
    row = candidates["row"].to_numpy()
    origin = gathered(evidence["origin_class"], row)
    speaks = among(origin, ("structured-sot", "memory"))
    if not speaks.any():
        return nobody(ids)
    expect_same_rows(candidates, verdicts)
    speaks &= among(verdicts["standing"], ("evidence", "instruction")) & truth(verdicts["admitted"])
    speaks &= np.asarray(pc.fill_null(gathered(evidence["authority"], row), 0)) >= HIGH_TRUST
    keys, shown = pair_codes(*((t["request_id"], t["evidence_id"]) for t in (candidates, selected)))
    at = np.flatnonzero(speaks)
    memory = np.asarray(pc.equal(origin.take(pa.array(at)), "memory"))
    of, field, value, currency = _stated(gathered(evidence["text"], row[at]), memory)
    entity = pc.if_else(pa.array(memory), "", pc.utf8_lower(pc.fill_null(gathered(evidence["entity"], row[at]), "")))
    project, user = (pc.fill_null(gathered(evidence[name], row[at]), "") for name in ("owner_project", "owner_user"))
    # A record belongs to its entity, whoever owns it; a memory belongs to its owner.
    user = pc.if_else(pa.array(memory), user, "")
    owner = positions(candidates["request_id"], ids)[at]
    known = entity.dictionary_encode()
    ids_by_form = [kind == "id" for kind, _, _ in _comparable(pc.utf8_upper(known.dictionary))]
    named = memory | np.array(ids_by_form, dtype=bool)[known.indices.to_numpy()]
    kept = np.flatnonzero(named[of])
    of, field, value, currency = of[kept], field.take(pa.array(kept)), value[kept], currency[kept]
    index = pa.array(of)
    subject = [pa.array(owner[of]), pa.array(memory[of]), *(name.take(index) for name in (project, user, entity))]
    key = np.unique(codes_of([*subject, pc.utf8_lower(field)]), return_inverse=True)[1]
    disputed = (_different(key, of, value, -1) | _different(key, of, currency, 0))[key]
    is_shown = np.isin(np.asarray(keys)[at], np.asarray(shown))[of]
    reported = np.flatnonzero(disputed & (np.bincount(key, is_shown)[key] > 0)) if len(key) else np.zeros(0, np.int64)
    of, field = of[reported], field.take(pa.array(reported)).cast(pa.string())
    masks = take_or(class_lists(contracts["mask"]), positions(ids, contracts["request_id"])[owner[of]])
    lists = collected(owner[of], pc.utf8_lower(masked(field, masks)), len(ids))
    return np.bincount(owner[of], minlength=len(ids)) > 0, _message(lists)


def _message(fields: pa.ListArray) -> NDArray[np.object_]:
    """The message for each list of fields: the first ones by name, and the number of the others."""
    count = pc.list_value_length(fields)
    more = pc.binary_join_element_wise(" and ", pc.subtract(count, FIELDS_NAMED).cast(pa.string()), " more", "")
    more = pc.if_else(pc.greater(count, FIELDS_NAMED), more, "")
    named = pc.binary_join(pc.list_slice(fields, 0, FIELDS_NAMED), ", ")
    return objects(pc.binary_join_element_wise(DISAGREE, named, more, ""))


def _stated(texts: pa.Array, memory: NDArray[np.bool_]) -> tuple[Int, pa.Array, Int, Int]:
    """The statements of rows: row, field as written, a number per distinct value, and one per currency, 0 = none."""
    lines = pc.split_pattern(texts, "\n")
    of = np.asarray(pc.list_parent_indices(lines)).astype(np.int64)
    line = lines.flatten()
    pair = pc.extract_regex(line, pattern=STATED)
    fields = pc.utf8_trim_whitespace(pair.field("field"))
    prints = pc.invert(pc.fill_null(pc.match_substring_regex(fields, _UNPRINTABLE), True))
    stated = np.asarray(pair.is_valid()) & np.asarray(prints)
    prose = np.bincount(of[~stated & np.asarray(pc.not_equal(pc.utf8_trim_whitespace(line), ""))], minlength=len(texts))
    stated &= ~(memory & (prose > 0))[of]
    stated &= ~among(pc.fill_null(pc.utf8_lower(fields), ""), _BOOKKEEPING)
    at = np.flatnonzero(stated)
    of, fields = of[at], fields.take(pa.array(at))
    encoded = pair.field("value").take(pa.array(at)).dictionary_encode()
    known = _comparable(encoded.dictionary)
    which = encoded.indices.to_numpy()
    typed = np.array([kind != "text" for kind, _, _ in known], dtype=bool)[which]
    kept = np.flatnonzero(typed | ~memory[of])
    values, currencies = {}, {"": 0}
    value = np.array(
        [values.setdefault((form if kind in ("id", "text") else (kind, form)), len(values)) for kind, form, _ in known],
        dtype=np.int64,
    )
    currency = np.array([currencies.setdefault(one[2], len(currencies)) for one in known], dtype=np.int64)
    return of[kept], fields.take(pa.array(kept)), value[which[kept]], currency[which[kept]]


def _different(key: Int, row: Int, number: Int, ignored: int) -> NDArray[np.bool_]:
    """For each key, whether its rows differ in their numbers, except the ignored one: not every row has them all."""
    compared = np.stack([key, row, number], axis=1)[number != ignored]
    keys = int(key.max(initial=-1)) + 1
    rows, numbers, given = (
        np.bincount(np.unique(compared[:, columns], axis=0)[:, 0], minlength=keys)
        for columns in ([0, 1], [0, 2], [0, 1, 2])
    )
    return given < rows * numbers


def _comparable(values: pa.Array) -> list[tuple[str, str, str]]:
    """Kind, canonical form and currency of each value; kind `text` if no other applies."""
    trimmed = pc.replace_substring_regex(pc.utf8_trim_whitespace(values), pattern=r"\s+", replacement=" ")
    comparable = [_truth_or_text(value) for value in trimmed.to_pylist()]
    found = values_in(trimmed)
    whole = np.flatnonzero(np.asarray(pc.equal(found.value, found.lines.take(pa.array(found.line)))))
    texts = found.value.take(pa.array(whole)).to_pylist()
    for text, kind, at in zip(texts, found.kind[whole].tolist(), found.text[found.line[whole]].tolist(), strict=True):
        if form := canonical(KINDS[kind], text):
            # An amount is a number whose currency may be missing, and an id may be in lower case.
            comparable[at] = ("number" if KINDS[kind] == "money" else KINDS[kind], form[0].casefold(), form[1])
    return comparable


def _truth_or_text(value: str) -> tuple[str, str, str]:
    word = value.casefold()
    return ("truth", _TRUTHS[word], "") if word in _TRUTHS else ("text", word, "")
