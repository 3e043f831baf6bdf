"""The Session Handoff Object: `SHO.json` in the root of a work tree, from which a request takes its mode (S1.33).

Gives: `handoff`, the `mode` and `variables` of the file. It is read at the door, so what it said is part of the request
that a run stores; no node opens it. What else it holds is no business of retrieval.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..nodes.errors import InputError
from ..nodes.vocabulary import MODES

__all__ = ["FILE", "handoff"]

FILE = "SHO.json"
_LONGEST = 1 << 20


def handoff(workspace_root: str) -> dict[str, Any]:
    """`mode` and, as JSON text, `variables` of the file, as far as it has them; nothing where there is no file.

    Raises:
        InputError: the file is no JSON object, or its mode is none; names file and field.
    """
    file = Path(workspace_root) / FILE
    try:
        if not file.is_file():
            return {}
        with file.open("rb") as stream:
            value = json.loads(stream.read(_LONGEST))
    except OSError as error:
        raise InputError(f"Expected a readable file, got {error.strerror} - at {file}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"Expected a JSON object, got text that does not parse - at {file}") from error
    if not isinstance(value, dict):
        raise InputError.of_kind("a JSON object", value, str(file))
    found = {}
    if value.get("mode") is not None:
        found["mode"] = MODES.canonical(value["mode"], f"{file}: mode")
    if value.get("variables") is not None:
        if not isinstance(value["variables"], dict):
            raise InputError.of_kind("an object", value["variables"], f"{file}: variables")
        found["variables"] = json.dumps(value["variables"], sort_keys=True, ensure_ascii=False)
    return found
