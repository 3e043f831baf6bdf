"""Private keys in a text: PEM and OpenPGP blocks, key material without a fence, and base64 words that contain a key.

A block is found from its fences, `-----BEGIN … PRIVATE KEY-----` and `-----END …`, with any prefix on its lines
(quotes, `+`, a log's time). If one fence is missing, the lines of key material next to the other one belong to it, even
if they are double-spaced. Material without any fence is found by the ASN.1 or OpenSSH header that it begins with. A
fence without key material is prose about keys; an encrypted key is left unchanged.

Sources: RFC 7468 (PEM), RFC 8017 A.1.2 (RSA), RFC 5208 and 5958 (PKCS #8), RFC 5915 (EC), OpenSSH's PROTOCOL.key.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from .rules import BARE_KEY, KEY_FENCE, WRAPPED

__all__ = ["bare_keys", "begins_key", "fenced_keys", "wrapped_keys"]

_MATERIAL = re.compile(r"[A-Za-z0-9+/]{32,}")
_LAST_LINE = re.compile(r"(?:^|[\s\"'|>+])[A-Za-z0-9+/]{1,76}(?:=[A-Za-z0-9+/]{4}|={0,2})(?:\\n)?[\"',]{0,2}\s*$")
"""The short line before a closing fence: the rest of the key, or the checksum of OpenPGP."""
_REST = re.compile(r"[A-Za-z0-9+/]{1,76}={0,2}(?:\\n)?[\"',]{0,2}\s*")
"""The rest of a key after the prefix of its other lines."""
_NUMBER = re.compile(r"[0-9]+")
_BASE64 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-")
_BASE64_TAIL = re.compile(r"[A-Za-z0-9+/_-]*={0,2}")
_PRIVATE_DER = re.compile(
    rb"0(?:[\x00-\x7f]|\x81.|\x82..)"  # SEQUENCE and its length
    rb"\x02\x01(?:\x00(?:\x02[\x40-\x82]|0)|\x01(?:\x04|0))",  # version 0: RSA, DSA, PKCS #8; version 1: EC, PKCS #8
    re.DOTALL,
)
_OPENSSH = b"openssh-key-v1\0\0\0\0\x04none"
"""The start of an OpenSSH key without a passphrase."""


def fenced_keys(text: str) -> Iterator[tuple[int, int]]:
    """Spans of private keys, fences included, in characters."""
    fences = list(KEY_FENCE.finditer(text))
    for position, fence in enumerate(fences):
        before = fences[position - 1] if position else None
        after = fences[position + 1] if position + 1 < len(fences) else None
        if fence["edge"] == "BEGIN":
            start = fence.start()
            end = after.end() if after is not None and after["edge"] == "END" else _material_end(text, fence.end())
        elif before is None or before["edge"] == "END":
            start, end = _material_start(text, fence.start()), fence.end()
        else:
            continue
        block = text[start:end]
        if "ENCRYPTED" not in block and _MATERIAL.search(block):
            yield start, end


def _material_end(text: str, position: int) -> int:
    """End of the key material that begins at `position`, or on the line after it.

    Between two lines of it, one line may have none: a blank one, or only a log's time.
    """
    at = end = _line_end(text, position)
    gap, before = 0, _shape(text[text.rfind("\n", 0, position) + 1 : position])
    while at < len(text) and gap < 2:
        line_end = _line_end(text, at)
        if material := _MATERIAL.search(text, at, line_end):
            end, gap, before = line_end, 0, _shape(text[at : material.start()])
        elif _is_rest(text[at:line_end], before):
            return line_end
        else:
            gap += 1
        at = line_end
    return end


def _is_rest(line: str, before: str) -> bool:
    """Whether a line is the short last one of a key whose other lines have the prefix `before`."""
    shape = _shape(line)
    return shape.startswith(before) and bool(_REST.fullmatch(shape, len(before)))


def _shape(text: str) -> str:
    """A text with its numbers replaced: the times of two log lines differ."""
    return _NUMBER.sub("0", text)


def _material_start(text: str, position: int) -> int:
    """Start of the key material that ends on the line before `position`; its last line may be short."""
    start = at = text.rfind("\n", 0, position) + 1
    gap, short_lines = 0, 1
    while at and gap < 2:
        line_start = text.rfind("\n", 0, at - 1) + 1
        if _MATERIAL.search(text, line_start, at):
            start, gap = line_start, 0
        elif short_lines and _LAST_LINE.search(text[line_start:at]):
            start, short_lines = line_start, 0
        else:
            gap += 1
        at = line_start
    return start


def _line_end(text: str, position: int) -> int:
    return text.find("\n", position) + 1 or len(text)


def bare_keys(text: str) -> Iterator[tuple[int, int]]:
    """Spans of key material that begins with the header of a private key, with or without fence, in characters."""
    done = 0
    for match in BARE_KEY.finditer(text):
        if match.start() >= done and begins_key(match[0]) and not _is_encrypted(text, match.start()):
            done = _material_end(text, match.start())
            while done > match.start() and text[done - 1] in "\r\n":
                done -= 1
            if "\n" not in text[match.start() : done]:
                done = _BASE64_TAIL.match(text, match.end()).end()  # type: ignore[union-attr]  # matches nothing, too
            yield match.start(), done


def _is_encrypted(text: str, position: int) -> bool:
    """Whether a block marked as encrypted is open at `position`."""
    opened = text.rfind("-----BEGIN ", max(position - 20_000, 0), position)
    return opened >= 0 and "ENCRYPTED" in text[opened:position] and "-----END " not in text[opened:position]


def begins_key(encoded: str) -> bool:
    """Whether base64 begins with the header of an unencrypted private key."""
    data = base64.b64decode(encoded[: len(encoded) // 4 * 4])
    return data.startswith(_OPENSSH) or bool(_PRIVATE_DER.match(data))


def wrapped_keys(text: str) -> Iterator[tuple[int, int]]:
    """Spans of base64 words that contain a private key, in characters."""
    done = 0
    for match in WRAPPED.finditer(text):
        if match.start() < done:
            continue
        start = match.start()
        while start > done and text[start - 1] in _BASE64:
            start -= 1
        tail = _BASE64_TAIL.match(text, match.end())
        done = tail.end() if tail else match.end()
        if _holds_key(text[start:done]):
            yield start, done


def _holds_key(encoded: str) -> bool:
    data = encoded.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        plain = base64.b64decode(data[: len(data) // 4 * 4])
    except (binascii.Error, ValueError):
        return False
    if b"PRIVATE KEY-----" in plain:
        return b"ENCRYPTED" not in plain
    return b'"kty"' in plain and bool(re.search(rb'"(?:d|k|p|q)"\s*:', plain))
