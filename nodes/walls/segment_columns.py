"""The columns of one segment that gates compare, as codes: each is read on first use, and once for all scope groups.

Null counts as least privileged: zone restricted, lifecycle candidate, visibility denied, authority 0; a null safety is
requires-review, which passes. A word outside the vocabulary counts as null.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.keys import flat, truth
from ..columns.list_columns import flattened
from ..scope.selectors import SourcePairs, source_pairs
from ..vocabulary import LIFECYCLES, ZONES

Mask = NDArray[np.bool_]
Codes = NDArray[np.int8]


class SegmentColumns:
    """The gate columns of one segment, read on first use."""

    def __init__(self, evidence: pa.Table) -> None:
        self.rows = evidence.num_rows
        self._evidence = evidence

    def column(self, name: str) -> pa.Array:
        """A column as one array."""
        return flat(self._evidence[name])

    @cached_property
    def pairs(self) -> SourcePairs:
        return source_pairs(self.column("origin_class"), self.column("source_id"))

    @cached_property
    def paths(self) -> tuple[pa.Array, NDArray[np.int32]]:
        """The distinct paths, and the row's position among them; one past the end for a row without a path."""
        encoded = self.column("path").dictionary_encode()
        return encoded.dictionary, encoded.indices.fill_null(len(encoded.dictionary)).to_numpy()

    @cached_property
    def origin_classes(self) -> list[str]:
        return self.pairs.origin_class.to_pylist()

    @cached_property
    def zone(self) -> Codes:
        return self._ranks("zone", ZONES.values, "restricted")

    @cached_property
    def lifecycle(self) -> Codes:
        return self._ranks("lifecycle", LIFECYCLES.values, "candidate")

    @cached_property
    def authority(self) -> NDArray[np.int32]:
        return self.column("authority").fill_null(0).to_numpy()

    @cached_property
    def hidden(self) -> Mask:
        return ~truth(pc.equal(self.column("declared_visibility"), "model-visible"))

    @cached_property
    def blocked(self) -> Mask:
        return truth(pc.equal(self.column("declared_safety"), "blocked"))

    @cached_property
    def named(self) -> dict[str, tuple[dict[str, int], Codes]]:
        """Distinct names and each row's position, -1 for null: for the columns that a request narrows by one name."""
        coded = {}
        for name in ("namespace", "workspace_root", "branch", "test_suite"):
            column = self.column(name)
            if column.null_count < len(column):
                encoded = column.dictionary_encode()
                position = {value: index for index, value in enumerate(encoded.dictionary.to_pylist())}
                coded[name] = (position, encoded.indices.fill_null(-1).to_numpy())
        return coded

    @cached_property
    def files(self) -> pa.Array:
        """Owner, source and path of each row as one string, null where it has no path.

        It includes the owner: a file of one owner never shadows another's of the same name.
        """
        owner = self.column("owner_user").fill_null("")
        return pc.binary_join_element_wise(
            self.column("owner_project"), owner, self.column("source_id"), self.column("path"), "\0"
        )

    @cached_property
    def readers(self) -> tuple[NDArray[np.int64], pa.Array, Mask]:
        """Flattened lists of principals: row and name of each entry, and which rows have a list."""
        column = self.column("principals")
        return *flattened(column), ~np.asarray(column.is_null())

    @cached_property
    def excluding(self) -> tuple[NDArray[np.int64], pa.Array]:
        """Flattened lists of excluded roles: row and role of each entry."""
        return flattened(self.column("excluded_roles"))

    def _ranks(self, name: str, words: Sequence[str], null: str) -> Codes:
        ranks = pc.index_in(self.column(name), pa.array(words)).fill_null(words.index(null))
        return ranks.to_numpy().astype(np.int8)
