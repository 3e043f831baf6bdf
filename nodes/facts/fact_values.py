"""Values that can be checked against a record: ids, dates, money and numbers, as written in texts.

Reads texts. Gives `values_in`: every value with its line, and `canonical`: the form in which two spellings of one value
are equal (`$52,500` and `52500 USD`, `15 November 2025` and `2025-11-15`).

Note: a number inside a date, an amount or an id is not a separate value, so those are removed first.
"""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ..text.anchor_patterns import find_all, unmarked

__all__ = [
    "DAY_MONTH",
    "MONTH",
    "MONTHS",
    "NO_SHORT_MONTH",
    "STATED",
    "Value",
    "canonical",
    "day_and_month",
    "values_in",
]

MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
          "december")  # fmt: skip
MONTH = "|".join(f"{name[:3]}(?:{name[3:]})?" for name in MONTHS).replace("(?:tember", "(?:t(?:ember)?")
NO_SHORT_MONTH = r"(?<!\b(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\.)(?<!\bSept\.)"
"""After a full stop: it does not abbreviate a month (`Nov. 15, 2025`), so it may end a sentence."""
_MONTH = rf"(?:{MONTH})\.?"
_NAMED = "|".join(f"{name[:3].title()}(?:{name[3:]})?" for name in MONTHS).replace("(?:tember", "(?:t(?:ember)?")
_CODES = "USD|EUR|GBP|CHF|JPY"
_SYMBOLS = {"$": "USD", "\u20ac": "EUR", "\u00a3": "GBP"}
_AMOUNT = r"\d[\d,]*(?:\.\d+)?"

_SIGN = "[$\u20ac\u00a3]"
_NUMBER = rf"(?:^|[\s(:=~])(-?{_AMOUNT})(?:[\s,;:)%.]|$)"
_UNREAD = ""

PATTERNS = (
    ("date", rf"(?i)\b(\d{{1,2}}-(?:{MONTH})-\d{{4}})\b"),  # before ids: NOV-2025 has the form of one
    ("id", r"\b([0-7][0-9A-HJKMNP-TV-Z]{25})\b"),
    ("id", r"\b([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})\b"),
    ("id", r"(?i)\b([A-Z][A-Z0-9]{1,9}-\d{1,9})\b"),
    ("date", r"\b(\d{4}-\d{2}-\d{2}|\d{4}/\d{2}/\d{2})(?:\b|T)"),
    ("date", rf"(?i)\b(\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH},? \d{{4}})\b"),
    ("date", rf"(?i)\b({_MONTH} \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}})\b"),
    (
        "date",
        r"\b(\d{1,2}(?:/\d{1,2}/|-\d{1,2}-)(?:\d{4}|\d{2}))\b",
    ),  # a year of two digits has no certain century
    ("date", rf"\b(\d{{1,2}}(?:st|nd|rd|th)?(?: of)? (?:{_NAMED}))\b"),  # a day without a year is ambiguous
    ("date", rf"\b((?:{_NAMED})\.? \d{{1,2}}(?:st|nd|rd|th)?)\b"),
    ("date", r"\b(\d{1,2}\.\d{1,2}\.\d{4})\b"),
    (_UNREAD, r"(\d+(?:\.\d+){2,})"),  # a version, an address
    (_UNREAD, r"(\d[\d.]*,\d{1,2})(?:\D|$)"),  # 52.500,00: a comma may end the thousands or the units
    (_UNREAD, rf"({_SIGN}?\d[\d.,]*(?:[A-Za-z]\w*| (?i:thousand|million|billion)\b))"),  # $52.5k, 15px, 3rd, 2 million
    ("money", rf"(?:^|[\s(:=])(-{_SIGN}{_AMOUNT}|{_SIGN}-{_AMOUNT}|-{_AMOUNT} (?:{_CODES}))\b"),
    ("money", rf"({_SIGN}{_AMOUNT})"),
    ("money", rf"\b((?:{_CODES}) -?{_AMOUNT})"),
    ("money", rf"\b({_AMOUNT} (?:{_CODES}))\b"),
    ("number", _NUMBER),
    ("number", _NUMBER),  # adjacent numbers: the first pass consumed the space between them
)
"""Kind and RE2 with one group, the value; each is applied to the text that the previous ones left. Ambiguous digits are
removed and never compared: calling them wrong would put a falsehood next to the evidence."""
STATED = r"^(?P<field>[^:\n]{1,100}): (?P<value>.+)$"
"""A line that states a field, of a record or of a memory."""


class Value(NamedTuple):
    """A value as its text has it: the number of the text and of the line, counted over all texts, and the line itself."""

    text: int
    kind: str
    value: str
    line: int
    words: str


def values_in(texts: pa.Array) -> list[Value]:
    """Every value in an array of texts without nulls, with repetitions, by pattern."""
    split = pc.split_pattern(unmarked(texts), "\n")
    left = split.flatten()
    words, of_text, values = left.to_pylist(), pc.list_parent_indices(split).to_pylist(), list[Value]()
    for kind, regex in PATTERNS:
        if kind != _UNREAD:
            lines, found = find_all(left, regex)
            values += [
                Value(of_text[line], kind, value.rstrip(".,"), line, words[line])
                for line, value in zip(lines.tolist(), found.to_pylist(), strict=True)
            ]
        left = pc.replace_substring_regex(left, pattern=regex, replacement=" ")
    return values


@lru_cache(maxsize=4096)
def canonical(kind: str, value: str) -> tuple[str, str] | None:
    """The canonical value and, for money, its currency (empty = unknown); None if the text is not such a value."""
    if kind == "id":
        return value.strip().upper(), ""
    if kind == "date":
        found = _date(value.strip())
        return (found.isoformat(), "") if found else None
    return _amount(value.strip())


DAY_MONTH = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4})")
"""A numeric date, year last, see `day_and_month`."""


def day_and_month(found: re.Match[str]) -> date | None:
    """`30.11.2025` has the day first; `11/30/2025` and `11-30-2025` are read only if one number cannot be a month."""
    first, second, year = int(found[1]), int(found[3]), int(found[4])
    if found[2] != "." and first != second and max(first, second) <= 12:
        return None  # some write the day first, some the month
    day, month = (second, first) if found[2] != "." and second > 12 else (first, second)
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _date(value: str) -> date | None:
    if written := DAY_MONTH.fullmatch(value):
        return day_and_month(written)
    try:
        return date.fromisoformat(value[:10].replace("/", "-"))
    except ValueError:
        words = re.findall(r"[a-z]+|\d+", value.lower())
    months = [number for word in words for number, name in enumerate(MONTHS, start=1) if name[:3] == word[:3]]
    digits = [int(word) for word in words if word.isdigit()]
    try:
        return date(digits[1], months[0], digits[0]) if len(digits) == 2 and len(months) == 1 else None
    except ValueError:
        return None


def _amount(value: str) -> tuple[str, str] | None:
    code = re.search(_CODES, value)
    currency = code[0] if code else next((name for symbol, name in _SYMBOLS.items() if symbol in value), "")
    digits = re.sub(rf"{_CODES}|[$\u20ac\u00a3,% ]", "", value)
    try:
        number = Decimal(digits)
    except InvalidOperation:
        return None
    return (f"{number.normalize():f}", currency) if number.is_finite() else None
