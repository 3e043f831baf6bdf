"""YAML files that people edit, read strictly: one `YamlItem` per value, which knows its place for error messages.

Keys may not repeat and must be text; dates stay text, so a date without a zone is an error rather than a guess. Every
error is a `PolicyError` that names file and key, expected and actual value.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

import yaml

from ...nodes.errors import InputError, PolicyError, kind_of
from ...nodes.vocabulary import Vocabulary
from . import values
from .quoting import shown, shown_key, shown_problem

T = TypeVar("T")


_Base: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's parser if PyYAML was built with it: ten times as fast."""


class _Loader(_Base):
    """Safe YAML without dates and without repeated keys."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _mapping(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    result: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str):
            raise _MisplacedError(f"text as key, got {shown(key)} (put it in quotes)", key_node.start_mark.line + 1)
        if key in result:
            raise _MisplacedError(f"every key once, got {shown_key(key)!r} again", key_node.start_mark.line + 1)
        result[key] = loader.construct_object(value_node, deep=True)
    return result


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


SURROGATE = re.compile(r"\\(?:u|U0000)[dD][89a-fA-F][0-9a-fA-F]{2}")
"""An escaped surrogate, which UTF-8 text cannot contain; YAML does not combine pairs of them."""
_CERTAINLY_SHALLOW = 10_000
"""Text size up to which deep nesting raises an error; in larger texts, libyaml's loader overflows the stack."""
_DEEPEST = 100


def _check_depth(text: str, file: str) -> None:
    depth = 0
    for event in yaml.parse(text, _Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise PolicyError(f"Expected YAML, got too deep nesting - at {file}:{event.start_mark.line + 1}")


class _MisplacedError(Exception):
    def __init__(self, what: str, line: int) -> None:
        super().__init__(what)
        self.what, self.line = what, line


def _problem(error: yaml.YAMLError) -> str:
    return shown_problem(getattr(error, "problem", None) or getattr(error, "reason", None) or "text that is not")


def parse(data: bytes, file: str) -> YamlItem:
    """The content of a YAML file; `file` names it in errors.

    Raises:
        PolicyError: the bytes are not UTF-8 or not YAML, a key repeats, or a key is not text.
    """
    try:
        text = data.decode("utf-8")
        if SURROGATE.search(text):
            raise PolicyError(f"Expected Unicode text, got a lone surrogate - at {file}")
        if len(text) > _CERTAINLY_SHALLOW:
            _check_depth(text, file)
        return YamlItem(yaml.load(text, _Loader), file, "")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise PolicyError(f"Expected UTF-8, got byte {error.start} that is not - at {file}:{line}") from error
    except RecursionError as error:
        raise PolicyError(f"Expected YAML, got too deep nesting - at {file}") from error
    except _MisplacedError as error:
        raise PolicyError(f"Expected {error.what} - at {file}:{error.line}") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        breaks = data.count(b"\n")  # a premature end is reported after the last line
        where = f"{file}:{min(mark.line, breaks) + 1}" if mark else file
        raise PolicyError(f"Expected YAML, got {_problem(error)} - at {where}") from error
    except PolicyError:
        raise
    except ValueError as error:
        raise PolicyError(f"Expected YAML, got a number with too many digits - at {file}") from error


VERSION_KEY = "schema_version"
"""The key of a file, and the field of a request, with its schema version."""


@dataclass(frozen=True)
class YamlItem:
    """A value with its file and key path, e.g. `plan[2].lanes`.

    Note: a key that is written without a value is not missing. Its value is None, which no reader accepts: an author who
    wrote `paths:` meant to restrict something.
    """

    value: Any
    file: str
    key: str
    missing: bool = False
    """Whether the key is absent."""

    @property
    def at(self) -> str:
        return f"{self.file}: {'.'.join(map(shown_key, self.key.split('.')))}" if self.key else self.file

    def wrong(self, expected: str, *, hint: str = "") -> PolicyError:
        """The error for a value that is not as expected."""
        got = self.value
        if isinstance(got, (list, dict)):
            got = f"a {'list' if isinstance(got, list) else 'mapping'} of {len(got)}"
            return PolicyError(f"Expected {expected}, got {got} - at {self.at}", hint=hint)
        if got is None:
            return PolicyError(f"Expected {expected}, got nothing - at {self.at}", hint=hint)
        return PolicyError(PolicyError.expected(expected, shown(got, self.key), self.at).message, hint=hint)

    def _of_kind(self, expected: str) -> PolicyError:
        """The error for a value that should be a list or mapping; at the top level, only its kind is shown, as it is
        the whole file.
        """
        if self.key or isinstance(self.value, (list, dict)):
            return self.wrong(expected)
        return PolicyError(f"Expected {expected}, got {kind_of(self.value)} - at {self.at}")

    def fields(
        self, known: Iterable[str], required: Iterable[str] = (), aliases: Mapping[str, str] | None = None
    ) -> dict[str, YamlItem]:
        """The values of a mapping by key, each of `known` or an alias; absent ones are missing items."""
        known, aliases = list(known), aliases or {}
        if not isinstance(self.value, dict):
            raise self._of_kind(f"a mapping with the keys {', '.join(known)}")
        spelled: dict[str, str] = {}
        for key in self.value:
            name = aliases.get(key, key)
            if name not in known:
                got = f"Expected one of the keys {', '.join(known)}, got {shown_key(key)!r}"
                near = difflib.get_close_matches(key, known, n=1)
                hint = f"did you mean {near[0]}?" if near else ""
                raise PolicyError(f"{got} - at {YamlItem(key, self.file, self._below(key)).at}", hint=hint)
            if name in spelled:
                raise YamlItem(key, self.file, self._below(key)).wrong(f"{name} once, not as {spelled[name]} as well")
            spelled[name] = key
        found = {}
        for name in known:
            key = spelled.get(name, name)
            found[name] = YamlItem(self.value.get(key), self.file, self._below(key), missing=name not in spelled)
        for key in required:
            if found[key].value is None:
                raise found[key].wrong("a value")
        return found

    def of_version(self, version: int) -> YamlItem:
        """A file of the given schema version, without its version key; a file without the key has version 1.

        Raises:
            PolicyError: it has another version.
        """
        if not isinstance(self.value, dict) or VERSION_KEY not in self.value:
            return self
        if (stated := self.value[VERSION_KEY]) != version or isinstance(stated, bool):
            hint = "a later version of scoped-retrieval wrote it: install that version, or write the file as `docs/reference/limits.md` says."
            raise YamlItem(stated, self.file, VERSION_KEY).wrong(f"schema version {version}", hint=hint)
        return YamlItem({key: value for key, value in self.value.items() if key != VERSION_KEY}, self.file, self.key)

    def entries(self) -> Iterator[tuple[str, YamlItem]]:
        """The pairs of a mapping whose keys are names; none if it is missing."""
        if not self.missing and not isinstance(self.value, dict):
            raise self._of_kind("a mapping")
        for key, value in (self.value or {}).items():
            yield key, YamlItem(value, self.file, self._below(key))

    def items(self) -> list[YamlItem]:
        """The elements of a list; none if it is missing."""
        if not self.missing and not isinstance(self.value, list):
            raise self._of_kind("a list")
        return [YamlItem(value, self.file, f"{self.key}[{n}]") for n, value in enumerate(self.value or [])]

    def optional(self, read: Callable[[YamlItem], T]) -> T | None:
        """The result of `read`, or None if the value is missing."""
        return None if self.missing else read(self)

    def text(self) -> str:
        if not isinstance(self.value, str) or not self.value.strip():
            raise self.wrong("text", hint="" if self.missing else "put names that YAML reads as numbers in quotes")
        return self.value

    def texts(self) -> list[str]:
        return [item.text() for item in self.items()]

    def flag(self) -> bool:
        return self._as(values.flag)

    def count(self, least: int = 0, most: int = values.INT32_MAX) -> int:
        return self._as(values.whole, least, most)

    def number(self, least: float = 0.0, most: float = math.inf, *, infinite: bool = False) -> float:
        return self._as(partial(values.number, infinite=infinite), least, most)

    def word(self, vocabulary: Vocabulary) -> str:
        """A word of a closed list, aliases resolved."""
        if not isinstance(self.value, str) or (self.value not in vocabulary and self.value not in vocabulary.aliases):
            aliases = ", ".join(f"{alias} = {word}" for alias, word in vocabulary.aliases.items())
            raise self.wrong(f"one of {', '.join(vocabulary.values)}", hint=f"aliases: {aliases}" if aliases else "")
        return vocabulary.canonical(self.value, self.file)

    def words(self, vocabulary: Vocabulary, *, except_: Sequence[str] = ()) -> list[str]:
        """Words of a closed list, without repeats, in the order of the list; some may be excluded."""
        found = set()
        for item in self.items():
            if (word := item.word(vocabulary)) in except_:
                raise item.wrong(f"one of {', '.join(w for w in vocabulary.values if w not in except_)}")
            found.add(word)
        return [word for word in vocabulary.values if word in found]

    def instant(self) -> datetime:
        """A time with an offset, in UTC."""
        return self._as(values.instant)

    def _as(self, read: Callable[..., T], *given: Any) -> T:
        """The result of a parser of `values`. The place is built only for an error, as each of its keys is searched for
        secrets.
        """
        with suppress(InputError):
            return read(self.value, "", *given)
        try:
            return read(self.value, self.at, *given)
        except InputError as error:
            raise PolicyError(error.message, hint=error.hint) from None

    def _below(self, key: str) -> str:
        return f"{self.key}.{key}" if self.key else key
