"""Checks rows of a history against the repository: files reassembled from placements, compared with `git ls-tree` and
its blobs.

Gives: `alive_at(rows, time)`, `reassemble(rows)` and `differences(repo, sha, rows)`. The rows may come from a reader or be
the admissible rows of a request at that `as_of`; both have the same columns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from os import PathLike

import pyarrow as pa
import pyarrow.compute as pc
from scoped_retrieval.nodes.schema import TIMESTAMP
from scoped_retrieval.pipeline.sources.file_kinds import file_kind
from scoped_retrieval.pipeline.sources.files import limit, readable
from scoped_retrieval.pipeline.sources.git_commands import Blobs, Git


def alive_at(rows: pa.Table, time: datetime) -> pa.Table:
    """The placements alive at `time`: recorded at or before it, ended after it or not at all."""
    at = pa.scalar(time, TIMESTAMP)
    alive = pc.less_equal(rows["recorded_time"], at)
    for column in ("superseded_at", "deleted_at"):
        alive = pc.and_(alive, pc.fill_null(pc.greater(rows[column], at), True))
    return rows.filter(alive)


def reassemble(rows: pa.Table) -> dict[str, bytes]:
    """Files by path from rows with `path`, `byte_start`, `byte_end` and `text`.

    A byte that no row covers is a NUL, a byte that two rows cover with different values is a 0xFF: neither occurs in a
    file that has rows, so a gap or an overlap is always a difference.
    """
    parts: dict[str, list[tuple[int, int, bytes]]] = {}
    for path, start, end, text in zip(
        *(rows[name].to_pylist() for name in ("path", "byte_start", "byte_end", "text")), strict=True
    ):
        parts.setdefault(path, []).append((start, end, text.encode("utf-8")))
    return {path: _together(pieces) for path, pieces in parts.items()}


def readable_files(repo: str | PathLike[str], sha: str) -> dict[str, bytes]:
    """The readable files of a commit's tree within the declared limits, by path; a byte order mark, which no row covers, as
    NULs.
    """
    git = Git(repo)
    files = {}
    with Blobs(git) as blobs:
        for mode, blob, raw in git.tree(sha):
            try:
                path = raw.decode("utf-8")
            except UnicodeDecodeError:
                continue
            kind = file_kind(path)
            if not mode.startswith("100") or not kind.text_by_name:
                continue
            data = blobs.get(blob, limit(kind))
            if data is not None and readable(kind, data)[0] is not None:
                files[path] = re.sub(rb"\A\xef\xbb\xbf", bytes(3), data)
    return files


def differences(repo: str | PathLike[str], sha: str, rows: pa.Table) -> Mapping[str, str]:
    """The differences of `rows` from commit `sha`, by path: `missing`, `unexpected` or `different`."""
    expected, got = readable_files(repo, sha), reassemble(rows)
    wrong = dict.fromkeys(expected.keys() - got.keys(), "missing")
    wrong |= dict.fromkeys(got.keys() - expected.keys(), "unexpected")
    wrong |= {path: "different" for path in expected.keys() & got.keys() if expected[path] != got[path]}
    return dict(sorted(wrong.items()))


def _together(parts: list[tuple[int, int, bytes]]) -> bytes:
    whole = bytearray(max(end for _, end, _ in parts))
    for start, end, data in parts:
        before = whole[start:end]
        whole[start:end] = (
            bytes(b if a in (0, b) else 0xFF for a, b in zip(before, data, strict=False)) if any(before) else data
        )
    return bytes(whole)
