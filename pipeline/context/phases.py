"""The phases of a task, from `data/context/phases.yaml` or a file of the user."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from ...nodes.errors import InputError
from ...nodes.turns.words import CAPABILITIES, PHASES
from ..parsing.documents import Document, FirstVersion, document, words
from ..parsing.yaml_files import parse

__all__ = ["load_phases"]

Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]


class _Phase(Document):
    rules: Share
    latest_observation: Share
    recent_tail: Share
    retrieval: Share
    memory: Share
    tools: Share
    capabilities: Annotated[tuple[str, ...], words(CAPABILITIES)]
    full_characters: Count
    memory_items: Count
    memory_days: Count
    memory_confidence: Share


class _File(Document):
    schema_version: FirstVersion = 1
    diagnosing: _Phase
    planning: _Phase
    editing: _Phase
    verifying: _Phase
    summarizing: _Phase
    blocked: _Phase


def load_phases(file: str | Path | None = None) -> list[dict[str, Any]]:
    """The phases of a file, or the bundled ones.

    Raises:
        PolicyError: the file is malformed or does not define all six phases.
        InputError: it cannot be read.
    """
    if file is None:
        return _bundled()
    if not isinstance(file, (str, Path)):
        raise InputError.of_kind("the path of a file", file, "phases")
    try:
        data = Path(file).read_bytes()
    except OSError as error:
        raise InputError(f"{error.strerror}: {file}") from error
    except ValueError as error:  # a null character or a lone surrogate
        raise InputError.expected("the path of a file", str(file), "phases") from error
    return _parsed(data, str(file))


@lru_cache(maxsize=1)
def _bundled() -> list[dict[str, Any]]:
    name = f"{__name__.rsplit('.', 3)[0]}.data"
    return _parsed((resources.files(name) / "context" / "phases.yaml").read_bytes(), "phases.yaml")


def _parsed(data: bytes, name: str) -> list[dict[str, Any]]:
    found = document(_File, parse(data, name), name)
    return [{"phase": phase, **getattr(found, phase).model_dump()} for phase in PHASES.values]
