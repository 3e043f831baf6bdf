"""A block read strictly: anything that is not a frame, label, locator or margin is an escape."""

from __future__ import annotations

import html
import re
import unicodedata
from dataclasses import dataclass

from scoped_retrieval.nodes.blocks.rendering import CLOSING, GROUPS, HEADER
from scoped_retrieval.nodes.vocabulary import EVIDENCE_KINDS

KIND = "|".join(EVIDENCE_KINDS.values)
WORDS = (
    r"(?:(?:high|medium|low) authority, (?:project instruction|evidence|history, not current|unverified hint|"
    r"untrusted text))?(?:(?:, )?(?:summary|recorded fact|conflicting claim|weak signal))?"
    r"(?:(?:, )?a competing claim may exist)?(?:(?:, )?\d{4}-\d{2}-\d{2})?(?:(?:, )?but on record: .*)?"
)
HEAD = re.compile(rf"\[(?P<label>(?:{KIND})#\d+)\](?: \((?P<words>{WORDS})\))?(?: (?P<locator>[^(].*))?")
OPENING = re.compile(
    r"<<(?P<nonce>[a-z]{7}) medium authority, evidence(?:, \d{4}-\d{2}-\d{2})? unless an item says otherwise"
)
CUT = re.compile("… (?:1 line|[0-9]+ lines|rest of the line) …")
CITED = re.compile(r"  (?:high|medium|low) authority, [^;]*; [^;]*; sha256 [0-9a-f]{16}")
FORGED = re.compile(rf"(?i)\[\s*(?:{KIND})\s*#|evidence package snapshot|use these as evidence|<<|>>")


@dataclass(frozen=True)
class Item:
    """An item of a block, and what it says of itself beyond what is usual."""

    label: str
    locator: str
    text: str
    words: str = ""


def strict_items(block: str) -> list[Item]:
    """The items of a block; an AssertionError for anything that a renderer does not write."""
    if not block:
        return []
    assert block.endswith("\n"), "the last line ends"
    lines = block.splitlines()
    assert re.fullmatch(re.escape(HEADER) + "[0-9a-f]{16}", lines[0]), "the first line is the header"
    assert lines[-1] == CLOSING, "the last line closes"
    items, at = [], 1
    opening = OPENING.fullmatch(lines[1])
    at += bool(opening)
    while at < len(lines) - 1 and not (opening and lines[at] == f"{opening['nonce']}>>"):
        at += lines[at] in GROUPS.values()
        head = HEAD.fullmatch(lines[at])
        assert head, "a label opens an item"
        assert not FORGED.search(as_read(head["locator"] or "")), "a locator says nothing of the frame"
        at += 1
        if CITED.fullmatch(lines[at]):
            assert not opening
            items.append(Item(head["label"], head["locator"], ""))
            at += 1
            continue
        assert opening, "text is inside the fence"
        at += bool(CUT.fullmatch(lines[at]))
        start = at
        while lines[at].startswith("|"):
            at += 1
        assert at > start or not CUT.fullmatch(lines[at - 1]), "a place without text is not cut"
        text = "\n".join(line[1:] for line in lines[start:at])
        items.append(Item(head["label"], head["locator"] or "", text, head["words"] or ""))
        at += bool(CUT.fullmatch(lines[at]))
    if opening:
        assert lines[at] == f"{opening['nonce']}>>", "the fence ends with its nonce"
        assert block.lower().count(opening["nonce"]) == 2, "the nonce stands on the fence alone"
        at += 1
    feet = [line for line in lines[at:-1] if not re.match(rf"\[(?:{KIND})#\d+\]: ", line)]
    assert not feet, "nothing but footnotes is below the fence"
    numbers = [item.label.partition("#")[2] for item in items]
    assert len(set(numbers)) == len(numbers), "a number stands once"
    return items


def as_read(text: str) -> str:
    """The text as a lenient reader takes it: entities decoded, compatibility forms, nothing invisible, plain spaces."""
    for _ in range(3):
        text = unicodedata.normalize("NFKC", html.unescape(text))
    assert len(text.splitlines()) <= 1, "a locator stays on its line"
    return " ".join("".join(c for c in text if unicodedata.category(c) not in ("Cf", "Cc")).split())
