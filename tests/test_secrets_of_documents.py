"""Secrets are found in the document and masked in its chunks: no window hides what the whole would tell."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from scoped_retrieval.pipeline.redaction.masking import redact_text
from scoped_retrieval.pipeline.sources import chunking
from scoped_retrieval.pipeline.sources.chunking import read_document
from scoped_retrieval.pipeline.sources.importing import normalize
from scoped_retrieval.pipeline.sources.markdown import SECTION_CHARACTERS
from scoped_retrieval.pipeline.sources.record_rows import record_table, rows_of_text


def random_bytes(count: int) -> bytes:
    return b"".join(hashlib.sha256(f"{n}".encode()).digest() for n in range(count // 32 + 1))[:count]


def material(head: str, count: int) -> list[str]:
    """Lines of 64 characters of a key that begins with these bytes (hex)."""
    encoded = base64.b64encode(bytes.fromhex(head) + random_bytes(count)).decode()
    return cut(encoded, 64)


def cut(text: str, width: int) -> list[str]:
    return [text[at : at + width] for at in range(0, len(text), width)]


KEYS = {
    "PKCS #1, 4096 bits": material("3082092802010002820201", 2_340),
    "PKCS #8": material("308204bd020100300d06092a864886f70d0101010500048204a7", 1_190),
    "EC": material("30770201010420", 114),
    "EC, PKCS #8": material("308187020100301306072a8648ce3d0201", 121),
    "Ed25519": material("302e020100300506032b657004220420", 32),
    "OpenSSH": material(b"openssh-key-v1\0\0\0\0\4none".hex(), 1_800),
}
FENCES = ("-----BEGIN " + "PRIVATE KEY-----", "-----END " + "PRIVATE KEY-----")


def in_log(lines: list[str]) -> str:
    return "".join(f"2025-03-01T10:00:{n % 60:02d}.{n:03d}Z app[12] DEBUG {line}\n" for n, line in enumerate(lines))


FORMS: dict[str, Callable[[list[str]], str]] = {
    "file": lambda key: "\n".join([FENCES[0], *key, FENCES[1]]),
    "log": lambda key: in_log(["start", FENCES[0], *key, FENCES[1], "done"]),
    "double-spaced": lambda key: "\n\n".join([FENCES[0], *key, FENCES[1]]),
    "double-spaced log": lambda key: in_log([line for each in (FENCES[0], *key, FENCES[1]) for line in (each, "")]),
    "no fence": lambda key: "\n".join(["It begins here.", *key, "It has ended."]),
    "no fence, log": lambda key: in_log([*key, "it has ended"]),
    "no fence, double-spaced": lambda key: "\n\n".join(key),
    "one line": lambda key: f"the key is {''.join(key)} and no other",
    "never ends": lambda key: "\n".join([FENCES[0], *key]),
    "pages": lambda key: "\n".join([FENCES[0], key[0], "", "--- page 2 ---", "", *key[1:], "", "", "", FENCES[1]]),
    "never ends, lines of 70": lambda key: "\n".join([FENCES[0], *cut("".join(key), 70)]),
    "in code": lambda key: "\n".join(f'  + "{line}\\n"' for line in [FENCES[0], *key, FENCES[1]]),
    "among prose": lambda key: (
        "word " * 900 + "\n\n" + "\n".join([FENCES[0], *key, FENCES[1]]) + "\n\n" + "word " * 900
    ),
}


@pytest.mark.parametrize(
    ("key", "form"),
    [*((key, form) for key in ("PKCS #8", "Ed25519") for form in FORMS), *((key, "no fence, log") for key in KEYS)],
)
def test_no_line_of_a_private_key_is_left(key: str, form: str) -> None:
    document = FORMS[form](KEYS[key])
    for path in ("run.log", "notes.md", "app.py", "data.txt"):
        stored = "".join(redact_text(chunk.text) for chunk in read_document(path, document).chunks)
        assert [line for line in KEYS[key] if line in stored] == []
        assert "[REDACTED:private-key]" in stored
        assert ("It has ended" in document) == ("It has ended" in stored)
        assert document.count("word") == stored.count("word")


def test_a_key_in_the_windows_of_a_record_is_masked() -> None:
    """37 of 50 lines stayed: most windows have no fence."""
    key = KEYS["PKCS #1, 4096 bits"]
    document = in_log([f"request {n} served" for n in range(100)]) + FORMS["log"](key)
    row = {"source_id": "docs:a", "text": document, "path": "run.log"}
    table, now = record_table(list(rows_of_text(document, "run.log", row))), datetime(2025, 1, 1, tzinfo=UTC)
    texts = normalize(table, project="shop", principal="ann", now=now)[0]["text"].to_pylist()
    assert len(texts) > 2
    assert [line for line in key if any(line in text for text in texts)] == []
    assert sum("served" in line for text in texts for line in text.splitlines()) == 100


ROWS: dict[str, Callable[[int, str], str]] = {
    "lines": lambda _, line: line,
    "log": lambda n, line: f"2025-03-01T10:00:{n % 60:02d}Z app[12] DEBUG {line}",
    "fields": lambda n, line: f"timestamp: 2025-03-01T10:00:{n % 60:02d}Z\nmsg: {line}\nlevel: debug",
}


@pytest.mark.parametrize(
    ("key", "fences", "row"),
    [*(("PKCS #8", fences, row) for fences in ("both", "first", "last", "none") for row in ROWS),
     *((key, "none", "log") for key in KEYS if key != "PKCS #8")],
)  # fmt: skip
def test_a_key_whose_lines_are_rows_is_masked_in_each(key: str, fences: str, row: str) -> None:
    """Readers of events, of logs line by line and of generic rows kept all lines but the first."""
    first, last = FENCES[:1] if fences in ("both", "first") else (), FENCES[1:] if fences in ("both", "last") else ()
    lines = ["request served", *first, *KEYS[key], *last, "request served", "also served", "A1" * 20]
    texts = [ROWS[row](n, line) for n, line in enumerate(lines)]
    other = [{"source_id": "notes", "text": "between the rows, of another source"}]
    rows = [each for text in texts for each in ({"source_id": "log", "path": "a.log", "text": text}, *other)]
    table = record_table([*rows])
    stored, _ = normalize(table, project="shop", principal="ann", now=datetime(2025, 1, 1, tzinfo=UTC))
    left = [line for line in KEYS[key] if any(line in text for text in stored["text"].to_pylist())]
    assert [line for line in left if len(line) == 64 or fences == "both"] == []
    assert sum("served" in text for text in stored["text"].to_pylist()) == 3
    assert any("A1" * 20 in text for text in stored["text"].to_pylist())


def test_a_key_over_rows_is_masked_behind_a_password_beside_its_fence() -> None:
    key = KEYS["PKCS #8"]
    texts = [f"password=hunter2secret99{FENCES[0]}", *key, FENCES[1]]
    table = record_table([{"source_id": "log", "text": text} for text in texts])
    stored, _ = normalize(table, project="shop", principal="ann", now=datetime(2025, 1, 1, tzinfo=UTC))
    assert [line for line in key if any(line in text for text in stored["text"].to_pylist())] == []


def test_prose_about_keys_in_rows_stays() -> None:
    texts = [f"A file that begins with {FENCES[0]} holds a key.", "It is secret.", "Nobody reads it.", "a" * 40]
    texts += ["It is long.", "It is old.", f"{FENCES[1]} ends it."]
    table = record_table([{"source_id": "log", "text": text} for text in texts])
    stored, _ = normalize(table, project="shop", principal="ann", now=datetime(2025, 1, 1, tzinfo=UTC))
    assert stored["text"].to_pylist() == texts


@pytest.mark.parametrize("headers", [(), ("Version: GnuPG v2",), ("Version: GnuPG v2", "Comment: mine \0")])
def test_an_armoured_key_is_masked_with_its_headers_and_checksum(headers: tuple[str, ...]) -> None:
    first, last = (f"-----{edge} PGP " + "PRIVATE KEY BLOCK-----" for edge in ("BEGIN", "END"))
    lines = [first, *headers, "", *material("9503980467a1b2c3010800", 1_190), "VC9=", "=r/n6", last]
    assert redact_text("\n".join(lines)) == "[REDACTED:private-key]"


def test_the_last_characters_of_a_key_without_a_fence_are_masked() -> None:
    for key in KEYS.values():
        for width in (48, 64, 70):
            lines = cut("".join(key).rstrip("=") + "x7Qm", width)
            stored = redact_text("\n".join(["It begins here.", *lines, "", "It has ended."]))
            assert stored == "It begins here.\n[REDACTED:private-key]\n\nIt has ended."


def test_prose_between_two_examples_of_keys_stays() -> None:
    text = f"Begins with {FENCES[0]} always.\n" + "word\n" * 200
    assert redact_text(text + FORMS["file"](KEYS["PKCS #8"])) == text + "[REDACTED:private-key]"


def test_a_certificate_and_an_encrypted_key_stay() -> None:
    certificate = "\n".join(material("3082030d308201f5a003020102", 780))
    sealed = "\n".join(material("308205 2d 3057 06092a864886f70d01050d".replace(" ", ""), 1_300))
    protected = "\n".join(material(b"openssh-key-v1\0\0\0\0\x0aaes256-ctr".hex(), 1_800))
    for text in (certificate, sealed, protected):
        assert redact_text(text) == text
        assert "".join(chunk.text for chunk in read_document("a.txt", text).chunks) == text


def test_a_token_that_a_cut_divides_is_masked() -> None:
    token = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    for shift in range(0, 60, 7):
        line = "x " * (2_000 - 20) + "y" * shift + f" {token} " + "z " * 3_000
        chunks = read_document("a.txt", line).chunks
        assert len(chunks) > 1
        stored = "".join(redact_text(chunk.text) for chunk in chunks)
        assert not any(part in stored for part in (token, token[:20], token[-20:]))


@pytest.mark.parametrize("shift", range(0, 60, 7))
def test_no_section_or_title_that_is_cut_has_a_part_of_a_token(shift: int) -> None:
    token = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    read = chunking.read_document("a.md", f"# {'x' * (SECTION_CHARACTERS - shift)} {token}\n\nText.\n")
    for name in (read.title, *(chunk.section for chunk in read.chunks)):
        assert token[:8] not in (name or "")


def test_a_password_in_the_path_title_or_uri_of_a_row_is_masked_before_the_path_is_normalized() -> None:
    password = "t7Gq9xLm2Zr" * 12
    url = f"https://app:{password}@db.internal//x"
    table = record_table([{"source_id": "docs:a", "text": "words", "path": url, "title": url, "uri": url}])
    stored, _ = normalize(table, project="shop", principal="ann", now=datetime(2025, 1, 1, tzinfo=UTC))
    assert stored["path"].to_pylist() == ["https:/app:[REDACTED:url-password]@db.internal/x"]
    assert password[:11] not in str(stored.to_pylist())
