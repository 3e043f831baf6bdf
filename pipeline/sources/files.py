"""Converts the bytes of a file to a document, or returns why not; and the columns of its rows.

Gives: `limit(kind)`, `readable(kind, data)`, `is_generated`, `columns_of`, `table_of`.
Readers of files share the trust columns written here: zone internal, authority 1, verified, model-visible, safe.

The text of PDF and Word files comes from libraries of the extra `documents`: a page of a PDF ends with `PAGE_BREAK`, a Word
file becomes Markdown. A library may raise anything on a damaged or hostile file; it is skipped with its reason.

Note: an encoding is a fact of the file, never a guess (`decoded`). The byte order mark of UTF-8, `\\r\\n` and control
characters are kept; a NUL character makes a file binary.
"""

from __future__ import annotations

import codecs
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from typing import Any
from zipfile import ZipFile

import pyarrow as pa

from .file_kinds import FileKind
from .parts import FORMATS, PAGE_BREAK

_GENERATED = re.compile(
    rb"@generated\b|code generated (?:by|from)\b|(?:automatically|auto-?) ?generated\b.{0,200}?do not (?:edit|modify)"
    rb"|do not (?:edit|modify)\b.{0,80}?generated",
    re.IGNORECASE | re.DOTALL,
)
_HEADER_BYTES = 1_500
_MINIFIED_LINE = 5_000
_MINIFIED_MEAN = 400


MAX_FILE_BYTES = 500_000
"""A larger file has no rows."""
MAX_LONG_BYTES = 32_000_000
"""The same of logs, which grow, and of notebooks, web pages and documents with pictures."""


def limit(kind: FileKind) -> int:
    """The maximum size in bytes of a file of this kind."""
    return MAX_LONG_BYTES if kind.evidence_kind == "test-log" or kind.splitter in FORMATS else MAX_FILE_BYTES


def readable(kind: FileKind, data: bytes) -> tuple[str | None, str]:
    """The text of a file, or None and the reason it is skipped."""
    if not kind.text_by_name:
        return None, "not text by name"
    if len(data) > limit(kind):
        return None, "over the size limit"
    if data.startswith(_LFS):
        return None, "a Git LFS pointer; `git lfs pull` fetches the file"
    if kind.splitter in _EXTRACTED:
        return _extracted(kind.splitter, data)
    text = decoded(data)
    if text is None:
        return None, "binary" if b"\0" in data else "neither UTF-8 nor in a declared encoding"
    return (text, "") if text.strip() else (None, "empty")


_UNPACKED_BYTES = 256_000_000
"""A Word file is an archive; what it holds may be this large."""


def _extracted(splitter: str, data: bytes) -> tuple[str | None, str]:
    """The text of a file, or None and the reason it is skipped."""
    try:
        text = _EXTRACTED[splitter](data)
    except ImportError as error:
        return None, f"needs {error.name}; install scoped-retrieval[documents]"
    except Exception as error:
        return None, f"not readable as its kind of document ({type(error).__name__})"
    return (text, "") if text.strip() else (None, "without text; scanned pages are pictures")


def _pdf(data: bytes) -> str:
    from pypdf import PdfReader

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # what it repairs in a file, without the name of the file
    return "".join(f"{page.extract_text()}\n{PAGE_BREAK}" for page in PdfReader(BytesIO(data)).pages)


def _docx(data: bytes) -> str:
    from docx import Document

    if sum(file.file_size for file in ZipFile(BytesIO(data)).infolist()) > _UNPACKED_BYTES:
        raise OverflowError
    return "\n".join(_blocks(Document(BytesIO(data))))


def _blocks(document: object) -> Iterator[str]:
    """The paragraphs and tables of a Word file as Markdown."""
    for block in document.iter_inner_content():  # type: ignore[attr-defined]  # its stubs lack it
        if hasattr(block, "rows"):
            for row in block.rows:
                yield " | ".join(" ".join(cell.text.split()) for cell in row.cells)
        else:
            style, _, level = (block.style.name or "").rpartition(" ")
            mark = "# " if (style, level) == ("", "Title") else "- " if style.startswith("List") else ""
            if style == "Heading" and level.isdecimal():
                mark = "#" * min(int(level), 6) + " "
            yield f"{mark}{block.text}"
        yield ""


_EXTRACTED: dict[str, Callable[[bytes], str]] = {"pages": _pdf, "document": _docx}


_LFS = b"version https://git-lfs.github.com/spec/"
_BOMS = ((codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))  # fmt: skip
_DECLARED = re.compile(rb"(?:coding\s*[:=]|charset[\s=])\s*[\"']?\s*([A-Za-z][\w.-]+)", re.IGNORECASE)
"""In a comment (PEP 263, Emacs, Vim), in XML, HTML or CSS."""
_CHARSETS = re.compile(r"ascii|cp\d+|iso\d+|euc|gb|big5|hz|johab|koi8|mac|ptcp|shift|tis|utf-")


def decoded(data: bytes) -> str | None:
    """The text of bytes by their byte order mark, as UTF-8, or in the encoding that the first lines declare.

    In a text without `\\n`, `\\r` ends the lines. None if the bytes are in none of these, or not text.
    """
    marked = next((name for mark, name in _BOMS if data.startswith(mark)), None)
    declared = (found[1].decode() for found in _DECLARED.finditer(data, 0, _HEADER_BYTES))
    for name in (marked,) if marked else ("utf-8", *declared):
        with suppress(LookupError, UnicodeError):
            if _CHARSETS.match(codecs.lookup(name).name):
                text = data.decode(name)
                return None if "\0" in text else text if "\n" in text else text.replace("\r", "\n")
    return None


def is_generated(kind: FileKind, data: bytes) -> bool:
    """Whether a tool generated the file: by its name (lock files, `.min.js`), by a header, or as minified code."""
    if kind.generated_by_name or _GENERATED.search(data[:_HEADER_BYTES]):
        return True
    if kind.content_type != "code" or len(data) < _MINIFIED_LINE:
        return False
    lines = data.split(b"\n")
    return len(data) > _MINIFIED_MEAN * len(lines) and max(map(len, lines)) > _MINIFIED_LINE


_OF_EVERY_FILE = {
    "zone": "internal",
    "declared_visibility": "model-visible",
    "authority": 1,
    "lifecycle": "verified",
    "declared_safety": "safe",
    "content_type": "excerpt",
    "symbols": (),
    "calls": (),
    "links": (),
    "generated": False,
    "statements": None,
}


def columns_of(kind: FileKind) -> dict[str, Any]:
    """The columns of a row of a file of this kind, before those of its text and its place."""
    return _OF_EVERY_FILE | {
        "origin_class": kind.origin_class,
        "evidence_kind": kind.evidence_kind,
        "document_type": kind.document_type,
        "declared_standing": kind.standing,
    }


def table_of(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """The rows with the columns of a schema, null where a row has none; an instant may be microseconds since 1970."""
    return pa.table([pa.array([row.get(each.name) for row in rows], each.type) for each in schema], schema=schema)
