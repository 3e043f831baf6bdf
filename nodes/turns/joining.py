"""Element-wise concatenation of texts of any string type."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..columns.keys import flat, literal

_TEXT = pa.large_string()


def joined(*parts: Any, between: str = "", skip_nulls: bool = False) -> pa.Array:
    """The parts concatenated element by element; a part is a literal or a column. Null where a part is null, unless
    nulls are skipped; then null where every part is.
    """
    large = [literal(part) if isinstance(part, str) else flat(part).cast(_TEXT) for part in parts]
    if not skip_nulls:
        return pc.binary_join_element_wise(*large, literal(between))
    # Arrow's own skipping of nulls drops rows in which every part is null.
    made = large[0]
    for part in large[1:]:
        made = pc.coalesce(pc.binary_join_element_wise(made, part, literal(between)), made, part)
    return made
