"""Cached values: of the keys used last; for a table, as long as it is in use.

Reads nothing. Gives `Recent` and `OfTable`, with the lists of a scope (`recall_scope`) the only mutable objects below `nodes`. Cached values depend on the key or the
table alone, so the cache affects speed, never results.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, Generic, TypeVar
from weakref import ref

import pyarrow as pa

Value = TypeVar("Value")


class Recent(Generic[Value]):
    """The values of the `most` keys used last, each made once. Thread-safe."""

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, Lock()
        self._held: OrderedDict[Hashable, Value] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The cached value of a key, or what `make` returns. No thread waits for another's `make`."""
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
                return self._held[key]
        value = make()
        with self._lock:
            self._held[key] = value
            while len(self._held) > self._most:
                self._held.popitem(last=False)
        return value


class OfTable(Generic[Value]):
    """A function of one table, called once for each table that is in use: grants and policies serve many requests.

    Tables are immutable and identified by object identity. The function's result must not reference the table, which
    would then never be released. Thread-safe.
    """

    def __init__(self, function: Callable[..., Value]) -> None:
        self._function = function
        self._held: dict[int, tuple[ref[pa.Table], Value]] = {}

    def __call__(self, table: pa.Table, *beside: Any) -> Value:
        """The function's value for the table, cached; what goes `beside` a table is the same in every call."""
        place = id(table)
        known = self._held.get(place)
        if known is not None and known[0]() is table:
            return known[1]
        value = self._function(table, *beside)
        self._held[place] = ref(table, lambda _: self._held.pop(place, None)), value
        return value


rows_by = OfTable[dict[Any, dict[str, Any]]](lambda table, key: {row[key]: row for row in table.to_pylist()})
"""The rows of a table as dictionaries, by its key column: for policies, which are few."""
