"""Values of a text: ids, dates, times, amounts and numbers, each with one canonical form.

Reads any text. Gives `Value`s in order of place: `1,000` is `1000`, `20 May 2026` is `2026-05-20`, `$52,500` and `52500
USD` are 52500 of one currency.

Note: values match as a whole, longest first, so that no part of a date, an id or a version counts as a separate number.
An ambiguous date, such as 3/4/2025, is not read: it agrees only with the same text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import NamedTuple

_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
           "december")  # fmt: skip
_MONTH = "|".join(f"{name[:3]}(?:{name[3:]})?" for name in _MONTHS).replace("(?:tember", "(?:t(?:ember)?")
_NAMED = "|".join(f"{name[:3].title()}(?:{name[3:]})?" for name in _MONTHS).replace("(?:tember", "(?:t(?:ember)?")
NO_SHORT_MONTH = r"(?<!\b(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\.)(?<!\bSept\.)"
"""After a full stop: it does not abbreviate a month (`Nov. 15, 2025`), so it may end a sentence."""
STATED = r"^(?P<field>[^:\n]{1,100}): (?P<value>.+)$"
"""A line that states a field, of a record or of a memory."""
_CODES = "USD|EUR|GBP|CHF|JPY"
_SYMBOLS = {"$": "USD", "\u20ac": "EUR", "\u00a3": "GBP"}
_AMOUNT = r"(?:\d{1,3}(?:[,\u00a0\u202f']\d{3})+|\d+)(?:\.\d+)?"

_PATTERN = re.compile(
    rf"""(?ix)
      (?P<uuid>\b[0-9a-f]{{8}}-[0-9a-f]{{4}}-[0-9a-f]{{4}}-[0-9a-f]{{4}}-[0-9a-f]{{12}}\b)
    | (?P<iso>\b\d{{4}}-\d{{2}}-\d{{2}})(?:[T ](?P<clock>\d{{2}}:\d{{2}}(?::\d{{2}}(?:\.\d+)?)?))?(?:Z|[+-]\d{{2}}:?\d{{2}})?(?!\w|-\d)
    | (?P<ymd>\b\d{{4}}/\d{{2}}/\d{{2}}(?![\w/]))
    | (?P<dmy>\b(?P<d1>\d{{1,2}})(?:\.|st|nd|rd|th)?(?:\ of)?[\ -](?P<m1>{_MONTH})\.?,?[\ -](?P<y1>\d{{4}})\b)
    | (?P<mdy>\b(?P<m2>{_MONTH})\.?\ (?P<d2>\d{{1,2}})(?:st|nd|rd|th)?,?\ (?P<y2>\d{{4}})\b)
    | (?P<numeric>(?<![\w./-])\d{{1,2}}(?:/\d{{1,2}}/|\.\d{{1,2}}\.|-\d{{1,2}}-)(?:\d{{4}}|\d{{2}})(?![\w/-]|\.\w))
    | (?P<yearless>\b(?-i:\d{{1,2}}(?:st|nd|rd|th)?(?:\ of)?\ (?:{_NAMED})|(?:{_NAMED})\.?\ \d{{1,2}}(?:st|nd|rd|th)?)\b)
    | (?P<ulid>\b(?-i:[0-7][0-9A-HJKMNP-TV-Z]{{25}})\b)
    | (?P<id>\b(?-i:[A-Z][A-Z0-9]*)(?:-[A-Z0-9]+){{0,4}}-\d+\b|\b(?!(?:sha|iso|utf|aes|rsa|md)-)[a-z]{{2,10}}-\d{{3,9}}\b)
    | (?P<version>\bv?\d+\.\d+\.\d+(?:[-+.][0-9a-z.]+)?\b)
    | (?P<hash>\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{{7,64}}\b)
    | (?P<clock2>\b\d{{1,2}}:\d{{2}}(?::\d{{2}})?\b)
    | (?P<money>-?[$\u20ac\u00a3]-?{_AMOUNT}|\b(?:{_CODES})\ -?{_AMOUNT}|(?<![\w.,])-?{_AMOUNT}\ (?:{_CODES})\b)
    | (?P<number>(?<![\w.])(?:(?<![\w)\]])[-\u2212])?(?>{_AMOUNT})(?!\w*\d))
    """
)
_NUMERIC = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4})")


class Value(NamedTuple):
    """A value: its place in the text, in characters, its kind and canonical form."""

    start: int
    end: int
    kind: str
    """id, date, time, money, number, or name: a version, a hash."""
    canonical: str
    currency: str = ""
    """Of an amount; empty = not given."""
    read: bool = True
    """Whether it has one reading: of a date that has several, the canonical form is its text."""


def values_in(text: str) -> Iterator[Value]:
    """The values of a text, none inside another. A date with a time of day is two values."""
    for match in _PATTERN.finditer(text):
        yield from _read(match)


@lru_cache(maxsize=4096)
def whole_value(text: str) -> Value | None:
    """The value that a text is as a whole, of a date with a time the date; None if it is none."""
    match = _PATTERN.fullmatch(text)
    return next(_read(match), None) if match else None


def _read(match: re.Match[str]) -> Iterator[Value]:
    start, end = match.span()
    if match["iso"]:
        yield _date(*match.span("iso"), match["iso"], *match["iso"].split("-"))
        if match["clock"]:
            yield Value(*match.span("clock"), "time", _clock(match["clock"]))
    elif match["ymd"]:
        yield _date(start, end, match[0], *match["ymd"].split("/"))
    elif match["dmy"] or match["mdy"]:
        parts = [match[name + ("1" if match["dmy"] else "2")] for name in ("y", "m", "d")]
        yield _date(start, end, match[0], *parts)
    elif match["numeric"] or match["yearless"]:
        yield _date(start, end, match[0], *_day_and_month(match[0]))
    elif match["clock2"]:
        yield Value(start, end, "time", _clock(match["clock2"]))
    elif match["money"] or match["number"]:
        yield from _amount(start, end, match[0])
    else:
        kind = "name" if match["version"] or match["hash"] else "id"
        yield Value(start, end, kind, match[0].lower().removeprefix("v") if match["version"] else match[0].lower())


def _date(start: int, end: int, text: str, year: str = "", month: str = "", day: str = "") -> Value:
    try:
        number = int(month) if month.isdigit() else [name[:3] for name in _MONTHS].index(month[:3].lower()) + 1
        return Value(start, end, "date", date(int(year), number, int(day)).isoformat())
    except ValueError:  # no year, or 31 June
        return Value(start, end, "date", text.lower(), read=False)


def _day_and_month(text: str) -> tuple[str, ...]:
    """Year, month and day: `30.11.2025` has the day first, `11/30/2025` and `11-30-2025` are read only if one number
    cannot be a month; nothing where a year of two digits has no certain century.
    """
    found = _NUMERIC.fullmatch(text)
    if found is None:
        return ()
    first, sign, second, year = found.groups()
    if sign != "." and first != second and max(int(first), int(second)) <= 12:
        return ()  # some write the day first, some the month
    return (year, first, second) if sign != "." and int(second) > 12 else (year, second, first)


def _clock(text: str) -> str:
    hours, _, rest = text.partition(":")
    return f"{int(hours):02}:{rest.split('.')[0].removesuffix(':00') if rest.count(':') else rest}"


def _amount(start: int, end: int, text: str) -> Iterator[Value]:
    code = re.search(_CODES, text, re.IGNORECASE)
    currency = code[0].upper() if code else next((name for symbol, name in _SYMBOLS.items() if symbol in text), "")
    digits = re.sub(rf"(?i:{_CODES})|[$\u20ac\u00a3,\u00a0\u202f' ]", "", text.replace("\u2212", "-"))
    try:
        number = format(Decimal(digits).normalize(), "f")
    except InvalidOperation:
        return
    yield Value(start, end, "money" if currency else "number", number, currency)
