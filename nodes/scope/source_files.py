"""Which rows are source code of a program, and the file that each belongs to.

Reads stored columns. Gives flags and codes.

Note: a row is judged by its own columns, never by those of another row of its file, which the request may not be
allowed to see. The name of a file does not matter here: the importer has classified it (`document_type`).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.keys import codes_of, truth

SOURCE_COLUMNS = ("evidence_kind", "document_type", "path", "generated")
"""The columns that `is_source` reads."""
FILE_COLUMNS = ("owner_project", "owner_user", "source_id", "path")
"""The columns that identify the file of a row."""


def is_source(rows: Mapping[str, pa.Array]) -> NDArray[np.bool_]:
    """Rows of source code: of no document type but `example` (tests, configuration, data have one), and not generated."""
    code = np.asarray(pc.fill_null(pc.equal(rows["evidence_kind"], "code"), False))
    program = pc.equal(pc.fill_null(rows["document_type"], "example"), "example")
    plain = np.asarray(pc.and_(program, rows["path"].is_valid()))
    return code & plain & ~truth(rows["generated"])


def file_codes(rows: Mapping[str, pa.Array]) -> NDArray[np.int64]:
    """A number per row, equal for rows of the same file."""
    return codes_of([rows[name] for name in FILE_COLUMNS])
