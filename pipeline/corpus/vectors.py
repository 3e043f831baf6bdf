"""The vectors of rows, and the texts that are encoded for them; no stored text is encoded twice.

The text of code that defines something is its outline: path, section, signature, first line of documentation and the
defined names. A question resembles the name and purpose of a definition more than its statements. An outline is short and
does not change with the body of a definition, so a history has far fewer outlines than texts. The text of any other row is
its title, section and text. An outline is made from one row, never from the rest of its file, which a request may not see.

Note: *whether* a row has a vector depends only on imports of that row. An import encodes its own rows and no others, and
without an encoder a row never gets the vector of equal text elsewhere. Otherwise a row that a reader may not see would
affect how the rows are found that the reader sees.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...nodes.columns.keys import flat
from ...nodes.text.text_analysis import index_text
from ..encoders.unit_vectors import Encoder, encoded
from .packs import VECTORS, Pack

_PLAIN = ("title", "section", "text")
_OUTLINED = ("path", "section", "symbols", "text")
ENCODED_COLUMNS = ("evidence_kind", *dict.fromkeys((*_PLAIN, *_OUTLINED)))
"""The columns of EVIDENCE that determine the encoded text of a row."""

LINES = 60
"""Lines of a row searched for its signature; `NEAR` lines after it, else at the top, are searched for documentation."""
NEAR = 12
NAMES = 300
"""Maximum length of the names, and of any line."""
_ASIDE = re.compile(r"\s*(?:#|//|/?\*|@|--|;;|'''|\"\"\")")
_QUOTED = re.compile(r"\s*[rRuUfFbB]{0,2}(?:\"\"\"|''')\s*(.*)")
_COMMENT = re.compile(r"\s*(?:///?|/?\*\*?|#+|--|;;)!?\s+(\w.*)")
_LETTER = re.compile(r"[\w$]")
_SEPARATORS = re.compile(r"\.| > |::|#")


def encoded_texts(evidence: pa.Table | Mapping[str, pa.Array]) -> pa.Array:
    """The text to encode for each row."""
    texts = index_text(evidence, _PLAIN)
    defining = pc.and_(
        pc.fill_null(pc.equal(flat(evidence["evidence_kind"]), "code"), False),
        pc.greater(pc.fill_null(pc.list_value_length(flat(evidence["symbols"])), 0), 0),
    )
    at = np.flatnonzero(np.asarray(defining))
    if not len(at):
        return texts
    columns = (flat(evidence[name]).take(pa.array(at)).to_pylist() for name in _OUTLINED)
    outlines = [_outline(*row) for row in zip(*columns, strict=True)]
    return pc.replace_with_mask(texts, defining, pa.array(outlines, texts.type))


def _outline(path: str | None, section: str | None, names: list[str], text: str) -> str:
    lines = text[: LINES * NAMES].split("\n", LINES)[:LINES]
    signature = _signature(lines, _SEPARATORS.split(section or names[0])[-1])
    documentation = _documentation(lines, signature)
    parts = (path, section, lines[signature].strip() if signature >= 0 else None, documentation, ", ".join(names))
    return "\n".join(part[:NAMES] for part in parts if part)


def _signature(lines: list[str], name: str) -> int:
    """The first line that contains `name` and is neither a comment nor a decorator; -1 if there is none."""
    return next((n for n, line in enumerate(lines) if _contains(line, name) and not _ASIDE.match(line)), -1)


def _contains(line: str, name: str) -> bool:
    """Whether a line contains a name that is no part of a longer one. Nearly every name is another: a pattern for each
    would take longer to compile than to find.
    """
    at = line.find(name)
    while at >= 0 and (_LETTER.match(line[max(at - 1, 0) : at]) or _LETTER.match(line, at + len(name))):
        at = line.find(name, at + 1)
    return at >= 0


def _documentation(lines: list[str], signature: int) -> str | None:
    """The first line of the docstring after the signature, else of a comment or a docstring at the top."""
    start = signature + 1
    found = (_quoted(lines, start, start + NEAR), _commented(lines[:NEAR]), _quoted(lines, 0, NEAR))
    return next((text for text in found if text), None)


def _quoted(lines: list[str], start: int, end: int) -> str | None:
    for number, line in enumerate(lines[start:end], start=start):
        if match := _QUOTED.match(line):
            text = match[1] or (lines[number + 1] if number + 1 < len(lines) else "")
            return text.strip().strip("\"'").strip()
    return None


def _commented(lines: list[str]) -> str | None:
    return next((match[1].strip() for line in lines if (match := _COMMENT.match(line))), None)


OnEncoded = Callable[[int, int], None]
"""Called with the number of encoded texts and their total, before the first text and after each `TEXTS_AT_ONCE`."""
TEXTS_AT_ONCE = 128
"""Less than half a minute on one core."""


def vectors_of(
    evidence: pa.Table, stored: Iterable[Pack], encoder: Encoder, on_encoded: OnEncoded = lambda done, total: None
) -> pa.Table:
    """`text_digest` and `vector` per row: those of the same text in `stored`, else newly encoded.

    Raises:
        StoreError: a pack with such a vector is damaged.
    """
    texts = encoded_texts(evidence)
    digests = pa.array([hashlib.sha256(text.encode()).digest() for text in texts.to_pylist()], pa.binary(32))
    known = [_stored_vectors(pack, digests) for pack in stored if VECTORS in pack]
    found = [table["text_digest"].combine_chunks() for table in known]
    missing = digests.filter(pc.invert(pc.is_in(digests, value_set=pa.concat_arrays(found)))) if found else digests
    missing = missing.unique()
    known += _made(missing, texts.take(pc.index_in(missing, value_set=digests)), encoder, on_encoded)
    every = pa.concat_tables(known)
    at = pc.index_in(digests, value_set=flat(every["text_digest"]))
    return pa.table({"text_digest": digests, "vector": every["vector"].combine_chunks().take(at)})


def _made(digests: pa.Array, texts: pa.Array, encoder: Encoder, on_encoded: OnEncoded) -> Iterator[pa.Table]:
    """Encode these texts."""
    total = len(texts)
    if total:
        on_encoded(0, total)
    for start in range(0, total, TEXTS_AT_ONCE):
        matrix = encoded(encoder, texts.slice(start, TEXTS_AT_ONCE).to_pylist(), (start, total))
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(matrix.ravel(), pa.int16()), matrix.shape[1])
        on_encoded(min(start + TEXTS_AT_ONCE, total), total)
        yield pa.table({"text_digest": digests.slice(start, TEXTS_AT_ONCE), "vector": vectors})


def _stored_vectors(pack: Pack, digests: pa.Array) -> pa.Table:
    """The rows of a pack's vectors that encode one of these texts; verifies the file if there are any."""
    table = pack.table(VECTORS)
    wanted = pc.is_in(table["text_digest"], value_set=digests)
    found = table.take(pa.array(np.flatnonzero(wanted.to_numpy())))
    if found.num_rows:
        pack.expect_whole(VECTORS)
    return found
