"""The state of each source at its last import, so that the next one need not read unchanged files.

    readings/STATE.json          {"generation", "sources": [[project, source id, file]]}
    readings/<digest>.arrow      READING of one source, a row per path; rules, line and salt in its metadata

A state holds no text: digests, sizes, times and counts of files, whose rows are in the corpus. Digests are of unmasked
bytes, so they are keyed with a salt that is removed with the state: equal files of two corpora, or from before and
after an erasure, cannot be matched, nor looked up in a table of digests. States are valid only for the generation named
in STATE: the id of a generation is a digest of its content. A publication keeps the states of sources that it does not
touch. An erasure removes them all. Without states an import reads everything, with the same result.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

from ..storage.durable import make_folders, remove_tree, sync_path, write_atomic
from ..storage.places import Place

FOLDER = "readings"
_STATE = "STATE.json"
Source = tuple[str, str]
"""Owner project and source id."""


class PathStatus(NamedTuple):
    """The state of one path when it was read: its file, if in a work tree, and the counts of its rows."""

    mode: int = 0
    inode: int = 0
    size: int = 0
    modified: int = 0
    changed: int = 0
    """`st_mtime_ns` and `st_ctime_ns`."""
    settled: bool = False
    """Whether the file predates its import by more than a clock tick: only then equal status implies equal content."""
    digest: str = ""
    """`SourceState.digest` of its bytes; empty if a secret was masked in it, so that only its status is compared."""
    rows: int = 0
    places: int = 0
    masked: int = 0
    said: str = "{}"
    """JSON of skipped files and rows, by reason, and of notes."""


@dataclass(frozen=True)
class SourceState:
    """The state of one source when it was read.

    `rules` is a digest of everything except the files that determines rows; `line` is a digest of a history's commits.
    `root` is the folder that was read. `embedded`: every row that can have a vector has one.
    """

    rules: str
    root: str = ""
    line: str = ""
    commits: int = 0
    embedded: bool = False
    salt: str = field(default_factory=lambda: secrets.token_hex(16))
    paths: Mapping[str, PathStatus] = field(default_factory=dict)

    def digest(self, content: bytes) -> str:
        """The digest that identifies a file's bytes: 64 hex digits of BLAKE2b, keyed with the salt."""
        return hashlib.blake2b(content, key=self.salt.encode(), digest_size=32).hexdigest()

    def table(self) -> pa.Table:
        """READING: `path` and the fields of `PathStatus`."""
        columns = list(zip(*self.paths.values(), strict=True)) or [()] * len(_SCHEMA.names[1:])
        arrays = [pa.array(list(self.paths), pa.string())]
        arrays += [pa.array(column, kind) for column, kind in zip(columns, _SCHEMA.types[1:], strict=True)]
        metadata = {
            "rules": self.rules,
            "root": self.root,
            "line": self.line,
            "commits": str(self.commits),
            "salt": self.salt,
        }
        metadata["embedded"] = str(int(self.embedded))
        return pa.Table.from_arrays(arrays, schema=_SCHEMA.with_metadata(metadata))

    @classmethod
    def of(cls, table: pa.Table) -> SourceState:
        """The state stored in `table`."""
        metadata = {name.decode(): value.decode() for name, value in (table.schema.metadata or {}).items()}
        rows = zip(*(column.to_pylist() for column in table.columns[1:]), strict=True)
        paths = dict(zip(table["path"].to_pylist(), map(PathStatus._make, rows), strict=True))
        embedded = metadata["embedded"] == "1"
        return cls(
            metadata["rules"],
            metadata["root"],
            metadata["line"],
            int(metadata["commits"]),
            embedded,
            metadata["salt"],
            paths,
        )


_SCHEMA = pa.schema(
    [
        pa.field("path", pa.string(), False),
        *(pa.field(name, pa.int64(), False) for name in ("mode", "inode", "size", "modified", "changed")),
        pa.field("settled", pa.bool_(), False),
        pa.field("digest", pa.string(), False),
        *(pa.field(name, pa.int64(), False) for name in ("rows", "places", "masked")),
        pa.field("said", pa.string(), False),
    ]
)


def source_state_of(corpus: Place, generation: str, wanted: Source) -> SourceState | None:
    """The state of a source as read for this generation; None if unknown."""
    name = _state(corpus, generation).get(wanted)
    if name is None:
        return None
    try:
        data = (corpus / FOLDER / name).read_bytes()
        if _name_of(wanted, data) != name:  # damaged: Arrow would not notice
            return None
        table = pa.ipc.open_file(data).read_all()
        return SourceState.of(table) if table.schema.equals(_SCHEMA) else None
    except (pa.ArrowInvalid, OSError, KeyError, ValueError):
        return None


def carry_source_states(
    corpus: Place, before: str, after: str, touched: Collection[Source], made: Mapping[Source, SourceState]
) -> None:
    """Carry STATE over to the next generation: touched sources lose their state, except those in `made`.

    The caller holds the lock, and the generation `after` is already current: if the states cannot be written, they are
    removed, and nothing else fails. Any that remain name another generation or are still valid.
    """
    try:
        _carry(corpus, before, after, touched, made)
    except OSError:
        with suppress(OSError):
            forget_source_states(corpus)


def _carry(
    corpus: Place, before: str, after: str, touched: Collection[Source], made: Mapping[Source, SourceState]
) -> None:
    folder = corpus / FOLDER
    if not made and not folder.exists():
        return
    known = _state(corpus, before)
    kept = {source: name for source, name in known.items() if source not in set(touched)}
    make_folders(folder, corpus)
    for source, state in made.items():
        kept[source] = _written(folder, source, state)
    if kept == known and before == after:
        return
    document = {"generation": after, "sources": [[*source, name] for source, name in sorted(kept.items())]}
    write_atomic(folder / _STATE, json.dumps(document).encode())
    for file in folder.glob("*.arrow"):
        if file.name not in kept.values():
            file.unlink()


def forget_source_states(corpus: Place) -> None:
    """Remove every state; the caller holds the lock."""
    folder = corpus / FOLDER
    with suppress(FileNotFoundError):
        (folder / _STATE).unlink(missing_ok=True)
        sync_path(folder)
        remove_tree(folder)


def _written(folder: Place, source: Source, state: SourceState) -> str:
    table, sink = state.table(), pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    data = memoryview(sink.getvalue())
    name = _name_of(source, data)
    write_atomic(folder / name, data, sync=False)
    sync_path(folder / name)  # the folder is synced with STATE
    return name


def _name_of(source: Source, data: bytes | memoryview) -> str:
    """A file is named by its content, so STATE never names a file that changed since it was written."""
    return f"{hashlib.sha256(chr(0).join(source).encode() + data).hexdigest()[:32]}.arrow"


def _state(corpus: Place, generation: str) -> dict[Source, str]:
    """The files of the states of this generation; none if STATE names another one or is damaged."""
    try:
        document = json.loads((corpus / FOLDER / _STATE).read_bytes())
        if document["generation"] != generation:
            return {}
        return dict(_entries(document["sources"]))
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _entries(sources: Collection[tuple[str, str, str]]) -> Iterator[tuple[Source, str]]:
    for project, source_id, name in sources:
        yield (project, source_id), name


def sources_of(rows: pa.Table) -> set[Source]:
    """The project and id of every source of these rows."""
    pairs = rows.select(["owner_project", "source_id"]).group_by(["owner_project", "source_id"]).aggregate([])
    return {(pair["owner_project"], pair["source_id"]) for pair in pairs.to_pylist()}
