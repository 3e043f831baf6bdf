"""Compares values in texts with fields of records: values that agree, that differ, and that no record has (S1.29).

Reads texts and the fields of structured records. Gives FINDINGS, one row per text and value.

A value is compared with a field of its kind that is named by its line or the section above it: "The engagement fee is
$50,000" names `fee`. The records are those that the text is about, by id or by a folder of its path; one that the line
itself names comes first. Nothing is corrected here: a finding proposes the canonical value (C27).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.keys import codes_of, flat, positions
from ..columns.ragged import expand_ranges, starts_of
from ..schema import Table, int64, string, text
from ..text.references import named_records
from .fact_values import KINDS, NO_CURRENCY, Values, canonical_codes, values_in

Int = NDArray[np.int64]

FINDINGS = Table(
    "findings",
    "What the records say of the values in some texts; `fact` is the row of the field compared with, -1 = none.",
    key=("text", "value"),
    order=("text", "value"),
    columns={
        "text": int64("number of the text"),
        "value": text("the value as the text has it"),
        "kind": string("id, date, money or number"),
        "finding": string("match, mismatch, unknown_key, stale_sot or unread"),
        "fact": int64("row of the facts; -1 = none"),
    },
)
_WORST_FIRST = ("mismatch", "stale_sot", "match", "unknown_key", "unread")
_UNCHECKED = "unchecked"
"""A plain number without a named field: it is not a fact of a record, and is not checked."""
_SYNONYMS = {"due": ("deadline",), "deadline": ("due",)}
_COMMON = frozenset({"date", "amount", "value", "total"})
"""Words that do not name a field by themselves: `due_date` is named by "due", `date` only by "date"."""


@dataclass(frozen=True)
class Subjects:
    """Texts to check: `owner` is the request number of each; `path` and `section` may be null."""

    owner: Int
    text: pa.Array
    path: pa.Array
    section: pa.Array


def findings(subjects: Subjects, facts: pa.Table, fact_owner: Int, *, all_records: bool = False) -> pa.Table:
    """FINDINGS of some texts, by text and value.

    Args:
        subjects: the texts.
        facts: rows of STRUCTURED_FACTS; a record's rows are adjacent.
        fact_owner: number of the request that each fact was admitted for.
        all_records: compare a text that names no record with every record of its request: an answer need not name one.
        If several have the field, a value can then agree with one, but is not reported to differ from any.
    """
    values = values_in(subjects.text)
    record = np.unique(codes_of([pa.array(fact_owner), facts["evidence_id"]]), return_inverse=True)[1]
    order = np.argsort(record, kind="stable")
    starts = starts_of(np.bincount(record))
    foreign, passing = _ids_without_record(subjects, values, facts, fact_owner)
    about, own_line, silent = _about(
        subjects, values, facts, fact_owner, record, all_records, np.unique(values.text[values.line[foreign]])
    )
    # The values on a line with an id that has no record are not claims about another record.
    elsewhere = np.isin(values.line, values.line[foreign])
    of_pair = own_line | ~elsewhere[about[0]]
    about, own_line, silent = (about[0][of_pair], about[1][of_pair]), own_line[of_pair], silent[of_pair]
    counts = np.diff(starts)[about[1]]
    pair = np.repeat(np.arange(len(about[0])), counts)
    value, fact = about[0][pair], order[expand_ranges(starts[:-1][about[1]], counts)]
    same, named, keyed = _compared(values, subjects.section, facts, value, fact)
    # Where one value of a line agrees with a field, the line's other values of that kind are not about it.
    cell = (values.line[value] * max(facts.num_rows, 1) + fact) * len(KINDS) + values.kind[value]
    named &= same | ~np.isin(cell, cell[same & named])
    # With several records, a text that names none of them cannot contradict one of them: it agrees, or is not checked.
    guessed, width = named & silent[pair], int(record.max(initial=0)) + 1
    asked = np.unique(value[guessed] * width + record[fact[guessed]]) // width
    named &= same | ~guessed | (np.bincount(asked, minlength=len(values.kind))[value] < 2)
    named &= same | ~elsewhere[value]
    compared = np.flatnonzero(named)
    # An id agrees with its record as a whole; the field to name is the one that contains it.
    rank = np.where(same[compared], np.where(keyed[compared], 0, 1), np.where(own_line[pair[compared]], 2, 3))
    best = compared[np.lexsort((fact[compared], rank, value[compared]))]
    best = best[np.flatnonzero(np.diff(value[best], prepend=-1))]
    finding = np.where(np.isin(values.kind, [KINDS.index("number")]), _UNCHECKED, "unknown_key").astype(object)
    finding[passing] = _UNCHECKED
    finding[_unread(values)] = "unread"
    chosen = np.full(len(values.kind), -1)
    stale = np.asarray(flat(facts["stale"]))
    finding[value[best]] = np.where(same[best], np.where(stale[fact[best]], "stale_sot", "match"), "mismatch")
    chosen[value[best]] = fact[best]
    return _table(values, finding, chosen)


def _about(
    subjects: Subjects,
    values: Values,
    facts: pa.Table,
    fact_owner: Int,
    record: Int,
    all_records: bool,
    unknown: Int,
) -> tuple[tuple[Int, Int], NDArray[np.bool_], NDArray[np.bool_]]:
    """Pairs (value, record) to compare, whether the value's own line names the record, and whether its text names none.

    `unknown` are the texts that name an id without a record: they are about that id, not about every record.
    """
    first = np.unique(record, return_index=True)[1]
    entity = pc.utf8_lower(flat(facts["entity"]).take(pa.array(first)))
    known = pc.binary_join_element_wise(pa.scalar("i:", entity.type), entity, pa.scalar("", entity.type))
    of_text = named_records(subjects.path, subjects.text)
    of_line = named_records(pa.nulls(len(values.lines), pa.string()), values.lines)

    def pairs(row: Int, key: pa.Array, owner: Int) -> Int:
        """Every (row, record) whose key the row names, inside one request, as row * records + record."""
        vocabulary = pc.unique(pa.chunked_array([key, known]))
        code, of_record = positions(key, vocabulary), positions(known, vocabulary)
        by_code = np.argsort(of_record, kind="stable")
        starts = starts_of(np.bincount(of_record, minlength=len(vocabulary)))
        counts = np.diff(starts)[code]
        at, number = np.repeat(row, counts), by_code[expand_ranges(starts[:-1][code], counts)]
        inside = owner[at] == fact_owner[first][number]
        return np.unique(at[inside] * len(first) + number[inside])

    linked = pairs(of_line.row, of_line.key, subjects.owner[values.text])
    texts = pairs(of_text.row, of_text.key, subjects.owner)
    silent = np.empty(0, np.int64)
    if all_records:
        silent = np.setdiff1d(np.arange(len(subjects.owner)), texts // max(len(first), 1))
        silent = np.setdiff1d(silent, unknown)
        row, number = np.nonzero(subjects.owner[silent][:, None] == fact_owner[first])
        texts = np.union1d(texts, silent[row] * len(first) + number)
    width = max(len(first), 1)
    starts = np.searchsorted(texts // width, np.arange(len(subjects.owner) + 1))
    of_value = values.text[values.line]
    counts = np.diff(starts)[of_value]
    value = np.repeat(np.arange(len(of_value)), counts)
    number = texts[expand_ranges(starts[:-1][of_value], counts)] % width
    named = np.isin(values.line[value] * width + number, linked)
    return (value, number), named, np.isin(of_value[value], silent)


def _unread(values: Values) -> NDArray[np.bool_]:
    """The ambiguous dates: `03/04/2025` is in March or in April."""
    dates = np.flatnonzero(values.kind == KINDS.index("date"))
    number, _ = canonical_codes(values.kind[dates], values.value.take(pa.array(dates)))
    unread = np.zeros(len(values.kind), dtype=bool)
    unread[dates] = number < 0
    return unread


def _ids_without_record(subjects: Subjects, values: Values, facts: pa.Table, fact_owner: Int) -> tuple[Int, Int]:
    """Positions of the ids that no record of the request has, and of the lower-case words that are not ids.

    `utf-8` and `eng-001` have the same form: in lower case, an id must have the prefix of some record of the request.
    """
    at = np.flatnonzero(values.kind == KINDS.index("id"))
    written = values.value.take(pa.array(at)).cast(pa.large_string())
    upper, entity = pc.utf8_upper(written), pc.utf8_upper(flat(facts["entity"]).cast(pa.large_string()))
    owner = subjects.owner[values.text[values.line[at]]]
    missing = ~_among(owner, upper, fact_owner, entity)
    prefix, known = (pc.replace_substring_regex(names, r"-\d+$", "") for names in (upper, entity))
    word = np.asarray(pc.and_(pc.not_equal(written, upper), pc.match_substring_regex(written, r"^\w+-\d{1,9}$")))
    passing = missing & word & ~_among(owner, prefix, fact_owner, known)
    return at[missing & ~passing], at[passing]


def _among(owner: Int, names: pa.Array, other: Int, known: pa.Array) -> NDArray[np.bool_]:
    """Whether each (owner, name) is one of the known pairs."""
    owners = pa.array(np.concatenate([owner, other]))
    code = codes_of([owners, pa.concat_arrays([names, known])])
    return np.isin(code[: len(owner)], code[len(owner) :])


def _compared(
    values: Values, sections: pa.Array, facts: pa.Table, value: Int, fact: Int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether each (value, field) pair agrees, whether it is comparable (same kind, and named by the line), and whether
    the field itself contains the value.

    An id is compared with the record's own key.
    """
    stated, entity = (flat(facts[name]).cast(pa.large_string()) for name in ("value", "entity"))
    count, of_id = facts.num_rows, KINDS.index("id")
    kinds = np.concatenate([values.kind, np.repeat(np.arange(len(KINDS)), count), np.full(count, of_id)])
    texts = [
        values.value.cast(pa.large_string()),
        *(entity if k == of_id else stated for k in range(len(KINDS))),
        stated,
    ]
    number, currency = canonical_codes(kinds, pa.concat_arrays(texts))
    at = len(values.kind) + values.kind[value] * count + fact
    known = (number[value] >= 0) & (number[at] >= 0)
    free = (currency[value] == NO_CURRENCY) | (currency[at] == NO_CURRENCY)
    same = known & (number[value] == number[at]) & (free | (currency[value] == currency[at]))
    own = values.kind[value] == of_id
    holds = np.where(own, known & (number[len(values.kind) + len(KINDS) * count + fact] == number[value]), same)
    named = own & same
    asked = np.flatnonzero(known & ~own)
    heading = pc.fill_null(sections.take(pa.array(values.text)), "").cast(pa.large_string())
    line, which = np.unique(values.line[value[asked]], return_inverse=True)
    context = pc.binary_join_element_wise(heading, values.lines, pa.scalar(" ", pa.large_string()))
    fields = flat(facts["field"]).dictionary_encode()
    naming = names_fields(context.take(pa.array(line)), fields.dictionary.to_pylist())
    named[asked] = naming[which, np.asarray(fields.indices)[fact[asked]]]
    return same, named, holds


def names_fields(lines: pa.Array, fields: Sequence[str]) -> NDArray[np.bool_]:
    """Whether each line names each field, bool[lines, fields]: all its distinctive words, or synonyms of them."""
    wanted = [[word for word in _words(field) if word not in _COMMON] or list(_words(field)) for field in fields]
    ways = [[{word, *_SYNONYMS.get(word, ())} for word in words] for words in wanted]
    vocabulary = sorted({word for words in ways for way in words for word in way})
    encoded = lines.dictionary_encode()
    line_words = [_words(line) for line in encoded.dictionary.to_pylist()]
    holds = np.array([[word in words for word in vocabulary] for words in line_words], dtype=bool)
    holds = holds.reshape(len(line_words), len(vocabulary))
    named = np.zeros((len(line_words), len(fields)), dtype=bool)
    for field, words in enumerate(ways):
        columns = [[vocabulary.index(word) for word in sorted(way)] for way in words]
        named[:, field] = bool(words) & np.logical_and.reduce([holds[:, way].any(axis=1) for way in columns], axis=0)
    return named[np.asarray(encoded.indices)]


def _words(line: str) -> frozenset[str]:
    return frozenset(re.findall(r"[^\W\d_]+", line.lower()))


def _table(values: Values, finding: NDArray[np.object_], fact: Int) -> pa.Table:
    """One row per text and value, with the worst of its findings."""
    checked = np.flatnonzero(finding != _UNCHECKED)
    text, written = values.text[values.line[checked]], values.value.take(pa.array(checked))
    place = np.argsort(pc.array_sort_indices(written)) if len(checked) else checked
    worst = positions(pa.array(finding[checked], pa.string()), pa.array(_WORST_FIRST))
    code = codes_of([written])
    order = np.lexsort((fact[checked], worst, place, text))
    same = (np.diff(text[order], prepend=-1) == 0) & (np.diff(code[order], prepend=-1) == 0)
    order = order[~same]
    return FINDINGS.build(
        {
            "text": text[order],
            "value": written.take(pa.array(order)),
            "kind": pa.array(KINDS).take(pa.array(values.kind[checked][order])),
            "finding": pa.array(finding[checked][order], pa.string()),
            "fact": fact[checked][order],
        }
    )
