"""Fields to which two high-trust records give different values without a conflict label (S4.9: high-trust sources disagree).

Reads the rows that both walls let through and those of them that are shown. Gives a message per request.

Note: no prose is compared, and no memory: a structured record states a field of its entity by `field: value`. The entity
must have the form of an id, since two files may each number their rows from 1. A record that states a field twice states
a list, which does not conflict with itself. Rows with standing history, hint or untrusted do not count, so an earlier
version does not conflict with the later one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..blocks.masking import class_lists, masked_text
from ..columns.keys import among, floats, gathered_columns, integers, truth
from ..vocabulary import AUTHORITY
from .fact_values import STATED, whole_value

DISAGREE = "high-trust rows disagree about "
"""Start of the message that names fields of rows."""
HIGH_TRUST = AUTHORITY.values.index("preferred")
"""Minimum authority of a row that can disagree: preferred or authoritative, as in the trust posture of a bundle."""
FIELDS_NAMED = 5
"""Maximum number of fields that a message names; it counts the others."""
_BOOKKEEPING = ("last_modified", "updated_at", "last_verified")
"""Fields about when a record was written, not about its subject."""
_LINE = re.compile(STATED, re.MULTILINE)

Forms = frozenset[tuple[str, str]]
"""What a record gives to a field: canonical forms with their currencies, empty where none is given."""


def rivals(
    rows: pa.ChunkedArray, verdicts: pa.Table, shown: NDArray[np.bool_], evidence: pa.Table, contracts: pa.Table
) -> dict[str, str]:
    """Requests that show a record whose value another admitted one contradicts, with a message that names the fields, masked.

    Args:
        rows: the frame row of each candidate.
        verdicts: VERDICTS; only admitted rows that may speak as evidence count.
        shown: whether each of them is shown.
        evidence: EVIDENCE of the frame.
        contracts: CONTRACTS, for their masks.
    """
    row = integers(rows)
    stored = gathered_columns(evidence, ("origin_class", "authority"), row)
    speaks = among(stored["origin_class"], ("structured-sot",)) & truth(verdicts["admitted"])
    speaks &= among(verdicts["standing"], ("evidence", "instruction"))
    at = (speaks & (floats(stored["authority"]) >= HIGH_TRUST)).nonzero()[0]
    if not len(at):
        return {}
    owner = verdicts["request_id"].take(pa.array(at)).to_pylist()
    columns = gathered_columns(evidence, ("text", "entity", "owner_project"), row[at])
    stated = zip(owner, shown[at].tolist(), *(column.to_pylist() for column in columns.values()), strict=True)
    said = defaultdict[tuple[str, str, str, str], list[tuple[Forms, bool]]](list)
    for request, seen, text, entity, project in stated:
        for field, forms in _stated(text).items() if _is_id(entity) else ():
            said[request, project or "", entity.lower(), field].append((forms, seen))
    fields = defaultdict[str, set[str]](set)
    for (request, *_, field), given in said.items():
        if any(seen for _, seen in given) and _disagree([forms for forms, _ in given]):
            fields[request].add(field)
    masks = dict(zip(contracts["request_id"].to_pylist(), class_lists(contracts["mask"]).to_pylist(), strict=True))
    return {
        request: _message(sorted({masked_text(name, masks[request] or "") for name in names}))
        for request, names in fields.items()
    }


def _message(fields: list[str]) -> str:
    """The first fields by name, and the number of the others."""
    more = len(fields) - FIELDS_NAMED
    return DISAGREE + ", ".join(fields[:FIELDS_NAMED]) + (f" and {more} more" if more > 0 else "")


def _is_id(entity: str | None) -> bool:
    value = whole_value((entity or "").upper())
    return value is not None and value.kind == "id"


def _stated(text: str) -> dict[str, Forms]:
    """The fields that a record states, in lower case, and their values: a form that two spellings of a value share."""
    stated: dict[str, Forms] = {}
    for line in _LINE.finditer(text):
        field, written = line["field"].strip().lower(), " ".join(line["value"].split())
        if field.isprintable() and field not in _BOOKKEEPING:
            value = whole_value(written)
            form = (value.canonical, value.currency) if value and value.read else (written.casefold(), "")
            stated[field] = stated.get(field, frozenset()) | {form}
    return stated


def _disagree(given: Iterable[Forms]) -> bool:
    """Whether the records differ in their values, or in the currencies of those that give one."""
    values = {frozenset(form for form, _ in forms) for forms in given}
    currencies = {frozenset(currency for _, currency in forms if currency) for forms in given} - {frozenset()}
    return len(values) > 1 or len(currencies) > 1
