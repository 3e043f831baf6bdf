"""Private keys in a text or over the rows of one document: PEM and OpenPGP blocks, and material without a fence.

Gives: `private_keys`, the keys in a text, found in one forward pass over its fences and base64 runs. A *run* is lines with
material; one line between two of them may have none: a blank one, or only a log's time. A run is a key if it follows
`-----BEGIN … PRIVATE KEY-----`, precedes `-----END …`, or begins with the ASN.1 or OpenSSH header of an unencrypted key.
In one text, everything between two fences is the key, at any distance. A fence without material is prose about keys; an
encrypted key is left unchanged.

Sources: RFC 7468 (PEM), RFC 8017 A.1.2 (RSA), RFC 5208 and 5958 (PKCS #8), RFC 5915 (EC), OpenSSH's PROTOCOL.key.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import re2

__all__ = ["MATERIAL", "MAY_BEGIN_KEY", "keys_over_rows", "private_keys"]

Span = tuple[int, int]

MATERIAL = re2.compile(r"[A-Za-z0-9+/]{32,}={0,2}")
"""The material in a line of a key."""
MAY_BEGIN_KEY = r"PRIVATE KEY(?: BLOCK)?-----|(?:^|[^A-Za-z0-9+/])(?:M[CEFGHI]|b3BlbnNzaC1rZXktdjE)[A-Za-z0-9+/]{36,}"
"""The RE2 pattern of texts where a key begins or ends."""
_MAY_BEGIN_KEY = re2.compile(MAY_BEGIN_KEY)
_EVENT = re2.compile(
    rf"-----(?P<edge>BEGIN|END) [A-Z0-9 ]{{0,40}}PRIVATE KEY(?: BLOCK)?-----|(?P<material>{MATERIAL.pattern})|ENCRYPTED"
)
_REST = re2.compile(r"[A-Za-z0-9+/]{1,76}(?:=[A-Za-z0-9+/]{4}|={0,2})")
"""The short last line of a key, or the checksum of OpenPGP."""
_AFTER_REST = re.compile(rb"(?:\\n)?[\"',;)]{0,3}\s*")
_LONGEST_LINE = 400
"""Bytes of a line that may be the short last one of a key, with the text around the material."""
_NUMBER = re.compile(rb"[0-9]+")
_PRIVATE_DER = re.compile(
    rb"0(?:[\x00-\x7f]|\x81.|\x82..)"  # SEQUENCE and its length
    rb"\x02\x01(?:\x00(?:\x02[\x40-\x82]|0)|\x01(?:\x04|0))",  # version 0: RSA, DSA, PKCS #8; version 1: EC, PKCS #8
    re.DOTALL,
)
_OPENSSH = b"openssh-key-v1\0\0\0\0\x04none"
"""The start of an OpenSSH key without a passphrase."""


@dataclass(slots=True)
class _Scan:
    """The state of the pass: the open fence, the material since, and the current run."""

    data: bytes
    separator: bytes
    keys: list[tuple[Span, list[Span]]] = field(default_factory=list)
    """The extent and the material of each key."""
    begin: Span | None = None
    sealed: bool = False
    """Whether the open block is encrypted."""
    since: list[Span] = field(default_factory=list)
    run: list[Span] = field(default_factory=list)
    follows: bool = False
    """Whether the run follows the open fence."""
    header: int | None = None
    """The position in the run of the first material with the header of a key."""

    def near(self, end: int, start: int) -> bool:
        """Whether at most one line lies between the lines of two positions."""
        return self.data.count(self.separator, end, start) <= 2

    def material(self, span: Span) -> None:
        if self.run and not self.near(self.run[-1][1], span[0]):
            self.close()
        if not self.run:
            self.follows = self.begin is not None and not self.since and self.near(self.begin[1], span[0])
        if self.header is None and _begins_key(self.data[slice(*span)]) and not (self.sealed and not self.since):
            self.header = len(self.run)
        self.run.append(span)
        self.since.append(span)

    def close(self, end: Span | None = None) -> None:
        """End the run, at a closing fence or where its material ends."""
        if self.run and not (self.sealed and len(self.since) == len(self.run)):
            before = end is not None and self.near(self.run[-1][1], end[0])
            first = 0 if before or self.follows else self.header
            if first is not None:
                material = [*self.run[first:], *self._rest()]
                begin = self.begin[0] if self.begin and self.follows else material[0][0]
                self.keys.append(((begin, end[1] if before and end else material[-1][1]), material))
        self.run, self.follows, self.header = [], False, None

    def _rest(self) -> list[Span]:
        """The short last line of the run: within two lines, like the line before it, with less material."""
        start, end = self.run[-1]
        before = self.data[self.data.rfind(self.separator, max(start - _LONGEST_LINE, 0), start) + 1 : start]
        line_end = self._line_end(end)
        shapes = _shape(before), _shape(self.data[end:line_end])
        for _ in range(2):
            line_start = line_end + len(self.separator)
            line_end = self._line_end(line_start)
            line = self.data[line_start:line_end]
            if len(line) > _LONGEST_LINE or b"-----" in line:
                return []
            for rest in _REST.finditer(line):
                after = line[rest.end() :]
                if _shape(line[: rest.start()]) == shapes[0] and (
                    _shape(after) == shapes[1] or _AFTER_REST.fullmatch(after)
                ):
                    return [(line_start + rest.start(), line_start + rest.end())]
        return []

    def _line_end(self, start: int) -> int:
        end = self.data.find(self.separator, start, start + 2 * _LONGEST_LINE)
        return end if end >= 0 else min(start + 2 * _LONGEST_LINE, len(self.data))


def private_keys(data: bytes, separator: bytes = b"\n") -> list[tuple[Span, list[Span]]]:
    """The keys in a text, each as its extent, fences included, and its material; in bytes.

    Args:
        data: a text, or the rows of a document with `separator` after each.
        separator: ends a line, or a row. Rows may be unrelated, so there two fences count only next to material.
    """
    scan = _Scan(data, separator)
    if not _MAY_BEGIN_KEY.search(data):
        return []
    for event in _EVENT.finditer(data):
        edge = event["edge"]
        if event["material"]:
            scan.material(event.span())
        elif edge == b"BEGIN":
            scan.close()
            scan.begin, scan.since, scan.sealed = event.span(), [], b"ENCRYPTED" in data[slice(*event.span())]
        elif edge == b"END":
            if separator == b"\n" and scan.begin and scan.since and not scan.sealed:
                scan.keys.append(((scan.begin[0], event.end()), scan.since))
                scan.run = []
            scan.close(event.span())
            scan.begin, scan.since, scan.sealed = None, [], False
        elif scan.begin:
            scan.sealed = True
    scan.close()
    return scan.keys


def keys_over_rows(rows: Sequence[bytes]) -> list[list[Span]]:
    """Per row of a document, the spans of material of keys, ascending."""
    found: list[list[Span]] = [[] for _ in rows]
    data = b"".join(row.replace(b"\0", b" ") + b"\0" for row in rows)
    number = start = 0
    for span in sorted({span for _, material in private_keys(data, b"\0") for span in material}):
        while span[0] > start + len(rows[number]):
            start += len(rows[number]) + 1
            number += 1
        found[number].append((span[0] - start, span[1] - start))
    return found


def _shape(text: bytes) -> bytes:
    """A text with its numbers replaced: the times of two log lines differ."""
    return _NUMBER.sub(b"0", text)


def _begins_key(encoded: bytes) -> bool:
    """Whether base64 begins with the header of an unencrypted private key."""
    if not encoded.startswith((b"M", b"b3BlbnNzaC1rZXktdjE")):
        return False
    data = base64.b64decode(encoded[: min(len(encoded), 80) // 4 * 4])
    return data.startswith(_OPENSSH) or bool(_PRIVATE_DER.match(data))
