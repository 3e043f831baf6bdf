"""The phases of a task as a table, from `data/context/phases.yaml` or a file of the user."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from pathlib import Path

import pyarrow as pa

from ...nodes.context_tables import PHASE_POLICIES
from ...nodes.errors import InputError
from ...nodes.turns.words import CAPABILITIES, PHASES
from ..parsing.yaml_files import YamlItem, parse

__all__ = ["load_phases"]

SCHEMA_VERSION = 1
_SHARES = ("rules", "latest_observation", "recent_tail", "retrieval", "memory", "tools")
_COUNTS = ("full_characters", "memory_items", "memory_days")
_FIELDS = (*_SHARES, "capabilities", *_COUNTS, "memory_confidence")


def load_phases(file: str | Path | None = None) -> pa.Table:
    """PHASE_POLICIES of a file, or the bundled ones.

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
def _bundled() -> pa.Table:
    name = f"{__name__.rsplit('.', 3)[0]}.data"
    return _parsed((resources.files(name) / "context" / "phases.yaml").read_bytes(), "phases.yaml")


def _parsed(data: bytes, name: str) -> pa.Table:
    phases = parse(data, name).of_version(SCHEMA_VERSION).fields(PHASES.values, PHASES.values)
    return PHASE_POLICIES.from_rows([{"phase": phase, **_phase(item)} for phase, item in phases.items()])


def _phase(item: YamlItem) -> dict[str, object]:
    fields = item.fields(_FIELDS, _FIELDS)
    return {
        **{name: fields[name].number(0.0, 1.0) for name in (*_SHARES, "memory_confidence")},
        **{name: fields[name].count(0) for name in _COUNTS},
        "capabilities": fields["capabilities"].words(CAPABILITIES),
    }
