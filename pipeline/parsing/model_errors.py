"""Errors in a document, in the form of this package: `Expected X, got Y - at file: key`.

Reads: a pydantic model and plain values. Gives: `checked` (the model, or every error at once). A message shows a value
only if it is a word or a number: other texts may be evidence, and are shown as their type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from .quoting import shown, shown_key

__all__ = ["ModelDocument", "checked", "place_of"]


class ModelDocument(BaseModel):
    """A part of a document: known keys only, in snake_case or camelCase, values of exactly the declared type."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        allow_inf_nan=False,
        extra="forbid",
        frozen=True,
        loc_by_alias=False,
        strict=True,
        validate_by_alias=True,
        validate_by_name=True,
    )


_TYPES = {"tuple_type": "a list", "list_type": "a list", "dict_type": "an object", "model_type": "an object"}
"""Types by their JSON names."""

D = TypeVar("D", bound=BaseModel)


def checked(model: type[D], value: Any, file: str) -> tuple[D | None, list[str]]:
    """The document, or None and one line per error, in the order of its keys."""
    try:
        return model.model_validate(_tuples(value) if issubclass(model, ModelDocument) else value), []
    except ValidationError as error:
        return None, [_line(model, dict(one), file) for one in error.errors(include_url=False)]


def place_of(file: str, keys: tuple[int | str, ...]) -> str:
    """`file: retrieval_policy.weights`, list positions in brackets."""
    path = "".join(f"[{key}]" if isinstance(key, int) else f".{shown_key(key)}" for key in keys)
    return f"{file}: {path.lstrip('.')}" if path else file


def _tuples(value: Any) -> Any:
    """Lists as tuples, as immutable documents require."""
    if isinstance(value, Mapping):
        return {key: _tuples(one) for key, one in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, (list, tuple)) else value


def _line(model: type[BaseModel], error: Mapping[str, Any], file: str) -> str:
    at = place_of(file, error["loc"])
    match error["type"]:
        case "missing":
            expected, got = "a value", "nothing"
        case "extra_forbidden":
            expected, got = (
                f"one of the keys {', '.join(_keys(model, error['loc'][:-1]))}",
                repr(shown_key(str(error["loc"][-1]))),
            )
        case "expected":
            return f"{error['msg']} - at {at}"
        case _:
            message = error["msg"].removeprefix("Input should be ").removeprefix("Input should ")
            expected = _TYPES.get(error["type"], message)
            got = _shown(error["input"], at)
    return f"Expected {expected}, got {got} - at {at}"


def _shown(value: Any, at: str) -> str:
    if value is None:
        return "nothing"
    quoted = shown(value, at)
    return repr(quoted) if isinstance(quoted, str) else str(quoted)


def _keys(model: type[BaseModel], path: tuple[int | str, ...]) -> list[str]:
    """The known keys at a place."""
    for key in path:
        if isinstance(key, str) and key in model.model_fields:
            model = next(iter(_models(model.model_fields[key].annotation)), model)
    return list(model.model_fields)


def _models(annotation: Any) -> list[type[BaseModel]]:
    """The models in an annotation, at any depth."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models(part)]
