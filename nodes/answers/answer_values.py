"""Numbers, dates and ids in a text, each with one canonical form: `1,000` is `1000`, `20 May 2026` is `2026-05-20`.

Reads any text. Gives `Value`s in order of place. Note: values match as a whole, longest first, so that no part of a
date, an id or a version counts as a separate number. An ambiguous date, such as 3/4/2025, is compared as text: it
agrees only with the same text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation

from ..facts.fact_values import DAY_MONTH, MONTH, MONTHS, day_and_month

__all__ = ["Value", "values_in"]

_PATTERN = re.compile(
    rf"""(?ix)
      (?P<uuid>\b[0-9a-f]{{8}}-[0-9a-f]{{4}}-[0-9a-f]{{4}}-[0-9a-f]{{4}}-[0-9a-f]{{12}}\b)
    | (?P<iso>\b\d{{4}}-\d{{2}}-\d{{2}})(?:[T ](?P<clock>\d{{2}}:\d{{2}}(?::\d{{2}}(?:\.\d+)?)?))?(?:Z|[+-]\d{{2}}:?\d{{2}})?(?!\w|-\d)
    | (?P<ymd>\b\d{{4}}/\d{{2}}/\d{{2}}(?![\w/]))
    | (?P<dmy>\b(?P<d1>\d{{1,2}})(?:\.|st|nd|rd|th)?(?:\ of)?[\ -](?P<m1>{MONTH})\.?,?[\ -](?P<y1>\d{{4}})\b)
    | (?P<mdy>\b(?P<m2>{MONTH})\.?\ (?P<d2>\d{{1,2}})(?:st|nd|rd|th)?,?\ (?P<y2>\d{{4}})\b)
    | (?P<numeric>(?<![\w./-])\d{{1,2}}(?:/\d{{1,2}}/|\.\d{{1,2}}\.|-\d{{1,2}}-)\d{{4}}(?![\w/-]|\.\w))
    | (?P<ulid>\b[0-7][0-9A-HJKMNP-TV-Z]{{25}}\b)
    | (?P<id>\b(?-i:[A-Z][A-Z0-9]*)(?:-[A-Z0-9]+)*-\d+\b|\b(?!(?:sha|iso|utf|aes|rsa|md)-)[a-z]{{2,10}}-\d{{3,9}}\b)
    | (?P<version>\bv?\d+\.\d+\.\d+(?:[-+.][0-9a-z.]+)?\b)
    | (?P<hash>\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{{7,64}}\b)
    | (?P<clock2>\b\d{{1,2}}:\d{{2}}(?::\d{{2}})?\b)
    | (?P<number>(?<![\w.])(?P<minus>(?<![\w)\]])[-\u2212])?(?:\d{{1,3}}(?:[,\u00a0\u202f']\d{{3}})+|\d+)(?:\.\d+)?(?!\w*\d))
    """
)


@dataclass(frozen=True, slots=True)
class Value:
    """A value: its place in the text, in characters, its kind (number, date, time or id) and canonical form."""

    start: int
    end: int
    kind: str
    canonical: str


def values_in(text: str) -> Iterator[Value]:
    """The values of a text, none inside another. A date with a time of day is two values."""
    for match in _PATTERN.finditer(text):
        start, end = match.span()
        kind = match.lastgroup
        if match["iso"]:
            yield Value(*match.span("iso"), "date", match["iso"])
            if match["clock"]:
                yield Value(*match.span("clock"), "time", _clock(match["clock"]))
        elif match["ymd"]:
            yield from _date(start, end, *match["ymd"].split("/"))
        elif match["dmy"] or match["mdy"]:
            parts = [match[name + ("1" if match["dmy"] else "2")] for name in ("y", "m", "d")]
            yield from _date(start, end, *parts)
        elif match["numeric"]:
            written = DAY_MONTH.fullmatch(match[0])
            read = day_and_month(written) if written else None
            yield Value(start, end, "date", read.isoformat() if read else match[0])
        elif match["clock2"]:
            yield Value(start, end, "time", _clock(match["clock2"]))
        elif match["number"]:
            yield from _number(start, end, match["number"])
        elif kind is not None:
            yield Value(start, end, "id", match[0].lower().removeprefix("v") if match["version"] else match[0].lower())


def _date(start: int, end: int, year: str, month: str, day: str) -> Iterator[Value]:
    number = int(month) if month.isdigit() else [name[:3] for name in MONTHS].index(month[:3].lower()) + 1
    try:
        yield Value(start, end, "date", date(int(year), number, int(day)).isoformat())
    except ValueError:  # 31 June: not a date, nothing to look up
        return


def _clock(text: str) -> str:
    hours, _, rest = text.partition(":")
    return f"{int(hours):02}:{rest.split('.')[0].removesuffix(':00') if rest.count(':') else rest}"


def _number(start: int, end: int, text: str) -> Iterator[Value]:
    try:
        value = Decimal(re.sub(r"[,\u00a0\u202f']", "", text.replace("\u2212", "-")))
    except InvalidOperation:
        return
    yield Value(start, end, "number", format(value.normalize(), "f"))
