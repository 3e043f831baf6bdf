"""Flags: whether a file is generated and whether it is a public interface, from the record, else from its path.

Gives `flags_of`, for matches of searches and items of snapshots alike.
"""

from __future__ import annotations

import re

from ..sources.file_kinds import made_elsewhere
from ..sources.jsonl import Record

__all__ = ["flags_of"]

_PUBLIC = re.compile(
    r"(?:^|/)(?:index\.[jt]sx?|__init__\.pyi?|mod\.rs|lib\.rs|types\.[jt]s|api\.[jt]s|public\.[jt]s)$|\.d\.ts$|\.pyi$|\.proto$"
)


def flags_of(path: str | None, record: Record | None = None) -> dict[str, bool]:
    """The columns `generated` and `public_api` of a file."""
    if path is None:
        return {"generated": False, "public_api": False}
    generated = record.value("generated") if record else None
    public = record.value("publicApi", "public_api") if record else None
    return {
        "generated": generated if isinstance(generated, bool) else made_elsewhere(path),
        "public_api": public if isinstance(public, bool) else bool(_PUBLIC.search(path)),
    }
