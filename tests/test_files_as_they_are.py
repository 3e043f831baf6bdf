"""Files as people have them, by the command line: notebooks, web pages, PDF and Word, other encodings, LFS pointers."""

from __future__ import annotations

import base64
import json
import re
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from command_line import run
from docx import Document
from scoped_retrieval.pipeline.sources.chunking import read_document


@pytest.fixture(autouse=True)
def _ana(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCOPED_RETRIEVAL_PRINCIPAL", "ana")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def index(
    capsys: pytest.CaptureFixture[str], files: dict[str, bytes | str], *flags: str, code: int = 0
) -> dict[str, Any]:
    """The report of `index` over a folder with these files."""
    for name, content in files.items():
        place = Path("files", name)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)
    got, out, err = run("index", "files", "--project", "p", "--no-semantic", "--json", *flags, capsys=capsys)
    assert got == code, err
    return json.loads(out)


def found(capsys: pytest.CaptureFixture[str], question: str, *flags: str) -> dict[str, str]:
    """The texts of the block by locator."""
    code, out, err = run("ask", question, "--project", "p", *flags, capsys=capsys)
    assert code == 0, err
    shown: dict[str, str] = {}
    at = ""
    for line in out.splitlines():
        if line.startswith("["):
            at = line.partition("] ")[2]
            shown.setdefault(at, "")
        elif line.startswith("|"):
            shown[at] += line[1:] + "\n"
    return shown


def cell(kind: str, source: Any, *outputs: Any) -> dict[str, Any]:
    made = {"cell_type": kind, "metadata": {}, "source": source}
    return made | ({"outputs": list(outputs), "execution_count": 1} if kind == "code" else {})


NOTEBOOK = {
    "cells": [
        cell("markdown", ["# Stripes\n", "\n", "We count zebras.\n"]),
        cell(
            "code",
            "def count_stripes(animal):\n    return animal.stripes\n",
            {"output_type": "stream", "name": "stdout", "text": ["counted quagga\n"]},
            {"output_type": "display_data", "metadata": {}, "data": {"image/png": "A" * 900_000, "text/plain": "<Figure>"}},
            {"output_type": "stream", "name": "stdout", "text": "okapi " * 1_000},
        ),
    ],
    "metadata": {"language_info": {"name": "python", "file_extension": ".py"}},
    "nbformat": 4,
    "nbformat_minor": 5,
}  # fmt: skip


def test_a_notebook_is_its_cells(capsys: pytest.CaptureFixture[str]) -> None:
    text = json.dumps(NOTEBOOK, indent=1)
    report = index(capsys, {"study.ipynb": text})
    assert (report["rows"], report["sources"]["skipped"]) == ({"work tree": 3}, {})
    shown = found(capsys, "count_stripes zebras quagga okapi")
    for locator, start in {
        " Stripes": "# Stripes",
        " count_stripes": "def count",
        " cell 2 output": "counted",
    }.items():
        (at,) = [name for name in shown if name.endswith(locator)]
        assert shown[at].startswith(start)


def test_a_web_page_is_its_text_with_the_lines_of_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    page = (
        "<!DOCTYPE html>\n<html><head><title>Guide</title><style>p{color:red}</style>\n<script>var giraffe = 1;</script></head>\n"
        "<body><h1>Install</h1>\n<p>Run the <b>okapi</b> installer\nfrom <a href='get.html'>here</a>.</p></body></html>\n"
    )
    assert index(capsys, {"guide.html": page})["rows"] == {"work tree": 2}
    shown = found(capsys, "okapi installer")
    text = shown["guide.html:4-5 Install"]  # a block counts for the line that it begins on
    assert "# Install" in text and "Run the okapi installer from [here](get.html)." in text
    assert not any("giraffe" in each or "<p>" in each for each in shown.values())


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", "Ein Walross schläft.\n".encode("utf-16")),
        ("a.txt", "Ein Walross schläft.\n".encode("utf-32")),
        ("a.xml", '<?xml version="1.0" encoding="ISO-8859-1"?>\n<a>Ein Walross schläft.</a>\n'.encode("latin-1")),
        ("a.txt", "Nichts\rEin Walross schläft.\rNichts\r".encode()),
    ],
    ids=["utf-16", "utf-32", "xml", "cr"],
)
def test_an_encoding_is_a_fact_of_the_file(capsys: pytest.CaptureFixture[str], name: str, content: bytes) -> None:
    assert index(capsys, {name: content})["rows"] == {"work tree": 1}
    (text,) = found(capsys, "Walross").values()
    assert "Ein Walross schläft." in text and "\r" not in text


def test_a_header_in_another_encoding_restricts_its_document(capsys: pytest.CaptureFixture[str]) -> None:
    header = "---\nzone: restricted\n---\n# Plan\n\nThe walrus sleeps.\n"
    index(capsys, {"plan.md": header.encode("utf-16"), "open.md": "# Open\n\nThe walrus wakes.\n"})
    assert list(found(capsys, "walrus")) == ["open.md:1-3 Open"]


def test_what_is_no_text_is_named_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    files = {
        "weights.json": "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n",
        "guess.txt": "schläft\n".encode("latin-1"),
        "broken.pdf": b"%PDF-1.4 no more",
        "broken.docx": b"PK no more",
        "a.md": "# A\n\nx\n",
    }
    report = index(capsys, files)
    assert report["rows"] == {"work tree": 1}
    places = {place for named in report["sources"]["skipped_at"].values() for place in named}
    assert places == files.keys() - {"a.md"}


def pdf(*pages: str) -> bytes:
    from pypdf import PdfWriter
    from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

    writer = PdfWriter()
    for text in pages:
        page = writer.add_blank_page(300, 300)
        font = {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": "/Helvetica"}
        named = DictionaryObject({NameObject(key): NameObject(value) for key, value in font.items()})
        fonts = DictionaryObject({NameObject("/F1"): named})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        stream = DecodedStreamObject()
        stream.set_data(f"BT /F1 12 Tf 50 200 Td ({text}) Tj ET".encode())
        page[NameObject("/Contents")] = writer._add_object(stream)
    made = BytesIO()
    writer.write(made)
    return made.getvalue()


def docx() -> bytes:
    document, made = Document(), BytesIO()
    document.add_heading("Capybaras", 1)
    document.add_paragraph("They swim.")
    document.add_table(1, 2).rows[0].cells[1].text = "webbed feet"
    document.save(made)
    return made.getvalue()


def test_pdf_and_word_files_are_read_by_page_and_heading(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    repaired = pdf("The axolotl regrows", "The olm waits").replace(b"startxref\n", b"startxref\n1")
    index(capsys, {"a.pdf": repaired, "b.docx": docx()})
    assert not caplog.records
    assert any("page 2" in at and "olm" in text for at, text in found(capsys, "olm").items())
    assert any("Capybaras" in at and "webbed feet" in text for at, text in found(capsys, "webbed feet").items())


@pytest.mark.parametrize("library", ["pypdf", "docx"])
def test_without_the_library_the_file_is_named_with_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    files = {"a.pdf": pdf("x"), "b.docx": docx(), "a.md": "# A\n\nx\n"}
    monkeypatch.setitem(sys.modules, library, None)
    report = index(capsys, files)
    (reason,) = report["sources"]["skipped"]
    assert "scoped-retrieval[documents]" in reason


def test_every_word_of_a_long_line_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    words = [f"{a}{b}{c}ion" for a in "bdfgklmnpr" for b in "aeiou" for c in "lmnrtvbdg"] * 3
    index(capsys, {"long.txt": " ".join(words) + "\n"})
    texts = [chunk.text for chunk in read_document("long.txt", " ".join(words) + "\n").chunks]
    assert len(texts) > 1 and [word for text in texts for word in text.split()] == words


CHINESE = "".join(chr(0x4E00 + number * 7919 % 20_000) for number in range(14_000))
STRETCHES = {
    "bundle.js": (";".join(f"f{number}(x{number})" for number in range(2_400)), "okapiHandler"),
    "rows.json": (",".join(f'{{"id":{number},"name":"n{number * 7}"}}' for number in range(1_600)), "okapiCount"),
    "blob.txt": (base64.b64encode(CHINESE.encode()).decode(), "/okapiMarker/"),
    "novel.txt": (CHINESE, "鳄鱼蒸汽琥珀"),
    "words.txt": (" ".join(f"word{number}" for number in range(4_000)), "okapiWord"),
}


@pytest.mark.parametrize("name", STRETCHES)
def test_a_match_in_a_long_line_is_shown_with_what_is_around_it(capsys: pytest.CaptureFixture[str], name: str) -> None:
    stretch, asked = STRETCHES[name]
    for share in (0.27, 0.99):
        at = stretch.find(" ", int(share * len(stretch))) if " " in stretch else int(share * len(stretch))
        line = f"{stretch[:at]} {asked}{stretch[at:]}" if " " in stretch else f"{stretch[:at]};{asked};{stretch[at:]}"
        index(capsys, {name: f"{line}\n"})
        lines = "".join(found(capsys, asked, "--max-tokens", "300").values()).splitlines()
        (shown,) = (text for text in lines if asked in text)
        before, after = shown.split(asked)
        assert before and after and len(before + after) > 15
        assert shown in line


@pytest.mark.parametrize("at", range(-12, 13, 3))
def test_a_term_at_a_cut_is_whole_in_one_chunk(at: int) -> None:
    cut = read_document("a.txt", CHINESE).chunks[0].byte_end // 3 + at
    asked = "鳄鱼蒸汽琥珀"
    chunks = read_document("a.txt", CHINESE[:cut] + asked + CHINESE[cut + len(asked) :]).chunks
    assert any(asked in chunk.text for chunk in chunks)


def test_a_cut_inside_of_a_line_is_marked(capsys: pytest.CaptureFixture[str]) -> None:
    index(capsys, {"bundle.js": STRETCHES["bundle.js"][0], "short.js": "f7(x7)\n"})
    code, out, err = run("ask", "f7 x7", "--project", "p", "--max-tokens", "400", capsys=capsys)
    assert code == 0, err
    blocks = [block for block in re.split(r"^\[", out, flags=re.MULTILINE)[1:] if "\n|" in block]
    assert {"bundle.js" in block for block in blocks} == {True, False}
    assert all(("\n… " in block) == ("bundle.js" in block) for block in blocks)
