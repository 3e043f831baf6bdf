"""The Session Handoff Object: `SHO.json` in the root of a work tree, from which a request takes its mode (S1.33).

Gives: `handoff`, the `mode` and `variables` of the file, and `trees_around`, the work trees around a folder. It is read
on arrival, so its values are part of the stored request; no node opens it. Its other content is ignored.

Note: a request is untrusted input, possibly written by a model, and must not choose a file that this process opens. So
only work trees named when the retriever was opened are read; for any other, not even its existence is checked.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from ...nodes.errors import InputError
from ...nodes.vocabulary import MODES
from ..parsing.quoting import canonical

FILE = "SHO.json"
_LONGEST = 1 << 20
"""Most bytes read of the file: the work tree may be another user's."""


def trees_around(folder: Path) -> frozenset[Path]:
    """A folder and its parents up to the root of its Git work tree; outside one, the folder alone."""
    here = folder.resolve()
    around = (here, *here.parents)
    root = next((number for number, each in enumerate(around) if (each / ".git").exists()), 0)
    return frozenset(around[: root + 1])


def handoff(workspace_root: str, trees: Collection[Path]) -> dict[str, Any]:
    """`mode` and, as JSON text, `variables` of the file, if present; empty if there is no file.

    Also empty if the work tree is not one of `trees` (resolved folders): then no file is opened.

    Raises:
        InputError: the file is not a JSON object, has an invalid mode, or links out of the tree; names file and field.
    """
    root = next((tree for tree in trees if str(tree) == str(Path(workspace_root))), None)
    if root is None:
        return {}
    file = root / FILE
    try:
        if not file.is_file():
            return {}
        inside = file.resolve().parent == root
        with file.open("rb") as stream:
            value = json.loads(stream.read(_LONGEST)) if inside else None
    except OSError as error:
        raise InputError(f"{error.strerror}: {file}") from error
    except (ValueError, RecursionError) as error:
        raise InputError("Expected a JSON object, got text that does not parse", at=file) from error
    if not inside:
        raise InputError("Expected a file of the work tree, got a link out of it", at=file)
    if not isinstance(value, dict):
        raise InputError.of_kind("a JSON object", value, str(file))
    found = {}
    if value.get("mode") is not None:
        found["mode"] = canonical(MODES, value["mode"], f"{file}: mode")
    if value.get("variables") is not None:
        if not isinstance(value["variables"], dict):
            raise InputError.of_kind("an object", value["variables"], f"{file}: variables")
        found["variables"] = json.dumps(value["variables"], sort_keys=True, ensure_ascii=False)
    return found
