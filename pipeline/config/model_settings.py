"""Settings that name a model, a server or the variable with its key: their syntax and allowed values.

Gives: `parsed`, a value or an error that quotes no password and no key. Every command reads the settings, so no model
code is imported before a model is named.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...nodes.errors import InputError
from ..storage.places import at_home, is_url

__all__ = ["UnquotedError", "parsed"]

_FOLDER, _OPENAI, _RERANK = "sentence-transformers:", "openai:", "rerank:"


class UnquotedError(InputError):
    """An error that quotes nothing of the value."""


def parsed(kind: str, given: str | Path, base: Path, at: str, choices: Sequence[str] = ()) -> str | Path:
    """The value of a setting of this kind; a folder is relative to `base`.

    Raises:
        InputError: it is not of that kind.
    """
    text = str(given).strip()
    if kind == "encoder":
        return _encoder(text, base, at, choices)
    if kind == "reranker":
        if text.startswith(_RERANK):
            return _server(text, _RERANK, at)
        if is_url(text):
            raise InputError.expected("a path of this machine", text, at, hint="a server is rerank:URL#MODEL")
        return base / at_home(Path(text), at)
    from ..encoders.choice import expect_variable

    try:
        expect_variable(text, at)
    except InputError as error:
        raise UnquotedError(error.message, hint=error.hint) from None
    return text


def _encoder(text: str, base: Path, at: str, choices: Sequence[str]) -> str:
    if not any(_is_choice(text, choice) for choice in choices):
        raise InputError.one_of(choices, text, at)
    if text.startswith(_OPENAI):
        return _server(text, _OPENAI, at)
    name = text.removeprefix(_FOLDER)
    if name == text or not (name.startswith(("/", ".", "~")) or (base / name).is_dir()):
        return text
    return f"{_FOLDER}{base / at_home(Path(name), at)}"


def _server(text: str, prefix: str, at: str) -> str:
    from ..encoders.choice import Served

    try:
        return f"{prefix}{Served.of(text.removeprefix(prefix), at, prefix)}"
    except InputError as error:
        raise UnquotedError(error.message, hint=error.hint) from None


def _is_choice(given: str, choice: str) -> bool:
    """Whether a value matches an entry of the list; a word in capitals after a colon matches any name."""
    kind, colon, name = choice.partition(":")
    return given.startswith(f"{kind}:") and given != f"{kind}:" if colon and name.isupper() else given == choice
