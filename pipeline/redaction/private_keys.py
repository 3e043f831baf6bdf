"""Private keys in a text: PEM and OpenPGP blocks, and base64 words that hold one.

A block is found from its fences, `-----BEGIN … PRIVATE KEY-----` and `-----END …`, whatever stands before its lines
(quotes, `+`, a log's time). Where a chunk's border cut off one fence, the lines of key material beside the other one
belong to it. A fence without key material is prose about keys; an encrypted key is left as it is.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from .rules import KEY_FENCE, WRAPPED

__all__ = ["fenced_keys", "wrapped_keys"]

_MATERIAL = re.compile(r"[A-Za-z0-9+/]{32,}")
_BASE64 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-")
_BASE64_TAIL = re.compile(r"[A-Za-z0-9+/_-]*={0,2}")


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
    """End of the lines of key material that follow `position`."""
    end = text.find("\n", position) + 1
    while end and end < len(text):
        following = text.find("\n", end)
        line_end = len(text) if following < 0 else following + 1
        if not _MATERIAL.search(text, end, line_end):
            break
        end = line_end
    return end or len(text)


def _material_start(text: str, position: int) -> int:
    """Start of the lines of key material that precede `position`; the last of them may be short."""
    start = text.rfind("\n", 0, position) + 1
    short_lines = 1
    while start:
        line_start = text.rfind("\n", 0, start - 1) + 1
        if not _MATERIAL.search(text, line_start, start):
            if not short_lines:
                break
            short_lines -= 1
        start = line_start
    return start


def wrapped_keys(text: str) -> Iterator[tuple[int, int]]:
    """Spans of base64 words that hold a private key, in characters."""
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
