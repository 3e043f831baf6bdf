"""Documents that people write, as pydantic models: errors have the form of this package, `Expected X, got Y - at file: key`.

Reads: a model and plain values. Gives: `Document` and `ModelDocument`, the bases of models; `document` (the model, or the
first error) and `checked` (the model, or every error at once); `word`, `words`, `converted` and `Text` for fields. A
message shows a value only if it is a word or a number: other texts may be evidence, and are shown as their type.

Note: a key that is written without a value is not missing, and no field accepts null: an author who wrote `paths:` meant
to restrict something. So an optional field has a default of None without a type that allows it.
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from ...nodes.errors import InputError, PolicyError
from ...nodes.vocabulary import ORIGIN_CLASSES, Vocabulary
from . import values
from .quoting import canonical, shown, shown_key


class Document(BaseModel):
    """A part of a document: known keys only, values of exactly the declared type."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, loc_by_alias=False, validate_by_name=True)


class ModelDocument(Document):
    """The same with keys in snake_case or camelCase."""

    model_config = ConfigDict(alias_generator=to_camel, allow_inf_nan=False, validate_by_alias=True)


D = TypeVar("D", bound=BaseModel)


def expected(what: str, got: str) -> PydanticCustomError:
    """The error of a validator: `Expected WHAT, got GOT`."""
    return PydanticCustomError("expected", "{problem}", {"problem": f"Expected {what}, got {got}"})


def converted(read: Callable[..., Any]) -> BeforeValidator:
    """A validator that calls a parser, such as those of `values`, with a value and its place."""
    return BeforeValidator(lambda value: _parsed(read, value, ""))


def _parsed(read: Callable[..., Any], *given: Any) -> Any:
    """The result of a parser, its error as one of a validator."""
    try:
        return read(*given)
    except InputError as error:
        problem = f"{error.what} ({error.hint})" if error.hint else error.what
        raise PydanticCustomError("expected", "{problem}", {"problem": problem, "choices": error.choices}) from None


def word(vocabulary: Vocabulary) -> BeforeValidator:
    """A word of a closed list, in its canonical form."""
    return converted(lambda value, at: canonical(vocabulary, value, at))


def words(vocabulary: Vocabulary, *, except_: Collection[str] = ()) -> AfterValidator:
    """Words of a closed list without repeats, in the order of the list; some may be excluded."""
    allowed = replace(vocabulary, values=tuple(one for one in vocabulary.values if one not in except_))

    def read(given: tuple[str, ...]) -> tuple[str, ...]:
        found = {_parsed(canonical, allowed, one, "") for one in given}
        return tuple(one for one in vocabulary.values if one in found)

    return AfterValidator(read)


def _text(value: str) -> str:
    if not value.strip():
        raise expected("text", repr(value))
    return value


def selector(value: str) -> str:
    """A source selector in NFC, aliases of origin classes resolved."""
    text = unicodedata.normalize("NFC", value)
    return ORIGIN_CLASSES.aliases.get(text, text)


ABSENT: Any = None
"""The default of an optional key; written without a value, it is an error."""
Text = Annotated[str, AfterValidator(_text)]
"""A text that is not blank."""
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1, lt=2**31)]
CountOrZero = Annotated[int, Field(ge=0, lt=2**31)]
Instant = Annotated[datetime, converted(values.instant)]
"""A time with an offset, in UTC."""
FirstVersion = Literal[1]
"""The schema version of a file; see `docs/reference/limits.md`."""


def document(model: type[D], value: Any, file: str, error: type[InputError] = PolicyError) -> D:
    """The document, whole.

    Raises:
        PolicyError: it is invalid; nothing of it is applied. `error` is another type for other files.
    """
    found, errors = _validated(model, value, file)
    if found is None:
        first, hint = errors[0], f"and {len(errors) - 1} more" if len(errors) > 1 else ""
        raise error(first.what, at=first.at, hint=hint, choices=first.choices)
    return found


def checked(model: type[D], value: Any, file: str) -> tuple[D | None, list[str]]:
    """The document, or None and one line per error, in the order of its keys."""
    found, errors = _validated(model, value, file)
    return found, [error.message for error in errors]


def _validated(model: type[D], value: Any, file: str) -> tuple[D | None, list[InputError]]:
    try:
        return model.model_validate(_tuples(value) if issubclass(model, Document) else value), []
    except ValidationError as error:
        # A misspelled key says more than the key that is missing for it.
        found = sorted(error.errors(include_url=False), key=lambda one: one["type"] != "extra_forbidden")
        return None, [_error(model, dict(one), file) for one in found]


def place_of(file: str, keys: tuple[int | str, ...]) -> str:
    """`file: retrieval_policy.weights`, list positions in brackets."""
    path = "".join(f"[{key}]" if isinstance(key, int) else f".{shown_key(key)}" for key in keys if key != "[key]")
    return f"{file}: {path.lstrip('.')}" if path else file


def _tuples(value: Any) -> Any:
    """Lists as tuples, as immutable documents require."""
    if isinstance(value, Mapping):
        return {key: _tuples(one) for key, one in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, (list, tuple)) else value


_TYPES = {
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "string_type": "text",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
    "too_short": "at least one entry",
}
"""Types by their usual names."""


def _error(model: type[BaseModel], error: Mapping[str, Any], file: str) -> InputError:
    at, choices = place_of(file, error["loc"]), ()
    match error["type"]:
        case "missing":
            what, got = "a value", "nothing"
        case "extra_forbidden":
            choices, key = _keys(model, error["loc"][:-1]), str(error["loc"][-1])
            what, got = f"one of the keys {', '.join(choices)}", repr(shown_key(key))
            if near := difflib.get_close_matches(key, choices, n=1):
                got += f" (did you mean {near[0]}?)"
        case "expected":
            return InputError(error["msg"], at=at, choices=error.get("ctx", {}).get("choices", ()))
        case _:
            message = error["msg"].removeprefix("Input should be ").removeprefix("Input should ")
            message = f"a number {message}" if error["type"].startswith(("greater_", "less_")) else message
            what, got = _TYPES.get(error["type"], message), _shown(error["input"], at)
    return InputError(f"Expected {what}, got {got}", at=at, choices=choices)


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
