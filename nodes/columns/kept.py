"""Cached values: for arrays, while there is room; for a table, as long as it is in use.

Reads nothing. Gives `Kept`, `Recent` and `OfTable`, the only mutable objects below `nodes`. Cached values depend on the arrays or
the table alone, so the cache affects speed, never results.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, Generic, TypeVar
from weakref import ref

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Value = TypeVar("Value")
Arrays = tuple[NDArray[np.int64], ...]


class Kept(Generic[Value]):
    """The most recently used values, up to a total size of `room` including caches made by `apart`. Thread-safe."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._lock = Lock()
        self._own = object()
        self._held: list[tuple[object, Arrays, Value, int]] = []
        """Owner, key, value and size, for all caches that share the room; least recently used first."""

    def apart(self) -> Kept[Value]:
        """Another cache that shares the room and the eviction order, but not the values."""
        other = Kept[Value](self._room)
        other._lock, other._held = self._lock, self._held
        return other

    def get(self, arrays: Arrays) -> Value | None:
        """The value of some arrays, compared number by number; None if it is not cached."""
        with self._lock:
            for at, (whose, known, value, _) in enumerate(self._held):
                if whose is self._own and _same(known, arrays):
                    self._held.append(self._held.pop(at))
                    return value
        return None

    def put(self, arrays: Arrays, value: Value, size: int) -> None:
        """Cache a value, evicting the least recently used. A value larger than the room is not cached."""
        if size > self._room:
            return
        with self._lock:
            self._held[:] = [one for one in self._held if not (one[0] is self._own and _same(one[1], arrays))]
            self._held.append((self._own, arrays, value, size))
            while sum(held for *_, held in self._held) > self._room:
                self._held.pop(0)

    def clear(self) -> None:
        """Evict all values of this cache."""
        with self._lock:
            self._held[:] = [one for one in self._held if one[0] is not self._own]

    def __len__(self) -> int:
        with self._lock:
            return sum(one[0] is self._own for one in self._held)

    def __reduce__(self) -> tuple[Callable[[int], Kept[Value]], tuple[int]]:
        """A copy in another process starts empty."""
        return Kept, (self._room,)


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

    def __len__(self) -> int:
        return len(self._held)


rows_by = OfTable[dict[Any, dict[str, Any]]](lambda table, key: {row[key]: row for row in table.to_pylist()})
"""The rows of a table as dictionaries, by its key column: for policies, which are few."""


def _same(some: Arrays, others: Arrays) -> bool:
    return all(np.array_equal(one, other) for one, other in zip(some, others, strict=True))
