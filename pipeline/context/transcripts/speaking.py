"""Who speaks in a message of the role `user`: the user, the harness, or another program or agent.

Harnesses write reminders, outputs, summaries and messages of other agents under that role. Gives `speech_in`, which
splits a text by speaker, and `Speech`, its parts.

Note: text that the user did not write is recognized by its form; known names only decide what is worth keeping. A
tagged block does not count as the user's words: one with a tag of the harness is always left out; a message of nothing
else is of another origin, unless its record states that a human wrote it; next to words of the user it counts as
pasted. Tags that name a part of a prompt (`<rules>`) are the user's own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ....nodes.turns.tagged import foreign_blocks

__all__ = ["OTHERS", "Speech", "speech_in"]

OTHERS = "somebody else"
"""The origin of events that neither the user wrote nor a tool printed."""
_EVENTS = (
    "(?:Stop|Subagent|PreTool|PostTool|UserPrompt|Session|PreCompact|PostCompact|Notification|Permission|Task|Teammate)"
)
_SENTENCE = re.compile(
    rf"\s*(?:\[SYSTEM NOTIFICATION|Caveat: The messages below were generated|Warning: The maximum number of |Operation stopped by hook\b|Unknown slash command: \S+\s*\Z|"
    rf"{_EVENTS}\w*(?::\S+)? hook (?:feedback|success|error|stopped|blocking|non-blocking|additional)\b)"
)
"""Beginnings of sentences of the harness."""
_SUMMARY = re.compile(
    r"\s*(?:This session is being continued from a previous conversation|Another language model started )"
)
_INTERRUPTED = re.compile(r"\[Request interrupted by user[^\]\n]*\]")
_EDITOR = re.compile(
    r"\A\s*# Context from my IDE setup:\n.*?^## My request for Codex:[ \t]*$", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True)
class Speech:
    """A text split by speaker."""

    own: str = ""
    """Words of the user."""
    others: str = ""
    """Words that the user did not write."""
    summary: str = ""
    """A summary of earlier rounds."""
    blocks: tuple[tuple[str, str], ...] = ()
    """Blocks of the harness: names of tags (`` without one) and texts."""


def speech_in(text: str, tags: re.Pattern[str], *, human: bool = False) -> Speech:
    """Splits a text of the role `user`. `tags` matches the names of the harness's tags; `human`: its record states that
    a human wrote it.
    """
    if _SUMMARY.match(text):
        return Speech(summary=text)
    if _SENTENCE.match(text):
        return Speech(blocks=(("", text),))
    blocks: list[tuple[str, str]] = []
    kept, at = list[str](), 0
    for block in foreign_blocks(text):
        if tags.fullmatch(block.name):
            kept.append(text[at : block.start])
            blocks.append((block.name, text[block.start : block.end]))
            at = block.end
    rest = "".join([*kept, text[at:]])
    if unclosed := _unclosed(rest, tags):
        blocks.append((unclosed["name"], rest[unclosed.start() :]))
        rest = rest[: unclosed.start()]
    for pattern in (_INTERRUPTED, _EDITOR):
        blocks += [("", found[0]) for found in pattern.finditer(rest)]
        rest = pattern.sub("", rest)
    rest = rest.strip() if blocks else rest
    if human or not _only_blocks(rest):
        return Speech(own=rest, blocks=tuple(blocks))
    return Speech(others=rest, blocks=tuple(blocks))


def _unclosed(text: str, tags: re.Pattern[str]) -> re.Match[str] | None:
    """The first tag of the harness at the beginning of a line: its block was cut off and ends with the text."""
    found = re.finditer(r"^[ \t]*<(?P<name>[A-Za-z][\w.:-]*)(?:\s[^<>]*)?>?", text, re.MULTILINE)
    return next((each for each in found if tags.fullmatch(each["name"])), None)


def _only_blocks(text: str) -> bool:
    """Whether a text consists only of tagged blocks."""
    at, plain = 0, list[str]()
    for block in foreign_blocks(text):
        plain.append(text[at : block.start])
        at = block.end
    return at > 0 and not "".join([*plain, text[at:]]).strip()
