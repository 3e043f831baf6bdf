"""Manifests: the content of each generation as JSON, and the chain of lines that publish them.

    HEADS                           a line per publication, see `storage/chain.py`: the generation and the SHA-256 of its
                                    manifest; the last line is the current generation
    generations/<n>-<digest>.json   the manifest that line n names
    packs/<n>-<random>/             what the publication of line n wrote, see `packs.py`
    cache/                          what was read before, see `sources/document_reader.py`

A generation's id is a digest of its content: rows, placements, commit tables, which rows are encoded, encoder profile,
analyzers. The same content has the same id wherever, in whatever order and in however many segments it was written.

Note: files are written before their line, under names with its number. So a file with the number of an existing line
that no manifest names belongs to a writer that crashed or lost to another: no line will ever name it, and anyone may
remove it. A manifest that cannot be read now is not treated as damaged: the packs it needs are unknown.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from secrets import token_hex

from ...nodes.errors import MovedOnError, StoreError
from ..storage.chain import Chain, Line
from ..storage.durable import entries, read_whole, write_atomic
from ..storage.places import Place
from ..storage.signing import UNSIGNED, Signer
from .identity import MultisetHash
from .packs import Entry
from .tombstones import Receipt

CACHE = "cache"
"""The folder of chunks that were read before; it may be removed at any time."""
SCHEMA_VERSION = 15
ANALYZERS = ("code/2", "prose/2")
"""The analyzers of stored rows; part of every generation's id."""
_AS_THEY_ARE = (
    "created", "encoder_profile", "packs", "gone", "changes", "commits", "redactors", "corpus_id",
)  # fmt: skip
"""Fields of a manifest that are stored under their names, as JSON."""
_RESTORE = "restore it from a backup, or index the sources into a new corpus."
_REWRITTEN = (
    "the manifest was changed after it was published, and so may the rows: restore the corpus from a backup, or index the "
    "sources into a new one."
)


@dataclass(frozen=True)
class Manifest:
    """One generation. `created` is envelope, in no digest."""

    created: str
    encoder_profile: str | None
    content: MultisetHash
    packs: Mapping[str, Entry] = field(default_factory=dict)
    """Every pack in use."""
    gone: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """The segments of packs in use, by position, that were replaced."""
    changes: str | None = None
    """The pack of the changes to stored rows, see `deltas.py`."""
    commits: str | None = None
    """The pack of the commit table, see `commits.py`."""
    redactors: Sequence[str] = ()
    """Every detector of secrets, with its version, that was applied to rows of this corpus at import; envelope."""
    corpus_id: str = ""
    """Random, the same in every generation: distinguishes the corpus from another one in its place; envelope."""
    receipts: Sequence[Receipt] = ()
    """The erasures so far, oldest first; envelope."""
    line: Line | None = None
    """The line of HEADS that published it."""

    @property
    def generation(self) -> str:
        """The id of this content, 32 hex digits."""
        return self.content.digest("generation/1", self.encoder_profile or "", *ANALYZERS)[:32]

    @property
    def number(self) -> int:
        """The number of its line; 0 before the first one."""
        return self.line.number if self.line else 0

    @property
    def erased_at(self) -> int:
        """The number of the line of the last erasure; 0 if there was none."""
        return (number_of(self.receipts[-1].pack) or 0) if self.receipts else 0

    @property
    def head(self) -> str:
        """The hash of its line."""
        return self.line.hash if self.line else ""

    def publish(self, path: Place, chain: Chain) -> Manifest:
        """Make this the generation after its `line`, and return it with its own line. What it names is synced already.

        Raises:
            MovedOnError: another writer published after `line`.
        """
        document = {
            "schema_version": SCHEMA_VERSION,
            "analyzers": ANALYZERS,
            "content": self.content.hex(),
            "receipts": [asdict(receipt) for receipt in self.receipts],
            **{name: getattr(self, name) for name in _AS_THEY_ARE},
        }
        data = json.dumps(document).encode()
        sha256 = hashlib.sha256(data).hexdigest()
        at = path / "generations" / _name(self.number + 1, sha256)
        write_atomic(at, data)
        try:
            line = chain.append(self.line, {"generation": self.generation, "manifest": sha256})
        except MovedOnError:
            with suppress(OSError):
                at.unlink(missing_ok=True)
            raise
        return replace(self, line=line)

    @classmethod
    def read(cls, path: Place, chain: Chain, generation: str | None = None) -> Manifest:
        """The manifest of a generation, of the current one by default.

        Raises:
            StoreError: there is no corpus or no such generation, another version wrote it, or it cannot be read now.
            VerificationError: the last line was changed, or is not signed with the trusted key.
        """
        line = chain.last()
        if line is None:
            hint = "the first `ask` in a folder makes its corpus, but not in a home or a folder above it; `index PATH` makes any."
            raise StoreError(f"Expected a corpus, got none - at {path}", hint=hint)
        if generation is not None:
            line = next((each for each in stored(path, chain) if each.body["generation"] == generation), None)
        if line is not None:
            try:
                return cls._of_line(path, line)
            except FileNotFoundError:
                at = manifest_of(path, line)
                raise StoreError(f"Expected a manifest, got none - at {at}", hint=_RESTORE) from None
        known = ", ".join(generations(path, chain)) or "none"
        raise StoreError(f"Expected one of the generations {known}, got {generation!r} - at {path}")

    @classmethod
    def _of_line(cls, path: Place, line: Line) -> Manifest:
        at = manifest_of(path, line)
        data = read_whole(at)
        if (sha256 := hashlib.sha256(data).hexdigest()) != line.body["manifest"]:
            raise StoreError(f"Expected SHA-256 {line.body['manifest']}, got {sha256} - at {at}", hint=_REWRITTEN)
        document = json.loads(data)
        if (version := document.get("schema_version")) != SCHEMA_VERSION:
            hint = "another version of scoped-retrieval wrote it: index the sources into a new corpus."
            raise StoreError(f"Expected schema version {SCHEMA_VERSION}, got {version} - at {at}", hint=hint)
        if (names := tuple(document["analyzers"])) != ANALYZERS:
            hint = "index the sources again with this version."
            named = ", ".join(names)
            raise StoreError(f"Expected analyzers {', '.join(ANALYZERS)}, got {named} - at {at}", hint=hint)
        return cls(
            content=MultisetHash.from_hex(document["content"]),
            receipts=[Receipt(**receipt) for receipt in document["receipts"]],
            line=line,
            **{name: document[name] for name in _AS_THEY_ARE},
        )


def chain_of(path: Place, signer: Signer = UNSIGNED) -> Chain:
    """The chain of the corpus at `path`."""
    return Chain(path / "HEADS", signer)


def manifest_of(path: Place, line: Line) -> Place:
    """The manifest that a line names."""
    return path / "generations" / _name(line.number, line.body["manifest"])


def _name(number: int, sha256: str) -> str:
    return f"{number:09d}-{sha256[:16]}.json"


def new_name(number: int) -> str:
    """A new name for a file of the publication of line `number`."""
    return f"{number:09d}-{token_hex(8)}"


def number_of(name: str) -> int | None:
    """The number of the line that a file was written for; None if its name has none."""
    number = name.partition("-")[0]
    return int(number) if number.isdecimal() else None


def stored(path: Place, chain: Chain) -> Iterator[Line]:
    """The last line of each stored generation, oldest first.

    Raises:
        StoreError: the chain or the folder of generations cannot be read now.
    """
    names = {entry.name for entry in entries(path / "generations")}
    last = dict[str, Line]()
    for line in chain.lines():
        if manifest_of(path, line).name in names:
            last.pop(line.body["generation"], None)
            last[line.body["generation"]] = line
    yield from last.values()


def generations(path: Place, chain: Chain) -> list[str]:
    """The ids of the stored generations, oldest first."""
    return [line.body["generation"] for line in stored(path, chain)]


def needs(path: Place, lines: Sequence[Line]) -> dict[str, Entry]:
    """The packs that the generations of these lines need. A manifest that is damaged, or removed by
    now, cannot be opened and needs none.

    Raises:
        StoreError: a manifest cannot be read now.
    """
    found = dict[str, Entry]()
    for line in lines:
        with suppress(FileNotFoundError):
            data = read_whole(manifest_of(path, line))
            if hashlib.sha256(data).hexdigest() == line.body["manifest"]:
                found |= json.loads(data)["packs"]
    return found
