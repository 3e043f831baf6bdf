"""The budget of a request's block, and the cost of its items besides their text.

Reads contracts and the pieces of items in their worst case. Gives `Budgets` per request and `Costs` per item.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.keys import constants, flat, literal, positions
from ..rendering import BRIEF_TOKENS, ItemLines, shows_text
from ..vocabulary import DETAILS
from .token_counting import Counters

BUDGET_LIMITS = ("max_items", "max_tokens", "max_chars", "max_chunk_tokens")
BOUNDS = (*BUDGET_LIMITS, "conflict_set", "detail")
"""Names of the limits that may bind an item, by code; -1 = none. An item bound by `conflict_set` fits, but its rivals
do not; one bound by `detail` is an outline."""
ITEMS, TOKENS, CHARS, CHUNK, DISPUTE, DETAIL = range(6)
NO_ROOM = 1 << 40
"""More tokens than any budget has."""
FULL, OUTLINE, AUTO = (DETAILS.values.index(name) for name in ("full", "outline", "auto"))
_CODE_KINDS = ("code",)
_LOG_KINDS = ("test-log", "tool-output", "session-event")

Int = NDArray[np.int64]
Bool = NDArray[np.bool_]


@dataclass(frozen=True)
class Budgets:
    """The limits of each request, int64[requests], and its counter as `names[which]`."""

    max_items: Int
    max_tokens: Int
    max_chars: Int
    max_chunk_tokens: Int
    fenced: Bool
    """Whether the items of each request have texts."""
    detail: Int
    """Position of each request's detail in DETAILS."""
    names: Sequence[str]
    which: Int

    @classmethod
    def of(cls, contracts: pa.Table, shapes: NDArray[np.object_]) -> Budgets:
        """The limits of contracts; excerpts of a model-brief are short in any case."""
        encoded = flat(contracts["tokenizer"]).dictionary_encode()
        limits = {name: contracts[name].to_numpy().astype(np.int64) for name in BUDGET_LIMITS}
        limits["max_chunk_tokens"] = np.where(
            shapes == "model-brief", np.minimum(limits["max_chunk_tokens"], BRIEF_TOKENS), limits["max_chunk_tokens"]
        )
        detail = positions(contracts["detail"], constants(DETAILS.values))
        return cls(
            **limits,
            fenced=np.asarray(shows_text(shapes), dtype=bool),
            detail=detail,
            names=encoded.dictionary.to_pylist(),  # tokenizers: mostly one
            which=np.asarray(encoded.indices).astype(np.int64),
        )


@dataclass(frozen=True)
class Costs:
    """The cost of items besides their text: `tokens` and `chars` per item, `group` (kind) and its heading's cost per
    item, 0 where no heading is printed; `fenced` is false for items without text, `log` true for logs, `code` for
    code."""

    tokens: Int
    chars: Int
    group: Int
    heading_tokens: Int
    heading_chars: Int
    fenced: Bool
    log: Bool
    code: Bool

    @classmethod
    def of(
        cls,
        item: ItemLines,
        heading: pa.Array | None,
        kinds: pa.Array,
        counters: Counters,
        names: Sequence[str],
        which: Int,
    ) -> Costs:
        """The cost of the worst-case pieces of each item; item `i` is counted by the counter `names[which[i]]`.

        `heading` is None where nothing has a heading.
        """
        around = pc.binary_join_element_wise(item.head, item.foot, literal(""))
        # Most requests print no headings, and texts of no bytes cost nothing.
        headed = heading is not None
        return cls(
            tokens=counters.count(around, names, which),
            chars=_numbers(pc.utf8_length(around)),
            group=_numbers(kinds.dictionary_encode().indices),
            heading_tokens=counters.count(heading, names, which) if headed else np.zeros(len(which), dtype=np.int64),
            heading_chars=_numbers(pc.utf8_length(heading)) if headed else np.zeros(len(which), dtype=np.int64),
            fenced=item.fenced,
            log=np.asarray(pc.is_in(kinds, value_set=constants(_LOG_KINDS, kinds.type))),
            code=np.asarray(pc.is_in(kinds, value_set=constants(_CODE_KINDS, kinds.type))),
        )

    def take(self, index: Int) -> Costs:
        """The costs of the items at `index`."""
        return Costs(**{name: values[index] for name, values in vars(self).items()})

    def most(self, first: Int) -> Costs:
        """The greatest cost of each item over the ways it may be printed; those of item `i` begin at `first[i]`."""
        if len(first) == len(self.tokens):
            return self
        found = vars(self.take(first))
        for name in ("tokens", "chars"):
            found |= {name: np.maximum.reduceat(getattr(self, name), first) if len(first) else found[name]}
        return Costs(**found)


def _numbers(values: pa.Array) -> Int:
    return np.asarray(values).astype(np.int64)
