"""Packs: immutable files written by one publication or merge. A segment is one owner's contiguous range of a pack's
rows.

    packs/<n>-<random>/pack.json          size, SHA-256 and checksum (XXH3) of each file
               segments.arrow     SEGMENTS: a line per segment of the rows
               evidence.arrow     `STORED_EVIDENCE`; by owner, then segment, in EVIDENCE order
               placements.arrow   PLACEMENTS; `row` counts inside the pack
               postings.arrow     a line per segment and key, by hash and text: hash, key, list of (row, freq)
               vectors.arrow      of encoded rows: digest of the encoded text and int16 unit vector
               changes.arrow      if placements of other packs' rows ended or came back, see `deltas.py`
               descriptions.arrow if other packs' rows are described again, see `deltas.py`
               commits.arrow      when the commits of histories were recorded, see `commits.py`
               erased.arrow       ids and keys of erased rows, see `tombstones.py`

Every file is one Arrow IPC record batch, mapped as a whole, and a segment is a slice: the owners of one publication
share its files, and small packs are merged, see `publishing.py`.

Note: Arrow does not check the offsets in a file, and a process that reads past the end of a mapping crashes. So a file
is verified before Arrow parses it. XXH3 detects damage, not tampering: SHA-256 detects both, and takes fifteen times as
long, see `stored.py`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash
from numpy.typing import NDArray

from ...nodes.errors import StoreError
from ...nodes.frames import SegmentPostings
from ..storage.durable import read_whole, sync_all, write_atomic
from ..storage.places import ObjectPlace, Place
from .parts import Part
from .postings import PostingLists, posting_lists

Entry = Mapping[str, Any]
"""What a manifest says of a pack: the `bytes` of all its files, and the `sha256` of its `pack.json`."""
FILES, VECTORS = "pack.json", "vectors.arrow"
_DAMAGED = (
    "restore the pack from a backup, or index its sources into a new corpus: a damaged pack is never rewritten or "
    "erased. `gc --keep 1` removes one that only older generations use."
)

_SEGMENTS = pa.schema(
    [
        pa.field("owner_project", pa.string(), False),
        pa.field("owner_user", pa.string()),
        pa.field("row_end", pa.int64(), False),
        pa.field("placement_end", pa.int64(), False),
        pa.field("key_end", pa.int64(), False),
    ]
)
"""The segments of a pack; one begins where the one before ends."""
_POSTING = pa.struct([pa.field("row", pa.int32(), False), pa.field("freq", pa.int32(), False)])


class PackSegment(NamedTuple):
    """The location of one owner's rows: line `place` of a pack's segments, and ranges [start, end) of its rows, placements
    and posting keys.
    """

    owner_project: str
    owner_user: str | None
    row_end: int
    placement_end: int
    key_end: int
    row_start: int
    placement_start: int
    key_start: int
    pack: str
    place: int
    encoded: bool
    """Whether the rows of its pack have vectors."""

    @property
    def segment_id(self) -> str:
        """Its pack and place."""
        return f"{self.pack}/{self.place}"

    @property
    def size(self) -> int:
        """Rows of evidence."""
        return self.row_end - self.row_start

    @property
    def owner(self) -> tuple[str, str]:
        """Sort key: by owner, rows of the whole project first."""
        return self.owner_project, self.owner_user or ""


class Pack:
    """A pack opened for reading. All files are mapped at once, so removing the pack later does not affect readers. No
    descriptor stays open, so the number of mapped packs is not bounded by the limit of open files.

    On an object store, a file is read on first use and cached: opening a corpus reads no pack, and a frame reads the
    packs of its owners. Removing a pack there breaks readers that have not read it yet.
    """

    def __init__(self, folder: Place, entry: Entry) -> None:
        self.folder, self.entry = folder, entry
        self._data: dict[str, pa.Buffer] = {}
        self._tables: dict[str, pa.Table] = {}
        for name in () if isinstance(folder, ObjectPlace) else self.files:
            self._bytes(name)

    @cached_property
    def files(self) -> Mapping[str, Mapping[str, Any]]:
        """Size, SHA-256 and checksum of each file.

        Raises:
            StoreError: `pack.json` is missing, damaged, or cannot be read now.
        """
        file = self.folder / FILES
        try:
            data = read_whole(file)
        except FileNotFoundError as error:
            raise _no_pack(file) from error
        _expect("SHA-256", self.entry["sha256"], hashlib.sha256(data).hexdigest(), file)
        return json.loads(data)

    def __contains__(self, name: str) -> bool:
        return name in self.files

    def _bytes(self, name: str) -> pa.Buffer:
        """The bytes of a file, not verified yet. A shorter mapping is refused: reading past its end would crash."""
        if (known := self._data.get(name)) is None:
            known = self._data[name] = _read(self.folder / name)
            _expect("size", self.files[name]["bytes"], known.size, self.folder / name)
        return known

    def expect_whole(self, *names: str) -> None:
        """Verify these files, all by default, against the SHA-256 recorded when they were written.

        Called before rows are rewritten, as they get a new SHA-256.

        Raises:
            StoreError: a file does not match its SHA-256.
        """
        for name in names or tuple(self.files):
            if name in self:
                got = hashlib.sha256(self._bytes(name)).hexdigest()
                _expect("SHA-256", self.files[name]["sha256"], got, self.folder / name)

    def table(self, name: str) -> pa.Table:
        """A file as a table of one chunk, zero-copy. It is verified when it is first read.

        Raises:
            StoreError: it is damaged.
        """
        if (known := self._tables.get(name)) is None:
            data = self._bytes(name)
            _expect("checksum", self.files[name]["xxh3"], xxhash.xxh3_64_hexdigest(data), self.folder / name)
            known = self._tables[name] = pa.ipc.open_file(data).read_all()
        return known

    @cached_property
    def segments(self) -> pa.Table:
        """The columns of `PackSegment`, a line per segment, in use or not."""
        table = self.table("segments.arrow") if "segments.arrow" in self else _SEGMENTS.empty_table()
        for name in ("row", "placement", "key"):
            starts = np.append(0, table[f"{name}_end"].to_numpy())[:-1]
            table = table.append_column(f"{name}_start", pa.array(starts, pa.int64()))
        named = pa.DictionaryArray.from_arrays(np.zeros(table.num_rows, np.int32), [self.folder.name])
        table = table.append_column("pack", named).append_column("place", pa.array(np.arange(table.num_rows)))
        return table.append_column("encoded", pa.repeat(VECTORS in self, table.num_rows))

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """The rows of each segment, in use or not."""
        return np.diff(self.segments["row_end"].to_numpy(), prepend=0)

    @cached_property
    def _postings(self) -> PostingLists:
        """All posting lists."""
        table = self.table("postings.arrow")
        lists = table["postings"].chunk(0) if table.num_rows else pa.array([], pa.large_list(_POSTING))
        row, freq = lists.values.flatten()
        hashes = table["hash"].to_numpy()
        keys = table["key"].chunk(0) if table.num_rows else pa.array([], pa.large_string())
        return PostingLists(hashes, keys, lists.offsets.to_numpy(), row.to_numpy(), freq.to_numpy())

    def postings(self, segment: PackSegment) -> SegmentPostings:
        """The posting lists of a segment, zero-copy."""
        start, end = segment.key_start, segment.key_end
        lists = self._postings
        keys = lists.keys.slice(start, end - start)
        return SegmentPostings(lists.hashes[start:end], keys, lists.starts[start : end + 1], lists.rows, lists.freqs)

    @cached_property
    def _matrix(self) -> NDArray[np.int16]:
        """The vectors of all rows."""
        column = self.table(VECTORS)["vector"].chunk(0)
        return column.values.to_numpy().reshape(-1, column.type.list_size)

    def matrix(self, segment: PackSegment) -> NDArray[np.int16] | None:
        """int16[rows, dimensions] of a segment, zero-copy; None if it was not encoded."""
        return self._matrix[segment.row_start : segment.row_end] if segment.encoded else None


def _read(file: Place) -> pa.Buffer:
    """The bytes of a file: of a local one a mapping, closed again, as the buffer keeps it."""
    try:
        if isinstance(file, Path):
            with pa.memory_map(str(file)) as source:
                return source.read_buffer()
        return pa.py_buffer(read_whole(file))
    except FileNotFoundError as error:
        raise _no_pack(file) from error
    except StoreError:  # the store does not answer
        raise
    except (OSError, pa.ArrowInvalid) as error:
        got = getattr(error, "strerror", None) or "a damaged one"
        raise StoreError(f"Expected to map a pack, got {got} - at {file}", hint=_DAMAGED) from error


def _expect(what: str, expected: object, got: object, file: Place) -> None:
    """Raise an error if a file does not match what was recorded when it was written."""
    if got != expected:
        raise StoreError(f"Expected {what} {expected}, got {got} - at {file}", hint=_DAMAGED)


def _no_pack(file: Place) -> StoreError:
    """The error for a missing file of a pack."""
    removed = "open the corpus again: this generation may have been removed."
    hint = removed if isinstance(file, ObjectPlace) else _DAMAGED
    return StoreError(f"Expected a pack, got none - at {file}", hint=hint)


def in_use(
    packs: Iterable[Pack],
    gone: Mapping[str, Collection[int]],
    projects: Collection[str] | None = None,
    users: Collection[str | None] | None = None,
) -> list[PackSegment]:
    """The segments of these packs that are not `gone`, of these projects, shared or of these users (None = any): by owner,
    rows of the whole project first, then whether they are encoded, then pack and place.
    """
    listed = [pack.segments for pack in packs if len(pack.sizes)]
    segments = pa.concat_tables(listed) if listed else pa.table({})
    for name, names in (("owner_project", projects), ("owner_user", None if users is None else {None, *users})):
        if names is not None and listed:
            segments = segments.filter(pc.is_in(segments[name], value_set=pa.array([*names], pa.string())))
    rows = zip(*(column.to_pylist() for column in segments.columns), strict=True)
    replaced = {pack: set(places) for pack, places in gone.items()}
    found = [one for one in map(PackSegment._make, rows) if one.place not in replaced.get(one.pack, ())]
    return sorted(found, key=lambda one: (one.owner, one.encoded, one.pack, one.place))


def side_by_side(segments: Sequence[PackSegment], some: Iterable[int]) -> Iterator[range]:
    """Some of these segments, by position, ascending, in ranges of those that follow each other in one pack."""
    run = range(0)
    for at in some:
        one, before = segments[at], segments[at - 1]
        if run and run.stop == at and (before.pack, before.row_end) == (one.pack, one.row_start):
            run = range(run.start, at + 1)
            continue
        if run:
            yield run
        run = range(at, at + 1)
    if run:
        yield run


def write_pack(folder: Place, part: Part) -> Entry:
    """Write rows in the order of `Part.sorted` as the pack `folder`; returns its entry."""
    bounds = part.segment_starts()
    lists, key_starts = posting_lists(part.postings, bounds)
    first = pa.array(bounds[:-1])
    owners = (part.evidence[name].take(first).combine_chunks() for name in ("owner_project", "owner_user"))
    ends = np.stack([bounds, part.placement_starts()[bounds], key_starts])[:, 1:]
    tables = {
        "segments.arrow": pa.table([*owners, *ends], schema=_SEGMENTS),
        "evidence.arrow": part.evidence,
        "placements.arrow": part.placements,
        "postings.arrow": _table(lists),
    }
    return write_tables(folder, tables if part.vectors is None else {**tables, VECTORS: part.vectors})


def write_tables(folder: Place, tables: Mapping[str, pa.Table]) -> Entry:
    """Write tables by file name as the pack `folder`, durably; returns its entry."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {}
    for name, table in tables.items():
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table.schema) as writer:
            for batch in table.combine_chunks().to_batches():
                writer.write_batch(batch)
        data = memoryview(sink.getvalue()).cast("B")
        write_atomic(folder / name, data, sync=False)
        sums = {"sha256": hashlib.sha256(data).hexdigest(), "xxh3": xxhash.xxh3_64_hexdigest(data)}
        files[name] = {"bytes": data.nbytes, **sums}
    data = json.dumps(files).encode()
    write_atomic(folder / FILES, data, sync=False)
    sync_all([folder / name for name in (*files, FILES)], folder.parent)
    return {"bytes": sum(file["bytes"] for file in files.values()), "sha256": hashlib.sha256(data).hexdigest()}


def _table(lists: PostingLists) -> pa.Table:
    pairs = pa.StructArray.from_arrays([pa.array(lists.rows), pa.array(lists.freqs)], fields=list(_POSTING))
    postings = pa.LargeListArray.from_arrays(pa.array(lists.starts), pairs)
    return pa.table({"hash": lists.hashes, "key": lists.keys, "postings": postings})
