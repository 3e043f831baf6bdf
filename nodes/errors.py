"""Every error this package raises on purpose, as one tree.

    ScopedRetrievalError
    ├── InputError (ValueError)        a request, row, file or flag is not what was expected   exit 2
    │   ├── PolicyError                a policy or grants file is not what was expected        exit 2
    │   └── SchemaError                a table does not have the declared columns              exit 2
    ├── AccessError (PermissionError)  the credential may not ask this                         exit 3
    ├── StoreError (OSError)           a corpus or run cannot be read, or another version      exit 7
    │   ├── BusyError                  another writer holds the lock                           exit 7
    │   ├── MovedOnError               a corpus is no longer at the generation relied on       exit 7
    │   └── ErasedError                evidence was erased after a corpus was opened           exit 7
    ├── ModelError (RuntimeError)      a package or model is missing, or not the pinned one    exit 7
    ├── EngineError (RuntimeError)     shards cannot be run where they were sent               exit 7
    └── VerificationError              a run or chain does not match its record                exit 5

An error has its parts as fields, so that its message is never parsed. A message states what was expected, what was given and where; after a blank line, what to do. It quotes ids, names,
types and counts, never evidence or query text. A refusal is not an error: it is a row with a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import date
from pathlib import PurePath
from typing import Any, Self

_KINDS: tuple[tuple[str, type | tuple[type, ...]], ...] = (
    ("nothing", type(None)),
    ("true or false", bool),
    ("a number", (int, float)),
    ("text", str),
    ("bytes", bytes),
    ("an object", Mapping),
    ("a list", (list, tuple, set, frozenset)),
    ("a time", date),
)
"""Everyday names of kinds of values, the narrower kind first: in Python, `bool` is an `int`."""

_READING = ("stops", "bound_stops", "removes", "recall", "value")
"""The plugin functions that receive declared columns."""
DECLARE = "declare the columns that it reads in `columns`, those of the contract in `contract_columns`"


def public_text(error: Exception) -> str:
    """The part of an error that may be stored: this package's own messages; of any other, what the system says, or its type."""
    if isinstance(error, ScopedRetrievalError):
        return error.message
    return f"Expected no error, got {getattr(error, 'strerror', None) or type(error).__name__}"


class ScopedRetrievalError(Exception):
    """Base of the tree. `exit_code` is what the command line returns.

    `what` is the message without its place `at`; `choices` are the valid values of a closed list.
    """

    exit_code = 1

    def __init__(self, what: str, *, at: object = "", hint: str = "", choices: Iterable[str] = ()) -> None:
        self.what, self.at, self.hint, self.choices = what, str(at), hint, tuple(choices)
        self.message = f"{what} - at {at}" if self.at else what
        super().__init__(f"{self.message}\n\nHint: {hint}" if hint else self.message)

    def moved(self, at: str) -> Self:
        """The same error with another place."""
        return type(self)(self.what, at=at, hint=self.hint, choices=self.choices)


class InputError(ScopedRetrievalError, ValueError):
    """A request, row, file or flag is not what was expected."""

    exit_code = 2

    @classmethod
    def expected(cls, expected: str, got: object, at: str, *, hint: str = "") -> InputError:
        """`Expected X, got Y - at path`, the one form for a value of the wrong kind."""
        return cls(f"Expected {expected}, got {_quoted(got)}", at=at, hint=hint)

    @classmethod
    def described(cls, expected: str, got: str, at: str, *, hint: str = "") -> InputError:
        """An error whose `got` is a description, printed without quotes: `none`, `3 characters`."""
        return cls(f"Expected {expected}, got {got}", at=at, hint=hint)

    @classmethod
    def of_kind(cls, expected: str, got: object, at: str, *, hint: str = "") -> InputError:
        """A value of another kind; the message names its kind (see `kind_of`), not the value."""
        return cls(f"Expected {expected}, got {kind_of(got)}", at=at, hint=hint)

    @classmethod
    def one_of(cls, choices: Iterable[str], got: object, at: str, *, hint: str = "") -> InputError:
        """A value outside a closed list; the message lists every choice."""
        words = tuple(choices)
        return cls(f"Expected one of {', '.join(words)}, got {_quoted(got)}", at=at, hint=hint, choices=words)


class PolicyError(InputError):
    """A policy or grants file is not what was expected; no part of it was applied."""


class SchemaError(InputError):
    """A table does not have the declared columns."""


class AccessError(ScopedRetrievalError, PermissionError):
    """The credential may not ask this. Absent, foreign and unknown are reported alike."""

    exit_code = 3


def called(
    name: str, what: str, function: Callable[..., Any], *given: Any, through: tuple[type[Exception], ...] = ()
) -> Any:
    """Calls the function `what` of a registered object; errors of the types `through` pass unchanged.

    Raises:
        SchemaError: the function raised; the message names function, type and line, and quotes nothing. Errors of this
        package pass unchanged, unless the object is a plugin's (its name has a dot).
    """
    plugin = "." in name
    passed = through if plugin else (*through, ScopedRetrievalError)
    try:
        return function(*given)
    except passed:
        raise
    except Exception as error:  # third-party code may raise anything
        trace = error.__traceback__.tb_next if error.__traceback__ else None
        code = trace.tb_frame.f_code if trace else None
        while (
            trace and trace.tb_next and trace.tb_next.tb_frame.f_code.co_filename == trace.tb_frame.f_code.co_filename
        ):
            trace = trace.tb_next
        where = f" ({PurePath(code.co_filename).name}, line {trace.tb_lineno})" if trace and code else ""
        hint = DECLARE if isinstance(error, KeyError) and what in _READING else ""
        expected = "a plugin that runs" if plugin else "no error"
        message = f"Expected {expected}, got {type(error).__name__} - at {name}.{what}{where}"
        raise SchemaError(message, hint=hint) from error


class StoreError(ScopedRetrievalError, OSError):
    """A corpus or run is missing, damaged or written by another schema version."""

    exit_code = 7


class BusyError(StoreError):
    """Another writer holds the lock of this corpus or run."""


class MovedOnError(StoreError):
    """The corpus is not at the generation that an import relied on; nothing was written."""


class ErasedError(StoreError):
    """Evidence was erased from a corpus after it was opened; data read before must not be returned."""


class ModelError(ScopedRetrievalError, RuntimeError):
    """A package, an encoder or a tokenizer is missing, or its checksum is not the pinned one."""

    exit_code = 7


class EngineError(ScopedRetrievalError, RuntimeError):
    """The engine of a run is missing, does not answer, or lost its workers; the run can be resumed."""

    exit_code = 7


class VerificationError(ScopedRetrievalError):
    """A run does not match its record."""

    exit_code = 5


def kind_of(value: object) -> str:
    """The everyday name of a value's kind: `nothing`, `a number`, `text`; else the name of its class."""
    return next((name for name, kind in _KINDS if isinstance(value, kind)), type(value).__name__)


def last_frame(error: BaseException) -> str:
    """Module and line of the origin of an unexpected error; its message may quote evidence and is not shown."""
    frame = error.__traceback__
    while frame and frame.tb_next:
        frame = frame.tb_next
    return f"{PurePath(frame.tb_frame.f_code.co_filename).name}:{frame.tb_lineno}" if frame else "an unknown place"


def _quoted(got: object) -> str:
    text = "nothing" if got is None else repr(got) if isinstance(got, str) else str(got)
    text = text.lower() if isinstance(got, bool) else text
    if len(text) <= 80:
        return text
    return f"text of {len(got)} characters" if isinstance(got, str) else f"{text[:77]}..."
