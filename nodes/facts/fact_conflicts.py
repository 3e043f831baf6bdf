"""Keys with different values in two high-trust rows without a conflict label (S4.9: high-trust sources disagree).

Reads the rows that both walls let through and those of them that are shown. Gives a message per request.

Note: no prose is compared. A row states a key only by `field: value`: a structured record for its entity, a memory for
the project or user that it belongs to. The entity must have the form of an id, since two files may each number their
rows from 1; and a memory must contain nothing else, its value being an id, a date, an amount, yes or no. A row that
states a field twice states a list, which does not conflict with itself. Rows with standing history, hint or untrusted
do not count, so an earlier version does not conflict with the later one.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..blocks.masking import class_lists, masked_text
from ..columns.keys import among, floats, gathered_columns, integers, truth
from ..vocabulary import AUTHORITY
from .fact_values import STATED, whole_value

__all__ = ["DISAGREE", "rivals"]

DISAGREE = "high-trust rows disagree about "
"""Start of the message that names fields of rows."""
HIGH_TRUST = AUTHORITY.values.index("preferred")
"""Minimum authority of a row that can disagree: preferred or authoritative, as in the trust posture of a bundle."""
FIELDS_NAMED = 5
"""Maximum number of fields that a message names; it counts the others."""
_BOOKKEEPING = ("last_modified", "updated_at", "last_verified")
"""Fields about when a record was written, not about its subject."""
_TRUTHS = {"true": "yes", "yes": "yes", "on": "yes", "false": "no", "no": "no", "off": "no"}
_LINE = re.compile(STATED)
_READ = ("text", "origin_class", "entity", "owner_project", "owner_user")

Int = NDArray[np.int64]
_Subject = tuple[bool, str, str, str, str]
"""Whether a memory says it, its project, user and entity, and the field."""


class _Value(NamedTuple):
    """A value in a form that two spellings of it share; `currency` is empty where none is given."""

    kind: str
    form: str
    currency: str

    @property
    def named(self) -> tuple[str, str]:
        """What is compared: an id may be a text that has the form of one."""
        return ("" if self.kind in ("id", "text") else self.kind, self.form)


class _Statement(NamedTuple):
    """A value that a row gives to a field, and the row's place in the frame."""

    row: int
    field: str
    value: _Value
    shown: bool


def rivals(record: pa.Table, shown: NDArray[np.bool_], evidence: pa.Table, contracts: pa.Table) -> dict[str, str]:
    """Requests that show a row whose value another admitted row contradicts, with a message that names the fields, masked.

    Args:
        record: the record of candidates; only admitted rows that may speak as evidence count.
        shown: whether each of them is shown.
        evidence: EVIDENCE of the frame.
        contracts: CONTRACTS, for their masks.
    """
    row = integers(record["candidates.row"])
    stored = gathered_columns(evidence, ("origin_class", "authority"), row)
    speaks = among(stored["origin_class"], ("structured-sot", "memory")) & truth(record["verdicts.admitted"])
    speaks &= among(record["verdicts.standing"], ("evidence", "instruction")) & (
        floats(stored["authority"]) >= HIGH_TRUST
    )
    at = speaks.nonzero()[0]
    if not len(at):
        return {}
    rows = row[at].tolist()
    said = _said_by(evidence, list(dict.fromkeys(rows)))
    of_subject: dict[tuple[str, _Subject], list[_Statement]] = {}
    owner = record["request_id"].take(pa.array(at)).to_pylist()
    for request, one, seen in zip(owner, rows, shown[at].tolist(), strict=True):
        for subject, field, value in said[one]:
            of_subject.setdefault((request, subject), []).append(_Statement(one, field, value, seen))
    fields: dict[str, set[str]] = {}
    for (request, _), statements in of_subject.items():
        if any(one.shown for one in statements) and _disagree(statements):
            fields.setdefault(request, set()).update(one.field for one in statements)
    masks = dict(zip(contracts["request_id"].to_pylist(), class_lists(contracts["mask"]).to_pylist(), strict=True))
    return {
        request: _message(sorted({masked_text(name, masks[request] or "").lower() for name in names}))
        for request, names in fields.items()
    }


def _message(fields: list[str]) -> str:
    """The first fields by name, and the number of the others."""
    more = len(fields) - FIELDS_NAMED
    return DISAGREE + ", ".join(fields[:FIELDS_NAMED]) + (f" and {more} more" if more > 0 else "")


def _said_by(evidence: pa.Table, rows: list[int]) -> dict[int, list[tuple[_Subject, str, _Value]]]:
    """What each of some rows states: subject, field as written, value.

    A record belongs to its entity alone; a memory belongs to its owner.
    """
    columns = gathered_columns(evidence, _READ, np.array(rows, np.int64))
    texts = (column.to_pylist() for column in columns.values())
    said = {}
    for row, text, origin, entity, project, user in zip(rows, *texts, strict=True):
        memory, entity = origin == "memory", entity or ""
        named = memory or _comparable(entity.upper()).kind == "id"
        owner = (memory, project or "", user or "" if memory else "", "" if memory else entity.lower())
        stated = _stated(text, memory) if named else ()
        said[row] = [((*owner, field.lower()), field, value) for field, value in stated]
    return said


def _stated(text: str, memory: bool) -> list[tuple[str, _Value]]:
    """The fields and values that a text states; none of a memory with a line of prose."""
    stated = []
    for line in text.split("\n"):
        found = _LINE.match(line)
        field = found["field"].strip() if found else ""
        if found and field.isprintable():
            stated.append((field, _comparable(" ".join(found["value"].split()))))
        elif memory and line.strip():
            return []
    return [
        (field, value)
        for field, value in stated
        if field.lower() not in _BOOKKEEPING and not (memory and value.kind == "text")
    ]


def _disagree(statements: list[_Statement]) -> bool:
    """Whether the rows differ in their values or currencies: not every row has them all."""
    values = {(one.row, one.value.named) for one in statements}
    currencies = {(one.row, one.value.currency) for one in statements if one.value.currency}
    return any(
        len(given) < len({row for row, _ in given}) * len({value for _, value in given})
        for given in (values, currencies)
    )


def _comparable(value: str) -> _Value:
    """A value by its canonical form if it is an id, a date, an amount, yes or no as a whole; else as text."""
    word = value.casefold()
    if word in _TRUTHS:
        return _Value("truth", _TRUTHS[word], "")
    one = whole_value(value)
    if one is None or not one.read or one.kind not in ("id", "date", "money", "number"):
        return _Value("text", word, "")
    # An amount is a number whose currency may be missing, and an id may be in lower case.
    return _Value("number" if one.kind == "money" else one.kind, one.canonical, one.currency)
