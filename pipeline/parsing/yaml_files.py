"""YAML files that people edit, read strictly: plain values, which `documents` checks against a model.

Keys may not repeat and must be text; dates stay text, so a date without a zone is an error rather than a guess. Every
error is a `PolicyError` that names file and line.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from ...nodes.errors import PolicyError
from .quoting import shown, shown_key, shown_problem

_Base: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's parser if PyYAML was built with it: ten times as fast."""


class _Loader(_Base):
    """Safe YAML without dates and without repeated keys."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _at(mark: Any, problem: str) -> PolicyError:
    """An error at a line of the file, which `parse` names."""
    return PolicyError(f"Expected {problem}", at=mark.line + 1)


def _mapping(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    result: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str):
            raise _at(key_node.start_mark, f"text as key, got {shown(key)} (put it in quotes)")
        if key in result:
            raise _at(key_node.start_mark, f"every key once, got {shown_key(key)!r} again")
        result[key] = loader.construct_object(value_node, deep=True)
    return result


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


_SURROGATE = re.compile(r"\\(?:u|U0000)[dD][89a-fA-F][0-9a-fA-F]{2}")
"""An escaped surrogate, which UTF-8 text cannot contain; YAML does not combine pairs of them."""
_DEEPEST = 100
"""Deeper values would overflow the stack of libyaml's loader."""


def _check_depth(text: str) -> None:
    depth = 0
    for event in yaml.parse(text, _Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise _at(event.start_mark, "YAML, got too deep nesting")


def _problem(error: yaml.YAMLError) -> str:
    return shown_problem(getattr(error, "problem", None) or getattr(error, "reason", None) or "text that is not")


def parse(data: bytes, file: str) -> Any:
    """The content of a YAML file; `file` names it in errors.

    Raises:
        PolicyError: the bytes are not UTF-8 or not YAML, a key repeats, or a key is not text.
    """
    try:
        text = data.decode("utf-8")
        if found := _SURROGATE.search(text):
            raise PolicyError("Expected Unicode text, got a lone surrogate", at=text.count("\n", 0, found.start()) + 1)
        _check_depth(text)
        return yaml.load(text, _Loader)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise PolicyError(f"Expected UTF-8, got byte {error.start} that is not", at=f"{file}:{line}") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        breaks = data.count(b"\n")  # a premature end is reported after the last line
        where = f"{file}:{min(mark.line, breaks) + 1}" if mark else file
        raise PolicyError(f"Expected YAML, got {_problem(error)}", at=where) from error
    except PolicyError as error:
        raise error.moved(f"{file}:{error.at}") from None
    except ValueError as error:
        raise PolicyError("Expected YAML, got a number with too many digits", at=file) from error
