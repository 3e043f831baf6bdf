"""Duties in rule texts: prohibitions, approvals and checks, which no compaction may lose (S3.30).

Gives: `sentences` (a text in its sentences and list items), `is_duty`, `duties_only` (a rule text cut to them) and `lost`
(duties that a shorter form lacks).

What one would otherwise get wrong: the error that counts is a duty taken for none. The patterns err on the side of keeping: a
sentence with a modal verb, a negation or a word of approval or checking stays, whatever else it says.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["DUTY", "TOPIC_WORDS", "duties_only", "is_duty", "lost", "sentences"]

_PROHIBITED = (
    r"\b(?:never|not|n't|don'?t|cannot|can'?t|won'?t|shouldn'?t|mustn'?t|no longer|avoid|forbid\w*|forbidden|prohibit\w*|disallow\w*|"
    r"refus\w+|reject\w*|refrain|stop|instead|redact\w*|sensitive|confidential|rather than|without|unless|except|only|no|none|nor|neither|off[- ]limits|read[- ]only|"
    r"deprecated|do\s+NOT|banned?|leave\b.{1,40}\b(?:alone|as)|keep\s+out|untouched|restrict\w*|limit(?:ed)?\s+to|must)\b"
)
_APPROVAL = (
    r"\b(?:approv\w+|ask(?:s|ed)?|permission|confirm\w*|consent|sign[- ]?off|review\w*|authoriz\w+|consult\w*|agree\w*|"
    r"check\s+with|get\s+\w+\s+from|request\w*|owner\w*|maintainer\w*|escalat\w+|wait\s+for|human|notify|tell)\b"
)
_CHECKED = (
    r"\b(?:verif\w+|test(?:s|ed|ing)?|check\w*|lint\w*|validat\w+|ensur\w+|make\s+sure|must|always|requir\w+|mandatory|shall|should|"
    r"need(?:s|ed)?\s+to|has\s+to|have\s+to|pass(?:es|ing)?|before|after|prior\s+to|run(?:s|ning)?|typecheck\w*|type-check\w*|format\w*|"
    r"green|clean|complete|ci|coverage|build(?:s)?|double-check|prove|assert\w*|keep|update|be\s+sure|remember|important|critical|warning)\b"
)
DUTY = re.compile(f"(?i){_PROHIBITED}|{_APPROVAL}|{_CHECKED}")
_UPPER_NOT = re.compile(r"[❌🚫⛔⚠✋]")
_CJK = re.compile("[不勿禁须須必需要请請先确確认認审審批准验驗测測]")
"""Words of duty in Chinese: negations, musts, approvals, checks."""
_BREAK = re.compile(r"(?<=[.!?\u3002\uff01\uff1f])[\"')\]]*\s+(?=[\"'(\[`*_]*[^\W\d_]|[\"'(\[`*_]*\d)")
_FENCES = ("```", "~~~")
_ITEM = re.compile(r"\s*(?:[-*+\u2022]\s|\d{1,3}[.)]\s|#{1,6}\s|\||>)")
"""Lines that begin something of their own: list items, headings, rows of tables, quotations."""
_ABBREVIATED = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|fig|v)\.)$", re.IGNORECASE)
_NUMBER = re.compile(r"\W*\d{1,3}[.)]")
"""A list mark alone: what follows is its item."""
TOPIC_WORDS = {
    "which tests to run": re.compile(r"(?i)\b(?:run|execute)\b.*\b(?:tests?|suite|pytest|jest|vitest|tox)\b|\btests?\b.*\b(?:full|all|only|package)\b"),
    "how far to change": re.compile(r"(?i)\b(?:only|minimal|small(?:est)?|broad|refactor\w*|rewrite|unrelated|scope)\b.*\b(?:fix|chang\w+|edit|modif\w+|failure|diff)\b|\b(?:chang\w+|fix|modif\w+)\b.*\bonly\b"),
    "public interface": re.compile(r"(?i)\b(?:public|exported?)\b.*\b(?:api|interfaces?|signatures?|functions?)\b"),
    "generated files": re.compile(r"(?i)\bgenerated\b"),
    "package manager": re.compile(r"(?i)\b(?:npm|pnpm|yarn|pip|uv|poetry)\b.*\b(?:install|add|use|uses)\b|\buses?\b.*\b(?:npm|pnpm|yarn|pip|uv|poetry)\b"),
    "commits": re.compile(r"(?i)\b(?:commit|push|merge|rebase|branch(?:es)?)\b"),
}  # fmt: skip
"""What two rules may disagree about."""


def sentences(text: str) -> list[str]:
    """The sentences, list items and code blocks of a text, in order, trimmed; lines that a paragraph was broken into are joined."""
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


def is_duty(sentence: str) -> bool:
    """Whether a sentence prohibits, asks for an approval, or asks for a check."""
    return bool(DUTY.search(sentence) or _UPPER_NOT.search(sentence) or _CJK.search(sentence))


def duties_only(text: str) -> str:
    """The duties of a text, one per line. What a duty announces with a colon, a code block or a list, stays with it."""
    kept: list[str] = []
    announced = False
    for sentence in sentences(text):
        listed = sentence.startswith(_FENCES) or bool(_ITEM.match(sentence))
        if is_duty(sentence):
            kept.append(sentence)
            announced = sentence.rstrip("*_").endswith(":") or (announced and listed)
        elif announced and listed:
            kept.append(sentence)
        else:
            announced = False
    return "\n".join(kept)


def lost(original: pa.Array, shown: pa.Array) -> NDArray[np.int32]:
    """How many duties of each original its shown form lacks; each distinct pair is looked at once."""
    pairs = list(zip(original.to_pylist(), shown.to_pylist(), strict=True))
    known = {pair: _lost(*pair) for pair in dict.fromkeys(pairs)}
    return np.array([known[pair] for pair in pairs], dtype=np.int32)


def _lost(original: str | None, shown: str | None) -> int:
    if original is None or original == shown:
        return 0
    kept = shown or ""
    return sum(is_duty(sentence) and sentence not in kept for sentence in sentences(original))
