"""Lines of searches that an input already quotes: for each match, the event of its turn that shows its line.

Gives `quoting_events`, `RESULT_CHARACTERS`, `FILE_SHARE` and `SHOWN_LINES`, the forms that quote lines of a text.

Note: a match has a row of its own, and so does the event that found it. Where the event is shown with that line, the
match adds nothing: it takes no place and no line. A line counts if it is quoted whole, with its path; a file shown in
full has all its lines, and a whole file also covers a match that names only the file. If several events quote a line,
the last one counts: if the budget drops it, the match gets a line of its own, even if an earlier event shows it.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..columns.keys import among, flat, integers, rank_within, truth
from ..columns.ragged import spread, starts_of
from .joining import joined
from .scopes import in_pairs

Int = NDArray[np.int64]
Bool = NDArray[np.bool_]

RESULT_CHARACTERS = 240
"""Longest text of a tool or the model that the tail shows in full, if it is one line."""
FILE_SHARE = 4
"""The limit of a file is this many times that of an observation."""
SHOWN_LINES = ("full", "excerpt")
"""Forms that quote lines of a text."""
_TEXT = pa.large_string()
_FOLDERS = 24
"""Most folders above the working directory in the paths of a tool."""


def quoting_events(sources: pa.Table, turn: Int, passed: Bool, most: Int, matches: pa.Table) -> Int:
    """For every source the row of the event whose shown text has its line; -1 where there is none, and for all sources
    that are not matches.

    `most` is the character limit up to which the phase of each source shows a result in full.
    """
    found = np.full(sources.num_rows, -1, dtype=np.int64)
    match = np.flatnonzero(among(sources["source_kind"], ("search_match",)) & passed)
    event = among(sources["source_kind"], ("latest_observation", "recent_tail", "file_content")) & passed
    event = np.flatnonzero(event & among(sources["standing"], ("untrusted",)) & np.isin(turn, turn[match]))
    path = flat(sources["path"])
    file = among(sources["observation_class"], ("file_content",))[event]
    found_in = in_pairs((turn[event], path.take(pa.array(event))), (turn[match], path.take(pa.array(match))))
    event, file = event[~file | found_in], file[~file | found_in]
    if not len(match) or not len(event):
        return found
    row, which = np.unique(integers(sources["row"])[match], return_inverse=True)
    wanted = _lines_of(matches.take(pa.array(row))).dictionary_encode()
    results, files = (sources.take(pa.array(event[mask])) for mask in (~file, file))
    event, most = np.concatenate([event[~file], event[file]]), np.concatenate([most[event[~file]], most[event[file]]])
    quoted = pa.concat_arrays(
        [_quoted(results, most[: len(results)]), _numbered(files, most[len(results) :])]
    ).dictionary_encode()
    text, line = _lines_in(quoted.dictionary, wanted.dictionary)
    if not len(line):
        return found
    starts = starts_of(np.bincount(text, minlength=len(quoted.dictionary)))
    of_event = np.flatnonzero(np.asarray(quoted.indices.is_valid()))
    at = integers(quoted.indices.drop_null())
    owner, place = spread(starts[at], np.diff(starts)[at])
    width = len(wanted.dictionary)
    quoter = event[of_event[owner]]
    key = turn[quoter] * width + line[place]
    order = np.lexsort((quoter, key))
    asked = turn[match] * width + integers(wanted.indices)[which]
    last = key[order].searchsorted(asked, side="right") - 1
    there = (last >= 0) & (key[order][last] == asked)
    found[match[there]] = quoter[order[last[there]]]
    return found


def _quoted(events: pa.Table, most: Int) -> pa.Array:
    """The text that an input quotes of tool results, as in `context_compression`; null where it shows a summary."""
    text, excerpt = flat(events["text"]).cast(_TEXT), flat(events["excerpt"]).cast(_TEXT)
    size = integers(pc.fill_null(pc.utf8_length(text), 0))
    latest = among(events["source_kind"], ("latest_observation",))
    several = integers(pc.fill_null(pc.count_substring(text, "\n"), 0)) > 1
    full = np.where(latest, size <= most, (size <= RESULT_CHARACTERS) & ~several)
    return pc.if_else(pa.array(full), text, pc.if_else(pa.array(latest), excerpt, None))


def _numbered(files: pa.Table, most: Int) -> pa.Array:
    """The lines of the files that an input shows in full, as searches print them, preceded by the path if the file is
    whole; null for other files. Each event is processed once.
    """
    size = integers(pc.fill_null(pc.utf8_length(files["text"]), 0))
    shown = np.flatnonzero((size > 0) & (size <= most * FILE_SHARE) & ~truth(files["cut"]))
    place = np.full(files.num_rows, -1, dtype=np.int64)
    _, first, place[shown] = np.unique(integers(files["row"])[shown], return_index=True, return_inverse=True)
    some = files.take(pa.array(shown[first]))
    path = flat(some["path"]).cast(_TEXT)
    start = pc.struct_field(pc.extract_regex(some["heading"], pattern=r":(?P<first>\d+)-\d+$"), "first")
    lists = pc.split_pattern(flat(some["text"]).cast(_TEXT), "\n")
    owner = integers(pc.list_parent_indices(lists))
    number = rank_within(owner) + integers(pc.fill_null(start.cast(pa.int64()), 1))[owner]
    lines = joined(
        path.take(pa.array(owner)), pc.cast(pa.array(number), pa.string()), pc.list_flatten(lists), between=":"
    )
    offsets = pa.array(starts_of(np.bincount(owner, minlength=len(path))))
    texts = pc.binary_join(pa.LargeListArray.from_arrays(offsets, lines), pa.scalar("\n", _TEXT))
    texts = joined(pc.if_else(start.is_null(), path, None), texts, between="\n", skip_nulls=True)
    return texts.take(pa.array(place, mask=place < 0))


def _lines_of(matches: pa.Table) -> pa.Array:
    """The line of each match as searches print it: `path:line:text`, or those of the three that it has."""
    line, text = pc.cast(flat(matches["line"]), pa.string()).cast(_TEXT), flat(matches["text"]).cast(_TEXT)
    text = pc.if_else(line.is_valid(), pc.fill_null(text, ""), text)
    parts = joined(flat(matches["path"]).cast(_TEXT), line, pc.utf8_trim_whitespace(text), between=":", skip_nulls=True)
    return pc.fill_null(parts, "")


def _lines_in(texts: pa.Array, wanted: pa.Array) -> tuple[Int, Int]:
    """The (text, wanted line) pairs where the text contains the line, sorted. An absolute path counts as the longest
    wanted path that it ends with.
    """
    lists = pc.split_pattern(texts, "\n")
    owner = integers(pc.list_parent_indices(lists))
    lines = pc.replace_substring_regex(pc.list_flatten(lists), pattern=r"\x1b\[[\d;]*[mK]", replacement="")  # colors
    lines = pc.utf8_trim_whitespace(lines)
    lines = pc.replace_substring_regex(lines, pattern=r"^(?:\./)+", replacement="")
    lines = pc.replace_substring_regex(lines, pattern=r"^([^:]+):(\d+)[:-]\s*", replacement=r"\1:\2:")
    # A match without text matches its place before any text; some searches print the column after the line.
    places = pc.replace_substring_regex(lines, pattern=r"^([^:]+:\d+:).*", replacement=r"\1")
    columns = pc.replace_substring_regex(lines, pattern=r"^([^:]+:\d+:)\d+:\s*", replacement=r"\1")
    lines, owner = pa.concat_arrays([lines, places, columns]), np.tile(owner, 3)
    code = integers(pc.fill_null(pc.index_in(lines, value_set=wanted.cast(lines.type)), -1))
    rooted = np.flatnonzero(np.asarray(pc.starts_with(lines, "/")) & (code < 0))
    rest = lines.take(pa.array(rooted))
    for _ in range(_FOLDERS):
        rest = pc.replace_substring_regex(rest, pattern=r"^/*[^/:]*/+", replacement="")
        at = integers(pc.fill_null(pc.index_in(rest, value_set=wanted.cast(lines.type)), -1))
        code[rooted[at >= 0]] = at[at >= 0]
        on = at < 0
        if not on.any():
            break
        rooted, rest = rooted[on], rest.filter(pa.array(on))
    some = code >= 0
    pairs = np.unique(np.stack([owner[some], code[some]], axis=1), axis=0)
    return pairs[:, 0], pairs[:, 1]
