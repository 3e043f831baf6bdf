"""Which rows are the code that a program is made of, and which file each of them is of.

Reads stored columns. Gives flags and codes.

Note: a row is judged by its own columns, never by those of another row of its file, which a request may
not see. What a file is called does not matter here: the importer has said what it is (`document_type`).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.keys import codes_of, truth

SOURCE_COLUMNS = ("evidence_kind", "document_type", "path", "generated")
"""What `is_source` reads."""
FILE_COLUMNS = ("owner_project", "owner_user", "source_id", "path")
"""What makes two rows rows of one file."""


def is_source(rows: Mapping[str, pa.Array]) -> NDArray[np.bool_]:
    """Rows of source code: of no document type (tests, configuration and data have one), and not generated."""
    code = np.asarray(pc.fill_null(pc.equal(rows["evidence_kind"], "code"), False))
    plain = np.asarray(pc.and_(rows["document_type"].is_null(), rows["path"].is_valid()))
    return code & plain & ~truth(rows["generated"])


def file_codes(rows: Mapping[str, pa.Array]) -> NDArray[np.int64]:
    """A number per row, equal where rows are of one file."""
    return codes_of([rows[name] for name in FILE_COLUMNS])
