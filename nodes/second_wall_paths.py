"""What the second wall says of a mode's paths, levels and zones, candidate by candidate.

Reads the candidates' stored rows and their contracts. Gives masks of the candidates that each gate removes. Globs are
walked character by character here, where the first wall hands them to a pattern engine.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .frames import expand_ranges
from .keys import flat
from .list_columns import flattened
from .vocabulary import ZONES

Mask = NDArray[np.bool_]
Ints = NDArray[np.int64]
Token = tuple[str, str]


def preset_stops(rows: pa.Table, order: Ints, contracts: pa.Table) -> list[tuple[str, Mask]]:
    """Which candidates the gates `path_scope`, `level` and `zone` remove because of the contract's mode.

    Args:
        rows: the stored row of each candidate.
        order: position of each candidate's contract.
        contracts: CONTRACTS.
    """
    everywhere = np.asarray(contracts["search_paths"].is_null())[order]
    outside = ~everywhere & ~_any(rows["path"], order, contracts["search_paths"], path_matches)
    zone = pc.if_else(pc.is_in(rows["zone"], pa.array(ZONES.values)), rows["zone"], "restricted")
    return [
        ("path_scope", outside | _any(rows["path"], order, contracts["excluded_paths"], path_matches)),
        ("level", _any(pc.utf8_lower(rows["level"]), order, contracts["excluded_levels"], str.__eq__)),
        ("zone", _any(zone, order, contracts["excluded_zones"], str.__eq__)),
    ]


def path_matches(glob: str, path: str) -> bool:
    """Whether a glob matches a path as a whole; every state is a place in the glob that may be reached."""
    tokens = _tokens(f"{glob}**" if glob.endswith("/") else glob)
    states = _entered(tokens, 0)
    for character in path:
        states = {after for state in states if state < len(tokens) for after in _step(tokens, state, character)}
    return len(tokens) in states


def _tokens(glob: str) -> list[Token]:
    found: list[Token] = []
    at = 0
    while at < len(glob):
        stars = len(glob[at:]) - len(glob[at:].lstrip("*"))
        if glob[at] == "[" and glob[at + 1 : at + 2] in ("*", "?", "[") and glob[at + 2 : at + 3] == "]":
            found.append(("itself", glob[at + 1]))
            at += 3
        elif stars == 2 and glob[at + 2 : at + 3] == "/" and (at == 0 or glob[at - 1] == "/"):
            found.append(("folders", ""))
            at += 3
        elif stars:
            found.append(("name" if stars == 1 else "anything", ""))
            at += stars
        else:
            found.append(("one", "") if glob[at] == "?" else ("itself", glob[at]))
            at += 1
    return found


def _entered(tokens: list[Token], state: int) -> set[int]:
    """The state and those reached from it without a character: what may stand for nothing is passed over."""
    reached = {state}
    while state < len(tokens) and tokens[state][0] in ("name", "anything", "folders"):
        state += 1
        reached.add(state)
    return reached


def _step(tokens: list[Token], state: int, character: str) -> set[int]:
    kind, wanted = tokens[state]
    if kind == "folders":
        return {state} | (_entered(tokens, state + 1) if character == "/" else set())
    if kind == "anything" or (kind == "name" and character != "/"):
        return _entered(tokens, state)
    passes = character == wanted if kind == "itself" else kind == "one" and character != "/"
    return _entered(tokens, state + 1) if passes else set()


def _any(
    values: pa.ChunkedArray | pa.Array, order: Ints, lists: pa.ChunkedArray, holds: Callable[[str, str], bool]
) -> Mask:
    """Whether `holds(entry, value)` for an entry of list `order[i]` and value `i`; each distinct question asked once."""
    listing, entry = flattened(lists)
    starts = np.searchsorted(listing, np.arange(len(lists) + 1)).astype(np.int64)
    counts = np.diff(starts)[order]
    row = np.repeat(np.arange(len(order)), counts)
    entries = flat(entry).take(pa.array(expand_ranges(starts[:-1][order], counts))).dictionary_encode()
    asked = flat(values).take(pa.array(row)).dictionary_encode()
    pairs = np.stack([entries.indices.to_numpy(), asked.indices.fill_null(-1).to_numpy()], axis=1)
    questions, which = np.unique(pairs, axis=0, return_inverse=True)
    words = [entries.dictionary.to_pylist(), asked.dictionary.to_pylist()]
    answers = [value >= 0 and holds(words[0][one], words[1][value]) for one, value in questions.tolist()]
    found = np.zeros(len(order), dtype=bool)
    found[row[np.array(answers, dtype=bool)[which.ravel()]]] = True
    return found
