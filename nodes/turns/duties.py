"""Duties in rules and in the words of the user: prohibitions, approvals and checks, which no compaction may lose (S3.30).

Gives: `is_duty` and `binds` (whether a rule text, or a user's words, forbid, require an approval or require a check),
`has_duty` (`is_duty` of many texts),
`binding` (the sections of a message that do), `apart` (the pasted parts of a message), `sections` and `sentences` of a
text, and `lost` (how many sentences of an original its shown form lacks).

Note: no pattern matches every prohibition, so none decides about single sentences. Sections are kept whole or replaced
by a reference, and `lost` compares the shown text with the original, word for word, independent of the patterns.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..columns.keys import flat
from .duty_words import AGREED, ASKED, BINDS, DUTY, GIVEN, POLITE, STATED
from .tagged import INLINE, foreign_blocks

__all__ = [
    "TOPIC_WORDS",
    "apart",
    "binding",
    "binds",
    "has_duty",
    "is_duty",
    "is_pasted",
    "lost",
    "sections",
    "sentences",
]

LONG_MESSAGE = 1_200
"""Longest message that binds as a whole; of a longer one only the binding sections are kept."""
LONG_SECTION = 600
"""Longest section or sentence of a long message that is kept whole; a longer section is split into sentences."""
BOUND = 4_800
"""Most characters of a message that are kept as binding. Words that bind go before the words around them. If even they are
too many, three quarters are for the first passages and a quarter for the last; the input states how many are left out.
"""
CUT = r"\[\.\.\. \d+ more passages of the message\]"
"""The mark of binding passages that are left out."""
_REPORTS = re.compile(
    r"(?i)\bhere\b|\b(?:sa(?:ys|id)|prints?|printed|shows?|showed|got|gave|(?:output|log|error|result|trace|message)s?(?: is| was| are| were)?)\W*$"
)
"""Words that announce a report."""
PASTED_LINES = 60
"""Number of lines, not counting list items, beyond which a section of a long message counts as pasted."""
_LOGGED = re.compile(
    r"(?i)\s*(?:[-\[(]?\d{4}-\d\d-\d\d|\[?\d\d:\d\d:\d\d|\[?(?:trace|debug|info|notice|warn(?:ing)?|error|fatal|critical)\b\s*[\]:|(]|at\s+\S+\s*\(|"
    r"file\s+\"[^\"]+\",\s+line|traceback\b|(?:npm|pnpm|yarn)\s+(?:err|warn)|caused\s+by:|[\w./\\-]+\.\w{1,5}(?::\d+(?::\d+(?::|\s-\s|\s*$|\s+(?:error|warning)\b)|:(?:[^\s\d]|\s\s)|:?\s*$|:?\s(?:-\s)?(?:fatal\s)?(?:error|warning|note|info)(?:\s+\w+)?:|"
    r":\sin\s[\w<>.]+\s*$|:\s[A-Z]\w*(?:Error|Exception|Warning)\b)|\(\d+(?:,\d+)?\)\s?:\s(?:fatal\s)?(?:error|warning|note|info)\b)|(?<=\s)[\w./\\-]+\.\w{1,5}:\d+:|"
    r"[A-Za-z_.]*(?:Error|Exception|Warning):|"
    r"@@\s|diff\s--git|\+\+\+\s|---\s\S|>>>\s|\$\s|E\s{3})"
)
"""Beginnings of lines of logs, traces and diffs."""
_SPELLED = str.maketrans({"\u2019": "'", "\u2018": "'", "\u02bc": "'", "\u00b4": "'", "`": "", "\u00a0": " ", "\u202f": " ", "\u200b": None, "\u00ad": None, "\u2060": None, "\ufeff": None, "\u2011": "-"})  # fmt: skip
_EMPHASIS = re.compile(r"(?<![\w*])[*_]{1,3}(?=\w)|(?<=\w)[*_]{1,3}(?![\w*])")
_MARKS = re.compile(r"([!-/:-@\[-`{-~]{3})[!-/:-@\[-`{-~]{2,}([!-/:-@\[-`{-~]{3})")
"""Long runs of marks: rules, table frames, excessive emphasis."""
_BREAK = re.compile(
    r"(?<=[.!?\u3002\uff01\uff1f])[\"')\]]*\s+(?=[\"'(\[`*_]*[^\W\d_]|[\"'(\[`*_]*\d)|(?<=[\u3002\uff01\uff1f])(?=[^\s\u3002\uff01\uff1f\u201d\u2019\u300d\u300f\uff09)\]\"'])"
)
_FENCES = ("```", "~~~")
_ITEM = re.compile(r"\s*(?:[-*+\u2022]\s|\d{1,3}[.)]\s|#{1,6}\s|\||>)")
"""Lines that begin a block: list items, headings, table rows, quotations."""
_ABBREVIATED = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|fig|v)\.)$", re.IGNORECASE)
_NUMBER = re.compile(r"\W*\d{1,3}[.)]")
"""A list mark alone: the next part is its item."""
TOPIC_WORDS = {
    "which tests to run": re.compile(r"(?i)\b(?:run|execute)\b.*\b(?:tests?|suite|pytest|jest|vitest|tox)\b|\btests?\b.*\b(?:full|all|only|package)\b"),
    "how far to change": re.compile(r"(?i)\b(?:only|minimal|small(?:est)?|broad|refactor\w*|rewrite|unrelated|scope)\b.*\b(?:fix|chang\w+|edit|modif\w+|failure|diff)\b|\b(?:chang\w+|fix|modif\w+)\b.*\bonly\b"),
    "public interface": re.compile(r"(?i)\b(?:public|exported?)\b.*\b(?:api|interfaces?|signatures?|functions?|names?)\b"),
    "generated files": re.compile(r"(?i)\bgenerated\b"),
    "package manager": re.compile(r"(?i)\b(?:npm|pnpm|yarn|pip|uv|poetry)\b.*\b(?:install|add|use|uses)\b|\buses?\b.*\b(?:npm|pnpm|yarn|pip|uv|poetry)\b"),
    "commits": re.compile(r"(?i)\b(?:commit|push|merge|rebase|branch(?:es)?)\b"),
}  # fmt: skip
"""Topics on which two rules may disagree."""


def sentences(text: str) -> list[str]:
    """The sentences, list items and code blocks of a text, in order, trimmed; the lines of a paragraph are joined."""
    found: list[str] = []
    for block in _blocks(text):
        if block.startswith(_FENCES):
            found.append(block)
            continue
        first = len(found)
        for part in _BREAK.split(block):
            trimmed = " ".join(part.split())
            if not trimmed:
                continue
            if len(found) > first and (_ABBREVIATED.search(found[-1]) or _NUMBER.fullmatch(found[-1])):
                found[-1] = f"{found[-1]} {trimmed}"
            else:
                found.append(trimmed)
    return found


def _blocks(text: str) -> list[str]:
    """Paragraphs, list items and code blocks."""
    blocks: list[list[str]] = [[]]
    fence = ""
    for line in text.splitlines():
        mark = line.lstrip()
        if fence:
            blocks[-1].append(line)
            if mark.startswith(fence):
                fence = ""
                blocks.append([])
        elif mark.startswith(_FENCES):
            fence = mark[:3]
            blocks.append([mark])
        elif not mark:
            blocks.append([])
        elif _ITEM.match(line):
            blocks.append([line])
        else:
            blocks[-1].append(line)
    return ["\n".join(block) for block in blocks if block]


def sections(text: str) -> list[str]:
    """The sections of a text: whole paragraphs, lists and code blocks, each with the line that announces it."""
    found: list[list[str]] = []
    fence, apart = "", True
    for line in text.splitlines():
        mark = line.lstrip()
        if fence:
            found[-1].append(line)
            fence = "" if mark.startswith(fence) else fence
            continue
        if not mark:
            apart = True
            continue
        begins = mark.startswith(_FENCES)
        announced = bool(found) and (found[-1][-1].rstrip(" *_").endswith(":") or found[-1][-1].startswith("#"))
        if (apart and not announced) or not found:
            found.append([])
        found[-1].append(line)
        fence = mark[:3] if begins else ""
        apart = False
    return ["\n".join(lines) for lines in found]


def binds(message: str) -> bool:
    """Whether a user's words forbid something, ask for an approval, or ask for a check."""
    plain = _plain(message)
    return bool((not GIVEN.fullmatch(plain) and BINDS.search(STATED.sub(" ", plain))) or _asks(plain))


def is_duty(text: str) -> bool:
    """Whether a rule text forbids something or requires an approval or a check: as `binds`, and by softer words."""
    plain = _plain(text)
    return bool(BINDS.search(plain) or _asks(plain) or DUTY.search(plain))


def has_duty(texts: pa.Array | pa.ChunkedArray) -> NDArray[np.bool_]:
    """Which rule texts have a duty (`is_duty`); each distinct text is checked once."""
    encoded = flat(texts).dictionary_encode()
    found = np.array([is_duty(text) for text in encoded.dictionary.to_pylist()], dtype=bool)
    return found[np.asarray(encoded.indices).astype(np.int64)]


def _asks(plain: str) -> bool:
    return bool(ASKED.search(AGREED.sub(".", POLITE.sub(r". \g<asked>.", plain))))


def _plain(text: str) -> str:
    """The nonblank lines of a text, without emphasis marks around words, with single spaces, shortened runs of marks
    and one spelling of apostrophes. So no pattern rescans a long run of blanks or marks from each of its characters.
    """
    plain = _MARKS.sub(r"\1\2", _EMPHASIS.sub("", text.translate(_SPELLED)))
    lines = (" ".join(line.split()) for line in plain.splitlines())
    return "\n".join(filter(None, lines))


def binding(message: str) -> str | None:
    """The part of a message that binds beyond its round: all of the user's own words; of a long message the binding
    sections, of long sections the binding sentences; None if nothing binds. Pasted text does not bind; repeated text is
    kept once.
    """
    message = apart(message)[0]
    if len(message) <= LONG_MESSAGE:
        return message if binds(message) else None
    kept: dict[str, str] = {}
    for section in sections(message):
        if is_pasted(section):
            continue
        if len(section) <= LONG_SECTION:
            kept |= {section: "\n".join(_duties(section)) or section} if binds(section) else {}
        else:
            kept |= {piece: piece for part in _duties(section) for piece in _pieces(part)}
    return "\n\n".join(_fitted(kept)) or None


def _duties(section: str) -> list[str]:
    """The sentences of a section that bind, and what they announce: the paragraph, list or block below a binding heading
    or a binding line that ends in a colon.
    """
    kept, announced, listed = list[str](), False, False
    for block in _blocks(section):
        item = bool(_ITEM.match(block)) or block.startswith(_FENCES)
        announced &= not listed or item
        binding_parts = (
            [" ".join(sentences(block))] if announced else [part for part in sentences(block) if binds(part)]
        )
        listed = announced
        announced |= bool(binding_parts) and (block.rstrip(" *_").endswith(":") or block.startswith("#"))
        kept += binding_parts
    return kept


def _fitted(kept: dict[str, str]) -> list[str]:
    """Binding passages, each given with its sentences that bind, within their bound: all of these sentences, and as many
    of the first passages whole as there is room for. If the sentences alone are too many, the first and the last.
    """
    parts, few = list(kept), list(kept.values())
    if _size(parts) <= BOUND:
        return parts
    if _size(few) <= BOUND:
        words = "[... of the next {} passages only what forbids or requires]"
        room = BOUND - _size(few) - len(words) - 4
        added = accumulate(len(part) - len(short) for part, short in kept.items())
        whole = sum(size <= room for size in added)
        return [*parts[:whole], words.format(len(parts) - whole), *dict.fromkeys(few[whole:])]
    few = list(dict.fromkeys(few))
    first = sum(size <= BOUND * 3 // 4 for size in accumulate(len(part) + 2 for part in few))
    last = len(few) - sum(size <= BOUND // 4 for size in accumulate(len(part) + 2 for part in reversed(few)))
    if first < last:
        few[first:last] = [f"[... {last - first} more passages of the message]"]
    return few


def _size(parts: list[str]) -> int:
    return sum(len(part) + 2 for part in parts)


def apart(message: str) -> tuple[str, str | None]:
    """The user's own words with a mark in place of each pasted part, and these parts: code blocks, tagged blocks,
    quotations, several lines of a log or a trace. A short part stays in place if a binding line announces it (`Never
    run:`), because that line is about it.
    """
    own, pasted = list[str](), list[str]()
    for lines, foreign in _runs(message.splitlines()):
        text, before = "\n".join(lines), next((line for line in reversed(own) if line.strip()), "")
        if foreign and not (len(text) <= LONG_SECTION and _names_what_follows(before)):
            pasted.append(text)
            own.append(f"[pasted, {len(lines)} line{'s' * (len(lines) > 1)}]")
        else:
            own += lines
    return ("\n".join(own).strip(), "\n\n".join(pasted)) if pasted else (message, None)


def _names_what_follows(line: str) -> bool:
    """Whether a line ends in binding words that announce their object (`Never run:`), not ones that announce a
    report.
    """
    if not line.rstrip(" *_").endswith(":"):
        return False
    last = sentences(line)[-1]
    clause = re.split(r"[,;\u2013\u2014]\s*", last)[-1]
    return binds(last) and (binds(clause) or not _REPORTS.search(clause))


def _runs(lines: list[str]) -> Iterator[tuple[list[str], bool]]:
    """Runs of lines, and whether each is pasted: fenced or tagged blocks, quotations, several log lines; other
    lines.
    """
    at, tagged = 0, _tagged(lines)
    while at < len(lines):
        kind, end = _kind(lines[at]), at + 1
        if kind != "fence" and at in tagged:
            kind, end = "tags", tagged[at]
        elif kind == "fence":
            end = _fence_end(lines, at)
        else:  # indented lines below a log line belong to it
            while end < len(lines) and end not in tagged and _goes_on(kind, lines[end]):
                end += 1
        yield lines[at:end], kind in ("fence", "tags", "quotation") or (kind == "log" and end - at > 1)
        at = end


def _fence_end(lines: list[str], at: int) -> int:
    """The line after a fenced block. A fence is closed by one of at least its length without words; one with a word
    (```` ```bash ````) opens a nested block. Where they do not pair, the first fence that could close the block does.
    """
    mark = lines[at].lstrip()
    if mark[:3] in mark[3:].lstrip(mark[0]):
        return at + 1
    size, depth, closing, loose = len(mark) - len(mark.lstrip(mark[0])), 1, 0, 0
    for place in range(at + 1, len(lines)):
        line = lines[place].strip()
        rest = line.lstrip(mark[0])
        if len(line) - len(rest) < size:
            continue
        loose = loose or place + 1
        depth += 0 if " " in rest else 1 if rest else -1
        closing = closing or (0 if rest else place + 1)
        if not depth:
            return place + 1
    return closing or loose or len(lines)


def _goes_on(kind: str, line: str) -> bool:
    return _kind(line) == kind or (kind == "log" and line[:1] in (" ", "\t"))


def _tagged(lines: list[str]) -> dict[int, int]:
    """The first line of each tagged block, with the line after the block; only blocks of whole lines."""
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    found = {}
    for block in foreign_blocks("\n".join(lines)):
        first, last = (bisect_right(starts, place) - 1 for place in (block.start, block.end - 1))
        before, behind = lines[first][: block.start - starts[first]], lines[last][block.end - starts[last] :]
        if block.name.lower() not in INLINE and not before.strip() and not behind.strip():
            found[first] = last + 1
    return found


def _kind(line: str) -> str:
    """The kind of a line by its beginning: a fence, a quotation, a log line, or anything else."""
    mark = line.lstrip()
    if mark.startswith(_FENCES):
        return "fence"
    return "quotation" if mark.startswith(">") else "log" if _LOGGED.match(line) else ""


def _logged(lines: list[str]) -> int:
    """The number of lines that begin like log lines."""
    return sum(bool(_LOGGED.match(line)) for line in lines)


def is_pasted(section: str) -> bool:
    """Whether a section reads as something pasted: a block of code, a log, a trace, or many lines of plain text."""
    if section.startswith(_FENCES):
        return True
    lines = section.splitlines()
    plain = sum(not _ITEM.match(line) for line in lines)
    return 2 * _logged(lines) > len(lines) or plain > PASTED_LINES


def _pieces(part: str) -> Iterator[str]:
    """A binding sentence; of one that is too long the binding passages, which overlap so that one has the duty
    whole.
    """
    if len(part) <= LONG_SECTION:
        yield part
        return
    half = LONG_SECTION // 2
    for start in range(0, len(part) - half, half):
        passage = part[start : start + LONG_SECTION]
        if binds(passage):
            more = len(part) - start - len(passage)
            before = f"[... {start} characters of the message] " if start else ""
            yield f"{before}{passage}" + (f" [... {more} more characters of the message]" if more else "")


def lost(original: pa.Array, shown: pa.Array) -> NDArray[np.int32]:
    """How many sentences of each original its shown form lacks; each distinct pair is compared once."""
    pairs = list(zip(original.to_pylist(), shown.to_pylist(), strict=True))
    known = {pair: _lost(*pair) for pair in dict.fromkeys(pairs)}
    return np.array([known[pair] for pair in pairs], dtype=np.int32)


def _lost(original: str | None, shown: str | None) -> int:
    if original is None or original == shown:
        return 0
    kept = " ".join((shown or "").split())
    return sum(" ".join(sentence.split()) not in kept for sentence in sentences(original))
