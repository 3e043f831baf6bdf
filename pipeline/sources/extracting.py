"""The text of PDF and Word files, by libraries of the extra `documents`.

Gives: `extracted(splitter, data)`. A page of a PDF ends with `PAGE_BREAK`; a Word file becomes Markdown.

Note: a library may raise anything on a damaged or hostile file; such a file is skipped with its reason, like every other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import BytesIO
from zipfile import ZipFile

from .parts import PAGE_BREAK

__all__ = ["EXTRACTED", "extracted"]

_UNPACKED_BYTES = 256_000_000
"""A Word file is an archive; what it holds may be this large."""


def extracted(splitter: str, data: bytes) -> tuple[str | None, str]:
    """The text of a file, or None and the reason it is skipped."""
    try:
        text = EXTRACTED[splitter](data)
    except ImportError as error:
        return None, f"needs {error.name}; install scoped-retrieval[documents]"
    except Exception as error:
        return None, f"not readable as its kind of document ({type(error).__name__})"
    return (text, "") if text.strip() else (None, "without text; scanned pages are pictures")


def _pdf(data: bytes) -> str:
    from pypdf import PdfReader

    return "".join(f"{page.extract_text()}\n{PAGE_BREAK}" for page in PdfReader(BytesIO(data)).pages)


def _docx(data: bytes) -> str:
    from docx import Document

    if sum(file.file_size for file in ZipFile(BytesIO(data)).infolist()) > _UNPACKED_BYTES:
        raise OverflowError
    return "\n".join(_blocks(Document(BytesIO(data))))


def _blocks(document: object) -> Iterator[str]:
    """The paragraphs and tables of a Word file as Markdown."""
    for block in document.iter_inner_content():  # type: ignore[attr-defined]
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


EXTRACTED: dict[str, Callable[[bytes], str]] = {"pages": _pdf, "document": _docx}
