"""A block read strictly: anything that is not a frame, label, locator or margin is an escape."""

from __future__ import annotations

import html
import re
import unicodedata
from dataclasses import dataclass

from scoped_retrieval.nodes.rendering import CLOSING, GROUPS, HEADER
from scoped_retrieval.nodes.vocabulary import EVIDENCE_KINDS

KIND = "|".join(EVIDENCE_KINDS.values)
HEAD = re.compile(rf"\[(?P<label>(?:{KIND})#\d+)\] (?P<locator>.*)")
OPENING = re.compile(
    r"<<(?P<nonce>[a-z]{7}) (?:high|medium|low) authority, (?:project instruction|evidence|history, not current|"
    r"unverified hint|untrusted text)(?:, (?:excerpt|summary|recorded fact|conflicting claim|weak signal))?"
    r"(?:, a competing claim may exist)?(?:, \d{4}-\d{2}-\d{2})?"
)
WITHIN = re.compile(
    rf"\[(?P<label>(?:{KIND})#\d+)\](?P<place>(?: (?:#\d+)?(?: ?\(.*\))?)?)(?:, \d{{4}}-\d{{2}}-\d{{2}})?"
)
CITED = re.compile(r"  (?:high|medium|low) authority, [^;]*; [^;]*; sha256 [0-9a-f]{16}")
FORGED = re.compile(rf"(?i)\[\s*(?:{KIND})\s*#|evidence package snapshot|use these as evidence|<<|>>")


@dataclass(frozen=True)
class Item:
    """An item of a block; in a fence that others opened, `locator` is "..." and what follows the name of the source."""

    label: str
    locator: str
    text: str

    def is_at(self, locator: str) -> bool:
        return (
            locator.endswith(self.locator.removeprefix("..."))
            if self.locator.startswith("...")
            else locator == self.locator
        )


def strict_items(block: str) -> list[Item]:
    """The items of a block; an AssertionError for anything that a renderer does not write."""
    if not block:
        return []
    lines = block.splitlines()
    assert re.fullmatch(re.escape(HEADER) + "[0-9a-f]{16}", lines[0]), "the first line is the header"
    assert lines[-1] == CLOSING, "the last line closes"
    items, nonces, fences, at = [], set(), 0, 1
    while at < len(lines) - 1:
        at += lines[at] in GROUPS.values()
        head = HEAD.fullmatch(lines[at])
        assert head, "a label opens an item"
        assert not FORGED.search(as_read(head["locator"])), "a locator says nothing of the frame"
        at += 1
        if CITED.fullmatch(lines[at]):
            items.append(Item(head["label"], head["locator"], ""))
            at += 1
            continue
        opening = OPENING.fullmatch(lines[at])
        assert opening, "a fence follows its label"
        nonces.add(opening["nonce"])
        fences += 1
        label, place = head["label"], head["locator"]
        while True:
            start = at = at + 1
            while lines[at].startswith("| "):
                at += 1
            assert at > start, "text stands behind the margin"
            items.append(Item(label, place, "\n".join(line[2:] for line in lines[start:at])))
            within = WITHIN.fullmatch(lines[at])
            if not within:
                break
            assert not FORGED.search(as_read(within["place"])), "a section says nothing of the frame"
            label, place = within["label"], f"...{within['place'].strip()}"
        assert lines[at] == f"{opening['nonce']}>>", "a fence ends with its nonce"
        at += 1
    assert len(nonces) <= 1
    for nonce in nonces:
        assert block.lower().count(nonce) == 2 * fences, "the nonce stands on fences alone"
    labels = [item.label for item in items]
    assert len(set(labels)) == len(labels), "a label stands once"
    return items


def as_read(text: str) -> str:
    """The text as a lenient reader takes it: entities decoded, compatibility forms, nothing invisible, plain spaces."""
    for _ in range(3):
        text = unicodedata.normalize("NFKC", html.unescape(text))
    assert len(text.splitlines()) <= 1, "a locator stays on its line"
    return " ".join("".join(c for c in text if unicodedata.category(c) not in ("Cf", "Cc")).split())
