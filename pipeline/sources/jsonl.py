"""A strict reader of JSON lines written by people and harnesses: every error names file, line and field.

Gives: `read_lines(path)`, one `Record` per line. A record reads a field under any of its names, `turnId` also as `turn_id`,
and tracks unused fields.

Note: the whole file is parsed before the first record is returned, so a bad last line stops an import before anything
is written.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from ...nodes.errors import InputError
from ...nodes.vocabulary import Vocabulary
from ..parsing import values
from ..parsing.data_files import bytes_of
from ..parsing.quoting import canonical, shown_key
from ..parsing.strict_json import json_text, strict_json

LINES = (".jsonl", ".ndjson")


@lru_cache(maxsize=1024)
def _spelled(names: tuple[str, ...]) -> tuple[str, ...]:
    """Each name, and `turnId` as `turn_id`."""
    return tuple(each for name in names for each in dict.fromkeys((name, re.sub("[A-Z]", r"_\g<0>", name).lower())))


@dataclass
class Record:
    """One object; `at` is `file:line`, `line` counts from 1, `start` and `end` are byte offsets in the file."""

    at: str
    fields: dict[str, Any]
    line: int = 0
    start: int = 0
    end: int = 0
    line_end: int | None = None
    dates: bool = False
    """Whether a time may be a date, as midnight in UTC."""
    used: set[str] = field(default_factory=set)
    inside: dict[str, Record] = field(default_factory=dict)
    """The objects in its fields that were read as records, by field."""

    @classmethod
    def of(cls, value: Any, at: str) -> Record:
        """A record made from the caller's mapping.

        Raises:
            InputError: it is not a mapping.
        """
        return cls(at, dict(values.mapping(value, at)))

    def value(self, *names: str) -> Any:
        """The first of the named fields that is present and not null."""
        spelled = _spelled(names)
        self.used.update(spelled)
        for name in spelled:  # no generator: called dozens of times per record
            if (found := self.fields.get(name)) is not None:
                return found
        return None

    def place(self, *names: str) -> str:
        """The location of a value for messages, with the name of the field in this record."""
        return f"{self.at}.{next((name for name in _spelled(names) if self.fields.get(name) is not None), names[0])}"

    def text(self, *names: str) -> str | None:
        """A string that is not blank; None if the record has none."""
        value = self.value(*names)
        if value is None:
            return None
        if not isinstance(value, str):
            raise InputError.of_kind("text", value, self.place(*names))
        return value if value.strip() else None

    def required(self, *names: str) -> str:
        """Like `text`, for a required field."""
        value = self.text(*names)
        if value is None:
            raise InputError.expected(
                "text", None, self.place(*names), hint=f"also read: {', '.join(names[1:])}" if names[1:] else ""
            )
        return value

    def identifier(self, *names: str) -> str | None:
        """Text or a whole number."""
        value = self.value(*names)
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else self.text(*names)

    def read(self, names: tuple[str, ...], parse: Callable[..., Any], *bounds: float) -> Any:
        """What a parser, such as those of `values`, makes of a field; None if the record has none."""
        value = self.value(*names)
        return None if value is None else parse(value, self.place(*names), *bounds)

    def instant(self, *names: str) -> datetime | None:
        """ISO 8601 with a zone, or milliseconds since 1970."""
        return self.read(names, partial(values.instant, dates=self.dates, milliseconds=True))

    def strings(self, *names: str) -> list[str] | None:
        """A list of strings; a single string counts as a list of one, an object by its `id`, `ref`, `path` or `uri`."""
        value = self.value(*names)
        if value is None:
            return None
        items = []
        for position, item in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(item, dict):
                item = next((item[key] for key in ("ref", "id", "path", "uri") if isinstance(item.get(key), str)), item)
            if not isinstance(item, str):
                raise InputError.of_kind("text", item, f"{self.place(*names)}[{position}]")
            items.append(item)
        return items

    def number(self, *names: str, least: float = -math.inf, most: float = math.inf) -> float | None:
        """A number within bounds."""
        return self.read(names, values.number, least, most)

    def whole(self, *names: str, least: int = 0, most: int = values.INT32_MAX) -> int | None:
        """A whole number within bounds."""
        return self.read(names, values.whole, least, most)

    def flag(self, *names: str) -> bool | None:
        """True or false."""
        return self.read(names, values.flag)

    def word(self, vocabulary: Vocabulary, *names: str) -> str | None:
        """A value of a closed list, in its canonical form."""
        return self.read(names, partial(canonical, vocabulary))

    def mapping(self, name: str) -> Record:
        """The object in a field, as a record of its own; empty if there is none."""
        value = self.value(name)
        if not isinstance(value, dict | None):
            raise InputError.of_kind("an object", value, f"{self.at}.{name}")
        place = (self.line, self.start, self.end)
        return self.inside.setdefault(name, Record(f"{self.at}.{name}", value or {}, *place))

    def objects(self, *names: str) -> list[Record]:
        """The objects of a list, as records of their own; none if there is no list."""
        value, at = self.value(*names), self.place(*names)
        if not isinstance(value, list | None):
            raise InputError.of_kind("a list", value, at)
        return [Record.of(each, f"{at}[{number}]") for number, each in enumerate(value or [])]

    def expect_no_others(self, known: Iterable[str]) -> None:
        """Refuse unknown fields.

        Raises:
            InputError: there is one; lists the known fields.
        """
        known = list(known)
        if unknown := sorted(self.fields.keys() - known):
            raise InputError.one_of(known, shown_key(unknown[0]), self.at)

    def unread(self) -> Iterator[str]:
        """The fields that no reader used, as messages may name them; nested ones by their path."""
        yield from map(shown_key, self.fields.keys() - self.used)
        for name, record in self.inside.items():
            yield from (f"{name}.{each}" for each in record.unread())


def read_lines(path: Path) -> list[Record]:
    """A record for every line of the file that is not blank.

    Raises:
        InputError: the file cannot be read, is not UTF-8, or a line is not a JSON object.
    """
    data, records = bytes_of(path), []
    start = 3 if data.startswith(b"\xef\xbb\xbf") else 0
    for number, line in enumerate(data[start:].split(b"\n"), start=1):
        end = start + len(line)
        if line.strip():
            at = f"{path}:{number}"
            records.append(Record(at, parse_json(line, at), number, start, end))
        start = end + 1
    return records


def parse_json(line: bytes, at: str) -> dict[str, Any]:
    """Parse one line as a JSON object of Unicode text.

    Raises:
        InputError: it is something else.
    """
    value = strict_json(line, at)
    if not isinstance(value, dict):
        raise InputError.of_kind("a JSON object", value, at)
    if b"\\u" in line:
        json_text(value, at, allow_nan=True)  # refuses a lone surrogate
    return value
