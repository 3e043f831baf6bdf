"""Manifests: the content of each generation as JSON, and the pointer to the current one.

    CURRENT, HEADS              the current generation, and the chain of all that were published, see `heads.py`
    generations/<id>.json       its manifest
    packs/<id>/                 what one publication wrote, see `packs.py`
    LOCK                        held by the one writer

A generation's id is a digest of its content: rows, placements, commit tables, which rows are encoded, encoder profile,
analyzers. The same content has the same id wherever, in whatever order and in however many segments it was written.

Note: content that returns to an earlier state has the id of that generation, so its manifest is replaced before the
pointer moves. The new manifest records the `earlier` number: if the writer dies in between, the generation keeps it. A
manifest that cannot be read now is not treated as damaged: the packs it needs are unknown.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ...nodes.errors import StoreError
from ..storage.durable import entries, exists, make_folders, read_whole, write_atomic
from ..storage.locks import confirm
from ..storage.places import ObjectPlace, Place
from .heads import Pointer, append_head, chain, checked_pointer, next_head, pointer_bytes, read_pointer
from .identity import MultisetHash
from .packs import Files, PackSegment
from .trust import UNSIGNED, Trust

SCHEMA_VERSION = 2
READABLE_VERSIONS = (1, 2)
"""Version 1 had no HEADS; its manifests are read unchanged."""
LOCK = "LOCK"
PUT_WITHIN_NS = 60_000_000_000
"""Maximum clock skew between two puts on an object store, whose machines have separate clocks."""
ANALYZERS = ("code/1", "prose/1")
"""The analyzers of stored rows; part of every generation's id."""
_REWRITTEN = (
    "the manifest was changed after it was published, and so may the rows: restore the corpus from a backup, or index the "
    "sources into a new one."
)


@dataclass(frozen=True)
class Manifest:
    """One generation. `sequence` orders generations in this folder; `created` is envelope, in no digest."""

    sequence: int
    created: str
    encoder_profile: str | None
    content: MultisetHash
    placements: int
    segments: Sequence[PackSegment] = ()
    packs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Files of every pack in use, see `packs.Files`."""
    changes: str | None = None
    """The pack of the changes to stored rows, see `deltas.py`."""
    commits: Mapping[str, str] = field(default_factory=dict)
    """Project -> the pack of its commit table."""
    redactors: Sequence[str] = ()
    """Every detector of secrets, with its version, that was applied to rows of this corpus at import; envelope."""
    corpus_id: str = ""
    """Random, the same in every generation: distinguishes the corpus from another one in its place; envelope."""
    head: str = ""
    """The hash of the line of HEADS that published it; empty for schema version 1 and for a pinned generation;
    envelope."""

    @property
    def generation(self) -> str:
        """The id of this content, 32 hex digits."""
        return self.content.digest("generation/1", self.encoder_profile or "", *ANALYZERS)[:32]

    @property
    def rows(self) -> int:
        """Rows of evidence."""
        return sum(segment.size for segment in self.segments)

    def write(self, path: Place, trust: Trust) -> Manifest:
        """Make this the current generation of the corpus at `path`: write its manifest, then the pointer, then the line
        of HEADS.

        Returns the manifest with its head. If the manifest of the current generation is replaced, the pointer announces
        the new one first, so that readers find a manifest that the pointer accepts at all times. The caller holds the
        lock and has removed leftovers of failed writes, so an existing manifest of this content belongs to a
        generation.
        """
        trust.expect_signer()
        at, heads = manifest_of(path, self.generation), trust.place(path)
        known = _document(at)  # read before anything is written: an error changes nothing
        document = {
            "schema_version": SCHEMA_VERSION,
            "generation": self.generation,
            "sequence": self.sequence,
            "created": self.created,
            "encoder_profile": self.encoder_profile,
            "analyzers": ANALYZERS,
            "content": self.content.hex(),
            "rows": self.rows,
            "placements": self.placements,
            "changes": self.changes,
            "commits": self.commits,
            "redactors": self.redactors,
            "corpus_id": self.corpus_id,
            "packs": self.packs,
            "segments": self.segments,
        }
        if known is not None and (earlier := _number(known, self.sequence - 1)) < self.sequence:
            document["earlier"] = earlier
        data = json.dumps(document).encode()
        try:
            before = read_pointer(heads)
        except FileNotFoundError:
            before = None
        last = before.head if before else None
        head = trust.signed(next_head(last, self.sequence, self.generation, hashlib.sha256(data).hexdigest()))
        if before and last and before.generation == self.generation:
            _point(path, heads, pointer_bytes(last, head))
        elif known is not None:
            write_atomic(aside(at), read_whole(at))
        write_atomic(at, data)
        _point(path, heads, pointer_bytes(head))
        with suppress(OSError):  # published already; the next writer finishes it
            append_head(heads, head)
            aside(at).unlink(missing_ok=True)
        return replace(self, head=head.hash)

    @classmethod
    def read(cls, path: Place, generation: str | None = None, trust: Trust = UNSIGNED) -> Manifest:
        """The manifest of a generation, of the current one by default.

        Raises:
            StoreError: there is no corpus or no such generation, another version wrote it, its head is not trusted, or
                it cannot be read now.
        """
        heads = trust.place(path)
        if generation is not None:
            found, sha256 = cls._read(path, generation, trust)
            if trust.trusted_key is not None:
                named = [head for head in chain(heads) if head.manifest_sha256 == sha256]
                trust.expect_signed(named[-1] if named else None, manifest_of(path, generation))
            return found
        pointer = _pointer(heads, checked_pointer)
        while True:
            found, sha256 = cls._read(path, pointer.generation, trust)
            for head in (pointer.head, pointer.prepared):
                if head is not None and head.manifest_sha256 == sha256:
                    trust.expect_signed(head, heads)
                    trust.expect_newest(found.corpus_id, head, lambda: chain(heads), heads)
                    return replace(found, head=head.hash)
            if pointer.head is None:
                trust.expect_signed(None, heads)
                return found
            again = _pointer(heads, checked_pointer)
            if again == pointer:
                at = manifest_of(path, pointer.generation)
                raise StoreError(
                    f"Expected SHA-256 {pointer.head.manifest_sha256}, got {sha256} - at {at}", hint=_REWRITTEN
                )
            pointer = again

    @classmethod
    def _read(cls, path: Place, generation: str, trust: Trust) -> tuple[Manifest, str]:
        """The manifest of a generation, and the SHA-256 of its file."""
        at = manifest_of(path, generation)
        try:
            data = read_whole(at)
            document = json.loads(data)
        except FileNotFoundError as error:
            known = ", ".join(generations(path, trust)) or "none"
            raise StoreError(f"Expected one of the generations {known}, got {generation!r} - at {path}") from error
        except ValueError as error:
            raise _damaged(at) from error
        if not isinstance(document, dict):
            raise _damaged(at)
        if (version := document.get("schema_version")) not in READABLE_VERSIONS:
            hint = "a later version of scoped-retrieval wrote it: install that version, or index the sources into a new corpus."
            readable = " or ".join(map(str, READABLE_VERSIONS))
            raise StoreError(f"Expected schema version {readable}, got {version} - at {at}", hint=hint)
        try:
            if (names := tuple(document["analyzers"])) != ANALYZERS:
                hint = "index the sources again with this version."
                named = ", ".join(names)
                raise StoreError(f"Expected analyzers {', '.join(ANALYZERS)}, got {named} - at {at}", hint=hint)
            found = cls._of(document)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise _damaged(at) from error
        if found.generation != generation or found.rows != document["rows"]:
            raise _damaged(at)
        return found, hashlib.sha256(data).hexdigest()

    @classmethod
    def _of(cls, document: Mapping[str, Any]) -> Manifest:
        """Parse a manifest of this version; a missing or malformed field raises a builtin exception."""
        segments = [PackSegment(*row) for row in document["segments"]]
        packs = {name: _files(files) for name, files in document["packs"].items()}
        changes, commits = document["changes"], document.get("commits", {})
        for pack in (*(segment.pack for segment in segments), *commits.values(), *([changes] if changes else ())):
            packs[pack]  # raises KeyError unless each is among the packs
        return cls(
            sequence=document["sequence"],
            created=document["created"],
            encoder_profile=document["encoder_profile"],
            content=MultisetHash.from_hex(document["content"]),
            placements=document["placements"],
            segments=segments,
            packs=packs,
            changes=changes,
            commits=commits,
            redactors=document.get("redactors", ()),
            corpus_id=document.get("corpus_id", ""),
        )


def _files(files: Mapping[str, Mapping[str, Any]]) -> Files:
    """The files of a pack, each with its size, SHA-256 and, since version 2, checksums of its blocks."""
    return {name: _file(entry) for name, entry in files.items()}


def _file(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    file = {"bytes": int(entry["bytes"]), "sha256": str(entry["sha256"])}
    if "block_xxh3" in entry:
        file |= {"block_bytes": int(entry["block_bytes"]), "block_xxh3": str(entry["block_xxh3"])}
        if file["block_bytes"] < 1:
            raise ValueError(file["block_bytes"])
    return file


def _damaged(at: Place, what: str = "a manifest") -> StoreError:
    hint = "restore it from a backup, or index the sources into a new corpus."
    return StoreError(f"Expected {what}, got a damaged file - at {at}", hint=hint)


def current(path: Place, trust: Trust) -> tuple[str, int]:
    """The id and the sequence number of the current generation.

    Raises:
        StoreError: there is no corpus, or it cannot be read now.
    """
    generation, sequence, _, _ = _pointer(trust.place(path), read_pointer)
    return generation, sequence


def _pointer(heads: Place, read: Callable[[Place], Pointer]) -> Pointer:
    try:
        return read(heads)
    except FileNotFoundError as error:
        hint = "`scoped-retrieval index PATH --corpus DIR --project P` builds one."
        raise StoreError(f"Expected a corpus, got no file CURRENT - at {heads}", hint=hint) from error
    except ValueError as error:
        raise _damaged(heads / "CURRENT", "a generation") from error


def complete_heads(path: Place, trust: Trust) -> None:
    """Append the line that a crashed writer did not append, or begin the chain of a corpus of schema version 1; the
    caller holds the lock and has called `remove_ghosts`.

    Raises:
        StoreError: CURRENT is not the end of the chain; nothing is written.
    """
    heads = trust.place(path)
    pointer = _pointer(heads, checked_pointer)
    head = pointer.head
    if head is None:
        _, sha256 = Manifest._read(path, pointer.generation, trust)
        head = trust.signed(next_head(None, pointer.sequence, pointer.generation, sha256))
        _point(path, heads, pointer_bytes(head))
    append_head(heads, head)


class Needs(NamedTuple):
    """A stored generation: its id and the packs that its manifest names, with their files."""

    generation: str
    packs: Mapping[str, Files]


def generations(path: Place, trust: Trust = UNSIGNED) -> list[str]:
    """The ids of the stored generations, oldest first, without those whose writer died before they became current."""
    return [each.generation for each in needs(path, trust)]


def needs(path: Place, trust: Trust) -> list[Needs]:
    """The packs that each stored generation needs, oldest first; a damaged one cannot be opened and needs none.

    Raises:
        StoreError: a manifest cannot be read now.
    """
    now, newest = current(path, trust)
    found = [(_number(document, newest), at.stem, document["packs"]) for at, document in _documents(path)]
    found.sort(key=lambda each: each[:2])
    return [Needs(name, packs) for number, name, packs in found if number <= newest or name == now]


def remove_ghosts(path: Place, trust: Trust, *, all_: bool = False) -> None:
    """Clean up after writers that died before they moved the pointer; the caller holds the lock.

    A manifest of new content is removed, because the next generation will use its number. The manifest of an earlier
    generation that the content returned to gets its earlier number back. A new manifest of the current generation,
    after a merge, becomes current, so that readers switch to the merged packs.

    Such manifests are newer than the pointer. So only newer ones are read, and none if their folder is older than the
    pointer. Object stores have no folder times, so there the folder is always listed; `all_` reads every manifest.
    """
    now, newest = current(path, trust)
    since = 0 if all_ else _written(trust.place(path) / "CURRENT")
    if isinstance(path, ObjectPlace):
        since -= PUT_WITHIN_NS
    elif _written(path / "generations") < since:
        return
    for at, document in list(_documents(path, since)):
        if document["sequence"] <= newest:
            continue
        if at.stem == now:
            _accept(path, trust, at, document["sequence"])
        elif exists(kept := aside(at)):
            write_atomic(at, read_whole(kept))
            kept.unlink()
        elif (earlier := document.pop("earlier", None)) is None:
            at.unlink()
        else:
            write_atomic(at, json.dumps(document | {"sequence": earlier}).encode())


def manifest_of(path: Place, generation: str) -> Place:
    """The manifest file of a generation."""
    return path / "generations" / f"{generation}.json"


def aside(at: Place) -> Place:
    """Where the manifest of an earlier generation is kept while it is replaced because the content returned to it."""
    return at.with_name(f"{at.stem}.before")


def _accept(path: Place, trust: Trust, at: Place, sequence: int) -> None:
    """Make the replaced manifest of the current generation current.

    Raises:
        StoreError: the manifest is not the one that the pointer announced.
    """
    heads = trust.place(path)
    pointer = _pointer(heads, read_pointer)
    if pointer.head is None:  # schema version 1
        _point(path, heads, f"{pointer.generation} {sequence}\n".encode())
        return
    announced = pointer.prepared
    if announced is None or hashlib.sha256(read_whole(at)).hexdigest() != announced.manifest_sha256:
        expected = (
            "a manifest that the pointer announced" if announced is None else f"SHA-256 {announced.manifest_sha256}"
        )
        raise StoreError(f"Expected {expected}, got another - at {at}", hint=_REWRITTEN)
    append_head(heads, pointer.head)
    _point(path, heads, pointer_bytes(announced))


def _point(path: Place, heads: Place, content: bytes) -> None:
    """Write the pointer, with the lock of the corpus at `path` still held."""
    confirm(path / LOCK)
    make_folders(heads)
    write_atomic(heads / "CURRENT", content)


def _documents(path: Place, since: int = 0) -> Iterator[tuple[Place, dict[str, Any]]]:
    """The undamaged manifests, ghosts included, without those known to be older than `since`."""
    for at in entries(path / "generations"):
        if at.suffix == ".json" and (since <= 0 or not 0 < _written(at) < since):
            document = _document(at)
            if document is not None:
                yield at, document


def _document(at: Place) -> dict[str, Any] | None:
    """A manifest with its number and packs; None if it is missing or damaged."""
    try:
        document = json.loads(read_whole(at))
        return document if document["sequence"] >= 0 and isinstance(document["packs"], dict) else None
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def _number(document: Mapping[str, Any], newest: int) -> int:
    """The number of a manifest; its earlier one if the pointer never moved to the later."""
    sequence = document["sequence"]
    return document.get("earlier", sequence) if sequence > newest else sequence


def _written(file: Place) -> int:
    """When a file was written, nanoseconds; 0 if an object store does not report it."""
    return file.stat().st_mtime_ns
